"""`bicameral run --rounds`: each round is shown, the answer is on standard output, exit codes say how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bicameral import Agent, ScriptedProvider
from bicameral.cli import main
from bicameral.config import Config

FIRST = 'lines = read_lines("mail.txt")\ncount = len(lines)\nlook(count)\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.txt").write_text("invoice 7 is open\nhello\n")
    return tmp_path


def made(*plans: str) -> Callable[[Config], Agent]:
    def make(config: Config) -> Agent:
        return Agent.from_config(
            config,
            privileged=ScriptedProvider(list(plans), grammars=False),
            quarantined=ScriptedProvider([("", '{"value": 12}')], grammars=False),
        )

    return make


def call(*words: str, plans: tuple[str, ...] = (), request: str = "Count the lines of mail.txt") -> Result:
    return CliRunner().invoke(main, ["run", "--deterministic", *words, request], obj=made(*plans))


def test_every_round_is_shown_and_the_answer_is_on_standard_output(folder: Path) -> None:
    result = call("--rounds", "3", plans=(FIRST, 'answer(f"{count} lines")\n'))
    assert (result.exit_code, result.stdout) == (0, "2 lines\n")
    for shown in ("Round 1", "look(count)", "proved", "ok read_lines", "told: count = 2", "Round 2", "2 rounds"):
        assert shown in result.stderr, shown


def test_for_a_program_there_is_one_object_with_the_rounds(folder: Path) -> None:
    result = call("--rounds", "3", "--json", plans=(FIRST, "answer(count)\n"))
    found = json.loads(result.stdout)
    assert (found["ok"], found["answer"], found["taken"]["rounds"]) == (True, 2, 2)
    first, second = found["rounds"]
    assert (first["told"], first["proof"]["proved"]) == (["count = 2"], True)
    shown = json.loads(CliRunner().invoke(main, ["runs", "show", second["run"], "--json"]).stdout)
    assert shown["events"][0]["body"]["part_of"] == {"reason": found["reason"], "round": 2}
    whole = CliRunner().invoke(main, ["runs", "show", found["reason"]])
    assert whole.stdout.count("reason-round") == 2
    assert "told: count = 2" in whole.stdout


def test_a_replay_of_a_whole_reasoning_says_what_can_be_replayed(folder: Path) -> None:
    found = json.loads(call("--rounds", "2", "--json", plans=("answer(1)\n",)).stdout)
    replayed = CliRunner().invoke(main, ["runs", "replay", found["reason"]])
    assert replayed.exit_code == 2
    assert "Replay its rounds one by one" in replayed.stderr


def test_a_bound_that_was_reached_is_an_error_and_says_which(folder: Path) -> None:
    result = call("--rounds", "2", plans=(FIRST, *["look(count)\n"] * 5))
    assert result.exit_code == 1
    assert "no answer within 2 rounds" in result.stderr
    assert "nothing had been changed" in result.stderr


def test_where_nobody_can_be_asked_the_exit_code_says_so(folder: Path) -> None:
    post = 'if count > 1:\n    write_text("out.txt", "many")\nanswer("written")\n'
    result = call(
        "--rounds", "2", plans=(FIRST, post), request='Count the lines of mail.txt and write "many" to out.txt'
    )
    assert result.exit_code == 4, result.stderr
    assert not (folder / "out.txt").exists()


@pytest.mark.parametrize("words", [("--dry-run",), ("--plan", "x.py")])
def test_rounds_go_with_a_request_that_is_run(folder: Path, words: tuple[str, ...]) -> None:
    arguments = ["run", "--rounds", "2", *words, *([] if "--plan" in words else ["Count the lines of mail.txt"])]
    result = CliRunner().invoke(main, arguments, obj=made())
    assert result.exit_code == 2
    assert "--rounds goes with a request" in result.stderr
