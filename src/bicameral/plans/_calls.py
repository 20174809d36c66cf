"""Calls of library functions while an expression is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bicameral.errors import nearest

from ._bounds import WORK, charge, deep_cost, flat_cost, weighed
from ._expressions import Apply, Const, Lambda
from ._failure import EvaluationError, brief, wrong
from ._function import Function, Parameter, Signature
from ._library import FUNCTIONS

Env = Mapping[str, Any]
Code = Callable[[Env], Any]
Way = tuple[Callable[..., Any], tuple[tuple[type[object], ...], ...], tuple[int, ...], tuple[tuple[str, int], ...]]
"""How to run one signature: its code, the classes of each argument, and which go by position and which by name."""


def compile_call(expr: Apply, codes: Sequence[Code], *, looped: bool) -> Code:
    """The code of a call, given the code of each argument (positional, then named)."""
    function = FUNCTIONS.get(expr.function)
    if function is None:
        return failing(
            lambda: EvaluationError(
                "run.bad-call",
                f"there is no function {expr.function!r}",
                nearest=nearest(expr.function, FUNCTIONS),
            )
        )
    ways = [way for signature in function.signatures if (way := _way(signature, expr)) is not None]
    if not ways:
        return failing(
            lambda: EvaluationError(
                "run.bad-call", f"{expr.function}() is not called like this", expected=function.usage
            )
        )
    return _run(function, ways, tuple(codes), _cost(function) if looped else None)


def failing(error: Callable[[], EvaluationError]) -> Code:
    def run(env: Env) -> Any:
        raise error()

    return run


def shape(signature: Signature, expr: Apply) -> tuple[Parameter, ...] | None:
    """The parameter of each argument, or None if the call cannot mean this signature."""
    bound = signature.bind(len(expr.args), [name for name, _ in expr.named])
    if bound is None:
        return None
    given = (*expr.args, *(value for _, value in expr.named))
    return bound if all(_may_stand(p, arg) for p, arg in zip(bound, given, strict=True)) else None


def _may_stand(parameter: Parameter, argument: Any) -> bool:
    if isinstance(argument, Lambda):
        return parameter.takes == len(argument.names) > 0
    return not parameter.takes or (not parameter.required and argument == Const(value=None))


def _way(signature: Signature, expr: Apply) -> Way | None:
    bound = shape(signature, expr)
    if bound is None:
        return None
    by_position = list(range(len(expr.args)))
    by_name = {parameter.name: at for at, parameter in enumerate(bound) if at >= len(expr.args)}
    # Names become positions while they follow without a gap: some functions are Python's own and know no names.
    order = [p for p in signature.parameters if not p.named_only and not p.many]
    for parameter in order[len(by_position) :]:
        if parameter.name not in by_name:
            break
        by_position.append(by_name.pop(parameter.name))
    classes = tuple((object,) if p.takes else p.kind.classes for p in bound)
    return signature.run, classes, tuple(by_position), tuple(by_name.items())


def _cost(function: Function) -> Callable[[Any], int]:
    match function.cost:
        case "constant":
            return _none
        case "flat":
            return flat_cost
        case "deep":
            return deep_cost


def _none(value: object) -> int:
    return 0


def _run(function: Function, ways: list[Way], codes: tuple[Code, ...], cost: Callable[[Any], int] | None) -> Code:
    if len(ways) == len(codes) == 1 and not ways[0][3]:
        return _run_simple(function, ways[0], codes[0], cost)
    grows = function.grows

    def run(env: Env) -> Any:
        args = [code(env) for code in codes]
        if cost is not None:
            env[WORK].spend(1 + sum(map(cost, args)))
        else:
            charge(1 + sum(map(flat_cost, args)))
        for way in ways:
            if all(map(isinstance, args, way[1])):
                result = _called(function, way, args)
                return weighed(result) if grows else result
        raise _refused(function, ways, args)

    return run


def _run_simple(function: Function, way: Way, code: Code, cost: Callable[[Any], int] | None) -> Code:
    """The same for a single argument that can mean only one thing, as most calls are."""
    call, (classes,), _, _ = way
    grows = function.grows

    def run(env: Env) -> Any:
        arg = code(env)
        if cost is not None:
            env[WORK].spend(1 + cost(arg))
        else:
            charge(1 + flat_cost(arg))
        if not isinstance(arg, classes):
            raise _refused(function, [way], [arg])
        try:
            result = call(arg)
        except (TypeError, OverflowError, MemoryError) as error:
            raise _failed(function, error, [arg]) from None
        return weighed(result) if grows else result

    return run


def _called(function: Function, way: Way, args: list[Any]) -> Any:
    call, _, by_position, by_name = way
    try:
        if not by_name:
            return call(*[args[at] for at in by_position])
        return call(*[args[at] for at in by_position], **{name: args[at] for name, at in by_name})
    except (TypeError, OverflowError, MemoryError) as error:
        raise _failed(function, error, args) from None


def _failed(function: Function, error: Exception, args: list[Any]) -> EvaluationError:
    if isinstance(error, TypeError):
        return wrong(f"{function.name}() cannot take {_shown(args)}", args)
    return EvaluationError("run.too-large", f"the result of {function.name}() is too large")


def _refused(function: Function, ways: list[Way], args: list[Any]) -> EvaluationError:
    fix = None
    first = args[0] if args else None
    if isinstance(first, str) and ways and list in ways[0][1][0]:
        fix = "A text is not a list: use text.splitlines() or text.split()."
    error = wrong(f"{function.name}() cannot take {_shown(args)}", args, fix=fix)
    error.expected = function.usage
    return error


def _shown(args: Sequence[Any]) -> str:
    return ", ".join("a lambda" if callable(arg) else brief(arg) for arg in args) or "nothing"
