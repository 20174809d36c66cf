"""What is kept of submitted runs: keys, times, states without a worker, mistakes, erasing, and the doctor."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cli_office import EACH, FOUND, Office, until, working_here
from cli_terminal import PROGRAM, Terminal
from cli_world import World
from click.testing import CliRunner
from hypothesis import given, strategies as st

from bicameral.cli import main
from bicameral.cli._options import parse_seconds
from bicameral.config import Config

SECRET = "the whale sings at midnight"


def database(office: Office) -> Path:
    return Path(Config.load(base=office.world.folder).durable_database)


def test_who_only_looks_makes_no_database(office: Office) -> None:
    for words in (("runs", "list"), ("approvals", "list"), ("workers",), ("doctor",)):
        office.world.call(*words)
    assert office.world.json("approvals", "show", "x", code=2)["error"]["code"] == "durable.no-runs"
    assert not database(office).exists()


def test_a_database_that_a_folder_brings_along_is_named_and_not_used(office: Office) -> None:
    brought = office.world.folder / ".bicameral" / "durable.db"
    brought.parent.mkdir(exist_ok=True)
    brought.write_bytes(b"brought along")
    error = office.world.json("approvals", "show", "x", code=2)["error"]
    assert error["code"] == "durable.no-runs"
    assert 'database = ".bicameral/durable.db"' in error["fix"]
    office.world.json("submit", "Count the lines of mail.txt")
    assert brought.read_bytes() == b"brought along"
    assert database(office).exists()


def test_a_run_that_nobody_works_on_is_queued_in_every_listing(office: Office) -> None:
    result = office.world.call("submit", "Count the lines of mail.txt")
    run = result.stdout.strip()
    assert "no worker is there" in result.stderr
    (row,) = office.world.json("runs", "list")["runs"]
    assert (row["run"], row["status"], row["request"]) == (run, "queued", "Count the lines of mail.txt")
    shown = office.world.json("runs", "show")
    assert (shown["run"], shown["events"], shown["submitted"]["state"]) == (run, [], "queued")
    assert office.world.json("runs", "replay", run, code=1)["error"]["code"] == "durable.not-ended"
    assert office.world.json("runs", "erase", run, "--yes", code=1)["error"]["code"] == "durable.not-ended"
    assert office.world.json("runs", "cancel", run)["state"] == "stopped"
    assert office.world.json("runs", "list", "--state", "stopped")["runs"][0]["run"] == run


def test_the_same_key_is_the_same_run_and_never_another_request(office: Office) -> None:
    first = office.world.json("submit", "Count the lines of mail.txt", "--key", "k")
    again = office.world.json("submit", "Count the lines of mail.txt", "--key", "k")
    assert first["run"] == again["run"]
    other = office.world.json("submit", "Post mail.txt to kim@example.com", "--key", "k", code=2)
    assert first["run"] in other["error"]["message"]
    theirs = office.world.json("submit", "Count the lines of mail.txt", "--key", "k", "--user", "ann")
    assert theirs["run"] != first["run"]
    assert len(office.world.json("runs", "list")["runs"]) == 2


def test_a_run_for_later_says_when(office: Office) -> None:
    told = office.world.json("submit", "x y", "--in", "2h30m", "--priority", "1")
    due = datetime.fromisoformat(told["not_before"]) - datetime.now(UTC)
    assert timedelta(hours=2, minutes=29) < due <= timedelta(hours=2, minutes=30)
    assert told["priority"] == 1
    told = office.world.json("submit", "x y", "--at", "2099-03-01T09:00+01:00")
    assert datetime.fromisoformat(told["not_before"]) == datetime(2099, 3, 1, 8, tzinfo=UTC)
    assert "queued until 2099-03-01" in office.world.call("runs", "show", told["run"]).stdout
    resumed = office.world.json("runs", "resume", told["run"])
    assert (resumed["state"], resumed["not_before"]) == ("queued", None)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("x", "--plan", "p.py"),
        ("x", "--in", "1h", "--at", "09:00"),
        ("x", "--in", "soon"),
        ("x", "--in", "0s"),
        ("x", "--at", "2026-13-01"),
        ("x", "--priority", "10"),
        ("x", "--user", ""),
        ("  ",),
    ],
)
def test_what_makes_no_sense_is_not_submitted(office: Office, words: tuple[str, ...]) -> None:
    assert office.world.json("submit", *words, code=2)["ok"] is False
    assert office.world.json("runs", "list")["runs"] == []


def test_a_plan_that_does_not_pass_the_check_is_not_submitted(office: Office) -> None:
    office.world.write("bad.py", 'answer(read_lines("mail.txt") + 1)\n')
    assert office.world.json("submit", "--plan", "bad.py", code=3)["ok"] is False
    assert not database(office).exists()


def test_an_unknown_run_or_question_is_told_with_the_nearest(office: Office) -> None:
    run = office.world.json("submit", "x y")["run"]
    wrong = run[:-1] + ("0" if run[-1] != "0" else "1")
    for words in (("runs", "show"), ("runs", "watch"), ("runs", "cancel"), ("runs", "erase", "--yes")):
        error = office.world.json(*words, wrong, code=2)["error"]
        assert error["nearest"] == run, words
    assert office.world.json("approvals", "deny", wrong, code=2)["error"]["code"] == "durable.unknown-approval"


def test_a_missing_package_and_how_to_get_it_are_named(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bicameral.durable._views.REQUIRED_PACKAGES", ("no_such_package",))
    for words in (("submit", "x y"), ("worker", "--no-fetch")):
        error = office.world.json(*words, code=1)["error"]
        assert (error["code"], "bicameral[durable]" in error["fix"]) == ("durable.not-installed", True)


def test_a_database_that_cannot_be_reached_is_said_and_other_runs_are_still_there(office: Office) -> None:
    office.world.write("p.py", FOUND)
    run = office.world.json("run", "--plan", "p.py")["run"]
    office.world.write(
        "bicameral.toml",
        '[toolboxes]\nfiles = ["own.py"]\n[durable]\ndatabase = "postgresql://me:xyzzy@127.0.0.1:1/x"\n',
    )
    begun = time.monotonic()
    for words in (("submit", "x y"), ("approvals", "list"), ("workers",), ("runs", "verify"), ("runs", "show", "nope")):
        assert office.world.json(*words, code=1)["error"]["code"] == "durable.no-database", words
    assert time.monotonic() - begun < 60
    listed = office.world.call("runs", "list")
    assert run in listed.stdout
    assert "submitted runs are not shown" in listed.stderr
    assert office.world.json("runs", "show", run)["run"] == run
    checks = {check["name"]: check for check in office.world.json("doctor", code=1)["checks"]}
    assert checks["submitted runs"]["status"] == "bad"
    assert "xyzzy" not in str(checks) + listed.stderr


def test_erasing_a_run_leaves_nothing_of_it_in_any_file(office: Office) -> None:
    office.world.write("mail.txt", f"{SECRET}\n")
    run = office.submitted(EACH)
    with working_here():
        office.world.json("approvals", "approve", office.asked()["id"], "--all")
        assert office.ended(run)["state"] == "finished"
    held = [*Path(os.environ["XDG_STATE_HOME"]).rglob("*.db*"), database(office)]
    assert any(SECRET.encode() in file.read_bytes() for file in held)
    assert office.world.json("runs", "erase", run, code=4)["error"]["code"] == "run.needs-answer"
    gone = office.world.json("runs", "erase", run, "--yes")
    assert gone["events"] > 0
    assert gone["scrubbed"] is True
    assert office.world.json("runs", "list")["runs"][0]["status"] == "erased"
    assert office.world.json("approvals", "list", "--all")["approvals"] == []
    assert office.world.json("runs", "verify")["breaks"] == []
    with sqlite3.connect(database(office)) as db:
        text = "\n".join(db.iterdump())
    assert SECRET not in text
    assert not any(SECRET.encode() in file.read_bytes() for file in held if file.exists() and "journal" in file.name)


def test_pruning_takes_what_ended_long_ago_and_never_what_waits(office: Office) -> None:
    old = office.submitted(FOUND)
    waits = office.submitted(EACH)
    with working_here():
        assert office.ended(old)["state"] == "finished"
        office.asked()
    assert office.world.json("runs", "prune", "--older-than", "1h", "--yes")["runs"] == []
    time.sleep(1.1)
    refused = office.world.json("runs", "prune", "--older-than", "1s", "--unfinished", "--yes", code=1)
    assert refused["error"]["code"] == "durable.not-ended"
    assert office.world.json("runs", "prune", "--older-than", "1s", "--yes")["runs"] == [old]
    status = {row["run"]: row["status"] for row in office.world.json("runs", "list")["runs"]}
    assert status == {old: "erased", waits: "waiting"}
    assert office.world.json("runs", "prune", "--older-than", "ages", "--yes", code=2)["ok"] is False


def test_a_record_that_was_changed_is_noticed(office: Office) -> None:
    office.world.write("p.py", FOUND)
    run = office.world.json("run", "--plan", "p.py")["run"]
    assert office.world.json("runs", "verify")["ok"] is True
    (file,) = Path(os.environ["XDG_STATE_HOME"]).rglob("journal.db")
    with sqlite3.connect(file) as db:
        db.execute("DROP TRIGGER events_stay")
        db.execute("UPDATE events SET body = '{}' WHERE number = 1")
    told = office.world.json("runs", "verify", run, code=1)
    assert told["breaks"]
    checks = {check["name"]: check["status"] for check in office.world.json("doctor", code=1)["checks"]}
    assert checks["record"] == "bad"


def test_the_doctor_says_that_nobody_works(office: Office) -> None:
    office.world.json("submit", "x y")
    checks = {check["name"]: check for check in office.world.json("doctor", code=0)["checks"]}
    assert "1 queued" in checks["submitted runs"]["detail"]
    assert checks["workers"]["status"] == "warn"
    with working_here("one"):
        office.world.json("runs", "cancel", "last")
        until(lambda: office.world.json("workers")["workers"])
        checks = {check["name"]: check for check in office.world.json("doctor", code=0)["checks"]}
    assert "1 alive: one-" in checks["workers"]["detail"]


def test_at_a_terminal_an_approval_without_numbers_is_asked_about(office: Office, terminals: list[Terminal]) -> None:
    office.submitted(EACH)
    with working_here():
        id = office.asked()["id"]
    terminal = Terminal("approvals", "approve", id)
    terminals.append(terminal)
    terminal.wait_for("Allow these 2 calls?")
    assert "! text  invoice 7 is open" in terminal.shown
    terminal.type("e\n")
    terminal.wait_for("Allow call 1 of 2?")
    terminal.type("n\n")
    terminal.wait_for("Allow call 2 of 2?")
    terminal.type("y\n")
    assert terminal.end() == 0
    shown = office.world.json("approvals", "show", id)
    assert (shown["state"], shown["approved"]) == ("partly", [shown["calls"][1]["hash"]])


def test_erasing_asks_at_a_terminal(office: Office, terminals: list[Terminal]) -> None:
    office.world.write("p.py", FOUND)
    run = office.world.json("run", "--plan", "p.py")["run"]
    terminal = Terminal("runs", "erase", run)
    terminals.append(terminal)
    terminal.wait_for("for good? [y/N]")
    terminal.type("\n")
    assert terminal.end() == 1
    assert office.world.json("runs", "list")["runs"][0]["status"] == "finished"


def test_watching_is_ended_by_ctrl_c_and_the_run_is_not(office: Office) -> None:
    run = office.world.json("submit", "x y")["run"]
    with subprocess.Popen([PROGRAM, "runs", "watch", run], stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stderr is not None
        while "queued" not in watching.stderr.readline():
            pass
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 130
    assert office.world.json("runs", "show", run)["submitted"]["state"] == "queued"


def test_a_shell_completes_runs_and_questions(office: Office) -> None:
    run = office.submitted(EACH)
    with working_here():
        id = office.asked()["id"]
    for words, wanted in ((f"bicameral runs watch {run[:4]}", run), (f"bicameral approvals approve {id[:4]}", id)):
        position = str(len(words.split()) - 1)
        variables = {"_BICAMERAL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": position}
        done = CliRunner().invoke(main, [], env=variables, prog_name="bicameral")
        assert wanted in done.stdout, (done.stdout, done.stderr)


def test_no_help_loads_what_only_submitted_runs_need(world: World) -> None:
    for words in (["--help"], ["submit", "--help"], ["worker", "--help"], ["approvals", "--help"], ["runs", "--help"]):
        loaded = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "bicameral.cli", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stderr
        assert not re.search(
            r"\| +(dbos|sqlalchemy|psycopg|pydantic|rich|bicameral\.durable)$", loaded, re.MULTILINE
        ), words


UNITS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}


@given(st.dictionaries(st.sampled_from(list(UNITS)), st.integers(1, 20), min_size=1))
def test_a_time_is_the_sum_of_its_parts(parts: dict[str, int]) -> None:
    text = "".join(f"{number}{unit}" for unit, number in parts.items())
    assert parse_seconds(text) == sum(number * UNITS[unit] for unit, number in parts.items())


@pytest.mark.parametrize("text", ["", "d", "3", "1y", "-1d", "1d2", "0s", "1e9d", "99999w", "1 d x"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        parse_seconds(text)
