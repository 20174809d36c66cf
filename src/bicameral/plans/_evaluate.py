"""Expressions to closures, compiled once. Evaluation is pure and total: a value or an EvaluationError, always soon."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any

from ._bounds import CURRENT, RUN_WORK
from ._calls import Code, Env, compile_call, failing
from ._code_loops import comprehension, lambda_of
from ._code_operators import binary, choose, compare, comparison, counted_comparison, logic, unary
from ._code_values import (
    charged,
    const,
    counted,
    dict_of,
    format_of,
    get,
    get_of,
    index,
    list_of,
    nothing,
    ref,
    slice_of,
)
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
)
from ._failure import EvaluationError
from ._operators import negative

_LARGE = 1 << 60

_compiled: dict[int, tuple[weakref.ref[Any], Code]] = {}


def compile_expr(expr: Any) -> Code:
    """The expression as a function of the variables, compiled once for each expression object.

    Example:
        >>> compile_expr(Apply(function="upper", args=(Ref(name="name"),)))({"name": "ada"})
        'ADA'
    """
    key = id(expr)
    known = _compiled.get(key)
    if known is not None and known[0]() is expr:
        return known[1]
    code = _guarded(_Compiler().code(expr))
    # The bound method outlives the module's names, which are gone when the interpreter ends.
    forget = _compiled.pop
    _compiled[key] = (weakref.ref(expr, lambda _: forget(key, None)), code)
    return code


def evaluate(expr: Any, variables: Env) -> Any:
    """The value of an expression."""
    return compile_expr(expr)(variables)


def _guarded(code: Code) -> Code:
    """The last line: what Python itself refuses is an EvaluationError too."""

    def run(env: Env) -> Any:
        # Not through a context manager or another function: each expression of a run passes here.
        meter = env.get(RUN_WORK)
        before = CURRENT.run
        if meter is not before:
            CURRENT.run = meter
        try:
            value = code(env)
            if meter is not None:
                meter.settle()
            return value
        except (RecursionError, MemoryError, OverflowError):
            raise EvaluationError("run.too-large", "the expression is too large to evaluate") from None
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise EvaluationError("run.type", f"the expression has no value ({type(error).__name__})") from None
        finally:
            if meter is not before:
                CURRENT.run = before

    return run


@dataclass(slots=True)
class _Compiler:
    looped: bool = False
    """Inside a comprehension or lambda, where work adds up and is counted."""
    depth: int = 0
    """How many expressions are around the one that is compiled."""

    def code(self, expr: Any) -> Code:
        if self.depth > MAX_DEPTH:
            return failing(lambda: EvaluationError("run.too-large", f"nested more than {MAX_DEPTH} levels deep"))
        self.depth += 1
        try:
            return self._code(expr)
        finally:
            self.depth -= 1

    def _code(self, expr: Any) -> Code:
        match expr:
            case Const():
                return const(expr)
            case Ref(name=name):
                return ref(name)
            case Get(value=Ref(name=name), field=field):
                return get_of(name, field)
            case Get(value=value, field=field):
                return get(self.code(value), field)
            case Index(value=value, at=at):
                return index(self.code(value), self.code(at))
            case Slice():
                parts = (expr.value, expr.start, expr.stop, expr.step)
                return self._counted(slice_of(*(nothing if part is None else self.code(part) for part in parts)))
            case ListOf(items=items) | TupleOf(items=items):
                return list_of([self.code(item) for item in items])
            case DictOf(entries=entries):
                return dict_of([(_key(key) or self.code(key), self.code(value)) for key, value in entries])
            case Arithmetic(op=op, left=left, right=right):
                return binary(op, self.code(left), self.code(right), _number(right), looped=self.looped)
            case Negative(value=value):
                return unary(negative, self.code(value))
            case Not(value=value):
                return unary(_not, self.code(value))
            case Logic(op=op, items=items):
                return logic([self.code(item) for item in items], stop=op == "or")
            case Compare():
                return self._compare(expr)
            case Choose():
                return choose(self.code(expr.condition), self.code(expr.then), self.code(expr.otherwise))
            case Apply():
                codes = [self._argument(arg) for arg in (*expr.args, *(value for _, value in expr.named))]
                return compile_call(expr, codes, looped=self.looped)
            case Format(parts=parts):
                texts = [part if isinstance(part, str) else (self.code(part.value), part.spec) for part in parts]
                return format_of(texts, looped=self.looped)
            case Comprehension():
                return self._comprehension(expr)
            case _:
                return failing(_stray_lambda)

    def _counted(self, code: Code) -> Code:
        """The size of what is made counts as work, inside loops for the expression, and for the run everywhere."""
        return counted(code) if self.looped else charged(code)

    def _compare(self, expr: Compare) -> Code:
        holds = counted_comparison if self.looped else comparison
        rest = [(op, holds(op), self.code(right)) for op, right in expr.rest]
        return compare(self.code(expr.first), rest)

    def _argument(self, arg: Any) -> Code:
        return self._lambda(arg) if isinstance(arg, Lambda) else self.code(arg)

    def _lambda(self, expr: Lambda) -> Code:
        return lambda_of(replace(self, looped=True).code(expr.body), expr.names)

    def _comprehension(self, expr: Comprehension) -> Code:
        inside = replace(self, looped=True)
        element = inside.code(expr.element)
        key = None if expr.key is None else inside.code(expr.key)
        # The first list is evaluated outside of the comprehension, as in Python.
        clauses = [
            (
                clause.names,
                (inside if number else self).code(clause.over),
                [inside.code(condition) for condition in clause.conditions],
            )
            for number, clause in enumerate(expr.clauses)
        ]
        return comprehension(element, key, clauses)


def _stray_lambda() -> EvaluationError:
    return EvaluationError(
        "run.bad-call", "a lambda stands only as an argument", expected="for example sorted(xs, key=lambda x: x.name)"
    )


def _key(expr: Any) -> str | None:
    """A key of a dict that is written in the plan."""
    return expr.value if isinstance(expr, Const) and isinstance(expr.value, str) else None


def _number(expr: Any) -> int | None:
    """A whole number that is written in the plan and not too large."""
    return expr.value if isinstance(expr, Const) and type(expr.value) is int and abs(expr.value) < _LARGE else None


def _not(value: Any) -> bool:
    return not value
