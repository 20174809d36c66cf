"""Cells of tables: how two cells compare, what sorts before what, which are the same, and how they add up.

Everything is done in the kind of the column. A column of plain numbers, truth values, ISO dates or texts is compared as
it is; a column in another notation is read first. A comparison that cannot match anything is an error with the column's
kind, and not an empty result.
"""

from __future__ import annotations

import datetime as dt
import json
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Any, Literal, cast

from bicameral.columns import (
    Amount,
    Column,
    DecimalMark,
    add_amounts,
    find_column_kind,
    parse_amount,
    parse_date,
    parse_number,
)
from bicameral.errors import Place, ToolError

CompareOp = Literal["==", "!=", "<", "<=", ">", ">=", "contains"]
Aggregate = Literal["sum", "mean", "min", "max", "count"]

SUM_DIGITS = 700
"""Enough to add the largest and the smallest possible number exactly."""

_ORDER_OPS: dict[CompareOp, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison_value(cells: Iterable[object], value: object) -> object:
    """The value to compare a column with: a text that is a number becomes one if the column has numbers."""
    number = parse_number(value) if isinstance(value, str) else None
    return value if number is None or not any(map(_is_number, cells)) else number


def cell_matches(cell: object, op: CompareOp, value: object) -> bool:
    """Whether the comparison holds; values that cannot be compared are unequal, and neither is less."""
    if op == "contains":
        return _contains(cell, value)
    pair = _comparable_pair(cell, value)
    if pair is None:
        return op == "!="
    if op == "==" or op == "!=":
        return (pair[0] == pair[1]) == (op == "==")
    return cell is not None and _ORDER_OPS[op](*pair)


def _contains(cell: object, value: object) -> bool:
    if isinstance(cell, list):
        return any(cell_matches(item, "==", value) for item in cast("list[object]", cell))
    return cell is not None and cell_as_text(value).casefold() in cell_as_text(cell).casefold()


def _comparable_pair(cell: object, value: object) -> tuple[Any, Any] | None:
    """Both sides with one type: as numbers if one is a number and the other can be, otherwise as texts."""
    if cell is None or value is None:
        return (cell, value) if cell is value else None
    if _is_number(cell) or _is_number(value):
        left, right = cell_as_number(cell), cell_as_number(value)
        return None if left is None or right is None else (left, right)
    if isinstance(cell, bool) != isinstance(value, bool):
        return cell_as_text(cell).strip().lower(), cell_as_text(value).strip().lower()
    return cell_as_text(cell), cell_as_text(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def cell_as_number(value: object) -> Decimal | None:
    """The exact decimal number as written (0.1 is 0.1), or None if the cell is not a number."""
    if isinstance(value, str):
        return None if parse_number(value) is None else Decimal(value.strip())
    return Decimal(str(value)) if _is_number(value) else None


def cell_as_text(value: object) -> str:
    """A cell as text; dates in ISO form, so that texts sort by time."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case dt.date() | dt.time():
            return value.isoformat()
        case list() | dict():
            return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
        case _:
            return str(value)


def sort_key(value: object) -> tuple[int, Decimal, str]:
    """A sort key for cells of mixed types: false and true first, then numbers, then texts."""
    if isinstance(value, bool):
        return (0, Decimal(value), "")
    if _is_number(value):
        return (1, Decimal(str(value)), "")
    return (2, Decimal(0), cell_as_text(value))


def group_key(value: object) -> tuple[int, Decimal, str]:
    """The key that equal cells share in grouping and joining: 7 and "7" are equal, 7 and "007" are not."""
    number = parse_number(value) if isinstance(value, str) else None
    return sort_key(value if number is None else number)


def is_empty_cell(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def aggregate_cells(cells: Iterable[object], how: Aggregate, column: str) -> Any:
    """One value for a column; empty cells are ignored, except that `count` counts all."""
    cells = list(cells)
    if how == "count":
        return len(cells)
    filled = [cell for cell in cells if not is_empty_cell(cell)]
    if how in ("min", "max"):
        return (min if how == "min" else max)(filled, key=group_key, default=None)
    numbers = [_number_to_add(cell, column) for cell in filled]
    if how == "mean" and not numbers:
        return None
    with localcontext() as context:
        context.prec = SUM_DIGITS
        total = sum(numbers, Decimal(0))
        return plain_number(total / len(numbers) if how == "mean" else total)


def _number_to_add(value: object, column: str) -> Decimal:
    number = cell_as_number(value)
    if number is None:
        raise _not_a_number_error(value, column)
    return number


def _not_a_number_error(value: object, column: str) -> ToolError:
    return ToolError(
        "tables.not-a-number",
        f"{cell_as_text(value)[:60]!r} in the column {column!r} is not a number",
        expected="numbers to add up",
    )


def plain_number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


# -- in the kind of a column

SortKey = tuple[int, Decimal, str]
_UNREAD_LAST = 3
_OP_WORDS: dict[CompareOp, str] = {
    "==": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
    "contains": "contains",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of the cells of a column with a value.

    Args:
        matches: Whether a cell is kept.
        words: The comparison in plain words, such as `paid is no`.
        unread: How many cells cannot be compared, because they are not of the column's kind.
        guess: How the cells were read, if nothing decides how they are meant.
    """

    matches: Callable[[object], bool]
    words: str
    unread: int = 0
    guess: str = ""


def compare_with_column(
    cells: list[object],
    name: str,
    op: CompareOp,
    value: object,
    decimals: DecimalMark | None = None,
    known: Column | None = None,
) -> Comparison:
    """The comparison of a column with a value, in the column's kind.

    Args:
        cells: All cells of the column: together they decide the notation.
        name: The name of the column, for messages.
        op: How to compare.
        value: The value of the plan. `False` means *no* in a column of yes and no.
        decimals: The mark before decimals where no cell decides it.
        known: The kind of the column, if it was found before; then the different cells are enough.

    Example:
        >>> compare_with_column(["ja", "nein"], "paid", "==", False).words
        'paid is no'
    """
    words = f"{name} {_OP_WORDS[op]} {_value_words(value)}"
    column = _column_of_bits(cells) if isinstance(value, bool) else None
    column = column or known or find_column_kind(cells, decimals)
    if op == "contains" or not _is_scalar(value) or column.kind in ("empty", "mixed"):
        return _compare_cells(cells, words, op, value)
    if column.kind == "text":
        if isinstance(value, bool) and not any(cell_matches(cell, "==", value) for cell in cells):
            raise _kind_error(column, name, value)
        return _compare_cells(cells, words, op, value)
    if column.plain and column.kind == "number":
        return replace(_compare_cells(cells, words, op, value), unread=column.unread)
    wanted = _wanted_value(column, name, op, value)
    if wanted is _AS_WRITTEN:
        return _compare_cells(cells, words, op, value)
    if isinstance(wanted, bool):
        words = f"{name} {_OP_WORDS[op]} {'yes' if wanted else 'no'}"
    if column.plain:
        return replace(_compare_cells(cells, words, op, wanted), unread=column.unread)
    holds = _amount_test(op, wanted, column) if isinstance(wanted, Amount) else _value_test(op, wanted)

    def matches(cell: object) -> bool:
        # A blank is a value only where it stands for "no", beside ticks.
        found = None if is_empty_cell(cell) and not column.blank_is_no else column.reads(cell)
        return op == "!=" if found is None else holds(found)

    return Comparison(matches, words, column.unread, guess_words(column, name))


def _is_scalar(value: object) -> bool:
    """Whether a value can have a kind; None, a list and a record are compared as they are."""
    return value is not None and not isinstance(value, list | dict)


def _compare_cells(cells: list[object], words: str, op: CompareOp, value: object) -> Comparison:
    """The comparison with the cells as they are."""
    wanted = comparison_value(cells, value)
    return Comparison(lambda cell: cell_matches(cell, op, wanted), words)


def _value_test(op: CompareOp, wanted: object) -> Callable[[Any], bool]:
    return lambda found: cell_matches(found, op, wanted)


def _amount_test(op: CompareOp, wanted: Amount, column: Column) -> Callable[[Any], bool]:
    def holds(found: Amount) -> bool:
        if wanted.unit and found.unit != wanted.unit and (found.unit or column.units != (wanted.unit,)):
            return op == "!="
        if op in ("==", "!="):
            return (found.number == wanted.number) == (op == "==")
        return _ORDER_OPS[op](found.number, wanted.number)

    return holds


_AS_WRITTEN: Any = object()
"""The value is compared with the texts of the cells."""


def _wanted_value(column: Column, name: str, op: CompareOp, value: object) -> Any:
    """The value in the column's kind; `_AS_WRITTEN` for a word to look for; an error if nothing could match it."""
    wanted: object = None
    match column.kind:
        case "yes/no":
            wanted = value if isinstance(value, bool) else column.reads(value) if isinstance(value, str) else None
        case "date":
            wanted = value if column.plain and isinstance(value, dt.date) else column.reads(value)
            if isinstance(value, str) and column.plain:
                # An ISO column has no order of day and month that could decide how the value is meant.
                day = parse_date(value)
                wanted = value if wanted is None or day is None else wanted
                if day is None and column.reads(value) is not None:
                    raise _ambiguous_value_error(name, value)
        case "number" | "money":
            wanted = _wanted_amount(column, name, value)
        case _:
            pass
    if wanted is not None:
        return wanted
    if isinstance(value, str) and op in ("==", "!="):
        return _AS_WRITTEN
    raise _kind_error(column, name, value)


def _wanted_amount(column: Column, name: str, value: object) -> Amount | None:
    amount: Amount | None = None
    if _is_number(value):
        amount = Amount(Decimal(str(value)))
    elif isinstance(value, str):
        # A plan writes numbers as Python does, so that this notation is tried first if it is the whole text.
        plain = parse_number(value)
        amount = Amount(Decimal(value.strip())) if plain is not None else column.reads(value)
        if amount is None:
            readings = {found for mark in (".", ",") if (found := parse_amount(value, mark)) is not None}
            amount = readings.pop() if len(readings) == 1 else None
    if amount is None:
        return None
    if not amount.unit and len(column.units) > 1:
        raise _mixed_currencies_error(name, column.units)
    if amount.unit and amount.unit not in column.units:
        raise _kind_error(column, name, value)
    return amount


def guess_words(column: Column, name: str) -> str:
    """How a column was read by a guess, with its name; empty if nothing was guessed."""
    return f"in {name}, {column.guess}" if column.guess else ""


def order_key(
    cells: list[object], name: str, decimals: DecimalMark | None = None, known: Column | None = None
) -> tuple[Callable[[object], SortKey], str]:
    """The sort key of the cells of a column, in its kind, and how they were guessed; what cannot be read comes last."""
    column = known or find_column_kind(cells, decimals)
    if column.kind == "ambiguous":
        raise _kind_error(column, name)
    if len(column.units) > 1:
        raise _mixed_currencies_error(name, column.units)
    if column.plain:
        return sort_key, ""

    def key(cell: object) -> SortKey:
        found = column.reads(cell)
        return (_UNREAD_LAST, Decimal(0), cell_as_text(cell)) if found is None else _key_of(found, column)

    return key, guess_words(column, name)


def column_key(
    cells: Iterable[object], decimals: DecimalMark | None = None, known: Column | None = None
) -> Callable[[object], SortKey]:
    """The key that equal cells of a column share, in grouping and joining: `1.3.2026` and `2026-03-01` are equal."""
    column = known or find_column_kind(cells, decimals)
    # Equal texts are equal in each reading, so that a guess makes no difference here.
    if column.plain or column.kind == "ambiguous":
        return group_key

    def key(cell: object) -> SortKey:
        found = None if is_empty_cell(cell) and not column.blank_is_no else column.reads(cell)
        return group_key(cell) if found is None else _key_of(found, column)

    return key


def _key_of(found: Any, column: Column) -> SortKey:
    """The key of a cell that was read; the same as that of a native cell with its value."""
    if isinstance(found, Amount):
        return (1, found.number, found.unit or (column.units[0] if len(column.units) == 1 else ""))
    return sort_key(found)


def aggregate_column(
    cells: list[object], how: Aggregate, name: str, decimals: DecimalMark | None = None, known: Column | None = None
) -> tuple[Callable[[Iterable[object]], Any], str]:
    """What aggregates some cells of a column, and how they were guessed.

    Amounts in several currencies are refused, never added.
    """
    column = Column("mixed") if how == "count" else known or find_column_kind(cells, decimals)
    if column.kind == "ambiguous":
        raise _kind_error(column, name)
    if column.plain or column.kind not in ("number", "money", "date"):
        return (lambda some: aggregate_cells(some, how, name)), ""
    if column.kind == "date":
        if how in ("min", "max"):
            choose = min if how == "min" else max
            return lambda some: choose(
                (cell for cell in some if column.reads(cell)), key=lambda cell: column.reads(cell), default=None
            ), ""
        raise _kind_error(column, name)
    return (lambda some: _aggregate_amounts(some, how, name, column)), guess_words(column, name)


def _aggregate_amounts(cells: Iterable[object], how: Aggregate, name: str, column: Column) -> Any:
    amounts: list[Amount] = []
    for cell in cells:
        if not is_empty_cell(cell):
            amount = column.reads(cell)
            if amount is None:
                # Left out silently, it would make the total wrong.
                raise _not_a_number_error(cell, name)
            amounts.append(amount)
    try:
        total = add_amounts(amounts)
    except ValueError:
        raise _mixed_currencies_error(name, column.units) from None
    if how == "sum":
        return plain_number(total)
    if not amounts:
        return None
    if how == "mean":
        with localcontext() as context:
            context.prec = SUM_DIGITS
            return plain_number(total / len(amounts))
    return plain_number((min if how == "min" else max)(amount.number for amount in amounts))


def _column_of_bits(cells: list[object]) -> Column | None:
    """A column of 1 and 0, both of which occur. That it is compared with a truth value says that it holds some."""
    bits = {cell for cell in cells if not is_empty_cell(cell)} if set(map(type, cells)) <= _BIT_TYPES else set[object]()
    if bits != {0, 1}:
        return None
    return Column("yes/no", len(cells), plain=False, reads=lambda cell: None if cell is None else bool(cell))


_BIT_TYPES = {int, type(None)}


def _value_words(value: object) -> str:
    return repr(value[:80]) if isinstance(value, str) else cell_as_text(value)[:80]


def _kind_error(column: Column, name: str, value: object = None) -> ToolError:
    against = "" if value is None else f"; {_value_words(value)} cannot be compared with it"
    return ToolError(
        "tables.column-kind",
        f"the column {name!r} is {column.description}{against}",
        place=Place(argument="column" if value is None else "value"),
        expected=column.fitting,
        fix=(
            "Write its cells in one notation that can be read in one way only."
            if column.kind == "ambiguous"
            else "Compare it with a value of its kind."
        ),
    )


def _ambiguous_value_error(name: str, value: str) -> ToolError:
    return ToolError(
        "tables.column-kind",
        f"{value[:40]!r} can be read as two days, and the column {name!r} does not say which",
        place=Place(argument="value"),
        expected="a date such as 2026-03-15",
        fix="Write the date as year-month-day.",
    )


def _mixed_currencies_error(name: str, units: tuple[str, ...]) -> ToolError:
    return ToolError(
        "tables.mixed-currencies",
        f"the column {name!r} has amounts in several currencies: {', '.join(units)}",
        expected="amounts in one currency",
        fix="Filter by the currency first, or compare with an amount that names one, such as '50 EUR'.",
    )
