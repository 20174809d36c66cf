"""Words of mentions and of names: normal forms, and a table of synonyms.

The language of a name is not known, and a request in German may ask for a file with an English name. So two words are
compared in every language at once: they have the same stem if one of the stemmers gives the same stem for both.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from bicameral.text import LIGHT_STEMMERS, MONTH_NUMBERS, WEEKDAY_NUMBERS, same_stem as same_stem, stems_of as stems_of

LONGEST_TEXT = 400
"""Characters of a text that are split into words: the rest of a long subject decides nothing."""

# `dueDate`, `DUEDate2026` and `due_date` are words: a change of case or from letters to digits separates them.
_PIECE = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th"})
# A possessive or an elided article: "Anna's", "l'agenda", "d'Anna".
_APOSTROPHE = re.compile(r"(?i)\b(?:l|d|qu|j|s)['’](?=\w)|['’]s\b")


def fold(text: str) -> str:
    """A text without case, width and accents; letters of other scripts stay what they are.

    Example:
        >>> fold("Gebühren Œuvre")
        'gebuhren oeuvre'
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return "".join(character for character in decomposed if not unicodedata.combining(character))


@lru_cache(maxsize=65_536)
def words_of(text: str) -> tuple[str, ...]:
    """The folded words and numbers of a name or a mention, in order.

    Example:
        >>> words_of("amountDue_2026.csv")
        ('amount', 'due', '2026', 'csv')
    """
    text = _APOSTROPHE.sub(" ", unicodedata.normalize("NFC", text[:LONGEST_TEXT]))
    spaced = _CAMEL.sub(" ", text)
    return tuple(_plain_number(fold(piece)) for piece in _PIECE.findall(spaced))


def _plain_number(word: str) -> str:
    # 03 and 3 are one number; a number that only has zeros stays 0.
    return (word.lstrip("0") or "0") if word.isdecimal() else word


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The table of everyday words (`synonyms.toml`)."""

    concepts: Mapping[str, frozenset[str]]
    """The concepts of each word and phrase."""
    stems: Mapping[tuple[str, str], frozenset[str]]
    """The words with each stem, by language: the plural of a German word is found, and no French one with it."""
    generic: frozenset[str]
    """Words that say what sort of thing is meant: file, table, list."""
    empty: frozenset[str]
    """Words that name nothing: the, my, of."""
    newest: frozenset[str]
    """Words that ask for the newest of several."""
    phrases: Mapping[tuple[str, str], tuple[tuple[str, ...], ...]]
    """Phrases by language and stem of their first word, the longest first; as the stems of their words."""
    compound_parts: frozenset[str]
    """Words of which German compounds are made."""


@cache
def vocabulary() -> Vocabulary:
    """The table that comes with the package, read when it is first needed."""
    data: dict[str, Any] = tomllib.loads(files("bicameral.binding").joinpath("synonyms.toml").read_text("utf-8"))
    concepts: dict[str, set[str]] = {}
    stems: dict[tuple[str, str], set[str]] = {}
    phrases: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for concept, by_language in data["concepts"].items():
        for language, words in by_language.items():
            for word in words.split():
                if "-" in word:
                    parts = tuple(LIGHT_STEMMERS[language](part) for part in word.split("-"))
                    phrases.setdefault((language, parts[0]), set()).add(parts)
                    concepts.setdefault(_phrase_key(language, parts), set()).add(concept)
                    continue
                concepts.setdefault(word, set()).add(concept)
                stems.setdefault((language, LIGHT_STEMMERS[language](word)), set()).add(word)
    for months, prefix in ((MONTH_NUMBERS, "month"), (WEEKDAY_NUMBERS, "weekday")):
        for name, number in months.items():
            # Short forms are words of other languages, too ("mar", "sun", "set", "die"): only whole names count.
            if len(name) > 3 or name in ("mai", "may"):
                concepts.setdefault(fold(name), set()).add(f"{prefix}-{number}")
    for day, words in data["days"].items():
        for word in words.split():
            concepts.setdefault(word, set()).add(f"day-{day}")
    return Vocabulary(
        {word: frozenset(found) for word, found in concepts.items()},
        {stem: frozenset(found) for stem, found in stems.items()},
        _all_words(data["generic"]),
        _all_words(data["empty"]),
        _all_words(data["newest"]),
        {first: tuple(sorted(found, key=lambda each: (-len(each), each))) for first, found in phrases.items()},
        frozenset(
            word
            for by_language in data["concepts"].values()
            for word in by_language.get("de", "").split()
            if len(word) >= _SHORTEST_PART and "-" not in word
        ),
    )


def _phrase_key(language: str, stems: Sequence[str]) -> str:
    return f"{language}:{'-'.join(stems)}"


def _all_words(by_language: Mapping[str, str]) -> frozenset[str]:
    return frozenset(word for words in by_language.values() for word in words.split())


@lru_cache(maxsize=65_536)
def concepts_of(word: str) -> frozenset[str]:
    """The concepts that a folded word or a joined phrase stands for; none for one that is not in the table."""
    table = vocabulary()
    return frozenset(concept for each in _listed_forms(word) for concept in table.concepts[each])


@lru_cache(maxsize=65_536)
def _listed_forms(word: str) -> frozenset[str]:
    """The words of the table that a folded word is a form of, in any language."""
    table = vocabulary()
    if word in table.concepts:
        # A word that is in the table is what it is there for: a Mieter (tenant) has the stem of Miete (rent).
        return frozenset({word})
    listed = {each for stem in stems_of(word) for each in table.stems.get(stem, ())}
    # Most forms are the word with an ending: "Spenden" are donations, and not donors ("Spender").
    begun = {each for each in listed if word.startswith(each)}
    return frozenset(begun or listed)


def are_translations(left: str, right: str) -> bool:
    """Whether two folded words name the same everyday thing in two languages, even if their stems agree.

    Spanish "contratos" and French "contrats" have one stem and are two words, as "contratos" and "Verträge" are.

    Example:
        >>> are_translations("contratos", "contrats"), are_translations("contratos", "contrato")
        (True, False)
    """
    return same_concept(left, right) and _languages_of(left).isdisjoint(_languages_of(right))


@lru_cache(maxsize=65_536)
def _languages_of(word: str) -> frozenset[tuple[str, str]]:
    """The languages of a folded word by the table, each with the stem that the word has there.

    Of "contrato" and "contrat", with both of which "contratos" begins, the longer is what it is a form of.
    """
    forms = _listed_forms(word)
    own = {each for each in forms if len(each) == max(map(len, forms))}
    return frozenset(stem for each in own for stem in stems_of(each) if each in vocabulary().stems.get(stem, ()))


def same_concept(left: str, right: str) -> bool:
    """Whether two folded words name the same everyday thing, in any of the languages.

    Example:
        >>> same_concept("facturas", "invoice"), same_concept("rent", "bill")
        (True, False)
    """
    return not concepts_of(left).isdisjoint(concepts_of(right))


_SHORTEST_HEAD = 5


def is_compound_of(word: str, head: str) -> bool:
    """Whether a word is a compound with this head, as in German: a Stromrechnung is a Rechnung.

    A word that only begins so is none: a report is no reporter.
    """
    for _, stem in stems_of(head):
        if len(stem) < _SHORTEST_HEAD:
            continue
        if any(own != stem and own.endswith(stem) and len(own) - len(stem) >= 3 for _, own in stems_of(word)):
            return True
    return False


@lru_cache(maxsize=65_536)
def join_phrases(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words with each phrase of the table as one word; the same words if there is none.

    Example:
        >>> join_phrases(("date", "de", "facture", "2026"))
        ('fr:date-factur', '2026')
    """
    empty = vocabulary().empty
    joined: list[str] = []
    at = 0
    while at < len(words):
        found = _phrase_at([(place, word) for place, word in enumerate(words) if place >= at and word not in empty])
        if words[at] in empty or found is None:
            joined.append(words[at])
            at += 1
        else:
            key, at = found
            joined.append(key)
    return tuple(joined)


def _phrase_at(words: Sequence[tuple[int, str]]) -> tuple[str, int] | None:
    """The longest phrase that the words begin with, and the place behind it."""
    if not words:
        return None
    for language, stemmer in LIGHT_STEMMERS.items():
        for phrase in vocabulary().phrases.get((language, stemmer(words[0][1])), ()):
            begin = words[: len(phrase)]
            if tuple(stemmer(word) for _, word in begin) == phrase:
                return _phrase_key(language, phrase), begin[-1][0] + 1
    return None


_SHORTEST_PART = 4
_LINKS = ("", "s", "es", "n", "en", "e")
"""What German writes between the parts of a compound."""


@lru_cache(maxsize=65_536)
def split_compound(word: str) -> tuple[str, str] | None:
    """The two words of the table that a German compound is made of; None if it is none, or can be read in two ways.

    Example:
        >>> split_compound("kundennummer"), split_compound("nummer")
        (('kunde', 'nummer'), None)
    """
    parts = vocabulary().compound_parts
    found = {
        (first, word[at:])
        for at in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
        if word[at:] in parts
        for link in _LINKS
        if (first := word[:at].removesuffix(link) if link else word[:at]) in parts
        and (not link or word[:at].endswith(link))
    }
    tails = {tail for _, tail in found}
    # "kunden" is "kunde" with a link; of "kund" and "kunde" the longer word is meant.
    return max(found, key=lambda each: len(each[0])) if len(tails) == 1 else None


def calendar_words(year: int, month: int, day: int, weekday: int) -> tuple[str, ...]:
    """The words by which a day may be named, in English and in numbers; other languages follow from the concepts."""
    months, weekdays = _english_names(MONTH_NUMBERS), _english_names(WEEKDAY_NUMBERS)
    return (str(year), months[month], str(day), weekdays[weekday])


def _english_names(table: Mapping[str, int]) -> dict[int, str]:
    names: dict[int, str] = {}
    for name, number in table.items():
        names.setdefault(number, name)
    return names


def dated_words(words: Iterable[str]) -> tuple[str, ...]:
    """The name of the month where a name has a year and a month in numbers: bills_2026-03 is of March, too."""
    months = _english_names(MONTH_NUMBERS)
    return tuple(
        months[int(after)]
        for before, after in pairwise(list(words))
        if len(before) == 4 and before.isdecimal() and after.isdecimal() and 1 <= int(after) <= 12
    )
