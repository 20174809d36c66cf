"""`bicameral console`: a server of its own, one that runs already, and what a browser is given."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
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
        done = run_command(folder, "console", "--no-browser", "--json", "--port", port)
        again = json.loads(done.stdout)
        assert again["address"].partition("#")[0] == own["address"].partition("#")[0]
        assert again["address"] != own["address"]
        # The second command has ended, and its link still holds: once.
        [stored] = stored_tokens(folder)
        assert (stored["user"], stored["all_users"], stored["link"]) == ("local", True, True)
        assert stored["expires"] - stored["created"] == pytest.approx(command.LINK_SECONDS)
        with sign_in(again["address"]) as person:
            assert person.get("/runs").has("h1")
            assert stored_tokens(folder) == []
            for used in (own, again):
                token = str(used["address"]).partition("#")[2]
                assert person.send("/login", {"token": token}).status_code == 401
            # Who has signed in by it is not signed out by that.
            assert person.get("/runs").has("h1")


def stored_tokens(folder: Path) -> list[dict[str, Any]]:
    """The tokens that are on the disk."""
    return json.loads((folder / "xdg_config_home" / "bicameral" / "tokens.json").read_text())["tokens"]


class Impostor(BaseHTTPRequestHandler):
    """What another user of the machine lets answer at the port: it looks like the server, and asks it what it can."""

    real = ""
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = b"x" * 64
        if self.path == "/healthz":
            body = b'{"ok": true}'
        elif self.path.startswith("/login/proof") and self.real:
            body = httpx.get(self.real + self.path).content
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("relays", [False, True])
def test_an_impostor_at_the_port_gets_no_token(tmp_path: Path, relays: bool) -> None:
    folder = tmp_path / "world"
    folder.mkdir()
    with started(folder, "--port", "0") as own, ThreadingHTTPServer(("127.0.0.1", 0), Impostor) as impostor:
        Impostor.real = str(own["address"]).partition("/login")[0] if relays else ""
        Thread(target=impostor.serve_forever, daemon=True).start()
        words = ["console", "--no-browser", "--port", str(impostor.server_port)]
        done = run_command(folder, *words)
        impostor.shutdown()
        assert done.returncode != 0
        assert "console.not-yours" in done.stderr
        assert "bic_" not in done.stdout + done.stderr
        assert not (folder / "xdg_config_home" / "bicameral" / "tokens.json").exists()
        assert any(path.startswith("/login/proof") for path in Impostor.asked)


def run_command(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line, until it ends."""
    return subprocess.run(
        [sys.executable, str(HERE / "served.py"), *words],
        cwd=folder,
        env=settings(folder) | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_server_of_this_machine_is_asked_without_a_proxy(tmp_path: Path) -> None:
    folder = tmp_path / "world"
    folder.mkdir()
    with started(folder, "--port", "0") as own:
        port = str(urlsplit(str(own["address"])).port)
        proxy = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
        done = run_command(folder, "console", "--no-browser", "--json", "--port", port, **proxy)
        assert json.loads(done.stdout)["address"].startswith(f"http://127.0.0.1:{port}/login#bic_")


def test_what_speaks_no_http_at_the_port_is_no_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def greet() -> None:
            for _ in range(2):
                with suppress(OSError):
                    connection, _ = listening.accept()
                    with connection:
                        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        Thread(target=greet, daemon=True).start()
        folder = tmp_path / "world"
        folder.mkdir()
        done = run_command(folder, "console", "--no-browser", "--port", str(port))
    assert done.returncode != 0
    assert "internal" not in done.stderr
    assert str(port) in done.stderr


def test_a_server_without_the_console_is_said(tmp_path: Path) -> None:
    with serving(tmp_path / "served", "rate = 1000000\n", "--no-console", users=("ana",)) as served:
        assert httpx.get(served.address + "/runs").status_code == 401
        port = str(urlsplit(served.address).port)
        done = run_command(served.folder, "console", "--no-browser", "--port", port)
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
