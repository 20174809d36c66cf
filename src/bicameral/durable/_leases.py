"""Who has a run: taken by one worker at a time, for as long as it is heard of, and given on when it is not.

Every change names the attempt and the worker it is made for, so it is made once or not at all, whoever else is at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ._database import Database
from ._dispatch import QUEUE, Dispatch, workflow_id

MAX_REAPED = 100
ASTRAY = 2.0
"""Seconds after which an attempt that a worker was given, and never got, is lost."""
SLOWEST = 60.0
"""Seconds that a run which fails again and again waits at most until it is tried again."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One attempt of a run by one worker."""

    run: str
    attempt: int
    worker: str

    @property
    def question(self) -> str:
        """The id of the question that this attempt may end with."""
        return f"{self.run}.{self.attempt}"

    def held(self, database: Database) -> sa.ColumnElement[bool]:
        runs = database.t.runs
        own = sa.and_(runs.c.run == self.run, runs.c.attempt == self.attempt, runs.c.worker == self.worker)
        return sa.and_(own, runs.c.state == "running")


def claim(database: Database, db: sa.Connection, lease: Lease, seconds: float) -> sa.RowMapping | None:
    """Take a run that is queued; None if it is not, or not in this attempt."""
    runs, now = database.t.runs, database.now
    here = sa.and_(runs.c.run == lease.run, runs.c.attempt == lease.attempt)
    # Taken already by this very attempt, if the first commit was in doubt.
    free = sa.or_(runs.c.state == "queued", sa.and_(runs.c.state == "running", runs.c.worker == lease.worker))
    taken = runs.update().where(here, free)
    taken = taken.values(state="running", worker=lease.worker, lease_until=now + seconds, updated=now)
    return db.execute(taken.returning(*runs.c)).mappings().first()


def keep_plan(database: Database, db: sa.Connection, lease: Lease, planned: str) -> bool:
    """Write the plan of a run down, so that no later attempt plans again."""
    runs = database.t.runs
    kept = runs.update().where(lease.held(database)).values(planned=planned, updated=database.now)
    return db.execute(kept).rowcount == 1


def went_on(database: Database, db: sa.Connection, lease: Lease, reached: int) -> None:
    """A run that has come further than the last time is not stuck."""
    runs = database.t.runs
    db.execute(runs.update().where(lease.held(database), runs.c.reached < reached).values(reached=reached, deaths=0))


def finish(
    database: Database, db: sa.Connection, lease: Lease, state: str, outcome: str | None, why: str | None
) -> bool:
    """Write down how a run ended. False if it is not this worker's any more, or was written down already."""
    runs = database.t.runs
    ended = runs.update().where(lease.held(database))
    ended = ended.values(state=state, outcome=outcome, why=why, worker=None, lease_until=None, updated=database.now)
    return db.execute(ended).rowcount == 1


def give_back(
    database: Database,
    dispatch: Dispatch,
    db: sa.Connection,
    lease: Lease,
    why: str | None,
    delay: float = 0.0,
    *,
    died: bool = False,
) -> bool:
    """Let somebody else go on with a run, now or after a while."""
    values: dict[str, Any] = {"why": why}
    if died:
        values["deaths"] = database.t.runs.c.deaths + 1
    return bool(queue_again(database, dispatch, db, lease.held(database), "running", delay, **values))


def queue_again(
    database: Database,
    dispatch: Dispatch,
    db: sa.Connection,
    which: sa.ColumnElement[bool],
    state: str,
    delay: float = 0.0,
    **values: Any,
) -> list[str]:
    """The next attempt of runs that are in a state: due at once, or after a while."""
    runs, now = database.t.runs, database.now
    again = runs.update().where(which, runs.c.state == state)
    again = again.values(
        state="queued",
        attempt=runs.c.attempt + 1,
        worker=None,
        lease_until=None,
        updated=now,
        not_before=now + delay if delay else None,
        dispatch=None,
        **values,
    )
    rows = db.execute(again.returning(runs.c.run, runs.c.attempt, runs.c.user, runs.c.priority)).all()
    if not delay:
        _enqueue(database, dispatch, db, rows)
    return [row.run for row in rows]


def due(database: Database, dispatch: Dispatch, db: sa.Connection) -> int:
    """Queue the attempts whose time has come."""
    runs = database.t.runs
    ready = sa.and_(runs.c.state == "queued", runs.c.dispatch.is_(None))
    ready = sa.and_(ready, sa.or_(runs.c.not_before.is_(None), runs.c.not_before <= database.now))
    some = sa.select(runs.c.run).where(ready).order_by(runs.c.priority).limit(MAX_REAPED)
    rows = db.execute(
        runs.update()
        .where(runs.c.run.in_(some.with_for_update(skip_locked=True)), ready)
        .values(updated=database.now)
        .returning(runs.c.run, runs.c.attempt, runs.c.user, runs.c.priority)
    ).all()
    _enqueue(database, dispatch, db, rows)
    return len(rows)


def _enqueue(database: Database, dispatch: Dispatch, db: sa.Connection, rows: Sequence[Any]) -> None:
    runs = database.t.runs
    for row in rows:
        id = workflow_id(row.run, row.attempt)
        db.execute(runs.update().where(runs.c.run == row.run, runs.c.attempt == row.attempt).values(dispatch=id))
        dispatch.enqueue(db, row.run, row.attempt, row.user, row.priority)


def reap(database: Database, dispatch: Dispatch, db: sa.Connection) -> list[str]:
    """Take the runs of workers that are not heard of, and queue them; gives the attempts that nobody makes any more.

    One that has killed too many is queued too: its next attempt finds that, does nothing of it, and gives it up.
    """
    runs = database.t.runs
    over = sa.and_(runs.c.state == "running", runs.c.lease_until < database.now)
    query = sa.select(runs.c.run, runs.c.dispatch, runs.c.deaths).where(over).limit(MAX_REAPED)
    rows = db.execute(query.with_for_update(skip_locked=True)).all()
    gone: list[str] = []
    for row in rows:
        # Another worker may have been quicker.
        here = sa.and_(over, runs.c.run == row.run, runs.c.dispatch == row.dispatch)
        if queue_again(database, dispatch, db, here, "running", slow(row.deaths), deaths=row.deaths + 1):
            gone.append(row.dispatch)
    return gone


def slow(deaths: int) -> float:
    """The first time at once, and then more and more slowly: whatever kills workers is not to kill all at once."""
    return 0.0 if deaths < 1 else min(SLOWEST, 0.5 * 2.0 ** min(deaths - 1, 10))


def stuck(
    database: Database, dispatch: Dispatch, db: sa.Connection, lease: float, worker: str, known: Sequence[str]
) -> list[str]:
    """Attempts that DBOS gave to a worker and that never began there: it died just then, or lost its connection.

    Of others this is so when a lease is over; a worker itself knows sooner what it was given and never got. One that
    comes later after all finds that it is not its turn any more.
    """
    runs, flows, now = database.t.runs, database.t.workflows, database.now
    since = flows.c.started_at_epoch_ms
    astray = sa.and_(flows.c.executor_id == worker, since < (now - ASTRAY) * 1000, flows.c.workflow_uuid.not_in(known))
    given = sa.select(flows.c.workflow_uuid).where(flows.c.queue_name == QUEUE, flows.c.status == "PENDING")
    given = given.where(sa.or_(since < (now - lease) * 1000, astray))
    never = sa.and_(runs.c.state == "queued", runs.c.dispatch.in_(given))
    found = list(db.execute(sa.select(runs.c.dispatch).where(never).limit(MAX_REAPED)).scalars())
    if found:
        queue_again(database, dispatch, db, sa.and_(never, runs.c.dispatch.in_(found)), "queued")
    return found
