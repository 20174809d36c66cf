"""Documents, the chunks of them that are found and cited, search results, and documents as an index stores them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bicameral.errors import RetrievalError
from bicameral.labels import UNKNOWN, Label, ListLabels, join_all
from bicameral.retrieval._embedding import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bicameral.retrieval._search import BagOfWords


MAX_DOCUMENT_ID = 200
MAX_DOCUMENT_TEXT = 20_000_000
_MAX_CONTEXT = 160


def text_fingerprint(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def corpus_fingerprint(documents: Iterable[TextDocument]) -> str:
    """One hash of documents, in whatever order: of their ids and their texts."""
    lines = sorted(f"{document.fingerprint} {document.id}\n" for document in documents)
    return text_fingerprint("".join(lines))


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A text under a name of its owner's choosing, and the label that everything read out of it carries.

    Example:
        >>> TextDocument("handbook/travel.md", text, Label({Source("user", "request")}))
    """

    id: str
    text: str = field(repr=False)
    label: Label = UNKNOWN
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_document(self)
        object.__setattr__(self, "fingerprint", text_fingerprint(self.text))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document: `text` is exactly `document.text[start:end]`."""

    document: str
    document_fingerprint: str
    start: int
    end: int
    text: str = field(repr=False)
    headings: tuple[str, ...]
    """Under which headings of its own document it stands, the outermost first."""
    label: Label
    """The document's."""
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", text_fingerprint(self.text))

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end

    @property
    def context(self) -> str:
        """What is searched: the text, below those of its headings that do not stand in it."""
        above = " > ".join(heading for heading in self.headings if heading not in self.text)
        return f"{above[-_MAX_CONTEXT:]}\n{self.text}" if above else self.text


def cut_chunk(document: TextDocument, start: int, end: int, headings: tuple[str, ...]) -> Chunk:
    """The chunk of a document at a place; its label and fingerprint are not for anybody to choose."""
    text = document.text[start:end]
    return Chunk(document.id, document.fingerprint, start, end, text, headings, document.label)


def _check_document(document: TextDocument) -> None:
    name, text, label = document.id, document.text, document.label
    # By their exact types: what only behaves like a text or a label could behave otherwise later.
    if type(name) is not str or not name.strip() or len(name) > MAX_DOCUMENT_ID or not name.isprintable():
        raise _bad_document(
            f"{str(name)[:MAX_DOCUMENT_ID]!r} cannot be the id of a document",
            f"1 to {MAX_DOCUMENT_ID} printable characters",
        )
    if type(text) is not str or not is_utf8_writable(text):
        raise _bad_document(f"what is given as the text of {name!r} is none", "text that can be written as UTF-8")
    if len(text) > MAX_DOCUMENT_TEXT:
        raise _bad_document(
            f"{name!r} has {len(text):,} characters", f"at most {MAX_DOCUMENT_TEXT:,}; split it into several documents"
        )
    if type(label) is not Label:
        raise _bad_document(f"the label of {name!r} is a {type(label).__name__}", "a Label")


def is_utf8_writable(text: str) -> bool:
    """Whether a text has no halves of characters in it, which broken bytes leave behind."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _bad_document(message: str, expected: str) -> RetrievalError:
    return RetrievalError("retrieval.bad-document", message, expected=expected)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A chunk that was found, and by what: `score` orders it, the other two say what was behind it.

    None of them says that the chunk answers the question.
    """

    chunk: Chunk
    score: float
    similarity: float | None
    """How near its meaning is, -1 to 1; None if nobody asked for that."""
    lexical: float | None
    """How much of the query's words it has, by their rarity (BM25), 0 to 1; None if nobody asked for that."""
    duplicates: tuple[Chunk, ...] = ()
    """Chunks that were left out because they repeat this one."""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What a search gave, the best first."""

    query: str
    hits: tuple[SearchHit, ...]
    searched_label: Label
    """The label of which chunks these are: of everything that was searched, since all of it had a say in that."""

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return tuple(hit.chunk for hit in self.hits)

    @property
    def label(self) -> Label:
        """What whoever reads these chunks has read: the join of their labels."""
        return join_all(chunk.label for chunk in self.chunks)

    @property
    def shade(self) -> ListLabels:
        """The labels of `chunks`, place by place."""
        return ListLabels(self.searched_label, places=[chunk.label for chunk in self.chunks])


@dataclass(frozen=True, slots=True)
class IndexChanges:
    """What adding or updating documents did, in chunks."""

    embedded: int = 0
    kept: int = 0
    """Chunks whose vectors were known already."""
    removed: int = 0


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document in the index."""

    document: TextDocument
    chunks: tuple[Chunk, ...]
    vectors: NDArray[np.float32]
    bags: tuple[BagOfWords, ...]


class ChunkVectors:
    """The vectors of chunks: those that are known, and those that have to be made, in one go."""

    def __init__(self, embedder: Embedder, before: Iterable[StoredDocument]) -> None:
        self._embedder = embedder
        self._known = {
            text_fingerprint(chunk.context): vector
            for held in before
            for chunk, vector in zip(held.chunks, held.vectors, strict=True)
        }
        self.made = 0

    def embed_missing(self, chunks: Sequence[Chunk]) -> None:
        new = {
            key: text
            for text in (chunk.context for chunk in chunks)
            if (key := text_fingerprint(text)) not in self._known
        }
        self._known |= zip(new, self._embedder.vectors(list(new.values())), strict=True)
        self.made = len(new)

    def of(self, chunks: Sequence[Chunk]) -> NDArray[np.float32]:
        import numpy as np

        rows = [self._known[text_fingerprint(chunk.context)] for chunk in chunks]
        return np.stack(rows) if rows else np.zeros((0, self._embedder.width), dtype=np.float32)
