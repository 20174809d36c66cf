"""Rounds, calls, tokens and time are bounded, and running out of one is an outcome with what was done before."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from strategies_world import BOB, Office, Speaker, call, office_agent

from bicameral.errors import ModelError, RunError
from bicameral.limits import STRATEGY, Limits, strategy_limits
from bicameral.models import ModelReply, ModelRequest
from bicameral.patterns.strategies import Answered, Exhausted, GaveUp, StrategyParams

LOOK = [call("balance", account="a")]


@pytest.mark.parametrize(
    ("bounds", "bound", "spent"),
    [
        (strategy_limits(rounds=3), "rounds", 3),
        (strategy_limits(calls=2), "calls", 2),
        (strategy_limits(tool_calls=4), "tool_calls", 4),
        (strategy_limits(tokens=300), "tokens", None),
    ],
)
async def test_a_loop_without_end_is_ended(bounds: Limits, bound: str, spent: int | None) -> None:
    agent, high, _ = office_agent(Office(), lambda asked: [call("balance", account=str(len(asked.messages)))])
    worked = await agent.work("Look for ever", strategy="native_react", bounds=bounds)
    assert isinstance(worked, Exhausted), worked
    assert (worked.bound, worked.limit) == (bound, getattr(bounds, bound))
    assert worked.spent >= worked.limit
    assert spent is None or worked.spent == spent
    assert len(high.asked) == len(worked.turns) == worked.taken.calls


async def test_the_same_call_for_the_third_time_is_not_made_and_it_has_to_answer() -> None:
    agent, high, _ = office_agent(Office(), [LOOK, LOOK, LOOK, "Ada has 90."])
    worked = await agent.work("Look for ever", strategy="native_react")
    assert isinstance(worked, Answered), worked
    assert (worked.answer, worked.taken.tool_calls) == ("Ada has 90.", 2)
    assert [turn.phase for turn in worked.turns] == ["act", "act", "act", "final_answer"]
    assert not high.asked[-1].tools
    assert [each.text for each in high.asked[-1].messages if each.speaker == "tool"][-1] == "the same as before."


async def test_time_runs_out_in_the_middle_of_a_reply() -> None:
    class Slow(Speaker):
        async def generate(self, request: ModelRequest) -> ModelReply:
            await asyncio.sleep(30)
            return await super().generate(request)

    agent, _, _ = office_agent(Office())
    slow: Any = Slow(["late"], name="slow")
    object.__setattr__(agent._models, "privileged", slow)  # pyright: ignore[reportPrivateUsage]
    worked = await agent.work("x", strategy="native_react", bounds=strategy_limits(seconds=0.05))
    assert isinstance(worked, Exhausted)
    assert (worked.bound, worked.limit) == ("seconds", 0.05)


async def test_what_was_done_before_is_told() -> None:
    office = Office()
    lines = iter([[call("send", to=BOB, body="hello")]])
    agent, _, _ = office_agent(office, lambda _: next(lines, LOOK))
    worked = await agent.work(f"Greet {BOB}", strategy="native_react", bounds=strategy_limits(rounds=2))
    assert isinstance(worked, Exhausted)
    assert [done.tool for done in worked.effects] == ["send"]


async def test_many_calls_in_one_reply_are_held_to_the_bound_one_by_one() -> None:
    office = Office()
    agent, _, _ = office_agent(office, [[call("send", to=BOB, body=str(n)) for n in range(50)]])
    worked = await agent.work(f"Greet {BOB}", strategy="native_react", bounds=strategy_limits(tool_calls=3))
    assert isinstance(worked, Exhausted)
    assert len(office.done) == len(worked.effects) == 3


async def test_the_steps_of_a_plan_count_as_rounds_together() -> None:
    plan = json.dumps({"steps": ["a", "b", "c"]})
    lines = iter([plan])
    agent, _, _ = office_agent(Office(), lambda _: next(lines, LOOK))
    params = StrategyParams(max_step_iterations=2)
    worked = await agent.work("x", strategy="plan_and_execute", params=params, bounds=strategy_limits(rounds=5))
    assert isinstance(worked, Exhausted)
    assert (worked.bound, worked.taken.rounds) == ("rounds", 5)


async def test_stopping_gives_an_outcome() -> None:
    asked = asyncio.Event()

    class Stuck(Speaker):
        async def generate(self, request: ModelRequest) -> ModelReply:
            asked.set()
            await asyncio.sleep(30)
            raise AssertionError

    agent, _, _ = office_agent(Office())
    object.__setattr__(agent._models, "privileged", Stuck([]))  # pyright: ignore[reportPrivateUsage]
    task = asyncio.create_task(agent.work("x", strategy="native_react"))
    await asked.wait()
    task.cancel()
    worked = await task
    assert isinstance(worked, GaveUp)
    assert worked.error.code == "run.stopped"


async def test_a_model_that_fails_is_an_outcome() -> None:
    def fails(_: ModelRequest) -> str:
        raise ModelError("models.unavailable", "gone")

    agent, _, _ = office_agent(Office(), fails)
    worked = await agent.work("x", strategy="spar")
    assert isinstance(worked, GaveUp)
    assert (worked.error.code, worked.turns) == ("models.unavailable", ())


@pytest.mark.parametrize("name", STRATEGY.bounds)
def test_a_bound_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(RunError, match="more than 0"):
        strategy_limits(**{name: 0})  # pyright: ignore[reportArgumentType]
