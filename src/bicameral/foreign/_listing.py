"""Tools as another program lists them: bounded, pinned by a hash, and compared with what a person reviewed.

Everything in a listing is untrusted: names, descriptions, schemas and annotations. A pin is a hash over all of it, so
that a tool that changes in any way is noticed.
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

MAX_TOOLS = 500
"""Tools of one server."""
MAX_NAME = 128
MAX_DESCRIPTION = 64 * 1024
MAX_SCHEMA = 256 * 1024
"""Bytes of one schema, as JSON."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")
_PARTS = ("name", "title", "description", "input_schema", "output_schema", "annotations")
_MOST_DIFF_LINES = 60


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
    """

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    title: str = ""

    @property
    def pin(self) -> str:
        """A hash over everything that the server says of the tool."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "input_schema": dict(self.input_schema),
            "output_schema": None if self.output_schema is None else dict(self.output_schema),
            "annotations": dict(self.annotations),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> ForeignTool:
        """The tool that `to_json` wrote, or that a server listed; `foreign.bad-listing` if it is none."""
        name, output = facts.get("name"), facts.get("output_schema")
        texts: dict[str, Any] = {key: facts.get(key) or "" for key in ("title", "description")}
        tables: dict[str, Any] = {key: facts.get(key) or dict[str, Any]() for key in ("input_schema", "annotations")}
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > MAX_NAME:
            shown = make_visible(str(name)[:40])
            raise _listing_error(
                f"a tool is named {shown!r}", "at most 128 letters, digits and '_.:/-', not beginning with a sign"
            )
        for key, text in texts.items():
            if not isinstance(text, str) or len(text) > MAX_DESCRIPTION:
                raise _listing_error(f"the {key} of {name!r} is no text", f"at most {MAX_DESCRIPTION:,} characters")
        bounded: list[tuple[str, Any]] = [*tables.items(), ("output_schema", output or {})]
        for key, table in bounded:
            if not isinstance(table, dict) or _json_size(cast("object", table)) > MAX_SCHEMA:
                raise _listing_error(f"{key} of {name!r} is no schema", f"an object of at most {MAX_SCHEMA:,} bytes")
        return cls(name, texts["description"], tables["input_schema"], output, tables["annotations"], texts["title"])


def _json_size(value: object) -> int:
    try:
        return len(json.dumps(value))
    except (RecursionError, ValueError, TypeError):
        return MAX_SCHEMA + 1


def read_listing(listed: Iterable[Mapping[str, Any]]) -> tuple[ForeignTool, ...]:
    """All tools that a server lists; `foreign.bad-listing` if there are too many, or two of one name.

    Two tools of one name are refused as a whole: which of them a call would reach is up to the server.
    """
    tools: dict[str, ForeignTool] = {}
    for facts in listed:
        tool = ForeignTool.from_json(facts)
        if tool.name in tools:
            raise _listing_error(f"two tools are named {tool.name!r}", "a name for each tool")
        tools[tool.name] = tool
        if len(tools) > MAX_TOOLS:
            raise _listing_error("there are too many tools", f"at most {MAX_TOOLS}")
    return tuple(tools.values())


def listing_changes(old: ForeignTool | None, new: ForeignTool | None) -> list[str]:
    """What has changed between two listings of a tool, as lines for a person. Hidden characters are made visible."""
    before, after = list(_listing_lines(old)), list(_listing_lines(new))
    lines = [
        line for line in difflib.unified_diff(before, after, lineterm="", n=1) if not line.startswith(("---", "+++"))
    ]
    if len(lines) <= _MOST_DIFF_LINES:
        return lines
    return [*lines[:_MOST_DIFF_LINES], f"… and {len(lines) - _MOST_DIFF_LINES:,} more lines"]


def _listing_lines(tool: ForeignTool | None) -> Iterator[str]:
    if tool is None:
        return
    facts = tool.to_json()
    for part in _PARTS:
        value = facts[part]
        text = value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
        for number, line in enumerate(make_visible(text).splitlines()):
            yield f"{part}: {line}" if number == 0 else f"  {line}"


def _listing_error(message: str, expected: str) -> ToolError:
    return ToolError(
        "foreign.bad-listing",
        f"the list of tools cannot be used: {message}",
        expected=expected,
        fix="Nothing of this server is used until it is mended there.",
    )
