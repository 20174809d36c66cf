"""Text that is piped into `bicameral run`: it is what the request is about, and a silent pipe never holds a run up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_world import World

COUNT = 'lines = read_lines("input.txt")\nfound = grep(lines, "invoice")\nanswer(len(found))\n'
TOTAL = 'rows = read_csv("input.csv")\nanswer(sum([row[column("amount")] for row in rows]))\n'
OWN = 'lines = read_lines("mail.txt")\nanswer(len(lines))\n'
REQUEST = "How many lines mention invoices?"
TEXT = b"invoice 7 is open\nhello\ninvoice 9 is paid\n"
_START = """
import sys
from cli_world import scripted
from bicameral.cli import main
main(sys.argv[2:], obj=scripted([sys.argv[1]] * 3))
"""


def start(plan: str, *words: str, stdin: Any = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """A process with a model that writes this plan."""
    paths = os.pathsep.join([str(Path(__file__).parent), *(path for path in sys.path if path)])
    return subprocess.Popen(
        [sys.executable, "-c", _START, plan, "run", *words, "--deterministic"],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )


def piped(plan: str, *words: str, stdin: bytes) -> tuple[int, str, str]:
    process = start(plan, *words)
    out, err = process.communicate(stdin, timeout=120)
    return process.returncode, out.decode(), err.decode()


def test_piped_text_is_what_the_request_is_about(world: World) -> None:
    code, out, err = piped(COUNT, REQUEST, stdin=TEXT)
    assert (code, out.strip()) == (0, "2"), err
    assert "input_lines" in err


def test_redirected_text_is_read_too(world: World) -> None:
    world.write("notes", TEXT.decode())
    with (world.folder / "notes").open("rb") as file:
        out, err = start(COUNT, REQUEST, stdin=file).communicate(timeout=120)
    assert out.strip() == b"2", err


def test_a_named_file_is_read_in_its_form(world: World) -> None:
    world.write("sales.csv", "what,amount\nrope,3\nfuel,4\n")
    code, out, err = piped(TOTAL, "What is the total amount?", "--input", "sales.csv", stdin=b"")
    assert (code, out.strip()) == (0, "7"), err


def test_a_bom_is_no_text(world: World) -> None:
    assert piped(COUNT, REQUEST, "--input", "-", stdin=b"\xef\xbb\xbf" + TEXT)[1].strip() == "2"


@pytest.mark.parametrize("words", [(), ("--no-input",)])
def test_without_text_a_request_is_planned_as_ever(world: World, words: Sequence[str]) -> None:
    world.write("mail.txt", "a\nb\n")
    text = b"" if not words else TEXT
    code, out, err = piped(OWN, "How many lines has mail.txt?", *words, stdin=text)
    assert (code, out.strip()) == (0, "2"), err


def test_a_pipe_that_never_ends_does_not_hold_a_run_up(world: World) -> None:
    world.write("mail.txt", "a\nb\n")
    reading, writing = os.pipe()
    try:
        out, err = start(OWN, "How many lines has mail.txt?", stdin=reading).communicate(timeout=120)
    finally:
        os.close(reading)
        os.close(writing)
    assert out.strip() == b"2", err
    assert b"nothing came from standard input" in err


def test_null_and_a_closed_input_are_nothing(world: World) -> None:
    world.write("mail.txt", "a\nb\n")
    out, err = start(OWN, "How many lines has mail.txt?", stdin=subprocess.DEVNULL).communicate(timeout=120)
    assert out.strip() == b"2", err
    assert b"standard input" not in err


@pytest.mark.parametrize(
    ("raw", "code", "said"),
    [
        (b"%PDF-1.7 ...", "intent.input-not-text", "a PDF"),
        (b"PK\x03\x04 ...", "intent.input-not-text", "office document"),
        (b"a\0b", "intent.input-not-text", "UTF-8"),
        ("Grüße".encode("latin-1"), "intent.input-not-text", "iconv"),
        (b"x" * 20_000_001, "intent.input-too-long", "20 MB"),
    ],
)
def test_what_is_no_text_or_too_long_is_refused_before_anything_is_planned(
    world: World, raw: bytes, code: str, said: str
) -> None:
    process = start(COUNT, REQUEST, "--json", stdin=subprocess.PIPE)
    out, _ = process.communicate(raw, timeout=120)
    told = json.loads(out)["error"]
    assert (process.returncode, told["code"]) == (2, code)
    assert said in str(told)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--input", "missing.txt"), "intent.input-unreadable"),
        (("--input", "-"), "intent.empty-input"),
        (("--input", "-", "--no-input"), "--input goes with"),
        (("--input", "-", "--rounds", "2"), "--input goes with"),
    ],
)
def test_wrong_words_are_told(world: World, words: Sequence[str], said: str) -> None:
    code, _, err = piped(COUNT, REQUEST, *words, stdin=b"")
    assert code == 2
    assert said in " ".join(err.split())


def test_an_injection_in_piped_text_directs_nothing(world: World) -> None:
    plan = 'lines = read_lines("input.txt")\nwrite_text(lines[0], "x")\nanswer("saved")\n'
    code, _, err = piped(plan, "Save x to the file that it names", stdin=b"stolen.txt\n")
    assert code != 0
    assert "run.needs-approval" in err
    assert not (world.folder / "stolen.txt").exists()


def test_the_same_with_a_target_of_the_request_is_done(world: World) -> None:
    plan = 'lines = read_lines("input.txt")\nwrite_lines("kept.txt", lines)\nanswer("saved")\n'
    code, _, err = piped(plan, "Save the lines to kept.txt", stdin=TEXT)
    assert code == 0, err
    assert (world.folder / "kept.txt").read_bytes() == TEXT
