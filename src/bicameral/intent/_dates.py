"""Dates that people say: `tomorrow`, `next Friday`, `last week`, `March 15`, resolved against a given day.

Weeks begin on Monday. A weekday means the next such day (today does not count); `last Friday` the one before.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator

from ._intent import NamedDate

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = [
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
]
_WEEKDAY = r"(?:(?P<which>next|this|last|coming)\s+)?(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|" + (
    r"thu(?:rs?(?:day)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
)
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|"
    + (r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)")
)
Range = tuple[dt.date, dt.date]


def named_dates(text: str, today: dt.date) -> tuple[NamedDate, ...]:
    """The phrases of a text that mean days, in the order they stand, none inside another."""
    found: list[tuple[int, int, NamedDate]] = []
    for pattern, resolve in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < other_end and other_start < end for other_start, other_end, _ in found):
                continue
            try:
                days = resolve(match, today)
            except (ValueError, OverflowError):
                continue
            found.append((start, end, NamedDate(phrase=match.group(0), start=days[0], end=days[1])))
    return tuple(named for _, _, named in sorted(found, key=lambda each: each[0]))


def _one(day: dt.date) -> Range:
    return day, day


def _relative(days: int) -> Callable[[re.Match[str], dt.date], Range]:
    return lambda _, today: _one(today + dt.timedelta(days=days))


def _weekday(match: re.Match[str], today: dt.date) -> Range:
    index = next(i for i, name in enumerate(_DAYS) if name.startswith(match["weekday"].lower()[:3]))
    if (match["which"] or "").lower() == "last":
        return _one(today - dt.timedelta(days=(today.weekday() - index - 1) % 7 + 1))
    return _one(today + dt.timedelta(days=(index - today.weekday() - 1) % 7 + 1))


def _week(match: re.Match[str], today: dt.date) -> Range:
    monday = today - dt.timedelta(days=today.weekday())
    monday += dt.timedelta(weeks={"next": 1, "last": -1}.get(match["which"].lower(), 0))
    return monday, monday + dt.timedelta(days=6)


def _month_range(match: re.Match[str], today: dt.date) -> Range:
    shift = {"next": 1, "last": -1}.get(match["which"].lower(), 0)
    index = today.year * 12 + today.month - 1 + shift
    first = dt.date(index // 12, index % 12 + 1, 1)
    after = dt.date((index + 1) // 12, (index + 1) % 12 + 1, 1)
    return first, after - dt.timedelta(days=1)


def _month_day(match: re.Match[str], today: dt.date) -> Range:
    month = next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(match["month"].lower()[:3]))
    year = int(match["year"]) if match["year"] else today.year
    return _one(dt.date(year, month, int(match["day"])))


def _offset(match: re.Match[str], today: dt.date) -> Range:
    days = int(match["count"]) * (7 if match["unit"].lower().startswith("week") else 1)
    return _one(today + dt.timedelta(days=days if match["ago"] is None else -days))


def _iso(match: re.Match[str], today: dt.date) -> Range:
    return _one(dt.date.fromisoformat(match.group(0)))


def _patterns() -> Iterator[tuple[re.Pattern[str], Callable[[re.Match[str], dt.date], Range]]]:
    texts: list[tuple[str, Callable[[re.Match[str], dt.date], Range]]] = [
        (r"\d{4}-\d{2}-\d{2}", _iso),
        (r"(?:the\s+)?day after tomorrow", _relative(2)),
        (r"today|tonight", _relative(0)),
        (r"tomorrow|tmrw|tomorow|tommorow|tommorrow", _relative(1)),
        (r"yesterday", _relative(-1)),
        (r"(?P<which>next|this|last)\s+week\b(?!end)", _week),
        (r"(?P<which>next|this|last)\s+month", _month_range),
        (_MONTH + r"\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?", _month_day),
        (r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?" + _MONTH + r"(?:,?\s+(?P<year>\d{4}))?", _month_day),
        (r"in\s+(?P<count>\d{1,3})\s+(?P<unit>days?|weeks?)(?P<ago>$^)?", _offset),
        (r"(?P<count>\d{1,3})\s+(?P<unit>days?|weeks?)\s+(?P<ago>ago)", _offset),
        (_WEEKDAY, _weekday),
    ]
    for text, resolve in texts:
        yield re.compile(rf"\b(?:{text})\b", re.IGNORECASE), resolve


_PATTERNS = tuple(_patterns())
