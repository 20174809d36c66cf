"""Small expressions in data files and configurations: parsed by Python's grammar, checked, and never run as Python.

In comes a text and a `Language` that says what the text may contain; out goes a tree of frozen nodes. `evaluate`
computes its value, `judge` decides it in three-valued logic: a condition that depends on a missing value is open, and
one that does not is decided (false and unknown is false). Cost expressions, the conditions of the linter, those of the
advisor and routing rules are four such languages.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bicameral.errors import BicameralError


class Node:
    """A node of an expression. Languages may add leaves of their own."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Constant(Node):
    value: Any


@dataclass(frozen=True, slots=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Arithmetic or a comparison; `operator` is a key of `OPERATORS`."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call(Node):
    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    part: Node


@dataclass(frozen=True, slots=True)
class AllOf(Node):
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Node):
    parts: tuple[Node, ...]


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "in": lambda one, several: one in several,
    "not in": lambda one, several: one not in several,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda one, other: one / other,
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = _ARITHMETIC | COMPARISONS
_SIGNS: Mapping[type[ast.operator | ast.cmpop], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
}


@dataclass(frozen=True, slots=True)
class Language:
    """What an expression may contain.

    Args:
        error: Makes the error for a text and what is wrong with it.
        arity: The functions and how many arguments each takes, from the least to the most (None: any number).
        logic: Whether `and`, `or`, `not`, comparisons and texts are allowed; otherwise it is arithmetic.
        dotted: Whether `a.b` is a name.
        allowed: What the whole text must match before Python's grammar is tried.
    """

    error: Callable[[str, str], BicameralError]
    arity: Mapping[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])
    logic: bool = True
    dotted: bool = False
    allowed: re.Pattern[str] | None = None
    max_length: int = 400
    max_depth: int = 40
    max_number: float = 1e12


def parse(text: str, language: Language) -> Node:
    """The checked tree of a text; the language's error if anything in it is not allowed."""
    if len(text) > language.max_length:
        raise language.error(text[:40] + "…", f"it is longer than {language.max_length} characters")
    # Before `ast.parse`, so that a hostile text costs little and Python warns of nothing in it.
    if language.allowed is not None and language.allowed.fullmatch(text) is None:
        raise language.error(text, "it has signs that are not allowed")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise language.error(text, "its syntax is wrong") from None
    return _Builder(text, language).build(tree, 0)


class _Builder:
    """Turns Python's nodes into ours. A kind of node that is not listed here is refused."""

    def __init__(self, text: str, language: Language) -> None:
        self._text = text
        self._language = language

    def build(self, node: ast.expr, depth: int) -> Node:
        allowed = self._language
        if depth > allowed.max_depth:
            raise allowed.error(self._text, f"it is nested deeper than {allowed.max_depth}")
        match node:
            case ast.Name(id=name) if name not in allowed.arity:
                return Name(name)
            case ast.Name(id=name):
                raise allowed.error(self._text, f"{name!r} is a function and needs values in brackets")
            case ast.Attribute(value=ast.Name(id=head), attr=tail) if allowed.dotted:
                return Name(f"{head}.{tail}")
            case ast.Constant(value=value) if self._is_constant(value):
                return Constant(value)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
                return Binary(_SIGNS[type(op)], self.build(left, depth + 1), self.build(right, depth + 1))
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in allowed.arity:
                least, most = allowed.arity[name]
                if len(given) < least or (most is not None and len(given) > most):
                    raise allowed.error(self._text, f"{name!r} takes {_count_words(least, most)}")
                return Call(name, self._parts(given, depth))
            case ast.BoolOp(op=ast.And(), values=parts) if allowed.logic:
                return AllOf(self._parts(parts, depth))
            case ast.BoolOp(values=parts) if allowed.logic:
                return AnyOf(self._parts(parts, depth))
            case ast.UnaryOp(op=ast.Not(), operand=part) if allowed.logic:
                return Not(self.build(part, depth + 1))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if allowed.logic and type(op) in _SIGNS:
                return Binary(_SIGNS[type(op)], self.build(left, depth + 1), self.build(right, depth + 1))
            case ast.Tuple(elts=items) if allowed.logic and all(isinstance(each, ast.Constant) for each in items):
                return Constant(tuple(each.value for each in items if isinstance(each, ast.Constant)))
            case _:
                raise allowed.error(self._text, f"{_shorten(node)!r} cannot stand in it")

    def _parts(self, nodes: Iterable[ast.expr], depth: int) -> tuple[Node, ...]:
        return tuple(self.build(each, depth + 1) for each in nodes)

    def _is_constant(self, value: object) -> bool:
        if isinstance(value, bool | str) or not isinstance(value, int | float):
            return self._language.logic and isinstance(value, bool | str)
        if not 0 <= value <= self._language.max_number:
            raise self._language.error(self._text, "a number in it is too large")
        return True


def _count_words(least: int, most: int | None) -> str:
    if most is None:
        return f"{('no', 'one', 'two')[least]} or more values"
    return "one value" if most == 1 else f"{least} to {most} values"


def _shorten(node: ast.expr) -> str:
    try:
        return ast.unparse(node)[:40]
    except (RecursionError, ValueError):
        return type(node).__name__


def walk(tree: Node) -> Iterator[Node]:
    """Every node of an expression, from left to right."""
    yield tree
    match tree:
        case AllOf(parts=parts) | AnyOf(parts=parts) | Call(arguments=parts):
            pass
        case Binary(left=left, right=right):
            parts = (left, right)
        case Not(part=part):
            parts = (part,)
        case _:
            parts = ()
    for part in parts:
        yield from walk(part)


def names(tree: Node) -> frozenset[str]:
    """Every name in an expression."""
    return frozenset(node.name for node in walk(tree) if isinstance(node, Name))


def replace_atoms(tree: Node, replace: Callable[[Node], Node]) -> Node:
    """The same `and`, `or` and `not` over other atoms."""
    match tree:
        case AllOf(parts=parts):
            return AllOf(tuple(replace_atoms(part, replace) for part in parts))
        case AnyOf(parts=parts):
            return AnyOf(tuple(replace_atoms(part, replace) for part in parts))
        case Not(part=part):
            return Not(replace_atoms(part, replace))
        case _:
            return replace(tree)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that cannot be computed, and the names that have none."""

    names: frozenset[str]


Lookup: TypeAlias = Callable[[str], Any]
"""The value of a name, or `Unknown`."""


def evaluate(tree: Node, lookup: Lookup, functions: Mapping[str, Callable[..., Any]] | None = None) -> Any:
    """The value of an expression, or `Unknown`. Errors of arithmetic and of `lookup` pass through."""
    match tree:
        case Constant(value=value):
            return value
        case Name(name=name):
            return lookup(name)
        case Binary(operator=sign, left=left, right=right):
            return _apply(OPERATORS[sign], [evaluate(left, lookup, functions), evaluate(right, lookup, functions)])
        case Call(function=name, arguments=arguments):
            return _apply((functions or {})[name], [evaluate(each, lookup, functions) for each in arguments])
        case _:
            verdict = judge(tree, lambda atom: verdict_of(evaluate(atom, lookup, functions)))
            return Unknown(frozenset(verdict.missing)) if verdict.holds is None else verdict.holds


def _apply(function: Callable[..., Any], values: list[Any]) -> Any:
    missing = [name for each in values if isinstance(each, Unknown) for name in each.names]
    return Unknown(frozenset(missing)) if missing else function(*values)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a condition holds (None: open), the names that decided it, and missing ones that could change it."""

    holds: bool | None
    decided_by: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def negate(self) -> Verdict:
        return self if self.holds is None else Verdict(not self.holds, self.decided_by, self.missing)


def verdict_of(value: Any, decided_by: tuple[str, ...] = ()) -> Verdict:
    """The verdict that a value is: true, false or open."""
    return Verdict(None, missing=tuple(value.names)) if isinstance(value, Unknown) else Verdict(bool(value), decided_by)


def judge(tree: Node, judge_atom: Callable[[Node], Verdict]) -> Verdict:
    """Three-valued `and`, `or` and `not` over the verdicts of the atoms."""
    match tree:
        case AllOf(parts=parts):
            return _join([judge(part, judge_atom) for part in parts])
        case AnyOf(parts=parts):
            return _join([judge(part, judge_atom).negate() for part in parts]).negate()
        case Not(part=part):
            return judge(part, judge_atom).negate()
        case _:
            return judge_atom(tree)


def _join(verdicts: list[Verdict]) -> Verdict:
    """All of them: one that is false decides, else one that is open leaves it open."""
    if false := [each for each in verdicts if each.holds is False]:
        return Verdict(False, _unique(each.decided_by for each in false))
    if undecided := [each for each in verdicts if each.holds is None]:
        return Verdict(None, missing=_unique(each.missing for each in undecided))
    return Verdict(True, _unique(each.decided_by for each in verdicts), _unique(each.missing for each in verdicts))


def _unique(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))
