"""What the models took in submitted runs, the rounds of requests in rounds included."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace

from bicameral.durable._views import run_of_fallback
from bicameral.journal import EventId, Journal
from bicameral.limits import CostEntry, cost_entries

MAX_KEPT = 500_000
"""Events that are kept; beyond that all are read anew."""
MAX_NAMED = 400
"""Runs that are read by their names; if more have something new, the whole time is read."""


def rounds_of_runs(journal: Journal, runs: Collection[str]) -> dict[str, str]:
    """The runs that requests in rounds consist of, each with the request that its own record says it belongs to.

    Args:
        journal: The record.
        runs: The ids of runs, of which some may be requests in rounds.
    """
    planned = journal.events_with("run", ("reason-planned",), runs=runs)
    found = {str(event.body["run"]): event.run for event in planned}
    # The plan that is run instead of the rounds is in none of them.
    begun = journal.events_with("request", ("reason-started",), runs=runs)
    return found | {run_of_fallback(event.run): event.run for event in begun}


class CostLog:
    """What models took by a journal, of which every event is read once: a recorded event never changes.

    Example:
        >>> report = CostReport.of(CostLog().entries(journal, since=yesterday))
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], tuple[CostEntry, ...]] = {}
        # Two at once would read the same events twice.
        self._lock = threading.Lock()

    def entries(
        self, journal: Journal, runs: Collection[str] | None = None, since: float = 0.0, until: float = math.inf
    ) -> list[CostEntry]:
        """What models took in these runs and their rounds, or in all runs of the journal, by time.

        What a round took counts for the request; a plan that never ran is in no run, and not counted. What was erased
        is not counted any more.

        Args:
            journal: The record.
            runs: The ids of the runs; None for all of the journal, which then keep their own ids.
            since: Only what was asked from this time on.
            until: Only what was asked before this time.
        """
        rounds = {} if runs is None else rounds_of_runs(journal, runs)
        wanted = None if runs is None else {*runs, *rounds}
        found: list[CostEntry] = []
        with self._lock:
            ids = journal.cost_ids(since, until, runs=wanted)
            self._read_missing(journal, ids, wanted, until)
            for run, number, _ in sorted(ids, key=lambda each: (each.at, each.number, each.run)):
                found += self._kept.get((run, number), ())
        return [replace(each, run=rounds.get(each.run, each.run)) for each in found] if rounds else found

    def _read_missing(
        self, journal: Journal, ids: Sequence[EventId], runs: Collection[str] | None, until: float
    ) -> None:
        missing = [each for each in ids if (each.run, each.number) not in self._kept]
        if not missing:
            return
        if len(self._kept) + len(missing) > MAX_KEPT:
            self._kept.clear()
            missing = list(ids)
        where = {each.run for each in missing}
        some = where if len(where) < MAX_NAMED else runs
        for event in journal.cost_records(min(each.at for each in missing), until, runs=some):
            entries = cost_entries(event.run, event.at, event.kind, event.step, event.body)
            self._kept[event.run, event.number] = tuple(entries)
