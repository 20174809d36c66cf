"""The DBOS queue of attempts, and the quotas on tools and models that all workers share.

An attempt is enqueued in the transaction that creates it. Only the id of a run and the number of an attempt go through
DBOS, as JSON: no value of a run, and nothing that a worker would have to unpickle. A process has one consumer, because
DBOS is a singleton.

A quota is held in the database until a time that the worker renews by heartbeat, so the quotas of a dead worker are
freed with its lease. A caller that gets none waits; it does not fail.
"""

from __future__ import annotations

import asyncio
import random
import threading
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bicameral.config import QuotaSettings, QuotaTable
from bicameral.durable._database import DBOS_SCHEMA, Database
from bicameral.errors import DurableError
from bicameral.limits import QuotaKind
from bicameral.rates import parse_rate

if TYPE_CHECKING:
    from dbos import DBOSClient, DBOSConfig, Serializer

P = ParamSpec("P")
T = TypeVar("T")

QUEUE = "bicameral"
WORKFLOW = "bicameral.attempt"
APPLICATION = "bicameral"


@dataclass(frozen=True, slots=True)
class Transaction:
    """An open transaction on the tables of durable runs, in which attempts can be enqueued."""

    dispatcher: Dispatcher
    db: sa.Connection

    @property
    def database(self) -> Database:
        return self.dispatcher.database

    @property
    def runs(self) -> sa.Table:
        return self.database.tables.runs

    @property
    def approvals(self) -> sa.Table:
        return self.database.tables.approvals

    @property
    def now(self) -> sa.ColumnElement[float]:
        return self.database.now

    def insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """An insert that can say what to do on a conflict."""
        return sqlite.insert(table) if self.database.sqlite else postgresql.insert(table)


class Dispatcher:
    """Runs transactions and enqueues attempts in them. DBOS is imported when the first attempt is enqueued."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._client: DBOSClient | None = None
        self._lock = threading.Lock()

    async def run(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **options: P.kwargs) -> T:
        """Do this in a transaction, in a thread; a lost connection is retried for a while."""
        return await self.database.run_transaction(lambda db: work(Transaction(self, db), *args, **options))

    async def run_until_done(
        self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Like `run`, without a limit on the retries: for what must not be lost, such as the result of an attempt."""
        return await self.database.run_transaction(
            lambda db: work(Transaction(self, db), *args, **options), float("inf")
        )

    def client(self) -> DBOSClient:
        """The DBOS client; the first call migrates DBOS's tables, so call it outside of transactions."""
        # Two threads must not build two clients: each would migrate, and one would never be closed.
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def enqueue(self, db: sa.Connection, run: str, attempt: int, user: str, priority: int) -> None:
        """Enqueue an attempt in this transaction; one that is enqueued already stays as it is."""
        from dbos import EnqueueOptions, WorkflowSerializationFormat

        options: EnqueueOptions = {
            "workflow_name": WORKFLOW,
            "queue_name": QUEUE,
            "workflow_id": workflow_id(run, attempt),
            # DBOS takes the lowest number first: a run that was begun goes before new ones of its priority.
            "priority": 2 * priority - (attempt > 1),
            "queue_partition_key": user,
            "application_name": APPLICATION,
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
        }
        self.client().enqueue_in_transaction(db, options, run, attempt)

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.destroy()
                self._client = None

    def _connect(self) -> DBOSClient:
        silence_dbos_log()
        from dbos import DBOSClient

        self.database.create_tables()
        self.database.retry(self._migrate)
        return DBOSClient(
            system_database_engine=self.database.engine,
            dbos_system_schema=DBOS_SCHEMA,
            serializer=json_serializer(),
            application_name=APPLICATION,
            lazy=True,
        )

    def _migrate(self) -> None:
        """Migrate DBOS's tables; DBOS does nothing if they are at its version."""
        from dbos import DBOS

        # In every process: after an update of DBOS a process that only submits may start before any worker. Under our
        # lock, because DBOS goes on without its own lock after 30 s, and on SQLite it has none.
        with self.database.migration_lock():
            DBOS.migrate(self.database.url, schema=DBOS_SCHEMA)


def workflow_id(run: str, attempt: int) -> str:
    return f"{run}.{attempt}"


def json_serializer() -> Serializer:
    """JSON and not pickle: reading a row of the database must not run code."""
    from dbos import DBOSPortableJSONSerializer

    return DBOSPortableJSONSerializer()


def silence_dbos_log() -> None:
    """Raise the level of DBOS's log: its progress messages would mix with the output of commands."""
    import logging

    log = logging.getLogger("dbos")
    log.setLevel(logging.CRITICAL)
    # Its handler keeps the standard error of its first start, which may have been closed or replaced since.
    for handler in list(log.handlers):
        if isinstance(handler, logging.StreamHandler) and getattr(handler.stream, "closed", False):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            log.removeHandler(handler)  # pyright: ignore[reportUnknownArgumentType]


POLL_SECONDS = 0.15
"""Seconds between two polls of the queue."""
DRAIN_SECONDS = 60
"""Seconds for which DBOS waits for running attempts when the worker stops."""
_APP_VERSION = "bicameral-1"
"""The same for all workers: any worker may claim any run. Resuming checks whether the worker has the same tools."""

AttemptHandler = Callable[[str, int], Awaitable[None]]

_handler: AttemptHandler | None = None
_single_worker = threading.Lock()


class QueueConsumer:
    """Delivers queued attempts to the worker of this process."""

    def __init__(self, database: Database, dispatch: Dispatcher, worker: str) -> None:
        self._database = database
        self._dispatch = dispatch
        self._worker = worker

    async def start(self, handler: AttemptHandler, concurrency: int, user: QuotaSettings) -> None:
        """Let DBOS call `handler` for each attempt, on this event loop."""
        global _handler
        # DBOS and its registry are global to a process, so a second worker would replace the first one's handler.
        if not _single_worker.acquire(blocking=False):
            raise DurableError(
                "durable.one-worker",
                "there is a worker in this process already",
                fix="Give it a higher concurrency, or start another process.",
            )
        _handler = handler
        try:
            await self._database.run_in_thread(
                lambda: self._database.retry(lambda: self._register_queue(concurrency, user))
            )
            # On the loop's own thread: DBOS runs async workflows on the loop it was launched on.
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

            # Otherwise a retry would find a half-started singleton.
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
        # A launch migrates too.
        with self._database.migration_lock():
            DBOS.launch()

    async def stop(self) -> None:
        """Stop delivery at once and return when the running attempts have ended; the worker ends those."""
        global _handler
        from dbos import DBOS

        try:
            await asyncio.to_thread(DBOS.destroy, destroy_registry=True, workflow_completion_timeout_sec=DRAIN_SECONDS)
        finally:
            _handler = None
            _single_worker.release()


async def _attempt_workflow(run: str, attempt: int) -> None:
    """The DBOS workflow of an attempt. The steps of the run are in our journal and not DBOS steps.

    Steps run concurrently, in an order that differs between attempts, and DBOS identifies steps by their order.
    """
    if _handler is not None:
        await _handler(run, attempt)


FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


@dataclass(frozen=True, slots=True)
class Quota:
    """How many at the same time, and how many in how many seconds; None is unlimited."""

    concurrency: int | None
    rate: tuple[int, float] | None


def configured_quotas(limits: QuotaTable) -> dict[tuple[QuotaKind, str], Quota]:
    """The quotas of a configuration, by kind and name."""
    tables: dict[QuotaKind, Mapping[str, QuotaSettings]] = {"tool": limits.tools, "model": limits.models}
    return {
        (kind, name): Quota(each.concurrency, None if each.rate is None else parse_rate(each.rate))
        for kind, table in tables.items()
        for name, each in table.items()
    }


class SharedQuotas:
    """Quotas that hold for all workers of a database together."""

    def __init__(self, database: Database, limits: QuotaTable, worker: str, seconds: float) -> None:
        self._database = database
        self._quotas = configured_quotas(limits)
        self._worker = worker
        self._seconds = seconds
        self.held: set[str] = set()
        """The ids of the quotas that this worker holds; its heartbeat renews them."""

    @asynccontextmanager
    async def turn(self, what: QuotaKind, name: str) -> AsyncGenerator[None]:
        """Hold the quota of a tool or a model, if it has one; waits until it is free."""
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
                # Shielded: a cancelled call frees its quota now, and not only when the lease is over.
                await asyncio.shield(self._release(id))

    async def _acquire(self, what: str, quota: Quota) -> str:
        id, pause = uuid.uuid4().hex, FIRST_PAUSE
        # Before the row exists: a heartbeat right after the commit must renew it already.
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
        # A quota that cannot be freed now expires, since it is no longer renewed.
        with suppress(DurableError):
            await self._database.run_transaction(
                lambda db: db.execute(holders.delete().where(holders.c.id == id)).rowcount
            )

    def _try_acquire(self, db: sa.Connection, id: str, what: str, quota: Quota) -> bool:
        """Whether the quota was free, or was acquired by an earlier commit that was in doubt."""
        holders, starts, now = self._database.tables.holders, self._database.tables.starts, self._database.now
        if not self._database.sqlite:
            # Counting and inserting must be one step for all workers; the lock ends with the transaction.
            db.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(what, 0))))
        # In SQLite the first write takes the write lock, so the counts below stay true until the commit.
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
