"""Erasing what runs hold, and nothing of the chain that says that they were."""

from __future__ import annotations

import time

from bicameral.errors import JournalError

from ._blobs import Packing
from ._chain import facts_of, row_of, sealed
from ._events import ENDS, ERASED, Erased
from ._store import Store, Taken

_TRIES = 20


def erase_run(store: Store, run: str, why: str) -> Erased:
    """Erase one run; one that is erased already is only scrubbed once more."""
    events, values = _emptied(store, run, why)
    return Erased((run,), events, values, store.scrub())


def prune_runs(store: Store, before: float, *, unfinished: bool, why: str) -> Erased:
    """Erase all runs whose last event is older."""
    query = (
        "SELECT e.run, e.kind FROM events e JOIN (SELECT run, max(number) AS number FROM events GROUP BY run) l "
        "ON e.run = l.run AND e.number = l.number WHERE e.at < ? AND e.kind <> ? ORDER BY e.run"
    )
    runs = tuple(run for run, kind in store.select(query, (before, ERASED)) if unfinished or kind in ENDS)
    events = values = 0
    for run in runs:
        emptied, dropped = _emptied(store, run, why)
        events, values = events + emptied, values + dropped
    return Erased(runs, events, values, store.scrub() if runs else True)


def _emptied(store: Store, run: str, why: str) -> tuple[int, int]:
    for _ in range(_TRIES):
        # Without the bodies: they may be large, and nothing is done with them but to let them go.
        query = "SELECT run, number, at, kind, step, '', salt, digest, seal FROM events WHERE run = ? ORDER BY number"
        rows = [row_of(row) for row in store.select(query, (run,))]
        last = rows[-1]
        if last.kind == ERASED:
            return 0, 0
        body = {"why": why}
        if any(not row.digest for row in rows):
            body["facts"] = facts_of(rows)
        mark = sealed(last.seal, run, last.number + 1, time.time(), ERASED, "", Packing().written(body))
        try:
            return store.erase(mark)
        except Taken:
            # The run went on meanwhile; what it wrote goes too.
            continue
    raise JournalError("journal.busy", f"{store.name}: run {run!r} goes on too fast to be erased", fix="Stop it first.")
