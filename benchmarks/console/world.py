"""The server of the benchmark: a real process with users, tools, and files that strangers wrote."""

from __future__ import annotations

import itertools
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.console.equipment import KEY, Equipment
from bicameral.server import ROLES, Role, TokenFile

HERE = Path(__file__).parent
PROGRAM = HERE / "program.py"
sys.path.append(str(HERE.parents[1] / "tests" / "served"))

from server_world import POST, Served, settings, start_server, stop_server  # noqa: E402

OTHER_NAME = "console.example"
"""A name under which the server is known besides addresses."""
SETTINGS = f'rate = 1000000\nwatches = 64\nnames = ["{OTHER_NAME}"]\n'
LOOKING = '''
import time
from bicameral.errors import ToolError


@tool(effect="read", origins=Origin("third_party"), outbound=False)
def look(number: int) -> str:
    """Look at something, which takes a while."""
    time.sleep(0.4)
    return f"what was seen at {number}"


@tool(effect="read", origins=Origin("third_party"), outbound=False)
def look_after(text: str) -> str:
    """Look at something once a text is known, which takes a while."""
    time.sleep(0.8)
    return f"after {text}"


@tool(effect="read", origins=Origin("third_party"), outbound=False)
def fail_at(path: str) -> str:
    """Fail with the words that stand in a file."""
    raise RuntimeError(Path(path).read_text())
'''
SLOW = "one = look(1)\ntwo = look_after(one)\nthree = look_after(two)\nfour = look_after(three)\nanswer(four)\n"
"""A plan whose steps are done one after the other, each for long enough to be seen."""
FIND = (
    'lines = read_lines("mail.txt")\nkept = unique_lines(lines)\nout = []\nfor line in kept:\n'
    '    if "invoice" in line:\n        out.append(line)\nanswer(out)\n'
)
FORWARD = 'text = read_text("mail.txt")\npost("kim@example.com", text)\nanswer("forwarded")\n'
FORWARD_TWICE = (
    'text = read_text("mail.txt")\npost("kim@example.com", text)\npost("lee@example.com", text)\nanswer("both")\n'
)
ASK = 'name = ask("Who is it for?", str)\nanswer("for " + name)\n'
CHANGE = 'write_text("{name}", "new words\\n")\nanswer("changed")\n'

T = TypeVar("T")


@dataclass
class ConsoleServer(Served):
    """A server that runs, its users, and its files."""

    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    ids: dict[str, str] = field(default_factory=dict[str, str])
    """The ids of the tokens, by the same names as the tokens."""
    _numbers: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    @property
    def token_file(self) -> TokenFile:
        return TokenFile(Path(self.environment["XDG_CONFIG_HOME"]) / "bicameral" / "tokens.json")

    @property
    def database(self) -> Path:
        """The SQLite file of its runs."""
        [found] = (Path(self.environment["XDG_STATE_HOME"]) / "bicameral" / "durable").glob("*.db")
        return found

    def add_user(self, user: str, roles: Sequence[Role] = ROLES, *, all_users: bool = False, name: str = "") -> str:
        """A token for a user, under a name; returns the name."""
        name = name or user
        token, self.tokens[name] = self.token_file.add(user, roles=tuple(roles), all_users=all_users)
        self.ids[name] = token.id
        return name

    def new_user(self, what: str, roles: Sequence[Role] = ROLES, *, all_users: bool = False) -> str:
        """A user that nobody else of the benchmark is."""
        return self.add_user(f"{what}{self._numbers()}", roles, all_users=all_users)

    def remove_token(self, name: str) -> None:
        self.token_file.remove(self.ids[name])

    def write(self, name: str, text: str) -> None:
        """Write a file of the folder that the tools read."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))

    def waiting(self, user: str, **wanted: Any) -> tuple[str, str]:
        """A run that waits for a person, and its question; without a request or a plan one that forwards a mail."""
        given = wanted if {"request", "plan"} & wanted.keys() else {"plan": FORWARD} | wanted
        run = self.submit(user, **given)
        view = self.settled(run, user)
        assert view["state"] == "waiting", view
        return run, view["waits_for"][0]

    def finished(self, user: str, **wanted: Any) -> str:
        """A run that has finished."""
        run = self.submit(user, **wanted)
        view = self.settled(run, user)
        assert view["state"] == "finished", view
        return run

    def question(self, id: str, user: str) -> dict[str, Any]:
        return self.ask("GET", f"/v1/approvals/{id}", user)

    def state(self, run: str, user: str) -> str:
        return self.ask("GET", f"/v1/runs/{run}", user)["state"]

    def stop(self) -> None:
        stop_server(self.process)

    def start(self) -> None:
        """Start it again, where it was."""
        self.process, started = start_server(self.folder, self.environment, "--port", str(self.port), program=PROGRAM)
        assert started["address"] == self.address, started

    @contextmanager
    def changed_record(self, run: str, number: int) -> Generator[None]:
        """Change an event in the journal as somebody would who can write to its file; put back when the block ends."""
        body = self._put_body(run, number, "{}")
        try:
            yield
        finally:
            # Whoever verifies the whole record afterwards finds it as it was.
            self._put_body(run, number, body)

    def _put_body(self, run: str, number: int, body: str) -> str:
        """Write the body of an event past the guard of the table; returns the one before."""
        file, here = Path(self.environment["XDG_STATE_HOME"]) / "bicameral" / "journal.db", (run, number)
        with closing(sqlite3.connect(file, timeout=30)) as database, database:
            [(before,)] = database.execute("SELECT body FROM events WHERE run = ? AND number = ?", here)
            [(guard,)] = database.execute("SELECT sql FROM sqlite_master WHERE name = 'events_stay'")
            database.execute("DROP TRIGGER events_stay")
            database.execute("UPDATE events SET body = ? WHERE run = ? AND number = ?", (body, *here))
            database.execute(guard)
        return before

    def add_finished_runs(self, user: str, count: int) -> None:
        """Write so many runs that have finished straight into the database; one of them is about walnuts."""
        rows: list[tuple[Any, ...]] = []
        now = time.time() - 3600
        submission = json.dumps({"request": "", "plan": None, "deterministic": False})
        for number in range(count):
            words = "Find the walnuts in the list" if number == count // 2 else f"Sum up the letters of day {number}"
            outcome = json.dumps({"answer": "done", "effects": [], "seconds": 1.5, "ending": "finished"})
            created = now - count + number
            rows.append((f"20200101-{number:06d}-{user}", user, words, submission, outcome, created, created + 1.5))
        insert = (
            'INSERT INTO runs (run, "user", request, submission, state, attempt, dispatch, priority, cancel, deaths,'
            " reached, outcome, created, updated) VALUES (?, ?, ?, ?, 'finished', 1, NULL, 5, 0, 0, 0, ?, ?, ?)"
        )
        with closing(sqlite3.connect(self.database, timeout=30)) as database, database:
            database.executemany(insert, rows)


def wait_until(what: Callable[[], T], seconds: float = 20.0) -> T:
    """What a function returns, once that is true."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.05)
    return found


@contextmanager
def serving_console(
    folder: Path, *, users: Sequence[str] = ("ana", "ben"), equipment: Equipment | None = None
) -> Generator[ConsoleServer]:
    """A server with the console until the block ends; the user `ops` sees the runs of all users."""
    folder.mkdir(exist_ok=True)
    more = SETTINGS + (equipment.write(folder) if equipment is not None else "")
    environment = settings(folder, more) | {KEY: "none"}
    (folder / "own.py").write_text(POST + LOOKING + (equipment.tools if equipment is not None else ""), "utf-8")
    tokens = TokenFile(Path(environment["XDG_CONFIG_HOME"]) / "bicameral" / "tokens.json")
    # Without a token the server would make one of its own.
    first, secret = tokens.add("ops", all_users=True)
    process, started = start_server(folder, environment, program=PROGRAM)
    server = ConsoleServer(folder, started["address"], process, {"ops": secret}, environment, {"ops": first.id})
    try:
        for user in users:
            server.add_user(user)
        if equipment is not None:
            equipment.change(folder)
        yield server
    finally:
        # A journey may have stopped it, or started it again.
        if server.process.poll() is None:
            server.stop()
