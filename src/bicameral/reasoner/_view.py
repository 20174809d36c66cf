"""What the reasoner is shown of a result, in words, and the label of what it has read then.

Channel rules decide what crosses by value; everything else is a handle, and here a handle is the variable itself: the
next plan uses `mails[0].body` without anybody having read it. That there is such a text is said by its type, which was
known before; so a text that stays behind adds nothing to the label of what was read, and its length, which strangers
choose, is not told. All else that a result shows is theirs who wrote it: values, how many, whether there is one at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from bicameral.boundary import Handles, Held, Level, as_seen_by_privileged
from bicameral.labels import NOTHING, Label, Shade, join, join_all
from bicameral.types import ANY, MONEY, ListType, OptionalType, RecordType, StrType, TupleType, Type, bounded

_HANDLE = {"handle", "kind", "length", "origin"}
_LIST = {"count", "first", "all"}


@dataclass(frozen=True, slots=True)
class Shown:
    """What crossed, as the reasoner reads it, and its label."""

    text: str
    label: Label


def shown(held: Held, level: Level = "scalars", *, as_type: Type | None = None) -> Shown:
    """One result as the reasoner sees it; `as_type` is its type with the names that a reasoner may read.

    Example:
        >>> shown(Held([{"paid": True, "note": "…"}], ListType(record), shade)).text
        '1 item: {paid: true, note: <text>}'
    """
    seen = as_seen_by_privileged(held.value, held.type, held.shade, Handles("view"), level=level)
    words = _words(seen, held.type, held.type if as_type is None else as_type)
    return Shown(words, _read(seen, held.type, held.shade))


def _words(seen: Any, type_: Type, names: Type) -> str:
    """What is seen of a value, with the names of `names`, which is of the same make."""
    match seen, type_:
        case _, OptionalType(item=item) if seen is not None:
            return _words(seen, item, names.item if isinstance(names, OptionalType) else names)
        case _, ListType() | TupleType() if _has(seen, _LIST):
            return _items(seen["count"], seen["first"], type_, names)
        case dict(), RecordType() if _has(seen, set(type_.names)):
            return _record(cast("dict[str, Any]", seen), type_, names)
        case _, StrType(format=kind) if _has(seen, _HANDLE) and not bounded(type_):
            # By the type alone: not even that a value is none of its type is told.
            return f"<{kind or 'text'}>"
        case {"handle": _, "kind": str() as kind}, _:
            return f"<{kind}>"
        case _:
            return json.dumps(seen)


def _record(seen: dict[str, Any], type_: RecordType, names: Type) -> str:
    """The fields in their order. Without a name that may be read for each, nothing is told of them."""
    if type_ == MONEY:
        names = MONEY
    if not isinstance(names, RecordType) or len(names.fields) != len(type_.fields):
        return "<record>"
    pairs = zip(type_.fields, names.fields, strict=True)
    return "{" + ", ".join(f"{to.name}: {_words(seen[of.name], of.type, to.type)}" for of, to in pairs) + "}"


def _items(count: int, first: list[Any], type_: ListType | TupleType, names: Type) -> str:
    types = _types_of_items(type_, len(first))
    named = _types_of_items(names, len(first)) if isinstance(names, ListType | TupleType) else (ANY,) * len(first)
    told = [_words(each, inner, to) for each, inner, to in zip(first, types, named, strict=False)]
    more = ["…"] if count > len(first) else []
    return f"{count} item{'' if count == 1 else 's'}" + (": " + ", ".join(told + more) if told else "")


def _types_of_items(type_: ListType | TupleType, count: int) -> tuple[Type, ...]:
    return type_.items if isinstance(type_, TupleType) else (type_.item,) * count


def _read(seen: Any, type_: Type, shade: Shade) -> Label:
    """The label of what a view tells: by type, and not by what it looks like, which may be of a stranger's making."""
    match type_:
        case StrType() if _has(seen, _HANDLE) and not bounded(type_):
            return NOTHING
        case ListType() | TupleType() if _has(seen, _LIST):
            first = cast("list[Any]", seen["first"])
            types = type_.items if isinstance(type_, TupleType) else (type_.item,) * len(first)
            pairs = enumerate(zip(first, types, strict=False))
            return join(shade.own, join_all(_read(each, inner, shade.place(at)) for at, (each, inner) in pairs))
        case RecordType(fields=fields) if _has(seen, set(type_.names)):
            # The names may be of a table's making, so that what the record is counts too.
            parts = (_read(seen[field.name], field.type, shade.field(field.name)) for field in fields)
            return join(shade.own, join_all(parts))
        case _:
            return shade.flat


def _has(seen: Any, keys: set[str]) -> bool:
    return isinstance(seen, dict) and set(cast("dict[str, Any]", seen)) == keys
