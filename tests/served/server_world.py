"""A real server process on a real port, with two users, and models that reply from a script."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from bicameral.server import TokenFile

HERE = Path(__file__).parent
REQUEST = "Remove duplicates from mail.txt and find lines mentioning invoices"
MAIL = "invoice 7 is open\nhello, see www.example.org\ninvoice 7 is open\ninvoice 9 is paid\n"
FOUND = ["invoice 7 is open", "invoice 9 is paid"]
FORWARD = 'text = read_text("mail.txt")\npost("kim@example.com", text)\nanswer("forwarded")\n'
ASKING = 'name = ask("Who is it for?", str)\nanswer("for " + name)\n'
POST = '''
from pathlib import Path

from bicameral import tool
from bicameral.tools import Origin


@tool(effect="send", purpose={"to": "directs", "text": "carries"}, origins=Origin("system"), words=("post", "forward"))
def post(to: str, text: str) -> None:
    """Post a text to somebody."""
    with Path("posted.txt").open("a") as file:
        file.write(f"{to}: {text.splitlines()[0]}\\n")
'''
CONFIG = '[toolboxes]\nfiles = ["own.py"]\n[server]\n'


@dataclass
class Served:
    """A server that runs, and how its users ask it."""

    folder: Path
    address: str
    process: subprocess.Popen[str]
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    def client(self, user: str = "ana", **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.tokens[user]}"} | options.pop("headers", {})
        return httpx.Client(base_url=self.address, headers=headers, timeout=30, verify=False, **options)

    def ask(self, method: str, path: str, user: str = "ana", *, code: int = 200, **options: Any) -> Any:
        """What a user is answered; it must have this status."""
        with self.client(user) as client:
            answer = client.request(method, path, **options)
        assert answer.status_code == code, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def submit(self, user: str = "ana", **wanted: Any) -> str:
        return self.ask("POST", "/v1/runs", user, code=202, json=wanted)["run"]

    def settled(self, run: str, user: str = "ana") -> dict[str, Any]:
        """A run once it has ended or waits."""
        end = time.monotonic() + 60
        while (view := self.ask("GET", f"/v1/runs/{run}?wait=20", user))["state"] in ("queued", "running"):
            assert time.monotonic() < end, f"the run does not end: {view}"
        return view

    def log(self) -> str:
        return (self.folder / "log.txt").read_text()


def settings(folder: Path, more: str = "rate = 1000000\n") -> dict[str, str]:
    """The files of a server, and the environment that it has."""
    folder.mkdir(exist_ok=True)
    (folder / "mail.txt").write_text(MAIL)
    (folder / "own.py").write_text(POST)
    (folder / "bicameral.toml").write_text(CONFIG + more)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BICAMERAL_")}
    own = {name: str(folder / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    # The server has no terminal; whoever starts it has written its configuration.
    return kept | own | {"BICAMERAL_ACCEPT": str(folder)}


def start_server(
    folder: Path, environment: Mapping[str, str], *words: str, program: Path = HERE / "served.py"
) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """A server process that listens, and what it says of itself as it starts."""
    with (folder / "log.txt").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, str(program), "serve", "--port", "0", "--json", *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "log.txt").read_text()
        started = json.loads(line)
        assert started["ok"], started
    except BaseException:
        stop_server(process)
        raise
    return process, started


def stop_server(process: subprocess.Popen[str]) -> None:
    """Tell a server to stop; it must."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def serving(
    folder: Path, more: str = "rate = 1000000\n", *words: str, users: tuple[str, ...] = ("ana", "ben")
) -> Generator[Served]:
    """`bicameral serve` until the block ends; then it is told to stop, and must."""
    environment = settings(folder, more)
    tokens = TokenFile(Path(environment["XDG_CONFIG_HOME"]) / "bicameral" / "tokens.json")
    held = {user: tokens.add(user)[1] for user in users}
    (folder / "log.txt").unlink(missing_ok=True)
    process, started = start_server(folder, environment, *words)
    if not users:
        held["local"] = started["token"]
    try:
        yield Served(folder, started["address"], process, held)
    finally:
        stop_server(process)
