"""Records in a SQLite file: tables, append-only triggers, locks between processes, and errors with a fix."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from threading import RLock

from bicameral.cache import file_lock
from bicameral.errors import Place, RecordError
from bicameral.journal import EventRow, NumberTaken
from bicameral.records._ledger import Ledger
from bicameral.sqlite import connect, ensure_tables, execute_script, fault_text, scrub, sqlite_fault, transaction

APPLICATION = 0x42495245
FORMAT = 1
LOCK_SECONDS = 5.0
"""Seconds to wait for a transaction of another process."""

# REPLACE deletes rows without firing the DELETE triggers, hence the INSERT trigger.
_TABLES = """
CREATE TABLE entries (
    owner TEXT NOT NULL, collection TEXT NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, action TEXT NOT NULL,
    record TEXT NOT NULL, body TEXT NOT NULL, salt BLOB NOT NULL, digest BLOB NOT NULL, seal TEXT NOT NULL,
    PRIMARY KEY (owner, collection, number)
) WITHOUT ROWID;
CREATE INDEX of_record ON entries (owner, collection, record, number);
CREATE TRIGGER entries_once BEFORE INSERT ON entries
WHEN EXISTS (
    SELECT 1 FROM entries WHERE owner = NEW.owner AND collection = NEW.collection AND number = NEW.number
)
BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
WHEN NOT (
    NEW.body = '' AND NEW.salt = x'' AND OLD.action <> 'erased'
    AND NEW.owner = OLD.owner AND NEW.collection = OLD.collection AND NEW.number = OLD.number AND NEW.at = OLD.at
    AND NEW.action = OLD.action AND NEW.record = OLD.record AND NEW.digest = OLD.digest AND NEW.seal = OLD.seal
    AND EXISTS (
        SELECT 1 FROM entries WHERE owner = OLD.owner AND collection = OLD.collection AND record = OLD.record
        AND number > OLD.number AND action = 'erased'
    )
)
BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
"""
_VERSION_PRAGMAS = f"PRAGMA application_id = {APPLICATION};\nPRAGMA user_version = {FORMAT};\n"
_INSERT = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class SqliteEntries:
    """One connection, used by one thread at a time; other processes may have their own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)
        self._lock = RLock()
        with self._translated_errors():
            self.db = connect(path, lock_seconds=LOCK_SECONDS)
            try:
                # An entry may be a person's yes: it must survive a power cut.
                self.db.execute("PRAGMA synchronous = FULL")
                # What is deleted is overwritten, also before the file is rewritten as a whole.
                self.db.execute("PRAGMA secure_delete = ON")
                # No second copy in a temporary file.
                self.db.execute("PRAGMA temp_store = MEMORY")
                ensure_tables(self.db, APPLICATION, FORMAT, partial(_make_tables, self.db, path))
            except BaseException:
                self.db.close()
                raise

    def close(self) -> None:
        with self._lock:
            self.db.close()

    def rows(self, ledger: Ledger) -> list[EventRow]:
        query = (
            "SELECT number, at, action, record, body, salt, digest, seal FROM entries "
            "WHERE owner = ? AND collection = ? ORDER BY number"
        )
        with self._translated_errors(), self._lock:
            return [EventRow(ledger.key, *values) for values in self.db.execute(query, ledger)]

    def append(self, ledger: Ledger, rows: Sequence[EventRow], *, wait: float) -> None:
        with self._file_lock(ledger, wait, shared=False), self._writing():
            self._insert(ledger, rows)

    def erase(self, ledger: Ledger, marks: Sequence[EventRow], *, wait: float) -> None:
        with self._file_lock(ledger, wait, shared=False), self._writing():
            # The marks first: the triggers allow the changes below only to a record that has one.
            self._insert(ledger, marks)
            self.db.executemany(
                "UPDATE entries SET body = '', salt = x'' WHERE owner = ? AND collection = ? AND record = ? "
                "AND number < ? AND action <> 'erased' AND body <> ''",
                [(*ledger, mark.step, mark.number) for mark in marks],
            )

    @contextmanager
    def _writing(self) -> Generator[None]:
        with self._translated_errors(), self._lock, transaction(self.db):
            yield

    def _insert(self, ledger: Ledger, rows: Sequence[EventRow]) -> None:
        self.db.executemany(_INSERT, [(*ledger, *row[1:]) for row in rows])

    def scrub(self) -> bool:
        with self._lock:
            return scrub(self.db)

    def ledgers(self) -> list[Ledger]:
        query = "SELECT DISTINCT owner, collection FROM entries ORDER BY owner, collection"
        with self._translated_errors(), self._lock:
            return [Ledger(*values) for values in self.db.execute(query)]

    def change_mark(self, ledger: Ledger) -> object:
        with self._translated_errors(), self._lock:
            return self.db.execute("PRAGMA data_version").fetchone()[0]

    def mark_after(self, mark: object, rows: Sequence[EventRow]) -> object:
        # What a connection writes itself does not change its `data_version`.
        return mark

    def hold(self, ledger: Ledger, *, wait: float) -> AbstractContextManager[None]:
        return self._file_lock(ledger, wait, shared=True)

    @contextmanager
    def _file_lock(self, ledger: Ledger, wait: float, *, shared: bool) -> Generator[None]:
        name = hashlib.sha256(ledger.key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        lock = file_lock(self._path.with_name(f"{self._path.name}.{name}.lock"), shared=shared, seconds=wait)
        try:
            lock.__enter__()
        except TimeoutError:
            raise in_use_error(self.name) from None
        except OSError as error:
            raise _sqlite_error(self._path, error) from None
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise NumberTaken from None
        except (sqlite3.Error, OSError) as error:
            raise _sqlite_error(self._path, error) from None


def _make_tables(db: sqlite3.Connection, path: Path, found: tuple[int, int], filled: bool) -> None:
    application, version = found
    if application == APPLICATION:
        raise RecordError(
            "records.unknown-version",
            f"it was written by another version (records {version}, this one reads {FORMAT})",
            place=Place(file=str(path)),
            fix="Name another file, or use the version that wrote it.",
        )
    if application or version or filled:
        raise RecordError(
            "records.not-records",
            "this is a database of something else",
            place=Place(file=str(path)),
            fix="Name another file for the records.",
        )
    execute_script(db, _TABLES + _VERSION_PRAGMAS)


def in_use_error(place: str) -> RecordError:
    return RecordError(
        "records.in-use",
        "somebody has these records open, and they must not change meanwhile",
        place=Place(file=place),
        fix="Wait until no session is open any more.",
    )


def _sqlite_error(path: Path, error: Exception) -> RecordError:
    place, text = Place(file=str(path)), fault_text(error)
    match sqlite_fault(error):
        case "disk-full":
            return RecordError("records.disk-full", text, place=place, fix="Free some space and try again.")
        case "damaged":
            fix = "Nothing in it is used or changed. Put a copy in its place that is whole."
            return RecordError("records.damaged", text, place=place, fix=fix)
        case "locked":
            why = f"another process has kept it locked for {LOCK_SECONDS:g} s"
            return RecordError("records.locked", why, place=place, fix="Wait for the other process.")
        case "read-only":
            return RecordError(
                "records.read-only", "it cannot be written", place=place, fix="Make it writable, or name another file."
            )
        case "failed":
            return RecordError(
                "records.failed", text, place=place, fix="Check the folder of the file and its permissions."
            )
