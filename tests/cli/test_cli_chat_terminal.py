"""A conversation at a real terminal: a reference back, a question with choices, undo, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from cli_terminal import Terminal, opened
from cli_world import World

PROGRAM = Path(__file__).with_name("scripted_program.py")
FIND = "Find the lines of mail.txt that mention invoice"
FOUND = 'answer(grep(read_lines("mail.txt"), "invoice"))\n'
COUNT = 'answer(len(read_lines("mail.txt")))\n'
SAVE = 'write_lines("out.txt", result)\nanswer("saved")\n'


def chatting(world: World, terminals: list[Terminal], script: Sequence[str], columns: int = 80) -> Terminal:
    program = (sys.executable, str(PROGRAM))
    variables = {"COLUMNS": str(columns), "SCRIPTED_REPLIES": json.dumps(script)}
    terminal = opened(terminals, "chat", "--deterministic", program=program, **variables)
    terminal.wait_for("> ")
    return terminal


def plain(shown: str) -> str:
    """What was shown without colours and line breaks."""
    return " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).split())


def say(terminal: Terminal, text: str, answer: str) -> str:
    """Type a line at the prompt, wait for what comes of it and for the next prompt; returns what was shown."""
    terminal.shown = ""
    terminal.type(f"{text}\n")
    terminal.wait_for(answer)
    before, _, terminal.shown = terminal.shown.rpartition(answer)
    terminal.wait_for("> ")
    return plain(before + answer + terminal.shown)


def interrupt(terminal: Terminal) -> None:
    """Send the signal of Ctrl-C until there is a new prompt.

    One that comes between the prompt and the read of the line is seen by Python when the read ends, and not before.
    """
    terminal.shown = ""
    for _ in range(10):
        terminal.process.send_signal(signal.SIGINT)
        with suppress(AssertionError):
            terminal.wait_for("> ", seconds=3)
            return
    terminal.wait_for("> ")


@pytest.mark.parametrize("columns", [80, 40])
def test_a_reference_back_is_told_done_and_taken_back(world: World, terminals: list[Terminal], columns: int) -> None:
    terminal = chatting(world, terminals, [FOUND, SAVE], columns)
    say(terminal, FIND, "done in")
    shown = say(terminal, "now save them to out.txt", "done in")
    assert f"understood as: now save them to out.txt [the result of: {FIND}]" in shown
    assert len((world.folder / "out.txt").read_text().splitlines()) == 3
    assert "changed something" in say(terminal, "/history", "2  now save")
    terminal.type("/undo\n")
    terminal.wait_for("[y/N]")
    say(terminal, "y", "taken back")
    assert not (world.folder / "out.txt").exists()
    # Ctrl-C drops the line, and Ctrl-D ends.
    interrupt(terminal)
    terminal.type("\x04")
    assert terminal.end() == 0, terminal.shown


def test_a_person_chooses_which_result_is_meant(world: World, terminals: list[Terminal]) -> None:
    terminal = chatting(world, terminals, [FOUND, COUNT, SAVE])
    say(terminal, FIND, "done in")
    say(terminal, "Count the lines of mail.txt", "done in")
    terminal.type("now save them to out.txt\n")
    terminal.wait_for("(a list)")
    say(terminal, "2", "done in")
    terminal.type("/quit\n")
    assert terminal.end() == 0, terminal.shown
    assert len((world.folder / "out.txt").read_text().splitlines()) == 3


def test_the_next_sitting_says_that_the_conversation_goes_on(world: World, terminals: list[Terminal]) -> None:
    first = chatting(world, terminals, [FOUND])
    say(first, FIND, "done in")
    first.type("/quit\n")
    assert first.end() == 0, first.shown
    second = chatting(world, terminals, [SAVE])
    second.wait_for("goes on after one request")
    say(second, "now save them to out.txt", "done in")
    assert len((world.folder / "out.txt").read_text().splitlines()) == 3
