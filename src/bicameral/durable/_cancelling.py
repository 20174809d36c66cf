"""Runs that are stopped from outside, and runs that are forgotten."""

from __future__ import annotations

from contextlib import suppress

import sqlalchemy as sa

from bicameral.errors import DurableError, JournalError
from bicameral.runs import Journal

from ._database import Database
from ._ended import is_ended
from ._questions import withdraw
from ._submitting import found
from ._views import ENDED


def cancelled(database: Database, db: sa.Connection, run: str, user: str | None) -> tuple[str, bool]:
    """Stop a run that nobody works on, and ask the worker of any other to; True if it was stopped here."""
    runs, now = database.t.runs, database.now
    id = str(found(database, db, run, user)["run"])
    idle = sa.and_(runs.c.run == id, runs.c.state.in_(("queued", "waiting")))
    stop = runs.update().where(idle).values(state="stopped", cancel=1, updated=now, why="it was cancelled")
    if db.execute(stop).rowcount:
        withdraw(database, db, id)
        return id, True
    asked = runs.update().where(runs.c.run == id, runs.c.state == "running").values(cancel=1, updated=now)
    db.execute(asked)
    return id, False


def hurried(database: Database, db: sa.Connection, run: str, user: str | None) -> str:
    """A run that waits for its time, or to be tried again, is due now."""
    runs = database.t.runs
    id = str(found(database, db, run, user)["run"])
    waits = sa.and_(runs.c.run == id, runs.c.state == "queued", runs.c.dispatch.is_(None))
    db.execute(runs.update().where(waits).values(not_before=None, updated=database.now))
    return id


def closed(journal: Journal, run: str) -> None:
    """The record of a run that had begun gets its end. One that had not has no record."""
    with suppress(JournalError):
        events = journal.after(run, -1)
        if events and not is_ended(events):
            journal.append(run, "run-stopped", "", {"in_flight": [], "why": "it was cancelled"})


def forgotten(database: Database, db: sa.Connection, run: str, user: str | None) -> None:
    """Delete the row of a run that has ended, with its questions."""
    runs, approvals = database.t.runs, database.t.approvals
    row = found(database, db, run, user)
    if row["state"] not in ENDED:
        raise DurableError("durable.not-ended", f"the run {row['run']} is {row['state']}", fix="Cancel it first.")
    db.execute(approvals.delete().where(approvals.c.run == row["run"]))
    db.execute(runs.delete().where(runs.c.run == row["run"], runs.c.state.in_(tuple(ENDED))))
