"""The shape of a table before a plan runs: the names of its columns and the types of what stands in them.

Only names cross from a file into a plan's check, never a value, and only names that look like names: a header written
to be read as a sentence is left out, and the table is then one of which nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from bicameral.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    STR,
    AnyType,
    DictType,
    Field,
    ListType,
    RecordType,
    Type,
    join,
)

MAX_FIELDS = 60
MAX_DEPTH = 5
MAX_SAMPLE = 5_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ -][A-Za-z0-9_]+){0,3}")
_LONGEST_NAME = 32

Types = Mapping[str, Type]
Literals = Mapping[str, Any]


def shape(value: object, depth: int = 0) -> Type:
    """The type of a value from a file, as closely as names and bounds allow."""
    match value:
        case bool():
            return BOOL
        case int():
            return INT
        case float():
            return FLOAT
        case str():
            return STR
        case list():
            return ListType(_common(cast("list[object]", value)[:MAX_SAMPLE], depth))
        case dict():
            return _record(cast("dict[str, object]", value), depth)
        case _:
            return ANY


def _record(entries: dict[str, object], depth: int) -> Type:
    if depth >= MAX_DEPTH or not entries or len(entries) > MAX_FIELDS or not all(map(_is_name, entries)):
        return DictType(ANY)
    return RecordType(tuple(Field(name, shape(item, depth + 1)) for name, item in entries.items()))


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def _common(items: list[object], depth: int) -> Type:
    """The type that all items have; fields that differ or are missing here and there are of any type."""
    found: Type | None = None
    for item in items:
        own = shape(item, depth + 1)
        found = own if found is None else _both(found, own)
        if isinstance(found, AnyType):
            break
    return found or ANY


def _both(left: Type, right: Type) -> Type:
    if left == right:
        return left
    if isinstance(left, RecordType) and isinstance(right, RecordType):
        if left.names != right.names:
            return DictType(ANY)
        pairs = zip(left.fields, right.fields, strict=True)
        return RecordType(tuple(Field(mine.name, _both(mine.type, yours.type)) for mine, yours in pairs))
    if isinstance(left, RecordType | DictType) and isinstance(right, RecordType | DictType):
        return DictType(ANY)
    return (join(left, right) or ANY) if {left, right} <= {INT, FLOAT} else ANY


def of_file(
    read: Callable[[str], object], stamp: Callable[[str], object], endings: tuple[str, ...]
) -> Callable[[Types, Literals], Type | None]:
    """A refinement that looks at the file a plan names, once for as long as the file's stamp stays the same."""
    known: dict[str, tuple[object, Type]] = {}

    def refine(types: Types, literals: Literals) -> Type | None:
        path = literals.get("path")
        if not isinstance(path, str) or not path.lower().endswith(endings):
            return None
        now = stamp(path)
        if path not in known or known[path][0] != now:
            known[path] = (now, shape(read(path)))
        return known[path][1]

    return refine


def same_rows(types: Types, literals: Literals) -> Type | None:
    """Rows of the same shape as those that came in."""
    return types.get("rows")


def selected(types: Types, literals: Literals) -> Type | None:
    row, columns = _row(types.get("rows")), literals.get("columns")
    if row is None or not isinstance(columns, list):
        return None
    wanted = [(str(name), row.get(str(name))) for name in cast("list[object]", columns)]
    return ListType(RecordType(tuple(Field(name, type_) for name, type_ in wanted if type_ is not None)))


def grouped(types: Types, literals: Literals) -> Type | None:
    row, by, column = _row(types.get("rows")), literals.get("by"), literals.get("column")
    if row is None or not isinstance(by, str) or not isinstance(column, str):
        return None
    result = str(literals.get("how", "sum")) if column == by else column
    return ListType(RecordType((Field(by, row.get(by) or ANY), Field(result, FLOAT))))


def joined(types: Types, literals: Literals) -> Type | None:
    left, right, on = _row(types.get("left")), _row(types.get("right")), literals.get("on")
    if left is None or right is None:
        return None
    added = (
        Field(f"{field.name}_right" if field.name in left.names else field.name, field.type)
        for field in right.fields
        if field.name != on
    )
    return ListType(RecordType((*left.fields, *added)))


def _row(rows: Type | None) -> RecordType | None:
    return rows.item if isinstance(rows, ListType) and isinstance(rows.item, RecordType) else None
