"""Times of day: `at 3 pm`, `um 15 Uhr`, `à 15 h 30`, `a las 3 de la tarde`, `from 3 to 4`, `early`, `this evening`."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

from bicameral.days._cursor import Cursor
from bicameral.days._vocabulary import ALL_FUNCTION_WORDS, MONTHS, NUMBER_WORDS, UNITS


@dataclass(frozen=True, slots=True)
class TimeReading:
    """A time of day between two tokens.

    `marked` says that it is certainly one; `15:30` alone may be a ratio. `open_half` says that the reader chose between
    morning and afternoon, so that a part of the day beside it may choose otherwise.
    """

    first: int
    after: int
    start: dt.time
    end: dt.time | None = None
    assumed: str = ""
    marked: bool = True
    open_half: bool = False


_PARTS = {
    "morning": (dt.time(6), dt.time(12)),
    "noon": (dt.time(12), None),
    "afternoon": (dt.time(12), dt.time(18)),
    "evening": (dt.time(18), dt.time(22)),
    "night": (dt.time(18), dt.time(23, 59)),
}
_PART_WORDS = {
    **dict.fromkeys("morning morgen fruh frueh vormittag matin manana madrugada".split(), "morning"),
    **dict.fromkeys("noon mittag midi mediodia".split(), "noon"),
    **dict.fromkeys("afternoon nachmittag tarde".split(), "afternoon"),
    **dict.fromkeys("evening abend soir".split(), "evening"),
    **dict.fromkeys("night nacht nuit noche".split(), "night"),
}
_PART_BEFORE = (
    ("por", "la"),
    ("a", "la"),
    ("en", "la"),
    ("in", "the"),
    ("at",),
    ("au",),
    ("le",),
    ("am",),
    ("in", "der"),
)
_HALVES = {
    **dict.fromkeys("morgens vormittags".split(), False),
    **dict.fromkeys("nachmittags abends".split(), True),
}
_AT = {"at": "en", "um": "de", "gegen": "de", "a": "fr", "vers": "fr"}
_HOUR_WORDS = frozenset("uhr h heure heures hs horas hrs".split())
_NOON = {
    "noon": 12,
    "mittag": 12,
    "midi": 12,
    "mediodia": 12,
    "midnight": 0,
    "mitternacht": 0,
    "minuit": 0,
    "medianoche": 0,
}
_LATEST_ASSUMED = 6


def read_part(cursor: Cursor, at: int) -> TimeReading | None:
    """A part of the day behind a date: `früh`, `matin`, `por la mañana`, `in the evening`."""
    first = at
    for before in _PART_BEFORE:
        if cursor.follows(at, *before):
            at += len(before)
            break
    if cursor.follows(at, "apres", "-", "midi"):
        return _part_reading("afternoon", first, at + 3)
    part = _PART_WORDS.get(cursor.word(at))
    if part is None:
        return None
    # Without a noun's capital `morgen` is the day after today; `heute morgen` is common in both spellings.
    if cursor.word(at) == "morgen" and not cursor.is_capital(at) and cursor.word(at - 1) not in ("heute", "gestern"):
        return None
    return _part_reading(part, first, at + 1)


def _part_reading(part: str, first: int, after: int) -> TimeReading:
    start, end = _PARTS[part]
    assumed = f"{part}: {start:%H:%M}" + (f" to {end:%H:%M}" if end else "")
    return TimeReading(first, after, start, end, assumed)


def read_time(cursor: Cursor, at: int) -> TimeReading | None:
    """A time or a range of times that begins at a token."""
    word = cursor.word(at)
    if word in ("from", "between", "von", "zwischen", "de", "entre") and not cursor.is_glued(at + 1):
        return _read_range(cursor, at, at + 1)
    # `a` without its accent is an article or a Spanish preposition.
    if (word in _AT and cursor.token(at).text.lower() != "a") or (
        word in ("a", "sobre") and cursor.word(at + 1) in ("las", "la")
    ):
        return _read_prefixed(cursor, at)
    if cursor.token(at).kind != "number" or _in_word(cursor, at):
        return None
    return _read_range(cursor, at, at) or _read_clock(cursor, at, at, marked=False)


def _in_word(cursor: Cursor, at: int) -> bool:
    """Whether digits are the end of something longer: `A4`, `1.15`, `-3`."""
    if not cursor.is_glued(at):
        return False
    return cursor.token(at - 1).kind != "mark" or cursor.word(at - 1) not in ("(", "–", "—", "¿", "¡", "'")


def _read_prefixed(cursor: Cursor, at: int) -> TimeReading | None:
    after = at + 1
    if cursor.word(at) in ("a", "sobre") and cursor.word(after) in ("las", "la"):
        after += 1
    noon = _NOON.get(cursor.word(after))
    if noon is not None:
        return TimeReading(at, after + 1, dt.time(noon))
    spoken = _read_spoken(cursor, at, after)
    if spoken is not None:
        return spoken
    found = _read_range(cursor, at, after) or _read_clock(cursor, at, after, marked=True)
    # `à 3` and `a 3 personas` are no times: French and Spanish need an hour word, minutes or an article.
    bare = found is not None and found.after == after + 1
    if bare and cursor.word(at) in ("a", "vers") and after == at + 1:
        return None
    if bare and not _may_follow_hour(cursor, after + 1):
        return None
    return found


def _may_follow_hour(cursor: Cursor, at: int) -> bool:
    """Whether a bare hour may end here: "at 3 on Friday", and not "at 3 places" or "at 50 %"."""
    token = cursor.token(at)
    if token.kind == "mark":
        return token.text not in ("%", "€", "$", "£", "/", "-", ".") or (
            token.text == "." and not cursor.is_glued(at + 1)
        )
    return token.kind == "word" and (token.word in ALL_FUNCTION_WORDS or token.word in _DAY_STARTS)


_DAY_STARTS = frozenset(
    "tomorrow today tonight next last monday tuesday wednesday thursday friday saturday sunday morgen heute montag "
    "dienstag mittwoch donnerstag freitag samstag sonntag demain lundi mardi mercredi jeudi vendredi samedi dimanche "
    "manana hoy lunes martes miercoles jueves viernes sabado domingo".split()
)


def _read_spoken(cursor: Cursor, first: int, at: int) -> TimeReading | None:
    """`half past 3`, `quarter to four`, `halb vier`, `Viertel nach drei`."""
    word, after, shift = cursor.word(at), at + 1, 0
    if word in ("half", "quarter") and cursor.word(after) in ("past", "to"):
        minutes = 30 if word == "half" else 15
        shift = minutes if cursor.word(after) == "past" else -minutes
        after += 1
    elif word == "halb":
        shift = -30
    elif word == "viertel" and cursor.word(after) in ("nach", "vor"):
        shift = 15 if cursor.word(after) == "nach" else -15
        after += 1
    else:
        return None
    hour = cursor.number(after)
    if hour is None or not 1 <= hour[0] <= 12:
        return None
    half = _read_half(cursor, hour[1])
    minutes = (hour[0] % 12) * 60 + shift
    afternoon = half[0] if half else (minutes // 60) % 12 < 7
    minutes = minutes % 720 + (720 if afternoon else 0)
    time = dt.time(minutes // 60, minutes % 60)
    assumed = "" if half else f"{time:%H:%M}: in the {'afternoon' if afternoon else 'morning'}"
    return TimeReading(first, half[1] if half else hour[1], time, None, assumed)


def _read_half(cursor: Cursor, at: int) -> tuple[bool, int] | None:
    """Whether a time is in the afternoon, where the text says so, and the place after that: `pm`, `de la tarde`."""
    word = cursor.word(at)
    if word in ("am", "pm") and not cursor.follows(at, "am", ".") | (word == "am" and _is_german_am(cursor, at)):
        return word == "pm", at + 1
    if word in ("a", "p") and cursor.word(at + 1) == "." and cursor.word(at + 2) == "m":
        return word == "p", cursor.skip(at + 3, ".") if cursor.is_glued(at + 3) else at + 3
    if word in _HALVES:
        return _HALVES[word], at + 1
    for before in (("de", "la"), ("del",), ("in", "the"), ("de", "l", "'"), ("de", "l", "’"), ("du",), ("am",)):
        if cursor.follows(at, *before):
            after = at + len(before)
            if cursor.follows(after, "apres", "-", "midi"):
                return True, after + 3
            part = _PART_WORDS.get(cursor.word(after))
            if part is not None:
                return part != "morning", after + 1
    return None


def _is_german_am(cursor: Cursor, at: int) -> bool:
    return not cursor.is_glued(at) and cursor.speaks("de") and not cursor.speaks("en")


@dataclass(frozen=True, slots=True)
class _Clock:
    hour: int
    minute: int
    after: int
    afternoon: bool | None
    has_unit: bool
    exact: bool


def _read_hour(cursor: Cursor, at: int, *, words: bool) -> _Clock | None:
    """An hour with what belongs to it: minutes, an hour word, and the half of the day."""
    hour = cursor.digits(at)
    after = at + 1
    exact = hour is not None and (hour == 0 or hour > 12 or cursor.word(at).startswith("0"))
    if hour is None and words:
        hour = NUMBER_WORDS.get(cursor.word(at))
    if hour is None or hour > 24:
        return None
    minute, has_unit = 0, False
    if cursor.word(after) in (":", ".") and cursor.is_glued(after) and cursor.is_glued(after + 1):
        minutes = cursor.digits(after + 1)
        if minutes is not None and len(cursor.word(after + 1)) == 2 and minutes < 60:
            dotted = cursor.word(after) == "."
            follows = cursor.word(after + 2)
            # `3.15` is an amount unless an hour word or a half of the day follows.
            if dotted and follows not in _HOUR_WORDS and follows not in ("am", "pm", "p", "a"):
                return None
            minute, after, has_unit = minutes, after + 2, True
            if cursor.word(after) == ":" and cursor.digits(after + 1) is not None and cursor.is_glued(after + 1):
                after += 2
    if cursor.word(after) in _HOUR_WORDS:
        has_unit = True
        after += 1
        minutes = cursor.digits(after)
        ends = cursor.word(after + 1) != "." or not cursor.is_glued(after + 2)
        counts = cursor.word(after + 1) in UNITS or cursor.word(after + 1) == "/"
        if (
            minutes is not None
            and len(cursor.word(after)) == 2
            and minutes < 60
            and minute == 0
            and ends
            and not counts
        ):
            minute, after = minutes, after + 1
    elif cursor.follows(after, "o", "'", "clock") or cursor.follows(after, "o", "’", "clock"):
        has_unit, after = True, after + 3
    for phrase, minutes in ((("y", "media"), 30), (("et", "demie"), 30), (("y", "cuarto"), 15), (("et", "quart"), 15)):
        if minute == 0 and cursor.follows(after, *phrase):
            minute, after, has_unit = minutes, after + 2, True
    half = _read_half(cursor, after)
    if half is not None:
        after = half[1]
    if minute and hour == 24:
        return None
    return _Clock(hour, minute, after, half[0] if half else None, has_unit, exact)


def _resolve(clock: _Clock, afternoon: bool | None) -> tuple[dt.time, str] | None:
    """The time on the clock, and what was assumed. A bare hour up to six is in the afternoon."""
    hour = clock.hour
    if afternoon is not None:
        if hour > 12:
            return (dt.time(hour % 24, clock.minute), "") if afternoon else None
        return dt.time(hour % 12 + (12 if afternoon else 0), clock.minute), ""
    if clock.exact:
        return dt.time(hour % 24, clock.minute), ""
    if 1 <= hour <= _LATEST_ASSUMED:
        time = dt.time(hour + 12, clock.minute)
        return time, f"{time:%H:%M}: in the afternoon"
    return dt.time(hour, clock.minute), ""


def _read_clock(cursor: Cursor, first: int, at: int, *, marked: bool) -> TimeReading | None:
    clock = _read_hour(cursor, at, words=marked)
    if clock is None:
        return None
    if not marked:
        if clock.afternoon is None and not clock.has_unit:
            return None
        if (
            clock.afternoon is None
            and clock.after == at + 2
            and cursor.word(at + 1) in ("h", "heures", "heure", "horas", "hrs")
        ):
            # `3 h` alone is as often how long something takes.
            return None
    resolved = _resolve(clock, clock.afternoon)
    if resolved is None:
        return None
    has_hour_word = cursor.word(at + 1) in _HOUR_WORDS or cursor.word(clock.after - 1) in _HOUR_WORDS
    certain = marked or clock.afternoon is not None or has_hour_word
    open_half = clock.afternoon is None and not clock.exact
    return TimeReading(first, clock.after, resolved[0], None, resolved[1], certain, open_half)


def read_part_word(cursor: Cursor, at: int) -> TimeReading:
    """The part of the day that a token within the phrase of a day names: `this morning`, `tonight`."""
    if cursor.follows(at, "apres", "-", "midi"):
        return _part_reading("afternoon", at, at + 3)
    return _part_reading(_PART_WORDS.get(cursor.word(at), "night"), at, at + 1)


def time_in_part(time: TimeReading, part: TimeReading) -> TimeReading:
    """A time beside a part of the day, in that half: `tonight at 8` is 20:00, `Montag früh um 6` is 06:00."""
    if not time.open_half or time.end is not None:
        return time
    hour = time.start.hour % 12 + (0 if part.start < dt.time(12) else 12)
    return replace(time, start=time.start.replace(hour=hour), assumed="")


_TO_WORDS = frozenset(("to", "and", "until", "till", "bis", "und", "a", "et", "y", "hasta", "-", "–", "—"))


def _read_range(cursor: Cursor, first: int, at: int) -> TimeReading | None:
    at = cursor.skip(at, "las", "la")
    begin = _read_hour(cursor, at, words=False)
    if begin is None or cursor.word(begin.after) not in _TO_WORDS:
        return None
    opened = first < at
    if not opened and begin.afternoon is None and not begin.has_unit and cursor.word(begin.after) not in "-–—":
        return None
    after = cursor.skip(begin.after + 1, "las", "la")
    finish = _read_hour(cursor, after, words=False)
    if finish is None:
        return None
    said = finish.afternoon is not None or finish.has_unit or begin.has_unit or begin.afternoon is not None
    if not said and not (opened and cursor.word(first) in ("from", "between", "von", "entre", "zwischen")):
        return None
    if not said and (cursor.word(finish.after) in MONTHS or not _may_follow_hour(cursor, finish.after)):
        return None
    if not said and cursor.word(finish.after) in ("of", "de"):
        return None
    end = _resolve(finish, finish.afternoon)
    if end is None:
        return None
    half = begin.afternoon
    if half is None and finish.afternoon is not None and begin.hour <= 12:
        # "from 3 to 4 pm" is one afternoon; "from 11 to 1 pm" begins before noon.
        half = finish.afternoon if begin.hour % 12 <= finish.hour % 12 else not finish.afternoon
    start = _resolve(begin, half)
    if start is None:
        return None
    if half is None and finish.exact and not begin.exact and start[0] != dt.time(begin.hour % 24, begin.minute):
        start = dt.time(begin.hour, begin.minute), ""
    if half is None and finish.afternoon is None and end[0] < start[0] and finish.hour <= 12 and not finish.exact:
        end = dt.time(finish.hour % 12 + 12, finish.minute), f"{finish.hour % 12 + 12:02}:00: in the afternoon"
    assumed = "; ".join(dict.fromkeys(part for part in (start[1], end[1]) if part))
    return replace(TimeReading(first, finish.after, start[0]), end=end[0], assumed=assumed)
