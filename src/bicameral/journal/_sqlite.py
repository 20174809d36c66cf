"""The journal in a SQLite file: schema, migration, append-only triggers, and errors with a fix."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

from bicameral.errors import JournalError
from bicameral.journal._events import EventRow, NumberTaken, blob_hashes, compress_blob
from bicameral.sqlite import connect, ensure_tables, execute_script, fault_text, scrub, sqlite_fault, transaction

APPLICATION = 0x42494341
SCHEMA_VERSION = 2
LOCK_SECONDS = 5.0
"""Seconds to wait for a lock of another process."""

_EVENTS_TABLE = """
CREATE TABLE events (
    run TEXT NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, step TEXT NOT NULL,
    body TEXT NOT NULL, salt BLOB NOT NULL, digest BLOB NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE INDEX newest ON events (at, run) WHERE kind = 'run-started';
CREATE UNIQUE INDEX starts ON events (run) WHERE kind = 'run-started';
"""
_BLOBS_TABLE = "CREATE TABLE blobs (hash TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;\n"

# Version 2: events that version 1 sealed have neither salt nor digest. `uses` says which run needs which blob.
# REPLACE deletes rows without firing the DELETE triggers, hence the INSERT triggers.
_V2_TABLES = """
CREATE TABLE uses (run TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (run, hash)) WITHOUT ROWID;
CREATE INDEX users ON uses (hash);
CREATE INDEX erased ON events (run, number) WHERE kind = 'run-erased';
CREATE TRIGGER events_once BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE run = NEW.run AND number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER events_stay BEFORE UPDATE ON events
WHEN NOT (
    NEW.body = '' AND NEW.salt = x'' AND OLD.kind <> 'run-erased'
    AND NEW.run = OLD.run AND NEW.number = OLD.number AND NEW.at = OLD.at AND NEW.kind = OLD.kind
    AND NEW.step = OLD.step AND NEW.digest = OLD.digest AND NEW.seal = OLD.seal
    AND EXISTS (SELECT 1 FROM events WHERE run = OLD.run AND number > OLD.number AND kind = 'run-erased')
)
BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER blobs_once BEFORE INSERT ON blobs WHEN EXISTS (SELECT 1 FROM blobs WHERE hash = NEW.hash)
BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER blobs_stay BEFORE UPDATE ON blobs BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER blobs_last BEFORE DELETE ON blobs WHEN EXISTS (SELECT 1 FROM uses WHERE hash = OLD.hash)
BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER uses_stay BEFORE UPDATE ON uses BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER uses_last BEFORE DELETE ON uses
WHEN NOT EXISTS (SELECT 1 FROM events WHERE run = OLD.run AND kind = 'run-erased')
BEGIN SELECT RAISE(ABORT, 'append-only'); END;
"""
_VERSION_PRAGMAS = f"PRAGMA application_id = {APPLICATION};\nPRAGMA user_version = {SCHEMA_VERSION};\n"
_V1_RENAME = """
DROP TRIGGER IF EXISTS events_stay;
DROP TRIGGER IF EXISTS events_last;
DROP TRIGGER IF EXISTS blobs_stay;
DROP TRIGGER IF EXISTS blobs_last;
DROP INDEX newest;
DROP INDEX starts;
ALTER TABLE events RENAME TO first;
"""
_V1_COPY = """
INSERT INTO events SELECT run, number, at, kind, step, body, x'', x'', seal FROM first;
DROP TABLE first;
"""


def open_journal_file(path: Path) -> sqlite3.Connection:
    """A connection to the journal at this path; the file is created if it does not exist."""
    try:
        db = connect(path, lock_seconds=LOCK_SECONDS)
    except (sqlite3.Error, OSError) as error:
        raise sqlite_error(path, error) from None
    try:
        # A transaction that must be on the disk at once asks for it (`SqliteStore._synchronous`).
        db.execute("PRAGMA synchronous = NORMAL")
        # A checkpoint waits for the disk, so it is rare; closing the journal does one as well.
        db.execute("PRAGMA wal_autocheckpoint = 10000")
        ensure_tables(db, APPLICATION, SCHEMA_VERSION, partial(_make_tables, db, path))
    except sqlite3.Error as error:
        db.close()
        raise sqlite_error(path, error) from None
    except BaseException:
        db.close()
        raise
    return db


def _make_tables(db: sqlite3.Connection, path: Path, found: tuple[int, int], filled: bool) -> None:
    application, version = found
    if found == (APPLICATION, 1):
        _upgrade(db)
        return
    if application == APPLICATION:
        raise JournalError(
            "journal.unknown-version",
            f"{path} was written by another version (journal {version}, this one reads {SCHEMA_VERSION})",
            fix="Name another file with [journal] file in bicameral.toml.",
        )
    if version or filled:
        raise JournalError(
            "journal.not-a-journal",
            f"{path} is a database of something else",
            fix="Name another file with [journal] file in bicameral.toml.",
        )
    execute_script(db, _EVENTS_TABLE + _BLOBS_TABLE + _V2_TABLES + _VERSION_PRAGMAS)


def _upgrade(db: sqlite3.Connection) -> None:
    """Upgrade from version 1, inside the caller's transaction. Events keep their seals.

    The table is created anew: a process that still writes version 1 fails at its next event, instead of adding one that
    could not be erased.
    """
    execute_script(db, _V1_RENAME + _EVENTS_TABLE + _V1_COPY + _V2_TABLES + _VERSION_PRAGMAS)

    def load(hash_: str) -> bytes | None:
        row = db.execute("SELECT content FROM blobs WHERE hash = ?", (hash_,)).fetchone()
        return row[0] if row else None

    for run, body in db.execute(
        "SELECT run, body FROM events WHERE instr(body, '\"$blob\"') + instr(body, '\"$packed\"')"
    ):
        # Damage is reported when the event is read.
        with suppress(ValueError, TypeError, AttributeError, KeyError):
            for part in json.loads(body).values():
                for hash_ in blob_hashes(part, load):
                    db.execute("INSERT OR IGNORE INTO uses VALUES (?, ?)", (run, hash_))


def sqlite_error(path: Path, error: Exception) -> JournalError:
    """An error of SQLite or of the system as a `JournalError` with a fix."""
    fault, text = sqlite_fault(error), fault_text(error)
    match fault:
        case "disk-full":
            return JournalError("journal.disk-full", f"{path}: {text}", fix="Free some space and run again.")
        case "damaged":
            return JournalError("journal.damaged", f"{path}: {text}", fix="Move the file away; a new one is made.")
        case "locked":
            return JournalError(
                "journal.locked",
                f"{path}: another process has kept it locked for {LOCK_SECONDS:g} s",
                fix="Wait for the other process, or name another file with [journal] file in bicameral.toml.",
            )
        case "read-only":
            return JournalError(
                "journal.read-only",
                f"{path}: it cannot be written",
                fix="Make it writable, or name another file with [journal] file in bicameral.toml.",
            )
        case "failed":
            return JournalError("journal.failed", f"{path}: {text}")


_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class SqliteStore:
    """One connection, used by one thread at a time; other processes may have their own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)
        self.db = open_journal_file(path)
        self._lock = RLock()

    def close(self) -> None:
        with self._lock:
            self.db.close()

    def append(self, rows: Sequence[EventRow], blobs: Mapping[str, bytes], *, sync: bool) -> None:
        with self._exclusive(), self._synchronous(sync):
            if len(rows) == 1 and not blobs:
                self.db.execute(_INSERT, rows[0])
                return
            with transaction(self.db):
                self._store_blobs(rows[0].run, blobs)
                self.db.executemany(_INSERT, rows)

    @contextmanager
    def _exclusive(self) -> Generator[None]:
        """Use the connection alone, with errors of SQLite translated."""
        try:
            # The connection is shared by threads (`check_same_thread=False`), and so is its transaction.
            with self._lock:
                yield
        except sqlite3.IntegrityError:
            raise NumberTaken from None
        except sqlite3.Error as error:
            raise sqlite_error(self._path, error) from None

    @contextmanager
    def _synchronous(self, sync: bool) -> Generator[None]:
        """Wait for the disk at the end of the next transaction, if `sync` is set.

        Syncing the write-ahead log once brings all earlier transactions to the disk as well.
        """
        if not sync:
            yield
            return
        self.db.execute("PRAGMA synchronous = FULL")
        try:
            yield
        finally:
            self.db.execute("PRAGMA synchronous = NORMAL")

    def _store_blobs(self, run: str, blobs: Mapping[str, bytes]) -> None:
        for hash_, raw in blobs.items():
            if not self.db.execute("SELECT 1 FROM blobs WHERE hash = ?", (hash_,)).fetchone():
                self.db.execute("INSERT INTO blobs VALUES (?, ?)", (hash_, compress_blob(raw)))
            self.db.execute("INSERT OR IGNORE INTO uses VALUES (?, ?)", (run, hash_))

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._exclusive():
            return self.db.execute(query, values).fetchall()

    def blob(self, hash_: str) -> bytes | None:
        rows = self.select("SELECT content FROM blobs WHERE hash = ?", (hash_,))
        return rows[0][0] if rows else None

    def erase(self, mark: EventRow) -> tuple[int, int]:
        run, number = mark.run, mark.number
        with self._exclusive(), transaction(self.db):
            # The mark first: the triggers allow the changes below only to a run that has one.
            self.db.execute(_INSERT, mark)
            events = self.db.execute(
                "UPDATE events SET body = '', salt = x'' "
                "WHERE run = ? AND number < ? AND body <> '' AND kind <> 'run-erased'",
                (run, number),
            ).rowcount
            used = self.db.execute("SELECT hash FROM uses WHERE run = ?", (run,)).fetchall()
            self.db.execute("DELETE FROM uses WHERE run = ?", (run,))
            blobs = self.db.executemany(
                "DELETE FROM blobs WHERE hash = ? AND NOT EXISTS (SELECT 1 FROM uses WHERE uses.hash = blobs.hash)",
                used,
            ).rowcount
        return events, max(blobs, 0)

    def scrub(self) -> bool:
        """Rewrite the file without what was erased; False if a reader in another process prevents it."""
        with self._lock:
            return scrub(self.db)
