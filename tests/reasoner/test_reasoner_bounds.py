"""Every end of a reasoning: each bound, a person who stops it, a model that fails; and what was done is never lost."""

from __future__ import annotations

import asyncio

import pytest
from reasoner_world import Direct, Office, note, planner

from bicameral import Failed, ScriptedProvider
from bicameral.config import Config
from bicameral.limits import (
    REASONING,
    ChamberPrices,
    ChamberUsage,
    LimitReached,
    Limits,
    LimitUsage,
    Meter,
    Price,
    reasoning_limits,
)
from bicameral.patterns.reasoner import Exhausted, GaveUp, ReasoningCallbacks, WrittenRound
from bicameral.runs import Stopped
from bicameral.tools import Origin, Tool, tool

LOOK = "notes = read_notes()\nurgent = [n for n in notes if n.urgent]\ncount = len(urgent)\nlook(count)\n"
POST = 'post("kim@example.com", "Hello")\nanswer("greeted")\n'


@pytest.fixture
def office() -> Office:
    return Office()


def _agent(tools: list[Tool], writes: ScriptedProvider) -> Direct:
    quarantined = ScriptedProvider([("", '{"value": true}')], grammars=False)
    return Direct(tools, privileged=writes, quarantined=quarantined, config=Config.defaults(), cache={})


def test_a_loop_that_never_ends_is_ended_by_its_rounds_and_keeps_what_it_found(office: Office) -> None:
    reasoned = office.agent(*[LOOK] * 20).sync.reason("How many notes are urgent?", rounds=3)
    assert isinstance(reasoned, Exhausted)
    assert (reasoned.bound, reasoned.spent, reasoned.limit) == ("rounds", 3, 3)
    assert [each.told for each in reasoned.rounds[:2]] == [("count = 1",)] * 2


@pytest.mark.parametrize(
    ("bounds", "bound"),
    [
        (reasoning_limits(calls=2), "calls"),
        (reasoning_limits(tokens=300), "tokens"),
        (reasoning_limits(money=0.0003, prices=ChamberPrices(privileged=Price(read=1.0, written=2.0))), "money"),
    ],
)
def test_each_bound_ends_it_with_what_was_done(office: Office, bounds: Limits, bound: str) -> None:
    keeps = 'keep("a.txt", "x")\ntill = balance()\nlook(till)\n'
    writes = planner(*[keeps] * 20)
    reasoned = office.agent(privileged=writes).sync.reason("Keep a text under a.txt", bounds=bounds)
    assert isinstance(reasoned, Exhausted), reasoned
    assert reasoned.bound == bound
    assert reasoned.spent >= reasoned.limit
    assert reasoned.rounds
    assert reasoned.rounds[0].effects
    if bound == "calls":
        assert len(writes.requests) == 2, "no call is begun beyond the bound"


def test_the_quarantined_models_calls_count_and_stop_in_the_middle_of_a_run() -> None:
    office = Office([note(day) for day in range(1, 9)])
    first = 'notes = read_notes()\nfound = [extract(n.text, "urgent?", bool) for n in notes]\nlook(found)\n'
    reasoned = office.agent(first).sync.reason("Which notes are urgent?", bounds=reasoning_limits(calls=4))
    assert isinstance(reasoned, Exhausted)
    assert reasoned.bound == "calls"
    assert (reasoned.taken.models.reasoner_calls, reasoned.taken.models.executor_calls) == (1, 3)
    assert isinstance(reasoned.rounds[0].outcome, Failed)


def test_time_ends_it_and_the_run_under_way_says_truthfully_how_far_it_was() -> None:
    office = Office()

    @tool(effect="read", origins=Origin("system"))
    async def wait() -> int:
        """Takes long."""
        await asyncio.sleep(30)
        return 1

    writes = planner('keep("a.txt", "x")\nn = wait()\nanswer(n)\n')
    agent = _agent([*office.tools, wait], writes)
    reasoned = agent.sync.reason("Keep a text under a.txt and wait", bounds=reasoning_limits(seconds=1.0))
    assert isinstance(reasoned, Exhausted)
    assert reasoned.bound == "seconds"
    assert isinstance(reasoned.rounds[0].outcome, Stopped)
    assert [done.tool for done in reasoned.rounds[0].effects] == ["keep"]


async def test_stopping_it_from_outside_gives_what_was_done() -> None:
    office = Office()
    begun = asyncio.Event()

    @tool(effect="read", origins=Origin("system"))
    async def wait() -> int:
        """Takes long."""
        begun.set()
        await asyncio.sleep(30)
        return 1

    writes = planner('keep("a.txt", "x")\ntill = balance()\nlook(till)\n', "n = wait()\nanswer(n)\n")
    task = asyncio.create_task(_agent([*office.tools, wait], writes).reason("Keep a text under a.txt and wait"))
    await begun.wait()
    task.cancel()
    reasoned = await task
    assert isinstance(reasoned, GaveUp)
    assert reasoned.error.code == "reason.interrupted"
    assert [done.tool for done in reasoned.rounds[0].effects] == ["keep"]


def test_a_model_that_fails_loses_nothing(office: Office) -> None:
    reasoned = office.agent('keep("a.txt", "x")\ntill = balance()\nlook(till)\n').sync.reason("Keep a text under a.txt")
    assert isinstance(reasoned, GaveUp)
    assert reasoned.error.code == "models.script-exhausted"
    assert [done.tool for done in reasoned.rounds[0].effects] == ["keep"]


def test_two_rounds_without_a_plan_are_the_end(office: Office) -> None:
    reasoned = office.agent(*["nonsense("] * 20).sync.reason("How many notes are urgent?")
    assert isinstance(reasoned, GaveUp)
    assert reasoned.error.code == "plan.none"
    assert len(reasoned.rounds) == 2


def test_a_plan_that_nobody_wants_is_not_run(office: Office) -> None:
    async def never(this: WrittenRound) -> bool:
        return False

    reasoned = office.agent(POST).sync.reason(
        "Post a greeting to kim@example.com", company=ReasoningCallbacks(written=never)
    )
    assert isinstance(reasoned, GaveUp)
    assert reasoned.error.code == "reason.declined"
    assert office.posted == []


@pytest.mark.parametrize("name", ["rounds", "calls", "tokens", "money", "seconds"])
def test_a_bound_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(Exception, match="more than 0"):
        reasoning_limits(**{name: 0})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("bounds", [{"calls": 2}, {"tokens": 90}, {"money": 0.5}])
def test_what_earlier_attempts_have_taken_counts(bounds: dict[str, float]) -> None:
    spent = ChamberUsage(reasoner_tokens=90, reasoner_calls=2)
    taken = LimitUsage.of_models(spent, REASONING, money=0.5, seconds=3.0)
    before = LimitUsage.from_json(taken.to_json(), REASONING)
    limits = reasoning_limits(**bounds)  # pyright: ignore[reportArgumentType]
    Meter(limits).start_reply("delta")
    meter = Meter(limits, before=before)
    assert (meter.usage.tokens, meter.usage.calls, meter.usage.money) == (90, 2, 0.5)
    assert meter.usage.seconds >= 3.0
    with pytest.raises(LimitReached):
        meter.start_reply("delta")
