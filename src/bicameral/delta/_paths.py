"""What variables reach, as grammar: a variable, its fields, the items of its lists, each with its type."""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterator
from dataclasses import dataclass

from bicameral.types import (
    ANY,
    AnyType,
    DictType,
    ListType,
    LiteralType,
    OptionalType,
    RecordType,
    StrType,
    Type,
    assignable,
)


@dataclass(frozen=True, slots=True)
class Path:
    """A way to reach a value from a variable: the grammar that writes it, and its type."""

    rule: str
    type: Type


def quote(text: str) -> str:
    """A text as a grammar literal."""
    return json.dumps(text, ensure_ascii=False)


def item_name(type_: Type) -> str:
    """The name a comprehension gives to one item of a list; the examples in the prompt use the same names."""
    match type_:
        case RecordType(name=str() as name) if name:
            return {"Mail": "m", "File": "f", "Event": "e"}.get(name, name.lower())
        case DictType() | RecordType():
            return "row"
        case StrType() | LiteralType():
            return "line"
        case _:
            return "x"


def fits(given: Type, wanted: Type) -> bool:
    """Like `assignable`, but what may be absent does not fit where something must be."""
    if isinstance(given, OptionalType):
        return isinstance(wanted, OptionalType | AnyType)
    return assignable(given, wanted)


def reach(rule: str, type_: Type, depth: int = 0) -> Iterator[Path]:
    """The value itself and what can be reached inside it, a few levels deep."""
    yield Path(rule, type_)
    if depth >= 3:
        return
    match type_:
        case RecordType(fields=fields, name=name):
            for field in fields:
                yield from reach(f"{rule} {_access(field.name, named=bool(name))}", field.type, depth + 1)
        case ListType(item=RecordType() | DictType() as item):
            yield from reach(f'{rule} "[" INDEX "]"', item, depth + 1)
        case ListType():
            yield Path(f'{rule} "[" INDEX "]"', type_.item)
        case DictType(value=value):
            yield Path(f'{rule} "[" KEY "]"', value)
        case AnyType() if depth < 2:
            yield Path(f'{rule} "[" KEY "]"', ANY)
            yield Path(f'{rule} "[" INDEX "]"', ANY)
        case _:
            return


def _access(field: str, *, named: bool) -> str:
    """How a field is written: `.total` of a record that has a name, `["total"]` too of a row."""
    by_key = quote(f'["{field}"]')
    if not field.isidentifier() or keyword.iskeyword(field):
        return by_key
    return quote(f".{field}") if named else f"({by_key} | {quote('.' + field)})"
