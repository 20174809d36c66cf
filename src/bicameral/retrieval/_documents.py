"""Documents, their chunks, search results, and documents as an index stores them."""

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
"""Characters of the headings that are searched with a chunk."""


def text_fingerprint(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def corpus_fingerprint(documents: Iterable[TextDocument]) -> str:
    """One hash of the ids and texts of documents, independent of their order."""
    lines = sorted(f"{document.fingerprint} {document.id}\n" for document in documents)
    return text_fingerprint("".join(lines))


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A text with an id of the owner's choice, and the label of everything that is read from it.

    Args:
        id: The id, which citations contain.
        text: The text.
        label: Where the text comes from and who may read it; by default unknown, and so untrusted.

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
    """The headings above it in its document, the outermost first."""
    label: Label
    """The label of the document."""
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", text_fingerprint(self.text))

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end

    @property
    def context(self) -> str:
        """What is searched: the text, below the headings that it does not contain itself."""
        above = " > ".join(heading for heading in self.headings if heading not in self.text)
        return f"{above[-_MAX_CONTEXT:]}\n{self.text}" if above else self.text


def cut_chunk(document: TextDocument, start: int, end: int, headings: tuple[str, ...]) -> Chunk:
    """The chunk of a document at a position; label and fingerprint come from the document and cannot be chosen."""
    text = document.text[start:end]
    return Chunk(document.id, document.fingerprint, start, end, text, headings, document.label)


def _check_document(document: TextDocument) -> None:
    name, text, label = document.id, document.text, document.label
    # Exact types: an object that only behaves like a text or a label could behave differently later.
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
    """Whether a text has no lone surrogates, which decoding broken bytes can produce."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _bad_document(message: str, expected: str) -> RetrievalError:
    return RetrievalError("retrieval.bad-document", message, expected=expected)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A chunk that was found. `score` determines its rank; `similarity` and `lexical` are its components.

    No score says that the chunk answers the question.
    """

    chunk: Chunk
    score: float
    similarity: float | None
    """Similarity of meaning, -1 to 1; None if it was not computed."""
    lexical: float | None
    """The share of the query's words in it, weighted by rarity (BM25), 0 to 1; None if it was not computed."""
    duplicates: tuple[Chunk, ...] = ()
    """Chunks that were left out because they repeat this one."""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The result of a search, the best hit first."""

    query: str
    hits: tuple[SearchHit, ...]
    searched_label: Label
    """The label of the choice of chunks: of everything that was searched, since all of it influenced the choice."""

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return tuple(hit.chunk for hit in self.hits)

    @property
    def label(self) -> Label:
        """The label of the content of the chunks: the join of their labels."""
        return join_all(chunk.label for chunk in self.chunks)

    @property
    def label_tree(self) -> ListLabels:
        """The labels of `chunks`, one by one."""
        return ListLabels(self.searched_label, places=[chunk.label for chunk in self.chunks])


@dataclass(frozen=True, slots=True)
class IndexChanges:
    """What adding or updating documents changed, in chunks."""

    embedded: int = 0
    kept: int = 0
    """Chunks whose vectors were known already."""
    removed: int = 0


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document in the index, with its chunks, vectors and bags of words."""

    document: TextDocument
    chunks: tuple[Chunk, ...]
    vectors: NDArray[np.float32]
    bags: tuple[BagOfWords, ...]


def chunk_vectors(
    embedder: Embedder, before: Iterable[StoredDocument], chunks: Sequence[Chunk]
) -> tuple[dict[Chunk, NDArray[np.float32]], int]:
    """The vector of each chunk, and how many of them had to be embedded: texts that `before` has are known."""
    known = {
        chunk.context: vector for stored in before for chunk, vector in zip(stored.chunks, stored.vectors, strict=True)
    }
    new = list(dict.fromkeys(chunk.context for chunk in chunks if chunk.context not in known))
    # One call for all texts, since the embedder works in batches.
    known |= zip(new, embedder.vectors(new), strict=True)
    return {chunk: known[chunk.context] for chunk in chunks}, len(new)
