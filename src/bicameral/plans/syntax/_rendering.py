"""Renderings of plans: the surface syntax, which parses to the same plan again, and the published JSON Schema.

Text has no more parentheses than it needs, and whatever cannot be seen in a literal is escaped. The schema is
`schemas/plan.v1.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from bicameral.display import hidden_kind
from bicameral.plans._expressions import (
    NAME_PATTERN,
    Apply,
    Arithmetic,
    Choose,
    Compare,
    Comprehension,
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
    Ref,
    Shown,
    Slice,
    TupleOf,
)
from bicameral.plans._plan import Answer, Ask, Call, Compute, Each, Extract, Plan, Step, Update, When, check_depth
from bicameral.plans.evaluate._library import FUNCTIONS, METHODS
from bicameral.tools import Registry
from bicameral.types import (
    FORMATS,
    MONEY,
    DictType,
    ListType,
    LiteralType,
    OptionalType,
    RecordType,
    StrType,
    TupleType,
    Type,
)

# How tightly a form binds. A part that binds less tightly than its surroundings ask for gets parentheses.
TEST, OR, AND, NOT, COMPARE, SUM, PRODUCT, UNARY, NUMBER, ATOM = range(10)

_ESCAPES: Mapping[str, str] = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote_text(text: str, quote: str = '"') -> str:
    """A text as a literal; whatever cannot be seen (also what turns the writing direction) is escaped."""
    return f"{quote}{escape_text(text, quote)}{quote}"


def escape_text(text: str, quote: str = '"') -> str:
    return "".join(_escape_character(character, quote) for character in text)


def _escape_character(character: str, quote: str) -> str:
    if character == quote:
        return f"\\{quote}"
    if found := _ESCAPES.get(character):
        return found
    if character.isprintable() and hidden_kind(character) is None:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def render(expr: Expr, level: int = TEST, quote: str = '"') -> str:
    """An expression as text, in parentheses if it binds less tightly than `level`."""
    bound, text = _RENDERERS[type(expr)](expr, quote)
    return text if bound >= level else f"({text})"


RenderedForm = tuple[int, str]


def _render_const(expr: Const, quote: str) -> RenderedForm:
    match expr.value:
        case str() as text:
            return ATOM, quote_text(text, quote)
        case bool() | None:
            return ATOM, str(expr.value)
        case number:
            text = repr(number)
            return (UNARY if text.startswith("-") else NUMBER), text


def _render_ref(expr: Ref, quote: str) -> RenderedForm:
    return ATOM, expr.name


def _render_get(expr: Get, quote: str) -> RenderedForm:
    return ATOM, f"{render(expr.value, ATOM, quote)}.{expr.field}"


def _render_index(expr: Index, quote: str) -> RenderedForm:
    return ATOM, f"{render(expr.value, ATOM, quote)}[{render(expr.at, OR, quote)}]"


def _render_slice(expr: Slice, quote: str) -> RenderedForm:
    start, stop, step = (
        "" if bound is None else render(bound, OR, quote) for bound in (expr.start, expr.stop, expr.step)
    )
    bounds = f"{start}:{stop}" + (f":{step}" if step else "")
    return ATOM, f"{render(expr.value, ATOM, quote)}[{bounds}]"


def _render_list(expr: ListOf, quote: str) -> RenderedForm:
    return ATOM, f"[{', '.join(render(item, TEST, quote) for item in expr.items)}]"


def _render_tuple(expr: TupleOf, quote: str) -> RenderedForm:
    shown = ", ".join(render(item, TEST, quote) for item in expr.items)
    return ATOM, f"({shown},)" if len(expr.items) == 1 else f"({shown})"


def _render_dict(expr: DictOf, quote: str) -> RenderedForm:
    entries = (f"{render(key, OR, quote)}: {render(value, TEST, quote)}" for key, value in expr.entries)
    return ATOM, f"{{{', '.join(entries)}}}"


def _render_arithmetic(expr: Arithmetic, quote: str) -> RenderedForm:
    level = SUM if expr.op in ("+", "-") else PRODUCT
    return level, f"{render(expr.left, level, quote)} {expr.op} {render(expr.right, level + 1, quote)}"


def _render_negative(expr: Negative, quote: str) -> RenderedForm:
    return UNARY, f"-{render(expr.value, UNARY, quote)}"


def _render_not(expr: Not, quote: str) -> RenderedForm:
    return NOT, f"not {render(expr.value, NOT, quote)}"


def _render_logic(expr: Logic, quote: str) -> RenderedForm:
    level = OR if expr.op == "or" else AND
    return level, f" {expr.op} ".join(render(item, level + 1, quote) for item in expr.items)


def _render_compare(expr: Compare, quote: str) -> RenderedForm:
    rest = "".join(f" {_comparison_word(op, operand)} {render(operand, SUM, quote)}" for op, operand in expr.rest)
    return COMPARE, f"{render(expr.first, SUM, quote)}{rest}"


def _comparison_word(op: str, operand: Expr) -> str:
    if isinstance(operand, Const) and operand.value is None:
        return {"==": "is", "!=": "is not"}.get(op, op)
    return op


def _render_choose(expr: Choose, quote: str) -> RenderedForm:
    then, condition = render(expr.then, OR, quote), render(expr.condition, OR, quote)
    return TEST, f"{then} if {condition} else {render(expr.otherwise, TEST, quote)}"


def _render_lambda(expr: Lambda, quote: str) -> RenderedForm:
    names = f" {', '.join(expr.names)}" if expr.names else ""
    return TEST, f"lambda{names}: {render(expr.body, TEST, quote)}"


def _render_apply(expr: Apply, quote: str) -> RenderedForm:
    args = [render(arg, TEST, quote) for arg in expr.args]
    function = FUNCTIONS.get(expr.function)
    if args and function is not None and function.method and METHODS.get(expr.function) == expr.function:
        called, args = f"{render(expr.args[0], ATOM, quote)}.{expr.function}", args[1:]
    else:
        called = expr.function
    named = (f"{name}={render(value, TEST, quote)}" for name, value in expr.named)
    return ATOM, f"{called}({', '.join((*args, *named))})"


def _render_comprehension(expr: Comprehension, quote: str) -> RenderedForm:
    clauses = ""
    for clause in expr.clauses:
        clauses += f" for {', '.join(clause.names)} in {render(clause.over, OR, quote)}"
        clauses += "".join(f" if {render(condition, OR, quote)}" for condition in clause.conditions)
    element = render(expr.element, TEST, quote)
    if expr.key is None:
        return ATOM, f"[{element}{clauses}]"
    return ATOM, f"{{{render(expr.key, OR, quote)}: {element}{clauses}}}"


def _render_format(expr: Format, quote: str) -> RenderedForm:
    # Inside an f-string the other quotes are used, and there only: Python 3.11 does not nest them further.
    text = _render_f_string(expr) if quote == '"' else None
    return ATOM, text or _render_concat(expr, quote)


def _render_f_string(expr: Format) -> str | None:
    """The f-string, or None where Python 3.11 cannot write it (quotes or backslashes in a value)."""
    texts: list[str] = []
    for part in expr.parts:
        if isinstance(part, str):
            texts.append(escape_text(part).replace("{", "{{").replace("}", "}}"))
            continue
        value = render(part.value, TEST, "'")
        if any(character in value for character in '"\\#') or not _is_plain_spec(part.spec):
            return None
        if "lambda" in value:  # its colon would begin a format spec
            value = f"({value})"
        if value.startswith("{"):  # two braces would be one literal brace
            value = f" {value} "
        texts.append(f"{{{value}{':' if part.spec else ''}{part.spec}}}")
    return f'f"{"".join(texts)}"'


def _is_plain_spec(spec: str) -> bool:
    return spec.isprintable() and not any(character in spec for character in "{}\"'\\")


def _render_concat(expr: Format, quote: str) -> str:
    parts = [
        quote_text(part, quote) if isinstance(part, str) else _render_format_part(part, quote) for part in expr.parts
    ]
    if len(parts) == 1 and parts[0].startswith("format("):
        return parts[0]
    return f"concat({', '.join(parts)})"


def _render_format_part(part: Shown, quote: str) -> str:
    value = render(part.value, TEST, quote)
    if part.spec:
        return f"format({value}, {quote_text(part.spec, quote)})"
    # A bare text would be a literal part, and a bare `format(…)` this part itself.
    is_text = isinstance(part.value, Const) and isinstance(part.value.value, str)
    return f"format({value})" if is_text or value.startswith("format(") else value


_RENDERERS: Mapping[type[Any], Callable[[Any, str], RenderedForm]] = {
    Const: _render_const,
    Ref: _render_ref,
    Get: _render_get,
    Index: _render_index,
    Slice: _render_slice,
    ListOf: _render_list,
    TupleOf: _render_tuple,
    DictOf: _render_dict,
    Arithmetic: _render_arithmetic,
    Negative: _render_negative,
    Not: _render_not,
    Logic: _render_logic,
    Compare: _render_compare,
    Choose: _render_choose,
    Lambda: _render_lambda,
    Apply: _render_apply,
    Comprehension: _render_comprehension,
    Format: _render_format,
}


def render_type(type_: Type) -> str:
    """A type as a plan writes it."""
    match type_:
        case StrType(format=str() as format_):
            return format_ if format_ in FORMATS else f"str[{quote_text(format_)}]"
        case ListType(item=item):
            return f"list[{render_type(item)}]"
        case DictType(value=value):
            return f"dict[str, {render_type(value)}]"
        case TupleType(items=items):
            return f"tuple[{', '.join(map(render_type, items)) or '()'}]"
        case OptionalType(item=item):
            return f"{render_type(item)} | None"
        case LiteralType(values=values):
            return f"Literal[{', '.join(map(quote_text, values))}]"
        case RecordType() if type_ == MONEY:
            return "money"
        case RecordType(fields=fields):
            return f"{{{', '.join(f'{quote_text(field.name)}: {render_type(field.type)}' for field in fields)}}}"
        case _:
            return str(type_)


_INDENT = "    "


def print_plan(plan: Plan, registry: Registry | None = None) -> str:
    """The plan as Python text; with a registry the required arguments of tools come first, without their names.

    Example:
        >>> print_plan(parse("answer(1 + 1)").plan)
        'answer(1 + 1)\\n'
    """
    check_depth(plan)
    lines = [f'"""{escape_text(plan.goal)}"""'] if plan.goal else []
    lines += _render_steps(plan.steps, registry, "")
    return "".join(f"{line}\n" for line in lines)


def _render_steps(steps: tuple[Step, ...], registry: Registry | None, indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case Each():
                yield f"{indent}for {', '.join(step.names)} in {render(step.over)}:"
                yield from _render_steps(step.steps, registry, indent + _INDENT)
            case When():
                yield from _render_when(step, registry, indent, "if")
            case _:
                yield f"{indent}{_render_step(step, registry)}"


def _render_when(step: When, registry: Registry | None, indent: str, word: str) -> Iterator[str]:
    yield f"{indent}{word} {render(step.condition)}:"
    yield from _render_steps(step.steps, registry, indent + _INDENT)
    match step.otherwise:
        case ():
            pass
        case (When() as other,):
            yield from _render_when(other, registry, indent, "elif")
        case others:
            yield f"{indent}else:"
            yield from _render_steps(others, registry, indent + _INDENT)


def _render_step(step: Call | Extract | Compute | Update | Ask | Answer, registry: Registry | None) -> str:
    match step:
        case Call():
            return f"{step.name} = {_render_call(step, registry)}" if step.name else _render_call(step, registry)
        case Extract():
            source, instruction = render(step.source), render(step.instruction)
            return f"{step.name} = extract({source}, {instruction}, {render_type(step.result_type)})"
        case Ask():
            type_ = "" if step.type == "str" else f", {render_type(step.result_type)}"
            return f"{step.name} = ask({render(step.question)}{type_})"
        case Compute():
            return f"{step.name} = {render(step.value)}"
        case Update():
            return _render_update(step)
        case Answer():
            return f"answer({render(step.value)})"


def _render_update(step: Update) -> str:
    match step.op:
        case "append":
            return f"{step.name}.append({render(step.value)})"
        case "add":
            return f"{step.name} += {render(step.value)}"
        case "put":
            return f"{step.name}[{render(step.key, OR) if step.key is not None else ''}] = {render(step.value)}"


def _render_call(step: Call, registry: Registry | None) -> str:
    tool = registry.get(step.tool) if registry is not None else None
    arguments = tool.arguments if tool is not None else ()
    shown: list[str] = []
    by_position = True
    for number, (name, value) in enumerate(step.args.items()):
        # Only where the order of the plan is the order of the tool: the order of arguments is part of the plan.
        by_position = (
            by_position and number < len(arguments) and arguments[number].required and arguments[number].name == name
        )
        shown.append(render(value) if by_position else f"{name}={render(value)}")
    return f"{step.tool}({', '.join(shown)})"


_TAGGED_UNIONS = {"kind": "Expression", "do": "Step"}


def plan_schema() -> dict[str, Any]:
    """The JSON Schema of a plan as JSON."""
    schema = Plan.model_json_schema()
    shared: dict[str, Any] = {}
    schema = _shorten_schema(schema, shared)
    definitions = schema.pop("$defs")
    for definition in definitions.values():
        _require_tag(definition)
    for step in ("Extract", "Ask"):
        definitions[step]["properties"]["type"] |= {"$ref": "#/$defs/Type"}
    definitions |= shared | {"Type": _type_schema()}
    schema |= {"title": "Plan v1", "required": ["version"]}
    order = {name: definitions[name] for name in sorted(definitions)}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "$defs": order}


def _shorten_schema(node: Any, shared: dict[str, Any], *, named: bool = False) -> Any:
    """Say what a name, an expression and a step are once; leave out titles and examples. `named`: keys are names."""
    if isinstance(node, list):
        return [_shorten_schema(item, shared) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    entries = cast("dict[str, Any]", node)
    if not named:
        if union := entries.get("discriminator"):
            return _share_definition(_TAGGED_UNIONS[union["propertyName"]], {"oneOf": entries["oneOf"]}, shared)
        if entries.get("pattern") == NAME_PATTERN:
            return _share_definition("Name", {key: value for key, value in entries.items() if key != "title"}, shared)
        entries = {key: value for key, value in entries.items() if key != "title"}
        if "description" in entries:
            entries["description"] = entries["description"].split("\n")[0]
    return {
        key: _shorten_schema(value, shared, named=not named and key in ("properties", "$defs"))
        for key, value in entries.items()
    }


def _share_definition(name: str, definition: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    shared.setdefault(name, definition)
    return {"$ref": f"#/$defs/{name}"}


def _require_tag(definition: dict[str, Any]) -> None:
    """A node without its tag is no node: the tag has a default only for those who write Python."""
    properties = definition["properties"]
    required = [tag for tag in _TAGGED_UNIONS if "const" in properties.get(tag, {})]
    definition["required"] = [*required, *definition.get("required", [])]
    for tag in required:
        properties[tag] = {"const": properties[tag]["const"]}


def _type_schema() -> dict[str, Any]:
    inner = {"$ref": "#/$defs/Type"}

    def one(kind: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "properties": {kind: value}, "required": [kind], "additionalProperties": False}

    return {
        "description": "The type of a value.",
        "anyOf": [
            {"enum": ["str", "int", "float", "number", "bool", "date", "time", "datetime", "timedelta", "None", "Any"]},
            one("str", {"type": "string"}),
            one("list", inner),
            one("dict", inner),
            one("optional", inner),
            one("tuple", {"type": "array", "items": inner}),
            one("literal", {"type": "array", "items": {"type": "string"}, "minItems": 1}),
            one("record", {"type": "object", "additionalProperties": inner}),
        ],
    }
