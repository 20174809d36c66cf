"""The connection to PostgreSQL: made again when it is lost, for a while, and with errors that say what to do."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from bicameral.errors import JournalError
from bicameral.secrets import know, masked

from ._postgres_schema import FORMAT, LOCK, SCHEMA, TABLES

if TYPE_CHECKING:
    from psycopg import Connection

PATIENCE = 10.0
"""Seconds for which a lost connection is made again."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0

# A network that swallows everything is noticed, instead of waited for.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "bicameral",
}
# Trouble that passes: the server ends or begins, has no room for one more connection, or undid what two did at once.
_PASSING = ("08", "57P", "25P03", "53300", "40001", "40P01")
# Whoever is frozen in the middle of a transaction does not keep others from going on with its runs.
_BOUNDED = "-c idle_in_transaction_session_timeout=3000"

_SECRET = ("password", "sslpassword")
_IN_VAIN = ("authentication failed", "does not exist", "no password supplied", "no pg_hba.conf entry")

Found = TypeVar("Found")


class Link:
    """One connection, used by one thread at a time."""

    def __init__(self, url: str) -> None:
        self._psycopg = _psycopg()
        self._url = url
        self.name = shown(url)
        self._db: Connection[Any] | None = None
        self._closed = False
        self._lock = RLock()
        try:
            self.through(_ensure_tables)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._drop()

    def through(self, act: Callable[[Connection[Any]], Found]) -> Found:
        """Do something with the connection, again while it is lost, until it is done or the patience is over.

        What is done must be the same if it is done twice, or look whether it was done.
        """
        until, pause = time.monotonic() + PATIENCE, _FIRST_PAUSE
        with self._lock:
            while True:
                try:
                    return act(self._connection())
                except (self._psycopg.Error, OSError) as error:
                    broken = self._db is None or self._db.broken or self._db.closed
                    if not (broken or _code(error).startswith(_PASSING)) or self._never(error):
                        raise self._failure(error) from None
                    self._drop()
                    if time.monotonic() + pause > until:
                        raise self._lost(error) from None
                # Many lose it at once; let them not come back at once.
                time.sleep(pause * (0.5 + random.random()))  # noqa: S311
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _connection(self) -> Connection[Any]:
        if self._closed:
            raise JournalError("journal.failed", f"{self.name}: the journal is closed")
        if self._db is None:
            from psycopg.conninfo import conninfo_to_dict

            given = conninfo_to_dict(self._url)
            options = f"-c search_path={SCHEMA} {_BOUNDED} {given.pop('options', '')}".strip()
            db: Connection[Any] = self._psycopg.connect(**{**_DEFAULTS, **given, "options": options}, autocommit=True)
            # Neither the role nor the database nor the address can have commits wait for nothing: an effect must not
            # come before its record. What waits for more than the disk here, such as a standby, stays as it is.
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

    def _never(self, error: Exception) -> bool:
        """Whether trying again is in vain: a password that is wrong stays wrong."""
        if _code(error):
            return _code(error).startswith(("28", "3D"))
        return any(words in str(error) for words in _IN_VAIN)

    def _lost(self, error: Exception) -> JournalError:
        return JournalError(
            "journal.lost",
            f"{self.name}: the database cannot be reached: {_words(error)}",
            fix="What was recorded is safe; start the database, and the run can be gone on with.",
        )

    def _failure(self, error: Exception) -> JournalError:
        """What PostgreSQL refused, in words that help."""
        code, words = _code(error), f"{self.name}: {_words(error)}"
        if code.startswith("53100"):
            return JournalError("journal.disk-full", words, fix="Free some space and run again.")
        if code in ("42501", "25006"):
            return JournalError("journal.read-only", words, fix="Give the user of this address the right to write.")
        if code.startswith("XX"):
            return JournalError("journal.damaged", words, fix="Restore the database from a backup.")
        if self._never(error):
            return JournalError("journal.refused", words, fix="Check the address of the database, and its password.")
        return JournalError("journal.failed", words)


def _ensure_tables(db: Connection[Any]) -> None:
    from psycopg.errors import UniqueViolation

    for _ in range(5):
        # Somebody else may make the schema at the same moment for tables of another kind.
        with suppress(UniqueViolation):
            _made_or_checked(db)
            return


def _made_or_checked(db: Connection[Any]) -> None:
    if _format(db) == FORMAT:
        return
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        found = _format(db)
        if found is None:
            db.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            db.execute(TABLES)
        elif found != FORMAT:
            raise JournalError(
                "journal.unknown-version",
                f"the database was written by another version (journal {found}, this one reads {FORMAT})",
                fix="Use another database, or the version that wrote it.",
            )


def _format(db: Connection[Any]) -> int | None:
    # Asked of the tables of the catalogue: names are looked up in a cache that does not know what others made just now.
    query = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'journal'"
    if db.execute(query, (SCHEMA,)).fetchone() is None:
        return None
    row = db.execute("SELECT format FROM journal").fetchone()
    return row[0] if row else 0


def shown(url: str) -> str:
    """An address that may be shown: without its password, which is never shown from now on."""
    parts = urlsplit(url)
    options = parse_qsl(parts.query)
    for password in (unquote(parts.password or ""), *(value for name, value in options if name in _SECRET)):
        know("DATABASE_PASSWORD", password)
    user, at, host = parts.netloc.rpartition("@")
    query = "&".join(f"{name}={value}" for name, value in options if name not in _SECRET)
    return parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=query).geturl()


def _code(error: Exception) -> str:
    return getattr(error, "sqlstate", None) or ""


def _words(error: Exception) -> str:
    return masked(" ".join(str(error).split())[:300])


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise JournalError(
            "journal.missing-package",
            "a journal in PostgreSQL needs the package 'psycopg', which is not installed",
            fix='Install it with `pip install "bicameral[durable]"`.',
        ) from None
    return psycopg
