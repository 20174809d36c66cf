"""The journal: every run in one SQLite file or one PostgreSQL database, append-only.

The events of a run are numbered without gaps, and each is sealed with a hash over itself and the one before, so a
changed or missing event is detected. Database triggers refuse every change except erasure, so not even a bug in this
package can rewrite the record. Erasure empties the bodies of a run; its events stay with their seals, and a mark says
when and why.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import RLock
from typing import Any, cast

from bicameral.errors import JournalError, nearest_name
from bicameral.journal._event_queries import (
    COST_FACTS,
    COST_KINDS,
    COST_LISTS,
    EventId,
    select_anchors,
    select_event_ids,
    select_events,
    select_newest_runs,
)
from bicameral.journal._events import (
    COLUMNS,
    END_KINDS,
    ERASED_KIND,
    UNDO_SUFFIX,
    Anchor,
    BlobPacker,
    Erasure,
    Event,
    EventKind,
    EventRow,
    JournalStore,
    NewEvent,
    NumberTaken,
    RunStatus,
    RunSummary,
    check_chain,
    erased_facts_hash,
    erasure_fault,
    row_from_values,
    seal_event,
    unpack_value,
)
from bicameral.journal._sqlite import SqliteStore
from bicameral.journal._verification import VerifyProgress, find_breaks, missing_anchors

_MAX_TRIES = 20
"""Attempts to erase a run to which another process keeps appending."""


def _erase_events(store: JournalStore, run: str, why: str) -> tuple[int, int]:
    """Erase the events of one run; returns the number of events and blobs."""
    for _ in range(_MAX_TRIES):
        # The bodies may be large and are not needed here, so they are not selected.
        query = "SELECT run, number, at, kind, step, '', salt, digest, seal FROM events WHERE run = ? ORDER BY number"
        rows = [row_from_values(row) for row in store.select(query, (run,))]
        last = rows[-1]
        if last.kind == ERASED_KIND:
            return 0, 0
        body = {"why": why}
        if any(not row.digest for row in rows):
            body["facts"] = erased_facts_hash(rows)
        mark = seal_event(last.seal, run, last.number + 1, time.time(), ERASED_KIND, "", BlobPacker().pack_body(body))
        try:
            return store.erase(mark)
        except NumberTaken:
            # The run appended an event meanwhile; the next attempt erases that too.
            continue
    raise JournalError("journal.busy", f"{store.name}: run {run!r} goes on too fast to be erased", fix="Stop it first.")


def open_journal_at(place: str | Path) -> Journal:
    """The journal in a file or at an address; it is created if it does not exist.

    Args:
        place: A path, `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`.

    Example:
        >>> journal = open_journal_at("postgresql://bicameral@db.example.com/agents")
    """
    address = str(place)
    kind, separator, rest = address.partition("://")
    if isinstance(place, Path) or not separator:
        return Journal(Path(place))
    if kind.partition("+")[0] in ("postgresql", "postgres"):
        from bicameral.journal._postgres import PostgresStore

        return Journal(PostgresStore(f"postgresql://{rest}"))
    if kind == "sqlite" and rest.startswith("/"):
        return Journal(Path(rest[1:]))
    raise JournalError(
        "journal.unknown-address",
        f"there is no journal at {kind}://",
        expected="a file, sqlite:///FILE or postgresql://USER@HOST/DATABASE",
    )


class Journal:
    """Reads and appends events; other processes may append at the same time.

    It is opened with a SQLite file, which is created if needed, or a store. `path` is its name in messages: the file,
    or the address of a database without its password.

    Example:
        >>> with Journal(Path("journal.db")) as journal:
        ...     journal.append("run1", "run-started", "", {"request": "hello"})
    """

    def __init__(self, path: Path | JournalStore) -> None:
        self._store: JournalStore = SqliteStore(path) if isinstance(path, Path) else path
        self.path: Path | str = path if isinstance(path, Path) else path.name
        # Number and seal of the last event of each run that this object appends to, which saves a query per append.
        # Another process may append too; the primary key of the table then refuses the number (`NumberTaken`).
        self._tails: dict[str, tuple[int, str]] = {}
        # Reading the tail, sealing and storing must not interleave with another thread, or both take the same number.
        self._lock = RLock()
        # One worker, so that background writes keep their order.
        self._background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bicameral-journal")

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for background writes, then close the store."""
        self._background.shutdown(wait=True)
        self._store.close()

    def run_in_background(self, write: Callable[[Journal], None]) -> None:
        """Run `write` soon, in the journal's own thread."""
        try:
            self._background.submit(write, self)
        except RuntimeError:
            raise JournalError("journal.failed", f"{self.path}: the journal is closed") from None

    def append(
        self,
        run: str,
        kind: EventKind,
        step: str,
        body: dict[str, Any],
        *,
        first: int | None = None,
        sync: bool = False,
    ) -> Event:
        """Append one event. When this returns, it survives the death of the process, and with `sync` a power cut.

        Args:
            step: The path of the step, or an empty text for the run as a whole.
            body: The facts, as JSON. Known secrets in them are masked.
            first: The number that the event must get; see `append_all`.
        """
        return self.append_all(run, [NewEvent(time.time(), kind, step, body)], first=first, sync=sync)[0]

    def append_all(
        self, run: str, entries: Sequence[NewEvent], *, first: int | None = None, sync: bool = False
    ) -> list[Event]:
        """Append several events of a run: all of them or none.

        With `sync` they are on the disk when this returns, and so is everything appended before. `first` is the number
        that the first of them must get. If another process has appended to the run, so that the number would differ,
        the append is refused with `journal.fenced`: a process may only continue a run whose events it knows.
        """
        if not entries:
            return []
        packer = BlobPacker()
        try:
            texts = [packer.pack_body(entry.body) for entry in entries]
        except ValueError as error:
            raise JournalError("journal.unrecordable", f"a value cannot be written as JSON: {error}") from None
        with self._lock:
            # Removed first: if the append fails, the tail is unknown and is read again next time.
            tail = self._tails.pop(run, None)
            number, seal = tail or self._tail(run)
            if first is not None and number != first - 1:
                raise self._conflict_error(run, entries)
            rows: list[EventRow] = []
            events: list[Event] = []
            for (at, kind, step, body), text in zip(entries, texts, strict=True):
                number += 1
                row = seal_event(seal, run, number, at, kind, step, text)
                seal = row.seal
                rows.append(row)
                events.append(Event(run, number, at, kind, step, body))
            try:
                self._store.append(rows, packer.blobs, sync=sync)
            except NumberTaken:
                raise self._conflict_error(run, entries) from None
            # A run that has ended gets no more events as a rule, so its tail is not kept in memory.
            if entries[-1].kind not in END_KINDS:
                self._tails[run] = number, seal
        return events

    def _conflict_error(self, run: str, entries: Sequence[NewEvent]) -> JournalError:
        if any(entry.kind in ("run-started", "reason-started") for entry in entries):
            return JournalError(
                "journal.run-exists", f"{self.path}: run {run!r} is already being recorded", fix="Give it another id."
            )
        return JournalError(
            "journal.fenced",
            f"{self.path}: somebody else goes on with run {run!r}",
            fix="This process leaves it alone; `bicameral runs watch` shows how it goes on.",
        )

    def events(self, run: str, *, erased: bool = False) -> list[Event]:
        """All events of a run, in order; a record that was changed or erased is refused.

        Args:
            run: The id of the run, its unique beginning, or `last`.
            erased: Also return what remains of an erased run: events with empty bodies up to `run-erased`.
        """
        run = self.find(run)
        rows = self._rows(run)
        if fault := erasure_fault(rows):
            raise self._damage_error(fault)
        events = [self._event(row, fault) for row, fault in check_chain(rows)]
        if not erased and any(event.kind == ERASED_KIND for event in events):
            raise JournalError("journal.erased", f"{self.path}: what run {run} held was erased")
        return events

    def intact_events(self, run: str) -> list[Event]:
        """The events of a run before the first one that is damaged or missing; all of them if none is."""
        found: list[Event] = []
        for row, fault in check_chain(self._rows(self.find(run))):
            if fault or row.is_erased:
                break
            try:
                found.append(self._event(row, None))
            except JournalError:
                break
        return found

    def events_after(self, run: str, number: int, limit: int | None = None) -> list[Event]:
        """The events of a run after the one with this number; -1 is before the first. Empty if there are none.

        For watching a run: the id is given in full, and the run need not have started. With a `limit` at most so many
        are read.
        """
        found, fault = self.intact_events_after(run, number, limit)
        if fault:
            raise self._damage_error(fault)
        return found

    def intact_events_after(self, run: str, number: int, limit: int | None = None) -> tuple[list[Event], str]:
        """As `events_after`, up to the first event that is damaged or missing; and what is wrong with that, if any is.

        What is wrong is told without the place of the journal, for people who are not at this machine.
        """
        # One more: the seal of the event before is needed for the first.
        rows = self._rows(run, number, None if limit is None else limit + (number >= 0))
        erased = self._erased_up_to(run) if any(row.is_erased for row in rows) else -1
        seal = rows.pop(0).seal if number >= 0 and rows and rows[0].number == number else ""
        found: list[Event] = []
        for row, fault in check_chain(rows, seal, max(number + 1, 0)):
            if fault is None and row.is_erased and row.number > erased:
                fault = f"event {row.number} of run {run} was emptied, and nothing says that it was erased"
            if fault:
                return found, fault
            try:
                found.append(self._event(row, None))
            except JournalError as error:
                if error.code != "journal.damaged":
                    # The connection was lost, for example: that says nothing of the record.
                    raise
                return found, f"event {row.number} of run {run} cannot be read"
        return found, ""

    def _erased_up_to(self, run: str) -> int:
        """The number of the last mark that says that what is before it was erased; -1 if there is none."""
        query = "SELECT number FROM events WHERE run = ? AND kind = ? AND body <> '' ORDER BY number DESC LIMIT 1"
        return next((row[0] for row in self._store.select(query, (run, ERASED_KIND))), -1)

    def breaks_of(self, run: str) -> list[str]:
        """Every break in the record of one run as one line each, as `verify` finds them.

        The id is given in full, and the record need not begin as that of a run does: its beginning may be missing.
        """
        return list(find_breaks(self._store, run))

    def _rows(self, run: str, since: int = 0, limit: int | None = None) -> list[EventRow]:
        # No value is interpolated, only constant names.
        query = f"SELECT {COLUMNS} FROM events WHERE run = ? AND number >= ? ORDER BY number"  # noqa: S608
        values = (run, since)
        if limit is not None:
            query, values = f"{query} LIMIT ?", (*values, limit)
        return [row_from_values(row) for row in self._store.select(query, values)]

    def _event(self, row: EventRow, fault: str | None) -> Event:
        if fault:
            raise self._damage_error(fault)
        kind = cast("EventKind", row.kind)
        return Event(row.run, row.number, row.at, kind, row.step, self._read(row.body))

    def verify(
        self, run: str | None = None, *, known: Iterable[Anchor] = (), progress: VerifyProgress | None = None
    ) -> list[str]:
        """Every break in the record of a run, or of all runs, as one line each; an empty list means that it is intact.

        The chain alone cannot show that the last events of a run, or all of it, are gone, or that everything from some
        event on was sealed again. Anchors that are `known` from elsewhere (see `anchor`) show it, for all events up to
        them. `progress` is called after each run.
        """
        missing = missing_anchors(self._store, known)
        return [*missing, *find_breaks(self._store, self.find(run) if run is not None else None, progress)]

    def anchor(self, run: str) -> Anchor:
        """The last event of a run with its seal, to verify the record against later."""
        run = self.find(run)
        number, seal = self._tail(run)
        return Anchor(run, number, seal)

    def anchors(self) -> list[Anchor]:
        """The last event of every run with its seal."""
        return select_anchors(self._store)

    def erase(self, run: str, why: str = "asked for") -> Erasure:
        """Remove the content of a run for good: its request, plan, arguments, results and answers.

        What remains is that there was a run, the time and kind of its events, and that it was erased. A process that is
        still running it fails at its next event.
        """
        with self._lock:
            run = self.find(run)
            self._tails.pop(run, None)
            # Of a run that is erased already only the files are scrubbed again.
            return Erasure((run,), *self._erase_with_undo(run, why), self._store.scrub())

    def prune(self, older_than: float, *, unfinished: bool = False, why: str = "retention") -> Erasure:
        """Erase every run whose last event is this many seconds old; unfinished runs only with `unfinished`."""
        with self._lock:
            self._tails.clear()
            query = (
                "SELECT e.run, e.kind FROM events e JOIN (SELECT run, max(number) AS number FROM events GROUP BY run) "
                "l ON e.run = l.run AND e.number = l.number WHERE e.at < ? AND e.kind <> ? ORDER BY e.run"
            )
            found = self._store.select(query, (time.time() - older_than, ERASED_KIND))
            runs = tuple(
                run for run, kind in found if (unfinished or kind in END_KINDS) and not str(run).endswith(UNDO_SUFFIX)
            )
            erased = [self._erase_with_undo(run, why) for run in runs]
            scrubbed = self._store.scrub() if runs else True
            return Erasure(runs, sum(events for events, _ in erased), sum(values for _, values in erased), scrubbed)

    def _erase_with_undo(self, run: str, why: str) -> tuple[int, int]:
        """Erase a run, and what is recorded about taking it back, which names its files."""
        undone = f"{run}{UNDO_SUFFIX}"
        names = [run, *([undone] if self._tail(undone)[0] >= 0 else [])]
        for name in names:
            self._tails.pop(name, None)
        erased = [_erase_events(self._store, name, why) for name in names]
        return sum(events for events, _ in erased), sum(values for _, values in erased)

    def find(self, run: str) -> str:
        """The full id of a run, or of a reasoning over several runs, from its beginning; `last` is the newest run."""
        if run == "last":
            newest = next(self.runs(limit=1), None)
            if newest is None:
                raise JournalError("journal.no-runs", f"{self.path} holds no run yet")
            return newest.run
        query = (
            "SELECT run FROM events WHERE kind IN ('run-started', 'reason-started') AND number = 0 "
            "AND run >= ? AND run < ? LIMIT 20"
        )
        # A range instead of LIKE: it uses the primary key, and ids may contain `%` and `_`.
        matches = [row[0] for row in self._store.select(query, (run, run + "\U0010ffff"))]
        if run in matches or len(matches) == 1:
            return run if run in matches else matches[0]
        if matches:
            raise JournalError(
                "journal.ambiguous-run",
                f"{run!r} begins several runs: {', '.join(matches[:3])}",
                fix="Give more of the id.",
            )
        known = [summary.run for summary in self.runs(limit=200)]
        raise JournalError("journal.unknown-run", f"there is no run {run!r}", nearest=nearest_name(run, known))

    def newest_chat(self, beginning: str) -> str | None:
        """The id of the newest conversation whose id begins so; None if there is none, or it was erased."""
        query = (
            "SELECT s.run FROM events s WHERE s.kind = 'chat-started' AND s.number = 0 AND s.run >= ? AND s.run < ? "
            "AND NOT EXISTS (SELECT 1 FROM events e WHERE e.run = s.run AND e.kind = 'run-erased') "
            "ORDER BY s.at DESC, s.run DESC LIMIT 1"
        )
        return next((row[0] for row in self._store.select(query, (beginning, beginning + "\U0010ffff"))), None)

    def runs(self, limit: int = 50) -> Iterator[RunSummary]:
        """The newest runs, the newest first."""
        query = (
            "SELECT s.run, s.at, s.body, e.kind, e.at FROM events s JOIN events e ON e.run = s.run "
            "AND e.number = (SELECT max(number) FROM events WHERE run = s.run) "
            "WHERE s.kind = 'run-started' ORDER BY s.at DESC, s.run DESC LIMIT ?"
        )
        for run, at, body, kind, last in self._store.select(query, (limit,)):
            try:
                request = str(self._read(body, "request").get("request") or "")
            except JournalError as error:
                if error.code != "journal.damaged":
                    raise
                # The others are listed all the same.
                yield RunSummary(run, at, "", "damaged", None)
                continue
            if kind in END_KINDS or kind == ERASED_KIND:
                seconds = last - at if kind in END_KINDS else None
                yield RunSummary(run, at, request, cast("RunStatus", kind.removeprefix("run-")), seconds)
            else:
                yield RunSummary(run, at, request, "unfinished", None)

    def newest_runs(self, limit: int) -> list[str]:
        """The ids of the newest runs, the newest first; quicker than `runs`, which reads how each began and ended."""
        return select_newest_runs(self._store, limit)

    def cost_events(
        self, since: float = 0.0, until: float = math.inf, *, runs: Collection[str] | None = None
    ) -> Iterator[tuple[str, float, str, str, dict[str, Any]]]:
        """What the events of all runs, or of these, say about model calls: run, time, kind, step and facts, by time.

        Args:
            since: Only events from this time on.
            until: Only events before this time.
            runs: Only the events of these runs, by their full ids.
        """
        for event in sorted(
            self.cost_records(since, until, runs=runs), key=lambda each: (each.at, each.number, each.run)
        ):
            yield event.run, event.at, event.kind, event.step, event.body

    def cost_records(
        self, since: float = 0.0, until: float = math.inf, *, runs: Collection[str] | None = None
    ) -> Iterator[Event]:
        """The same as events, by run and number, with only the facts about model calls."""
        for row in select_events(self._store, COST_KINDS, runs, since=since, until=until):
            # Most ends of runs say nothing of models, and may hold a long answer: those are not parsed.
            facts = self._read(row.body, *COST_FACTS) if row.mentions(*COST_LISTS) else {}
            yield Event(row.run, row.number, row.at, cast("EventKind", row.kind), row.step, facts)

    def cost_ids(
        self, since: float = 0.0, until: float = math.inf, *, runs: Collection[str] | None = None
    ) -> list[EventId]:
        """Which events these are, as far as they were not erased, without reading them."""
        return select_event_ids(self._store, COST_KINDS, runs, since, until)

    def events_with(
        self, fact: str, kinds: Collection[EventKind], *, runs: Collection[str] | None = None
    ) -> Iterator[Event]:
        """The events of these kinds whose body has a fact, by run and number, with that fact alone.

        Args:
            fact: The entry of the body that is wanted, such as `alerts`.
            kinds: The kinds.
            runs: Only the events of these runs, by their full ids.
        """
        for row in select_events(self._store, kinds, runs, fact=fact):
            if body := self._read(row.body, fact):
                yield Event(row.run, row.number, row.at, cast("EventKind", row.kind), row.step, body)

    def _tail(self, run: str) -> tuple[int, str]:
        """The number and seal of the last event of a run; -1 and an empty seal if there is none."""
        query = "SELECT number, seal FROM events WHERE run = ? ORDER BY number DESC LIMIT 1"
        return next(iter(self._store.select(query, (run,))), (-1, ""))

    def _read(self, text: str, *only: str) -> dict[str, Any]:
        """The body of an event, or some of its entries; the body of an erased event is empty."""
        if not text:
            return {}
        try:
            body = cast("dict[str, Any]", json.loads(text))
            return {
                key: unpack_value(value, self._store.blob) for key, value in body.items() if not only or key in only
            }
        except (ValueError, AttributeError, TypeError) as error:
            raise self._damage_error(str(error)) from None

    def _damage_error(self, fault: str) -> JournalError:
        return JournalError("journal.damaged", f"{self.path}: {fault}")
