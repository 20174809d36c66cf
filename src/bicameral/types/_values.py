"""Values: conversion of a tool's result to plain values, the type check, and JSON with exact round trips.

A tool may return objects of any class, and a class can override its text, equality and iteration. So a value is
converted by its real type with the methods of the built-in base class, and within limits on depth, items and text.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from types import NoneType
from typing import Any, cast
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from bicameral.types import _types as t
from bicameral.types._formats import BOUNDED_FORMATS, format_problem
from bicameral.types._table import Table, plain_value, table_from_json, table_to_json


def mismatch(value: object, type_: t.Type, path: str = "value") -> str | None:
    """Why `value` is not of this type, or None if it is. Nothing is coerced.

    Example:
        >>> mismatch({"size": "3"}, RecordType((Field("size", INT),)))
        "value.size is '3', not int"
    """
    if type(value) is Table:
        # The records of a table have scalars only, and texts as keys: nothing of them has to be looked at here.
        if type_ == _ANY_ROWS:
            return None
        value = value.rows()
    match type_:
        case t.AnyType():
            return None
        case t.OptionalType(item=item):
            return None if value is None else mismatch(value, item, path)
        case t.LiteralType(values=values):
            return None if isinstance(value, str) and value in values else _mismatch_text(value, type_, path)
        case t.ListType(item=item):
            if not isinstance(value, list | tuple):
                return _mismatch_text(value, type_, path)
            items = cast("list[object]", value)
            if item == _ANY_ROWS.item and _are_records(items):
                return None
            return next(filter(None, (mismatch(each, item, f"{path}[{i}]") for i, each in enumerate(items))), None)
        case t.TupleType(items=types):
            if not isinstance(value, list | tuple):
                return _mismatch_text(value, type_, path)
            if len(cast("list[object]", value)) != len(types):
                return f"{path} has {len(cast('list[object]', value))} items, not {len(types)}"
            pairs = enumerate(zip(cast("list[object]", value), types, strict=True))
            return next(filter(None, (mismatch(each, kind, f"{path}[{i}]") for i, (each, kind) in pairs)), None)
        case t.DictType(value=inner):
            if not isinstance(value, dict):
                return _mismatch_text(value, type_, path)
            entries = cast("dict[object, object]", value)
            if not all(isinstance(key, str) for key in entries):
                return f"{path} has a key that is not text"
            return next(
                filter(None, (mismatch(v, inner, f"{path}[{_short_repr(k)}]") for k, v in entries.items())), None
            )
        case t.RecordType():
            return _record_mismatch(value, type_, path)
        case t.StrType(format=name) if isinstance(value, str) and name in BOUNDED_FORMATS:
            problem = format_problem(value, name)
            return f"{_mismatch_text(value, type_, path)}[{name!r}]: {problem}" if problem else None
        case _:
            return None if _is_simple(value, type_) else _mismatch_text(value, type_, path)


_ANY_ROWS = t.ListType(t.DictType(t.ANY))


def _are_records(items: Iterable[object]) -> bool:
    """Whether all items are dicts with texts as keys, whatever is in them: the rows of a table, told quickly."""
    return all(type(each) is dict and {*map(type, cast("dict[Any, Any]", each))} <= {str} for each in items)


def _record_mismatch(value: object, type_: t.RecordType, path: str) -> str | None:
    if not isinstance(value, dict):
        return _mismatch_text(value, type_, path)
    entries = cast("dict[str, object]", value)
    for name in entries:
        if type_.get(name) is None:
            return f"{path} has the field {_short_repr(name)}, which {type_} does not have"
    for field in type_.fields:
        if field.name not in entries:
            if isinstance(field.type, t.OptionalType):
                continue
            return f"{path} lacks the field {field.name!r}"
        if problem := mismatch(entries[field.name], field.type, f"{path}.{field.name}"):
            return problem
    return None


_SIMPLE_CLASSES: dict[type[t.Type], type | tuple[type, ...]] = {
    t.StrType: str,
    t.BoolType: bool,
    t.IntType: int,
    t.FloatType: (int, float),
    t.DateTimeType: dt.datetime,
    t.DateType: dt.date,
    t.TimeType: dt.time,
    t.DurationType: dt.timedelta,
    t.NullType: NoneType,
}


def _is_simple(value: object, type_: t.Type) -> bool:
    if not isinstance(value, _SIMPLE_CLASSES.get(type(type_), ())):
        return False
    # In Python a bool is an int and a datetime is a date; in plans neither is.
    if isinstance(value, bool):
        return isinstance(type_, t.BoolType)
    if isinstance(value, dt.datetime):
        return isinstance(type_, t.DateTimeType)
    return not isinstance(value, float) or math.isfinite(value)


def _mismatch_text(value: object, type_: t.Type, path: str) -> str:
    return f"{path} is {_short_repr(value)}, not {type_}"


def _short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _dict_from_json(entries: dict[str, object]) -> dict[str, Any]:
    return {name: value_from_json(item) for name, item in entries.items()}


_JSON_TAGS: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "$date": (str, dt.date.fromisoformat),
    "$time": (str, dt.time.fromisoformat),
    "$datetime": (str, dt.datetime.fromisoformat),
    "$timedelta": (int, lambda microseconds: dt.timedelta(microseconds=microseconds)),
    "$dict": (dict, _dict_from_json),
    "$table": (dict, table_from_json),
}


_JSON_CELLS = {NoneType, bool, int, float, str}


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
        case Table():
            return table_to_json(value)
        case list() | tuple():
            return [value_to_json(item) for item in cast("list[object]", value)]
        case dict():
            entries = cast("dict[str, object]", value)
            # Most records have cells only, which are JSON as they are.
            flat = {*map(type, entries.values())} <= _JSON_CELLS
            encoded = dict(entries) if flat else {key: value_to_json(item) for key, item in entries.items()}
            return {"$dict": encoded} if len(entries) == 1 and next(iter(entries)).startswith("$") else encoded
        case _:
            return value


def value_from_json(value: object) -> Any:
    """The value that `value_to_json` wrote; a ValueError says what is wrong with any other input."""
    if isinstance(value, list):
        return [value_from_json(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    entries = cast("dict[str, Any]", value)
    tag = next(iter(entries)) if len(entries) == 1 else ""
    if tag not in _JSON_TAGS:
        return _dict_from_json(entries)
    (json_type, read), inner = _JSON_TAGS[tag], entries[tag]
    if not isinstance(inner, json_type) or isinstance(inner, bool):
        raise ValueError(f"{tag!r} cannot hold {inner!r}")
    try:
        return read(inner)
    except OverflowError:
        raise ValueError(f"{tag!r} cannot hold {inner!r}") from None


MAX_VALUE_DEPTH = 64
MAX_ITEMS = 1_000_000
MAX_TEXT = 10_000_000
MAX_ALL_TEXT = 100_000_000
MAX_BITS = 1_000

_UNCHANGED_TYPES = frozenset({NoneType, bool, dt.date, dt.timedelta})
_KNOWN_ZONES = (NoneType, dt.timezone, ZoneInfo)


def to_plain(value: object) -> Any:
    """The value in exact built-in types: records become dicts, tuples lists; a TypeError names any other type.

    Example:
        >>> to_plain({"path": Path("a.txt"), "sizes": (1, 2)})
        {'path': 'a.txt', 'sizes': [1, 2]}
    """
    if type(value) in _UNCHANGED_TYPES or type(value) is Table:
        # A table is made of plain cells by this package alone, and never changes.
        return value
    return _PlainConverter().convert(value, 0)


class _PlainConverter:
    """The conversion of one value, with the remaining number of items and characters."""

    __slots__ = ("items", "text")

    def __init__(self) -> None:
        self.items = MAX_ITEMS
        self.text = MAX_ALL_TEXT

    def convert(self, value: Any, depth: int) -> Any:
        kind = cast("type[Any]", type(value))
        if kind in _UNCHANGED_TYPES:
            return value
        if kind is str:
            return self._count_text(value)
        if (exact := _EXACT_CONVERSIONS.get(kind)) is not None:
            return exact(value)
        if depth > MAX_VALUE_DEPTH:
            raise TypeError(f"the value is nested more than {MAX_VALUE_DEPTH} levels deep")
        if kind is dict:
            found = self._copy_record(value)
            return self._convert_entries(value.items(), depth) if found is None else found
        if kind is list:
            return self._convert_items(value, depth)
        return self._convert_subclass(value, kind, depth)

    def _copy_record(self, value: dict[Any, Any]) -> dict[str, Any] | None:
        """A copy of a dict of exact cells, told by their types together; None if they must be looked at one by one."""
        cells = value.values()
        kinds = {*map(type, cells)}
        if not kinds <= _JSON_CELLS or not {*map(type, value)} <= {str}:
            return None
        text = sum(map(len, value)) + (sum([len(cell) for cell in cells if type(cell) is str]) if str in kinds else 0)
        if text > min(self.text, MAX_TEXT) or len(value) > self.items:
            return None
        if float in kinds and not all([math.isfinite(cell) for cell in cells if type(cell) is float]):
            return None
        if int in kinds and any([cell.bit_length() > MAX_BITS for cell in cells if type(cell) is int]):
            return None
        self.items -= len(value)
        self.text -= text
        return dict(value)

    def _convert_subclass(self, value: Any, kind: type[Any], depth: int) -> Any:
        """A value of a subclass of a built-in type becomes a value of that type."""
        if kind is Table:
            return self._convert_items(plain_value(value), depth)
        if issubclass(kind, str):
            return self._count_text(str.__str__(value))
        for base, exact in _EXACT_CONVERSIONS.items():
            if issubclass(kind, base):
                return exact(value)
        if issubclass(kind, dict):
            return self._convert_entries(_DICT_ENTRIES(value), depth)
        if issubclass(kind, list):
            return self._convert_items(_SEQUENCE_ITEMS[list](value), depth)
        if issubclass(kind, tuple):
            return self._convert_items(_SEQUENCE_ITEMS[tuple](value), depth)
        if issubclass(kind, set | frozenset):
            items = _SEQUENCE_ITEMS[set if issubclass(kind, set) else frozenset](value)
            # The order of a set differs between processes; a recorded run must be reproducible.
            return sorted(self._convert_items(items, depth), key=repr)
        try:
            return self._convert_object(value, kind, depth)
        except TypeError:
            raise
        except Exception as error:
            raise TypeError(f"{_class_name(kind)} cannot be read: {_class_name(type(error))}") from None

    def _convert_object(self, value: Any, kind: type[Any], depth: int) -> Any:
        if issubclass(kind, BaseModel):
            return self._convert_entries(((name, getattr(value, name)) for name in kind.model_fields), depth)
        if dataclasses.is_dataclass(kind):
            return self._convert_entries(
                ((each.name, getattr(value, each.name)) for each in dataclasses.fields(kind)), depth
            )
        if issubclass(kind, Mapping):
            return self._convert_entries(cast("Mapping[object, object]", value).items(), depth)
        if issubclass(kind, PurePath):
            return self._count_text(str(value))
        raise TypeError(f"{_class_name(kind)} is not a value a plan can use")

    def _convert_entries(self, entries: Iterable[tuple[object, object]], depth: int) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        for key, item in entries:
            self._count_item()
            if not issubclass(type(key), str):
                raise TypeError(f"a key is of the type {_class_name(type(key))}, not text")
            converted[self._count_text(str.__str__(cast("str", key)))] = self.convert(item, depth + 1)
        return converted

    def _convert_items(self, items: Iterable[object], depth: int) -> list[Any]:
        converted: list[Any] = []
        for item in items:
            self._count_item()
            converted.append(self.convert(item, depth + 1))
        return converted

    def _count_item(self) -> None:
        self.items -= 1
        if self.items < 0:
            raise TypeError(f"the value, with everything in it, has more than {MAX_ITEMS:,} parts")

    def _count_text(self, text: str) -> str:
        if len(text) > MAX_TEXT:
            raise TypeError(f"a text of {len(text):,} characters is longer than {MAX_TEXT:,}")
        self.text -= len(text)
        if self.text < 0:
            raise TypeError(f"the text in the value is longer than {MAX_ALL_TEXT:,} characters")
        return text


def _plain_int(value: Any) -> int:
    number = value if type(value) is int else int.__index__(value)
    if number.bit_length() > MAX_BITS:
        raise TypeError("a number has more than 300 digits")
    return number


def _plain_float(value: Any) -> float:
    number = value if type(value) is float else float.__float__(value)
    if not math.isfinite(number):
        raise TypeError(f"{number!r} is not a number a plan can use")
    return number


def _plain_datetime(value: Any) -> dt.datetime:
    if type(value) is dt.datetime and type(value.tzinfo) in _KNOWN_ZONES:
        return value
    year, month, day, hour, minute, second, microsecond, fold, zone = _own_parts(
        dt.datetime, value, _DATE_FIELDS + _TIME_FIELDS
    )
    bare = dt.datetime(year, month, day, hour, minute, second, microsecond, fold=fold)
    return bare.replace(tzinfo=_plain_zone(zone, bare))


def _plain_date(value: Any) -> dt.date:
    return value if type(value) is dt.date else dt.date(*_own_parts(dt.date, value, _DATE_FIELDS))


def _plain_time(value: Any) -> dt.time:
    if type(value) is dt.time and type(value.tzinfo) in _KNOWN_ZONES:
        return value
    hour, minute, second, microsecond, fold, zone = _own_parts(dt.time, value, _TIME_FIELDS)
    return dt.time(hour, minute, second, microsecond, _plain_zone(zone, None), fold=fold)


def _plain_duration(value: Any) -> dt.timedelta:
    return dt.timedelta(*_own_parts(dt.timedelta, value, ("days", "seconds", "microseconds")))


_DATE_FIELDS = ("year", "month", "day")
_TIME_FIELDS = ("hour", "minute", "second", "microsecond", "fold", "tzinfo")


def _own_parts(base: type[Any], value: object, names: Iterable[str]) -> tuple[Any, ...]:
    """The parts of a date or time, read with the built-in class and not with a subclass."""
    return tuple(getattr(base, name).__get__(value) for name in names)


def _plain_zone(zone: dt.tzinfo | None, at: dt.datetime | None) -> dt.tzinfo | None:
    """A time zone of another class becomes its offset from UTC at that moment."""
    if zone is None or type(zone) in _KNOWN_ZONES:
        return zone
    try:
        offset = zone.utcoffset(at)
        return dt.timezone(dt.timedelta(*_own_parts(dt.timedelta, offset, ("days", "seconds", "microseconds"))))
    except Exception:
        raise TypeError(f"the time zone {_class_name(type(zone))} does not say how far it is from UTC") from None


_EXACT_CONVERSIONS: dict[type[Any], Callable[[Any], Any]] = {
    int: _plain_int,
    float: _plain_float,
    dt.datetime: _plain_datetime,  # before date, which is its base class
    dt.date: _plain_date,
    dt.time: _plain_time,
    dt.timedelta: _plain_duration,
}


# The iteration of the built-in classes: a subclass may override its own.
_DICT_ENTRIES: Callable[[Any], Iterable[tuple[object, object]]] = dict[object, object].items
_SEQUENCE_ITEMS: dict[type[Any], Callable[[Any], Iterable[object]]] = {
    list: list[object].__iter__,
    tuple: tuple[object, ...].__iter__,
    set: set[object].__iter__,
    frozenset: frozenset[object].__iter__,
}


def _class_name(kind: type[Any]) -> str:
    return repr(kind.__name__[:60])
