"""Maintenance that every worker does for all: requeue runs of dead workers, enqueue due runs, expire questions."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import sqlalchemy as sa

from bicameral.durable._leases import (
    enqueue_due_runs,
    forget_dead_workers,
    reap_expired_leases,
    requeue_runs,
    requeue_undelivered,
)
from bicameral.durable._queries import expire_questions
from bicameral.durable._queue import WORKFLOW
from bicameral.errors import BicameralError

if TYPE_CHECKING:
    from bicameral.durable._runs import Runs

SWEEP_SECONDS = 0.5
CLEANUP_SECONDS = 15.0
FINISHED_STATUSES = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
WORKFLOW_RETENTION_SECONDS = 600.0
"""Seconds for which DBOS's account of an attempt that is over is kept."""


class Maintenance:
    """Everything here names what it expects, so any number of workers may do it at the same time."""

    def __init__(self, runs: Runs, lease: float, worker: str, known: Callable[[], list[str]]) -> None:
        self._runs = runs
        self._lease = lease
        self._worker = worker
        self._known = known

    async def run_forever(self) -> None:
        tidied = time.monotonic()
        while True:
            # Not all workers at the same moment.
            await asyncio.sleep(min(SWEEP_SECONDS, self._lease / 4) * random.uniform(0.7, 1.3))  # noqa: S311
            try:
                await self.run_sweep()
                if time.monotonic() - tidied > CLEANUP_SECONDS:
                    tidied = time.monotonic()
                    await self.run_cleanup()
            except BicameralError:
                # The database is away; it is looked for again in a moment.
                continue

    async def run_sweep(self) -> None:
        database, dispatch = self._runs.database, self._runs.dispatch
        await self._cancel_attempts(
            await database.run_transaction(lambda db: reap_expired_leases(database, dispatch, db))
        )
        await database.run_transaction(lambda db: enqueue_due_runs(database, dispatch, db))
        await database.run_transaction(lambda db: expire_questions(database, dispatch, db))
        lease, worker, known = self._lease, self._worker, self._known()
        late = await database.run_transaction(
            lambda db: requeue_undelivered(database, dispatch, db, lease, worker, known)
        )
        await self._cancel_attempts(late)

    async def run_cleanup(self) -> None:
        database = self._runs.database
        await self._cancel_attempts(
            await database.run_transaction(lambda db: forget_dead_workers(database, db, 3 * self._lease))
        )
        await self._delete_old_workflows()
        await self._requeue_lost_attempts()
        await self._delete_old_runs()

    async def _cancel_attempts(self, workflows: list[str]) -> None:
        if workflows:
            await self._runs.database.run_in_thread(lambda: self._runs.dispatch.cancel_attempts(workflows))

    async def _delete_old_workflows(self) -> None:
        """DBOS keeps every attempt for good; what is over is of no more use."""
        database = self._runs.database
        flows = database.tables.workflows
        # By name and last change: DBOS sets queue and start to NULL when it cancels or dead-letters a workflow.
        old = sa.select(flows.c.workflow_uuid).where(flows.c.name == WORKFLOW, flows.c.status.in_(FINISHED_STATUSES))
        old = old.where(flows.c.updated_at < (database.now - WORKFLOW_RETENTION_SECONDS) * 1000).limit(500)
        found = await database.run_transaction(lambda db: list(db.execute(old).scalars()))
        if found:
            await database.run_in_thread(lambda: self._runs.dispatch.client().delete_workflows(found))

    async def _requeue_lost_attempts(self) -> None:
        """A queued run whose attempt is over, though it never began, is queued once more."""
        database, dispatch = self._runs.database, self._runs.dispatch
        runs, flows = database.tables.runs, database.tables.workflows
        over = sa.select(flows.c.workflow_uuid)
        over = over.where(flows.c.workflow_uuid == runs.c.dispatch, flows.c.status.in_(FINISHED_STATUSES))
        which = sa.and_(runs.c.state == "queued", runs.c.updated < database.now - CLEANUP_SECONDS, over.exists())
        await database.run_transaction(lambda db: requeue_runs(database, dispatch, db, which, "queued"))

    async def _delete_old_runs(self) -> None:
        """Runs that ended long ago are forgotten, if the configuration says so."""
        keep, database = self._runs.config.durable.keep, self._runs.database
        if keep is None:
            return
        runs, approvals = database.tables.runs, database.tables.approvals
        old = sa.and_(runs.c.state.in_(("finished", "failed", "stopped")), runs.c.updated < database.now - keep)
        some = sa.select(runs.c.run).where(old).limit(500)

        def age(db: sa.Connection) -> int:
            db.execute(approvals.delete().where(approvals.c.run.in_(some)))
            return db.execute(runs.delete().where(runs.c.run.in_(some))).rowcount

        await database.run_transaction(age)
        await asyncio.to_thread(self._runs.run_journal.prune, keep)
