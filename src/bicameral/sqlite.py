"""SQLite files: private, in WAL mode, with a version of their tables, and errors by what a person can do about them.

The journal and the store of records share this.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

_create_lock = threading.Lock()
"""No thread connects to a file that another thread has created and not yet closed; see `_create_file`."""

SqliteFault = Literal["disk-full", "damaged", "locked", "read-only", "failed"]


def connect(path: Path, *, lock_seconds: float) -> sqlite3.Connection:
    """A connection in WAL mode, for use by one thread at a time; the file is created if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _create_lock:
        _create_file(path)
        # Absolute, so that no name means a database in memory.
        db = sqlite3.connect(path.absolute(), timeout=lock_seconds, isolation_level=None, check_same_thread=False)
    try:
        _use_wal(db, lock_seconds)
        # On macOS a plain fsync stops at the cache of the drive.
        db.execute("PRAGMA fullfsync = ON")
    except BaseException:
        db.close()
        raise
    return db


def _create_file(path: Path) -> None:
    """Create an empty file if there is none; an existing one is not touched.

    Opening and closing it here would, by the rules of POSIX, drop the locks that another connection of this process has
    on it. Another process would then take the write-ahead log for unused and delete it, with everything in it.
    """
    with suppress(FileExistsError):
        # Only the owner may read it: it contains results of tools and models. SQLite's side files get the same mode.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY, 0o600))


def _use_wal(db: sqlite3.Connection, lock_seconds: float) -> None:
    """Switch to WAL, so that processes can read and append concurrently.

    While another process switches, SQLite reports busy at once without waiting, so this retries.
    """
    deadline = time.monotonic() + lock_seconds
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if sqlite_fault(error) != "locked" or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def ensure_tables(
    db: sqlite3.Connection, application: int, version: int, make: Callable[[tuple[int, int], bool], None]
) -> None:
    """Create or upgrade the tables of a file, unless it says that it has those of this application and version.

    Args:
        make: Called under the write lock with the application and version of the file, and whether it has any tables.
    """
    wanted = (application, version)
    if _file_version(db) == wanted:
        return
    # Another process may create or upgrade the file at the same moment: look again under the write lock.
    with transaction(db):
        if (found := _file_version(db)) != wanted:
            make(found, db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None)


def _file_version(db: sqlite3.Connection) -> tuple[int, int]:
    return db.execute("PRAGMA application_id").fetchone()[0], db.execute("PRAGMA user_version").fetchone()[0]


@contextmanager
def transaction(db: sqlite3.Connection) -> Generator[None]:
    """A write transaction, begun with the write lock."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def execute_script(db: sqlite3.Connection, script: str) -> None:
    """Execute the statements of a script one by one: `executescript` would commit the transaction."""
    pending = ""
    for line in script.splitlines():
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            db.execute(pending)
            pending = ""


def scrub(db: sqlite3.Connection) -> bool:
    """Rewrite the file without free pages, and truncate the write-ahead log, which has a second copy of everything.

    A reader in another process can keep the log from being truncated.
    """
    try:
        db.execute("VACUUM")
        return db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    except sqlite3.OperationalError:
        return False


def sqlite_fault(error: Exception) -> SqliteFault:
    """What is the matter, by SQLite's code and the kind of the system's error."""
    code = getattr(error, "sqlite_errorcode", None)
    # The low byte is the primary error code, the rest extends it.
    primary = code & 0xFF if isinstance(code, int) else None
    if primary == sqlite3.SQLITE_FULL or "No space" in fault_text(error):
        return "disk-full"
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return "damaged"
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "locked"
    if isinstance(error, PermissionError) or primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return "read-only"
    return "failed"


def fault_text(error: Exception) -> str:
    """The words of an error of SQLite or of the system."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
