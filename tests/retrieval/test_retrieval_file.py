"""An index in a file: it comes back as it was, and what somebody made of the file does not get in."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from retrieval_world import MINE, STRANGER, WordEmbedder

from bicameral.errors import RetrievalError
from bicameral.labels import PUBLIC, Label, Source, join
from bicameral.retrieval import ChangedCitation, Chunking, DocumentIndex, GoneCitation, TextDocument, cite
from bicameral.retrieval._encoder import Array, BadTensorFile, read_tensors, tensor_file_pieces
from bicameral.retrieval._index_file import contents_digest
from property_examples import examples

TEXT = "# Travel\nTrains are paid up to 400 euros.\n\n# Meals\nThere is a flat sum of 28 euros a day."


def an_index() -> DocumentIndex:
    index = DocumentIndex(WordEmbedder(), Chunking(tokens=60, overlap=10))
    index.add([TextDocument("travel.md", TEXT, MINE), TextDocument("page é #1", "Trains are free. 東京", STRANGER)])
    return index


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "handbook.index"
    an_index().save(path)
    return path


def refused(path: Path, code: str = "retrieval.bad-index") -> RetrievalError:
    with pytest.raises(RetrievalError) as caught:
        DocumentIndex.load(path, WordEmbedder())
    assert caught.value.code == code
    assert str(path) in str(caught.value)
    return caught.value


def rewritten(path: Path, change: Callable[[dict[str, Array], dict[str, str]], object]) -> Path:
    """The file with something else in it and a hash that fits: as an attacker would write it."""
    arrays, notes = read_tensors(path)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays, notes)
    notes["sha256"] = contents_digest(arrays, notes)
    path.write_bytes(b"".join(tensor_file_pieces(arrays, notes)))
    return path


def with_documents(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    def changed(arrays: dict[str, Array], _: dict[str, str]) -> None:
        contents = json.loads(arrays["documents"].tobytes())
        change(contents)
        arrays["documents"] = np.frombuffer(json.dumps(contents).encode(), dtype=np.uint8)

    return rewritten(path, changed)


# -- round trip


def test_an_index_comes_back_as_it_was(saved: Path) -> None:
    index, loaded = an_index(), DocumentIndex.load(saved, WordEmbedder())
    assert loaded.documents == index.documents
    assert loaded.chunking == index.chunking
    for query in ("trains", "flat sum", "東京"):
        assert loaded.search(query, 5) == index.search(query, 5)


def test_saving_what_was_loaded_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    DocumentIndex.load(saved, WordEmbedder()).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_loading_embeds_nothing(saved: Path) -> None:
    embedder = WordEmbedder()
    index = DocumentIndex.load(saved, embedder)
    index.update([TextDocument("travel.md", TEXT, MINE)])
    assert embedder.asked == []


def test_an_empty_index_comes_back(tmp_path: Path) -> None:
    DocumentIndex(WordEmbedder()).save(tmp_path / "empty")
    loaded = DocumentIndex.load(tmp_path / "empty", WordEmbedder())
    assert len(loaded) == 0
    loaded.add([TextDocument("a", "words", MINE)])
    assert loaded.search("words").chunks[0].document == "a"


def test_what_was_here_once_is_remembered(tmp_path: Path) -> None:
    index = an_index()
    old = cite(index.search("400 euros", 1).chunks[0])
    page = cite(index.search("free", 1, documents=["page é #1"]).chunks[0])
    index.update([TextDocument("travel.md", TEXT.replace("400", "4"), MINE)])
    index.remove("page é #1")
    index.save(tmp_path / "i")
    loaded = DocumentIndex.load(tmp_path / "i", WordEmbedder())
    assert isinstance(loaded.resolve(old), ChangedCitation)
    assert isinstance(loaded.resolve(page), GoneCitation)


names = st.text(max_size=8)
sources = st.builds(
    Source, st.sampled_from(["user", "system", "third_party"]), names.filter(lambda n: n != "extract"), names, names
)
labels = st.builds(Label, st.frozensets(sources, max_size=3), st.just(PUBLIC) | st.frozensets(names, max_size=3))


@settings(max_examples=examples(40))
@given(given=st.lists(labels, min_size=1, max_size=4))
def test_labels_come_back_the_very_same(tmp_path_factory: pytest.TempPathFactory, given: list[Label]) -> None:
    index = DocumentIndex(WordEmbedder())
    index.add(TextDocument(f"d{n}", "words", label) for n, label in enumerate(given))
    path = tmp_path_factory.mktemp("labels") / "i"
    index.save(path)
    loaded = DocumentIndex.load(path, WordEmbedder())
    assert [document.label for document in loaded.documents] == given
    assert all(before is after.label for before, after in zip(given, loaded.documents, strict=True))


def test_what_somebody_else_wrote_can_be_taken_under_a_label(saved: Path) -> None:
    loaded = DocumentIndex.load(saved, WordEmbedder(), under=STRANGER)
    assert {document.label for document in loaded.documents} == {join(MINE, STRANGER), STRANGER}
    assert not loaded.search("trains", 1).label.trusted


# -- writing


def test_only_the_owner_can_read_the_file(saved: Path) -> None:
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RetrievalError) as caught:
        an_index().save(saved)
    assert caught.value.code == "retrieval.cannot-write"
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RetrievalError) as caught:
        an_index().save(tmp_path / "nowhere" / "i")
    assert caught.value.code == "retrieval.cannot-write"


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "retrieval.cannot-read")
    refused(tmp_path, "retrieval.cannot-read")


# -- other models, other versions


def test_an_index_of_another_model_is_refused_and_names_it(saved: Path) -> None:
    with pytest.raises(RetrievalError) as caught:
        DocumentIndex.load(saved, WordEmbedder(fingerprint="other"))
    assert caught.value.code == "retrieval.other-model"
    assert "words:64" in str(caught.value)


def test_an_index_of_another_version_is_refused(saved: Path) -> None:
    refused(rewritten(saved, lambda _, notes: notes.update(version="2")), "retrieval.other-version")


def test_a_file_of_something_else_is_refused(saved: Path) -> None:
    refused(rewritten(saved, lambda _, notes: notes.update(kind="weights")))


# -- damage and malice


@settings(max_examples=examples(150))
@given(data=st.data())
def test_a_flipped_bit_anywhere_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("bit") / "i"
    an_index().save(path)
    raw = bytearray(path.read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(raw)
    with pytest.raises(RetrievalError):
        DocumentIndex.load(path, WordEmbedder())


@settings(max_examples=examples(60))
@given(cut=st.integers(0, 3_000), more=st.binary(max_size=20))
def test_a_file_that_is_cut_or_longer_is_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int, more: bytes
) -> None:
    path = tmp_path_factory.mktemp("cut") / "i"
    an_index().save(path)
    raw = path.read_bytes()
    path.write_bytes(raw[:-cut] if cut else raw + more + b"x")
    refused(path)


@settings(max_examples=examples(100))
@given(raw=st.binary(max_size=300))
def test_bytes_that_are_no_index_are_refused(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("raw") / "i"
    path.write_bytes(raw)
    refused(path)


def _first(contents: dict[str, Any]) -> dict[str, Any]:
    return contents["documents"][0]


CONTRADICTIONS: list[Callable[[dict[str, Any]], object]] = [
    lambda c: c["labels"].append(c["labels"][0] | {"shade": 7}),
    lambda c: c["labels"][0]["labels"][0].update(readers=["eve"]),
    lambda c: c["labels"][0]["labels"][0].update(sources=[["user", "extract", "", ""]]),
    lambda c: c["labels"].clear(),
    lambda c: _first(c).update(label=-1),
    lambda c: _first(c).update(label=99),
    lambda c: _first(c).update(label=True),
    lambda c: _first(c).update(label=None),
    lambda c: _first(c).pop("label"),
    lambda c: _first(c).update(text="another text of some length, so that its spans still fit into it"),
    lambda c: _first(c).update(id=""),
    lambda c: _first(c).update(id=_first({"documents": c["documents"][1:]})["id"]),
    lambda c: c["documents"].reverse(),
    lambda c: _first(c)["chunks"][0].__setitem__(1, 10_000),
    lambda c: _first(c)["chunks"][0].__setitem__(0, -5),
    lambda c: _first(c)["chunks"][0].__setitem__(1, 0),
    lambda c: _first(c)["chunks"][0].__setitem__(0, 0.5),
    lambda c: _first(c)["chunks"][0].__setitem__(2, "heading"),
    lambda c: _first(c)["chunks"].append([0, 1, []]),
    lambda c: _first(c)["chunks"].clear(),
    lambda c: c.update(past={"d": ["nothex"]}),
    lambda c: c.update(past=[]),
    lambda c: c.clear(),
]


@pytest.mark.parametrize("change", CONTRADICTIONS)
def test_contents_that_contradict_themselves_are_refused(
    saved: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    refused(with_documents(saved, change))


MISFITS: list[Callable[[dict[str, Array], dict[str, str]], object]] = [
    lambda a, _: a.pop("vectors"),
    lambda a, _: a.update(more=np.zeros(1, np.float32)),
    lambda a, _: a.update(vectors=a["vectors"][:-1]),
    lambda a, _: a.update(vectors=a["vectors"] * 2),
    lambda a, _: a.update(vectors=a["vectors"] * np.float32("nan")),
    lambda a, _: a.update(vectors=a["vectors"].view(np.int32)),
    lambda a, _: a.update(terms=a["terms"] + 10_000),
    lambda a, _: a.update(terms=-a["terms"] - 1),
    lambda a, _: a.update(terms=a["terms"][::-1].copy()),
    lambda a, _: a.update(counts=a["counts"] * 0),
    lambda a, _: a.update(counts=a["counts"][:-1]),
    lambda a, _: a.update(ends=a["ends"][::-1].copy()),
    lambda a, _: a.update(ends=a["ends"] + 1),
    lambda a, _: a.update(words=np.frombuffer(b'["a","a"]', dtype=np.uint8)),
    lambda a, _: a.update(words=np.frombuffer(b"[" * 100_000, dtype=np.uint8)),
    lambda a, _: a.update(documents=np.frombuffer(b"[" * 100_000, dtype=np.uint8)),
    lambda a, _: a.update(documents=np.frombuffer(b"\xff", dtype=np.uint8)),
    lambda _, n: n.update(chunking="[1, 0]"),
    lambda _, n: n.update(chunking="{}"),
    lambda _, n: n.pop("chunking"),
]


@pytest.mark.parametrize("change", MISFITS)
def test_arrays_that_do_not_fit_together_are_refused(
    saved: Path, change: Callable[[dict[str, Array], dict[str, str]], object]
) -> None:
    refused(rewritten(saved, change))


def test_no_file_can_make_a_chunk_say_what_its_document_does_not(saved: Path) -> None:
    """Texts and fingerprints of chunks are cut from the document: there is no place to write others."""
    moved = with_documents(saved, lambda c: c["documents"][1]["chunks"][0].__setitem__(0, 3))
    for chunk in DocumentIndex.load(moved, WordEmbedder()).search("trains", 10).chunks:
        document = next(d for d in DocumentIndex.load(moved, WordEmbedder()).documents if d.id == chunk.document)
        assert chunk.text == document.text[chunk.start : chunk.end]
        assert chunk.label is document.label


# -- the format itself


def header(facts: object, body: bytes = b"") -> bytes:
    words = facts if isinstance(facts, bytes) else json.dumps(facts).encode()
    return len(words).to_bytes(8, "little") + words + body


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00" * 7,
        (1 << 63).to_bytes(8, "little"),
        (5_000_000).to_bytes(8, "little") + b" " * 5_000_001,
        header(b"\xff"),
        header([]),
        header({"__metadata__": []}),
        header({"__metadata__": {"a": 1}}),
        header({"a": 1}),
        header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}}, b"\x00" * 8),
        header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"\x00" * 4),
        header({"a": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 4]}}, b"\x00" * 4),
        header({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, b"\x00" * 4),
        header({"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, b"\x00" * 4),
        header({"a": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]}}, b"\x00" * 8),
        header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}, b"\x00" * 4),
        header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, b"\x00" * 4),
        header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, b"\x00" * 8),
        header(
            {
                "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                "b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
            },
            b"\x00" * 4,
        ),
        header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, b"\x00" * 5),
        header(b'{"a":' * 100_000),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "t").write_bytes(raw)
    with pytest.raises(BadTensorFile):
        read_tensors(tmp_path / "t")


def test_arrays_come_back_and_cannot_be_written_to(tmp_path: Path) -> None:
    arrays: dict[str, Array] = {"b": np.arange(6, dtype=np.int32).reshape(2, 3), "a": np.ones(3, dtype=np.float32)}
    (tmp_path / "t").write_bytes(b"".join(tensor_file_pieces(arrays, {"note": "é"})))
    found, notes = read_tensors(tmp_path / "t")
    assert notes == {"note": "é"}
    for name, array in arrays.items():
        assert np.array_equal(found[name], array)
        assert not found[name].flags.writeable
