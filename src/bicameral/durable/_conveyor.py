"""The queue of attempts in this process: DBOS, started and ended. There is one in a process, as there is one DBOS."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from bicameral.config import QuotaSettings, rate_of
from bicameral.errors import DurableError

from ._database import DBOS_SCHEMA, Database
from ._dispatch import APPLICATION, QUEUE, WORKFLOW, Dispatch, portable, quiet

if TYPE_CHECKING:
    from dbos import DBOSConfig

POLL = 0.15
"""Seconds between two looks at the queue."""
PATIENCE = 60
"""Seconds for which the attempts under way may go on when the worker is stopped."""
_RELEASE = "bicameral-1"
"""The same for all workers: any of them takes any run, and whether it has the right code is looked at then."""

Taken = Callable[[str, int], Awaitable[None]]

_taken: Taken | None = None
_only = threading.Lock()


class Conveyor:
    """Brings the attempts that are queued to a worker."""

    def __init__(self, database: Database, dispatch: Dispatch, worker: str) -> None:
        self._database = database
        self._dispatch = dispatch
        self._worker = worker

    async def start(self, taken: Taken, concurrency: int, user: QuotaSettings) -> None:
        """Let DBOS hand over attempts, each on this loop; nothing else comes in here."""
        global _taken
        if not _only.acquire(blocking=False):
            raise DurableError(
                "durable.one-worker",
                "there is a worker in this process already",
                fix="Give it a higher concurrency, or start another process.",
            )
        _taken = taken
        try:
            await self._database.run(lambda: self._database.patiently(lambda: self._registered(concurrency, user)))
            # On the loop's own thread: DBOS then runs attempts on this loop.
            self._database.patiently(self._launched)
        except BaseException:
            _taken = None
            _only.release()
            raise

    def _registered(self, concurrency: int, user: QuotaSettings) -> None:
        limits: dict[str, Any] = {}
        if user.concurrency is not None:
            limits["partition_concurrency"] = user.concurrency
        if user.rate is not None:
            number, period = rate_of(user.rate)
            limits["partition_limiter"] = {"limit": number, "period": period}
        self._dispatch.ready().register_queue(
            QUEUE,
            worker_concurrency=concurrency,
            polling_interval_sec=POLL,
            on_conflict="always_update",
            application_name=APPLICATION,
            **limits,
        )

    def _launched(self) -> None:
        try:
            self._launch()
        except BaseException:
            from dbos import DBOS

            DBOS.destroy(destroy_registry=True)
            raise

    def _launch(self) -> None:
        from dbos import DBOS, WorkflowSerializationFormat

        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_url": self._database.url,
            "system_database_engine": self._database.engine,
            "dbos_system_schema": DBOS_SCHEMA,
            "application_version": _RELEASE,
            "executor_id": self._worker,
            "serializer": portable(),
            "log_level": "CRITICAL",
            "enable_otlp": False,
            "scheduler_polling_interval_sec": 600.0,
        }
        quiet()
        DBOS(config=config)
        DBOS.workflow(name=WORKFLOW, serialization_type=WorkflowSerializationFormat.PORTABLE)(_attempt)
        with self._database.alone():
            DBOS.launch()

    async def stop(self) -> None:
        """Take in no more at once, and end when what is under way is over: that is the worker's to see to."""
        global _taken
        from dbos import DBOS

        try:
            await asyncio.to_thread(DBOS.destroy, destroy_registry=True, workflow_completion_timeout_sec=PATIENCE)
        finally:
            _taken = None
            _only.release()


async def _attempt(run: str, attempt: int) -> None:
    """What DBOS knows of a run: that there is an attempt. Its steps are in the journal and not here.

    They run side by side, in an order that differs from attempt to attempt, and DBOS numbers steps in that order.
    """
    if _taken is not None:
        await _taken(run, attempt)
