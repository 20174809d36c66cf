"""Vectors of passages, of which some are not computed yet."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bicameral.retrieval import DocumentIndex, Embedder, estimate_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
