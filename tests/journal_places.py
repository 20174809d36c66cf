"""Journals of both kinds for tests, what tampers with them, and a proxy that loses answers of PostgreSQL."""

from __future__ import annotations

import re
import socket
import sqlite3
import tempfile
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal, LiteralString, cast

from postgres import execute

TABLES = ("events", "blobs", "uses")


class JournalPlace:
    """Where a journal is, and a way to it that does not ask the journal."""

    def __init__(self, where: Path | str) -> None:
        self.where = where

    @property
    def sqlite(self) -> bool:
        return isinstance(self.where, Path)

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """What a stranger with the database in his hands gets from a statement; the triggers watch."""
        if isinstance(self.where, Path):
            with closing(sqlite3.connect(self.where, isolation_level=None)) as db:
                return db.execute(statement).fetchall()
        named = re.sub(r"\b(FROM|UPDATE|INTO|TRUNCATE) (events|blobs|uses)\b", r"\1 bicameral.\2", statement)
        return execute(self.where, cast("LiteralString", named))

    def tamper(self, statement: str) -> None:
        """The same after the triggers were taken away."""
        if isinstance(self.where, Path):
            with closing(sqlite3.connect(self.where, isolation_level=None)) as db:
                for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                    db.execute(f"DROP TRIGGER {name}")
                db.execute(statement)
            return
        for table in TABLES:
            execute(self.where, f"ALTER TABLE bicameral.{table} DISABLE TRIGGER USER")
        self.run(statement.replace("x''", "''::bytea").replace("x'00'", r"'\x00'::bytea"))


class Proxy:
    """Stands between a client and PostgreSQL; on demand the next answer is lost, or the next request."""

    def __init__(self, url: str) -> None:
        found = re.search(r"host=([^&]+)", url)
        assert found
        self._server = f"{found[1]}/.s.PGSQL.5432"
        self._folder = tempfile.TemporaryDirectory(prefix="proxy-")
        self.url = url.replace(found[1], self._folder.name)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder.name}/.s.PGSQL.5432")
        self._listener.listen()
        self.lose: Literal["", "answer", "request"] = ""
        self.lost = 0
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._folder.cleanup()

    def cut(self) -> None:
        """Every client loses its connection; the server goes on with what it is at."""
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._ends.append(client)
                threading.Thread(target=self._pump, args=(client, server, "request"), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, "answer"), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, what: str) -> None:
        with suppress(OSError):
            while content := source.recv(1 << 16):
                if self.lose == what:
                    # The server has answered, so it has done what was asked; the client never hears of it.
                    self.lose = ""
                    self.lost += 1
                    break
                target.sendall(content)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
