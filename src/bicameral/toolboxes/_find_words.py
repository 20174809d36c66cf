"""Search by words in passages of any language: exact words, their forms, and compounds, weighted by how rare they are.

The language of a passage is not known, and a question in one language may ask for a note in another. So every word is
compared in all languages at once. A word without a match of its own is looked for inside longer ones (*Rechnung* in
*Stromrechnung*), and the German way to write umlauts without them counts as the same word.

Nothing here needs a package: a machine without the embedding model searches by words alone.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import chain

from bicameral.text import FUNCTION_WORDS, K1, SHORTEST_PART, B, index_words, rarity, spellings_of, stems_of

_FORM = 0.9
"""What another form of a word counts, compared with the word itself."""
_COMPOUND = 0.6
_MOST_FORMS = 200
"""Words of the passages that one word of a query may stand for."""


class WordSearch:
    """The passages by their words.

    Args:
        texts: The words of each passage, as `count_words` counts them.

    Example:
        >>> WordSearch([count_words("Der Code der Garage ist 4711.")]).scores("Garagen Codes").keys()
        dict_keys([0])
    """

    def __init__(self, texts: Sequence[Counter[str]]) -> None:
        self._size = len(texts)
        self._postings: dict[str, list[tuple[int, int]]] = {}
        self._lengths: list[int] = []
        for number, counts in enumerate(texts):
            self._lengths.append(max(1, counts.total()))
            for word, count in counts.items():
                self._postings.setdefault(word, []).append((number, count))
        self._mean = sum(self._lengths) / max(1, self._size)

    @cached_property
    def _by_stem(self) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        for word in self._postings:
            for stem in stems_of(word):
                found.setdefault(stem, []).append(word)
        return found

    def scores(self, query: str) -> dict[int, float]:
        """The passages with words of a query, by number, each with its share of the best score there could be.

        The share depends on the query and the passage alone, so that it can be compared with a similarity: what others
        add to the index does not lift or lower it.
        """
        wanted = query_words(query)
        total: dict[int, float] = {}
        best = 0.0
        for word in wanted:
            forms = self._forms(word)
            # As rare as the word with all its forms: a plural that occurs once is not a rare word.
            having = {number for form in forms for number, _ in self._postings[form]}
            weight = rarity(self._size, len(having))
            best += weight * (K1 + 1)
            gains: dict[int, float] = {}
            for form, worth in forms.items():
                for number, count in self._postings[form]:
                    damping = K1 * (1 - B + B * self._lengths[number] / self._mean)
                    gain = worth * weight * count * (K1 + 1) / (count + damping)
                    # The best form counts and not their sum: a passage is no better for using a word twice over.
                    gains[number] = max(gains.get(number, 0.0), gain)
            for number, gain in gains.items():
                total[number] = total.get(number, 0.0) + gain
        return {number: score / best for number, score in total.items()} if best else {}

    def best(self, query: str, count: int) -> list[tuple[int, float]]:
        """The best passages; of equal ones the first."""
        return heapq.nsmallest(count, self.scores(query).items(), key=lambda each: (-each[1], each[0]))

    def _forms(self, word: str) -> dict[str, float]:
        """The words of the passages that a word of the query stands for, each with what it counts."""
        spellings = spellings_of(word)
        forms = {each: 1.0 for each in spellings if each in self._postings}
        for each in spellings:
            for form in chain.from_iterable(self._by_stem.get(stem, ()) for stem in sorted(stems_of(each))):
                forms.setdefault(form, _FORM)
        if not forms and len(word) >= SHORTEST_PART and word.isalpha():
            parts = [each for each in spellings if len(each) >= SHORTEST_PART]
            forms = {form: _COMPOUND for form in self._postings if any(part in form for part in parts)}
            # And the other way round: the note says "code", and the question "Garagencode".
            if not forms:
                forms = dict.fromkeys(_parts_of(word, self._postings), _COMPOUND)
        return dict(list(forms.items())[:_MOST_FORMS])


def count_words(text: str) -> Counter[str]:
    """The words of a passage, and how often it has each."""
    return Counter(index_words(text))


def query_words(query: str) -> list[str]:
    """The words of a query that say what is asked for, each once; all of them if none does."""
    words = list(dict.fromkeys(index_words(query)))
    return [word for word in words if word not in FUNCTION_WORDS] or words


def _parts_of(word: str, known: dict[str, list[tuple[int, int]]]) -> list[str]:
    """The beginnings and ends of a compound that are words of the passages; the longest of each."""
    cuts = range(len(word) - SHORTEST_PART, SHORTEST_PART - 1, -1)
    begins = next((word[:cut] for cut in cuts if word[:cut] in known), None)
    ends = next((word[-cut:] for cut in cuts if word[-cut:] in known), None)
    return [each for each in (begins, ends) if each]
