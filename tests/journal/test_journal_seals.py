"""A forged event is found, also where its own seal is right; what no chain can show, an anchor shows."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from bicameral.errors import JournalError
from bicameral.journal import Anchor, Journal
from bicameral.journal._events import COLUMNS, EventRow, erasure_fault, row_from_values, seal_event

PAID = {"result": "paid 10"}
FORGED = '{"result":"paid 9000"}'


def recorded(path: Path, run: str = "r1") -> Journal:
    journal = Journal(path)
    journal.append(run, "run-started", "", {"request": "pay the bill"})
    journal.append(run, "step-started", "0", {"tool": "pay"})
    journal.append(run, "step-finished", "0", PAID)
    journal.append(run, "run-finished", "", {"answer": "paid 10"})
    return journal


def rows_of(db: sqlite3.Connection, run: str = "r1") -> list[EventRow]:
    query = f"SELECT {COLUMNS} FROM events WHERE run = ? ORDER BY number"
    return [row_from_values(row) for row in db.execute(query, (run,))]


def forge(path: Path, change: Callable[[list[EventRow]], list[EventRow]], run: str = "r1") -> None:
    """Put other events in the place of a run's, as someone does who can write to the file and knows the format."""
    db = sqlite3.connect(path, isolation_level=None)
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {name}")
    rows = change(rows_of(db, run))
    db.execute("DELETE FROM events WHERE run = ?", (run,))
    db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    db.close()


def again(row: EventRow, before: str, body: str | None = None) -> EventRow:
    """The same event, perhaps with another body, sealed as if it had been written so after the seal `before`."""
    return seal_event(before, row.run, row.number, row.at, row.kind, row.step, row.body if body is None else body)


def one_forged(rows: list[EventRow]) -> list[EventRow]:
    """One event is changed and sealed anew, rightly; those after it stay."""
    rows[2] = again(rows[2], rows[1].seal, FORGED)
    return rows


def tail_forged(rows: list[EventRow]) -> list[EventRow]:
    """One event is changed, and it and all after it are sealed anew: the chain is whole."""
    rows[2] = again(rows[2], rows[1].seal, FORGED)
    rows[3] = again(rows[3], rows[2].seal)
    return rows


def out_of_its_chain(rows: list[EventRow]) -> list[EventRow]:
    """The last event is sealed over itself, and over a seal that is not the one before it."""
    rows[3] = again(rows[3], "", FORGED)
    return rows


def last_cut(rows: list[EventRow]) -> list[EventRow]:
    return rows[:3]


@pytest.mark.parametrize(("change", "where"), [(one_forged, "event 3 of run r1"), (out_of_its_chain, "event 3")])
def test_an_event_that_was_sealed_anew_breaks_the_chain(
    tmp_path: Path, change: Callable[[list[EventRow]], list[EventRow]], where: str
) -> None:
    recorded(tmp_path / "journal.db").close()
    forge(tmp_path / "journal.db", change)
    with Journal(tmp_path / "journal.db") as journal:
        assert any(where in line for line in journal.verify("r1"))
        with pytest.raises(JournalError, match=where):
            journal.events("r1")


@pytest.mark.parametrize("change", [tail_forged, last_cut])
def test_a_whole_tail_that_was_sealed_anew_or_cut_off_is_found_by_an_anchor_alone(
    tmp_path: Path, change: Callable[[list[EventRow]], list[EventRow]]
) -> None:
    journal = recorded(tmp_path / "journal.db")
    anchor = journal.anchor("r1")
    journal.close()
    forge(tmp_path / "journal.db", change)
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.verify("r1") == []
        assert len(journal.verify("r1", known=[anchor])) == 1


def test_an_anchor_vouches_for_everything_up_to_it_and_nothing_after(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.append("r1", "run-started", "", {})
    early = journal.anchor("r1")
    journal.append("r1", "run-finished", "", {"answer": 1})
    journal.close()
    forge(tmp_path / "journal.db", lambda rows: [rows[0], again(rows[1], rows[0].seal, '{"answer":2}')])
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.verify("r1", known=[early]) == []


def test_an_anchor_holds_after_erasure_and_shows_that_a_run_is_gone(tmp_path: Path) -> None:
    with recorded(tmp_path / "journal.db") as journal:
        anchor = journal.anchor("r1")
        journal.erase("r1")
        assert journal.verify(known=[anchor]) == []
        assert journal.verify(known=[Anchor("r2", 3, anchor.seal)]) == [
            "event 3 of run r2 is known to have been there, and is missing"
        ]


def test_an_event_of_another_run_does_not_fit_into_this_one(tmp_path: Path) -> None:
    recorded(tmp_path / "journal.db").close()
    recorded(tmp_path / "journal.db", "r2").close()
    other = sqlite3.connect(tmp_path / "journal.db")
    foreign = rows_of(other, "r2")[2]
    other.close()
    forge(tmp_path / "journal.db", lambda rows: [*rows[:2], foreign._replace(run="r1"), rows[3]])
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.verify("r1")


def test_what_is_erased_is_empty_and_what_is_empty_was_erased() -> None:
    first = seal_event("", "r1", 0, 1.5, "run-started", "", "{}")
    mark = seal_event(first.seal, "r1", 1, 2.5, "run-erased", "", "{}")
    emptied = first._replace(body="", salt=b"")
    assert erasure_fault([emptied, mark]) is None
    assert "said to be erased and is not" in (erasure_fault([first, mark]) or "")
    assert "nothing says that it was erased" in (erasure_fault([emptied]) or "")
    assert "nothing says that it was erased" in (erasure_fault([emptied, mark, emptied._replace(number=2)]) or "")


def test_the_digests_of_two_events_that_hold_the_same_are_not_the_same() -> None:
    one, other = (seal_event("", "r1", 0, 1.5, "run-started", "", "{}") for _ in range(2))
    assert one.digest != other.digest


def test_a_seal_is_made_over_the_one_before_and_every_fact_of_the_event() -> None:
    row = seal_event("before", "r1", 3, 1.5, "step-started", "0", "{}")
    digest = hashlib.sha256(row.salt + b"{}").hexdigest()
    written = f"2\nbefore\nr1\n3\n1.5\nstep-started\n0\n{digest}"
    assert row.seal == hashlib.sha256(written.encode()).hexdigest()
