"""Calls of library functions, comprehensions and lambdas as closures over the environment; work in loops is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bicameral.errors import nearest_name
from bicameral.plans._expressions import Apply, Const, Lambda
from bicameral.plans._type_rules import CostClass, LibraryFunction, Parameter, Signature
from bicameral.plans.evaluate._bounds import (
    CURRENT_RUN,
    WORK_KEY,
    EvaluationError,
    bad_value,
    charge_run,
    check_size,
    deep_cost,
    flat_cost,
    inner_environment,
    preview,
)
from bicameral.plans.evaluate._cell_closures import CELL_CODES
from bicameral.plans.evaluate._library import FUNCTIONS, check_dict_key
from bicameral.plans.evaluate._operations import iterable_items, unpack_item
from bicameral.plans.evaluate._tables import TableComprehension
from bicameral.types import Table, plain_value

Env = Mapping[str, Any]
Code = Callable[[Env], Any]
CallForm = tuple[Callable[..., Any], tuple[tuple[type[object], ...], ...], tuple[int, ...], tuple[tuple[str, int], ...]]
"""How to run one signature: its code, the classes of each argument, and which go by position and which by name."""


def compile_call(expr: Apply, codes: Sequence[Code], *, in_loop: bool) -> Code:
    """The code of a call, given the code of each argument (positional, then named)."""
    # The closures keep names only: one that held the expression would keep it in the memo of compiled code forever.
    name = expr.function
    function = FUNCTIONS.get(name)
    if function is None:
        near = nearest_name(name, FUNCTIONS)
        return failing_code(lambda: EvaluationError("run.bad-call", f"there is no function {name!r}", nearest=near))
    ways = [way for signature in function.signatures if (way := call_form(signature, expr)) is not None]
    if not ways:
        message = f"{name}() is not called like this"
        return failing_code(lambda: EvaluationError("run.bad-call", message, expected=function.usage))
    if in_loop and name in CELL_CODES and not expr.named and (code := CELL_CODES[name](expr.args, codes)) is not None:
        return code
    return _call_code(function, ways, tuple(codes), _COST_FUNCTIONS[function.cost] if in_loop else None)


def failing_code(error: Callable[[], EvaluationError]) -> Code:
    def run(env: Env) -> Any:
        raise error()

    return run


def bind_arguments(signature: Signature, expr: Apply) -> tuple[Parameter, ...] | None:
    """The parameter of each argument, or None if the call cannot mean this signature."""
    bound = signature.bind(len(expr.args), [name for name, _ in expr.named])
    if bound is None:
        return None
    given = (*expr.args, *(value for _, value in expr.named))
    return bound if all(_can_bind(p, arg) for p, arg in zip(bound, given, strict=True)) else None


def _can_bind(parameter: Parameter, argument: Any) -> bool:
    if isinstance(argument, Lambda):
        return parameter.lambda_arity == len(argument.names) > 0
    return not parameter.lambda_arity or (not parameter.required and argument == Const(value=None))


def call_form(signature: Signature, expr: Apply) -> CallForm | None:
    bound = bind_arguments(signature, expr)
    if bound is None:
        return None
    by_position = list(range(len(expr.args)))
    by_name = {parameter.name: at for at, parameter in enumerate(bound) if at >= len(expr.args)}
    # Named arguments become positional where no parameter is skipped: Python's own functions take no names.
    order = [p for p in signature.parameters if not p.named_only and not p.variadic]
    for parameter in order[len(by_position) :]:
        if parameter.name not in by_name:
            break
        by_position.append(by_name.pop(parameter.name))
    classes = tuple((object,) if p.lambda_arity else p.kind.classes for p in bound)
    return signature.run, classes, tuple(by_position), tuple(by_name.items())


_COST_FUNCTIONS: dict[CostClass, Callable[[Any], int]] = {
    "constant": lambda value: 0,
    "flat": flat_cost,
    "deep": deep_cost,
}


def _call_code(
    function: LibraryFunction, ways: list[CallForm], codes: tuple[Code, ...], cost: Callable[[Any], int] | None
) -> Code:
    if len(ways) == len(codes) == 1 and not ways[0][3]:
        return _single_argument_code(function, ways[0], codes[0], cost)
    grows = function.grows

    def run(env: Env) -> Any:
        args = [code(env) for code in codes]
        if cost is not None:
            env[WORK_KEY].spend(1 + sum(map(cost, args)))
        else:
            charge_run(1 + sum(map(flat_cost, args)))
        for way in ways:
            if all(map(isinstance, args, way[1])):
                result = invoke(function, way, args)
                return check_size(result) if grows else result
        raise argument_error(function, ways, args)

    return run


def _single_argument_code(
    function: LibraryFunction, way: CallForm, code: Code, cost: Callable[[Any], int] | None
) -> Code:
    """The fast path for a single argument and one signature, as in most calls."""
    call, (classes,), _, _ = way
    grows = function.grows

    def run(env: Env) -> Any:
        arg = code(env)
        if cost is not None:
            env[WORK_KEY].spend(1 + cost(arg))
        else:
            charge_run(1 + flat_cost(arg))
        if not isinstance(arg, classes):
            raise argument_error(function, [way], [arg])
        try:
            result = call(arg)
        except (TypeError, OverflowError, MemoryError) as error:
            raise _call_error(function, error, [arg]) from None
        return check_size(result) if grows else result

    return run


def invoke(function: LibraryFunction, way: CallForm, args: list[Any]) -> Any:
    call, _, by_position, by_name = way
    try:
        if not by_name:
            return call(*[args[at] for at in by_position])
        return call(*[args[at] for at in by_position], **{name: args[at] for name, at in by_name})
    except (TypeError, OverflowError, MemoryError) as error:
        raise _call_error(function, error, args) from None


def _call_error(function: LibraryFunction, error: Exception, args: list[Any]) -> EvaluationError:
    if isinstance(error, TypeError):
        return bad_value(f"{function.name}() cannot take {_describe_arguments(args)}", args)
    return EvaluationError("run.too-large", f"the result of {function.name}() is too large")


def argument_error(function: LibraryFunction, ways: list[CallForm], args: list[Any]) -> EvaluationError:
    fix = None
    first = args[0] if args else None
    if isinstance(first, str) and ways and list in ways[0][1][0]:
        fix = "A text is not a list: use text.splitlines() or text.split()."
    error = bad_value(f"{function.name}() cannot take {_describe_arguments(args)}", args, fix=fix)
    error.expected = function.usage
    return error


def _describe_arguments(args: Sequence[Any]) -> str:
    return ", ".join("a lambda" if callable(arg) else preview(arg) for arg in args) or "nothing"


ClauseCode = tuple[tuple[str, ...], Code, list[Code]]
"""The names of a `for`, what it goes over, and its conditions."""


def comprehension_code(
    expr: object,
    element: Code,
    key: Code | None,
    clauses: list[ClauseCode],
    by_columns: TableComprehension | None = None,
) -> Code:
    """The code of a list or, with a key, of a dict comprehension; what its conditions keep is counted for the run.

    The code of what a `for` goes over may give a `Table`. If the items are rows of one, so may this code.
    """
    if key is None and len(clauses) == 1 and len(clauses[0][0]) == 1 and len(clauses[0][2]) <= 1:
        return _single_list_code(expr, element, *clauses[0], by_columns)
    return _nested_loops_code(expr, element, key, clauses, by_columns)


def _table_items(expr: object, by_columns: TableComprehension, table: Table, env: Env) -> Any:
    """The items of a comprehension over a table; None if the plain way must find them."""
    inner, work = inner_environment(env)
    found = by_columns.run(inner, table, work)
    if found is None:
        return None
    items, kept = found
    if by_columns.mask is not None and (counter := CURRENT_RUN.run) is not None:
        counter.count_selection(expr, len(table), kept)
    return items


def _single_list_code(
    expr: object,
    element: Code,
    names: tuple[str, ...],
    over: Code,
    conditions: list[Code],
    by_columns: TableComprehension | None,
) -> Code:
    """The fast path for `[f(x) for x in xs if g(x)]`."""
    (name,) = names
    condition = conditions[0] if conditions else None

    def run(env: Env) -> Any:
        given = over(env)
        if type(given) is Table:
            if by_columns is not None and given and (items := _table_items(expr, by_columns, given, env)) is not None:
                return items
            given = given.rows()
        inner, work = inner_environment(env)
        found = iterable_items(given)
        work.spend(len(found) + 1)
        items: list[Any] = []
        for item in found:
            inner[name] = item
            if condition is None or condition(inner):
                items.append(element(inner))
        if condition is not None and (counter := CURRENT_RUN.run) is not None:
            counter.count_selection(expr, len(found), len(items))
        return check_size(items)

    return run


def _nested_loops_code(
    expr: object,
    element: Code,
    key: Code | None,
    clauses: list[ClauseCode],
    by_columns: TableComprehension | None,
) -> Code:
    (_, outermost, _), *_ = clauses
    filters = any(conditions for _, _, conditions in clauses)

    def run(env: Env) -> Any:
        given = outermost(env)
        if type(given) is Table and by_columns is not None and given:
            items = _table_items(expr, by_columns, given, env)
            if items is not None:
                return items
        return run_rows(env, plain_value(given))

    def run_rows(env: Env, first: Any) -> Any:
        inner, work = inner_environment(env)
        items: list[Any] = []
        entries: dict[str, Any] = {}
        outer = given = kept = 0

        def go(number: int, over: Any) -> None:
            nonlocal outer, given
            names, _, conditions = clauses[number]
            found = iterable_items(plain_value(over))
            work.spend(len(found) + 1)
            if number == 0:
                outer = len(found)
            if number + 1 == len(clauses):
                given += len(found)
            for item in found:
                _bind_names(inner, names, item)
                for condition in conditions:
                    if not condition(inner):
                        break
                else:
                    emit() if number + 1 == len(clauses) else go(number + 1, clauses[number + 1][1](inner))

        def emit() -> None:
            nonlocal kept
            kept += 1
            if key is None:
                items.append(element(inner))
            else:
                entries[check_dict_key(key(inner))] = element(inner)

        go(0, first)
        if filters and (counter := CURRENT_RUN.run) is not None:
            # If an outer condition dropped everything, no inner list was looked at.
            counter.count_selection(expr, given or outer, kept)
        return check_size(items if key is None else entries)

    return run


def _bind_names(inner: dict[str, Any], names: tuple[str, ...], item: Any) -> None:
    if len(names) == 1:
        inner[names[0]] = item
    else:
        inner.update(zip(names, unpack_item(item, len(names)), strict=True))


def lambda_code(body: Code, names: tuple[str, ...]) -> Code:
    """The code of a lambda: it makes a Python function in its environment."""

    def make(env: Env) -> Callable[..., Any]:
        inner, work = inner_environment(env)

        def call(*values: Any) -> Any:
            work.spend(1)
            inner.update(zip(names, values, strict=True))
            return body(inner)

        return call

    return make
