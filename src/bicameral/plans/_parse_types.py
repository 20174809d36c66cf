"""Types as a plan writes them in `extract` and `ask`: `list[str]`, `{"payee": iban, "total": money}`, `date | None`."""

from __future__ import annotations

import ast
import warnings

from bicameral.errors import nearest
from bicameral.types import (
    ANY,
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    FORMATS,
    INT,
    MONEY,
    NULL,
    NUMBER,
    STR,
    TIME,
    DictType,
    Field,
    ListType,
    LiteralType,
    RecordType,
    StrType,
    TupleType,
    Type,
    optional,
)

from ._lift import Reading

_PLAIN: dict[str, Type] = {
    "str": STR,
    "int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "date": DATE,
    "time": TIME,
    "datetime": DATETIME,
    "timedelta": DURATION,
    "None": NULL,
    "Any": ANY,
    "list": ListType(ANY),
    "dict": DictType(ANY),
}
_NAMED: dict[str, Type] = {
    **_PLAIN,
    "number": NUMBER,
    "money": MONEY,
    **{name: StrType(name) for name in FORMATS},
}
_EXPECTED = 'a type such as str, int, date, email, list[str], {"name": str} or str | None'
MAX_QUOTED = 2_000


def read_type(reading: Reading, node: ast.expr) -> Type:
    """The type that a node writes."""
    reading.enter(node)
    found = _type(reading, node)
    reading.depth -= 1
    return found


def _type(reading: Reading, node: ast.expr) -> Type:
    match node:
        case ast.Name(id=name) if name in _NAMED:
            return _NAMED[name]
        case ast.Attribute(attr=name) if name in _PLAIN:  # datetime.date
            return _PLAIN[name]
        case ast.Constant(value=None):
            return NULL
        case ast.Constant(value=str() as text):
            return _quoted(reading, node, text)
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return _generic(reading, node, name, inner)
        case ast.BinOp(op=ast.BitOr()):
            return _union(reading, node)
        case ast.Dict(keys=keys, values=values):
            return _record(reading, node, keys, values)
        case ast.List(elts=[item]):
            return ListType(read_type(reading, item))
        case ast.Name(id=name):
            raise reading.error(
                node, "plan.bad-type", f"{name!r} is not a type", expected=_EXPECTED, nearest=nearest(name, _NAMED)
            )
        case _:
            raise _bad(reading, node)


def _bad(reading: Reading, node: ast.AST, message: str = "this is not a type", fix: str | None = None) -> Exception:
    return reading.error(node, "plan.bad-type", message, expected=_EXPECTED, fix=fix)


def _quoted(reading: Reading, node: ast.expr, text: str) -> Type:
    if text in _NAMED:
        return _NAMED[text]
    if len(text) > MAX_QUOTED:
        raise _bad(reading, node)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inner = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _bad(reading, node, f"{text!r} is not a type") from None
    if isinstance(inner, ast.Constant | ast.Name):  # a quoted quote would never end; a name was looked up above
        raise reading.error(
            node, "plan.bad-type", f"{text!r} is not a type", expected=_EXPECTED, nearest=nearest(text, _NAMED)
        )
    for part in ast.walk(inner):
        ast.copy_location(part, node)
    return read_type(reading, inner)


def _generic(reading: Reading, node: ast.expr, name: str, inner: ast.expr) -> Type:
    items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    match name, items:
        case (("list" | "List"), [item]):
            return ListType(read_type(reading, item))
        case (("dict" | "Dict"), [ast.Name(id="str") | ast.Constant(value="str"), value]):
            return DictType(read_type(reading, value))
        case (("dict" | "Dict"), [_, _]):
            raise _bad(reading, node, "the keys of a dict are text", "Write dict[str, …].")
        case "Optional", [item]:
            return optional(read_type(reading, item))
        case (("tuple" | "Tuple"), [item, ast.Constant(value=end)]) if end is ...:
            return ListType(read_type(reading, item))
        case (("tuple" | "Tuple"), _):
            return TupleType(tuple(read_type(reading, item) for item in items))
        case "Literal", [_, *_]:
            return LiteralType(tuple(_text(reading, item) for item in items))
        case "str", [item]:
            return StrType(_text(reading, item))
        case _:
            raise _bad(reading, node)


def _union(reading: Reading, node: ast.BinOp) -> Type:
    left, right = read_type(reading, node.left), read_type(reading, node.right)
    if right == NULL:
        return optional(left)
    if left == NULL:
        return optional(right)
    raise _bad(reading, node, "a value has one type or none", "Write `T | None`.")


def _record(reading: Reading, node: ast.expr, keys: list[ast.expr | None], values: list[ast.expr]) -> Type:
    names = [_text(reading, key or node) for key in keys]
    if len(set(names)) < len(names):
        raise _bad(reading, node, "a record has two fields of the same name")
    return RecordType(tuple(Field(name, read_type(reading, v)) for name, v in zip(names, values, strict=True)))


def _text(reading: Reading, node: ast.expr) -> str:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        raise _bad(reading, node, "only a text in quotes can stand here")
    return reading.text(node, node.value)
