"""Real MCP servers from packages, each with a small world and one job, directly and through the firewall.

`make mcp-servers` installs those that are not among the dependencies. A job is right directly if the server's answer
has what is expected, and right through the firewall if its result, which the client's model only knows by a handle, has
arrived in a file by another server.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from bicameral.mcp import McpSettings

from .configuration import Configuration, firewall_command, server_settings
from .host import Host, connected
from .person import Person
from .scenario import shown_name
from .specification import files

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / ".venv" / "mcp-servers"
NPM = INSTALLED / "npm" / "node_modules" / "@modelcontextprotocol"
PAGE = "The harbour opens at seven."
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """One call with what its answer must hold. `first` are calls before it. Texts may hold `{folder}` and `{port}`."""

    tool: str
    arguments: Mapping[str, Any]
    expected: str
    first: Sequence[tuple[str, Mapping[str, Any]]] = ()


@dataclass(frozen=True, slots=True)
class RealServer:
    """A server from a package.

    Args:
        name: Its name in the configuration.
        command: How it is started; texts may hold `{folder}` and `{port}`.
        job: What it is asked to do.
        settings: What it may use, for its table in the configuration.
    """

    name: str
    command: Sequence[str]
    job: Job
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def installed(self) -> bool:
        return Path(self.command[0]).exists() and all(
            Path(each).exists() for each in self.command if each[-3:] == ".js"
        )

    def table(self, world: World) -> McpSettings:
        """Its settings in a world."""
        facts: dict[str, Any] = {"command": self.command, **self.settings}
        return McpSettings.model_validate(world.filled(facts))


@dataclass(frozen=True, slots=True)
class World:
    """A folder with everything that the servers work on, and the port of a page."""

    folder: Path
    port: int

    def filled(self, value: Any) -> Any:
        match value:
            case str():
                return value.replace("{folder}", str(self.folder)).replace("{port}", str(self.port))
            case dict():
                return {name: self.filled(each) for name, each in cast("dict[str, Any]", value).items()}
            case list() | tuple():
                return [self.filled(each) for each in cast("Sequence[Any]", value)]
            case _:
                return value


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _npm(name: str) -> list[str]:
    return [shutil.which("node") or "/usr/bin/node", str(NPM / f"server-{name}" / "dist" / "index.js")]


NOTE = "Buy bread and two lemons."
_ENTITY = {"entities": [{"name": "Kim", "entityType": "person", "observations": ["likes lemons"]}]}

SERVERS = (
    RealServer(
        "time",
        [_program("mcp-server-time"), "--local-timezone", "UTC"],
        # Two places without summer time.
        Job(
            "convert_time",
            {"source_timezone": "Asia/Kolkata", "time": "12:00", "target_timezone": "Asia/Tokyo"},
            "15:30",
        ),
    ),
    RealServer(
        "git",
        [_program("mcp-server-git"), "--repository", "{folder}/repository"],
        Job("git_log", {"repo_path": "{folder}/repository"}, "Plant the lemon tree"),
        {"read": ["{folder}/repository"]},
    ),
    RealServer(
        "fetch",
        [_program("mcp-server-fetch"), "--ignore-robots-txt", "--allow-private-ips"],
        Job("fetch", {"url": "http://127.0.0.1:{port}/harbour"}, PAGE),
        # Its reader of HTML works on temporary files.
        {"network": ["127.0.0.1:{port}"], "write": ["{folder}/temporary"], "env": {"TMPDIR": "{folder}/temporary"}},
    ),
    RealServer(
        "filesystem",
        [*_npm("filesystem"), "{folder}/notes"],
        Job("read_text_file", {"path": "{folder}/notes/list.txt"}, NOTE),
        {"read": ["{folder}/notes"]},
    ),
    RealServer("everything", _npm("everything"), Job("get-sum", {"a": 17, "b": 25}, "42")),
    RealServer(
        "memory",
        _npm("memory"),
        Job("open_nodes", {"names": ["Kim"]}, "likes lemons", [("create_entities", _ENTITY)]),
        {"write": ["{folder}/graph"], "env": {"MEMORY_FILE_PATH": "{folder}/graph/memory.jsonl"}},
    ),
    RealServer(
        "sqlite",
        [str(INSTALLED / "sqlite" / "bin" / "mcp-server-sqlite"), "--db-path", "{folder}/data/shop.db"],
        Job("read_query", {"query": "SELECT name, price FROM goods WHERE price > 2"}, "lemons"),
        {"write": ["{folder}/data"]},
    ),
)


@contextmanager
def world() -> Generator[World]:
    """A folder with a repository, notes, a database and a graph, and a page on this machine."""
    with tempfile.TemporaryDirectory(prefix="mcp-servers-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve() / "world"
        folder.mkdir()
        for each in ("notes", "graph", "data", "files", "repository", "temporary"):
            (folder / each).mkdir()
        (folder / "notes" / "list.txt").write_text(NOTE, "utf-8")
        with contextlib.closing(sqlite3.connect(folder / "data" / "shop.db")) as database:
            database.execute("CREATE TABLE goods (name TEXT, price REAL)")
            database.executemany("INSERT INTO goods VALUES (?, ?)", [("bread", 1.5), ("lemons", 2.5)])
            database.commit()
        _make_repository(folder / "repository")
        with _page() as port:
            yield World(folder, port)


def _make_repository(folder: Path) -> None:
    (folder / "garden.txt").write_text("one tree\n", "utf-8")
    someone = ("-c", "user.name=Gardener", "-c", "user.email=gardener@example.com", "-c", "commit.gpgsign=false")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "Plant the lemon tree"]):
        subprocess.run(["git", *someone, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def _page() -> Generator[int]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<html><body><article><h1>Harbour</h1><p>{PAGE}</p></article></body></html>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@asynccontextmanager
async def directly(server: RealServer, place: World, *through: str) -> AsyncGenerator[Host]:
    """A client that is connected with a server itself, or through a program that starts it."""
    settings = server.table(place)
    command = ["env", *(f"{name}={value}" for name, value in settings.env.items()), *through, *settings.command]
    person = Person((), trusting=True)
    async with connected({server.name: command}, person, place.folder, firewall=False) as host:
        await host.look()
        yield host


@asynccontextmanager
async def through_firewall(server: RealServer, place: World, *, yes: Sequence[str] = ()) -> AsyncGenerator[Host]:
    """A client that is connected with the firewall, behind which are the server and one that writes files."""
    beside = files()
    beside.write(place.folder)
    written = Configuration(place.folder)
    await written.add(server.name, server.table(place), {})
    await written.add(beside.name, server_settings(beside, place.folder), beside.declared)
    person = Person([[shown_name(each)] for each in yes], trusting=True)
    command = firewall_command(written.write())
    async with connected({"firewall": command}, person, place.folder, firewall=True) as host:
        await host.look()
        yield host


async def job_done(server: RealServer, place: World, *, firewall: bool) -> str | None:
    """Do the job of a server; why it is not right, None if it is."""
    job = server.job
    tools = [f"{server.name}.{name}" for name in (job.tool, *(name for name, _ in job.first))]
    opened = through_firewall(server, place, yes=[*tools, "files.write"]) if firewall else directly(server, place)
    try:
        async with asyncio.timeout(SECONDS), opened as host:
            for name, arguments in job.first:
                shown = await host.call(f"{server.name}.{name}", place.filled(arguments))
                if shown.error:
                    return f"{name}: {shown.text[:300]}"
            shown = await host.call(tools[0], place.filled(job.arguments))
            text = shown.plain
            if firewall and (not shown.error or shown.handles):
                # Within a text any result can be named, a record as well.
                said = f"It says: {shown.handles[0] if shown.handles else shown.plain}"
                copied = await host.call("files.write", {"path": "result.txt", "text": said})
                file = place.folder / "files" / "result.txt"
                text = file.read_text("utf-8") if file.exists() else copied.text
            return None if job.expected in text and not shown.error else f"{job.tool}: {shown.text[:300]} {text[:300]}"
    except Exception as error:
        errors = (place.folder / "errors.txt").read_text("utf-8", "replace")[-500:]
        return f"{type(error).__name__}: {str(error)[:300]} {errors}"


async def check_server(server: RealServer) -> dict[str, str | None]:
    """Why the job of a server is not right, directly and through the firewall."""
    if not server.installed:
        return dict.fromkeys(("direct", "firewall"), "it is not installed: `make mcp-servers`")
    found: dict[str, str | None] = {}
    for way in ("direct", "firewall"):
        with world() as place:
            found[way] = await job_done(server, place, firewall=way == "firewall")
    return found
