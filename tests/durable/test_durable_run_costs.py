"""Costs of submitted runs: the rounds of a request count for it, and what was read once is not read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bicameral.durable import CostLog, _run_costs, rounds_of_runs
from bicameral.journal import Journal, NewEvent
from bicameral.limits import CostReport, cost_entries


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


def charge(money: float) -> dict[str, Any]:
    return {"role": "delta", "model": "m", "prompt": 10, "output": 1, "money": money, "ending": "answered"}


def called(at: float, money: float) -> NewEvent:
    return NewEvent(at, "model-called", "0", {"role": "delta", "charges": [charge(money)]})


def fill(journal: Journal) -> None:
    """A request in rounds with a plan instead of them, a plain run, and one that only begins like the request."""
    journal.append_all("r", [NewEvent(1, "reason-started", "", {"request": "x"}), called(2, 0.5)])
    journal.append_all("r", [NewEvent(3, "reason-planned", "", {"run": "r-1", "plan": {}})])
    journal.append_all("r-1", [called(4, 1.0)])
    journal.append_all("r-plan", [called(5, 2.0)])
    journal.append_all("r-1x", [called(6, 64.0)])
    journal.append_all("s", [NewEvent(7, "run-started", "", {"planning_calls": [{"charges": [charge(4.0)]}]})])
    journal.append_all("s", [called(8, 8.0)])


def money(log: CostLog, journal: Journal, *given: Any) -> dict[str, float]:
    return {run: cost.money for run, cost in CostReport.of(log.entries(journal, *given)).by("run").items()}


def test_what_a_round_took_counts_for_its_request_and_nothing_else_does(journal: Journal) -> None:
    fill(journal)
    assert rounds_of_runs(journal, {"r", "s"}) == {"r-1": "r", "r-plan": "r"}
    assert money(CostLog(), journal, {"r"}) == {"r": 3.5}
    assert money(CostLog(), journal, {"r", "s"}) == {"r": 3.5, "s": 12.0}
    assert money(CostLog(), journal, set[str]()) == {}
    # A round of somebody else's request is not had by naming its beginning.
    assert money(CostLog(), journal, {"r-1x"}) == {"r-1x": 64.0}


def test_all_of_a_journal_is_what_the_command_line_counts(journal: Journal) -> None:
    fill(journal)
    whole = CostReport.of(each for event in journal.cost_events() for each in cost_entries(*event))
    found = CostReport.of(CostLog().entries(journal))
    assert found == whole
    assert found.total.money == 79.5


def test_a_period_has_only_what_was_asked_in_it(journal: Journal) -> None:
    fill(journal)
    log = CostLog()
    assert money(log, journal, {"r", "s"}, 4.0, 8.0) == {"r": 3.0, "s": 4.0}
    assert money(log, journal, None, 8.0) == {"s": 8.0}
    assert money(log, journal, {"r"}) == {"r": 3.5}


def test_what_was_read_is_not_read_again_and_what_is_new_is(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(journal)
    log, read = CostLog(), list[str]()
    plain = Journal.cost_records

    def counted(self: Journal, *given: Any, **options: Any) -> Any:
        for event in plain(self, *given, **options):
            read.append(event.run)
            yield event

    monkeypatch.setattr(Journal, "cost_records", counted)
    first = log.entries(journal)
    assert len(read) == 6
    read.clear()
    assert log.entries(journal) == first
    assert read == []
    journal.append_all("s", [called(9, 16.0)])
    assert money(log, journal)["s"] == 28.0
    # What is read is the new one alone.
    assert read == ["s"]


def test_what_was_erased_is_counted_no_more(journal: Journal) -> None:
    fill(journal)
    log = CostLog()
    assert "s" in money(log, journal)
    journal.erase("s")
    assert "s" not in money(log, journal)
    assert CostReport.of(log.entries(journal)).total.money == 67.5


def test_memory_is_bounded_and_the_sums_stay_right(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(journal)
    monkeypatch.setattr(_run_costs, "MAX_KEPT", 4)
    log = CostLog()
    assert money(log, journal, {"r"}) == {"r": 3.5}
    for _ in range(3):
        assert money(log, journal, {"s"}) == {"s": 12.0}
        assert CostReport.of(log.entries(journal)).total.money == 79.5
