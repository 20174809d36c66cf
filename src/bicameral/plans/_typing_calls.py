"""The types of calls of library functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bicameral.errors import nearest
from bicameral.types import ANY, DATE, DATETIME, FLOAT, INT, STR, TIME, AnyType, ListType, OptionalType, Type

from ._advice import article, conversion, shown
from ._calls import shape
from ._expressions import Apply, Const, Lambda
from ._function import Function, Given, Parameter, Signature
from ._kinds import TEXTS
from ._library import FUNCTIONS
from ._scope import Scope

if TYPE_CHECKING:
    from ._typing import Typer

Argument = tuple[Any, Type]
Fit = tuple[Signature, tuple[Parameter, ...]]


def type_call(typer: Typer, expr: Apply, scope: Scope) -> Type:
    """The type of a call, by the first signature that its arguments fit."""
    function = FUNCTIONS.get(expr.function)
    given = [*expr.args, *(value for _, value in expr.named)]
    arguments = [(arg, ANY if isinstance(arg, Lambda) else typer.infer(arg, scope)) for arg in given]
    if function is None:
        return typer.error(
            "plan.unknown-function",
            f"there is no function {expr.function!r}",
            nearest=nearest(expr.function, FUNCTIONS),
        )
    shapes = [(s, bound) for s in function.signatures if (bound := shape(s, expr)) is not None]
    if not shapes:
        return _bad_shape(typer, function, expr)
    fitting = [fit for fit in shapes if _fits(fit, arguments)]
    if not fitting:
        present = [(arg, type_.item if isinstance(type_, OptionalType) else type_) for arg, type_ in arguments]
        fitting = [fit for fit in shapes if _fits(fit, present)]
        if not fitting:
            return _misfit(typer, function, shapes, arguments)
        _warn_of_none(typer, fitting[0], arguments)
        arguments = present
    # An argument of which nothing is known may mean any of the signatures.
    ways = fitting if any(isinstance(type_, AnyType) for _, type_ in arguments) else fitting[:1]
    results = [_result(typer, fit, arguments, scope) for fit in ways]
    return results[0] if len(set(results)) == 1 else ANY


def _fits(fit: Fit, arguments: list[Argument]) -> bool:
    return all(p.takes or p.kind.fits(type_) for p, (_, type_) in zip(fit[1], arguments, strict=True))


def _warn_of_none(typer: Typer, fit: Fit, arguments: list[Argument]) -> None:
    for parameter, (arg, type_) in zip(fit[1], arguments, strict=True):
        if not parameter.kind.fits(type_):
            typer.not_none(arg, type_)


def _result(typer: Typer, fit: Fit, arguments: list[Argument], scope: Scope) -> Type:
    signature, bound = fit
    if not callable(signature.result):
        return signature.result
    types: dict[str, Type] = {}
    rest: list[Type] = []
    constants: dict[str, object] = {}
    lambdas: dict[str, Lambda] = {}
    for parameter, (arg, type_) in zip(bound, arguments, strict=True):
        if parameter.many:
            rest.append(type_)
        elif isinstance(arg, Lambda):
            lambdas[parameter.name] = arg
        else:
            types[parameter.name] = type_
            if isinstance(arg, Const):
                constants[parameter.name] = arg.value

    def returns(name: str, items: tuple[Type, ...]) -> Type | None:
        function = lambdas.get(name)
        if function is None:
            return None
        inner = scope
        for bound_name, item in zip(function.names, items, strict=True):
            inner = inner.bind(bound_name, item)
        return typer.infer(function.body, inner)

    def report(code: str, message: str, fix: str) -> None:
        typer.note("warning" if code == "plan.none-value" else "error", code, message, fix=fix)

    return signature.result(Given(types, tuple(rest), constants, returns, report))


def _bad_shape(typer: Typer, function: Function, expr: Apply) -> Type:
    known = {parameter.name for s in function.signatures for parameter in s.parameters if not parameter.many}
    for name, _ in expr.named:
        if name not in known:
            return typer.error(
                "plan.unknown-argument",
                f"{function.name}() has no argument {name!r}",
                nearest=nearest(name, known),
                expected=function.usage,
            )
    given = len(expr.args) + len(expr.named)
    fewest = min(sum(p.required for p in s.parameters) for s in function.signatures)
    code = "plan.missing-argument" if given < fewest else "plan.unknown-argument"
    return typer.error(code, f"{function.name}() is not called like this", expected=function.usage)


def _misfit(typer: Typer, function: Function, shapes: list[Fit], arguments: list[Argument]) -> Type:
    _, bound = max(shapes, key=lambda fit: _fitting_arguments(fit, arguments))
    for parameter, (arg, type_) in zip(bound, arguments, strict=True):
        if not parameter.takes and not parameter.kind.fits(type_):
            x = shown(arg)
            return typer.error(
                "plan.wrong-type",
                f"{function.name}() needs {parameter.kind.shown} for {parameter.name!r}; `{x}` is {article(type_)}",
                fix=_fix(parameter, arg, type_),
            )
    return typer.error("plan.wrong-type", f"{function.name}() is not called like this", expected=function.usage)


def _fitting_arguments(fit: Fit, arguments: list[Argument]) -> int:
    """How many arguments fit before the first that does not."""
    for number, (parameter, (_, type_)) in enumerate(zip(fit[1], arguments, strict=True)):
        if not parameter.takes and not parameter.kind.fits(type_):
            return number
    return len(arguments)


def _fix(parameter: Parameter, arg: Any, type_: Type) -> str | None:
    x, kind = shown(arg), parameter.kind
    if isinstance(type_, ListType) and isinstance(type_.item, OptionalType):
        return f"Leave out what is None: [x for x in {x} if x is not None]."
    if kind.orderable:
        return "Say by what to order: key=lambda x: x.field."
    if kind is TEXTS:
        return f"Use [str(x) for x in {x}]." if isinstance(type_, ListType) else conversion(arg, type_, ListType(STR))
    wanted = _EXAMPLES.get(kind.shown)
    return None if wanted is None else conversion(arg, type_, wanted)


_EXAMPLES: dict[str, Type] = {
    "str": STR,
    "int": INT,
    "number": FLOAT,
    "list": ListType(STR),
    "date": DATE,
    "time": TIME,
    "datetime": DATETIME,
    "date or datetime": DATE,
}
