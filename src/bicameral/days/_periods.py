"""Days that are named by their distance from today: `tomorrow`, `next week`, `3 weeks ago`, `the last three days`."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

from bicameral.days._calendar import MAX_COUNT, ONE_DAY, add_units, month_title, shifted_period, third_of
from bicameral.days._cursor import Cursor
from bicameral.days._vocabulary import RECURRENCE, RELATIVE_DAYS, SHIFTS, SHIFTS_AFTER, THIRDS, Unit

Form = Literal["day", "weekday", "month", "period"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the tokens from `first` up to `after` mean.

    `open_year` says that the year was chosen by the reader, so that the other end of a range may choose another one.
    `part` is the token that names a part of the day within the phrase: `this morning`, `tonight`.
    """

    first: int
    after: int
    start: dt.date
    end: dt.date
    assumed: str = ""
    form: Form = "period"
    open_year: bool = False
    part: int | None = None


# Several words for one day, by their first word: the words, and the days away from today.
_COMPOUNDS: dict[str, tuple[tuple[tuple[str, ...], int], ...]] = {
    "the": ((("the", "day", "after", "tomorrow"), 2), (("the", "day", "before", "yesterday"), -2)),
    "day": ((("day", "after", "tomorrow"), 2), (("day", "before", "yesterday"), -2)),
    "apres": ((("apres", "-", "demain"), 2),),
    "avant": ((("avant", "-", "hier"), -2),),
    "pasado": ((("pasado", "manana"), 2),),
    "antes": ((("antes", "de", "ayer"), -2),),
    "aujourd": ((("aujourd", "'", "hui"), 0), (("aujourd", "’", "hui"), 0)),
}
# `this morning`: the part of the day follows and is read with the times.
_THIS = {"this": 0, "ce": 0, "cet": 0, "cette": 0, "esta": 0, "este": 0, "last": -1}
_DAY_PARTS = {
    "this": frozenset(("morning", "afternoon", "evening")),
    "last": frozenset(("night",)),
    "ce": frozenset(("matin", "soir", "midi")),
    "cet": frozenset(("apres",)),
    "cette": frozenset(("nuit",)),
    "esta": frozenset(("manana", "tarde", "noche")),
    "este": frozenset(("mediodia",)),
}


def read_relative(cursor: Cursor, at: int) -> Reading | None:
    """`today`, `übermorgen`, `avant-hier`, `pasado mañana`, `this morning`."""
    word = cursor.word(at)
    for words, offset in _COMPOUNDS.get(word, ()):
        if cursor.follows(at, *words):
            return _single(at, at + len(words), cursor.today + dt.timedelta(days=offset))
    if word in _DAY_PARTS and cursor.word(at + 1) in _DAY_PARTS[word]:
        after = at + 4 if cursor.follows(at + 1, "apres", "-", "midi") else at + 2
        return _single(at, after, cursor.today + dt.timedelta(days=_THIS[word]), part=at + 1)
    offset = RELATIVE_DAYS.get(word)
    if offset is None or not _is_relative(cursor, at):
        return None
    part = at if word in ("tonight", "anoche") else None
    return _single(at, at + 1, cursor.today + dt.timedelta(days=offset), part=part)


def _single(first: int, after: int, day: dt.date, *, part: int | None = None) -> Reading:
    return Reading(first, after, day, day, form="day", part=part)


def _is_relative(cursor: Cursor, at: int) -> bool:
    """Whether a word that has another meaning, too, means a day here."""
    before = cursor.word(at - 1)
    match cursor.word(at):
        case "morgen":
            # The noun is the morning: `guten Morgen`, `am Morgen`, `Montag Morgen`; as a name it is no German.
            if before in ("guten", "am", "jeden", "den", "der", "dieser", "einen", "schonen", "vom"):
                return False
            return not cursor.is_capital(at) or cursor.starts_sentence(at)
        case "manana":
            return before not in ("la", "las", "cada", "buena")
        case "hier":
            # German for `here`.
            return not cursor.told or (cursor.speaks("fr") and not cursor.speaks("de"))
        case _:
            return True


_SPANISH_UNITS = frozenset("dia dias semana semanas mes meses ano anos".split())


def read_offset(cursor: Cursor, at: int) -> Reading | None:
    """A number of units before or after today: `in two weeks`, `vor drei Tagen`, `3 weeks ago`, `hace un mes`."""
    word = cursor.word(at)
    first, after, sign = at, at + 1, 0
    # French `en deux semaines` says how long something takes; its units are other words than the Spanish ones.
    if word in ("in", "dans", "en"):
        sign = 1
    elif cursor.follows(at, "dentro", "de"):
        sign, after = 1, at + 2
    elif word in ("vor", "hace"):
        sign = -1
    elif cursor.follows(at, "il", "y", "a"):
        sign, after = -1, at + 3
    elif word in ("seit", "depuis"):
        # The relation stays in front of the phrase: "since" the day that is so long ago.
        sign, first = -1, at + 1
    else:
        after = at
    counted = cursor.number(after)
    unit = cursor.unit(counted[1]) if counted else None
    if counted is None or unit is None:
        return None
    after = unit[1]
    if sign == 0:
        if cursor.word(after) == "ago":
            sign, after = -1, after + 1
        elif cursor.word(after) == "from" and cursor.word(after + 1) in ("now", "today"):
            sign, after = 1, after + 2
        else:
            return None
    if not 0 < counted[0] <= MAX_COUNT or (word == "en" and cursor.word(unit[1] - 1) not in _SPANISH_UNITS):
        return None
    day = add_units(cursor.today, sign * counted[0], unit[0])
    return Reading(first, after, day, day, form="day")


def read_shifted(cursor: Cursor, at: int) -> Reading | None:
    """A calendar period or a span: `next week`, `le mois dernier`, `the last three days`, `los próximos 5 días`."""
    if cursor.word(at - 1) in RECURRENCE:
        return None
    shift = SHIFTS.get(cursor.word(at))
    if shift is not None:
        counted = cursor.number(at + 1) if cursor.word(at + 1) not in ("a", "an") else None
        if counted is not None and shift in (1, -1) and (unit := cursor.unit(counted[1])):
            return _span(cursor, at, unit[1], shift * counted[0], unit[0])
        unit = cursor.unit(at + 1)
        if unit is None or unit[0] == "day" or (cursor.word(at) in ("esta", "este") and not cursor.speaks("es")):
            return None
        after = unit[1] + 2 if cursor.follows(unit[1], "-", "ci") else unit[1]
        return _period(cursor, at, after, unit[0], shift)
    counted = cursor.number(at) if cursor.word(at) not in ("a", "an") else None
    if counted is not None and (shift := SHIFTS.get(cursor.word(counted[1]))) in (1, -1):
        unit = cursor.unit(counted[1] + 1)
        if unit is not None:
            return _span(cursor, at, unit[1], shift * counted[0], unit[0])
    return _read_unit_first(cursor, at)


def _read_unit_first(cursor: Cursor, at: int) -> Reading | None:
    """`semaine prochaine`, `mes que viene`, `week after next`, and the weekend that needs no word before it."""
    unit = cursor.unit(at)
    if unit is None:
        return None
    shift = SHIFTS_AFTER.get(cursor.word(unit[1]))
    if shift is not None and unit[0] != "day":
        return _period(cursor, at, unit[1] + 1, unit[0], shift)
    if cursor.follows(unit[1], "que", "viene"):
        return _period(cursor, at, unit[1] + 2, unit[0], 1) if unit[0] != "day" else None
    if cursor.follows(unit[1], "after", "next"):
        return _period(cursor, at, unit[1] + 2, unit[0], 2)
    if unit[0] == "weekend" and cursor.word(at - 1) in ("the", "am", "ce", "le", "el", "on", "at", "over", "this"):
        return _period(cursor, at, unit[1], "weekend", 0)
    return None


def _period(cursor: Cursor, first: int, after: int, unit: Unit, shift: int) -> Reading:
    if unit == "fortnight":
        unit, shift = "week", 2 * shift
    start, end = shifted_period(cursor.today, unit, shift)
    assumed = ""
    if unit == "weekend":
        if shift == 0 and cursor.tenses.direction(first) == (-1, 3) and start > cursor.today:
            start, end = start - dt.timedelta(weeks=1), end - dt.timedelta(weeks=1)
        assumed = f"weekend: {start} and {end}"
    return Reading(first, after, start, end, assumed)


def _span(cursor: Cursor, first: int, after: int, count: int, unit: Unit) -> Reading | None:
    if not 0 < abs(count) <= MAX_COUNT:
        return None
    far = add_units(cursor.today, count, unit)
    if count < 0:
        return Reading(first, after, far + ONE_DAY, cursor.today, f"{far + ONE_DAY} to today, today included")
    return Reading(first, after, cursor.today + ONE_DAY, far, f"tomorrow to {far}")


def read_third_of_period(cursor: Cursor, at: int) -> Reading | None:
    """`end of the month`, `Ende nächster Woche`, `fin de mes`: a third of a calendar period."""
    third = THIRDS.get(cursor.word(at))
    if third is None:
        return None
    after = skip_of(cursor, at + 1)
    shifted = SHIFTS.get(cursor.word(after))
    unit = cursor.unit(after + 1 if shifted is not None else after)
    if unit is None or unit[0] in ("day", "weekend", "fortnight"):
        return None
    # `early week` and `late year` are not said; `end of` and its like are.
    if after == at + 1 and shifted is None and cursor.word(at) in ("early", "late", "mid", "mi", "final"):
        return None
    end = unit[1]
    if shifted is None and cursor.word(end) in SHIFTS_AFTER:
        shifted, end = SHIFTS_AFTER[cursor.word(end)], end + 1
    whole = shifted_period(cursor.today, unit[0], shifted or 0)
    return third_reading(at, end, third_of(whole, third), third)


def third_reading(
    first: int, after: int, days: tuple[dt.date, dt.date], third: str, *, open_year: bool = False
) -> Reading:
    return Reading(first, after, *days, f"{third}: {days[0]} to {days[1]}", "period", open_year)


def skip_of(cursor: Cursor, at: int) -> int:
    """The place after `of the`, `de`, `des`, `d'`, `du mois de` and the like, at most four words."""
    for _ in range(4):
        if cursor.word(at) not in ("of", "the", "de", "des", "du", "del", "d", "'", "’", "la", "le", "l", "-", "el"):
            break
        at += 1
    return at


def describe_month(start: dt.date, *, day: bool) -> str:
    """A day or a month as it is shown to a person."""
    return f"{start.day} {month_title(start)}" if day else month_title(start)
