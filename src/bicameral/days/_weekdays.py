"""Weekdays, alone and with their dates, and days of the month without a month."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from bicameral.days._calendar import add_months, month_range, weekday_after, weekday_before
from bicameral.days._choice import Choice, choose
from bicameral.days._cursor import Cursor
from bicameral.days._months import read_day_month, read_day_of_month, read_month, shifted_month, weekday_conflict
from bicameral.days._numeric import read_numeric
from bicameral.days._periods import Reading, describe_month
from bicameral.days._tense import VERB
from bicameral.days._vocabulary import (
    ALL_FUNCTION_WORDS,
    BEFORE_SHORT_WEEKDAY,
    ENGLISH_WEEKDAY_TITLES,
    ENGLISH_WEEKDAYS_SHORT,
    MONTH_NAMES,
    MONTHS,
    RECURRENCE,
    SHIFTS,
    SHIFTS_AFTER,
    WEEKDAYS,
    WEEKDAYS_SHORT,
)


def read_shifted_name(cursor: Cursor, at: int) -> Reading | None:
    """`next Friday`, `letzten Mai`, `el próximo lunes`: a weekday or a month behind such a word."""
    shift = SHIFTS.get(cursor.word(at))
    if shift is None:
        return None
    word = cursor.word(at + 1)
    weekday = WEEKDAYS.get(word, WEEKDAYS_SHORT.get(word) if word in ENGLISH_WEEKDAYS_SHORT else None)
    if weekday is not None:
        after = at + 2
        date = _read_dated_weekday(cursor, at, after, choose(cursor, at), weekday)
        if date is not None:
            return date
        if shift < 0:
            day = weekday_before(cursor.today, weekday) - dt.timedelta(weeks=-1 - shift)
        else:
            day = weekday_after(cursor.today, weekday) + dt.timedelta(weeks=max(shift - 1, 0))
        assumed = f"{ENGLISH_WEEKDAY_TITLES[weekday]} {day}: the first one after today" if shift in (0, 1) else ""
        return Reading(at, after, day, day, assumed, "weekday")
    month = MONTH_NAMES.get(word)
    if month is None or (word in ("mars", "mayo") and not (cursor.speaks("fr") or cursor.speaks("es"))):
        return None
    if word in ("may", "march") and not cursor.is_capital(at + 1) and cursor.token(at + 2).kind == "word":
        return None
    return shifted_month(cursor, month, shift, at, at + 2)


def read_weekday(cursor: Cursor, at: int, choice: Choice) -> Reading | None:
    """A weekday, alone or with its date: `Friday`, `Friday, 15 May`, `lunes pasado`, `Fr., 15.5.`."""
    word = cursor.word(at)
    short = word not in WEEKDAYS
    weekday = WEEKDAYS_SHORT.get(word) if short else WEEKDAYS[word]
    if weekday is None or cursor.word(at - 1) in RECURRENCE or cursor.word(at - 2) in RECURRENCE:
        return None
    after = at + 1
    if short and cursor.word(after) == "." and cursor.is_glued(after):
        after += 1
    date = _read_dated_weekday(cursor, at, after, choice, weekday)
    if date is not None:
        return date
    if short and not (word in ENGLISH_WEEKDAYS_SHORT and cursor.word(at - 1) in BEFORE_SHORT_WEEKDAY):
        return None
    # Spanish plural: `los lunes` is every Monday.
    if cursor.word(at - 1) == "los":
        return None
    if cursor.follows(at + 1, "que", "viene"):
        day = weekday_after(cursor.today, weekday)
        return Reading(at, at + 3, day, day, form="weekday")
    shift = SHIFTS_AFTER.get(cursor.word(at + 1))
    if shift is not None:
        day = weekday_after(cursor.today, weekday) if shift > 0 else weekday_before(cursor.today, weekday)
        return Reading(at, at + 2, day, day, form="weekday")
    # A weekday is the next one unless a verb says that it is over: the noun of a clause is too weak a sign for that.
    past = choice.direction < 0 and choice.strength >= VERB
    day = weekday_before(choice.base, weekday) if past else weekday_after(choice.base, weekday)
    why = f"the last one before {choice.of}" if past else f"the first one after {choice.of}"
    return Reading(at, at + 1, day, day, f"{ENGLISH_WEEKDAY_TITLES[weekday]} {day}: {why}", "weekday", open_year=True)


def _read_dated_weekday(cursor: Cursor, first: int, at: int, choice: Choice, weekday: int) -> Reading | None:
    """The date behind a weekday, as one phrase with it; where the two disagree the person is told."""
    after = cursor.skip(at, ",")
    after = cursor.skip(after, "the", "le", "el", "den", "dem", "der")
    date = _read_date_after_weekday(cursor, after, choice, weekday)
    if date is None:
        return None
    conflict = weekday_conflict(date.start, weekday)
    known = date.assumed if conflict in date.assumed else f"{date.assumed}; {conflict}".removeprefix("; ")
    return replace(date, first=first, assumed=known)


def _read_date_after_weekday(cursor: Cursor, at: int, choice: Choice, weekday: int) -> Reading | None:
    if cursor.token(at).kind == "number":
        return read_numeric(cursor, at) or read_day_month(cursor, at, choice, weekday)
    if cursor.token(at).kind == "word" and cursor.word(at) in MONTHS:
        found = read_month(cursor, at, choice, weekday)
        return found if found is not None and found.form == "day" else None
    return None


_DAY_ONLY = {
    "the": frozenset("on by until till since from before after".split()),
    "le": frozenset[str](),
    "el": frozenset[str](),
    "am": frozenset[str](),
    "zum": frozenset(("bis",)),
    "dem": frozenset("seit ab vor nach".split()),
}


def read_day_only(cursor: Cursor, at: int, choice: Choice) -> Reading | None:
    """A day without its month, where an ordinal or an article shows it: `on the 15th`, `am 15.`, `le 15`."""
    before, article = cursor.word(at - 2), cursor.word(at - 1)
    allowed = _DAY_ONLY.get(article)
    day = read_day_of_month(cursor, at)
    if allowed is None or day is None or cursor.token(at).kind != "number" or (allowed and before not in allowed):
        return None
    after, following = day[1], cursor.token(day[1])
    has_sign = after > at + 1
    if article in ("the", "am", "zum", "dem") and not has_sign:
        return None
    if article in ("le", "el") and (has_sign or not cursor.speaks("fr" if article == "le" else "es")):
        return None
    # What follows must not be what the number counts or orders: `the 15th floor`, `am 15. Tag`, `le 15 %`.
    if following.kind in ("number", "opaque") or following.text in ("%", "€", "$", ":", "/", "-"):
        return None
    if following.kind == "word" and following.word not in ALL_FUNCTION_WORDS | {"um", "at", "a"}:
        return None
    found = _nearest_day(choice, day[0])
    return Reading(
        at, after, found, found, f"{describe_month(found, day=True)}: the nearest one", "day", open_year=True
    )


def _nearest_day(choice: Choice, day: int) -> dt.date:
    """The nearest such day of a month; after today unless the clause speaks of the past."""
    step = -1 if choice.direction < 0 else 1
    for months in range(3):
        moved = add_months(choice.base.replace(day=1), step * months)
        if day > month_range(moved.year, moved.month)[1].day:
            continue
        found = moved.replace(day=day)
        if (found <= choice.base) if step < 0 else (found >= choice.base):
            return found
    raise ValueError("no month near has such a day")
