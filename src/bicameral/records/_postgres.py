"""Records in PostgreSQL: tables, append-only triggers, advisory locks."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, LiteralString

from bicameral.errors import RecordError
from bicameral.journal import EventRow, NumberTaken
from bicameral.postgres import PostgresConnection, PostgresFault, VersionedTables
from bicameral.records._ledger import Ledger
from bicameral.records._sqlite import in_use_error

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMA = "bicameral"
FORMAT = 1
ADVISORY_LOCK = 0x62697265
"""Advisory lock for creating the tables."""
_POLL_SECONDS = 0.02
_CODES: dict[PostgresFault, str] = {
    "lost": "records.lost",
    "disk-full": "records.disk-full",
    "read-only": "records.read-only",
    "damaged": "records.damaged",
    "refused": "records.refused",
    "failed": "records.failed",
    "missing-package": "records.missing-package",
}

_TABLES: LiteralString = """
CREATE TABLE record_entries (
    owner TEXT COLLATE "C" NOT NULL, collection TEXT COLLATE "C" NOT NULL, number INTEGER NOT NULL,
    at DOUBLE PRECISION NOT NULL, action TEXT NOT NULL, record TEXT COLLATE "C" NOT NULL, body TEXT NOT NULL,
    salt BYTEA NOT NULL, digest BYTEA NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (owner, collection, number)
);
CREATE INDEX record_entries_of_record ON record_entries (owner, collection, record, number);
CREATE TABLE record_format (format INTEGER NOT NULL);
CREATE FUNCTION record_entries_last() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'append-only: % of %', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION record_entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.body = '' AND NEW.salt = '' AND OLD.action <> 'erased'
        AND (NEW.owner, NEW.collection, NEW.number, NEW.at, NEW.action, NEW.record, NEW.digest, NEW.seal)
            = (OLD.owner, OLD.collection, OLD.number, OLD.at, OLD.action, OLD.record, OLD.digest, OLD.seal)
        AND EXISTS (SELECT FROM bicameral.record_entries
                    WHERE owner = OLD.owner AND collection = OLD.collection AND record = OLD.record
                    AND number > OLD.number AND action = 'erased')
    THEN RETURN NEW; END IF;
    RAISE EXCEPTION 'append-only: % of %', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER entries_stay BEFORE UPDATE ON record_entries FOR EACH ROW EXECUTE FUNCTION record_entries_stay();
CREATE TRIGGER entries_last BEFORE DELETE ON record_entries FOR EACH ROW EXECUTE FUNCTION record_entries_last();
CREATE TRIGGER entries_whole BEFORE TRUNCATE ON record_entries
    FOR EACH STATEMENT EXECUTE FUNCTION record_entries_last();
INSERT INTO record_format VALUES (1);
"""
_TRY_SHARED_LOCK: LiteralString = "SELECT pg_try_advisory_lock_shared(%s)"
_INSERT: LiteralString = "INSERT INTO record_entries VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"


class PostgresEntries:
    """Entries in the schema `bicameral` of the database at a `postgresql://` address."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = PostgresConnection(url, RecordError, _CODES, SCHEMA, _ensure_tables)
        self.name = self._connection.name

    def close(self) -> None:
        self._connection.close()

    def rows(self, ledger: Ledger) -> list[EventRow]:
        query: LiteralString = (
            "SELECT number, at, action, record, body, salt, digest, seal FROM record_entries "
            "WHERE owner = %s AND collection = %s ORDER BY number"
        )
        found = self._connection.run(lambda db: db.execute(query, ledger).fetchall())
        return [
            EventRow(ledger.key, number, at, action, record, body, bytes(salt), bytes(digest), seal)
            for number, at, action, record, body, salt, digest, seal in found
        ]

    def append(self, ledger: Ledger, rows: Sequence[EventRow], *, wait: float) -> None:
        self._write(ledger, rows, wait, lambda db: None)

    def erase(self, ledger: Ledger, marks: Sequence[EventRow], *, wait: float) -> None:
        def empty(db: Connection[Any]) -> None:
            for mark in marks:
                db.execute(
                    "UPDATE record_entries SET body = '', salt = '' WHERE owner = %s AND collection = %s "
                    "AND record = %s AND number < %s AND action <> 'erased' AND body <> ''",
                    (*ledger, mark.step, mark.number),
                )

        self._write(ledger, marks, wait, empty)

    def _write(
        self, ledger: Ledger, rows: Sequence[EventRow], wait: float, more: Callable[[Connection[Any]], None]
    ) -> None:
        until = time.monotonic() + wait

        def act(db: Connection[Any]) -> bool:
            with db.transaction():
                # In the same transaction as the entries: a lock of another connection could be lost before them.
                row = db.execute("SELECT pg_try_advisory_xact_lock(%s)", (_lock_key(ledger),)).fetchone()
                if row is None or not row[0]:
                    return False
                for entry in rows:
                    db.execute(_INSERT, (*ledger, *entry[1:]))
                more(db)
            return True

        def is_stored(db: Connection[Any]) -> bool:
            query: LiteralString = (
                "SELECT seal FROM record_entries WHERE owner = %s AND collection = %s AND number = %s"
            )
            # A seal depends on a random salt, so no other entry has it.
            found = db.execute(query, (*ledger, rows[-1].number)).fetchone()
            return found is not None and found[0] == rows[-1].seal

        while not self._connection.run_once(act, is_stored, True, NumberTaken):
            if time.monotonic() >= until:
                raise in_use_error(self.name)
            time.sleep(_POLL_SECONDS)

    def scrub(self) -> bool:
        """Rewrite the table without old row versions. The server's own log and its backups are out of reach."""
        try:
            self._connection.run(lambda db: db.execute("VACUUM FULL record_entries"))
        except RecordError:
            return False
        return True

    def ledgers(self) -> list[Ledger]:
        query: LiteralString = "SELECT DISTINCT owner, collection FROM record_entries ORDER BY owner, collection"
        return [Ledger(*values) for values in self._connection.run(lambda db: db.execute(query).fetchall())]

    def change_mark(self, ledger: Ledger) -> object:
        query: LiteralString = (
            "SELECT number, seal FROM record_entries WHERE owner = %s AND collection = %s ORDER BY number DESC LIMIT 1"
        )
        return self._connection.run(lambda db: db.execute(query, ledger).fetchone())

    def mark_after(self, mark: object, rows: Sequence[EventRow]) -> object:
        return rows[-1].number, rows[-1].seal

    @contextmanager
    def hold(self, ledger: Ledger, *, wait: float) -> Generator[None]:
        # A connection of its own: it must neither wait for a query nor be replaced while the lock is held.
        own = PostgresConnection(self._url, RecordError, _CODES, SCHEMA, lambda db: None)
        try:
            until = time.monotonic() + wait
            while own.run(lambda db: db.execute(_TRY_SHARED_LOCK, (_lock_key(ledger),)).fetchone()) != (True,):
                if time.monotonic() >= until:
                    raise in_use_error(self.name)
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            # Otherwise the server ends the lock some time after the connection; a lost connection has none any more.
            with suppress(RecordError):
                own.run(lambda db: db.execute("SELECT pg_advisory_unlock_all()"))
            own.close()


def _lock_key(ledger: Ledger) -> int:
    """The number of a ledger's advisory lock."""
    hash_ = hashlib.sha256(b"records\n" + ledger.key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(hash_[:8], signed=True)


def _ensure_tables(db: Connection[Any]) -> None:
    tables = VersionedTables(SCHEMA, "record_format", FORMAT, _TABLES, ADVISORY_LOCK)
    if (version := tables.ensure(db)) != FORMAT:
        raise RecordError(
            "records.unknown-version",
            f"the database was written by another version (records {version}, this one reads {FORMAT})",
            fix="Use another database, or the version that wrote it.",
        )
