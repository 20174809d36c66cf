"""`bicameral follow`: what a run found becomes a request only by being shown and endorsed."""

from __future__ import annotations

import pytest
from cli_terminal import Terminal, opened
from cli_world import World

READ = 'answer(read_text("todo.txt"))\n'


@pytest.fixture
def found(world: World) -> World:
    """A world in which a run has read a list of things to do."""
    world.write("todo.txt", "Remove duplicates from mail.txt and find lines mentioning invoices\n")
    world.write("read.py", READ)
    assert world.call("run", "--plan", "read.py").exit_code == 0
    return world


def test_without_a_terminal_nothing_is_followed(found: World) -> None:
    result = found.call("follow", "last")
    assert result.exit_code == 4, result.output
    assert "[intent.needs-endorsement]" in result.stderr
    assert "│ Remove duplicates from mail.txt" in result.stderr
    assert "strangers had a hand in it: read_text" in result.stderr


def test_no_is_no(found: World, terminals: list[Terminal]) -> None:
    terminal = opened(terminals, "follow", "last", TERM="dumb")
    terminal.wait_for("Follow this as your own request? [y/N]")
    terminal.type("n\n")
    assert terminal.end() != 0
    assert "Plan" not in terminal.shown


def test_a_run_without_an_answer_cannot_be_followed(world: World) -> None:
    world.write("bad.py", 'answer(read_text("nothing.txt"))\n')
    assert world.call("run", "--plan", "bad.py").exit_code == 1
    result = world.call("follow", "last")
    assert result.exit_code == 2, result.output
    assert "[journal.no-answer]" in result.stderr
