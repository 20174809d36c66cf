"""An index in a file: one safetensors file, written in one step and read with suspicion.

    notes       what it is, its version, the embedder and its fingerprint, the chunking, a hash of everything else
    documents   JSON: ids, texts, fingerprints, labels, the places and headings of the chunks, and what was here once
    words       JSON: the words, by their numbers
    vectors     one row a chunk, in the order of the documents
    terms, counts, ends    the bags of words, one after another, and where each ends

Texts of chunks and their fingerprints are not in it: they are cut from the documents, so no file can make a chunk say
what its document does not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError

from bicameral.errors import LabelError, Place, RetrievalError
from bicameral.labels import Label, join, shade_from_json, shade_to_json

from ._chunking import Chunking
from ._citations import DIGITS, Past
from ._documents import Chunk, Document, chunk_of
from ._embedding import Embedder
from ._held import Held
from ._lexical import Bag, Lexicon
from ._tensors import Array, NotTensors, read_tensors, to_bytes

if TYPE_CHECKING:
    from ._index import Index

KIND = "bicameral index"
VERSION = "1"
_ARRAYS = ("counts", "documents", "ends", "terms", "vectors", "words")


class _Bad(ValueError):
    """The file is no index, or not a whole one."""


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


def save(index: Index, path: Path) -> None:
    """Write an index beside its place and put it there in one step; only its owner can read it."""
    arrays = _arrays(index)
    notes = {
        "kind": KIND,
        "version": VERSION,
        "embedder": index.embedder.name,
        "fingerprint": index.embedder.fingerprint,
        "chunking": json.dumps([index.chunking.tokens, index.chunking.overlap]),
    }
    notes["sha256"] = digest(arrays, notes)
    try:
        _write(path, to_bytes(arrays, notes))
    except OSError as error:
        raise RetrievalError(
            "retrieval.cannot-write",
            f"the index cannot be written: {error.strerror or error}",
            place=Place(file=str(path)),
            fix="Check the folder and its permissions.",
        ) from error


def load(path: Path, embedder: Embedder, under: Label) -> Index:
    """Read an index; every fact in the file is held against the others before it counts."""
    try:
        arrays, notes = read_tensors(path)
        _check_notes(notes, embedder, path)
        return _index(arrays, notes, embedder, under)
    except OSError as error:
        raise RetrievalError(
            "retrieval.cannot-read",
            f"the index cannot be read: {error.strerror or error}",
            place=Place(file=str(path)),
            fix="Check the path and its permissions.",
        ) from error
    except (NotTensors, _Bad, LabelError) as error:
        raise _damaged(path, str(error)) from error


def _write(path: Path, pieces: Sequence[bytes]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            for piece in pieces:
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    # So that the new name survives a power cut, where the platform can.
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _arrays(index: Index) -> dict[str, Array]:
    held, past, lexicon = index.contents()
    bags = [bag for each in held for bag in each.bags]
    used, terms = np.unique(_joined([bag.terms for bag in bags]), return_inverse=True)
    known = lexicon.known
    return {
        "documents": _bytes(_CONTENTS.dump_json(_contents(held, past))),
        "words": _bytes(_WORDS.dump_json([known[number] for number in used.tolist()])),
        "vectors": np.concatenate([np.zeros((0, index.embedder.width), np.float32), *(each.vectors for each in held)]),
        "terms": terms.astype(np.int32),
        "counts": _joined([bag.counts for bag in bags]),
        "ends": np.cumsum([bag.terms.size for bag in bags], dtype=np.int64),
    }


def _contents(held: Sequence[Held], past: Past) -> _Contents:
    labels: dict[Label, int] = {}
    documents = [
        _WrittenDocument(
            id=each.document.id,
            text=each.document.text,
            fingerprint=each.document.fingerprint,
            label=labels.setdefault(each.document.label, len(labels)),
            chunks=[(chunk.start, chunk.end, chunk.headings) for chunk in each.chunks],
        )
        for each in held
    ]
    remembered = {name: list(digits) for name, digits in past.known.items()}
    return _Contents(labels=[shade_to_json(label) for label in labels], documents=documents, past=remembered)


def _check_notes(notes: Mapping[str, str], embedder: Embedder, path: Path) -> None:
    if notes.get("kind") != KIND:
        raise _Bad("it is not an index")
    if notes.get("version") != VERSION:
        raise RetrievalError(
            "retrieval.other-version",
            f"this index has the format {notes.get('version', '')[:20]!r}",
            place=Place(file=str(path)),
            expected=f"format {VERSION!r}",
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


def _index(arrays: Mapping[str, Array], notes: Mapping[str, str], embedder: Embedder, under: Label) -> Index:
    from ._index import Index

    if sorted(arrays) != sorted(_ARRAYS) or digest(arrays, notes) != notes.get("sha256"):
        raise _Bad("its contents are not those that were written")
    contents = _read(_CONTENTS, arrays["documents"])
    words = _read(_WORDS, arrays["words"])
    if len(set(words)) < len(words):
        raise _Bad("one of its words is there twice")
    documents = _read_documents(contents, under)
    count = sum(len(chunks) for _, chunks in documents)
    vectors = _vectors(arrays["vectors"], count, embedder.width)
    bags = _bags(arrays, count, len(words))
    held: list[Held] = []
    start = 0
    for document, chunks in documents:
        end = start + len(chunks)
        held.append(Held(document, chunks, vectors[start:end], tuple(bags[start:end])))
        start = end
    index = Index(embedder, _chunking(notes.get("chunking", "")))
    index.refill(held, Past({name: dict.fromkeys(digits) for name, digits in contents.past.items()}), Lexicon(words))
    return index


def _chunking(written: str) -> Chunking:
    tokens, overlap = _read(_CHUNKING, written.encode())
    try:
        return Chunking(tokens, overlap)
    except RetrievalError as error:
        raise _Bad(error.message) from None


def _read_documents(contents: _Contents, under: Label) -> list[tuple[Document, tuple[Chunk, ...]]]:
    labels = [_read_label(each, under) for each in contents.labels]
    names = [written.id for written in contents.documents]
    if names != sorted(set(names)):
        raise _Bad("its documents are not in order, or one is there twice")
    return [_read_document(written, labels) for written in contents.documents]


def _read_label(written: object, under: Label) -> Label:
    shade = shade_from_json(written)
    if not isinstance(shade, Label):
        raise _Bad("the label of a document has parts")
    return join(shade, under)


def _read_document(written: _WrittenDocument, labels: Sequence[Label]) -> tuple[Document, tuple[Chunk, ...]]:
    if not 0 <= written.label < len(labels):
        raise _Bad("a document has a label that is not in its list")
    try:
        document = Document(written.id, written.text, labels[written.label])
    except RetrievalError as error:
        raise _Bad(error.message) from None
    if document.fingerprint != written.fingerprint:
        raise _Bad(f"the text of {document.id!r} is not the one that was written")
    for start, end, _ in written.chunks:
        if not 0 <= start < end <= len(document.text):
            raise _Bad(f"a chunk of {document.id!r} is not in its text")
    return document, tuple(chunk_of(document, start, end, headings) for start, end, headings in written.chunks)


def _vectors(array: Array, count: int, width: int) -> NDArray[np.float32]:
    if array.dtype != np.float32 or array.shape != (count, width):
        raise _Bad("it does not have one vector for each chunk")
    # Also refuses what is no number: nothing compares with it.
    if not (np.abs(np.linalg.norm(array, axis=1) - 1) < 1e-3).all():
        raise _Bad("its vectors are not of length 1")
    return array


def _bags(arrays: Mapping[str, Array], count: int, words: int) -> list[Bag]:
    terms, counts, ends = arrays["terms"], arrays["counts"], arrays["ends"]
    if (terms.dtype, counts.dtype, ends.dtype) != (np.int32, np.int32, np.int64):
        raise _Bad("its bags of words are not made of numbers")
    if ends.shape != (count,) or terms.shape != counts.shape or terms.ndim != 1:
        raise _Bad("it does not have one bag of words for each chunk")
    edges = np.concatenate([[0], ends])
    if (np.diff(edges) < 0).any() or edges[-1] != terms.size or (counts < 1).any():
        raise _Bad("its bags of words do not fit together")
    if terms.size and not (terms.min() >= 0 and terms.max() < words):
        raise _Bad("a bag has a word that is not in its list")
    bags = [Bag(terms[start:end], counts[start:end]) for start, end in zip(edges[:-1], ends, strict=True)]
    if any((np.diff(bag.terms) <= 0).any() for bag in bags):
        raise _Bad("the words of a bag are not in order")
    return bags


def _joined(arrays: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate([np.zeros(0, dtype=np.int32), *arrays])


def _bytes(raw: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(raw, dtype=np.uint8)


def _read(kind: TypeAdapter[Read], raw: Array | bytes) -> Read:
    """What JSON says, if it is exactly of this kind."""
    try:
        return kind.validate_json(raw if isinstance(raw, bytes) else raw.tobytes(), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise _Bad(f"a part of it cannot be read ({first['msg'][:120]})") from None


def digest(arrays: Mapping[str, Array], notes: Mapping[str, str]) -> str:
    """The hash of everything in a file but the note that holds it."""
    found = hashlib.sha256(json.dumps({**notes, "sha256": ""}, sort_keys=True).encode())
    for name in sorted(arrays):
        found.update(f"{name} {arrays[name].dtype} {arrays[name].shape} ".encode())
        found.update(np.ascontiguousarray(arrays[name]).view(np.uint8).reshape(-1).data)
    return found.hexdigest()


def _damaged(path: Path, why: str) -> RetrievalError:
    return RetrievalError(
        "retrieval.bad-index",
        f"this is not a whole index: {why}",
        place=Place(file=str(path)),
        fix="Make the index again from its documents.",
    )
