"""Exact search: BM25 over the words of chunks.

A small implementation of our own: a library that is kept up counts its corpus once, and an index that changes would
have to be built anew each time; here a change costs one sort of numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._words import words

K1 = np.float32(1.2)
B = np.float32(0.75)


@dataclass(frozen=True, slots=True)
class Bag:
    """The words of one chunk by their numbers, in ascending order, and how often each is there."""

    terms: NDArray[np.int32]
    counts: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Asked:
    """The words of a query: the numbers of those that are known, and how many are not."""

    known: list[int]
    unknown: int


class Lexicon:
    """Numbers for words, given out as they come."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {word: number for number, word in enumerate(known)}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def known(self) -> list[str]:
        return list(self._numbers)

    def bag(self, text: str) -> Bag:
        """The words of a text; new ones get a number."""
        counted = Counter(words(text))
        pairs = sorted((self._numbers.setdefault(word, len(self._numbers)), n) for word, n in counted.items())
        table = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        return Bag(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))

    def asked(self, text: str) -> Asked:
        """The words of a query, each once."""
        wanted = set(words(text))
        known = sorted(self._numbers[word] for word in wanted if word in self._numbers)
        return Asked(known, len(wanted) - len(known))


class Postings:
    """For each word the chunks that have it, with what it adds to their score."""

    def __init__(self, bags: Sequence[Bag], words_known: int) -> None:
        self._size = len(bags)
        lengths = np.array([bag.counts.sum() for bag in bags], dtype=np.float32)
        terms = _joined([bag.terms for bag in bags])
        counts = _joined([bag.counts for bag in bags]).astype(np.float32)
        chunks = np.repeat(np.arange(self._size, dtype=np.int32), [bag.terms.size for bag in bags])
        order = np.argsort(terms, kind="stable")
        self._chunks = chunks[order]
        counts = counts[order]
        self._starts = np.searchsorted(terms[order], np.arange(words_known + 1))
        mean = lengths.mean() if self._size and lengths.any() else np.float32(1)
        damping = K1 * (1 - B + B * lengths / mean)
        self._gains = counts * (K1 + 1) / (counts + damping[self._chunks])

    def scores(self, asked: Asked) -> NDArray[np.float32]:
        """The score of every chunk, as a share of the score of one that had nothing but the words of the query.

        So 0 is none of them and 1 cannot be reached; words that are nowhere count as the rarest there are. Unlike the
        bare score the share does not grow with the index, and can be held against a similarity.
        """
        total = np.zeros(self._size, dtype=np.float32)
        most = asked.unknown * self._rarity(0)
        for number in asked.known:
            start, end = int(self._starts[number]), int(self._starts[number + 1])
            rarity = self._rarity(end - start)
            most += rarity
            total[self._chunks[start:end]] += np.float32(rarity) * self._gains[start:end]
        return total / np.float32(most * (K1 + 1)) if most else total

    def _rarity(self, chunks: int) -> float:
        """What a word counts that so many chunks have."""
        return math.log1p((self._size - chunks + 0.5) / (chunks + 0.5))


def shared(left: Bag, right: Bag) -> float:
    """How much two chunks have in common: the words of both, of those of either; 1 if they are the same."""
    both = np.intersect1d(left.terms, right.terms, assume_unique=True).size
    either = left.terms.size + right.terms.size - both
    return both / either if either else 1.0


def _joined(arrays: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int32)
