"""Cost expressions and the sizes they may name: `+ - * /`, `min`, `max`, `ceil`, numbers and names.

A text is parsed by Python's own grammar and then taken apart: a node that is not in the list above is refused, so a
data file can compute numbers and nothing else. Nothing is evaluated as Python. The default sizes are those of a small
task; callers who have measured their own pass them instead.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, TypeAlias

from bicameral.errors import CatalogError, Place, nearest_name

MAX_EXPRESSION_LENGTH = 400
MAX_EXPRESSION_DEPTH = 40
MAX_NUMBER = 10**12
# Checked before Python's grammar is asked: no text, no attribute, no comparison, nothing that Python would warn about.
# The `++` and `*+` keep it linear.
_ALLOWED_TEXT = re.compile(r"(?:\s*+(?:\d++(?:\.\d++)?(?![\w.])|[^\W\d]\w*+|[-+*/(),]))+\s*+", re.ASCII)
_OPERATORS: dict[type[ast.operator], Literal["+", "-", "*", "/"]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
FUNCTIONS: Mapping[str, Callable[..., float]] = {"min": min, "max": max, "ceil": math.ceil}
"""What can be called, and nothing else can."""


@dataclass(frozen=True, slots=True)
class NumberNode:
    value: float


@dataclass(frozen=True, slots=True)
class NameNode:
    name: str


@dataclass(frozen=True, slots=True)
class BinaryNode:
    operator: Literal["+", "-", "*", "/"]
    left: CostTree
    right: CostTree


@dataclass(frozen=True, slots=True)
class FunctionNode:
    name: Literal["min", "max", "ceil"]
    arguments: tuple[CostTree, ...]


CostTree: TypeAlias = NumberNode | NameNode | BinaryNode | FunctionNode


@dataclass(frozen=True, slots=True)
class Expression:
    """A cost expression that has been checked.

    Example:
        >>> parse_expression("1 + max_replans").value({"max_replans": 2})
        3
    """

    text: str
    tree: CostTree
    names: frozenset[str]
    """The names that must have a value."""

    @classmethod
    def number(cls, value: float) -> Expression:
        """The expression that is this number."""
        return cls(f"{value:g}", NumberNode(value), frozenset())

    def value(self, sizes: Mapping[str, float]) -> float:
        """The number, with these values for its names; `catalog.no-value` if there is none."""
        try:
            found = _evaluate(self.tree, sizes)
            finite = math.isfinite(found)
        except ZeroDivisionError:
            raise _no_value_error(self.text, "it divides by zero") from None
        except (OverflowError, ValueError):
            finite, found = False, 0.0
        if not finite:
            raise _no_value_error(self.text, "the number has no end")
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
        found = _parse_cached(text)
    except CatalogError as error:
        raise CatalogError(error.code, error.message, place=place, expected=error.expected) from None
    if known is not None:
        for name in sorted(found.names.difference(known)):
            raise CatalogError(
                "catalog.unknown-name",
                f"there is no size and no knob {name!r} in {text!r}",
                place=place,
                nearest=nearest_name(name, known),
                fix=f"These are known: {', '.join(sorted(known))}.",
            )
    return found


@lru_cache(maxsize=4096)
def _parse_cached(text: str) -> Expression:
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise _bad_expression(text[:40] + "…", f"it is longer than {MAX_EXPRESSION_LENGTH} characters")
    if _ALLOWED_TEXT.fullmatch(text) is None:
        raise _bad_expression(text, "it has signs that no arithmetic has")
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _bad_expression(text, "this is no arithmetic") from None
    tree = _check_node(parsed, text, 0)
    return Expression(text, tree, frozenset(_tree_names(tree)))


def _check_node(node: ast.expr, text: str, depth: int) -> CostTree:
    if depth > MAX_EXPRESSION_DEPTH:
        raise _bad_expression(text, f"it is nested deeper than {MAX_EXPRESSION_DEPTH}")
    match node:
        case ast.Constant(value=bool()):
            raise _bad_expression(text, f"{node.value!r} is no number")
        case ast.Constant(value=int() | float() as value):
            if not 0 <= value <= MAX_NUMBER:
                raise _bad_expression(text, "a number in it is too large")
            return NumberNode(value)
        case ast.Name(id=name):
            if name in FUNCTIONS:
                raise _bad_expression(text, f"{name!r} is a function and needs values in brackets")
            return NameNode(name)
        case ast.BinOp(left=left, op=operator, right=right) if (sign := _OPERATORS.get(type(operator))) is not None:
            return BinaryNode(sign, _check_node(left, text, depth + 1), _check_node(right, text, depth + 1))
        case ast.Call(func=ast.Name(id="min" | "max" | "ceil" as name), args=given, keywords=[]):
            if not given or (len(given) != 1) == (name == "ceil"):
                raise _bad_expression(text, f"{name!r} takes {'one value' if name == 'ceil' else 'two or more values'}")
            return FunctionNode(name, tuple(_check_node(each, text, depth + 1) for each in given))
        case _:
            raise _bad_expression(text, f"{_render_node(node)!r} cannot stand in it")


def _render_node(node: ast.expr) -> str:
    try:
        return ast.unparse(node)[:40]
    except (RecursionError, ValueError):
        return type(node).__name__


def _evaluate(tree: CostTree, sizes: Mapping[str, float]) -> float:
    match tree:
        case NumberNode(value=value):
            return value
        case NameNode(name=name):
            return _size_value(name, sizes)
        case FunctionNode(name=name, arguments=arguments):
            return FUNCTIONS[name](*(_evaluate(each, sizes) for each in arguments))
        case BinaryNode(operator=operator, left=left, right=right):
            return _apply_operator(operator, _evaluate(left, sizes), _evaluate(right, sizes))


def _apply_operator(operator: Literal["+", "-", "*", "/"], left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right


def _size_value(name: str, sizes: Mapping[str, object]) -> float:
    value = sizes.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    what = f"{name!r} is not given" if value is None else f"{name!r} is {value!r}, which is no number"
    raise CatalogError("catalog.no-value", what, nearest=nearest_name(name, sizes))


def _tree_names(tree: CostTree) -> Iterator[str]:
    match tree:
        case NumberNode():
            return
        case NameNode(name=name):
            yield name
        case FunctionNode(arguments=arguments):
            for each in arguments:
                yield from _tree_names(each)
        case BinaryNode(left=left, right=right):
            yield from _tree_names(left)
            yield from _tree_names(right)


def _bad_expression(text: str, what: str) -> CatalogError:
    return CatalogError(
        "catalog.bad-expression",
        f"{text!r} is no cost expression: {what}",
        expected="numbers, names, + - * / and min, max, ceil",
    )


def _no_value_error(text: str, what: str) -> CatalogError:
    return CatalogError("catalog.no-value", f"{text!r} has no value: {what}")


@dataclass(frozen=True, slots=True)
class Size:
    """A name that any cost expression may use."""

    unit: Literal["tokens", "count"]
    default: int
    what: str


SIZES: Mapping[str, Size] = MappingProxyType(
    {
        "setup": Size("tokens", 400, "the fixed words of a session"),
        "input": Size("tokens", 200, "the task"),
        "output": Size("tokens", 300, "a normal reply"),
        "observation": Size("tokens", 300, "one result of a tool"),
        "tools": Size("tokens", 600, "the schemas of all tools"),
        "context": Size("tokens", 2_000, "background text that is read"),
        "brief": Size("tokens", 250, "a part of the task as it is handed on"),
        "example": Size("tokens", 120, "one example"),
        "document": Size("tokens", 800, "one document"),
        "item_output": Size("tokens", 60, "a short reply"),
        "steps": Size("count", 4, "steps of a loop that are expected"),
        "items": Size("count", 3, "parts of the work"),
        "tries": Size("count", 2, "tries that are expected"),
    }
)
"""Every size by its name."""


def default_sizes() -> dict[str, float]:
    """The sizes of a small task, to evaluate an expression with."""
    return {name: size.default for name, size in SIZES.items()}
