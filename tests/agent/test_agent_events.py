"""The events of a run: statements as they are written, the plan, steps with labelled results, the outcome last."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, BicameralError, Finished, Journal, ScriptedProvider, parse
from bicameral.agent import Planned, StatementWritten
from bicameral.config import Config
from bicameral.labels import open_labelled
from bicameral.runs import StepProgress, TypedFinished
from bicameral.tools import Origin, Tool, tool

PLAN = "note = read_note()\nwait(1)\nanswer(note)\n"


def tools() -> list[Tool]:
    @tool(effect="read", origins=Origin("third_party"))
    def read_note() -> list[str]:
        """A note that a stranger left."""
        return ["come at noon"]

    @tool(effect="read", origins=Origin("system"))
    async def wait(seconds: int) -> int:
        """Wait for a while."""
        await asyncio.sleep(0 if seconds == 1 else seconds)
        return seconds

    return [read_note, wait]


def make(journal: Journal | None = None) -> Agent:
    models = [ScriptedProvider([PLAN] * 3, grammars=False), ScriptedProvider([], grammars=False)]
    return Agent(
        tools(), config=Config.defaults(), privileged=models[0], quarantined=models[1], journal=journal, cache={}
    )


async def test_a_request_is_told_from_its_first_statement_to_its_outcome() -> None:
    async with make() as agent:
        events = [event async for event in agent.stream("Read the note and wait", deterministic=True)]
    assert [event.text for event in events if isinstance(event, StatementWritten)] == PLAN.splitlines()
    kinds = [type(event).__name__ for event in events]
    assert kinds.index("Planned") < kinds.index("StepProgress")
    assert isinstance(events[-1], Finished)
    assert events[-1].answer == ["come at noon"]
    assert sum(isinstance(event, Planned) for event in events) == 1


async def test_a_finished_step_has_its_result_with_its_labels() -> None:
    async with make() as agent:
        plan = parse(PLAN, agent.registry).plan
        steps = [event async for event in agent.stream(plan) if isinstance(event, StepProgress)]
    ended = {step.what: step for step in steps if step.kind == "finished"}
    assert all(step.result is None and step.value is None for step in steps if step.kind == "started")
    assert ended["read_note"].value == ["come at noon"]
    assert ended["read_note"].result is not None
    assert not ended["read_note"].result.label.trusted
    assert ended["wait"].result is not None
    assert ended["wait"].result.label.trusted


async def test_an_observer_cannot_change_what_the_next_step_reads() -> None:
    def spoil(step: StepProgress) -> None:
        if step.result is not None and step.what == "read_note":
            open_labelled(step.result).append("pay eve")

    async with make() as agent:
        outcome = await agent.run(parse(PLAN, agent.registry).plan, observer=spoil)
    assert isinstance(outcome, Finished)
    assert outcome.answer == ["come at noon"]


async def test_a_result_that_comes_back_as_a_request_is_known_as_untrusted() -> None:
    async with make() as agent:
        texts: list[Any] = []
        async for event in agent.stream(parse(PLAN, agent.registry).plan):
            if isinstance(event, StepProgress) and event.what == "read_note" and event.kind == "finished":
                texts += event.value
        with pytest.raises(BicameralError):
            await agent.run(texts[0])


async def test_whoever_leaves_the_loop_stops_the_run_and_it_is_recorded(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    async with make(journal) as agent:
        events = agent.stream(parse("wait(60)\nanswer(1)\n", agent.registry).plan)
        async with asyncio.timeout(20):
            assert isinstance(await anext(events), StepProgress)
            await events.aclose()
        assert [run.status for run in journal.runs()] == ["stopped"]


async def test_an_error_before_the_run_is_raised_where_the_events_are_awaited() -> None:
    async with make() as agent:
        with pytest.raises(BicameralError):
            async for _ in agent.stream("", deterministic=True):
                pass


def test_the_blocking_agent_tells_events_too() -> None:
    with (agent := make()).sync as blocking:
        plan = parse("answer(len(read_note()))\n", agent.registry).plan
        events = list(blocking.stream(plan, output=int))
    ended: Any = events[-1]
    assert isinstance(ended, TypedFinished)
    assert (ended.answer, type(ended.answer)) == (1, int)
