"""`bicameral run --strategy`: each phase is shown with its model, the answer is on standard output."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from strategies_world import Speaker, call

from bicameral import Agent
from bicameral.cli import main
from bicameral.config import Config

READ = [call("read_lines", path="mail.txt")]
WRITE = [call("write_text", path="out.txt", text="hello")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.txt").write_text("invoice 7 is open\nhello\n")
    (tmp_path / "bicameral.toml").write_text('[agent.planning_strategy_params]\nreading = "open"\n')
    return tmp_path


def made(privileged: list[Any], quarantined: list[Any]) -> Callable[[Config], Agent]:
    def make(config: Config) -> Agent:
        low = Speaker(quarantined, name="low", chamber="quarantined")
        return Agent.from_config(config, privileged=Speaker(privileged, name="high"), quarantined=low)

    return make


def run(*words: str, privileged: list[Any] | None = None, quarantined: list[Any] | None = None) -> Result:
    return CliRunner().invoke(main, ["run", *words], obj=made(privileged or [], quarantined or []))


def test_each_phase_is_shown_with_its_model(folder: Path) -> None:
    plan = json.dumps({"steps": ["read it"]})
    done = json.dumps({"verdict": "done", "note": ""})
    result = run(
        *("--strategy", "spar", "What is in mail.txt?"),
        privileged=["It is about a file.", plan, READ],
        quarantined=["It is read.", done, "An open invoice."],
    )
    assert (result.exit_code, result.stdout) == (0, "An open invoice.\n"), result.stderr
    for shown in ("sense: high (privileged)", "act: high (privileged), asks for read_lines", "ok read_lines"):
        assert shown in result.stderr, result.stderr
    for shown in ("act: low (quarantined)", "reflect: low", "final_answer: low (quarantined)", "executor"):
        assert shown in result.stderr, result.stderr


def test_nobody_there_means_no(folder: Path) -> None:
    result = run("--strategy", "native_react", "Copy mail.txt", privileged=[READ], quarantined=[WRITE])
    assert result.exit_code == 4, result.stderr
    assert "nothing had been changed" in result.stderr
    assert not (folder / "out.txt").exists()


def test_for_a_program_there_is_one_object(folder: Path) -> None:
    result = run("--strategy", "native_react", "--json", "x", privileged=[READ], quarantined=["two lines"])
    found = json.loads(result.stdout)
    assert (found["ok"], found["answer"], found["strategy"]) == (True, "two lines", "native_react")
    assert [turn["chamber"] for turn in found["turns"]] == ["privileged", "quarantined"]
    assert [turn["trusted"] for turn in found["turns"]] == [True, False]
    shown = json.loads(CliRunner().invoke(main, ["runs", "show", found["run"], "--json"]).stdout)
    assert [event["kind"] for event in shown["events"]].count("model-called") == 2
    failed = json.loads(run("--strategy", "native_react", "--json", "x", privileged=[READ], quarantined=[WRITE]).stdout)
    assert failed["error"]["code"] == "run.needs-approval"


def test_the_configured_strategy_is_taken(folder: Path) -> None:
    (folder / "bicameral.toml").write_text('[agent]\nplanning_strategy = "native_react"\n')
    result = run("What is in mail.txt?", privileged=["I do not know."])
    assert (result.exit_code, result.stdout) == (0, "I do not know.\n"), result.stderr


@pytest.mark.parametrize("more", [["--dry-run"], ["--rounds", "2"]])
def test_a_conversation_has_no_plan_to_show_first(folder: Path, more: list[str]) -> None:
    result = run("--strategy", "spar", *more, "x")
    assert result.exit_code == 2
    assert "no plan" in result.stderr
