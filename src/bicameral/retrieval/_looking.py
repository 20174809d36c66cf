"""One state of an index, ready to be searched: all its vectors in a matrix, all its words in one table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from bicameral.labels import Label, join_all

from ._blas import one_core_each
from ._found import Hit
from ._held import Held
from ._lexical import Asked, Postings
from ._ranking import Duplicates, fused, order_of

_LOOK_AT = 2_000
"""How many chunks are looked through at most for those that do not repeat each other: copies in a flood are passed."""


class View:
    """A frozen look at the documents of an index."""

    def __init__(self, held: Sequence[Held], words_known: int) -> None:
        self._chunks = [chunk for each in held for chunk in each.chunks]
        self._vectors = np.concatenate([each.vectors for each in held]) if held else np.zeros((0, 0), dtype=np.float32)
        self._bags = [bag for each in held for bag in each.bags]
        self._postings = Postings(self._bags, words_known)
        self._labels = [each.document.label for each in held]
        self._label = join_all(self._labels)
        self._numbers = {each.document.id: number for number, each in enumerate(held)}
        self._documents = np.repeat(np.arange(len(held)), [len(each.chunks) for each in held])

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
        asked: Asked | None,
        k: int,
        weight: float,
        documents: Collection[str] | None,
        *,
        duplicates: bool,
    ) -> tuple[Hit, ...]:
        if not self._chunks:
            return ()
        with one_core_each():
            similarity = None if vector is None else self._vectors @ vector
        lexical = None if asked is None else self._postings.scores(asked)
        score = fused(similarity, lexical, weight)
        if documents is not None:
            wanted = np.zeros(len(self._labels), dtype=np.bool_)
            wanted[[self._numbers[name] for name in documents]] = True
            score[~wanted[self._documents]] = 0
        best = [int(at) for at in order_of(score)[:_LOOK_AT] if score[at] > 0]
        also = {at: list[int]() for at in best[:k]} if duplicates else self._without_repetition(best, k)
        return tuple(
            Hit(
                self._chunks[at],
                float(score[at]),
                None if similarity is None else float(similarity[at]),
                None if lexical is None else float(lexical[at]),
                tuple(self._chunks[other] for other in others),
            )
            for at, others in also.items()
        )

    def _without_repetition(self, best: Sequence[int], k: int) -> dict[int, list[int]]:
        looking = Duplicates(self._chunks, self._vectors, self._bags)
        kept: dict[int, list[int]] = {}
        for at in best:
            same = looking.first(at, list(kept))
            if same is not None:
                kept[same].append(at)
            elif len(kept) < k:
                kept[at] = []
            else:
                break
        return kept
