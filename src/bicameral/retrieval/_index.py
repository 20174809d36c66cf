"""The index: documents as chunks, with a vector and a bag of words for each, and the search in both."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from threading import RLock
from typing import TYPE_CHECKING

from bicameral.errors import RetrievalError, nearest_name
from bicameral.labels import NOTHING, Label
from bicameral.retrieval._chunking import Chunking, split_document
from bicameral.retrieval._citations import PastChunks, Resolution, resolve_citation
from bicameral.retrieval._documents import (
    Chunk,
    IndexChanges,
    SearchResults,
    StoredDocument,
    TextDocument,
    chunk_vectors,
    corpus_fingerprint,
    is_utf8_writable,
)
from bicameral.retrieval._embedding import Embedder, require_packages

if TYPE_CHECKING:
    from pathlib import Path

    from bicameral.retrieval._search import IndexSnapshot, Lexicon

LEXICAL_WEIGHT = 0.5
"""Chosen by measurement: see the page on retrieval."""
MAX_QUERY_LENGTH = 4_000
MAX_RESULTS = 1_000


class DocumentIndex:
    """Documents that can be searched, cited and stored in a file.

    Args:
        embedder: Turns texts into vectors.
        chunking: The length of chunks; it must fit into the embedder's window.

    Example:
        >>> index = DocumentIndex(LocalEmbedder())
        >>> index.add([TextDocument("travel.md", text, label)])
        >>> results = index.search("Who pays for the train?", k=3)
    """

    def __init__(self, embedder: Embedder, chunking: Chunking | None = None) -> None:
        require_packages()
        from bicameral.retrieval._search import Lexicon

        self.embedder = embedder
        self.chunking = chunking or Chunking()
        if self.chunking.tokens > embedder.window:
            raise RetrievalError(
                "retrieval.bad-setting",
                f"chunks of {self.chunking.tokens} tokens are longer than what {embedder.name} reads",
                expected=f"at most {embedder.window} tokens",
            )
        self._lexicon = Lexicon()
        self._stored: dict[str, StoredDocument] = {}
        self._past = PastChunks()
        self._snapshot: IndexSnapshot | None = None
        # Embedding takes long, so there are two locks. A writer holds `_writing` all the time and `_changing` only to
        # replace documents; a search takes `_changing` alone, and so never waits for an embedding. Whoever needs both
        # takes `_writing` first.
        self._writing = RLock()
        self._changing = RLock()

    def __len__(self) -> int:
        """The number of chunks."""
        with self._changing:
            return sum(len(stored.chunks) for stored in self._stored.values())

    @property
    def documents(self) -> tuple[TextDocument, ...]:
        """The documents, ordered by id."""
        with self._changing:
            return tuple(self._stored[name].document for name in sorted(self._stored))

    @property
    def fingerprint(self) -> str:
        """Equal for equal documents. If `corpus_fingerprint` of the current documents differs, the index is stale."""
        return corpus_fingerprint(self.documents)

    def add(self, documents: Iterable[TextDocument]) -> IndexChanges:
        """Add documents; one whose id is in use is refused."""
        with self._writing:
            given = list(documents)
            if taken := [document.id for document in given if document.id in self._stored]:
                raise RetrievalError(
                    "retrieval.document-exists",
                    f"there is already a document {taken[0]!r}",
                    fix="`update` replaces it.",
                )
            return self.update(given)

    def update(self, documents: Iterable[TextDocument]) -> IndexChanges:
        """Add documents, replacing those with the same ids; only new chunks are embedded.

        If anything fails, nothing is changed.
        """
        import numpy as np

        with self._writing:
            given = _documents_by_id(documents)
            chunks_by_id = {
                name: tuple(split_document(document, self.embedder.lengths, self.chunking))
                for name, document in given.items()
            }
            # Everything that can fail or takes long comes before the change itself.
            before = (self._stored[name] for name in given if name in self._stored)
            new = [chunk for chunks in chunks_by_id.values() for chunk in chunks]
            vectors, embedded = chunk_vectors(self.embedder, before, new)
            removed = 0
            with self._changing:
                for name, document in given.items():
                    chunks = chunks_by_id[name]
                    removed += self._forget(name, staying=chunks)
                    bags = tuple(self._lexicon.bag(chunk.context) for chunk in chunks)
                    rows = [vectors[chunk] for chunk in chunks]
                    matrix = np.stack(rows) if rows else np.zeros((0, self.embedder.width), dtype=np.float32)
                    self._stored[name] = StoredDocument(document, chunks, matrix, bags)
                self._snapshot = None
            return IndexChanges(embedded, len(new) - embedded, removed)

    def remove(self, document: str) -> None:
        """Remove a document; its citations then resolve to `GoneCitation`."""
        with self._writing, self._changing:
            if document not in self._stored:
                raise self._no_document(document)
            self._forget(document, staying=())
            self._snapshot = None

    def search(
        self,
        query: str,
        k: int = 5,
        *,
        lexical_weight: float = LEXICAL_WEIGHT,
        documents: Collection[str] | None = None,
        duplicates: bool = False,
    ) -> SearchResults:
        """The `k` chunks that match a query best, by meaning and by words.

        Args:
            query: The question or words.
            k: The most chunks to return.
            lexical_weight: The weight of the words: 1 searches by words alone, 0 by meaning alone.
            documents: Ids of the documents to search; by default all.
            duplicates: Whether to return chunks that repeat a better one; otherwise they are listed with it.
        """
        _check_query(query, k, lexical_weight)
        with self._changing:
            if documents is not None:
                for name in sorted(documents):
                    if name not in self._stored:
                        raise self._no_document(name)
            snapshot = self._current_snapshot()
            terms = self._lexicon.query_terms(query) if lexical_weight > 0 else None
        # Outside the lock: embedding is slow, and the snapshot does not change.
        vector = self.embedder.vectors([query])[0] if lexical_weight < 1 and len(snapshot) else None
        hits = snapshot.search(vector, terms, k, lexical_weight, documents, duplicates=duplicates)
        return SearchResults(query, hits, snapshot.label(documents))

    def resolve(self, citation: str) -> Resolution:
        """What a citation refers to, or why it refers to nothing (any more)."""
        with self._changing:
            return resolve_citation(citation, self._stored, self._past)

    def save(self, path: Path) -> None:
        """Write the index to one file atomically: a reader sees the old one or the new one."""
        from bicameral.retrieval._index_file import save_index

        with self._writing:
            save_index(self, path)

    @classmethod
    def load(cls, path: Path, embedder: Embedder, *, under: Label = NOTHING) -> DocumentIndex:
        """The index in a file. One that was made with another embedder is refused.

        Args:
            path: The file. It is as trustworthy as everyone who can write to it.
            embedder: The embedder that the index was made with.
            under: Joined into every label of the file.
        """
        require_packages()
        from bicameral.retrieval._index_file import load_index

        return load_index(path, embedder, under)

    def export_contents(self) -> tuple[list[StoredDocument], PastChunks, Lexicon]:
        """The whole contents, for a file."""
        return [self._stored[name] for name in sorted(self._stored)], self._past, self._lexicon

    def replace_contents(self, stored: Iterable[StoredDocument], past: PastChunks, lexicon: Lexicon) -> None:
        """Replace the whole contents by those of a file."""
        with self._writing, self._changing:
            self._stored = {entry.document.id: entry for entry in stored}
            self._past, self._lexicon, self._snapshot = past, lexicon, None

    def _current_snapshot(self) -> IndexSnapshot:
        """The snapshot of the current documents, built on the first search after a change."""
        from bicameral.retrieval._search import IndexSnapshot

        if self._snapshot is None:
            self._snapshot = IndexSnapshot([self._stored[name] for name in sorted(self._stored)], len(self._lexicon))
        return self._snapshot

    def _forget(self, name: str, staying: Sequence[Chunk]) -> int:
        """Remove a document and remember the chunks that are not `staying`; returns their number."""
        stored = self._stored.pop(name, None)
        if stored is None:
            return 0
        stays = {chunk.fingerprint for chunk in staying}
        gone = [chunk for chunk in stored.chunks if chunk.fingerprint not in stays]
        self._past.remember(name, (chunk.fingerprint for chunk in gone))
        return len(gone)

    def _no_document(self, name: str) -> RetrievalError:
        return RetrievalError(
            "retrieval.no-document",
            f"there is no document {name!r} in this index",
            nearest=nearest_name(name, self._stored),
        )


def _documents_by_id(documents: Iterable[TextDocument]) -> dict[str, TextDocument]:
    by_id: dict[str, TextDocument] = {}
    for document in documents:
        if document.id in by_id:
            raise RetrievalError("retrieval.document-exists", f"two of these documents are called {document.id!r}")
        by_id[document.id] = document
    return by_id


def _check_query(query: object, k: object, lexical_weight: object) -> None:
    if not isinstance(query, str) or not query.strip() or len(query) > MAX_QUERY_LENGTH or not is_utf8_writable(query):
        raise RetrievalError(
            "retrieval.bad-query",
            "this cannot be searched for",
            expected=f"1 to {MAX_QUERY_LENGTH:,} characters, not all spaces",
        )
    if type(k) is not int or not 1 <= k <= MAX_RESULTS:
        raise RetrievalError("retrieval.bad-setting", f"k is {k!r}", expected=f"1 to {MAX_RESULTS:,}")
    if not isinstance(lexical_weight, int | float) or not 0 <= lexical_weight <= 1:
        raise RetrievalError("retrieval.bad-setting", f"lexical_weight is {lexical_weight!r}", expected="0 to 1")
