"""Library functions on cells of tables, which read a cell in the kind of its column.

A plan is written without them: when it is bound to the world, its comparisons, sums and orders of cells are rewritten
with these functions (`plans.check._cells`). The notation of the column, which was found from all its cells, stands in
the plan, so that each function is pure and a run and its replay read a cell in the same way.

What cannot be read is never guessed. A comparison with such a cell does not hold, and the cell is counted; a sum leaves
out cells that say that there is no value, counts them, and refuses all others; in an order they come last.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from bicameral import types as t
from bicameral.columns import (
    LONGEST_CELL,
    Amount,
    CellReader,
    ColumnKind,
    describe_guess,
    describe_kind,
    is_blank,
    is_missing,
    kind_of_notation,
    notation_reader,
    parse_number,
)
from bicameral.plans._type_rules import CallTypes, library_function, signature
from bicameral.plans.evaluate._bounds import CURRENT_RUN, EvaluationError, check_number, preview
from bicameral.plans.evaluate._values import align_time_zones

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
CELL_COMPARISONS = ("==", "!=", *_ORDERS)

_UNREADABLE: Any = object()
"""A value that is not of the kind of the column."""
MAX_NAME = 60


_MEMO_SIZE = 1 << 16


@dataclass(frozen=True, slots=True)
class NotationReader:
    """Reads cells in one notation.

    Args:
        read: A cell as a bool, a date, a datetime or an `Amount`; None if it cannot be read.
        read_plain: A cell as the bool, date or number that a plan computes with; None if it cannot be read.
        kind: The kind of the column.
        with_time: Whether times of day are kept.
        words: The kind in words.
        guess: How the column is read although nothing decides how it is meant; empty if something does.
    """

    read: CellReader
    read_plain: CellReader
    kind: ColumnKind
    with_time: bool
    words: str
    guess: str


@lru_cache(maxsize=64)
def reader_of(notation: str) -> NotationReader:
    """The reader of a notation; an error of the run if there is none."""
    try:
        read, kind = notation_reader(notation), kind_of_notation(notation)
    except ValueError as error:
        raise EvaluationError("run.column-kind", str(error), expected="a notation that the plan was bound to") from None
    with_time = notation == "datetime"
    if kind == "date":
        read = _remember(partial(_read_moment, read, with_time))
    read_plain = _remember(partial(_read_plain, read)) if kind in ("number", "money") else read
    return NotationReader(read, read_plain, kind, with_time, describe_kind(kind)[0], describe_guess(notation))


def _read_moment(read: CellReader, with_time: bool, cell: object) -> dt.date | None:
    found = read(cell)
    return None if found is None else _moment(found, with_time)


def _read_plain(read: CellReader, cell: object) -> Any:
    found = read(cell)
    return None if found is None else _plain_value(found)


def _remember(read: CellReader) -> CellReader:
    """The same reader, which remembers short texts: a column repeats its days, and a sum is often made twice."""
    known: dict[str, Any] = {}

    def run(cell: object) -> Any:
        # Only exact texts: 1, 1.0 and True are the same key.
        if type(cell) is not str:
            return read(cell)
        try:
            return known[cell]
        except KeyError:
            found = read(cell)
            if len(cell) <= LONGEST_CELL:
                if len(known) >= _MEMO_SIZE:
                    known.clear()
                known[cell] = found
            return found

    return run


def read_cell(cell: object, notation: str) -> Any:
    """A cell in the kind of its column: a bool, a date, a datetime or an `Amount`; None if it cannot be read."""
    return reader_of(notation).read(cell)


def _moment(text: str, with_time: bool) -> dt.date | None:
    try:
        if len(text) == 10 and not with_time:
            return dt.date.fromisoformat(text)
        moment = dt.datetime.fromisoformat(text)
        return moment if with_time else moment.date()
    except ValueError:
        return None


def wanted_value(value: object, notation: str) -> Any:
    """A value of a plan in the kind of the column that it is compared with; `UNREADABLE` if it is not of that kind."""
    reader = reader_of(notation)
    match reader.kind, value:
        case "yes/no", bool():
            return value
        case "date", dt.datetime():
            return value if reader.with_time else value.date()
        case "date", dt.date():
            return value
        case "number" | "money", int() | float() if not isinstance(value, bool):
            return Amount(Decimal(str(value)))
        case "number" | "money", str() if (number := parse_number(value)) is not None:
            # A plan writes numbers as Python does; a cell of the column in another notation never looks like this one.
            return Amount(Decimal(str(number)))
        case _, str():
            found = reader.read(value)
            return _UNREADABLE if found is None else found
        case _:
            return _UNREADABLE


def is_readable(value: object) -> bool:
    """Whether `wanted_value` found a value of the kind of the column."""
    return value is not _UNREADABLE and value is not None


def cell_matches(cell: Any, op: str, value: Any, notation: str, column: str) -> bool:
    if op not in CELL_COMPARISONS:
        raise EvaluationError("run.bad-call", f"{op[:20]!r} is no comparison", expected=", ".join(CELL_COMPARISONS))
    found = read_cell(cell, notation)
    count_cells(column, notation, 1, int(found is None and not is_blank(cell)))
    if value is None:
        return op == "!="
    wanted = wanted_value(value, notation)
    if not is_readable(wanted):
        if isinstance(value, str) and op in ("==", "!="):
            # A word that is not of the kind, such as `tbd`, is looked for as it is written.
            return (cell == value) == (op == "==")
        raise kind_error(column, notation, f"{preview(value)} cannot be compared with it")
    return op == "!=" if found is None else holds(found, op, wanted)


def holds(found: Any, op: str, wanted: Any) -> bool:
    """Whether a cell that was read compares so with a value of its kind."""
    if isinstance(found, Amount):
        if found.unit and wanted.unit and found.unit != wanted.unit:
            return op == "!="
        found, wanted = found.number, wanted.number
    elif isinstance(found, dt.datetime):
        # A day is compared with the day of the moment.
        if isinstance(wanted, dt.datetime):
            found, wanted = align_time_zones((found, wanted))
        else:
            found = found.date()
    if op in _ORDERS:
        return _ORDERS[op](found, wanted)
    return (found == wanted) == (op == "==")


_NO_DEFAULT = object()


def _cell_value(cell: Any, notation: str, column: str, missing: Any = _NO_DEFAULT) -> Any:
    found = reader_of(notation).read_plain(cell)
    if found is not None:
        count_guess(column, notation, 1)
        return found
    if missing is _NO_DEFAULT:
        raise unread_error(cell, notation, column)
    count_cells(column, notation, 1, int(not is_blank(cell)))
    return missing


def _cell_values(cells: Any, notation: str, column: str) -> list[Any]:
    reader = reader_of(notation)
    read, read_plain = reader.read, reader.read_plain
    values: list[Any] = []
    units: set[str] = set()
    unread = 0
    has_units = reader.kind == "money" or reader.kind == "number"
    for cell in cells:
        found = read_plain(cell)
        if found is not None:
            if has_units:
                units.add(read(cell).unit)
            values.append(found)
        elif is_missing(cell):
            unread += not is_blank(cell)
        else:
            # Left out, it would make the total wrong.
            raise unread_error(cell, notation, column)
    if len(units - {""}) > 1:
        # The table has changed since the plan was bound: amounts of several currencies are never added.
        raise kind_error(column, notation, "it has amounts in several currencies")
    count_cells(column, notation, len(values) + unread, unread)
    return values


def _cell_order(cell: Any, notation: str, column: str, last: bool = True) -> list[Any]:
    found = reader_of(notation).read_plain(cell)
    count_cells(column, notation, 1, int(found is None and not is_blank(cell)))
    return order_key(found, last)


def order_key(found: Any, last: bool) -> list[Any]:
    """The key that puts a cell in order, given what was read in it; one that cannot be read is last or first."""
    if found is None:
        return [1 if last else -1, 0]
    if isinstance(found, dt.datetime) and found.tzinfo is not None:
        found = found.astimezone(dt.UTC).replace(tzinfo=None)
    return [0, found]


def _plain_value(found: Any) -> Any:
    if not isinstance(found, Amount):
        return found
    number = found.number
    return check_number(int(number) if number == number.to_integral_value() else float(number))


def count_cells(column: str, notation: str, given: int, unread: int) -> None:
    """Count cells that were read, and those of them that could not be, for the doubts of the run."""
    run = CURRENT_RUN.run
    if run is not None:
        reader = reader_of(notation)
        run.count_cells(column[:MAX_NAME], reader.words, given, unread, reader.guess)


def count_guess(column: str, notation: str, given: int) -> None:
    """Count cells that were read by a guess; those of a column that decides its notation need no count."""
    if reader_of(notation).guess:
        count_cells(column, notation, given, 0)


def kind_error(column: str, notation: str, what: str) -> EvaluationError:
    """The error for a value that does not fit the kind of a column, which it names."""
    kind, fitting = describe_kind(kind_of_notation(notation))
    message = f"the column {column[:MAX_NAME]!r} is {kind}; {what}"
    return EvaluationError("run.column-kind", message, expected=fitting, fix="Compare it with a value of its kind.")


def unread_error(cell: object, notation: str, column: str) -> EvaluationError:
    """The error for a cell that is not of the kind of its column, where leaving it out would make the result wrong."""
    kind, _ = describe_kind(kind_of_notation(notation))
    return EvaluationError(
        "run.column-kind",
        f"the column {column[:MAX_NAME]!r} is {kind}; its cell {preview(cell)} cannot be read",
        expected=kind,
        fix="Correct the cell, or leave out the rows in which the column is not filled.",
    )


_VALUE_TYPES: dict[str, t.Type] = {"yes/no": t.BOOL, "date": t.DATE, "number": t.FLOAT, "money": t.FLOAT}


def notation_type(notation: str) -> t.Type:
    """The type of the cells of a notation, when they are read."""
    return t.DATETIME if notation == "datetime" else _VALUE_TYPES.get(kind_of_notation(notation), t.ANY)


def _value_type(given: CallTypes) -> t.Type:
    notation = given.constants.get("notation")
    found = notation_type(notation) if isinstance(notation, str) else t.ANY
    return t.ANY if "missing" in given.types else found


def _values_type(given: CallTypes) -> t.Type:
    return t.ListType(_value_type(given))


_cells = partial(library_function, "cells of tables", cost="constant")

CELL_FUNCTIONS = (
    _cells(
        "cell_matches",
        "Whether a cell compares so with a value in the kind of its column; written when a plan is bound.",
        signature("cell, op: text, value, notation: text, column: text", t.BOOL, cell_matches),
    ),
    _cells(
        "cell_value",
        "A cell as the bool, date or number that it says; written when a plan is bound.",
        signature("cell, notation: text, column: text, missing?", _value_type, _cell_value),
    ),
    _cells(
        "cell_values",
        "The cells of a list, without empty ones, as they are added up; written when a plan is bound.",
        signature("cells: list, notation: text, column: text", _values_type, _cell_values),
        cost="flat",
    ),
    _cells(
        "cell_order",
        "The key that puts a cell in order in the kind of its column; written when a plan is bound.",
        signature("cell, notation: text, column: text, last?: bool", t.ListType(t.ANY), _cell_order),
    ),
)
