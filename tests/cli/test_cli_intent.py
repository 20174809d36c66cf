"""`bicameral intent`, and `bicameral plan --intent`."""

from __future__ import annotations

import json

import pytest
from cli_world import PLAN, REQUEST, World


def test_an_intent_is_printed_with_what_it_mentions(world: World) -> None:
    result = world.call("intent", REQUEST, script=[])
    assert result.exit_code == 0, result.output
    assert "file         mail.txt" in result.stdout.splitlines()
    told = world.json("intent", REQUEST, script=[])["intent"]
    assert told["version"] == "intent/2"
    assert [(each["kind"], each["words"]) for each in told["mentions"]] == [("file", "mail.txt")]


def test_open_questions_are_printed_where_nobody_can_be_asked(world: World) -> None:
    told = world.json("intent", "Forward the offer", script=[])
    assert [each["about"] for each in told["intent"]["questions"]] == ["recipient"]
    assert "To whom should the offer go?" in world.call("intent", "Forward the offer", script=[]).stdout


def test_an_edited_intent_is_planned_from(world: World) -> None:
    assert world.call("intent", REQUEST, "--out", "i.json", script=[]).exit_code == 0
    document = json.loads((world.folder / "i.json").read_text())
    document["steps"] = [
        {"action": "read-lines", "path": "mail.txt"},
        {"action": "remove-duplicates"},
        {"action": "grep", "pattern": "invoice"},
    ]
    world.write("i.json", json.dumps(document))
    told = world.json("plan", "--intent", "i.json", script=[PLAN])
    assert told["ok"]
    assert told["intent"]["by"] == "person"
    assert "grep" in told["source"]


def test_a_step_that_no_plan_serves_is_reported(world: World) -> None:
    world.write("i.json", json.dumps({"request": REQUEST, "steps": [{"action": "grep", "pattern": "receipt"}]}))
    told = world.json("plan", "--intent", "i.json", script=[PLAN] * 3)
    assert "plan.unserved-step" in {finding["code"] for finding in told["report"]["findings"]}


def test_an_intent_with_open_questions_is_not_planned(world: World) -> None:
    steps = [{"action": "remove-duplicates"}, {"action": "grep", "pattern": "invoice"}]
    world.write("i.json", json.dumps({"task": "text-filtering", "steps": steps, "output": "stdout"}))
    assert world.json("plan", "--intent", "i.json", script=[PLAN], code=4)["error"]["code"] == "intent.questions"


def test_a_misspelt_field_is_named_with_its_line(world: World) -> None:
    world.write("i.json", '{\n  "task": "t",\n  "constrains": []\n}\n')
    error = world.json("plan", "--intent", "i.json", script=[PLAN], code=2)["error"]
    assert (error["code"], error["nearest"], error["place"]["line"]) == ("intent.invalid", "constraints", 3)


@pytest.mark.parametrize("words", [["plan"], ["plan", "Count the lines of mail.txt", "--intent", "i.json"]])
def test_a_plan_needs_a_request_or_an_intent_and_not_both(world: World, words: list[str]) -> None:
    assert world.json(*words, script=[PLAN], code=2)["error"]["code"] == "cli.usage"
