"""The database of durable runs: tables, connections, transactions with retry.

A transaction may run twice: when a connection is lost during a commit, it is unknown whether the commit took effect,
and it is retried. So every change names the state it expects. The tables are in the same database as those of DBOS;
times are seconds by the database's clock.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

# For its effect on SQLAlchemy alone: DBOS imports it, in a thread. While that goes on, statements of other threads are
# already looked at by its half-imported modules, and fail with an AttributeError.
import sqlalchemy.orm  # pyright: ignore[reportUnusedImport]
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError, TimeoutError as PoolTimeout

from bicameral.cache import file_lock
from bicameral.errors import DurableError
from bicameral.postgres import (
    CONNECT_OPTIONS,
    IDLE_TRANSACTION_MS,
    error_text,
    is_permanent,
    is_transient,
    masked_address,
    retry,
    sqlstate,
)

TABLES_VERSION = 1
"""The version of these tables; a database with a newer one is not touched."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables, in a schema of their own on PostgreSQL."""

    meta: sa.MetaData
    runs: sa.Table
    approvals: sa.Table
    workers: sa.Table
    holders: sa.Table
    starts: sa.Table
    facts: sa.Table
    workflows: sa.TableClause
    """DBOS's rows of the attempts. Only read here; DBOS changes them."""


def _required(names: str, kind: Any = sa.Text) -> list[sa.Column[Any]]:
    """Columns that are never NULL."""
    return [sa.Column(name, kind, nullable=False) for name in names.split()]


def define_tables(schema: str | None, dbos_schema: str | None) -> Tables:
    meta = sa.MetaData(schema=schema)
    runs = sa.Table(
        "runs",
        meta,
        sa.Column("run", sa.Text, primary_key=True),
        *_required("user request submission"),
        # The plan made for the request, so that no later attempt plans again.
        sa.Column("planned", sa.Text),
        *_required("state"),
        *_required("attempt", sa.Integer),
        # The DBOS workflow of this attempt; NULL until the run is due.
        sa.Column("dispatch", sa.Text, unique=True),
        sa.Column("worker", sa.Text),
        sa.Column("lease_until", sa.Double),
        *_required("priority", sa.Integer),
        sa.Column("not_before", sa.Double),
        # `deaths` are attempts in a row that were lost without progress, `reached` the finished steps at that time.
        *_required("cancel deaths reached", sa.Integer),
        sa.Column("why", sa.Text),
        sa.Column("outcome", sa.Text),
        *_required("created updated", sa.Double),
        sa.Column("key", sa.Text),
        sa.UniqueConstraint("user", "key", name="runs_key"),
        sa.Index("runs_by_user", "user", "created", "run"),
        sa.Index("runs_by_time", "created", "run"),
        sa.Index("runs_by_lease", "state", "lease_until"),
        sa.Index("runs_by_due", "state", "not_before"),
        sa.Index("runs_by_worker", "worker"),
    )
    approvals = sa.Table(
        "approvals",
        meta,
        sa.Column("id", sa.Text, primary_key=True),
        *_required("run user kind question hashes"),
        # The length of the journal when the run asked: an approval recorded after that has been used.
        *_required("number", sa.Integer),
        *_required("asked expires", sa.Double),
        sa.Column("answered", sa.Double),
        *_required("state"),
        sa.Column("answer", sa.Text),
        *_required("by"),
        sa.Index("approvals_by_run", "run"),
        sa.Index("approvals_by_expiry", "state", "expires"),
        sa.Index("approvals_by_user", "user", "state", "asked"),
    )
    workers = sa.Table(
        "workers",
        meta,
        sa.Column("worker", sa.Text, primary_key=True),
        *_required("host"),
        *_required("pid", sa.Integer),
        *_required("started seen", sa.Double),
        *_required("runs concurrency", sa.Integer),
    )
    # Who holds the quota of a tool or a model, and until when unless renewed.
    holders = sa.Table(
        "limit_holders",
        meta,
        sa.Column("id", sa.Text, primary_key=True),
        *_required("what worker"),
        *_required("until", sa.Double),
        sa.Index("limit_holders_by_what", "what", "until"),
    )
    # When calls of a tool or a model began, for quotas per time.
    starts = sa.Table(
        "limit_starts",
        meta,
        sa.Column("id", sa.Text, primary_key=True),
        *_required("what"),
        *_required("at", sa.Double),
        sa.Index("limit_starts_by_what", "what", "at"),
    )
    facts = sa.Table("durable_facts", meta, sa.Column("name", sa.Text, primary_key=True), *_required("value"))
    status = "workflow_uuid name status queue_name executor_id started_at_epoch_ms updated_at"
    workflows = sa.table("workflow_status", *map(sa.column, status.split()), schema=dbos_schema)
    return Tables(meta, runs, approvals, workers, holders, starts, facts, workflows)


T = TypeVar("T")
TransactionWork = Callable[[sa.Connection], T]

SCHEMA = "bicameral"
DBOS_SCHEMA = "dbos"
RETRY_SECONDS = 30.0
"""Seconds for which a lost connection is retried."""
_AWAY = ("connection failed", "unable to open")
_MIGRATION_LOCK = 7_280_417_005


class Database:
    """A connection pool and the tables of one database.

    Args:
        address: The path of a SQLite file, or the address of a PostgreSQL.
        pool: How many connections and threads.
        clock: Seconds since 1970, for tests. Without it, the database's own clock.
    """

    def __init__(self, address: str, *, pool: int = 8, clock: Callable[[], float] | None = None) -> None:
        self.address = address
        self._clock = clock
        self.sqlite = "://" not in address or address.startswith("sqlite:")
        file = Path(address.removeprefix("sqlite:///"))
        self.url = f"sqlite:///{file.absolute()}" if self.sqlite else _postgres_url(address)
        # Registers its passwords as secrets, so that no message shows them.
        masked_address(address)
        self.engine = self._engine(pool)
        self.tables: Tables = define_tables(None if self.sqlite else SCHEMA, None if self.sqlite else DBOS_SCHEMA)
        self._threads = ThreadPoolExecutor(max_workers=pool, thread_name_prefix="bicameral-durable")
        self._making = threading.Lock()

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for PostgreSQL."""
        return Path(self.engine.url.database or "") if self.sqlite else None

    @property
    def now(self) -> sa.ColumnElement[float]:
        """The time by the database's clock, in seconds: leases must not depend on the clocks of several machines."""
        if self._clock is not None:
            return sa.literal(self._clock(), sa.Double)
        if self.sqlite:
            return sa.literal_column("((julianday('now') - 2440587.5) * 86400.0)", sa.Double)
        return sa.literal_column("CAST(extract(epoch FROM clock_timestamp()) AS double precision)", sa.Double)

    def has_word(self, column: sa.ColumnElement[str], word: str) -> sa.ColumnElement[bool]:
        """Whether a text has a word in it, in capital or small letters; `%` in the word has no meaning."""
        if "\0" in word:
            # No request has it: PostgreSQL stores no such text, and SQLite takes it for the end of the word.
            return sa.false()
        if self.sqlite:
            folded = sa.func.bicameral_casefold(column, type_=sa.Text)
            return folded.contains(word.casefold(), autoescape=True)
        escaped = word.replace("/", "//").replace("%", "/%").replace("_", "/_")
        # Both by the database: which letters it knows depends on its locale, and a word must at least find itself.
        return sa.func.lower(column).contains(sa.func.lower(escaped), escape="/")

    def with_own_pool(self) -> Database:
        """The same database with a connection of its own, which no other work can occupy."""
        return Database(self.address, pool=1, clock=self._clock)

    def create_tables(self) -> None:
        """Create the tables that do not exist yet."""
        self.retry(self._create_locked)

    def _create_locked(self) -> None:
        with self._making, self.migration_lock():
            self.transact(self._create)

    def retry(self, act: Callable[[], T]) -> T:
        """Do this, and retry while the error is transient; it must be safe to repeat after a partial failure.

        A server that cannot be reached is reported at once: at the start the address is probably wrong.
        """

        def is_passing(error: Exception) -> bool:
            cause = error.__cause__ if isinstance(error, DurableError) else error
            return _is_transient(cause) and not any(words in str(cause) for words in _AWAY)

        return retry(act, seconds=RETRY_SECONDS, is_transient=is_passing)

    def _create(self, db: sa.Connection) -> None:
        if not self.sqlite:
            db.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        self.tables.meta.create_all(db, checkfirst=True)
        facts = self.tables.facts
        found = db.execute(sa.select(facts.c.value).where(facts.c.name == "version")).scalar()
        if found is None:
            db.execute(facts.insert().values(name="version", value=str(TABLES_VERSION)))
        elif int(found) > TABLES_VERSION:
            raise DurableError(
                "durable.newer",
                f"the database was made by a newer Bicameral "
                f"(version {found} of its tables, this one knows {TABLES_VERSION})",
                fix="Update Bicameral here.",
            )

    @contextmanager
    def migration_lock(self) -> Generator[None]:
        """Held while tables are created or migrated: only one process at a time may."""
        if self.file is not None:
            with file_lock(Path(f"{self.file}.lock")):
                yield
            return
        with _as_durable_error(), self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as held:
            # Polled, and outside of a transaction: DBOS creates indexes concurrently, which waits for every open
            # transaction, and so would wait for a transaction that waits for this lock.
            while not held.scalar(sa.text(f"SELECT pg_try_advisory_lock({_MIGRATION_LOCK})")):
                time.sleep(0.1)
            try:
                yield
            finally:
                # If the connection is lost, so is the lock.
                with suppress(DBAPIError):
                    held.execute(sa.text(f"SELECT pg_advisory_unlock({_MIGRATION_LOCK})"))

    def transact(self, work: TransactionWork[T], patience: float = RETRY_SECONDS) -> T:
        """Do this in a transaction; a transient error is retried for `patience` seconds."""

        def act() -> T:
            with self.engine.begin() as db:
                return work(db)

        with _as_durable_error():
            return retry(act, seconds=patience, is_transient=_is_transient)

    async def run_transaction(self, work: TransactionWork[T], patience: float = RETRY_SECONDS) -> T:
        """Like `transact`, in one of the database's threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.transact, work, patience)

    async def run_in_thread(self, act: Callable[[], T]) -> T:
        """Do this in one of the database's threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, act)

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        self.engine.dispose()

    def _engine(self, pool: int) -> sa.Engine:
        options: dict[str, Any] = {"pool_size": pool, "max_overflow": pool, "pool_timeout": 30, "pool_pre_ping": True}
        if self.sqlite:
            path = sa.make_url(self.url).database or ""
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise DurableError("durable.no-database", f"{path}: {error.strerror or error}") from None
            engine = sa.create_engine(self.url, **options)
            event.listen(engine, "connect", _prepare_sqlite)
            return engine
        engine = sa.create_engine(self.url, connect_args=dict(CONNECT_OPTIONS), **options)
        event.listen(engine, "connect", _limit_idle_transactions)
        return engine


def _prepare_sqlite(connection: Any, _: object) -> None:
    """Take the write lock with the first write, and wait for other writers instead of failing.

    Also teach it to compare words of every language without case: its own `lower` knows the letters of ASCII alone.
    """
    connection.isolation_level = "IMMEDIATE"
    connection.execute("PRAGMA busy_timeout=30000")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.create_function("bicameral_casefold", 1, _casefold, deterministic=True)


def _casefold(text: object) -> object:
    return text.casefold() if isinstance(text, str) else text


def _limit_idle_transactions(connection: Any, _: object) -> None:
    """Let PostgreSQL end the session of a process that is frozen inside of a transaction: it would keep its locks."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = {IDLE_TRANSACTION_MS}")
    connection.commit()


def _postgres_url(address: str) -> str:
    scheme, _, rest = address.partition("://")
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise DurableError(
            "durable.bad-database",
            f"runs cannot be kept in {scheme!r}",
            expected="the path of a SQLite file, or postgresql://…",
        )
    return f"postgresql+psycopg://{rest}"


def _is_transient(error: BaseException | None) -> bool:
    """Whether a retry may succeed: the connection was lost, or a lock or a connection was not to be had."""
    if not isinstance(error, DBAPIError):
        # All connections of the pool are in use.
        return isinstance(error, PoolTimeout)
    cause = error.orig
    if is_permanent(cause):
        return False
    if error.connection_invalidated or is_transient(cause):
        return True
    if not isinstance(error, (OperationalError, InterfaceError)):
        return False
    # A connection that was lost or not to be had has no SQLSTATE; of SQLite only a lock is waited for.
    is_psycopg = type(cause).__module__.startswith("psycopg")
    return not sqlstate(cause) if is_psycopg else "locked" in str(cause)


@contextmanager
def _as_durable_error() -> Generator[None]:
    """Raise errors of SQLAlchemy as `DurableError`."""
    try:
        yield
    except SQLAlchemyError as error:
        raise database_error(error) from error


def database_error(error: SQLAlchemyError) -> DurableError:
    """An error of the database without the statement and its values, which may be private."""
    cause = (error.orig if isinstance(error, DBAPIError) else None) or error
    return DurableError(
        "durable.no-database",
        f"the database of durable runs failed: {error_text(cause)}",
        fix="See that it runs and can be reached, and try again: nothing is lost.",
    )
