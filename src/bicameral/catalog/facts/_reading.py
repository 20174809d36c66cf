"""Rows of a file become values: every key is known, every key that must be there is, and every value is of its kind."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from bicameral.errors import CatalogError, Place, nearest

from ._expressions import Expression, parse_expression
from ._yaml import Row

T = TypeVar("T")


class Spot:
    """Where a value stands: file, line, the id of its record, and the keys to it. Told only if it is wrong."""

    __slots__ = ("_around", "_key", "file", "id", "line")

    def __init__(self, file: str, line: int, id: str, around: Spot | None = None, key: str | int = "") -> None:
        self.file = file
        self.line = line
        self.id = id
        self._around = around
        self._key = key

    def at(self, key: str | int, line: int | None = None) -> Spot:
        return Spot(self.file, line or self.line, self.id, self, key)

    @property
    def path(self) -> str:
        before = self._around.path if self._around else ""
        return f"{before}.{self._key}" if before else str(self._key)

    def wrong(self, what: str, **more: Any) -> CatalogError:
        where = f"{self.id}: {self.path}" if self.path else self.id
        place = Place(file=self.file, line=self.line)
        return CatalogError("catalog.bad-data", f"{where}: {what}", place=place, **more)


Convert = Callable[[Any, Spot, str | int], Any]
"""A value is read from what stands in the file, given the place around it and the key or number within that."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A field of a value: its key in the file, and how what stands there is read."""

    name: str
    key: str
    required: bool
    convert: Convert


def read_value(kind: type[T], row: Row, spot: Spot, **given: Any) -> T:
    """A value of this class from a row; `given` are fields that do not stand in the file."""
    parts = _parts(kind)
    found = dict(given)
    for key, value in row.items():
        part = parts.get(key)
        if part is None or part.name in given:
            known = [key for key, part in parts.items() if part.name not in given]
            raise spot.wrong(
                f"there is no key {key!r}", expected=f"one of {', '.join(known)}", nearest=nearest(key, known)
            )
        found[part.name] = part.convert(value, spot, key)
    for part in parts.values():
        if part.required and part.name not in found:
            raise spot.wrong(f"the key {part.key!r} is missing")
    return kind(**found)


@cache
def _parts(kind: type) -> dict[str, _Part]:
    hints = get_type_hints(kind)
    found: dict[str, _Part] = {}
    for each in fields(cast("Any", kind)):
        key = str(each.metadata.get("key", each.name))
        required = each.default is MISSING and each.default_factory is MISSING
        found[key] = _Part(each.name, key, required, _converter(hints[each.name]))
    return found


@cache
def _converter(hint: Any) -> Convert:
    """How a value of this type is read."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if is_dataclass(hint):
        return _nested(cast("type[Any]", hint))
    if origin is Literal:
        return _one_of(inside)
    if origin is tuple:
        return _list_of(_converter(inside[0]))
    if origin is Mapping:
        return _mapping_of(_converter(inside[1]))
    if origin in (Union, types.UnionType):
        (one,) = (each for each in inside if each is not types.NoneType)
        convert = _converter(one)
        return lambda value, spot, key: None if value is None else convert(value, spot, key)
    raise TypeError(f"no way to read {hint!r}")


def _text(value: Any, spot: Spot, key: str | int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise spot.at(key).wrong(f"{_shown(value)} is no text")
    return value


def _truth(value: Any, spot: Spot, key: str | int) -> bool:
    if not isinstance(value, bool):
        raise spot.at(key).wrong(f"{_shown(value)} is neither true nor false")
    return value


def _number(value: Any, spot: Spot, key: str | int) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise spot.at(key).wrong(f"{_shown(value)} is no number")
    return value


def _whole(value: Any, spot: Spot, key: str | int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise spot.at(key).wrong(f"{_shown(value)} is no whole number")
    return value


def _expression(value: Any, spot: Spot, key: str | int) -> Expression:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise spot.at(key).wrong(f"{_shown(value)} is no cost expression")
    try:
        return parse_expression(str(value))
    except CatalogError as error:
        raise CatalogError(
            error.code,
            f"{spot.id}: {spot.at(key).path}: {error.message}",
            place=Place(file=spot.file, line=spot.line),
            expected=error.expected,
        ) from None


def _anything(value: Any, spot: Spot, key: str | int) -> Any:
    return value


_SIMPLE: dict[Any, Convert] = {
    str: _text,
    bool: _truth,
    float: _number,
    int: _whole,
    Expression: _expression,
    Any: _anything,
}


def _nested(kind: type[Any]) -> Convert:
    def convert(value: Any, spot: Spot, key: str | int) -> Any:
        if not isinstance(value, Row):
            raise spot.at(key).wrong(f"{_shown(value)} is no mapping")
        return read_value(kind, value, spot.at(key, value.line))

    return convert


def _one_of(words: tuple[Any, ...]) -> Convert:
    def convert(value: Any, spot: Spot, key: str | int) -> Any:
        if value not in words:
            raise spot.at(key).wrong(
                f"{_shown(value)} cannot stand here",
                expected=f"one of {', '.join(map(str, words))}",
                nearest=nearest(str(value), map(str, words)),
            )
        return value

    return convert


def _list_of(inner: Convert) -> Convert:
    def convert(value: Any, spot: Spot, key: str | int) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise spot.at(key).wrong(f"{_shown(value)} is no list")
        items = cast("list[Any]", value)
        here = spot.at(key)
        return tuple([inner(each, here, number) for number, each in enumerate(items)])

    return convert


def _mapping_of(inner: Convert) -> Convert:
    def convert(value: Any, spot: Spot, key: str | int) -> Mapping[str, Any]:
        if not isinstance(value, Row):
            raise spot.at(key).wrong(f"{_shown(value)} is no mapping")
        here = spot.at(key)
        return types.MappingProxyType({name: inner(each, here, name) for name, each in value.items()})

    return convert


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
