"""Dates in digits: ISO, `15.03.2026`, `3/15/2026`, `15.3.`, and years."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from bicameral.days._calendar import month_range
from bicameral.days._choice import FIRST_YEAR, LAST_YEAR, MONTH_DAYS, choose, ends_number, resolve_yearless
from bicameral.days._cursor import Cursor
from bicameral.days._periods import Reading, describe_month
from bicameral.days._vocabulary import ALL_FUNCTION_WORDS, WEEKDAYS

_NUMERIC_MARKS = frozenset("./-")


def read_numeric(cursor: Cursor, at: int) -> Reading | None:
    """`2026-03-15`, `2026-03`, `15.03.2026`, `3/15/2026`, `15.3.`, and `15/3` after a preposition."""
    if cursor.is_glued(at) and not _may_stand_before(cursor, at - 1):
        return None
    if len(cursor.word(at)) == 4:
        return _read_year_first(cursor, at)
    first, mark = cursor.digits(at), cursor.word(at + 1)
    if first is None or mark not in _NUMERIC_MARKS:
        return None
    spaced = mark == "."
    if not cursor.is_glued(at + 1) or not (cursor.is_glued(at + 2) or spaced):
        return None
    second = cursor.digits(at + 2)
    if second is None:
        return None
    if cursor.word(at + 3) == mark and cursor.is_glued(at + 3) and (cursor.is_glued(at + 4) or spaced):
        year = cursor.digits(at + 4, 4)
        if year is not None and len(cursor.word(at + 4)) in (2, 4) and (cursor.is_glued(at + 4) or year > MONTH_DAYS):
            if not ends_number(cursor, at + 5):
                return None
            return _day_and_month(cursor, at, at + 5, first, second, year if year > 99 else 2000 + year)
    return _read_without_year(cursor, at, first, second)


def _may_stand_before(cursor: Cursor, at: int) -> bool:
    return (
        cursor.word(at) in ("(", "[", ",", ":", "–", "—", "¿", "¡", "'", "’", "=") and cursor.token(at).kind == "mark"
    )


def _read_year_first(cursor: Cursor, at: int) -> Reading | None:
    year, mark = cursor.digits(at, 4), cursor.word(at + 1)
    if year is None:
        return None
    if mark in _NUMERIC_MARKS and cursor.is_glued(at + 1) and cursor.is_glued(at + 2) and len(cursor.word(at + 2)) == 2:
        month = cursor.digits(at + 2)
        if month is not None and cursor.word(at + 3) == mark and cursor.is_glued(at + 3) and cursor.is_glued(at + 4):
            day = cursor.digits(at + 4)
            after = at + 5
            if day is None or len(cursor.word(at + 4)) != 2:
                return None
            ends = ends_number(cursor, after) or (
                cursor.word(after) == "t" and cursor.token(after + 1).kind == "number"
            )
            if not ends:
                return None
            found = dt.date(year, month, day)
            return Reading(at, after, found, found, form="day")
        if month is not None and mark == "-" and ends_number(cursor, at + 3) and year >= FIRST_YEAR:
            return Reading(at, at + 3, *month_range(year, month), form="month")
        return None
    return _read_bare_year(cursor, at, year)


_YEAR_PREPOSITIONS = frozenset(
    "in since until till during of year before after im seit bis jahr jahre en de del depuis desde hasta annee ano "
    "avant jusqu antes despues durante pendant von fur for vor".split()
)


def _read_bare_year(cursor: Cursor, at: int, year: int) -> Reading | None:
    if not FIRST_YEAR <= year <= LAST_YEAR or cursor.word(at - 1) not in _YEAR_PREPOSITIONS:
        return None
    following = cursor.token(at + 1)
    # `in 2000 words`: a number before a noun counts something.
    if following.kind == "word" and following.word not in ALL_FUNCTION_WORDS:
        return None
    if not ends_number(cursor, at + 1) or following.text in ("%", "€", "$", "£", ":"):
        return None
    return Reading(at, at + 1, dt.date(year, 1, 1), dt.date(year, 12, 31))


def _day_and_month(cursor: Cursor, at: int, after: int, first: int, second: int, year: int) -> Reading | None:
    """Two numbers in the order of the locale, or in the other one where only that exists."""
    # Points are written by those who put the day first, whatever the locale.
    day_first = cursor.day_first or cursor.word(at + 1) == "."
    day, month = (first, second) if day_first else (second, first)
    assumed = ""
    if month > 12 >= day:
        day, month = month, day
    elif day <= 12 and day != month:
        order = "day.month" if cursor.word(at + 1) == "." else "day/month" if day_first else "month/day"
        if cursor.word(at + 1) != ".":
            assumed = f"{describe_month(dt.date(year, month, 1), day=False)}, day {day}: read as {order}"
    found = dt.date(year, month, day)
    return Reading(at, after, found, found, assumed, "day")


_BEFORE_NUMERIC = frozenset(
    "on by until till since from before after due at am vom bis zum seit ab den dem der le du au el del al to und "
    "and".split()
)


def _read_without_year(cursor: Cursor, at: int, first: int, second: int) -> Reading | None:
    mark, after = cursor.word(at + 1), at + 3
    before = cursor.word(at - 1)
    introduced = before in _BEFORE_NUMERIC or (before == "," and cursor.word(at - 2) in WEEKDAYS) or before in WEEKDAYS
    if mark == "." and cursor.word(at + 3) == ".":
        # `am 15.3.`; without a word before it `3.5.` may be the end of a sentence about an amount.
        if not introduced and cursor.word(at - 1) not in ("-", "–", "bis"):
            return None
        after = at + 4
        if cursor.is_glued(after) and cursor.token(after).kind != "mark":
            return None
    elif (
        mark != "/"
        or not introduced
        or not ends_number(cursor, after)
        or (first, second) == (24, 7)
        or cursor.word(after) in ("of", "de", "der", "des", "%", "cup", "cups")
    ):
        return None
    day_first = cursor.day_first or mark == "."
    day, month = (first, second) if day_first else (second, first)
    assumed = ""
    if month > 12 >= day:
        day, month = month, day
    elif mark == "/" and day <= 12 and day != month:
        assumed = f"read as {'day/month' if day_first else 'month/day'}"
    if not 1 <= month <= 12 or not 1 <= day <= MONTH_DAYS:
        return None
    found = resolve_yearless(choose(cursor, at), month, day, None, at, after)
    if found is None or not assumed:
        return found
    return replace(found, assumed=f"{found.assumed}; {assumed}")
