"""The document about Echo and Delta: its intent, its plan and its description of a tool, and what it asks of both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seed_examples import DESCRIPTION, INTENT, MAIL, PLAN, REQUEST, program
from seed_world import World

from bicameral import Agent, BicameralError, Config, ScriptedProvider
from bicameral.models import ModelRequest
from bicameral.planning import parse_intent
from bicameral.plans import export_tasks, import_tasks
from bicameral.tools import Surroundings, load_file

ROOT = Path(__file__).parents[2]
SOURCE = 'lines = read_lines("mail.txt")\nkept = unique_lines(lines)\nfound = grep(kept, "invoice")\nanswer(found)\n'
FOUND = ["invoice 17 is due", "the Invoice of May"]


def scripted(*replies: str) -> ScriptedProvider:
    return ScriptedProvider(list(replies), grammars=False)


def agent(world: World, planner: ScriptedProvider) -> Agent:
    world.write("mail.txt", MAIL)
    return Agent(config=Config.load(), privileged=planner, quarantined=ScriptedProvider([]), cache={})


# The intent


def test_the_intent_of_the_document_loads_as_it_stands() -> None:
    intent = parse_intent(json.dumps(INTENT))
    assert [step.action for step in intent.steps] == ["remove-duplicates", "grep"]
    assert intent.steps[1].parameters == {"pattern": "invoice"}
    assert intent.output.kind == "stdout"
    assert intent.constraints == ()


async def test_the_intent_of_the_document_becomes_a_plan_and_runs(world: World) -> None:
    planner = scripted(SOURCE)
    async_agent = agent(world, planner)
    intent = parse_intent(json.dumps(INTENT | {"request": f"{REQUEST} in mail.txt"}))
    planned = await async_agent.plan(intent)
    outcome = await async_agent.run(planned)
    assert getattr(outcome, "answer", None) == FOUND
    await async_agent.aclose()


def test_the_commands_lead_from_the_request_to_the_intent_and_from_it_to_the_plan(world: World) -> None:
    world.write("mail.txt", MAIL)
    assert world.call("intent", f"{REQUEST} in mail.txt", "--deterministic", "--out", "intent.json").exit_code == 0
    planned = world.call("plan", "--intent", "intent.json", "--out", "plan.json", script=[SOURCE])
    assert planned.exit_code == 0, planned.output
    assert world.json("run", "--plan", "plan.json")["answer"] == FOUND


def test_what_is_left_open_is_asked_and_never_guessed(world: World) -> None:
    assert "Which file or text is meant?" in world.call("intent", REQUEST, "--deterministic").output
    result = world.call("plan", REQUEST, "--deterministic", script=[SOURCE])
    assert result.exit_code == 4
    assert "intent.questions" in result.output


def test_both_representations_have_published_schemas_with_a_version() -> None:
    for name, version in (("intent", "intent/2"), ("plan", "plan/1")):
        (file,) = (ROOT / "schemas").glob(f"{name}.v*.json")
        assert version in file.read_text(encoding="utf-8")


# The plan


def test_the_plan_of_the_document_loads_as_it_stands() -> None:
    registry = Agent(config=Config.defaults(), cache={}).registry
    imported = import_tasks(PLAN, registry)
    assert imported.plan.goal == PLAN["plan_description"]
    assert [call for call in ("unique_lines", "grep") if call in str(imported.plan)] == ["unique_lines", "grep"]


def test_a_plan_that_fits_the_form_is_exported_in_it(world: World) -> None:
    world.write("mail.txt", MAIL)
    registry = Agent(config=Config.load(), cache={}).registry
    document = PLAN | {"tasks": [{"task_number": 1, "command": "cat", "args": ["mail.txt"]}, *_shifted()]}
    exported = export_tasks(import_tasks(document, registry).plan, registry)
    assert exported["plan_description"] == PLAN["plan_description"]
    assert exported["tasks"][-1]["command"] == "grep"
    assert [task.get("input_from_task") for task in exported["tasks"]] == [None, 1, 2]


def _shifted() -> list[dict[str, object]]:
    """The tasks of the document behind one that reads a file."""
    return [
        task | {"task_number": task["task_number"] + 1, "input_from_task": task["task_number"]}
        for task in PLAN["tasks"]
    ]


def test_a_tool_that_does_not_exist_is_no_plan_and_the_nearest_is_named(world: World) -> None:
    document = PLAN | {"tasks": [{"task_number": 1, "command": "uniqe_lines"}]}
    world.write("plan.json", json.dumps(document))
    result = world.call("check", "plan.json")
    assert result.exit_code == 3
    assert "unique_lines" in result.output


# Delta


async def test_delta_is_asked_at_temperature_0_and_its_plan_is_kept(world: World) -> None:
    planner = scripted(SOURCE)
    async_agent = agent(world, planner)
    request = f"{REQUEST} in mail.txt"
    first = await async_agent.plan(request, deterministic=True)
    again = await async_agent.plan(request, deterministic=True)
    assert planner.requests[0].temperature == 0.0
    assert (first.cached, again.cached) == (False, True)
    assert first.plan.to_json() == again.plan.to_json()
    assert len(planner.requests) == 1
    await async_agent.aclose()


async def test_the_fast_path_and_the_deterministic_mode_skip_echo(world: World) -> None:
    """The request names a file and a pattern: only Delta is asked, and in deterministic mode never Echo."""

    def reply(request: ModelRequest) -> str:
        assert request.json_schema is None, "this is Echo's question"
        return SOURCE

    async_agent = agent(world, ScriptedProvider(reply, grammars=False))
    intent = await async_agent.intent(f"{REQUEST} in mail.txt", thorough=False)
    assert intent.by == "fast-path"
    vague = await async_agent.intent("Remove the duplicates in mail.txt and show the rest somehow", deterministic=True)
    assert vague.by != "echo"
    await async_agent.aclose()


# The description of a tool


def test_the_description_of_the_document_makes_a_tool(world: World) -> None:
    file = world.program("agx-ocr", program())
    (found,) = load_file(file, Surroundings.here())
    assert found.signature == "agx_ocr(path: str) -> str"
    assert found.version == DESCRIPTION["version"]


def test_the_command_shows_what_a_tool_describes(world: World) -> None:
    world.program("agx-ocr", program())
    result = world.call("tools", "add-check", "agx-ocr")
    assert result.exit_code == 0, result.output
    assert "agx_ocr(path: str) -> str" in result.output


def test_a_description_that_is_none_is_refused(world: World) -> None:
    world.program("agx-ocr", program({"name": "agx-ocr", "capabilities": 3}))
    with pytest.raises(BicameralError):
        load_file(world.folder / "agx-ocr", Surroundings.here())
