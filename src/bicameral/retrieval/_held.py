"""Documents as an index holds them, and the vectors of their chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._documents import Chunk, Document, fingerprint
from ._embedding import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ._lexical import Bag


@dataclass(frozen=True, slots=True)
class Changes:
    """What adding or updating documents did, in chunks."""

    embedded: int = 0
    kept: int = 0
    """Chunks whose vectors were known already."""
    removed: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """A document in the index."""

    document: Document
    chunks: tuple[Chunk, ...]
    vectors: NDArray[np.float32]
    bags: tuple[Bag, ...]


class Vectors:
    """The vectors of chunks: those that are known, and those that have to be made, in one go."""

    def __init__(self, embedder: Embedder, before: Iterable[Held]) -> None:
        self._embedder = embedder
        self._known = {
            fingerprint(chunk.context): vector
            for held in before
            for chunk, vector in zip(held.chunks, held.vectors, strict=True)
        }
        self.made = 0

    def make(self, chunks: Sequence[Chunk]) -> None:
        new = {
            key: text for text in (chunk.context for chunk in chunks) if (key := fingerprint(text)) not in self._known
        }
        self._known |= zip(new, self._embedder.vectors(list(new.values())), strict=True)
        self.made = len(new)

    def of(self, chunks: Sequence[Chunk]) -> NDArray[np.float32]:
        import numpy as np

        rows = [self._known[fingerprint(chunk.context)] for chunk in chunks]
        return np.stack(rows) if rows else np.zeros((0, self._embedder.width), dtype=np.float32)
