"""The judge of the storm finds what went wrong: each fault is planted, and none is found where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chaos.expected import Expected, expected, labels_in
from benchmarks.chaos.judge import IN_DOUBT, Ended, Verdict, judge, p95, takeovers
from benchmarks.chaos.patterns import KINDS as PATTERN_KINDS, pattern_errands
from benchmarks.chaos.plans import KINDS, errands
from benchmarks.chaos.storm import started as process
from benchmarks.chaos.tools import registry_over
from benchmarks.chaos.world import Entry, Ledger, PaperWorld, ServedWorld, contents
from bicameral.plans import Plan
from bicameral.runs import Event

TRUSTED, TAINTED = {"trusted": True}, {"trusted": False}


def started(number: int, step: str, what: str, at: float) -> Event:
    body = {"arguments": {"what": what}, "shades": {"what": TRUSTED}, "control": TRUSTED}
    return Event("r", number, at, "step-started", step, body)


def ended(number: int, step: str, at: float, shade: Any = TAINTED) -> Event:
    return Event("r", number, at, "step-finished", step, {"result": "x", "shade": shade})


EVENTS = (
    Event("r", 0, 1.0, "run-started", "", {}),
    started(1, "0", "t0/a", 1.0),
    ended(2, "0", 2.0),
    started(3, "1", "t0/b", 3.0),
    ended(4, "1", 4.0),
    Event("r", 5, 5.0, "run-finished", "", {"answer": [1], "shade": TAINTED}),
)
WANTED = Expected([1], ("t0/a", "t0/b"), labels_in(EVENTS))
RUN = Ended("t0", "r", "finished", "", "", [1], EVENTS)
LEDGER = (Entry("t0/a", "note", "k1", True, 1.5), Entry("t0/b", "note", "k2", True, 3.5))


def verdict(run: Ended = RUN, ledger: tuple[Entry, ...] = LEDGER) -> Verdict:
    return judge([run], {"t0": WANTED}, ledger)


def test_a_run_that_came_to_what_was_expected_has_no_fault() -> None:
    assert verdict() == Verdict()


def test_a_retry_that_the_ledger_took_for_the_same_is_counted_and_is_no_fault() -> None:
    found = verdict(ledger=(*LEDGER, Entry("t0/b", "note", "k2", False, 3.7)))
    assert found == Verdict(retried=1)


@pytest.mark.parametrize(
    ("fault", "run", "ledger"),
    [
        ("lost", replace(RUN, state="running"), LEDGER),
        ("lost", replace(RUN, state="failed", code="tools.failed"), LEDGER),
        ("missing", RUN, LEDGER[:1]),
        ("duplicated", RUN, (*LEDGER, replace(LEDGER[1], key="another", at=3.7))),
        ("duplicated", RUN, (*LEDGER, replace(LEDGER[0], accepted=False, at=2.5))),
        ("duplicated", RUN, (*LEDGER, Entry("t0/c", "note", "k3", True, 4.5))),
        ("answers", replace(RUN, answer=[2]), LEDGER),
        ("labels", replace(RUN, events=(*EVENTS[:2], ended(2, "0", 2.0, TRUSTED), *EVENTS[3:])), LEDGER),
        ("labels", replace(RUN, events=EVENTS[:-1]), LEDGER),
        ("labels", replace(RUN, events=(*EVENTS, ended(6, "1", 6.0, TRUSTED))), LEDGER),
    ],
)
def test_a_planted_fault_is_found(fault: str, run: Ended, ledger: tuple[Entry, ...]) -> None:
    found = verdict(run, ledger)
    assert len(getattr(found, fault)) == 1
    assert len(found.told()) == 1


def test_a_run_that_ended_at_an_effect_in_doubt_owes_what_came_before_it_and_no_more() -> None:
    stopped = replace(RUN, state="failed", code=IN_DOUBT, events=EVENTS[:4])
    assert verdict(stopped) == Verdict(in_doubt=1)
    assert verdict(stopped, LEDGER[:1]) == Verdict(in_doubt=1)
    assert len(verdict(stopped, LEDGER[1:]).missing) == 1


def test_a_takeover_is_from_the_kill_until_somebody_goes_on_after_it() -> None:
    resumed = [Event("r", number, at, "run-resumed", "", {}) for number, at in ((6, 8.0), (7, 20.0))]
    run = replace(RUN, events=[*EVENTS, *resumed], updated=20.5)
    assert takeovers([("r", 4.5), ("r", 19.0)], [run]) == [3.5, 1.0]
    assert takeovers([("r", 4.5)], [RUN]) == [0.5]
    assert takeovers([("r", 20.25)], [run]) == [0.25]
    assert takeovers([("r", 21.0)], [run]) == [float("inf")]
    assert takeovers([("r", 4.5)], [run], [4.0, 6.0, 9.0]) == [2.0]
    begun = replace(RUN, events=[Event("r", 1, 5.0, "run-started", "", {}), *resumed])
    assert takeovers([("r", 1.0)], [begun]) == [4.0]  # it died before the run began
    assert p95([]) is None
    assert p95([float(value) for value in range(1, 101)]) == 95.0


def test_a_key_is_accepted_once_and_its_receipt_is_the_same_each_time() -> None:
    ledger = Ledger()
    take: Callable[[str, bool], str] = lambda key, keyed: ledger.take("pay", "t0/a", {}, key=key, keyed=keyed)  # noqa: E731
    assert take("k", True) == take("k", True)
    assert [entry.accepted for entry in ledger.entries] == [True, False]
    take("k", False)
    take("other", True)
    assert [entry.accepted for entry in ledger.entries] == [True, False, True, True]


def test_the_world_says_the_same_each_time() -> None:
    for what in ("page/7", "rows/7/3", "large/7/5000"):
        assert contents(what) == contents(what)
    assert len(contents("large/7/5000")["text"]) == 5000


def test_every_kind_of_plan_checks_and_each_of_its_effects_bears_its_ticket() -> None:
    registry = registry_over(PaperWorld())
    made = errands(2 * len(KINDS), registry)
    assert {errand.kind for errand in made} == set(KINDS)
    for errand in made:
        assert isinstance(errand.work, Plan)
        assert f"{errand.ticket}/" in json.dumps(errand.work.to_json())


async def test_every_kind_of_pattern_comes_to_its_end_and_each_of_its_effects_bears_its_ticket() -> None:
    made = pattern_errands(len(PATTERN_KINDS))
    assert {errand.kind for errand in made} == set(PATTERN_KINDS)
    wanted = await expected(made)
    for errand in made:
        found = wanted[errand.ticket]
        assert found.effects
        assert all(what.startswith(f"{errand.ticket}/") for what in found.effects)
        assert len(set(found.effects)) == len(found.effects)
        assert "answer" in found.labels


def test_the_served_world_says_what_the_one_on_paper_says_and_keeps_the_books(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        server = process("world", "world", "0", log=log, answers=True)
    try:
        assert server.popen.stdout is not None
        served, paper = ServedWorld(server.popen.stdout.readline().strip()), PaperWorld()
        assert served.read("page/3") == paper.read("page/3")
        for world in (served, paper):
            receipt = world.act("note", "t0/a", {"text": "x"}, key="k", keyed=True)
            assert receipt == world.act("note", "t0/a", {"text": "x"}, key="k", keyed=True)
        assert [(entry.what, entry.key, entry.accepted) for entry in served.entries()] == [
            ("t0/a", "k", True),
            ("t0/a", "k", False),
        ]
        assert served.happened("t0/a")
        assert not served.happened("t0/b")
        served.close()
    finally:
        server.end()
    assert server.popen.returncode == 0
