"""What a worker says of itself again and again: that it is there, and that its runs are its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ._database import Database
from ._dispatch import QUEUE


@dataclass(frozen=True, slots=True)
class Beat:
    """What the database says back: the runs that are still this worker's, with their attempts, and those to stop."""

    held: Mapping[str, int]
    cancelled: frozenset[str]


def beat(
    database: Database,
    db: sa.Connection,
    me: Mapping[str, Any],
    held: Sequence[str],
    turns: Sequence[str],
    seconds: float,
) -> Beat:
    """Renew the leases of these runs and turns, as far as they are still this worker's."""
    runs, workers, holders, now = database.t.runs, database.t.workers, database.t.holders, database.now
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
    return Beat({row.run: row.attempt for row in rows}, frozenset(row.run for row in rows if row.cancel))


def leave(database: Database, db: sa.Connection, worker: str) -> None:
    """A worker that ends by itself is gone at once, with all that it held."""
    workers, holders = database.t.workers, database.t.holders
    db.execute(holders.delete().where(holders.c.worker == worker))
    db.execute(workers.delete().where(workers.c.worker == worker))


def buried(database: Database, db: sa.Connection, seconds: float) -> list[str]:
    """Workers that are long gone are forgotten; gives the attempts that DBOS still takes for theirs."""
    workers, flows = database.t.workers, database.t.workflows
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


def known_workers(database: Database, db: sa.Connection) -> tuple[Sequence[sa.RowMapping], float]:
    workers = database.t.workers
    rows = db.execute(sa.select(workers).order_by(workers.c.started)).mappings().all()
    return rows, db.execute(sa.select(database.now)).scalar_one()


def counted(database: Database, db: sa.Connection, user: str | None) -> dict[Any, int]:
    runs = database.t.runs
    query = sa.select(runs.c.state, sa.func.count()).group_by(runs.c.state)
    if user is not None:
        query = query.where(runs.c.user == user)
    return {row[0]: row[1] for row in db.execute(query).all()}
