"""Whether a value stands in the text that it was read from, in any usual spelling: words, addresses, numbers, dates.

A model that copies cannot make things up: an address, an account or an amount that it gives must be there. The text is
untrusted, so this finds mistakes and narrows what a model under somebody else's control can say; it makes nothing
trusted. A date without a year is there in every year; where a text speaks of `tomorrow` or `in three days`, any date
may be right; where it names a weekday, any such day.

Whoever wrote the text also decides how long a search takes. So the text is gone through once for each kind of value,
whatever the values are, and every lookup after that is counted. A text that grows too much when it is normalised, or a
search that takes too many lookups, is exhausted: a value that was not found then is rejected for that reason.

Imported when the first text is read: its patterns take time to compile.
"""

from __future__ import annotations

import calendar
import datetime as dt
import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from bicameral.display import INVISIBLE, JOINERS
from bicameral.text import MONTH_NUMBERS, WEEKDAY_NUMBERS

MAX_DIGITS = 40

_PLAIN_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_GROUPED_NUMBER = re.compile(r"[0-9]{1,3}(?:[ '’_][0-9]{2,3})+(?:[.,][0-9]+)?(?![0-9])")
_MULTIPLIER = re.compile(
    r"[ -]?(?:(?P<k>k\b|thousand|tsd|tausend|mille?\b)|(?P<m>m\b|mn\b|mio|million|millón|milion|млн)"
    r"|(?P<b>bn\b|b\b|billion|mrd|milliard|miliard|млрд)|(?P<l>lakh)|(?P<c>crore)|(?P<p>%|per ?cent|prozent|pour cent))"
)
_FACTORS = {
    "k": Decimal(1_000),
    "m": Decimal(1_000_000),
    "b": Decimal(1_000_000_000),
    "l": Decimal(100_000),
    "c": Decimal(10_000_000),
    "p": Decimal("0.01"),
}
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b")

_CURRENCY_SPELLINGS = (
    "EUR € euro, USD $ dollar us$, GBP £ pound sterling, JPY ¥ yen, CNY ¥ yuan renminbi rmb, CHF franken franc sfr, "
    "INR ₹ rupee rs, CAD $ dollar c$, AUD $ dollar a$, NZD $ dollar nz$, HKD $ dollar hk$, SGD $ dollar s$, "
    "MXN $ peso, ARS $ peso, CLP $ peso, COP $ peso, BRL r$ real reais, SEK kr krona kronor, NOK kr krone kroner, "
    "DKK kr krone kroner, ISK kr króna, PLN zł zloty złoty, CZK kč koruna, HUF ft forint, RON leu lei, BGN лв lev, "
    "RUB ₽ руб rouble ruble, UAH ₴ грн hryvnia, TRY ₺ lira tl, ILS ₪ shekel, KRW ₩ won, THB ฿ baht, VND ₫ đồng dong, "
    "PHP ₱ peso, IDR rp rupiah, MYR rm ringgit, ZAR rand, NGN ₦ naira, KES ksh shilling, EGP pound, SAR riyal, "
    "AED dirham, TWD nt$ $ dollar"
)
_CURRENCIES_BY_SPELLING: dict[str, set[str]] = {}
for _entry in _CURRENCY_SPELLINGS.split(", "):
    _code, *_ways = _entry.split()
    for _way in _ways:
        _CURRENCIES_BY_SPELLING.setdefault(_way, set()).add(_code)
_CURRENCY_CODE = re.compile(r"(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])")


def find_numbers(text: str) -> frozenset[Decimal]:
    """Every number that a text names, read in each way that it can be meant."""
    if not text.isascii():
        text = "".join(map(_ascii_digit, text))
    found: set[Decimal] = {Decimal(_NUMBER_WORDS.index(word)) for word in _NUMBER_WORD.findall(text)}
    for pattern in (_PLAIN_NUMBER, _GROUPED_NUMBER):
        for written in pattern.finditer(text):
            times = _MULTIPLIER.match(text, written.end())
            for number in _possible_values(written[0]):
                found.add(number)
                if times and times.lastgroup:
                    found.add(number * _FACTORS[times.lastgroup])
    return frozenset(found)


def _ascii_digit(character: str) -> str:
    if character.isascii() or not character.isdecimal():
        return character
    return str(unicodedata.decimal(character))


def _possible_values(written: str) -> Iterator[Decimal]:
    joined = re.sub("[ '’_]", "", written)
    yield from _parse_separators(joined)
    # A list without blanks, a date, a version, the address of a computer.
    for separator in ".,":
        if joined.count(separator) > 1:
            for part in joined.split(separator):
                yield from _parse_separators(part)


def _parse_separators(number: str) -> Iterator[Decimal]:
    if not number or len(number) > MAX_DIGITS:
        return
    parts = re.split("[.,]", number)
    separators = [character for character in number if character in ".,"]
    whole = "".join(parts)
    if not separators:
        yield Decimal(whole)
        return
    # The last separator comes before the fraction, unless it groups thousands like those before it.
    if len(set(separators)) == 2 or len(separators) == 1:
        yield Decimal(f"{''.join(parts[:-1])}.{parts[-1]}")
    if len(set(separators)) == 1 and len(parts[-1]) == 3 and all(len(part) in (2, 3) for part in parts[1:]):
        yield Decimal(whole)


def find_currencies(text: str) -> frozenset[str]:
    """The currencies that a text names by code, sign or name."""
    found = set(_CURRENCY_CODE.findall(text))
    folded = text.casefold()
    for way, codes in _CURRENCIES_BY_SPELLING.items():
        if way in folded and (not way.isalpha() or re.search(rf"(?<![^\W\d_]){way}(?:s|es|n|y)?(?![^\W\d_])", folded)):
            found |= codes
    return frozenset(found)


MONTH_WINDOW = 14
"""How far from the name of a month its day and its year may stand."""

_MONTH_NAME = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})(?![^\W\d_])")

_RELATIVE_DATE = re.compile(
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
_DAY_AND_MONTH = re.compile(r"(?<![\d.,/-])(\d{1,2})[./月]\s?(\d{1,2})(?![\d])(?![.,/-]\d)")
_MONTH_YEAR = re.compile(r"(?<![\d./-])(?:(\d{1,2})[-./](\d{4})|(\d{4})[-./](\d{1,2}))(?![\d./-])")
_DAY_NUMBER = re.compile(r"(?<!\d)\d{1,2}(?!\d)")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
_YEAR_AFTER = re.compile(r"\W{0,3}(?:\d{1,2}(?!\d)(?:st|nd|rd|th)?\W{0,3})?(?:of |de |del )?((?:19|20)\d{2})(?!\d)")
_YEAR_BEFORE = re.compile(r"(?<!\d)((?:19|20)\d{2})\W{0,3}(?:\d{1,2}\W{0,3})?$")
_CLOCK = re.compile(r"(?<!\d)(\d{1,2})\s?[:.h時点]\s?(\d{2})(?!\d)(?::\d{2})?\s?([ap])?(?:\.?m\b)?")
_HOUR = re.compile(r"(?<![\d.,:])(\d{1,2})\s?(?:([ap])\.?m\b|uhr|h\b|o'clock|時|点)")
_LOOSE_TIME = re.compile(
    r"\b(?:noon|midday|midnight|half|quarter|past|mittags?|mitternacht|halb|viertel|midi|minuit)\b"
)

DayKey = tuple[int | None, int, int]
"""A year if one is said, a month and a day."""


class TextDates:
    """The dates and times of a text (in small letters). It is gone through once, however many are looked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _days(self) -> frozenset[DayKey]:
        return frozenset(self._numeric_days()) | frozenset(self._named_days())

    @cached_property
    def _ints(self) -> frozenset[int]:
        return frozenset(map(int, _DAY_NUMBER.findall(self._text)))

    @cached_property
    def _years(self) -> frozenset[int]:
        return frozenset(map(int, _YEAR.findall(self._text)))

    @cached_property
    def _month_names(self) -> frozenset[int]:
        return frozenset(MONTH_NUMBERS[name] for name in _MONTH_NAME.findall(self._text))

    @cached_property
    def _has_relative_date(self) -> bool:
        return _RELATIVE_DATE.search(self._text) is not None

    @cached_property
    def _weekdays(self) -> frozenset[int]:
        words = set(re.findall(r"[^\W\d_]+", self._text))
        return frozenset(number for name, number in WEEKDAY_NUMBERS.items() if name in words)

    @cached_property
    def _times(self) -> frozenset[tuple[int, int]]:
        return frozenset(self._clock_times())

    @cached_property
    def _pairs(self) -> frozenset[tuple[int, int]]:
        return frozenset((month, day) for _, month, day in self._days)

    @cached_property
    def _has_loose_time(self) -> bool:
        return _LOOSE_TIME.search(self._text) is not None

    @cached_property
    def _ordinals(self) -> frozenset[int]:
        return frozenset(number for number, name in enumerate(_ORDINALS, 1) if name in self._text)

    @cached_property
    def _months_of_years(self) -> frozenset[tuple[int, int]]:
        found = _MONTH_YEAR.findall(self._text)
        return frozenset((int(each[0] or each[3]), int(each[1] or each[2])) for each in found)

    def has_date(self, day: dt.date) -> bool:
        """Whether the text names this day, or could mean it."""
        pair = (day.month, day.day)
        if (day.year, *pair) in self._days or (None, *pair) in self._days or self._has_relative_date:
            return True
        if day.weekday() in self._weekdays and pair not in self._pairs:
            return True
        return self._is_bare_month_or_ordinal(day) or self._is_plausible_unread(day)

    def has_time(self, at: dt.time) -> bool:
        """Whether the text names this time of day, by either clock."""
        if (at.hour, at.minute) in self._times or self._has_loose_time:
            return True
        # `from 9 to 17`
        return at.minute == 0 and bool({at.hour, at.hour % 12 or 12} & self._ints)

    def has_datetime(self, moment: dt.datetime) -> bool:
        """Whether the text names this day and this time; the start of a day stands for a day without a time."""
        start_of_day = moment.time() == dt.time() and not self._times
        return self.has_date(moment.date()) and (
            start_of_day or self._has_relative_date or self.has_time(moment.time())
        )

    def _is_bare_month_or_ordinal(self, day: dt.date) -> bool:
        """A month without a day stands for its first or last; a day may be written out: `the first of March`."""
        if day.month in self._month_names and day.day in self._ordinals:
            return True
        if day.day not in (1, calendar.monthrange(day.year, day.month)[1]):
            return False
        if {(day.year, day.month), (None, day.month)} & self._bare_months:
            return True
        return (day.month, day.year) in self._months_of_years

    def _is_plausible_unread(self, day: dt.date) -> bool:
        """Where no date can be read at all, the day and the year must at least be there."""
        unread = not self._days and not self._month_names
        return unread and day.day in self._ints and day.year in self._years

    def _numeric_days(self) -> Iterator[DayKey]:
        for pattern in (_YEAR_FIRST, _COMPACT):
            for year, month, day in pattern.findall(self._text):
                yield int(year), int(month), int(day)
        for first, second, year in _YEAR_LAST.findall(self._text):
            full = int(year) if len(year) == 4 else 2000 + int(year)
            yield full, int(second), int(first)
            yield full, int(first), int(second)
        for first, second in _DAY_AND_MONTH.findall(self._text):
            yield None, int(second), int(first)
            yield None, int(first), int(second)

    def _named_days(self) -> Iterator[DayKey]:
        for year, month, days in self._around_names:
            yield from ((year, month, day) for day in days)

    @cached_property
    def _bare_months(self) -> frozenset[tuple[int | None, int]]:
        return frozenset((year, month) for year, month, days in self._around_names if not days)

    @cached_property
    def _around_names(self) -> list[tuple[int | None, int, list[int]]]:
        """For each month that is named, its year if one is said, and the days that stand near it."""
        around: list[tuple[int | None, int, list[int]]] = []
        for found in _MONTH_NAME.finditer(self._text):
            start, end = max(0, found.start() - MONTH_WINDOW), found.end() + MONTH_WINDOW
            said = _YEAR_AFTER.match(self._text, found.end()) or _YEAR_BEFORE.search(self._text[start : found.start()])
            days = [int(day) for day in _DAY_NUMBER.findall(self._text[start:end])]
            around.append((int(said[1]) if said else None, MONTH_NUMBERS[found[0]], days))
        return around

    def _clock_times(self) -> Iterator[tuple[int, int]]:
        for hour, minute, half in _CLOCK.findall(self._text):
            yield from _clock_readings(int(hour), int(minute), half)
        for hour, half in _HOUR.findall(self._text):
            yield from _clock_readings(int(hour), 0, half)


def _clock_readings(hour: int, minute: int, half: str) -> Iterator[tuple[int, int]]:
    if half != "p":
        yield (0 if half == "a" and hour == 12 else hour), minute
    if half != "a" and hour <= 12:
        yield hour % 12 + 12, minute


_ESCAPED = re.compile(r"\\[nrt]")
_BLANKS = re.compile(r"\s+")
_INVISIBLE = re.compile(f"[{INVISIBLE}{JOINERS}\u200e\u200f]")
_EMAIL_EDGES = re.compile(r"(?<![\w.%+-])"), re.compile(r"(?![\w@-]|\.\w)")
_URL_EDGES = (
    re.compile(r"(?<=://)|(?<![\w.@/%=?&#:-])"),
    re.compile(r"/?(?![\w/?#&=%@~+*-])(?![.:!?'()]{1,3}[\w/?#&=%@~+*-])"),
)
_WORD_EDGES = re.compile(r"(?<!\w)"), re.compile(r"(?!\w)")
"""What must come before and after a value."""
_GROUP_SEPARATOR = re.compile(r"[\s().\-/\u2010-\u2015]{0,3}")
_ALPHANUMERIC = re.compile(r"[^\W_]+")

MAX_NORMALISED = 200_000
"""Normalised: one character of a stranger's can become eighteen."""
MAX_LOOKUPS = 500_000


class Evidence:
    """A text, as a witness of the values that were read from it.

    Example:
        >>> Evidence("Please pay 1.299,50 € by 15 April.").number(1299.5)
        True
    """

    def __init__(self, text: str) -> None:
        spellings = [text]
        if "\\" in text:
            spellings.append(_ESCAPED.sub(" ", text).replace("\\/", "/"))
        if "&" in text and ";" in text:
            spellings.append(html.unescape(text))
        text = unicodedata.normalize("NFKC", "\n".join(spellings))
        self._looks = MAX_LOOKUPS if len(text) <= MAX_NORMALISED else 0
        self.text = _INVISIBLE.sub("", text) if self._looks else ""

    @property
    def is_exhausted(self) -> bool:
        """Whether looking for a value took, or would take, more than it may; it is then not known to be there."""
        return self._looks <= 0

    @cached_property
    def _folded(self) -> str:
        return self.text.casefold()

    @cached_property
    def _without_trunk_zero(self) -> str:
        return f"{self._folded}\n{self._folded.replace('(0)', '')}" if "(0)" in self._folded else self._folded

    @cached_property
    def _words(self) -> str:
        return _BLANKS.sub(" ", self._folded)

    @cached_property
    def _numbers(self) -> frozenset[Decimal]:
        return find_numbers(self._folded)

    @cached_property
    def dates(self) -> TextDates:
        """The dates and times that it names."""
        return TextDates(self._folded)

    def has_words(self, value: str) -> bool:
        """Whether it says this, word for word."""
        return _BLANKS.sub(" ", unicodedata.normalize("NFKC", value).casefold()).strip() in self._words

    def has_token(self, value: str) -> bool:
        """Whether this stands in it as a word of its own, letter for letter."""
        return self._has_bounded(value, self.text, *_WORD_EDGES)

    def has_email(self, value: str) -> bool:
        """The same address, not as a part of a longer one."""
        return self._has_bounded(value.casefold(), self._folded, *_EMAIL_EDGES)

    def has_url(self, value: str) -> bool:
        """The same address, with or without `https://` and a slash at its end."""
        bare = re.sub(r"^https?://", "", value.casefold()).rstrip("/")
        return self._has_bounded(bare, self._folded, *_URL_EDGES)

    def _has_bounded(self, value: str, text: str, before: re.Pattern[str], after: re.Pattern[str]) -> bool:
        """Whether a value is in a text at a place where what is around it fits."""
        at = text.find(value)
        while at >= 0 and not self.is_exhausted:
            self._looks -= 1
            if before.match(text, at) and after.match(text, at + len(value)):
                return True
            at = text.find(value, at + 1)
        return False

    def has_grouped(self, value: str) -> bool:
        """Letters and digits in this order, however they are grouped."""
        wanted = "".join(filter(str.isalnum, value.casefold()))
        if not wanted or wanted not in self._groups.text:
            return False
        groups = self._groups
        for start in groups.starts:
            self._looks -= 1
            if self.is_exhausted:
                return False
            if groups.text.startswith(wanted, start) and start + len(wanted) in groups.ends:
                return True
        return False

    @cached_property
    def _groups(self) -> _GroupedText:
        return _GroupedText.of(self._without_trunk_zero)

    def has_phone(self, value: str) -> bool:
        """The same digits; `+` and `00` before a country are the same, and so is the zero in `+49 (0) 30`."""
        bare = re.sub(r"^(?:\+|00)", "", value)
        return self.has_grouped(bare) or self.has_grouped(f"00{bare}")

    def has_number(self, value: float) -> bool:
        """The same number, whatever its sign and its separators."""
        return abs(Decimal(repr(value))) in self._numbers

    def has_money(self, amount: float, currency: str) -> bool:
        """The number, and the currency by its code, sign or name."""
        return self.has_number(amount) and currency in self.currencies

    @cached_property
    def currencies(self) -> frozenset[str]:
        """The currencies that it names."""
        return find_currencies(self.text)


@dataclass(frozen=True, slots=True)
class _GroupedText:
    """The letters and digits of a text without what may stand between groups of them; a break is an empty line.

    `starts` are where a word begins, `ends` where one ends: what is written in groups begins and ends with a word.
    """

    text: str
    starts: tuple[int, ...]
    ends: frozenset[int]

    @classmethod
    def of(cls, text: str) -> _GroupedText:
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        length, before = 0, 0
        for word in _ALPHANUMERIC.finditer(text):
            begin, end = word.span()
            if not _GROUP_SEPARATOR.fullmatch(text, before, begin):
                parts.append("\n")
                length += 1
            if begin == 0 or not _is_word_character(text[begin - 1]):
                starts.append(length)
            parts.append(word[0])
            length += end - begin
            if end == len(text) or not _is_word_character(text[end]):
                ends.append(length)
            before = end
        return cls("".join(parts), tuple(starts), frozenset(ends))


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_"
