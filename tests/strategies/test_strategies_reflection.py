"""A reflection may look again with tools that read, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from strategies_world import BOB, EVE, Office, Person, call, office_agent

from bicameral.limits import strategy_limits
from bicameral.patterns.strategies import Answered, Exhausted, StrategyParams
from bicameral.runs import Journal

PLAN = json.dumps({"steps": ["write it"]})
WRITE = [call("write_text", path="out.txt", text="hello")]
LOOK = [call("read_text", path="out.txt")]


def verdict(word: str) -> str:
    return json.dumps({"verdict": word, "note": ""})


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


def spar(*after: Any) -> list[Any]:
    return ["s", PLAN, WRITE, "written", *after]


async def test_it_looks_again_and_judges_by_what_it_sees(journal: Journal) -> None:
    office = Office()
    agent, high, _ = office_agent(office, spar(LOOK, verdict("done"), "It is there."), journal=journal)
    worked = await agent.work("Write hello to out.txt", strategy="spar")
    assert isinstance(worked, Answered), worked
    assert high.phases == ["sense", "plan", "act", "act", "reflect", "reflect", "final_answer"]
    assert high.asked[5].messages[-1].text == "hello"
    assert high.asked[4].json_schema is not None
    assert {each.name for each in high.asked[4].tools} == {"read_page", "read_text", "balance", "fetch"}
    looked = [event.body for event in journal.events(worked.run) if event.kind == "step-started"]
    assert [body["what"] for body in looked] == ["write_text", "read_text"]
    assert (await agent.replay(worked.run)).identical


CHANGES = {
    "send": call("send", to=BOB, body="x"),
    "pay": call("pay", to=EVE, amount=1),
    "wipe": call("wipe"),
    "write_text": call("write_text", path="out.txt", text="y"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_it_changes_nothing_even_with_a_yes(name: str, journal: Journal) -> None:
    office, person = Office(), Person()
    script = spar([CHANGES[name]], verdict("done"), "Done.")
    agent, high, _ = office_agent(office, script, journal=journal)
    worked = await agent.work("Write hello to out.txt", strategy="spar", approver=person)
    assert isinstance(worked, Answered), worked
    assert [done for done, _ in office.done] == ["write_text"]
    assert office.files["out.txt"] == "hello"
    assert person.asked == []
    assert "only tools that read may be called" in high.asked[5].messages[-1].text
    denied = [event for event in journal.events(worked.run) if event.kind == "call-denied"]
    assert [event.body["what"] for event in denied] == [name]
    assert (await agent.replay(worked.run)).identical


async def test_it_looks_no_more_often_than_it_may() -> None:
    looks = [[call("balance", account=str(at))] for at in range(9)]
    agent, high, _ = office_agent(Office(), spar(*looks[:2], verdict("done"), "Done."))
    assert (await agent.work("x", strategy="spar")).ok
    assert high.phases.count("reflect") == 3
    assert high.asked[6].tools == ()
    assert high.asked[6].json_schema is not None
    agent, high, _ = office_agent(Office(), spar(looks[0], verdict("done"), "Done."))
    worked = await agent.work("x", strategy="spar", params=StrategyParams(reflect_looks=0, reading="open"))
    assert worked.ok
    assert high.asked[4].tools == ()


async def test_looks_count_as_rounds() -> None:
    agent, _, _ = office_agent(Office(), spar(LOOK, LOOK))
    worked = await agent.work("x", strategy="spar", bounds=strategy_limits(rounds=2))
    assert isinstance(worked, Exhausted)
    assert worked.bound == "rounds"


async def test_what_it_sees_of_others_stays_hidden_from_the_privileged_model() -> None:
    office = Office()
    script = spar([call("read_page", name="news")], verdict("done"), "The page: $r2")
    agent, high, low = office_agent(office, script, reading="as_needed")
    worked = await agent.work("Write hello to out.txt", strategy="spar")
    assert isinstance(worked, Answered)
    assert worked.answer == f"The page: {office.page}"
    assert low.asked == []
    assert office.page not in "".join(message.text for request in high.asked for message in request.messages)
