"""Each strategy from a request to its answer: the phases in their order, each asked of the right model."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from strategies_world import BOB, Office, Person, Speaker, call, office_agent

from bicameral import Agent
from bicameral.errors import ConfigError
from bicameral.models import Message, ModelRequest
from bicameral.patterns._tool_messages import parse_arguments, render_result, tool_schemas
from bicameral.patterns.strategies import Answered, ConversationObserver, GaveUp, ModelTurn, StrategyParams
from bicameral.runs import Journal
from bicameral.tools import Registry, tool

PLAN = json.dumps({"steps": ["look at the balance", "tell Bob"]})


def verdict(word: str) -> str:
    return json.dumps({"verdict": word, "note": ""})


async def test_react_calls_tools_until_it_answers() -> None:
    office = Office()
    agent, high, low = office_agent(
        office, [[call("balance", account="a")], [call("send", to=BOB, body="hello")], "It is 100, and Bob knows."]
    )
    worked = await agent.work("What is on account a? Say hello to bob@example.com", strategy="native_react")
    assert isinstance(worked, Answered)
    assert worked.answer == "It is 100, and Bob knows."
    assert office.done == [("send", (BOB, "hello"))]
    assert [(done.step, done.tool) for done in worked.effects] == [("2/0", "send")]
    assert high.phases == ["act", "act", "act"]
    assert {each.role for each in high.situations} == {"reasoning"}
    assert [message.text for message in high.asked[-1].messages if message.speaker == "tool"] == ["100", "sent"]
    assert low.asked == []
    assert worked.shade is not None
    assert worked.shade.flat.trusted


async def test_a_call_and_its_result_are_told_apart_by_id() -> None:
    agent, high, _ = office_agent(
        Office(), [[call("balance", account="a"), call("read_text", path="report.txt")], "ok"]
    )
    await agent.work("Look", strategy="native_react")
    asked, first, second = high.asked[-1].messages[-3:]
    assert [each.id for each in asked.calls] == [first.answers, second.answers]
    assert (first.text, second.text) == ("100", "the secret figures")


async def test_plan_and_execute_plans_before_it_acts() -> None:
    office = Office()
    script = [PLAN, [call("balance", account="a")], "100", [call("send", to=BOB, body="100")], "told", "Bob knows: 100"]
    agent, high, _ = office_agent(office, script)
    worked = await agent.work("Tell bob@example.com my balance", strategy="plan_and_execute", approver=Person())
    assert isinstance(worked, Answered), worked
    assert (worked.answer, worked.left_open) == ("Bob knows: 100", ())
    assert high.phases == ["plan", "act", "act", "act", "act", "final_answer"]
    assert [each.role for each in high.situations][:2] == ["planning", "acting"]
    assert [bool(each.tools) for each in high.asked] == [False, True, True, True, True, False]
    assert high.asked[0].json_schema is not None
    assert "balance(account: str)" in high.asked[0].messages[-1].text


async def test_a_step_that_does_not_end_is_left_open_and_said() -> None:
    looks = [[call("balance", account="a")]] * 2
    script = [json.dumps({"steps": ["look"]}), *looks, "I only looked."]
    agent, _, _ = office_agent(Office(), script)
    worked = await agent.work("Look", strategy="plan_and_execute", params=StrategyParams(max_step_iterations=2))
    assert isinstance(worked, Answered)
    assert worked.left_open == ("look",)


async def test_spar_goes_through_its_five_phases() -> None:
    steps = [[call("balance", account="a")], "100", verdict("go_on"), "told", verdict("go_on")]
    agent, high, _ = office_agent(Office(), ["It is about money.", PLAN, *steps, "done"])
    worked = await agent.work("Tell me my balance", strategy="spar")
    assert isinstance(worked, Answered)
    assert high.phases == ["sense", "plan", "act", "act", "reflect", "act", "reflect", "final_answer"]
    assert [turn.phase for turn in worked.turns] == high.phases
    assert [turn.role for turn in worked.turns[:2]] == ["reasoning", "planning"]


@pytest.mark.parametrize(
    ("every", "replies", "phases"),
    [
        (True, ["one", verdict("done"), "!"], ["act", "reflect"]),
        (
            True,
            ["one", verdict("again"), "one", "two", verdict("done"), "!"],
            ["act", "reflect", "act", "act", "reflect"],
        ),
        (False, ["one", "two", verdict("go_on"), "!"], ["act", "act", "reflect"]),
    ],
)
async def test_reflection_decides_what_comes_next(every: bool, replies: list[str], phases: list[str]) -> None:
    agent, high, _ = office_agent(Office(), ["s", PLAN, *replies])
    worked = await agent.work("Do it", strategy="spar", params=StrategyParams(reflect_every_step=every))
    assert isinstance(worked, Answered)
    assert high.phases == ["sense", "plan", *phases, "final_answer"]


@pytest.mark.parametrize("bad", ["no", "[]", '{"steps": []}', '{"steps": [1]}', '{"steps": "x"}', "[" * 100_000])
async def test_a_plan_that_is_none_is_asked_for_once_more_and_then_given_up(bad: str) -> None:
    agent, high, _ = office_agent(Office(), [bad, PLAN, "1", "2", "!"])
    assert (await agent.work("x", strategy="plan_and_execute")).ok
    assert high.phases[:2] == ["plan", "plan"]
    agent, _, _ = office_agent(Office(), [bad, bad])
    worked = await agent.work("x", strategy="plan_and_execute")
    assert isinstance(worked, GaveUp)
    assert worked.error.code == "models.bad-reply"


async def test_each_phase_names_its_model() -> None:
    models = {"sense": "fast", "plan": "powerful", "act": "main", "reflect": "powerful", "final_answer": "fast"}
    agent, high, _ = office_agent(Office(), ["s", json.dumps({"steps": ["a"]}), "1", verdict("done"), "!"])
    worked = await agent.work("x", strategy="spar", params=StrategyParams(phase_models=models))
    assert [each.model for each in high.asked] == ["fast", "powerful", "main", "powerful", "fast"]
    assert {turn.phase: turn.model for turn in worked.turns} == models


async def test_an_unknown_strategy_or_phase_teaches() -> None:
    agent, _, _ = office_agent(Office())
    with pytest.raises(ConfigError, match="Did you mean 'spar'") as found:
        await agent.work("x", strategy="sparr")
    assert found.value.code == "strategy.unknown"
    with pytest.raises(ConfigError, match="Did you mean 'reflect'"):
        StrategyParams(phase_models={"reflekt": "fast"})
    with pytest.raises(ConfigError, match="at least 1"):
        StrategyParams(max_steps=0)


async def test_compiled_is_the_checked_plan() -> None:
    office = Office()
    agent, _, _ = office_agent(office, ["total = balance('a')\nanswer(total)\n"], grammars=False)
    worked = await agent.work("Look up the balance of account a", strategy="compiled", deterministic=True)
    assert isinstance(worked, Answered), worked
    assert (worked.answer, worked.way, worked.turns) == (100, "compiled", ())
    assert (await agent.work("Look up the balance of account a", deterministic=True)).way == "compiled"
    unclear = await agent.work("hm", strategy="compiled")
    assert isinstance(unclear, GaveUp)
    assert unclear.error.code == "intent.questions"


def test_there_is_a_blocking_face() -> None:
    agent, _, _ = office_agent(Office(), ["hello"])
    worked = agent.sync.work("Say hello", strategy="native_react")
    assert isinstance(worked, Answered)
    assert worked.answer == "hello"


async def test_whoever_watches_hears_the_phases_and_the_text_and_changes_nothing() -> None:
    heard: list[Any] = []
    audience = ConversationObserver(lambda phase, role: heard.append((phase, role)), heard.append, heard.append)
    agent, _, _ = office_agent(Office(), ["hello"])
    await agent.work("Hi", strategy="native_react", audience=audience)
    assert heard[:2] == [("act", "reasoning"), "hello"]
    assert isinstance(heard[2], ModelTurn)

    def broken(*_: Any) -> None:
        raise RuntimeError("the screen is gone")

    agent, _, _ = office_agent(Office(), ["hello"])
    assert (await agent.work("Hi", strategy="native_react", audience=ConversationObserver(broken, broken, broken))).ok


async def test_the_journal_holds_the_conversation_as_a_run(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.db") as journal:
        agent, _, _ = office_agent(Office(), [[call("balance", account="a")], "100"], journal=journal)
        worked = await agent.work("How much?", strategy="native_react")
        events = journal.events(worked.run)
        assert next(journal.runs()).request == "How much?"
    kinds = [event.kind for event in events]
    assert kinds == ["run-started", "model-called", "step-started", "step-finished", "model-called", "run-finished"]
    assert events[0].body["strategy"] == "native_react"
    asked = events[1].body
    assert (asked["phase"], asked["role"], asked["chamber"]) == ("act", "reasoning", "privileged")
    assert asked["calls"] == [{"id": "balance-1", "name": "balance", "arguments": {"account": "a"}}]
    assert events[2].step == "1/0"
    assert events[2].body["decision"]["said"] == "allowed"
    assert events[-1].body["usage"]["reasoner_calls"] == 2


async def test_calls_are_held_to_the_declarations_and_mistakes_are_told() -> None:
    bad = [call("balanc", account="a"), call("balance"), call("balance", account=7), call("balance", other="x")]
    office = Office()
    agent, high, _ = office_agent(office, [bad, "sorry"])
    worked = await agent.work("x", strategy="native_react")
    assert isinstance(worked, Answered)
    told = [message.text for message in high.asked[-1].messages if message.speaker == "tool"]
    for text, word in zip(
        told, ("Did you mean 'balance'", "needs the argument", "account", "has no argument"), strict=True
    ):
        assert text.startswith("error: "), text
        assert word in text
    assert office.done == []


async def test_a_model_that_was_shown_no_tools_calls_none() -> None:
    office = Office()
    script = [json.dumps({"steps": ["a"]}), "1", [call("pay", to=BOB, amount=1)]]
    agent, _, _ = office_agent(office, script)
    worked = await agent.work("x", strategy="plan_and_execute")
    assert isinstance(worked, Answered)
    assert (worked.answer, office.done) == ("", [])


async def test_a_failing_tool_is_told_without_its_words_while_the_conversation_is_trusted() -> None:
    agent, high, low = office_agent(Office(), [[call("read_text", path="gone")], "not there"])
    worked = await agent.work("Read gone", strategy="native_react")
    assert isinstance(worked, Answered)
    assert high.asked[-1].messages[-1] == Message(
        "tool", "error: the tool failed [tools.failed]", answers="read_text-1"
    )
    assert low.asked == []


def test_dates_are_read_and_nothing_else_is_made_to_fit() -> None:
    @tool(effect="read", outbound=False)
    def find(day: dt.date, at: dt.datetime, spans: list[dt.timedelta], most: int | None = None) -> list[str]:
        """Find."""
        return []

    written = {"day": "2026-11-15", "at": "2026-11-15T09:30:00", "spans": [90, 1e300], "most": "3"}
    read = parse_arguments(find, written)
    assert read["day"] == dt.date(2026, 11, 15)
    assert read["at"] == dt.datetime(2026, 11, 15, 9, 30)
    assert read["spans"] == [dt.timedelta(seconds=90), 1e300]
    assert read["most"] == "3"
    assert parse_arguments(find, {"day": "soon"}) == {"day": "soon"}
    (schema,) = tool_schemas(Registry([find]))
    assert schema.parameters["required"] == ["day", "at", "spans"]
    assert render_result([dt.date(2026, 1, 2), dt.timedelta(minutes=1)]) == '["2026-01-02", 60.0]'
    assert render_result("a" * 20_001).endswith("(1 more characters are not shown)")


async def test_a_request_reads_as_one(tmp_path: Path) -> None:
    agent, high, _ = office_agent(Office(), ["hello"])
    await agent.work("Say hello", strategy="native_react")
    request: ModelRequest = high.asked[0]
    assert [message.speaker for message in request.messages] == ["system", "user"]
    assert request.messages[1].text == "Say hello"
    assert "send" in [schema.name for schema in request.tools]
    assert isinstance(agent, Agent)
    assert isinstance(high, Speaker)
