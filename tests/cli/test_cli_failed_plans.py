"""Requests without a plan at the command line, the model that plans, and tools that are not set up."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from cli_world import World, scripted
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from bicameral.agent import Agent
from bicameral.cli import main
from bicameral.config import Config

REQUEST = "Count the lines of mail.txt and write the longest one to longest.txt"
WRONG = 'lines = read_lines("mail.txt")\nwrite_text("longest.txt", lines.longest)\nanswer("Wrote longest.txt")\n'


def test_a_failed_plan_shows_the_attempt_and_what_to_try(world: World) -> None:
    result = world.call("run", "--deterministic", REQUEST, script=[WRONG] * 3)
    assert result.exit_code == 3
    said = result.stderr
    assert "[plan.none]" in said
    assert '2  write_text("longest.txt", lines.longest)' in said
    assert "line 2: it uses a part of a result that the result does not have" in said
    assert "try a part of it: bicameral run --deterministic 'Count the lines of mail.txt'" in said
    # The configured model is the largest there is.
    assert "larger model" not in said
    assert not (world.folder / "longest.txt").exists()


def test_a_larger_model_is_proposed_with_the_whole_command(world: World) -> None:
    result = world.call("plan", "--model", "0.5b", "--deterministic", REQUEST, script=[WRONG] * 3)
    (line,) = [line for line in result.stderr.splitlines() if "larger model" in line]
    command = line.partition("a larger model may find a plan: ")[2]
    assert shlex.split(command) == ["bicameral", "plan", "--model", "1.5b", "--deterministic", REQUEST]


def test_a_program_is_told_the_same(world: World) -> None:
    told = world.json("plan", "--model=0.5b", "--deterministic", REQUEST, script=[WRONG] * 3, code=3)["error"]
    assert told["code"] == "plan.none"
    assert told["attempt"] == WRONG.rstrip()
    assert told["wrong"][0]["plain"].startswith("line 2: it uses a part of a result")
    assert told["try"] == {"request": "Count the lines of mail.txt", "known": False}
    assert told["larger_models"] == ["1.5b"]
    smaller, larger = map(shlex.split, told["commands"])
    assert smaller[-2:] == ["Count the lines of mail.txt", "--json"]
    assert larger[:4] == ["bicameral", "plan", "--model", "1.5b"]


def test_what_code_knows_no_larger_model_could_do(world: World) -> None:
    told = world.json("run", "--model", "0.5b", "Mail the lines of mail.txt to Kim", script=[], code=3)["error"]
    assert told["code"] == "plan.absent-tool"
    assert "`smtp` under [toolbox.mail]" in told["fix"]
    assert "larger_models" not in told


def test_in_a_chat_too(world: World) -> None:
    result = world.call(
        "chat", "--model", "0.5b", "--deterministic", script=[WRONG] * 3, stdin=f"{REQUEST}\n/tools\n/quit\n"
    )
    assert "try a part of it: Count the lines of mail.txt" in result.stderr
    assert "a larger model may find a plan: bicameral chat --model 1.5b" in result.stderr
    assert "not set up: send_mail: no SMTP server is set" in result.stderr
    assert "send_mail(" not in result.stderr


def test_the_chosen_model_is_in_the_configuration_of_the_agent(world: World) -> None:
    seen: list[str] = []
    make = scripted(['lines = read_lines("mail.txt")\nanswer(len(lines))\n'])
    assert make is not None

    def watched(config: Config) -> Agent:
        seen.extend([config.weights("privileged"), config.weights("quarantined")])
        return make(config)

    result = CliRunner().invoke(main, ["run", "--model", "0.5b", "Count the lines of mail.txt"], obj=watched)
    assert result.exit_code == 0, result.output
    assert seen == ["0.5b", "0.5b"]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--model", "1.6b", "x"],
        ["plan", "--model", "1.6b", "x"],
        ["intent", "--model", "1.6b", "x"],
        ["chat", "--model", "1.6b"],
        ["explain", "--model", "1.6b", "Count the lines of x.txt"],
        ["follow", "--model", "1.6b"],
        ["worker", "--model", "1.6b"],
        ["serve", "--model", "1.6b"],
    ],
)
def test_an_unknown_model_is_an_error_of_every_command_that_plans(world: World, words: list[str]) -> None:
    result = world.call(*words, script=[])
    assert result.exit_code == 2, result.output
    assert "there is no model '1.6b'" in result.stderr
    assert "Did you mean '1.5b'?" in result.stderr
    assert "0.5b, 1.5b" in result.stderr


@pytest.mark.parametrize("words", [["--strategy", "spar", "x"], ["--plan", "plan.py"]])
def test_a_model_is_chosen_for_a_plan(world: World, words: list[str]) -> None:
    result = world.call("run", "--model", "0.5b", *words, script=[])
    assert result.exit_code == 2
    assert "--model names the model that writes a plan" in result.stderr


def test_names_of_models_are_completed(world: World) -> None:
    found = ShellComplete(main, {}, "bicameral", "_BICAMERAL_COMPLETE").get_completions(["run", "--model"], "1")
    assert [item.value for item in found] == ["1.5b", "135m"]


def test_tools_that_are_not_set_up_are_listed_with_the_setting(world: World) -> None:
    listed = world.call("tools", "list").stdout
    assert "cannot be used: no SMTP server is set. Set `smtp` under [toolbox.mail] in bicameral.toml." in listed
    assert "cannot be used: there is no calendar at 'calendar.ics'." in listed
    absent = {each["name"]: each for each in world.json("tools", "list")["absent"]}
    assert absent["send_mail"]["fix"] == "Set `smtp` under [toolbox.mail] in bicameral.toml."
    assert "no SMTP server" in world.call("tools", "show", "send_mail").stdout


def test_tools_that_are_set_up_are_not(world: World, tmp_path: Path) -> None:
    file = tmp_path / "sending.toml"
    file.write_text('[toolbox.mail]\naddress = "me@example.org"\nsmtp = { host = "localhost", tls = "none" }\n')
    absent = world.json("tools", "list", "--config", str(file))["absent"]
    assert "send_mail" not in [each["name"] for each in absent]


def test_doctor_names_them(world: World) -> None:
    checks = {check["name"]: check for check in world.json("doctor")["checks"]}
    assert checks["tool send_mail"]["detail"] == "in no plan: no SMTP server is set"
    assert checks["tool send_mail"]["fix"] == "Set `smtp` under [toolbox.mail] in bicameral.toml."
