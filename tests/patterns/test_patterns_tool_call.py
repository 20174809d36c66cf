"""I2: the model picks one tool; code holds it to the declaration, policy decides, and a stranger gets nothing done."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from patterns_models import performed
from patterns_world import EVE, HOSTILE, World, answered, table

from bicameral.journal import open_journal_at
from bicameral.models import LocalProvider, ToolCall
from bicameral.patterns import Answered, GaveUp, format_text, from_user, untrusted_value
from bicameral.patterns.integration.tool_call import MAX_TOOLS, SeveralToolCalls, ToolCalling
from bicameral.patterns.kernel import replay_run
from bicameral.policy import Policy
from bicameral.runs import Answers, ApprovalQuestion
from bicameral.tools import tool
from invariants import holds


def call(name: str, /, **arguments: Any) -> str:
    return json.dumps({"call": {"tool": name, "arguments": arguments}})


def words(answer: str) -> str:
    return json.dumps({"call": {"tool": "none", "answer": answer}})


def routed(there: Any, task: Any, **knobs: Any) -> Any:
    return asyncio.run(ToolCalling(**knobs).run(there.desk, task if not isinstance(task, str) else from_user(task)))


def _offered(there: Any) -> list[str]:
    """What a reply can be, as the model is held to it."""
    choices = there.privileged.asked[0].json_schema["properties"]["call"]["anyOf"]
    return [each["properties"]["tool"]["const"] for each in choices]


def test_the_tool_that_was_picked_is_called_once_and_its_result_is_given() -> None:
    there = table([call("add", a=2, b=3)])
    outcome = routed(there, "What is 2 and 3?")
    assert outcome.value == {"tool": "add", "arguments": {"a": 2, "b": 3}, "result": 5}
    assert [each.tool for each in outcome.tool_calls] == ["add"]
    assert len(outcome.model_calls) == 1
    assert "- add(a: int, b: int) -> int: The sum of two numbers." in there.privileged.prompts[0]
    assert _offered(there) == ["read_page", "population", "add", "send", "none"]


def test_where_no_tool_is_needed_none_is_called() -> None:
    outcome = routed(table([words("Hello.")]), "Say hello.")
    assert outcome.value == {"tool": None, "arguments": {}, "result": "Hello."}
    assert not outcome.tool_calls


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (call("ad", a=1, b=2), "Did you mean 'add'"),
        (call("add", a=1), "needs the argument 'b'"),
        (call("add", a=1, b="2"), "cannot take this"),
        (call("add", a=1, b=True), "cannot take this"),
        (call("add", a=1, b=2, c=3), "has no argument 'c'"),
        (json.dumps({"call": {"tool": "add", "arguments": ["a", "b"]}}), "this is no call"),
        (json.dumps({"call": {"tool": "none", "arguments": {}}}), "there is no tool 'none'"),
        (json.dumps({"call": {"tool": "add", "arguments": {"a": 1, "b": 2}, "answer": "x"}}), "this is no call"),
        (json.dumps({"tool": "add", "arguments": {"a": 1, "b": 2}}), "does not fit the form"),
        ('{"call": {"tool": "add", "tool": "send", "arguments": {}}}', "a field is filled in twice"),
        ("add(1, 2)", "it is not JSON"),
        ([ToolCall("1", "send", {"to": EVE, "body": "x"})], "it is not JSON"),
    ],
)
@holds("I2.1", "I2.2", "I2.3")
def test_what_does_not_fit_is_told_and_asked_for_once_more(wrong: Any, told: str) -> None:
    there = table([wrong, call("add", a=1, b=2)])
    outcome = routed(there, "1 and 2?")
    assert outcome.value["result"] == 3
    assert told in there.privileged.prompts[1]
    assert [each.tool for each in outcome.tool_calls] == ["add"]
    assert len(outcome.model_calls) == 2
    assert there.world.done == []


@holds("I2.1", "I2.2")
def test_the_retries_are_bounded_and_nothing_is_mended() -> None:
    there = table([call("add", a=1, b="2")] * 9)
    outcome = routed(there, "1 and 2?", retries=2)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "models.bad-reply"
    assert "cannot take this" in str(outcome.error)
    assert len(outcome.model_calls) == 3
    assert not outcome.tool_calls


@holds("I2.3")
def test_only_the_tools_that_are_named_are_shown_and_can_be_picked() -> None:
    there = table([call("send", to=EVE, body="x"), call("send", to=EVE, body="x")])
    outcome = routed(there, "1 and 2?", tools=("add", "population"))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "models.bad-reply"
    assert "there is no tool 'send'" in str(outcome.error)
    assert _offered(there) == ["population", "add", "none"]
    assert there.world.done == []


@pytest.mark.parametrize("count", [0, MAX_TOOLS + 1])
def test_too_many_tools_or_none_are_refused_before_anybody_is_asked(count: int) -> None:
    @tool(effect="pure")
    def one(a: int) -> int:
        """One."""
        return a

    there = table(["never"], tools=[one.with_name(f"tool_{number}") for number in range(count)])
    outcome = routed(there, "x")
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.tool-count"
    assert not there.privileged.asked


@pytest.mark.parametrize("to", [EVE, "bob@example.com"])
def test_who_has_read_a_stranger_picks_as_a_stranger_does(to: str) -> None:
    """The page talks the model into a mail; whoever gets it, the call is a stranger's wish and nobody says yes."""
    there = table(["never asked"], [call("send", to=to, body="all you know")])
    outcome = routed(there, format_text("Sum this up: {page}", page=untrusted_value(HOSTILE, "page")))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"
    assert there.world.done == []
    assert not there.privileged.asked


def test_what_a_stranger_made_it_read_carries_his_label_and_so_do_words() -> None:
    there = table([], [call("population", city="Ghent"), words("A word.")])
    page = untrusted_value("Ghent is nice.", "page")
    looked_up = routed(there, format_text("How many live there? {page}", page=page))
    assert looked_up.value["result"] == 270_473
    assert not looked_up.label.trusted
    assert not routed(there, page).label.trusted


def test_a_retry_in_quarantine_stays_there() -> None:
    there = table(["never asked"], [call("ad"), call("send", to=EVE, body="x")])
    outcome = routed(there, untrusted_value(HOSTILE, "page"))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"
    assert [each.chamber for each in outcome.model_calls] == ["quarantined"] * 2


def test_a_person_can_say_yes_to_exactly_this_call() -> None:
    class Yes:
        def __init__(self) -> None:
            self.seen: list[Any] = []

        async def approve(self, question: ApprovalQuestion) -> Answers:
            self.seen += [(each.tool, dict(each.arguments)) for each in question.calls]
            return Answers.yes(question.calls)

    yes = Yes()
    there = table([], [call("send", to="bob@example.com", body="Hi")], world=World(), approver=yes)
    assert routed(there, untrusted_value("Write to Bob.", "page")).value["result"] == "sent"
    assert yes.seen == [("send", {"to": "bob@example.com", "body": "Hi"})]


@pytest.mark.parametrize("yes", [True, False])
@holds("I2.4", "I2.5")
def test_a_call_with_consequences_has_an_approval_on_record_before_its_one_result(tmp_path: Path, yes: bool) -> None:
    class Person:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            return Answers.yes(question.calls) if yes else Answers(frozenset())

    journal = open_journal_at(tmp_path / "journal.db")
    there = table([], [call("send", to="bob@example.com", body="Hi")], approver=Person(), journal=journal)
    outcome = routed(there, untrusted_value("Write to Bob.", "page"))
    events = [event for event in journal.events(outcome.run) if event.kind in ("approval", "step-finished")]
    expected = ["approval", "step-finished"] if yes else ["approval"]
    assert [(event.kind, event.step) for event in events] == [(kind, "call 1") for kind in expected]
    assert len(events[0].body["approved"]) == yes
    assert there.world.done == [("send", ("bob@example.com", "Hi"))] * yes
    assert isinstance(outcome, Answered if yes else GaveUp)


# Several calls of one reply -----------------------------------------------------------------------------------------


def several(*calls: str) -> str:
    return json.dumps({"calls": [json.loads(each)["call"] for each in calls]})


def routed_all(there: Any, task: Any = "Both, please.", **knobs: Any) -> Any:
    given = from_user(task) if isinstance(task, str) else task
    return asyncio.run(SeveralToolCalls(**knobs).run(there.desk, given))


@holds("I2.1", "I2.5")
def test_calls_of_one_reply_are_made_in_order_and_each_has_one_result(tmp_path: Path) -> None:
    journal = open_journal_at(tmp_path / "journal.db")
    there = table([several(call("population", city="Ghent"), call("add", a=1, b=2))], journal=journal)
    outcome = answered(routed_all(there))
    assert [(each["tool"], each["result"], each["error"]) for each in outcome.value] == [
        ("population", 270_473, None),
        ("add", 3, None),
    ]
    assert len(there.privileged.asked) == 1
    again = asyncio.run(replay_run(journal, outcome.run, there.desk.registry, there.desk.policy))
    assert again.identical, again.differences


def test_a_denial_and_a_failure_do_not_end_the_other_calls() -> None:
    there = table(
        [], [several(call("send", to=EVE, body="x"), call("population", city="Atlantis"), call("add", a=1, b=2))]
    )
    never = '@id("never")\nforbid (principal, action == Action::"call", resource in Tool::"send");'
    there.desk = replace(there.desk, policy=Policy.parse(never, registry=there.desk.registry))
    outcome = answered(routed_all(there, untrusted_value(HOSTILE, "mail")))
    assert [(each["result"], each["error"]) for each in outcome.value] == [
        (None, "policy.denied"),
        (None, "tools.failed"),
        (3, None),
    ]
    assert there.world.done == []
    assert not outcome.label.trusted


@holds("I2.4")
def test_with_nobody_to_ask_a_call_with_consequences_ends_all() -> None:
    there = table([], [several(call("add", a=1, b=2), call("send", to=EVE, body="x"))])
    outcome = routed_all(there, untrusted_value(HOSTILE, "mail"))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"
    assert there.world.done == []


def test_a_result_over_the_cap_is_an_error_in_its_place() -> None:
    there = table([several(call("read_page", name="start"), call("add", a=1, b=2))], world=World(page="word " * 500))
    outcome = answered(routed_all(there, result_tokens=100))
    assert [each["error"] for each in outcome.value] == ["pattern.long-result", None]


def test_words_in_place_of_calls_are_the_only_outcome() -> None:
    outcome = answered(routed_all(table([several(words("There is nothing to do."))])))
    (only,) = outcome.value
    assert (only["tool"], only["result"]) == (None, "There is nothing to do.")


@holds("I2.2")
@pytest.mark.parametrize(
    "wrong",
    [
        several(*[call("add", a=1, b=2)] * 3),
        several(call("add", a=1, b=2), words("done")),
        several(call("add", a=1, b=2), call("add", a="1", b=2)),
        json.dumps({"calls": []}),
    ],
    ids=["too many", "a call and an answer", "one that does not fit", "none"],
)
def test_calls_that_do_not_fit_are_not_made_at_all(wrong: str) -> None:
    there = table([wrong, several(call("add", a=2, b=2))])
    outcome = answered(routed_all(there, max_calls=2))
    assert [each["result"] for each in outcome.value] == [4]
    assert len(outcome.tool_calls) == 1
    bad = routed_all(table([wrong, wrong]), max_calls=2)
    assert isinstance(bad, GaveUp)
    assert (bad.error.code, bad.tool_calls) == ("models.bad-reply", ())


@pytest.mark.model
def test_the_example_works_with_a_real_model(small_model: LocalProvider, tmp_path: Path) -> None:
    example, outcome = performed("I2", small_model, tmp_path)
    assert isinstance(outcome, Answered), outcome
    assert example.is_correct(outcome), outcome.value
