"""Calls: of library functions, as functions or methods; of tools, `extract` and `ask`, which become steps."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import cast

from bicameral.errors import nearest
from bicameral.tools import Tool
from bicameral.types import to_json

from ._expressions import SURFACE_WORDS, Apply, Const, Expr, Ref, Shown
from ._hints import FUNCTION_HINTS, METHOD_HINTS
from ._library import FUNCTIONS, METHODS
from ._lift import Reader, Reading
from ._parse_expressions import format_of, items
from ._parse_types import read_type
from ._plan import Ask, Call, Extract
from ._survey import is_step


def _call(reading: Reading, node: ast.Call) -> Expr:
    if is_step(node):
        step = read_step(reading, node, None)
        reading.write(step, node)
        return Ref(name=cast("str", step.name))
    match node.func:
        case ast.Name(id=name):
            return _function(reading, node, name)
        case ast.Attribute(value=receiver, attr=method):
            return _method(reading, node, receiver, method)
        case _:
            raise reading.not_in_language(node, "a call of a value", "Only tools and functions can be called.")


def _function(reading: Reading, node: ast.Call, name: str) -> Expr:
    if name in ("concat", "format"):
        return format_of(_concat(reading, node) if name == "concat" else [_shown(reading, node)])
    if name in SURFACE_WORDS:
        raise reading.not_in_language(node, f"`{name}(…)` inside an expression", "Make it a statement of its own.")
    if reading.registry is not None and name in reading.registry:
        raise reading.error(
            node,
            "plan.ambiguous-name",
            f"{name!r} is both a tool and a function of the language",
            fix="Rename the tool.",
        )
    args = items(reading, node.args)
    return Apply(function=name, args=args, named=_named(reading, node))


def _method(reading: Reading, node: ast.Call, receiver: ast.expr, method: str) -> Expr:
    function = METHODS.get(method)
    if function is None:
        known = FUNCTIONS.get(method)
        fix = METHOD_HINTS.get(method) or (f"Write `{method}(…)`." if known else None)
        raise reading.error(
            node, "plan.unknown-function", f"there is no method {method!r}", nearest=nearest(method, METHODS), fix=fix
        )
    first = reading.expression(receiver)
    return Apply(function=function, args=(first, *items(reading, node.args)), named=_named(reading, node))


def _named(reading: Reading, node: ast.Call) -> tuple[tuple[str, Expr], ...]:
    return tuple((name, reading.expression(value)) for name, value in _keywords(reading, node).items())


def _keywords(reading: Reading, node: ast.Call) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise reading.not_in_language(keyword.value, "`**` in a call", "Name the arguments.")
        name = reading.name(keyword, keyword.arg)
        if name in found:
            raise _repeated(reading, keyword, name)
        found[name] = keyword.value
    return found


def _repeated(reading: Reading, node: ast.AST, name: str) -> Exception:
    return reading.error(node, "plan.repeated-argument", f"the argument {name!r} is given twice")


def _concat(reading: Reading, node: ast.Call) -> list[str | Shown]:
    if node.keywords:
        raise reading.error(node.keywords[0], "plan.unknown-argument", "concat takes no named arguments")
    parts: list[str | Shown] = []
    for argument in node.args:
        match argument:
            case ast.Call(func=ast.Name(id="format")):
                parts.append(_shown(reading, argument))
            case ast.Constant(value=str() as text):
                parts.append(reading.text(argument, text))
            case _:
                parts.append(Shown(value=items(reading, [argument])[0]))
    return parts


def _shown(reading: Reading, node: ast.Call) -> Shown:
    given = bind(reading, node, ("value", "spec"), required=1)
    spec: Expr = reading.expression(given["spec"]) if "spec" in given else Const(value="")
    if not isinstance(spec, Const) or not isinstance(spec.value, str):
        raise reading.not_in_language(given["spec"], "a computed format spec", "Write the spec as a literal text.")
    return Shown(value=reading.expression(given["value"]), spec=spec.value)


def bind(reading: Reading, node: ast.Call, names: tuple[str, ...], *, required: int) -> dict[str, ast.expr]:
    """The arguments of a call of a word of the language, by name."""
    form = f"{cast('ast.Name', node.func).id}({', '.join(names)})"
    if len(node.args) > len(names):
        raise reading.error(node.args[len(names)], "plan.unknown-argument", "too many arguments", expected=form)
    given = dict(zip(names, node.args, strict=False))
    for argument in given.values():
        if isinstance(argument, ast.Starred):
            raise reading.not_in_language(argument, "`*` in a call", f"Write `{form}`.")
    for name, value in _keywords(reading, node).items():
        if name not in names:
            raise reading.error(
                value,
                "plan.unknown-argument",
                f"there is no argument {name!r}",
                expected=form,
                nearest=nearest(name, names),
            )
        if name in given:
            raise _repeated(reading, value, name)
        given[name] = value
    for name in names[:required]:
        if name not in given:
            raise reading.error(node, "plan.missing-argument", f"the argument {name!r} is missing", expected=form)
    return given


def read_step(reading: Reading, node: ast.Call, name: str | None, *, wanted: bool = True) -> Call | Extract | Ask:
    """The step that a call makes; without a name for its result it gets a fresh one if the result is `wanted`."""
    match cast("ast.Name", node.func).id:
        case "extract":
            given = bind(reading, node, ("source", "instruction", "type"), required=3)
            source, instruction = reading.expression(given["source"]), reading.expression(given["instruction"])
            type_ = to_json(read_type(reading, given["type"]))
            return Extract(name=name or reading.fresh(), source=source, instruction=instruction, type=type_)
        case "ask":
            given = bind(reading, node, ("question", "type"), required=1)
            question = reading.expression(given["question"])
            type_ = to_json(read_type(reading, given["type"])) if "type" in given else "str"
            return Ask(name=name or reading.fresh(), question=question, type=type_)
        case tool:
            args = _tool_arguments(reading, node, tool)
            return Call(name=name or (reading.fresh() if wanted else None), tool=tool, args=args)


def _tool_arguments(reading: Reading, node: ast.Call, name: str) -> dict[str, Expr]:
    tool = _tool(reading, node, name)
    keywords = _keywords(reading, node)
    args: dict[str, Expr] = {}
    for number, value in enumerate(node.args):
        argument = _argument_at(reading, value, name, tool, number)
        if argument in keywords:
            raise _repeated(reading, value, argument)
        args[argument] = items(reading, [value])[0]
    for argument, value in keywords.items():
        args[argument] = reading.expression(value)
    return args


def _tool(reading: Reading, node: ast.Call, name: str) -> Tool | None:
    reading.name(node, name)
    if reading.registry is None:
        if name in FUNCTION_HINTS:
            raise _unknown_tool(reading, node, name, ())
        return None
    tool = reading.registry.get(name)
    if tool is None:
        raise _unknown_tool(reading, node, name, reading.registry.names)
    return tool


def _unknown_tool(reading: Reading, node: ast.AST, name: str, tools: tuple[str, ...]) -> Exception:
    fix = FUNCTION_HINTS.get(name)
    near = None if fix else nearest(name, (*tools, *FUNCTIONS, *sorted(SURFACE_WORDS)))
    return reading.error(node, "plan.unknown-tool", f"there is no tool or function {name!r}", nearest=near, fix=fix)


def _argument_at(reading: Reading, node: ast.expr, name: str, tool: Tool | None, number: int) -> str:
    if tool is None:
        raise reading.error(
            node,
            "plan.positional",
            f"the arguments of {name!r} need names, because its registry is not known here",
            fix="Write `name=value`.",
        )
    if number >= len(tool.arguments):
        raise reading.error(node, "plan.unknown-argument", f"{name!r} takes fewer arguments", expected=tool.signature)
    return tool.arguments[number].name


CALLS: Mapping[type[ast.expr], Reader] = {ast.Call: _call}
