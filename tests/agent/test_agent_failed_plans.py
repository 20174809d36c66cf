"""Requests without a plan: what was tried, what is wrong with it in plain words, and a smaller request."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from bicameral import Agent, ScriptedProvider
from bicameral.config import Config, open_registry
from bicameral.planning import NoPlanError, smaller_request
from bicameral.tools import Registry

REQUEST = "Count the lines of notes.txt and write the longest one to longest.txt"
WRONG = 'lines = read_lines("notes.txt")\nwrite_text("longest.txt", lines.longest)\nanswer("Wrote longest.txt")\n'
COUNT = 'lines = read_lines("notes.txt")\nanswer(len(lines))\n'


def agent_of(folder: Path, *replies: str, cache: dict[str, str] | None = None) -> Agent:
    (folder / "notes.txt").write_text("one\ntwo\n")
    model = ScriptedProvider(list(replies), grammars=False)
    reader = ScriptedProvider([], name="reader", grammars=False)
    kept = {} if cache is None else cache
    return Agent(config=Config.defaults(folder), privileged=model, quarantined=reader, cache=kept)


async def failure(agent: Agent, request: str = REQUEST) -> NoPlanError:
    with pytest.raises(NoPlanError) as caught:
        await agent.plan(request, deterministic=True, plans=0)
    return caught.value


async def test_the_attempt_is_shown_with_what_is_wrong(tmp_path: Path) -> None:
    error = await failure(agent_of(tmp_path, WRONG, WRONG, WRONG))
    assert error.code == "plan.none"
    assert error.failure.attempt == WRONG.rstrip()
    fault = error.failure.faults[0]
    assert (fault.code, fault.line) == ("plan.unknown-field", 2)
    assert fault.plain.startswith("line 2: it uses a part of a result that the result does not have: ")
    assert fault.code not in fault.plain


async def test_a_program_gets_the_same(tmp_path: Path) -> None:
    told = (await failure(agent_of(tmp_path, WRONG, WRONG, WRONG))).to_json()
    assert told["attempt"] == WRONG.rstrip()
    assert told["wrong"][0]["code"] == "plan.unknown-field"
    assert told["wrong"][0]["line"] == 2
    assert told["try"] == {"request": "Count the lines of notes.txt", "known": False}


async def test_a_part_with_a_plan_is_known_to_work(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, COUNT, WRONG, WRONG, WRONG)
    await agent.plan("Count the lines of notes.txt", deterministic=True, plans=0)
    error = await failure(agent)
    assert error.failure.smaller is not None
    assert (error.failure.smaller.request, error.failure.smaller.known) == ("Count the lines of notes.txt", True)


async def test_a_plan_that_no_longer_passes_the_check_is_not_known(tmp_path: Path) -> None:
    cache: dict[str, str] = {}
    agent = agent_of(tmp_path, COUNT, WRONG, WRONG, WRONG, cache=cache)
    await agent.plan("Count the lines of notes.txt", deterministic=True, plans=0)
    cache |= {key: text.replace("read_lines", "read_everything") for key, text in cache.items()}
    error = await failure(agent)
    assert error.failure.smaller is not None
    assert error.failure.smaller.known is False


async def test_text_that_is_no_plan_is_a_fault_in_plain_words(tmp_path: Path) -> None:
    text = "I would read the file first\n"
    error = await failure(agent_of(tmp_path, text, text, text))
    assert error.failure.attempt == text.rstrip()
    assert error.failure.faults


async def test_a_refusal_has_no_attempt(tmp_path: Path) -> None:
    error = await failure(agent_of(tmp_path, 'cannot("There is no tool that orders food.")\n'), "Order a pizza, please")
    assert (error.code, error.failure.attempt) == ("plan.cannot", "")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return open_registry(Config.defaults(tmp_path_factory.mktemp("folder")))


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        ("Count the lines of notes.txt. Then call Kim", "Count the lines of notes.txt"),
        ("Call Kim and count the lines of notes.txt", "Count the lines of notes.txt"),
        ("Zähle die Zeilen von notes.txt und ruf Kim an", "Zähle die Zeilen von notes.txt"),
        ("Sort names.txt and save it to sorted.txt", "Sort names.txt"),
        # One clause has no smaller one.
        ("Count the lines of notes.txt", None),
        # A part must not lose what is forbidden.
        ("Sort names.txt and save it to sorted.txt, but do not change names.txt", None),
        # Nothing outside of a part is pointed at, and a condition is no request.
        ("If notes.txt is empty and old.txt is there then delete it", None),
        # What is quoted is not cut.
        ('Write "eggs and milk and count the lines of notes.txt" to list.txt', None),
    ],
)
def test_the_smaller_request(registry: Registry, request_: str, part: str | None) -> None:
    found = smaller_request(request_, registry, dt.date(2026, 11, 18))
    assert (None if found is None else found.request) == part
