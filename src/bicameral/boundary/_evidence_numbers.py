"""Numbers as texts write them: separators of all lands, thousands and millions, per cent, and currencies."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal

MAX_DIGITS = 40

_PLAIN = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_GROUPED = re.compile(r"[0-9]{1,3}(?:[ '’_][0-9]{2,3})+(?:[.,][0-9]+)?(?![0-9])")
_TIMES = re.compile(
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
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")

_SPELLINGS = (
    "EUR € euro, USD $ dollar us$, GBP £ pound sterling, JPY ¥ yen, CNY ¥ yuan renminbi rmb, CHF franken franc sfr, "
    "INR ₹ rupee rs, CAD $ dollar c$, AUD $ dollar a$, NZD $ dollar nz$, HKD $ dollar hk$, SGD $ dollar s$, "
    "MXN $ peso, ARS $ peso, CLP $ peso, COP $ peso, BRL r$ real reais, SEK kr krona kronor, NOK kr krone kroner, "
    "DKK kr krone kroner, ISK kr króna, PLN zł zloty złoty, CZK kč koruna, HUF ft forint, RON leu lei, BGN лв lev, "
    "RUB ₽ руб rouble ruble, UAH ₴ грн hryvnia, TRY ₺ lira tl, ILS ₪ shekel, KRW ₩ won, THB ฿ baht, VND ₫ đồng dong, "
    "PHP ₱ peso, IDR rp rupiah, MYR rm ringgit, ZAR rand, NGN ₦ naira, KES ksh shilling, EGP pound, SAR riyal, "
    "AED dirham, TWD nt$ $ dollar"
)
_BY_SPELLING: dict[str, set[str]] = {}
for _entry in _SPELLINGS.split(", "):
    _code, *_ways = _entry.split()
    for _way in _ways:
        _BY_SPELLING.setdefault(_way, set()).add(_code)
_CODE = re.compile(r"(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])")


def numbers_in(text: str) -> frozenset[Decimal]:
    """Every number that a text names, read in each way that it can be meant."""
    if not text.isascii():
        text = "".join(map(_digit, text))
    found: set[Decimal] = {Decimal(_WORDS.index(word)) for word in _WORD.findall(text)}
    for pattern in (_PLAIN, _GROUPED):
        for written in pattern.finditer(text):
            times = _TIMES.match(text, written.end())
            for number in _readings(written[0]):
                found.add(number)
                if times and times.lastgroup:
                    found.add(number * _FACTORS[times.lastgroup])
    return frozenset(found)


def _digit(character: str) -> str:
    if character.isascii() or not character.isdecimal():
        return character
    return str(unicodedata.decimal(character))


def _readings(written: str) -> Iterator[Decimal]:
    joined = re.sub("[ '’_]", "", written)
    yield from _meant(joined)
    # A list without blanks, a date, a version, the address of a computer.
    for separator in ".,":
        if joined.count(separator) > 1:
            for part in joined.split(separator):
                yield from _meant(part)


def _meant(number: str) -> Iterator[Decimal]:
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


def currencies_in(text: str) -> frozenset[str]:
    """The currencies that a text names by code, sign or name."""
    found = set(_CODE.findall(text))
    folded = text.casefold()
    for way, codes in _BY_SPELLING.items():
        if way in folded and (not way.isalpha() or re.search(rf"(?<![^\W\d_]){way}(?:s|es|n|y)?(?![^\W\d_])", folded)):
            found |= codes
    return frozenset(found)
