"""On the disk means on the disk: what precedes and follows an effect is synced, and nothing else waits for the disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bicameral import parse, tool
from bicameral.journal import Journal, open_journal_at
from bicameral.policy import Policy
from bicameral.runs import run_plan
from bicameral.tools import Origin, Registry

HERE = Path(__file__).parent
CANNOT_TRACE = 77


def traced(folder: Path, reads: int, effects: int) -> list[str]:
    """The syncs of the journal and the effects of a run in a process of its own, in the order of its system calls."""
    trace = [sys.executable, str(HERE / "syscall_trace.py"), "fsync,fdatasync,getpriority", "--"]
    run = [sys.executable, str(HERE / "effects_run.py"), str(folder), str(reads), str(effects)]
    done = subprocess.run([*trace, *run], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == CANNOT_TRACE:
        pytest.skip("this machine does not let a process trace its own child")
    assert done.returncode == 0, done.stderr
    calls: list[list[str]] = json.loads(done.stdout)
    return [
        "effect" if name == "getpriority" else "sync"
        for name, file in calls
        if name == "getpriority" or "journal.db" in file
    ]


def between(calls: list[str]) -> list[int]:
    """How many syncs there are before the first effect, between each two, and after the last."""
    return [part.count("sync") for part in _split(calls)]


def _split(calls: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for call in calls:
        if call == "effect":
            parts.append([])
        else:
            parts[-1].append(call)
    return parts


def test_every_effect_has_a_sync_before_it_and_another_after_it(tmp_path: Path) -> None:
    first, *middle, last = between(traced(tmp_path, reads=0, effects=10))
    assert len(middle) == 9
    assert first >= 1
    assert all(count >= 2 for count in middle)
    assert last >= 1


def test_reads_wait_for_no_sync(tmp_path: Path) -> None:
    few = between(traced(tmp_path / "few", reads=1, effects=0))
    many = between(traced(tmp_path / "many", reads=40, effects=0))
    assert sum(many) <= sum(few)


class Statements:
    """The statements that the connection of a journal runs, in order."""

    def __init__(self, journal: Journal) -> None:
        self.seen: list[str] = []
        store: Any = journal._store  # pyright: ignore[reportPrivateUsage] the connection that is in force
        store.db.set_trace_callback(self.seen.append)
        self.db = store.db

    def synchronous_at(self, words: str) -> list[str]:
        """What `synchronous` was at each statement that holds these words, `NORMAL` unless it was said otherwise."""
        found, now = list[str](), "NORMAL"
        for statement in self.seen:
            if statement.startswith("PRAGMA synchronous ="):
                now = statement.rpartition(" ")[2]
            elif words in statement:
                found.append(now)
        return found


async def test_the_connection_waits_for_the_disk_when_an_effect_begins_and_ends_and_only_then(tmp_path: Path) -> None:
    @tool(effect="write", origins=Origin("system"), purpose={"number": "carries"})
    def change(number: int) -> None:
        """Change something."""
        assert statements.synchronous_at("'step-started'")[-1] == "FULL"

    @tool(effect="read", outbound=False, origins=Origin("system"))
    def look() -> int:
        """Look."""
        return 1

    registry = Registry([look, change])
    plan = parse("a = look()\nb = look()\nchange(a)\nanswer(b)", registry).plan
    with Journal(tmp_path / "journal.db") as journal:
        statements = Statements(journal)
        outcome = await run_plan(plan, registry, journal=journal, policy=Policy((), registry))
        assert outcome.ok
        assert statements.synchronous_at("'step-finished'")[-1] == "FULL"
        assert statements.db.execute("PRAGMA synchronous").fetchone() == (1,)
        reading = await run_plan(parse("answer(look())", registry).plan, registry, journal=journal)
        assert reading.ok
        assert "FULL" not in statements.synchronous_at(reading.run)


def test_an_event_that_somebody_waits_for_is_synced_whoever_writes_it(tmp_path: Path) -> None:
    """The journal's own thread may take an event from the queue before the one who waits for it does."""
    from bicameral.runs._observability import EventWriter

    with Journal(tmp_path / "journal.db") as journal:
        statements, record = Statements(journal), EventWriter("r1", journal)
        record._add("run-started", "", {}, sync=True)  # pyright: ignore[reportPrivateUsage] between adding and writing
        record._write_quietly(journal)  # pyright: ignore[reportPrivateUsage] what the journal's own thread does
        assert set(statements.synchronous_at("'run-started'")) == {"FULL"}


def test_a_sync_that_fails_leaves_the_connection_as_it_was(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.db") as journal:
        statements = Statements(journal)
        journal.append("r1", "run-started", "", {}, sync=True)
        with pytest.raises(Exception, match="r1"):
            journal.append("r1", "run-started", "", {}, first=0, sync=True)
        assert statements.db.execute("PRAGMA synchronous").fetchone() == (1,)


@pytest.mark.parametrize(("asked", "counts"), [("off", "on"), ("on", "on"), ("remote_apply", "remote_apply")])
def test_a_commit_in_postgres_waits_for_the_disk_whatever_the_address_says(
    postgres_url: str, asked: str, counts: str
) -> None:
    """What is weaker than the disk is raised to it, and what waits for more stays."""
    query = quote(f"-c synchronous_commit={asked}")
    with open_journal_at(f"{postgres_url}{'&' if '?' in postgres_url else '?'}options={query}") as journal:
        journal.append("r1", "run-started", "", {}, sync=True)
        store: Any = journal._store  # pyright: ignore[reportPrivateUsage] the connection that is in force
        assert store.select("SHOW synchronous_commit") == [(counts,)]
