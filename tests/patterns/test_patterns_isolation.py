"""O17: a child reads its brief and nothing of its parent, and gives a value that fits the contract, or nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import pytest
from patterns_models import performed
from patterns_world import EVE, HOSTILE, Script, Table, answered, run_work, table

from bicameral.errors import BicameralError, CatalogError
from bicameral.journal import open_journal_at
from bicameral.models import LocalProvider, ModelRequest, ToolCall
from bicameral.patterns import AgentIsolation, GaveUp, OutputTemplate, ReAct, Role, program_text, untrusted_value
from bicameral.patterns.kernel import Context, Labelled, Pattern, replay_pattern
from bicameral.patterns.orchestration.isolation import CHILD, WRITER
from invariants import holds


class Home(TypedDict):
    city: str


GHENT = '{"city": "Ghent"}'
CANARY = "canary-4471"
HOME = AgentIsolation.of(Home)
BARE = AgentIsolation.of(Home, writer=None)


def speak(request: ModelRequest) -> str:
    """What each participant says, by its setup."""
    setup = request.messages[0].text
    return "In which city does Ada live?" if setup.startswith(WRITER.setup) else GHENT


def ran(there: Table, pattern: AgentIsolation = HOME, task: Any = None) -> Any:
    return asyncio.run(pattern.run(there.desk, program_text("Find Ada's city.") if task is None else task))


# What the child reads -------------------------------------------------------------------------------------------------


@holds("O17.1")
def test_the_childs_prompt_is_its_setup_and_the_brief() -> None:
    there = table(speak)
    outcome = answered(ran(there))
    assert outcome.value == {"city": "Ghent"}
    assert [each.participant for each in outcome.model_calls] == ["Brief writer", "Child"]
    messages = there.privileged.asked[1].messages
    assert [message.speaker for message in messages] == ["system", "user"]
    assert messages[0].text == f"{CHILD.setup}\n\nFields:\n- city (str)"
    assert messages[1].text == "In which city does Ada live?"


@holds("O17.1")
def test_nothing_that_the_parent_read_or_said_reaches_the_child() -> None:
    """The parent holds a secret in its conversation, in a file of its own and in what it has opened."""
    there = table(speak)

    async def parent(context: Context) -> Labelled[Any]:
        talk = context.conversation(Role("Parent", f"You know {CANARY}."))
        talk.tell(program_text("The secret is canary-4471."))
        await talk.ask(tools=False)
        context.read(program_text("canary-4471"))
        return await context.run_pattern("side task", HOME, program_text("Find Ada's city."))

    outcome = answered(asyncio.run(run_work(there.desk, parent)))
    assert outcome.value == {"city": "Ghent"}
    parents, *children = there.privileged.prompts
    assert CANARY in parents
    assert len(children) == 2
    assert not any(CANARY in prompt for prompt in children)


@holds("O17.4", "O17.7")
def test_what_the_child_did_reaches_the_parent_as_a_value_alone() -> None:
    there = table(lambda request: f"I went through {CANARY}" if "thinks" in request.messages[0].text else GHENT)
    thinker = Role("Thinker", "One who thinks.")

    @dataclass(frozen=True)
    class Think(Pattern[[Labelled[str]], Any]):
        id: ClassVar[str] = "R4"

        async def execute(self, context: Context, /, text: Labelled[str]) -> Labelled[Any]:
            await context.ask(thinker, text)
            return await OutputTemplate.of(Home).execute(context, text)

    async def parent(context: Context) -> Labelled[Any]:
        home = await context.run_pattern(
            "side task", AgentIsolation.of(Home, child=Think(), writer=None), program_text("Find it.")
        )
        return await context.ask(Role("Parent", "Say it."), "It is: ", home)

    outcome = answered(asyncio.run(run_work(there.desk, parent)))
    assert "Ghent" in there.privileged.prompts[-1]
    assert not any(CANARY in prompt for prompt in there.privileged.prompts)
    # Its trace is kept, below the part of the parent.
    assert [each.at for each in outcome.model_calls] == ["side task/child/", "side task/child/", ""]


@holds("O17.3")
@pytest.mark.parametrize(("words", "fits"), [(40, True), (60, False)])
def test_a_brief_that_is_too_long_is_refused_and_not_cut(words: int, fits: bool) -> None:
    there = table(lambda request: "word " * words if request.messages[0].text == WRITER.setup else GHENT)
    outcome = ran(there, AgentIsolation.of(Home, brief_tokens=50))
    assert outcome.ok is fits
    assert len(there.privileged.asked) == (2 if fits else 1)
    if not fits:
        assert outcome.error.code == "pattern.long-brief"
        assert "word word" not in str(outcome.error)


def test_without_a_writer_the_task_is_the_brief() -> None:
    there = table(speak)
    assert answered(ran(there, BARE)).taken.calls == 1
    assert there.privileged.asked[0].messages[1].text == "Find Ada's city."


# Its tools ------------------------------------------------------------------------------------------------------------


@holds("O17.2")
def test_the_child_has_the_tools_that_are_declared_and_no_others() -> None:
    wish = ToolCall("1", "send", {"to": "bob@example.com", "body": "hi"})
    script: list[Any] = [[ToolCall("1", "population", {"city": "Ghent"})], [wish], "Ghent.", GHENT]
    there = table(script)
    child = ReAct() | OutputTemplate.of(Home)
    outcome = answered(ran(there, AgentIsolation.of(Home, child=child, tools=("population",), writer=None)))
    assert outcome.value == {"city": "Ghent"}
    assert next([each.name for each in request.tools] for request in there.privileged.asked) == ["population"]
    assert there.world.done == []
    assert outcome.effects == ()


@holds("O17.2")
def test_a_child_has_no_tools_by_default_and_a_role_never_has() -> None:
    there = table(["Ghent.", GHENT])
    ran(there, AgentIsolation.of(Home, child=ReAct() | OutputTemplate.of(Home), writer=None))
    assert not there.privileged.asked[0].tools
    with pytest.raises(CatalogError, match=r"pattern\.bad-worker"):
        AgentIsolation.of(Home, tools=("send",))


# The contract ---------------------------------------------------------------------------------------------------------


@holds("O17.4")
@pytest.mark.parametrize("reply", ["Ghent", '{"city": 4}', '{"city": "Ghent", "more": "canary-4471"}', "{}", HOSTILE])
def test_what_does_not_fit_the_contract_is_nothing(reply: str) -> None:
    there = table([reply] * 3)
    outcome = ran(there, BARE)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.broken-contract"
    assert CANARY not in str(outcome.error)
    assert len(there.privileged.asked) == 1


@dataclass(frozen=True)
class Give(Pattern[[Labelled[str]], Any]):
    """A child that gives this value, and keeps its context."""

    id: ClassVar[str] = "S1"
    value: Any = None
    kept: list[Context] = field(default_factory=list[Context], compare=False)

    async def execute(self, context: Context, /, text: Labelled[str]) -> Labelled[Any]:
        self.kept.append(context)
        return context.derive(self.value)


@holds("O17.4")
@pytest.mark.parametrize("value", ["the whole transcript", {"city": "Ghent", "trace": CANARY}, {"city": None}, None])
def test_a_pattern_that_gives_more_than_the_contract_gives_nothing(value: Any) -> None:
    outcome = ran(table(), AgentIsolation.of(Home, child=Give(value), writer=None))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.broken-contract"
    assert CANARY not in str(outcome.error)


@holds("O17.6")
def test_the_childs_session_is_closed_when_it_has_returned() -> None:
    child = Give({"city": "Ghent"})
    there = table(speak)

    async def parent(context: Context) -> Labelled[Any]:
        isolated = AgentIsolation.of(Home, child=child, tools=("population",), writer=None)
        given = await context.run_pattern("side task", isolated, program_text("Find it."))
        for late in (child.kept[0].ask(CHILD, "more"), child.kept[0].call("population", {"city": "Ghent"})):
            with pytest.raises(BicameralError, match=r"pattern\.part-ended"):
                await late
        return given

    outcome = answered(asyncio.run(run_work(there.desk, parent)))
    assert not outcome.model_calls
    assert [each.error for each in outcome.tool_calls] == ["pattern.part-ended"]
    assert not there.privileged.asked


# The guard ------------------------------------------------------------------------------------------------------------


@holds("O17.5")
@pytest.mark.parametrize("side_by_side", [False, True])
def test_the_seventh_child_of_a_run_is_not_started(side_by_side: bool) -> None:
    there = table(speak)
    task = program_text("Find it.")

    async def child(part: Context) -> Labelled[Any]:
        return await BARE.execute(part, task)

    async def parent(context: Context) -> Labelled[Any]:
        found: list[Labelled[Any] | BicameralError] = []
        if side_by_side:
            found = await context.run_parallel([(f"part {n}", child) for n in range(7)], width=7)
        else:
            for n in range(7):
                try:
                    found.append(await context.run_pattern(f"part {n}", BARE, task))
                except BicameralError as error:
                    found.append(error)
        return context.derive([each.code if isinstance(each, BicameralError) else "" for each in found])

    outcome = answered(asyncio.run(run_work(there.desk, parent)))
    assert outcome.value == [*[""] * 6, "pattern.too-many-children"]
    assert len(there.privileged.asked) == 6


def test_children_of_another_run_do_not_count() -> None:
    there = table(speak)
    assert all(ran(there, BARE).ok for _ in range(8))


@holds("O17.5")
@pytest.mark.parametrize("depth", [1, 2])
def test_a_child_inside_a_child_is_as_deep_as_the_outermost_allows(depth: int) -> None:
    inner = AgentIsolation.of(Home, writer=None, max_depth=5, max_children=50)
    there = table(speak)
    outcome = ran(there, AgentIsolation.of(Home, child=inner, writer=None, max_depth=depth))
    assert outcome.ok is (depth == 2)
    if depth == 1:
        assert outcome.error.code == "pattern.too-deep"
        assert not there.privileged.asked


def test_a_child_pays_from_the_share_on_that_the_knob_says() -> None:
    assert [HOME.pays_off(tokens, 1000) for tokens in (299, 300)] == [False, True]


# Labels and record ----------------------------------------------------------------------------------------------------


def test_untrusted_text_is_read_by_a_quarantined_child_whose_result_is_untrusted() -> None:
    there = table(["never"], speak)
    outcome = answered(ran(there, task=untrusted_value(HOSTILE, "mail")))
    assert not outcome.label.trusted
    assert not there.privileged.asked
    assert EVE not in str(outcome.trace)


@pytest.mark.parametrize("script", [speak, ["a brief", "no city"]])
def test_the_run_is_replayed_with_its_child(script: Script, tmp_path: Path) -> None:
    with open_journal_at(tmp_path / "journal.db") as journal:
        there = table(script, journal=journal)
        outcome = ran(there)
        again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy))
        assert again.identical, again.differences


@pytest.mark.model
def test_the_example_comes_out_right(small_model: LocalProvider, tmp_path: Path) -> None:
    example, outcome = performed("O17", small_model, tmp_path)
    assert example.is_correct(answered(outcome)), outcome
