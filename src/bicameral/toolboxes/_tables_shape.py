"""The shape of a table before a plan runs: the names of its columns and the types of what stands in them.

The check of a plan holds it to this shape. A planner never reads the names of a file outside the trusted folders: it is
shown neutral ones in their place (`bicameral.delta`). Here the size of a shape is bounded, and never a value is in it.
The short texts of a table are kept beside its shape: words of a request are looked for in them, without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
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
LONGEST_NAME = 200
LONGEST_TEXT = 60
"""A longer text is prose, and no word of a request is all of it."""
MAX_TEXTS = 5_000
"""Different short texts of a file that are looked at."""

Types = Mapping[str, Type]
Literals = Mapping[str, Any]
Cells = Mapping[str, frozenset[str]]


def shape(value: object, *, trusted: bool = False) -> Type:
    """The type of a value from a file, as closely as names and bounds allow."""
    found = _shape(value, 0)
    return found if trusted or _names_in(found) <= MAX_FIELDS else _nameless(found)


def _shape(value: object, depth: int) -> Type:
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
    return RecordType(tuple(Field(name, _shape(item, depth + 1)) for name, item in entries.items()))


def _is_name(name: str) -> bool:
    """Whether this can be the name of a column: anything on one line that can be printed."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable()


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


def _common(items: list[object], depth: int) -> Type:
    """The type that all items have; fields that differ or are missing here and there are of any type."""
    found: Type | None = None
    for item in items:
        own = _shape(item, depth + 1)
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


class FileShape:
    """A refinement that looks at the file a plan names, once for as long as the file's stamp stays the same.

    It also knows the short texts in each column, in which a planner may have the words of a request looked for.
    """

    def __init__(
        self,
        read: Callable[[str], object],
        stamp: Callable[[str], object],
        endings: tuple[str, ...],
        trusts: Callable[[str], bool],
    ) -> None:
        self._read = read
        self._stamp = stamp
        self._endings = endings
        self._trusts = trusts
        self._known: dict[str, tuple[object, Type, Cells]] = {}

    def __call__(self, types: Types, literals: Literals) -> Type | None:
        found = self._look(literals)
        return None if found is None else found[0]

    def cells(self, literals: Literals) -> Cells:
        """The short texts in the columns of the file that a plan names."""
        found = self._look(literals)
        return {} if found is None else found[1]

    def _look(self, literals: Literals) -> tuple[Type, Cells] | None:
        path = literals.get("path")
        if not isinstance(path, str) or not path.lower().endswith(self._endings):
            return None
        now = (self._stamp(path), self._trusts(path))
        known = self._known.get(path)
        if known is None or known[0] != now:
            content = self._read(path)
            known = self._known[path] = (now, shape(content, trusted=now[1]), short_texts(content))
        return known[1:]


def short_texts(content: object) -> dict[str, frozenset[str]]:
    """The texts of a few words that stand in each column of a table, as many as are looked at."""
    if not isinstance(content, list):
        return {}
    rows = (cast("dict[str, object]", row) for row in cast("list[object]", content)[:MAX_SAMPLE] if type(row) is dict)
    short = (
        (column, cell)
        for row in rows
        for column, cell in row.items()
        if isinstance(cell, str) and 0 < len(cell) <= LONGEST_TEXT
    )
    found: dict[str, set[str]] = {}
    # Distinct texts count, in the order of the file: a column of one word in every row takes up one of them.
    for column, cell in islice(dict.fromkeys(short), MAX_TEXTS):
        found.setdefault(column, set()).add(cell)
    return {name: frozenset(texts) for name, texts in found.items()}


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
