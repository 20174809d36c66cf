"""The command line as a real process: speed, streams, exit codes, completion, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_world import PLAN, World
from click.testing import CliRunner

from bicameral.cli import main

PROGRAM = str(Path(sys.executable).with_name("bicameral"))


def called(*words: str, stdin: str = "", **options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *words], input=stdin, capture_output=True, text=True, timeout=60, env={**os.environ, **options}
    )


def children_seconds() -> float:
    """What the programs that this one started have taken of the processor: a busy machine does not change that."""
    used = os.times()
    return used.children_user + used.children_system


def test_help_comes_at_once_and_imports_nothing_heavy(world: World) -> None:
    called("--help")
    times: list[float] = []
    for _ in range(3):
        before = children_seconds()
        assert "explain" in called("--help").stdout
        times.append(children_seconds() - before)
    assert min(times) < 0.5
    loaded = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "bicameral.cli", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    ).stderr
    assert not re.search(r"\| +(pydantic|rich|httpx|xllamacpp|huggingface_hub|sandlock)$", loaded, re.MULTILINE)


OF_A_PROCESS = (["run", "--plan", "bad.py", "--json"], ["nonsense", "--json"])


def test_with_json_standard_output_is_one_object_whatever_happens(world: World) -> None:
    world.write("good.py", PLAN)
    world.write("bad.py", "answer(x)\n")
    for words, code in (
        (["run", "--plan", "good.py", "--json"], 0),
        (["run", "--plan", "bad.py", "--json"], 3),
        (["run", "--plan", "gone.py", "--json"], 2),
        (["run", "--json"], 2),
        (["run", "--nonsense", "--json"], 2),
        (["nonsense", "--json"], 2),
        (["runs", "show", "nope", "--json"], 2),
    ):
        done = world.call(*words)
        assert done.exit_code == code, (words, done.stderr)
        assert isinstance(done.exception, SystemExit | None), words
        assert isinstance(json.loads(done.stdout), dict), words
        if words in OF_A_PROCESS:
            started = called(*words)
            assert started.returncode == code, (words, started.stderr)
            assert isinstance(json.loads(started.stdout), dict), words
            assert "Traceback" not in started.stderr


def test_an_answer_can_be_piped_and_there_is_no_colour_where_there_is_no_terminal(world: World) -> None:
    world.write("p.py", PLAN)
    done = called("run", "--plan", "p.py")
    assert done.stdout == "invoice 7 is open\ninvoice 9 is paid\n"
    assert "\x1b" not in done.stdout + done.stderr


def test_a_reader_that_goes_away_is_no_traceback(world: World) -> None:
    world.write("p.py", "answer([str(n) for n in range(50000)])\n")
    done = subprocess.run(
        ["sh", "-c", f"{PROGRAM} run --plan p.py | head -1"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "0\n"
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_one_for_that_shell(world: World, shell: str) -> None:
    done = called("completion", shell)
    assert done.returncode == 0
    assert "_BICAMERAL_COMPLETE" in done.stdout
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=done.stdout, capture_output=True, text=True, timeout=30)
        assert checked.returncode == 0, checked.stderr


def test_the_shell_is_told_commands_tools_and_models(world: World) -> None:
    def completed(words: str, position: int) -> list[str]:
        variables = {"_BICAMERAL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position)}
        done = CliRunner().invoke(main, [], env=variables, prog_name="bicameral")
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    variables = {"_BICAMERAL_COMPLETE": "bash_complete", "COMP_WORDS": "bicameral ru", "COMP_CWORD": "1"}
    assert called(**variables).stdout == "plain,run\nplain,runs\n"
    assert completed("bicameral ru", 1) == ["run", "runs"]
    assert completed("bicameral tools show gr", 3) == ["grep", "group_rows"]
    assert "1.5b" in completed("bicameral models pull 1", 3)


@pytest.mark.parametrize(
    ("words", "breaks"),
    [
        ("tools show gr", "bicameral.config.open_registry"),
        ("models pull 1", "bicameral.models.known_weights"),
        ("patterns show i", "bicameral.catalog.catalog"),
        ("advise --fact to", "bicameral.catalog.advice.questions"),
        ("runs show 2", "bicameral.config.open_journal"),
        ("approvals show 2", "bicameral.config.load_config"),
    ],
)
def test_a_completion_that_fails_offers_nothing_and_says_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, words: str, breaks: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(breaks, broken)
    line = f"bicameral {words}"
    variables = {"_BICAMERAL_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    done = CliRunner().invoke(main, [], env=variables, prog_name="bicameral")
    assert (done.exit_code, done.output.strip()) == (0, "")


def test_ctrl_c_leaves_a_truthful_record(world: World) -> None:
    world.write(
        "slow.py",
        "import asyncio\nfrom pathlib import Path\nfrom bicameral import tool\n\n@tool(effect='read')\n"
        "async def wait_long(seconds: int) -> int:\n    Path('waiting').touch()\n"
        "    await asyncio.sleep(seconds)\n    return seconds\n",
    )
    world.write("bicameral.toml", '[toolboxes]\nuse = ["files"]\nfiles = ["slow.py"]\n')
    world.write("p.py", 'write_text("a.txt", "x")\nn = wait_long(50)\nanswer(n)\n')
    with subprocess.Popen(
        [PROGRAM, "run", "--plan", "p.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        deadline = time.monotonic() + 45
        while not (world.folder / "waiting").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, told = running.communicate(timeout=30)
    assert running.returncode == 130, told
    assert out == ""
    assert "stopped after" in told
    assert "done before that: write_text" in told
    assert "in flight" in told
    assert "step 1" in told
    assert world.json("runs", "list")["runs"][0]["status"] == "stopped"
