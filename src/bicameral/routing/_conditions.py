"""Conditions of routing rules: the syntax tree, its parser, and its compilation to a function.

An atom either says that a field is one of a few words (`tools` is yes or no, `chamber`, `label`, `hint`, `role`,
`phase`), or compares a number with a bound. Nothing is evaluated as Python, and a mistake is reported with its
column. A condition is compiled once: testing a call then costs a few lookups.

condition = both { "or" both }
both      = one { "and" one }
one       = "not" one | "(" condition ")" | atom
atom      = "has_tools" | "no_tools" | "has_schema" | "no_schema" | "deadline" | "always"
          | ( "hint" | "role" | "phase" | "label" ) ":" word
          | "chamber" ( "==" | "!=" | ":" ) word
          | quantity ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) number [ unit ]
quantity  = "message_count" | "prompt_tokens" | "budget_left" | "tokens_left" | "money_left" | "time_left"
          | "failures" | "cost_cap"
unit      = "tokens" | "money" | "s"
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from bicameral.errors import ConfigError, Place, nearest_name
from bicameral.models import ModelRequest
from bicameral.routing._context import CallContext

ConditionField = Literal["tools", "schema", "label", "chamber", "hint", "role", "phase"]
ConditionQuantity = Literal[
    "message_count", "prompt_tokens", "tokens_left", "money_left", "time_left", "failures", "cost_cap"
]
ComparisonOperator = Literal["<", "<=", ">", ">=", "==", "!="]

FIELD_WORDS: dict[ConditionField, tuple[str, str]] = {
    "tools": ("yes", "no"),
    "schema": ("yes", "no"),
    "label": ("trusted", "untrusted"),
    "chamber": ("privileged", "quarantined"),
}
"""The fields that can say only one of two things; the others can hold any name, or none."""
WHOLE_QUANTITIES: frozenset[ConditionQuantity] = frozenset({"message_count", "prompt_tokens", "failures"})
"""Whole numbers from 0 on. The others may be fractions, may be overdrawn, and have no end where nobody bounds them."""


@dataclass(frozen=True, slots=True)
class FieldTest:
    """A field of the call is this word."""

    field: ConditionField
    word: str


@dataclass(frozen=True, slots=True)
class QuantityComparison:
    """A number of the call stands like this to a bound."""

    quantity: ConditionQuantity
    operator: ComparisonOperator
    bound: float


@dataclass(frozen=True, slots=True)
class Negation:
    part: RoutingCondition


@dataclass(frozen=True, slots=True)
class Conjunction:
    parts: tuple[RoutingCondition, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    parts: tuple[RoutingCondition, ...]


RoutingCondition: TypeAlias = FieldTest | QuantityComparison | Negation | Conjunction | Disjunction

ALWAYS_TRUE = Conjunction(())


def condition_atoms(tree: RoutingCondition) -> Iterator[FieldTest | QuantityComparison]:
    """Every atom of a condition, from left to right."""
    match tree:
        case Negation(part=part):
            yield from condition_atoms(part)
        case Conjunction(parts=parts) | Disjunction(parts=parts):
            for part in parts:
                yield from condition_atoms(part)
        case _:
            yield tree


MAX_CONDITION_LENGTH = 2_000
MAX_CONDITION_DEPTH = 40

_TOKEN_PATTERN = re.compile(
    r"\s*(?:(?P<number>(?:\d[\d_]*)(?:\.\d+)?(?![\w.]))|(?P<word>[^\W\d][\w.\-]*)|(?P<sign><=|>=|==|!=|[<>():]))"
)
_FLAGS: dict[str, RoutingCondition] = {
    "has_tools": FieldTest("tools", "yes"),
    "no_tools": FieldTest("tools", "no"),
    "has_schema": FieldTest("schema", "yes"),
    "no_schema": FieldTest("schema", "no"),
    "deadline": QuantityComparison("time_left", "<", math.inf),
    "always": ALWAYS_TRUE,
}
_NAMED_FIELDS: tuple[ConditionField, ...] = ("hint", "role", "phase", "label", "chamber")
_QUANTITIES = (*get_args(ConditionQuantity), "budget_left")
_OPERATORS = get_args(ComparisonOperator)
_UNITS: dict[str, tuple[str, ConditionQuantity]] = {
    "tokens": ("budget_left", "tokens_left"),
    "money": ("budget_left", "money_left"),
}
_KEYWORDS = ("and", "or", "not")
CONDITION_WORDS = (*_FLAGS, *_NAMED_FIELDS, *_QUANTITIES)
"""Every word that can begin an atom."""


@dataclass(frozen=True, slots=True)
class _ConditionToken:
    kind: str
    text: str
    at: int


def parse_condition(text: str) -> RoutingCondition:
    """A condition as it is written in a configuration; `routing.bad-condition` or `routing.unknown-condition` if not.

    Example:
        >>> parse_condition("has_tools and message_count > 10")
    """
    if len(text) > MAX_CONDITION_LENGTH:
        raise _bad_condition(text[:40] + "…", 0, f"it is longer than {MAX_CONDITION_LENGTH} characters")
    return _ConditionParser(text, _tokenize(text)).parse()


def _tokenize(text: str) -> list[_ConditionToken]:
    found: list[_ConditionToken] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN_PATTERN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise _bad_condition(text, start, f"{text[start : start + 12]!r} is no part of a condition")
        kind = str(match.lastgroup)
        found.append(_ConditionToken(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*found, _ConditionToken("end", "", end)]


class _ConditionParser:
    """Recursive descent over the tokens; how deep it goes is bounded."""

    def __init__(self, text: str, tokens: list[_ConditionToken]) -> None:
        self._text = text
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def parse(self) -> RoutingCondition:
        if self._peek.kind == "end":
            raise _bad_condition(self._text, 0, "it is empty", fix="Write `always` for a rule that matches every call.")
        tree = self._condition()
        if self._peek.kind != "end":
            raise self._unexpected("'and', 'or' or the end")
        return tree

    @property
    def _peek(self) -> _ConditionToken:
        return self._tokens[self._next]

    def _take(self) -> _ConditionToken:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _condition(self) -> RoutingCondition:
        parts = [self._conjunction()]
        while self._peek.text == "or":
            self._take()
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts))

    def _conjunction(self) -> RoutingCondition:
        parts = [self._negation()]
        while self._peek.text == "and":
            self._take()
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))

    def _negation(self) -> RoutingCondition:
        self._depth += 1
        if self._depth > MAX_CONDITION_DEPTH:
            raise _bad_condition(self._text, self._peek.at, f"it is nested deeper than {MAX_CONDITION_DEPTH}")
        try:
            match self._peek.text:
                case "not":
                    self._take()
                    return Negation(self._negation())
                case "(":
                    return self._parenthesised()
                case _:
                    return self._atom()
        finally:
            self._depth -= 1

    def _parenthesised(self) -> RoutingCondition:
        self._take()
        tree = self._condition()
        if self._peek.text != ")":
            raise self._unexpected("')'")
        self._take()
        return tree

    def _atom(self) -> RoutingCondition:
        token = self._peek
        if token.kind != "word" or token.text in _KEYWORDS:
            raise self._unexpected("a condition such as has_tools")
        self._take()
        if (flag := _FLAGS.get(token.text)) is not None:
            return flag
        if token.text in _NAMED_FIELDS:
            return self._field_test(token.text)
        if token.text in _QUANTITIES:
            return self._comparison(token.text)
        raise ConfigError(
            "routing.unknown-condition",
            f"there is no condition {token.text!r} in {self._text!r}",
            place=Place(column=token.at + 1),
            expected=f"one of {', '.join(sorted(CONDITION_WORDS))}",
            nearest=nearest_name(token.text, CONDITION_WORDS),
        )

    def _field_test(self, field: ConditionField) -> RoutingCondition:
        signs = (":", "==", "!=") if field == "chamber" else (":",)
        if self._peek.text not in signs:
            raise self._unexpected(f"{signs[0]!r} and a name after {field!r}")
        sign = self._take()
        word = self._peek
        if word.kind != "word" or word.text in _KEYWORDS:
            raise self._unexpected(f"a name after {field!r}")
        self._take()
        words = FIELD_WORDS.get(field)
        if words is not None and word.text not in words:
            raise _bad_condition(
                self._text,
                word.at,
                f"{word.text!r} is no {field}",
                expected=" or ".join(words),
                near=nearest_name(word.text, words),
            )
        return Negation(FieldTest(field, word.text)) if sign.text == "!=" else FieldTest(field, word.text)

    def _comparison(self, name: str) -> RoutingCondition:
        if self._peek.text not in _OPERATORS:
            raise self._unexpected(f"one of {', '.join(_OPERATORS)} after {name!r}")
        operator = cast("ComparisonOperator", self._take().text)
        number = self._peek
        if number.kind != "number":
            raise self._unexpected("a number")
        self._take()
        quantity: ConditionQuantity = "money_left" if name == "budget_left" else cast("ConditionQuantity", name)
        unit = self._peek
        if unit.kind == "word" and (of := _UNITS.get(unit.text)) is not None and of[0] == name:
            self._take()
            quantity = of[1]
        elif unit.kind == "word" and unit.text == "s" and name == "time_left":
            self._take()
        return QuantityComparison(quantity, operator, float(number.text.replace("_", "")))

    def _unexpected(self, expected: str) -> ConfigError:
        token = self._peek
        what = f"{token.text!r} cannot stand here" if token.kind != "end" else "it ends too early"
        return _bad_condition(self._text, token.at, what, expected=expected, near=nearest_name(token.text, _KEYWORDS))


def _bad_condition(
    text: str, at: int, what: str, *, expected: str | None = None, near: str | None = None, fix: str | None = None
) -> ConfigError:
    return ConfigError(
        "routing.bad-condition",
        f"{text!r} is no condition: {what} (character {at + 1})",
        place=Place(column=at + 1),
        expected=expected,
        nearest=near,
        fix=fix,
    )


ConditionTest: TypeAlias = Callable[[ModelRequest, CallContext, str | None], bool]
"""Whether a condition holds for a request, in a situation, with this hint."""
QuantityReader: TypeAlias = Callable[[ModelRequest, CallContext], float]

CHARACTERS_PER_TOKEN = 4


def compile_condition(tree: RoutingCondition) -> ConditionTest:
    """A condition as a function."""
    match tree:
        case FieldTest(field=field, word=word):
            return _field_test(field, word)
        case QuantityComparison(quantity=quantity, operator=sign, bound=bound):
            return _comparison_test(quantity, sign, bound)
        case Negation(part=part):
            return _negation_test(compile_condition(part))
        case Conjunction(parts=parts):
            return _conjunction_test(tuple(compile_condition(part) for part in parts))
        case Disjunction(parts=parts):
            return _disjunction_test(tuple(compile_condition(part) for part in parts))


def estimate_prompt_tokens(request: ModelRequest) -> int:
    """About how many tokens a request is: a quarter of its characters. Nobody's tokenizer is asked."""
    characters = len(request.prefill)
    for message in request.messages:
        characters += len(message.text)
    return characters // CHARACTERS_PER_TOKEN


def _field_test(field: ConditionField, word: str) -> ConditionTest:
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


def _comparison_test(quantity: ConditionQuantity, sign: ComparisonOperator, bound: float) -> ConditionTest:
    """One call for each of the usual comparisons: this is what a router spends its time on."""
    if sign in ("==", "!="):
        return _equality_test(_QUANTITY_READERS[quantity], bound, sign == "==")
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
            return _order_test(_QUANTITY_READERS[quantity], bound, below, yes)


def _equality_test(read: QuantityReader, bound: float, yes: bool) -> ConditionTest:
    return lambda request, here, hint: (read(request, here) == bound) is yes


def _order_test(read: QuantityReader, bound: float, below: bool, yes: bool) -> ConditionTest:
    if below:
        return lambda request, here, hint: (read(request, here) < bound) is yes
    return lambda request, here, hint: (read(request, here) <= bound) is yes


def _negation_test(test: ConditionTest) -> ConditionTest:
    return lambda request, here, hint: not test(request, here, hint)


def _conjunction_test(tests: tuple[ConditionTest, ...]) -> ConditionTest:
    if len(tests) == 2:
        first, second = tests
        return lambda request, here, hint: first(request, here, hint) and second(request, here, hint)
    return lambda request, here, hint: all(test(request, here, hint) for test in tests)


def _disjunction_test(tests: tuple[ConditionTest, ...]) -> ConditionTest:
    if len(tests) == 2:
        first, second = tests
        return lambda request, here, hint: first(request, here, hint) or second(request, here, hint)
    return lambda request, here, hint: any(test(request, here, hint) for test in tests)


def _time_left(request: ModelRequest, here: CallContext) -> float:
    """What is left of the whole, or for this one call if that is less."""
    left, timeout = here.seconds_left, request.timeout
    if left is None:
        return math.inf if timeout is None else timeout
    return left if timeout is None or left < timeout else timeout


_QUANTITY_READERS: dict[ConditionQuantity, QuantityReader] = {
    "message_count": lambda request, here: len(request.messages),
    "prompt_tokens": lambda request, here: estimate_prompt_tokens(request),
    "tokens_left": lambda request, here: math.inf if here.tokens_left is None else here.tokens_left,
    "money_left": lambda request, here: math.inf if here.money_left is None else here.money_left,
    "time_left": _time_left,
    "failures": lambda request, here: here.failures,
    "cost_cap": lambda request, here: math.inf if here.cost_cap is None else here.cost_cap,
}
