"""The shape of a table before a plan runs: the names of its columns and the types of what stands in them.

This is the one channel from a file into the planner's prompt, and it is bounded. Only names cross, never a value, and
of a file that is not in a trusted folder only few and short ones that look like names: if one is written to be read as
a sentence, the table is one of which nothing is known.
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
"""Names that a file may have in all, however deep they stand."""
MAX_DEPTH = 5
MAX_SAMPLE = 5_000
LONGEST_NAME = 40
MOST_WORDS = 4
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ -][A-Za-z0-9_]+)*")
# `customer_id`, `customer-id`, `Customer ID` and `customerId` are two words each.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST_OWN = 200

Types = Mapping[str, Type]
Literals = Mapping[str, Any]


def shape(value: object, *, trusted: bool = False) -> Type:
    """The type of a value from a file, as closely as names and bounds allow."""
    found = _shape(value, 0, _is_own_name if trusted else _is_name)
    return found if trusted or _names_in(found) <= MAX_FIELDS else _nameless(found)


def _shape(value: object, depth: int, allowed: Callable[[str], bool]) -> Type:
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
            return ListType(_common(cast("list[object]", value)[:MAX_SAMPLE], depth, allowed))
        case dict():
            return _record(cast("dict[str, object]", value), depth, allowed)
        case _:
            return ANY


def _record(entries: dict[str, object], depth: int, allowed: Callable[[str], bool]) -> Type:
    if depth >= MAX_DEPTH or not entries or len(entries) > MAX_FIELDS or not all(map(allowed, entries)):
        return DictType(ANY)
    return RecordType(tuple(Field(name, _shape(item, depth + 1, allowed)) for name, item in entries.items()))


def _is_name(name: str) -> bool:
    short = len(name) <= LONGEST_NAME and len(_WORDS.findall(name)) <= MOST_WORDS
    return short and _NAME.fullmatch(name) is not None


def _is_own_name(name: str) -> bool:
    """Whether this can be a name in a file that the user keeps himself: anything on one line."""
    return 0 < len(name) <= _LONGEST_OWN and name.isprintable()


def _names_in(type_: Type) -> int:
    match type_:
        case ListType(item=item):
            return _names_in(item)
        case RecordType(fields=fields):
            return len(fields) + sum(_names_in(field.type) for field in fields)
        case _:
            return 0


def _nameless(type_: Type) -> Type:
    """The same with no name in it."""
    match type_:
        case ListType(item=item):
            return ListType(_nameless(item))
        case RecordType():
            return DictType(ANY)
        case _:
            return type_


def _common(items: list[object], depth: int, allowed: Callable[[str], bool]) -> Type:
    """The type that all items have; fields that differ or are missing here and there are of any type."""
    found: Type | None = None
    for item in items:
        own = _shape(item, depth + 1, allowed)
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
    read: Callable[[str], object],
    stamp: Callable[[str], object],
    endings: tuple[str, ...],
    trusts: Callable[[str], bool],
) -> Callable[[Types, Literals], Type | None]:
    """A refinement that looks at the file a plan names, once for as long as the file's stamp stays the same."""
    known: dict[str, tuple[object, Type]] = {}

    def refine(types: Types, literals: Literals) -> Type | None:
        path = literals.get("path")
        if not isinstance(path, str) or not path.lower().endswith(endings):
            return None
        now = (stamp(path), trusts(path))
        if path not in known or known[path][0] != now:
            known[path] = (now, shape(read(path), trusted=now[1]))
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
