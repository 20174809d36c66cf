"""The command line at a real terminal: questions, confirmation, live progress, Ctrl-C at a prompt."""

from __future__ import annotations

import json
import re
import signal
import subprocess

from cli_terminal import PROGRAM, Terminal, opened
from cli_world import World

SEND = 'delete_file("mail.txt")\nanswer("gone")\n'
ASK = 'name = ask("What is your name?")\nage = ask("How old?", int)\nanswer(f"{name} {age}")\n'


def test_before_something_is_changed_for_good_a_person_is_asked_and_no_means_no(
    world: World, terminals: list[Terminal]
) -> None:
    world.write("p.py", SEND)
    terminal = opened(terminals, "run", "--plan", "p.py")
    terminal.wait_for("[y/N]")
    assert "changes for good with delete_file" in terminal.shown
    terminal.type("n\n")
    assert terminal.end() == 1
    assert "not run" in terminal.shown
    assert (world.folder / "mail.txt").exists()


def test_yes_runs_it(world: World, terminals: list[Terminal]) -> None:
    world.write("p.py", SEND)
    terminal = opened(terminals, "run", "--plan", "p.py")
    terminal.wait_for("[y/N]")
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.shown
    assert "gone" in terminal.shown
    assert not (world.folder / "mail.txt").exists()


def test_with_yes_nobody_is_asked(world: World, terminals: list[Terminal]) -> None:
    world.write("p.py", SEND)
    terminal = opened(terminals, "run", "--plan", "p.py", "--yes")
    assert terminal.end() == 0, terminal.shown
    assert "[y/N]" not in terminal.shown


def test_a_plan_that_asks_gets_typed_replies_and_asks_again_when_one_does_not_fit(
    world: World, terminals: list[Terminal]
) -> None:
    world.write("p.py", ASK)
    terminal = opened(terminals, "run", "--plan", "p.py")
    terminal.wait_for("? What is your name?")
    terminal.type("Kim\n")
    terminal.wait_for("? How old? (a whole number)")
    terminal.type("old\n")
    terminal.wait_for("that is not a whole number")
    terminal.type("31\n")
    assert terminal.end() == 0, terminal.shown
    assert "Kim 31" in terminal.shown


def test_what_nothing_is_called_is_asked_for_by_its_name(world: World, terminals: list[Terminal]) -> None:
    world.write("p.py", 'delete_file(file("zebra"))\nanswer("gone")\n')
    terminal = opened(terminals, "run", "--plan", "p.py")
    terminal.wait_for("Which file is meant by *zebra*? None is called that")
    terminal.wait_for("Its name, or none:")
    terminal.type("mial.txt\n")
    terminal.wait_for("No file is called *mial.txt*.")
    terminal.wait_for("1. mail.txt")
    terminal.type("none\n")
    assert terminal.end() != 0
    assert "nothing-found" in terminal.shown
    assert (world.folder / "mail.txt").exists()


def test_ctrl_c_at_a_question_stops_the_run_and_records_it(world: World, terminals: list[Terminal]) -> None:
    world.write("p.py", ASK)
    terminal = opened(terminals, "run", "--plan", "p.py")
    terminal.wait_for("? What is your name?")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130, terminal.shown
    assert "stopped after" in terminal.shown
    listed = subprocess.run([PROGRAM, "runs", "list", "--json"], capture_output=True, text=True, timeout=60)
    assert json.loads(listed.stdout)["runs"][0]["status"] == "stopped"


def test_steps_are_ticked_off_in_colour_and_no_color_is_honoured(world: World, terminals: list[Terminal]) -> None:
    world.write("p.py", 'lines = read_lines("mail.txt")\nanswer(len(lines))\n')
    colourful = opened(terminals, "run", "--plan", "p.py")
    assert colourful.end() == 0, colourful.shown
    assert "✓" in colourful.shown
    assert "\x1b[32m" in colourful.shown
    plain = opened(terminals, "run", "--plan", "p.py", NO_COLOR="1")
    assert plain.end() == 0
    assert "✓" in plain.shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", plain.shown)


def test_a_dumb_terminal_gets_plain_lines(world: World, terminals: list[Terminal]) -> None:
    world.write("p.py", 'lines = read_lines("mail.txt")\nanswer(len(lines))\n')
    terminal = opened(terminals, "run", "--plan", "p.py", TERM="dumb")
    assert terminal.end() == 0
    assert "\x1b" not in terminal.shown
    assert "ok read_lines" in terminal.shown


def test_what_a_stranger_wrote_cannot_steer_the_terminal(world: World, terminals: list[Terminal]) -> None:
    world.write("mail.txt", "\x1b]0;owned\x07\x1b[2Jhello\n")
    world.write("p.py", 'answer(read_text("mail.txt"))\n')
    terminal = opened(terminals, "run", "--plan", "p.py")
    assert terminal.end() == 0, terminal.shown
    assert "<001b>]0;owned<0007>" in terminal.shown
    assert "\x1b]0;owned" not in terminal.shown
