"""The days that a text names: every reader tried at every token, ranges joined, times given to their days."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bicameral.days._calendar import ONE_DAY
from bicameral.days._choice import Choice, choose, relation_before
from bicameral.days._cursor import Cursor
from bicameral.days._months import (
    read_day_month,
    read_month,
    read_part_of_month,
    read_quarter,
    read_third_of_month,
)
from bicameral.days._numeric import read_numeric
from bicameral.days._periods import Reading, read_offset, read_relative, read_shifted, read_third_of_period
from bicameral.days._tense import VERB
from bicameral.days._times import TimeReading, read_part, read_part_word, read_time, time_in_part
from bicameral.days._vocabulary import (
    AND_WORDS,
    MONTHS,
    MOVE_WORDS,
    RANGE_MARKS,
    RANGE_OPENERS,
    RANGE_WORDS,
    WEEKDAYS,
    WEEKDAYS_SHORT,
    Relation,
)
from bicameral.days._weekdays import read_day_only, read_shifted_name, read_weekday

Place = tuple[int, int]


BOTH = frozenset({"tonight", "anoche"})
"""Words that name a day and a part of it at once."""


@dataclass(frozen=True, slots=True)
class NamedTime:
    """A time of day, or a range of times, as a text names it.

    `end` is before `start` where the range passes midnight.
    """

    phrase: str
    place: Place
    start: dt.time
    end: dt.time | None = None


@dataclass(frozen=True, slots=True)
class NamedDays:
    """A phrase that means a day or a period, and which.

    Args:
        phrase: The words, exactly as they stand in the text.
        place: Where they begin and end in the text.
        start: The first day.
        end: The last day, inclusive.
        relation: What stands before the phrase: "since" or "until" these days, "before" or "after" them.
        time: The time of day that belongs to the days. A time without a day has the same phrase as this.
        assumed: Empty, or what was assumed to find the days, for the person to see.

    Example:
        >>> (days,) = named_days("What did I pay in March?", dt.date(2026, 2, 1))
        >>> days.phrase, days.start.isoformat(), days.assumed
        ('March', '2025-03-01', 'March 2025: the nearest one before today')
    """

    phrase: str
    place: Place
    start: dt.date
    end: dt.date
    relation: Relation = ""
    time: NamedTime | None = None
    assumed: str = ""

    @property
    def names_day(self) -> bool:
        """Whether a day is named, and not only a time of day."""
        # `tonight` is both.
        return self.time is None or self.time.place != self.place or self.phrase.casefold() in BOTH

    @property
    def bounds(self) -> tuple[dt.date | None, dt.date | None]:
        """The first and the last day that are meant with the relation; None where there is no bound."""
        match self.relation:
            case "":
                return self.start, self.end
            case "since":
                return self.start, None
            case "until":
                return None, self.end
            case "before":
                return None, self.start - ONE_DAY if self.start > dt.date.min else self.start
            case "after":
                return self.end + ONE_DAY if self.end < dt.date.max else self.end, None


def named_days(text: str, today: dt.date, *, day_first: bool = True) -> tuple[NamedDays, ...]:
    """The phrases of a text that mean days, in order and without overlaps.

    Args:
        text: What a person wrote, in English, German, French or Spanish.
        today: The day on which it was written.
        day_first: Whether 3/4/2026 is a day of April, as in most of the world, or of March.

    Example:
        >>> [(each.phrase, str(each.start)) for each in named_days("Am 15.3. und übermorgen", dt.date(2026, 3, 11))]
        [('15.3.', '2026-03-15'), ('übermorgen', '2026-03-13')]
    """
    return tuple(_name_days(Cursor(text, today, day_first=day_first)))


def reading_steps(text: str, today: dt.date) -> int:
    """How many tokens are looked at to read a text: the cost, without a clock."""
    cursor = Cursor(text, today, day_first=True)
    for _ in _name_days(cursor):
        pass
    return cursor.steps + len(cursor)


def _name_days(cursor: Cursor) -> Iterator[NamedDays]:
    days, times, parts = _read_all(cursor)
    owners = _match_times(cursor, days, times, parts)
    named = [_named_days(cursor, reading, _own_time(reading, owners, parts)) for reading in days]
    owned = {time.first for time in owners.values()}
    named += [_only_time(cursor, time) for time in times if time.first not in owned and time.marked]
    yield from sorted(named, key=lambda each: each.place)


def _own_time(reading: Reading, owners: dict[int, TimeReading], parts: dict[int, TimeReading]) -> TimeReading | None:
    time, part = owners.get(reading.first), parts.get(reading.first)
    return part if time is None else time if part is None else time_in_part(time, part)


def _read_all(cursor: Cursor) -> tuple[list[Reading], list[TimeReading], dict[int, TimeReading]]:
    """The days, the times, and the part of the day that stands in or behind a day, by the day's first token."""
    days: list[Reading] = []
    times: list[TimeReading] = []
    parts: dict[int, TimeReading] = {}
    at = 0
    while at < len(cursor):
        reading = _read_range(cursor, at)
        if reading is not None:
            days.append(reading)
            at = reading.after
            if reading.part is not None:
                parts[reading.first] = read_part_word(cursor, reading.part)
            elif reading.form in ("day", "weekday") and (part := read_part(cursor, at)) is not None:
                parts[reading.first] = part
                at = part.after
            continue
        time = read_time(cursor, at)
        if time is not None:
            times.append(time)
            at = time.after
            continue
        at += 1
    return days, times, parts


def _read(cursor: Cursor, at: int, choice: Choice | None = None) -> Reading | None:
    """The first reading at a token that is a date of the calendar and stands by itself."""
    token = cursor.token(at)
    if token.kind not in ("number", "word"):
        return None
    try:
        found = _read_number(cursor, at, choice) if token.kind == "number" else _read_word(cursor, at, choice)
    except (ValueError, OverflowError):
        # No such day (30 February), or one beyond the calendar.
        return None
    return found if found is not None and _is_separate(cursor, found) else None


def _read_number(cursor: Cursor, at: int, choice: Choice | None) -> Reading | None:
    choice = choice or choose(cursor, at)
    return (
        read_numeric(cursor, at)
        or read_day_month(cursor, at, choice)
        or read_offset(cursor, at)
        or read_shifted(cursor, at)
        or read_quarter(cursor, at, choice)
        or read_day_only(cursor, at, choice)
    )


def _read_word(cursor: Cursor, at: int, choice: Choice | None) -> Reading | None:
    choice = choice or choose(cursor, at)
    return (
        read_relative(cursor, at)
        or read_offset(cursor, at)
        or read_part_of_month(cursor, at, choice)
        or read_shifted_name(cursor, at)
        or read_shifted(cursor, at)
        or read_third_of_month(cursor, at, choice)
        or read_third_of_period(cursor, at)
        or read_weekday(cursor, at, choice)
        or read_quarter(cursor, at, choice)
        or read_day_month(cursor, at, choice)
        or read_month(cursor, at, choice)
    )


_NAME_MARKS = frozenset("-/_.#@$€£+=&~\\")


def _is_separate(cursor: Cursor, reading: Reading) -> bool:
    """Whether a reading is not a part of a longer name: `sunday-notes`, `pre-May`, `#may`, `x2026-03-01`."""
    first, after = reading.first, reading.after
    if cursor.is_glued(first):
        before = cursor.token(first - 1)
        if before.kind != "mark":
            return False
        if before.text in _NAME_MARKS and not _is_day_word(cursor, first - 2):
            return False
    if not cursor.is_glued(after):
        return True
    following = cursor.token(after)
    if following.kind != "mark":
        # `2026-03-01T10:00`
        return following.word == "t" and cursor.token(after + 1).kind == "number"
    if following.text in _NAME_MARKS and cursor.is_glued(after + 1):
        beyond = cursor.token(after + 1)
        if following.text == "." and cursor.is_capital(after + 1):
            # A sentence that begins without a blank: `today.Then`.
            return True
        return beyond.kind == "mark" or (following.text in "-/" and _is_day_word(cursor, after + 1))
    return True


def _is_day_word(cursor: Cursor, at: int) -> bool:
    token = cursor.token(at)
    return token.kind == "number" or token.word in MONTHS or token.word in WEEKDAYS or token.word in WEEKDAYS_SHORT


_SKIPPED = frozenset("the le la el zum den dem".split())


def _read_range(cursor: Cursor, at: int) -> Reading | None:
    """A reading, joined with a second one where the text names a range: `from Monday to Friday`."""
    begin = _read(cursor, at)
    if begin is None or not _joins(cursor, begin):
        return begin
    second = begin.after + 1
    if cursor.word(begin.after) == "jusqu":
        second += 1
    second = second + 1 if cursor.word(second) in _SKIPPED else second
    finish = _read(cursor, second, Choice(begin.start, 1, VERB, of="the first day"))
    if finish is None or (begin.form, finish.form) in (("day", "period"), ("period", "day")):
        return begin
    if begin.open_year and not finish.open_year and finish.form in ("day", "month"):
        # "3 May to 5 June 2025": the year at the end is the year of both.
        begin = _read(cursor, at, Choice(finish.start, -1, VERB, of="the last day")) or begin
    if finish.end < begin.start:
        return begin
    assumed = "; ".join(part for part in (begin.assumed, finish.assumed) if part)
    return replace(begin, after=finish.after, end=finish.end, assumed=assumed)


def _joins(cursor: Cursor, begin: Reading) -> bool:
    word = cursor.word(begin.after)
    if word in AND_WORDS:
        return any(cursor.word(begin.first - back) in RANGE_OPENERS for back in (1, 2))
    if word in RANGE_MARKS or word == "jusqu":
        return True
    if word not in RANGE_WORDS:
        return False
    # "Move it from Monday to Friday" names two days.
    return all(cursor.word(begin.first - back) not in MOVE_WORDS for back in range(1, 12))


_BETWEEN_DAY_AND_TIME = frozenset("at on , the a le el am um de - of in of-the-day den dem del la".split())


def _match_times(
    cursor: Cursor, days: list[Reading], times: list[TimeReading], parts: dict[int, TimeReading]
) -> dict[int, TimeReading]:
    """For each day, by its first token, the explicit time that belongs to it.

    A time belongs to the day beside it; failing that, to the only day of its sentence.
    """
    owners: dict[int, TimeReading] = {}
    taken: set[int] = set()
    by_after = {max(day.after, parts[day.first].after if day.first in parts else 0): day for day in days}
    by_first = {day.first: day for day in days}
    for time in times:
        for gap in range(3):
            if all(cursor.word(time.first - back) in _BETWEEN_DAY_AND_TIME for back in range(1, gap + 1)):
                day = by_after.get(time.first - gap)
                if day is not None and day.first not in owners:
                    owners[day.first] = time
                    taken.add(time.first)
                    break
    for time in times:
        for gap in range(4):
            if time.first in taken:
                break
            if all(cursor.word(time.after + ahead) in _BETWEEN_DAY_AND_TIME for ahead in range(gap)):
                day = by_first.get(time.after + gap)
                if day is not None and day.first not in owners:
                    owners[day.first] = time
                    taken.add(time.first)
    sentence = cursor.tenses.sentence
    day_counts = Counter(sentence[day.first] for day in days)
    time_counts = Counter(sentence[time.first] for time in times)
    lone_days = {sentence[day.first]: day for day in days if day_counts[sentence[day.first]] == 1}
    for time in times:
        day = lone_days.get(sentence[time.first])
        alone = time_counts[sentence[time.first]] == 1 and time.first not in taken
        if time.marked and alone and day is not None and day.first not in owners:
            owners[day.first] = time
    return owners


def _place(cursor: Cursor, first: int, after: int) -> Place:
    return cursor.tokens[first].start, cursor.tokens[after - 1].end


def _named_time(cursor: Cursor, time: TimeReading) -> NamedTime:
    start, end = _place(cursor, time.first, time.after)
    return NamedTime(cursor.text[start:end], (start, end), time.start, time.end)


def _named_days(cursor: Cursor, reading: Reading, time: TimeReading | None) -> NamedDays:
    start, end = _place(cursor, reading.first, reading.after)
    return NamedDays(
        phrase=cursor.text[start:end],
        place=(start, end),
        start=reading.start,
        end=reading.end,
        relation=relation_before(cursor, reading.first),
        time=_named_time(cursor, time) if time is not None else None,
        assumed="; ".join(part for part in (reading.assumed, time.assumed if time else "") if part),
    )


def _only_time(cursor: Cursor, time: TimeReading) -> NamedDays:
    named = _named_time(cursor, time)
    assumed = "; ".join(part for part in ("today: no day is named", time.assumed) if part)
    return NamedDays(named.phrase, named.place, cursor.today, cursor.today, time=named, assumed=assumed)
