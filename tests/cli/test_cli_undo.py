"""`bicameral undo` and the differences that are shown before anything changes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from cli_office import Office, working_here
from cli_terminal import Terminal, opened
from cli_world import MAIL, World

from bicameral.cli import _prompts as _approving
from bicameral.cli._output import Output
from bicameral.cli._prompts import TerminalApprover
from bicameral.cli.commands.undo import undo_run
from bicameral.config import load_config, open_registry
from bicameral.runs import ApprovalQuestion, PendingCall

REPLACE = 'write_text("mail.txt", "new\\n")\nanswer("done")\n'
SAVE = "Write the word new to mail.txt"


def ran(world: World, source: str) -> str:
    """The id of a run of this plan."""
    world.write("p.py", source)
    result = world.call("run", "--plan", "p.py", "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["run"]


def test_a_run_is_taken_back_by_its_id_its_beginning_or_last(world: World) -> None:
    for name in ("id", "beginning", "last"):
        run = ran(world, REPLACE)
        assert (world.folder / "mail.txt").read_text() == "new\n"
        wanted = {"id": run, "beginning": run[:-2], "last": "last"}[name]
        told = world.json("undo", wanted, "--yes")
        assert (told["ok"], told["run"]) == (True, run)
        assert [(each["action"], each["path"]) for each in told["files"]] == [("restore", "mail.txt")]
        assert (world.folder / "mail.txt").read_text() == MAIL


def test_a_dry_run_of_undo_shows_the_difference_and_changes_nothing(world: World) -> None:
    ran(world, REPLACE)
    result = world.call("undo", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "mail.txt: changed, 1 line becomes 4" in result.stderr
    assert "-new" in result.stderr
    assert "+invoice 9 is paid" in result.stderr
    assert (world.folder / "mail.txt").read_text() == "new\n"
    assert world.json("undo", "--yes")["ok"]


def test_where_nobody_can_be_asked_nothing_is_taken_back(world: World) -> None:
    ran(world, REPLACE)
    assert world.json("undo", code=4)["error"]["code"] == "run.needs-answer"
    assert (world.folder / "mail.txt").read_text() == "new\n"


@pytest.mark.parametrize("reply", ["y", "n"])
def test_at_a_terminal_the_difference_is_shown_and_a_person_is_asked(
    world: World, terminals: list[Terminal], reply: str
) -> None:
    ran(world, REPLACE)
    terminal = opened(terminals, "undo", "last")
    terminal.wait_for("Take back 1 change of run")
    assert "+invoice 9 is paid" in terminal.shown
    terminal.type(f"{reply}\n")
    assert terminal.end() == (0 if reply == "y" else 1)
    assert (world.folder / "mail.txt").read_text() == (MAIL if reply == "y" else "new\n")


def test_a_file_that_was_changed_since_is_named(world: World) -> None:
    ran(world, REPLACE)
    world.write("mail.txt", "mine\n")
    refused = world.json("undo", "--yes", code=1)
    assert refused["error"]["code"] == "run.undo-conflict"
    assert "mail.txt" in refused["error"]["message"]
    shown = world.json("undo", "--dry-run", code=1)
    assert [each["path"] for each in shown["conflicts"]] == ["mail.txt"]
    assert (world.folder / "mail.txt").read_text() == "mine\n"


def test_a_second_undo_and_one_of_nothing_are_refused(world: World) -> None:
    ran(world, REPLACE)
    assert world.json("undo", "--yes")["ok"]
    assert world.json("undo", "--yes", code=1)["error"]["code"] == "run.undone"
    ran(world, 'answer("nothing")\n')
    assert world.json("undo", "--yes", code=1)["error"]["code"] == "run.nothing-to-undo"


def test_undo_writes_only_where_the_configuration_lets_tools_write_now(world: World) -> None:
    ran(world, REPLACE)
    (world.folder / "out").mkdir()
    world.write("bicameral.toml", '[folders]\nread = ["."]\nwrite = ["out"]\n')
    refused = world.json("undo", "--yes", code=1)
    assert refused["error"]["code"] == "run.undo-conflict"
    assert "outside" in refused["error"]["message"]
    assert (world.folder / "mail.txt").read_text() == "new\n"


def test_a_submitted_run_is_taken_back_after_it_has_ended(office: Office) -> None:
    run = office.submitted('write_text("made/new.txt", "x")\nwrite_text("mail.txt", "x")\nanswer("done")\n')
    assert office.world.json("undo", run, "--yes", code=1)["error"]["code"] == "durable.not-ended"
    before = (office.world.folder / "mail.txt").read_text()
    with working_here():
        assert office.ended(run)["state"] == "finished"
    assert (office.world.folder / "made/new.txt").exists()
    assert office.world.json("undo", run, "--yes")["ok"]
    assert not (office.world.folder / "made").exists()
    assert (office.world.folder / "mail.txt").read_text() == before


def test_the_function_behind_the_command_serves_other_commands(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(world, REPLACE)
    assert asyncio.run(undo_run(Output(), load_config(), yes=True)) == 0
    assert "taken back" in capsys.readouterr().out
    assert (world.folder / "mail.txt").read_text() == MAIL


def test_events_of_a_run_show_which_file_and_not_what_it_held(world: World) -> None:
    run = ran(world, REPLACE)
    shown = world.call("runs", "show", run, "--full").stdout
    assert "file-change" in shown
    assert "mail.txt" in shown
    assert '"content"' not in shown
    facts = world.json("runs", "show", run)
    changes = [event["body"] for event in facts["events"] if event["kind"] == "file-change"]
    assert [sorted(each["changes"][0]) for each in changes] == [["after", "before", "path"]]


def test_a_dry_run_shows_what_would_change_in_files(world: World) -> None:
    source = (
        'lines = read_lines("mail.txt")\nkept = unique_lines(lines)\nwrite_lines("kept.txt", kept)\n'
        'append_text("mail.txt", "end")\nanswer("done")\n'
    )
    world.write("p.py", source)
    result = world.call("run", "--plan", "p.py", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "kept.txt: created, 3 lines" in result.stderr
    assert "+invoice 9 is paid" in result.stderr
    assert "mail.txt: changed, 4 lines become 5" in result.stderr
    assert sorted(path.name for path in world.folder.iterdir()) == ["mail.txt", "p.py"]
    facts = world.json("run", "--plan", "p.py", "--dry-run")
    assert [(each["tool"], each["files"][0]["kind"]) for each in facts["changes"]] == [
        ("write_lines", "created"),
        ("append_text", "changed"),
    ]


def test_a_dry_run_says_of_which_changes_nothing_is_known_yet(world: World) -> None:
    world.write(
        "p.py", 'name = ask("Which?")\nwrite_text("a.txt", name)\nwrite_text("b.txt", "fixed")\nanswer("done")\n'
    )
    result = world.call("run", "--plan", "p.py", "--dry-run")
    assert "step 1 (write_text): what it changes depends on what the plan does before" in result.stderr
    assert "b.txt: created, 1 line" in result.stderr
    assert not (world.folder / "b.txt").exists()


def test_a_difference_hides_nothing(world: World) -> None:
    """What would be written cannot draw on the terminal or hide a character."""
    world.write("p.py", 'write_text("a.txt", "x\\u001b[2Jy\\u202ez")\nanswer("done")\n')
    result = world.call("run", "--plan", "p.py", "--dry-run")
    assert "\u001b[2J" not in result.stderr
    assert "\u202e" not in result.stderr
    assert "a.txt: created" in result.stderr


def test_a_plan_for_a_request_asks_before_it_replaces_a_file(world: World) -> None:
    refused = world.json("run", SAVE, script=[REPLACE], code=4)
    assert refused["error"]["code"] == "run.needs-approval"
    assert "replace what a file holds" in refused["error"]["message"]
    assert (world.folder / "mail.txt").read_text() == MAIL


def test_with_yes_a_file_is_replaced_without_a_question(world: World) -> None:
    result = world.call("run", SAVE, "--yes", script=[REPLACE])
    assert result.exit_code == 0, result.output
    assert (world.folder / "mail.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    "request_",
    [
        "Overwrite mail.txt with the word new",
        "Überschreibe mail.txt mit dem Wort new",
        "Remplace le contenu de mail.txt par le mot new",
        "Actualiza mail.txt con la palabra new",
    ],
)
def test_a_request_that_says_so_is_not_asked_about(world: World, request_: str) -> None:
    result = world.call("run", request_, "--deterministic", script=[REPLACE])
    assert result.exit_code == 0, result.output
    assert (world.folder / "mail.txt").read_text() == "new\n"


def test_a_new_file_and_one_of_the_run_itself_are_not_asked_about(world: World) -> None:
    source = 'write_text("new.txt", "one")\nwrite_text("new.txt", "two")\nappend_text("mail.txt", "x")\nanswer(1)\n'
    result = world.call("run", "Write one and two to new.txt and x to mail.txt", script=[source])
    assert result.exit_code == 0, result.output
    assert (world.folder / "new.txt").read_text() == "two"


def test_the_question_shows_what_the_file_holds_and_the_difference_on_demand(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = iter(["d", "n"])

    async def read(prompt: str) -> str:
        return next(replies)

    monkeypatch.setattr(_approving, "read_line", read)
    registry = open_registry(load_config())
    arguments = {"path": "mail.txt", "text": "new\n"}
    why = "write_text: it would replace what a file holds. Replace it?"
    call = PendingCall("1", "write_text", "write", arguments, "hash", why, (), ("replaces-a-file",))
    answers = asyncio.run(TerminalApprover(Output(), registry).approve(ApprovalQuestion((call,))))
    assert not answers.approved
    shown = capsys.readouterr().err
    first, _, details = shown.partition("changes:")
    assert "mail.txt: changed, 4 lines become 1" in first
    assert "-invoice 9 is paid" in details
    assert (world.folder / "mail.txt").read_text() == MAIL


def test_undo_of_a_calendar_and_its_difference(world: World) -> None:
    source = 'add_event("Lunch", datetime("2026-03-05T12:00"))\nanswer("done")\n'
    run = ran(world, source)
    assert (world.folder / "calendar.ics").exists()
    told = world.json("undo", run, "--yes")
    assert [(each["action"], Path(each["path"]).name) for each in told["files"]] == [("delete", "calendar.ics")]
    assert not (world.folder / "calendar.ics").exists()
