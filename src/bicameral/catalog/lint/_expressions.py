"""Expressions over what a stack says of itself, in which "nobody said" is a value of its own.

They are a small part of Python: names, `V9` (is it used), `V20.retries` (a knob), `tools.count`, numbers and texts,
comparisons, `in`, `and`, `or`, `not` and arithmetic. What hangs on something unknown is unknown, and knows on what;
what does not hang on it is decided: false and unknown is false.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from bicameral.errors import CatalogError


@dataclass(frozen=True, slots=True)
class Unknown:
    """What cannot be decided, and the names that nobody gave a value."""

    names: frozenset[str]


Lookup: TypeAlias = Callable[[str], Any]
"""The value of a name, or Unknown."""
Evaluate: TypeAlias = Callable[[Lookup], Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression that can be asked of a stack.

    Example:
        >>> parse_condition("production and not safety_critical").ask({"production": False}.get)
        False
    """

    text: str
    names: frozenset[str]
    ask: Evaluate


_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, several: one in several,
    ast.NotIn: lambda one, several: one not in several,
}
_RECKON: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda one, other: one / other,
}


@cache
def parse_condition(text: str) -> Condition:
    """An expression, or `catalog.bad-data` if it is none."""
    names: set[str] = set()
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise _bad(text) from None
    ask = _compiled(tree, text, names)
    return Condition(text, frozenset(names), ask)


def _bad(text: str) -> CatalogError:
    return CatalogError("catalog.bad-data", f"{text!r} is no condition", expected="names, numbers, and, or, not, ==, <")


def _compiled(node: ast.expr, text: str, names: set[str]) -> Evaluate:
    match node:
        case ast.Name(id=name):
            return _named(name, names)
        case ast.Attribute(value=ast.Name(id=head), attr=tail):
            return _named(f"{head}.{tail}", names)
        case ast.Constant(value=str() | int() | float() as value):
            return lambda _: value
        case ast.Tuple(elts=elements):
            values = tuple(each.value for each in elements if isinstance(each, ast.Constant))
            return lambda _: values
        case ast.BoolOp(op=op, values=parts):
            return _joined(isinstance(op, ast.And), [_compiled(each, text, names) for each in parts])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _negated(_compiled(operand, text, names))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _RECKON:
            return _applied(_RECKON[type(op)], _compiled(left, text, names), _compiled(right, text, names))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return _applied(_COMPARE[type(op)], _compiled(left, text, names), _compiled(right, text, names))
        case _:
            raise _bad(text)


def _named(name: str, names: set[str]) -> Evaluate:
    names.add(name)
    return lambda lookup: lookup(name)


def _negated(inner: Evaluate) -> Evaluate:
    def ask(lookup: Lookup) -> Any:
        value = inner(lookup)
        return value if isinstance(value, Unknown) else not value

    return ask


def _joined(every: bool, parts: Sequence[Evaluate]) -> Evaluate:
    """All of them, or one of them: one part that settles it makes the unknown ones unimportant."""

    def ask(lookup: Lookup) -> Any:
        unknown: frozenset[str] = frozenset()
        for part in parts:
            value = part(lookup)
            if isinstance(value, Unknown):
                unknown |= value.names
            elif bool(value) is not every:
                return not every
        return Unknown(unknown) if unknown else every

    return ask


def _applied(function: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate) -> Evaluate:
    def ask(lookup: Lookup) -> Any:
        one, other = left(lookup), right(lookup)
        unknown = frozenset(name for each in (one, other) if isinstance(each, Unknown) for name in each.names)
        if unknown:
            return Unknown(unknown)
        try:
            return function(one, other)
        except (TypeError, ZeroDivisionError, OverflowError):
            # A knob that cannot be reckoned with; that it is out of its bounds is said elsewhere.
            return False

    return ask
