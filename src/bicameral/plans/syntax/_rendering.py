"""Plans as text in the surface syntax, which parses to the same plan again.

The text has no more parentheses than it needs, and invisible characters in literals are escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from bicameral import types as t
from bicameral.display import hidden_kind
from bicameral.plans import _expressions as ir
from bicameral.plans._plan import Answer, Ask, Call, Compute, Each, Extract, Plan, Step, Update, When, check_depth
from bicameral.plans.evaluate._library import FUNCTIONS, METHODS
from bicameral.tools import Registry

# How tightly a form binds. A part that binds less tightly than its surroundings ask for gets parentheses.
TEST, OR, AND, NOT, COMPARE, SUM, PRODUCT, UNARY, NUMBER, ATOM = range(10)

_ESCAPES: Mapping[str, str] = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote_text(text: str, quote: str = '"') -> str:
    """A text as a literal; invisible characters (also those that turn the writing direction) are escaped."""
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


RenderedForm = tuple[int, str]


def render(expr: ir.Expr, level: int = TEST, quote: str = '"') -> str:
    """An expression as text, in parentheses if it binds less tightly than `level`."""
    bound, text = _render_node(expr, quote)
    return text if bound >= level else f"({text})"


def _render_node(expr: ir.Expr, quote: str) -> RenderedForm:
    """An expression as text, and how tightly the text binds."""

    def show(part: ir.Expr, level: int = TEST) -> str:
        return render(part, level, quote)

    match expr:
        case ir.Const(value=str() as text):
            return ATOM, quote_text(text, quote)
        case ir.Const(value=bool() | None as value):
            return ATOM, str(value)
        case ir.Const(value=number):
            return (UNARY if repr(number).startswith("-") else NUMBER), repr(number)
        case ir.Ref(name=name):
            return ATOM, name
        case ir.Reference(refers=refers, words=words):
            return ATOM, f"{refers}({quote_text(words, quote)})"
        case ir.Get(value=value, field=field):
            return ATOM, f"{show(value, ATOM)}.{field}"
        case ir.Index(value=value, at=at):
            return ATOM, f"{show(value, ATOM)}[{show(at, OR)}]"
        case ir.Slice(value=value):
            start, stop, step = ("" if each is None else show(each, OR) for each in (expr.start, expr.stop, expr.step))
            return ATOM, f"{show(value, ATOM)}[{start}:{stop}" + (f":{step}]" if step else "]")
        case ir.ListOf(items=items):
            return ATOM, f"[{', '.join(map(show, items))}]"
        case ir.TupleOf(items=items):
            return ATOM, f"({', '.join(map(show, items))}{',' if len(items) == 1 else ''})"
        case ir.DictOf(entries=entries):
            return ATOM, f"{{{', '.join(f'{show(key, OR)}: {show(value)}' for key, value in entries)}}}"
        case ir.Arithmetic(op=op, left=left, right=right):
            level = SUM if op in ("+", "-") else PRODUCT
            return level, f"{show(left, level)} {op} {show(right, level + 1)}"
        case ir.Negative(value=value):
            return UNARY, f"-{show(value, UNARY)}"
        case ir.Not(value=value):
            return NOT, f"not {show(value, NOT)}"
        case ir.Logic(op=op, items=items):
            level = OR if op == "or" else AND
            return level, f" {op} ".join(show(item, level + 1) for item in items)
        case ir.Compare(first=first, rest=rest):
            compared = "".join(f" {_comparison_word(op, right)} {show(right, SUM)}" for op, right in rest)
            return COMPARE, f"{show(first, SUM)}{compared}"
        case ir.Choose(condition=condition, then=then, otherwise=otherwise):
            return TEST, f"{show(then, OR)} if {show(condition, OR)} else {show(otherwise)}"
        case ir.Lambda(names=names, body=body):
            return TEST, f"lambda{' ' if names else ''}{', '.join(names)}: {show(body)}"
        case ir.Apply():
            return ATOM, _render_apply(expr, show)
        case ir.Comprehension():
            return ATOM, _render_comprehension(expr, show)
        case ir.Format():
            # Inside an f-string the other quotes are used, and there only: Python 3.11 does not nest them further.
            return ATOM, (_render_f_string(expr) if quote == '"' else None) or _render_concat(expr, quote)


def _comparison_word(op: str, operand: ir.Expr) -> str:
    if isinstance(operand, ir.Const) and operand.value is None:
        return {"==": "is", "!=": "is not"}.get(op, op)
    return op


def _render_apply(expr: ir.Apply, show: Callable[..., str]) -> str:
    called, args = expr.function, expr.args
    function = FUNCTIONS.get(called)
    if args and function is not None and function.method and METHODS.get(called) == called:
        called, args = f"{show(args[0], ATOM)}.{called}", args[1:]
    named = (f"{name}={show(value)}" for name, value in expr.named)
    return f"{called}({', '.join((*map(show, args), *named))})"


def _render_comprehension(expr: ir.Comprehension, show: Callable[..., str]) -> str:
    clauses = ""
    for clause in expr.clauses:
        clauses += f" for {', '.join(clause.names)} in {show(clause.over, OR)}"
        clauses += "".join(f" if {show(condition, OR)}" for condition in clause.conditions)
    element = show(expr.element)
    return f"[{element}{clauses}]" if expr.key is None else f"{{{show(expr.key, OR)}: {element}{clauses}}}"


def _render_f_string(expr: ir.Format) -> str | None:
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


def _render_concat(expr: ir.Format, quote: str) -> str:
    parts = [
        quote_text(part, quote) if isinstance(part, str) else _render_format_part(part, quote) for part in expr.parts
    ]
    if len(parts) == 1 and parts[0].startswith("format("):
        return parts[0]
    return f"concat({', '.join(parts)})"


def _render_format_part(part: ir.Shown, quote: str) -> str:
    value = render(part.value, TEST, quote)
    if part.spec:
        return f"format({value}, {quote_text(part.spec, quote)})"
    # A bare text would be a literal part, and a bare `format(…)` this part itself.
    is_text = isinstance(part.value, ir.Const) and isinstance(part.value.value, str)
    return f"format({value})" if is_text or value.startswith("format(") else value


def render_expr(expr: ir.Expr) -> str:
    """An expression as a plan writes it, for messages."""
    return render(expr)


def render_type(type_: t.Type) -> str:
    """A type as a plan writes it."""
    match type_:
        case t.StrType(format=str() as format_):
            return format_ if format_ in t.FORMATS else f"str[{quote_text(format_)}]"
        case t.ListType(item=item):
            return f"list[{render_type(item)}]"
        case t.DictType(value=value):
            return f"dict[str, {render_type(value)}]"
        case t.TupleType(items=items):
            return f"tuple[{', '.join(map(render_type, items)) or '()'}]"
        case t.OptionalType(item=item):
            return f"{render_type(item)} | None"
        case t.LiteralType(values=values):
            return f"Literal[{', '.join(map(quote_text, values))}]"
        case t.RecordType() if type_ == t.MONEY:
            return "money"
        case t.RecordType(fields=fields):
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
    lines += [f"plan_id({quote_text(plan.plan_id)})"] if plan.plan_id else []
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
            call = _render_timed(_render_call(step, registry), step.timeout_secs)
            return f"{step.name} = {call}" if step.name else call
        case Extract():
            source, instruction = render(step.source), render(step.instruction)
            call = f"extract({source}, {instruction}, {render_type(step.result_type)})"
            return f"{step.name} = {_render_timed(call, step.timeout_secs)}"
        case Ask():
            type_ = "" if step.type == "str" else f", {render_type(step.result_type)}"
            return f"{step.name} = ask({render(step.question)}{type_})"
        case Compute():
            return f"{step.name} = {render(step.value)}"
        case Update():
            return _render_update(step)
        case Answer():
            return f"answer({render(step.value)})"


def _render_timed(call: str, seconds: float | None) -> str:
    return call if seconds is None else f"within({int(seconds) if seconds.is_integer() else seconds!r}, {call})"


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
