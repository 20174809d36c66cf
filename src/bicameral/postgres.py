"""PostgreSQL connections: options, which errors are worth a retry, the retry itself, and addresses without passwords.

The journal and the store of records (psycopg) and durable runs (SQLAlchemy) share this. Errors are judged by their
SQLSTATE and their text; psycopg is imported by the first `PostgresConnection`.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, LiteralString, TypeVar
from urllib.parse import unquote

from bicameral.errors import BicameralError
from bicameral.secrets import mask, register_secret

if TYPE_CHECKING:
    from psycopg import Connection

T = TypeVar("T")
PostgresFault = Literal["lost", "disk-full", "read-only", "damaged", "refused", "failed", "missing-package"]

# A network that drops all packets is detected within seconds instead of waited for.
CONNECT_OPTIONS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "bicameral",
}
IDLE_TRANSACTION_MS = 3_000
"""For how long a transaction may be idle: a process that is frozen inside of one must not keep its locks."""

# Worth a retry: the server stops or starts, has no free connection or lock, or rolled back a conflict of transactions.
# Not 57014, a cancelled statement: what ran into a time limit would run into it again.
_TRANSIENT_STATES = ("08", "57P", "25P03", "53300", "40001", "40P01", "55P03")
# Invalid authorization, and a database that does not exist.
_PERMANENT_STATES = ("28", "3D")
# An error while connecting has no SQLSTATE.
_PERMANENT_WORDS = ("authentication failed", "does not exist", "no password supplied", "no pg_hba.conf entry")

RECONNECT_SECONDS = 10.0
"""Seconds for which a lost connection is retried."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_MAX_ERROR_TEXT = 300

# A password may contain what should be escaped: up to the last `@` before the query, or else what libpq takes for it.
_CREDENTIALS = re.compile(r"([^:/@?]*):([^?]*|[^@/]*)@")
_SQLALCHEMY_CREDENTIALS = re.compile(r"([^:/]*):([^@]*)@")
_SECRET_OPTIONS = {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}


def sqlstate(error: BaseException | None) -> str:
    """The SQLSTATE of an error of psycopg; empty if it has none."""
    return getattr(error, "sqlstate", None) or ""


def is_transient(error: BaseException | None) -> bool:
    """Whether the server says that a retry may succeed. A connection that just broke may have no SQLSTATE."""
    return sqlstate(error).startswith(_TRANSIENT_STATES)


def is_permanent(error: BaseException | None) -> bool:
    """Whether a retry is pointless, as with a wrong password."""
    if state := sqlstate(error):
        return state.startswith(_PERMANENT_STATES)
    return any(words in str(error) for words in _PERMANENT_WORDS)


def error_text(error: BaseException) -> str:
    """The first line of an error, without secrets. Later lines may quote values of a row, which are private."""
    lines = str(error).strip().splitlines()
    return mask(lines[0])[:_MAX_ERROR_TEXT] if lines else type(error).__name__


def masked_address(address: str) -> str:
    """An address without its passwords, which are registered as secrets and masked from now on.

    Example:
        >>> masked_address("postgresql://ann:correct-horse@db.example.com/runs?sslpassword=battery&sslmode=require")
        'postgresql://ann@db.example.com/runs?sslmode=require'
    """
    scheme, separator, rest = address.partition("://")
    if not separator or scheme == "sqlite":
        return address
    passwords = [found[2]] if (found := _SQLALCHEMY_CREDENTIALS.match(rest)) else []
    if found := _CREDENTIALS.match(rest):
        passwords.append(found[2])
        rest = f"{found[1]}@{rest[found.end() :]}"
    rest, _, query = rest.partition("?")
    options: list[str] = []
    for option in query.split("&") if query else ():
        name, _, value = option.partition("=")
        if unquote(name).strip().lower() in _SECRET_OPTIONS:
            passwords.append(value)
        else:
            options.append(option)
    for password in passwords:
        # In its plain form too: libpq takes it as it is where it has nothing to decode.
        register_secret("DATABASE_PASSWORD", unquote(password))
        register_secret("DATABASE_PASSWORD", password)
    return f"{scheme}://{rest}" + (f"?{'&'.join(options)}" if options else "")


def retry(
    act: Callable[[], T],
    *,
    seconds: float,
    is_transient: Callable[[Exception], bool],
    on_retry: Callable[[], None] | None = None,
) -> T:
    """Call `act` until it succeeds, fails with an error that is not transient, or the time is up; then raise its error.

    Args:
        act: Must be safe to repeat: the first call may have been committed although its answer was lost.
        seconds: No new attempt begins after them.
        is_transient: Whether an error is worth another attempt.
        on_retry: Called before each further attempt, for example to drop the connection.
    """
    end, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while True:
        try:
            return act()
        except Exception as error:
            if not is_transient(error) or time.monotonic() + pause > end:
                raise
        if on_retry is not None:
            on_retry()
        # Jitter: all clients lose a restarting server at the same moment and should not return together.
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
        pause = min(2 * pause, _LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class VersionedTables:
    """The tables of one room, and a table with one row that says which version of them it is.

    Args:
        marker: The table with the version.
        create: Creates the tables and the marker.
        lock: The number of an advisory lock for creating them.
    """

    schema: LiteralString
    marker: LiteralString
    version: int
    create: LiteralString
    lock: int

    def ensure(self, db: Connection[Any]) -> int | None:
        """Create the tables unless there are some; the version of those that are there, 0 if it is not recorded."""
        from psycopg.errors import UniqueViolation

        for _ in range(5):
            # The advisory lock does not cover other users of the schema, who may create it at the same moment.
            with suppress(UniqueViolation):
                if self._found_version(db) is None:
                    self._create(db)
                return self._found_version(db)
        return None

    def _create(self, db: Connection[Any]) -> None:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", (self.lock,))
            if self._found_version(db) is None:
                db.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
                db.execute(self.create)

    def _found_version(self, db: Connection[Any]) -> int | None:
        """The version of the tables; None if there are none, 0 if it is not recorded."""
        # Queried in the catalogue: name resolution uses a cache that does not see tables another session just created.
        query = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = %s"
        if db.execute(query, (self.schema, self.marker)).fetchone() is None:
            return None
        row = db.execute(f"SELECT format FROM {self.marker}").fetchone()  # noqa: S608
        return row[0] if row else 0


class PostgresConnection:
    """One connection, used by one thread at a time, that reconnects.

    Args:
        error: The class of its errors.
        codes: The code of each of them.
        schema: Where its tables are.
        prepare: Creates or checks the tables; called once, with the first connection.
    """

    def __init__(
        self,
        url: str,
        error: type[BicameralError],
        codes: Mapping[PostgresFault, str],
        schema: str,
        prepare: Callable[[Connection[Any]], None],
    ) -> None:
        self._error = error
        self._codes = codes
        self._schema = schema
        self._psycopg = self._import_psycopg()
        self._url = url
        self.name = masked_address(url)
        self._db: Connection[Any] | None = None
        self._closed = False
        # A psycopg connection may be shared, but a reconnect must not replace it while another thread is using it.
        self._lock = RLock()
        try:
            self.run(prepare)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._drop()

    def run(self, act: Callable[[Connection[Any]], T]) -> T:
        """Call `act` with the connection, and again after a lost connection, until it succeeds or the time is up.

        `act` must be idempotent, or find out whether an earlier attempt was committed.
        """
        with self._lock:
            try:
                return retry(
                    lambda: act(self._connection()),
                    seconds=RECONNECT_SECONDS,
                    is_transient=self._is_lost,
                    on_retry=self._drop,
                )
            except (self._psycopg.Error, OSError) as error:
                if not self._is_lost(error):
                    raise self._refused_error(error) from None
                self._drop()
                raise self._lost_error(error) from None

    def run_once(
        self,
        act: Callable[[Connection[Any]], T],
        is_done: Callable[[Connection[Any]], bool],
        done: T,
        taken: type[Exception],
    ) -> T:
        """Call `act` such that a lost connection cannot make it happen twice.

        Args:
            is_done: Whether an earlier attempt was committed; `done` is then returned.
            taken: Raised if `act` violates a constraint although no earlier attempt was committed.
        """
        tried = False

        def attempt(db: Connection[Any]) -> T:
            nonlocal tried
            if tried and is_done(db):
                return done
            tried = True
            try:
                return act(db)
            except self._psycopg.IntegrityError:
                # An earlier attempt may have been committed while this one was in progress.
                if is_done(db):
                    return done
                raise taken from None

        return self.run(attempt)

    def _is_lost(self, error: Exception) -> bool:
        """Whether a new connection may succeed where this one failed."""
        broken = self._db is None or self._db.broken or self._db.closed
        is_link_error = isinstance(error, (self._psycopg.Error, OSError))
        return is_link_error and (broken or is_transient(error)) and not is_permanent(error)

    def _connection(self) -> Connection[Any]:
        if self._closed:
            raise self._error(self._codes["failed"], f"{self.name}: it is closed")
        if self._db is None:
            from psycopg.conninfo import conninfo_to_dict

            given = conninfo_to_dict(self._url)
            idle = f"-c idle_in_transaction_session_timeout={IDLE_TRANSACTION_MS}"
            options = f"-c search_path={self._schema} {idle} {given.pop('options', '')}".strip()
            db: Connection[Any] = self._psycopg.connect(
                **{**CONNECT_OPTIONS, **given, "options": options}, autocommit=True
            )
            # An effect must not happen before its record is durable, so `off`, from the role, the database or the
            # address, is overridden. Stricter settings, such as waiting for a standby, stay as they are.
            db.execute(
                "SELECT set_config('synchronous_commit', 'on', false) "
                "WHERE current_setting('synchronous_commit') = 'off'"
            )
            self._db = db
        return self._db

    def _drop(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _lost_error(self, error: Exception) -> BicameralError:
        return self._error(
            self._codes["lost"],
            f"{self.name}: the database cannot be reached: {error_text(error)}",
            fix="What was recorded is safe; start the database, and the run can be gone on with.",
        )

    def _refused_error(self, error: Exception) -> BicameralError:
        """An error of PostgreSQL as one of the room, with a fix."""
        code, message = sqlstate(error), f"{self.name}: {error_text(error)}"
        what: PostgresFault = "failed"
        fix: str | None = None
        if code.startswith("53100"):
            what, fix = "disk-full", "Free some space and run again."
        elif code in ("42501", "25006"):
            what, fix = "read-only", "Give the user of this address the right to write."
        elif code.startswith("XX"):
            what, fix = "damaged", "Restore the database from a backup."
        elif is_permanent(error):
            what, fix = "refused", "Check the address of the database, and its password."
        return self._error(self._codes[what], message, fix=fix)

    def _import_psycopg(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise self._error(
                self._codes["missing-package"],
                "PostgreSQL needs the package 'psycopg', which is not installed",
                fix='Install it with `pip install "bicameral[durable]"`.',
            ) from None
        return psycopg
