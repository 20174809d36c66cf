"""Words of a command line as values of a plan, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from bicameral.errors import Place, PlanError
from bicameral.tools import Argument, Tool
from bicameral.types import (
    AnyType,
    BoolType,
    DateTimeType,
    DateType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    OptionalType,
    StrType,
    TimeType,
    Type,
)

from ._expressions import Apply, Const, Expr, ListOf

_DATES: dict[type[Type], str] = {DateType: "date", TimeType: "time", DateTimeType: "datetime"}


def from_word(word: str, argument: Argument, tool: Tool, place: Place) -> Expr:
    """The value that a word stands for where this argument is wanted."""
    value = _value(word, argument.type)
    if value is None:
        raise PlanError(
            "plan.wrong-type",
            f"{word!r} cannot be the argument {argument.name!r} of {tool.name!r}",
            place=Place(step=place.step, argument=argument.name),
            expected=str(argument.type),
        )
    return value


def _value(word: str, type_: Type) -> Expr | None:
    match type_:
        case OptionalType(item=item):
            return Const(value=None) if word == "null" else _value(word, item)
        case StrType() | AnyType():
            return _const(word)
        case LiteralType(values=values):
            return _const(word) if word in values else None
        case BoolType():
            return Const(value=word == "true") if word in ("true", "false") else None
        case IntType() | FloatType():
            return _number(word, whole=isinstance(type_, IntType))
        case DateType() | TimeType() | DateTimeType():
            return Apply(function=_DATES[type(type_)], args=(Const(value=word),))
        case ListType(item=item):
            return _list(word, item)
        case _:
            return None


def _const(value: str | int | float) -> Expr | None:
    try:
        return Const(value=value)
    except ValueError:
        return None


def _number(word: str, *, whole: bool) -> Expr | None:
    try:
        return _const(int(word))
    except ValueError:
        pass
    try:
        return None if whole else _const(float(word))
    except ValueError:
        return None


def _list(word: str, item: Type) -> Expr | None:
    """A list is written as JSON; a word that is not JSON stands for a list of itself."""
    try:
        found: Any = json.loads(word) if word.startswith("[") else [word]
    except ValueError:
        return None
    values = [_value(one if isinstance(one, str) else json.dumps(one), item) for one in cast("Sequence[Any]", found)]
    present = tuple(value for value in values if value is not None)
    return ListOf(items=present) if len(present) == len(values) else None


def to_word(value: Expr) -> str | None:
    """The word for a value, or None if no word can stand for it."""
    match value:
        case Const(value=str() as text):
            return text
        case Const(value=bool() | None as other):
            return json.dumps(other)
        case Const(value=int() | float() as number):
            return repr(number)
        case Apply(function="date" | "time" | "datetime", args=(Const(value=str() as text),), named=()):
            return text
        case ListOf(items=items) if all(isinstance(item, Const) for item in items):
            return json.dumps([cast("Const", item).value for item in items], ensure_ascii=False)
        case _:
            return None
