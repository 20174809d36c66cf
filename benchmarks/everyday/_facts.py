"""Typed facts, and whether a text claims them: in any usual notation of four languages, and no other of their kind.

A text is read once into `Claims` (days, times, numbers, words). A fact is claimed if its value is among them as a whole
token; every other value of the same kind is a claim against it. So a number that merely contains the right digits, and
the right number beside another one, are both wrong.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Amount:
    """A number: money, hours, litres, a count."""

    value: Decimal


@dataclass(frozen=True, slots=True)
class Code:
    """A number or string that names something and is not computed with; blanks and hyphens in it do not count."""

    value: str


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day."""

    value: date


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day."""

    value: time


@dataclass(frozen=True, slots=True)
class Name:
    """A person, place or thing; any of its spellings will do."""

    spellings: tuple[str, ...]

    @classmethod
    def of(cls, *spellings: str) -> Name:
        return cls(spellings)


@dataclass(frozen=True, slots=True)
class Gist:
    """Words that the text must have: one stem of every group."""

    groups: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, *groups: str) -> Gist:
        """Groups of alternatives, such as `Gist.of("tent", "bring|take")`."""
        return cls(tuple(tuple(group.split("|")) for group in groups))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two things that are compared: the right one is named alone, or said to be more than the other."""

    right: tuple[str, ...]
    wrong: tuple[str, ...]


Fact = Amount | Code | Day | Clock | Name | Gist | Choice

_MONTHS = (
    "january|jan|januar|jänner|janvier|janv|enero|ene",
    "february|feb|februar|février|fevrier|févr|febrero",
    "march|mar|märz|mars|marzo",
    "april|apr|avril|avr|abril|abr",
    "may|mai|mayo",
    "june|jun|juni|juin|junio",
    "july|jul|juli|juillet|juil|julio",
    "august|aug|août|aout|agosto|ago",
    "september|sep|sept|septembre|septiembre|setiembre",
    "october|oct|oktober|okt|octobre|octubre",
    "november|nov|novembre|noviembre",
    "december|dec|dezember|dez|décembre|déc|diciembre|dic",
)
_WEEKDAYS = (
    "monday|montag|lundi|lunes",
    "tuesday|dienstag|mardi|martes",
    "wednesday|mittwoch|mercredi|miercoles",
    "thursday|donnerstag|jeudi|jueves",
    "friday|freitag|vendredi|viernes",
    "saturday|samstag|sonnabend|samedi|sabado",
    "sunday|sonntag|dimanche|domingo",
)
_RELATIVE = {
    0: ("today", "heute", "aujourd'hui", "hoy"),
    1: ("tomorrow", "morgen", "demain", "mañana"),
    2: ("day after tomorrow", "übermorgen", "après-demain", "pasado mañana"),
    -1: ("yesterday", "gestern", "hier", "ayer"),
}


def fold(text: str) -> str:
    """Lower case without accents, blanks made single: how words are compared."""
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss").replace("’", "'").casefold())
    return " ".join("".join(char for char in plain if not unicodedata.combining(char)).split())


_MONTH = {fold(name): number for number, names in enumerate(_MONTHS, start=1) for name in names.split("|")}
_WEEKDAY = {fold(name): number for number, names in enumerate(_WEEKDAYS) for name in names.split("|")}
_MONTH_NAME = "|".join(sorted(_MONTH, key=len, reverse=True))
_ISO = re.compile(r"\b(?P<y>\d{4})[-/](?P<m>\d{1,2})[-/](?P<d>\d{1,2})(?!\d)")
_NUMERIC = re.compile(r"(?<![\d.,/-])(?P<a>\d{1,2})(?P<s>[./-])(?P<b>\d{1,2})(?P=s)(?P<y>\d{4}|\d{2})?(?![\d/])")
_DAY_FIRST = re.compile(
    rf"(?<![\d.,])(?P<d>\d{{1,2}})(?:\.|er|st|nd|rd|th)?\s*(?:of\s+|de\s+)?"
    rf"(?P<m>{_MONTH_NAME})\b\.?,?(?:\s*(?:de\s+|del\s+)?(?P<y>\d{{4}}))?"
)
_MONTH_FIRST = re.compile(
    rf"\b(?P<m>{_MONTH_NAME})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s*(?P<y>\d{{4}}))?"
)
_TIMES = (
    re.compile(r"(?<![\d.,])(?P<h>\d{1,2})(?::(?P<m>\d\d))?(?::\d\d)?\s*(?P<half>[ap])\.?\s?m\b\.?"),
    re.compile(
        r"(?<![\d.,])t?(?P<h>\d{1,2}):(?P<m>\d\d)(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?(?!\d)(?:\s*(?:uhr|h)\b)?"
    ),
    re.compile(r"(?<![\d.,])(?P<h>\d{1,2})\.(?P<m>\d\d)\s*(?:uhr|h)\b"),
    re.compile(r"(?<![\d.,])(?P<h>\d{1,2})\s*(?:h|uhr)\s*(?P<m>[0-5]\d)?(?![\w])"),
    re.compile(r"(?<![\d.,])(?P<h>\d{1,2})\s*o'clock"),
    re.compile(r"\ba\s+las?\s+(?P<h>\d{1,2})(?:[.:](?P<m>\d\d))?(?![\d.,]*\d)"),
)
_NUMBER = re.compile(r"(?<!\w)(?<!\d[.,])[-−]?\d+(?:[.,'’  ]\d+)*(?![\w])")
_MIXED = re.compile(r"(?<!\w)(?=\w*[a-z])(?:[a-z]*\d){3}\w*")
# What a citation or a count of rows says of the evidence is no claim about the world.
_EVIDENCE = re.compile(
    r"[\w./ -]*\.(?:md|txt|csv|json|ics|eml|vcf|log)\b(?::\d+(?:-\d+)?)?"
    r"|\b\d+\s+(?:of|von|de|sur)\s+\d+\s+(?:rows?|lines?|zeilen|lignes?|filas?|lineas?)\b"
)
_NEGATED = re.compile(r"(?:\bnot|\bnicht|\bpas|\bno es|\bisn't|\bkein\w*)\s+(?:\w+\s+){0,2}$")


@dataclass(frozen=True, slots=True)
class Claims:
    """What a text says, by kind."""

    folded: str
    days: frozenset[date | tuple[int, int]]
    """Days; those without a year are pairs of month and day."""
    near: frozenset[date]
    """Days said as today or tomorrow; they can support a claim and, as *morgen* is also a morning, never contradict."""
    weekdays: frozenset[int]
    times: frozenset[time]
    numbers: tuple[tuple[str, frozenset[Decimal]], ...]
    """Numbers that are no part of a day or time: as written, and what each can mean (1,234 is two numbers)."""
    mixed: tuple[str, ...]
    """Words with at least three digits, such as 4821B."""


def as_text(value: Any) -> str:
    """Any plain value as text in which facts can be looked for."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.isoformat(sep=" ", timespec="minutes")
        case date():
            return value.isoformat()
        case time():
            return value.isoformat(timespec="minutes")
        case timedelta():
            return f"{value.total_seconds() / 3600:g} hours"
        case float():
            return f"{value:.6f}".rstrip("0").rstrip(".")
        case Mapping():
            return "\n".join(f"{key}: {as_text(each)}" for key, each in cast("Mapping[str, Any]", value).items())
        case list() | tuple() | set() | frozenset():
            return "\n".join(as_text(each) for each in cast("Iterable[Any]", value))
        case _:
            return str(value)


def read_claims(text: str, today: date) -> Claims:
    """Read a text into its claims."""
    left = fold(text)
    folded = left
    left = _EVIDENCE.sub(" ; ", left)
    days: set[date | tuple[int, int]] = set()
    for pattern in (_ISO, _DAY_FIRST, _MONTH_FIRST, _NUMERIC):
        left = pattern.sub(lambda found: _take_day(found, days), left)
    times: set[time] = set()
    for pattern in _TIMES:
        left = pattern.sub(lambda found: _take_time(found, times), left)
    near = frozenset(
        today + timedelta(days=shift)
        for shift, words in _RELATIVE.items()
        if any(has_words(folded, fold(word)) for word in words)
    )
    weekdays = frozenset(number for name, number in _WEEKDAY.items() if re.search(rf"\b{name}s?\b", folded))
    numbers = tuple((found[0], readings(found[0])) for found in _NUMBER.finditer(left))
    return Claims(folded, frozenset(days), near, weekdays, frozenset(times), numbers, tuple(_MIXED.findall(left)))


def _take_day(found: re.Match[str], days: set[date | tuple[int, int]]) -> str:
    parts = found.groupdict()
    year = int(parts["y"]) if parts.get("y") else 0
    year += 2000 if 0 < year < 100 else 0
    if "a" in parts:
        first, second = int(parts["a"]), int(parts["b"])
        # 4/9/2026 is the fourth of September to most and the ninth of April to some: both are read.
        pairs = [(second, first), (first, second)] if parts["s"] == "/" else [(second, first)]
    else:
        month = parts["m"]
        pairs = [(int(month) if month.isdigit() else _MONTH[month], int(parts["d"]))]
    taken = False
    for month_number, day in pairs:
        try:
            days.add(date(year, month_number, day) if year else _month_and_day(month_number, day))
            taken = True
        except ValueError:
            continue
    return " ; " if taken else found[0]


def _month_and_day(month: int, day: int) -> tuple[int, int]:
    date(2024, month, day)
    return month, day


def _take_time(found: re.Match[str], times: set[time]) -> str:
    parts = found.groupdict()
    hour, half = int(parts["h"]), parts.get("half")
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    try:
        times.add(time(hour, int(parts.get("m") or 0)))
    except ValueError:
        return found[0]
    return " ; "


def readings(written: str) -> frozenset[Decimal]:
    """What a written number can mean: `1.234` is a thousand and more to some, and one and a bit to others."""
    text = re.sub(r"['’  ]", "", written.replace("−", "-"))
    marks = [char for char in text if char in ".,"]
    tries = {text.replace(",", "").replace(".", "")} if len(marks) > 1 and len(set(marks)) == 1 else set[str]()
    if len(set(marks)) == 2:
        last = marks[-1]
        tries.add(text.replace("," if last == "." else ".", "").replace(",", "."))
    elif len(marks) <= 1:
        tries.add(text.replace(",", "."))
        if marks and len(text.rsplit(marks[0], 1)[1]) == 3:
            tries.add(text.replace(marks[0], ""))
    found = set[Decimal]()
    for each in tries:
        try:
            found.add(Decimal(each))
        except InvalidOperation:
            continue
    return frozenset(found)


def has_words(folded: str, words: str) -> bool:
    """Whether the words stand in the text as whole tokens; both are folded."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", folded) is not None


def find_fault(
    text: str, facts: Sequence[Fact], today: date, *, others: Sequence[Fact] = (), also: Sequence[Fact] = ()
) -> str | None:
    """What is wrong with a text that should claim exactly these facts, or None.

    Args:
        text: The text.
        facts: What it must claim.
        today: The day on which it was said.
        others: Values that must not be claimed, such as older versions and other people.
        also: Values that may be claimed beside the facts, such as the end of an event.
    """
    if not text.strip():
        return "it says nothing"
    claims = read_claims(text, today)
    for fact in facts:
        if why := _missing(claims, fact, today):
            return why
    allowed = (*facts, *also)
    for kind, find in (
        (Day, _foreign_days),
        (Clock, _foreign_times),
        (Amount, _foreign_amounts),
        (Code, _foreign_codes),
    ):
        if any(isinstance(fact, kind) for fact in facts) and (why := find(claims, allowed)):
            return why
    for other in others:
        if other not in allowed and _missing(claims, other, today) is None and not _explains(other, allowed):
            return f"it also claims {other}"
    return None


def claims_fact(text: str, fact: Fact, today: date) -> bool:
    """Whether a text claims a fact, whatever else it claims."""
    return _missing(read_claims(text, today), fact, today) is None


def _explains(other: Fact, allowed: Sequence[Fact]) -> bool:
    """Whether a word of the right answer is the same as one of a wrong one, as with two people of one family."""
    if not isinstance(other, Name):
        return False
    right = [fold(spelling) for fact in allowed if isinstance(fact, Name) for spelling in fact.spellings]
    return any(has_words(spelling, fold(wrong)) for spelling in right for wrong in other.spellings)


def _missing(claims: Claims, fact: Fact, today: date) -> str | None:
    match fact:
        case Amount():
            found = any(fact.value in meant or -fact.value in meant for _, meant in claims.numbers)
        case Code():
            found = _has_code(claims.folded, fact.value)
        case Day():
            found = _has_day(claims, fact.value, today)
        case Clock():
            found = fact.value in claims.times
        case Name():
            found = any(_names(claims.folded, fold(spelling)) for spelling in fact.spellings)
        case Gist():
            lacking = [
                group for group in fact.groups if not any(_has_stem(claims.folded, fold(word)) for word in group)
            ]
            return f"it says nothing of {' or '.join(lacking[0])}" if lacking else None
        case Choice():
            found = _chooses(claims.folded, fact)
    return None if found else f"it does not claim {fact}"


_THAN = re.compile(r"\b(?:than|als|que|vs|versus|against|gegenuber|contre|frente a|over|before|vor|devant)\b")
_LESS = re.compile(r"\b(?:cheaper|less|fewer|lower|weniger|billiger|gunstiger|moins|menos|inferior)\b")


def _chooses(folded: str, choice: Choice) -> bool:
    """Whether the right one is chosen: named alone, or the greater side of one comparison."""
    right, wrong = (_first_place(folded, names) for names in (choice.right, choice.wrong))
    if right is None or wrong is None:
        return right is not None
    first, second = sorted((right, wrong))
    if not _THAN.search(folded[first:second]):
        return False
    is_less = _LESS.search(folded[first:second]) is not None
    return (right < wrong) != is_less


def _first_place(folded: str, names: Sequence[str]) -> int | None:
    found = (re.search(rf"(?<!\w){re.escape(fold(name))}(?!\w)", folded) for name in names)
    return min((each.start() for each in found if each), default=None)


def _has_stem(folded: str, stem: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(stem)}", folded) is not None


def _names(folded: str, name: str) -> bool:
    places = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", folded)
    return any(_NEGATED.search(folded[: place.start()]) is None for place in places)


def _has_day(claims: Claims, day: date, today: date) -> bool:
    if day in claims.days or (day.month, day.day) in claims.days:
        return True
    if claims.days:
        return False
    # A weekday alone names the next seven days and nothing else.
    return day in claims.near or (claims.weekdays == frozenset((day.weekday(),)) and 0 <= (day - today).days <= 7)


def _code(text: str) -> str:
    return re.sub(r"[\s\-.]", "", fold(text))


def _has_code(folded: str, code: str) -> bool:
    spelled = r"[\s\-.]?".join(re.escape(char) for char in _code(code))
    places = re.finditer(rf"(?<![\w-])(?<!\d[.,])(?<!\d ){spelled}(?![\w-])(?![.,]\d{{1,3}}(?!\d))(?! \d)", folded)
    return any(_NEGATED.search(folded[: place.start()]) is None for place in places)


def _foreign_days(claims: Claims, allowed: Sequence[Fact]) -> str | None:
    right = {fact.value for fact in allowed if isinstance(fact, Day)}
    pairs = {(day.month, day.day) for day in right}
    said = {day: (day.month, day.day) if isinstance(day, date) else day for day in claims.days}
    # A day in slashes is read in two ways and is foreign only if neither is right.
    good = {pair for day, pair in said.items() if day in right or (isinstance(day, tuple) and pair in pairs)}
    for day, (month, number) in said.items():
        if (month, number) not in good and (number, month) not in good:
            return f"it also claims the day {day}"
    weekdays = {day.weekday() for day in right}
    if claims.weekdays - weekdays:
        return "it claims another day of the week"
    return None


def _foreign_times(claims: Claims, allowed: Sequence[Fact]) -> str | None:
    foreign = claims.times - {fact.value for fact in allowed if isinstance(fact, Clock)}
    return f"it also claims the time {min(foreign)}" if foreign else None


def _foreign_amounts(claims: Claims, allowed: Sequence[Fact]) -> str | None:
    right = {abs(fact.value) for fact in allowed if isinstance(fact, Amount)}
    for written, meant in claims.numbers:
        if not right & {abs(each) for each in meant} and not _is_year(written):
            return f"it also claims the number {written}"
    return None


def _foreign_codes(claims: Claims, allowed: Sequence[Fact]) -> str | None:
    right = "".join(_code(fact.value) for fact in allowed if isinstance(fact, Code))
    for written, _ in claims.numbers:
        digits = re.sub(r"\D", "", written)
        if len(digits) >= 3 and digits not in right and not _is_year(written):
            return f"it also claims the number {written}"
    foreign = [each for each in claims.mixed if each not in right]
    return f"it also claims {foreign[0]}" if foreign else None


def _is_year(written: str) -> bool:
    return re.fullmatch(r"20[0-4]\d", written) is not None
