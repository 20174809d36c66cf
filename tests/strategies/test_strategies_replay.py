"""A recorded conversation is run again from its record: identical, with nothing asked and nothing touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from strategies_world import BOB, EVE, Office, Person, call, office_agent

from bicameral.errors import JournalError, ModelError
from bicameral.limits import Limits, strategy_limits
from bicameral.models import ModelRequest
from bicameral.runs import Failed, Finished, Journal, Stopped, replay

READ = [call("read_page", name="news")]
GREET = [call("send", to=BOB, body="hello")]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


def fails(_: ModelRequest) -> str:
    raise ModelError("models.unavailable", "gone")


def once() -> Person:
    person = Person(lambda _: len(person.asked) == 1)
    return person


SPAR: list[Any] = ["s", json.dumps({"steps": ["a"]}), GREET, "done", json.dumps({"verdict": "done", "note": ""}), "!"]
CASES: dict[str, tuple[str, Any, Any, Any, Limits]] = {
    "an answer": ("native_react", [GREET, "done"], [], None, strategy_limits()),
    "five phases": ("spar", SPAR, [], None, strategy_limits()),
    "in quarantine": ("native_react", [READ], [[call("balance", account="a")], "odd"], None, strategy_limits()),
    "nobody there": ("native_react", [READ], [[call("pay", to=EVE, amount=9)]], None, strategy_limits()),
    "yes and then no to the same call": ("native_react", [READ], [GREET, GREET], once, strategy_limits()),
    "a failing tool": ("native_react", [[call("read_text", path="gone")], "no"], [], None, strategy_limits()),
    "a mistake": ("native_react", [[call("nothing")], "no"], [], None, strategy_limits()),
    "too many rounds": ("native_react", [GREET, GREET, GREET], [], None, strategy_limits(rounds=2)),
    "a failing model": ("native_react", fails, [], None, strategy_limits()),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_replay_is_identical_and_touches_nothing(case: str, journal: Journal) -> None:
    strategy, privileged, quarantined, approver, bounds = CASES[case]
    office = Office()
    agent, high, low = office_agent(office, privileged, quarantined, journal=journal)
    worked = await agent.work(
        "Do it", strategy=strategy, approver=None if approver is None else approver(), bounds=bounds
    )
    done, asked = list(office.done), len(high.asked) + len(low.asked)
    replayed = await agent.replay(worked.run)
    assert replayed.differences == ()
    assert replayed.identical
    assert isinstance(replayed.outcome, Finished) == worked.ok
    assert replayed.outcome.effects == worked.effects
    assert (office.done, len(high.asked) + len(low.asked)) == (done, asked)


async def test_a_changed_record_of_a_reply_is_noticed(journal: Journal) -> None:
    agent, _, _ = office_agent(Office(), [GREET, "done"], journal=journal)
    worked = await agent.work("Do it", strategy="native_react")
    for event in journal.events(worked.run):
        body = dict(event.body)
        if event.kind == "model-called" and body["calls"]:
            body["calls"] = [body["calls"][0] | {"arguments": {"to": EVE, "body": "hello"}}]
        journal.append("other", event.kind, event.step, body)
    replayed = await agent.replay("other")
    assert not replayed.identical
    assert any("'arguments' is not as recorded" in each for each in replayed.differences)


async def test_a_conversation_that_was_cut_off_is_replayed_as_far_as_it_came(journal: Journal) -> None:
    agent, _, _ = office_agent(Office(), [GREET, "done"], journal=journal)
    worked = await agent.work("Do it", strategy="native_react")
    for event in journal.events(worked.run)[:-2]:
        journal.append("other", event.kind, event.step, event.body)
    replayed = await agent.replay("other")
    assert replayed.identical
    assert isinstance(replayed.outcome, Stopped)


async def test_it_is_no_plan(journal: Journal) -> None:
    agent, _, _ = office_agent(Office(), ["done"], journal=journal)
    worked = await agent.work("Do it", strategy="native_react")
    with pytest.raises(JournalError, match="has no plan"):
        await replay(journal, worked.run, agent.registry)


async def test_a_conversation_from_before_there_was_one_kind_of_limits_is_replayed(
    journal: Journal,
) -> None:
    for line in (Path(__file__).parent / "conversation_before_limits.jsonl").read_text("utf-8").splitlines():
        event = json.loads(line)
        journal.append("old", event["kind"], event["step"], event["body"])
    agent, high, _ = office_agent(Office(), [], journal=journal)
    replayed = await agent.replay("old")
    assert replayed.identical, replayed.differences
    assert isinstance(replayed.outcome, Failed)
    assert replayed.outcome.error.code == "strategy.exhausted"
    assert high.asked == []
