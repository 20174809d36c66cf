"""Runs of patterns at the command line: listed, shown, replayed, resumed and submitted like any other run."""

from __future__ import annotations

import asyncio
import json

import pytest
from cli_world import MAIL, World, scripted

from bicameral.config import load_config
from bicameral.patterns import ReWOO
from bicameral.runs import Answers, ApprovalQuestion, Suspend, Waiting

REQUEST = "How many lines has mail.txt?"
READ = json.dumps({"calls": [{"tool": "read_text", "arguments": [{"name": "path", "value": "mail.txt"}]}]})
WRITE = json.dumps(
    {
        "calls": [
            {"tool": "read_text", "arguments": [{"name": "path", "value": "mail.txt"}]},
            {
                "tool": "write_text",
                "arguments": [{"name": "path", "value": "copy.txt"}, {"name": "text", "value": "#E1"}],
            },
        ]
    }
)


def test_a_run_is_listed_by_its_request_and_shown_with_its_notes(world: World) -> None:
    world.write("mail.txt", MAIL)
    told = world.json("patterns", "run", "R5", REQUEST, script=[READ])
    assert (told["ok"], told["pattern"]) == (True, "R5")
    [row] = world.json("runs", "list")["runs"]
    assert (row["run"], row["request"], row["status"]) == (told["run"], REQUEST, "finished")
    shown = world.call("runs", "show", "last").stdout
    assert f"{REQUEST} (pattern R5)" in shown
    assert "planned: calls 1, depth 0" in shown
    assert "Planner: " in shown


def test_a_run_is_replayed_and_nobody_is_asked(world: World) -> None:
    world.write("mail.txt", MAIL)
    run = world.json("patterns", "run", "R5", REQUEST, script=[READ])["run"]
    (world.folder / "mail.txt").unlink()
    told = world.json("runs", "replay", run)
    assert (told["ok"], told["differences"]) == (True, [])


def test_every_command_on_runs_knows_them(world: World) -> None:
    world.write("note.txt", "hello")
    plan = {
        "tool": "write_text",
        "arguments": [{"name": "path", "value": "new.txt"}, {"name": "text", "value": "Hello"}],
    }
    told = world.json("patterns", "run", "R5", "Write Hello into new.txt", script=[json.dumps({"calls": [plan]}), "ok"])
    assert (told["ok"], told["value"]) == (True, "ok"), told
    run = told["run"]
    assert (world.folder / "new.txt").read_text() == "Hello"
    assert world.json("runs", "verify", run)["breaks"] == []
    assert world.call("runs", "watch", run).exit_code == 0
    assert world.json("runs", "resume", run, script=[])["answer"] == "ok"
    assert world.json("usage")["ok"]
    assert world.call("undo", run, "--yes").exit_code == 0
    assert not (world.folder / "new.txt").exists()
    assert world.json("runs", "erase", run, "--yes")["ok"]


def test_a_file_that_was_there_before_is_not_replaced_without_a_question(world: World) -> None:
    """The twin is the new file above, and a request that says so."""
    world.write("new.txt", "what was here before")
    plan = {
        "tool": "write_text",
        "arguments": [{"name": "path", "value": "new.txt"}, {"name": "text", "value": "Hello"}],
    }
    script = [json.dumps({"calls": [plan]}), "ok"]
    told = world.json("patterns", "run", "R5", "Write Hello into new.txt", script=script, code=4)
    assert told["error"]["code"] == "run.needs-approval"
    assert (world.folder / "new.txt").read_text() == "what was here before"
    assert world.json("patterns", "run", "R5", "Overwrite new.txt with Hello", script=script)["ok"]
    assert (world.folder / "new.txt").read_text() == "Hello"


def test_a_run_that_waits_is_resumed_where_its_record_ends(world: World) -> None:
    world.write("mail.txt", MAIL)
    world.write("copy.txt", "what was here before")

    def absent(question: ApprovalQuestion) -> Answers:
        raise Suspend

    make = scripted([WRITE])
    assert make is not None

    async def begin() -> str:
        async with make(load_config()) as agent:
            waiting = await agent.run("Copy what mail.txt says", strategy=ReWOO(), approver=absent)
        assert isinstance(waiting, Waiting), waiting
        return waiting.run

    run = asyncio.run(begin())
    # Nobody is at a terminal here, so the answer is no. The models are not asked again: they have no reply left.
    told = world.json("runs", "resume", run, script=[], code=4)
    assert told["run"] == run
    assert told["error"]["code"] == "run.needs-approval"
    assert (world.folder / "copy.txt").read_text() == "what was here before"


def test_a_pattern_is_submitted_with_its_knobs(world: World) -> None:
    told = world.json("submit", REQUEST, "--pattern", "r5", "--knob", "max_calls=3")
    assert (told["state"], told["pattern"], told["request"]) == ("queued", "R5", REQUEST)
    assert world.json("runs", "list")["runs"][0]["request"] == REQUEST
    assert world.json("runs", "cancel", told["run"])["state"] == "stopped"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--pattern", "V15"), "pattern.needs-more"),
        (("--pattern", "R99"), "catalog.unknown-pattern"),
        (("--pattern", "R5", "--knob", "max_call=3"), "catalog.unknown-knob"),
        (("--pattern", "R5", "--knob", "max_calls=0"), "pattern.bad-knob"),
    ],
)
def test_what_cannot_be_submitted_is_refused_at_once(world: World, words: tuple[str, ...], code: str) -> None:
    done = world.call("submit", REQUEST, *words)
    assert done.exit_code != 0
    assert f"[{code}]" in done.stderr
    assert world.json("runs", "list")["runs"] == []


@pytest.mark.parametrize("words", [("--knob", "max_calls=3"), ("--pattern", "R5", "--plan", "p.py")])
def test_a_pattern_goes_with_a_request_and_a_knob_with_a_pattern(world: World, words: tuple[str, ...]) -> None:
    request = () if "--plan" in words else (REQUEST,)
    assert world.call("submit", *request, *words).exit_code == 2
