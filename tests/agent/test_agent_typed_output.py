"""Answers of a type: what fits is given as an object of the type, what can be read is read, nothing is converted."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, assert_type

import pytest
from pydantic import BaseModel, Field

from bicameral import Agent, BicameralError, Failed, Journal, ScriptedProvider, parse
from bicameral.agent import TypedOutcome
from bicameral.config import Config
from bicameral.plans import Extract, walk
from bicameral.runs import StepProgress, TypedFinished
from bicameral.tools import Origin, Tool, tool


@dataclass(frozen=True)
class Bill:
    number: str
    amount: int


class Order(BaseModel):
    item: str
    count: Annotated[int, Field(gt=0)]
    due: date | None = None


SENT: list[str] = []


def tools() -> list[Tool]:
    @tool(effect="read", origins=Origin("third_party"))
    def read_letter() -> str:
        """A letter that a stranger wrote."""
        return "Bill 7 over 120 euros."

    @tool(effect="read", origins=Origin("third_party"))
    def bills() -> list[Bill]:
        """All bills."""
        return [Bill("7", 120), Bill("8", 3)]

    @tool(effect="send", purpose={"to": "directs"}, origins=Origin("system"))
    def post(to: str) -> None:
        """Post something."""
        SENT.append(to)

    @tool(effect="read", origins=Origin("third_party"))
    def anything() -> Any:
        """Whatever a service says."""
        return {"item": "rope", "count": 0}

    return [read_letter, bills, post, anything]


def agent(*replies: str, journal: Journal | None = None) -> Agent:
    SENT.clear()
    quarantined = ScriptedProvider([("", reply) for reply in replies], grammars=False)
    config = Config.defaults()
    return Agent(
        tools(),
        config=config,
        privileged=ScriptedProvider([], grammars=False),
        quarantined=quarantined,
        journal=journal,
    )


async def run(source: str, output: type[Any], *replies: str) -> TypedOutcome[Any]:
    made = agent(*replies)
    return await made.run(parse(source, made.registry).plan, output=output)


@pytest.mark.parametrize(
    ("source", "output", "value"),
    [
        ("answer(len(bills()))\n", int, 2),
        ("answer(bills())\n", list[Bill], [Bill("7", 120), Bill("8", 3)]),
        ("answer(bills()[1])\n", Bill, Bill("8", 3)),
        ('answer(date("2026-03-01"))\n', date, date(2026, 3, 1)),
        ('answer({"item": "rope", "count": 2})\n', Order, Order(item="rope", count=2)),
        ("answer([each.number for each in bills()])\n", list[str], ["7", "8"]),
    ],
)
async def test_an_answer_that_fits_is_given_as_an_object_of_the_type(source: str, output: Any, value: Any) -> None:
    outcome = await run(source, output)
    assert isinstance(outcome, TypedFinished)
    assert outcome.value == value
    assert type(outcome.value) is type(value)


async def test_a_text_is_read_into_the_type_and_keeps_its_label() -> None:
    outcome = await run("answer(read_letter())\n", Bill, '{"number": "7", "amount": 120}')
    assert isinstance(outcome, TypedFinished)
    assert outcome.value == Bill("7", 120)
    assert "read_letter" in [source.tool for source in outcome.labelled.label.third_parties]


async def test_the_reading_is_a_step_of_the_plan_and_recorded(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "journal.db")) as journal:
        made = agent('{"number": "7", "amount": 120}', journal=journal)
        seen: list[StepProgress] = []
        plan = parse("answer(read_letter())\n", made.registry).plan
        outcome = await made.run(plan, output=Bill, observer=seen.append)
        whats = [event.body.get("what") for event in journal.events(outcome.run) if event.kind == "step-started"]
    assert whats == ["read_letter", "extract"]
    assert [each.what for each in seen if each.kind == "finished"] == ["read_letter", "extract"]


async def test_a_branch_that_answers_with_words_is_a_failure_when_it_is_taken() -> None:
    outcome = await run('if len(bills()) > 1:\n    answer("none")\nelse:\n    answer(bills()[0])\n', Bill)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.wrong-output"


async def test_branches_answer_with_the_type_too() -> None:
    source = 'if len(bills()) > 5:\n    answer("none")\nelse:\n    answer(read_letter())\n'
    outcome = await run(source, Bill, '{"number": "7", "amount": 120}')
    assert isinstance(outcome, TypedFinished)
    assert outcome.value == Bill("7", 120)


@pytest.mark.parametrize(
    "reply", ['{"number": "7", "amount": "120"}', '{"number": "7"}', '{"not_found": true}', "soon"]
)
async def test_what_cannot_be_read_is_a_failure_with_a_reason(reply: str) -> None:
    outcome = await run("answer(read_letter())\n", Bill, reply, reply, reply)
    assert isinstance(outcome, Failed)
    assert outcome.error.code in ("run.extraction-rejected", "run.nothing-found")


async def test_an_answer_that_breaks_the_rules_of_the_type_is_a_failure_that_tells_what_was_done() -> None:
    outcome = await run('post("kim")\nanswer(anything())\n', Order)
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, [each.tool for each in outcome.effects], SENT) == (
        "run.wrong-output",
        ["post"],
        ["kim"],
    )
    assert "count" in str(outcome.error)


async def test_nothing_is_converted() -> None:
    outcome = await run('answer(anything()["count"])\n', str)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.wrong-output"


async def test_a_plan_whose_answer_cannot_be_of_the_type_is_refused_before_anything_happens() -> None:
    with pytest.raises(BicameralError) as raised:
        await run('post("kim")\nanswer(7)\n', Order)
    assert (raised.value.code, SENT) == ("plan.wrong-output", [])


async def test_a_type_that_no_plan_knows_is_refused() -> None:
    with pytest.raises(BicameralError) as raised:
        await run("answer(7)\n", set[int])
    assert (raised.value.code, raised.value.nearest) == ("plan.unknown-output", "list[int]")


async def test_a_check_of_another_plan_is_not_used_for_the_one_with_a_type() -> None:
    made = agent(json.dumps({"number": "7", "amount": 120}))
    checked = made.check(parse("answer(read_letter())\n", made.registry).plan)
    outcome = await made.run(checked, output=Bill)
    assert isinstance(outcome, TypedFinished)
    assert not any(isinstance(step, Extract) for _, step in walk(checked.plan.steps))


def test_the_blocking_agent_has_the_same_arguments() -> None:
    made = agent()
    with made.sync as blocking:
        outcome = blocking.run(parse("answer(len(bills()))\n", made.registry).plan, output=int)
        assert isinstance(outcome, TypedFinished)
        assert assert_type(outcome.value, int) == 2
        wrong: Any = {"outptu": int}
        with pytest.raises(TypeError, match="outptu"):
            blocking.run("x", **wrong)
