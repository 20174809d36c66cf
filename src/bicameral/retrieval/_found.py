"""What a search gives."""

from __future__ import annotations

from dataclasses import dataclass

from bicameral.labels import Label, ListShade, join_all

from ._documents import Chunk


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found, and by what: `score` orders it, the other two say what was behind it.

    None of them says that the chunk answers the question.
    """

    chunk: Chunk
    score: float
    similarity: float | None
    """How near its meaning is, -1 to 1; None if nobody asked for that."""
    lexical: float | None
    """How much of the query's words it has, by their rarity (BM25), 0 to 1; None if nobody asked for that."""
    also: tuple[Chunk, ...] = ()
    """Chunks that were left out because they repeat this one."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search gave, the best first."""

    query: str
    hits: tuple[Hit, ...]
    own: Label
    """The label of which chunks these are: of everything that was searched, since all of it had a say in that."""

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return tuple(hit.chunk for hit in self.hits)

    @property
    def label(self) -> Label:
        """What whoever reads these chunks has read: the join of their labels."""
        return join_all(chunk.label for chunk in self.chunks)

    @property
    def shade(self) -> ListShade:
        """The labels of `chunks`, place by place."""
        return ListShade(self.own, places=[chunk.label for chunk in self.chunks])
