"""Submitted patterns: done by whichever worker is there, once, however often a worker dies on the way."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from durable_world import named, prompts, worker

from bicameral.durable import Approval, Runs, RunView, Submission
from bicameral.errors import BicameralError
from bicameral.labels import Labelled, untrusted_value
from bicameral.patterns import ReWOO
from bicameral.patterns.kernel import Context, Pattern, PatternWork, from_user
from bicameral.patterns.signal.output_template import OutputTemplate
from bicameral.types import STR, Field, RecordType
from conftest import House

PATIENCE = 60.0
QUESTION = "Put one into the three places."
EVIDENCE = "Evidence:"


def call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"tool": tool, "arguments": [{"name": name, "value": value} for name, value in arguments.items()]}


THREE = [
    call("put", place="x", number="1"),
    call("put", place="y", number="#E1"),
    call("put", place="z", number="#E2"),
]
MAIL = [call("letter", number="3"), call("post", to="#E1", text="hello")]


def script(house: House, calls: list[dict[str, Any]], answer: str = "done") -> None:
    """The replies of the planner of ReWOO, and of its solver."""
    rules = [[EVIDENCE, answer], ["Question: ", json.dumps({"calls": calls})]]
    (house.folder / "plans.json").write_text(json.dumps(rules))


async def _until(what: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it never came to that"
        await asyncio.sleep(0.02)


async def _ended(runs: Runs, run: str) -> RunView:
    view = await runs.wait(run, timeout=PATIENCE)
    assert view.has_ended, view
    return view


async def _question(runs: Runs, run: str) -> Approval:
    end = time.monotonic() + PATIENCE
    while not (view := await runs.get(run)).waits_for:
        assert not view.has_ended, view
        assert time.monotonic() < end, view
        await asyncio.sleep(0.05)
    return await runs.approval(view.waits_for[0])


def _finished_steps(runs: Runs, run: str) -> Counter[str]:
    return Counter(event.step for event in runs.run_journal.events_after(run, -1) if event.kind == "step-finished")


async def test_a_pattern_goes_on_after_its_worker_was_killed_and_does_nothing_twice(runs: Runs, house: House) -> None:
    script(house, THREE)
    (house.folder / "slow").write_text("0.4")
    view = await runs.submit(Submission(request=QUESTION, strategy=ReWOO()))
    assert view.request == QUESTION
    with worker(house.address, house.folder) as first:
        await _until(lambda: named(house.folder, "put"))
        first.kill()
        first.join()
    before = len(named(house.folder, "put"))
    assert before < 3
    with worker(house.address, house.folder):
        ended = await _ended(runs, view.run)
    assert (ended.state, ended.answer, ended.attempts) == ("finished", "done", 2)
    assert set(_finished_steps(runs, view.run).values()) == {1}
    done = Counter((line["place"], line["key"]) for line in named(house.folder, "put"))
    # At most the one that was under way was made again, with its key.
    assert {place for place, _ in done} == {"x", "y", "z"}
    assert len(done) == 3
    assert sum(done.values()) <= 4
    # The recorded plan was used again.
    assert len([each for each in prompts(house.folder) if EVIDENCE not in each]) == 1
    assert runs.run_journal.verify() == []


@pytest.mark.parametrize("house", ["sqlite"], indirect=True)
async def test_a_worker_that_dies_while_a_model_writes_loses_only_that_reply(runs: Runs, house: House) -> None:
    script(house, THREE)
    (house.folder / "die-of").write_text(EVIDENCE)
    view = await runs.submit(Submission(request=QUESTION, strategy=ReWOO()))
    with worker(house.address, house.folder) as first:
        await asyncio.to_thread(first.join, PATIENCE)
        assert first.exitcode is not None
        assert first.exitcode < 0
    with worker(house.address, house.folder):
        ended = await _ended(runs, view.run)
    assert (ended.state, ended.answer) == ("finished", "done")
    assert [line["place"] for line in named(house.folder, "put")] == ["x", "y", "z"]
    assert len([each for each in prompts(house.folder) if EVIDENCE not in each]) == 1


async def test_a_pattern_waits_for_a_person_without_a_process(runs: Runs, house: House) -> None:
    script(house, MAIL)
    view = await runs.submit(Submission(request="Answer the third letter.", strategy=ReWOO(), user="ann"))
    with worker(house.address, house.folder):
        asked = await _question(runs, view.run)
    assert asked.calls[0]["tool"] == "post"
    assert asked.calls[0]["arguments"]["to"] == "stranger3@example.org"
    assert named(house.folder, "post") == []
    with pytest.raises(BicameralError, match=r"durable\.unknown"):
        await runs.answer(asked.id, "all", user="eve")
    await runs.answer(asked.id, "all", user="ann")
    with worker(house.address, house.folder):
        ended = await _ended(runs, view.run)
    # With a letter among the evidence the quarantined model answers.
    assert (ended.state, ended.answer) == ("finished", '{"value": "no"}')
    assert [line["to"] for line in named(house.folder, "post")] == ["stranger3@example.org"]
    assert [effect["tool"] for effect in ended.effects] == ["post"]
    assert len(named(house.folder, "letter")) == 1


@pytest.mark.parametrize("house", ["sqlite"], indirect=True)
async def test_a_call_of_a_pattern_that_a_person_denies_is_not_made(runs: Runs, house: House) -> None:
    script(house, MAIL)
    view = await runs.submit(Submission(request="Answer the third letter.", strategy=ReWOO()))
    with worker(house.address, house.folder):
        await runs.answer((await _question(runs, view.run)).id, "none")
        ended = await _ended(runs, view.run)
    assert ended.ending == "denied", ended
    assert named(house.folder, "post") == []


@pytest.mark.parametrize("house", ["sqlite"], indirect=True)
async def test_a_pattern_is_cancelled_while_it_works_and_while_it_waits(runs: Runs, house: House) -> None:
    script(house, MAIL)
    (house.folder / "hold").write_text("Question: Think")
    working = await runs.submit(Submission(request="Think about the third letter.", strategy=ReWOO()))
    waiting = await runs.submit(Submission(request="Answer the third letter.", strategy=ReWOO()))
    with worker(house.address, house.folder):
        await _until(lambda: (house.folder / "held").exists())
        await runs.cancel(working.run)
        assert (await _ended(runs, working.run)).state == "stopped"
        asked = await _question(runs, waiting.run)
        await runs.cancel(waiting.run)
        assert (await _ended(runs, waiting.run)).state == "stopped"
        with pytest.raises(BicameralError):
            await runs.answer(asked.id, "all")
    assert named(house.folder, "post") == []
    assert runs.run_journal.events_after(working.run, -1)[-1].kind == "run-stopped"


@pytest.mark.parametrize("house", ["sqlite"], indirect=True)
async def test_arguments_keep_their_labels_on_the_way_to_the_worker(runs: Runs, house: House) -> None:
    (house.folder / "plans.json").write_text("[]")
    form = OutputTemplate(RecordType((Field("value", STR),)))
    trusted = await runs.submit(Submission(work=PatternWork(form, (from_user("say no"),))))
    foreign = await runs.submit(Submission(work=PatternWork(form, (untrusted_value("say no", "a letter"),))))
    assert (trusted.request, foreign.request) == ("say no", "pattern S6")
    with worker(house.address, house.folder):
        # The quarantined model has a reply. The privileged one has none, and must not be asked about the second.
        assert (await _ended(runs, trusted.run)).state == "failed"
        ended = await _ended(runs, foreign.run)
    assert (ended.state, ended.answer) == ("finished", {"value": "no"})
    assert len(prompts(house.folder)) > 0
    chambers = [
        event.body["chamber"]
        for event in runs.run_journal.events_after(foreign.run, -1)
        if event.kind == "model-called"
    ]
    assert chambers == ["quarantined"]


@dataclass(frozen=True)
class OwnPattern(Pattern[[Labelled[str]], str]):
    """A pattern of this program, which a worker does not have."""

    id: ClassVar[str] = "R5"

    async def execute(self, context: Context, /, text: Labelled[str]) -> Labelled[str]:
        return text


@pytest.mark.parametrize("house", ["sqlite"], indirect=True)
async def test_what_a_worker_could_not_run_is_refused_before_it_is_stored(runs: Runs, house: House) -> None:
    with pytest.raises(BicameralError) as refused:
        await runs.submit(Submission(request=QUESTION, strategy=OwnPattern()))
    assert refused.value.code == "pattern.not-portable"
    for submission in (
        Submission(strategy=ReWOO()),
        Submission(request=QUESTION, strategy=ReWOO(), deterministic=True),
        Submission(request=QUESTION, work=PatternWork(ReWOO(), (from_user("a"),))),
    ):
        with pytest.raises(BicameralError) as refused:
            await runs.submit(submission)
        assert refused.value.code == "durable.bad-submission"
    assert await runs.list() == []
