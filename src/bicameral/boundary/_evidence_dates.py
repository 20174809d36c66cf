"""Dates and times as texts write them, in several languages, and what may be reckoned from them.

A date without a year is there in every year. Where a text speaks of `tomorrow` or `in three days`, any date may be
right; where it names a weekday, any such day.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Iterator
from functools import cached_property

NEAR = 14
"""How far from the name of a month its day and its year may stand."""

_MONTHS = (
    "january januar janvier enero gennaio janeiro januari stycznia января jan ene gen",
    "february februar février fevrier febrero febbraio fevereiro februari lutego февраля feb fév fev",
    "march märz maerz mars marzo março marco maart marca марта mar mär",
    "april avril abril aprile kwietnia апреля apr avr abr",
    "may mai mayo maggio maio mei maja мая mag",
    "june juni juin junio giugno junho czerwca июня jun giu",
    "july juli juillet julio luglio julho lipca июля jul juil lug",
    "august août aout agosto augustus sierpnia августа aug ago",
    "september septembre septiembre settembre setembro września сентября sep sept set",
    "october oktober octobre octubre ottobre outubro października октября oct okt ott out",
    "november novembre noviembre novembro listopada ноября nov",
    "december dezember décembre decembre diciembre dicembre dezembro grudnia декабря dec dez déc dic",
)
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_NAMED = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(sorted(_MONTH_OF, key=len, reverse=True))})(?![^\W\d_])")

_WEEKDAYS = (
    "monday montag lundi lunes lunedì segunda maandag понедельник mon",
    "tuesday dienstag mardi martes martedì terça dinsdag вторник tue tues",
    "wednesday mittwoch mercredi miércoles mercoledì quarta woensdag среда среду wed",
    "thursday donnerstag jeudi jueves giovedì quinta donderdag четверг thu thurs",
    "friday freitag vendredi viernes venerdì sexta vrijdag пятница пятницу fri",
    "saturday samstag sonnabend samedi sábado sabato zaterdag суббота субботу sat",
    "sunday sonntag dimanche domingo domenica zondag воскресенье sun",
)
_WEEKDAY_OF = {name: number for number, names in enumerate(_WEEKDAYS) for name in names.split()}
_RELATIVE = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|heute|morgen|gestern|übermorgen|aujourd'hui|demain|hoy|mañana|ayer"
    r"|oggi|domani|ieri|hoje|amanhã|ontem|vandaag|gisteren|сегодня|завтра|вчера)\b|今[天日]|明[天日]|昨[天日]"
    r"|\b(?:in|within|after|next|this|coming|last|end of|every|nächste\w*|diese\w*|kommende\w*|innerhalb|binnen|nach"
    r"|ende|dans|sous|prochaine?|fin|en|dentro de|próxim[oa]|este|esta|fra|tra|entro|prossim[oa]|fine|em|over|через)"
    r"\W{1,2}(?:\w{1,12}\W{1,2}){0,2}?"
    r"(?:days?|weeks?|months?|years?|weekend|tage?n?|wochen?|monate?n?|monats|jahre?n?|jours?|semaines?|mois|días?|semanas?"
    r"|mes|meses|giorn[oi]|settiman[ae]|mes[ei]|dias?|mês|dagen|weken|maanden|дн(?:я|ей)|недел[июья])\b"
)
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth "
    "twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"
).split()

_YEAR_FIRST = re.compile(r"(?<!\d)(\d{4})[-./年]\s?(\d{1,2})[-./月]\s?(\d{1,2})(?!\d)")
_YEAR_LAST = re.compile(r"(?<!\d)(\d{1,2})[-./]\s?(\d{1,2})[-./]\s?(\d{4}|\d{2})(?!\d)")
_COMPACT = re.compile(r"(?<!\d)((?:19|20)\d{2})(\d{2})(\d{2})(?!\d)")
_SHORT = re.compile(r"(?<![\d.,/-])(\d{1,2})[./月]\s?(\d{1,2})(?![\d])(?![.,/-]\d)")
_MONTH_YEAR = re.compile(r"(?<![\d./-])(?:(\d{1,2})[-./](\d{4})|(\d{4})[-./](\d{1,2}))(?![\d./-])")
_SMALL = re.compile(r"(?<!\d)\d{1,2}(?!\d)")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
_YEAR_AFTER = re.compile(r"\W{0,3}(?:\d{1,2}(?!\d)(?:st|nd|rd|th)?\W{0,3})?(?:of |de |del )?((?:19|20)\d{2})(?!\d)")
_YEAR_BEFORE = re.compile(r"(?<!\d)((?:19|20)\d{2})\W{0,3}(?:\d{1,2}\W{0,3})?$")
_CLOCK = re.compile(r"(?<!\d)(\d{1,2})\s?[:.h時点]\s?(\d{2})(?!\d)(?::\d{2})?\s?([ap])?(?:\.?m\b)?")
_HOUR = re.compile(r"(?<![\d.,:])(\d{1,2})\s?(?:([ap])\.?m\b|uhr|h\b|o'clock|時|点)")
_LOOSE_TIME = re.compile(
    r"\b(?:noon|midday|midnight|half|quarter|past|mittags?|mitternacht|halb|viertel|midi|minuit)\b"
)

Day = tuple[int | None, int, int]
"""A year if one is said, a month and a day."""


class Moments:
    """The dates and times of a text (in small letters). It is gone through once, however many are looked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _days(self) -> frozenset[Day]:
        return frozenset(self._numeric()) | frozenset(self._named())

    @cached_property
    def _ints(self) -> frozenset[int]:
        return frozenset(map(int, _SMALL.findall(self._text)))

    @cached_property
    def _years(self) -> frozenset[int]:
        return frozenset(map(int, _YEAR.findall(self._text)))

    @cached_property
    def _month_names(self) -> frozenset[int]:
        return frozenset(_MONTH_OF[name] for name in _NAMED.findall(self._text))

    @cached_property
    def _relative(self) -> bool:
        return _RELATIVE.search(self._text) is not None

    @cached_property
    def _weekdays(self) -> frozenset[int]:
        words = set(re.findall(r"[^\W\d_]+", self._text))
        return frozenset(number for name, number in _WEEKDAY_OF.items() if name in words)

    @cached_property
    def _times(self) -> frozenset[tuple[int, int]]:
        return frozenset(self._clock())

    @cached_property
    def _pairs(self) -> frozenset[tuple[int, int]]:
        return frozenset((month, day) for _, month, day in self._days)

    @cached_property
    def _loose(self) -> bool:
        return _LOOSE_TIME.search(self._text) is not None

    @cached_property
    def _ordinals(self) -> frozenset[int]:
        return frozenset(number for number, name in enumerate(_ORDINALS, 1) if name in self._text)

    @cached_property
    def _months_of_years(self) -> frozenset[tuple[int, int]]:
        found = _MONTH_YEAR.findall(self._text)
        return frozenset((int(each[0] or each[3]), int(each[1] or each[2])) for each in found)

    def date(self, day: dt.date) -> bool:
        """Whether the text names this day, or could mean it."""
        pair = (day.month, day.day)
        if (day.year, *pair) in self._days or (None, *pair) in self._days or self._relative:
            return True
        if day.weekday() in self._weekdays and pair not in self._pairs:
            return True
        return self._of_the_month(day) or self._in_another_tongue(day)

    def time(self, at: dt.time) -> bool:
        """Whether the text names this time of day, by either clock."""
        if (at.hour, at.minute) in self._times or self._loose:
            return True
        # `from 9 to 17`
        return at.minute == 0 and bool({at.hour, at.hour % 12 or 12} & self._ints)

    def datetime(self, moment: dt.datetime) -> bool:
        """Whether the text names this day and this time; the start of a day stands for a day without a time."""
        start_of_day = moment.time() == dt.time() and not self._times
        return self.date(moment.date()) and (start_of_day or self._relative or self.time(moment.time()))

    def _of_the_month(self, day: dt.date) -> bool:
        """A month without a day stands for its first or last; a day may be written out: `the first of March`."""
        if day.month in self._month_names and day.day in self._ordinals:
            return True
        if day.day not in (1, calendar.monthrange(day.year, day.month)[1]):
            return False
        if {(day.year, day.month), (None, day.month)} & self._bare_months:
            return True
        return (day.month, day.year) in self._months_of_years

    def _in_another_tongue(self, day: dt.date) -> bool:
        """Where no date can be read at all, the day and the year must at least be there."""
        unread = not self._days and not self._month_names
        return unread and day.day in self._ints and day.year in self._years

    def _numeric(self) -> Iterator[Day]:
        for pattern in (_YEAR_FIRST, _COMPACT):
            for year, month, day in pattern.findall(self._text):
                yield int(year), int(month), int(day)
        for first, second, year in _YEAR_LAST.findall(self._text):
            full = int(year) if len(year) == 4 else 2000 + int(year)
            yield full, int(second), int(first)
            yield full, int(first), int(second)
        for first, second in _SHORT.findall(self._text):
            yield None, int(second), int(first)
            yield None, int(first), int(second)

    def _named(self) -> Iterator[Day]:
        for year, month, days in self._around_names:
            yield from ((year, month, day) for day in days)

    @cached_property
    def _bare_months(self) -> frozenset[tuple[int | None, int]]:
        return frozenset((year, month) for year, month, days in self._around_names if not days)

    @cached_property
    def _around_names(self) -> list[tuple[int | None, int, list[int]]]:
        """For each month that is named, its year if one is said, and the days that stand near it."""
        around: list[tuple[int | None, int, list[int]]] = []
        for found in _NAMED.finditer(self._text):
            start, end = max(0, found.start() - NEAR), found.end() + NEAR
            said = _YEAR_AFTER.match(self._text, found.end()) or _YEAR_BEFORE.search(self._text[start : found.start()])
            days = [int(day) for day in _SMALL.findall(self._text[start:end])]
            around.append((int(said[1]) if said else None, _MONTH_OF[found[0]], days))
        return around

    def _clock(self) -> Iterator[tuple[int, int]]:
        for hour, minute, half in _CLOCK.findall(self._text):
            yield from _by_half(int(hour), int(minute), half)
        for hour, half in _HOUR.findall(self._text):
            yield from _by_half(int(hour), 0, half)


def _by_half(hour: int, minute: int, half: str) -> Iterator[tuple[int, int]]:
    if half != "p":
        yield (0 if half == "a" and hour == 12 else hour), minute
    if half != "a" and hour <= 12:
        yield hour % 12 + 12, minute
