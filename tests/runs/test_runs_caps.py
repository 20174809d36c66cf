"""Every run is bounded: rounds, calls, tokens, money, seconds of work; over all attempts at it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bicameral.boundary import Extractor
from bicameral.errors import JournalError, RunError
from bicameral.limits import RUN, LimitReached, Limits, LimitUsage, Meter, run_limits
from bicameral.models import ScriptedProvider
from bicameral.plans import parse
from bicameral.runs import (
    Failed,
    Finished,
    Interrupted,
    Journal,
    RunOutcome,
    Suspend,
    Waiting,
    replay,
    resume_plan,
    run_plan,
)
from bicameral.runs._run_record import RecordedEffectHandler, read_run_record
from bicameral.tools import Registry, tool

done: list[int] = []


@tool(effect="write")
async def note(n: int) -> int:
    """Write a number down."""
    done.append(n)
    return n


@tool(effect="read")
async def rest(seconds: float) -> float:
    """Take a while."""
    await asyncio.sleep(seconds)
    return seconds


@tool(effect="write")
async def slowly(n: int) -> int:
    """Write a number down, and take a while."""
    await asyncio.sleep(1.2)
    done.append(n)
    return n


REGISTRY = Registry([note, rest, slowly])


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


async def _run(source: str, **options: Any) -> RunOutcome:
    return await run_plan(parse(source, REGISTRY).plan, REGISTRY, **options)


def _cap(outcome: RunOutcome) -> tuple[str, float, float]:
    assert isinstance(outcome, Failed), outcome
    assert isinstance(outcome.error, LimitReached)
    assert outcome.error.code == "run.cap"
    return outcome.error.bound, outcome.error.spent, outcome.error.limit


NOTES = "for n in range(9):\n    note(n)\nanswer(1)"


async def test_calls_beyond_the_cap_are_not_made(journal: Journal) -> None:
    outcome = await _run(NOTES, caps=run_limits(calls=4), journal=journal)
    assert _cap(outcome) == ("calls", 4, 4)
    assert isinstance(outcome, Failed)
    assert (done, len(outcome.effects), outcome.step) == ([0, 1, 2, 3], 4, "0[4]/0")
    facts = journal.events(outcome.run)[-1].body["error"]
    assert (facts["cap"], facts["taken"], facts["limit"]) == ("calls", 4, 4)
    again = await replay(journal, outcome.run, REGISTRY)
    assert again.identical, again.differences
    assert (again.outcome.effects, done) == (outcome.effects, [0, 1, 2, 3])


async def test_a_gap_in_the_record_does_not_pass_for_the_end_at_a_cap(journal: Journal) -> None:
    outcome = await _run(NOTES, caps=run_limits(calls=4), journal=journal)
    whole = journal.events(outcome.run)
    handler = RecordedEffectHandler(read_run_record([each for each in whole if each.step != "0[3]/0"], journal))
    with pytest.raises(JournalError) as caught:
        await handler.call("0[3]/0", REGISTRY["note"], {"n": 3})
    assert caught.value.code == "journal.not-recorded"
    with pytest.raises(LimitReached):
        await handler.call("0[4]/0", REGISTRY["note"], {"n": 4})


async def test_as_many_calls_as_the_cap_says_may_be_made() -> None:
    assert isinstance(await _run(NOTES, caps=run_limits(calls=9)), Finished)


class Asks:
    """Replies after a while, or lets the run wait."""

    def __init__(self, *, after: float | None = None) -> None:
        self.after = after

    async def ask(self, question: str, type: Any) -> Any:
        if self.after is None:
            raise Suspend
        await asyncio.sleep(self.after)
        return "yes"


async def test_calls_count_over_all_attempts(journal: Journal) -> None:
    source = "note(1)\nnote(2)\nx = ask('Go on?', str)\nnote(3)\nnote(4)\nanswer(x)"
    first = await _run(source, caps=run_limits(calls=3), journal=journal, run="r1", asker=Asks())
    assert isinstance(first, Waiting)
    second = await resume_plan(journal, "r1", REGISTRY, asker=Asks(after=0))
    assert _cap(second) == ("calls", 3, 3)
    assert done == [1, 2, 3]


async def test_whoever_resumes_may_allow_more(journal: Journal) -> None:
    source = "note(1)\nx = ask('Go on?', str)\nnote(2)\nanswer(x)"
    await _run(source, caps=run_limits(calls=1), journal=journal, run="r1", asker=Asks())
    outcome = await resume_plan(journal, "r1", REGISTRY, asker=Asks(after=0), caps=run_limits(calls=2))
    assert isinstance(outcome, Finished)


async def test_a_call_that_is_repeated_since_its_process_died_counts_again(journal: Journal) -> None:
    """Or else a run whose calls kill their process would go on for ever."""
    write = journal.append_all

    @tool(effect="write", idempotent=True)
    def deadly() -> None:
        """Ends its process."""
        done.append(0)
        journal.append_all = _dead  # type: ignore[method-assign]

    def _dead(*_: Any, **__: Any) -> Any:
        raise JournalError("journal.failed", "the process is dead")

    registry = Registry([deadly])
    outcome = await run_plan(
        parse("deadly()\nanswer(1)", registry).plan, registry, journal=journal, run="r1", caps=run_limits(calls=3)
    )
    attempts = 1
    while isinstance(outcome, Interrupted):
        journal.append_all = write  # type: ignore[method-assign]
        outcome = await resume_plan(journal, "r1", registry)
        attempts += 1
    assert _cap(outcome) == ("calls", 3, 3)
    assert (len(done), attempts) == (3, 4)


async def test_a_run_works_no_longer_than_it_may(journal: Journal) -> None:
    started = time.perf_counter()
    outcome = await _run("a = rest(20.0)\nanswer(a)", caps=run_limits(seconds=0.3), journal=journal)
    assert time.perf_counter() - started < 5
    assert _cap(outcome)[0] == "seconds"
    assert journal.events(outcome.run)[-1].kind == "run-failed"


async def test_an_effect_that_has_begun_when_the_time_is_up_comes_to_its_end(journal: Journal) -> None:
    outcome = await _run("for n in range(5):\n    slowly(n)\nanswer(1)", caps=run_limits(seconds=1.8), journal=journal)
    assert _cap(outcome)[0] == "seconds"
    assert isinstance(outcome, Failed)
    assert (done, len(outcome.effects)) == ([0, 1], 2)


async def test_waiting_for_a_person_is_no_work(journal: Journal) -> None:
    source = "x = ask('Well?', str)\nnote(1)\nanswer(x)"
    outcome = await _run(source, caps=run_limits(seconds=2), journal=journal, asker=Asks(after=2.5))
    assert isinstance(outcome, Finished)
    assert outcome.seconds < 2


async def test_seconds_count_over_all_attempts(journal: Journal) -> None:
    source = "a = rest(1.0)\nnote(0)\nx = ask('Go on?', str)\nnote(1)\nb = rest(1.6)\nnote(2)\nanswer(x)"
    caps = run_limits(seconds=2.2)
    assert isinstance(await _run(source, caps=caps, journal=journal, run="r1", asker=Asks()), Waiting)
    await asyncio.sleep(2.3)
    outcome = await resume_plan(journal, "r1", REGISTRY, asker=Asks(after=0))
    assert _cap(outcome)[0] == "seconds"
    assert done == [0, 1]


async def test_seconds_of_an_attempt_that_died_count(journal: Journal) -> None:
    events: list[tuple[str, float, dict[str, Any]]] = [
        ("run-started", 0.0, {}),
        ("step-started", 1.0, {"what": "ask"}),
        ("step-finished", 50.0, {"seconds": 49.0}),
        ("approval", 60.0, {"seconds": 8.0, "calls": [], "approved": []}),
        ("run-resumed", 500.0, {}),
        ("step-started", 503.0, {"what": "note"}),
    ]
    from bicameral.journal import Event
    from bicameral.runs._resume import previous_attempts

    found = [
        Event("r", number, at, kind, "0", body)  # pyright: ignore[reportArgumentType]
        for number, (kind, at, body) in enumerate(events)
    ]
    assert previous_attempts(found).seconds == 60 - 49 - 8 + 3


def _extractor(calls: list[int]) -> Extractor:
    def reply(request: object) -> str:
        calls.append(1)
        return '{"value": "x"}'

    return Extractor(ScriptedProvider(reply))


EXTRACTS = """
xs = []
for n in range(6):
    t = extract(str(n) + ' x', 'the letter', str)
    xs.append(t)
answer(xs)
"""


@pytest.mark.parametrize("cap", ["calls", "tokens"])
async def test_models_are_not_asked_beyond_the_cap(cap: str) -> None:
    calls: list[int] = []
    limit: Any = {"calls": 2} if cap == "calls" else {"tokens": 1}
    outcome = await _run(EXTRACTS, caps=run_limits(**limit), extractor=_extractor(calls))
    assert _cap(outcome)[0] == cap
    assert len(calls) < 6
    assert isinstance(await _run(EXTRACTS, extractor=_extractor(calls)), Finished)


async def test_tokens_count_over_all_attempts(journal: Journal) -> None:
    calls: list[int] = []
    source = (
        "t = extract('a x', 'the letter', str)\ny = ask('Go on?', str)\nu = extract(y + ' x', 'it', str)\nanswer(t + u)"
    )
    first = await _run(source, journal=journal, run="r1", extractor=_extractor(calls), asker=Asks())
    assert isinstance(first, Waiting)
    spent = first.usage.spent
    assert spent.executor_calls == len(calls) > 0
    assert spent.executor_tokens > 0
    second = await resume_plan(
        journal,
        "r1",
        REGISTRY,
        extractor=_extractor(calls),
        asker=Asks(after=0),
        caps=run_limits(tokens=spent.executor_tokens),
    )
    assert _cap(second)[0] == "tokens"


async def test_what_all_attempts_cost_is_told_at_the_end(journal: Journal) -> None:
    calls: list[int] = []
    source = (
        "t = extract('a x', 'the letter', str)\ny = ask('Go on?', str)\nu = extract(y + ' x', 'it', str)\nanswer(t + u)"
    )
    first = await _run(source, journal=journal, run="r1", extractor=_extractor(calls), asker=Asks())
    second = await resume_plan(journal, "r1", REGISTRY, extractor=_extractor(calls), asker=Asks(after=0))
    assert isinstance(second, Finished)
    assert second.usage.spent.executor_calls == len(calls)
    assert second.usage.spent.executor_tokens > first.usage.spent.executor_tokens
    assert (await resume_plan(journal, "r1", REGISTRY)).usage == second.usage


def test_the_last_round_may_be_used_and_no_further_one() -> None:
    Meter(run_limits(rounds=2), before=LimitUsage(rounds=2)).check()
    with pytest.raises(LimitReached):
        Meter(run_limits(rounds=2), before=LimitUsage(rounds=3)).check()


async def test_a_run_that_is_a_round_too_many_does_nothing() -> None:
    outcome = await _run(NOTES, caps=run_limits(rounds=2), link={"reason": "x", "round": 3})
    assert _cap(outcome) == ("rounds", 3, 2)
    assert done == []


@pytest.mark.parametrize(
    "wrong",
    [{"calls": 0}, {"calls": 1.5}, {"seconds": -1.0}, {"money": float("nan")}, {"tokens": True}, {"rounds": 10**19}],
)
def test_a_cap_that_bounds_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(RunError) as caught:
        run_limits(**wrong)
    assert caught.value.code == "run.bad-cap"


def test_caps_survive_the_record() -> None:
    caps = run_limits(rounds=1, calls=2, tokens=3, money=4.5, seconds=6.5)
    assert Limits.from_json(caps.to_json(), RUN) == caps


@tool(effect="pure")
def twice(n: int) -> int:
    """Two times a number."""
    return 2 * n


async def test_a_run_that_was_recorded_before_there_was_one_kind_of_limits_is_read(journal: Journal) -> None:
    """The keys of the caps and of the error are those of the old record."""
    lines = (Path(__file__).parent / "plan_before_limits.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    for event in events:
        journal.append("old", event["kind"], event["step"], event["body"])
    registry = Registry([twice])
    again = await resume_plan(journal, "old", registry)
    assert isinstance(again, Failed)
    assert again.error.code == "run.cap"
    plan = parse("a = twice(1)\nb = twice(2)\nc = twice(3)\nanswer(a + b + c)", registry).plan
    await run_plan(plan, registry, journal=journal, run="new", caps=run_limits(calls=2))
    started, *_, ended = journal.events("new")
    assert started.body["caps"] == events[0]["body"]["caps"]
    assert ended.body["error"] == events[-1]["body"]["error"]
