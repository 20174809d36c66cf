"""From Python's expressions to those of a plan: everything but calls and comprehensions."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ._expressions import (
    MAX_INT,
    Apply,
    Arithmetic,
    ArithmeticOp,
    Compare,
    CompareOp,
    Const,
    DictOf,
    Expr,
    Format,
    Get,
    Index,
    Lambda,
    ListOf,
    Logic,
    Negative,
    Not,
    Shown,
    Slice,
    TupleOf,
)
from ._lift import Reader, Reading

ARITHMETIC: dict[type[ast.operator], ArithmeticOp] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_COMPARE: dict[type[ast.cmpop], CompareOp] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "==",
    ast.IsNot: "!=",
}


def _constant(reading: Reading, node: ast.Constant) -> Expr:
    value = cast("object", node.value)
    match value:
        case str():
            return Const(value=reading.text(node, value))
        case bool() | None:
            return Const(value=value)
        case int() | float():
            return number(reading, node, value)
        case bytes():
            raise reading.not_in_language(node, "bytes", "Use text.")
        case _:
            raise reading.not_in_language(node, f"{value!r}")


def number(reading: Reading, node: ast.AST, value: int | float) -> Const:
    """A literal number within the bounds of the language."""
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise reading.error(node, "plan.bad-number", "the number is too large", expected="at most 10**15")
    if not math.isfinite(value):
        raise reading.error(node, "plan.bad-number", "the number is too large", expected="a finite number")
    return Const(value=value)


def _name(reading: Reading, node: ast.Name) -> Expr:
    return reading.variable(node)


def _attribute(reading: Reading, node: ast.Attribute) -> Expr:
    return Get(value=reading.expression(node.value), field=reading.name(node, node.attr))


def _subscript(reading: Reading, node: ast.Subscript) -> Expr:
    value = reading.expression(node.value)
    match node.slice:
        case ast.Slice(lower=start, upper=stop, step=step):
            bounds = [None if bound is None else reading.expression(bound) for bound in (start, stop, step)]
            return Slice(value=value, start=bounds[0], stop=bounds[1], step=bounds[2])
        case at:
            return Index(value=value, at=reading.expression(at))


def items(reading: Reading, nodes: Sequence[ast.expr]) -> tuple[Expr, ...]:
    """The expressions of a list, a tuple or a call, in order."""
    for node in nodes:
        if isinstance(node, ast.Starred):
            raise reading.not_in_language(node, "`*` before a value", "Join lists with `+`.")
    return tuple(map(reading.expression, nodes))


def _list(reading: Reading, node: ast.List) -> Expr:
    return ListOf(items=items(reading, node.elts))


def _tuple(reading: Reading, node: ast.Tuple) -> Expr:
    return TupleOf(items=items(reading, node.elts))


def _set(reading: Reading, node: ast.Set) -> Expr:
    return Apply(function="unique", args=(ListOf(items=items(reading, node.elts)),))


def _dict(reading: Reading, node: ast.Dict) -> Expr:
    entries: list[tuple[Expr, Expr]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise reading.not_in_language(value, "`**` in a dict", "Name the keys, or add them with `d[key] = value`.")
        entries.append((reading.expression(key), reading.expression(value)))
    return DictOf(entries=tuple(entries))


def _binary(reading: Reading, node: ast.BinOp) -> Expr:
    op = operator(reading, node, node.op)
    left = reading.expression(node.left)
    if op == "%" and (isinstance(left, Format) or (isinstance(left, Const) and isinstance(left.value, str))):
        raise reading.not_in_language(node, "`%` to format text", 'Use an f-string: f"{value}".')
    return Arithmetic(op=op, left=left, right=reading.expression(node.right))


def operator(reading: Reading, node: ast.AST, op: ast.operator) -> ArithmeticOp:
    """The arithmetic operator of a node."""
    if found := ARITHMETIC.get(type(op)):
        return found
    fix = "Multiply instead." if isinstance(op, ast.Pow) else f"There are {', '.join(ARITHMETIC.values())}."
    raise reading.not_in_language(node, f"the operator {type(op).__name__!r}", fix)


def _unary(reading: Reading, node: ast.UnaryOp) -> Expr:
    value = reading.expression(node.operand)
    match node.op:
        case ast.Not():
            return Not(value=value)
        case ast.UAdd():
            return value
        case ast.USub():
            if isinstance(value, Const) and isinstance(value.value, int | float):
                return number(reading, node, -value.value)
            return Negative(value=value)
        case _:
            raise reading.not_in_language(node, "the operator `~`")


def _logic(reading: Reading, node: ast.BoolOp) -> Expr:
    # The first operand is always evaluated; a call in a later one would run even where Python would not run it.
    _refuse_steps(reading, node.values[1:])
    return Logic(op="and" if isinstance(node.op, ast.And) else "or", items=items(reading, node.values))


def _compare(reading: Reading, node: ast.Compare) -> Expr:
    _refuse_steps(reading, node.comparators[1:])
    first = reading.expression(node.left)
    rest: list[tuple[CompareOp, Expr]] = []
    for op, operand in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.Is | ast.IsNot) and not (isinstance(operand, ast.Constant) and operand.value is None):
            raise reading.not_in_language(operand, "`is` but with None", "Use `==` or `!=`.")
        rest.append((_COMPARE[type(op)], reading.expression(operand)))
    return Compare(first=first, rest=tuple(rest))


def _refuse_steps(reading: Reading, nodes: Sequence[ast.expr]) -> None:
    for node in nodes:
        if reading.needs_steps(node):
            raise call_in_condition(reading, node)


def call_in_condition(reading: Reading, node: ast.AST) -> Exception:
    return reading.error(
        node,
        "plan.call-in-condition",
        "a tool is called where Python might not run it",
        fix="Assign its result to a name first: `x = tool(…)`.",
    )


def _lambda(reading: Reading, node: ast.Lambda) -> Expr:
    given = node.args
    if given.defaults or given.kw_defaults or given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg:
        raise reading.not_in_language(node, "a lambda with more than plain names", "Write `lambda x: …`.")
    names = tuple(reading.name(arg, arg.arg) for arg in given.args)
    if reading.needs_steps(node.body):
        raise reading.error(
            node,
            "plan.call-in-condition",
            "a tool is called inside a lambda",
            fix="Make a list of its results first, in a `for` loop.",
        )
    with reading.scope({}, hidden=names):
        return Lambda(names=names, body=reading.expression(node.body))


def _f_string(reading: Reading, node: ast.JoinedStr) -> Expr:
    parts: list[str | Shown] = []
    for part in node.values:
        match part:
            case ast.Constant(value=str() as text):
                parts.append(reading.text(part, text))
            case ast.FormattedValue(value=value, conversion=conversion, format_spec=spec):
                if conversion not in (-1, ord("s")):
                    raise reading.not_in_language(part, "`!r`, `!a` or `=` in an f-string", "Write `{value}`.")
                shown = reading.expression(value)
                parts.append(Shown(value=shown, spec=_constant_spec(reading, spec)))
            case _:
                raise reading.not_in_language(part, "this in an f-string")
    return format_of(parts)


def _constant_spec(reading: Reading, node: ast.expr | None) -> str:
    if node is None:
        return ""
    texts: list[str] = []
    for part in cast("ast.JoinedStr", node).values:
        if not isinstance(part, ast.Constant):
            raise reading.not_in_language(part, "a value inside a format spec", "Write the spec as a literal.")
        texts.append(reading.text(part, cast("str", part.value)))
    return "".join(texts)


def format_of(parts: Sequence[str | Shown]) -> Expr:
    """Formatted text in canonical form: no empty or adjacent texts; without a value it is a literal."""
    merged: list[str | Shown] = []
    texts: list[str] = []
    for part in (*parts, None):
        if isinstance(part, str):
            texts.append(part)
            continue
        if text := "".join(texts):
            merged.append(text)
        texts.clear()
        if part is not None:
            merged.append(part)
    if not any(isinstance(part, Shown) for part in merged):
        return Const(value="".join(cast("list[str]", merged)))
    return Format(parts=tuple(merged))


def _walrus(reading: Reading, node: ast.NamedExpr) -> Any:
    raise reading.not_in_language(node, "`:=`", "Assign in a step of its own.")


EXPRESSIONS: Mapping[type[ast.expr], Reader] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _logic,
    ast.Compare: _compare,
    ast.Lambda: _lambda,
    ast.JoinedStr: _f_string,
    ast.NamedExpr: _walrus,
}
