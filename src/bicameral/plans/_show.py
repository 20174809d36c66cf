"""Values as text: `str(x)` and the values in an f-string, with a small safe grammar of format specs."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, cast

from bicameral.types import (
    AnyType,
    BoolType,
    DateTimeType,
    DateType,
    FloatType,
    IntType,
    LiteralType,
    StrType,
    TimeType,
    Type,
)

from ._bounds import MAX_TEXT, check_length, weigh
from ._failure import EvaluationError, brief, wrong

MOST_WIDTH = 1000
MOST_PATTERN = 200

_SPEC = re.compile(
    r"(?:(?P<fill>[^{}])?(?P<align>[<>=^]))?(?P<sign>[+\- ])?(?P<zero>0)?(?P<width>[0-9]{1,4})?"
    r"(?P<group>[,_])?(?:\.(?P<precision>[0-9]{1,4}))?(?P<type>[sdfFeEgG%xXbo])?",
    re.DOTALL,
)
_DIRECTIVES = re.compile(r"(?:[^%\0]|%-?[aAbBcdeDfFGHIjmMpSTuUVwWxXyYzZ]|%%)*", re.DOTALL)
_OF_FLOATS = frozenset("fFeEgG%")
_OF_INTS = frozenset("dxXbo")


def show(value: object) -> str:
    """A value as text, as Python's `str` gives it but with dates readable inside lists."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | dict):
        weigh(cast("object", value))
        parts: list[str] = []
        _show_into(cast("object", value), parts, 0)
        return "".join(parts)
    return str(value)


def _show_into(value: object, parts: list[str], length: int) -> int:
    if isinstance(value, list | tuple):
        return _show_items("[", [(None, item) for item in cast("list[object]", value)], "]", parts, length)
    if isinstance(value, dict):
        return _show_items("{", list(cast("dict[object, object]", value).items()), "}", parts, length)
    shown = repr(value) if isinstance(value, str) else str(value)
    check_length("the text", length + len(shown), MAX_TEXT)
    parts.append(shown)
    return length + len(shown)


def _show_items(opening: str, items: list[tuple[Any, object]], closing: str, parts: list[str], length: int) -> int:
    parts.append(opening)
    for number, (key, item) in enumerate(items):
        if number:
            parts.append(", ")
        if opening == "{":
            length = _show_into(key, parts, length)
            parts.append(": ")
        length = _show_into(item, parts, length) + 4
    parts.append(closing)
    return length


def show_as(value: object, spec: str) -> str:
    """A value in an f-string: `f"{value:spec}"`."""
    if not spec:
        return show(value)
    if isinstance(value, dt.date | dt.time):
        return strftime(value, spec)
    problem = _problem(spec, _class_of(value))
    if problem is not None:
        raise wrong(f"{brief(value)} cannot be written with the format {spec[:40]!r}: {problem}", [value])
    plain = value if isinstance(value, str | int | float) else show(value)
    shown = format(plain, spec)
    check_length("the text", len(shown), MAX_TEXT)
    return shown


def strftime(value: dt.date | dt.time, pattern: str) -> str:
    """A date or time by a pattern such as `%d %B %Y`."""
    if problem := pattern_problem(pattern):
        raise EvaluationError("run.not-a-date", problem)
    return value.strftime(pattern)


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a strftime pattern, or None."""
    if len(pattern) > MOST_PATTERN:
        return f"the date format is longer than {MOST_PATTERN} characters"
    if not _DIRECTIVES.fullmatch(pattern) or not _encodes(pattern):
        return f"{pattern!r} is not a date format; write one like '%Y-%m-%d' or '%d %B %Y'"
    return None


def _encodes(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def spec_problem(spec: str, type_: Type) -> str | None:
    """What is wrong with a format spec for values of a type, or None; an unknown type takes any sound spec."""
    if not spec:
        return None
    match type_:
        case DateType() | TimeType() | DateTimeType():
            return pattern_problem(spec)
        case AnyType():
            return None if _problem(spec, "any") is None else pattern_problem(spec) and _problem(spec, "any")
        case IntType() | BoolType():
            return _problem(spec, "int")
        case FloatType():
            return _problem(spec, "float")
        case StrType() | LiteralType():
            return _problem(spec, "text")
        case _:
            return _problem(spec, "other")


def _class_of(value: object) -> str:
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    return "text" if isinstance(value, str) else "other"


def _problem(spec: str, of: str) -> str | None:
    found = _SPEC.fullmatch(spec)
    if not found:
        return "it is not a format such as '.2f', '>10' or ','"
    for part in ("width", "precision"):
        if int(found[part] or 0) > MOST_WIDTH:
            return f"its {part} is larger than {MOST_WIDTH}"
    type_ = found["type"] or ""
    if found["group"] and type_ in {"s", "x", "X", "b", "o"}:
        return "',' and '_' are for decimal numbers"
    if of in {"text", "other"}:
        if type_ not in {"", "s"} or found["sign"] or found["group"] or found["align"] == "=":
            return "that format is for numbers; convert with int(x) or float(x) first"
        return None
    if of == "int" and (type_ == "s" or (found["precision"] and type_ not in _OF_FLOATS)):
        return "a whole number takes a format such as 'd', ',' or '.2f'"
    if of == "float" and type_ not in _OF_FLOATS | {""}:
        return "a float takes a format such as '.2f'; for a whole number use round(x)"
    return None
