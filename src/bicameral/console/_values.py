"""Values as they are shown: part by part, each with its label, and never more than a page can hold.

A value comes from the journal with the tree of its labels. Both are walked together, so that every part that is shown
says who wrote it. A part whose label is not known counts as untrusted.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from bicameral.display import cell_text
from bicameral.errors import LabelError
from bicameral.labels import UNKNOWN, Label, LabelTree, Public, label_tree_from_json
from bicameral.types import plain_value, value_from_json

MAX_PARTS = 300
"""Parts of a value on one page; more are counted, and shown on demand."""
MAX_CHARS = 6_000
"""Characters of a text on one page."""
FIRST_ITEMS = 20
"""Items of a list, or fields of a record, on one page."""

UNLIMITED = 10**9

PartKind = Literal["text", "plain", "list", "record"]
TrustClass = Literal["untrusted", "user", "system", "plan"]
TRUST_WORDS: Mapping[TrustClass, str] = {
    "untrusted": "untrusted text",
    "user": "from the user",
    "system": "from a tool",
    "plan": "from the plan",
}
"""What a label means, in words: a colour alone says nothing to whoever cannot tell it."""


@dataclass(slots=True)
class ShownPart:
    """One part of a value: its name, its text or its own parts, and whose it is."""

    name: str
    at: str
    """Where it is in the value, as in `/3/subject`."""
    kind: PartKind
    trust: TrustClass
    text: str = ""
    size: int = 0
    parts: list[ShownPart] = field(default_factory=list["ShownPart"])
    left_out: int = 0
    """Characters or parts that are not shown."""

    @property
    def trust_words(self) -> str:
        return TRUST_WORDS[self.trust]


def trust_of(label: Label) -> TrustClass:
    """Whose a value is, by the least trusted of its sources."""
    trusts = {source.trust for source in label.sources}
    if "third_party" in trusts:
        return "untrusted"
    return "user" if "user" in trusts else "system" if "system" in trusts else "plan"


def readers_text(label: Label) -> str:
    """Who may see a value, in words."""
    if isinstance(label.readers, Public):
        return "everybody"
    others = sorted(label.readers - {"user"})
    return "the user" + (f" and {', '.join(others)}" if others else " alone")


def read_labels(written: object) -> LabelTree:
    """The labels of a recorded value; those of a value without any, or with broken ones, are not known."""
    if written is None:
        return UNKNOWN
    try:
        return label_tree_from_json(written)
    except LabelError:
        return UNKNOWN


def read_value(written: object) -> Any:
    """A recorded value."""
    try:
        return plain_value(value_from_json(written))
    except ValueError:
        # A record that somebody changed, or one of another version: shown as it stands there.
        return written


def shown_value(value: Any, labels: LabelTree, *, at: str = "", name: str = "", whole: bool = False) -> ShownPart:
    """A value to be shown.

    Args:
        value: The value.
        labels: Its labels.
        at: The place of the part that is wanted; the whole value by default.
        name: What it is called.
        whole: Leave nothing out, however long it is: for what a person decides on.
    """
    for name in split_place(at):
        value, labels = _part_at(value, labels, name)
    return _Walk(whole=whole).show(name, at, value, labels)


def split_place(at: str) -> list[str]:
    """The names on the way to a part."""
    return [name.replace("~1", "/").replace("~0", "~") for name in at.split("/")[1:]]


def join_place(at: str, name: str) -> str:
    """The place of a part inside another one; written like a JSON pointer."""
    return f"{at}/{name.replace('~', '~0').replace('/', '~1')}"


def part_at(value: Any, labels: LabelTree, at: str) -> tuple[Any, LabelTree]:
    """A part of a value with its labels; a `LookupError` if it has no such part."""
    for name in split_place(at):
        value, labels = _part_at(value, labels, name)
    return value, labels


def _part_at(value: Any, labels: LabelTree, name: str) -> tuple[Any, LabelTree]:
    if isinstance(value, list) and name.isdecimal() and len(name) < 10:
        number = int(name)
        return cast("list[Any]", value)[number], labels.place(number)
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)[name], labels.field(name)
    raise LookupError(name)


class _Walk:
    """Walks a value with its labels until the page is full."""

    def __init__(self, *, whole: bool) -> None:
        self._items, self._left, self._chars = (UNLIMITED,) * 3 if whole else (FIRST_ITEMS, MAX_PARTS, MAX_CHARS)

    def show(self, name: str, at: str, value: Any, labels: LabelTree) -> ShownPart:
        self._left -= 1
        if isinstance(value, list):
            listed = cast("list[Any]", value)
            pairs = ((str(number), item, labels.place(number)) for number, item in enumerate(listed))
            return self._show_parts(ShownPart(name, at, "list", trust_of(labels.own), size=len(listed)), pairs)
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            pairs = ((key, item, labels.field(key)) for key, item in fields.items())
            return self._show_parts(ShownPart(name, at, "record", trust_of(labels.own), size=len(fields)), pairs)
        text, kind = (value, "text") if isinstance(value, str) else (plain_text(value), "plain")
        shown = ShownPart(name, at, kind, trust_of(labels.flat), text[: self._chars], len(text))
        shown.left_out = len(text) - len(shown.text)
        return shown

    def _show_parts(self, whole: ShownPart, parts: Iterator[tuple[str, Any, LabelTree]]) -> ShownPart:
        for name, item, labels in parts:
            if len(whole.parts) >= self._items or self._left <= 0:
                break
            whole.parts.append(self.show(name, join_place(whole.at, name), item, labels))
        whole.left_out = whole.size - len(whole.parts)
        return whole


def plain_text(value: Any) -> str:
    """A value that is no text, as a text."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "yes" if value else "no"
        case dt.datetime():
            return value.isoformat(" ", "minutes")
        case _:
            return cell_text(value)


@dataclass(frozen=True, slots=True)
class ShownTable:
    """Records with the same fields, as a table."""

    columns: Sequence[str]
    rows: Sequence[Sequence[ShownPart]]


def as_table(part: ShownPart) -> ShownTable | None:
    """The records of a list as a table, if all that are shown have the same few fields without parts of their own."""
    rows = part.parts
    if part.kind != "list" or len(rows) < 2 or any(row.kind != "record" or row.left_out for row in rows):
        return None
    columns = [each.name for each in rows[0].parts]
    fits = all([each.name for each in row.parts] == columns for row in rows)
    flat = all(not cell.parts and cell.size <= 400 for row in rows for cell in row.parts)
    if not fits or not flat or not 0 < len(columns) <= 12:
        return None
    return ShownTable(columns, [row.parts for row in rows])
