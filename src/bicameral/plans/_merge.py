"""The type of a value that comes from two places: branches of a `when`, rounds of an `each`, items of a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bicameral.types import (
    ANY,
    FLOAT,
    STR,
    AnyType,
    DictType,
    Field,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    NullType,
    OptionalType,
    RecordType,
    StrType,
    TupleType,
    Type,
    assignable,
    optional,
)

_MOST_LITERALS = 16
_MOST_PARTS = 500
_MOST_LEVELS = 24


@dataclass(frozen=True, slots=True)
class NothingType(AnyType):
    """The type of the items of `[]`: it gives way to the type of whatever is added first."""


NOTHING = NothingType()


def merge(left: Type, right: Type) -> Type | None:
    """The smallest type that both fit, or None if they have nothing in common."""
    if left == right:
        return left
    match left, right:
        case (NothingType(), other) | (other, NothingType()):
            return other
        case (AnyType(), _) | (_, AnyType()):
            return ANY
        case (NullType(), other) | (other, NullType()):
            return optional(other)
        case (OptionalType(item=inner), other) | (other, OptionalType(item=inner)):
            found = merge(inner, other.item if isinstance(other, OptionalType) else other)
            return None if found is None else optional(found)
        case (LiteralType(values=some), LiteralType(values=more)):
            values = tuple(dict.fromkeys(some + more))
            return LiteralType(values) if len(values) <= _MOST_LITERALS else STR
        case (StrType() | LiteralType(), StrType() | LiteralType()):
            return STR
        case (IntType() | FloatType(), IntType() | FloatType()):
            return FLOAT
        case _:
            return _merge_containers(left, right)


def _merge_containers(left: Type, right: Type) -> Type | None:
    match left, right:
        case (TupleType(items=some), TupleType(items=more)) if len(some) == len(more):
            return TupleType(tuple(merge(a, b) or ANY for a, b in zip(some, more, strict=True)))
        case (ListType() | TupleType(), ListType() | TupleType()):
            return ListType(merged((_inside(left), _inside(right))) or ANY)
        case (RecordType() as some, RecordType() as more) if set(some.names) == set(more.names):
            return _merge_fields(some, more)
        case (DictType() | RecordType(), DictType() | RecordType()):
            # Records with different fields: what is under a key is known only as one of all.
            return DictType(merged((_inside(left), _inside(right))) or ANY)
        case _:
            return None


def _merge_fields(some: RecordType, more: RecordType) -> Type:
    fields = tuple(
        Field(field.name, merge(field.type, more.get(field.name) or ANY) or ANY, field.doc) for field in some.fields
    )
    return RecordType(fields, some.name if some.name == more.name else "")


def _inside(type_: Type) -> Type:
    match type_:
        case ListType(item=item):
            return item
        case TupleType(items=items):
            return merged(items) or ANY
        case DictType(value=value):
            return value
        case RecordType(fields=fields):
            return merged(field.type for field in fields) or ANY
        case _:
            return ANY


def merged(types: Iterable[Type]) -> Type | None:
    """The smallest type that all fit; NOTHING of none, and None if they have nothing in common."""
    found: Type | None = NOTHING
    for type_ in types:
        found = merge(found, type_)
        if found is None:
            return None
    return found


def settled(type_: Type) -> Type:
    """The type as others see it: what is still unknown about an empty list is Any."""
    match type_:
        case NothingType():
            return ANY
        case ListType(item=item):
            return ListType(settled(item))
        case DictType(value=value):
            return DictType(settled(value))
        case TupleType(items=items):
            return TupleType(tuple(settled(item) for item in items))
        case OptionalType(item=item):
            return optional(settled(item))
        case _:
            return type_


def bounded(type_: Type) -> Type:
    """The type, or Any where it has grown beyond reason: `x = (x, x)` doubles a type at each step."""
    level: list[Type] = [type_]
    parts = 0
    for _ in range(_MOST_LEVELS):
        level = [inner for outer in level for inner in _parts_of(outer)]
        parts += len(level)
        if not level:
            return type_
        if parts > _MOST_PARTS:
            break
    return ANY


def _parts_of(type_: Type) -> tuple[Type, ...]:
    match type_:
        case ListType(item=item) | OptionalType(item=item):
            return (item,)
        case DictType(value=value):
            return (value,)
        case TupleType(items=items):
            return items
        case RecordType(fields=fields):
            return tuple(field.type for field in fields)
        case _:
            return ()


def fits(given: Type, wanted: Type) -> bool:
    """Whether a value may stand where another type is wanted; what only the run can tell is let through."""
    match given, wanted:
        case (DictType(value=AnyType()), RecordType()):
            return True
        case (ListType(item=some), ListType(item=more)) | (DictType(value=some), DictType(value=more)):
            return fits(some, more)
        case (OptionalType(item=some), OptionalType(item=more)):
            return fits(some, more)
        case _:
            return assignable(given, wanted)
