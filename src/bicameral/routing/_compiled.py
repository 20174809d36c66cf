"""Conditions made into functions, once: testing a call then costs a few lookups and nothing is looked up by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from bicameral.models import ModelRequest

from ._conditions import And, Compared, Field, Is, Not, Operator, Or, Quantity, Tree
from ._context import Situation

Test: TypeAlias = Callable[[ModelRequest, Situation, str | None], bool]
"""Whether a condition holds for a request, in a situation, with this hint."""
Reading: TypeAlias = Callable[[ModelRequest, Situation], float]

CHARACTERS_PER_TOKEN = 4


def compiled(tree: Tree) -> Test:
    """A condition as a function."""
    match tree:
        case Is(field=field, word=word):
            return _is(field, word)
        case Compared(quantity=quantity, operator=sign, bound=bound):
            return _compared(quantity, sign, bound)
        case Not(part=part):
            return _negated(compiled(part))
        case And(parts=parts):
            return _all(tuple(compiled(part) for part in parts))
        case Or(parts=parts):
            return _any(tuple(compiled(part) for part in parts))


def prompt_tokens(request: ModelRequest) -> int:
    """About how many tokens a request is: a quarter of its characters. Nobody's tokenizer is asked."""
    characters = len(request.prefill)
    for message in request.messages:
        characters += len(message.text)
    return characters // CHARACTERS_PER_TOKEN


def _is(field: Field, word: str) -> Test:
    yes = word in ("yes", "trusted")
    match field:
        case "tools":
            return lambda request, here, hint: bool(request.tools) is yes
        case "schema":
            return lambda request, here, hint: (request.json_schema is not None) is yes
        case "label":
            # What nobody vouched for is not trusted.
            return lambda request, here, hint: (here.trusted is True) is yes
        case "chamber":
            return lambda request, here, hint: here.chamber == word
        case "hint":
            return lambda request, here, hint: hint == word
        case "role":
            return lambda request, here, hint: here.role == word
        case "phase":
            return lambda request, here, hint: here.phase == word


def _compared(quantity: Quantity, sign: Operator, bound: float) -> Test:
    """One call for each of the usual comparisons: this is what a router spends its time on."""
    if sign in ("==", "!="):
        return _equal(_READ[quantity], bound, sign == "==")
    # `a > b` is that `a <= b` is not so, and `a >= b` that `a < b` is not.
    below, yes = sign in ("<", ">="), sign in ("<", "<=")
    match quantity:
        case "message_count" if below:
            return lambda request, here, hint: (len(request.messages) < bound) is yes
        case "message_count":
            return lambda request, here, hint: (len(request.messages) <= bound) is yes
        case "failures" if below:
            return lambda request, here, hint: (here.failures < bound) is yes
        case "failures":
            return lambda request, here, hint: (here.failures <= bound) is yes
        case _:
            return _ordered(_READ[quantity], bound, below, yes)


def _equal(read: Reading, bound: float, yes: bool) -> Test:
    return lambda request, here, hint: (read(request, here) == bound) is yes


def _ordered(read: Reading, bound: float, below: bool, yes: bool) -> Test:
    if below:
        return lambda request, here, hint: (read(request, here) < bound) is yes
    return lambda request, here, hint: (read(request, here) <= bound) is yes


def _negated(test: Test) -> Test:
    return lambda request, here, hint: not test(request, here, hint)


def _all(tests: tuple[Test, ...]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda request, here, hint: first(request, here, hint) and second(request, here, hint)
    return lambda request, here, hint: all(test(request, here, hint) for test in tests)


def _any(tests: tuple[Test, ...]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda request, here, hint: first(request, here, hint) or second(request, here, hint)
    return lambda request, here, hint: any(test(request, here, hint) for test in tests)


def _time_left(request: ModelRequest, here: Situation) -> float:
    """What is left of the whole, or for this one call if that is less."""
    left, timeout = here.seconds_left, request.timeout
    if left is None:
        return math.inf if timeout is None else timeout
    return left if timeout is None or left < timeout else timeout


_READ: dict[Quantity, Reading] = {
    "message_count": lambda request, here: len(request.messages),
    "prompt_tokens": lambda request, here: prompt_tokens(request),
    "tokens_left": lambda request, here: math.inf if here.tokens_left is None else here.tokens_left,
    "money_left": lambda request, here: math.inf if here.money_left is None else here.money_left,
    "time_left": _time_left,
    "failures": lambda request, here: here.failures,
    "cost_cap": lambda request, here: math.inf if here.cost_cap is None else here.cost_cap,
}
