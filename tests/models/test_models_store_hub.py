"""The model hub as a source, through the real hub client and a hub on 127.0.0.1."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from models_store_world import Hub, content_of, serving_hub, sha256, weights_of

from bicameral.errors import ModelError
from bicameral.models._sources import HubSource
from bicameral.models._store import ModelStore
from bicameral.models._store_files import SilentProgress

CONTENT = content_of(200_000)
TINY = weights_of(CONTENT, hub=True)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[Hub]:
    with serving_hub(CONTENT) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        yield hub


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


def reason(store: ModelStore, source: HubSource) -> str:
    with pytest.raises(ModelError) as caught:
        store.pull(TINY, sources=[source])
    assert caught.value.code == "models.no-source"
    return str(caught.value)


def test_the_hub_gives_the_file(hub: Hub, store: ModelStore) -> None:
    path = store.pull(TINY, sources=[HubSource()])
    assert path.read_bytes() == CONTENT
    assert store.path(TINY) == path
    assert not list(store.folder.glob("*.partial"))


class Interrupting(SilentProgress):
    """Somebody presses Ctrl-C after a while."""

    arrived = 0

    def advance(self, n: int) -> None:
        self.arrived += n
        if self.arrived > 10_000_000:
            raise KeyboardInterrupt


def test_an_interrupted_download_is_resumed_where_it_stopped(hub: Hub, store: ModelStore) -> None:
    # More than the hub client writes at a time, which is 10 MiB.
    hub.content = random.Random(0).randbytes(24_000_000)
    hub.etag = sha256(hub.content)
    large = weights_of(hub.content, hub=True)
    hub.stalls = 1
    with pytest.raises(KeyboardInterrupt):
        store.pull(large, sources=[HubSource()], progress=Interrupting())
    assert store.path(large) is None
    assert store.pull(large, sources=[HubSource()]).read_bytes() == hub.content
    assert hub.ranges == [None, "bytes=10485760-"]


def test_left_over_bytes_that_cannot_be_the_file_are_thrown_away(hub: Hub, store: ModelStore) -> None:
    left = store.folder / f"sha256-{TINY.sha256}.partial" / "hub" / TINY.sha256
    left.parent.mkdir(parents=True)
    left.write_bytes(bytes(len(CONTENT) + 1))
    assert store.pull(TINY, sources=[HubSource()]).read_bytes() == CONTENT


_PULL = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from models_store_world import weights_of
from bicameral.models import HubSource, ModelStore
ModelStore(Path(sys.argv[2])).pull(weights_of(Path(sys.argv[3]).read_bytes(), hub=True), sources=[HubSource()])
"""


def test_a_killed_pull_frees_its_lock_and_is_resumed_by_another_process(
    hub: Hub, store: ModelStore, tmp_path: Path
) -> None:
    hub.content = random.Random(0).randbytes(24_000_000)
    hub.etag = sha256(hub.content)
    hub.stalls = 1
    content = tmp_path / "content"
    content.write_bytes(hub.content)
    left = store.folder / f"sha256-{hub.etag}.partial" / "hub" / hub.etag
    argv = [sys.executable, "-c", _PULL, str(Path(__file__).parent), str(store.folder), str(content)]
    with subprocess.Popen(argv) as child:
        while not (left.exists() and left.stat().st_size == 10 << 20):
            assert child.poll() is None
            time.sleep(0.02)
        child.kill()
    assert store.pull(weights_of(hub.content, hub=True), sources=[HubSource()]).read_bytes() == hub.content
    assert hub.ranges == [None, "bytes=10485760-"]


def test_another_version_at_the_hub_is_refused_without_downloading_it(hub: Hub, store: ModelStore) -> None:
    hub.etag = "f" * 64
    assert "holds another version" in reason(store, HubSource())
    assert hub.ranges == []


def test_a_hub_that_lies_about_the_hash_is_found_out(hub: Hub, store: ModelStore) -> None:
    hub.content = CONTENT[::-1]
    assert "gave another file" in reason(store, HubSource())
    assert store.path(TINY) is None


def test_a_file_that_the_hub_no_longer_holds_is_said(hub: Hub, store: ModelStore) -> None:
    hub.gone = True
    assert "does not hold the file" in reason(store, HubSource())


def test_a_hub_that_does_not_answer_is_given_up_quickly(hub: Hub, store: ModelStore) -> None:
    hub.silent = True
    started = time.monotonic()
    assert "did not answer within 1 s" in reason(store, HubSource(answer_within=1))
    assert time.monotonic() - started < 20


def test_a_hub_that_cannot_be_reached_fails_quickly_and_quietly(
    hub: Hub, store: ModelStore, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    started = time.monotonic()
    assert "the model hub: cannot be reached" in reason(store, HubSource())
    assert time.monotonic() - started < 20
    assert capfd.readouterr() == ("", "")
    assert sorted(path.suffix for path in store.folder.iterdir()) == [".lock"]


def test_the_hubs_own_offline_switch_is_respected(hub: Hub, store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE is set" in reason(store, HubSource())


def test_weights_that_the_hub_does_not_publish_are_not_asked_for(store: ModelStore) -> None:
    with pytest.raises(ModelError, match="does not publish this file"):
        store.pull(weights_of(CONTENT), sources=[HubSource()])
