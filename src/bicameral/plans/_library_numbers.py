"""Library functions on numbers and truth values."""

from __future__ import annotations

import datetime as dt
from typing import Any

from bicameral.types import ANY, BOOL, DURATION, FLOAT, INT, AnyType, Type

from ._bounds import bounded_number
from ._failure import EvaluationError, brief
from ._function import Cost, Function, Given, Signature, may, need
from ._kinds import ANYTHING, DURATION_KIND, DURATIONS, INTEGER, MANY, NUMBER, NUMBERS, TEXT, item_of

_MOST_DIGITS = 400


def _as_int(value: Any) -> int:
    if not isinstance(value, str):
        return bounded_number(int(value))
    try:
        return bounded_number(int(_number_text(value)))
    except ValueError:
        fix = "Use float(x) for a number with a decimal point." if "." in value else None
        raise EvaluationError("run.not-a-number", f"{brief(value)} is not a whole number", fix=fix) from None


def _as_float(value: Any) -> float:
    if not isinstance(value, str):
        return float(value)
    try:
        number = float(_number_text(value))
    except ValueError:
        number = float("nan")
    if number != number or number in (float("inf"), float("-inf")):
        raise EvaluationError(
            "run.not-a-number", f"{brief(value)} is not a number", fix="Strip signs like '$' and ',' first."
        )
    return number


def _number_text(text: str) -> str:
    if len(text) > _MOST_DIGITS:
        raise EvaluationError("run.not-a-number", f"a text of {len(text):,} characters is not a number")
    return text


def _round(value: Any, digits: int | None = None) -> Any:
    if digits is not None and abs(digits) > _MOST_DIGITS:
        raise EvaluationError("run.too-large", f"cannot round to {brief(digits)} digits")
    return bounded_number(round(value, digits))


def _sum(xs: list[Any], start: Any = None) -> Any:
    zero = dt.timedelta(0) if xs and isinstance(xs[0], dt.timedelta) else 0
    total = +sum(xs, zero if start is None else start)  # '+' makes a lone bool a number
    return total if isinstance(total, dt.timedelta) else bounded_number(total)


def _mean(xs: list[Any]) -> Any:
    if not xs:
        raise EvaluationError("run.empty", "an empty list has no mean", fix="Test `if xs:` first.")
    return _sum(xs) / len(xs)


def _same_number(given: Given) -> Type:
    return INT if given["x"] == BOOL else given["x"]


def _rounded(given: Given) -> Type:
    return _same_number(given) if "digits" in given.types else INT


def _sum_type(given: Given) -> Type:
    types = [item_of(given["xs"]), *([given["start"]] if "start" in given.types else [])]
    if any(isinstance(type_, AnyType) for type_ in types):
        return ANY
    return FLOAT if FLOAT in types else INT


def _function(name: str, doc: str, *signatures: Signature, cost: Cost = "constant") -> Function:
    return Function(name, doc, "numbers and truth", signatures, cost=cost)


_XS = need("xs", MANY)

NUMBER_FUNCTIONS: tuple[Function, ...] = (
    _function(
        "abs",
        "Without its sign.",
        Signature((need("x", NUMBER),), _same_number, abs),
        Signature((need("x", DURATION_KIND),), DURATION, abs),
    ),
    _function(
        "round",
        "The nearest whole number, or with so many digits after the point.",
        Signature((need("x", NUMBER), may("digits", INTEGER)), _rounded, _round),
    ),
    _function(
        "sum",
        "All numbers (or timedeltas) of a list together.",
        Signature((need("xs", NUMBERS), may("start", NUMBER)), _sum_type, _sum),
        Signature((need("xs", DURATIONS),), DURATION, _sum),
        cost="flat",
    ),
    _function(
        "mean",
        "The arithmetic mean of a list of numbers.",
        Signature((need("xs", NUMBERS),), FLOAT, _mean),
        Signature((need("xs", DURATIONS),), DURATION, _mean),
        cost="flat",
    ),
    _function(
        "int",
        "A text or number as a whole number.",
        Signature((need("x", TEXT),), INT, _as_int),
        Signature((need("x", NUMBER),), INT, _as_int),
    ),
    _function(
        "float",
        "A text or number as a number with a fraction.",
        Signature((need("x", TEXT),), FLOAT, _as_float),
        Signature((need("x", NUMBER),), FLOAT, _as_float),
    ),
    _function("bool", "Whether a value is not empty, zero or None.", Signature((need("x", ANYTHING),), BOOL, bool)),
    _function("any", "Whether at least one value of a list is true.", Signature((_XS,), BOOL, any), cost="flat"),
    _function("all", "Whether every value of a list is true.", Signature((_XS,), BOOL, all), cost="flat"),
)
