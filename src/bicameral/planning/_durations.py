"""Lengths of time that a request says in words, as minutes.

A plan that adds an event gives its length in minutes. The check of a plan needs to know which lengths the request has:
`an hour and a half` gives 90, `Dreiviertelstunde` 45, `30 minutes longer, it takes 60 so far` 90.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bicameral.text import lazy_pattern

_NUMBER_WORDS: dict[int, str] = {
    1: "a an one ein eine einer eines einem une un una",
    2: "two zwei deux dos",
    3: "three drei trois tres",
    4: "four vier quatre cuatro",
    5: "five funf fuenf cinq cinco",
    6: "six sechs seis",
    7: "seven sieben sept siete",
    8: "eight acht huit ocho",
    9: "nine neun neuf nueve",
    10: "ten zehn dix diez",
    11: "eleven elf onze once",
    12: "twelve zwolf zwoelf douze doce",
    15: "fifteen funfzehn quinze quince",
    20: "twenty zwanzig vingt veinte",
    30: "thirty dreissig dreisig trente treinta",
    40: "forty vierzig quarante cuarenta",
    50: "fifty funfzig cinquante cincuenta",
}
_SMALL_NUMBERS = {word: number for number, words in _NUMBER_WORDS.items() for word in words.split()}

_NUMBER = rf"(?:\d+(?:[.,]\d+)?|{'|'.join(sorted(_SMALL_NUMBERS, key=len, reverse=True))})"
_HOUR = r"(?:hours?|hrs?|h|stunden?|std|heures?|horas?)"
_MINUTE = r"(?:minutes?|mins?|minuten|minutos?)"
_HALF = r"(?:and a half|einhalb|und eine halbe|et demie?|y media)"
_PATTERNS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (lazy_pattern(rf"\b(?:{pattern})\b"), minutes)
    for pattern, minutes in (
        (
            r"three[- ]quarters of an hour|dreiviertelstunde|drei viertelstunden|trois quarts d'heure|"
            r"tres cuartos de hora",
            45,
        ),
        (r"(?:anderthalb|eineinhalb) stunden|anderthalbstundig\w*|hour and a half|heure et demie|hora y media", 90),
        (r"half an hour|halbe stunde|halben stunde|halbstunde|halbstundig\w*|demi-heure|demi heure|media hora", 30),
        (r"quarter of an hour|viertelstunde|quart d'heure|cuarto de hora", 15),
    )
)
_WITH_HALF = lazy_pattern(rf"\b({_NUMBER})\s*(?:{_HALF}\s*{_HOUR}|{_HOUR}\s+{_HALF})\b")
_HOURS = lazy_pattern(rf"\b({_NUMBER})\s*{_HOUR}(?:\s*(?:and|und|et|y)?\s*({_NUMBER})\s*(?:{_MINUTE})?)?\b")
_MINUTES = lazy_pattern(rf"\b({_NUMBER})\s*{_MINUTE}\b")
_LONGER = lazy_pattern(
    r"\b(?:longer|extend|prolong|langer|verlanger\w*|rallong\w*|de plus|alarg\w*|mas larg\w*|more)\b"
)
_SHORTER = lazy_pattern(r"\b(?:shorter|shorten|kurzer|verkurz\w*|raccourci\w*|acort\w*|mas cort\w*|less)\b")

_TIME = r"(\d{1,2})(?:\s?[:.h]\s?(\d\d))?\s*(?:uhr|h\b|heures?|horas?|o'clock)?\s*([ap]\.?m\b\.?)?"
_FROM_TO = lazy_pattern(
    rf"(\b(?:from|von|de|des|between|zwischen|entre)\s+(?:las?\s+)?)?(?<![\d.,:]){_TIME}\s*(?:-|–|\b(?:to|until|till|and|bis|und|a|au|et|jusqu'a|hasta|y)\b)\s*(?:las?\s+)?{_TIME}"
    r"(?![\d.,:]*\d)"
)
_CLOCK = lazy_pattern(r"\d:\d\d|\d\s*h|uhr|o'clock|\d\s*[ap]\.?m|heure|hora")

_DAY_UNITS = {
    1: r"(?:days?|tage?n?|jours?|dias?)",
    7: r"(?:weeks?|wochen?|semaines?|semanas?)",
}
_LATER = (
    r"(?:later|after|earlier|before|spater|danach|fruher|davor|plus\s+tard|plus\s+tot|apres|avant|despues|antes|"
    r"mas\s+tarde)"
)
_NUMBERS_OF_DAYS = rf"{_NUMBER}(?:\s*(?:,|and|und|et|y)\s*{_NUMBER})*"


def _value(text: str) -> float:
    known = _SMALL_NUMBERS.get(text)
    return float(text.replace(",", ".")) if known is None else float(known)


def minutes_between(folded: str) -> frozenset[float]:
    """The minutes between each two times of day of the form `from 14:00 to 15:30`, in a request as above.

    Example:
        >>> sorted(minutes_between("freitag von 20 bis 22 uhr, samstag 9:15-10:00"))
        [45.0, 120.0]
    """
    found: set[float] = set()
    for match in _FROM_TO.finditer(folded):
        begun, hour, minute, half, last_hour, last_minute, last_half = match.groups()
        if not begun and not _CLOCK.search(match[0]):
            continue  # rows 3 to 5
        start, end = (60 * int(h) + int(m or 0) for h, m in ((hour, minute), (last_hour, last_minute)))
        # `from 2 to 4 pm` and `2 pm to 4`: what is said once holds for both, so that it changes no length.
        if (half or "")[:1] != (last_half or "")[:1] and half and last_half:
            end += 720
        length = end - start
        if max(start, end) < 2 * 1440 and max(int(hour), int(last_hour)) <= 24:
            found.add(float(length if length > 0 else length + (720 if max(start, end) <= 720 else 1440)))
    return frozenset(each for each in found if each > 0)


def minutes_in_words(folded: str) -> frozenset[float]:
    """The minutes of every length of time in a request, which is given in small letters without accents.

    Example:
        >>> sorted(minutes_in_words("it takes an hour and a half"))
        [90.0]
        >>> sorted(minutes_in_words("make it half an hour longer, it takes 60 minutes so far"))
        [30.0, 60.0, 90.0]
    """
    found: set[float] = set()
    text = folded

    def take(pattern: re.Pattern[str], read: Callable[[re.Match[str]], float]) -> None:
        # What was read is blanked: the hour in `half an hour` is no hour.
        nonlocal text
        found.update(read(match) for match in pattern.finditer(text))
        text = pattern.sub(lambda match: "#" * len(match[0]), text)

    take(_WITH_HALF, lambda match: 60 * _value(match[1]) + 30)
    for pattern, minutes in _PATTERNS:
        take(pattern, lambda _, minutes=minutes: float(minutes))
    take(_HOURS, lambda match: 60 * _value(match[1]) + (_value(match[2]) if match[2] else 0))
    take(_MINUTES, lambda match: _value(match[1]))
    # A change of a length that is said gives a new one; the change of an unknown length gives none.
    given = tuple(found)
    if _LONGER.search(folded):
        found |= {one + other for number, one in enumerate(given) for other in given[number + 1 :]}
    if _SHORTER.search(folded):
        found |= {abs(one - other) for number, one in enumerate(given) for other in given[number + 1 :]}
    return frozenset(found)


def days_between(folded: str) -> frozenset[int]:
    """The distances in days from a day that a request names: `7 and 14 days later`, `a week after`, `+7 days`.

    A number of days alone is none (`the last 7 days`, `a trip of 7 days`).

    Example:
        >>> sorted(days_between("on friday, then 7 and 14 days later"))
        [7, 14]
        >>> sorted(days_between("for 7 days from friday"))
        []
    """
    found: set[int] = set()
    for days, unit in _DAY_UNITS.items():
        for match in re.finditer(rf"\b({_NUMBERS_OF_DAYS})\s*{unit}\s+{_LATER}\b|\+\s*({_NUMBER})\s*{unit}\b", folded):
            said = re.findall(rf"\b{_NUMBER}\b", match[1] or match[2])
            found |= {days * int(_value(each)) for each in said}
    return frozenset(found)
