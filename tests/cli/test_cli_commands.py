"""The other commands, one by one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cli_world import PLAN, REQUEST, World

from bicameral.cli._main import COMMANDS, main  # pyright: ignore[reportPrivateUsage]


def test_check_finds_every_mistake_with_its_line(world: World) -> None:
    world.write("p.py", 'a = read_lnes("mail.txt")\nwrite_text("x", 3)\nanswer(b)\n')
    told = world.json("check", "p.py", code=3)
    codes = {finding["code"] for finding in told["findings"]} if "findings" in told else {told["error"]["code"]}
    assert "plan.unknown-tool" in codes


def test_check_reads_json_python_and_tasks(world: World) -> None:
    world.write("p.py", PLAN)
    result = world.call("check", "p.py")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "ok: 4 steps; changes nothing",
        "  0  read_lines    proved",
        "  1  unique_lines  proved",
        "  2  grep          proved",
    ]
    assert world.call("check", "-", stdin=PLAN).exit_code == 0
    tasks: dict[str, Any] = {
        "plan_id": "p1",
        "plan_description": "unique lines",
        "tasks": [
            {"task_number": 1, "command": "read_lines", "args": ["mail.txt"]},
            {"task_number": 2, "command": "uniq", "args": [], "input_from_task": 1},
        ],
    }
    world.write("tasks.json", json.dumps(tasks))
    assert world.call("check", "tasks.json").exit_code == 0, world.call("check", "tasks.json").output


@pytest.mark.parametrize(
    ("content", "code", "exit_code"),
    [
        ('{"version": "plan/9", "steps": []}', "plan.unknown-version", 3),
        ('{"version": "plan/1", "steps": [', "plan.bad-json", 3),
        ("while True:\n    pass\n", "plan.not-in-language", 3),
        ("", "plan.missing-answer", 3),
        ("\x00\x01", "plan.", 3),
    ],
)
def test_a_plan_file_that_cannot_be_read_gets_a_code(world: World, content: str, code: str, exit_code: int) -> None:
    world.write("p.json", content)
    told = world.json("check", "p.json", code=exit_code)
    found = told["error"]["code"] if "error" in told else told["findings"][0]["code"]
    assert found.startswith(code)


def test_a_plan_file_that_is_missing_binary_or_a_folder_is_bad_input(world: World) -> None:
    (world.folder / "b.bin").write_bytes(b"\xff\xfe\xfa")
    for name in ("gone.json", "b.bin", "."):
        assert world.json("check", name, code=2)["error"]["code"] == "plan.cannot-read"


def test_explain_says_each_step_in_words_with_its_effect(world: World) -> None:
    plan = (
        'rows = read_csv("a.csv")\nfor row in rows:\n    if row["n"] > 3:\n        append_text("b.txt", row["name"])\n'
        '    else:\n        write_text("c.txt", "none")\nanswer(len(rows))\n'
    )
    world.write("p.py", plan)
    told = world.json("explain", "p.py")
    words = {step["path"]: step["words"] for step in told["steps"]}
    assert words["1"].startswith("For each row in rows")
    assert words["1/0"].startswith("If row[")
    assert words["1/0/else"] == "Otherwise:"
    assert words["2"] == "Answer with len(rows), and end."
    assert next(step["effect"] for step in told["steps"] if step["path"] == "1/0/then/0") == "writes"
    assert "at most" in told["summary"][1]


def test_explain_plans_a_request_first(world: World) -> None:
    result = world.call("explain", REQUEST, script=[PLAN])
    assert result.exit_code == 0, result.output
    assert "It changes nothing." in result.stdout


def test_a_misspelt_file_is_not_taken_for_a_request(world: World) -> None:
    assert world.json("explain", "gone.json", code=2)["error"]["code"] == "plan.cannot-read"


def test_tools_are_listed_by_toolbox_with_their_effect(world: World) -> None:
    listed = world.call("tools").stdout
    assert "grep(lines: list[str], pattern: str" in listed
    assert "[irreversible]" in listed
    names = [tool["name"] for tool in world.json("tools", "list")["tools"]]
    assert len(names) == len(set(names)) > 30


def test_one_tool_is_shown_and_a_misspelt_one_is_guessed(world: World) -> None:
    shown = world.call("tools", "show", "send_mail").stdout
    assert "to: list[str]  (directs" in shown
    error = world.json("tools", "show", "grpe", code=2)["error"]
    assert (error["code"], error["nearest"]) == ("tools.unknown", "grep")


def test_ones_own_tools_can_be_tried_before_they_are_used(world: World) -> None:
    world.write(
        "mine.py",
        "from bicameral import tool\n\n@tool(effect='pure')\ndef shout(text: str) -> str:\n    return text.upper()\n",
    )
    result = world.call("tools", "add-check", "mine.py")
    assert result.exit_code == 0, result.output
    assert "shout(text: str) -> str" in result.stdout
    world.write("broken.toml", "this is = = not toml")
    assert world.call("tools", "add-check", "broken.toml").exit_code == 2


def test_a_command_that_does_not_describe_itself_is_bad_input(world: World) -> None:
    assert world.call("tools", "describe", "true").exit_code == 2


def test_models_are_listed_and_their_absence_is_no_error(world: World) -> None:
    told = world.json("models", "list")
    assert {model["state"] for model in told["models"]} == {"missing"}
    assert {model["alias"] for model in told["models"] if model["used"]} == {"0.5b", "1.5b"}
    assert {m["alias"] for m in world.json("models", "list", "--profile", "small")["models"] if m["used"]} == {"0.5b"}
    assert world.json("models", "path", "0.5b", code=1)["path"] is None
    assert world.json("models", "verify", "0.5b", code=1)["models"][0]["state"] == "missing"
    assert world.json("models", "rm", "0.5b")["removed"] == {"0.5b": False}
    assert world.json("models", "path", "7b", code=2)["error"]["code"] == "models.unknown"


def test_a_file_that_is_not_the_model_is_refused(world: World) -> None:
    world.write("x.gguf", "no model")
    assert world.json("models", "pull", "0.5b", "--file", "x.gguf", code=1)["error"]["code"] == "models.damaged"


def test_a_run_can_be_listed_shown_and_replayed(world: World) -> None:
    ran = world.json("run", REQUEST, script=[PLAN])
    listed = world.json("runs", "list")["runs"]
    assert [(run["run"], run["status"], run["request"]) for run in listed] == [(ran["run"], "finished", REQUEST)]
    events = world.json("runs", "show", "last")["events"]
    assert [event["kind"] for event in events][0::9] == ["run-started"] or events[0]["kind"] == "run-started"
    assert events[-1]["kind"] == "run-finished"
    (world.folder / "mail.txt").unlink()
    replayed = world.json("runs", "replay", ran["run"][:12])
    assert (replayed["ok"], replayed["answer"]) == (True, ran["answer"])
    assert "read_lines" in world.call("runs", "show").stdout
    assert '"path": "mail.txt"' in world.call("runs", "show", "--full").stdout


def test_without_runs_there_is_nothing_to_show(world: World) -> None:
    assert world.call("runs").stdout == "no runs yet\n"
    assert world.json("runs", "show", "last", code=2)["error"]["code"] == "journal.no-runs"


def test_init_writes_a_file_that_loads_and_replaces_none(world: World) -> None:
    assert world.call("init").exit_code == 0
    tomllib.loads((world.folder / "bicameral.toml").read_text())
    assert world.json("init", code=2)["error"]["code"] == "config.exists"
    assert world.call("init", "--force").exit_code == 0
    assert world.json("tools", "list")["ok"] is True
    told = world.json("init", "--user")
    assert Path(told["file"]).is_file()


def test_doctor_exits_1_only_if_something_is_bad(world: World) -> None:
    assert world.call("doctor").exit_code == 0
    world.write("bicameral.toml", "[folders]\nread = ['gone']\n")
    told = world.json("doctor", code=1)
    assert [check["name"] for check in told["checks"] if check["status"] == "bad"] == ["folder to read"]
    world.write("bicameral.toml", "[folders\n")
    assert world.call("doctor").exit_code == 1


def test_a_wrong_configuration_stops_every_command_with_exit_code_2(world: World) -> None:
    world.write("bicameral.toml", "profil = 'small'\n")
    for words in (["run", REQUEST], ["tools", "list"], ["models", "list"], ["runs", "list"], ["check", "x"]):
        error = world.json(*words, code=2)["error"]
        assert (error["code"], error["nearest"]) == ("config.unknown-key", "profile")


def test_version_says_the_version(world: World) -> None:
    from importlib.metadata import version

    assert version("bicameral") in world.call("version").stdout
    assert version("bicameral") in world.call("--version").stdout
    assert world.json("version")["version"] == version("bicameral")


def test_chat_takes_several_requests_and_saves_the_last_answer(world: World) -> None:
    lines = f"{REQUEST}\n/save out.txt\n/plan\n/nonsense\n/again\ndo the thing\n\n/quit\n"
    result = world.call("chat", script=[PLAN], stdin=lines)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == ["invoice 7 is open", "invoice 9 is paid"] * 2
    assert (world.folder / "out.txt").read_text() == "invoice 7 is open\ninvoice 9 is paid\n"
    assert "there is no /nonsense" in result.stderr
    assert "[intent.questions]" in result.stderr


def test_chat_saves_nothing_outside_the_folders(world: World) -> None:
    result = world.call("chat", script=[PLAN], stdin=f"{REQUEST}\n/save ../out.txt\n")
    assert "error: " in result.stderr
    assert not (world.folder.parent / "out.txt").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_each_commands_one_line_of_help_is_the_one_in_the_list(name: str) -> None:
    import click

    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.get_short_help_str(limit=200) == COMMANDS[name]


def test_a_misspelt_command_is_guessed_and_a_bare_request_is_pointed_to_run(world: World) -> None:
    result = world.call("rnu", "x")
    assert result.exit_code == 2
    assert "Did you mean 'run'?" in result.stderr
    assert 'bicameral run "' in world.call("Count the lines of mail.txt").stderr


def test_a_fault_of_ours_is_told_as_one_without_a_traceback(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("bicameral.config.open_registry", broken)
    result = world.call("tools", "list")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "[cli.internal]" in result.stderr
    monkeypatch.setenv("BICAMERAL_DEBUG", "1")
    assert "Traceback" in world.call("tools", "list").stderr
