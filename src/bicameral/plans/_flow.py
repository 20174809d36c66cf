"""Shades of expressions: which labels the value of an expression has, part by part, from those of its variables.

An expression becomes a function of the shades of its variables, compiled once, like `compile_expr` does for values. It
never looks at data, so it costs by the size of the expression; and since equal shades are one object, asking again with
the same shades is a look into a table. The same functions serve the proof before a run and the labels during it.

Every rule is monotone: from shades that cover others it computes a shade that covers what it computes from the others.
In `strict` mode what decides counts like what is used: the condition of a comprehension, the key of an order, how many
items there are where one is taken. In `normal` mode only what is used counts, and the condition of `x if c else y`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from bicameral.decisions import Mode
from bicameral.labels import NOTHING, UNKNOWN, Label, Shade, tainted

from ._depth import MAX_DEPTH
from ._expressions import (
    Apply,
    Arithmetic,
    Choose,
    Compare,
    Comprehension,
    Const,
    DictOf,
    Format,
    Get,
    Index,
    Lambda,
    ListOf,
    Logic,
    Negative,
    Not,
    Ref,
    Slice,
    TupleOf,
    free_names,
)
from ._flow_calls import ShadeCode, ShadeEnv, call_shade
from ._flow_nodes import (
    is_scalar,
    of_arithmetic,
    of_choose,
    of_comparison,
    of_comprehension,
    of_dict,
    of_flat,
    of_get,
    of_index,
    of_list,
    of_literal,
    of_logic,
    of_own,
    of_place,
    of_ref,
    of_slice,
    of_unknown,
)
from ._remembered import remembered

_MOST_KNOWN = 32


def compile_shade(expr: Any, mode: Mode = "strict") -> ShadeCode:
    """The shade of an expression as a function of the shades of its variables, compiled once for each expression.

    Example:
        >>> compile_shade(Apply(function="upper", args=(Ref(name="subject"),)))({"subject": mail}) is mail
        True
    """
    return _strict(expr) if mode == "strict" else _normal(expr)


def shade_of(expr: Any, env: ShadeEnv, pc: Label = NOTHING, mode: Mode = "strict") -> Shade:
    """The shade of the value of an expression, under the control flow `pc`."""
    return tainted(compile_shade(expr, mode)(env), pc)


@remembered
def _strict(expr: Any) -> ShadeCode:
    return _compiled(expr, strict=True)


@remembered
def _normal(expr: Any) -> ShadeCode:
    return _compiled(expr, strict=False)


def _compiled(expr: Any, *, strict: bool) -> ShadeCode:
    if isinstance(expr, Ref):
        return of_ref(expr.name)
    try:
        names = sorted(free_names(expr))
        code = _Compiler(strict).code(expr)
    except RecursionError:
        # Deeper than any plan that was checked: its value is an error, and of its labels the worst is assumed.
        return lambda env: UNKNOWN
    if not names:
        found = code({})
        return lambda env: found
    return _known_of_one(names[0], code) if len(names) == 1 else _known_of_many(names, code)


def _known_of_one(name: str, code: ShadeCode) -> ShadeCode:
    known: dict[Shade, Shade] = {}

    def run(env: ShadeEnv) -> Shade:
        key = env.get(name, UNKNOWN)
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            found = known[key] = code({name: key})
        return found

    return run


def _known_of_many(names: Sequence[str], code: ShadeCode) -> ShadeCode:
    known: dict[tuple[Shade, ...], Shade] = {}
    get = itemgetter(*names)

    def run(env: ShadeEnv) -> Shade:
        try:
            key: tuple[Shade, ...] = get(env)
        except KeyError:
            key = tuple(env.get(name, UNKNOWN) for name in names)
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            found = known[key] = code(dict(zip(names, key, strict=True)))
        return found

    return run


@dataclass(slots=True)
class _Compiler:
    strict: bool
    depth: int = 0
    """How many expressions are around the one that is compiled."""

    def code(self, expr: Any) -> ShadeCode:
        if self.depth > MAX_DEPTH:
            return of_unknown
        self.depth += 1
        try:
            return self._code(expr)
        finally:
            self.depth -= 1

    def _code(self, expr: Any) -> ShadeCode:
        match expr:
            case Const():
                return of_literal
            case Ref(name=name):
                return of_ref(name)
            case Get(value=value, field=field) | Index(value=value, at=Const(value=str() as field)):
                return of_get(self.code(value), field)
            case Index(value=value, at=Const(value=int() as at)):
                return of_place(self.code(value), int(at), self.strict)
            case Index(value=value, at=at):
                return of_index(self.code(value), self.code(at), self.strict)
            case Slice():
                bounds = [self.code(bound) for bound in (expr.start, expr.stop, expr.step) if bound is not None]
                return of_slice(self.code(expr.value), bounds)
            case ListOf(items=items) | TupleOf(items=items):
                return of_list([self.code(item) for item in items])
            case DictOf(entries=entries):
                return of_dict([(key, self.code(key), self.code(value)) for key, value in entries], self.strict)
            case Arithmetic(op=op, left=left, right=right):
                return of_arithmetic(op, self.code(left), self.code(right))
            case Negative(value=value):
                return of_flat([self.code(value)])
            case Not(value=value):
                return of_own(self.code(value))
            case Logic(items=items):
                return of_logic([(self.code(item), is_scalar(item)) for item in items])
            case Compare():
                return self._compare(expr)
            case Choose():
                ways = [(self.code(way), is_scalar(way)) for way in (expr.then, expr.otherwise)]
                return of_choose(self.code(expr.condition), ways)
            case Apply():
                arguments = (*expr.args, *(value for _, value in expr.named))
                return call_shade(expr, [self._argument(each) for each in arguments], strict=self.strict)
            case Format(parts=parts):
                return of_flat([of_literal, *(self.code(part.value) for part in parts if not isinstance(part, str))])
            case Comprehension():
                return self._comprehension(expr)
            case _:
                return of_unknown

    def _argument(self, expr: Any) -> ShadeCode:
        return self.code(expr.body) if isinstance(expr, Lambda) else self.code(expr)

    def _compare(self, expr: Compare) -> ShadeCode:
        operands = (expr.first, *(right for _, right in expr.rest))
        return of_comparison([op for op, _ in expr.rest], [(each, self.code(each)) for each in operands])

    def _comprehension(self, expr: Comprehension) -> ShadeCode:
        clauses = [
            (clause.names, self.code(clause.over), [self.code(condition) for condition in clause.conditions])
            for clause in expr.clauses
        ]
        key = None if expr.key is None else self.code(expr.key)
        return of_comprehension(self.code(expr.element), key, clauses, self.strict)
