"""An index in a file: one safetensors file, written atomically and validated when read.

    notes       kind, version, the embedder and its fingerprint, the chunking, a hash of everything else
    documents   JSON: ids, texts, fingerprints, labels, positions and headings of chunks, and past chunks
    words       JSON: the words, by their numbers
    vectors     one row per chunk, in the order of the documents
    terms, counts, ends    the bags of words, one after another, and where each ends

The file contains neither texts nor fingerprints of chunks: they are cut from the documents, so no file can make a chunk
differ from its document.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError

from bicameral.cache import write_private_file
from bicameral.errors import LabelError, Place, RetrievalError
from bicameral.labels import Label, join, label_tree_from_json, label_tree_to_json
from bicameral.retrieval._chunking import Chunking
from bicameral.retrieval._citations import DIGITS, PastChunks
from bicameral.retrieval._documents import Chunk, StoredDocument, TextDocument, cut_chunk
from bicameral.retrieval._embedding import Embedder
from bicameral.retrieval._encoder import Array, BadTensorFile, read_tensors, tensor_file_pieces
from bicameral.retrieval._search import BagOfWords, Lexicon, concatenate_counts

if TYPE_CHECKING:
    from bicameral.retrieval._index import DocumentIndex

INDEX_KIND = "bicameral index"
INDEX_VERSION = "1"
_ARRAYS = ("counts", "documents", "ends", "terms", "vectors", "words")


class _BadIndexFile(ValueError):
    """The file is no index, or not a complete one."""


@dataclass(frozen=True)
class _WrittenDocument:
    id: str
    text: str
    fingerprint: str
    label: int
    chunks: list[tuple[int, int, tuple[str, ...]]]


@dataclass(frozen=True)
class _Contents:
    labels: list[Any]
    documents: list[_WrittenDocument]
    past: dict[str, list[Annotated[str, Field(pattern=f"^[0-9a-f]{{{DIGITS}}}$")]]]


_CONTENTS = TypeAdapter(_Contents)
_WORDS = TypeAdapter(list[str])
_CHUNKING = TypeAdapter(tuple[int, int])
Read = TypeVar("Read")


def save_index(index: DocumentIndex, path: Path) -> None:
    """Write an index to a temporary file and rename it; only its owner can read it."""
    arrays = _index_arrays(index)
    notes = {
        "kind": INDEX_KIND,
        "version": INDEX_VERSION,
        "embedder": index.embedder.name,
        "fingerprint": index.embedder.fingerprint,
        "chunking": json.dumps([index.chunking.tokens, index.chunking.overlap]),
    }
    notes["sha256"] = contents_digest(arrays, notes)
    try:
        write_private_file(path, tensor_file_pieces(arrays, notes), sync=True)
    except OSError as error:
        raise RetrievalError(
            "retrieval.cannot-write",
            f"the index cannot be written: {error.strerror or error}",
            place=Place(file=str(path)),
            fix="Check the folder and its permissions.",
        ) from error


def load_index(path: Path, embedder: Embedder, under: Label) -> DocumentIndex:
    """Read an index; every fact in the file is checked against the others before it is used."""
    try:
        arrays, notes = read_tensors(path)
        # Before the contents: vectors of another model of the same width would pass every other check.
        _check_notes(notes, embedder, path)
        return _build_index(arrays, notes, embedder, under)
    except OSError as error:
        raise RetrievalError(
            "retrieval.cannot-read",
            f"the index cannot be read: {error.strerror or error}",
            place=Place(file=str(path)),
            fix="Check the path and its permissions.",
        ) from error
    except (BadTensorFile, _BadIndexFile, LabelError) as error:
        raise RetrievalError(
            "retrieval.bad-index",
            f"this is not a whole index: {error}",
            place=Place(file=str(path)),
            fix="Make the index again from its documents.",
        ) from error


def _index_arrays(index: DocumentIndex) -> dict[str, Array]:
    stored, past, lexicon = index.export_contents()
    bags = [bag for entry in stored for bag in entry.bags]
    used, terms = np.unique(concatenate_counts([bag.terms for bag in bags]), return_inverse=True)
    known = lexicon.known_words
    return {
        "documents": np.frombuffer(_CONTENTS.dump_json(_document_contents(stored, past)), np.uint8),
        "words": np.frombuffer(_WORDS.dump_json([known[number] for number in used.tolist()]), np.uint8),
        "vectors": np.concatenate(
            [np.zeros((0, index.embedder.width), np.float32), *(entry.vectors for entry in stored)]
        ),
        "terms": terms.astype(np.int32),
        "counts": concatenate_counts([bag.counts for bag in bags]),
        "ends": np.cumsum([bag.terms.size for bag in bags], dtype=np.int64),
    }


def _document_contents(stored: Sequence[StoredDocument], past: PastChunks) -> _Contents:
    labels: dict[Label, int] = {}
    documents = [
        _WrittenDocument(
            id=entry.document.id,
            text=entry.document.text,
            fingerprint=entry.document.fingerprint,
            label=labels.setdefault(entry.document.label, len(labels)),
            chunks=[(chunk.start, chunk.end, chunk.headings) for chunk in entry.chunks],
        )
        for entry in stored
    ]
    remembered = {name: list(digits) for name, digits in past.known.items()}
    return _Contents(labels=[label_tree_to_json(label) for label in labels], documents=documents, past=remembered)


def _check_notes(notes: Mapping[str, str], embedder: Embedder, path: Path) -> None:
    if notes.get("kind") != INDEX_KIND:
        raise _BadIndexFile("it is not an index")
    if notes.get("version") != INDEX_VERSION:
        raise RetrievalError(
            "retrieval.other-version",
            f"this index has the format {notes.get('version', '')[:20]!r}",
            place=Place(file=str(path)),
            expected=f"format {INDEX_VERSION!r}",
            fix="Make the index again from its documents.",
        )
    if notes.get("fingerprint") != embedder.fingerprint:
        raise RetrievalError(
            "retrieval.other-model",
            f"this index was made with {notes.get('embedder', '')[:80]!r}, whose vectors mean something else",
            place=Place(file=str(path)),
            expected=f"{embedder.name} (fingerprint {embedder.fingerprint[:12]})",
            fix="Use that embedder, or make the index again from its documents.",
        )


def _build_index(
    arrays: Mapping[str, Array], notes: Mapping[str, str], embedder: Embedder, under: Label
) -> DocumentIndex:
    """The index of these arrays; `_BadIndexFile` if they contradict each other."""
    from bicameral.retrieval._index import DocumentIndex

    # The hash detects damage, not forgery: whoever can write the file can write the hash.
    if sorted(arrays) != sorted(_ARRAYS) or contents_digest(arrays, notes) != notes.get("sha256"):
        raise _BadIndexFile("its contents are not those that were written")
    contents = _parse_json(_CONTENTS, arrays["documents"])
    words = _parse_json(_WORDS, arrays["words"])
    if len(set(words)) < len(words):
        raise _BadIndexFile("one of its words is there twice")
    documents = _read_documents(contents, under)
    count = sum(len(chunks) for _, chunks in documents)
    vectors = _check_vectors(arrays["vectors"], count, embedder.width)
    bags = _read_bags(arrays, count, len(words))
    stored: list[StoredDocument] = []
    start = 0
    for document, chunks in documents:
        end = start + len(chunks)
        stored.append(StoredDocument(document, chunks, vectors[start:end], tuple(bags[start:end])))
        start = end
    index = DocumentIndex(embedder, _read_chunking(notes.get("chunking", "")))
    index.replace_contents(
        stored, PastChunks({name: dict.fromkeys(digits) for name, digits in contents.past.items()}), Lexicon(words)
    )
    return index


def _read_chunking(written: str) -> Chunking:
    tokens, overlap = _parse_json(_CHUNKING, written.encode())
    try:
        return Chunking(tokens, overlap)
    except RetrievalError as error:
        raise _BadIndexFile(error.message) from None


def _read_documents(contents: _Contents, under: Label) -> list[tuple[TextDocument, tuple[Chunk, ...]]]:
    labels: list[Label] = []
    for each in contents.labels:
        label = label_tree_from_json(each)
        if not isinstance(label, Label):
            raise _BadIndexFile("the label of a document has parts")
        labels.append(join(label, under))
    names = [written.id for written in contents.documents]
    if names != sorted(set(names)):
        raise _BadIndexFile("its documents are not in order, or one is there twice")
    return [_read_document(written, labels) for written in contents.documents]


def _read_document(written: _WrittenDocument, labels: Sequence[Label]) -> tuple[TextDocument, tuple[Chunk, ...]]:
    if not 0 <= written.label < len(labels):
        raise _BadIndexFile("a document has a label that is not in its list")
    try:
        document = TextDocument(written.id, written.text, labels[written.label])
    except RetrievalError as error:
        raise _BadIndexFile(error.message) from None
    # The chunks are positions in exactly this text.
    if document.fingerprint != written.fingerprint:
        raise _BadIndexFile(f"the text of {document.id!r} is not the one that was written")
    for start, end, _ in written.chunks:
        if not 0 <= start < end <= len(document.text):
            raise _BadIndexFile(f"a chunk of {document.id!r} is not in its text")
    return document, tuple(cut_chunk(document, start, end, headings) for start, end, headings in written.chunks)


def _check_vectors(array: Array, count: int, width: int) -> NDArray[np.float32]:
    if array.dtype != np.float32 or array.shape != (count, width):
        raise _BadIndexFile("it does not have one vector for each chunk")
    # Also refuses `nan`, which is never smaller than anything.
    if not (np.abs(np.linalg.norm(array, axis=1) - 1) < 1e-3).all():
        raise _BadIndexFile("its vectors are not of length 1")
    return array


def _read_bags(arrays: Mapping[str, Array], count: int, words: int) -> list[BagOfWords]:
    terms, counts, ends = arrays["terms"], arrays["counts"], arrays["ends"]
    if (terms.dtype, counts.dtype, ends.dtype) != (np.int32, np.int32, np.int64):
        raise _BadIndexFile("its bags of words are not made of numbers")
    if ends.shape != (count,) or terms.shape != counts.shape or terms.ndim != 1:
        raise _BadIndexFile("it does not have one bag of words for each chunk")
    edges = np.concatenate([[0], ends])
    if (np.diff(edges) < 0).any() or edges[-1] != terms.size or (counts < 1).any():
        raise _BadIndexFile("its bags of words do not fit together")
    if terms.size and not (terms.min() >= 0 and terms.max() < words):
        raise _BadIndexFile("a bag has a word that is not in its list")
    bags = [BagOfWords(terms[start:end], counts[start:end]) for start, end in zip(edges[:-1], ends, strict=True)]
    if any((np.diff(bag.terms) <= 0).any() for bag in bags):
        raise _BadIndexFile("the words of a bag are not in order")
    return bags


def _parse_json(adapter: TypeAdapter[Read], raw: Array | bytes) -> Read:
    """A JSON text as a value of exactly this type."""
    try:
        return adapter.validate_json(raw if isinstance(raw, bytes) else raw.tobytes(), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise _BadIndexFile(f"a part of it cannot be read ({first['msg'][:120]})") from None


def contents_digest(arrays: Mapping[str, Array], notes: Mapping[str, str]) -> str:
    """The hash of everything in a file except the note that contains it."""
    digest = hashlib.sha256(json.dumps({**notes, "sha256": ""}, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape} ".encode())
        digest.update(np.ascontiguousarray(arrays[name]).view(np.uint8).reshape(-1).data)
    return digest.hexdigest()
