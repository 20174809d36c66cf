"""Values: is this one of that type, and plain JSON there and back."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any, cast

from ._formats import format_problem, is_bounded_format
from ._types import (
    AnyType,
    BoolType,
    DateTimeType,
    DateType,
    DictType,
    DurationType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    NullType,
    OptionalType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
)


def mismatch(value: object, type_: Type, path: str = "value") -> str | None:
    """Why `value` is not of this type, or None if it is. Nothing is coerced."""
    match type_:
        case AnyType():
            return None
        case OptionalType(item=item):
            return None if value is None else mismatch(value, item, path)
        case LiteralType(values=values):
            return None if isinstance(value, str) and value in values else _not(value, type_, path)
        case ListType(item=item):
            if not isinstance(value, list | tuple):
                return _not(value, type_, path)
            items = cast("list[object]", value)
            return next(filter(None, (mismatch(each, item, f"{path}[{i}]") for i, each in enumerate(items))), None)
        case TupleType(items=types):
            if not isinstance(value, list | tuple):
                return _not(value, type_, path)
            if len(cast("list[object]", value)) != len(types):
                return f"{path} has {len(cast('list[object]', value))} items, not {len(types)}"
            pairs = enumerate(zip(cast("list[object]", value), types, strict=True))
            return next(filter(None, (mismatch(each, t, f"{path}[{i}]") for i, (each, t) in pairs)), None)
        case DictType(value=inner):
            if not isinstance(value, dict):
                return _not(value, type_, path)
            entries = cast("dict[object, object]", value)
            if not all(isinstance(key, str) for key in entries):
                return f"{path} has a key that is not text"
            return next(filter(None, (mismatch(v, inner, f"{path}[{_shown(k)}]") for k, v in entries.items())), None)
        case RecordType():
            return _record_mismatch(value, type_, path)
        case StrType(format=name) if isinstance(value, str) and is_bounded_format(name):
            problem = format_problem(value, name)
            return f"{_not(value, type_, path)}[{name!r}]: {problem}" if problem else None
        case _:
            return None if _is_simple(value, type_) else _not(value, type_, path)


def _record_mismatch(value: object, type_: RecordType, path: str) -> str | None:
    if not isinstance(value, dict):
        return _not(value, type_, path)
    entries = cast("dict[str, object]", value)
    for name in entries:
        if type_.get(name) is None:
            return f"{path} has the field {_shown(name)}, which {type_} does not have"
    for field in type_.fields:
        if field.name not in entries:
            if isinstance(field.type, OptionalType):
                continue
            return f"{path} lacks the field {field.name!r}"
        if found := mismatch(entries[field.name], field.type, f"{path}.{field.name}"):
            return found
    return None


def _is_simple(value: object, type_: Type) -> bool:
    match type_:
        case StrType():
            return isinstance(value, str)
        case BoolType():
            return isinstance(value, bool)
        case IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case FloatType():
            # An int is finite, but one too large for a float would make isfinite fail.
            return (isinstance(value, int) and not isinstance(value, bool)) or (
                isinstance(value, float) and math.isfinite(value)
            )
        case DateTimeType():
            return isinstance(value, dt.datetime)
        case DateType():
            return isinstance(value, dt.date) and not isinstance(value, dt.datetime)
        case TimeType():
            return isinstance(value, dt.time)
        case DurationType():
            return isinstance(value, dt.timedelta)
        case NullType():
            return value is None
        case _:
            return False


def _not(value: object, type_: Type, path: str) -> str:
    return f"{path} is {_shown(value)}, not {type_}"


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _duration(microseconds: int) -> dt.timedelta:
    return dt.timedelta(microseconds=microseconds)


def _dict(entries: dict[str, object]) -> dict[str, Any]:
    return {name: value_from_json(item) for name, item in entries.items()}


_TAGS: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "$date": (str, dt.date.fromisoformat),
    "$time": (str, dt.time.fromisoformat),
    "$datetime": (str, dt.datetime.fromisoformat),
    "$timedelta": (int, _duration),
    "$dict": (dict, _dict),
}


def value_to_json(value: object) -> Any:
    """A plain value as JSON from which `value_from_json` restores exactly the same value."""
    match value:
        case dt.datetime():
            return {"$datetime": value.isoformat()}
        case dt.date():
            return {"$date": value.isoformat()}
        case dt.time():
            return {"$time": value.isoformat()}
        case dt.timedelta():
            return {"$timedelta": value // dt.timedelta(microseconds=1)}
        case list() | tuple():
            return [value_to_json(item) for item in cast("list[object]", value)]
        case dict():
            entries = cast("dict[str, object]", value)
            encoded = {key: value_to_json(item) for key, item in entries.items()}
            return {"$dict": encoded} if len(entries) == 1 and next(iter(entries)).startswith("$") else encoded
        case _:
            return value


def value_from_json(value: object) -> Any:
    """The value that `value_to_json` wrote; a ValueError says what is wrong with anything else."""
    if isinstance(value, list):
        return [value_from_json(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    entries = cast("dict[str, Any]", value)
    tag = next(iter(entries)) if len(entries) == 1 else ""
    if tag not in _TAGS:
        return _dict(entries)
    (written, read), inner = _TAGS[tag], entries[tag]
    if not isinstance(inner, written) or isinstance(inner, bool):
        raise ValueError(f"{tag!r} cannot hold {inner!r}")
    try:
        return read(inner)
    except OverflowError:
        raise ValueError(f"{tag!r} cannot hold {inner!r}") from None
