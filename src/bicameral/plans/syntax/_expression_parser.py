"""The parser of expressions and calls.

Library functions are called as functions or methods and stay expressions; tools, `extract` and `ask` become steps. The
hints say what to write instead of Python that people and models reach for and that a plan does not have.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bicameral.errors import nearest_name
from bicameral.plans import _expressions as ir
from bicameral.plans._plan import MAX_STEP_SECONDS, Ask, Call, Extract
from bicameral.plans.evaluate._library import FUNCTIONS, METHODS
from bicameral.plans.syntax._lowering import Lowering, NodeReader, is_step_call, read_type
from bicameral.tools import REFERENCE_KINDS, ReferenceKind, Tool
from bicameral.types import type_to_json

ARITHMETIC_OPERATORS: dict[type[ast.operator], ir.ArithmeticOp] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_COMPARE_OPERATORS: dict[type[ast.cmpop], ir.CompareOp] = {
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


def _read_constant(lowering: Lowering, node: ast.Constant) -> ir.Expr:
    value = cast("object", node.value)
    match value:
        case str():
            return ir.Const(value=lowering.check_text(node, value))
        case bool() | None:
            return ir.Const(value=value)
        case int() | float():
            return read_number(lowering, node, value)
        case bytes():
            raise lowering.refusal(node, "bytes", "Use text.")
        case _:
            raise lowering.refusal(node, f"{value!r}")


def read_number(lowering: Lowering, node: ast.AST, value: int | float) -> ir.Const:
    """A literal number within the bounds of the language."""
    if isinstance(value, int) and abs(value) > ir.MAX_INT:
        raise lowering.error(node, "plan.bad-number", "the number is too large", expected="at most 10**15")
    if not math.isfinite(value):
        raise lowering.error(node, "plan.bad-number", "the number is too large", expected="a finite number")
    return ir.Const(value=value)


def _read_attribute(lowering: Lowering, node: ast.Attribute) -> ir.Expr:
    if not node.attr.isascii():
        # A name of the language is plain, a key of a record is not: `info.préavis` is `info["préavis"]`.
        return ir.Index(value=lowering.lower_expression(node.value), at=ir.Const(value=node.attr))
    return ir.Get(value=lowering.lower_expression(node.value), field=lowering.check_name(node, node.attr))


def _read_subscript(lowering: Lowering, node: ast.Subscript) -> ir.Expr:
    value = lowering.lower_expression(node.value)
    match node.slice:
        case ast.Slice(lower=start, upper=stop, step=step):
            bounds = [None if bound is None else lowering.lower_expression(bound) for bound in (start, stop, step)]
            return ir.Slice(value=value, start=bounds[0], stop=bounds[1], step=bounds[2])
        case at:
            return ir.Index(value=value, at=lowering.lower_expression(at))


def read_items(lowering: Lowering, nodes: Sequence[ast.expr]) -> tuple[ir.Expr, ...]:
    """The expressions of a list, a tuple or a call, in order."""
    for node in nodes:
        if isinstance(node, ast.Starred):
            raise lowering.refusal(node, "`*` before a value", "Join lists with `+`.")
    return tuple(map(lowering.lower_expression, nodes))


def _read_list(lowering: Lowering, node: ast.List | ast.Set) -> ir.ListOf:
    return ir.ListOf(items=read_items(lowering, node.elts))


def _read_dict(lowering: Lowering, node: ast.Dict) -> ir.Expr:
    entries: list[tuple[ir.Expr, ir.Expr]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise lowering.refusal(value, "`**` in a dict", "Name the keys, or add them with `d[key] = value`.")
        entries.append((lowering.lower_expression(key), lowering.lower_expression(value)))
    return ir.DictOf(entries=tuple(entries))


def _read_binary(lowering: Lowering, node: ast.BinOp) -> ir.Expr:
    op = read_operator(lowering, node, node.op)
    left = lowering.lower_expression(node.left)
    if op == "%" and (isinstance(left, ir.Format) or (isinstance(left, ir.Const) and isinstance(left.value, str))):
        raise lowering.refusal(node, "`%` to format text", 'Use an f-string: f"{value}".')
    return ir.Arithmetic(op=op, left=left, right=lowering.lower_expression(node.right))


def read_operator(lowering: Lowering, node: ast.AST, op: ast.operator) -> ir.ArithmeticOp:
    """The arithmetic operator of a node."""
    if found := ARITHMETIC_OPERATORS.get(type(op)):
        return found
    fix = "Multiply instead." if isinstance(op, ast.Pow) else f"There are {', '.join(ARITHMETIC_OPERATORS.values())}."
    raise lowering.refusal(node, f"the operator {type(op).__name__!r}", fix)


def _read_unary(lowering: Lowering, node: ast.UnaryOp) -> ir.Expr:
    value = lowering.lower_expression(node.operand)
    match node.op:
        case ast.Not():
            return ir.Not(value=value)
        case ast.UAdd():
            return value
        case ast.USub():
            if isinstance(value, ir.Const) and isinstance(value.value, int | float):
                return read_number(lowering, node, -value.value)
            return ir.Negative(value=value)
        case _:
            raise lowering.refusal(node, "the operator `~`")


def _read_logic(lowering: Lowering, node: ast.BoolOp) -> ir.Expr:
    # The first operand is always evaluated; a call in a later one would run even where Python would not run it.
    _refuse_steps(lowering, node.values[1:])
    return ir.Logic(op="and" if isinstance(node.op, ast.And) else "or", items=read_items(lowering, node.values))


def _read_compare(lowering: Lowering, node: ast.Compare) -> ir.Expr:
    _refuse_steps(lowering, node.comparators[1:])
    first = lowering.lower_expression(node.left)
    rest: list[tuple[ir.CompareOp, ir.Expr]] = []
    for op, operand in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.Is | ast.IsNot) and not (isinstance(operand, ast.Constant) and operand.value is None):
            raise lowering.refusal(operand, "`is` but with None", "Use `==` or `!=`.")
        rest.append((_COMPARE_OPERATORS[type(op)], lowering.lower_expression(operand)))
    return ir.Compare(first=first, rest=tuple(rest))


def _refuse_steps(lowering: Lowering, nodes: Sequence[ast.expr]) -> None:
    for node in nodes:
        if lowering.needs_steps(node):
            raise call_in_condition_error(lowering, node)


def call_in_condition_error(lowering: Lowering, node: ast.AST) -> Exception:
    return lowering.error(
        node,
        "plan.call-in-condition",
        "a tool is called where Python might not run it",
        fix="Assign its result to a name first: `x = tool(…)`.",
    )


def _read_lambda(lowering: Lowering, node: ast.Lambda) -> ir.Expr:
    given = node.args
    if given.defaults or given.kw_defaults or given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg:
        raise lowering.refusal(node, "a lambda with more than plain names", "Write `lambda x: …`.")
    names = tuple(lowering.check_name(arg, arg.arg) for arg in given.args)
    if lowering.needs_steps(node.body):
        raise lowering.error(
            node,
            "plan.call-in-condition",
            "a tool is called inside a lambda",
            fix="Make a list of its results first, in a `for` loop.",
        )
    with lowering.substitute_names({}, hidden=names):
        return ir.Lambda(names=names, body=lowering.lower_expression(node.body))


def _read_f_string(lowering: Lowering, node: ast.JoinedStr) -> ir.Expr:
    parts: list[str | ir.Shown] = []
    for part in node.values:
        match part:
            case ast.Constant(value=str() as text):
                parts.append(lowering.check_text(part, text))
            case ast.FormattedValue(value=value, conversion=conversion, format_spec=spec):
                if conversion not in (-1, ord("s")):
                    raise lowering.refusal(part, "`!r`, `!a` or `=` in an f-string", "Write `{value}`.")
                shown = lowering.lower_expression(value)
                parts.append(ir.Shown(value=shown, spec=_read_constant_spec(lowering, spec)))
            case _:
                raise lowering.refusal(part, "this in an f-string")
    return make_format(parts)


def _read_constant_spec(lowering: Lowering, node: ast.expr | None) -> str:
    if node is None:
        return ""
    texts: list[str] = []
    for part in cast("ast.JoinedStr", node).values:
        if not isinstance(part, ast.Constant):
            raise lowering.refusal(part, "a value inside a format spec", "Write the spec as a literal.")
        texts.append(lowering.check_text(part, cast("str", part.value)))
    return "".join(texts)


def make_format(parts: Sequence[str | ir.Shown]) -> ir.Expr:
    """Formatted text in canonical form: no empty or adjacent texts; without a value it is a literal."""
    merged: list[str | ir.Shown] = []
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
    if not any(isinstance(part, ir.Shown) for part in merged):
        return ir.Const(value="".join(cast("list[str]", merged)))
    return ir.Format(parts=tuple(merged))


def _refuse_walrus(lowering: Lowering, node: ast.NamedExpr) -> Any:
    raise lowering.refusal(node, "`:=`", "Assign in a step of its own.")


EXPRESSION_READERS: Mapping[type[ast.expr], NodeReader] = {
    ast.Constant: _read_constant,
    ast.Name: Lowering.lower_name,
    ast.Attribute: _read_attribute,
    ast.Subscript: _read_subscript,
    ast.List: _read_list,
    ast.Tuple: lambda lowering, node: ir.TupleOf(items=read_items(lowering, node.elts)),
    ast.Set: lambda lowering, node: ir.Apply(function="unique", args=(_read_list(lowering, node),)),
    ast.Dict: _read_dict,
    ast.BinOp: _read_binary,
    ast.UnaryOp: _read_unary,
    ast.BoolOp: _read_logic,
    ast.Compare: _read_compare,
    ast.Lambda: _read_lambda,
    ast.JoinedStr: _read_f_string,
    ast.NamedExpr: _refuse_walrus,
}


FUNCTION_HINTS: Mapping[str, str] = {
    "map": "Use a comprehension: `[f(x) for x in xs]`.",
    "filter": "Use a comprehension: `[x for x in xs if …]`.",
    "input": "Use `ask(question)`.",
    "open": "Use a tool that reads or writes files.",
    "isinstance": "Types are known before a plan runs; leave it out.",
    "type": "Types are known before a plan runs; leave it out.",
    "getattr": "Write `value.field`.",
    "setattr": "Records do not change; make a dict: `d[key] = value`.",
    "next": "Use `first(xs)`.",
    "iter": "Loop over the list itself.",
    "eval": "A plan cannot run text as code.",
    "exec": "A plan cannot run text as code.",
    "pow": "Multiply instead.",
    "divmod": "Use `//` and `%`.",
}

METHOD_HINTS: Mapping[str, str] = {
    "format": 'Use an f-string: f"{value}".',
    "append": "Make it a statement of its own: `xs.append(value)`.",
    "extend": "Make it a statement of its own: `xs.extend(more)`.",
    "insert": "Write `xs = [value] + xs`.",
    "pop": "Use an index or a slice: `last = xs[-1]`.",
    "remove": "Write `xs = [x for x in xs if x != value]`.",
    "clear": "Write `xs = []`.",
    "copy": "Values do not change behind your back; use the value itself.",
    "update": "Write `d[key] = value`.",
    "add": "Use a list and `unique(xs)`.",
    "setdefault": "Write `d.setdefault(key, []).append(value)` as a statement.",
    "now": "Use a tool that tells the time.",
    "today": "Use a tool that tells the date.",
    "strptime": 'Use `parse_date(text)` or `date("2026-03-01")`.',
    "fromisoformat": 'Use `date("2026-03-01")` or `datetime("2026-03-01T09:00")`.',
    "encode": "Text has no bytes in a plan.",
    "sort": "Make it a statement of its own, or use `sorted(xs)`.",
    "reverse": "Make it a statement of its own, or use `reversed(xs)`.",
}


def _read_call(lowering: Lowering, node: ast.Call) -> ir.Expr:
    if is_step_call(node):
        step = read_step_call(lowering, node, None)
        lowering.add_step(step, node)
        return ir.Ref(name=cast("str", step.name))
    match node.func:
        case ast.Name(id=name):
            return _read_function_call(lowering, node, name)
        case ast.Attribute(value=receiver, attr=method):
            return _read_method_call(lowering, node, receiver, method)
        case _:
            raise lowering.refusal(node, "a call of a value", "Only tools and functions can be called.")


def _read_function_call(lowering: Lowering, node: ast.Call, name: str) -> ir.Expr:
    if name in ("concat", "format"):
        return make_format(_read_concat(lowering, node) if name == "concat" else [_read_format_call(lowering, node)])
    if name in REFERENCE_KINDS:
        return _read_reference(lowering, node, name)
    if name in ir.SURFACE_WORDS:
        raise lowering.refusal(node, f"`{name}(…)` inside an expression", "Make it a statement of its own.")
    if lowering.registry is not None and name in lowering.registry:
        raise lowering.error(
            node,
            "plan.ambiguous-name",
            f"{name!r} is both a tool and a function of the language",
            fix="Rename the tool.",
        )
    args = read_items(lowering, node.args)
    return ir.Apply(function=name, args=args, named=_read_named_arguments(lowering, node))


def _read_reference(lowering: Lowering, node: ast.Call, kind: ReferenceKind) -> ir.Reference:
    """A reference by words. The words are literal: computed ones could carry text of the world into a question."""
    match bind_word_arguments(lowering, node, ("words",), required=1)["words"]:
        case ast.Constant(value=str() as words) if words.strip() and len(words) <= ir.MAX_REFERENCE_WORDS:
            return ir.Reference(refers=kind, words=lowering.check_text(node, words.strip()))
        case other:
            raise lowering.error(
                other,
                "plan.bad-reference",
                f"the words of {kind}(…) are a literal text of 1 to {ir.MAX_REFERENCE_WORDS} characters",
                expected=f'{kind}("words of the request")',
                fix="A value of a variable is used as it is, without the word around it.",
            )


def _read_method_call(lowering: Lowering, node: ast.Call, receiver: ast.expr, method: str) -> ir.Expr:
    function = METHODS.get(method)
    if function is None:
        known = FUNCTIONS.get(method)
        fix = METHOD_HINTS.get(method) or (f"Write `{method}(…)`." if known else None)
        raise lowering.error(
            node,
            "plan.unknown-function",
            f"there is no method {method!r}",
            nearest=nearest_name(method, METHODS),
            fix=fix,
        )
    first = lowering.lower_expression(receiver)
    return ir.Apply(
        function=function, args=(first, *read_items(lowering, node.args)), named=_read_named_arguments(lowering, node)
    )


def _read_named_arguments(lowering: Lowering, node: ast.Call) -> tuple[tuple[str, ir.Expr], ...]:
    return tuple((name, lowering.lower_expression(value)) for name, value in _keyword_nodes(lowering, node).items())


def _keyword_nodes(lowering: Lowering, node: ast.Call) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise lowering.refusal(keyword.value, "`**` in a call", "Name the arguments.")
        name = lowering.check_name(keyword, keyword.arg)
        if name in found:
            raise _repeated_argument_error(lowering, keyword, name)
        found[name] = keyword.value
    return found


def _repeated_argument_error(lowering: Lowering, node: ast.AST, name: str) -> Exception:
    return lowering.error(node, "plan.repeated-argument", f"the argument {name!r} is given twice")


def _read_concat(lowering: Lowering, node: ast.Call) -> list[str | ir.Shown]:
    if node.keywords:
        raise lowering.error(node.keywords[0], "plan.unknown-argument", "concat takes no named arguments")
    parts: list[str | ir.Shown] = []
    for argument in node.args:
        match argument:
            case ast.Call(func=ast.Name(id="format")):
                parts.append(_read_format_call(lowering, argument))
            case ast.Constant(value=str() as text):
                parts.append(lowering.check_text(argument, text))
            case _:
                parts.append(ir.Shown(value=read_items(lowering, [argument])[0]))
    return parts


def _read_format_call(lowering: Lowering, node: ast.Call) -> ir.Shown:
    given = bind_word_arguments(lowering, node, ("value", "spec"), required=1)
    spec: ir.Expr = lowering.lower_expression(given["spec"]) if "spec" in given else ir.Const(value="")
    if not isinstance(spec, ir.Const) or not isinstance(spec.value, str):
        raise lowering.refusal(given["spec"], "a computed format spec", "Write the spec as a literal text.")
    return ir.Shown(value=lowering.lower_expression(given["value"]), spec=spec.value)


def bind_word_arguments(
    lowering: Lowering, node: ast.Call, names: tuple[str, ...], *, required: int
) -> dict[str, ast.expr]:
    """The arguments of a call of a word of the language, by name."""
    form = f"{cast('ast.Name', node.func).id}({', '.join(names)})"
    if len(node.args) > len(names):
        raise lowering.error(node.args[len(names)], "plan.unknown-argument", "too many arguments", expected=form)
    given = dict(zip(names, node.args, strict=False))
    for argument in given.values():
        if isinstance(argument, ast.Starred):
            raise lowering.refusal(argument, "`*` in a call", f"Write `{form}`.")
    for name, value in _keyword_nodes(lowering, node).items():
        if name not in names:
            raise lowering.error(
                value,
                "plan.unknown-argument",
                f"there is no argument {name!r}",
                expected=form,
                nearest=nearest_name(name, names),
            )
        if name in given:
            raise _repeated_argument_error(lowering, value, name)
        given[name] = value
    for name in names[:required]:
        if name not in given:
            raise lowering.error(node, "plan.missing-argument", f"the argument {name!r} is missing", expected=form)
    return given


def read_step_call(
    lowering: Lowering, node: ast.Call, name: str | None, *, wanted: bool = True
) -> Call | Extract | Ask:
    """The step that a call makes; without a name for its result it gets a fresh one if the result is `wanted`."""
    match cast("ast.Name", node.func).id:
        case "extract":
            given = bind_word_arguments(lowering, node, ("source", "instruction", "type"), required=3)
            source, instruction = (
                lowering.lower_expression(given["source"]),
                lowering.lower_expression(given["instruction"]),
            )
            type_ = type_to_json(read_type(lowering, given["type"]))
            return Extract(name=name or lowering.fresh_name(), source=source, instruction=instruction, type=type_)
        case "ask":
            given = bind_word_arguments(lowering, node, ("question", "type"), required=1)
            question = lowering.lower_expression(given["question"])
            type_ = type_to_json(read_type(lowering, given["type"])) if "type" in given else "str"
            return Ask(name=name or lowering.fresh_name(), question=question, type=type_)
        case "within":
            return _read_timed_step(lowering, node, name, wanted=wanted)
        case tool:
            args = _read_tool_arguments(lowering, node, tool)
            return Call(name=name or (lowering.fresh_name() if wanted else None), tool=tool, args=args)


def _read_timed_step(lowering: Lowering, node: ast.Call, name: str | None, *, wanted: bool) -> Call | Extract:
    """`within(30, tool(…))`: a step with a time limit."""
    given = bind_word_arguments(lowering, node, ("seconds", "step"), required=2)
    match given["seconds"]:
        case ast.Constant(value=int() | float() as seconds) if (
            not isinstance(seconds, bool) and 0 < seconds <= MAX_STEP_SECONDS
        ):
            pass
        case other:
            raise lowering.error(
                other,
                "plan.wrong-type",
                "the seconds of within(…) are a literal number",
                expected=f"more than 0 and at most {MAX_STEP_SECONDS:,}",
            )
    inner = given["step"]
    if isinstance(inner, ast.Call) and is_step_call(inner):
        step = read_step_call(lowering, inner, name, wanted=wanted)
        if not isinstance(step, Ask) and step.timeout_secs is None:
            return step.model_copy(update={"timeout_secs": float(seconds)})
    raise lowering.refusal(inner, "`within(…)` around anything but one call of a tool or `extract`", None)


def _read_tool_arguments(lowering: Lowering, node: ast.Call, name: str) -> dict[str, ir.Expr]:
    tool = _find_tool(lowering, node, name)
    keywords = _keyword_nodes(lowering, node)
    args: dict[str, ir.Expr] = {}
    for number, value in enumerate(node.args):
        argument = _argument_name_at(lowering, value, name, tool, number)
        if argument in keywords:
            raise _repeated_argument_error(lowering, value, argument)
        args[argument] = read_items(lowering, [value])[0]
    for argument, value in keywords.items():
        args[argument] = lowering.lower_expression(value)
    return args


def _find_tool(lowering: Lowering, node: ast.Call, name: str) -> Tool | None:
    lowering.check_name(node, name)
    if lowering.registry is None:
        if name in FUNCTION_HINTS:
            raise _unknown_tool_error(lowering, node, name, ())
        return None
    tool = lowering.registry.get(name)
    if tool is None:
        raise _unknown_tool_error(lowering, node, name, lowering.registry.names)
    return tool


def _unknown_tool_error(lowering: Lowering, node: ast.AST, name: str, tools: tuple[str, ...]) -> Exception:
    fix = FUNCTION_HINTS.get(name)
    near = None if fix else nearest_name(name, (*tools, *FUNCTIONS, *sorted(ir.SURFACE_WORDS)))
    return lowering.error(node, "plan.unknown-tool", f"there is no tool or function {name!r}", nearest=near, fix=fix)


def _argument_name_at(lowering: Lowering, node: ast.expr, name: str, tool: Tool | None, number: int) -> str:
    if tool is None:
        raise lowering.error(
            node,
            "plan.positional",
            f"the arguments of {name!r} need names, because its registry is not known here",
            fix="Write `name=value`.",
        )
    if number >= len(tool.arguments):
        raise lowering.error(node, "plan.unknown-argument", f"{name!r} takes fewer arguments", expected=tool.signature)
    return tool.arguments[number].name


CALL_READERS: Mapping[type[ast.expr], NodeReader] = {ast.Call: _read_call}
