"""Tools as another program lists them: bounded, pinned by a hash, and compared with what a person reviewed.

Everything in a listing is untrusted: names, descriptions, schemas, annotations, and what else a server puts there. A
pin is a hash over all of it, so that a tool that changes in any way is noticed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from bicameral.display import make_visible
from bicameral.errors import ToolError
from bicameral.foreign._schemas import measure_patterns

MAX_TOOLS = 500
"""Tools of one server."""
MAX_NAME = 128
MAX_DESCRIPTION = 64 * 1024
MAX_SCHEMA = 256 * 1024
"""Bytes of one schema, as JSON."""
_MAX_DEPTH = 100
_MAX_PATTERN_SECONDS = 10.0
"""Time for the regular expressions of a whole list: compiling one can take some hundredths of a second."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")
_PARTS = ("name", "title", "description", "input_schema", "output_schema", "annotations", "more")
_MOST_DIFF_LINES = 60
_MOST_COMPARED_LINES = 1_000
"""Lines of both listings that are compared line by line: the time for it grows with their square, or worse."""
_MAX_LINE = 2_000


@dataclass(frozen=True, slots=True)
class ForeignTool:
    """One tool as a server lists it.

    Args:
        name: The server's own name for it.
        description: What the server says that it does. No model reads it.
        input_schema: JSON Schema of its arguments.
        output_schema: JSON Schema of its structured result, if it has one.
        annotations: Claims of the server (`readOnlyHint`, …): a basis for proposals, and nothing else.
        title: A name for people.
        more: Whatever else is listed of it, such as icons and `_meta`. It is part of the pin, and used for nothing.
    """

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    title: str = ""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pin: str = field(init=False, compare=False)
    """A hash over everything that the server says of the tool."""

    def __post_init__(self) -> None:
        # Once: it is compared before each call.
        object.__setattr__(self, "pin", self._hash())

    def _hash(self) -> str:
        facts = self.to_json()
        # JSON has no order of names, and the order of properties is that of positional arguments in plans: two that
        # change places would otherwise get each other's values.
        said = [facts, list(_property_orders(facts))]
        text = json.dumps(said, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "input_schema": dict(self.input_schema),
            "output_schema": None if self.output_schema is None else dict(self.output_schema),
            "annotations": dict(self.annotations),
            "more": dict(self.more),
        }

    def changed_parts(self, other: ForeignTool) -> list[str]:
        """The parts of the listing in which two tools differ, in our words."""
        ours, theirs = self.to_json(), other.to_json()
        parts = [part for part in _PARTS if ours[part] != theirs[part]]
        return parts if parts or self.pin == other.pin else ["the order of properties"]

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> ForeignTool:
        """The tool that `to_json` wrote, or that a server listed; `foreign.bad-listing` if it is none."""
        name = facts.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > MAX_NAME:
            shown = make_visible(str(name)[:40])
            raise _listing_error(
                f"a tool is named {shown!r}", "at most 128 letters, digits and '_.:/-', not beginning with a sign"
            )
        texts: dict[str, Any] = {}
        for key in ("title", "description"):
            text = "" if facts.get(key) is None else facts[key]
            if not isinstance(text, str) or len(text) > MAX_DESCRIPTION:
                raise _listing_error(f"the {key} of {name!r} is no text", f"at most {MAX_DESCRIPTION:,} characters")
            texts[key] = text
        tables: dict[str, Any] = {}
        for key in ("input_schema", "output_schema", "annotations", "more"):
            table: Any = dict[str, Any]() if facts.get(key) is None else facts[key]
            if not isinstance(table, dict) or _is_too_large(cast("object", table)):
                raise _listing_error(f"{key} of {name!r} is no schema", f"an object of at most {MAX_SCHEMA:,} bytes")
            tables[key] = table
        if facts.get("output_schema") is None:
            tables["output_schema"] = None
        return cls(name, **texts, **tables)


def _is_too_large(table: object) -> bool:
    # The depth first, and without recursion: whatever walks the table later could run into the recursion limit.
    level = [table]
    for _ in range(_MAX_DEPTH):
        level = [inner for each in level for inner in _inner_values(each)]
        if not level:
            return _json_size(table) > MAX_SCHEMA
    return True


def _inner_values(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return cast("Mapping[Any, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list | tuple) else ()


def _property_orders(value: object) -> Iterator[list[str]]:
    """The names of the properties of every schema in the order in which they stand there."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            entries = cast("Mapping[str, object]", each)
            if isinstance(named := entries.get("properties"), Mapping):
                yield list(cast("Mapping[str, object]", named))
            waiting += [entries[name] for name in sorted(entries)]
        elif isinstance(each, list | tuple):
            waiting += cast("list[object]", each)


def _json_size(value: object) -> int:
    try:
        return len(json.dumps(value))
    except (RecursionError, ValueError, TypeError):
        return MAX_SCHEMA + 1


def read_listing(listed: Iterable[Mapping[str, Any]]) -> tuple[ForeignTool, ...]:
    """All tools that a server lists; `foreign.bad-listing` if there are too many, or two of one name.

    Two tools of one name are refused as a whole: which of them a call would reach is up to the server. So is a list
    whose regular expressions take longer to compile than a person would wait for.
    """
    tools: dict[str, ForeignTool] = {}
    for facts in listed:
        tool = ForeignTool.from_json(facts)
        if tool.name in tools:
            raise _listing_error(f"two tools are named {tool.name!r}", "a name for each tool")
        tools[tool.name] = tool
        if len(tools) > MAX_TOOLS:
            raise _listing_error("there are too many tools", f"at most {MAX_TOOLS}")
    schemas = (schema for tool in tools.values() for schema in (tool.input_schema, tool.output_schema))
    if not measure_patterns(schemas, _MAX_PATTERN_SECONDS):
        raise _listing_error(
            "its regular expressions take too long", f"at most {_MAX_PATTERN_SECONDS:g} seconds for all"
        )
    return tuple(tools.values())


def listing_changes(old: ForeignTool | None, new: ForeignTool | None) -> list[str]:
    """What has changed between two listings of a tool, as lines for a person. Hidden characters are made visible."""
    before, after = list(_listing_lines(old)), list(_listing_lines(new))
    if len(before) + len(after) > _MOST_COMPARED_LINES:
        return _replaced_lines(before, after)
    lines = [
        line for line in difflib.unified_diff(before, after, lineterm="", n=1) if not line.startswith(("---", "+++"))
    ]
    if len(lines) <= _MOST_DIFF_LINES:
        return lines
    return [*lines[:_MOST_DIFF_LINES], f"… and {len(lines) - _MOST_DIFF_LINES:,} more lines"]


def _replaced_lines(before: list[str], after: list[str]) -> list[str]:
    """The difference of long listings as one block: from the first line that differs to the last."""
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    same = next((at for at in range(shorter - start) if before[-1 - at] != after[-1 - at]), shorter - start)
    old, new = before[start : len(before) - same], after[start : len(after) - same]
    if not old and not new:
        return []
    half = _MOST_DIFF_LINES // 2
    shown = [*(f"-{line}" for line in old[:half]), *(f"+{line}" for line in new[:half])]
    left = len(old) + len(new) - len(shown)
    head = f"@@ -{start + 1},{len(old)} +{start + 1},{len(new)} @@"
    return [head, *shown, *([f"… and {left:,} more lines"] if left else [])]


def _listing_lines(tool: ForeignTool | None) -> Iterator[str]:
    if tool is None:
        return
    facts = tool.to_json()
    for part in _PARTS:
        value = facts[part]
        text = value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
        if part == "more" and not value:
            continue
        for number, line in enumerate(make_visible(text).splitlines()):
            # What comes after the cut still counts for the comparison, by its hash.
            shown = line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}… ({_short_hash(line)})"
            yield f"{part}: {shown}" if number == 0 else f"  {shown}"


def _short_hash(text: str) -> str:
    return f"{len(text):,} characters, sha256 {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _listing_error(message: str, expected: str) -> ToolError:
    return ToolError(
        "foreign.bad-listing",
        f"the list of tools cannot be used: {message}",
        expected=expected,
        fix="Nothing of this server is used until it is mended there.",
    )
