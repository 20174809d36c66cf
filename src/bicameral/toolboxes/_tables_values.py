"""Compare and add up cells of any kind without ever failing on a mixture of them."""

from __future__ import annotations

import datetime as dt
import json
import operator
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from typing import Any, Literal, cast

from bicameral.errors import ToolError

from ._tables_csv import number

Op = Literal["==", "!=", "<", "<=", ">", ">=", "contains"]
How = Literal["sum", "mean", "min", "max", "count"]

_DIGITS = 700
"""Enough to add the largest and the smallest number there is without losing a digit."""

_ORDER: dict[Op, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def meant(cells: Iterable[object], value: object) -> object:
    """The value to compare a column with: where the column has numbers, a text that is a number is that number."""
    found = number(value) if isinstance(value, str) else None
    return value if found is None or not any(map(_is_number, cells)) else found


def holds(cell: object, op: Op, value: object) -> bool:
    """Whether a cell compares so with a value; what cannot be compared is different and neither less nor more."""
    if op == "contains":
        return _contains(cell, value)
    pair = _alike(cell, value)
    if pair is None:
        return op == "!="
    if op == "==" or op == "!=":
        return (pair[0] == pair[1]) == (op == "==")
    return cell is not None and _ORDER[op](*pair)


def _contains(cell: object, value: object) -> bool:
    if isinstance(cell, list):
        return any(holds(each, "==", value) for each in cast("list[object]", cell))
    return cell is not None and as_text(value).casefold() in as_text(cell).casefold()


def _alike(cell: object, value: object) -> tuple[Any, Any] | None:
    """Both sides as one kind: numbers with numbers (and texts that are numbers), everything else as text."""
    if cell is None or value is None:
        return (cell, value) if cell is value else None
    if _is_number(cell) or _is_number(value):
        left, right = as_number(cell), as_number(value)
        return None if left is None or right is None else (left, right)
    if isinstance(cell, bool) != isinstance(value, bool):
        return as_text(cell).strip().lower(), as_text(value).strip().lower()
    return as_text(cell), as_text(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_number(value: object) -> Decimal | None:
    """A number exactly as people see it (0.1 is 0.1), or None for what is none."""
    if isinstance(value, str):
        found = number(value)
        return None if found is None else Decimal(value.strip())
    return Decimal(str(value)) if _is_number(value) else None


def as_text(value: object) -> str:
    """A cell as text; dates in ISO form, so that the order of the texts is the order in time."""
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


def rank(value: object) -> tuple[int, Decimal, str]:
    """A sort key for any mixture: false and true, numbers, texts."""
    if isinstance(value, bool):
        return (0, Decimal(value), "")
    if _is_number(value):
        return (1, Decimal(str(value)), "")
    return (2, Decimal(0), as_text(value))


def key(value: object) -> tuple[int, Decimal, str]:
    """What makes two cells the same in grouping and joining: 7 and "7" are, 7 and "007" are not."""
    found = number(value) if isinstance(value, str) else None
    return rank(value if found is None else found)


def is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def total(cells: Iterable[object], how: How, column: str) -> Any:
    """One value from many; empty cells do not count."""
    cells = list(cells)
    if how == "count":
        return len(cells)
    filled = [each for each in cells if not is_empty(each)]
    if how in ("min", "max"):
        return (min if how == "min" else max)(filled, key=key, default=None)
    numbers = [_addend(each, column) for each in filled]
    if how == "mean" and not numbers:
        return None
    with localcontext() as exact:
        exact.prec = _DIGITS
        added = sum(numbers, Decimal(0))
        return _plain(added / len(numbers) if how == "mean" else added)


def _addend(value: object, column: str) -> Decimal:
    found = as_number(value)
    if found is None:
        raise ToolError(
            "tables.not-a-number",
            f"{as_text(value)[:60]!r} in the column {column!r} is not a number",
            expected="numbers to add up",
        )
    return found


def _plain(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)
