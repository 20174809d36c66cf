"""Grounds: whether a constant of a plan comes from the request or the settings.

A text counts if the request has its words, a number if it is said or follows from what is said (minutes of hours,
factors of percentages), a day if it is in a period of the request.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from bicameral.planning._durations import minutes_in_words
from bicameral.planning._intent_document import Intent
from bicameral.planning._language import fold
from bicameral.planning._origins import Origin, ReferenceWords
from bicameral.text import STOP_WORDS, mentions, mentions_path

_TOKEN = re.compile(r"[a-z]+|\d+")
_EXTENSIONS = frozenset(
    "txt csv json md log pdf html xml yaml yml tsv xlsx docx ics eml zip png jpg jpeg gif svg tar gz bak".split()
)
_CONNECTIVES = frozenset(
    "a an and of the to in by for with from on at re fwd fw aw wg und von der die das et de la el y".split()
)
_NUMBER_WORDS: tuple[tuple[int, str], ...] = (
    (0, "zero no none off null"),
    (1, "one once single a an ein eine un une una"),
    (2, "two twice both double zwei deux dos"),
    (3, "three drei trois tres"),
    (4, "four vier quatre cuatro quarter"),
    (5, "five funf cinq cinco"),
    (6, "six sechs seis"),
    (7, "seven sieben sept siete week weekly woche semaine semana"),
    (8, "eight acht huit ocho"),
    (9, "nine neun neuf nueve"),
    (10, "ten zehn dix diez"),
    (11, "eleven elf onze once"),
    (12, "twelve zwolf dozen douze doce noon"),
    (15, "quarter fifteen viertel quart cuarto"),
    (20, "twenty zwanzig vingt veinte"),
    (24, "day tag jour dia"),
    (30, "half thirty halbe demi media"),
    (50, "fifty half"),
    (60, "hour stunde heure hora minute"),
    (90, "ninety"),
    (100, "hundred full percent max hundert cent cien"),
    (1000, "thousand tausend mille mil"),
)
_MONTH_NAME = re.compile(
    r"\b(?:jan|feb|mar|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz]|janv|fev|avr|juil|aout|ene|abr|ago|dic)[a-z]*\b"
)
_HOURS = re.compile(r"\b(?:hours?|hrs?|h|stunden?|heures?|horas?)\b|\d:\d\d|\d\s*[ap]m\b")
_PERCENT = re.compile(r"%|\bper ?cent\b|\bprozent\b|\bpour cent\b|\bpor ciento\b")
_FREE_NUMBERS = (0, 1, -1)


class Grounds:
    """What a request and the settings give."""

    def __init__(self, intent: Intent, own: frozenset[str]) -> None:
        self._request = intent.request
        self._own = own
        self._folded = fold(intent.request)
        self._words = frozenset(_TOKEN.findall(self._folded))
        self._numbers = {float(each.replace(",", ".")) for each in re.findall(r"\d+(?:[.,]\d+)?", self._folded)}
        self._numbers |= {
            float(each.replace(",", "").replace(".", "")) for each in re.findall(r"\d{1,3}(?:[.,]\d{3})+", self._folded)
        }
        self._numbers |= {float(number) for number, words in _NUMBER_WORDS if self._words & set(words.split())}
        self._numbers |= self._derived_numbers() | minutes_in_words(self._folded)
        # `the bill for March 2025`: the day was read from the name of a month, so its number is given, too.
        self._numbers |= {float(each.start.month) for each in intent.dates if _MONTH_NAME.search(fold(each.phrase))}
        self._ranges = [(each.start - dt.timedelta(1), each.end + dt.timedelta(1)) for each in intent.dates]

    def _derived_numbers(self) -> set[float]:
        """Minutes of the hours and between the times that are given, and factors of the percentages."""
        found: set[float] = set()
        if _HOURS.search(self._folded):
            hours = [each for each in self._numbers if each <= 24]
            found |= {60 * each for each in hours} | {60 * abs(one - other) for one in hours for other in hours}
        if _PERCENT.search(self._folded):
            found |= {
                round(factor, 6) for each in self._numbers for factor in (each / 100, 1 + each / 100, 1 - each / 100)
            }
        return found

    def ungrounded(self, origin: Origin, recipient: bool, *, declared: bool) -> list[Any]:
        """The constants in a value that nobody gave."""
        wrong = [value for value in origin.leaves() if not self._is_given(value, declared)]
        if recipient:
            # An address made of pieces is a new address, whatever the pieces are.
            wrong += [piece for piece in origin.pieces if isinstance(piece, str) and re.search(r"[\w@]", piece)]
        else:
            wrong += [piece for piece in origin.pieces if not self._is_piece_given(piece, declared)]
        if origin.lost and not wrong:
            wrong.append("…")
        return sorted(wrong, key=str)

    def is_given(self, value: Any) -> bool:
        """Whether the request or the settings have a constant."""
        return self._is_given(value, declared=True)

    def _is_given(self, value: Any, declared: bool) -> bool:
        match value:
            case dt.datetime():
                return self._has_day(value.date())
            case dt.date():
                return self._has_day(value)
            case ReferenceWords():
                return all(map(self._has_token, _TOKEN.findall(fold(value))))
            case str():
                return self._has_text(value, declared)
            case int() | float():
                return value in _FREE_NUMBERS or float(value) in self._numbers or float(-value) in self._numbers
            case dt.timedelta() | dt.time():
                return True
            case _:
                return False

    def _is_piece_given(self, value: Any, declared: bool) -> bool:
        if isinstance(value, str) and (
            "@" in value or "://" in value or ".." in value or value.strip().startswith(("/", "~"))
        ):
            # A separator between results of tools is one slash; a longer beginning leads out of the folder.
            return value == "/" or mentions(self._request, value)
        return self._is_given(value, declared)

    def _has_text(self, text: str, declared: bool) -> bool:
        bare = text.strip()
        if bare in ("", ".") or bare.casefold() in self._own or mentions(self._request, bare):
            return True
        if "@" in bare or "://" in bare:
            return False
        if mentions_path(self._request, bare):
            return True
        if (bare.startswith(("/", "~")) and len(bare) > 1) or ".." in bare or "\\" in bare:
            return False
        if (day := _day_in(bare)) is not None and self._has_day(day):
            bare = bare.replace(day.isoformat(), " ")
        tokens = _TOKEN.findall(fold(bare))
        # The text of a mail or an entry, which an undeclared tool is given, is long: only names and codes direct.
        if not declared and _is_prose(text, tokens):
            return True
        return all(self._has_token(token) for token in tokens)

    def _has_token(self, token: str) -> bool:
        if token.isdigit():
            return token in self._words or float(token) in self._numbers or len(token) == 1
        if token in self._words or token in _EXTENSIONS or token in _CONNECTIVES:
            return True
        # Other forms of a word of the request: invoices, invoice.
        return len(token) > 3 and any(
            len(word) > 3 and (word.startswith(token[:-1]) or token.startswith(word[:-1])) for word in self._words
        )

    def _has_day(self, day: dt.date) -> bool:
        return day.isoformat() in self._request or any(start <= day <= end for start, end in self._ranges)


def _is_prose(text: str, tokens: list[str]) -> bool:
    """Whether a text is a sentence or the beginning of one, and neither a name nor a code."""
    if re.search(r"[\d/\\@]", text) or len(tokens) < (2 if text[-1:] == " " else 3):
        return False
    return len(tokens) > 4 or any(token in STOP_WORDS for token in tokens)


def _day_in(text: str) -> dt.date | None:
    found = re.search(r"\d{4}-\d\d-\d\d", text)
    try:
        return None if found is None else dt.date.fromisoformat(found.group())
    except ValueError:
        return None
