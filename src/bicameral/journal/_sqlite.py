"""The journal in a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from ._blobs import squeezed
from ._chain import Row
from ._file import failure, open_file
from ._store import Taken

_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class SqliteStore:
    """One connection, used by one thread at a time; other processes may have theirs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)
        self.db = open_file(path)
        self._lock = RLock()

    def close(self) -> None:
        with self._lock:
            self.db.close()

    def append(self, rows: Sequence[Row], blobs: Mapping[str, bytes], *, sync: bool) -> None:
        try:
            with self._lock, self._synchronous(sync):
                if len(rows) == 1 and not blobs:
                    self.db.execute(_INSERT, rows[0])
                    return
                with self._transaction():
                    self._keep(rows[0].run, blobs)
                    self.db.executemany(_INSERT, rows)
        except sqlite3.IntegrityError:
            raise Taken from None
        except sqlite3.Error as error:
            raise failure(self._path, error) from None

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
                self.db.execute("INSERT INTO blobs VALUES (?, ?)", (hash_, squeezed(raw)))
            self.db.execute("INSERT OR IGNORE INTO uses VALUES (?, ?)", (run, hash_))

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            with self._lock:
                return self.db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise failure(self._path, error) from None

    def blob(self, hash_: str) -> bytes | None:
        found = self.select("SELECT content FROM blobs WHERE hash = ?", (hash_,))
        return found[0][0] if found else None

    def erase(self, mark: Row) -> tuple[int, int]:
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
            raise Taken from None
        except sqlite3.Error as error:
            raise failure(self._path, error) from None
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
