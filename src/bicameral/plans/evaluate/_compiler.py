"""The compiler of expressions: each expression becomes a closure, once, that takes the variables.

Evaluation is pure and total: it gives a value or an `EvaluationError`, always soon. Closures have a fast path for the
usual values and leave everything else, and every failure, to the general operator; the results are the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from bicameral.errors import nearest_name
from bicameral.plans import _expressions as ir
from bicameral.plans._plan import MAX_DEPTH
from bicameral.plans.evaluate import _bounds as bounds, _operations as ops
from bicameral.plans.evaluate._closures import Code, Env, compile_call, comprehension_code, failing_code, lambda_code
from bicameral.plans.evaluate._library import check_dict_key
from bicameral.plans.evaluate._tables import TableFunction, group_tables, table_comprehension, table_function
from bicameral.plans.evaluate._values import format_value, format_with_spec
from bicameral.types import Table, plain_value


def const_code(expr: ir.Const) -> Code:
    value = expr.value
    try:
        if isinstance(value, str):
            bounds.check_length("the text", len(value), bounds.MAX_TEXT)
        elif value is not None:
            bounds.check_number(value)
    except bounds.EvaluationError as error:
        code, message = error.code, error.message
        return failing_code(lambda: bounds.EvaluationError(code, message))
    return lambda env: value


def _reference_code(expr: ir.Reference) -> Code:
    bound = expr.bound
    if bound is not None:
        return const_code(ir.Const(value=bound.value))
    message = f"{expr.refers}({expr.words!r}) is not bound to anything"
    return failing_code(lambda: bounds.EvaluationError("run.unbound-reference", message))


def ref_code(name: str) -> Code:
    def run(env: Env) -> Any:
        try:
            value = env[name]
        except KeyError:
            raise bounds.EvaluationError(
                "run.unbound", f"{name!r} has no value yet", nearest=nearest_name(name, env), fix="Assign it before."
            ) from None
        return value.rows() if type(value) is Table else value

    return run


def _table_ref_code(name: str) -> Code:
    """A variable that may be a table, for code that takes one."""
    plain = ref_code(name)

    def run(env: Env) -> Any:
        value = env.get(name)
        return value if type(value) is Table else plain(env)

    return run


def field_code(value: Code, field: str) -> Code:
    def run(env: Env) -> Any:
        found = value(env)
        if type(found) is dict and field in found:
            return found[field]  # pyright: ignore[reportUnknownVariableType]
        return ops.get_field(found, field)

    return run


def variable_field_code(name: str, field: str) -> Code:
    """A field of a variable."""
    at_length = field_code(ref_code(name), field)

    def run(env: Env) -> Any:
        if name in env:
            found = env[name]
            if type(found) is dict and field in found:
                return found[field]  # pyright: ignore[reportUnknownVariableType]
        return at_length(env)

    return run


def dict_code(entries: list[tuple[str | Code, Code]]) -> Code:
    """The code of a dict; keys that are literals of the plan need no check."""
    written = [(key, value) for key, value in entries if isinstance(key, str)]
    if len(written) == len(entries):
        return lambda env: bounds.check_size({key: value(env) for key, value in written})
    computed = [(_constant_code(key) if isinstance(key, str) else key, value) for key, value in entries]
    return lambda env: bounds.check_size({check_dict_key(key(env)): value(env) for key, value in computed})


def _constant_code(value: str | None) -> Code:
    return lambda env: value


def format_code(parts: list[str | tuple[Code, str]], *, in_loop: bool) -> Code:
    """The code of formatted text; its length is charged as work."""
    texts = [part if isinstance(part, str) else _text_code(*part) for part in parts]

    def run(env: Env) -> str:
        found = [text if isinstance(text, str) else text(env) for text in texts]
        length = sum(map(len, found))
        if length > bounds.MAX_TEXT:
            raise bounds.too_large_error("the text", bounds.MAX_TEXT)
        if in_loop:
            env[bounds.WORK_KEY].spend(length // 64)
        else:
            bounds.charge_run(length // 64)
        return "".join(found)

    return run


def _text_code(value: Code, spec: str) -> Callable[[Env], str]:
    if spec:
        return lambda env: format_with_spec(value(env), spec)

    def run(env: Env) -> str:
        found = value(env)
        return str(found) if type(found) is int else format_value(found)

    return run


ValueComparison = Callable[[Env, Any, Any], bool]

_PYTHON_COMPARISONS: dict[str, ops.Operator] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""Comparisons that are Python's own for numbers and texts."""
_LONG_TEXT = 1024
"""Comparing shorter texts is not charged."""
_SMALL_INT = 1 << 60
"""The result of one operator on whole numbers below this is always within the limits."""


def binary_code(op: str, left: Code, right: Code, number: int | None = None, *, in_loop: bool) -> Code:
    """The code of an arithmetic operator; the size of its result is charged as work.

    `number` is the right operand if it is a literal of the plan.
    """
    plain, operate = ops.PYTHON_OPERATORS[op], ops.arithmetic_operator(op)
    divides = op in ("/", "//", "%")

    def run(env: Env) -> Any:
        first = left(env)
        second = right(env) if number is None else number
        # Division by zero, and results that may be too large, are left to the general operator.
        if (
            type(first) is type(second) is int
            and -_SMALL_INT < first < _SMALL_INT
            and -_SMALL_INT < second < _SMALL_INT
            and (second or not divides)
        ):
            value = plain(first, second)
        else:
            value = operate(first, second)
        if in_loop:
            env[bounds.WORK_KEY].spend(2 if type(value) in bounds.NUMBER_TYPES else bounds.deep_cost(value))
        elif type(value) not in bounds.NUMBER_TYPES:
            bounds.charge_run(bounds.flat_cost(value))
        return value

    return run


def logic_code(items: list[Code], *, stop: bool) -> Code:
    *most, last = items

    def run(env: Env) -> Any:
        for item in most:
            value = item(env)
            if bool(value) is stop:
                return value
        return last(env)

    return run


def value_comparison(op: str, *, in_loop: bool) -> ValueComparison:
    """The comparison of two values, with its work charged to the loop it is in or to the run."""
    holds = ops.COMPARISONS[op]

    def run(env: Env, left: Any, right: Any) -> bool:
        if not in_loop:
            bounds.charge_run(bounds.flat_cost(left) + bounds.flat_cost(right))
            return holds(left, right)
        # Looking for a number or text in a list is quick; comparing lists with each other is not.
        cost = bounds.deep_cost(cast("object", left)) if isinstance(left, list | tuple | dict) else 0
        if cost or op in ("in", "not in"):
            env[bounds.WORK_KEY].spend(cost + (bounds.deep_cost(right) if cost else bounds.flat_cost(right) // 16))
        return holds(left, right)

    return run


def comparison_code(first: Code, rest: list[tuple[str, ValueComparison, Code]]) -> Code:
    if len(rest) == 1:
        return _pair_comparison_code(first, *rest[0])

    def run(env: Env) -> bool:
        left = first(env)
        for _, holds, code in rest:
            right = code(env)
            if not holds(env, left, right):
                return False
            left = right
        return True

    return run


def _pair_comparison_code(first: Code, op: str, holds: ValueComparison, second: Code) -> Code:
    plain = _PYTHON_COMPARISONS.get(op)
    if plain is None:
        return lambda env: holds(env, first(env), second(env))

    def run(env: Env) -> bool:
        left, right = first(env), second(env)
        if type(left) in bounds.NUMBER_TYPES and type(right) in bounds.NUMBER_TYPES:
            return plain(left, right)
        if type(left) is str and type(right) is str:
            if len(left) > _LONG_TEXT:
                bounds.charge_run(len(left) // _LONG_TEXT)
            return plain(left, right)
        return holds(env, left, right)

    return run


@ir.memoize_by_identity
def compile_expr(expr: Any) -> Code:
    """The expression as a function of the variables, compiled once for each expression object.

    Example:
        >>> compile_expr(Apply(function="upper", args=(Ref(name="name"),)))({"name": "ada"})
        'ADA'
    """
    return _guard_code(_ExpressionCompiler().compile(expr))


@ir.memoize_by_identity
def compile_by_columns(expr: Any) -> Code:
    """The same, but the value may be a `Table` where `compile_expr` gives a plain list."""
    return _guard_code(_ExpressionCompiler().compile_table(expr))


def evaluate_expr(expr: Any, variables: Env) -> Any:
    """The value of an expression."""
    return compile_expr(expr)(variables)


def _guard_code(code: Code) -> Code:
    """The code with its run's work counted, and with exceptions of Python turned into `EvaluationError`."""

    def run(env: Env) -> Any:
        # No context manager and no helper: this is on the path of every expression of a run.
        meter = env.get(bounds.RUN_WORK_KEY)
        before = bounds.CURRENT_RUN.run
        if meter is not before:
            bounds.CURRENT_RUN.run = meter
        try:
            value = code(env)
            if meter is not None:
                meter.settle()
            return value
        except (RecursionError, MemoryError, OverflowError):
            raise bounds.EvaluationError("run.too-large", "the expression is too large to evaluate") from None
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise bounds.EvaluationError("run.type", f"the expression has no value ({type(error).__name__})") from None
        finally:
            if meter is not before:
                bounds.CURRENT_RUN.run = before

    return run


@dataclass(slots=True)
class _ExpressionCompiler:
    in_loop: bool = False
    """Inside a comprehension or lambda, where work adds up and is counted."""
    depth: int = 0
    """The nesting depth of the expression that is compiled."""

    def compile(self, expr: Any) -> Code:
        if self.depth > MAX_DEPTH:
            return failing_code(
                lambda: bounds.EvaluationError("run.too-large", f"nested more than {MAX_DEPTH} levels deep")
            )
        self.depth += 1
        try:
            return self._compile_node(expr)
        finally:
            self.depth -= 1

    def _compile_node(self, expr: Any) -> Code:
        match expr:
            case ir.Const():
                return const_code(expr)
            case ir.Ref(name=name):
                return ref_code(name)
            case ir.Reference():
                return _reference_code(expr)
            case ir.Get(value=ir.Ref(name=name), field=field):
                return variable_field_code(name, field)
            case ir.Get(value=value, field=field):
                return field_code(self.compile(value), field)
            case ir.Index(value=value, at=at):
                items, position = self.compile_table(value), self.compile(at)
                return lambda env: ops.get_item(items(env), position(env))
            case ir.Slice():
                sliced = self._compile_slice(expr)
                return lambda env: plain_value(sliced(env))
            case ir.ListOf(items=items) | ir.TupleOf(items=items):
                codes = [self.compile(item) for item in items]
                return lambda env: bounds.check_size([code(env) for code in codes])
            case ir.DictOf(entries=entries):
                return dict_code(
                    [(_constant_key(key) or self.compile(key), self.compile(value)) for key, value in entries]
                )
            case ir.Arithmetic(op=op, left=left, right=right):
                return binary_code(
                    op, self.compile(left), self.compile(right), _constant_number(right), in_loop=self.in_loop
                )
            case ir.Negative(value=value):
                operand = self.compile(value)
                return lambda env: ops.negate(operand(env))
            case ir.Not(value=value):
                operand = self.compile_table(value)
                return lambda env: not operand(env)
            case ir.Logic(op=op, items=items):
                return logic_code([self.compile(item) for item in items], stop=op == "or")
            case ir.Compare():
                return self._compile_compare(expr)
            case ir.Choose():
                condition, then, otherwise = (
                    self.compile_table(expr.condition),
                    self.compile(expr.then),
                    self.compile(expr.otherwise),
                )
                return lambda env: then(env) if condition(env) else otherwise(env)
            case ir.Apply():
                called = self._compile_call(expr)
                return (lambda env: plain_value(called(env))) if expr.function == "sorted" else called
            case ir.Format(parts=parts):
                texts = [part if isinstance(part, str) else (self.compile(part.value), part.spec) for part in parts]
                return format_code(texts, in_loop=self.in_loop)
            case ir.Comprehension():
                code = self._compile_comprehension(expr)
                return lambda env: plain_value(code(env))
            case _:
                return failing_code(_stray_lambda_error)

    def compile_table(self, expr: Any) -> Code:
        """The code of an expression whose value may be a table, for code that takes one."""
        if self.depth > MAX_DEPTH:
            return self.compile(expr)
        match expr:
            case ir.Ref(name=name):
                return _table_ref_code(name)
            case ir.Slice():
                return self._compile_slice(expr)
            case ir.Apply(function="sorted"):
                return self._compile_call(expr)
            case ir.Comprehension():
                return self._compile_comprehension(expr)
            case _:
                return self.compile(expr)

    def _compile_pairs(self, expr: Any) -> Code:
        """The code of what a `for` goes over; of `group_by(rows, "field").items()` each group may be a table."""
        match expr:
            case ir.Apply(
                function="items",
                args=(ir.Apply(function="group_by", args=(rows, ir.Const(value=str() as field)), named=()),),
                named=(),
            ):
                table, plain = self.compile_table(rows), self.compile(expr)

                def run(env: Env) -> Any:
                    given = table(env) if isinstance(rows, ir.Ref) else None
                    pairs = group_tables(given, field) if type(given) is Table and given else None
                    return plain(env) if pairs is None else pairs

                return run
            case _:
                return self.compile_table(expr)

    def _compile_slice(self, expr: ir.Slice) -> Code:
        parts = (expr.start, expr.stop, expr.step)
        whole = self.compile_table(expr.value)
        start, stop, step = (_constant_code(None) if part is None else self.compile(part) for part in parts)
        return self._with_charge(lambda env: ops.get_slice(whole(env), start(env), stop(env), step(env)))

    def _compile_call(self, expr: ir.Apply) -> Code:
        codes = [self._compile_argument(arg) for arg in (*expr.args, *(value for _, value in expr.named))]
        plain = compile_call(expr, codes, in_loop=self.in_loop)
        inside = replace(self, in_loop=True)
        by_columns = table_function(expr, inside.compile) if expr.args else None
        # In a loop only a variable is looked at: everything else would be evaluated twice.
        if by_columns is None or (self.in_loop and not isinstance(expr.args[0], ir.Ref)):
            return plain
        given = self.compile_table(expr.args[0])
        if isinstance(expr.args[0], ir.Ref):
            return _table_call_code(given, by_columns, lambda env, _: plain(env))
        called = compile_call(expr, [ref_code(_GIVEN_KEY), *codes[1:]], in_loop=self.in_loop)
        return _table_call_code(given, by_columns, lambda env, value: called({**env, _GIVEN_KEY: value}))

    def _with_charge(self, code: Code) -> Code:
        """The same code; the size of its result is charged as work, inside a loop to the loop, else to the run."""
        in_loop = self.in_loop

        def run(env: Env) -> Any:
            value = code(env)
            if in_loop:
                env[bounds.WORK_KEY].spend(2 if type(value) in bounds.ATOMS else bounds.deep_cost(value))
            else:
                bounds.charge_run(bounds.flat_cost(value))
            return value

        return run

    def _compile_compare(self, expr: ir.Compare) -> Code:
        rest = [(op, value_comparison(op, in_loop=self.in_loop), self.compile(right)) for op, right in expr.rest]
        return comparison_code(self.compile(expr.first), rest)

    def _compile_argument(self, arg: Any) -> Code:
        return self._compile_lambda(arg) if isinstance(arg, ir.Lambda) else self.compile(arg)

    def _compile_lambda(self, expr: ir.Lambda) -> Code:
        return lambda_code(replace(self, in_loop=True).compile(expr.body), expr.names)

    def _compile_comprehension(self, expr: ir.Comprehension) -> Code:
        inside = replace(self, in_loop=True)
        element = inside.compile(expr.element)
        key = None if expr.key is None else inside.compile(expr.key)
        # The first list is evaluated outside of the comprehension, as in Python.
        clauses = [
            (
                clause.names,
                (inside if number else self)._compile_pairs(clause.over),
                [inside.compile(condition) for condition in clause.conditions],
            )
            for number, clause in enumerate(expr.clauses)
        ]
        return comprehension_code(expr, element, key, clauses, table_comprehension(expr, element, inside.compile))


_GIVEN_KEY = "#given"
"""The key of a value that was evaluated before; no variable can have this name."""


def _table_call_code(given: Code, by_columns: TableFunction, plain: Callable[[Env, Any], Any]) -> Code:
    """The code of a call that is computed by columns if its first argument is a table."""

    def run(env: Env) -> Any:
        value = given(env)
        if type(value) is Table:
            inner, work = bounds.inner_environment(env)
            try:
                work.spend(len(value) // 64 + 1)
                found = by_columns(value, inner)
            except (bounds.EvaluationError, TypeError, ValueError, LookupError, ArithmeticError):
                # The plain way fails at the first row for which this did, and says so.
                found = None
            if found is not None:
                return found
        return plain(env, value)

    return run


def _stray_lambda_error() -> bounds.EvaluationError:
    return bounds.EvaluationError(
        "run.bad-call", "a lambda stands only as an argument", expected="for example sorted(xs, key=lambda x: x.name)"
    )


def _constant_key(expr: Any) -> str | None:
    """A key of a dict that is written in the plan."""
    return expr.value if isinstance(expr, ir.Const) and isinstance(expr.value, str) else None


def _constant_number(expr: Any) -> int | None:
    """A whole number that is written in the plan and not too large."""
    return (
        expr.value if isinstance(expr, ir.Const) and type(expr.value) is int and abs(expr.value) < _SMALL_INT else None
    )
