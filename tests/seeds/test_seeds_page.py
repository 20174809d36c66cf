"""The page about the source documents: every point is numbered, and whatever it names exists."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from bicameral.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "source-documents.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if re.match(r"\| [A-C]\d", line)
]
SPANS = sorted(set(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", PAGE)))
WORDS = re.compile(r"[A-Za-z_][\w-]*")


@cache
def source() -> str:
    """The code, and the files of the catalogue."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.yaml")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def test_the_points_of_each_document_are_numbered_without_a_gap() -> None:
    numbers = {letter: [int(row[0][1:]) for row in ROWS if row[0][0] == letter] for letter in "ABC"}
    for letter, found in numbers.items():
        assert found == list(range(1, len(found) + 1)), letter
    assert len(ROWS) > 95


def test_every_point_says_what_does_it_or_why_nothing_does() -> None:
    for row in ROWS:
        cells = [cell.strip(" |") for cell in row]
        assert len(cells) >= 3, row
        assert cells[1], row
        assert any(cells[2:]), f"{row[0]} says nothing"
    assert "@@" not in PAGE


@pytest.mark.parametrize("span", SPANS)
def test_what_the_page_names_exists(span: str) -> None:
    assert exists(span), span


def test_what_does_not_exist_is_found_out() -> None:
    assert not exists("bicameral models tset NAME")
    assert not exists("bicameral run --no-such-option")
    assert not exists("schemas/nothing.v1.json")
    assert not exists("plan.no-such-code")
    assert not exists("python -m benchmarks.nothing")
    assert not exists("no_such_name_anywhere")


def exists(span: str) -> bool:
    """Whether the command, file, module, error code or name in backticks exists."""
    if span.startswith("bicameral "):
        return is_command(span.split()[1:])
    if span.startswith("python -m "):
        return find_spec(span.split()[2]) is not None
    if span.startswith(("schemas/", "tests/", "training/", "examples/", "docs/")):
        return (ROOT / span).exists()
    if re.fullmatch(r"[a-z]+\.[a-z]+(-[a-z]+)*", span) and f"`{span}`" in (ROOT / "docs/errors.md").read_text("utf-8"):
        return True
    names = [word for word in WORDS.findall(span) if len(word) > 1]
    return all(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", source()) for name in names)


def is_command(words: list[str]) -> bool:
    """Whether the command line has this command with these options."""
    command: click.Command = main
    for word in words:
        if isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return False
            command = found
        elif word.startswith("--") and not any(word in each.opts for each in command.params):
            return False
    return True
