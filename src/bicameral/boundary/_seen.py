"""What of a typed result a privileged prompt may hold: bounded scalars by value, everything else as handles.

The levels are explicit and the strictest is the default. A short code can spell a word or two, so few of them cross by
value, and none out of a list, where they could spell a sentence.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from typing import Any, Literal, cast

from bicameral.labels import Shade
from bicameral.types import (
    MONEY,
    AnyType,
    ListType,
    LiteralType,
    OptionalType,
    RecordType,
    StrType,
    TupleType,
    Type,
    bounded,
    mismatch,
)

from ._handles import Handles, plain_value

MAX_ITEMS = 20
MAX_PARTS = 400
MAX_CODES = 4
MAX_TRUSTED_TEXT = 500
MAX_DEPTH = 64
LARGEST = 10**18

Level = Literal["scalars", "trusted-text"]
"""`scalars`: bounded scalars by value and nothing else. `trusted-text`: also short texts no third party touched."""

# Types may be made from data: the columns of a table have names that strangers gave them.
_FIELD = re.compile("[A-Za-z_][A-Za-z0-9_]{0,39}")
_SCALARS = (bool, int, float, dt.date, dt.time, dt.datetime, dt.timedelta)


def as_seen_by_privileged(
    value: object, type_: Type, shade: Shade, handles: Handles, *, level: Level = "scalars"
) -> Any:
    """A result as plain JSON for a privileged prompt; what it may not read is put into `handles`.

    A list is `{"count": …, "first": […], "all": handle}`, a record has its fields.

    Example:
        >>> as_seen_by_privileged({"paid": True, "note": "…"}, record, shade, handles)
        {'paid': True, 'note': {'handle': 'h1-5d41402a', 'kind': 'text', 'length': 212, 'origin': 'untrusted, from …'}}
    """
    plain_value(value)  # what has no end is refused before anything else walks over it
    if not _plain(value) or mismatch(value, type_):
        # What is not of its type is of no known type, and a class of somebody's own can say anything of itself.
        return handles.put(value, AnyType(), shade.flat).to_json()
    return _View(handles, level).see(value, type_, shade)


@dataclass(slots=True)
class _View:
    handles: Handles
    level: Level
    parts: int = 0
    codes: int = 0

    def see(self, value: Any, type_: Type, shade: Shade, *, listed: bool = False) -> Any:
        self.parts += 1
        if value is None:
            return None
        match type_:
            case OptionalType(item=item):
                return self.see(value, item, shade, listed=listed)
            case RecordType() if type_ == MONEY:
                return {"amount": _scalar(value["amount"]), "currency": value["currency"]}
            case LiteralType() if type(value) is str:
                return value
            case ListType(item=item) if self.parts < MAX_PARTS:
                return self._list(value, [item] * len(value), shade, type_)
            case TupleType(items=items) if self.parts < MAX_PARTS:
                return self._list(value, list(items), shade, type_)
            case RecordType(fields=fields) if self.parts < MAX_PARTS and all(map(_FIELD.fullmatch, type_.names)):
                entries = cast("dict[str, Any]", value)
                return {
                    field.name: self.see(entries.get(field.name), field.type, shade.field(field.name), listed=listed)
                    for field in fields
                }
            case StrType() if self._text_crosses(value, type_, shade, listed):
                return value
            case _ if type(value) in _SCALARS and (bounded(type_) or isinstance(type_, AnyType)):
                crossing = _scalar(value)
                if crossing is not None:
                    return crossing
            case _:
                pass
        return self.handles.put(value, type_, shade).to_json()

    def _list(self, value: Any, types: list[Type], shade: Shade, type_: Type) -> dict[str, Any]:
        items = cast("list[Any]", value)
        first = [
            self.see(each, inner, shade.place(at), listed=True)
            for at, (each, inner) in enumerate(zip(items[:MAX_ITEMS], types[:MAX_ITEMS], strict=True))
        ]
        return {"count": len(items), "first": first, "all": self.handles.put(items, type_, shade).to_json()}

    def _text_crosses(self, value: Any, type_: StrType, shade: Shade, listed: bool) -> bool:
        if type(value) is not str:
            return False
        if bounded(type_):
            self.codes += 1
            return not listed and self.codes <= MAX_CODES
        return self.level == "trusted-text" and shade.flat.trusted and len(value) <= MAX_TRUSTED_TEXT


def _scalar(value: Any) -> Any:
    """A scalar as JSON, or None for one that is too large to be what it seems."""
    match value:
        case bool():
            return value
        case int():
            return value if abs(value) < LARGEST else None
        case float():
            return value if math.isfinite(value) else None
        case dt.timedelta():
            return value.total_seconds()
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return None


def _plain(value: object, depth: int = 0) -> bool:
    if type(value) is list:
        return depth < MAX_DEPTH and all(_plain(each, depth + 1) for each in cast("list[object]", value))
    if type(value) is dict:
        entries = cast("dict[object, object]", value)
        return depth < MAX_DEPTH and all(type(key) is str and _plain(each, depth + 1) for key, each in entries.items())
    return value is None or type(value) is str or type(value) in _SCALARS
