"""Search in one state of an index: BM25 over words, similarity of vectors, one fused score, and removal of duplicates.

BM25 is our own: libraries count a corpus once, so a changing index would have to be rebuilt each time. Here a change
costs one sort of numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bicameral.labels import Label, covers, join_all
from bicameral.retrieval._documents import Chunk, SearchHit, StoredDocument
from bicameral.retrieval._encoder import one_core_each
from bicameral.text import K1, B, index_words, rarity

_K1, _B = np.float32(K1), np.float32(B)


@dataclass(frozen=True, slots=True)
class BagOfWords:
    """The words of one chunk by number, in ascending order, and how often each occurs."""

    terms: NDArray[np.int32]
    counts: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The words of a query: the numbers of the known ones, and how many are unknown."""

    known: list[int]
    unknown: int


class Lexicon:
    """Numbers words in the order in which they first appear."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {word: number for number, word in enumerate(known)}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def known_words(self) -> list[str]:
        return list(self._numbers)

    def bag(self, text: str) -> BagOfWords:
        """The words of a text; new ones get a number."""
        counted = Counter(index_words(text))
        pairs = sorted((self._numbers.setdefault(word, len(self._numbers)), times) for word, times in counted.items())
        table = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        return BagOfWords(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))

    def query_terms(self, text: str) -> QueryTerms:
        """The words of a query, each once."""
        wanted = set(index_words(text))
        known = sorted(self._numbers[word] for word in wanted if word in self._numbers)
        return QueryTerms(known, len(wanted) - len(known))


class Postings:
    """The chunks of each word, with what the word adds to their score."""

    def __init__(self, bags: Sequence[BagOfWords], words_known: int) -> None:
        self._size = len(bags)
        lengths = np.array([bag.counts.sum() for bag in bags], dtype=np.float32)
        terms = concatenate_counts([bag.terms for bag in bags])
        counts = concatenate_counts([bag.counts for bag in bags]).astype(np.float32)
        chunks = np.repeat(np.arange(self._size, dtype=np.int32), [bag.terms.size for bag in bags])
        order = np.argsort(terms, kind="stable")
        self._chunks = chunks[order]
        counts = counts[order]
        self._starts = np.searchsorted(terms[order], np.arange(words_known + 1))
        mean = lengths.mean() if self._size and lengths.any() else np.float32(1)
        damping = _K1 * (1 - _B + _B * lengths / mean)
        self._gains = counts * (_K1 + 1) / (counts + damping[self._chunks])

    def scores(self, terms: QueryTerms) -> NDArray[np.float32]:
        """The score of every chunk, as a share of the score of a chunk with nothing but the query's words.

        0 means none of the words, and 1 cannot be reached; a word that is in no chunk counts as the rarest. Unlike the
        plain score, the share does not grow with the index, and is comparable with a similarity.
        """
        total = np.zeros(self._size, dtype=np.float32)
        maximum = terms.unknown * rarity(self._size, 0)
        for number in terms.known:
            start, end = int(self._starts[number]), int(self._starts[number + 1])
            weight = rarity(self._size, end - start)
            maximum += weight
            total[self._chunks[start:end]] += np.float32(weight) * self._gains[start:end]
        return total / np.float32(maximum * (_K1 + 1)) if maximum else total


def word_overlap(left: BagOfWords, right: BagOfWords) -> float:
    """The words in both chunks, as a share of the words in either; 1 if they are the same."""
    both = np.intersect1d(left.terms, right.terms, assume_unique=True).size
    either = left.terms.size + right.terms.size - both
    return both / either if either else 1.0


def concatenate_counts(arrays: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The arrays one after another; an empty one if there are none."""
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int32)


Scores = NDArray[np.float32]

_DUPLICATE_SIMILARITY = 0.9
_DUPLICATE_OVERLAP = 0.9


def fuse_scores(similarity: Scores | None, lexical: Scores | None, weight: float) -> Scores:
    """One score per chunk: the weighted mean of the two. If one is missing, the other is the score.

    Both are shares of 1 that depend on the query and the chunk, not on the other results: a document that ranks higher
    does not change the scores of those below it.
    """
    if similarity is None or lexical is None:
        scores = lexical if similarity is None else similarity
        return np.zeros(0, dtype=np.float32) if scores is None else scores.copy()
    total = np.multiply(similarity, 1 - weight, dtype=np.float32)
    total += np.multiply(lexical, weight, dtype=np.float32)
    return total


def _numbers_in(chunk: Chunk) -> list[str]:
    return [word for word in index_words(chunk.text) if any(character.isdigit() for character in word)]


_MAX_CANDIDATES = 2_000
"""Chunks that are examined at most for those that do not repeat each other; many copies are skipped."""


class IndexSnapshot:
    """An immutable state of the documents of an index."""

    def __init__(self, stored: Sequence[StoredDocument], words_known: int) -> None:
        self._chunks = [chunk for entry in stored for chunk in entry.chunks]
        self._vectors = (
            np.concatenate([entry.vectors for entry in stored]) if stored else np.zeros((0, 0), dtype=np.float32)
        )
        self._bags = [bag for entry in stored for bag in entry.bags]
        self._postings = Postings(self._bags, words_known)
        self._labels = [entry.document.label for entry in stored]
        self._label = join_all(self._labels)
        self._numbers = {entry.document.id: number for number, entry in enumerate(stored)}
        self._documents = np.repeat(np.arange(len(stored)), [len(entry.chunks) for entry in stored])

    def __len__(self) -> int:
        return len(self._chunks)

    def label(self, documents: Collection[str] | None) -> Label:
        """The label of everything that is searched."""
        if documents is None:
            return self._label
        return join_all(self._labels[self._numbers[name]] for name in documents)

    def search(
        self,
        vector: NDArray[np.float32] | None,
        terms: QueryTerms | None,
        k: int,
        weight: float,
        documents: Collection[str] | None,
        *,
        duplicates: bool,
    ) -> tuple[SearchHit, ...]:
        if not self._chunks:
            return ()
        with one_core_each():
            similarity = None if vector is None else self._vectors @ vector
        lexical = None if terms is None else self._postings.scores(terms)
        score = fuse_scores(similarity, lexical, weight)
        if documents is not None:
            wanted = np.zeros(len(self._labels), dtype=np.bool_)
            wanted[[self._numbers[name] for name in documents]] = True
            # Only positive scores become results, so this excludes the other documents.
            score[~wanted[self._documents]] = 0
        # A stable sort: equal scores keep the order of the chunks.
        best = [int(at) for at in np.argsort(-score, kind="stable")[:_MAX_CANDIDATES] if score[at] > 0]
        duplicates_by_hit = {at: list[int]() for at in best[:k]} if duplicates else self._without_repetition(best, k)
        return tuple(
            SearchHit(
                self._chunks[at],
                float(score[at]),
                None if similarity is None else float(similarity[at]),
                None if lexical is None else float(lexical[at]),
                tuple(self._chunks[other] for other in others),
            )
            for at, others in duplicates_by_hit.items()
        )

    def _without_repetition(self, best: Sequence[int], k: int) -> dict[int, list[int]]:
        """The first `k` chunks that repeat none before them, each with those that repeat it."""
        kept: dict[int, list[int]] = {}
        for at in best:
            similarities = zip(kept, self._vectors[list(kept)] @ self._vectors[at], strict=True)
            alike = (other for other, similarity in similarities if similarity >= _DUPLICATE_SIMILARITY)
            repeated = next((other for other in alike if self._is_duplicate(at, other)), None)
            if repeated is not None:
                kept[repeated].append(at)
            elif len(kept) < k:
                kept[at] = []
            else:
                break
        return kept

    def _is_duplicate(self, at: int, other: int) -> bool:
        """Whether a chunk has nearly the same words as another, the same numbers, and no other source.

        An untrusted copy of a text never takes the place of a more trusted one, however exact it is.
        """
        repeated, kept = self._chunks[at], self._chunks[other]
        if not covers(repeated.label, kept.label):
            return False
        if repeated.fingerprint == kept.fingerprint:
            return True
        alike = word_overlap(self._bags[at], self._bags[other]) >= _DUPLICATE_OVERLAP
        return alike and _numbers_in(repeated) == _numbers_in(kept)
