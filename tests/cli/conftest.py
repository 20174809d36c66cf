"""The world that the command line's tests work in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_office import TOOLS, Office
from cli_terminal import Terminal
from cli_world import MAIL, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.setenv("BICAMERAL_MODELS", str(tmp_path / "models"))
    for variable in ("BICAMERAL_CONFIG", "BICAMERAL_DEBUG", "BICAMERAL_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "mail.txt").write_text(MAIL)
    return World(folder)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


@pytest.fixture
def office(world: World) -> Office:
    """The world with tools that leave traces, and a database of submitted runs of its own."""
    world.write("own.py", TOOLS)
    world.write("mail.txt", "invoice 7 is open\nsee www.example.org\n")
    world.write("bicameral.toml", '[toolboxes]\nfiles = ["own.py"]\n\n[durable]\nlease = 1.0\n')
    return Office(world)
