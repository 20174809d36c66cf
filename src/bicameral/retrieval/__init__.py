"""Retrieval: find the passages that answer a question, and cite them verifiably.

`TextDocument`s (id, text, label) and a query come in, `SearchResults` come out: chunks with scores, positions and
labels. A `DocumentIndex` searches by meaning (`LocalEmbedder`, on this machine) and by words (BM25) at once, embeds
only what has changed, and is stored in one file. `cite` names a chunk, `DocumentIndex.resolve` finds what a citation
refers to now, and `check_citations` which citations of an answer are valid. Needs `bicameral[retrieval]`; nothing is
loaded before it is used.
"""

from bicameral.errors import RetrievalError as RetrievalError
from bicameral.retrieval._chunking import (
    Chunking as Chunking,
    estimate_tokens as estimate_tokens,
    split_document as split_document,
)
from bicameral.retrieval._citations import (
    AnswerCitation as AnswerCitation,
    ChangedCitation as ChangedCitation,
    CitationCheck as CitationCheck,
    CitationFault as CitationFault,
    GoneCitation as GoneCitation,
    InventedCitation as InventedCitation,
    Resolution as Resolution,
    ResolvedCitation as ResolvedCitation,
    check_citations as check_citations,
    cite as cite,
    defuse_citations as defuse_citations,
    render_passage as render_passage,
)
from bicameral.retrieval._documents import (
    Chunk as Chunk,
    IndexChanges as IndexChanges,
    SearchHit as SearchHit,
    SearchResults as SearchResults,
    TextDocument as TextDocument,
    corpus_fingerprint as corpus_fingerprint,
    text_fingerprint as text_fingerprint,
)
from bicameral.retrieval._embedding import (
    Embedder as Embedder,
    LocalEmbedder as LocalEmbedder,
    require_packages as require_packages,
)
from bicameral.retrieval._index import LEXICAL_WEIGHT as LEXICAL_WEIGHT, DocumentIndex as DocumentIndex
