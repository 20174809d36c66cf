"""The agent and the cascade: a larger model plans again if a run failed, and never after something was changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, BicameralError, Failed, Finished, ScriptedProvider
from bicameral.config import Config, open_models
from bicameral.runs import Answers, ApprovalQuestion, StepProgress
from bicameral.tools import Origin, Tool, tool

REQUEST = "Post the word hello to kim@example.com"
GREET = 'post("kim@example.com", "hello")\nanswer("posted hello")\n'
FAILS = 'lines = read_note()\nword = lines[7]\npost("kim@example.com", "hello")\nanswer(word)\n'
FAILS_LATE = 'lines = read_note()\npost("kim@example.com", "hello")\nanswer(lines[7])\n'
FAILS_POSTING = 'post("kim@example.com", "hello")\nlines = read_note()\nanswer(lines)\n'
SHOW, SHOW_FAILS = "lines = read_note()\nanswer(lines)\n", "lines = read_note()\nanswer(lines[7])\n"


class Office:
    """A stranger's note of one line, and a post."""

    def __init__(self, *, broken: bool = False) -> None:
        self.posted: list[str] = []
        self._broken = broken

    @property
    def tools(self) -> list[Tool]:
        @tool(effect="read", origins=Origin("third_party"), words=("note",))
        def read_note() -> list[str]:
            """The lines of a note that a stranger left."""
            return ["one line"]

        @tool(effect="send", purpose={"to": "directs", "text": "carries"}, origins=Origin("system"), words=("post",))
        def post(to: str, text: str) -> None:
            """Post a text to somebody."""
            self.posted.append(f"{to}: {text}")
            if self._broken:
                raise BicameralError("files.missing", "the letter box is gone")

        return [read_note, post]

    def agent(self, small: str, large: str, **options: Any) -> Agent:
        self.small = ScriptedProvider([f"{small}```"] * 3, name="small", grammars=False)
        self.large = ScriptedProvider([f"{large}```"] * 3, name="large", grammars=False)
        return Agent(
            self.tools,
            privileged=self.large,
            quarantined=ScriptedProvider([], name="reader", grammars=False),
            cascade={"fast": self.small, "main": self.large},
            config=Config.defaults(),
            cache={},
            **options,
        )


class Willing:
    def __init__(self) -> None:
        self.asked: list[ApprovalQuestion] = []

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.asked.append(question)
        return Answers.yes(question.calls)


async def test_a_plan_says_which_model_wrote_it() -> None:
    office = Office()
    planned = await office.agent(GREET, "").plan(REQUEST, deterministic=True)
    assert planned.route is not None
    assert planned.route.alias == "fast"
    assert office.large.requests == []


async def test_a_run_that_fails_before_it_changed_anything_is_planned_again_by_the_larger_model() -> None:
    office = Office()
    outcome = await office.agent(SHOW_FAILS, SHOW).run("Show the lines of the note", deterministic=True)
    assert isinstance(outcome, Finished)
    assert outcome.answer == ["one line"]
    assert (len(office.small.requests), len(office.large.requests)) == (1, 1)


async def test_the_larger_model_reads_nothing_of_the_run() -> None:
    office = Office()
    await office.agent(SHOW_FAILS, SHOW).run("Show the lines of the note", deterministic=True)
    said = "\n".join(message.text for message in office.large.requests[0].messages)
    assert "one line" not in said
    assert "run.index" not in said


async def test_what_the_second_plan_does_carries_that_the_first_one_failed() -> None:
    # Alone the large model's plan posts without asking; after a failure that a stranger's note decided, it asks.
    alone, person = Office(), Willing()
    await alone.agent(GREET, "").run(REQUEST, deterministic=True, approver=person)
    assert (alone.posted, person.asked) == (["kim@example.com: hello"], [])
    office = Office()
    outcome = await office.agent(FAILS, GREET).run(REQUEST, deterministic=True)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.needs-approval"
    assert office.posted == []
    asked = await office.agent(FAILS, GREET).run(REQUEST, deterministic=True, approver=person)
    assert isinstance(asked, Finished)
    assert len(person.asked) == 1


async def test_after_an_effect_there_is_no_second_plan() -> None:
    office = Office()
    outcome = await office.agent(FAILS_LATE, GREET).run(REQUEST, deterministic=True)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.index"
    assert office.posted == ["kim@example.com: hello"]
    assert office.large.requests == []


async def test_after_an_effect_that_failed_there_is_no_second_plan_since_it_may_have_happened() -> None:
    office = Office(broken=True)
    outcome = await office.agent(FAILS_POSTING, GREET).run(REQUEST, deterministic=True)
    assert isinstance(outcome, Failed)
    assert outcome.effects == ()
    assert office.posted == ["kim@example.com: hello"]
    assert office.large.requests == []


async def test_a_second_plan_that_cannot_be_had_leaves_the_first_failure() -> None:
    office = Office()
    agent = office.agent(SHOW_FAILS, "x = nothing()\n")
    outcome = await agent.run("Show the lines of the note", deterministic=True)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.index"


async def test_whoever_watches_sees_both_runs() -> None:
    seen: list[StepProgress] = []
    office = Office()
    await office.agent(SHOW_FAILS, SHOW).run("Show the lines of the note", deterministic=True, observer=seen.append)
    assert [progress.kind for progress in seen] == ["started", "finished"] * 2


async def test_a_plan_of_ones_own_is_never_replaced() -> None:
    office = Office()
    agent = office.agent("", GREET)
    planned = await office.agent(SHOW_FAILS, SHOW).plan("Show the lines of the note", deterministic=True)
    assert isinstance(await agent.run(planned.plan), Failed)
    assert office.large.requests == []


async def test_echo_asks_the_first_model_and_a_larger_one_only_if_that_breaks_off() -> None:
    whole = '{"task": "t", "steps": [{"action": "read"}], "constraints": [], "output": "answer"}'
    for first, asked in ((whole, 0), ('{"task": "t', 1)):
        office = Office()
        agent = office.agent("", "")
        office.small._script, office.large._script = (first,), (whole,)  # pyright: ignore[reportPrivateUsage]
        intent = await agent.intent("somehow show the lines of the note to the people")
        assert intent.by == "echo"
        assert len(office.large.requests) == asked


def test_a_quarantined_model_cannot_be_a_stage() -> None:
    reader = ScriptedProvider([], name="reader", grammars=False)
    large = ScriptedProvider([], name="large", grammars=False)
    for small in (reader, ScriptedProvider([], name="small", chamber="quarantined")):
        with pytest.raises(BicameralError) as caught:
            Agent([], privileged=large, quarantined=reader, cascade={"fast": small, "main": large}, cache={})
        assert caught.value.code in ("models.shared-chamber", "models.wrong-chamber")


def test_the_configuration_turns_it_on() -> None:
    assert open_models(Config.defaults()).cascade == {}
    settings = Config.defaults().models.model_copy(update={"cascade": True})
    models = open_models(Config.defaults().model_copy(update={"models": settings}))
    assert list(models.cascade) == ["fast", "main"]
    assert models.cascade["main"] is models.privileged
    assert models.cascade["fast"].name == models.quarantined.name
    assert models.cascade["fast"].chamber == "privileged"


def test_an_alias_that_is_a_cascade_plans_in_stages(tmp_path: Path) -> None:
    (tmp_path / "bicameral.toml").write_text(
        '[llm]\nmodel_roles = { delta = "planner" }\n[llm.models]\nfast = "local/0.5b"\nmain = "local/1.5b"\n'
        'planner = { cascade = ["fast", "main"] }\n'
    )
    models = open_models(Config.load(base=tmp_path))
    assert list(models.cascade) == ["fast", "main"]
    assert "0.5b" in models.cascade["fast"].name
    assert "1.5b" in models.cascade["main"].name
    assert {stage.chamber for stage in models.cascade.values()} == {"privileged"}


def test_rules_choose_for_every_call_and_no_plan_is_taken_out_of_their_hands(tmp_path: Path) -> None:
    (tmp_path / "bicameral.toml").write_text(
        '[llm]\ndefault_model = "planner"\n[llm.models]\nfast = "local/0.5b"\nmain = "local/1.5b"\n'
        'planner = { cascade = ["fast", "main"] }\n'
        '[llm.routing]\nenabled = true\nrules = [{ condition = "has_schema", model = "fast" }]\n'
    )
    assert open_models(Config.load(base=tmp_path)).cascade == {}
