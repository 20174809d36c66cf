"""From two scores a chunk to one order, and which of the chunks found say the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bicameral.labels import covers

from ._documents import Chunk
from ._lexical import Bag, shared
from ._words import words

Scores = NDArray[np.float32]

_NEAR = 0.9
_SAME_WORDS = 0.9


def fused(similarity: Scores | None, lexical: Scores | None, weight: float) -> Scores:
    """One score a chunk: the mean of the two, weighted. Without one of the two the other is the score.

    Both are shares of 1 that depend on the query and the chunk, not on what else was found: a document that is added
    can stand before another, and not change its score by standing there.
    """
    if similarity is None or lexical is None:
        scores = lexical if similarity is None else similarity
        return np.zeros(0, dtype=np.float32) if scores is None else scores.copy()
    total = np.multiply(similarity, 1 - weight, dtype=np.float32)
    total += np.multiply(lexical, weight, dtype=np.float32)
    return total


def order_of(scores: Scores) -> NDArray[np.intp]:
    """The best first; of equal ones that which comes first among all chunks."""
    return np.argsort(-scores, kind="stable")


class Duplicates:
    """Which chunks repeat one that is already among the results.

    A chunk is a repetition if it has nearly the same words, the same numbers, and comes from nobody else: a text of a
    stranger never takes the place of one that is more trusted, however well he copies it.
    """

    def __init__(self, chunks: Sequence[Chunk], vectors: Scores, bags: Sequence[Bag]) -> None:
        self._chunks = chunks
        self._vectors = vectors
        self._bags = bags

    def first(self, at: int, kept: Sequence[int]) -> int | None:
        """The chunk among `kept` that says what the one at `at` says, or None."""
        if not kept:
            return None
        near = self._vectors[list(kept)] @ self._vectors[at]
        return next(
            (other for other, angle in zip(kept, near, strict=True) if angle >= _NEAR and self._same(at, other)), None
        )

    def _same(self, at: int, other: int) -> bool:
        repeated, kept = self._chunks[at], self._chunks[other]
        if not covers(repeated.label, kept.label):
            return False
        if repeated.fingerprint == kept.fingerprint:
            return True
        return shared(self._bags[at], self._bags[other]) >= _SAME_WORDS and _figures(repeated) == _figures(kept)


def _figures(chunk: Chunk) -> list[str]:
    return [word for word in words(chunk.text) if any(character.isdigit() for character in word)]
