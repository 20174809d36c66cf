"""Time limits of steps: a step ends in its time, whatever it does, and nothing else is held up or repeated."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from runs_boundary import Compromised

from bicameral.boundary import ExtractionOutcome, Filled
from bicameral.plans import parse
from bicameral.policy import Policy
from bicameral.runs import (
    Answers,
    ApprovalQuestion,
    Failed,
    Finished,
    Journal,
    Stopped,
    check_plan,
    resume_plan,
    run_plan,
)
from bicameral.tools import Registry, tool
from bicameral.types import Type


class World:
    """Tools that take their time, and count how often they were called."""

    def __init__(self) -> None:
        self.calls = 0
        self.cancelled = 0

    @property
    def registry(self) -> Registry:
        @tool(effect="read", idempotent=True)
        async def wait(seconds: float) -> float:
            """Wait."""
            self.calls += 1
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            return seconds

        @tool(effect="read")
        def block(seconds: float) -> float:
            """Wait in a thread, which nobody can end."""
            self.calls += 1
            time.sleep(seconds)
            return seconds

        @tool(effect="write", purpose={"text": "directs"})
        async def note(text: str) -> None:
            """Write slowly."""
            self.calls += 1
            await asyncio.sleep(60)

        @tool(effect="read", timeout=0.3)
        async def hasty(seconds: float) -> float:
            """Wait, but not longer than the tool itself may."""
            await asyncio.sleep(seconds)
            return seconds

        return Registry([wait, block, note, hasty])


class SlowReader(Compromised):
    async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
        await asyncio.sleep(60)
        return Filled("late")


async def run(source: str, world: World | None = None, **options: Any) -> Any:
    registry = (world or World()).registry
    return await asyncio.wait_for(run_plan(parse(source, registry).plan, registry, **options), 30)


@pytest.mark.parametrize("call", ["wait(60.0)", "block(6.0)", "note('x')"])
async def test_a_step_ends_in_its_time_and_is_not_tried_again(call: str) -> None:
    world = World()
    began = time.monotonic()
    outcome = await run(f"a = 1\nwithin(0.2, {call})\nanswer(a)", world)
    assert time.monotonic() - began < 5.0
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, outcome.step, world.calls) == ("run.step-timeout", "1", 1)
    assert "0.2 s" in outcome.error.message
    assert ("may or may not" in (outcome.error.fix or "")) == call.startswith("note")


async def test_the_tool_is_told_to_stop() -> None:
    world = World()
    await run("within(0.1, wait(60.0))\nanswer(1)", world)
    assert world.cancelled == 1


async def test_a_step_that_is_quick_enough_is_not_disturbed() -> None:
    outcome = await run("a = within(20, wait(0.05))\nanswer(a)")
    assert isinstance(outcome, Finished)
    assert outcome.answer == 0.05


async def test_the_limit_of_the_tool_holds_as_well() -> None:
    outcome = await run("a = within(20, hasty(60.0))\nanswer(a)")
    assert outcome.error.code == "tools.timeout"


async def test_a_limit_covers_all_attempts_together() -> None:
    world = World()
    began = time.monotonic()
    outcome = await run("a = within(0.7, hasty(60.0))\nanswer(a)", world)
    assert isinstance(outcome, Failed)
    assert time.monotonic() - began < 10


async def test_reading_with_a_model_has_a_limit_too() -> None:
    outcome = await run("a = within(0.1, extract('text', 'the name', str))\nanswer(a)", extractor=SlowReader())
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.step-timeout"
    assert "quarantined model" in outcome.error.message


async def test_each_turn_of_a_loop_has_the_whole_time() -> None:
    source = "xs = []\nfor n in [1, 2, 3]:\n    a = within(20, wait(0.05 * n))\n    xs.append(a)\nanswer(len(xs))"
    assert (await run(source)).answer == 3
    late = await run("for n in [1, 2]:\n    a = within(0.1, wait(60.0 * n))\nanswer(1)")
    assert late.error.code == "run.step-timeout"
    assert late.step.startswith("0[")


async def test_the_time_in_which_a_person_is_asked_does_not_count(tmp_path: Path) -> None:
    class Slow:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            await asyncio.sleep(4.5)
            return Answers.yes(question.calls)

    world = World()
    registry = world.registry
    rules = tmp_path / "rules.cedar"
    rules.write_text('@ask("Wait?")\nforbid (principal, action, resource in Tool::"wait");\n')
    policy = Policy.load((rules,), registry)
    plan = parse("a = within(4, wait(0.05))\nanswer(a)", registry).plan
    outcome = await run_plan(check_plan(plan, registry, policy), registry, approver=Slow())
    assert isinstance(outcome, Finished), outcome


async def test_a_resumed_run_keeps_the_limits(tmp_path: Path) -> None:
    world = World()
    registry = world.registry
    plan = parse("a = within(2, wait(60.0))\nanswer(a)", registry).plan
    with Journal(tmp_path / "runs.sqlite") as journal:
        running = asyncio.create_task(run_plan(plan, registry, journal=journal, run="r1", leaving=lambda: True))
        while not any(summary.run == "r1" for summary in journal.runs()):  # noqa: ASYNC110 (only the journal knows)
            await asyncio.sleep(0.05)
        running.cancel()
        assert not isinstance(await running, Stopped | Finished)
        outcome = await resume_plan(journal, "r1", registry)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.step-timeout"
