"""The grammar of conditions. Nothing is evaluated as Python, and a mistake is told with its column.

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
from dataclasses import dataclass
from typing import cast, get_args

from bicameral.errors import ConfigError, Place, nearest

from ._conditions import ALWAYS, WORDS_OF, And, Compared, Field, Is, Not, Operator, Or, Quantity, Tree

MAX_LENGTH = 2_000
MAX_DEPTH = 40

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d[\d_]*)(?:\.\d+)?(?![\w.]))|(?P<word>[^\W\d][\w.\-]*)|(?P<sign><=|>=|==|!=|[<>():]))"
)
_FLAGS: dict[str, Tree] = {
    "has_tools": Is("tools", "yes"),
    "no_tools": Is("tools", "no"),
    "has_schema": Is("schema", "yes"),
    "no_schema": Is("schema", "no"),
    "deadline": Compared("time_left", "<", math.inf),
    "always": ALWAYS,
}
_NAMED: tuple[Field, ...] = ("hint", "role", "phase", "label", "chamber")
_QUANTITIES = (*get_args(Quantity), "budget_left")
_OPERATORS = get_args(Operator)
_UNITS: dict[str, tuple[str, Quantity]] = {
    "tokens": ("budget_left", "tokens_left"),
    "money": ("budget_left", "money_left"),
}
_KEYWORDS = ("and", "or", "not")
KNOWN = (*_FLAGS, *_NAMED, *_QUANTITIES)
"""Every word that can begin an atom."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse_condition(text: str) -> Tree:
    """A condition as it is written in a configuration; `routing.bad-condition` or `routing.unknown-condition` if not.

    Example:
        >>> parse_condition("has_tools and message_count > 10")
    """
    if len(text) > MAX_LENGTH:
        raise _bad(text[:40] + "…", 0, f"it is longer than {MAX_LENGTH} characters")
    return _Parser(text, _tokens(text)).whole()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise _bad(text, start, f"{text[start : start + 12]!r} is no part of a condition")
        kind = str(match.lastgroup)
        found.append(_Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*found, _Token("end", "", end)]


class _Parser:
    """Recursive descent over the tokens; how deep it goes is bounded."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def whole(self) -> Tree:
        if self._peek.kind == "end":
            raise _bad(self._text, 0, "it is empty", fix="Write `always` for a rule that matches every call.")
        tree = self._condition()
        if self._peek.kind != "end":
            raise self._unexpected("'and', 'or' or the end")
        return tree

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _condition(self) -> Tree:
        parts = [self._both()]
        while self._peek.text == "or":
            self._take()
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self) -> Tree:
        parts = [self._one()]
        while self._peek.text == "and":
            self._take()
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Tree:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _bad(self._text, self._peek.at, f"it is nested deeper than {MAX_DEPTH}")
        try:
            match self._peek.text:
                case "not":
                    self._take()
                    return Not(self._one())
                case "(":
                    return self._inner()
                case _:
                    return self._atom()
        finally:
            self._depth -= 1

    def _inner(self) -> Tree:
        self._take()
        tree = self._condition()
        if self._peek.text != ")":
            raise self._unexpected("')'")
        self._take()
        return tree

    def _atom(self) -> Tree:
        token = self._peek
        if token.kind != "word" or token.text in _KEYWORDS:
            raise self._unexpected("a condition such as has_tools")
        self._take()
        if (flag := _FLAGS.get(token.text)) is not None:
            return flag
        if token.text in _NAMED:
            return self._named(token.text)
        if token.text in _QUANTITIES:
            return self._compared(token.text)
        raise ConfigError(
            "routing.unknown-condition",
            f"there is no condition {token.text!r} in {self._text!r}",
            place=Place(column=token.at + 1),
            expected=f"one of {', '.join(sorted(KNOWN))}",
            nearest=nearest(token.text, KNOWN),
        )

    def _named(self, field: Field) -> Tree:
        signs = (":", "==", "!=") if field == "chamber" else (":",)
        if self._peek.text not in signs:
            raise self._unexpected(f"{signs[0]!r} and a name after {field!r}")
        sign = self._take()
        word = self._peek
        if word.kind != "word" or word.text in _KEYWORDS:
            raise self._unexpected(f"a name after {field!r}")
        self._take()
        words = WORDS_OF.get(field)
        if words is not None and word.text not in words:
            raise _bad(
                self._text,
                word.at,
                f"{word.text!r} is no {field}",
                expected=" or ".join(words),
                near=nearest(word.text, words),
            )
        return Not(Is(field, word.text)) if sign.text == "!=" else Is(field, word.text)

    def _compared(self, name: str) -> Tree:
        if self._peek.text not in _OPERATORS:
            raise self._unexpected(f"one of {', '.join(_OPERATORS)} after {name!r}")
        operator = cast("Operator", self._take().text)
        number = self._peek
        if number.kind != "number":
            raise self._unexpected("a number")
        self._take()
        quantity: Quantity = "money_left" if name == "budget_left" else cast("Quantity", name)
        unit = self._peek
        if unit.kind == "word" and (of := _UNITS.get(unit.text)) is not None and of[0] == name:
            self._take()
            quantity = of[1]
        elif unit.kind == "word" and unit.text == "s" and name == "time_left":
            self._take()
        return Compared(quantity, operator, float(number.text.replace("_", "")))

    def _unexpected(self, expected: str) -> ConfigError:
        token = self._peek
        what = f"{token.text!r} cannot stand here" if token.kind != "end" else "it ends too early"
        return _bad(self._text, token.at, what, expected=expected, near=nearest(token.text, _KEYWORDS))


def _bad(
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
