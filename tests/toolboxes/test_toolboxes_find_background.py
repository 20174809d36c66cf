"""The background of an index: it completes what a question left, keeps it, and never outlives its owner."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, ScriptedProvider
from bicameral.cache import file_lock
from bicameral.config import Config
from bicameral.toolboxes import find
from bicameral.toolboxes._find_background import BackgroundWork
from bicameral.toolboxes._find_index import FindIndex
from bicameral.toolboxes._find_sources import Sources
from bicameral.tools import Folders, Surroundings

OLD = 1_760_000_000
TODAY = date(2026, 3, 2)
pytest.importorskip("numpy")
pytest.importorskip("tokenizers")


class Wheels:
    """An embedder by hand: a text about wheels, or none."""

    name, fingerprint, width, window = "hand", "f" * 64, 2, 256

    def __init__(self) -> None:
        self.embedded = 0

    def lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def vectors(self, texts: Sequence[str]) -> Any:
        import numpy as np

        self.embedded += len(texts)
        rows = np.zeros((len(texts), 2), dtype=np.float32)
        for at, text in enumerate(texts):
            rows[at, 0 if "bike" in text or "bicycle" in text else 1] = 1
        return rows


@pytest.fixture
def home(tmp_path: Path) -> Path:
    base = tmp_path / "home"
    base.mkdir()
    for number in range(40):
        path = base / f"{number:02}.txt"
        path.write_text(f"the bike {number}")
        os.utime(path, (OLD - number, OLD - number))
    return base


def make(home: Path, folder: Path | None, embedder: Wheels, *, background: bool = True) -> FindIndex:
    around = Surroundings(Folders.of(home, read=[home], write=[home]), now=lambda: datetime(2026, 3, 2, 8))
    return FindIndex(Sources(around), folder, embedder, embed_at_once=3, background=background)


def wait(index: FindIndex) -> None:
    thread = index.background and index.background.thread
    assert thread is not None
    thread.join(60)
    assert not thread.is_alive()


def test_the_background_computes_what_a_question_did_not_wait_for_and_keeps_it(home: Path, tmp_path: Path) -> None:
    embedder = Wheels()
    index = make(home, tmp_path / "index", embedder)
    assert index.refresh().without_meaning == 37
    wait(index)
    assert embedder.embedded == 40
    assert index.refresh().without_meaning == 0
    assert len(index.search("bicycle", 50, TODAY)) == 40
    again = Wheels()
    stored = make(home, tmp_path / "index", again)
    assert stored.refresh().without_meaning == 0
    assert again.embedded == 0


def test_a_change_while_the_background_works_is_seen_at_the_next_question(home: Path, tmp_path: Path) -> None:
    index = make(home, tmp_path / "index", Wheels())
    index.refresh()
    (home / "05.txt").unlink()
    (home / "06.txt").write_text("no wheels at all")
    os.utime(home / "06.txt", (OLD + 9, OLD + 9))
    index.refresh()
    if index.background is not None and index.background.thread is not None:
        index.background.thread.join(60)
    found = {each.source for each in index.search("bicycle", 50, TODAY)}
    assert found == {f"{number:02}.txt" for number in range(40)} - {"05.txt", "06.txt"}


def test_a_changed_note_is_not_found_by_what_it_meant_before(home: Path, tmp_path: Path) -> None:
    index = make(home, tmp_path / "index", Wheels())
    index.refresh()
    wait(index)
    assert index.refresh().without_meaning == 0
    (home / "06.txt").write_text("no wheels at all")
    os.utime(home / "06.txt", (OLD + 9, OLD + 9))
    assert index.refresh().without_meaning == 0
    found = {each.source for each in index.search("bicycle", 50, TODAY)}
    assert found == {f"{number:02}.txt" for number in range(40)} - {"06.txt"}


def test_another_process_that_computes_is_waited_for_by_nobody_and_its_work_is_taken_over(
    home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "index"
    index = make(home, folder, Wheels())
    folder.mkdir()
    with file_lock(folder / "background"):
        assert index.refresh().without_meaning == 37
        wait(index)
        assert index.refresh().without_meaning == 34, "a question still computes a few itself"
        # Its thread must have seen the lock before that is free: it would do the work itself otherwise.
        wait(index)
    other = make(home, folder, Wheels())
    other.refresh()
    wait(other)
    assert index.refresh().without_meaning == 0, "what the other has stored is read"


def test_no_thread_outlives_its_index(home: Path) -> None:
    index = make(home, None, Wheels())
    index.refresh()
    background = index.background
    assert background is not None
    thread, gone = background.thread, weakref.ref(index)
    assert thread is not None
    del index
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()
    assert gone() is None


def test_a_closed_index_starts_no_thread_and_can_still_be_searched(home: Path) -> None:
    index = make(home, None, Wheels())
    index.close()
    assert index.refresh().without_meaning == 37
    assert index.background is not None
    assert not index.background.is_running
    assert len(index.search("bike", 50, TODAY)) == 40


async def test_closing_the_agent_ends_the_background_of_its_tools(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(find, "local_embedder", Wheels)
    monkeypatch.chdir(home)
    agent = Agent(
        config=Config.defaults(),
        privileged=ScriptedProvider([], grammars=False),
        quarantined=ScriptedProvider([], grammars=False),
        cache={},
    )
    found = await agent.registry["find"].call({"query": "bicycle"})
    assert found["searched_by"] == "words and meaning"
    await agent.aclose()
    assert not [each for each in threading.enumerate() if each.name == "bicameral-find"]
    assert len((await agent.registry["find"].call({"query": "bike"}))["passages"]) == 8


class Endless:
    """Work without an end, which says when it was begun."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.finished = threading.Event()

    def work(self) -> bool:
        self.begun.set()
        return True

    def finish_work(self) -> None:
        self.finished.set()


def test_stopping_waits_for_the_present_piece_and_keeps_what_was_done() -> None:
    owner = Endless()
    work = BackgroundWork(owner)
    work.start()
    assert owner.begun.wait(60)
    work.stop()
    assert not work.is_running
    assert owner.finished.is_set()


def test_a_thread_ends_when_its_time_is_up() -> None:
    owner = Endless()
    work = BackgroundWork(owner, seconds=0)
    work.start()
    assert owner.finished.wait(60)


class Broken(Endless):
    def work(self) -> bool:
        raise OSError("the disk is gone")


def test_an_error_in_the_background_ends_it_and_nothing_else() -> None:
    owner = Broken()
    BackgroundWork(owner).start()
    assert owner.finished.wait(60)
