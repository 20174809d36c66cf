"""A tool's answer as plain values, or a TypeError.

What a tool gives may have any class, and a class can say anything of itself: that it is a text, that it equals
everything, that it has no end. So a value is taken by its real type, without one of its methods being called, and
within bounds that no walk over it can exceed.
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

MAX_DEPTH = 64
MAX_ITEMS = 1_000_000
MAX_TEXT = 10_000_000
MAX_ALL_TEXT = 100_000_000
MAX_BITS = 1_000

_AS_THEY_ARE = frozenset({NoneType, bool, dt.date, dt.timedelta})
_ZONES = (NoneType, dt.timezone, ZoneInfo)


def plain(value: object) -> Any:
    """Plain values of their exact types: records become dicts, tuples lists; a TypeError names the rest."""
    if type(value) in _AS_THEY_ARE:
        return value
    return _Walk().plain(value, 0)


class _Walk:
    """One value on its way, and how much more of it there may be."""

    __slots__ = ("items", "text")

    def __init__(self) -> None:
        self.items = MAX_ITEMS
        self.text = MAX_ALL_TEXT

    def plain(self, value: Any, depth: int) -> Any:
        kind = cast("type[Any]", type(value))
        if kind in _AS_THEY_ARE:
            return value
        if kind is str:
            return self._text(value)
        if (exact := _EXACT.get(kind)) is not None:
            return exact(value)
        if depth > MAX_DEPTH:
            raise TypeError(f"the value is nested more than {MAX_DEPTH} levels deep")
        if kind is dict:
            return self._entries(value.items(), depth)
        if kind is list:
            return self._list(value, depth)
        return self._of_a_class(value, kind, depth)

    def _of_a_class(self, value: Any, kind: type[Any], depth: int) -> Any:
        """A value whose class is made from a plain one is that plain value."""
        if issubclass(kind, str):
            return self._text(str.__str__(value))
        for base, exact in _EXACT.items():
            if issubclass(kind, base):
                return exact(value)
        if issubclass(kind, dict):
            return self._entries(_ENTRIES(value), depth)
        if issubclass(kind, list):
            return self._list(_ITEMS[list](value), depth)
        if issubclass(kind, tuple):
            return self._list(_ITEMS[tuple](value), depth)
        if issubclass(kind, set | frozenset):
            items = _ITEMS[set if issubclass(kind, set) else frozenset](value)
            # The order of a set differs from one process to the next; a recorded run must not.
            return sorted(self._list(items, depth), key=repr)
        try:
            return self._of_another_class(value, kind, depth)
        except TypeError:
            raise
        except Exception as error:
            raise TypeError(f"{_name(kind)} cannot be read: {_name(type(error))}") from None

    def _of_another_class(self, value: Any, kind: type[Any], depth: int) -> Any:
        if issubclass(kind, BaseModel):
            return self._entries(((name, getattr(value, name)) for name in kind.model_fields), depth)
        if dataclasses.is_dataclass(kind):
            return self._entries(((each.name, getattr(value, each.name)) for each in dataclasses.fields(kind)), depth)
        if issubclass(kind, Mapping):
            return self._entries(cast("Mapping[object, object]", value).items(), depth)
        if issubclass(kind, PurePath):
            return self._text(str(value))
        raise TypeError(f"{_name(kind)} is not a value a plan can use")

    def _entries(self, entries: Iterable[tuple[object, object]], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in entries:
            self._count()
            if not issubclass(type(key), str):
                raise TypeError(f"a key is of the type {_name(type(key))}, not text")
            found[self._text(str.__str__(cast("str", key)))] = self.plain(item, depth + 1)
        return found

    def _list(self, items: Iterable[object], depth: int) -> list[Any]:
        found: list[Any] = []
        for item in items:
            self._count()
            found.append(self.plain(item, depth + 1))
        return found

    def _count(self) -> None:
        self.items -= 1
        if self.items < 0:
            raise TypeError(f"the value, with everything in it, has more than {MAX_ITEMS:,} parts")

    def _text(self, text: str) -> str:
        if len(text) > MAX_TEXT:
            raise TypeError(f"a text of {len(text):,} characters is longer than {MAX_TEXT:,}")
        self.text -= len(text)
        if self.text < 0:
            raise TypeError(f"the text in the value is longer than {MAX_ALL_TEXT:,} characters")
        return text


def _int(value: Any) -> int:
    number = value if type(value) is int else int.__index__(value)
    if number.bit_length() > MAX_BITS:
        raise TypeError("a number has more than 300 digits")
    return number


def _float(value: Any) -> float:
    number = value if type(value) is float else float.__float__(value)
    if not math.isfinite(number):
        raise TypeError(f"{number!r} is not a number a plan can use")
    return number


def _datetime(value: Any) -> dt.datetime:
    if type(value) is dt.datetime and type(value.tzinfo) in _ZONES:
        return value
    year, month, day, hour, minute, second, microsecond, fold, zone = _parts(dt.datetime, value, _DATE + _TIME)
    bare = dt.datetime(year, month, day, hour, minute, second, microsecond, fold=fold)
    return bare.replace(tzinfo=_zone(zone, bare))


def _date(value: Any) -> dt.date:
    return value if type(value) is dt.date else dt.date(*_parts(dt.date, value, _DATE))


def _time(value: Any) -> dt.time:
    if type(value) is dt.time and type(value.tzinfo) in _ZONES:
        return value
    hour, minute, second, microsecond, fold, zone = _parts(dt.time, value, _TIME)
    return dt.time(hour, minute, second, microsecond, _zone(zone, None), fold=fold)


def _duration(value: Any) -> dt.timedelta:
    return dt.timedelta(*_parts(dt.timedelta, value, ("days", "seconds", "microseconds")))


_DATE = ("year", "month", "day")
_TIME = ("hour", "minute", "second", "microsecond", "fold", "tzinfo")


def _parts(base: type[Any], value: object, names: Iterable[str]) -> tuple[Any, ...]:
    """The parts of a date or time as its own class has them, whatever a class made from it says."""
    return tuple(getattr(base, name).__get__(value) for name in names)


def _zone(zone: dt.tzinfo | None, at: dt.datetime | None) -> dt.tzinfo | None:
    """A time zone of somebody's own is only how far it is from the world's time at that moment."""
    if zone is None or type(zone) in _ZONES:
        return zone
    try:
        offset = zone.utcoffset(at)
        return dt.timezone(dt.timedelta(*_parts(dt.timedelta, offset, ("days", "seconds", "microseconds"))))
    except Exception:
        raise TypeError(f"the time zone {_name(type(zone))} does not say how far it is from UTC") from None


_EXACT: dict[type[Any], Callable[[Any], Any]] = {
    int: _int,
    float: _float,
    dt.datetime: _datetime,  # before date, of which it is made
    dt.date: _date,
    dt.time: _time,
    dt.timedelta: _duration,
}


# What a class says of its items is another thing: these are the plain one's own.
_ENTRIES: Callable[[Any], Iterable[tuple[object, object]]] = dict[object, object].items
_ITEMS: dict[type[Any], Callable[[Any], Iterable[object]]] = {
    list: list[object].__iter__,
    tuple: tuple[object, ...].__iter__,
    set: set[object].__iter__,
    frozenset: frozenset[object].__iter__,
}


def _name(kind: type[Any]) -> str:
    return repr(kind.__name__[:60])
