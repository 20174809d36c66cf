"""Ranking of texts against a query with BM25: rare words count more, long texts less."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from bicameral.text._words import text_stems

K1 = 1.2
"""How soon further occurrences of a word stop counting."""
B = 0.75
"""How much the length of a text counts."""


def rarity(total: int, having: int) -> float:
    """The weight of a word that `having` of `total` texts contain (inverse document frequency)."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


class Ranking:
    """Texts ranked against a query by the stems that they share with it.

    Example:
        >>> Ranking(["Read a mail.", "Delete a file."]).best("delete the mails", 1)
        [0]
    """

    def __init__(self, documents: Sequence[str]) -> None:
        self._counts = [Counter(text_stems(document)) for document in documents]
        self._lengths = [max(1, sum(counts.values())) for counts in self._counts]
        self._mean = sum(self._lengths) / max(1, len(self._lengths))
        seen = Counter(word for counts in self._counts for word in counts)
        self._weight = {word: rarity(len(documents), having) for word, having in seen.items()}

    def scores(self, query: str) -> list[float]:
        """The score of each text; 0 if it shares no word with the query."""
        # In the order of the query and not of a set: the sum of floats depends on it in its last bits.
        asked = dict.fromkeys(text_stems(query))
        return [self._score(asked, counts, length) for counts, length in zip(self._counts, self._lengths, strict=True)]

    def _score(self, asked: dict[str, None], counts: Counter[str], length: int) -> float:
        norm = K1 * (1 - B + B * length / self._mean)
        return sum((self._weight[w] * counts[w] * (K1 + 1) / (counts[w] + norm) for w in asked if w in counts), 0.0)

    def best(self, query: str, count: int) -> list[int]:
        """The places of the best texts; texts that share no word with the query are not among them."""
        scores = self.scores(query)
        ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        return [i for i in ranked[:count] if scores[i] > 0]
