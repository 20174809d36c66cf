"""The code of operators, with a short way for numbers and texts, which they are mostly applied to."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

from ._bounds import NUMBERS, WORK, charge, deep_cost, flat_cost
from ._calls import Code, Env
from ._operators import COMPARISONS, PLAIN, Operator, arithmetic

Holds = Callable[[Env, Any, Any], bool]

_PLAIN: dict[str, Operator] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""What Python itself compares, as it is meant."""
_LONG = 1024
"""Shorter texts are compared in no time."""
_SMALL = 1 << 60
"""Whatever one operator makes of whole numbers below this is within the limits."""


def binary(op: str, left: Code, right: Code, number: int | None = None, *, looped: bool) -> Code:
    """An operator of two values; inside loops the size of what it gives counts as work.

    `number` is what stands on the right, if it is written in the plan.
    """
    plain, operate = PLAIN[op], arithmetic(op)
    divides = op in ("/", "//", "%")

    def run(env: Env) -> Any:
        first = left(env)
        second = right(env) if number is None else number
        # Zeros to divide by, and what may become too large, are left to the operator itself.
        if (
            type(first) is type(second) is int
            and -_SMALL < first < _SMALL
            and -_SMALL < second < _SMALL
            and (second or not divides)
        ):
            value = plain(first, second)
        else:
            value = operate(first, second)
        if looped:
            env[WORK].spend(2 if type(value) in NUMBERS else deep_cost(value))
        elif type(value) not in NUMBERS:
            charge(flat_cost(value))
        return value

    return run


def unary(operate: Callable[[Any], Any], value: Code) -> Code:
    return lambda env: operate(value(env))


def logic(items: list[Code], *, stop: bool) -> Code:
    *most, last = items

    def run(env: Env) -> Any:
        for item in most:
            value = item(env)
            if bool(value) is stop:
                return value
        return last(env)

    return run


def comparison(op: str) -> Holds:
    holds = COMPARISONS[op]

    def run(env: Env, left: Any, right: Any) -> bool:
        charge(flat_cost(left) + flat_cost(right))
        return holds(left, right)

    return run


def counted_comparison(op: str) -> Holds:
    """The same inside a loop, where looking into lists is work."""
    holds = COMPARISONS[op]

    def run(env: Env, left: Any, right: Any) -> bool:
        # Looking for a number or text in a list is quick; looking into lists is not.
        cost = deep_cost(cast("object", left)) if isinstance(left, list | tuple | dict) else 0
        if cost or op in ("in", "not in"):
            env[WORK].spend(cost + (deep_cost(right) if cost else flat_cost(right) // 16))
        return holds(left, right)

    return run


def compare(first: Code, rest: list[tuple[str, Holds, Code]]) -> Code:
    if len(rest) == 1:
        return _compare_two(first, *rest[0])

    def run(env: Env) -> bool:
        left = first(env)
        for _, holds, code in rest:
            right = code(env)
            if not holds(env, left, right):
                return False
            left = right
        return True

    return run


def _compare_two(first: Code, op: str, holds: Holds, second: Code) -> Code:
    plain = _PLAIN.get(op)
    if plain is None:
        return lambda env: holds(env, first(env), second(env))

    def run(env: Env) -> bool:
        left, right = first(env), second(env)
        if type(left) in NUMBERS and type(right) in NUMBERS:
            return plain(left, right)
        if type(left) is str and type(right) is str:
            if len(left) > _LONG:
                charge(len(left) // _LONG)
            return plain(left, right)
        return holds(env, left, right)

    return run


def choose(condition: Code, then: Code, otherwise: Code) -> Code:
    return lambda env: then(env) if condition(env) else otherwise(env)
