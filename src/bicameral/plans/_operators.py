"""The operators of expressions on values: Python's meaning, bounded sizes, errors that say what to do."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from typing import Any, cast

from bicameral.errors import nearest

from ._bounds import MAX_BITS, MAX_TEXT, NUMBERS, check_length, weighed
from ._failure import EvaluationError, brief, kind_of, wrong
from ._library_dates import DATE_FIELDS, DURATION_FIELDS, TIME_FIELDS
from ._order import aligned, check_order, contains, equal, not_ordered

Operator = Callable[[Any, Any], Any]

LARGEST = 1 << MAX_BITS
_MOST_KEYS = 200
_TO_GO_OVER = (list, tuple, dict)

PLAIN: dict[str, Operator] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right,
    "//": lambda left, right: left // right,
    "%": operator.mod,
}


def arithmetic(op: str) -> Operator:
    """The operator `op` on any two values."""
    plain = PLAIN[op]

    def run(left: Any, right: Any) -> Any:
        if type(left) in NUMBERS and type(right) in NUMBERS:
            try:
                result = plain(left, right)
            except ZeroDivisionError:
                raise _by_zero() from None
            except OverflowError:
                raise _beyond() from None
            # Infinity and "not a number" fail this comparison too.
            if -LARGEST < result < LARGEST:
                return result
            raise _beyond()
        return _other(op, plain, left, right)

    return run


_added = arithmetic("+")


def _by_zero() -> EvaluationError:
    return EvaluationError("run.division-by-zero", "division by zero", fix="Test the divisor first: `if n != 0:`.")


def _beyond() -> EvaluationError:
    return EvaluationError("run.too-large", "the number is too large")


def _other(op: str, plain: Operator, left: Any, right: Any) -> Any:
    if isinstance(left, dt.date | dt.timedelta) or isinstance(right, dt.date | dt.timedelta):
        return _on_dates(op, plain, left, right)
    if op == "+" and isinstance(left, str) and isinstance(right, str):
        check_length("the text", len(left) + len(right), MAX_TEXT)
        return left + right
    if op == "+" and isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return weighed([*cast("list[Any]", left), *cast("list[Any]", right)])
    if op == "*" and isinstance(left, int):
        left, right = right, left
    if op == "*" and isinstance(right, int) and isinstance(left, str | list | tuple):
        return _repeated(cast("Any", left), right)
    raise _cannot(op, cast("object", left), right)


def _repeated(value: Any, times: int) -> Any:
    limit = MAX_TEXT if isinstance(value, str) else 1_000_000
    check_length("the result of '*'", len(value) * max(times, 0), limit)
    return value * times if isinstance(value, str) else weighed(list(value) * times)


def _on_dates(op: str, plain: Operator, left: Any, right: Any) -> Any:
    if isinstance(left, dt.datetime) and isinstance(right, dt.datetime):
        left, right = aligned((left, right))
    if isinstance(left, dt.datetime) != isinstance(right, dt.datetime) and not (
        isinstance(left, dt.timedelta) or isinstance(right, dt.timedelta)
    ):
        raise _cannot(op, left, right)
    try:
        return plain(left, right)
    except ZeroDivisionError:
        raise _by_zero() from None
    except OverflowError:
        raise EvaluationError("run.too-large", "the date or timedelta is beyond the years 1 to 9999") from None
    except (TypeError, ValueError):
        raise _cannot(op, left, right) from None


def _cannot(op: str, left: object, right: object) -> EvaluationError:
    kinds = kind_of(left), kind_of(right)
    fix = None
    if op == "+" and "str" in kinds:
        fix = 'Use an f-string: f"{a} {b}".'
    elif op == "%" and kinds[0] == "str":
        fix = "Use an f-string."
    return wrong(f"{brief(left)} {op} {brief(right)} has no meaning", [left, right], fix=fix)


def negative(value: Any) -> Any:
    if isinstance(value, int | float):
        return -value
    if isinstance(value, dt.timedelta):
        try:
            return -value
        except OverflowError:
            raise _beyond() from None
    raise wrong(f"{brief(value)} has no negative", [value])


def _ordered(plain: Operator) -> Operator:
    def run(left: Any, right: Any) -> bool:
        if type(left) in NUMBERS and type(right) in NUMBERS:
            return plain(left, right)
        try:
            first, second = check_order((left, right))
            return plain(first, second)
        except TypeError:
            raise not_ordered((left, right)) from None

    return run


def _unequal(left: Any, right: Any) -> bool:
    return not equal(left, right)


def _within(left: Any, right: Any) -> bool:
    return contains(right, left)


def _outside(left: Any, right: Any) -> bool:
    return not contains(right, left)


COMPARISONS: dict[str, Operator] = {
    "==": equal,
    "!=": _unequal,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": _within,
    "not in": _outside,
}


def get_field(value: Any, field: str) -> Any:
    """`value.field`: a key of a dict or one of the few fields of dates. Nothing else of Python can be reached."""
    if isinstance(value, dict):
        try:
            return cast("dict[str, Any]", value)[field]
        except KeyError:
            raise _no_field(field, cast("dict[str, Any]", value)) from None
    table = _fields_of(value)
    if field in table:
        return table[field](value)
    if isinstance(value, list | tuple):
        fix = f"Take one item, or all: [item.{field} for item in xs]."
        raise wrong(f"a list has no field {field!r}", [], fix=fix)
    raise wrong(f"{brief(value)} has no field {field!r}", [value])


def _fields_of(value: object) -> dict[str, Callable[[Any], int]]:
    match value:
        case dt.datetime():
            return DATE_FIELDS | TIME_FIELDS
        case dt.date():
            return DATE_FIELDS
        case dt.time():
            return TIME_FIELDS
        case dt.timedelta():
            return DURATION_FIELDS
        case _:
            return {}


def _no_field(field: str, entries: dict[str, Any]) -> EvaluationError:
    known = [key for key, _ in zip(entries, range(_MOST_KEYS), strict=False)]
    return EvaluationError("run.no-field", f"there is no {brief(field)}", nearest=nearest(field[:100], known))


def get_item(value: Any, at: Any) -> Any:
    """`value[at]` for lists, texts and dicts."""
    if isinstance(value, dict):
        if not isinstance(at, str):
            raise wrong(f"the key of a dict is text, not {brief(at)}", [at], fix="Use str(key).")
        try:
            return cast("dict[str, Any]", value)[at]
        except KeyError:
            raise _no_field(at, cast("dict[str, Any]", value)) from None
    if not isinstance(value, list | tuple | str):
        raise wrong(f"{brief(value)} has no items", [value])
    items = cast("list[Any]", value)
    if not isinstance(at, int):
        raise wrong(f"{brief(at)} is not a position in {brief(items)}", [at], fix="Positions are whole numbers.")
    if not -len(items) <= at < len(items):
        raise EvaluationError(
            "run.index",
            f"there is no item {brief(at)}: {brief(items)}",
            fix="Use first(xs) or test len(xs) first.",
        )
    return items[at]


def get_slice(value: Any, start: Any, stop: Any, step: Any) -> Any:
    """`value[start:stop:step]` for lists and texts."""
    if not isinstance(value, list | tuple | str):
        raise wrong(f"{brief(value)} has no parts to slice", [value])
    for bound in (start, stop, step):
        if bound is not None and not isinstance(bound, int):
            raise wrong(f"{brief(bound)} is not a position", [], fix="Positions in a slice are whole numbers.")
    if step == 0:
        raise EvaluationError("run.index", "the step of a slice cannot be 0")
    return cast("Any", value[start:stop:step])


def items_to_go_over(value: Any) -> Any:
    """What a `for` goes over: the items of a list or the keys of a dict."""
    if isinstance(value, _TO_GO_OVER):
        return cast("Any", value)
    if isinstance(value, str):
        raise wrong("a text is not a list", [], fix="Use text.splitlines(), text.split() or list(text).")
    raise wrong(f"{brief(value)} is not a list", [value])


def unpacked(item: Any, count: int) -> Any:
    """The parts of an item for `for a, b in xs`."""
    if not isinstance(item, list | tuple):
        raise wrong(f"{brief(item)} has no {count} parts", [item], fix="Go over d.items() for the pairs of a dict.")
    parts = cast("list[Any]", item)
    if len(parts) != count:
        raise EvaluationError("run.unpack", f"an item has {len(parts)} parts, not {count}")
    return parts


def updated(op: str, current: Any, key: Any, value: Any) -> Any:
    """The new value of a variable after an update; the old one stays as it is, whoever else holds it."""
    match op:
        case "append" if isinstance(current, list):
            items = cast("list[Any]", current)
            check_length("the list", len(items) + 1)
            return _weighed_now_and_then([*items, weighed(value)], len(items) + 1)
        case "put" if isinstance(current, dict):
            if not isinstance(key, str):
                raise wrong(f"the key of a dict is text, not {brief(key)}", [key], fix="Use str(key).")
            entries = cast("dict[str, Any]", current) | {key: weighed(value)}
            check_length("the dict", len(entries))
            return _weighed_now_and_then(entries, len(entries))
        case "put" if isinstance(current, list):
            items = list(cast("list[Any]", current))
            get_item(items, key)
            items[key] = weighed(value)
            return weighed(items)
        case "add":
            return _added(current, value)
        case _:
            verb = "append to" if op == "append" else "put a value into"
            raise wrong(f"cannot {verb} {brief(current)}", [current], fix="Begin with `xs = []` or `d = {}`.")


def _weighed_now_and_then(container: Any, length: int) -> Any:
    """Weighing at lengths 1, 2, 4, 8, … keeps a loop of appends linear and still stops what doubles."""
    return weighed(container) if length & (length - 1) == 0 else container
