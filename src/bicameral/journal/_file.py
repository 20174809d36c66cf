"""The journal's file: made, opened and checked, with errors that say what to do."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path

from bicameral.errors import JournalError

from ._blobs import hashes_in

APPLICATION = 0x42494341
SCHEMA_VERSION = 2
WAIT = 5.0
_making = threading.Lock()
"""Nobody connects to a file while another thread has just made it and not closed it yet."""

_EVENTS = """
CREATE TABLE events (
    run TEXT NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, step TEXT NOT NULL,
    body TEXT NOT NULL, salt BLOB NOT NULL, digest BLOB NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE INDEX newest ON events (at, run) WHERE kind = 'run-started';
CREATE UNIQUE INDEX starts ON events (run) WHERE kind = 'run-started';
"""
_BLOBS = "CREATE TABLE blobs (hash TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;\n"

# Version 2: what was sealed by version 1 has neither salt nor digest. `uses` says which run needs which blob.
# What must stay is kept by triggers, and REPLACE deletes without asking those for DELETE: hence those for INSERT.
_SECOND = """
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
_MARKS = f"PRAGMA application_id = {APPLICATION};\nPRAGMA user_version = {SCHEMA_VERSION};\n"
_AWAY = """
DROP TRIGGER IF EXISTS events_stay;
DROP TRIGGER IF EXISTS events_last;
DROP TRIGGER IF EXISTS blobs_stay;
DROP TRIGGER IF EXISTS blobs_last;
DROP INDEX newest;
DROP INDEX starts;
ALTER TABLE events RENAME TO first;
"""
_OVER = """
INSERT INTO events SELECT run, number, at, kind, step, body, x'', x'', seal FROM first;
DROP TABLE first;
"""


def open_file(path: Path) -> sqlite3.Connection:
    """A connection to the journal at this path, which is made if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _making:
            _make(path)
            db = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
    except (sqlite3.Error, OSError) as error:
        raise failure(path, error) from None
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
        raise failure(path, error) from None
    except BaseException:
        db.close()
        raise
    return db


def _make(path: Path) -> None:
    """An empty file, if there is none. One that is there is left alone.

    To open and close it here would, as POSIX has it, take away the locks that another connection of this process has
    on it; another process then takes the log for nobody's and deletes it, with what was written there.
    """
    with suppress(FileExistsError):
        # What tools and models said is nobody else's business; SQLite gives its side files the same mode.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY, 0o600))


def _use_wal(db: sqlite3.Connection) -> None:
    """Appends of several processes side by side; while another makes the switch SQLite says busy without waiting."""
    until = time.monotonic() + WAIT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is(error, sqlite3.SQLITE_BUSY) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _ensure_schema(db: sqlite3.Connection, path: Path) -> None:
    if _version(db) == (APPLICATION, SCHEMA_VERSION):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        application, version = _version(db)
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
        _execute(db, _EVENTS + _BLOBS + _SECOND + _MARKS)
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
    _execute(db, _AWAY + _EVENTS + _OVER + _SECOND + _MARKS)

    def content(hash_: str) -> bytes | None:
        found = db.execute("SELECT content FROM blobs WHERE hash = ?", (hash_,)).fetchone()
        return found[0] if found else None

    for run, body in db.execute(
        "SELECT run, body FROM events WHERE instr(body, '\"$blob\"') + instr(body, '\"$packed\"')"
    ):
        # What is damaged is told when it is read.
        with suppress(ValueError, TypeError, AttributeError, KeyError):
            for part in json.loads(body).values():
                for hash_ in hashes_in(part, content):
                    db.execute("INSERT OR IGNORE INTO uses VALUES (?, ?)", (run, hash_))


def _execute(db: sqlite3.Connection, script: str) -> None:
    for statement in _statements(script):
        db.execute(statement)


def _version(db: sqlite3.Connection) -> tuple[int, int]:
    return db.execute("PRAGMA application_id").fetchone()[0], db.execute("PRAGMA user_version").fetchone()[0]


def _statements(script: str) -> list[str]:
    """The statements of a script, one per line or block: `executescript` would end the transaction."""
    found: list[str] = []
    begun = ""
    for line in script.splitlines():
        begun += line + "\n"
        if sqlite3.complete_statement(begun):
            found.append(begun)
            begun = ""
    return found


def _is(error: Exception, *codes: int) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    # The low byte is the error, the rest says more precisely which.
    return isinstance(code, int) and code & 0xFF in codes


def failure(path: Path, error: Exception) -> JournalError:
    """What SQLite or the system refused, in words that help."""
    text = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    if _is(error, sqlite3.SQLITE_FULL) or "No space" in text:
        return JournalError("journal.disk-full", f"{path}: {text}", fix="Free some space and run again.")
    if _is(error, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return JournalError("journal.damaged", f"{path}: {text}", fix="Move the file away; a new one is made.")
    if _is(error, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return JournalError(
            "journal.locked",
            f"{path}: another process has kept it locked for {WAIT:g} s",
            fix="Wait for the other process, or name another file with [journal] file in bicameral.toml.",
        )
    if isinstance(error, PermissionError) or _is(error, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return JournalError(
            "journal.read-only",
            f"{path}: it cannot be written",
            fix="Make it writable, or name another file with [journal] file in bicameral.toml.",
        )
    return JournalError("journal.failed", f"{path}: {text}")
