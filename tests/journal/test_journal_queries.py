"""Queries over many runs find each event once, in pages, in a file and in PostgreSQL alike."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from bicameral.errors import JournalError
from bicameral.journal import Anchor, Journal, NewEvent, _event_queries, open_journal_at
from journal_places import JournalPlace

CHARGE = {"role": "delta", "model": "m", "prompt": 10, "output": 2, "money": 0.5, "ending": "answered"}
ALERT = {"step": "1", "kind": "imperative", "where": "text", "weight": 0.5, "note": "it orders", "count": 1}


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> JournalPlace:
    if request.param == "sqlite":
        return JournalPlace(tmp_path_factory.mktemp("journal") / "journal.db")
    return JournalPlace(request.getfixturevalue("postgres_url"))


@pytest.fixture
def journal(place: JournalPlace) -> Iterator[Journal]:
    with open_journal_at(place.where) as journal:
        yield journal


def _fill(journal: Journal, run: str, at: float, calls: int = 3) -> None:
    events = [NewEvent(at, "run-started", "", {"request": run, "planning_calls": [{"role": "delta", "charges": []}]})]
    for number in range(calls):
        events.append(NewEvent(at + number, "model-called", str(number), {"role": "delta", "charges": [CHARGE]}))
        # Long enough to be stored as a value of its own.
        alerts = (
            {"alerts": [ALERT | {"note": "x" * 5_000}]} if number == 1 else {"output": 'the word "alerts": in a text'}
        )
        events.append(NewEvent(at + number, "step-finished", str(number), alerts))
    events.append(NewEvent(at + calls, "run-finished", "", {"answer": "ok"}))
    journal.append_all(run, events)


@pytest.fixture
def filled(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """Five runs, in pages that are smaller than any of them."""
    monkeypatch.setattr(_event_queries, "_PAGE_EVENTS", 2)
    monkeypatch.setattr(_event_queries, "_PAGE_RUNS", 2)
    for number in range(5):
        _fill(journal, f"r{4 - number}", 1_000.0 * (number + 1))
    return journal


def test_costs_come_once_each_and_by_time(filled: Journal) -> None:
    found = [each for each in filled.cost_events() if each[2] == "model-called"]
    assert [(run, step) for run, _, _, step, _ in found] == [(f"r{4 - n}", str(c)) for n in range(5) for c in range(3)]
    assert all(facts == {"role": "delta", "charges": [CHARGE]} for *_, facts in found)


def test_a_period_has_its_beginning_and_not_its_end(filled: Journal) -> None:
    found = [at for _, at, kind, *_ in filled.cost_events(2_001.0, 3_001.0) if kind == "model-called"]
    assert found == [2_001.0, 2_002.0, 3_000.0]


def test_only_the_runs_that_are_named_are_read(filled: Journal) -> None:
    assert {run for run, *_ in filled.cost_events(runs={"r0", "r2", "r4", "none"})} == {"r0", "r2", "r4"}
    assert list(filled.cost_events(runs=())) == []
    # A beginning of an id, and what a pattern of SQL would match, name no run.
    assert list(filled.cost_events(runs={"r", "r_", "%"})) == []


def test_a_fact_is_found_where_it_is_one_and_not_where_a_text_has_its_name(filled: Journal) -> None:
    found = list(filled.events_with("alerts", ("step-finished", "step-failed")))
    assert [(each.run, each.step) for each in found] == [(f"r{n}", "1") for n in range(5)]
    assert all(each.body.keys() == {"alerts"} and len(each.body["alerts"][0]["note"]) == 5_000 for each in found)
    assert [each.run for each in filled.events_with("alerts", ("step-finished",), runs={"r3"})] == ["r3"]
    assert list(filled.events_with("alerts", ("model-called",))) == []


def test_what_was_erased_is_found_no_more(filled: Journal) -> None:
    filled.erase("r1")
    assert "r1" not in {each.run for each in filled.events_with("alerts", ("step-finished",))}
    assert all(not facts for run, *_, facts in filled.cost_events() if run == "r1")


def test_the_newest_runs_come_first(filled: Journal) -> None:
    assert filled.newest_runs(3) == ["r0", "r1", "r2"]


def test_the_anchors_of_all_runs_are_those_of_each(filled: Journal) -> None:
    anchors = filled.anchors()
    assert anchors == [filled.anchor(f"r{n}") for n in range(5)]
    assert filled.verify(known=anchors) == []
    (said,) = filled.verify(known=[Anchor("r0", 99, "0" * 64)])
    assert "event 99 of run r0" in said


def test_a_verification_says_how_far_it_is_and_can_be_ended(filled: Journal) -> None:
    told: list[tuple[int, int]] = []
    assert filled.verify(progress=lambda done, of: told.append((done, of))) == []
    assert told == [(n, 5) for n in range(6)]

    def stop(done: int, _: int) -> None:
        if done == 2:
            raise JournalError("journal.failed", "it was ended")

    with pytest.raises(JournalError, match="it was ended"):
        filled.verify(progress=stop)


def test_the_time_to_read_costs_grows_with_their_number(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A query that began anew for each page would take sixteen times as long for four times as many."""
    with Journal(tmp_path_factory.mktemp("many") / "journal.db") as journal:
        times: list[float] = []
        for start, end in ((0, 100), (100, 400)):
            for number in range(start, end):
                _fill(journal, f"r{number:04}", 1_000.0 * number, calls=25)
            times.append(min(_time_to_read(journal, 25 * end) for _ in range(3)))
    assert times[1] < 10 * times[0], times


def _time_to_read(journal: Journal, calls: int) -> float:
    began = time.process_time()
    assert sum(kind == "model-called" for _, _, kind, *_ in journal.cost_events()) == calls
    return time.process_time() - began
