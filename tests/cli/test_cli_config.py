"""`bicameral config`, and what other commands do in a folder whose configuration is not accepted."""

from __future__ import annotations

import pytest
from cli_terminal import Terminal, opened
from cli_world import World

pytestmark = pytest.mark.unaccepted

OWN = """\
from pathlib import Path
from bicameral import tool
Path("ran").touch()

@tool(effect="pure")
def one() -> int:
    "One."
    return 1
"""


@pytest.fixture
def sent(world: World) -> World:
    """A folder that somebody sent, with code in it."""
    world.write("own.py", OWN)
    world.write("bicameral.toml", '[toolboxes]\nfiles = ["own.py"]\n')
    return world


def ran(world: World) -> bool:
    return (world.folder / "ran").exists()


def test_without_a_terminal_the_code_of_a_folder_does_not_run_and_both_streams_say_so(sent: World) -> None:
    result = sent.call("tools", "list")
    assert result.exit_code == 0
    assert "toolboxes.files" in result.stderr
    assert "[config.unaccepted]" in result.stderr
    told = sent.json("tools", "list")
    assert told["ok"] is True
    assert told["unaccepted"]["code"] == "config.unaccepted"
    assert told["unaccepted"]["withheld"] == ["toolboxes.files"]
    assert not ran(sent)


def test_accept_uses_it_from_then_on_and_forget_ends_that(sent: World) -> None:
    assert sent.json("config", "show")["withheld"] == ["toolboxes.files"]
    accepted = sent.json("config", "accept")
    assert accepted["files"] == [str(sent.folder / "own.py")]
    assert not ran(sent), "to accept is not to run"
    assert "unaccepted" not in sent.json("tools", "list")
    assert ran(sent)
    assert sent.json("config", "show")["withheld"] == []
    assert sent.json("config", "forget")["was_accepted"] is True
    assert "unaccepted" in sent.json("tools", "list")


def test_a_file_that_is_named_is_used(sent: World) -> None:
    assert "unaccepted" not in sent.json("tools", "list", "--config", "bicameral.toml")
    assert ran(sent)


def test_there_is_nothing_to_accept_without_a_file(world: World) -> None:
    assert world.json("config", "accept", code=2)["error"]["code"] == "config.unreadable"
    assert world.json("config", "show")["file"] is None


def test_what_init_writes_is_accepted_and_stays_so_until_it_widens(world: World) -> None:
    world.call("init")
    assert world.json("config", "show")["withheld"] == []
    text = (world.folder / "bicameral.toml").read_text()
    world.write("bicameral.toml", text.replace('mode = "strict"', 'mode = "normal"'))
    assert world.json("config", "show")["withheld"] == ["policy.mode"]


def test_the_doctor_says_it(sent: World) -> None:
    assert "own.py" not in sent.call("doctor").stdout
    assert "bicameral config accept" in sent.call("doctor").stdout


def test_at_a_terminal_it_is_shown_and_confirmed_once(sent: World, terminals: list[Terminal]) -> None:
    terminal = opened(terminals, "tools", "show", "one")
    terminal.wait_for("[y/N]")
    assert "own.py" in terminal.shown
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.shown
    again = opened(terminals, "tools", "show", "one")
    assert again.end() == 0
    assert "[y/N]" not in again.shown


def test_a_no_at_a_terminal_goes_on_without_it(sent: World, terminals: list[Terminal]) -> None:
    terminal = opened(terminals, "tools", "list")
    terminal.wait_for("[y/N]")
    terminal.type("\n")
    assert terminal.end() == 0, terminal.shown
    assert "not used: toolboxes.files" in terminal.shown
    assert not ran(sent)
