"""Which words of a request mean which names of a table: by exact, normalised and stemmed comparison, and no model.

Names come from files that anybody may have written, so what is found is always told in the bytes of the request: the
result maps a name to phrases that are copied from the request, never the other way round.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bicameral.intent import is_stop_word, stem

from ._named import ADDRESS, FILE, LINK

MOST_WORDS = 4
"""Words that a phrase of the request may have."""
MOST_PHRASES = 2
"""Phrases that are told of one name."""
MOST_TIES = 3
"""A phrase that fits more names than this says nothing about any of them."""
_LONGEST_PHRASE = 60
_SHORTEST_PART = 3

_TOKEN = re.compile(r"[^\W_]+(?:_[^\W_]+)*")
_GAP = re.compile(r"[ _-]?")
# `customer_id`, `customer-id`, `Customer ID` and `customerId` are two words each.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]*")

Stems = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matches:
    """What a request says of the names of a table: the phrases for each, and the names that it says `whole`."""

    phrases: Mapping[str, tuple[str, ...]]
    whole: frozenset[str]


def stems_of(text: str) -> Stems:
    """The words of a name without case, diacritics and separators, folded to their stems."""
    flat = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return tuple(stem(word.casefold()) for word in _WORD.findall(flat))


def match_names(request: str, names: Sequence[str]) -> Matches:
    """The phrases of a request that fit these names.

    A phrase that is all of a name counts before a single word that is only a part of one, and a phrase that fits too
    many names is left out.

    Example:
        >>> match_names("Total the amounts by category", ["date", "Category", "amount"]).phrases
        {'Category': ('category',), 'amount': ('amounts',)}
    """
    stems = {name: stems_of(name) for name in names}
    whole: dict[str, list[str]] = {}
    part: dict[str, list[str]] = {}
    for words, phrase in dict(_phrases(request)).items():
        found, fits = whole, [name for name, own in stems.items() if own == words]
        if not fits and len(words) == 1 and len(words[0]) >= _SHORTEST_PART:
            found, fits = part, [name for name, own in stems.items() if words[0] in own]
        if len(fits) <= MOST_TIES:
            for name in fits:
                found.setdefault(name, []).append(phrase)
    phrases = {name: tuple(each[:MOST_PHRASES]) for name, each in (part | whole).items()}
    # Only plain letters: a name with characters that nobody sees is not what the user said.
    return Matches(phrases, frozenset(name for name in whole if _PLAIN.fullmatch(name)))


def match_cells(request: str, cells: Mapping[str, Iterable[str]], names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The phrases of a request that are all of a text in these columns, a few for each.

    A phrase that is the name of a column says nothing about cells, nor does one that stands in too many columns.

    Example:
        >>> match_cells("What did I spend on travel?", {"category": ["Travel", "Food"]}, ["category"])
        {'category': ('travel',)}
    """
    stems = {column: {stems_of(text) for text in texts} for column, texts in cells.items()}
    taken = set(map(stems_of, names))
    found: dict[str, list[str]] = {}
    for words, phrase in dict(_phrases(request)).items():
        fits = [column for column, known in stems.items() if words in known] if words not in taken else []
        if len(fits) <= MOST_TIES:
            for column in fits:
                found.setdefault(column, []).append(phrase)
    return {column: tuple(phrases[:MOST_PHRASES]) for column, phrases in found.items()}


def said_in(request: str, text: str) -> tuple[str, ...]:
    """The words of a request that a text has, too, as the request spells them; a few."""
    known = set(stems_of(text))
    found = [phrase for words, phrase in dict(_phrases(request)).items() if len(words) == 1 and words[0] in known]
    return tuple(found[:MOST_PHRASES])


def _phrases(request: str) -> Iterator[tuple[Stems, str]]:
    """Words of the request that stand together, with their stems; none of a file name, a link or an address."""
    tokens = list(_tokens(request))
    for first, token in enumerate(tokens):
        end = token.end()
        for count, last in enumerate(tokens[first : first + MOST_WORDS]):
            if count and not _GAP.fullmatch(request, end, last.start()):
                break
            end = last.end()
            phrase = request[token.start() : end]
            words = stems_of(phrase)
            alone = len(words) == 1
            if words and len(phrase) <= _LONGEST_PHRASE and not (alone and is_stop_word(phrase.lower())):
                yield words, phrase


def _tokens(request: str) -> Iterable[re.Match[str]]:
    named = [found.span() for pattern in (FILE, ADDRESS, LINK) for found in pattern.finditer(request)]
    for token in _TOKEN.finditer(request):
        if not any(start <= token.start() < end for start, end in named):
            yield token
