"""Queries over the events of many runs: by kind, time and run, some at a time.

Bodies may be large, and there may be very many of them. They are read in the order of the primary key, so that no
database sorts them, and those that say nothing of what is looked for are not parsed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from bicameral.journal._events import Anchor, EventKind, JournalStore

COST_KINDS: tuple[EventKind, ...] = (
    "model-called",
    "run-started",
    "run-finished",
    "run-failed",
    "run-stopped",
    "reason-round",
)
COST_LISTS = ("charges", "planning_calls", "lost_calls")
"""The facts of an event that have charges."""
COST_FACTS = ("role", "degraded", *COST_LISTS)

_PAGE_EVENTS = 2_000
"""Events that are read at once."""
_PAGE_RUNS = 200
"""Runs that one query names."""
_END_OF_TIME = 1e18
"""Later than every event; databases differ in how they write infinity."""


class BriefRow(NamedTuple):
    """An event as it is stored, without its seal."""

    run: str
    number: int
    at: float
    kind: str
    step: str
    body: str

    def mentions(self, *facts: str) -> bool:
        """Whether the body may have one of these facts; quicker than parsing it."""
        return any(f'"{name}":' in self.body for name in facts)


class EventId(NamedTuple):
    """Which event it is, and when it was."""

    run: str
    number: int
    at: float


def select_events(
    store: JournalStore,
    kinds: Collection[EventKind],
    runs: Collection[str] | None = None,
    *,
    since: float = 0.0,
    until: float = math.inf,
    fact: str = "",
) -> Iterator[BriefRow]:
    """The events of these kinds, by run and number.

    Args:
        store: Where they are.
        kinds: The kinds.
        runs: Only the events of these runs, by their full ids.
        since: Only events from this time on.
        until: Only events before this time.
        fact: Only events whose body may have this fact.
    """
    marks = ", ".join("?" * len(kinds))
    begin = f"SELECT run, number, at, kind, step, body FROM events WHERE kind IN ({marks}) AND at >= ? AND at < ?"  # noqa: S608
    common: tuple[Any, ...] = (*kinds, since, min(until, _END_OF_TIME))
    if fact:
        begin, common = f"{begin} AND body LIKE ?", (*common, f'%"{fact}":%')
    end = f"AND (run, number) > (?, ?) ORDER BY run, number LIMIT {_PAGE_EVENTS}"
    if runs is None:
        yield from _select_pages(store, f"{begin} {end}", common)
        return
    for some in _chunks(runs):
        among = f"AND run IN ({', '.join('?' * len(some))})"
        yield from _select_pages(store, f"{begin} {among} {end}", (*common, *some))


def _select_pages(store: JournalStore, query: str, values: tuple[Any, ...]) -> Iterator[BriefRow]:
    """The rows of a query page by page; its last two values are where the page before ended."""
    run, number = "", -1
    while True:
        rows = [BriefRow(*row) for row in store.select(query, (*values, run, number))]
        yield from rows
        if len(rows) < _PAGE_EVENTS:
            return
        run, number = rows[-1].run, rows[-1].number


def select_event_ids(
    store: JournalStore, kinds: Collection[EventKind], runs: Collection[str] | None, since: float, until: float
) -> list[EventId]:
    """The events of these kinds without their bodies, as far as those were not erased."""
    marks = ", ".join("?" * len(kinds))
    query = f"SELECT run, number, at FROM events WHERE kind IN ({marks}) AND at >= ? AND at < ? AND body <> ''"  # noqa: S608
    common = (*kinds, since, min(until, _END_OF_TIME))
    if runs is None:
        return [EventId(*row) for row in store.select(query, common)]
    found: list[EventId] = []
    for some in _chunks(runs):
        among = f"{query} AND run IN ({', '.join('?' * len(some))})"
        found += [EventId(*row) for row in store.select(among, (*common, *some))]
    return found


def _chunks(runs: Collection[str]) -> Iterator[list[str]]:
    names = sorted(runs)
    for start in range(0, len(names), _PAGE_RUNS):
        yield names[start : start + _PAGE_RUNS]


def select_newest_runs(store: JournalStore, limit: int) -> list[str]:
    """The ids of the newest runs, the newest first."""
    query = "SELECT run FROM events WHERE kind = 'run-started' ORDER BY at DESC, run DESC LIMIT ?"
    return [row[0] for row in store.select(query, (limit,))]


def select_anchors(store: JournalStore) -> list[Anchor]:
    """The last event of every run with its seal."""
    query = (
        "SELECT e.run, e.number, e.seal FROM events e JOIN (SELECT run, max(number) AS number FROM events "
        "GROUP BY run) l ON e.run = l.run AND e.number = l.number ORDER BY e.run"
    )
    return [Anchor(run, number, seal) for run, number, seal in store.select(query)]
