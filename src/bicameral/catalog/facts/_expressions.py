"""The arithmetic of cost expressions: `+ - * /`, `min`, `max`, `ceil`, numbers and names.

A text is parsed by Python's own grammar and then taken apart: what is not in the list above does not get in, so a file
can compute numbers and nothing else. Nothing is evaluated as Python.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from bicameral.errors import CatalogError, Place, nearest

MAX_LENGTH = 400
MAX_DEPTH = 40
MAX_NUMBER = 10**12
# Checked before Python's grammar is asked: no text, no attribute, no comparison, nothing that Python would warn about.
# The `++` and `*+` keep it linear.
_WORDS = re.compile(r"(?:\s*+(?:\d++(?:\.\d++)?(?![\w.])|[^\W\d]\w*+|[-+*/(),]))+\s*+", re.ASCII)
_OPERATORS: dict[type[ast.operator], Literal["+", "-", "*", "/"]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
FUNCTIONS: Mapping[str, Callable[..., float]] = {"min": min, "max": max, "ceil": math.ceil}
"""What can be called, and nothing else can."""


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Binary:
    operator: Literal["+", "-", "*", "/"]
    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class Function:
    name: Literal["min", "max", "ceil"]
    arguments: tuple[Tree, ...]


Tree: TypeAlias = Number | Name | Binary | Function


@dataclass(frozen=True, slots=True)
class Expression:
    """A cost expression that has been checked.

    Example:
        >>> parse_expression("1 + max_replans").value({"max_replans": 2})
        3
    """

    text: str
    tree: Tree
    names: frozenset[str]
    """The names that must have a value."""

    @classmethod
    def number(cls, value: float) -> Expression:
        """The expression that is this number."""
        return cls(f"{value:g}", Number(value), frozenset())

    def value(self, sizes: Mapping[str, float]) -> float:
        """The number, with these values for its names; `catalog.no-value` if there is none."""
        try:
            found = _value(self.tree, sizes)
            finite = math.isfinite(found)
        except ZeroDivisionError:
            raise _no_value(self.text, "it divides by zero") from None
        except (OverflowError, ValueError):
            finite, found = False, 0.0
        if not finite:
            raise _no_value(self.text, "the number has no end")
        return found

    def __str__(self) -> str:
        return self.text


def parse_expression(text: str, known: Collection[str] | None = None, *, place: Place | None = None) -> Expression:
    """A cost expression; `catalog.bad-expression` if it is none, `catalog.unknown-name` for a name not in `known`.

    Example:
        >>> parse_expression("min(steps, max_steps) * observation").names
        frozenset({'steps', 'max_steps', 'observation'})
    """
    try:
        found = _parsed(text)
    except CatalogError as error:
        raise CatalogError(error.code, error.message, place=place, expected=error.expected) from None
    if known is not None:
        for name in sorted(found.names.difference(known)):
            raise CatalogError(
                "catalog.unknown-name",
                f"there is no size and no knob {name!r} in {text!r}",
                place=place,
                nearest=nearest(name, known),
                fix=f"These are known: {', '.join(sorted(known))}.",
            )
    return found


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Expression:
    if len(text) > MAX_LENGTH:
        raise _bad(text[:40] + "…", f"it is longer than {MAX_LENGTH} characters")
    if _WORDS.fullmatch(text) is None:
        raise _bad(text, "it has signs that no arithmetic has")
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _bad(text, "this is no arithmetic") from None
    tree = _checked(parsed, text, 0)
    return Expression(text, tree, frozenset(_names(tree)))


def _checked(node: ast.expr, text: str, depth: int) -> Tree:
    if depth > MAX_DEPTH:
        raise _bad(text, f"it is nested deeper than {MAX_DEPTH}")
    match node:
        case ast.Constant(value=bool()):
            raise _bad(text, f"{node.value!r} is no number")
        case ast.Constant(value=int() | float() as value):
            if not 0 <= value <= MAX_NUMBER:
                raise _bad(text, "a number in it is too large")
            return Number(value)
        case ast.Name(id=name):
            if name in FUNCTIONS:
                raise _bad(text, f"{name!r} is a function and needs values in brackets")
            return Name(name)
        case ast.BinOp(left=left, op=operator, right=right) if (sign := _OPERATORS.get(type(operator))) is not None:
            return Binary(sign, _checked(left, text, depth + 1), _checked(right, text, depth + 1))
        case ast.Call(func=ast.Name(id="min" | "max" | "ceil" as name), args=given, keywords=[]):
            if not given or (len(given) != 1) == (name == "ceil"):
                raise _bad(text, f"{name!r} takes {'one value' if name == 'ceil' else 'two or more values'}")
            return Function(name, tuple(_checked(each, text, depth + 1) for each in given))
        case _:
            raise _bad(text, f"{_shown(node)!r} cannot stand in it")


def _shown(node: ast.expr) -> str:
    try:
        return ast.unparse(node)[:40]
    except (RecursionError, ValueError):
        return type(node).__name__


def _value(tree: Tree, sizes: Mapping[str, float]) -> float:
    match tree:
        case Number(value=value):
            return value
        case Name(name=name):
            return _size(name, sizes)
        case Function(name=name, arguments=arguments):
            return FUNCTIONS[name](*(_value(each, sizes) for each in arguments))
        case Binary(operator=operator, left=left, right=right):
            return _computed(operator, _value(left, sizes), _value(right, sizes))


def _computed(operator: Literal["+", "-", "*", "/"], left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right


def _size(name: str, sizes: Mapping[str, object]) -> float:
    value = sizes.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    what = f"{name!r} is not given" if value is None else f"{name!r} is {value!r}, which is no number"
    raise CatalogError("catalog.no-value", what, nearest=nearest(name, sizes))


def _names(tree: Tree) -> Iterator[str]:
    match tree:
        case Number():
            return
        case Name(name=name):
            yield name
        case Function(arguments=arguments):
            for each in arguments:
                yield from _names(each)
        case Binary(left=left, right=right):
            yield from _names(left)
            yield from _names(right)


def _bad(text: str, what: str) -> CatalogError:
    return CatalogError(
        "catalog.bad-expression",
        f"{text!r} is no cost expression: {what}",
        expected="numbers, names, + - * / and min, max, ceil",
    )


def _no_value(text: str, what: str) -> CatalogError:
    return CatalogError("catalog.no-value", f"{text!r} has no value: {what}")
