"""Strict reader of the data files: YAML to rows, rows to records.

Every key must be known, every required key present and every value of its kind; anchors and tags are refused. An error
has the code `catalog.bad-data`, the file, the line, the id of the record, the path to the value and the nearest valid
name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from bicameral.catalog.facts._records import FILE_KEYS
from bicameral.documents import KeyPath, YamlDocument, YamlLimits, first_key_fault, read_yaml
from bicameral.errors import CatalogError, Place

T = TypeVar("T")

DATA_FOLDER = Path(__file__).parents[1] / "data"
"""The data files that come with the package."""
_LIMITS = YamlLimits(values=1_000_000, depth=20, plain=True)
# A text of nothing but white space is as bad as an empty one, and pydantic refuses only that.
_BLANK_TEXT = re.compile(r'"(?:\s|\\[nrt])+"')


def bad_data_error(what: str, **more: Any) -> CatalogError:
    """The error of a data file."""
    return CatalogError("catalog.bad-data", what, **more)


@dataclass(frozen=True, slots=True)
class DataPlace:
    """A value of a data file: its document and the path to it, which begins with the number of the row."""

    document: YamlDocument
    path: KeyPath

    def child(self, *keys: str | int) -> DataPlace:
        return DataPlace(self.document, (*self.path, *keys))

    @property
    def value(self) -> Any:
        value = self.document.settings
        for key in self.path:
            value = value[key]
        return value

    @property
    def id(self) -> str:
        """The id of the row."""
        return str(self.document.settings[self.path[0]].get("id"))

    def error(self, what: str, *, code: str = "catalog.bad-data", **more: Any) -> CatalogError:
        """The error with the id of the row, the path in it, and the line."""
        where = ": ".join(filter(None, (self.id, ".".join(map(str, self.path[1:])), what)))
        return CatalogError(code, where, place=self.place, **more)

    @property
    def place(self) -> Place:
        return Place(str(self.document.file), self.document.locate(self.path).line)


def read_rows(text: str, file: str) -> list[DataPlace]:
    """The rows of a file that is a list of mappings; `catalog.bad-data` with file and line if it is not."""
    document = read_yaml(text, Path(file), bad_data_error, _LIMITS)
    if not isinstance(document.settings, list):
        expected = "a list of mappings, each with an id"
        raise bad_data_error("the file is no list", place=Place(file, 1), expected=expected)
    for number, row in enumerate(cast("list[Any]", document.settings)):
        if not isinstance(row, dict):
            what = f"{str(row)[:40]!r} stands among the mappings"
            raise bad_data_error(
                what, place=Place(file, document.locate((number,)).line), expected="mappings with an id"
            )
    return [DataPlace(document, (number,)) for number in range(len(cast("list[Any]", document.settings)))]


def load_rows(file: str, folder: Path = DATA_FOLDER) -> list[DataPlace]:
    """The rows of a data file."""
    try:
        text = (folder / file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = "the file is not there" if isinstance(error, FileNotFoundError) else "the file cannot be read"
        raise bad_data_error(what, place=Place(f"data/{file}"), fix="Install the package again.") from None
    return read_rows(text, f"data/{file}")


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[list[Any]]:
    # Records have no settings of their own: those of the list hold for them, too.
    settings = ConfigDict(
        extra="forbid", str_min_length=1, allow_inf_nan=False, alias_generator=lambda name: FILE_KEYS.get(name, name)
    )
    rows: Any = list[kind]  # pyright: ignore[reportInvalidTypeForm]
    return TypeAdapter(rows, config=settings)


def read_record(kind: type[T], at: DataPlace, **given: Any) -> T:
    """A record of this class from a row; `given` are fields that do not stand in the file."""
    row: dict[str, Any] = at.value
    known = row.keys() & given.keys()
    for key in sorted(known):
        raise at.error(f"there is no key {key!r}")
    # As JSON: in strict mode pydantic takes lists for tuples and mappings for dataclasses only from there.
    text = _BLANK_TEXT.sub('""', json.dumps([{**row, **given}], separators=(",", ":")))
    try:
        return _adapter(kind).validate_json(text, strict=True)[0]
    except ValidationError as error:
        raise _fault_error(error, kind, at) from None


def _fault_error(error: ValidationError, kind: type[Any], at: DataPlace) -> CatalogError:
    fault = first_key_fault(error, kind, FILE_KEYS)
    path = fault.path[1:]
    match fault.kind:
        case "unknown":
            expected = f"one of {', '.join(fault.known)}"
            what = f"there is no key {str(path[-1])!r}"
            return at.child(*path[:-1]).error(what, expected=expected, nearest=fault.nearest)
        case "missing":
            return at.child(*path[:-1]).error(f"the key {str(path[-1])!r} is missing")
        case "catalog.bad-expression":
            return at.child(*path).error(fault.message, code=fault.kind, expected=fault.expected)
        case _:
            shown = repr(fault.given)
            shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
            expected = fault.expected or fault.expected_kind
            return at.child(*path).error(f"{shown} cannot stand here", expected=expected, nearest=fault.nearest)


def load_records(
    file: str,
    kind: type[T],
    folder: Path = DATA_FOLDER,
    check: Callable[[T, DataPlace], None] | None = None,
    **given: Any,
) -> Mapping[str, T]:
    """Every record of a data file by its id, of which there is one each.

    Args:
        check: Checks a record with what the types of its fields cannot say.
        given: Fields that do not stand in the file.
    """
    records: dict[str, T] = {}
    for at in load_rows(file, folder):
        if not isinstance(at.value.get("id"), str):
            raise bad_data_error("a record has no id", place=at.place)
        if at.id in records:
            raise at.error("this id is there twice")
        records[at.id] = read_record(kind, at, **given)
        if check is not None:
            check(records[at.id], at)
    return MappingProxyType(records)
