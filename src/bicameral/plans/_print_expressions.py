"""Expressions as Python writes them, with no more parentheses than they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bicameral.display import hidden_kind
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

from ._expressions import (
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
from ._library import FUNCTIONS, METHODS

# How tightly a form binds. A part that binds less tightly than its surroundings ask for gets parentheses.
TEST, OR, AND, NOT, COMPARE, SUM, PRODUCT, UNARY, NUMBER, ATOM = range(10)

_ESCAPES: Mapping[str, str] = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str, quote: str = '"') -> str:
    """A text as a literal; whatever cannot be seen (also what turns the writing direction) is escaped."""
    return f"{quote}{escaped(text, quote)}{quote}"


def escaped(text: str, quote: str = '"') -> str:
    return "".join(_escape(character, quote) for character in text)


def _escape(character: str, quote: str) -> str:
    if character == quote:
        return f"\\{quote}"
    if found := _ESCAPES.get(character):
        return found
    if character.isprintable() and hidden_kind(character) is None:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def show(expr: Expr, level: int = TEST, quote: str = '"') -> str:
    """An expression as text, in parentheses if it binds less tightly than `level`."""
    bound, text = _FORMS[type(expr)](expr, quote)
    return text if bound >= level else f"({text})"


Form = tuple[int, str]


def _const(expr: Const, quote: str) -> Form:
    match expr.value:
        case str() as text:
            return ATOM, quoted(text, quote)
        case bool() | None:
            return ATOM, str(expr.value)
        case number:
            text = repr(number)
            return (UNARY if text.startswith("-") else NUMBER), text


def _ref(expr: Ref, quote: str) -> Form:
    return ATOM, expr.name


def _get(expr: Get, quote: str) -> Form:
    return ATOM, f"{show(expr.value, ATOM, quote)}.{expr.field}"


def _index(expr: Index, quote: str) -> Form:
    return ATOM, f"{show(expr.value, ATOM, quote)}[{show(expr.at, OR, quote)}]"


def _slice(expr: Slice, quote: str) -> Form:
    start, stop, step = (
        "" if bound is None else show(bound, OR, quote) for bound in (expr.start, expr.stop, expr.step)
    )
    bounds = f"{start}:{stop}" + (f":{step}" if step else "")
    return ATOM, f"{show(expr.value, ATOM, quote)}[{bounds}]"


def _list(expr: ListOf, quote: str) -> Form:
    return ATOM, f"[{', '.join(show(item, TEST, quote) for item in expr.items)}]"


def _tuple(expr: TupleOf, quote: str) -> Form:
    shown = ", ".join(show(item, TEST, quote) for item in expr.items)
    return ATOM, f"({shown},)" if len(expr.items) == 1 else f"({shown})"


def _dict(expr: DictOf, quote: str) -> Form:
    entries = (f"{show(key, OR, quote)}: {show(value, TEST, quote)}" for key, value in expr.entries)
    return ATOM, f"{{{', '.join(entries)}}}"


def _arithmetic(expr: Arithmetic, quote: str) -> Form:
    level = SUM if expr.op in ("+", "-") else PRODUCT
    return level, f"{show(expr.left, level, quote)} {expr.op} {show(expr.right, level + 1, quote)}"


def _negative(expr: Negative, quote: str) -> Form:
    return UNARY, f"-{show(expr.value, UNARY, quote)}"


def _not(expr: Not, quote: str) -> Form:
    return NOT, f"not {show(expr.value, NOT, quote)}"


def _logic(expr: Logic, quote: str) -> Form:
    level = OR if expr.op == "or" else AND
    return level, f" {expr.op} ".join(show(item, level + 1, quote) for item in expr.items)


def _compare(expr: Compare, quote: str) -> Form:
    rest = "".join(f" {_operator(op, operand)} {show(operand, SUM, quote)}" for op, operand in expr.rest)
    return COMPARE, f"{show(expr.first, SUM, quote)}{rest}"


def _operator(op: str, operand: Expr) -> str:
    if isinstance(operand, Const) and operand.value is None:
        return {"==": "is", "!=": "is not"}.get(op, op)
    return op


def _choose(expr: Choose, quote: str) -> Form:
    then, condition = show(expr.then, OR, quote), show(expr.condition, OR, quote)
    return TEST, f"{then} if {condition} else {show(expr.otherwise, TEST, quote)}"


def _lambda(expr: Lambda, quote: str) -> Form:
    names = f" {', '.join(expr.names)}" if expr.names else ""
    return TEST, f"lambda{names}: {show(expr.body, TEST, quote)}"


def _apply(expr: Apply, quote: str) -> Form:
    args = [show(arg, TEST, quote) for arg in expr.args]
    function = FUNCTIONS.get(expr.function)
    if args and function is not None and function.method and METHODS.get(expr.function) == expr.function:
        called, args = f"{show(expr.args[0], ATOM, quote)}.{expr.function}", args[1:]
    else:
        called = expr.function
    named = (f"{name}={show(value, TEST, quote)}" for name, value in expr.named)
    return ATOM, f"{called}({', '.join((*args, *named))})"


def _comprehension(expr: Comprehension, quote: str) -> Form:
    clauses = ""
    for clause in expr.clauses:
        clauses += f" for {', '.join(clause.names)} in {show(clause.over, OR, quote)}"
        clauses += "".join(f" if {show(condition, OR, quote)}" for condition in clause.conditions)
    element = show(expr.element, TEST, quote)
    if expr.key is None:
        return ATOM, f"[{element}{clauses}]"
    return ATOM, f"{{{show(expr.key, OR, quote)}: {element}{clauses}}}"


def _format(expr: Format, quote: str) -> Form:
    # Inside an f-string the other quotes are used, and there only: Python 3.11 does not nest them further.
    text = _f_string(expr) if quote == '"' else None
    return ATOM, text or _concat(expr, quote)


def _f_string(expr: Format) -> str | None:
    """The f-string, or None where Python 3.11 cannot write it (quotes or backslashes in a value)."""
    texts: list[str] = []
    for part in expr.parts:
        if isinstance(part, str):
            texts.append(escaped(part).replace("{", "{{").replace("}", "}}"))
            continue
        value = show(part.value, TEST, "'")
        if any(character in value for character in '"\\#') or not _plain_spec(part.spec):
            return None
        if "lambda" in value:  # its colon would begin a format spec
            value = f"({value})"
        if value.startswith("{"):  # two braces would be one literal brace
            value = f" {value} "
        texts.append(f"{{{value}{':' if part.spec else ''}{part.spec}}}")
    return f'f"{"".join(texts)}"'


def _plain_spec(spec: str) -> bool:
    return spec.isprintable() and not any(character in spec for character in "{}\"'\\")


def _concat(expr: Format, quote: str) -> str:
    parts = [quoted(part, quote) if isinstance(part, str) else _shown(part, quote) for part in expr.parts]
    if len(parts) == 1 and parts[0].startswith("format("):
        return parts[0]
    return f"concat({', '.join(parts)})"


def _shown(part: Shown, quote: str) -> str:
    value = show(part.value, TEST, quote)
    if part.spec:
        return f"format({value}, {quoted(part.spec, quote)})"
    # A bare text would be a literal part, and a bare `format(…)` this part itself.
    is_text = isinstance(part.value, Const) and isinstance(part.value.value, str)
    return f"format({value})" if is_text or value.startswith("format(") else value


_FORMS: Mapping[type[Any], Callable[[Any, str], Form]] = {
    Const: _const,
    Ref: _ref,
    Get: _get,
    Index: _index,
    Slice: _slice,
    ListOf: _list,
    TupleOf: _tuple,
    DictOf: _dict,
    Arithmetic: _arithmetic,
    Negative: _negative,
    Not: _not,
    Logic: _logic,
    Compare: _compare,
    Choose: _choose,
    Lambda: _lambda,
    Apply: _apply,
    Comprehension: _comprehension,
    Format: _format,
}


def show_type(type_: Type) -> str:
    """A type as a plan writes it."""
    match type_:
        case StrType(format=str() as format_):
            return format_ if format_ in FORMATS else f"str[{quoted(format_)}]"
        case ListType(item=item):
            return f"list[{show_type(item)}]"
        case DictType(value=value):
            return f"dict[str, {show_type(value)}]"
        case TupleType(items=items):
            return f"tuple[{', '.join(map(show_type, items)) or '()'}]"
        case OptionalType(item=item):
            return f"{show_type(item)} | None"
        case LiteralType(values=values):
            return f"Literal[{', '.join(map(quoted, values))}]"
        case RecordType() if type_ == MONEY:
            return "money"
        case RecordType(fields=fields):
            return f"{{{', '.join(f'{quoted(field.name)}: {show_type(field.type)}' for field in fields)}}}"
        case _:
            return str(type_)
