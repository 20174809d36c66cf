"""Retrieval: find the passages that answer a question, and cite them verifiably.

`TextDocument`s (id, text, label) and a query come in, `SearchResults` come out: chunks with scores, positions and
labels. A `DocumentIndex` searches by meaning (`LocalEmbedder`, on this machine) and by words (BM25) at once, embeds
only what has changed, and is stored in one file. `cite` names a chunk, `DocumentIndex.resolve` finds what a citation
refers to now, and `check_citations` which citations of an answer are valid. Needs `bicameral[retrieval]`; nothing is
loaded before it is used.
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
    "text_fingerprint",
]
