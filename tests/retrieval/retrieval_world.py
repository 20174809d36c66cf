"""An embedder that needs no weights, and labels to tell documents apart by."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bicameral.labels import Label, Source
from bicameral.retrieval import estimate_tokens
from bicameral.text import index_words

MINE = Label({Source("user", "request")})
STRANGER = Label({Source("third_party", "fetch_page", "text")}, {"ada@example.com"})


class WordEmbedder:
    """Each word is a direction of its own, and a text the sum of its words. Counts what it was asked for."""

    def __init__(self, width: int = 64, fingerprint: str = "words") -> None:
        self.name = f"words:{width}"
        self.fingerprint = fingerprint
        self.width = width
        self.window = 400
        self.asked: list[str] = []

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.extend(texts)
        rows = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in ("", *index_words(text)):
                row += _direction(word, self.width)
            row /= np.linalg.norm(row)
        return rows

    def lengths(self, texts: Sequence[str]) -> list[int]:
        return estimate_tokens(texts)


@cache
def _direction(word: str, width: int) -> NDArray[np.float32]:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(width).astype(np.float32)
