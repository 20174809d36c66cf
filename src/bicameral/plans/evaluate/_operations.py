"""Operators on values, calls of library functions, comprehensions and lambdas.

Operators have Python's meaning, bounded sizes, and errors that say what to do. Calls, comprehensions and lambdas become
closures over the environment; inside loops their work is counted.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from bicameral.errors import nearest_name
from bicameral.plans._expressions import Apply, Const, Lambda
from bicameral.plans._type_rules import CostClass, LibraryFunction, Parameter, Signature
from bicameral.plans.evaluate._bounds import (
    CURRENT_RUN,
    MAX_BITS,
    MAX_TEXT,
    NUMBER_TYPES,
    WORK_KEY,
    EvaluationError,
    bad_value,
    charge_run,
    check_length,
    check_size,
    deep_cost,
    flat_cost,
    inner_environment,
    preview,
    type_name,
)
from bicameral.plans.evaluate._library import FUNCTIONS, check_dict_key
from bicameral.plans.evaluate._library_scalars import DATE_FIELDS_BY_TYPE
from bicameral.plans.evaluate._values import align_time_zones, comparable_values, contains, is_equal, not_ordered_error

Operator = Callable[[Any, Any], Any]

_LARGEST_NUMBER = 1 << MAX_BITS
_MAX_KEYS = 200
_ITERABLE_TYPES = (list, tuple, dict)

PYTHON_OPERATORS: dict[str, Operator] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right,
    "//": lambda left, right: left // right,
    "%": operator.mod,
}


def arithmetic_operator(op: str) -> Operator:
    """The operator `op` on any two values."""
    plain = PYTHON_OPERATORS[op]

    def run(left: Any, right: Any) -> Any:
        if type(left) in NUMBER_TYPES and type(right) in NUMBER_TYPES:
            try:
                result = plain(left, right)
            except ZeroDivisionError:
                raise _zero_division_error() from None
            except OverflowError:
                raise _number_too_large_error() from None
            # Infinity and "not a number" fail this comparison too.
            if -_LARGEST_NUMBER < result < _LARGEST_NUMBER:
                return result
            raise _number_too_large_error()
        return _operate_on_others(op, plain, left, right)

    return run


_add = arithmetic_operator("+")


def _zero_division_error() -> EvaluationError:
    return EvaluationError("run.division-by-zero", "division by zero", fix="Test the divisor first: `if n != 0:`.")


def _number_too_large_error() -> EvaluationError:
    return EvaluationError("run.too-large", "the number is too large")


def _operate_on_others(op: str, plain: Operator, left: Any, right: Any) -> Any:
    if isinstance(left, dt.date | dt.timedelta) or isinstance(right, dt.date | dt.timedelta):
        return _operate_on_dates(op, plain, left, right)
    if op == "+" and isinstance(left, str) and isinstance(right, str):
        check_length("the text", len(left) + len(right), MAX_TEXT)
        return left + right
    if op == "+" and isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return check_size([*cast("list[Any]", left), *cast("list[Any]", right)])
    if op == "*" and isinstance(left, int):
        left, right = right, left
    if op == "*" and isinstance(right, int) and isinstance(left, str | list | tuple):
        return _repeat(cast("Any", left), right)
    raise _operator_error(op, cast("object", left), right)


def _repeat(value: Any, times: int) -> Any:
    limit = MAX_TEXT if isinstance(value, str) else 1_000_000
    check_length("the result of '*'", len(value) * max(times, 0), limit)
    return value * times if isinstance(value, str) else check_size(list(value) * times)


def _operate_on_dates(op: str, plain: Operator, left: Any, right: Any) -> Any:
    if isinstance(left, dt.datetime) and isinstance(right, dt.datetime):
        left, right = align_time_zones((left, right))
    if isinstance(left, dt.datetime) != isinstance(right, dt.datetime) and not (
        isinstance(left, dt.timedelta) or isinstance(right, dt.timedelta)
    ):
        raise _operator_error(op, left, right)
    try:
        return plain(left, right)
    except ZeroDivisionError:
        raise _zero_division_error() from None
    except OverflowError:
        raise EvaluationError("run.too-large", "the date or timedelta is beyond the years 1 to 9999") from None
    except (TypeError, ValueError):
        raise _operator_error(op, left, right) from None


def _operator_error(op: str, left: object, right: object) -> EvaluationError:
    kinds = type_name(left), type_name(right)
    fix = None
    if op == "+" and "str" in kinds:
        fix = 'Use an f-string: f"{a} {b}".'
    elif op == "%" and kinds[0] == "str":
        fix = "Use an f-string."
    return bad_value(f"{preview(left)} {op} {preview(right)} has no meaning", [left, right], fix=fix)


def negate(value: Any) -> Any:
    if isinstance(value, int | float):
        return -value
    if isinstance(value, dt.timedelta):
        try:
            return -value
        except OverflowError:
            raise _number_too_large_error() from None
    raise bad_value(f"{preview(value)} has no negative", [value])


def _order_comparison(plain: Operator) -> Operator:
    def run(left: Any, right: Any) -> bool:
        if type(left) in NUMBER_TYPES and type(right) in NUMBER_TYPES:
            return plain(left, right)
        try:
            first, second = comparable_values((left, right))
            return plain(first, second)
        except TypeError:
            raise not_ordered_error((left, right)) from None

    return run


COMPARISONS: dict[str, Operator] = {
    "==": is_equal,
    "!=": lambda left, right: not is_equal(left, right),
    "<": _order_comparison(operator.lt),
    "<=": _order_comparison(operator.le),
    ">": _order_comparison(operator.gt),
    ">=": _order_comparison(operator.ge),
    "in": lambda left, right: contains(right, left),
    "not in": lambda left, right: not contains(right, left),
}


def get_field(value: Any, field: str) -> Any:
    """`value.field`: a key of a dict or a listed field of a date. No other attribute of Python is reachable."""
    if isinstance(value, dict):
        try:
            return cast("dict[str, Any]", value)[field]
        except KeyError:
            raise _no_field_error(field, cast("dict[str, Any]", value)) from None
    classes = (each for each in type(value).__mro__ if each in DATE_FIELDS_BY_TYPE)
    if field in DATE_FIELDS_BY_TYPE.get(next(classes, object), ()):
        return getattr(value, field)
    if isinstance(value, list | tuple):
        fix = f"Take one item, or all: [item.{field} for item in xs]."
        raise bad_value(f"a list has no field {field!r}", [], fix=fix)
    raise bad_value(f"{preview(value)} has no field {field!r}", [value])


def _no_field_error(field: str, entries: dict[str, Any]) -> EvaluationError:
    known = [key for key, _ in zip(entries, range(_MAX_KEYS), strict=False)]
    return EvaluationError("run.no-field", f"there is no {preview(field)}", nearest=nearest_name(field[:100], known))


def get_item(value: Any, at: Any) -> Any:
    """`value[at]` for lists, texts and dicts."""
    if isinstance(value, dict):
        if not isinstance(at, str):
            raise bad_value(f"the key of a dict is text, not {preview(at)}", [at], fix="Use str(key).")
        try:
            return cast("dict[str, Any]", value)[at]
        except KeyError:
            raise _no_field_error(at, cast("dict[str, Any]", value)) from None
    if not isinstance(value, list | tuple | str):
        raise bad_value(f"{preview(value)} has no items", [value])
    items = cast("list[Any]", value)
    if not isinstance(at, int):
        raise bad_value(
            f"{preview(at)} is not a position in {preview(items)}", [at], fix="Positions are whole numbers."
        )
    if not -len(items) <= at < len(items):
        raise EvaluationError(
            "run.index", f"there is no item {preview(at)}: {preview(items)}", fix="Use first(xs) or test len(xs) first."
        )
    return items[at]


def get_slice(value: Any, start: Any, stop: Any, step: Any) -> Any:
    """`value[start:stop:step]` for lists and texts."""
    if not isinstance(value, list | tuple | str):
        raise bad_value(f"{preview(value)} has no parts to slice", [value])
    for bound in (start, stop, step):
        if bound is not None and not isinstance(bound, int):
            raise bad_value(f"{preview(bound)} is not a position", [], fix="Positions in a slice are whole numbers.")
    if step == 0:
        raise EvaluationError("run.index", "the step of a slice cannot be 0")
    return cast("Any", value[start:stop:step])


def iterable_items(value: Any) -> Any:
    """What a `for` goes over: the items of a list or the keys of a dict."""
    if isinstance(value, _ITERABLE_TYPES):
        return cast("Any", value)
    if isinstance(value, str):
        raise bad_value("a text is not a list", [], fix="Use text.splitlines(), text.split() or list(text).")
    raise bad_value(f"{preview(value)} is not a list", [value])


def unpack_item(item: Any, count: int) -> Any:
    """The parts of an item for `for a, b in xs`."""
    if not isinstance(item, list | tuple):
        raise bad_value(
            f"{preview(item)} has no {count} parts", [item], fix="Go over d.items() for the pairs of a dict."
        )
    parts = cast("list[Any]", item)
    if len(parts) != count:
        raise EvaluationError("run.unpack", f"an item has {len(parts)} parts, not {count}")
    return parts


def apply_update(op: str, current: Any, key: Any, value: Any) -> Any:
    """The new value of a variable after an update; the old value is not changed, since other variables may share it."""
    match op:
        case "append" if isinstance(current, list):
            items = cast("list[Any]", current)
            check_length("the list", len(items) + 1)
            return _check_size_sometimes([*items, check_size(value)], len(items) + 1)
        case "put" if isinstance(current, dict):
            if not isinstance(key, str):
                raise bad_value(f"the key of a dict is text, not {preview(key)}", [key], fix="Use str(key).")
            entries = cast("dict[str, Any]", current) | {key: check_size(value)}
            check_length("the dict", len(entries))
            return _check_size_sometimes(entries, len(entries))
        case "put" if isinstance(current, list):
            items = list(cast("list[Any]", current))
            get_item(items, key)
            items[key] = check_size(value)
            return check_size(items)
        case "add":
            return _add(current, value)
        case _:
            verb = "append to" if op == "append" else "put a value into"
            raise bad_value(f"cannot {verb} {preview(current)}", [current], fix="Begin with `xs = []` or `d = {}`.")


def _check_size_sometimes(container: Any, length: int) -> Any:
    """Check the size at lengths 1, 2, 4, 8, …: a loop of appends stays linear, and doubling is still stopped."""
    return check_size(container) if length & (length - 1) == 0 else container


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


def comprehension_code(expr: object, element: Code, key: Code | None, clauses: list[ClauseCode]) -> Code:
    """The code of a list or, with a key, of a dict comprehension; what its conditions keep is counted for the run."""
    if key is None and len(clauses) == 1 and len(clauses[0][0]) == 1 and len(clauses[0][2]) <= 1:
        return _single_list_code(expr, element, *clauses[0])
    return _nested_loops_code(expr, element, key, clauses)


def _single_list_code(expr: object, element: Code, names: tuple[str, ...], over: Code, conditions: list[Code]) -> Code:
    """The fast path for `[f(x) for x in xs if g(x)]`."""
    (name,) = names
    condition = conditions[0] if conditions else None

    def run(env: Env) -> Any:
        inner, work = inner_environment(env)
        found = iterable_items(over(env))
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


def _nested_loops_code(expr: object, element: Code, key: Code | None, clauses: list[ClauseCode]) -> Code:
    (_, outermost, _), *_ = clauses
    filters = any(conditions for _, _, conditions in clauses)

    def run(env: Env) -> Any:
        inner, work = inner_environment(env)
        items: list[Any] = []
        entries: dict[str, Any] = {}
        outer = given = kept = 0

        def go(number: int, over: Any) -> None:
            nonlocal outer, given
            names, _, conditions = clauses[number]
            found = iterable_items(over)
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

        go(0, outermost(env))
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
