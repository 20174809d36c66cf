"""What parameters of library functions take, for the check (types) and for the run (Python classes) alike."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from bicameral.types import (
    ANY,
    STR,
    AnyType,
    BoolType,
    DateTimeType,
    DateType,
    DictType,
    DurationType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
)

from ._merge import merged


@dataclass(frozen=True, slots=True)
class Kind:
    """A set of values that a parameter takes; no types means every value."""

    shown: str
    types: tuple[type[Type], ...]
    classes: tuple[type[object], ...]
    item: Kind | None = None
    """What the items of a list must be."""
    orderable: bool = False
    """Whether the items must be comparable with `<`."""

    def fits(self, type_: Type) -> bool:
        """Whether every value of this type is taken."""
        if not self.types or isinstance(type_, AnyType):
            return True
        if not isinstance(type_, self.types):
            return False
        inner = items_of(type_)
        if self.orderable and not orderable(merged(inner)):
            return False
        return self.item is None or all(self.item.fits(item) for item in inner)


def orderable(type_: Type | None) -> bool:
    """Whether values of a type can be compared with `<` among themselves."""
    match type_:
        case AnyType() | StrType() | LiteralType() | IntType() | FloatType() | BoolType():
            return True
        case DateType() | TimeType() | DateTimeType() | DurationType():
            return True
        case ListType(item=item):
            return orderable(item)
        case TupleType(items=items):
            return all(orderable(item) for item in items)
        case _:
            return False


def items_of(type_: Type) -> tuple[Type, ...]:
    """The types of what one gets by going over a value."""
    match type_:
        case ListType(item=item):
            return (item,)
        case TupleType(items=items):
            return items
        case DictType() | RecordType() | StrType() | LiteralType():
            return (STR,)
        case _:
            return (ANY,)


def item_of(type_: Type) -> Type:
    """The one type of what one gets by going over a value."""
    found = merged(items_of(type_))
    return ANY if found is None else found


TEXT = Kind("str", (StrType, LiteralType), (str,))
INTEGER = Kind("int", (IntType, BoolType), (int,))
NUMBER = Kind("number", (IntType, FloatType, BoolType), (int, float))
FLAG = Kind("bool", (BoolType,), (bool,))
DURATION_KIND = Kind("timedelta", (DurationType,), (dt.timedelta,))
DATE_KIND = Kind("date", (DateType,), (dt.date,))
TIME_KIND = Kind("time", (TimeType,), (dt.time,))
DATETIME_KIND = Kind("datetime", (DateTimeType,), (dt.datetime,))
DAY = Kind("date or datetime", (DateType, DateTimeType), (dt.date,))
MOMENT = Kind("date, time or datetime", (DateType, TimeType, DateTimeType), (dt.date, dt.time))

_LIST = (ListType, TupleType)
_DICT = (DictType, RecordType)
LIST = Kind("list", _LIST, (list, tuple))
DICT = Kind("dict", _DICT, (dict,))
MANY = Kind("list", (*_LIST, *_DICT), (list, tuple, dict))
"""Anything to go over; going over a dict gives its keys."""
SIZED = Kind("list, dict or str", (*_LIST, *_DICT, StrType, LiteralType), (list, tuple, dict, str))
TEXTS = Kind("list[str]", _LIST, (list, tuple), item=TEXT)
NUMBERS = Kind("list of numbers", _LIST, (list, tuple), item=NUMBER)
DURATIONS = Kind("list[timedelta]", _LIST, (list, tuple), item=DURATION_KIND)
LISTS = Kind("list of lists", _LIST, (list, tuple), item=LIST)
PAIRS = Kind("list of pairs", _LIST, (list, tuple), item=LIST)
ORDERED = Kind("list of comparable values", (*_LIST, *_DICT), (list, tuple, dict), orderable=True)
ANYTHING = Kind("any value", (), (object,))
