"""What a run writes down while it goes on: effects at once, everything else a moment later and together."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any

from bicameral.errors import JournalError
from bicameral.journal import Entry, EventKind, Journal

MOMENT = 0.003
UNRECORDABLE = frozenset({"journal.unrecordable", "journal.too-large"})
"""What is wrong with one value, and not with the record: it would be wrong again the next time."""

Body = dict[str, Any] | Callable[[], dict[str, Any]]


class Record:
    """The record of one run. Without a journal it is kept nowhere.

    What changes the world is written with `synced`, and nothing happens if that fails: when it returns, the event and
    all before it are on the disk, and a power cut takes nothing of it away. What is written with `now` survives the
    death of the process. What only looks at the world is written with `later`: the journal's own thread does that as
    soon as the run has nothing else to do, so that no step waits for the disk. If that fails, the next thing to be
    written fails, and so the run. `first` is the number of the first event it writes: an event of somebody else at that
    place, or at any after it, means that the run is his now.
    """

    def __init__(self, run: str, journal: Journal | None, *, first: int = 0) -> None:
        self.run = run
        self._first = first
        self._journal = journal
        self._waiting: deque[tuple[bool, float, EventKind, str, Body]] = deque()
        self._called = False
        self._failure: JournalError | None = None
        self._fault: JournalError | None = None
        self._writing = Lock()

    @property
    def kept(self) -> bool:
        """Whether anything is written down at all."""
        return self._journal is not None

    @property
    def failure(self) -> JournalError | None:
        """Why nothing more can be written down, if that is so."""
        return self._failure

    def later(self, kind: EventKind, step: str, body: Body) -> None:
        if self._journal is None:
            return
        self._add(kind, step, body)
        if not self._called:
            self._called = True
            try:
                self._journal.in_background(self._write_quietly)
            except JournalError as error:
                self._failure = error
                raise

    def now(self, kind: EventKind, step: str, body: Body) -> None:
        """When this returns, the event and all before it survive the death of the process."""
        self._write_now(kind, step, body, sync=False)

    def synced(self, kind: EventKind, step: str, body: Body) -> None:
        """When this returns, the event and all before it survive a power cut."""
        self._write_now(kind, step, body, sync=True)

    def _write_now(self, kind: EventKind, step: str, body: Body, *, sync: bool) -> None:
        if self._journal is None:
            return
        self._add(kind, step, body, sync=sync)
        try:
            self._write(self._journal)
        except JournalError as error:
            self._failure = error
            raise
        self._raise()

    def _add(self, kind: EventKind, step: str, body: Body, *, sync: bool = False) -> None:
        self._raise()
        self._waiting.append((sync, time.time(), kind, step, body))

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure
        # Told once: the run fails with it, and that can be written down.
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _write(self, journal: Journal) -> None:
        # Under the lock from taking to writing: what was added first is written first, whoever writes it.
        with self._writing:
            # The journal's own thread may come first to an event that somebody waits for: it is synced all the same.
            entries: list[Entry] = []
            sync = False
            while self._waiting:
                wanted, at, kind, step, body = self._waiting.popleft()
                sync = sync or wanted
                entries.append(Entry(at, kind, step, body() if callable(body) else body))
            if entries and self._failure is None:
                self._append(journal, entries, sync=sync)

    def _append(self, journal: Journal, entries: list[Entry], *, sync: bool) -> None:
        try:
            journal.append_all(self.run, entries, first=self._first, sync=sync)
            self._first += len(entries)
        except JournalError as error:
            if error.code not in UNRECORDABLE:
                raise
            # One value that cannot be written is a fault of its step; the others are written without it.
            if len(entries) == 1:
                self._fault = error
                return
            for entry in entries:
                self._append(journal, [entry], sync=sync)

    def _write_quietly(self, journal: Journal) -> None:
        # Steps that begin or end together are written together, and the run's own thread is left alone meanwhile.
        time.sleep(MOMENT)
        # First this, then the writing: what is added in between calls again, and is never left lying.
        self._called = False
        try:
            self._write(journal)
        except JournalError as error:
            self._failure = error
        except Exception as error:
            self._failure = JournalError("journal.failed", f"{journal.path}: {type(error).__name__}: {error}")
