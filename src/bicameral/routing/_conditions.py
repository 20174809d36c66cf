"""Conditions of routing rules: their words, the parser, and the compilation to a function.

An atom either tests a field (`tools` is yes or no, `chamber`, `label`, `hint`, `role`, `phase`) or compares a number
with a bound. Atoms are parsed here, token by token, so that an error has its column; the `and`, `or`, `not` and
brackets around them are an expression of `bicameral.expressions`. Nothing is run as Python. A condition is compiled
once: testing a call then costs a few lookups.

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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from bicameral.errors import ConfigError, Place, nearest_name
from bicameral.expressions import COMPARISONS, AllOf, AnyOf, Language, Name, Node, Not, parse, replace_atoms
from bicameral.models import ModelRequest
from bicameral.routing._context import CallContext, count_messages, count_prompt_tokens

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
"""The fields with two values; the others can have any name, or none."""
WHOLE_QUANTITIES: frozenset[ConditionQuantity] = frozenset({"message_count", "prompt_tokens", "failures"})
"""Whole numbers from 0 on. The others may be fractions, may be negative, and are infinite where nothing bounds them."""


@dataclass(frozen=True, slots=True)
class FieldTest(Node):
    """Whether a field of the call has this value."""

    field: ConditionField
    word: str


@dataclass(frozen=True, slots=True)
class QuantityComparison(Node):
    """A number of the call, compared with a bound."""

    quantity: ConditionQuantity
    operator: ComparisonOperator
    bound: float


RoutingCondition: TypeAlias = Node
"""`FieldTest` and `QuantityComparison` under `AllOf`, `AnyOf` and `Not`."""
ALWAYS_TRUE = AllOf(())

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
_UNITS: dict[tuple[str, str], ConditionQuantity] = {
    ("budget_left", "tokens"): "tokens_left",
    ("budget_left", "money"): "money_left",
    ("time_left", "s"): "time_left",
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
    """The condition that a configuration contains as text; `routing.bad-condition` or `routing.unknown-condition`.

    Example:
        >>> parse_condition("has_tools and message_count > 10")
    """
    if len(text) > MAX_CONDITION_LENGTH:
        raise _bad_condition(text[:40] + "…", 0, f"it is longer than {MAX_CONDITION_LENGTH} characters")
    reader = _AtomReader(text)
    skeleton = " ".join(reader.read())
    tree = parse(skeleton, Language(lambda _, what: _bad_condition(text, 0, what), max_length=8 * MAX_CONDITION_LENGTH))
    return replace_atoms(tree, lambda name: reader.atoms[cast("Name", name).name])


def _tokenize(text: str) -> list[_ConditionToken]:
    tokens: list[_ConditionToken] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN_PATTERN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise _bad_condition(text, start, f"{text[start : start + 12]!r} is no part of a condition")
        kind = str(match.lastgroup)
        tokens.append(_ConditionToken(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*tokens, _ConditionToken("end", "", end)]


class _AtomReader:
    """Parses the atoms of a condition and puts a name in the place of each.

    It also checks the order of tokens, so that the columns of errors are exact: the remaining text always parses.
    """

    def __init__(self, text: str) -> None:
        self.atoms: dict[str, RoutingCondition] = {}
        self._text = text
        self._tokens = _tokenize(text)
        self._next = 0

    def read(self) -> list[str]:
        """The tokens of the condition, with a name for each atom."""
        if self._peek.kind == "end":
            raise _bad_condition(self._text, 0, "it is empty", fix="Write `always` for a rule that matches every call.")
        found: list[str] = []
        open_brackets = negations = 0
        wants_atom = True
        while wants_atom or self._peek.kind != "end":
            word = self._peek.text
            if wants_atom and word in ("not", "("):
                open_brackets, negations = open_brackets + (word == "("), negations + (word == "not")
                # Python's parser and our walks over the tree recurse, so the depth is bounded.
                if open_brackets + negations >= MAX_CONDITION_DEPTH:
                    raise _bad_condition(self._text, self._peek.at, f"it is nested deeper than {MAX_CONDITION_DEPTH}")
                found.append(self._take().text)
            elif wants_atom:
                name = f"atom{len(self.atoms)}"
                self.atoms[name] = self._atom()
                found.append(name)
                wants_atom, negations = False, 0
            elif word in ("and", "or") or (word == ")" and open_brackets):
                found.append(self._take().text)
                wants_atom = word != ")"
                open_brackets -= word == ")"
            else:
                raise self._unexpected("')'" if open_brackets else "'and', 'or' or the end")
        if open_brackets:
            raise self._unexpected("')'")
        return found

    @property
    def _peek(self) -> _ConditionToken:
        return self._tokens[self._next]

    def _take(self) -> _ConditionToken:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

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
        return Not(FieldTest(field, word.text)) if sign.text == "!=" else FieldTest(field, word.text)

    def _comparison(self, name: str) -> RoutingCondition:
        if self._peek.text not in _OPERATORS:
            raise self._unexpected(f"one of {', '.join(_OPERATORS)} after {name!r}")
        operator = cast("ComparisonOperator", self._take().text)
        number = self._peek
        if number.kind != "number":
            raise self._unexpected("a number")
        self._take()
        quantity: ConditionQuantity = "money_left" if name == "budget_left" else cast("ConditionQuantity", name)
        if (with_unit := _UNITS.get((name, self._peek.text))) is not None:
            self._take()
            quantity = with_unit
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
"""Whether a condition holds for a request, in a context, with this hint."""
QuantityReader: TypeAlias = Callable[[ModelRequest, CallContext], float]


def compile_condition(tree: RoutingCondition) -> ConditionTest:
    """The function that tests a condition."""
    match tree:
        case FieldTest(field=field, word=word):
            return _field_test(field, word)
        case QuantityComparison(quantity=quantity, operator=sign, bound=bound):
            return _comparison_test(quantity, sign, bound)
        case Not(part=part):
            return _negation_test(compile_condition(part))
        case AllOf(parts=parts):
            return _conjunction_test(tuple(compile_condition(part) for part in parts))
        case AnyOf(parts=parts):
            return _disjunction_test(tuple(compile_condition(part) for part in parts))
        case _:
            raise TypeError(f"{tree!r} is no part of a routing condition")


def _field_test(field: ConditionField, word: str) -> ConditionTest:
    yes = word in ("yes", "trusted")
    match field:
        case "tools":
            return lambda request, here, hint: bool(request.tools) is yes
        case "schema":
            return lambda request, here, hint: (request.json_schema is not None) is yes
        case "label":
            # Text without a label counts as untrusted.
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
    """The test of a number. The common numbers are read inline: a router spends most of its time here."""
    compare, read = COMPARISONS[sign], _QUANTITY_READERS[quantity]
    match quantity:
        case "message_count":
            return lambda request, here, hint: compare(
                len(request.messages) if here.prompt_size is None else here.prompt_size.messages, bound
            )
        case "failures":
            return lambda request, here, hint: compare(here.failures, bound)
        case _:
            return lambda request, here, hint: compare(read(request, here), bound)


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
    """The seconds left for the whole run, or the timeout of this call if that is less."""
    left, timeout = here.seconds_left, request.timeout
    if left is None:
        return math.inf if timeout is None else timeout
    return left if timeout is None or left < timeout else timeout


_QUANTITY_READERS: dict[ConditionQuantity, QuantityReader] = {
    "message_count": count_messages,
    "prompt_tokens": count_prompt_tokens,
    "tokens_left": lambda request, here: math.inf if here.tokens_left is None else here.tokens_left,
    "money_left": lambda request, here: math.inf if here.money_left is None else here.money_left,
    "time_left": _time_left,
    "failures": lambda request, here: here.failures,
    "cost_cap": lambda request, here: math.inf if here.cost_cap is None else here.cost_cap,
}
