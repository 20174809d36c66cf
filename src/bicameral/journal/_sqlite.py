"""The journal in a SQLite file: schema, migration, append-only triggers, and errors that say what to do."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from bicameral.errors import JournalError
from bicameral.journal._blobs import blob_hashes, compress_blob
from bicameral.journal._events import EventRow, NumberTaken

APPLICATION = 0x42494341
SCHEMA_VERSION = 2
LOCK_SECONDS = 5.0
_create_lock = threading.Lock()
"""Nobody connects to a file while another thread has just made it and not closed it yet."""

_EVENTS_TABLE = """
CREATE TABLE events (
    run TEXT NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, step TEXT NOT NULL,
    body TEXT NOT NULL, salt BLOB NOT NULL, digest BLOB NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE INDEX newest ON events (at, run) WHERE kind = 'run-started';
CREATE UNIQUE INDEX starts ON events (run) WHERE kind = 'run-started';
"""
_BLOBS_TABLE = "CREATE TABLE blobs (hash TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;\n"

# Version 2: what was sealed by version 1 has neither salt nor digest. `uses` says which run needs which blob.
# What must stay is kept by triggers, and REPLACE deletes without asking those for DELETE: hence those for INSERT.
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
    """A connection to the journal at this path, which is made if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _create_lock:
            _create_file(path)
            db = sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
    except (sqlite3.Error, OSError) as error:
        raise sqlite_error(path, error) from None
    try:
        _use_wal(db)
        # What must be on the disk at once asks for it, transaction by transaction (`SqliteStore.append`).
        db.execute("PRAGMA synchronous = NORMAL")
        # Where a sync alone stops at the cache of the drive, it goes on to the platter.
        db.execute("PRAGMA fullfsync = ON")
        # Moving the log into the file waits for the disk: seldom, and at the latest when the journal is closed.
        db.execute("PRAGMA wal_autocheckpoint = 10000")
        _ensure_schema(db, path)
    except sqlite3.Error as error:
        db.close()
        raise sqlite_error(path, error) from None
    except BaseException:
        db.close()
        raise
    return db


def _create_file(path: Path) -> None:
    """An empty file, if there is none. One that is there is left alone.

    To open and close it here would, as POSIX has it, take away the locks that another connection of this process has
    on it; another process then takes the log for nobody's and deletes it, with what was written there.
    """
    with suppress(FileExistsError):
        # What tools and models said is nobody else's business; SQLite gives its side files the same mode.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY, 0o600))


def _use_wal(db: sqlite3.Connection) -> None:
    """Appends of several processes side by side; while another makes the switch SQLite says busy without waiting."""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _has_sqlite_code(error, sqlite3.SQLITE_BUSY) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _ensure_schema(db: sqlite3.Connection, path: Path) -> None:
    if _file_version(db) == (APPLICATION, SCHEMA_VERSION):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        application, version = _file_version(db)
        if (application, version) == (APPLICATION, SCHEMA_VERSION):
            return
        if (application, version) == (APPLICATION, 1):
            _upgrade(db)
            return
        if application == APPLICATION:
            raise JournalError(
                "journal.unknown-version",
                f"{path} was written by another version (journal {version}, this one reads {SCHEMA_VERSION})",
                fix="Name another file with [journal] file in bicameral.toml.",
            )
        if version or db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise JournalError(
                "journal.not-a-journal",
                f"{path} is a database of something else",
                fix="Name another file with [journal] file in bicameral.toml.",
            )
        _execute_script(db, _EVENTS_TABLE + _BLOBS_TABLE + _V2_TABLES + _VERSION_PRAGMAS)
    except BaseException:
        db.execute("ROLLBACK")
        raise
    finally:
        if db.in_transaction:
            db.execute("COMMIT")


def _upgrade(db: sqlite3.Connection) -> None:
    """From version 1, in the transaction that this is called in. Its events keep their seals.

    The table is written anew: another process that still writes version 1 fails at its next event, instead of adding
    one that nobody could erase.
    """
    _execute_script(db, _V1_RENAME + _EVENTS_TABLE + _V1_COPY + _V2_TABLES + _VERSION_PRAGMAS)

    def content(hash_: str) -> bytes | None:
        found = db.execute("SELECT content FROM blobs WHERE hash = ?", (hash_,)).fetchone()
        return found[0] if found else None

    for run, body in db.execute(
        "SELECT run, body FROM events WHERE instr(body, '\"$blob\"') + instr(body, '\"$packed\"')"
    ):
        # What is damaged is told when it is read.
        with suppress(ValueError, TypeError, AttributeError, KeyError):
            for part in json.loads(body).values():
                for hash_ in blob_hashes(part, content):
                    db.execute("INSERT OR IGNORE INTO uses VALUES (?, ?)", (run, hash_))


def _execute_script(db: sqlite3.Connection, script: str) -> None:
    for statement in _split_statements(script):
        db.execute(statement)


def _file_version(db: sqlite3.Connection) -> tuple[int, int]:
    return db.execute("PRAGMA application_id").fetchone()[0], db.execute("PRAGMA user_version").fetchone()[0]


def _split_statements(script: str) -> list[str]:
    """The statements of a script, one per line or block: `executescript` would end the transaction."""
    found: list[str] = []
    begun = ""
    for line in script.splitlines():
        begun += line + "\n"
        if sqlite3.complete_statement(begun):
            found.append(begun)
            begun = ""
    return found


def _has_sqlite_code(error: Exception, *codes: int) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    # The low byte is the error, the rest says more precisely which.
    return isinstance(code, int) and code & 0xFF in codes


def sqlite_error(path: Path, error: Exception) -> JournalError:
    """What SQLite or the system refused, in words that help."""
    text = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    if _has_sqlite_code(error, sqlite3.SQLITE_FULL) or "No space" in text:
        return JournalError("journal.disk-full", f"{path}: {text}", fix="Free some space and run again.")
    if _has_sqlite_code(error, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return JournalError("journal.damaged", f"{path}: {text}", fix="Move the file away; a new one is made.")
    if _has_sqlite_code(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return JournalError(
            "journal.locked",
            f"{path}: another process has kept it locked for {LOCK_SECONDS:g} s",
            fix="Wait for the other process, or name another file with [journal] file in bicameral.toml.",
        )
    if isinstance(error, PermissionError) or _has_sqlite_code(error, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return JournalError(
            "journal.read-only",
            f"{path}: it cannot be written",
            fix="Make it writable, or name another file with [journal] file in bicameral.toml.",
        )
    return JournalError("journal.failed", f"{path}: {text}")


_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class SqliteStore:
    """One connection, used by one thread at a time; other processes may have theirs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)
        self.db = open_journal_file(path)
        self._lock = RLock()

    def close(self) -> None:
        with self._lock:
            self.db.close()

    def append(self, rows: Sequence[EventRow], blobs: Mapping[str, bytes], *, sync: bool) -> None:
        try:
            with self._lock, self._synchronous(sync):
                if len(rows) == 1 and not blobs:
                    self.db.execute(_INSERT, rows[0])
                    return
                with self._transaction():
                    self._keep(rows[0].run, blobs)
                    self.db.executemany(_INSERT, rows)
        except sqlite3.IntegrityError:
            raise NumberTaken from None
        except sqlite3.Error as error:
            raise sqlite_error(self._path, error) from None

    @contextmanager
    def _synchronous(self, sync: bool) -> Generator[None]:
        """Wait for the disk at the end of the next transaction, if that is wanted.

        Syncing the log once brings all transactions before this one to the disk as well.
        """
        if not sync:
            yield
            return
        self.db.execute("PRAGMA synchronous = FULL")
        try:
            yield
        finally:
            self.db.execute("PRAGMA synchronous = NORMAL")

    def _keep(self, run: str, blobs: Mapping[str, bytes]) -> None:
        for hash_, raw in blobs.items():
            if not self.db.execute("SELECT 1 FROM blobs WHERE hash = ?", (hash_,)).fetchone():
                self.db.execute("INSERT INTO blobs VALUES (?, ?)", (hash_, compress_blob(raw)))
            self.db.execute("INSERT OR IGNORE INTO uses VALUES (?, ?)", (run, hash_))

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            with self._lock:
                return self.db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise sqlite_error(self._path, error) from None

    def blob(self, hash_: str) -> bytes | None:
        found = self.select("SELECT content FROM blobs WHERE hash = ?", (hash_,))
        return found[0][0] if found else None

    def erase(self, mark: EventRow) -> tuple[int, int]:
        run, number = mark.run, mark.number
        try:
            with self._lock, self._transaction():
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
        except sqlite3.IntegrityError:
            raise NumberTaken from None
        except sqlite3.Error as error:
            raise sqlite_error(self._path, error) from None
        return events, max(blobs, 0)

    def scrub(self) -> bool:
        """The file is written anew without free pages, and the log, which has everything once more, is cut to nothing.

        Others that read just now keep the log from being cut.
        """
        try:
            with self._lock:
                self.db.execute("VACUUM")
                return self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        except sqlite3.OperationalError:
            return False

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise
