"""Vectors of passages, of which some are not computed yet, and what they tell about the results of a search."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bicameral.retrieval import DocumentIndex, Embedder, estimate_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Hit = tuple[int, float, float | None]
"""The number of a passage, its score, and how similar in meaning it is to the query, where that is known."""

_FAR_SCORE = 0.6
_FAR_MEANING = 0.75
"""A passage below these shares of the score and of the similarity of the best one is about something else."""
_WEAK_MEANING = 0.35
"""Texts about different things are about as similar as this."""


class PartialEmbedder:
    """An embedder with one more dimension, for passages whose meaning is not computed yet.

    Such a passage has the vector of that dimension alone, which is perpendicular to every query: it is found by its
    words, and its similarity is 0.
    """

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._postponed = False

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"{self._inner.fingerprint} partial".encode()).hexdigest()

    @property
    def width(self) -> int:
        return self._inner.width + 1

    @property
    def window(self) -> int:
        return self._inner.window

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Estimated, so that passages are the same with and without an embedder."""
        return estimate_tokens(texts)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        rows = np.zeros((len(texts), self.width), dtype=np.float32)
        if self._postponed:
            rows[:, -1] = 1
        elif texts:
            rows[:, :-1] = self._inner.vectors(texts)
        return rows

    @contextmanager
    def postponed(self) -> Generator[None]:
        """Nothing is embedded inside."""
        self._postponed = True
        try:
            yield
        finally:
            self._postponed = False


def documents_without_vectors(index: DocumentIndex) -> set[str]:
    """The ids of the documents whose meaning is not computed yet."""
    stored, _, _ = index.export_contents()
    return {entry.document.id for entry in stored if entry.vectors.shape[0] and float(entry.vectors[0, -1]) > 0.5}


def without_distant(hits: Sequence[Hit], standing: Callable[[int], int]) -> list[Hit]:
    """Hits without those that are far behind the best passage, where their meaning is known.

    Rows of tables about other things hide the one note that says it from a small model.

    Args:
        hits: Passages with their scores and similarities.
        standing: How hard it is for others to write a passage, by its number. No passage is left out in favour of one
            of lower standing, nor in favour of one of standing 0: a mail that repeats the words of a question must not
            hide what it is about.
    """
    # A similarity of 0 is that of a passage whose meaning is not computed yet.
    known = [(hit, standing(hit[0])) for hit in hits if hit[2]]
    bests = {
        rank: max((hit for hit, own in known if own >= max(1, rank)), key=lambda hit: hit[1], default=None)
        for rank in {rank for _, rank in known}
    }
    distant = {hit[0] for hit, rank in known if _is_distant(hit, bests[rank])}
    return [hit for hit in hits if hit[0] not in distant]


def _is_distant(hit: Hit, best: Hit | None) -> bool:
    if best is None or hit[2] is None or best[2] is None:
        return False
    return hit[1] < _FAR_SCORE * best[1] and hit[2] < max(_WEAK_MEANING, _FAR_MEANING * best[2])
