"""Dates as people write them. What could mean two days is refused, not guessed."""

from __future__ import annotations

import datetime as dt
import re

from ._failure import EvaluationError, brief

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sep", "sept"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}

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
    found = _numbers(_WEEKDAY.sub("", tidy), text)
    try:
        if found is not None:
            return dt.date(*found)
    except ValueError:
        pass
    raise EvaluationError(
        "run.not-a-date", f"{brief(text)} is not a date", fix="Write it as '2026-03-31' or '31 March 2026'."
    )


def _numbers(tidy: str, text: str) -> tuple[int, int, int] | None:
    if match := _YEAR_FIRST.fullmatch(tidy):
        return int(match[1]), int(match[2]), int(match[3])
    if match := _DAY_DOTS.fullmatch(tidy):
        return int(match[3]), int(match[2]), int(match[1])
    if match := _SLASHES.fullmatch(tidy):
        return _slashes(int(match[1]), int(match[2]), int(match[3]), text)
    if (match := _DAY_NAME.fullmatch(tidy)) and match[2] in _MONTHS:
        return int(match[3]), _MONTHS[match[2]], int(match[1])
    if (match := _NAME_DAY.fullmatch(tidy)) and match[1] in _MONTHS:
        return int(match[3]), _MONTHS[match[1]], int(match[2])
    return None


def _slashes(first: int, second: int, year: int, text: str) -> tuple[int, int, int]:
    if first <= 12 and second <= 12 and first != second:
        raise EvaluationError(
            "run.not-a-date",
            f"{brief(text)} could be two days",
            fix=f"Write {year}-{first:02}-{second:02} or {year}-{second:02}-{first:02}.",
        )
    return (year, first, second) if second > 12 else (year, second, first)
