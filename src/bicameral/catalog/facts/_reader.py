"""Strict reader of the data files: YAML to rows that know their line, rows to records.

The YAML is read from parser events (the C parser where there is one), which takes a third of the time of `safe_load`.
What the files do not need (anchors, tags, merges, duplicate keys) is refused. Every key must be known, every required
key present and every value of its kind; an error has the code `catalog.bad-data`, the file, the line, the id of the
record, the path to the value and the nearest valid name.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from bicameral.catalog.facts._expressions import Expression, parse_expression
from bicameral.errors import CatalogError, Place, nearest_name

if TYPE_CHECKING:
    import yaml


_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?", re.ASCII)
MAX_YAML_DEPTH = 20


class YamlRow(dict[str, Any]):
    """A mapping of a file, which knows its line."""

    __slots__ = ("line",)

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


def read_rows(text: str, file: str) -> list[YamlRow]:
    """A file that is a list of mappings; `catalog.bad-data` with file and line if it is anything else."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        found = _EventReader(file, yaml.parse(text, Loader=loader)).document()  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = error.problem or error.context or "it cannot be read"
        raise bad_data_error(file, mark.line + 1 if mark else 1, f"this is not YAML: {said}") from None
    except yaml.YAMLError as error:
        raise bad_data_error(file, 1, f"this is not YAML: {error}") from None
    if not isinstance(found, list):
        raise bad_data_error(file, 1, "the file is no list", expected="a list of mappings, each with an id")
    rows = cast("list[Any]", found)
    for each in rows:
        if not isinstance(each, YamlRow):
            raise bad_data_error(
                file, 1, f"{str(each)[:40]!r} stands among the mappings", expected="mappings with an id"
            )
    return rows


def bad_data_error(file: str, line: int | None, what: str, **more: Any) -> CatalogError:
    """What is wrong in a data file, with its place."""
    return CatalogError("catalog.bad-data", what, place=Place(file=file, line=line), **more)


class _EventReader:
    """Values from events, one after the other."""

    def __init__(self, file: str, events: Iterator[Any]) -> None:
        self._file = file
        self._events = events

    def document(self) -> Any:
        import yaml

        value: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise bad_data_error(self._file, self._line(event), "there is a second document in the file")
            elif isinstance(event, yaml.NodeEvent):
                value = self._value(event, 0)
        return value

    def _value(self, event: yaml.NodeEvent, depth: int) -> Any:
        import yaml

        if depth > MAX_YAML_DEPTH:
            raise bad_data_error(self._file, self._line(event), f"the values are nested deeper than {MAX_YAML_DEPTH}")
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise bad_data_error(self._file, self._line(event), "anchors are not understood here", fix="Write it out.")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent) and event.tag is not None:
            raise self._tagged(event)
        return self._list(depth) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(event, depth)

    def _list(self, depth: int) -> list[Any]:
        import yaml

        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._value(event, depth + 1))
        return found

    def _mapping(self, start: yaml.NodeEvent, depth: int) -> YamlRow:
        import yaml

        found = YamlRow(self._line(start))
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise bad_data_error(self._file, self._line(event), "a key is no text")
            key = str(event.value)
            if key in found:
                raise bad_data_error(self._file, self._line(event), f"the key {key!r} is there twice")
            found[key] = self._value(next(self._events), depth + 1)
        return found

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        if event.tag is not None:
            raise self._tagged(event)
        if event.style:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        return text

    def _tagged(self, event: Any) -> CatalogError:
        return bad_data_error(
            self._file, self._line(event), f"a value of the kind {str(event.tag)[:40]!r} cannot stand here"
        )

    def _line(self, event: Any) -> int:
        return event.start_mark.line + 1


T = TypeVar("T")


class DataPlace:
    """Where a value stands: file, line, the id of its record, and the keys to it. Told only if it is wrong."""

    __slots__ = ("_around", "_key", "file", "id", "line")

    def __init__(self, file: str, line: int, id: str, around: DataPlace | None = None, key: str | int = "") -> None:
        self.file = file
        self.line = line
        self.id = id
        self._around = around
        self._key = key

    def child(self, key: str | int, line: int | None = None) -> DataPlace:
        return DataPlace(self.file, line or self.line, self.id, self, key)

    @property
    def path(self) -> str:
        before = self._around.path if self._around else ""
        return f"{before}.{self._key}" if before else str(self._key)

    def error(self, what: str, **more: Any) -> CatalogError:
        where = f"{self.id}: {self.path}" if self.path else self.id
        place = Place(file=self.file, line=self.line)
        return CatalogError("catalog.bad-data", f"{where}: {what}", place=place, **more)


Converter = Callable[[Any, DataPlace, str | int], Any]
"""A value is read from what stands in the file, given the place around it and the key or number within that."""


@dataclass(frozen=True, slots=True)
class _FieldReader:
    """A field of a value: its key in the file, and how what stands there is read."""

    name: str
    key: str
    required: bool
    convert: Converter


def read_record(kind: type[T], row: YamlRow, spot: DataPlace, **given: Any) -> T:
    """A value of this class from a row; `given` are fields that do not stand in the file."""
    parts = _field_readers(kind)
    found = dict(given)
    for key, value in row.items():
        part = parts.get(key)
        if part is None or part.name in given:
            known = [key for key, part in parts.items() if part.name not in given]
            raise spot.error(
                f"there is no key {key!r}", expected=f"one of {', '.join(known)}", nearest=nearest_name(key, known)
            )
        found[part.name] = part.convert(value, spot, key)
    for part in parts.values():
        if part.required and part.name not in found:
            raise spot.error(f"the key {part.key!r} is missing")
    return kind(**found)


@cache
def _field_readers(kind: type) -> dict[str, _FieldReader]:
    hints = get_type_hints(kind)
    found: dict[str, _FieldReader] = {}
    for each in fields(cast("Any", kind)):
        key = str(each.metadata.get("key", each.name))
        required = each.default is MISSING and each.default_factory is MISSING
        found[key] = _FieldReader(each.name, key, required, _converter(hints[each.name]))
    return found


@cache
def _converter(hint: Any) -> Converter:
    """How a value of this type is read."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint in _SIMPLE_CONVERTERS:
        return _SIMPLE_CONVERTERS[hint]
    if is_dataclass(hint):
        return _record_converter(cast("type[Any]", hint))
    if origin is Literal:
        return _choice_converter(inside)
    if origin is tuple:
        return _list_converter(_converter(inside[0]))
    if origin is Mapping:
        return _mapping_converter(_converter(inside[1]))
    if origin in (Union, types.UnionType):
        (one,) = (each for each in inside if each is not types.NoneType)
        convert = _converter(one)
        return lambda value, spot, key: None if value is None else convert(value, spot, key)
    raise TypeError(f"no way to read {hint!r}")


def _read_text(value: Any, spot: DataPlace, key: str | int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise spot.child(key).error(f"{_render_value(value)} is no text")
    return value


def _read_bool(value: Any, spot: DataPlace, key: str | int) -> bool:
    if not isinstance(value, bool):
        raise spot.child(key).error(f"{_render_value(value)} is neither true nor false")
    return value


def _read_number(value: Any, spot: DataPlace, key: str | int) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise spot.child(key).error(f"{_render_value(value)} is no number")
    return value


def _read_int(value: Any, spot: DataPlace, key: str | int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise spot.child(key).error(f"{_render_value(value)} is no whole number")
    return value


def _read_expression(value: Any, spot: DataPlace, key: str | int) -> Expression:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise spot.child(key).error(f"{_render_value(value)} is no cost expression")
    try:
        return parse_expression(str(value))
    except CatalogError as error:
        raise CatalogError(
            error.code,
            f"{spot.id}: {spot.child(key).path}: {error.message}",
            place=Place(file=spot.file, line=spot.line),
            expected=error.expected,
        ) from None


def _read_any(value: Any, spot: DataPlace, key: str | int) -> Any:
    return value


_SIMPLE_CONVERTERS: dict[Any, Converter] = {
    str: _read_text,
    bool: _read_bool,
    float: _read_number,
    int: _read_int,
    Expression: _read_expression,
    Any: _read_any,
}


def _record_converter(kind: type[Any]) -> Converter:
    def convert(value: Any, spot: DataPlace, key: str | int) -> Any:
        if not isinstance(value, YamlRow):
            raise spot.child(key).error(f"{_render_value(value)} is no mapping")
        return read_record(kind, value, spot.child(key, value.line))

    return convert


def _choice_converter(words: tuple[Any, ...]) -> Converter:
    def convert(value: Any, spot: DataPlace, key: str | int) -> Any:
        if value not in words:
            raise spot.child(key).error(
                f"{_render_value(value)} cannot stand here",
                expected=f"one of {', '.join(map(str, words))}",
                nearest=nearest_name(str(value), map(str, words)),
            )
        return value

    return convert


def _list_converter(inner: Converter) -> Converter:
    def convert(value: Any, spot: DataPlace, key: str | int) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise spot.child(key).error(f"{_render_value(value)} is no list")
        items = cast("list[Any]", value)
        here = spot.child(key)
        return tuple([inner(each, here, number) for number, each in enumerate(items)])

    return convert


def _mapping_converter(inner: Converter) -> Converter:
    def convert(value: Any, spot: DataPlace, key: str | int) -> Mapping[str, Any]:
        if not isinstance(value, YamlRow):
            raise spot.child(key).error(f"{_render_value(value)} is no mapping")
        here = spot.child(key)
        return types.MappingProxyType({name: inner(each, here, name) for name, each in value.items()})

    return convert


def _render_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def load_rows(file: str) -> list[YamlRow]:
    """The rows of a file, with `catalog.bad-data` if it cannot be read."""
    try:
        text = (files("bicameral.catalog") / "data" / file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise bad_data_error(
            f"data/{file}", None, "the file cannot be read", fix="Install the package again."
        ) from None
    return read_rows(text, f"data/{file}")


def load_records(file: str, kind: type[T]) -> Mapping[str, T]:
    """Every record of a file by its id."""
    found: dict[str, T] = {}
    for row in load_rows(file):
        id = row.get("id")
        if not isinstance(id, str) or id in found:
            raise bad_data_error(f"data/{file}", row.line, f"the id {id!r} is there twice, or is no text")
        found[id] = read_record(kind, row, DataPlace(f"data/{file}", row.line, id))
    return MappingProxyType(found)
