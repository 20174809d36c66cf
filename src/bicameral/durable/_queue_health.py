"""The state of the queue and its workers: what waits and since when, and what is wrong with it and how to mend that."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bicameral.config import HealthCheck
from bicameral.durable._views import RUN_STATES, RunState, WorkerView, to_datetime

if TYPE_CHECKING:
    from bicameral.durable._queue import Transaction

LONG_WAIT_SECONDS = 60.0
"""A run that could have begun so long ago, and has not, is said to wait for long."""


@dataclass(frozen=True, slots=True)
class QueueView:
    """What is in the queue.

    Args:
        counts: How many runs are in each state.
        due: Queued runs whose time has come.
        later: Queued runs whose time has not come yet.
        oldest: Since when the one that waits longest could have begun; None if none waits.
        lost: Running ones whose worker is past its lease; another one takes them over.
    """

    counts: Mapping[RunState, int]
    due: int
    later: int
    oldest: datetime | None
    lost: int

    @property
    def open(self) -> int:
        """Runs that a worker has to do, now or later."""
        return self.counts["queued"] + self.counts["running"]


def load_queue(tx: Transaction, user: str | None) -> QueueView:
    """The queue, of one user or of all."""
    import sqlalchemy as sa

    from bicameral.durable._leases import count_runs_by_state

    runs = tx.runs
    own = sa.true() if user is None else runs.c.user == user
    queued = sa.and_(own, runs.c.state == "queued")
    due = sa.or_(runs.c.not_before.is_(None), runs.c.not_before <= tx.now)
    # The later of both: a run that was submitted for a later time did not wait before it was due. Neither database has
    # the other's function for the larger of two values.
    since_due = sa.case((runs.c.not_before > runs.c.updated, runs.c.not_before), else_=runs.c.updated)
    waiting = sa.select(sa.func.count(), sa.func.min(since_due)).where(queued, due)
    number, oldest = tx.db.execute(waiting).one()
    lost = sa.select(sa.func.count()).where(own, runs.c.state == "running", runs.c.lease_until < tx.now)
    found = count_runs_by_state(tx, user)
    counts: dict[RunState, int] = {state: found.get(state, 0) for state in RUN_STATES}
    since = None if oldest is None else to_datetime(oldest)
    later = tx.db.execute(sa.select(sa.func.count()).where(queued, sa.not_(due))).scalar_one()
    return QueueView(counts, number, later, since, tx.db.execute(lost).scalar_one())


def select_run_ids(tx: Transaction, user: str | None, limit: int | None) -> list[str]:
    """The ids of runs, the newest first."""
    import sqlalchemy as sa

    runs = tx.runs
    query = sa.select(runs.c.run).order_by(runs.c.created.desc(), runs.c.run.desc()).limit(limit)
    return list(tx.db.execute(query if user is None else query.where(runs.c.user == user)).scalars())


_NAMED = 500
"""Ids that one query names."""


def select_known_ids(tx: Transaction, ids: Collection[str]) -> set[str]:
    """Those of these ids that are runs of the table."""
    import sqlalchemy as sa

    wanted, found = sorted(ids), set[str]()
    for start in range(0, len(wanted), _NAMED):
        query = sa.select(tx.runs.c.run).where(tx.runs.c.run.in_(wanted[start : start + _NAMED]))
        found.update(tx.db.execute(query).scalars())
    return found


def check_workers(workers: Sequence[WorkerView], open_: int) -> HealthCheck:
    """Whether a worker is there for the runs that are to be done."""
    alive = [each for each in workers if each.alive]
    if alive:
        return HealthCheck("workers", "ok", f"{len(alive)} alive: {', '.join(each.worker for each in alive)}")
    if open_:
        todo = f"none is there, and {open_} submitted run{'' if open_ == 1 else 's'} to do"
        return HealthCheck("workers", "warn", todo, "`bicameral worker` starts one.")
    return HealthCheck("workers", "ok", "none is there, and there is nothing to do")


def queue_problems(
    queue: QueueView, workers: Sequence[WorkerView], now: datetime | None = None
) -> Iterator[HealthCheck]:
    """What is wrong with the queue and its workers. No name of a worker or of a machine is in it."""
    alive = [each for each in workers if each.alive]
    if not alive and queue.open:
        yield HealthCheck("workers", "bad", check_workers(workers, queue.open).detail, "`bicameral worker` starts one.")
    if silent := len(workers) - len(alive):
        yield HealthCheck(
            "workers",
            "warn",
            f"{silent} {'has' if silent == 1 else 'have'} not been heard of for the length of a lease",
            "If nobody stopped it, look at its log. Its runs are taken over by other workers.",
        )
    if queue.lost:
        yield HealthCheck(
            "queue",
            "warn",
            f"{queue.lost} run{' is' if queue.lost == 1 else 's are'} with a worker that is past its lease",
            "Another worker takes them over; `bicameral worker` starts one.",
        )
    waited = 0.0 if queue.oldest is None else ((now or datetime.now(UTC)) - queue.oldest).total_seconds()
    if alive and waited > LONG_WAIT_SECONDS:
        yield HealthCheck(
            "queue",
            "warn",
            f"{queue.due} run{' waits' if queue.due == 1 else 's wait'} for a worker, one for {waited / 60:.0f} min",
            "All workers are busy, or a quota under [durable.limits] is reached: start more, or raise it.",
        )
