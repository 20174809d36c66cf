"""The journal is the same in a file and in PostgreSQL: what is appended stays, once, and in one order."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bicameral.errors import JournalError
from bicameral.journal import NewEvent
from bicameral.runs import Event, Journal, open_journal_at
from bicameral.runs._observability import EventWriter
from journal_places import TABLES, JournalPlace
from property_examples import examples


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> JournalPlace:
    if request.param == "sqlite":
        return JournalPlace(tmp_path / "journal.db")
    return JournalPlace(request.getfixturevalue("postgres_url"))


@pytest.fixture
def journal(place: JournalPlace) -> Iterator[Journal]:
    with open_journal_at(place.where) as journal:
        yield journal


def _code(act: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(JournalError) as caught:
        act(*arguments, **options)
    return caught.value.code


def _filled(journal: Journal, run: str = "r1", steps: int = 3, **body: Any) -> list[Event]:
    written = [journal.append(run, "run-started", "", {"request": "hello", **body})]
    written += [journal.append(run, "step-finished", str(n), {"n": n, "half": "\ud83d"}) for n in range(steps)]
    written.append(journal.append(run, "run-finished", "", {"answer": [1, 1.5, True, None, "ä\0"]}))
    return written


def test_events_come_back_as_they_were_written(place: JournalPlace, journal: Journal) -> None:
    large = ["a long line\0 \ud83d ä"] * 2_000
    written = _filled(journal, large=large)
    with open_journal_at(place.where) as other:
        assert other.events("r1") == written
        assert other.verify() == []
        assert [(each.run, each.status, each.request) for each in other.runs()] == [("r1", "finished", "hello")]


def test_what_follows_an_event_can_be_watched(journal: Journal) -> None:
    assert journal.events_after("r1", -1) == []
    written = _filled(journal)
    _filled(journal, "r12")
    assert journal.events_after("r1", -1) == written
    assert journal.events_after("r1", 2) == written[3:]
    assert journal.events_after("r1", 4) == []
    assert journal.events_after("r1", 99) == []
    for limit in (0, 1, 2, 9):
        assert journal.events_after("r1", -1, limit) == written[:limit]
        assert journal.events_after("r1", 1, limit) == written[2 : 2 + limit]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["UPDATE {} SET {} = 'other'", "DELETE FROM {}", "TRUNCATE {}"])
def test_nothing_can_be_changed_or_removed(place: JournalPlace, journal: Journal, table: str, statement: str) -> None:
    if statement.startswith("TRUNCATE") and place.sqlite:
        pytest.skip("SQLite has no TRUNCATE")
    _filled(journal, large="x" * 10_000)
    with pytest.raises(Exception, match="append-only"):
        place.run(statement.format(table, "hash" if table == "blobs" else "run"))
    assert journal.verify() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = ''",
        "UPDATE events SET body = '', salt = ''",
        "INSERT INTO events SELECT * FROM events WHERE number = 1",
        "INSERT OR REPLACE INTO events SELECT run, number, at, kind, step, 'x', salt, digest, seal FROM events",
        "INSERT OR REPLACE INTO blobs SELECT hash, x'00' FROM blobs",
    ],
)
def test_there_is_no_side_door(place: JournalPlace, journal: Journal, statement: str) -> None:
    if "REPLACE" in statement and not place.sqlite:
        pytest.skip("PostgreSQL has no REPLACE")
    _filled(journal, large="x" * 10_000)
    with pytest.raises(Exception, match=r"append-only|duplicate key"):
        place.run(statement)
    assert journal.verify() == []


TAMPERED = [
    """UPDATE events SET body = replace(body, '"n":1', '"n":2') WHERE number = 2""",
    "UPDATE events SET step = '9' WHERE number = 2",
    "UPDATE events SET kind = 'step-failed' WHERE number = 2",
    "UPDATE events SET at = at + 1 WHERE number = 2",
    "UPDATE events SET number = 7 WHERE number = 2",
    "UPDATE events SET run = 'r2' WHERE number = 2",
    "UPDATE events SET body = '', salt = x'' WHERE number = 2",
    "UPDATE events SET digest = x'' WHERE number = 2",
    "UPDATE events SET seal = '' WHERE number = 2",
    "DELETE FROM events WHERE number = 2",
    "DELETE FROM events WHERE number = 0",
    "UPDATE blobs SET content = x'00'",
    "DELETE FROM blobs",
]


@pytest.mark.parametrize("statement", TAMPERED)
def test_what_was_changed_behind_our_back_is_noticed(place: JournalPlace, journal: Journal, statement: str) -> None:
    _filled(journal, "r0")
    _filled(journal, large="x" * 10_000)
    place.tamper(f"{statement}{' AND' if 'WHERE' in statement else ' WHERE'} {_only('r1', statement)}")
    breaks = journal.verify()
    assert len(breaks) in (1, 2)
    assert all("r1" in each or "r2" in each for each in breaks)
    assert journal.verify("r0") == []
    assert len(journal.events("r0")) == 5
    if "number = 0" not in statement:
        assert _code(journal.events, "r1") == "journal.damaged"
    # What is before it is still read, whatever happened to the beginning.
    intact, fault = journal.intact_events_after("r1", -1)
    assert [event.number for event in intact] == list(
        range(0 if "number = 0" in statement or "blobs" in statement else 2)
    )
    assert "r1" in fault
    assert "journal" not in fault
    assert journal.breaks_of("r1") == [each for each in breaks if "r1" in each]
    assert journal.intact_events_after("r1", -1, len(intact)) == (intact, "")
    assert _code(journal.events_after, "r1", -1) == "journal.damaged"


def test_what_was_erased_is_read_as_what_is_left_of_it(journal: Journal) -> None:
    written = _filled(journal)
    journal.erase("r1", "asked for")
    left, fault = journal.intact_events_after("r1", -1)
    assert ([event.kind for event in left], fault) == ([*(event.kind for event in written), "run-erased"], "")
    assert all(not event.body for event in left[:-1])
    assert journal.intact_events_after("r1", -1, 2) == (left[:2], "")
    assert journal.breaks_of("r1") == []


def _only(run: str, statement: str) -> str:
    return "hash <> ''" if "blobs" in statement else f"run = '{run}'"


def test_a_value_that_nothing_keeps_is_noticed(place: JournalPlace, journal: Journal) -> None:
    _filled(journal, large="x" * 10_000)
    place.tamper("DELETE FROM uses")
    assert len(journal.verify("r1")) == 1
    assert len(journal.verify()) == 2


def test_whoever_does_not_know_the_last_event_cannot_append(place: JournalPlace, journal: Journal) -> None:
    journal.append("r1", "run-started", "", {})
    with open_journal_at(place.where) as other:
        other.append("r1", "run-resumed", "", {}, first=1)
        assert _code(journal.append, "r1", "step-started", "0", {}, first=1) == "journal.fenced"
        assert _code(journal.append, "r1", "step-started", "0", {}, first=1) == "journal.fenced"
        other.append("r1", "step-started", "0", {}, first=2)
        # Nor can one who was here before in the same process.
        assert _code(other.append, "r1", "step-started", "0", {}, first=2) == "journal.fenced"
        other.append("r1", "step-finished", "0", {}, first=3)
        assert _code(other.append, "r1", "run-started", "", {}, first=0) == "journal.run-exists"
        assert _code(journal.append, "r1", "run-started", "", {}) == "journal.run-exists"
    assert [event.kind for event in journal.events("r1")] == [
        "run-started",
        "run-resumed",
        "step-started",
        "step-finished",
    ]
    assert journal.verify() == []


TAKER = """
import sys
from pathlib import Path
from bicameral.errors import JournalError
from bicameral.runs import open_journal_at
where = sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1])
with open_journal_at(where) as journal:
    print("ready", flush=True)
    for line in sys.stdin:
        run, number = line.split()
        try:
            journal.append(run, "run-resumed", "", {"large": "x" * 5000 * (int(number) % 2)}, first=int(number))
            print("won", flush=True)
        except JournalError as error:
            print(error.code, flush=True)
"""


def test_of_processes_that_take_a_run_over_at_once_exactly_one_gets_it(place: JournalPlace) -> None:
    rounds = 30
    takers = [
        subprocess.Popen(
            [sys.executable, "-c", TAKER, str(place.where)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    # All of them make the tables at once, too.
    for taker in takers:
        assert taker.stdout
        assert taker.stdout.readline() == "ready\n"
    with open_journal_at(place.where) as journal:
        journal.append("r1", "run-started", "", {})
        for number in range(1, rounds + 1):
            for taker in takers:
                assert taker.stdin
                taker.stdin.write(f"r1 {number}\n")
            for taker in takers:
                assert taker.stdin
                taker.stdin.flush()
            said = [taker.stdout.readline().strip() for taker in takers if taker.stdout]
            assert sorted(said) == ["journal.fenced", "journal.fenced", "won"]
        assert len(journal.events("r1")) == rounds + 1
        assert journal.verify() == []
    for taker in takers:
        taker.communicate()
        assert taker.returncode == 0


def test_several_events_are_appended_together_or_not_at_all(place: JournalPlace, journal: Journal) -> None:
    journal.append("r1", "run-started", "", {})
    with open_journal_at(place.where) as other:
        other.append("r1", "step-started", "0", {})
    entries = [NewEvent(float(n), "step-finished", str(n), {"n": n, "large": str(n) * 5_000}) for n in range(5)]
    assert _code(journal.append_all, "r1", entries, first=1) == "journal.fenced"
    assert len(journal.events("r1")) == 2
    assert place.run("SELECT count(*) FROM blobs") == [(0,)]
    assert [event.number for event in journal.append_all("r1", entries, first=2)] == [2, 3, 4, 5, 6]
    assert journal.append_all("r1", []) == []


def test_a_value_that_is_too_large_is_refused_and_nothing_is_written(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bicameral.journal._events.MAX_VALUE", 100_000)
    journal.append("r1", "run-started", "", {"text": "x" * 90_000})
    for body in ({"text": "x" * 100_001}, {"a": ["ä" * 99_000]}, {f"k{n}": "x" * 4_000 for n in range(30)}):
        assert _code(journal.append, "r1", "step-finished", "0", body) == "journal.too-large"
    assert len(journal.events("r1")) == 1
    assert journal.verify() == []


def test_threads_may_share_a_journal(journal: Journal) -> None:
    journal.append("shared", "run-started", "", {})

    def work(name: str) -> None:
        _filled(journal, name, steps=20, large=name * 3_000)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(journal.events(f"t{n}")) for n in range(4)] == [22] * 4
    assert journal.verify() == []


texts = st.text(st.characters(exclude_categories=()), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["$blob", "$plain"]) | texts, inner),
    max_leaves=8,
)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(value=values, often=st.integers(1, 3_000))
def test_any_value_comes_back(journal: Journal, value: Any, often: int) -> None:
    run = os.urandom(8).hex()
    body = {"value": value, "many": [value] * often}
    journal.append(run, "run-started", "", body)
    assert journal.events(run)[0].body == body
    assert journal.verify(run) == []


@pytest.mark.parametrize("address", ["mysql://localhost/x", "sqlite://relative.db", "://x"])
def test_an_address_of_something_else_is_refused(address: str) -> None:
    assert _code(open_journal_at, address) == "journal.unknown-address"


def test_a_file_can_be_named_as_an_address(tmp_path: Path) -> None:
    for name in (f"sqlite:///{tmp_path}/a.db", str(tmp_path / "a.db"), tmp_path / "a.db"):
        with open_journal_at(name) as journal:
            assert journal.path == tmp_path / "a.db"


def test_one_value_that_cannot_be_written_takes_no_other_with_it(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bicameral.journal._events.MAX_VALUE", 10_000)
    record = EventWriter("r1", journal)
    record.write("run-started", "", {})
    record.write_later("step-finished", "0", {"n": 0})
    record.write_later("step-finished", "1", {"text": "x" * 20_000})
    record.write_later("step-finished", "2", {"n": 2})
    with pytest.raises(JournalError, match=r"journal\.too-large"):
        record.write("step-finished", "3", {"n": 3})
    # The run can still be said to have failed with it.
    record.write("run-failed", "1", {})
    steps = [event.step for event in journal.events("r1")]
    assert steps[:3] == ["", "0", "2"]
    assert "1" not in steps[:-1]
    assert journal.verify() == []


def test_a_record_that_somebody_else_goes_on_with_is_closed_for_good(place: JournalPlace, journal: Journal) -> None:
    record = EventWriter("r1", journal)
    record.write("run-started", "", {})
    with open_journal_at(place.where) as other:
        EventWriter("r1", other, first=1).write("run-resumed", "", {})
    for _ in range(3):
        with pytest.raises(JournalError, match=r"journal\.fenced"):
            record.write("step-started", "0", {})
    assert record.failure is not None
    assert [event.kind for event in journal.events("r1")] == ["run-started", "run-resumed"]
