"""How many tokens a filled form may take.

A model that has lost its way writes digits or letters until its tokens are spent, and on a small machine that takes
minutes. A form of bounded blanks has a longest reply, and a token is at least a byte of it.
"""

from __future__ import annotations

import json

from bicameral.types import (
    FORMATS,
    BoolType,
    DateTimeType,
    DateType,
    DurationType,
    FloatType,
    IntType,
    LiteralType,
    NullType,
    OptionalType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
)

MAX_OUTPUT = 1_024
_NUMBER = 48
_MOMENT = 32
_WORD = 8
_AROUND = 8
"""Quotes, colon, comma and what a model that does not write on one line puts between them."""
_NOTHING_FOUND = 96


def room(wanted: Type) -> int:
    """The most tokens that a reply may have; a form that holds free text or lists has all there are."""
    return min(MAX_OUTPUT, _NOTHING_FOUND + _bytes(wanted))


def _bytes(type_: Type) -> int:
    match type_:
        case BoolType() | NullType():
            return _WORD
        case IntType() | FloatType() | DurationType():
            return _NUMBER
        case DateTimeType() | DateType() | TimeType():
            return _MOMENT
        case LiteralType(values=values):
            return max((len(json.dumps(value)) for value in values), default=_WORD)
        case StrType(format=str() as name) if name in FORMATS:
            return FORMATS[name].longest + _AROUND
        case OptionalType(item=item):
            return max(_WORD, _bytes(item))
        case TupleType(items=items):
            return _AROUND + sum(_bytes(item) + _AROUND for item in items)
        case RecordType(fields=fields):
            return _AROUND + sum(len(json.dumps(field.name)) + _AROUND + _bytes(field.type) for field in fields)
        case _:
            return MAX_OUTPUT
