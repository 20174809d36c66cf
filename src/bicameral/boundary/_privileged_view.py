"""Handles, and the privileged view of a typed result: bounded scalars by value, everything else as handles.

The value behind a handle stays in the run, with its type and its labels. A handle says that it is there, of what kind,
how long and from where, and never a piece of it. The levels of the view are explicit and the strictest is the default.
A short code can spell a word or two, so few of them cross by value, and none out of a list, where they could spell a
sentence.
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

HandleKind = Literal["text", "email", "url", "id", "path", "code", "list", "record", "dict", "value"]
_KINDS: tuple[HandleKind, ...] = get_args(HandleKind)
_TEXT_KINDS: dict[str | None, HandleKind] = {"email": "email", "url": "url", "id": "id", "path": "path", "code": "code"}
_HANDLE_ID = re.compile(r"h[1-9][0-9]{0,5}-[0-9a-f]{8}")
_PLAIN_PART = re.compile(r"[A-Za-z0-9_.\[\]*]{1,60}")


class BoundaryError(BicameralError):
    """Something was brought to the boundary that cannot cross it."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A name for a value of a run: its kind, its length (characters or items) and where it came from."""

    id: str
    kind: HandleKind
    length: int
    origin: str

    def to_json(self) -> dict[str, Any]:
        return {"handle": self.id, "kind": self.kind, "length": self.length, "origin": self.origin}

    @classmethod
    def from_json(cls, value: object) -> Handle:
        """The handle that `type_to_json` wrote; anything else is refused."""
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
    """What a handle stands for."""

    value: Any
    type: Type
    shade: LabelTree


class HandleTable:
    """The handles of one run. Ids tell runs apart, so that a handle of another run stands for nothing here.

    Example:
        >>> handles = HandleTable("20260301-101500-a1b2c3")
        >>> body = handles.put("Dear Ada, …", STR, shade)
        >>> handles.get(body).value
        'Dear Ada, …'
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self._held: dict[str, tuple[Handle, HandleContent]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def put(self, value: object, type_: Type, shade: LabelTree) -> Handle:
        """Keep a value and get its handle."""
        if len(self._held) >= MAX_HANDLES:
            raise BoundaryError("boundary.too-many-handles", f"a run has at most {MAX_HANDLES:,} handles")
        kept = to_plain_value(value)
        handle = Handle(
            self._id(len(self._held) + 1), _handle_kind(type_), _value_length(kept), origin_summary(shade.flat)
        )
        self._held[handle.id] = handle, HandleContent(kept, type_, shade)
        return handle

    def get(self, given: Handle | str) -> HandleContent:
        """What a handle stands for; one that this run did not give, or that was changed, is refused."""
        # By the very type: a class of somebody's own may equal every handle there is.
        if type(given) not in (str, Handle):
            raise BoundaryError("boundary.bad-handle", "this is not a handle", expected="a Handle, or the id of one")
        id_ = given if isinstance(given, str) else given.id
        found = self._held.get(id_)
        if found is None:
            raise BoundaryError("boundary.unknown-handle", "this run has no such handle", fix="Use one that it gave.")
        handle, held = found
        if not isinstance(given, str) and handle != given:
            raise BoundaryError("boundary.forged-handle", f"the handle {id_!r} is not the one that the run gave")
        # A copy: whoever gets it may change it.
        return HandleContent(to_plain(held.value), held.type, held.shade)

    def to_json(self) -> dict[str, Any]:
        """Everything, for the record of the run. It holds what the handles hide."""
        held = [
            {
                **handle.to_json(),
                "value": value_to_json(kept.value),
                "type": type_to_json(kept.type),
                "shade": label_tree_to_json(kept.shade),
            }
            for handle, kept in self._held.values()
        ]
        return {"run": self.run, "handles": held}

    @classmethod
    def from_json(cls, value: object) -> HandleTable:
        """The table that `type_to_json` wrote; a damaged one is refused."""
        written = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        run, entries = written.get("run"), written.get("handles")
        if len(written) != 2 or not isinstance(run, str) or not isinstance(entries, list):
            raise _damaged_table_error()
        table = cls(run)
        for entry in cast("list[Any]", entries):
            try:
                facts: dict[str, Any] = dict(entry)
                held = value_from_json(facts.pop("value"))
                type_, shade = type_from_json(facts.pop("type")), label_tree_from_json(facts.pop("shade"))
            except (KeyError, TypeError, ValueError):
                raise _damaged_table_error() from None
            if table.put(held, type_, shade) != Handle.from_json(facts):
                raise _damaged_table_error()
        return table

    def _id(self, number: int) -> str:
        return f"h{number}-{blake2s(f'{self.run}:{number}'.encode(), digest_size=4).hexdigest()}"


def to_plain_value(value: object) -> Any:
    """The plain value of anything; what is none, or is beyond all bounds, is refused."""
    try:
        return to_plain(value)
    except TypeError as error:
        raise BoundaryError("boundary.bad-value", f"this cannot be kept: {error}") from None


def _damaged_table_error() -> BoundaryError:
    return BoundaryError("boundary.bad-handle", "this is not a table of handles", expected="what Handles.to_json gives")


def _handle_kind(type_: Type) -> HandleKind:
    match type_:
        case StrType(format=name):
            return _TEXT_KINDS.get(name, "text")
        case ListType() | TupleType():
            return "list"
        case RecordType():
            return "record"
        case DictType():
            return "dict"
        case _:
            return "value"


def _value_length(value: object) -> int:
    return len(cast("str | list[Any]", value)) if isinstance(value, str | list | dict) else 1


def origin_summary(label: Label) -> str:
    """Where a value came from, in words that hold nothing of it. Readers are counted: their names may be strangers'."""
    outside = sorted(source for source in label.sources if source.trust == "third_party")
    if not outside:
        inside = sorted({source.trust for source in label.sources})
        trust = "trusted, from the " + " and the ".join(inside) if inside else "trusted"
    else:
        named = ", ".join(dict.fromkeys(map(_source_text, outside[:MAX_SOURCES])))
        trust = f"untrusted, from {named}" + (" and others" if len(outside) > MAX_SOURCES else "")
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
MAX_PARTS = 400
MAX_CODES = 4
MAX_TRUSTED_TEXT = 500
MAX_DEPTH = 64
LARGEST_INTEGER = 10**18

ViewLevel = Literal["scalars", "trusted-text"]
"""`scalars`: bounded scalars by value and nothing else. `trusted-text`: also short texts no third party touched."""

# Types may be made from data: the columns of a table have names that strangers gave them.
_PLAIN_FIELD = re.compile("[A-Za-z_][A-Za-z0-9_]{0,39}")
_SCALARS = (bool, int, float, dt.date, dt.time, dt.datetime, dt.timedelta)


def privileged_view(
    value: object, type_: Type, shade: LabelTree, handles: HandleTable, *, level: ViewLevel = "scalars"
) -> Any:
    """A result as plain JSON for a privileged prompt; what it may not read is put into `handles`.

    A list is `{"count": …, "first": […], "all": handle}`, a record has its fields.

    Example:
        >>> privileged_view({"paid": True, "note": "…"}, record, shade, handles)
        {'paid': True, 'note': {'handle': 'h1-5d41402a', 'kind': 'text', 'length': 212, 'origin': 'untrusted, from …'}}
    """
    to_plain_value(value)  # what has no end is refused before anything else walks over it
    if not _is_plain(value) or mismatch(value, type_):
        # What is not of its type is of no known type, and a class of somebody's own can say anything of itself.
        return handles.put(value, AnyType(), shade.flat).to_json()
    return _ViewBuilder(handles, level).build(value, type_, shade)


@dataclass(slots=True)
class _ViewBuilder:
    handles: HandleTable
    level: ViewLevel
    parts: int = 0
    codes: int = 0

    def build(self, value: Any, type_: Type, shade: LabelTree, *, listed: bool = False) -> Any:
        self.parts += 1
        if value is None:
            return None
        match type_:
            case OptionalType(item=item):
                return self.build(value, item, shade, listed=listed)
            case RecordType() if type_ == MONEY:
                return {"amount": _scalar_json(value["amount"]), "currency": value["currency"]}
            case LiteralType() if type(value) is str:
                return value
            case ListType(item=item) if self.parts < MAX_PARTS:
                return self._build_list(value, [item] * len(value), shade, type_)
            case TupleType(items=items) if self.parts < MAX_PARTS:
                return self._build_list(value, list(items), shade, type_)
            case RecordType(fields=fields) if self.parts < MAX_PARTS and all(map(_PLAIN_FIELD.fullmatch, type_.names)):
                entries = cast("dict[str, Any]", value)
                return {
                    field.name: self.build(entries.get(field.name), field.type, shade.field(field.name), listed=listed)
                    for field in fields
                }
            case StrType() if self._can_text_cross(value, type_, shade, listed):
                return value
            case _ if type(value) in _SCALARS and (is_bounded(type_) or isinstance(type_, AnyType)):
                crossing = _scalar_json(value)
                if crossing is not None:
                    return crossing
            case _:
                pass
        return self.handles.put(value, type_, shade).to_json()

    def _build_list(self, value: Any, types: list[Type], shade: LabelTree, type_: Type) -> dict[str, Any]:
        items = cast("list[Any]", value)
        first = [
            self.build(each, inner, shade.place(at), listed=True)
            for at, (each, inner) in enumerate(zip(items[:MAX_ITEMS], types[:MAX_ITEMS], strict=True))
        ]
        return {"count": len(items), "first": first, "all": self.handles.put(items, type_, shade).to_json()}

    def _can_text_cross(self, value: Any, type_: StrType, shade: LabelTree, listed: bool) -> bool:
        if type(value) is not str:
            return False
        if is_bounded(type_):
            self.codes += 1
            return not listed and self.codes <= MAX_CODES
        return self.level == "trusted-text" and shade.flat.trusted and len(value) <= MAX_TRUSTED_TEXT


def _scalar_json(value: Any) -> Any:
    """A scalar as JSON, or None for one that is too large to be what it seems."""
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
    if type(value) is list:
        return depth < MAX_DEPTH and all(_is_plain(each, depth + 1) for each in cast("list[object]", value))
    if type(value) is dict:
        entries = cast("dict[object, object]", value)
        return depth < MAX_DEPTH and all(
            type(key) is str and _is_plain(each, depth + 1) for key, each in entries.items()
        )
    return value is None or type(value) is str or type(value) in _SCALARS
