"""Columns that a request names by their kind alone: "how much" is the column of money, whatever it is called.

Code found what the columns hold. A word that only says the kind means the only column of that kind; of two columns
either may be meant, and a person is asked about those two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bicameral.binding._candidates import Candidate
from bicameral.binding._matching import Unbound, match_words
from bicameral.binding._words import same_concept, vocabulary, words_of
from bicameral.plans import ReferenceSite

_AMOUNTS = ("amount", "price")
_LABELS = ("name", "title", "product", "description", "thing")
"""Words for what a row is about."""
_ASKING = frozenset("what who which was wer welche que quoi qui quel quien cual".split())
"""The same as a question. They are empty words elsewhere."""

_COUNTING = ("number", "year", "month", "week", "date", "code", "phone", "account")
_COUNTING_WORDS = frozenset("id ids nr no num row zeile pos position index rank zip plz postcode".split())
"""Headings of numbers that tell rows apart or order them: no amount of anything."""
_OTHER_LABELS = ("category", "type", "status", "comment", "reason", "city", "country", "street", "place", "address",
                 "phone", "date", "time", "code", "month", "week")  # fmt: skip
_OTHER_LABEL_WORDS = frozenset("note notes notiz notizen nota mail email url link website unit currency".split())
"""Headings of texts that say something about what a row is about, and do not name it."""


@dataclass(frozen=True, slots=True)
class ColumnsOfKind:
    """The columns that words may mean by their kind.

    Args:
        candidates: The columns.
        sure: Whether the only one of them is meant; otherwise it has to be asked about, too.
    """

    candidates: tuple[Candidate, ...]
    sure: bool = True


def columns_by_kind(site: ReferenceSite, offered: Sequence[Candidate]) -> ColumnsOfKind | None:
    """The columns that words mean by their kind; None if a column is called so, or the words name no kind.

    Args:
        site: The words, and what is known of the columns.
        offered: The columns.
    """
    if not isinstance(match_words(site.words, offered, "column"), Unbound):
        return None
    words = words_of(site.words)
    asked = [word for word in words if word not in vocabulary().empty]
    for columns, concepts, sure in _kinds(site):
        fits = bool(asked) and all(any(same_concept(word, each) for each in concepts) for word in asked)
        fits = fits or (concepts is _LABELS and not asked and any(word in _ASKING for word in words))
        if fits and columns:
            return ColumnsOfKind(tuple(each for each in offered if each.value in columns), sure)
    return None


def measure_columns(site: ReferenceSite) -> tuple[str, ...]:
    """The columns of numbers that can be added up: no numbers of rows, no years, no codes."""
    return (*site.amounts, *(name for name in site.numbers if not _says(name, _COUNTING, _COUNTING_WORDS)))


def names_amount(word: str) -> bool:
    """Whether a word says no more than that an amount is meant."""
    return any(same_concept(word, each) for each in (*_AMOUNTS, "number"))


def describes_rows(heading: str) -> bool:
    """Whether a heading may be that of what rows are about: no number of them, no category and no remark."""
    counts = _says(heading, _COUNTING, _COUNTING_WORDS)
    return not counts and not _says(heading, _OTHER_LABELS, _OTHER_LABEL_WORDS)


def _kinds(site: ReferenceSite) -> Iterator[tuple[Sequence[str], tuple[str, ...], bool]]:
    """The columns of each kind with the words for it, the surest first, and whether the only one binds."""
    yield site.days, ("date",), True
    yield site.amounts, _AMOUNTS, True
    # Numbers without a currency are an amount of something, and perhaps a price.
    numbers = [name for name in site.numbers if not _says(name, _COUNTING, _COUNTING_WORDS)]
    yield numbers, ("amount",), True
    yield numbers, _AMOUNTS, False
    labels = [name for name in site.texts if not _says(name, _OTHER_LABELS, _OTHER_LABEL_WORDS)]
    yield labels or site.texts, _LABELS, True


def _says(heading: str, concepts: Sequence[str], words: frozenset[str]) -> bool:
    return any(word in words or any(same_concept(word, concept) for concept in concepts) for word in words_of(heading))
