"""Months by name, with and without day and year, and parts of them; quarters and numbered weeks."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from bicameral.days._calendar import add_months, month_range, quarter_range, third_of
from bicameral.days._choice import MONTH_DAYS, Choice, read_year_after, resolve_yearless
from bicameral.days._cursor import Cursor
from bicameral.days._periods import Reading, describe_month, skip_of, third_reading
from bicameral.days._tense import VERB
from bicameral.days._vocabulary import (
    ALL_FUNCTION_WORDS,
    AMBIGUOUS_MONTHS,
    AND_WORDS,
    ENGLISH_WEEKDAY_TITLES,
    MONTH_NAMES,
    MONTH_PREPOSITIONS,
    MONTH_SHORT,
    MONTHS,
    NUMBERED_MONTHS,
    ORDINAL_WORDS,
    RANGE_MARKS,
    RANGE_OPENERS,
    RANGE_WORDS,
    RECORD_NOUNS,
    RECURRENCE,
    SHIFTS,
    SHIFTS_AFTER,
    THIRDS,
    UNITS,
)

_ORDINALS = frozenset("st nd rd th er ere e º ª °".split())


def read_day_of_month(cursor: Cursor, at: int) -> tuple[int, int] | None:
    """A day of a month with its ordinal sign, and the place after it: `15`, `15th`, `15.`, `1er`, `first`."""
    day = cursor.digits(at)
    if day is None or (cursor.is_glued(at) and cursor.token(at - 1).kind != "mark"):
        ordinal = ORDINAL_WORDS.get(cursor.word(at))
        return (1, at + 1) if ordinal == 1 and not cursor.speaks("de") else None
    if not 1 <= day <= MONTH_DAYS:
        return None
    after = at + 1
    if cursor.is_glued(after):
        following = cursor.word(after)
        if following == "." or following in _ORDINALS:
            after += 1
            if following == "." and cursor.word(after) in ("º", "ª", "o"):
                after += 1
        elif cursor.token(after).kind != "mark":
            return None
    return day, after


def read_day_month(cursor: Cursor, at: int, choice: Choice, weekday: int | None = None) -> Reading | None:
    """`15 March 2026`, `15. März`, `1er mai`, `15 de mayo`, and `3 to 5 May`."""
    begin = read_day_of_month(cursor, at)
    if begin is None or (cursor.is_glued(at) and cursor.word(at - 1) in ("-", ".", "/", ":", "#", "$", "€", "+", "_")):
        return None
    day, after = begin
    last_day = day
    if _joins_days(cursor, after, at):
        finish = read_day_of_month(cursor, cursor.skip(after + 1, "the", "le", "el", "zum"))
        if finish is not None:
            last_day, after = finish
    after = cursor.skip(after, "of", "de", "d", "-", "/", "du", "del")
    after = cursor.skip(after, "'", "’", "mes")
    after = cursor.skip(after, "de")
    month = MONTHS.get(cursor.word(after))
    if month is None or (cursor.word(after) == "mayo" and not cursor.speaks("es")):
        return None
    if not cursor.is_capital(after) and cursor.word(after) in ("may", "march") and not _ends_month(cursor, after + 1):
        return None
    if cursor.word(after) == "mars" and not cursor.speaks("fr"):
        return None
    # `7 sept jours`: a number word before a unit.
    if cursor.unit(after + 1) is not None:
        return None
    after += 1
    year = read_year_after(cursor, after)
    if year is None and cursor.word(after) == "." and cursor.word(after - 1) in MONTH_SHORT and cursor.is_glued(after):
        year = read_year_after(cursor, after + 1)
    found = _resolve_day(month, day, year, choice, weekday, at, after)
    if found is None or last_day == day:
        return found
    return _extend(found, found.start.replace(day=last_day))


def _joins_days(cursor: Cursor, at: int, first: int) -> bool:
    word = cursor.word(at)
    if word in AND_WORDS:
        return cursor.word(first - 1) in RANGE_OPENERS or cursor.word(first - 2) in RANGE_OPENERS
    return word in RANGE_WORDS or word in RANGE_MARKS


def _extend(reading: Reading, last: dt.date) -> Reading | None:
    return replace(reading, end=last, form="period") if last > reading.start else None


def _resolve_day(
    month: int, day: int, year: tuple[int, int] | None, choice: Choice, weekday: int | None, first: int, after: int
) -> Reading | None:
    if year is None:
        return resolve_yearless(choice, month, day, weekday, first, after)
    found = dt.date(year[0], month, day)
    return Reading(first, year[1], found, found, weekday_conflict(found, weekday), "day")


def weekday_conflict(day: dt.date, weekday: int | None) -> str:
    if weekday is None or day.weekday() == weekday:
        return ""
    named, real = ENGLISH_WEEKDAY_TITLES[weekday], ENGLISH_WEEKDAY_TITLES[day.weekday()]
    return f"{day} is a {real}, not a {named}"


def read_month(cursor: Cursor, at: int, choice: Choice, weekday: int | None = None) -> Reading | None:
    """`March 15, 2026`, `March 3-5`, `May 2026`, `mayo de 2026`, and a month alone where it cannot be another word."""
    word = cursor.word(at)
    month = MONTHS.get(word)
    if month is None or cursor.word(at - 1) in RECURRENCE or _has_other_day(cursor, at):
        return None
    after = at + 1
    if word in MONTH_SHORT and cursor.word(after) == "." and cursor.is_glued(after):
        after += 1
    if cursor.word(after) in ("-", "/") and cursor.is_glued(after) and cursor.token(after + 1).kind == "number":
        after += 1
    begin = read_day_of_month(cursor, cursor.skip(after, "the")) if word in MONTH_NAMES or word in MONTH_SHORT else None
    if begin is not None and _is_english_day(cursor, at, begin[1]):
        return _read_month_day(cursor, at, month, begin, choice, weekday)
    year = read_year_after(cursor, after)
    if year is not None and _may_have_year(cursor, at):
        return Reading(at, year[1], *month_range(year[0], month), form="month")
    shift = SHIFTS_AFTER.get(cursor.word(at + 1))
    if shift is not None and word in MONTH_NAMES and (cursor.speaks("fr") or cursor.speaks("es")):
        return shifted_month(cursor, month, shift, at, at + 2)
    if not _stands_alone(cursor, at):
        return None
    return resolve_yearless(choice, month, None, None, at, at + 1)


def _has_other_day(cursor: Cursor, at: int) -> bool:
    """Whether a day stands before a month that does not have it: of `30 February 2026` nothing is read."""
    for back in (1, 2):
        token = cursor.token(at - back)
        if token.kind == "number" and len(token.text) <= 2:
            return True
        if token.word not in _ORDINALS and token.word not in (".", "of", "de"):
            return False
    return False


def _may_have_year(cursor: Cursor, at: int) -> bool:
    word = cursor.word(at)
    if word == "mars":
        return cursor.speaks("fr")
    return word != "mayo" or cursor.speaks("es")


def _is_english_day(cursor: Cursor, at: int, after: int) -> bool:
    """Whether a month before a number is one with its day: `March 15`, and not `march 5 miles`."""
    word, following = cursor.word(at), cursor.token(after)
    if word in ("mars", "mayo") or following.word in ("%", "€", "$", ":") or following.word in UNITS:
        return False
    if cursor.word(after) == "." and cursor.is_glued(after + 1) and cursor.token(after + 1).kind == "number":
        return False
    if word in AMBIGUOUS_MONTHS and word in MONTH_NAMES and not cursor.is_capital(at):
        return (
            following.kind != "word" or following.word in ALL_FUNCTION_WORDS or following.word in ("am", "pm", "until")
        )
    return True


def _read_month_day(
    cursor: Cursor, at: int, month: int, begin: tuple[int, int], choice: Choice, weekday: int | None
) -> Reading | None:
    day, after = begin
    last_day = day
    if _joins_days(cursor, after, at):
        finish = read_day_of_month(cursor, cursor.skip(after + 1, "the"))
        hour = finish is not None and cursor.word(finish[1]) in ("am", "pm", ":", "h", "uhr")
        if finish is not None and not hour and cursor.word(finish[1]) not in MONTHS:
            last_day, after = finish
    # The point of `March 15.` ends the sentence: only letters belong to an English ordinal.
    if cursor.word(after - 1) == ".":
        after -= 1
    found = _resolve_day(month, day, read_year_after(cursor, after), choice, weekday, at, after)
    if found is None or last_day == day:
        return found
    return _extend(found, found.start.replace(day=last_day))


_NOT_AFTER_MONTH = frozenset(
    "be have not well also i we you they he she it into out off up over down back require need cause want contain take "
    "get go come help differ vary seem".split()
)


def _ends_month(cursor: Cursor, at: int) -> bool:
    return cursor.word(at) not in _NOT_AFTER_MONTH


def _stands_alone(cursor: Cursor, at: int) -> bool:
    """Whether a word without a number beside it is a month, and no verb, name or planet."""
    word, before = cursor.word(at), cursor.word(at - 1)
    if before in ("'", "’"):
        before = cursor.word(at - 2)
    if word in MONTH_SHORT and word not in MONTH_NAMES:
        return before in ("in", "since", "until", "im", "seit", "bis", "en", "depuis", "desde", "hasta") and (
            word not in NUMBERED_MONTHS
        )
    if word not in AMBIGUOUS_MONTHS:
        return True
    if _is_linked(cursor, at):
        return True
    if word in ("mars", "avril", "mayo", "junio", "julio"):
        if not cursor.speaks("fr" if word in ("mars", "avril") else "es"):
            return False
        if before in ("en", "depuis", "desde", "hasta", "jusqu", "mois", "mes"):
            return True
        return before in MONTH_PREPOSITIONS and not cursor.is_capital(at)
    if cursor.is_capital(at):
        if cursor.word(at + 1) in RECORD_NOUNS:
            return True
        # `from April` and `to June` are as often people.
        return before in MONTH_PREPOSITIONS and before not in ("to", "from", "von", "de", "d")
    return before in MONTH_PREPOSITIONS and before not in ("to", "de") and _ends_month(cursor, at + 1)


_MONTH_LINKS = AND_WORDS | RANGE_WORDS | RANGE_MARKS | {"or", "oder", "ou", "o", "vs", "with", "than", ",", "mit"}


def _is_linked(cursor: Cursor, at: int) -> bool:
    """Whether another month stands beside this one, joined by `and`, `to` or a dash."""
    for step in (1, -1):
        other = cursor.word(at + 2 * step)
        if cursor.word(at + step) not in _MONTH_LINKS or other not in MONTH_NAMES:
            continue
        if other not in ("may", "march") or cursor.is_capital(at + 2 * step):
            return cursor.is_capital(at) or other not in AMBIGUOUS_MONTHS
    return False


def shifted_month(cursor: Cursor, month: int, shift: int, first: int, after: int) -> Reading | None:
    """`last March`, `mayo pasado`: the nearest one that does not hold today."""
    start = add_months(cursor.today.replace(day=1), 1 if shift > 0 else -1)
    base = start if shift > 0 else month_range(start.year, start.month)[1]
    if shift == 0:
        whole = month_range(cursor.today.year, month)
        return Reading(first, after, *whole, form="month", assumed=f"{describe_month(whole[0], day=False)}: this year")
    found = resolve_yearless(Choice(base, 1 if shift > 0 else -1, VERB), month, None, None, first, after)
    if found is None:
        return None
    why = "the nearest one after this month" if shift > 0 else "the nearest one before this month"
    return replace(found, assumed=f"{describe_month(found.start, day=False)}: {why}", open_year=False)


def read_third_of_month(cursor: Cursor, at: int, choice: Choice) -> Reading | None:
    """`early May`, `Mitte März 2026`, `fin mai`, `a finales de mayo`."""
    third = THIRDS.get(cursor.word(at))
    if third is None:
        return None
    after = skip_of(cursor, at + 1)
    month = MONTH_NAMES.get(cursor.word(after))
    if month is None or (
        cursor.word(after) in ("may", "march") and not cursor.is_capital(after) and not _ends_month(cursor, after + 1)
    ):
        return None
    if cursor.word(at) in ("mi",) and cursor.word(at + 1) != "-":
        return None
    year = read_year_after(cursor, after + 1)
    if year is not None:
        whole = Reading(at, year[1], *month_range(year[0], month))
    else:
        whole = resolve_yearless(choice, month, None, None, at, after + 1)
    if whole is None:
        return None
    days = third_of((whole.start, whole.end), third)
    found = third_reading(at, whole.after, days, third, open_year=whole.open_year)
    return replace(found, assumed="; ".join(part for part in (whole.assumed, found.assumed) if part))


_HALF_WORDS = frozenset("half halfte haelfte moitie mitad".split())


def read_part_of_month(cursor: Cursor, at: int, choice: Choice) -> Reading | None:
    """`first week of May`, `zweite Hälfte März`, `la dernière semaine de mai`: sevenths of days, and halves."""
    word = cursor.word(at)
    last = SHIFTS.get(word) == -1
    ordinal = ORDINAL_WORDS.get(word)
    if ordinal is None and not last:
        return None
    half = cursor.word(at + 1) in _HALF_WORDS
    if not half and UNITS.get(cursor.word(at + 1)) != "week":
        return None
    after = cursor.skip(skip_of(cursor, at + 2), "in", "im")
    month = MONTH_NAMES.get(cursor.word(after))
    if month is None or (after == at + 2 and not half):
        return None
    year = read_year_after(cursor, after + 1)
    whole = (
        Reading(at, year[1], *month_range(year[0], month))
        if year
        else resolve_yearless(choice, month, None, None, at, after + 1)
    )
    if whole is None or (half and ordinal not in (1, 2)):
        return None
    if half:
        middle = whole.start.replace(day=15)
        days = (whole.start, middle) if ordinal == 1 else (middle + dt.timedelta(days=1), whole.end)
    elif last:
        days = whole.end - dt.timedelta(days=6), whole.end
    else:
        start = whole.start + dt.timedelta(weeks=(ordinal or 1) - 1)
        days = start, start + dt.timedelta(days=6)
    assumed = "; ".join(part for part in (whole.assumed, f"{days[0]} to {days[1]}") if part)
    return Reading(at, whole.after, *days, assumed, open_year=whole.open_year)


def read_quarter(cursor: Cursor, at: int, choice: Choice) -> Reading | None:
    """`Q1`, `Q1 2026`, `T1 2026`, `first quarter of 2026`, `1. Quartal`, `KW 12`."""
    word = cursor.word(at)
    if word in ("q", "t") and cursor.is_capital(at) and cursor.is_glued(at + 1) and not cursor.is_glued(at):
        quarter, after = cursor.digits(at + 1, 1), at + 2
        if cursor.is_glued(after) and cursor.token(after).kind != "mark":
            return None
        # `T1` is a line, a bone and a terminal: it needs its year.
        if word == "t" and read_year_after(cursor, after) is None:
            return None
    elif word == "kw":
        return _read_week_number(cursor, at, choice)
    else:
        quarter, after = ORDINAL_WORDS.get(word), at + 1
        if quarter is None and (numbered := read_day_of_month(cursor, at)):
            quarter, after = (numbered[0], numbered[1]) if numbered[1] > at + 1 else (None, after)
        if UNITS.get(cursor.word(after)) != "quarter":
            return None
        after += 1
    if quarter is None or not 1 <= quarter <= 4:
        return None
    year = read_year_after(cursor, skip_of(cursor, after))
    if year is not None:
        return Reading(at, year[1], *quarter_range(year[0], quarter))
    following = cursor.token(after)
    if following.kind == "word" and following.word not in ALL_FUNCTION_WORDS:
        # `the second quarter century`, `a first quarter note`
        return None
    start = quarter_range(choice.base.year, quarter)[0]
    chosen, why = choice.base.year, "this year"
    if choice.direction < 0 and start > choice.base:
        chosen, why = chosen - 1, "the nearest one before today"
    elif choice.direction > 0 and quarter_range(chosen, quarter)[1] < choice.base:
        chosen, why = chosen + 1, "the nearest one after today"
    return Reading(at, after, *quarter_range(chosen, quarter), f"Q{quarter} {chosen}: {why}", open_year=True)


def _read_week_number(cursor: Cursor, at: int, choice: Choice) -> Reading | None:
    week = cursor.digits(at + 1)
    if week is None:
        return None
    after = cursor.skip(at + 2, "/")
    year = read_year_after(cursor, after)
    monday = dt.date.fromisocalendar(year[0] if year else choice.base.year, week, 1)
    assumed = "" if year else f"week {week} of {choice.base.year}: this year"
    return Reading(at, year[1] if year else at + 2, monday, monday + dt.timedelta(days=6), assumed)
