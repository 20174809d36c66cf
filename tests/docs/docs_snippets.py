"""The fenced blocks of the README and the pages, and how each kind is tried.

| block | how |
|---|---|
| `python` | run, in order, in one namespace a page; lines `# > …` after a print are what it must print |
| `console` | lines `$ …` are run, in the README by a real shell; lines after them are printed; `[...]` is any lines |
| `sh` | not run, since it installs or needs weights: every command, make target and extra in it must exist |
| `toml` | a configuration, a manifest, declarations or a part of a `pyproject.toml`, which must be valid |
| `yaml` | a profile, a file of aliases, a stack or a suite of cases, which must be valid |
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The language has a test of its own, since its snippets are plans and not Python.
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name != "language.md"),
]
KINDS = ("python", "console", "sh", "toml", "yaml", "text")

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HERE = re.compile(r"<<'(\w+)'")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line on which its text begins."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """One command of a console block, with what it is said to print."""

    text: str
    expected: str


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [Block(found[1], found[2], text.count("\n", 0, found.start()) + 2) for found in _BLOCK.finditer(text)]


def printed(block: Block) -> str:
    """What a Python block says that it prints."""
    lines = re.findall(r"^ *# ?> ?(.*)$", block.text, re.MULTILINE)
    return "".join(f"{line}\n" for line in lines)


def commands(block: Block) -> list[Command]:
    """The commands of a console block; a here-document belongs to its command."""
    found: list[Command] = []
    lines = iter(block.text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            found.append(Command(_whole(line[2:], lines), ""))
        elif found:
            last = found.pop()
            found.append(Command(last.text, f"{last.expected}{line}\n"))
    return found


def _whole(command: str, lines: Iterator[str]) -> str:
    opened = _HERE.search(command)
    if opened is None:
        return command
    inside = [command]
    for line in lines:
        inside.append(line)
        if line == opened[1]:
            break
    return "\n".join(inside) + "\n"


# What differs from one run to the next, and what it is compared as.
_VARYING = (
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b"), "RUN"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b"), "WHEN"),
    (re.compile(r"^\d\d:\d\d:\d\d\b", re.MULTILINE), "TIME"),
    (re.compile(r"\b\d+\.\d+ s\b"), "N s"),
    (re.compile(r"(?<=finished {4} )\d\.\d\d"), "0.00"),
)


def fits(expected: str, found: str) -> bool:
    """Whether a command printed what its page says."""
    for pattern, name in _VARYING:
        expected, found = pattern.sub(name, expected), pattern.sub(name, found)
    pattern = re.escape(expected).replace(re.escape("[...]\n"), "(?:.*\n)*?")
    return re.fullmatch(pattern, found) is not None


def shell_words(block: Block) -> list[str]:
    """The single commands of a `sh` block."""
    lines = (line.partition("  #")[0].strip() for line in block.text.splitlines())
    return [part.strip() for line in lines for part in line.split("&&") if part.strip() and not line.startswith("#")]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return set(project["project"]["optional-dependencies"])
