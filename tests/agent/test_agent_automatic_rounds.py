"""Rounds by themselves: where a first look decides the next step, within bounds, and never to get round a refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent, Finished, Registry, ScriptedProvider, parse
from bicameral.config import Config
from bicameral.config._config import PlanningSettings
from bicameral.errors import PlanError
from bicameral.journal import Journal
from bicameral.planning import look_before_plan, says_look_first

REQUEST = "Read notes.txt and answer how many lines it has, or 0 if it has fewer than 2"
NEEDS_LOOK = 'cannot("the next step depends on how many lines there are")\n'
LOOK = 'lines = read_lines("notes.txt")\ncount = len(lines)\nlook(count)\n'
ANSWER = "answer(count)\n"


def agent_of(folder: Path, *replies: str, rounds: int = 3, **options: Any) -> tuple[Agent, ScriptedProvider]:
    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    model = ScriptedProvider(list(replies), grammars=False)
    config = Config(base=folder, planning=PlanningSettings(plans=0, rounds=rounds))
    reader = ScriptedProvider([], name="reader", grammars=False)
    given: dict[str, Any] = {"cache": dict[str, str](), **options}
    return Agent(config=config, privileged=model, quarantined=reader, **given), model


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_a_request_that_needs_a_first_look_is_worked_on_in_rounds(folder: Path) -> None:
    agent, model = agent_of(folder, NEEDS_LOOK, LOOK, ANSWER)
    outcome = await agent.run(REQUEST, deterministic=True)
    assert isinstance(outcome, Finished)
    assert outcome.answer == 3
    assert len(model.requests) == 3


async def test_why_there_are_rounds_is_recorded(folder: Path) -> None:
    journal = Journal(folder / "journal.db")
    agent, _ = agent_of(folder, NEEDS_LOOK, LOOK, ANSWER, journal=journal)
    outcome = await agent.run(REQUEST, deterministic=True)
    (run,) = [event for event in journal.events(outcome.run) if event.kind == "run-started"]
    begun = journal.events(run.body["part_of"]["reason"])
    assert begun[0].body["why"] == "the planner says that something must be looked at first"
    assert [event.kind for event in begun].count("reason-round") == 2
    journal.close()


async def test_a_planner_without_a_tool_is_not_asked_again(folder: Path) -> None:
    agent, model = agent_of(folder, 'cannot("there is no tool that orders food")\n', LOOK, ANSWER)
    with pytest.raises(PlanError) as caught:
        await agent.run(REQUEST, deterministic=True)
    assert caught.value.code == "plan.cannot"
    assert len(model.requests) == 1


async def test_one_round_is_none(folder: Path) -> None:
    agent, model = agent_of(folder, NEEDS_LOOK, LOOK, ANSWER, rounds=1)
    with pytest.raises(PlanError):
        await agent.run(REQUEST, deterministic=True)
    assert len(model.requests) == 1


async def test_rounds_are_bounded_and_a_refusal_stays_one(folder: Path) -> None:
    agent, model = agent_of(folder, NEEDS_LOOK, *[LOOK] * 20, rounds=2)
    with pytest.raises(PlanError) as caught:
        await agent.run(REQUEST, deterministic=True)
    assert caught.value.code == "plan.cannot"
    assert len(model.requests) < 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the next step depends on what the file says", True),
        ("I must look at the table first", True),
        ("Das hängt davon ab, was in der Datei steht", True),
        ("Ich muss zuerst die Tabelle lesen", True),
        ("il faut d'abord lire le fichier", True),
        ("depende de lo que dice el archivo", True),
        ("there is no tool that orders food", False),
        ("I need to know to whom it should go", False),
        ("kein Werkzeug kann bezahlen", False),
    ],
)
def test_words_that_ask_for_a_first_look(text: str, expected: bool) -> None:
    assert says_look_first(text) is expected


@pytest.mark.parametrize(
    ("type_", "condition", "expected"),
    [
        ("str", 'found == "yes"', True),
        ("bool", "found", False),
        ("int", "found > 3", False),
        ("str", "len(found) > 3", False),
    ],
)
def test_a_branch_on_the_wording_of_a_text_needs_a_first_look(type_: str, condition: str, expected: bool) -> None:
    code = f'found = extract("text", "what it says", {type_})\nif {condition}:\n    answer(1)\nelse:\n    answer(2)\n'
    reason = look_before_plan(parse(code, Registry([])).plan)
    assert (reason is not None) is expected
