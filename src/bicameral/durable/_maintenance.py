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
from bicameral.durable._questions import delete_old_questions
from bicameral.durable._queue import WORKFLOW, Transaction
from bicameral.durable._views import ENDED_STATES
from bicameral.errors import BicameralError

if TYPE_CHECKING:
    from bicameral.durable._runs import Runs

SWEEP_SECONDS = 0.5
CLEANUP_SECONDS = 15.0
FINISHED_STATUSES = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
WORKFLOW_RETENTION_SECONDS = 600.0
"""Seconds for which DBOS's row of a finished attempt is kept."""


class Maintenance:
    """Periodic maintenance. Every change names the state it expects, so all workers may do it at the same time.

    Args:
        runs: The runs to maintain.
        lease: The length of a lease in seconds.
        worker: The name of this worker.
        received: Gives the workflow ids of the attempts that this worker has received and not ended.
    """

    def __init__(self, runs: Runs, lease: float, worker: str, received: Callable[[], list[str]]) -> None:
        self._runs = runs
        self._run = runs.dispatch.run
        self._lease = lease
        self._worker = worker
        self._received = received

    async def run_forever(self) -> None:
        """Sweep and clean up until cancelled."""
        last_cleanup = time.monotonic()
        while True:
            # Jitter, so that not all workers sweep at the same moment.
            await asyncio.sleep(min(SWEEP_SECONDS, self._lease / 4) * random.uniform(0.7, 1.3))  # noqa: S311
            try:
                await self.run_sweep()
                if time.monotonic() - last_cleanup > CLEANUP_SECONDS:
                    last_cleanup = time.monotonic()
                    await self.run_cleanup()
            except BicameralError:
                # The database cannot be reached; the next sweep tries again.
                continue

    async def run_sweep(self) -> None:
        """What runs and people wait for: lost leases, due runs, expired questions, undelivered attempts."""
        await self._cancel_attempts(await self._run(reap_expired_leases))
        await self._run(enqueue_due_runs)
        await self._run(expire_questions)
        await self._cancel_attempts(await self._run(requeue_undelivered, self._lease, self._worker, self._received()))

    async def run_cleanup(self) -> None:
        """What nobody waits for: rows of dead workers, of finished attempts and of old runs."""
        await self._cancel_attempts(await self._run(forget_dead_workers, 3 * self._lease))
        if old := await self._run(_old_workflows):
            await self._runs.database.run_in_thread(lambda: self._runs.dispatch.client().delete_workflows(old))
        await self._run(_requeue_lost_attempts)
        if (keep := self._runs.config.durable.keep) is not None:
            await self._run(_delete_old_runs, keep)
            await self._run(delete_old_questions, keep)
            await asyncio.to_thread(self._runs.run_journal.prune, keep)

    async def _cancel_attempts(self, workflows: list[str]) -> None:
        """Mark attempts of dead workers as cancelled in DBOS, so that it does not count them as running."""
        # After the commit: DBOS cancels in a transaction of its own.
        if workflows:
            await self._runs.database.run_in_thread(lambda: self._runs.dispatch.client().cancel_workflows(workflows))


def _old_workflows(tx: Transaction) -> list[str]:
    """The ids of attempts that ended a while ago: DBOS keeps its rows for ever."""
    flows = tx.database.tables.workflows
    # By name and last change: DBOS sets queue and start to NULL when it cancels or dead-letters a workflow.
    old = sa.select(flows.c.workflow_uuid).where(flows.c.name == WORKFLOW, flows.c.status.in_(FINISHED_STATUSES))
    old = old.where(flows.c.updated_at < (tx.now - WORKFLOW_RETENTION_SECONDS) * 1000).limit(500)
    return list(tx.db.execute(old).scalars())


def _requeue_lost_attempts(tx: Transaction) -> None:
    """Requeue runs that are queued although DBOS has finished their attempt: nothing else would start them."""
    runs, flows = tx.runs, tx.database.tables.workflows
    over = sa.select(flows.c.workflow_uuid)
    over = over.where(flows.c.workflow_uuid == runs.c.dispatch, flows.c.status.in_(FINISHED_STATUSES))
    requeue_runs(tx, sa.and_(runs.c.updated < tx.now - CLEANUP_SECONDS, over.exists()), "queued")


def _delete_old_runs(tx: Transaction, keep: float) -> None:
    """Delete runs that ended more than `keep` seconds ago, with their questions."""
    runs, approvals = tx.runs, tx.approvals
    old = sa.and_(runs.c.state.in_(tuple(ENDED_STATES)), runs.c.updated < tx.now - keep)
    # Selected once: with a limit, two sub-selects could give different runs and leave questions without one.
    ids = list(tx.db.execute(sa.select(runs.c.run).where(old).limit(500)).scalars())
    tx.db.execute(approvals.delete().where(approvals.c.run.in_(ids)))
    tx.db.execute(runs.delete().where(runs.c.run.in_(ids), old))
