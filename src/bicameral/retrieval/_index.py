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
    ChunkVectors,
    IndexChanges,
    SearchResults,
    StoredDocument,
    TextDocument,
    corpus_fingerprint,
    is_utf8_writable,
)
from bicameral.retrieval._embedding import Embedder, require_packages

if TYPE_CHECKING:
    from pathlib import Path

    from bicameral.retrieval._search import IndexSnapshot, Lexicon

LEXICAL_WEIGHT = 0.5
"""Chosen by measuring: see the page on retrieval."""
MAX_QUERY_LENGTH = 4_000
MAX_RESULTS = 1_000


class DocumentIndex:
    """Documents that can be searched, cited and kept in a file.

    Example:
        >>> index = DocumentIndex(LocalEmbedder())
        >>> index.add([TextDocument("travel.md", text, label)])
        >>> found = index.search("Who pays for the train?", k=3)
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
        self._view: IndexSnapshot | None = None
        # Writers come one after another, and embedding takes long; searches wait only while something is put in place.
        self._writing = RLock()
        self._changing = RLock()

    def __len__(self) -> int:
        """How many chunks there are."""
        with self._changing:
            return sum(len(held.chunks) for held in self._stored.values())

    @property
    def documents(self) -> tuple[TextDocument, ...]:
        """The documents, ordered by their ids."""
        with self._changing:
            return tuple(self._stored[name].document for name in sorted(self._stored))

    @property
    def fingerprint(self) -> str:
        """The same for the same documents; `corpus_fingerprint` of those that should be here says if it is stale."""
        return corpus_fingerprint(self.documents)

    def add(self, documents: Iterable[TextDocument]) -> IndexChanges:
        """Take in documents; one whose id is already here is refused."""
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
        """Take in documents, in place of those with the same ids; only chunks that are new are embedded.

        All of them or, if anything goes wrong, none.
        """
        with self._writing:
            given = _documents_by_id(documents)
            split_up = {
                name: tuple(split_document(document, self.embedder.lengths, self.chunking))
                for name, document in given.items()
            }
            vectors = ChunkVectors(self.embedder, (self._stored[name] for name in given if name in self._stored))
            vectors.embed_missing([chunk for chunks in split_up.values() for chunk in chunks])
            removed = 0
            with self._changing:
                for name, document in given.items():
                    chunks = split_up[name]
                    removed += self._forget(name, staying=chunks)
                    bags = tuple(self._lexicon.bag(chunk.context) for chunk in chunks)
                    self._stored[name] = StoredDocument(document, chunks, vectors.of(chunks), bags)
                self._view = None
            return IndexChanges(vectors.made, sum(map(len, split_up.values())) - vectors.made, removed)

    def remove(self, document: str) -> None:
        """Take a document out; its citations will say that it is gone."""
        with self._writing, self._changing:
            if document not in self._stored:
                raise self._no_document(document)
            self._forget(document, staying=())
            self._view = None

    def search(
        self,
        query: str,
        k: int = 5,
        *,
        lexical_weight: float = LEXICAL_WEIGHT,
        documents: Collection[str] | None = None,
        duplicates: bool = False,
    ) -> SearchResults:
        """The `k` chunks that fit a query best, by meaning and by words.

        `lexical_weight` is the share of the words: 1 is exact search alone, 0 meaning alone. `documents` limits the
        search to these. Chunks that repeat a better one are left out and named with it, unless `duplicates` is True.
        """
        _check_query(query, k, lexical_weight)
        with self._changing:
            if documents is not None:
                for name in sorted(documents):
                    if name not in self._stored:
                        raise self._no_document(name)
            view = self._current_snapshot()
            asked = self._lexicon.query_terms(query) if lexical_weight > 0 else None
        vector = self.embedder.vectors([query])[0] if lexical_weight < 1 and len(view) else None
        hits = view.search(vector, asked, k, lexical_weight, documents, duplicates=duplicates)
        return SearchResults(query, hits, view.label(documents))

    def resolve(self, citation: str) -> Resolution:
        """What a citation points to, or why it points to nothing (any more)."""
        with self._changing:
            return resolve_citation(citation, self._stored, self._past)

    def save(self, path: Path) -> None:
        """Write the index to one file, in one step: whoever reads it sees the old one or the new one."""
        from bicameral.retrieval._index_file import save_index

        with self._writing:
            save_index(self, path)

    @classmethod
    def load(cls, path: Path, embedder: Embedder, *, under: Label = NOTHING) -> DocumentIndex:
        """The index in a file. One that was made with another embedder is refused.

        A file is as trustworthy as whoever can write it; `under` is joined into every label that stands in it.
        """
        require_packages()
        from bicameral.retrieval._index_file import load_index

        return load_index(path, embedder, under)

    def export_contents(self) -> tuple[list[StoredDocument], PastChunks, Lexicon]:
        """Everything that is in the index, for a file."""
        return [self._stored[name] for name in sorted(self._stored)], self._past, self._lexicon

    def replace_contents(self, held: Iterable[StoredDocument], past: PastChunks, lexicon: Lexicon) -> None:
        """Put what came out of a file in place of everything that is here."""
        with self._writing, self._changing:
            self._stored = {each.document.id: each for each in held}
            self._past, self._lexicon, self._view = past, lexicon, None

    def _current_snapshot(self) -> IndexSnapshot:
        from bicameral.retrieval._search import IndexSnapshot

        if self._view is None:
            self._view = IndexSnapshot([self._stored[name] for name in sorted(self._stored)], len(self._lexicon))
        return self._view

    def _forget(self, name: str, staying: Sequence[Chunk]) -> int:
        held = self._stored.pop(name, None)
        if held is None:
            return 0
        stays = {chunk.fingerprint for chunk in staying}
        gone = [chunk for chunk in held.chunks if chunk.fingerprint not in stays]
        self._past.remember(name, (chunk.fingerprint for chunk in gone))
        return len(gone)

    def _no_document(self, name: str) -> RetrievalError:
        return RetrievalError(
            "retrieval.no-document",
            f"there is no document {name!r} in this index",
            nearest=nearest_name(name, self._stored),
        )


def _documents_by_id(documents: Iterable[TextDocument]) -> dict[str, TextDocument]:
    found: dict[str, TextDocument] = {}
    for document in documents:
        if document.id in found:
            raise RetrievalError("retrieval.document-exists", f"two of these documents are called {document.id!r}")
        found[document.id] = document
    return found


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
