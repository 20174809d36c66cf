"""Retrieval: finding the passages that answer a question, and citing them so that anybody can look.

In go a `Document` (id, text, label) and a query, out comes `Found`: chunks with their scores, their places and their
labels. An `Index` searches by meaning (`LocalEmbedder`, on this machine) and by words (BM25) at once, embeds only what
has changed, and is kept in one file. `cite` names a chunk, `Index.resolve` says what a citation points to now, and
`check_citations` which citations of an answer are true. Needs `bicameral[retrieval]`; nothing is loaded before it is
used.
"""

from bicameral.errors import RetrievalError

from ._answers import CitationCheck, Cited, Fault, check_citations
from ._chunking import Chunking, split, words_by_spaces
from ._citations import Changed, Gone, Invented, Resolution, Resolved, cite, defused, passage
from ._documents import Chunk, Document, corpus_fingerprint, fingerprint
from ._embedding import Embedder, LocalEmbedder
from ._found import Found, Hit
from ._held import Changes
from ._index import LEXICAL_WEIGHT, Index
from ._words import words

__all__ = [
    "LEXICAL_WEIGHT",
    "Changed",
    "Changes",
    "Chunk",
    "Chunking",
    "CitationCheck",
    "Cited",
    "Document",
    "Embedder",
    "Fault",
    "Found",
    "Gone",
    "Hit",
    "Index",
    "Invented",
    "LocalEmbedder",
    "Resolution",
    "Resolved",
    "RetrievalError",
    "check_citations",
    "cite",
    "corpus_fingerprint",
    "defused",
    "fingerprint",
    "passage",
    "split",
    "words",
    "words_by_spaces",
]
