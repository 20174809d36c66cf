"""Erasing takes away what a run held, to the last byte of the file, and leaves the chain that proves the rest."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bicameral.errors import JournalError
from bicameral.journal import EventKind, NewEvent
from bicameral.runs import Journal, open_journal_at
from journal_places import JournalPlace
from property_examples import examples

WORD = "zebra-crossing-at-noon"
SHARED = "a text that both runs have read. " * 500


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> JournalPlace:
    if request.param == "sqlite":
        return JournalPlace(tmp_path / "journal.db")
    return JournalPlace(request.getfixturevalue("postgres_url"))


@pytest.fixture
def journal(place: JournalPlace) -> Iterator[Journal]:
    with open_journal_at(place.where) as journal:
        yield journal


def _fill(journal: Journal, run: str, word: str = "harmless", *, end: bool = True, age: float = 0) -> None:
    """Append a run whose events are so many seconds old."""

    def append(kind: EventKind, step: str, body: dict[str, Any]) -> None:
        journal.append_all(run, [NewEvent(time.time() - age, kind, step, body)])

    append("run-started", "", {"request": f"find the {word}"})
    append("step-finished", "0", {"result": word, "shared": SHARED})
    append("step-finished", "1", {"result": [f"{word} {n}" for n in range(2_000)]})
    append("step-finished", "2", {"many": {f"{word}{n}": "y" * 5_000 for n in range(60)}})
    if end:
        append("run-finished", "", {"answer": word})


def test_what_a_run_held_is_gone_and_the_chain_holds(place: JournalPlace, journal: Journal) -> None:
    _fill(journal, "keep")
    _fill(journal, "gone", WORD)
    before = journal.events("keep")
    erased = journal.erase("gone", why="asked by the customer")
    assert (erased.runs, erased.events, erased.scrubbed) == (("gone",), 5, True)
    # The texts that only this run had: the lines, the packed dict; the other run keeps the shared one and the y's.
    assert erased.values == 2
    assert journal.verify() == []
    assert journal.events("keep") == before
    events = journal.events("gone", erased=True)
    assert [event.body for event in events[:-1]] == [{}] * 5
    assert (events[-1].kind, events[-1].body) == ("run-erased", {"why": "asked by the customer"})
    newest = next(journal.runs())
    assert (newest.run, newest.status, newest.request) == ("gone", "erased", "")
    assert list(journal.cost_events())
    with pytest.raises(JournalError, match=r"journal\.erased"):
        journal.events("gone")
    everything = repr(place.run("SELECT * FROM events")) + repr(place.run("SELECT hash FROM blobs"))
    assert WORD not in everything


def test_the_word_is_in_no_byte_of_the_files(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.db") as journal:
        _fill(journal, "keep")
        _fill(journal, "gone", WORD)
        # Large values are there compressed: the middle of each must go as well.
        stored = JournalPlace(journal.path).run(
            "SELECT content FROM blobs WHERE hash IN (SELECT hash FROM uses WHERE run = 'gone') "
            "AND hash NOT IN (SELECT hash FROM uses WHERE run = 'keep')"
        )
        traces = [WORD.encode(), *(bytes(content)[100:140] for (content,) in stored)]  # pyright: ignore[reportArgumentType]
        assert len(traces) == 3
        assert all(any(trace in file.read_bytes() for file in tmp_path.iterdir()) for trace in traces)
        assert journal.erase("gone").scrubbed
        assert not any(trace in file.read_bytes() for file in tmp_path.iterdir() for trace in traces)
        _fill(journal, "next")
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.verify() == []
        assert len(journal.events("keep")) == 5


def test_a_reader_who_is_in_the_way_is_told_and_the_next_time_does_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        _fill(journal, "gone", WORD)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM events").fetchone()
            _patience(journal, 0.1)
            assert journal.erase("gone").scrubbed is False
            assert [event.body for event in journal.events("gone", erased=True)][:5] == [{}] * 5
            reader.execute("ROLLBACK")
        again = journal.erase("gone")
        assert (again.events, again.scrubbed) == (0, True)
        assert not any(WORD.encode() in file.read_bytes() for file in tmp_path.iterdir())
        assert [event.kind for event in journal.events("gone", erased=True)].count("run-erased") == 1


def _patience(journal: Journal, seconds: float) -> None:
    db: sqlite3.Connection = getattr(journal, "_store").db  # noqa: B009
    db.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


def test_what_is_left_says_nothing_of_a_body_that_one_could_guess(place: JournalPlace, journal: Journal) -> None:
    journal.append("r1", "run-started", "", {"answer": True})
    journal.erase("r1")
    (row,) = place.run("SELECT body, salt, digest FROM events WHERE number = 0")
    body, salt, digest = row
    assert (body, bytes(salt)) == ("", b"")  # pyright: ignore[reportArgumentType]
    for guess in ('{"answer":true}', '{"answer":false}'):
        assert hashlib.sha256(guess.encode()).digest() != bytes(digest)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = 'other' WHERE number = 1",
        "UPDATE events SET body = '' WHERE kind = 'run-erased'",
        "UPDATE events SET body = '', salt = '', step = 'x' WHERE number = 1",
        "UPDATE events SET body = '', salt = '', seal = '' WHERE number = 1",
        "DELETE FROM events WHERE number = 1",
    ],
)
def test_an_erased_run_cannot_be_changed_further(place: JournalPlace, journal: Journal, statement: str) -> None:
    _fill(journal, "gone", WORD)
    journal.erase("gone")
    with pytest.raises(Exception, match="append-only"):
        place.run(statement)
    assert journal.verify() == []


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM events WHERE kind = 'run-erased'",
        "UPDATE events SET step = '7' WHERE number = 1",
        "UPDATE events SET at = at + 1 WHERE number = 1",
        "UPDATE events SET body = '{}' WHERE number = 1",
        "UPDATE events SET kind = 'step-failed' WHERE number = 1",
    ],
)
def test_tampering_with_an_erased_run_is_noticed(place: JournalPlace, journal: Journal, statement: str) -> None:
    _fill(journal, "gone", WORD)
    journal.erase("gone")
    place.tamper(statement)
    assert journal.verify()
    with pytest.raises(JournalError, match=r"journal\.damaged"):
        journal.events("gone", erased=True)


def test_who_still_goes_on_with_an_erased_run_is_stopped(place: JournalPlace, journal: Journal) -> None:
    _fill(journal, "gone", WORD, end=False)
    with open_journal_at(place.where) as other:
        other.erase("gone")
    with pytest.raises(JournalError, match=r"journal\.fenced"):
        journal.append("gone", "step-started", "3", {"arguments": WORD}, first=4)
    assert journal.verify() == []


def test_what_is_old_is_pruned(place: JournalPlace, journal: Journal) -> None:
    _fill(journal, "old", WORD, age=7_200)
    _fill(journal, "old-open", WORD, end=False, age=7_200)
    _fill(journal, "new")
    pruned = journal.prune(3_600)
    assert pruned.runs == ("old",)
    assert {each.run: each.status for each in journal.runs()} == {
        "old": "erased",
        "old-open": "unfinished",
        "new": "finished",
    }
    assert journal.prune(3_600).runs == ()
    assert journal.prune(86_400, unfinished=True).runs == ()
    assert journal.prune(3_600, unfinished=True).runs == ("old-open",)
    assert journal.events("old", erased=True)[-1].body == {"why": "retention"}
    assert journal.verify() == []


def test_a_value_is_not_dropped_while_another_run_takes_it_up(place: JournalPlace) -> None:
    """Erasing and storing the same value at once, over and over."""
    failed: list[str] = []

    def store(name: str) -> None:
        with open_journal_at(place.where) as journal:
            for n in range(25):
                run = f"{name}-{n}"
                journal.append(run, "run-started", "", {"shared": SHARED})
                if journal.events(run)[0].body != {"shared": SHARED}:
                    failed.append(run)
                journal.erase(run)

    open_journal_at(place.where).close()
    threads = [threading.Thread(target=store, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with open_journal_at(place.where) as journal:
        assert journal.verify() == []
        assert place.run("SELECT count(*) FROM blobs") == [(0,)]


acts = st.lists(
    st.tuples(st.sampled_from(["append", "erase", "prune"]), st.sampled_from("abc"), st.sampled_from(["x", SHARED])),
    max_size=25,
)


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(acts)
def test_whatever_is_appended_and_erased_the_record_is_whole(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, str, str]]
) -> None:
    with Journal(tmp_path_factory.mktemp("j") / "journal.db") as journal:
        held: dict[str, list[dict[str, Any]]] = {}
        for act, run, value in acts:
            if act == "append":
                kind = "step-finished" if run in held else "run-started"
                held.setdefault(run, []).append({"value": value})
                journal.append(run, kind, "", {"value": value})
            elif run in held and act == "erase":
                if held[run][-1] != {"why": "asked for"}:
                    held[run] = [{} if "why" not in each else each for each in held[run]] + [{"why": "asked for"}]
                journal.erase(run)
            elif act == "prune":
                journal.prune(0)
        assert journal.verify() == []
        for run, bodies in held.items():
            assert [event.body for event in journal.events(run, erased=True)] == bodies


FIRST = """
CREATE TABLE events (
    run TEXT NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, step TEXT NOT NULL,
    body TEXT NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE INDEX newest ON events (at, run) WHERE kind = 'run-started';
CREATE UNIQUE INDEX starts ON events (run) WHERE kind = 'run-started';
CREATE TABLE blobs (hash TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER blobs_stay BEFORE UPDATE ON blobs BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER blobs_last BEFORE DELETE ON blobs BEGIN SELECT RAISE(ABORT, 'append-only'); END;
PRAGMA application_id = 1112097601;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
"""


def _first_version(path: Path) -> None:
    """A file as version 1 wrote it."""
    from bicameral.journal._events import compress_blob

    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(FIRST)

        def store(value: Any) -> str:
            raw = json.dumps(value, separators=(",", ":")).encode()
            db.execute("INSERT INTO blobs VALUES (?, ?)", (hashlib.sha256(raw).hexdigest(), compress_blob(raw)))
            return hashlib.sha256(raw).hexdigest()

        text = store(WORD * 1_000)
        packed = store({f"k{n}": {"$blob": text} for n in range(20)})
        bodies: list[Any] = [{"request": WORD}, {"result": {"$packed": packed}}, {"answer": WORD}]
        seal = ""
        for number, kind in enumerate(("run-started", "step-finished", "run-finished")):
            row = ("old", number, 1_700_000_000.25 + number, kind, "", json.dumps(bodies[number]))
            seal = hashlib.sha256("\n".join((seal, "old", str(number), repr(row[2]), *row[3:])).encode()).hexdigest()
            db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, seal))


def test_a_file_of_version_1_is_taken_over_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    _first_version(path)
    with Journal(path) as journal:
        assert journal.verify() == []
        assert [event.body for event in journal.events("old")] == [
            {"request": WORD},
            {"result": {f"k{n}": WORD * 1_000 for n in range(20)}},
            {"answer": WORD},
        ]
        journal.append("old", "step-finished", "9", {"new": True})
        _fill(journal, "new")
        assert journal.verify() == []
    with Journal(path) as journal:
        assert len(journal.events("old")) == 4
        with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute("UPDATE events SET body = ''")


def test_a_run_of_version_1_can_be_erased_and_tampering_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    _first_version(path)
    with Journal(path) as journal:
        journal.append("old", "step-finished", "9", {"new": WORD})
        assert journal.erase("old").scrubbed
        assert journal.verify() == []
        assert [event.body for event in journal.events("old", erased=True)][:4] == [{}] * 4
        for file in tmp_path.iterdir():
            assert WORD.encode() not in file.read_bytes()
        JournalPlace(path).tamper("UPDATE events SET step = 'x' WHERE number = 1")
        assert journal.verify() != []


def test_an_upgrade_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.db"
    _first_version(path)

    def failing(*_: Any) -> Iterator[str]:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr("bicameral.journal._sqlite.blob_hashes", failing)
        with pytest.raises(RuntimeError):
            Journal(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    with Journal(path) as journal:
        assert journal.verify() == []
