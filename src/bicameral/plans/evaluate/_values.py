"""Values: equality and order, formatting as text, and dates read from text.

Comparison is Python's, but bounded, and with an answer for every pair of the same type. Format specs follow a small
safe grammar. A date in text that could mean two days is refused, not guessed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any, cast

from bicameral import types as t
from bicameral.plans._expressions import has_lone_surrogate
from bicameral.plans.evaluate._bounds import MAX_TEXT, EvaluationError, bad_value, check_length, measure, preview
from bicameral.text import ENGLISH_MONTH_NUMBERS


def align_time_zones(values: Sequence[Any]) -> Sequence[Any]:
    """The values with datetimes that can be compared: one without a time zone gets the zone of the others."""
    if not any(isinstance(value, dt.datetime | dt.time) for value in values):
        return values
    zones = [value.tzinfo for value in values if isinstance(value, dt.datetime | dt.time) and value.tzinfo]
    if not zones or len(zones) == len(values):
        return values
    return [v.replace(tzinfo=zones[0]) if _is_naive(v) else v for v in values]


def _is_naive(value: object) -> bool:
    return isinstance(value, dt.datetime | dt.time) and value.tzinfo is None


def is_equal(left: Any, right: Any) -> bool:
    """`left == right`, for values of any two types."""
    if isinstance(left, list | tuple | dict) and isinstance(right, list | tuple | dict):
        measure(cast("object", left))
        measure(cast("object", right))
        return _tuple_as_list(cast("Any", left)) == _tuple_as_list(cast("Any", right))
    if isinstance(left, dt.datetime | dt.time) and isinstance(right, dt.datetime | dt.time):
        left, right = align_time_zones((left, right))
    return bool(left == right)


def _tuple_as_list(value: Any) -> Any:
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value


def contains(container: Any, value: Any) -> bool:
    """`value in container`, for texts, lists and the keys of dicts."""
    match container:
        case str():
            if not isinstance(value, str):
                raise bad_value(f"a text can only contain text, not {preview(value)}", [value], fix="Use str(x).")
            return value in container
        case dict():
            return isinstance(value, str) and value in cast("dict[str, Any]", container)
        case list() | tuple():
            if isinstance(value, list | tuple | dict | dt.datetime | dt.time):
                measure(cast("object", container))
                return any(is_equal(item, value) for item in cast("list[Any]", container))
            return value in cast("list[Any]", container)
        case _:
            raise bad_value(
                f"nothing can be in {preview(container)}", [container], fix="Use `in` with a list, dict or text."
            )


def comparable_values(values: Sequence[Any]) -> Sequence[Any]:
    """The values as they can be compared with `<`. Lists are measured first, since comparing looks into them."""
    for value in values:
        if isinstance(value, list | tuple):
            measure(cast("object", values))
            break
    return align_time_zones(values)


def not_ordered_error(values: Sequence[Any]) -> EvaluationError:
    """The error for values that have no order, naming two of them."""
    first = values[0] if values else None
    other = next((value for value in values if type(value) is not type(first)), first)
    return bad_value(f"{preview(first)} and {preview(other)} cannot be compared", values)


def sorted_positions(values: Sequence[Any], *, reverse: bool = False) -> list[int]:
    """The positions of the values in ascending order; equal ones keep theirs."""
    keys = comparable_values(values)
    try:
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
    except TypeError:
        raise not_ordered_error(values) from None


def extreme_position(values: Sequence[Any], *, largest: bool) -> int:
    """The position of the smallest or largest value."""
    if not values:
        which = "largest" if largest else "smallest"
        raise EvaluationError("run.empty", f"an empty list has no {which} value", fix="Test `if xs:` first.")
    keys = comparable_values(values)
    try:
        return (max if largest else min)(range(len(keys)), key=keys.__getitem__)
    except TypeError:
        raise not_ordered_error(values) from None


def distinct_values(values: Sequence[Any]) -> list[Any]:
    """Each value once, in the order they first come."""
    try:
        return list(dict.fromkeys(values))
    except TypeError:
        measure(values)
        return list({_hashable_key(value): value for value in reversed(values)}.values())[::-1]


def _hashable_key(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return ("list", *(_hashable_key(item) for item in cast("list[Any]", value)))
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return ("dict", frozenset((key, _hashable_key(item)) for key, item in entries.items()))
    return value


MAX_WIDTH = 1000
MAX_PATTERN = 200

_FORMAT_SPEC = re.compile(
    r"(?:(?P<fill>[^{}])?(?P<align>[<>=^]))?(?P<sign>[+\- ])?(?P<zero>0)?(?P<width>[0-9]{1,4})?"
    r"(?P<group>[,_])?(?:\.(?P<precision>[0-9]{1,4}))?(?P<type>[sdfFeEgG%xXbo])?",
    re.DOTALL,
)
_DATE_PATTERN = re.compile(r"(?:[^%\0]|%-?[aAbBcdeDfFGHIjmMpSTuUVwWxXyYzZ]|%%)*", re.DOTALL)
_FLOAT_FORMATS = frozenset("fFeEgG%")


def format_value(value: object) -> str:
    """A value as text, as Python's `str` gives it but with dates readable inside lists."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | dict):
        measure(cast("object", value))
        parts: list[str] = []
        _append_value(cast("object", value), parts, 0)
        return "".join(parts)
    return str(value)


def _append_value(value: object, parts: list[str], length: int) -> int:
    if isinstance(value, list | tuple):
        return _append_items("[", [(None, item) for item in cast("list[object]", value)], "]", parts, length)
    if isinstance(value, dict):
        return _append_items("{", list(cast("dict[object, object]", value).items()), "}", parts, length)
    shown = repr(value) if isinstance(value, str) else str(value)
    check_length("the text", length + len(shown), MAX_TEXT)
    parts.append(shown)
    return length + len(shown)


def _append_items(opening: str, items: list[tuple[Any, object]], closing: str, parts: list[str], length: int) -> int:
    parts.append(opening)
    for number, (key, item) in enumerate(items):
        if number:
            parts.append(", ")
        if opening == "{":
            length = _append_value(key, parts, length)
            parts.append(": ")
        length = _append_value(item, parts, length) + 4
    parts.append(closing)
    return length


def format_with_spec(value: object, spec: str) -> str:
    """A value in an f-string: `f"{value:spec}"`."""
    if not spec:
        return format_value(value)
    if isinstance(value, dt.date | dt.time):
        return format_date(value, spec)
    problem = _spec_class_problem(spec, _format_class(value))
    if problem is not None:
        raise bad_value(f"{preview(value)} cannot be written with the format {spec[:40]!r}: {problem}", [value])
    plain = value if isinstance(value, str | int | float) else format_value(value)
    shown = format(plain, spec)
    check_length("the text", len(shown), MAX_TEXT)
    return shown


def format_date(value: dt.date | dt.time, pattern: str) -> str:
    """A date or time by a pattern such as `%d %B %Y`."""
    if problem := pattern_problem(pattern):
        raise EvaluationError("run.not-a-date", problem)
    return value.strftime(pattern)


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a strftime pattern, or None."""
    if len(pattern) > MAX_PATTERN:
        return f"the date format is longer than {MAX_PATTERN} characters"
    if not _DATE_PATTERN.fullmatch(pattern) or has_lone_surrogate(pattern):
        return f"{pattern!r} is not a date format; write one like '%Y-%m-%d' or '%d %B %Y'"
    return None


def spec_problem(spec: str, type_: t.Type) -> str | None:
    """What is wrong with a format spec for values of a type, or None; an unknown type takes any sound spec."""
    if not spec:
        return None
    match type_:
        case t.DateType() | t.TimeType() | t.DateTimeType():
            return pattern_problem(spec)
        case t.AnyType():
            return (
                None
                if _spec_class_problem(spec, "any") is None
                else pattern_problem(spec) and _spec_class_problem(spec, "any")
            )
        case t.IntType() | t.BoolType():
            return _spec_class_problem(spec, "int")
        case t.FloatType():
            return _spec_class_problem(spec, "float")
        case t.StrType() | t.LiteralType():
            return _spec_class_problem(spec, "text")
        case _:
            return _spec_class_problem(spec, "other")


def _format_class(value: object) -> str:
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    return "text" if isinstance(value, str) else "other"


def _spec_class_problem(spec: str, of: str) -> str | None:
    found = _FORMAT_SPEC.fullmatch(spec)
    if not found:
        return "it is not a format such as '.2f', '>10' or ','"
    for part in ("width", "precision"):
        if int(found[part] or 0) > MAX_WIDTH:
            return f"its {part} is larger than {MAX_WIDTH}"
    type_ = found["type"] or ""
    if found["group"] and type_ in {"s", "x", "X", "b", "o"}:
        return "',' and '_' are for decimal numbers"
    if of in {"text", "other"}:
        if type_ not in {"", "s"} or found["sign"] or found["group"] or found["align"] == "=":
            return "that format is for numbers; convert with int(x) or float(x) first"
        return None
    if of == "int" and (type_ == "s" or (found["precision"] and type_ not in _FLOAT_FORMATS)):
        return "a whole number takes a format such as 'd', ',' or '.2f'"
    if of == "float" and type_ not in _FLOAT_FORMATS | {""}:
        return "a float takes a format such as '.2f'; for a whole number use round(x)"
    return None


_WEEKDAY = re.compile(r"^(?:mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun|wednes|satur)(?:day)?\.?,?\s+")
_YEAR_FIRST = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})(?:[t ].*)?", re.ASCII | re.DOTALL)
_DAY_DOTS = re.compile(r"([0-9]{1,2})\.\s?([0-9]{1,2})\.\s?([0-9]{4})")
_SLASHES = re.compile(r"([0-9]{1,2})[/-]([0-9]{1,2})[/-]([0-9]{4})")
_DAY_NAME = re.compile(
    r"([0-9]{1,2})(?:st|nd|rd|th)?\.?[\s-]+(?:of\s+)?([a-z]+)\.?,?[\s-]+([0-9]{4})(?:\s.*)?", re.DOTALL
)
_NAME_DAY = re.compile(r"([a-z]+)\.?\s+([0-9]{1,2})(?:st|nd|rd|th)?,?\s+([0-9]{4})(?:\s.*)?", re.DOTALL)


def parse_date(text: str) -> dt.date:
    """The date in `2026-03-31`, `31.03.2026`, `31 March 2026`, `March 31, 2026` and the like."""
    tidy = " ".join(text[:100].lower().split())
    found = _date_numbers(_WEEKDAY.sub("", tidy), text)
    try:
        if found is not None:
            return dt.date(*found)
    except ValueError:
        pass
    raise EvaluationError(
        "run.not-a-date", f"{preview(text)} is not a date", fix="Write it as '2026-03-31' or '31 March 2026'."
    )


def _date_numbers(tidy: str, text: str) -> tuple[int, int, int] | None:
    if match := _YEAR_FIRST.fullmatch(tidy):
        return int(match[1]), int(match[2]), int(match[3])
    if match := _DAY_DOTS.fullmatch(tidy):
        return int(match[3]), int(match[2]), int(match[1])
    if match := _SLASHES.fullmatch(tidy):
        return _resolve_slashes(int(match[1]), int(match[2]), int(match[3]), text)
    if (match := _DAY_NAME.fullmatch(tidy)) and match[2] in ENGLISH_MONTH_NUMBERS:
        return int(match[3]), ENGLISH_MONTH_NUMBERS[match[2]], int(match[1])
    if (match := _NAME_DAY.fullmatch(tidy)) and match[1] in ENGLISH_MONTH_NUMBERS:
        return int(match[3]), ENGLISH_MONTH_NUMBERS[match[1]], int(match[2])
    return None


def _resolve_slashes(first: int, second: int, year: int, text: str) -> tuple[int, int, int]:
    if first <= 12 and second <= 12 and first != second:
        raise EvaluationError(
            "run.not-a-date",
            f"{preview(text)} could be two days",
            fix=f"Write {year}-{first:02}-{second:02} or {year}-{second:02}-{first:02}.",
        )
    return (year, first, second) if second > 12 else (year, second, first)
