"""A run that is stopped, by Ctrl-C or by force, leaves a truthful record and nothing half done."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs_world import World, plan_of, run_source

from bicameral.runs import Failed, Finished, Journal, RunOutcome, Stopped, replay, run_plan
from bicameral.tools import Effect, Registry, Tool, tool


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


class Writer:
    """A tool that takes a while for each note it writes down. `reached` is set as its call number `at` begins."""

    def __init__(self, seconds: float, effect: Effect = "write", *, at: int = 1) -> None:
        self.notes: list[int] = []
        self.reached = asyncio.Event()
        self._to_come = at
        self._seconds = seconds
        self._effect: Effect = effect

    @property
    def tool(self) -> Tool:
        @tool(effect=self._effect)
        async def note(n: int) -> int:
            """Write a number down."""
            self._to_come -= 1
            if self._to_come == 0:
                self.reached.set()
            await asyncio.sleep(self._seconds)
            self.notes.append(n)
            return n

        return note


async def _stopped_at(moment: asyncio.Event, source: str, registry: Registry, journal: Journal) -> RunOutcome:
    running = asyncio.create_task(run_source(source, registry, journal=journal))
    await moment.wait()
    running.cancel()
    return await running


@pytest.mark.parametrize(
    "source",
    [
        "for n in range(50):\n    note(n)\nanswer(1)",
        "a = note(0)\nb = note(1)\nc = note(2)\nd = note(3)\ne = note(4)\nanswer(a + b + c + d + e)",
        "if 1 < 2:\n    for n in range(50):\n        m = note(n)\nanswer(m)",
    ],
)
async def test_an_effect_that_has_begun_is_finished_and_the_next_is_not_begun(source: str, journal: Journal) -> None:
    writer = Writer(0.1, at=3)
    outcome = await _stopped_at(writer.reached, source, Registry([writer.tool]), journal)
    assert isinstance(outcome, Stopped)
    assert writer.notes == [0, 1, 2]
    assert [len(outcome.effects), outcome.in_flight] == [3, ()]
    last = journal.events(outcome.run)[-1]
    assert (last.kind, len(last.body["effects"])) == ("run-stopped", 3)
    await asyncio.sleep(0.25)
    assert writer.notes == [0, 1, 2]


async def test_a_read_is_not_waited_for(journal: Journal) -> None:
    writer = Writer(60, "read", at=3)
    started = time.perf_counter()
    source = "for n in range(3):\n    m = note(n)\nanswer(m)"
    outcome = await _stopped_at(writer.reached, source, Registry([writer.tool]), journal)
    assert time.perf_counter() - started < 30
    assert isinstance(outcome, Stopped)
    assert outcome.in_flight == ("0[0]/0", "0[1]/0", "0[2]/0")


async def test_an_effect_that_does_not_end_is_said_to_be_unknown(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bicameral.runs._effect_execution.GRACE_SECONDS", 0.1)
    writer = Writer(20)
    outcome = await _stopped_at(writer.reached, "note(1)\nanswer(1)", Registry([writer.tool]), journal)
    assert outcome == Stopped(outcome.run, ("0",), outcome.seconds)
    assert journal.events(outcome.run)[-1].body["in_flight"] == ["0"]


async def test_an_effect_that_fails_while_the_run_is_stopped_is_recorded_and_the_run_is_stopped(
    journal: Journal,
) -> None:
    begun = asyncio.Event()

    @tool(effect="send")
    async def fails() -> int:
        """Fails late."""
        begun.set()
        await asyncio.sleep(0.1)
        raise OSError("connection lost")

    outcome = await _stopped_at(begun, "fails()\nanswer(1)", Registry([fails]), journal)
    assert isinstance(outcome, Stopped)
    assert [event.kind for event in journal.events(outcome.run)][-2:] == ["step-failed", "run-stopped"]


async def test_a_tool_that_turns_the_stop_into_an_error_does_not_hide_it(journal: Journal) -> None:
    begun = asyncio.Event()

    @tool(effect="read")
    async def stubborn() -> int:
        """Says it failed when it was cancelled."""
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise RuntimeError("interrupted") from None
        return 1

    outcome = await _stopped_at(begun, "a = stubborn()\nb = stubborn()\nanswer(a + b)", Registry([stubborn]), journal)
    assert isinstance(outcome, Stopped)


async def test_whoever_stopped_a_run_can_start_another_in_the_same_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    world = World([2])
    writer = Writer(60, "read")
    stopping = asyncio.create_task(writer.reached.wait())
    stopping.add_done_callback(lambda _: task.cancel())
    assert isinstance(await run_source("answer(note(1))", Registry([writer.tool])), Stopped)
    assert task.cancelling() == 0
    outcome = await run_source("a = picky(5)\nb = double(1)\nanswer(a + b)", world.registry)
    assert isinstance(outcome, Failed)


async def test_a_stopped_run_can_be_replayed_as_far_as_it_came(journal: Journal) -> None:
    writer = Writer(0.1, at=3)
    source = "for n in range(9):\n    note(n)\nanswer(1)"
    outcome = await _stopped_at(writer.reached, source, Registry([writer.tool]), journal)
    again = await replay(journal, outcome.run, Registry([writer.tool]))
    assert again.identical, again.differences
    assert isinstance(again.outcome, Stopped)
    assert again.outcome.effects == outcome.effects
    assert len(writer.notes) == 3


PROGRAM = '''
import asyncio, sys, time
from pathlib import Path
from bicameral.plans import parse
from bicameral.runs import Finished, Journal, Stopped, run_plan
from bicameral.tools import Registry, tool

folder = Path(sys.argv[1])

@tool(effect="write")
def write(n: int) -> None:
    """Write a file."""
    partial = folder / f"{n}.part"
    partial.write_text("half")
    while n == 2 and not (folder / "go").exists():
        time.sleep(0.01)
    partial.write_text("half and half")
    partial.rename(folder / f"{n}.txt")

registry = Registry([write])
plan = parse("for n in range(40):\\n    write(n)\\nanswer(1)", registry).plan

async def main():
    with Journal(folder / "journal.db") as journal:
        return await run_plan(plan, registry, journal=journal, run="r1", observer=lambda p: print(p.kind, flush=True))

outcome = asyncio.run(main())
print(type(outcome).__name__, flush=True)
sys.exit(130 if isinstance(outcome, Stopped) else 0)
'''


def _program_in_its_third_step(folder: Path) -> subprocess.Popen[str]:
    """It stays there until there is a file `go`."""
    running = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (folder / "2.part").exists():
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return running


def test_ctrl_c_stops_a_program_with_a_truthful_record(tmp_path: Path) -> None:
    running = _program_in_its_third_step(tmp_path)
    running.send_signal(signal.SIGINT)
    (tmp_path / "go").touch()
    said, _ = running.communicate(timeout=60)
    assert (running.returncode, said.split()[-1]) == (130, "Stopped")
    with Journal(tmp_path / "journal.db") as journal:
        (summary,) = journal.runs()
        last = journal.events("r1")[-1]
    assert summary.status == "stopped"
    assert [effect["step"] for effect in last.body["effects"]] == ["0[0]/0", "0[1]/0", "0[2]/0"]
    assert sorted(path.name for path in tmp_path.glob("*.txt")) == ["0.txt", "1.txt", "2.txt"]
    assert list(tmp_path.glob("*.part")) == []


def test_a_killed_program_leaves_its_journal_intact_and_the_run_unfinished(tmp_path: Path) -> None:
    running = _program_in_its_third_step(tmp_path)
    running.kill()
    running.communicate(timeout=60)
    with Journal(tmp_path / "journal.db") as journal:
        (summary,) = journal.runs()
        assert summary.status == "unfinished"
        events = journal.events("r1")
        assert [event.number for event in events] == list(range(len(events)))
        assert (events[-1].kind, events[-1].step) == ("step-started", "0[2]/0")
        again = asyncio.run(_replayed(journal))
        assert isinstance(again, Stopped)
        assert again.in_flight == ("0[2]/0",)
        # A new run appends to the same file as if nothing had been.
        world = World()
        done = asyncio.run(run_plan(plan_of("answer(1)", world.registry), world.registry, journal=journal))
        assert isinstance(done, Finished)


async def _replayed(journal: Journal) -> RunOutcome:
    @tool(effect="write")
    def write(n: int) -> None:
        """Write a file."""

    again = await replay(journal, "r1", Registry([write]))
    assert again.identical, again.differences
    return again.outcome


async def test_a_long_computation_can_be_stopped() -> None:
    registry = Registry()
    plan = plan_of("n = 0\nfor i in range(900000):\n    n += i\nanswer(n)", registry)
    running = asyncio.create_task(run_plan(plan, registry))
    await asyncio.sleep(0.3)  # comes back only if the computation lets others have a turn
    running.cancel()
    assert isinstance(await running, Stopped)
