"""A session in a real terminal, at 80 and at 40 columns: first plan, approval, a reference back, undo, the end."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from cli_world import World
from terminal_sessions import TerminalSession, broken_words, open_terminal, program_words
from test_cli_approvals import FORWARD, POST, posted

SCRIPTED = Path(__file__).with_name("scripted_program.py")
FORWARDS = "Forward mail.txt to kim@example.com"
FINDS = "Find line 7 in mail.txt"
FOUND = 'answer(grep(read_lines("mail.txt"), "line 7"))\n'
SAVED = 'write_lines("found.txt", result)\nanswer(f"kept {len(result)} line")\n'
WIDE = 200


@pytest.fixture
def office(world: World) -> World:
    """The world with a tool that posts, and a mail that leads somewhere."""
    world.write("mail.txt", "".join(f"line {number} of the mail\n" for number in range(30)) + "see www.example.org\n")
    world.write("own.py", POST)
    world.write("bicameral.toml", '[toolboxes]\nfiles = ["own.py"]\n')
    return world


def start(*words: str, columns: int, script: list[str], own: bool = False) -> AbstractContextManager[TerminalSession]:
    """The command line with a scripted model, at a terminal of this width."""
    variables = {"SCRIPTED_REPLIES": json.dumps(script)}
    return open_terminal(program_words(SCRIPTED, *words), columns=columns, variables=variables, own=own)


def forward(columns: int, *, own: bool = False) -> list[str]:
    """Plan, look at the details, say yes; returns everything that was on the screen."""
    words = ("run", FORWARDS, "--deterministic", "--no-cache")
    with start(*words, columns=columns, script=[FORWARD] * 3, own=own) as terminal:
        terminal.wait_for("Allow this call? [y/N, d: details]")
        first = terminal.flowing()
        assert 'post("kim@example.com", text)' in first
        assert f'Post to kim@example.com — you asked: "{FORWARDS}"' in first
        assert "! others may have written text: read_text" in first
        assert "line 29 of the mail" not in first.partition("needs your yes")[2]
        terminal.assert_fits()
        terminal.type("d\n")
        terminal.wait_for("policies:")
        assert "line 29 of the mail" in terminal.flowing()
        terminal.type("y\n")
        assert terminal.wait_end() == 0, terminal.text()
        terminal.wait_for("forwarded")
        terminal.assert_fits()
        return terminal.lines()


def test_a_first_plan_and_an_approval_fit_every_terminal_and_no_word_is_broken(office: World) -> None:
    wide = forward(WIDE)
    for columns in (80, 40):
        narrow = forward(columns)
        assert max(map(len, narrow)) <= columns
        assert broken_words(narrow, wide) == []
    assert posted(office) == ["kim@example.com: line 0 of the mail"] * 3


def test_the_question_and_its_first_view_are_on_one_screen_of_40_columns(office: World) -> None:
    words = ("run", FORWARDS, "--deterministic")
    with start(*words, columns=40, script=[FORWARD] * 3) as terminal:
        terminal.wait_for("Allow this call? [y/N, d: details]")
        lines = terminal.lines()
        begins = next(number for number, line in enumerate(lines) if "needs your yes" in line)
        assert len(lines) - begins <= 24
        terminal.type("\x03")
        assert terminal.wait_end() == 130
    assert posted(office) == []


def test_the_terminal_of_the_tests_itself_sees_the_same(office: World) -> None:
    """Where there is no tmux, the other terminal is used: both must see the same screen."""
    assert [line for line in forward(40, own=True) if "kim" in line] == [line for line in forward(40) if "kim" in line]


def converse(columns: int, kept: Path) -> list[str]:
    """A first plan, a request that speaks of its result, undo of that, and an approval; returns what was shown."""
    with start("chat", "--deterministic", "--new", columns=columns, script=[FOUND, SAVED, FORWARD]) as terminal:
        terminal.wait_for("Ctrl-D ends.")
        terminal.type_at(">", f"{FINDS}\n")
        terminal.wait_for("line 7 of the mail")
        terminal.wait_for("done in")
        terminal.type_at(">", "now save them to found.txt\n")
        terminal.wait_for("kept 1 line")
        assert f"understood as: now save them to found.txt [the result of: {FINDS}]" in terminal.flowing()
        assert kept.read_text() == "line 7 of the mail\n"
        terminal.type_at(">", "/undo\n")
        terminal.wait_for("[y/N]")
        terminal.type("y\n")
        terminal.wait_for("taken back")
        assert not kept.exists()
        terminal.type_at(">", f"{FORWARDS}\n")
        terminal.wait_for("Allow this call? [y/N, d: details]")
        terminal.assert_fits()
        terminal.type("y\n")
        terminal.wait_for("forwarded")
        terminal.type_at(">", "/quit\n")
        assert terminal.wait_end() == 0, terminal.text()
        terminal.assert_fits()
        return terminal.lines()


def test_a_whole_sitting_fits_every_terminal(office: World) -> None:
    wide = converse(WIDE, office.folder / "found.txt")
    for columns in (80, 40):
        narrow = converse(columns, office.folder / "found.txt")
        assert max(map(len, narrow)) <= columns
        assert broken_words(narrow, wide) == []
    assert posted(office) == ["kim@example.com: line 0 of the mail"] * 3


@pytest.mark.parametrize("own", [True, False])
def test_a_line_that_the_program_does_not_break_is_seen(own: bool) -> None:
    with open_terminal(["sh", "-c", "printf '%060d\\n' 7; echo end"], columns=40, own=own) as terminal:
        terminal.wait_for("end")
        assert [line.strip() for line in terminal.broken_lines()] == ["0" * 59 + "7"]
        with pytest.raises(AssertionError, match="wider than 40"):
            terminal.assert_fits()


def test_a_broken_word_is_seen() -> None:
    wide = ["Send mail to kim@example.com now", "see https://example.org/a/b"]
    assert broken_words(["Send mail to kim@", "example.com now"], wide) == []
    assert broken_words(["see https://example.", "org/a/b"], wide) == []
    assert broken_words(["Send ma", "il"], wide) == ["ma", "il"]
    assert broken_words(["se", "e"], wide) == ["se", "e"]
