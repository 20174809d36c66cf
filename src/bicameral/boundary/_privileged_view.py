"""Handles, and the privileged view of a typed result: bounded scalars by value, everything else as handles.

The value behind a handle stays in the run, with its type and labels. A handle states the kind, length and origin of a
value and contains no part of it. The view has explicit levels; the strictest is the default. A short code can spell a
word or two, so only a few codes cross by value, and none out of a list, where they could spell a sentence.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any, Literal, cast, get_args

from bicameral.errors import BicameralError
from bicameral.labels import Label, LabelTree, Public, Source, label_tree_from_json, label_tree_to_json
from bicameral.types import (
    MONEY,
    AnyType,
    DictType,
    ListType,
    LiteralType,
    OptionalType,
    RecordType,
    StrType,
    TupleType,
    Type,
    is_bounded,
    mismatch,
    to_plain,
    type_from_json,
    type_to_json,
    value_from_json,
    value_to_json,
)

MAX_HANDLES = 10_000
MAX_SOURCES = 3
"""Sources that an origin names; further ones are "and others"."""

HandleKind = Literal["text", "email", "url", "id", "path", "code", "list", "record", "dict", "value"]
_KINDS: tuple[HandleKind, ...] = get_args(HandleKind)
_TEXT_KINDS: dict[str | None, HandleKind] = {"email": "email", "url": "url", "id": "id", "path": "path", "code": "code"}
_KINDS_OF: dict[type, HandleKind] = {ListType: "list", TupleType: "list", RecordType: "record", DictType: "dict"}
_HANDLE_ID = re.compile(r"h[1-9][0-9]{0,5}-[0-9a-f]{8}")
_PLAIN_PART = re.compile(r"[A-Za-z0-9_.\[\]*]{1,60}")


class BoundaryError(BicameralError):
    """A value or handle cannot cross the boundary."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A reference to a value of a run: its kind, its length (characters or items) and its origin."""

    id: str
    kind: HandleKind
    length: int
    origin: str

    def to_json(self) -> dict[str, Any]:
        return {"handle": self.id, "kind": self.kind, "length": self.length, "origin": self.origin}

    @classmethod
    def from_json(cls, value: object) -> Handle:
        """The handle that `to_json` wrote; anything else is refused."""
        match value:
            case {"handle": str() as id_, "kind": str() as kind, "length": int() as length, "origin": str() as origin}:
                if (
                    len(cast("dict[str, Any]", value)) == 4
                    and _HANDLE_ID.fullmatch(id_)
                    and kind in _KINDS
                    and type(length) is int
                    and length >= 0
                ):
                    return cls(id_, kind, length, origin)
            case _:
                pass
        raise BoundaryError("boundary.bad-handle", "this is not a handle", expected="what Handle.to_json gives")


@dataclass(frozen=True, slots=True)
class HandleContent:
    """The value, type and labels that a handle refers to."""

    value: Any
    type: Type
    label_tree: LabelTree


class HandleTable:
    """The handles of one run. Ids contain a hash of the run id, so a handle of another run is unknown here.

    Example:
        >>> handles = HandleTable("20260301-101500-a1b2c3")
        >>> body = handles.add("Dear Ada, …", STR, labels)
        >>> handles.get(body).value
        'Dear Ada, …'
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self._entries: dict[str, tuple[Handle, HandleContent]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, value: object, type_: Type, labels: LabelTree) -> Handle:
        """Store a value with its type and label tree, and return its handle."""
        if len(self._entries) >= MAX_HANDLES:
            raise BoundaryError("boundary.too-many-handles", f"a run has at most {MAX_HANDLES:,} handles")
        plain = to_plain_value(value)
        is_text = isinstance(type_, StrType)
        kind = _TEXT_KINDS.get(type_.format, "text") if is_text else _KINDS_OF.get(type(type_), "value")
        length = len(cast("str | list[Any]", plain)) if isinstance(plain, str | list | dict) else 1
        handle = Handle(self._id(len(self._entries) + 1), kind, length, origin_summary(labels.flat))
        self._entries[handle.id] = handle, HandleContent(plain, type_, labels)
        return handle

    def get(self, given: Handle | str) -> HandleContent:
        """The content of a handle; a handle that this run did not issue, or that was changed, is refused."""
        # Exact types only: a subclass could define `__eq__` and equal any handle.
        if type(given) not in (str, Handle):
            raise BoundaryError("boundary.bad-handle", "this is not a handle", expected="a Handle, or the id of one")
        id_ = given if isinstance(given, str) else given.id
        entry = self._entries.get(id_)
        if entry is None:
            raise BoundaryError("boundary.unknown-handle", "this run has no such handle", fix="Use one that it gave.")
        handle, content = entry
        if not isinstance(given, str) and handle != given:
            raise BoundaryError("boundary.forged-handle", f"the handle {id_!r} is not the one that the run gave")
        # A copy, so that the caller cannot change the stored value.
        return HandleContent(to_plain(content.value), content.type, content.label_tree)

    def to_json(self) -> dict[str, Any]:
        """The whole table for the journal, including the values that the handles hide."""
        entries = [
            {
                **handle.to_json(),
                "value": value_to_json(content.value),
                "type": type_to_json(content.type),
                "shade": label_tree_to_json(content.label_tree),
            }
            for handle, content in self._entries.values()
        ]
        return {"run": self.run, "handles": entries}

    @classmethod
    def from_json(cls, value: object) -> HandleTable:
        """The table that `to_json` wrote; a damaged one is refused."""
        written = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        run, entries = written.get("run"), written.get("handles")
        if len(written) != 2 or not isinstance(run, str) or not isinstance(entries, list):
            raise _damaged_table_error()
        table = cls(run)
        for entry in cast("list[Any]", entries):
            try:
                facts: dict[str, Any] = dict(entry)
                content = value_from_json(facts.pop("value"))
                type_, labels = type_from_json(facts.pop("type")), label_tree_from_json(facts.pop("shade"))
            except (KeyError, TypeError, ValueError):
                raise _damaged_table_error() from None
            # Ids, kinds, lengths and origins are derived again, so a file cannot claim others.
            if table.add(content, type_, labels) != Handle.from_json(facts):
                raise _damaged_table_error()
        return table

    def _id(self, number: int) -> str:
        return f"h{number}-{blake2s(f'{self.run}:{number}'.encode(), digest_size=4).hexdigest()}"


def to_plain_value(value: object) -> Any:
    """The plain form of a value; a value without one, or beyond all size limits, is refused."""
    try:
        return to_plain(value)
    except TypeError as error:
        raise BoundaryError("boundary.bad-value", f"this cannot be kept: {error}") from None


def _damaged_table_error() -> BoundaryError:
    return BoundaryError(
        "boundary.bad-handle", "this is not a table of handles", expected="what HandleTable.to_json gives"
    )


def origin_summary(label: Label) -> str:
    """The origin of a value, without any part of it. Readers are only counted: their names may be untrusted text."""
    third_party = label.third_parties
    if not third_party:
        own = sorted({source.trust for source in label.sources})
        trust = "trusted, from the " + " and the ".join(own) if own else "trusted"
    else:
        named = ", ".join(dict.fromkeys(map(_source_text, third_party[:MAX_SOURCES])))
        trust = f"untrusted, from {named}" + (" and others" if len(third_party) > MAX_SOURCES else "")
    if isinstance(label.readers, Public):
        return f"{trust}; for everyone"
    others = len(label.readers) - 1
    return f"{trust}; for the user" + (f" and {others} others" if others else " alone")


def _source_text(source: Source) -> str:
    part = f" {source.part}" if _PLAIN_PART.fullmatch(source.part) else ""
    tool = source.tool if _PLAIN_PART.fullmatch(source.tool) else "a tool"
    step = f" (step {source.step})" if re.fullmatch(r"[0-9a-z/]{1,40}", source.step) else ""
    return f"{tool}{part}{step}"


MAX_ITEMS = 20
"""Items of a list that the view shows; the list itself is behind the handle `all`."""
MAX_PARTS = 400
"""Values in one view; beyond it lists and records are handles."""
MAX_CODES = 4
"""Short codes in one view, see above."""
MAX_TRUSTED_TEXT = 500
MAX_DEPTH = 64
LARGEST_INTEGER = 10**18
"""Larger integers do not cross: their digits could encode text."""

ViewLevel = Literal["scalars", "trusted-text"]
"""`scalars`: only bounded scalars by value. `trusted-text`: also short texts that no third party influenced."""

# Types may be derived from data: the column names of a table are untrusted text, and a field name crosses by value.
_PLAIN_FIELD = re.compile("[A-Za-z_][A-Za-z0-9_]{0,39}")
_SCALARS = (bool, int, float, dt.date, dt.time, dt.datetime, dt.timedelta)


def privileged_view(
    value: object, type_: Type, labels: LabelTree, handles: HandleTable, *, level: ViewLevel = "scalars"
) -> Any:
    """A result as plain JSON for a privileged prompt; parts that may not be read are stored in `handles`.

    A list becomes `{"count": …, "first": […], "all": handle}`, a record keeps its fields. A value that does not match
    its type becomes one handle. `labels` is the label tree of the value.

    Example:
        >>> privileged_view({"paid": True, "note": "…"}, record, labels, handles)
        {'paid': True, 'note': {'handle': 'h1-5d41402a', 'kind': 'text', 'length': 212, 'origin': 'untrusted, from …'}}
    """
    to_plain_value(value)  # refuses cyclic and oversized values before anything else walks over them
    if not _is_plain(value) or mismatch(value, type_):
        # A value that does not match its type has no known type, and an object of a subclass can report anything
        # about itself.
        return handles.add(value, AnyType(), labels.flat).to_json()
    return _ViewBuilder(handles, level).build(value, type_, labels)


@dataclass(slots=True)
class _ViewBuilder:
    """Builds one view, and counts the parts and codes that it contains."""

    handles: HandleTable
    level: ViewLevel
    parts: int = 0
    codes: int = 0

    def build(self, value: Any, type_: Type, labels: LabelTree, *, listed: bool = False) -> Any:
        """The view of one value; `listed` says that it is inside a list."""
        self.parts += 1
        if value is None:
            return None
        match type_:
            case OptionalType(item=item):
                return self.build(value, item, labels, listed=listed)
            case RecordType() if type_ == MONEY:
                return {"amount": _scalar_json(value["amount"]), "currency": value["currency"]}
            case LiteralType() if type(value) is str:
                return value
            case ListType(item=item) if self.parts < MAX_PARTS:
                return self._build_list(value, [item] * len(value), labels, type_)
            case TupleType(items=items) if self.parts < MAX_PARTS:
                return self._build_list(value, list(items), labels, type_)
            case RecordType(fields=fields) if self.parts < MAX_PARTS and all(map(_PLAIN_FIELD.fullmatch, type_.names)):
                entries = cast("dict[str, Any]", value)
                return {
                    field.name: self.build(entries.get(field.name), field.type, labels.field(field.name), listed=listed)
                    for field in fields
                }
            case StrType() if self._can_text_cross(value, type_, labels, listed):
                return value
            case _ if type(value) in _SCALARS and (is_bounded(type_) or isinstance(type_, AnyType)):
                scalar = _scalar_json(value)
                if scalar is not None:
                    return scalar
            case _:
                pass
        return self.handles.add(value, type_, labels).to_json()

    def _build_list(self, value: Any, types: list[Type], labels: LabelTree, type_: Type) -> dict[str, Any]:
        items = cast("list[Any]", value)
        first = [
            self.build(item, item_type, labels.place(position), listed=True)
            for position, (item, item_type) in enumerate(zip(items[:MAX_ITEMS], types[:MAX_ITEMS], strict=True))
        ]
        return {"count": len(items), "first": first, "all": self.handles.add(items, type_, labels).to_json()}

    def _can_text_cross(self, value: Any, type_: StrType, labels: LabelTree, listed: bool) -> bool:
        if type(value) is not str:
            return False
        if is_bounded(type_):
            self.codes += 1
            return not listed and self.codes <= MAX_CODES
        return self.level == "trusted-text" and labels.flat.trusted and len(value) <= MAX_TRUSTED_TEXT


def _scalar_json(value: Any) -> Any:
    """A scalar as JSON; None for one so large that it could encode something else."""
    match value:
        case bool():
            return value
        case int():
            return value if abs(value) < LARGEST_INTEGER else None
        case float():
            return value if math.isfinite(value) else None
        case dt.timedelta():
            return value.total_seconds()
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return None


def _is_plain(value: object, depth: int = 0) -> bool:
    """Whether a value has plain JSON types and dates only, by exact type, to a bounded depth."""
    if type(value) is list:
        return depth < MAX_DEPTH and all(_is_plain(item, depth + 1) for item in cast("list[object]", value))
    if type(value) is dict:
        entries = cast("dict[object, object]", value)
        return depth < MAX_DEPTH and all(
            type(key) is str and _is_plain(item, depth + 1) for key, item in entries.items()
        )
    return value is None or type(value) is str or type(value) in _SCALARS
