"""The DBOS queue of attempts, and the quotas on tools and models that all workers share.

An attempt is enqueued in the transaction that makes it. What goes through DBOS is the id of a run and the number of an
attempt, as JSON: no value of a run, and nothing that a worker would have to unpickle. There is one consumer in a
process, as there is one DBOS.

A quota is held in the database until a time that the worker renews: those of a dead worker come free with its lease.
Whoever gets none waits, and nothing fails.
"""

from __future__ import annotations

import asyncio
import random
import threading
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from bicameral.config import QuotaSettings, QuotaTable, parse_rate
from bicameral.durable._database import DBOS_SCHEMA, Database
from bicameral.errors import DurableError
from bicameral.limits import What

if TYPE_CHECKING:
    from dbos import DBOSClient, DBOSConfig, Serializer


QUEUE = "bicameral"
WORKFLOW = "bicameral.attempt"
APPLICATION = "bicameral"


class Dispatcher:
    """Puts attempts into the queue. DBOS is loaded when the first one is."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._client: DBOSClient | None = None
        self._lock = threading.Lock()

    def client(self) -> DBOSClient:
        """The client, with DBOS's own tables made; called outside of transactions, since that may take a while."""
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def enqueue(self, db: sa.Connection, run: str, attempt: int, user: str, priority: int) -> None:
        """Queue an attempt as a part of this transaction; one that is there already stays as it is."""
        from dbos import EnqueueOptions, WorkflowSerializationFormat

        options: EnqueueOptions = {
            "workflow_name": WORKFLOW,
            "queue_name": QUEUE,
            "workflow_id": workflow_id(run, attempt),
            # A run that was begun goes before those of its priority that were not.
            "priority": 2 * priority - (attempt > 1),
            "queue_partition_key": user,
            "application_name": APPLICATION,
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
        }
        self.client().enqueue_in_transaction(db, options, run, attempt)

    def cancel_attempts(self, workflows: list[str]) -> None:
        """Take attempts that nobody makes any more out of DBOS's account of what is under way."""
        if workflows:
            self.client().cancel_workflows(workflows)

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.destroy()
                self._client = None

    def _connect(self) -> DBOSClient:
        silence_dbos_log()
        from dbos import DBOSClient

        self._database.create_tables()
        self._database.retry(self._migrate)
        return DBOSClient(
            system_database_engine=self._database.engine,
            dbos_system_schema=DBOS_SCHEMA,
            serializer=json_serializer(),
            application_name=APPLICATION,
            lazy=True,
        )

    def _migrate(self) -> None:
        """Bring DBOS's tables to the installed version; it skips the work where they are at it."""
        from dbos import DBOS

        # Always asked: after an update of DBOS a process that only submits may come before the first worker.
        with self._database.migration_lock():
            DBOS.migrate(self._database.url, schema=DBOS_SCHEMA)


def workflow_id(run: str, attempt: int) -> str:
    return f"{run}.{attempt}"


def json_serializer() -> Serializer:
    """Values as JSON: what lies in the database can be read, and runs nothing when it is."""
    from dbos import DBOSPortableJSONSerializer

    return DBOSPortableJSONSerializer()


def silence_dbos_log() -> None:
    """DBOS tells its log what it does; of that only what went wrong is of use here."""
    import logging

    log = logging.getLogger("dbos")
    log.setLevel(logging.CRITICAL)
    # It keeps the standard error of its first start, which may be another one by now.
    for handler in list(log.handlers):
        if isinstance(handler, logging.StreamHandler) and getattr(handler.stream, "closed", False):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            log.removeHandler(handler)  # pyright: ignore[reportUnknownArgumentType]


POLL_SECONDS = 0.15
"""Seconds between two looks at the queue."""
DRAIN_SECONDS = 60
"""Seconds for which the attempts under way may go on when the worker is stopped."""
_APP_VERSION = "bicameral-1"
"""The same for all workers: any of them takes any run, and whether it has the right code is looked at then."""

AttemptHandler = Callable[[str, int], Awaitable[None]]

_handler: AttemptHandler | None = None
_single_worker = threading.Lock()


class QueueConsumer:
    """Brings the attempts that are queued to a worker."""

    def __init__(self, database: Database, dispatch: Dispatcher, worker: str) -> None:
        self._database = database
        self._dispatch = dispatch
        self._worker = worker

    async def start(self, taken: AttemptHandler, concurrency: int, user: QuotaSettings) -> None:
        """Let DBOS hand over attempts, each on this loop; nothing else comes in here."""
        global _handler
        if not _single_worker.acquire(blocking=False):
            raise DurableError(
                "durable.one-worker",
                "there is a worker in this process already",
                fix="Give it a higher concurrency, or start another process.",
            )
        _handler = taken
        try:
            await self._database.run_in_thread(
                lambda: self._database.retry(lambda: self._register_queue(concurrency, user))
            )
            # On the loop's own thread: DBOS then runs attempts on this loop.
            self._database.retry(self._launch_or_destroy)
        except BaseException:
            _handler = None
            _single_worker.release()
            raise

    def _register_queue(self, concurrency: int, user: QuotaSettings) -> None:
        limits: dict[str, Any] = {}
        if user.concurrency is not None:
            limits["partition_concurrency"] = user.concurrency
        if user.rate is not None:
            number, period = parse_rate(user.rate)
            limits["partition_limiter"] = {"limit": number, "period": period}
        self._dispatch.client().register_queue(
            QUEUE,
            worker_concurrency=concurrency,
            polling_interval_sec=POLL_SECONDS,
            on_conflict="always_update",
            application_name=APPLICATION,
            **limits,
        )

    def _launch_or_destroy(self) -> None:
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
            "application_version": _APP_VERSION,
            "executor_id": self._worker,
            "serializer": json_serializer(),
            "log_level": "CRITICAL",
            "enable_otlp": False,
            "scheduler_polling_interval_sec": 600.0,
        }
        silence_dbos_log()
        DBOS(config=config)
        DBOS.workflow(name=WORKFLOW, serialization_type=WorkflowSerializationFormat.PORTABLE)(_attempt_workflow)
        with self._database.migration_lock():
            DBOS.launch()

    async def stop(self) -> None:
        """Take in no more at once, and end when what is under way is over: that is the worker's to see to."""
        global _handler
        from dbos import DBOS

        try:
            await asyncio.to_thread(DBOS.destroy, destroy_registry=True, workflow_completion_timeout_sec=DRAIN_SECONDS)
        finally:
            _handler = None
            _single_worker.release()


async def _attempt_workflow(run: str, attempt: int) -> None:
    """What DBOS knows of a run: that there is an attempt. Its steps are in the journal and not here.

    They run side by side, in an order that differs from attempt to attempt, and DBOS numbers steps in that order.
    """
    if _handler is not None:
        await _handler(run, attempt)


FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


@dataclass(frozen=True, slots=True)
class Quota:
    """How many at the same time, and how many in how many seconds; None is no limit."""

    concurrency: int | None
    rate: tuple[int, float] | None


def configured_quotas(limits: QuotaTable) -> dict[tuple[What, str], Quota]:
    """What a configuration limits, by name."""
    found: dict[tuple[What, str], Quota] = {}
    kinds: tuple[tuple[What, Mapping[str, object]], ...] = (("tool", limits.tools), ("model", limits.models))
    for what, _ in kinds:
        for name, each in (limits.tools if what == "tool" else limits.models).items():
            found[what, name] = Quota(each.concurrency, None if each.rate is None else parse_rate(each.rate))
    return found


class SharedQuotas:
    """Turns that all workers of a database take together."""

    def __init__(self, database: Database, limits: QuotaTable, worker: str, seconds: float) -> None:
        self._database = database
        self._quotas = configured_quotas(limits)
        self._worker = worker
        self._seconds = seconds
        self.held: set[str] = set()
        """The turns that this worker has, for its heart to renew."""

    @asynccontextmanager
    async def turn(self, what: What, name: str) -> AsyncGenerator[None]:
        quota = self._quotas.get((what, name))
        if quota is None:
            yield
            return
        id = await self._acquire(f"{what}:{name}", quota)
        try:
            yield
        finally:
            self.held.discard(id)
            if quota.concurrency is not None:
                await asyncio.shield(self._release(id))

    async def _acquire(self, what: str, quota: Quota) -> str:
        id, pause = uuid.uuid4().hex, FIRST_PAUSE
        self.held.add(id)
        try:
            while not await self._database.run_transaction(lambda db: self._try_acquire(db, id, what, quota)):
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
                pause = min(LONGEST_PAUSE, pause * 1.5)
        except BaseException:
            self.held.discard(id)
            await asyncio.shield(self._release(id))
            raise
        return id

    async def _release(self, id: str) -> None:
        holders = self._database.tables.holders
        # What cannot be freed now comes free when it is not renewed.
        with suppress(DurableError):
            await self._database.run_transaction(
                lambda db: db.execute(holders.delete().where(holders.c.id == id)).rowcount
            )

    def _try_acquire(self, db: sa.Connection, id: str, what: str, quota: Quota) -> bool:
        holders, starts, now = self._database.tables.holders, self._database.tables.starts, self._database.now
        if not self._database.sqlite:
            db.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(what, 0))))
        # In SQLite the first change takes the lock, so what is counted after it stays true.
        db.execute(holders.delete().where(holders.c.what == what, holders.c.until < now))
        if db.execute(sa.select(starts.c.id).where(starts.c.id == id)).first():
            return True
        if quota.concurrency is not None and _count_rows(db, holders.c.id, holders.c.what == what) >= quota.concurrency:
            return False
        if quota.rate is not None:
            number, period = quota.rate
            db.execute(starts.delete().where(starts.c.what == what, starts.c.at < now - period))
            if _count_rows(db, starts.c.id, starts.c.what == what) >= number:
                return False
            db.execute(starts.insert().values(id=id, what=what, at=now))
        if quota.concurrency is not None and not db.execute(sa.select(holders.c.id).where(holders.c.id == id)).first():
            row = {"id": id, "what": what, "worker": self._worker, "until": now + self._seconds}
            db.execute(holders.insert().values(**row))
        return True


def _count_rows(db: sa.Connection, column: sa.Column[str], where: sa.ColumnElement[bool]) -> int:
    return db.execute(sa.select(sa.func.count(column)).where(where)).scalar_one()
