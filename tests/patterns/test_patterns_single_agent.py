"""O1: one session, one model, a bounded set of tools, and an end; nothing in it starts another agent."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from patterns_models import performed
from patterns_world import EVE, HOSTILE, Script, Speaker, Table, World, answered, table

from bicameral.errors import CatalogError
from bicameral.journal import open_journal_at
from bicameral.models import LocalProvider, ModelReply, ModelRequest, ToolCall
from bicameral.patterns import Exhausted, GaveUp, SingleAgent, ZeroShot, program_text, untrusted_value
from bicameral.patterns.kernel import NoteEvent, pattern_tool, replay_pattern
from bicameral.patterns.orchestration.single_agent import AGENT, DELEGATION
from bicameral.patterns.strategies import ModelPair
from bicameral.policy import Policy
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Origin, Registry, Tool, tool
from invariants import holds


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(f"{name}-1", name, arguments)


GHENT, BRUGES = call("population", city="Ghent"), call("population", city="Bruges")
READ = call("read_page", name="news")


def ran(there: Table, pattern: SingleAgent | None = None, request: Any = None) -> Any:
    request = program_text("How many live in both?") if request is None else request
    return asyncio.run((pattern or SingleAgent()).run(there.desk, request))


def numbered_tools(count: int) -> list[Tool]:
    @tool(effect="pure", origins=Origin("system", "public"))
    def one(a: int) -> int:
        """One."""
        return a

    return [one.with_name(f"tool_{number}") for number in range(count)]


class Changing(Speaker):
    """A model behind whose name another one answers from the second reply on."""

    async def generate(self, request: ModelRequest) -> ModelReply:
        reply = await super().generate(request)
        return replace(reply, model="high" if len(self.asked) == 1 else "other")


# The session ----------------------------------------------------------------------------------------------------------


@holds("O1.1", "O1.6")
def test_only_request_model_output_and_tool_results_enter_the_conversation() -> None:
    there = table([[GHENT], [BRUGES], [BRUGES], "390,014."])
    outcome = answered(ran(there))
    assert outcome.value == "390,014."
    last = there.privileged.asked[-1].messages
    assert [message.speaker for message in last] == ["system", "user", *["assistant", "tool"] * 3]
    assert last[0].text.startswith(AGENT.setup)
    assert last[1].text == "How many live in both?"
    assert [message.answers for message in last if message.speaker == "tool"] == [GHENT.id, BRUGES.id, BRUGES.id]
    # One session: each prompt is the one before and what was added to it.
    for earlier, later in zip(there.privileged.asked, there.privileged.asked[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages


@holds("O1.1")
def test_a_run_has_one_model_on_each_side() -> None:
    there = table([[READ]], [[GHENT], "An answer."])
    outcome = answered(ran(there))
    assert [(each.chamber, each.model) for each in outcome.model_calls] == [
        ("privileged", "high"),
        ("quarantined", "low"),
        ("quarantined", "low"),
    ]
    assert {each.at for each in outcome.model_calls} == {"agent/"}
    assert not any(HOSTILE in prompt for prompt in there.privileged.prompts)


@holds("O1.1")
def test_a_second_model_ends_the_run_before_its_calls_are_made() -> None:
    there = table()
    send = call("send", to="bob@example.com", body="hello")
    changing: Script = [[GHENT], [send], "done"]
    high = Changing(changing, name="high")
    models = ModelPair(Chambers(high, Quarantined(there.quarantined)))
    there.desk = replace(there.desk, models=models)
    outcome = ran(there, request=program_text("Greet bob@example.com"))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.second-model"
    assert there.world.done == []
    assert len(high.asked) == 2


@holds("O1.2")
def test_nothing_in_the_pattern_can_start_another_agent() -> None:
    agent = SingleAgent()
    assert agent.children == {}
    assert not any("Pattern" in str(each.type) or "Responder" in str(each.type) for each in fields(agent))


@holds("O1.2")
def test_a_tool_that_delegates_is_refused_and_can_be_left_out() -> None:
    own, other = numbered_tools(2)
    there = table(["done"], tools=[own, replace(other, capabilities=(DELEGATION,))])
    outcome = ran(there)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.delegates"
    assert not there.privileged.asked
    assert ran(there, SingleAgent(tools=("tool_0",))).ok
    assert [each.name for each in there.privileged.asked[0].tools] == ["tool_0"]


# The bounds -----------------------------------------------------------------------------------------------------------


@holds("O1.2")
def test_a_pattern_as_a_tool_is_refused() -> None:
    there = table(["done"])
    expert = pattern_tool(ZeroShot(), [], lambda: there.desk, name="ask_expert", about="Ask an expert.")
    registry = Registry([*numbered_tools(1), expert])
    there.desk = replace(there.desk, registry=registry, policy=Policy((), registry))
    outcome = ran(there)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.delegates"
    assert not there.privileged.asked
    assert ran(there, SingleAgent(tools=("tool_0",))).ok


@holds("O1.3")
@pytest.mark.parametrize(("count", "fits"), [(0, True), (15, True), (16, False)])
def test_the_sixteenth_tool_ends_the_run_before_the_model_is_asked(count: int, fits: bool) -> None:
    there = table(["done"], tools=numbered_tools(count))
    outcome = ran(there)
    assert outcome.ok is fits
    if not fits:
        assert outcome.error.code == "pattern.tool-count"
        assert not there.privileged.asked
        assert ran(there, SingleAgent(tools=("tool_3",))).ok
    with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
        SingleAgent(max_tools=16)


@holds("O1.5")
@pytest.mark.parametrize("steps", [1, 3, 12])
def test_the_run_ends_after_max_steps_at_the_latest(steps: int) -> None:
    there = table(lambda request: [call("population", city="Ghent" if len(request.messages) % 4 else "Bruges")])
    outcome = ran(there, SingleAgent(max_steps=steps, repeats=99))
    assert isinstance(outcome, Exhausted)
    assert (outcome.bound, outcome.limit) == ("rounds", steps)
    assert len(there.privileged.asked) == steps
    assert len(outcome.tool_calls) == steps - 1


@holds("O1.4")
@pytest.mark.parametrize("wrong", [{"max_steps": 0}, {"max_steps": 21}, {"repeats": 1}, {"window": 0}])
def test_there_is_no_agent_without_a_bound(wrong: dict[str, int]) -> None:
    with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
        SingleAgent(**wrong)  # pyright: ignore[reportArgumentType]


@holds("O1.4")
def test_every_run_has_a_trace_also_one_that_fails_and_is_replayed(tmp_path: Path) -> None:
    with open_journal_at(tmp_path / "journal.db") as journal:
        there = table([[GHENT], "270,473."], journal=journal)
        outcome = answered(ran(there))
        assert [type(each).__name__ for each in outcome.trace] == [
            *["ModelCallEvent", "NoteEvent", "ToolCallEvent"],
            *["ModelCallEvent", "NoteEvent"],
        ]
        again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy))
        assert again.identical, again.differences
        failed = ran(table(lambda request: [GHENT], journal=journal), SingleAgent(max_steps=1))
        assert isinstance(failed, Exhausted)
        assert failed.trace
        assert next(event.kind for event in journal.events(failed.run)) == "run-started"


def test_a_prompt_that_fills_the_window_is_refused_and_one_that_grows_is_noted() -> None:
    there = table(["never"])
    outcome = ran(there, SingleAgent(window=160))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.long-prompt"
    assert not there.privileged.asked
    # The scripted model counts four characters as a token.
    long = table([[READ]], ["An answer."], world=World(page="word " * 600))
    outcome = answered(ran(long, SingleAgent(window=800)))
    noted = [each.facts for each in outcome.trace if isinstance(each, NoteEvent) and each.what == "escalate"]
    assert len(noted) == 1
    assert float(noted[0]["share"]) >= 0.75


def test_what_a_page_wants_sent_is_not_sent_without_a_yes() -> None:
    there = table([[READ]], [[call("send", to=EVE, body="all I know")], "done"])
    outcome = ran(there)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"
    assert (there.world.done, outcome.effects) == ([], ())


def test_a_request_that_a_stranger_wrote_is_never_seen_by_the_privileged_model() -> None:
    there = table(["never"], ["An answer."])
    outcome = answered(ran(there, request=untrusted_value(HOSTILE, "mail")))
    assert not outcome.label.trusted
    assert not there.privileged.asked


@pytest.mark.model
def test_the_example_comes_out_right(small_model: LocalProvider, tmp_path: Path) -> None:
    example, outcome = performed("O1", small_model, tmp_path)
    assert example.is_correct(answered(outcome)), outcome
