"""The journal keeps what happened, and nothing happens that it cannot keep."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from runs_world import World, run_source

from bicameral.errors import JournalError
from bicameral.journal._events import BLOB_FROM, _room_left, dumps  # pyright: ignore[reportPrivateUsage]
from bicameral.runs import Event, Finished, Interrupted, Journal
from property_examples import examples


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def _code(act: Any, *arguments: Any) -> str:
    with pytest.raises(JournalError) as caught:
        act(*arguments)
    assert str(caught.value)
    return caught.value.code


def _begin(journal: Journal, run: str = "r1", **body: Any) -> Event:
    return journal.append(run, "run-started", "", {"request": "hello", **body})


def _tamper(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for name in ("events_stay", "events_last", "blobs_stay", "blobs_last"):
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement)


def test_events_come_back_as_they_were_written_and_in_order(path: Path) -> None:
    with Journal(path) as journal:
        written = [_begin(journal)]
        written += [journal.append("r1", "step-started", str(n), {"n": n, "text": "ä" * n}) for n in range(5)]
        written.append(journal.append("r1", "run-finished", "", {"answer": [1, 1.0, True, None]}))
    with Journal(path) as journal:
        assert journal.events("r1") == written
        assert [event.number for event in written] == list(range(7))


@pytest.mark.parametrize("table", ["events", "blobs"])
def test_nothing_written_can_be_changed_or_removed(path: Path, table: str) -> None:
    with Journal(path) as journal:
        _begin(journal, large="x" * 10_000)
    with closing(sqlite3.connect(path)) as db:
        column = "run" if table == "events" else "hash"
        for statement in (f"UPDATE {table} SET {column} = 'other'", f"DELETE FROM {table}"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                db.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE events SET body = replace(body, '"n":1', '"n":2') WHERE number = 1""",
        "UPDATE events SET step = '9' WHERE number = 1",
        "UPDATE events SET kind = 'step-failed' WHERE number = 1",
        "DELETE FROM events WHERE number = 1",
        "UPDATE blobs SET content = x'00'",
        "DELETE FROM blobs",
    ],
)
def test_a_record_that_was_changed_behind_our_back_is_refused(path: Path, statement: str) -> None:
    with Journal(path) as journal:
        _begin(journal)
        journal.append("r1", "step-finished", "0", {"n": 1, "large": "x" * 10_000})
        journal.append("r1", "run-finished", "", {})
    _tamper(path, statement)
    with Journal(path) as journal:
        assert _code(journal.events, "r1") == "journal.damaged"


texts = st.text(st.characters(exclude_categories=()), max_size=20)
long_texts = st.text(min_size=1, max_size=3).map(lambda text: text * 3000)
marks = st.sampled_from(["$blob", "$packed", "$plain", "$dict", "a"])
bodies = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts | long_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(marks | texts, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(value=bodies)
def test_any_value_comes_back_to_the_byte(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    with Journal(tmp_path_factory.mktemp("j") / "journal.db") as journal:
        journal.append("r1", "run-started", "", {"value": value, "many": {f"k{n}": value for n in range(20)}})
        body = journal.events("r1")[0].body
    assert json.dumps(body["value"]) == json.dumps(value)
    assert list(body["many"].values()) == [value] * 20


def test_a_large_value_is_stored_once_and_compressed(path: Path) -> None:
    lines = [f"line {n} of a long file" for n in range(20_000)]
    with Journal(path) as journal:
        _begin(journal)
        for step in range(20):
            journal.append("r1", "step-finished", str(step), {"result": lines, "arguments": {"lines": lines}})
        assert journal.events("r1")[5].body["arguments"]["lines"] == lines
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*), sum(length(content)) < 200000 FROM blobs").fetchone() == (1, 1)
        assert db.execute("SELECT max(length(body)) FROM events").fetchone()[0] < 500


def test_a_run_is_found_by_the_beginning_of_its_id(path: Path) -> None:
    with Journal(path) as journal:
        assert _code(journal.find, "last") == "journal.no-runs"
        for run in ("20260101-abc", "20260102-abd", "20260102-abd-2"):
            _begin(journal, run)
            time.sleep(0.002)
        assert journal.find("20260101") == "20260101-abc"
        assert journal.find("20260102-abd") == "20260102-abd"
        assert journal.find("last") == "20260102-abd-2"
        assert _code(journal.find, "20260102") == "journal.ambiguous-run"
        assert _code(journal.find, "20269999") == "journal.unknown-run"
        assert _code(journal.find, "") == "journal.ambiguous-run"


def test_runs_are_listed_newest_first_with_how_they_ended(path: Path) -> None:
    with Journal(path) as journal:
        for run, kind in (("a", "run-finished"), ("b", "run-failed"), ("c", "run-stopped")):
            _begin(journal, run)
            journal.append(run, kind, "", {})  # pyright: ignore[reportArgumentType]
        _begin(journal, "d")
        journal.append("d", "step-started", "0", {})
        listed = [(summary.run, summary.status, summary.request) for summary in journal.runs()]
        assert [summary.run for summary in journal.runs(limit=2)] == ["d", "c"]
    assert listed == [
        ("d", "unfinished", "hello"),
        ("c", "stopped", "hello"),
        ("b", "failed", "hello"),
        ("a", "finished", "hello"),
    ]


def test_two_runs_cannot_have_the_same_id(path: Path) -> None:
    with Journal(path) as journal, Journal(path) as other:
        _begin(journal)
        assert _code(_begin, other) == "journal.run-exists"
        assert len(journal.events("r1")) == 1


WRITER = """
import sys
from pathlib import Path
from bicameral.runs import Journal
with Journal(Path(sys.argv[1])) as journal:
    journal.append(sys.argv[2], "run-started", "", {"request": "hello"})
    for n in range(200):
        journal.append(sys.argv[2], "step-finished", str(n), {"n": n, "large": sys.argv[2] * 3000})
    journal.append(sys.argv[2], "run-finished", "", {})
"""


def test_several_processes_can_make_and_fill_one_journal_at_once(path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), run]) for run in ("one", "two", "three")]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    with Journal(path) as journal:
        for run in ("one", "two", "three"):
            events = journal.events(run)
            assert [event.number for event in events] == list(range(202))
            assert events[7].body == {"n": 6, "large": run * 3000}


@pytest.mark.parametrize("content", [b"not a database at all" * 500, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_a_file_that_is_no_journal_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert _code(Journal, path) == "journal.damaged"
    assert path.read_bytes() == content


def test_a_damaged_journal_is_named(path: Path) -> None:
    with Journal(path) as journal:
        _begin(journal, large=[os.urandom(2000).hex() for _ in range(100)])
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)

    def read() -> None:
        with Journal(path) as journal:
            journal.events("r1")

    assert _code(read) == "journal.damaged"


def test_another_programs_database_is_not_written_to(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
    assert _code(Journal, path) == "journal.not-a-journal"


def test_a_journal_of_another_version_is_refused(path: Path) -> None:
    Journal(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    assert _code(Journal, path) == "journal.unknown-version"


def test_a_folder_in_the_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    assert _code(Journal, tmp_path).startswith("journal.")


def test_only_the_owner_can_read_a_journal(path: Path) -> None:
    with Journal(path) as journal:
        _begin(journal)
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


@contextmanager
def _as_somebody_else() -> Generator[None]:
    """Permissions do not bind root, which tests often are in a container."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_journal_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    path = folder / "journal.db"
    with Journal(path) as journal:
        _begin(journal)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        with _as_somebody_else():
            assert _code(Journal, path) == "journal.read-only"
    finally:
        folder.chmod(0o755)


def test_a_journal_that_another_process_keeps_locked_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bicameral.journal._sqlite.LOCK_SECONDS", 0.2)
    with Journal(path) as journal, closing(sqlite3.connect(path, isolation_level=None)) as other:
        _begin(journal)
        other.execute("BEGIN IMMEDIATE")
        assert _code(journal.append, "r1", "run-finished", "", {}) == "journal.locked"
        other.execute("ROLLBACK")
        journal.append("r1", "run-finished", "", {})
        assert [event.number for event in journal.events("r1")] == [0, 1]


def _fill(journal: Journal) -> None:
    """No page more than the file has now: what a full disk does, without a full disk."""
    db: sqlite3.Connection = getattr(journal, "_store").db  # noqa: B009
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_is_named_and_what_was_written_stays(path: Path) -> None:
    with Journal(path) as journal:
        _begin(journal)
        _fill(journal)
        assert _code(journal.append, "r1", "step-finished", "0", {"x": [os.urandom(9000).hex()]}) == "journal.disk-full"
    with Journal(path) as journal:
        assert len(journal.events("r1")) == 1


async def test_no_effect_happens_that_cannot_be_recorded(path: Path) -> None:
    world = World()
    with Journal(path) as journal:
        _fill(journal)
        large = [os.urandom(500).hex() for _ in range(30)]
        source = f"xs = {large!r}\na = peek('x')\npoke('x', len(xs) + a)\nanswer(a)"
        outcome = await run_source(source, world.registry, journal=journal)
        assert isinstance(outcome, Interrupted)
        assert (outcome.error.code, outcome.effects) == ("journal.disk-full", ())
    assert world.cells == {}


async def test_a_run_that_cannot_be_recorded_does_not_begin(path: Path) -> None:
    world = World()
    with Journal(path) as journal:
        journal.close()
        outcome = await run_source("poke('x', 1)\nanswer(1)", world.registry, journal=journal)
    assert isinstance(outcome, Interrupted)
    assert outcome.error.code == "journal.failed"
    assert world.cells == {}


async def test_an_effect_whose_record_fails_afterwards_is_told_all_the_same(path: Path) -> None:
    world = World()
    with Journal(path) as journal:

        def close_when_begun(progress: Any) -> None:
            if progress.kind == "started":
                journal.close()

        outcome = await run_source(
            "poke('x', 1)\nanswer(1)", world.registry, journal=journal, observer=close_when_begun
        )
    assert isinstance(outcome, Interrupted)
    assert [done.tool for done in outcome.effects] == ["poke"]
    assert world.cells == {"x": 1}


async def test_every_step_is_recorded_before_and_after(path: Path) -> None:
    world = World()
    with Journal(path) as journal:
        source = "a = peek('x')\nfor n in [1, 2]:\n    poke('x', n + a)\nanswer(a)"
        outcome = await run_source(source, world.registry, journal=journal)
        assert isinstance(outcome, Finished)
        events = journal.events(outcome.run)
    assert [(event.kind, event.step) for event in events] == [
        ("run-started", ""),
        ("step-started", "0"),
        ("step-finished", "0"),
        ("step-started", "1[0]/0"),
        ("step-finished", "1[0]/0"),
        ("step-started", "1[1]/0"),
        ("step-finished", "1[1]/0"),
        ("run-finished", ""),
    ]
    assert events[5].body["arguments"] == {"cell": "x", "value": 2}
    assert events[-1].body["answer"] == 0
    assert [effect["step"] for effect in events[-1].body["effects"]] == ["1[0]/0", "1[1]/0"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values, st.integers(1, 400))
def test_what_seems_short_at_a_glance_is_short_when_written(value: Any, room: int) -> None:
    if _room_left(value, room) > 0:
        assert len(dumps(value)) < room


def test_short_lists_are_seen_to_be_short_and_long_ones_are_not() -> None:
    assert _room_left(["ann@example.com", {"trust": "user", "tool": "request"}], BLOB_FROM) > 0
    assert _room_left(["x" * BLOB_FROM], BLOB_FROM) <= 0
    assert _room_left([10**5000], BLOB_FROM) <= 0
