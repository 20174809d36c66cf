"""Facts in text: does it mention this number, date, time or word, however it is written?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, cast

Fact = str | int | float | date | time | tuple[Any, ...]
"""Text, a number, a date, a time, a moment; a tuple means that any one of its facts will do."""

_NUMBER = re.compile(r"(?<![\w.-])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"(?<![\w.,-])(?:\d{1,3}(?:\.\d{3})+|\d+),\d{1,2}(?![\w,])")
"""1.284,50 and 12,5 as German, French and Spanish write them; 1,284 is a thousand and more."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?|\b\d\d?:\d\d(?::\d\d)?\b")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_OTHERS = tuple(
    names.split()
    for names in (
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
)


def as_text(value: Any) -> str:
    """Any plain value as text in which facts can be looked for; keys of dicts count too."""
    match value:
        case None:
            return ""
        case datetime():
            return value.isoformat(sep=" ", timespec="minutes")
        case date():
            return value.isoformat()
        case time():
            return value.isoformat(timespec="minutes")
        case timedelta():
            return f"{value.total_seconds() / 3600:g} hours"
        case float():
            return f"{value:.4f}".rstrip("0").rstrip(".")
        case Mapping():
            pairs = cast("Mapping[str, Any]", value).items()
            return "\n".join(f"{key}: {as_text(item)}" for key, item in pairs)
        case list() | tuple():
            return "\n".join(as_text(item) for item in cast("list[Any]", value))
        case _:
            return str(value)


def numbers(text: str) -> list[float]:
    """The numbers in a text; the parts of dates, times and names such as `db-2` are no numbers."""
    plain = _DECIMAL_COMMA.sub(_with_point, _MOMENT.sub(" ", text))
    return [float(found.group().replace(",", "")) for found in _NUMBER.finditer(plain)]


def _with_point(found: re.Match[str]) -> str:
    return found.group().replace(".", "").replace(",", ".")


def mentions(text: str, fact: Fact) -> bool:
    """Whether the fact is in the text, however it is written there."""
    match fact:
        case tuple():
            return any(mentions(text, one) for one in fact)
        case bool():
            return str(fact).lower() in text.lower()
        case int() | float():
            return any(abs(number - fact) < 0.0051 for number in numbers(text))
        case datetime():
            return mentions(text, fact.date()) and mentions(text, fact.time())
        case date():
            return _mentions_date(text.lower(), fact)
        case time():
            return _mentions_time(text.lower(), fact)
        case str():
            # A whole token: Ann is not in Anna, and 12 not in R-123.
            return re.search(rf"(?<!\w){re.escape(_folded(fact))}(?!\w)", _folded(text)) is not None


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


def _mentions_date(text: str, day: date) -> bool:
    months = "|".join([_MONTHS[day.month - 1], _MONTHS[day.month - 1][:3], *(each[day.month - 1] for each in _OTHERS)])
    name = rf"(?:de )?(?:{months})\b\.?"
    ordinal = rf"0?{day.day}(?:st|nd|rd|th)?"
    ways = (
        rf"\b{day.isoformat()}",
        rf"(?<!\d){ordinal}\.?(?: of)? {name}",
        rf"\b{name} {ordinal}(?!\d)",
        rf"(?<!\d)0?{day.day}[./-]0?{day.month}[./-](?:{day.year}|{day.year % 100})?",
        rf"(?<!\d)0?{day.month}/0?{day.day}/{day.year}",
        rf"\b{day.year}/0?{day.month}/0?{day.day}(?!\d)",
    )
    return any(re.search(way, text) for way in ways)


def _mentions_time(text: str, moment: time) -> bool:
    half, hour = ("a", moment.hour) if moment.hour < 12 else ("p", moment.hour - 12)
    minutes = rf"[:.]{moment.minute:02}"
    ways = (
        rf"(?<!\d)0?{moment.hour}{minutes}(?!\d)(?! ?[ap]\.?m)",
        rf"(?<!\d)0?{hour or 12}(?:{minutes}){'?' if moment.minute == 0 else ''} ?{half}\.?m",
        *([rf"(?<!\d)0?{moment.hour} ?(?:h\b|o'clock)"] if moment.minute == 0 else []),
    )
    return any(re.search(way, text) for way in ways)
