"""Workers that are really killed, frozen, cut off or stopped: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from durable_world import named, plan, worker

from bicameral.durable import Approval, Runs, RunView, Submission
from bicameral.tools import derive_call_key
from conftest import House
from postgres import kill_connections

PATIENCE = 60.0

THREE = """
a = look(1)
put('x', a)
put('y', a + 1)
put('z', a + 2)
answer(a)
"""


async def _until(what: Callable[[], object], patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not what():
        assert time.monotonic() < end, "it never came to that"
        await asyncio.sleep(0.02)


async def _submitted(runs: Runs, house: House, source: str, user: str = "local") -> str:
    return (await runs.submit(Submission(plan=plan(source, house.folder), user=user))).run


async def _ended(runs: Runs, run: str) -> RunView:
    view = await runs.wait(run, timeout=PATIENCE)
    assert view.has_ended, view
    return view


async def _question(runs: Runs, run: str) -> Approval:
    end = time.monotonic() + PATIENCE
    while not (view := await runs.get(run)).waits_for:
        assert not view.has_ended, view
        assert time.monotonic() < end, view
        await asyncio.sleep(0.05)
    return await runs.approval(view.waits_for[0])


def _signal(process: BaseProcess, number: int) -> None:
    assert process.pid is not None
    os.kill(process.pid, number)


def _killed(process: BaseProcess) -> None:
    process.kill()
    process.join()


async def test_a_killed_workers_runs_are_taken_up_and_no_effect_is_done_twice(runs: Runs, house: House) -> None:
    (house.folder / "slow").write_text("0.3")
    ids = [await _submitted(runs, house, THREE) for _ in range(6)]
    with worker(house.address, house.folder) as first, worker(house.address, house.folder):
        await _until(lambda: [line for line in named(house.folder, "put") if line["pid"] == first.pid])
        killed_at = time.time()
        _killed(first)
        views = [await _ended(runs, run) for run in ids]
    assert {(view.state, view.answer) for view in views} == {("finished", 10)}
    assert any(view.attempts > 1 for view in views)
    done = Counter(line["key"] for line in named(house.folder, "put"))
    assert len(done) == 18
    events = [event for run in ids for event in runs.run_journal.events_after(run, -1)]
    ended = Counter((event.run, event.step) for event in events if event.kind == "step-finished")
    assert set(ended.values()) == {1}
    # Only what was under way when its worker died, and so had no end in the record, was done again: with the same key.
    begun = Counter((event.run, event.step) for event in events if event.kind == "step-started")
    again = {derive_call_key(run, step, "put") for (run, step), times in begun.items() if times > 1}
    assert {key for key, times in done.items() if times > 1} <= again
    taken_over = [line["at"] for line in named(house.folder, "begun") if line["at"] > killed_at]
    assert taken_over
    assert runs.run_journal.verify() == []


async def test_an_effect_that_cannot_be_repeated_and_was_under_way_is_asked_about(runs: Runs, house: House) -> None:
    (house.folder / "slow").write_text("30")
    run = await _submitted(runs, house, "burn('bridge')\nanswer(1)")
    with worker(house.address, house.folder) as first:
        await _until(lambda: named(house.folder, "begun"))
        _killed(first)
    (house.folder / "slow").write_text("0")
    with worker(house.address, house.folder):
        asked = await _question(runs, run)
        assert "in doubt" in asked.calls[0]["why"]
        assert len(named(house.folder, "begun")) == 1
        await runs.answer(asked.id, "none")
        view = await _ended(runs, run)
    assert view.error is not None
    assert (view.state, view.error["code"]) == ("failed", "run.in-doubt")
    assert len(named(house.folder, "begun")) == 1


async def test_a_run_that_kills_its_workers_is_given_up_and_others_are_not(runs: Runs, house: House) -> None:
    poison = await _submitted(runs, house, "answer(die(1))", user="eve")
    stop = time.monotonic() + PATIENCE
    while (view := await runs.get(poison)).state != "failed":
        assert time.monotonic() < stop, view
        with worker(house.address, house.folder, deaths=2) as process:
            # Each worker that takes it dies of it; the next finds it.
            await asyncio.to_thread(process.join, 6)
    assert view.why is not None
    assert "durable.poison" in view.why
    assert len(named(house.folder, "die")) == 2
    assert runs.run_journal.events_after(poison, -1)[-1].kind == "run-failed"


async def test_a_worker_that_is_told_to_stop_gives_its_runs_back_at_once(runs: Runs, house: House) -> None:
    (house.folder / "slow").write_text("1.0")
    run = await _submitted(runs, house, THREE)
    # A lease that would not end within this test: only giving it back lets another go on.
    with worker(house.address, house.folder, lease=600.0) as first:
        await _until(lambda: named(house.folder, "begun"))
        first.terminate()
        await asyncio.to_thread(first.join, 30)
        assert first.exitcode == 0
        assert (await runs.get(run)).state == "queued"
        assert await runs.workers() == []
    (house.folder / "slow").write_text("0")
    with worker(house.address, house.folder, lease=600.0):
        view = await _ended(runs, run)
    assert (view.state, view.answer) == ("finished", 10)
    # The effect that had begun came to its end and was not done again.
    assert [line["place"] for line in named(house.folder, "put")] == ["x", "y", "z"]


async def test_a_worker_that_was_frozen_does_nothing_more_to_a_run_that_others_have(runs: Runs, house: House) -> None:
    (house.folder / "slow").write_text("0.5")
    run = await _submitted(runs, house, THREE)
    with worker(house.address, house.folder) as first:
        await _until(lambda: named(house.folder, "begun"))
        await _frozen(first, house)

        def begun() -> int:
            return sum(line["pid"] == first.pid for line in named(house.folder, "begun"))

        # Under load it may have come to its next step before it stood still.
        before = begun()
        with worker(house.address, house.folder) as second:
            view = await _ended(runs, run)
            _signal(first, signal.SIGCONT)
            await asyncio.sleep(2.0)
            assert (view.state, view.answer) == ("finished", 10)
            # It may end what it had begun, with the same key; it begins nothing.
            assert begun() == before
            by_key = {line["key"] for line in named(house.folder, "put")}
            assert len(by_key) == 3
            # And it works on: the next run may be either's.
            third = await _ended(runs, await _submitted(runs, house, "answer(3)"))
            assert third.answer == 3
            assert second.is_alive()
    assert runs.run_journal.verify() == []


async def _frozen(process: BaseProcess, house: House) -> None:
    """Freeze a worker, but not in the middle of a write to a file: with that lock in its hand nobody else can write."""
    while True:
        _signal(process, signal.SIGSTOP)
        # The signal is sent, not yet obeyed: until every thread stands still one of them can still take the lock.
        await _until(lambda: _stands_still(process))
        if "://" in house.address or all(map(_free, house.folder.glob("*.db"))):
            return
        _signal(process, signal.SIGCONT)
        await asyncio.sleep(0.01)


def _stands_still(process: BaseProcess) -> bool:
    """Whether each thread of a process is stopped: the letter after the name in its `stat`."""
    threads = Path(f"/proc/{process.pid}/task").glob("*/stat")
    return {thread.read_text().rpartition(")")[2].split()[0] for thread in threads} == {"T"}


def _free(file: Path) -> bool:
    with closing(sqlite3.connect(file, timeout=0.3, isolation_level=None)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        db.execute("ROLLBACK")
        return True


@pytest.mark.parametrize("house", ["postgres"], indirect=True)
async def test_lost_connections_lose_nothing(runs: Runs, house: House) -> None:
    (house.folder / "slow").write_text("0.1")
    with worker(house.address, house.folder), worker(house.address, house.folder):
        ids = [await _submitted(runs, house, THREE) for _ in range(10)]
        for _ in range(6):
            await asyncio.sleep(0.25)
            await asyncio.to_thread(kill_connections, house.address)
        views = [await _ended(runs, run) for run in ids]
    assert {(view.state, view.answer) for view in views} == {("finished", 10)}
    done = [line["key"] for line in named(house.folder, "put")]
    assert len(set(done)) == 30
    assert runs.run_journal.verify() == []
