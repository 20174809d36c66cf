"""Dates in cells: ISO, dotted, slashed, and with the names of months in several languages."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Literal

from bicameral.columns._words import LONGEST_CELL
from bicameral.text import MONTH_NUMBERS

DateOrder = Literal["day first", "month first"]
DATE_ORDERS: tuple[DateOrder, DateOrder] = ("day first", "month first")

DayReadings = tuple[str | None, str | None]
"""A cell with the day first and with the month first, each in ISO form; None where it cannot be read so."""

_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?", re.A)
_DOTTED = re.compile(r"(\d{1,2})\. ?(\d{1,2})\. ?(\d{4}|\d{2})", re.A)
_SLASHED = re.compile(r"(\d{1,2})([/-])(\d{1,2})\2(\d{4}|\d{2})", re.A)
_YEAR_FIRST = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})", re.A)
_DAY_MONTH = re.compile(r"(\d{1,2})(?:\.|st|nd|rd|th|er|º)?(?: de)?[ -]?([^\W\d_]{3,12})\.?,?(?: de)?[ -](\d{4})")
_MONTH_DAY = re.compile(r"([^\W\d_]{3,12})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})")
_SHORTEST = 6


def parse_date(text: str, order: DateOrder | None = None) -> dt.date | None:
    """The day that a text names; None if it names none, or if `order` is needed to know which.

    Args:
        text: A whole cell, such as `2026-03-15`, `15.03.2026`, `15/3/2026`, `March 15, 2026` or `15 de marzo de 2026`.
        order: Which number of `3/4/2026` is the day. Without it such a text is read only if it can be read in one way.

    Example:
        >>> parse_date("15. März 2026"), parse_date("3/15/2026"), parse_date("3/4/2026")
        (datetime.date(2026, 3, 15), datetime.date(2026, 3, 15), None)
    """
    day_first, month_first = _parse_both_orders(text.strip())
    if order is not None:
        return day_first if order == "day first" else month_first
    return None if day_first and month_first and day_first != month_first else day_first or month_first


def _parse_both_orders(text: str) -> tuple[dt.date | None, dt.date | None]:
    """The day that a stripped text names with the day first, and with the month first; mostly both are the same."""
    if not _SHORTEST <= len(text) <= LONGEST_CELL:
        return None, None
    if match := _SLASHED.fullmatch(text):
        return _day(match[4], match[3], match[1]), _day(match[4], match[1], match[3])
    if match := _ISO.fullmatch(text):
        found = _day(match[1], match[2], match[3])
    elif match := _DOTTED.fullmatch(text):
        found = _day(match[3], match[2], match[1])
    elif match := _YEAR_FIRST.fullmatch(text):
        found = _day(match[1], match[3], match[4])
    elif match := _DAY_MONTH.fullmatch(text):
        found = _named_day(match[3], match[2], match[1])
    elif match := _MONTH_DAY.fullmatch(text):
        found = _named_day(match[3], match[1], match[2])
    else:
        return None, None
    return found, found


def _named_day(year: str, month: str, day: str) -> dt.date | None:
    number = MONTH_NUMBERS.get(month.casefold())
    return None if number is None else _day(year, str(number), day)


def _day(year: str, month: str, day: str) -> dt.date | None:
    number = int(year)
    if len(year) == 2:
        # As POSIX has it: 69 to 99 are years of the last century.
        number += 2000 if number < 69 else 1900
    try:
        return dt.date(number, int(month), int(day))
    except ValueError:
        return None


def is_iso_date(cell: object) -> bool:
    """Whether a cell is a date, or the ISO form of one; such texts are in order as they are."""
    return isinstance(cell, dt.date) or (isinstance(cell, str) and _ISO.fullmatch(cell) is not None)


def read_days(cell: object) -> DayReadings:
    """A cell in both orders of day and month. A time of day in ISO form is kept: it is part of the order."""
    if isinstance(cell, dt.date):
        found = cell.isoformat()
        return found, found
    if not isinstance(cell, str):
        return None, None
    text = cell.strip()
    day_first, month_first = _parse_both_orders(text)
    if day_first is not None and day_first is month_first:
        found = text if text[4:5] == "-" and _ISO.fullmatch(text) else day_first.isoformat()
        return found, found
    return day_first and day_first.isoformat(), month_first and month_first.isoformat()


def date_reader(order: DateOrder | None) -> Callable[[object], str | None]:
    """Reads a cell as a day in ISO form; without an order, one that can be read in two ways is not read."""
    if order is not None:
        number = DATE_ORDERS.index(order)
        return lambda cell: read_days(cell)[number]

    def read(cell: object) -> str | None:
        day_first, month_first = read_days(cell)
        return None if day_first and month_first and day_first != month_first else day_first or month_first

    return read
