"""The document's plan runs as the pipeline that it is, and a described command is a part of one."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from seed_examples import DESCRIPTION, MAIL, PLAN, program
from seed_world import World

ROOT = Path(__file__).parents[2]
FOUND = ["invoice 17 is due", "the Invoice of May"]


def test_the_plan_reads_its_first_input_from_standard_input(world: World) -> None:
    """`bicameral run --plan plan.json < mail.txt`, with the plan as the document prints it."""
    world.write("plan.json", json.dumps(PLAN))
    ended = world.process("run", "--plan", "plan.json", "--json", stdin=MAIL)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert json.loads(ended.stdout)["answer"] == FOUND


def test_without_an_input_nothing_is_guessed(world: World) -> None:
    world.write("plan.json", json.dumps(PLAN))
    result = world.call("run", "--plan", "plan.json", "--no-input")
    assert result.exit_code == 3
    assert "plan.no-input" in result.output


def test_the_plan_keeps_its_id_and_its_time_limits_through_every_form(world: World) -> None:
    world.write("plan.json", json.dumps(PLAN))
    assert world.call("plan", "--from", "plan.json", "--format", "python", "--out", "plan.py").exit_code == 0
    result = world.call("plan", "--from", "plan.py", "--format", "tasks", "--out", "again.json")
    assert result.exit_code == 0, result.output
    again = json.loads((world.folder / "again.json").read_text(encoding="utf-8"))
    assert again["plan_id"] == PLAN["plan_id"]
    assert again["plan_description"] == PLAN["plan_description"]
    assert [task["timeout_secs"] for task in again["tasks"]] == [30, 30]


def test_a_task_that_takes_longer_than_its_limit_is_ended(world: World) -> None:
    world.program("slow", program(DESCRIPTION | {"name": "slow", "inputs": []}, "import time; time.sleep(20)"))
    world.write("bicameral.toml", '[toolboxes]\nfiles = ["slow"]\n\n[toolbox.slow]\neffect = "read"\n')
    tasks = [{"task_number": 1, "command": "slow", "timeout_secs": 1}]
    world.write("plan.json", json.dumps(PLAN | {"tasks": tasks}))
    started = time.monotonic()
    result = world.call("run", "--plan", "plan.json", "--no-input", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["code"] == "run.step-timeout"
    assert time.monotonic() - started < 15


def test_the_text_of_a_described_command_feeds_the_next_command(world: World) -> None:
    world.program("agx-ocr", program(body="print(open(sys.argv[1]).read(), end='')"))
    world.write("scan.png", MAIL)
    world.write("bicameral.toml", '[toolboxes]\nfiles = ["agx-ocr"]\n\n[toolbox.agx-ocr]\neffect = "read"\n')
    tasks: list[dict[str, Any]] = [
        {"task_number": 1, "command": "agx-ocr", "args": ["scan.png"]},
        *(
            task | {"task_number": task["task_number"] + 1, "input_from_task": task["task_number"]}
            for task in PLAN["tasks"]
        ),
    ]
    world.write("plan.json", json.dumps(PLAN | {"tasks": tasks}))
    assert world.json("run", "--plan", "plan.json")["answer"] == FOUND


def test_the_list_of_tasks_has_a_published_schema_that_the_document_fits() -> None:
    schema = json.loads((ROOT / "schemas" / "tasks.v1.json").read_text(encoding="utf-8"))
    validator: Any = Draft202012Validator(schema)
    assert validator.is_valid(PLAN)
    assert not validator.is_valid(PLAN | {"tasks": [{"task_number": "1", "command": "uniq"}]})


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('for line in read_lines("mail.txt"):\n    write_text("x.txt", line)\nanswer(1)\n', "no loops"),
        ('text = read_text("mail.txt")\nn = extract(text, "the number", int)\nanswer(n)\n', "quarantined model"),
    ],
)
def test_what_a_list_of_tasks_cannot_express_is_told_with_the_reason(world: World, source: str, reason: str) -> None:
    world.write("mail.txt", MAIL)
    world.write("plan.py", source)
    result = world.call("plan", "--from", "plan.py", "--format", "tasks")
    assert result.exit_code == 3
    assert reason in result.output
