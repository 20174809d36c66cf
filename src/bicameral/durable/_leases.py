"""Leases and heartbeats: a run belongs to one worker for as long as the worker renews its lease.

Every change names the attempt and the worker it is made for, so it is made once or not at all, whoever else tries. The
heartbeat is a thread with a connection of its own, so that neither a busy event loop nor an exhausted connection pool
stops it. A worker that cannot reach the database for the length of a lease gives its runs up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa

from bicameral.durable._queue import QUEUE, Dispatcher, Transaction, workflow_id

MAX_BATCH = 100
"""Rows that one sweep changes: a transaction stays short, and the next sweep takes the rest."""
UNDELIVERED_SECONDS = 2.0
"""Seconds after which an attempt that DBOS assigned to a worker, and that the worker never received, is lost."""
MAX_RETRY_DELAY = 60.0
"""The longest delay, in seconds, before a run that keeps failing is tried again."""


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

    def held_condition(self, tx: Transaction) -> sa.ColumnElement[bool]:
        """The row of the run, as long as this lease holds; it fences off a worker that was declared dead."""
        runs = tx.runs
        own = sa.and_(runs.c.run == self.run, runs.c.attempt == self.attempt, runs.c.worker == self.worker)
        return sa.and_(own, runs.c.state == "running")


def claim_run(tx: Transaction, lease: Lease, seconds: float) -> sa.RowMapping | None:
    """Claim a queued run; None if it is not queued, or not in this attempt."""
    runs = tx.runs
    here = sa.and_(runs.c.run == lease.run, runs.c.attempt == lease.attempt)
    # Or claimed already by this very attempt, if the first commit was in doubt.
    free = sa.or_(runs.c.state == "queued", sa.and_(runs.c.state == "running", runs.c.worker == lease.worker))
    claim = runs.update().where(here, free)
    claim = claim.values(state="running", worker=lease.worker, lease_until=tx.now + seconds, updated=tx.now)
    return tx.db.execute(claim.returning(*runs.c)).mappings().first()


def keep_plan(tx: Transaction, lease: Lease, planned: str) -> bool:
    """Store the plan of a run, so that no later attempt plans again."""
    kept = tx.runs.update().where(lease.held_condition(tx)).values(planned=planned, updated=tx.now)
    return tx.db.execute(kept).rowcount == 1


def record_progress(tx: Transaction, lease: Lease, reached: int) -> None:
    """Reset the count of lost attempts of a run that got further than in the last one."""
    further = tx.runs.update().where(lease.held_condition(tx), tx.runs.c.reached < reached)
    tx.db.execute(further.values(reached=reached, deaths=0))


def finish_run(tx: Transaction, lease: Lease, state: str, outcome: str | None, why: str | None) -> bool:
    """Store the end of a run. False if the lease is lost, or the end was stored already."""
    ended = tx.runs.update().where(lease.held_condition(tx))
    ended = ended.values(state=state, outcome=outcome, why=why, worker=None, lease_until=None, updated=tx.now)
    return tx.db.execute(ended).rowcount == 1


def release_run(tx: Transaction, lease: Lease, why: str | None, delay: float = 0.0, *, died: bool = False) -> bool:
    """Give a run back to the queue, now or after a delay; `died` counts the attempt as lost."""
    values: dict[str, Any] = {"why": why}
    if died:
        values["deaths"] = tx.runs.c.deaths + 1
    return bool(requeue_runs(tx, lease.held_condition(tx), "running", delay, **values))


def requeue_runs(
    tx: Transaction, which: sa.ColumnElement[bool], state: str, delay: float = 0.0, **values: Any
) -> list[str]:
    """Create the next attempt of runs that are in this state: enqueued now, or due after a delay."""
    runs = tx.runs
    again = runs.update().where(which, runs.c.state == state)
    again = again.values(
        state="queued",
        attempt=runs.c.attempt + 1,
        worker=None,
        lease_until=None,
        updated=tx.now,
        not_before=tx.now + delay if delay else None,
        dispatch=None,
        **values,
    )
    rows = tx.db.execute(again.returning(runs.c.run, runs.c.attempt, runs.c.user, runs.c.priority)).all()
    if not delay:
        _enqueue_attempts(tx, rows)
    return [row.run for row in rows]


def enqueue_due_runs(tx: Transaction) -> int:
    """Enqueue the attempts whose time has come, and return how many."""
    runs = tx.runs
    ready = sa.and_(runs.c.state == "queued", runs.c.dispatch.is_(None))
    ready = sa.and_(ready, sa.or_(runs.c.not_before.is_(None), runs.c.not_before <= tx.now))
    some = sa.select(runs.c.run).where(ready).order_by(runs.c.priority).limit(MAX_BATCH)
    rows = tx.db.execute(
        runs.update()
        # Rows that another worker's sweep has locked are its own: waiting for them would be for nothing.
        .where(runs.c.run.in_(some.with_for_update(skip_locked=True)), ready)
        .values(updated=tx.now)
        .returning(runs.c.run, runs.c.attempt, runs.c.user, runs.c.priority)
    ).all()
    _enqueue_attempts(tx, rows)
    return len(rows)


def _enqueue_attempts(tx: Transaction, rows: Sequence[Any]) -> None:
    runs = tx.runs
    for row in rows:
        id = workflow_id(row.run, row.attempt)
        tx.db.execute(runs.update().where(runs.c.run == row.run, runs.c.attempt == row.attempt).values(dispatch=id))
        tx.dispatcher.enqueue(tx.db, row.run, row.attempt, row.user, row.priority)


def reap_expired_leases(tx: Transaction) -> list[str]:
    """Requeue the runs whose leases are over, and return the workflow ids of the attempts that are lost.

    A run that lost too many attempts is requeued too: its next attempt sees the count and fails it without a step.
    """
    runs = tx.runs
    over = sa.and_(runs.c.state == "running", runs.c.lease_until < tx.now)
    query = sa.select(runs.c.run, runs.c.dispatch, runs.c.deaths).where(over).limit(MAX_BATCH)
    rows = tx.db.execute(query.with_for_update(skip_locked=True)).all()
    lost: list[str] = []
    for row in rows:
        # SQLite has no row locks: another worker may have requeued it between the two statements.
        here = sa.and_(over, runs.c.run == row.run, runs.c.dispatch == row.dispatch)
        if requeue_runs(tx, here, "running", retry_delay(row.deaths), deaths=row.deaths + 1):
            lost.append(row.dispatch)
    return lost


def retry_delay(deaths: int) -> float:
    """Seconds until the next attempt: none the first time, then doubling, so that one run cannot kill all workers."""
    return 0.0 if deaths < 1 else min(MAX_RETRY_DELAY, 0.5 * 2.0 ** min(deaths - 1, 10))


def requeue_undelivered(tx: Transaction, lease: float, worker: str, received: Sequence[str]) -> list[str]:
    """Requeue attempts that DBOS assigned to a worker and that never began there; returns their workflow ids.

    The worker died at that moment, or lost its connection. For other workers this is assumed when a lease is over. A
    worker knows sooner which of its own it never received: those not in `received`. An attempt that arrives later
    after all cannot claim the run, because the attempt number has grown.
    """
    runs, flows = tx.runs, tx.database.tables.workflows
    since = flows.c.started_at_epoch_ms
    own = sa.and_(
        flows.c.executor_id == worker,
        since < (tx.now - UNDELIVERED_SECONDS) * 1000,
        flows.c.workflow_uuid.not_in(received),
    )
    assigned = sa.select(flows.c.workflow_uuid).where(flows.c.queue_name == QUEUE, flows.c.status == "PENDING")
    assigned = assigned.where(sa.or_(since < (tx.now - lease) * 1000, own))
    never_begun = sa.and_(runs.c.state == "queued", runs.c.dispatch.in_(assigned))
    found = list(tx.db.execute(sa.select(runs.c.dispatch).where(never_begun).limit(MAX_BATCH)).scalars())
    if found:
        requeue_runs(tx, sa.and_(never_begun, runs.c.dispatch.in_(found)), "queued")
    return found


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The runs that are still this worker's, with their attempts, and those of them that were cancelled."""

    leases: Mapping[str, int]
    cancelled: frozenset[str]


def send_heartbeat(
    tx: Transaction, worker: Mapping[str, Any], held: Sequence[str], quotas: Sequence[str], seconds: float
) -> HeartbeatReply:
    """Renew the leases of these runs and quotas, as far as they are still this worker's."""
    runs, workers, holders = tx.runs, tx.database.tables.workers, tx.database.tables.holders
    row = tx.insert(workers).values(**worker, started=tx.now, seen=tx.now)
    changes = {"seen": tx.now, "runs": worker["runs"], "concurrency": worker["concurrency"]}
    tx.db.execute(row.on_conflict_do_update(index_elements=["worker"], set_=changes))
    own = sa.and_(runs.c.worker == worker["worker"], runs.c.state == "running", runs.c.run.in_(held))
    renewed = runs.update().where(own).values(lease_until=tx.now + seconds)
    rows = tx.db.execute(renewed.returning(runs.c.run, runs.c.attempt, runs.c.cancel)).all()
    if quotas:
        mine = sa.and_(holders.c.worker == worker["worker"], holders.c.id.in_(quotas))
        tx.db.execute(holders.update().where(mine).values(until=tx.now + seconds))
    return HeartbeatReply({row.run: row.attempt for row in rows}, frozenset(row.run for row in rows if row.cancel))


def remove_worker(tx: Transaction, worker: str) -> None:
    """Delete the row of a worker that stops, and free its quotas."""
    workers, holders = tx.database.tables.workers, tx.database.tables.holders
    tx.db.execute(holders.delete().where(holders.c.worker == worker))
    tx.db.execute(workers.delete().where(workers.c.worker == worker))


def forget_dead_workers(tx: Transaction, seconds: float) -> list[str]:
    """Delete workers without a heartbeat for so long; returns the attempts that DBOS still counts as theirs."""
    workers, flows = tx.database.tables.workers, tx.database.tables.workflows
    # By the workers that are alive: an attempt may belong to a worker whose row is gone already.
    alive = sa.select(workers.c.worker).where(workers.c.seen >= tx.now - seconds)
    left = sa.select(flows.c.workflow_uuid).where(flows.c.queue_name == QUEUE, flows.c.status == "PENDING")
    left = left.where(flows.c.executor_id.not_in(alive)).limit(500)
    left = left.where(flows.c.started_at_epoch_ms < (tx.now - seconds) * 1000)
    workflows = list(tx.db.execute(left).scalars())
    tx.db.execute(workers.delete().where(workers.c.seen < tx.now - seconds))
    return workflows


def list_workers(tx: Transaction) -> tuple[Sequence[sa.RowMapping], float]:
    """The rows of all workers, and the time."""
    workers = tx.database.tables.workers
    rows = tx.db.execute(sa.select(workers).order_by(workers.c.started)).mappings().all()
    return rows, tx.db.execute(sa.select(tx.now)).scalar_one()


def count_runs_by_state(tx: Transaction, user: str | None) -> dict[Any, int]:
    query = sa.select(tx.runs.c.state, sa.func.count()).group_by(tx.runs.c.state)
    if user is not None:
        query = query.where(tx.runs.c.user == user)
    return {row[0]: row[1] for row in tx.db.execute(query).all()}


class HeartbeatSource(Protocol):
    """The worker that a heartbeat speaks for."""

    def heartbeat_facts(self) -> tuple[Mapping[str, Any], list[str], list[str]]:
        """Its row, the runs and the quotas that it holds. Called from the heartbeat's thread."""
        ...

    def on_heartbeat(self, reply: HeartbeatReply, sent: list[str]) -> None:
        """The database's reply about the runs that were sent."""
        ...

    def on_lease_lost(self) -> None:
        """No heartbeat got through for the length of a lease: other workers may have the runs by now."""
        ...


class Heartbeat:
    """A thread that sends four heartbeats per lease, until it is stopped.

    Args:
        dispatcher: With a connection of its own; closed by `stop`.
        source: The worker.
        lease: The length of a lease in seconds.
        post: Calls a function on the worker's event loop, such as `call_soon_threadsafe`.
    """

    def __init__(
        self, dispatcher: Dispatcher, source: HeartbeatSource, lease: float, post: Callable[..., object]
    ) -> None:
        self._dispatcher = dispatcher
        self._source = source
        self._lease = lease
        self._post = post
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bicameral-heart", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=self._lease + 5)
        self._dispatcher.database.close()

    def _run(self) -> None:
        last_success = time.monotonic()
        while not self._stop.wait(self._lease / 4):
            # The lease counts from before the transaction: the database may have set it at any time since.
            begun = time.monotonic()
            worker, runs, quotas = self._source.heartbeat_facts()
            try:
                reply = self._send(worker, runs, quotas)
            except Exception:
                # Whatever the error is, the leases were not renewed.
                if time.monotonic() - last_success > self._lease:
                    self._notify(self._source.on_lease_lost)
            else:
                last_success = begun
                self._notify(self._source.on_heartbeat, reply, runs)

    def _send(self, worker: Mapping[str, Any], runs: list[str], quotas: list[str]) -> HeartbeatReply:
        dispatcher, lease = self._dispatcher, self._lease
        # Given up before the next beat is due, so that a slow database does not delay it too.
        return dispatcher.database.transact(
            lambda db: send_heartbeat(Transaction(dispatcher, db), worker, runs, quotas, lease), patience=lease / 4
        )

    def _notify(self, callback: Callable[..., None], *facts: object) -> None:
        try:
            self._post(callback, *facts)
        except RuntimeError:
            # The event loop is closed, and the worker with it.
            self._stop.set()
