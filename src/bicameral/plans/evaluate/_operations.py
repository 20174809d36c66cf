"""Operators on values, with Python's meaning, bounded sizes, and errors that say what to do."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from typing import Any, cast

from bicameral.errors import nearest_name
from bicameral.plans.evaluate._bounds import (
    MAX_BITS,
    MAX_TEXT,
    NUMBER_TYPES,
    EvaluationError,
    bad_value,
    check_length,
    check_size,
    preview,
    type_name,
)
from bicameral.plans.evaluate._library_scalars import DATE_FIELDS_BY_TYPE
from bicameral.plans.evaluate._values import align_time_zones, comparable_values, contains, is_equal, not_ordered_error
from bicameral.types import Table

Operator = Callable[[Any, Any], Any]

_LARGEST_NUMBER = 1 << MAX_BITS
_MAX_KEYS = 200
_ITERABLE_TYPES = (list, tuple, dict)

PYTHON_OPERATORS: dict[str, Operator] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right,
    "//": lambda left, right: left // right,
    "%": operator.mod,
}


def arithmetic_operator(op: str) -> Operator:
    """The operator `op` on any two values."""
    plain = PYTHON_OPERATORS[op]

    def run(left: Any, right: Any) -> Any:
        if type(left) in NUMBER_TYPES and type(right) in NUMBER_TYPES:
            try:
                result = plain(left, right)
            except ZeroDivisionError:
                raise _zero_division_error() from None
            except OverflowError:
                raise _number_too_large_error() from None
            # Infinity and "not a number" fail this comparison too.
            if -_LARGEST_NUMBER < result < _LARGEST_NUMBER:
                return result
            raise _number_too_large_error()
        return _operate_on_others(op, plain, left, right)

    return run


_add = arithmetic_operator("+")


def _zero_division_error() -> EvaluationError:
    return EvaluationError("run.division-by-zero", "division by zero", fix="Test the divisor first: `if n != 0:`.")


def _number_too_large_error() -> EvaluationError:
    return EvaluationError("run.too-large", "the number is too large")


def _operate_on_others(op: str, plain: Operator, left: Any, right: Any) -> Any:
    if isinstance(left, dt.date | dt.timedelta) or isinstance(right, dt.date | dt.timedelta):
        return _operate_on_dates(op, plain, left, right)
    if op == "+" and isinstance(left, str) and isinstance(right, str):
        check_length("the text", len(left) + len(right), MAX_TEXT)
        return left + right
    if op == "+" and isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return check_size([*cast("list[Any]", left), *cast("list[Any]", right)])
    if op == "*" and isinstance(left, int):
        left, right = right, left
    if op == "*" and isinstance(right, int) and isinstance(left, str | list | tuple):
        return _repeat(cast("Any", left), right)
    raise _operator_error(op, cast("object", left), right)


def _repeat(value: Any, times: int) -> Any:
    limit = MAX_TEXT if isinstance(value, str) else 1_000_000
    check_length("the result of '*'", len(value) * max(times, 0), limit)
    return value * times if isinstance(value, str) else check_size(list(value) * times)


def _operate_on_dates(op: str, plain: Operator, left: Any, right: Any) -> Any:
    if isinstance(left, dt.datetime) and isinstance(right, dt.datetime):
        left, right = align_time_zones((left, right))
    if isinstance(left, dt.datetime) != isinstance(right, dt.datetime) and not (
        isinstance(left, dt.timedelta) or isinstance(right, dt.timedelta)
    ):
        raise _operator_error(op, left, right)
    try:
        return plain(left, right)
    except ZeroDivisionError:
        raise _zero_division_error() from None
    except OverflowError:
        raise EvaluationError("run.too-large", "the date or timedelta is beyond the years 1 to 9999") from None
    except (TypeError, ValueError):
        raise _operator_error(op, left, right) from None


def _operator_error(op: str, left: object, right: object) -> EvaluationError:
    kinds = type_name(left), type_name(right)
    fix = None
    if op == "+" and "str" in kinds:
        fix = 'Use an f-string: f"{a} {b}".'
    elif op == "%" and kinds[0] == "str":
        fix = "Use an f-string."
    return bad_value(f"{preview(left)} {op} {preview(right)} has no meaning", [left, right], fix=fix)


def negate(value: Any) -> Any:
    if isinstance(value, int | float):
        return -value
    if isinstance(value, dt.timedelta):
        try:
            return -value
        except OverflowError:
            raise _number_too_large_error() from None
    raise bad_value(f"{preview(value)} has no negative", [value])


def _order_comparison(plain: Operator) -> Operator:
    def run(left: Any, right: Any) -> bool:
        if type(left) in NUMBER_TYPES and type(right) in NUMBER_TYPES:
            return plain(left, right)
        try:
            first, second = comparable_values((left, right))
            return plain(first, second)
        except TypeError:
            raise not_ordered_error((left, right)) from None

    return run


COMPARISONS: dict[str, Operator] = {
    "==": is_equal,
    "!=": lambda left, right: not is_equal(left, right),
    "<": _order_comparison(operator.lt),
    "<=": _order_comparison(operator.le),
    ">": _order_comparison(operator.gt),
    ">=": _order_comparison(operator.ge),
    "in": lambda left, right: contains(right, left),
    "not in": lambda left, right: not contains(right, left),
}


def get_field(value: Any, field: str) -> Any:
    """`value.field`: a key of a dict or a listed field of a date. No other attribute of Python is reachable."""
    if isinstance(value, dict):
        try:
            return cast("dict[str, Any]", value)[field]
        except KeyError:
            raise _no_field_error(field, cast("dict[str, Any]", value)) from None
    classes = (each for each in type(value).__mro__ if each in DATE_FIELDS_BY_TYPE)
    if field in DATE_FIELDS_BY_TYPE.get(next(classes, object), ()):
        return getattr(value, field)
    if isinstance(value, list | tuple):
        fix = f"Take one item, or all: [item.{field} for item in xs]."
        raise bad_value(f"a list has no field {field!r}", [], fix=fix)
    raise bad_value(f"{preview(value)} has no field {field!r}", [value])


def _no_field_error(field: str, entries: dict[str, Any]) -> EvaluationError:
    known = [key for key, _ in zip(entries, range(_MAX_KEYS), strict=False)]
    return EvaluationError("run.no-field", f"there is no {preview(field)}", nearest=nearest_name(field[:100], known))


def get_item(value: Any, at: Any) -> Any:
    """`value[at]` for lists, texts and dicts."""
    if type(value) is Table:
        if type(at) is int and -len(value) <= at < len(value):
            return value.take([at]).rows()[0]
        value = [None] * len(value)
    if isinstance(value, dict):
        if not isinstance(at, str):
            raise bad_value(f"the key of a dict is text, not {preview(at)}", [at], fix="Use str(key).")
        try:
            return cast("dict[str, Any]", value)[at]
        except KeyError:
            raise _no_field_error(at, cast("dict[str, Any]", value)) from None
    if not isinstance(value, list | tuple | str):
        raise bad_value(f"{preview(value)} has no items", [value])
    items = cast("list[Any]", value)
    if not isinstance(at, int):
        raise bad_value(
            f"{preview(at)} is not a position in {preview(items)}", [at], fix="Positions are whole numbers."
        )
    if not items and not isinstance(value, str):
        # Not `run.index`: nothing was found, which is an answer to many requests and no fault of the plan's numbers.
        raise EvaluationError(
            "run.empty", "nothing was found: the list is empty", fix="Use first(xs) or test `if xs:`."
        )
    if not -len(items) <= at < len(items):
        raise EvaluationError(
            "run.index", f"there is no item {preview(at)}: {preview(items)}", fix="Use first(xs) or test len(xs) first."
        )
    return items[at]


def get_slice(value: Any, start: Any, stop: Any, step: Any) -> Any:
    """`value[start:stop:step]` for lists and texts; a part of a table is a table."""
    if not isinstance(value, list | tuple | str | Table):
        raise bad_value(f"{preview(value)} has no parts to slice", [value])
    for bound in (start, stop, step):
        if bound is not None and not isinstance(bound, int):
            raise bad_value(f"{preview(bound)} is not a position", [], fix="Positions in a slice are whole numbers.")
    if step == 0:
        raise EvaluationError("run.index", "the step of a slice cannot be 0")
    if isinstance(value, Table):
        return value.cut(start, stop, step)
    return cast("list[Any]", value)[start:stop:step]


def iterable_items(value: Any) -> Any:
    """What a `for` goes over: the items of a list or the keys of a dict."""
    if isinstance(value, _ITERABLE_TYPES):
        return cast("Any", value)
    if isinstance(value, str):
        raise bad_value("a text is not a list", [], fix="Use text.splitlines(), text.split() or list(text).")
    raise bad_value(f"{preview(value)} is not a list", [value])


def unpack_item(item: Any, count: int) -> Any:
    """The parts of an item for `for a, b in xs`."""
    if not isinstance(item, list | tuple):
        raise bad_value(
            f"{preview(item)} has no {count} parts", [item], fix="Go over d.items() for the pairs of a dict."
        )
    parts = cast("list[Any]", item)
    if len(parts) != count:
        raise EvaluationError("run.unpack", f"an item has {len(parts)} parts, not {count}")
    return parts


def apply_update(op: str, current: Any, key: Any, value: Any) -> Any:
    """The new value of a variable after an update; the old value is not changed, since other variables may share it."""
    match op:
        case "append" if isinstance(current, list):
            items = cast("list[Any]", current)
            check_length("the list", len(items) + 1)
            return _check_size_sometimes([*items, check_size(value)], len(items) + 1)
        case "put" if isinstance(current, dict):
            if not isinstance(key, str):
                raise bad_value(f"the key of a dict is text, not {preview(key)}", [key], fix="Use str(key).")
            entries = cast("dict[str, Any]", current) | {key: check_size(value)}
            check_length("the dict", len(entries))
            return _check_size_sometimes(entries, len(entries))
        case "put" if isinstance(current, list):
            items = list(cast("list[Any]", current))
            get_item(items, key)
            items[key] = check_size(value)
            return check_size(items)
        case "add":
            return _add(current, value)
        case _:
            verb = "append to" if op == "append" else "put a value into"
            raise bad_value(f"cannot {verb} {preview(current)}", [current], fix="Begin with `xs = []` or `d = {}`.")


def _check_size_sometimes(container: Any, length: int) -> Any:
    """Check the size at lengths 1, 2, 4, 8, …: a loop of appends stays linear, and doubling is still stopped."""
    return check_size(container) if length & (length - 1) == 0 else container
