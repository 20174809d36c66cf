"""Values as they are shown: part by part, each with its label, and never more than a page can hold.

A value comes from the journal with the tree of its labels. Both are walked together, so that every part that is shown
says who wrote it. A part whose label is not known counts as untrusted.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from bicameral.display import cell_text, visible_name
from bicameral.errors import LabelError
from bicameral.labels import UNKNOWN, Label, LabelTree, Public, label_tree_from_json
from bicameral.secrets import mask, mask_value
from bicameral.types import plain_value, value_from_json, value_to_json

MAX_PARTS = 300
"""Parts of a value on one page; more are counted, and shown on demand."""
MAX_CHARS = 6_000
"""Characters of one text of a value on one page."""
MAX_VALUE_CHARS = 30_000
"""Characters of all texts of a value on one page."""
MAX_NAME_CHARS = 200
"""Characters of the name of a field on one page."""
PART_CHARS = 40
"""What a part counts beside its text: a hundred thousand empty texts are long, too."""
MAX_DEPTH = 24
"""Parts within parts that are shown."""
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
    tail: str = ""
    """The end of a text of which the middle is not shown."""
    type_words: str = ""
    """What kind of value it is, if it is shown exactly and is no text: `yes` may be a text, or a value."""
    directs: bool = False
    """Whether it says to whom or where: then unusual spaces are written out as well."""
    letters: str = ""
    """Which letters of other alphabets it has, if it directs a call and may be an address, a link or a path."""

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


class Room:
    """How many characters may still be shown, of one value or of several on a page.

    Args:
        chars: How many.
        within: The room that this one is a part of.
    """

    def __init__(self, chars: int, within: Room | None = None) -> None:
        self._chars, self._within = chars, within
        self.spent = 0
        self.was_too_small = False
        """Whether anything was left out for want of room."""

    @property
    def left(self) -> int:
        own = max(0, self._chars - self.spent)
        return own if self._within is None else min(own, self._within.left)

    def spend(self, chars: int) -> None:
        """Count characters that are shown."""
        self.spent += chars
        if self._within is not None:
            self._within.spend(chars)

    def take(self, text: str) -> str:
        """As much of a text as there is room for."""
        kept = text[: self.left]
        self.spend(len(kept))
        self.was_too_small |= len(kept) < len(text)
        return kept


def shown_value(
    value: Any,
    labels: LabelTree,
    *,
    at: str = "",
    name: str = "",
    whole: bool = False,
    room: Room | None = None,
    directs: bool = False,
) -> ShownPart:
    """A value to be shown.

    Args:
        value: The value.
        labels: Its labels.
        at: The place of the part that is wanted; the whole value by default.
        name: What it is called.
        whole: Everything and exactly, as far as there is room: for what a person decides on. Of a text that does not
            fit the beginning and the end are shown.
        room: What there is room for; of one value by default.
        directs: It says to whom or where.
    """
    for name in split_place(at):
        value, labels = _part_at(value, labels, name)
    if room is None:
        room = Room(UNLIMITED if whole else MAX_VALUE_CHARS)
    return _Walk(room, whole=whole, directs=directs).show(name, at, value, labels, 0)


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

    def __init__(self, room: Room, *, whole: bool, directs: bool) -> None:
        self._room, self._whole, self._directs = room, whole, directs
        self._items, self._left, self._chars = (UNLIMITED,) * 3 if whole else (FIRST_ITEMS, MAX_PARTS, MAX_CHARS)

    def show(self, name: str, at: str, value: Any, labels: LabelTree, depth: int) -> ShownPart:
        self._left -= 1
        self._room.spend(PART_CHARS)
        name = self._shown_name(name)
        if isinstance(value, list):
            listed = cast("list[Any]", value)
            items = ((str(number), item, labels.place(number)) for number, item in enumerate(listed))
            shown = ShownPart(name, at, "list", trust_of(labels.own), size=len(listed))
            return self._show_parts(shown, items, depth)
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            pairs = ((key, item, labels.field(key)) for key, item in fields.items())
            # Whoever wrote the names of the fields wrote the record.
            shown = ShownPart(name, at, "record", trust_of(labels.own), size=len(fields))
            return self._show_parts(shown, pairs, depth)
        return self._show_leaf(name, at, value, trust_of(labels.flat))

    def _shown_name(self, name: str) -> str:
        most = UNLIMITED if self._whole else MAX_NAME_CHARS
        kept = self._room.take(name[:most])
        return kept if len(kept) == len(name) else f"{kept}…"

    def _show_leaf(self, name: str, at: str, value: Any, trust: TrustClass) -> ShownPart:
        # Before it is cut: half of a secret would not be recognised when the page is rendered.
        text = mask(value if isinstance(value, str) else exact_text(value) if self._whole else plain_text(value))
        kind: PartKind = "text" if isinstance(value, str) else "plain"
        kept = self._room.take(text[: self._chars])
        shown = ShownPart(name, at, kind, trust, kept, len(text), left_out=len(text) - len(kept))
        if shown.left_out and self._whole:
            # The end of a text is where a sentence can be added.
            end = len(kept) // 4
            shown.text, shown.tail = kept[: len(kept) - end], text[len(text) - end :]
        if self._whole:
            shown.type_words = type_words(value)
        if self._directs:
            shown.directs, shown.letters = True, visible_name(kept)[1]
        return shown

    def _show_parts(self, whole: ShownPart, parts: Iterator[tuple[str, Any, LabelTree]], depth: int) -> ShownPart:
        for name, item, labels in parts:
            if len(whole.parts) >= self._items or self._left <= 0 or not self._room.left or depth >= MAX_DEPTH:
                self._room.was_too_small = True
                break
            whole.parts.append(self.show(name, join_place(whole.at, name), item, labels, depth + 1))
        whole.left_out = whole.size - len(whole.parts)
        return whole


def plain_text(value: Any) -> str:
    """A value that is no text, as a text that is easily read."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "yes" if value else "no"
        case dt.datetime():
            return value.isoformat(" ", "minutes")
        case _:
            return cell_text(value)


def exact_text(value: Any) -> str:
    """A value that is no text, with nothing rounded away: what a person decides on is what is sent."""
    match value:
        case float():
            return repr(value)
        case dt.datetime():
            return value.isoformat(" ")
        case dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return str(value)
        case _:
            return plain_text(value)


def type_words(value: Any) -> str:
    """What kind of value it is, in words; nothing for a text."""
    match value:
        case str():
            return ""
        case None:
            return "no value"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case dt.datetime():
            return "a date and time"
        case dt.date():
            return "a date"
        case dt.time():
            return "a time"
        case dt.timedelta():
            return "a duration"
        case _:
            return "no text"


def content_bytes(value: Any) -> tuple[bytes, str]:
    """A whole value as the content of a file, and its type: a text as it is, everything else as JSON."""
    if isinstance(value, str):
        return mask(value).encode("utf-8", "surrogatepass"), "text/plain; charset=utf-8"
    text = json.dumps(mask_value(value_to_json(value)), ensure_ascii=False, indent=2, default=str)
    return text.encode("utf-8", "surrogatepass"), "application/json"


@dataclass(frozen=True, slots=True)
class ShownTable:
    """Records with the same fields, as a table.

    Args:
        columns: Their names.
        rows: The records.
        trusts: Whose the cells of each column are; None if they are not of the same.
        names: Whose the names of the columns are.
    """

    columns: Sequence[str]
    rows: Sequence[ShownPart]
    trusts: Sequence[TrustClass | None]
    names: TrustClass

    @property
    def trust_words(self) -> Mapping[TrustClass, str]:
        return TRUST_WORDS


def as_table(part: ShownPart) -> ShownTable | None:
    """The records of a list as a table, if all that are shown have the same few fields without parts of their own."""
    rows = part.parts
    if part.kind != "list" or len(rows) < 2 or any(row.kind != "record" or row.left_out for row in rows):
        return None
    columns = [each.name for each in rows[0].parts]
    fits = all([each.name for each in row.parts] == columns for row in rows)
    flat = all(not cell.parts and cell.size <= 400 and not cell.left_out for row in rows for cell in row.parts)
    if not fits or not flat or not 0 < len(columns) <= 12:
        return None
    trusts: list[set[TrustClass]] = [{row.parts[number].trust for row in rows} for number in range(len(columns))]
    names: TrustClass = "untrusted" if any(row.trust == "untrusted" for row in rows) else rows[0].trust
    common: list[TrustClass | None] = [next(iter(each)) if len(each) == 1 else None for each in trusts]
    return ShownTable(columns, rows, common, names)
