"""`bicameral console`: a server of its own, one that runs already, and what a browser is given."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from console_world import Person
from server_world import HERE, Served, serving, settings

from bicameral.cli.commands import console as command


@contextmanager
def started(folder: Path, *words: str) -> Generator[dict[str, Any]]:
    """The command as it says where the console is, until the block ends."""
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "served.py"), "console", "--no-browser", "--json", *words],
            cwd=folder,
            env=settings(folder),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, (folder / "log.txt").read_text()
        yield json.loads(line)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        process.stdout.close()


def sign_in(link: str) -> Person:
    """Whoever opens the link and presses the button."""
    address, _, token = link.partition("/login#")
    return Person(Served(Path(), address, None, {"local": token}), "local")  # type: ignore[arg-type]


def test_it_starts_a_server_and_a_second_one_finds_it(tmp_path: Path) -> None:
    folder = tmp_path / "world"
    folder.mkdir()
    with started(folder, "--port", "0") as own:
        with sign_in(own["address"]) as person:
            assert "(all users)" in person.get("/runs").text
        port = str(urlsplit(str(own["address"])).port)
        done = subprocess.run(
            [sys.executable, str(HERE / "served.py"), "console", "--no-browser", "--json", "--port", port],
            cwd=folder,
            env=settings(folder),
            capture_output=True,
            text=True,
            timeout=60,
        )
        again = json.loads(done.stdout)
        assert again["address"].partition("#")[0] == own["address"].partition("#")[0]
        assert again["address"] != own["address"]
        # The second command has ended, and its link still holds.
        with sign_in(again["address"]) as person:
            assert person.get("/runs").has("h1")
    file = folder / "xdg_config_home" / "bicameral" / "tokens.json"
    tokens = json.loads(file.read_text())["tokens"]
    assert [(token["user"], token["all_users"]) for token in tokens] == [("local", True)]
    assert tokens[0]["expires"] - tokens[0]["created"] == pytest.approx(command.SIGN_IN_SECONDS)


def test_a_server_without_the_console_is_said(tmp_path: Path) -> None:
    with serving(tmp_path / "served", "rate = 1000000\n", "--no-console", users=("ana",)) as served:
        assert httpx.get(served.address + "/runs").status_code == 401
        port = str(urlsplit(served.address).port)
        done = subprocess.run(
            [sys.executable, str(HERE / "served.py"), "console", "--no-browser", "--port", port],
            cwd=served.folder,
            env=settings(served.folder),
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode != 0
    assert "console.off" in done.stderr
    assert "--no-console" in done.stderr


def test_the_token_is_in_no_word_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody on the machine can read the words of a process; the file is for its owner alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    opened: list[str] = []

    def open_address(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", open_address)
    assert command.open_browser('http://127.0.0.1:1/login#bic_secret"><script>')
    assert opened[0].startswith("file://")
    assert "bic_secret" not in opened[0]
    file = tmp_path / "bicameral" / "console.html"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    text = file.read_text()
    assert "url=http://127.0.0.1:1/login#bic_secret" in text
    assert "<script>" not in text
