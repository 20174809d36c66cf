"""The journal: every run in one SQLite file, appended to and never changed.

Events of a run are numbered without gaps, and each is sealed with a hash over itself and the one before, so that a
changed or missing event is noticed. Triggers refuse every UPDATE and DELETE, so that not even a bug of ours can rewrite
what happened.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, Literal, NamedTuple, cast

from bicameral.errors import JournalError, nearest

from ._blobs import Blobs, dumps
from ._journal_file import failure, open_file

EventKind = Literal[
    "run-started",
    "step-started",
    "step-retried",
    "step-finished",
    "step-failed",
    "call-waits",
    "call-denied",
    "approval",
    "model-called",
    "run-finished",
    "run-failed",
    "run-stopped",
    "reason-started",
    "reason-round",
    "reason-ended",
]
ENDS: frozenset[EventKind] = frozenset({"run-finished", "run-failed", "run-stopped", "reason-ended"})


_TELLING_COSTS: tuple[EventKind, ...] = (
    "model-called",
    "run-started",
    "run-finished",
    "run-failed",
    "run-stopped",
    "reason-round",
)
_COST_FACTS = ("role", "charges", "degraded", "planning_calls", "lost_calls")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run, at a step (its path with the turns of its loops), with the facts."""

    run: str
    number: int
    at: float
    kind: EventKind
    step: str
    body: dict[str, Any]


class Entry(NamedTuple):
    """An event that is to be appended."""

    at: float
    kind: EventKind
    step: str
    body: dict[str, Any]


Status = Literal["finished", "failed", "stopped", "unfinished"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a line: `unfinished` means that it is still going on, or that its process died."""

    run: str
    started: float
    request: str
    status: Status
    seconds: float | None


class Journal:
    """Reads and appends events; other processes may append at the same time.

    Example:
        >>> with Journal(Path("journal.db")) as journal:
        ...     journal.append("run1", "run-started", "", {"request": "hello"})
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = open_file(path)
        self._blobs = Blobs(self._db)
        self._tails: dict[str, tuple[int, str]] = {}
        self._lock = RLock()
        self._background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bicameral-journal")

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._background.shutdown(wait=True)
        self._db.close()

    def in_background(self, write: Callable[[Journal], None]) -> None:
        """Let the journal's own thread do this soon."""
        try:
            self._background.submit(write, self)
        except RuntimeError:
            raise JournalError("journal.failed", f"{self.path}: the journal is closed") from None

    def append(self, run: str, kind: EventKind, step: str, body: dict[str, Any]) -> Event:
        """Append one event; when this returns, the event survives the death of the process."""
        return self.append_all(run, [Entry(time.time(), kind, step, body)])[0]

    def append_all(self, run: str, entries: Sequence[Entry]) -> list[Event]:
        """Append several events of a run: all of them or none."""
        try:
            with self._lock:
                tail = self._tails.pop(run, None) or self._last(run)
                with self._transaction():
                    events, tail = self._insert(run, tail, entries)
                if entries and entries[-1].kind not in ENDS:
                    self._tails[run] = tail
        except sqlite3.IntegrityError:
            raise JournalError(
                "journal.run-exists", f"{self.path}: run {run!r} is already being recorded", fix="Give it another id."
            ) from None
        except sqlite3.Error as error:
            raise failure(self.path, error) from None
        except ValueError as error:
            raise JournalError("journal.unrecordable", f"a value cannot be written as JSON: {error}") from None
        return events

    def _insert(self, run: str, tail: tuple[int, str], entries: Sequence[Entry]) -> tuple[list[Event], tuple[int, str]]:
        number, seal = tail
        events: list[Event] = []
        for at, kind, step, body in entries:
            number += 1
            text = _written({key: self._blobs.pack(value) for key, value in body.items()})
            row = (run, number, at, kind, step, text)
            seal = _seal(seal, *row)
            self._db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, seal))
            events.append(Event(run, number, at, kind, step, body))
        return events, (number, seal)

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def events(self, run: str) -> list[Event]:
        """Everything that happened in a run, in order; a record that was changed is refused."""
        run = self.find(run)
        found: list[Event] = []
        before = ""
        query = "SELECT number, at, kind, step, body, seal FROM events WHERE run = ? ORDER BY number"
        for number, at, kind, step, body, seal in self._select(query, (run,)):
            before = _seal(before, run, number, at, kind, step, body)
            if before != seal or number != len(found):
                raise self._damaged(f"event {len(found)} of run {run} is not what was written")
            found.append(Event(run, number, at, kind, step, self._read(body)))
        return found

    def find(self, run: str) -> str:
        """The full id of a run, or of a reasoning of several, from its beginning; `last` is the newest run."""
        if run == "last":
            newest = next(self.runs(limit=1), None)
            if newest is None:
                raise JournalError("journal.no-runs", f"{self.path} holds no run yet")
            return newest.run
        query = (
            "SELECT run FROM events WHERE kind IN ('run-started', 'reason-started') AND number = 0 "
            "AND run >= ? AND run < ? LIMIT 20"
        )
        found = [row[0] for row in self._select(query, (run, run + "\U0010ffff"))]
        if run in found or len(found) == 1:
            return run if run in found else found[0]
        if found:
            raise JournalError(
                "journal.ambiguous-run",
                f"{run!r} begins several runs: {', '.join(found[:3])}",
                fix="Give more of the id.",
            )
        known = [summary.run for summary in self.runs(limit=200)]
        raise JournalError("journal.unknown-run", f"there is no run {run!r}", nearest=nearest(run, known))

    def runs(self, limit: int = 50) -> Iterator[RunSummary]:
        """The newest runs first."""
        query = (
            "SELECT s.run, s.at, s.body, e.kind, e.at FROM events s JOIN events e ON e.run = s.run "
            "AND e.number = (SELECT max(number) FROM events WHERE run = s.run) "
            "WHERE s.kind = 'run-started' ORDER BY s.at DESC, s.run DESC LIMIT ?"
        )
        for run, at, body, kind, last in self._select(query, (limit,)):
            request = str(self._read(body, "request").get("request") or "")
            if kind in ENDS:
                yield RunSummary(run, at, request, cast("Status", kind.removeprefix("run-")), last - at)
            else:
                yield RunSummary(run, at, request, "unfinished", None)

    def costs(self, since: float = 0.0) -> Iterator[tuple[str, float, str, str, dict[str, Any]]]:
        """What the events of all runs since then tell of calls of models: run, time, kind, step and facts."""
        names = ", ".join(f"'{kind}'" for kind in _TELLING_COSTS)
        # Every name is one of ours.
        query = f"SELECT run, at, kind, step, body FROM events WHERE kind IN ({names}) AND at >= ? ORDER BY at, number"  # noqa: S608
        for run, at, kind, step, body in self._select(query, (since,)):
            yield run, at, kind, step, self._read(body, *_COST_FACTS)

    def _last(self, run: str) -> tuple[int, str]:
        """The number and the seal of the last event of a run."""
        query = "SELECT number, seal FROM events WHERE run = ? ORDER BY number DESC LIMIT 1"
        return self._db.execute(query, (run,)).fetchone() or (-1, "")

    def _select(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            with self._lock:
                return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise failure(self.path, error) from None

    def _read(self, text: str, *only: str) -> dict[str, Any]:
        """The body of an event, or some entries of it."""
        try:
            body = cast("dict[str, Any]", json.loads(text))
            with self._lock:
                return {key: self._blobs.unpack(value) for key, value in body.items() if not only or key in only}
        except sqlite3.Error as error:
            raise failure(self.path, error) from None
        except (ValueError, AttributeError, TypeError) as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, what: str) -> JournalError:
        return JournalError("journal.damaged", f"{self.path}: {what}")


def _written(body: dict[str, Any]) -> str:
    text = dumps(body)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":"), allow_nan=False)
    return text


def _seal(before: str, run: str, number: int, at: float, kind: str, step: str, body: str) -> str:
    text = "\n".join((before, run, str(number), repr(at), kind, step, body))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
