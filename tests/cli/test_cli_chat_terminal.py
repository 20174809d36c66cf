"""A conversation at a real terminal: a reference back, a question with choices, Ctrl-C, Ctrl-D, and the next sitting."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Sequence
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
    terminal.wait_for("Ctrl-D ends")
    return terminal


def plain(shown: str) -> str:
    """What was shown without colours and line breaks."""
    return " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).split())


@pytest.mark.parametrize("columns", [80, 40])
def test_a_reference_back_is_told_and_done(world: World, terminals: list[Terminal], columns: int) -> None:
    terminal = chatting(world, terminals, [FOUND, SAVE], columns)
    terminal.type(f"{FIND}\n")
    terminal.wait_for("done in")
    terminal.type("now save them to out.txt\n")
    terminal.wait_for("saved")
    assert f"understood as: now save them to out.txt [the result of: {FIND}]" in plain(terminal.shown)
    terminal.type("/history\n")
    terminal.wait_for("changed something")
    terminal.type("/undo\n")
    terminal.wait_for("[y/N]")
    terminal.type("y\n")
    terminal.wait_for("taken back")
    # Ctrl-C drops the line, and Ctrl-D ends, where the prompt is shown.
    terminal.type("half a requ")
    terminal.wait_for("half a requ")
    terminal.shown = ""
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait_for("> ")
    terminal.type("\x04")
    assert terminal.end() == 0, terminal.shown
    assert not (world.folder / "out.txt").exists()


def test_a_person_chooses_which_result_is_meant(world: World, terminals: list[Terminal]) -> None:
    terminal = chatting(world, terminals, [FOUND, COUNT, SAVE])
    terminal.type(f"{FIND}\n")
    terminal.wait_for("done in")
    terminal.shown = ""
    terminal.type("Count the lines of mail.txt\n")
    terminal.wait_for("done in")
    terminal.type("now save them to out.txt\n")
    terminal.wait_for("(a list)")
    terminal.type("2\n")
    terminal.wait_for("saved")
    terminal.type("/quit\n")
    assert terminal.end() == 0, terminal.shown
    assert len((world.folder / "out.txt").read_text().splitlines()) == 3


def test_the_next_sitting_says_that_the_conversation_goes_on(world: World, terminals: list[Terminal]) -> None:
    first = chatting(world, terminals, [FOUND])
    first.type(f"{FIND}\n")
    first.wait_for("done in")
    first.type("/quit\n")
    assert first.end() == 0, first.shown
    second = chatting(world, terminals, [SAVE])
    second.wait_for("/new begins another")
    second.type("now save them to out.txt\n")
    second.wait_for("saved")
    second.type("/quit\n")
    assert second.end() == 0, second.shown
