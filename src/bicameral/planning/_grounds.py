"""Grounds: whether a constant of a plan comes from the request or the settings.

A text counts if the request has its words, a number if it is said or follows from what is said (minutes of hours,
factors of percentages), a day if it is in a period of the request. A number that the plan computes counts if each of
its operands is said, is the unit of one that is said (the 100 of a percentage), or is the count of those who share;
each only as often as it is said.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from bicameral.planning._calculations import Calculation, Operand
from bicameral.planning._durations import days_between, minutes_between, minutes_in_words
from bicameral.planning._intent_document import Intent
from bicameral.planning._language import fold
from bicameral.planning._matching import FILE_PATTERN
from bicameral.planning._origins import ReferenceWords, RestWord, ValueOrigin
from bicameral.text import STOP_WORDS, lazy_pattern, mentions, mentions_path

_TOKEN = lazy_pattern(r"[a-z]+|\d+")
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
_MONTH_NAME = lazy_pattern(
    r"\b(?:jan|feb|mar|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz]|janv|fev|avr|juil|aout|ene|abr|ago|dic)[a-z]*\b"
)
_HOURS = lazy_pattern(r"\b(?:hours?|hrs?|h|stunden?|heures?|horas?)\b|\d:\d\d|\d\s*[ap]m\b")
_PERCENT = lazy_pattern(r"%|\bper ?cent\b|\bprozent\b|\bpour cent\b|\bpor ciento\b")
_FREE_NUMBERS = (0, 1, -1)
_SHARING = frozenset(
    "share shared shares split half halve halves each together between teilen geteilt teile anteil halfte halb jeder "
    "zusammen partager partage part moitie chacun ensemble compartir compartido mitad cada juntos dividir "
    "dividido".split()
)
"""Words for a bill that several people pay, without accents."""
_MOST_SHARING = 12
_CHOICE_WORDS: tuple[frozenset[str], ...] = tuple(
    frozenset(words.split())
    for words in (
        "r read view viewer reader lesen ansehen leser lire voir lecture leer ver lectura",
        "rw w write edit editor writer schreiben bearbeiten ecrire modifier editar escribir modificar",
        "high hoch haut haute alta alto important wichtig importante urgent dringend urgente",
        "low niedrig bas basse baja bajo",
        "normal medium mittel moyen moyenne media medio",
        "public offentlich publique publico publica",
        "private privat prive privee privado privada",
        "daily taglich quotidien tous diario diaria diariamente",
        "weekly wochentlich hebdomadaire semanal semanalmente",
        "monthly monatlich mensuel mensuelle mensual mensualmente",
        "yearly annual jahrlich annuel annuelle anual anualmente",
        "accept accepted yes zusagen annehmen accepter accepte aceptar acepta",
        "decline declined reject rejected no absagen ablehnen refuser refuse rechazar rechaza",
    )
)
"""Words of frequent choices of tools in English, German, French and Spanish, without accents."""


@dataclass(frozen=True, slots=True)
class OfferedByTool:
    """What a tool's declaration offers for one argument.

    Args:
        choices: The plain words among which it chooses.
        names: The names of fields that it may have.
    """

    choices: Collection[str] = ()
    names: Collection[str] = ()


_NOTHING_OFFERED = OfferedByTool()


_FARTHEST_DAY = 3660
"""Dates end somewhere: a distance of a billion days leads to none."""


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
        self._times_said = Counter(self._numbers_as_written())
        self._numbers |= {float(number) for number, words in _NUMBER_WORDS if self._words & set(words.split())}
        self._numbers |= self._derived_numbers() | minutes_in_words(self._folded)
        # `the bill for March 2025`: the day was read from the name of a month, so its number is given, too.
        self._numbers |= {float(each.start.month) for each in intent.dates if _MONTH_NAME.search(fold(each.phrase))}
        self._ranges = [(each.start - dt.timedelta(1), each.end + dt.timedelta(1)) for each in intent.dates]
        # A day at a distance that is said from a day that is said is given as well: `on friday and 7 days later`.
        self._shifted = {
            each.start + sign * dt.timedelta(days)
            for each in intent.dates
            if each.start == each.end
            for days in days_between(self._folded)
            if days <= _FARTHEST_DAY
            for sign in (1, -1)
        }

    @property
    def names_file(self) -> bool:
        """Whether the request names a file."""
        return FILE_PATTERN.search(self._request) is not None

    def _numbers_as_written(self) -> Iterator[float]:
        """Each number of the request, as often as it stands there."""
        for each in re.findall(r"\d+(?:[.,]\d+)?", self._folded):
            yield float(each.replace(",", "."))
        meanings = {word: float(number) for number, words in _NUMBER_WORDS for word in words.split()}
        for token in _TOKEN.findall(self._folded):
            if token in meanings:
                yield meanings[token]

    def _derived_numbers(self) -> set[float]:
        """Minutes of the hours and between the times that are given, and factors of the percentages."""
        found = set(minutes_between(self._folded))
        if _HOURS.search(self._folded):
            hours = [each for each in self._numbers if each <= 24]
            found |= {60 * each for each in hours} | {60 * abs(one - other) for one in hours for other in hours}
        if _PERCENT.search(self._folded):
            found |= {
                round(factor, 6) for each in self._numbers for factor in (each / 100, 1 + each / 100, 1 - each / 100)
            }
        return found

    def ungrounded(
        self, origin: ValueOrigin, recipient: bool, *, declared: bool, offered: OfferedByTool = _NOTHING_OFFERED
    ) -> list[Any]:
        """The constants in a value that nobody gave."""
        leaves = origin.leaves(offered.names) - frozenset(offered.choices)
        wrong = [value for value in leaves if not self._is_given(value, declared)]
        pieces = origin.joined_pieces
        if recipient:
            # An address made of pieces is a new address, whatever the pieces are.
            wrong += [piece for piece in pieces if isinstance(piece, str) and re.search(r"[\w@]", piece)]
        else:
            wrong += [piece for piece in pieces if not self._is_piece_given(piece, declared)]
        if origin.is_lost and not wrong:
            wrong.append("…")
        return sorted(wrong, key=str)

    def is_given(self, value: Any) -> bool:
        """Whether the request or the settings have a constant."""
        return self._is_given(value, declared=True)

    def says_choice(self, word: str) -> bool:
        """Whether the request says one of the words of a choice, in one of four languages."""
        meant = [group for group in _CHOICE_WORDS if fold(word) in group]
        return self._has_text(str(word), declared=True) or any(self._words & group for group in meant)

    def _is_given(self, value: Any, declared: bool) -> bool:
        match value:
            case dt.datetime():
                return self._has_day(value.date())
            case dt.date():
                return self._has_day(value)
            case RestWord():
                return True
            case ReferenceWords():
                return all(map(self._has_token, _TOKEN.findall(fold(value))))
            case str():
                return self._has_text(value, declared)
            case int() | float():
                return value in _FREE_NUMBERS or float(value) in self._numbers or float(-value) in self._numbers
            case Calculation(value=result, operands=operands):
                return (result is not None and self._is_given(result, declared)) or self._are_operands_given(operands)
            case dt.timedelta() | dt.time():
                return True
            case _:
                return False

    def _are_operands_given(self, operands: Collection[Operand]) -> bool:
        """Whether somebody gave every operand of a calculation, as often as it is used."""
        # Adding nothing changes nothing. A one, though, could be added up to any number.
        used = Counter(abs(each.value) for each in operands if each.value)
        return all(self._is_operand_given(each) for each in operands) and all(
            times <= self._times_usable(value) for value, times in used.items()
        )

    def _is_operand_given(self, operand: Operand) -> bool:
        if self._is_given(operand.value, declared=True):
            return True
        match operand.role:
            case "/":
                return self._is_unit_or_share(operand.value)
            case "*":
                return operand.value != 0 and self._is_unit_or_share(1 / operand.value)
            case _:
                return False

    def _is_unit_or_share(self, divisor: float) -> bool:
        """Whether one may divide by a number that is not said: 100 for a percentage, or those who share a bill.

        They are two, if the request does not say how many, or as many as it says with the user himself. A divisor that
        is larger would make an amount of the request vanish, such as one that is to be subtracted.
        """
        if divisor == 100 and _PERCENT.search(self._folded):
            return True
        if not self._words & _SHARING:
            return False
        return divisor == 2 or (divisor <= _MOST_SHARING and divisor - 1 in self._numbers)

    def _times_usable(self, value: float) -> int:
        if value == 100:
            return max(1, self._times_said[value], len(_PERCENT.findall(self._folded)))
        return max(1, self._times_said[value])

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
        return (
            day.isoformat() in self._request
            or day in self._shifted
            or any(start <= day <= end for start, end in self._ranges)
        )


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
