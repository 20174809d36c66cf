"""The language written down plainly: a walk over an expression, node by node, without any short way.

It is slow, and it is what compiled expressions are held against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bicameral.errors import nearest_name
from bicameral.plans import EvaluationError
from bicameral.plans._expressions import (
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
    Reference,
    Slice,
    TupleOf,
)
from bicameral.plans.evaluate._bounds import (
    MAX_TEXT,
    WORK_KEY,
    check_length,
    check_number,
    flat_cost,
    inner_environment,
    too_large_error,
)
from bicameral.plans.evaluate._closures import argument_error, call_form, invoke  # pyright: ignore[reportPrivateUsage]
from bicameral.plans.evaluate._library import FUNCTIONS, check_dict_key
from bicameral.plans.evaluate._operations import (  # pyright: ignore[reportPrivateUsage]
    COMPARISONS,
    arithmetic_operator,
    get_field,
    get_item,
    get_slice,
    iterable_items,
    negate,
    unpack_item,
)
from bicameral.plans.evaluate._values import format_with_spec

Env = dict[str, Any]


def plain_weigh(value: Any, most: int = 1_000_000, most_text: int = 100_000_000, deepest: int = 64) -> int:
    """How many values a value holds, counted one by one."""
    if not isinstance(value, list | tuple | dict):
        return 1
    nodes, text = 0, 0
    level: list[Any] = [value]
    for _ in range(deepest):
        inner: list[Any] = []
        for container in level:
            values: Any = list(container.values()) if isinstance(container, dict) else container  # pyright: ignore
            nodes += len(values)
            if nodes > most:
                raise too_large_error("the value, with everything in it,", most)
            inner += [item for item in values if isinstance(item, list | tuple | dict)]
            text += sum(len(item) for item in values if isinstance(item, str))
        if text > most_text:
            raise too_large_error("the text in the value", most_text)
        if not inner:
            return nodes
        level = inner
    raise EvaluationError("run.too-large", f"the value is nested more than {deepest} levels deep")


def _weighed(value: Any) -> Any:
    if isinstance(value, str):
        check_length("the text", len(value), MAX_TEXT)
    else:
        plain_weigh(value)
    return value


def _deep_cost(value: Any) -> int:
    return len(value) // 64 if isinstance(value, str) else 2 * plain_weigh(value)


def plain_evaluate(expr: Any, env: Env) -> Any:
    """The value of an expression, or an EvaluationError."""
    try:
        return _value(expr, env, False)
    except OverflowError:
        raise EvaluationError("run.too-large", "the expression is too large to evaluate") from None
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        raise EvaluationError("run.type", f"the expression has no value ({type(error).__name__})") from None


def _counted(value: Any, env: Env, looped: bool) -> Any:
    if looped:
        env[WORK_KEY].spend(_deep_cost(value))
    return value


def _value(expr: Any, env: Env, looped: bool) -> Any:
    def of(inner: Any) -> Any:
        return _value(inner, env, looped)

    match expr:
        case Const(value=value):
            if isinstance(value, str):
                check_length("the text", len(value), MAX_TEXT)
            return value if value is None or isinstance(value, str) else check_number(value)
        case Reference(bound=bound):
            if bound is None:
                raise EvaluationError(
                    "run.unbound-reference", f"{expr.refers}({expr.words!r}) is not bound to anything"
                )
            return bound.value
        case Ref(name=name):
            if name not in env:
                near = nearest_name(name, env)
                raise EvaluationError(
                    "run.unbound", f"{name!r} has no value yet", nearest=near, fix="Assign it before."
                )
            return env[name]
        case Get(value=value, field=field):
            return get_field(of(value), field)
        case Index(value=value, at=at):
            return get_item(of(value), of(at))
        case Slice():
            parts = [None if part is None else of(part) for part in (expr.value, expr.start, expr.stop, expr.step)]
            return _counted(get_slice(*parts), env, looped)
        case ListOf(items=items) | TupleOf(items=items):
            return _weighed([of(item) for item in items])
        case DictOf(entries=entries):
            return _weighed({check_dict_key(of(key)): of(value) for key, value in entries})
        case Arithmetic(op=op, left=left, right=right):
            return _counted(arithmetic_operator(op)(of(left), of(right)), env, looped)
        case Negative(value=value):
            return negate(of(value))
        case Not(value=value):
            return not of(value)
        case Logic(op=op, items=items):
            found = None
            for item in items:
                found = of(item)
                if bool(found) is (op == "or"):
                    break
            return found
        case Compare():
            return _compared(expr, env, looped)
        case Choose():
            return of(expr.then) if of(expr.condition) else of(expr.otherwise)
        case Apply():
            return _applied(expr, env, looped)
        case Format(parts=parts):
            texts = [part if isinstance(part, str) else format_with_spec(of(part.value), part.spec) for part in parts]
            check_length("the text", sum(map(len, texts)), MAX_TEXT)
            return _counted("".join(texts), env, looped)
        case Comprehension():
            return _comprehended(expr, env, looped)
        case _:
            raise EvaluationError("run.bad-call", "a lambda stands only as an argument")


def _compared(expr: Compare, env: Env, looped: bool) -> bool:
    left = _value(expr.first, env, looped)
    for op, right_expr in expr.rest:
        right = _value(right_expr, env, looped)
        if looped and isinstance(left, list | tuple | dict):
            env[WORK_KEY].spend(_deep_cost(left) + _deep_cost(right))
        elif looped and op in ("in", "not in"):
            env[WORK_KEY].spend(flat_cost(right) // 16)
        if not COMPARISONS[op](left, right):
            return False
        left = right
    return True


def _applied(expr: Apply, env: Env, looped: bool) -> Any:
    function = FUNCTIONS[expr.function]
    ways = [way for signature in function.signatures if (way := call_form(signature, expr)) is not None]
    if not ways:
        raise EvaluationError("run.bad-call", f"{expr.function}() is not called like this")
    given = (*expr.args, *(value for _, value in expr.named))
    args = [_lambda(arg, env) if isinstance(arg, Lambda) else _value(arg, env, looped) for arg in given]
    if looped:
        costs = {"constant": lambda _: 0, "flat": flat_cost, "deep": _deep_cost}  # pyright: ignore
        env[WORK_KEY].spend(1 + sum(costs[function.cost](arg) for arg in args))  # pyright: ignore
    for way in ways:
        if all(isinstance(arg, classes) for arg, classes in zip(args, way[1], strict=True)):
            result = invoke(function, way, args)
            return _weighed(result) if function.grows else result
    raise argument_error(function, ways, args)


def _lambda(expr: Lambda, env: Env) -> Callable[..., Any]:
    inner, work = inner_environment(env)

    def call(*values: Any) -> Any:
        work.spend(1)
        inner.update(zip(expr.names, values, strict=True))
        return _value(expr.body, inner, True)

    return call


def _comprehended(expr: Comprehension, env: Env, looped: bool) -> Any:
    inner, _ = inner_environment(env)
    first = _value(expr.clauses[0].over, env, looped)
    items: list[Any] = []
    entries: dict[str, Any] = {}
    for _ in _turns(expr, 0, first, inner):
        if expr.key is None:
            items.append(_value(expr.element, inner, True))
        else:
            key = check_dict_key(_value(expr.key, inner, True))
            entries[key] = _value(expr.element, inner, True)
    return _weighed(items if expr.key is None else entries)


def _turns(expr: Comprehension, number: int, over: Any, inner: Env) -> Iterator[None]:
    clause = expr.clauses[number]
    found = iterable_items(over)
    inner[WORK_KEY].spend(len(found) + 1)
    for item in found:
        parts = (item,) if len(clause.names) == 1 else unpack_item(item, len(clause.names))
        inner.update(zip(clause.names, parts, strict=True))
        if not all(_value(condition, inner, True) for condition in clause.conditions):
            continue
        if number + 1 == len(expr.clauses):
            yield
        else:
            yield from _turns(expr, number + 1, _value(expr.clauses[number + 1].over, inner, True), inner)
