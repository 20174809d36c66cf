"""Leases and heartbeats: a run belongs to one worker, for as long as that worker is heard of.

Every change names the attempt and the worker it is made for, so it is made once or not at all, whoever else tries. The
heartbeat is a thread with a connection of its own, so that neither a busy event loop nor a crowd at the database stops
it. If it cannot reach the database for the length of a lease, the worker's runs are no longer its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bicameral.durable._database import Database
from bicameral.durable._queue import QUEUE, Dispatcher, workflow_id

if TYPE_CHECKING:
    from bicameral.durable._database import Database


MAX_BATCH = 100
UNDELIVERED_SECONDS = 2.0
"""Seconds after which an attempt that a worker was given, and never got, is lost."""
MAX_RETRY_DELAY = 60.0
"""Seconds that a run which fails again and again waits at most until it is tried again."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One attempt of a run by one worker."""

    run: str
    attempt: int
    worker: str

    @property
    def question_id(self) -> str:
        """The id of the question that this attempt may end with."""
        return f"{self.run}.{self.attempt}"

    def held_condition(self, database: Database) -> sa.ColumnElement[bool]:
        runs = database.tables.runs
        own = sa.and_(runs.c.run == self.run, runs.c.attempt == self.attempt, runs.c.worker == self.worker)
        return sa.and_(own, runs.c.state == "running")


def claim_run(database: Database, db: sa.Connection, lease: Lease, seconds: float) -> sa.RowMapping | None:
    """Take a run that is queued; None if it is not, or not in this attempt."""
    runs, now = database.tables.runs, database.now
    here = sa.and_(runs.c.run == lease.run, runs.c.attempt == lease.attempt)
    # Taken already by this very attempt, if the first commit was in doubt.
    free = sa.or_(runs.c.state == "queued", sa.and_(runs.c.state == "running", runs.c.worker == lease.worker))
    taken = runs.update().where(here, free)
    taken = taken.values(state="running", worker=lease.worker, lease_until=now + seconds, updated=now)
    return db.execute(taken.returning(*runs.c)).mappings().first()


def keep_plan(database: Database, db: sa.Connection, lease: Lease, planned: str) -> bool:
    """Write the plan of a run down, so that no later attempt plans again."""
    runs = database.tables.runs
    kept = runs.update().where(lease.held_condition(database)).values(planned=planned, updated=database.now)
    return db.execute(kept).rowcount == 1


def record_progress(database: Database, db: sa.Connection, lease: Lease, reached: int) -> None:
    """A run that has come further than the last time is not stuck."""
    runs = database.tables.runs
    db.execute(
        runs.update().where(lease.held_condition(database), runs.c.reached < reached).values(reached=reached, deaths=0)
    )


def finish_run(
    database: Database, db: sa.Connection, lease: Lease, state: str, outcome: str | None, why: str | None
) -> bool:
    """Write down how a run ended. False if it is not this worker's any more, or was written down already."""
    runs = database.tables.runs
    ended = runs.update().where(lease.held_condition(database))
    ended = ended.values(state=state, outcome=outcome, why=why, worker=None, lease_until=None, updated=database.now)
    return db.execute(ended).rowcount == 1


def release_run(
    database: Database,
    dispatch: Dispatcher,
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
        values["deaths"] = database.tables.runs.c.deaths + 1
    return bool(requeue_runs(database, dispatch, db, lease.held_condition(database), "running", delay, **values))


def requeue_runs(
    database: Database,
    dispatch: Dispatcher,
    db: sa.Connection,
    which: sa.ColumnElement[bool],
    state: str,
    delay: float = 0.0,
    **values: Any,
) -> list[str]:
    """The next attempt of runs that are in a state: due at once, or after a while."""
    runs, now = database.tables.runs, database.now
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
        _enqueue_attempts(database, dispatch, db, rows)
    return [row.run for row in rows]


def enqueue_due_runs(database: Database, dispatch: Dispatcher, db: sa.Connection) -> int:
    """Queue the attempts whose time has come."""
    runs = database.tables.runs
    ready = sa.and_(runs.c.state == "queued", runs.c.dispatch.is_(None))
    ready = sa.and_(ready, sa.or_(runs.c.not_before.is_(None), runs.c.not_before <= database.now))
    some = sa.select(runs.c.run).where(ready).order_by(runs.c.priority).limit(MAX_BATCH)
    rows = db.execute(
        runs.update()
        .where(runs.c.run.in_(some.with_for_update(skip_locked=True)), ready)
        .values(updated=database.now)
        .returning(runs.c.run, runs.c.attempt, runs.c.user, runs.c.priority)
    ).all()
    _enqueue_attempts(database, dispatch, db, rows)
    return len(rows)


def _enqueue_attempts(database: Database, dispatch: Dispatcher, db: sa.Connection, rows: Sequence[Any]) -> None:
    runs = database.tables.runs
    for row in rows:
        id = workflow_id(row.run, row.attempt)
        db.execute(runs.update().where(runs.c.run == row.run, runs.c.attempt == row.attempt).values(dispatch=id))
        dispatch.enqueue(db, row.run, row.attempt, row.user, row.priority)


def reap_expired_leases(database: Database, dispatch: Dispatcher, db: sa.Connection) -> list[str]:
    """Take the runs of workers that are not heard of, and queue them; gives the attempts that nobody makes any more.

    One that has killed too many is queued too: its next attempt finds that, does nothing of it, and gives it up.
    """
    runs = database.tables.runs
    over = sa.and_(runs.c.state == "running", runs.c.lease_until < database.now)
    query = sa.select(runs.c.run, runs.c.dispatch, runs.c.deaths).where(over).limit(MAX_BATCH)
    rows = db.execute(query.with_for_update(skip_locked=True)).all()
    gone: list[str] = []
    for row in rows:
        # Another worker may have been quicker.
        here = sa.and_(over, runs.c.run == row.run, runs.c.dispatch == row.dispatch)
        if requeue_runs(database, dispatch, db, here, "running", retry_delay(row.deaths), deaths=row.deaths + 1):
            gone.append(row.dispatch)
    return gone


def retry_delay(deaths: int) -> float:
    """The first time at once, and then more and more slowly: whatever kills workers is not to kill all at once."""
    return 0.0 if deaths < 1 else min(MAX_RETRY_DELAY, 0.5 * 2.0 ** min(deaths - 1, 10))


def requeue_undelivered(
    database: Database, dispatch: Dispatcher, db: sa.Connection, lease: float, worker: str, known: Sequence[str]
) -> list[str]:
    """Attempts that DBOS gave to a worker and that never began there: it died just then, or lost its connection.

    Of others this is so when a lease is over; a worker itself knows sooner what it was given and never got. One that
    comes later after all finds that it is not its turn any more.
    """
    runs, flows, now = database.tables.runs, database.tables.workflows, database.now
    since = flows.c.started_at_epoch_ms
    astray = sa.and_(
        flows.c.executor_id == worker, since < (now - UNDELIVERED_SECONDS) * 1000, flows.c.workflow_uuid.not_in(known)
    )
    given = sa.select(flows.c.workflow_uuid).where(flows.c.queue_name == QUEUE, flows.c.status == "PENDING")
    given = given.where(sa.or_(since < (now - lease) * 1000, astray))
    never = sa.and_(runs.c.state == "queued", runs.c.dispatch.in_(given))
    found = list(db.execute(sa.select(runs.c.dispatch).where(never).limit(MAX_BATCH)).scalars())
    if found:
        requeue_runs(database, dispatch, db, sa.and_(never, runs.c.dispatch.in_(found)), "queued")
    return found


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """What the database says back: the runs that are still this worker's, with their attempts, and those to stop."""

    leases: Mapping[str, int]
    cancelled: frozenset[str]


def send_heartbeat(
    database: Database,
    db: sa.Connection,
    me: Mapping[str, Any],
    held: Sequence[str],
    turns: Sequence[str],
    seconds: float,
) -> HeartbeatReply:
    """Renew the leases of these runs and turns, as far as they are still this worker's."""
    runs, workers, holders, now = database.tables.runs, database.tables.workers, database.tables.holders, database.now
    insert = sqlite.insert if database.sqlite else postgresql.insert
    row = {**me, "started": now, "seen": now}
    new = insert(workers).values(**row)
    again = new.on_conflict_do_update(
        index_elements=["worker"], set_={"seen": now, "runs": me["runs"], "concurrency": me["concurrency"]}
    )
    db.execute(again)
    own = sa.and_(runs.c.worker == me["worker"], runs.c.state == "running", runs.c.run.in_(held))
    renewed = runs.update().where(own).values(lease_until=now + seconds)
    rows = db.execute(renewed.returning(runs.c.run, runs.c.attempt, runs.c.cancel)).all()
    if turns:
        mine = sa.and_(holders.c.worker == me["worker"], holders.c.id.in_(turns))
        db.execute(holders.update().where(mine).values(until=now + seconds))
    return HeartbeatReply({row.run: row.attempt for row in rows}, frozenset(row.run for row in rows if row.cancel))


def remove_worker(database: Database, db: sa.Connection, worker: str) -> None:
    """A worker that ends by itself is gone at once, with all that it held."""
    workers, holders = database.tables.workers, database.tables.holders
    db.execute(holders.delete().where(holders.c.worker == worker))
    db.execute(workers.delete().where(workers.c.worker == worker))


def forget_dead_workers(database: Database, db: sa.Connection, seconds: float) -> list[str]:
    """Workers that are long gone are forgotten; gives the attempts that DBOS still takes for theirs."""
    workers, flows = database.tables.workers, database.tables.workflows
    gone = sa.select(workers.c.worker).where(workers.c.seen < database.now - seconds)
    names = list(db.execute(gone).scalars())
    # Also what a worker left that has no row any more.
    alive = sa.select(workers.c.worker).where(workers.c.seen >= database.now - seconds)
    left = sa.select(flows.c.workflow_uuid).where(flows.c.queue_name == QUEUE, flows.c.status == "PENDING")
    left = left.where(flows.c.executor_id.not_in(alive)).limit(500)
    left = left.where(flows.c.started_at_epoch_ms < (database.now - seconds) * 1000)
    workflows = list(db.execute(left).scalars())
    if names:
        over = sa.and_(workers.c.worker.in_(names), workers.c.seen < database.now - seconds)
        db.execute(workers.delete().where(over))
    return workflows


def list_workers(database: Database, db: sa.Connection) -> tuple[Sequence[sa.RowMapping], float]:
    workers = database.tables.workers
    rows = db.execute(sa.select(workers).order_by(workers.c.started)).mappings().all()
    return rows, db.execute(sa.select(database.now)).scalar_one()


def count_runs_by_state(database: Database, db: sa.Connection, user: str | None) -> dict[Any, int]:
    runs = database.tables.runs
    query = sa.select(runs.c.state, sa.func.count()).group_by(runs.c.state)
    if user is not None:
        query = query.where(runs.c.user == user)
    return {row[0]: row[1] for row in db.execute(query).all()}


class HeartbeatSource(Protocol):
    """Whose heart it is."""

    def heartbeat_facts(self) -> tuple[Mapping[str, Any], list[str], list[str]]:
        """Its row, the runs that it has, and the turns that it holds. Called from the heart's thread."""
        ...

    def on_heartbeat(self, said: HeartbeatReply, asked: list[str]) -> None:
        """What the database says of these runs."""
        ...

    def on_lease_lost(self) -> None:
        """Nobody has heard of the worker for so long that its runs are no longer its own."""
        ...


class Heartbeat:
    """Beats four times in a lease, until it is stopped."""

    def __init__(self, database: Database, body: HeartbeatSource, lease: float, post: Callable[..., object]) -> None:
        self._database = database
        self._body = body
        self._lease = lease
        self._post = post
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bicameral-heart", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=self._lease + 5)
        self._database.close()

    def _run(self) -> None:
        heard = time.monotonic()
        while not self._stop.wait(self._lease / 4):
            begun = time.monotonic()
            me, runs, turns = self._body.heartbeat_facts()
            try:
                said = self._send(me, runs, turns)
            except Exception:
                # Whatever it is, nobody heard this beat.
                if time.monotonic() - heard > self._lease:
                    self._notify(self._body.on_lease_lost)
            else:
                heard = begun
                self._notify(self._body.on_heartbeat, said, runs)

    def _send(self, me: Mapping[str, Any], runs: list[str], turns: list[str]) -> HeartbeatReply:
        database, lease = self._database, self._lease
        return database.transact(lambda db: send_heartbeat(database, db, me, runs, turns, lease), patience=lease / 4)

    def _notify(self, what: Callable[..., None], *facts: object) -> None:
        try:
            self._post(what, *facts)
        except RuntimeError:
            # The loop is closed: there is nobody left to tell.
            self._stop.set()
