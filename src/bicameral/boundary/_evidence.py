"""Whether a value occurs in the text that it was read from, in any usual spelling: words, addresses, numbers, dates.

A model that has to copy cannot invent: an address, account or amount that it returns must occur in the text. The text
is untrusted, so this finds mistakes and limits what a compromised model can return; it makes nothing trusted. A date
without a year matches every year. If the text says `tomorrow` or `in three days`, any date matches; if it names a
weekday, any such day.

The author of the text also controls how long a search takes. So the text is scanned once for each kind of value,
however many values there are, and every lookup after that is counted. If normalisation makes the text too long, or a
search takes too many lookups, the evidence is exhausted: a value that was not found by then is rejected as such.

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
"""Longer numbers are not parsed."""

_PLAIN_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_GROUPED_NUMBER = re.compile(r"[0-9]{1,3}(?:[ '’_][0-9]{2,3})+(?:[.,][0-9]+)?(?![0-9])")
_MULTIPLIER = re.compile(
    r"[ -]?(?:(?P<k>k\b|thousand|tsd|tausend|mille?\b)|(?P<m>m\b|mn\b|mio|million|millón|milion|млн)"
    r"|(?P<b>bn\b|b\b|billion|mrd|milliard|miliard|млрд)|(?P<l>lakh)|(?P<c>crore)|(?P<p>%|per ?cent|prozent|pour cent))"
)
_FACTORS = {key: Decimal(10) ** power for key, power in {"k": 3, "m": 6, "b": 9, "l": 5, "c": 7, "p": -2}.items()}
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
    """Every number in a text, in each way that it can be read."""
    if not text.isascii():
        text = "".join(map(_ascii_digit, text))
    numbers: set[Decimal] = {Decimal(_NUMBER_WORDS.index(word)) for word in _NUMBER_WORD.findall(text)}
    for pattern in (_PLAIN_NUMBER, _GROUPED_NUMBER):
        for match in pattern.finditer(text):
            multiplier = _MULTIPLIER.match(text, match.end())
            for number in _possible_values(match[0]):
                numbers.add(number)
                if multiplier and multiplier.lastgroup:
                    numbers.add(number * _FACTORS[multiplier.lastgroup])
    return frozenset(numbers)


def _ascii_digit(character: str) -> str:
    if character.isascii() or not character.isdecimal():
        return character
    return str(unicodedata.decimal(character))


def _possible_values(written: str) -> Iterator[Decimal]:
    """The values that a written number can have: its separators may group digits, or start the fraction."""
    joined = re.sub("[ '’_]", "", written)
    yield from _parse_separators(joined)
    # Also the parts: a list without spaces, a date, a version or an IP address.
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
    # The last separator starts the fraction, unless it groups thousands like the ones before it.
    if len(set(separators)) == 2 or len(separators) == 1:
        yield Decimal(f"{''.join(parts[:-1])}.{parts[-1]}")
    if len(set(separators)) == 1 and len(parts[-1]) == 3 and all(len(part) in (2, 3) for part in parts[1:]):
        yield Decimal(whole)


def find_currencies(text: str) -> frozenset[str]:
    """The currencies that a text names by code, sign or name."""
    currencies = set(_CURRENCY_CODE.findall(text))
    folded = text.casefold()
    for name, codes in _CURRENCIES_BY_SPELLING.items():
        if name in folded and (
            not name.isalpha() or re.search(rf"(?<![^\W\d_]){name}(?:s|es|n|y)?(?![^\W\d_])", folded)
        ):
            currencies |= codes
    return frozenset(currencies)


MONTH_WINDOW = 14
"""Characters around the name of a month in which its day and year are searched."""

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
"""The year, if one is given, the month and the day."""


class TextDates:
    """The dates and times of a text in small letters; it is scanned once, however many values are looked up."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _days(self) -> frozenset[DayKey]:
        named = ((year, month, day) for year, month, days in self._around_names for day in days)
        return frozenset((*self._numeric_days(), *named))

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
        matches = _MONTH_YEAR.findall(self._text)
        return frozenset((int(match[0] or match[3]), int(match[1] or match[2])) for match in matches)

    @property
    def named_days(self) -> frozenset[DayKey]:
        """The days that are written with a day and a month."""
        return self._days

    def has_date(self, day: dt.date) -> bool:
        """Whether the text names this day, or could mean it."""
        pair = (day.month, day.day)
        if (day.year, *pair) in self._days or (None, *pair) in self._days or self._has_relative_date:
            return True
        if day.weekday() in self._weekdays and pair not in self._pairs:
            return True
        return self._is_bare_month_or_ordinal(day) or self._is_plausible_unread(day)

    def has_time(self, at: dt.time) -> bool:
        """Whether the text names this time of day, on a 12 or 24 hour clock."""
        if (at.hour, at.minute) in self._times or self._has_loose_time:
            return True
        # `from 9 to 17`
        return at.minute == 0 and bool({at.hour, at.hour % 12 or 12} & self._ints)

    def has_datetime(self, moment: dt.datetime) -> bool:
        """Whether the text names this day and time; midnight matches a day without a time."""
        start_of_day = moment.time() == dt.time() and not self._times
        return self.has_date(moment.date()) and (
            start_of_day or self._has_relative_date or self.has_time(moment.time())
        )

    def _is_bare_month_or_ordinal(self, day: dt.date) -> bool:
        """Whether this is the first or last day of a month without a day, or spelled out: `the first of March`."""
        if day.month in self._month_names and day.day in self._ordinals:
            return True
        if day.day not in (1, calendar.monthrange(day.year, day.month)[1]):
            return False
        if {(day.year, day.month), (None, day.month)} & self._bare_months:
            return True
        return (day.month, day.year) in self._months_of_years

    def _is_plausible_unread(self, day: dt.date) -> bool:
        """Whether the numbers of the day and the year occur, in a text of which no date could be parsed."""
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

    @cached_property
    def _bare_months(self) -> frozenset[tuple[int | None, int]]:
        return frozenset((year, month) for year, month, days in self._around_names if not days)

    @cached_property
    def _around_names(self) -> list[tuple[int | None, int, list[int]]]:
        """For each month name: its year, if one is given, and the numbers near it that could be days."""
        around: list[tuple[int | None, int, list[int]]] = []
        for match in _MONTH_NAME.finditer(self._text):
            start, end = max(0, match.start() - MONTH_WINDOW), match.end() + MONTH_WINDOW
            year = _YEAR_AFTER.match(self._text, match.end()) or _YEAR_BEFORE.search(self._text[start : match.start()])
            days = [int(day) for day in _DAY_NUMBER.findall(self._text[start:end])]
            around.append((int(year[1]) if year else None, MONTH_NUMBERS[match[0]], days))
        return around

    @cached_property
    def _times(self) -> frozenset[tuple[int, int]]:
        written = _CLOCK.findall(self._text) + [(hour, "0", half) for hour, half in _HOUR.findall(self._text)]
        return frozenset(
            time for hour, minute, half in written for time in _clock_readings(int(hour), int(minute), half)
        )


def _clock_readings(hour: int, minute: int, half: str) -> Iterator[tuple[int, int]]:
    """The times that an hour can mean; `half` is "a", "p", or empty where both are possible."""
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
_PHRASE_EDGES = re.compile(r"(?<!\w)(?<!\d[.,:])|(?=\W)"), re.compile(r"(?!\w)(?![.,:]\d)|(?<=\W)")
"""What must precede and follow a value, so that it is not part of a longer one."""
_GROUP_SEPARATOR = re.compile(r"[\s().\-/\u2010-\u2015]{0,3}")
_ALPHANUMERIC = re.compile(r"[^\W_]+")

MAX_NORMALISED = 200_000
"""Characters after normalisation: NFKC can turn one character into eighteen."""
MAX_LOOKUPS = 500_000
"""Lookups in one text, over all values."""


class Evidence:
    """A source text, in which values are looked up.

    Example:
        >>> Evidence("Please pay 1.299,50 € by 15 April.").has_number(1299.5)
        True
    """

    def __init__(self, text: str) -> None:
        # A source is often JSON or HTML; a value may occur with its escapes or without them.
        spellings = [text]
        if "\\" in text:
            spellings.append(_ESCAPED.sub(" ", text).replace("\\/", "/"))
        if "&" in text and ";" in text:
            spellings.append(html.unescape(text))
        text = unicodedata.normalize("NFKC", "\n".join(spellings))
        # The text may grow a lot, so one that is too long is exhausted from the start.
        self._lookups = MAX_LOOKUPS if len(text) <= MAX_NORMALISED else 0
        self.text = _INVISIBLE.sub("", text) if self._lookups else ""

    @property
    def is_exhausted(self) -> bool:
        """Whether the limit of lookups is reached; a value that was not found is then not known to be missing."""
        return self._lookups <= 0

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
        """The dates and times that the text names."""
        return TextDates(self._folded)

    def has_words(self, value: str) -> bool:
        """Whether the text contains this, word for word."""
        return _BLANKS.sub(" ", unicodedata.normalize("NFKC", value).casefold()).strip() in self._words

    def has_phrase(self, value: str) -> bool:
        """Whether the text contains this word for word, and not as part of longer words or numbers."""
        wanted = _BLANKS.sub(" ", unicodedata.normalize("NFKC", value).casefold()).strip()
        return bool(wanted) and self._has_bounded(wanted, self._words, *_PHRASE_EDGES)

    def has_token(self, value: str) -> bool:
        """Whether this occurs as a word of its own, letter for letter."""
        return self._has_bounded(value, self.text, *_WORD_EDGES)

    def has_email(self, value: str) -> bool:
        """Whether this address occurs, and not as part of a longer one."""
        return self._has_bounded(value.casefold(), self._folded, *_EMAIL_EDGES)

    def has_url(self, value: str) -> bool:
        """Whether this URL occurs, with or without `https://` and a slash at its end."""
        bare = re.sub(r"^https?://", "", value.casefold()).rstrip("/")
        return self._has_bounded(bare, self._folded, *_URL_EDGES)

    def _has_bounded(self, value: str, text: str, before: re.Pattern[str], after: re.Pattern[str]) -> bool:
        """Whether a value occurs at a position where both edge patterns match."""
        position = text.find(value)
        while position >= 0 and not self.is_exhausted:
            self._lookups -= 1
            if before.match(text, position) and after.match(text, position + len(value)):
                return True
            position = text.find(value, position + 1)
        return False

    def has_grouped(self, value: str) -> bool:
        """Whether these letters and digits occur in this order, however they are grouped."""
        characters = "".join(filter(str.isalnum, value.casefold()))
        if not characters or characters not in self._groups.text:
            return False
        groups = self._groups
        for start in groups.starts:
            self._lookups -= 1
            if self.is_exhausted:
                return False
            if groups.text.startswith(characters, start) and start + len(characters) in groups.ends:
                return True
        return False

    @cached_property
    def _groups(self) -> _GroupedText:
        return _GroupedText.of(self._without_trunk_zero)

    def has_phone(self, value: str) -> bool:
        """Whether these digits occur; `+` and `00` before a country are equal, the zero in `+49 (0) 30` is optional."""
        bare = re.sub(r"^(?:\+|00)", "", value)
        return self.has_grouped(bare) or self.has_grouped(f"00{bare}")

    def has_number(self, value: float) -> bool:
        """Whether this number occurs, whatever its sign and its separators."""
        return abs(Decimal(repr(value))) in self._numbers

    def has_money(self, amount: float, currency: str) -> bool:
        """Whether the number occurs, and the currency by code, sign or name."""
        return self.has_number(amount) and currency in self.currencies

    @cached_property
    def currencies(self) -> frozenset[str]:
        """The currencies that the text names."""
        return find_currencies(self.text)


@dataclass(frozen=True, slots=True)
class _GroupedText:
    """The letters and digits of a text without the separators between groups; a longer gap becomes a line break.

    `starts` and `ends` are the positions at which words begin and end: a grouped value begins and ends with a word.
    """

    text: str
    starts: tuple[int, ...]
    ends: frozenset[int]

    @classmethod
    def of(cls, text: str) -> _GroupedText:
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        length, previous_end = 0, 0
        for word in _ALPHANUMERIC.finditer(text):
            begin, end = word.span()
            if not _GROUP_SEPARATOR.fullmatch(text, previous_end, begin):
                parts.append("\n")
                length += 1
            if begin == 0 or not _is_word_character(text[begin - 1]):
                starts.append(length)
            parts.append(word[0])
            length += end - begin
            if end == len(text) or not _is_word_character(text[end]):
                ends.append(length)
            previous_end = end
        return cls("".join(parts), tuple(starts), frozenset(ends))


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_"
