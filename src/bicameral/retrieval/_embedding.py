"""Embeddings: texts as vectors, so that texts of similar meaning are close even without a common word.

Needs the packages of `bicameral[retrieval]`; they are imported on first use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from bicameral.errors import RetrievalError, require_extra
from bicameral.models import ModelStore, ProgressReporter, Weights, engine_threads, find_weights

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from bicameral.retrieval._encoder import Bert


REQUIRED_PACKAGES = ("numpy", "threadpoolctl", "tokenizers")


def require_packages() -> None:
    """Raise `retrieval.not-installed` if a package of the extra is missing."""
    code = "retrieval.not-installed"
    require_extra("retrieval", *REQUIRED_PACKAGES, error=RetrievalError, code=code, needs="retrieval needs")


_TRAINED_WINDOW = 256
"""Tokens of a text that the model was trained on, its first and last special token included."""
_BATCH_TOKENS = 1024
"""Tokens that are embedded in one batch."""


class Embedder(Protocol):
    """Turns texts into vectors of length 1. Vectors of embedders with different fingerprints are never compared."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Identifies the vectors: a hash of the weights, the tokenizer, and how they are used."""
        ...

    @property
    def width(self) -> int: ...

    @property
    def window(self) -> int:
        """Tokens of a text that are read; the rest is ignored."""
        ...

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]: ...

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text."""
        ...


class LocalEmbedder:
    """The embedding model of the model store, on the CPU; nothing is loaded before the first text.

    Args:
        weights: The name of the weights in the store.
        store: The model store; by default the user's.
        offline: Whether to fail instead of downloading missing weights.
        progress: Reports a download.
        threads: Texts that are embedded in parallel; by default as many as the chat models use cores.

    Example:
        >>> embedder = LocalEmbedder()
        >>> near = embedder.vectors(["The invoice is due on Friday.", "When must the bill be paid?"])
        >>> round(float(near[0] @ near[1]), 2)
        0.44
    """

    def __init__(
        self,
        weights: str = "minilm",
        *,
        store: ModelStore | None = None,
        offline: bool = False,
        progress: ProgressReporter | None = None,
        threads: int | None = None,
    ) -> None:
        require_packages()
        if threads is not None and threads < 1:
            raise RetrievalError("retrieval.bad-setting", f"{threads} threads", expected="1 or more")
        self.weights = find_weights(weights, kind="embedding")
        self._store = store or ModelStore()
        self._offline = offline
        self._progress = progress
        self._threads = threads or engine_threads()
        self._loading = Lock()
        self._loaded: tuple[Any, Bert] | None = None

    @property
    def name(self) -> str:
        return f"local:{self.weights.id}@{self.weights.sha256[:8]}"

    @property
    def fingerprint(self) -> str:
        return _embedder_fingerprint(self.weights)

    @property
    def width(self) -> int:
        return self._model()[1].width

    @property
    def window(self) -> int:
        return _TRAINED_WINDOW - 2

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text. Only the beginning of a text that is longer than the window counts."""
        import numpy as np

        from bicameral.retrieval._encoder import one_core_each

        tokenizer, model = self._model()
        tokens = [_truncate_tokens(tokenizer.encode(_replace_surrogates(text)).ids) for text in texts]
        batches = list(_token_batches(tokens))
        with one_core_each():
            if len(batches) < 2:
                rows = [model.vectors(batch) for batch in batches]
            else:
                with ThreadPoolExecutor(min(self._threads, len(batches)), "embedding") as workers:
                    rows = list(workers.map(model.vectors, batches))
        return np.concatenate([np.zeros((0, model.width), dtype=np.float32), *rows])

    def lengths(self, texts: Sequence[str]) -> list[int]:
        tokenizer, _ = self._model()
        return [len(tokenizer.encode(_replace_surrogates(text), add_special_tokens=False).ids) for text in texts]

    def _model(self) -> tuple[Any, Bert]:
        # Loading takes long and is done once; other threads wait for it.
        with self._loading:
            if self._loaded is None:
                path = self._store.ensure(self.weights, progress=self._progress, offline=self._offline)
                self._loaded = _load_encoder(self._store, self.weights, path)
            return self._loaded


def _load_encoder(store: ModelStore, weights: Weights, path: Path) -> tuple[Any, Bert]:
    """The tokenizer and the model, from the files of the weights."""
    from tokenizers import Tokenizer

    from bicameral.retrieval._encoder import Bert, BertShape, read_tensors

    try:
        config = json.loads(store.companion_path(weights, "config.json").read_text(encoding="utf-8"))
        tokenizer = Tokenizer.from_file(str(store.companion_path(weights, "tokenizer.json")))
        tensors, _ = read_tensors(path)
        model = Bert(tensors, BertShape.of(config))
    except (OSError, ValueError, KeyError) as error:
        raise RetrievalError(
            "retrieval.bad-weights",
            f"{weights.title} cannot be used: {error}",
            fix=f"`bicameral models verify {weights.alias}` looks at its files.",
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # Special tokens are encoded as text: `[SEP]` in a document is five characters, never a control token.
    tokenizer.encode_special_tokens = True
    return tokenizer, model


def _embedder_fingerprint(weights: Weights) -> str:
    # An index refuses vectors of another fingerprint, so everything that changes a vector is in here.
    used = {
        "files": [part.sha256 for part in weights.parts],
        "pooling": "mean",
        "normalised": True,
        "window": _TRAINED_WINDOW,
    }
    return hashlib.sha256(json.dumps(used, sort_keys=True).encode()).hexdigest()


def _replace_surrogates(text: str) -> str:
    """The text without lone surrogates, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _truncate_tokens(tokens: list[int]) -> list[int]:
    """The first tokens that the model was trained for, with the token that ends a text."""
    return tokens if len(tokens) <= _TRAINED_WINDOW else [*tokens[: _TRAINED_WINDOW - 1], tokens[-1]]


def _token_batches(texts: Sequence[list[int]]) -> Iterator[list[list[int]]]:
    """Texts in batches that use the processor well and do not fill the memory."""
    batch: list[list[int]] = []
    size = 0
    for tokens in texts:
        if batch and size + len(tokens) > _BATCH_TOKENS:
            yield batch
            batch, size = [], 0
        batch.append(tokens)
        size += len(tokens)
    if batch:
        yield batch
