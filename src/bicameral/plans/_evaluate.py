"""Expressions to closures, compiled once. Evaluation is pure and total: a value or an EvaluationError, always soon."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from bicameral.errors import nearest

from ._bounds import (
    MAX_TEXT,
    WORK,
    bounded_number,
    check_length,
    deep_cost,
    flat_cost,
    inner_environment,
    weighed,
)
from ._calls import Code, Env, compile_call, failing
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
from ._library_lists import dict_key
from ._operators import (
    COMPARISONS,
    arithmetic,
    get_field,
    get_item,
    get_slice,
    items_to_go_over,
    negative,
    unpacked,
)
from ._show import show_as

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
        try:
            return code(env)
        except (RecursionError, MemoryError, OverflowError):
            raise EvaluationError("run.too-large", "the expression is too large to evaluate") from None
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise EvaluationError("run.type", f"the expression has no value ({type(error).__name__})") from None

    return run


@dataclass(frozen=True, slots=True)
class _Compiler:
    looped: bool = False
    """Inside a comprehension or lambda, where work adds up and is counted."""
    depth: int = 0

    def code(self, expr: Any) -> Code:
        if self.depth > MAX_DEPTH:
            return failing(lambda: EvaluationError("run.too-large", f"nested more than {MAX_DEPTH} levels deep"))
        return replace(self, depth=self.depth + 1)._code(expr)

    def _code(self, expr: Any) -> Code:
        match expr:
            case Const():
                return _const(expr)
            case Ref(name=name):
                return _ref(name)
            case Get(value=value, field=field):
                return _get(self.code(value), field)
            case Index(value=value, at=at):
                return _index(self.code(value), self.code(at))
            case Slice():
                parts = (expr.value, expr.start, expr.stop, expr.step)
                return self._counted(_slice(*(_nothing if part is None else self.code(part) for part in parts)))
            case ListOf(items=items) | TupleOf(items=items):
                return _list_of([self.code(item) for item in items])
            case DictOf(entries=entries):
                return _dict_of([(self.code(key), self.code(value)) for key, value in entries])
            case Arithmetic(op=op, left=left, right=right):
                return self._counted(_binary(arithmetic(op), self.code(left), self.code(right)))
            case Negative(value=value):
                return _unary(negative, self.code(value))
            case Not(value=value):
                return _unary(_not, self.code(value))
            case Logic(op=op, items=items):
                return _logic([self.code(item) for item in items], stop=op == "or")
            case Compare():
                return self._compare(expr)
            case Choose():
                return _choose(self.code(expr.condition), self.code(expr.then), self.code(expr.otherwise))
            case Apply():
                codes = [self._argument(arg) for arg in (*expr.args, *(value for _, value in expr.named))]
                return compile_call(expr, codes, looped=self.looped)
            case Format(parts=parts):
                texts = [part if isinstance(part, str) else (self.code(part.value), part.spec) for part in parts]
                return self._counted(_format(texts))
            case Comprehension():
                return self._comprehension(expr)
            case _:
                return failing(_stray_lambda)

    def _counted(self, code: Code) -> Code:
        """Inside loops the size of what is made counts as work."""
        if not self.looped:
            return code

        def run(env: Env) -> Any:
            value = code(env)
            env[WORK].spend(deep_cost(value))
            return value

        return run

    def _compare(self, expr: Compare) -> Code:
        holds = [(_counted_comparison(op) if self.looped else _comparison(op)) for op, _ in expr.rest]
        rest = [self.code(right) for _, right in expr.rest]
        return _compare(self.code(expr.first), list(zip(holds, rest, strict=True)))

    def _argument(self, arg: Any) -> Code:
        return self._lambda(arg) if isinstance(arg, Lambda) else self.code(arg)

    def _lambda(self, expr: Lambda) -> Code:
        body, names = replace(self, looped=True).code(expr.body), expr.names

        def make(env: Env) -> Any:
            inner, work = inner_environment(env)

            def call(*values: Any) -> Any:
                work.spend(1)
                inner.update(zip(names, values, strict=True))
                return body(inner)

            return call

        return make

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
        return _comprehension(element, key, clauses)


def _stray_lambda() -> EvaluationError:
    return EvaluationError(
        "run.bad-call", "a lambda stands only as an argument", expected="for example sorted(xs, key=lambda x: x.name)"
    )


def _nothing(env: Env) -> None:
    return None


def _not(value: Any) -> bool:
    return not value


def _const(expr: Const) -> Code:
    value = expr.value
    try:
        if isinstance(value, str):
            check_length("the text", len(value), MAX_TEXT)
        elif value is not None:
            bounded_number(value)
    except EvaluationError as error:
        code, message = error.code, error.message
        return failing(lambda: EvaluationError(code, message))
    return lambda env: value


def _ref(name: str) -> Code:
    def run(env: Env) -> Any:
        try:
            return env[name]
        except KeyError:
            raise EvaluationError(
                "run.unbound", f"{name!r} has no value yet", nearest=nearest(name, env), fix="Assign it before."
            ) from None

    return run


def _get(value: Code, field: str) -> Code:
    return lambda env: get_field(value(env), field)


def _index(value: Code, at: Code) -> Code:
    return lambda env: get_item(value(env), at(env))


def _slice(value: Code, start: Code, stop: Code, step: Code) -> Code:
    return lambda env: get_slice(value(env), start(env), stop(env), step(env))


def _list_of(items: list[Code]) -> Code:
    return lambda env: weighed([item(env) for item in items])


def _dict_of(entries: list[tuple[Code, Code]]) -> Code:
    return lambda env: weighed({dict_key(key(env)): value(env) for key, value in entries})


def _binary(operate: Callable[[Any, Any], Any], left: Code, right: Code) -> Code:
    return lambda env: operate(left(env), right(env))


def _unary(operate: Callable[[Any], Any], value: Code) -> Code:
    return lambda env: operate(value(env))


def _logic(items: list[Code], *, stop: bool) -> Code:
    *most, last = items

    def run(env: Env) -> Any:
        for item in most:
            value = item(env)
            if bool(value) is stop:
                return value
        return last(env)

    return run


Holds = Callable[[Env, Any, Any], bool]


def _comparison(op: str) -> Holds:
    holds = COMPARISONS[op]
    return lambda env, left, right: holds(left, right)


def _counted_comparison(op: str) -> Holds:
    holds = COMPARISONS[op]

    def run(env: Env, left: Any, right: Any) -> bool:
        # Looking for a number or text in a list is quick; looking into lists is not.
        cost = deep_cost(cast("object", left)) if isinstance(left, list | tuple | dict) else 0
        if cost or op in ("in", "not in"):
            env[WORK].spend(cost + (deep_cost(right) if cost else flat_cost(right) // 16))
        return holds(left, right)

    return run


def _compare(first: Code, rest: list[tuple[Holds, Code]]) -> Code:
    if len(rest) == 1:
        ((only, other),) = rest
        return lambda env: only(env, first(env), other(env))

    def run(env: Env) -> bool:
        left = first(env)
        for holds, code in rest:
            right = code(env)
            if not holds(env, left, right):
                return False
            left = right
        return True

    return run


def _choose(condition: Code, then: Code, otherwise: Code) -> Code:
    return lambda env: then(env) if condition(env) else otherwise(env)


def _format(parts: list[Any]) -> Code:
    def run(env: Env) -> str:
        text = [part if isinstance(part, str) else show_as(part[0](env), part[1]) for part in parts]
        check_length("the text", sum(map(len, text)), MAX_TEXT)
        return "".join(text)

    return run


def _comprehension(element: Code, key: Code | None, clauses: list[tuple[tuple[str, ...], Code, list[Code]]]) -> Code:
    (_, outermost, _), *_ = clauses

    def run(env: Env) -> Any:
        inner, work = inner_environment(env)
        items: list[Any] = []
        entries: dict[str, Any] = {}

        def go(number: int, over: Any) -> None:
            names, _, conditions = clauses[number]
            found = items_to_go_over(over)
            work.spend(len(found) + 1)
            for item in found:
                if len(names) == 1:
                    inner[names[0]] = item
                else:
                    inner.update(zip(names, unpacked(item, len(names)), strict=True))
                for condition in conditions:
                    if not condition(inner):
                        break
                else:
                    emit() if number + 1 == len(clauses) else go(number + 1, clauses[number + 1][1](inner))

        def emit() -> None:
            if key is None:
                items.append(element(inner))
            else:
                entries[dict_key(key(inner))] = element(inner)

        go(0, outermost(env))
        return weighed(items if key is None else entries)

    return run
