"""Retrieval: finding the passages that answer a question, and citing them so that anybody can look.

In go a `TextDocument` (id, text, label) and a query, out comes `SearchResults`: chunks with their scores, their places and their
labels. An `DocumentIndex` searches by meaning (`LocalEmbedder`, on this machine) and by words (BM25) at once, embeds only what
has changed, and is kept in one file. `cite` names a chunk, `DocumentIndex.resolve` says what a citation points to now, and
`check_citations` which citations of an answer are true. Needs `bicameral[retrieval]`; nothing is loaded before it is
used.
"""

from bicameral.errors import RetrievalError
from bicameral.retrieval._chunking import Chunking, estimate_tokens, split_document
from bicameral.retrieval._citations import (
    AnswerCitation,
    ChangedCitation,
    CitationCheck,
    CitationFault,
    GoneCitation,
    InventedCitation,
    Resolution,
    ResolvedCitation,
    check_citations,
    cite,
    defuse_citations,
    render_passage,
)
from bicameral.retrieval._documents import (
    Chunk,
    IndexChanges,
    SearchHit,
    SearchResults,
    TextDocument,
    corpus_fingerprint,
    text_fingerprint,
)
from bicameral.retrieval._embedding import Embedder, LocalEmbedder
from bicameral.retrieval._index import LEXICAL_WEIGHT, DocumentIndex
from bicameral.retrieval._text import split_words

__all__ = [
    "LEXICAL_WEIGHT",
    "AnswerCitation",
    "ChangedCitation",
    "Chunk",
    "Chunking",
    "CitationCheck",
    "CitationFault",
    "DocumentIndex",
    "Embedder",
    "GoneCitation",
    "IndexChanges",
    "InventedCitation",
    "LocalEmbedder",
    "Resolution",
    "ResolvedCitation",
    "RetrievalError",
    "SearchHit",
    "SearchResults",
    "TextDocument",
    "check_citations",
    "cite",
    "corpus_fingerprint",
    "defuse_citations",
    "estimate_tokens",
    "render_passage",
    "split_document",
    "split_words",
    "text_fingerprint",
]
