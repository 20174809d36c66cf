"""Weights of several files: all of them are here, or the weights are not."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from models_store_world import content_of, serving_hub, sha256, weights_of

from bicameral.errors import ModelError
from bicameral.models import FilePin, ModelStore, Weights, WheelPin
from bicameral.models._sources import HubSource, SourceError, WheelSource
from bicameral.models._store_files import FilePiece, ProgressReporter

CONTENT = content_of()
FILES = {"tokenizer.json": b'{"tokens": []}', "config.json": b'{"layers": 6}'}
EVERYTHING = {"model.safetensors": CONTENT, **FILES}


def weights(wheels: tuple[WheelPin, ...] = ()) -> Weights:
    pins = tuple(FilePin(name, len(raw), sha256(raw), f"tiny/model/{name}") for name, raw in FILES.items())
    plain = weights_of(CONTENT, wheels=wheels, hub=True)
    return replace(
        plain, kind="embedding", hub_file="model.safetensors", member="tiny/model/model.safetensors", files=pins
    )


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a snapshot of the hub looks like."""
    path = tmp_path / "snapshot"
    path.mkdir()
    for name, raw in EVERYTHING.items():
        (path / name).write_bytes(raw)
    return path


def wheel(folder: Path, contents: dict[str, bytes] = EVERYTHING) -> Path:
    path = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in contents.items():
            archive.writestr(f"tiny/model/{name}", raw)
        archive.writestr("tiny/model/other/config.json", b"another file of the same name")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return path


def pin(path: Path) -> WheelPin:
    return WheelPin("tiny", "1.0", path.stat().st_size, sha256(path.read_bytes()))


def code(action: object) -> str:
    assert callable(action)
    with pytest.raises(ModelError) as caught:
        action()
    return caught.value.code


class Giving:
    """A source that has some of the files, and counts what it was asked for."""

    def __init__(self, name: str, has: Sequence[str]) -> None:
        self.name = name
        self.asked: list[str] = []
        self._has = has

    def room_needed(self, weights: Weights, folder: Path) -> int:
        return weights.bytes

    def fetch(self, weights: Weights, folder: Path, progress: ProgressReporter) -> Sequence[FilePiece]:
        file = weights.hub_file or ""
        self.asked.append(file)
        if file not in self._has:
            raise SourceError(f"does not have {file}")
        (folder / "gift").write_bytes(EVERYTHING[file])
        return [FilePiece(folder / "gift")]


def check_whole(store: ModelStore) -> None:
    known = weights()
    path = store.path(known)
    assert path is not None
    assert path.read_bytes() == CONTENT
    for name, raw in FILES.items():
        assert store.companion_path(known, name).read_bytes() == raw
    assert store.verify(known).state == "present"
    assert not list(store.folder.glob("*.partial"))


def test_files_are_taken_from_beside_the_given_one(store: ModelStore, folder: Path) -> None:
    store.pull(weights(), file=folder / "model.safetensors")
    check_whole(store)


def test_all_of_it_is_taken_from_a_given_wheel(store: ModelStore, tmp_path: Path) -> None:
    path = wheel(tmp_path)
    store.pull(weights((pin(path),)), file=path)
    check_whole(store)


def test_a_given_wheel_that_lacks_a_file_is_refused(store: ModelStore, tmp_path: Path) -> None:
    path = wheel(tmp_path, {"model.safetensors": CONTENT, "config.json": FILES["config.json"]})
    assert code(lambda: store.pull(weights((pin(path),)), file=path)) == "models.damaged"
    assert store.path(weights()) is None


def test_without_what_goes_with_them_given_weights_are_refused(store: ModelStore, folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    assert code(lambda: store.pull(weights(), file=folder / "model.safetensors")) == "models.unreadable"
    assert store.path(weights()) is None


@pytest.mark.parametrize("name", list(EVERYTHING))
def test_one_wrong_file_is_enough_to_refuse(store: ModelStore, folder: Path, name: str) -> None:
    (folder / name).write_bytes(EVERYTHING[name] + b" ")
    assert code(lambda: store.pull(weights(), file=folder / "model.safetensors")) == "models.damaged"
    assert store.path(weights()) is None


@pytest.mark.parametrize("name", list(EVERYTHING))
def test_weights_with_a_file_missing_are_missing_and_only_that_file_is_fetched(
    store: ModelStore, folder: Path, name: str
) -> None:
    store.pull(weights(), file=folder / "model.safetensors")
    path = store.folder / weights().stored_as if name == "model.safetensors" else store.companion_path(weights(), name)
    path.unlink()
    assert store.path(weights()) is None
    assert store.verify(weights()).state == "missing"
    source = Giving("a friend", list(EVERYTHING))
    store.pull(weights(), sources=[source])
    assert source.asked == [name]
    check_whole(store)


@pytest.mark.parametrize("name", list(FILES))
def test_a_changed_file_is_named_and_mended_by_a_pull(store: ModelStore, folder: Path, name: str) -> None:
    store.pull(weights(), file=folder / "model.safetensors")
    store.companion_path(weights(), name).write_bytes(b"something else")
    with pytest.raises(ModelError) as caught:
        store.path(weights())
    assert caught.value.code == "models.damaged"
    assert str(store.companion_path(weights(), name)) in str(caught.value)
    result = store.verify(weights())
    assert (result.state, result.path) == ("damaged", store.companion_path(weights(), name))
    store.pull(weights(), sources=[Giving("a friend", list(EVERYTHING))])
    check_whole(store)


def test_a_source_is_left_at_the_first_file_that_it_does_not_have(store: ModelStore) -> None:
    first, second = Giving("first", ["model.safetensors"]), Giving("second", list(EVERYTHING))
    store.pull(weights(), sources=[first, second])
    assert first.asked == ["model.safetensors", "tokenizer.json"]
    assert second.asked == ["tokenizer.json", "config.json"]
    check_whole(store)


def test_the_hub_gives_each_file_by_its_name(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving_hub(CONTENT) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.etag = "0" * 40  # as small files have there
        with pytest.raises(ModelError) as caught:
            store.pull(weights(), sources=[HubSource()])
    assert "tokenizer.json" in str(caught.value), "the weights came, and this hub has the same bytes for everything"
    assert (store.folder / weights().stored_as).read_bytes() == CONTENT


def test_one_wheel_is_fetched_once_for_all_of_its_files(
    store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from models_store_world import serving_registry

    index = tmp_path / "index"
    index.mkdir()
    known = weights((pin(wheel(index)),))
    with serving_registry(index) as registry:
        for key, value in registry.environment().items():
            monkeypatch.setenv(key, value)
        store.pull(known, sources=[WheelSource()])
        assert registry.asked == ["tiny-1.0-py3-none-any.whl"]
    check_whole(store)


def test_remove_takes_all_of_it(store: ModelStore, folder: Path) -> None:
    store.pull(weights(), file=folder / "model.safetensors")
    assert store.remove(weights()) is True
    assert [path.suffix for path in store.folder.iterdir()] == [".lock"]
    assert store.remove(weights()) is False
