"""The journal in PostgreSQL: one database for many machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, LiteralString, cast

from bicameral.errors import JournalError

from ._blobs import squeezed
from ._chain import Row
from ._postgres_link import Link
from ._postgres_schema import LOCK
from ._store import Taken

if TYPE_CHECKING:
    from psycopg import Connection

_VALUES = "(%s, %s, %s, %s, %s, %s, %s, %s, %s)"


class PostgresStore:
    """Rows and blobs in the schema `bicameral` of a database.

    An append whose connection is lost before the answer came may have happened or not. It is looked for by its seal,
    which is unique to it, before it is done again.
    """

    def __init__(self, url: str) -> None:
        self._link = Link(url)
        self.name = self._link.name

    def close(self) -> None:
        self._link.close()

    def append(self, rows: Sequence[Row], blobs: Mapping[str, bytes], *, sync: bool) -> None:
        # Every commit of this connection waits for the disk (see `Link`), so there is nothing more to do.
        from psycopg.errors import IntegrityError

        tried = False

        def act(db: Connection[Any]) -> None:
            nonlocal tried
            if tried and _present(db, rows[-1]):
                return
            tried = True
            try:
                _insert(db, rows, blobs)
            except IntegrityError:
                # The first try may have come through after all, while this one was under way.
                if not _present(db, rows[-1]):
                    raise Taken from None

        self._link.through(act)

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        text = _placed(query)
        return self._link.through(lambda db: db.execute(text, values, prepare=True).fetchall())

    def blob(self, hash_: str) -> bytes | None:
        found = self.select("SELECT content FROM blobs WHERE hash = ?", (hash_,))
        return bytes(found[0][0]) if found else None

    def erase(self, mark: Row) -> tuple[int, int]:
        from psycopg.errors import IntegrityError

        tried = False

        def act(db: Connection[Any]) -> tuple[int, int]:
            nonlocal tried
            if tried and _present(db, mark):
                return 0, 0
            tried = True
            try:
                return _erase(db, mark)
            except IntegrityError:
                raise Taken from None

        return self._link.through(act)

    def scrub(self) -> bool:
        """Old versions of rows are let go of, so that their room is used again."""

        def act(db: Connection[Any]) -> None:
            for table in ("events", "blobs", "uses"):
                db.execute(f"VACUUM {table}")

        try:
            self._link.through(act)
        except JournalError:
            return False
        return True


def _insert(db: Connection[Any], rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
    text, values = _insertion(len(rows)), [value for row in rows for value in row]
    if not blobs:
        db.execute(text, values, prepare=True)
        return
    run, hashes = rows[0].run, list(blobs)
    with db.transaction():
        # Whoever erases waits, and so drops no blob that is about to be used.
        db.execute("SELECT pg_advisory_xact_lock_shared(%s)", (LOCK,), prepare=True)
        found = db.execute("SELECT hash FROM blobs WHERE hash = ANY(%s)", (hashes,), prepare=True)
        missing = blobs.keys() - {hash_ for (hash_,) in found}
        with db.pipeline():
            for hash_ in sorted(missing):
                values_ = (hash_, squeezed(blobs[hash_]))
                db.execute("INSERT INTO blobs VALUES (%s, %s) ON CONFLICT DO NOTHING", values_, prepare=True)
            db.execute(
                "INSERT INTO uses SELECT %s, unnest(%s::text[]) ON CONFLICT DO NOTHING", (run, hashes), prepare=True
            )
            db.execute(text, values, prepare=True)


def _erase(db: Connection[Any], mark: Row) -> tuple[int, int]:
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        db.execute(_insertion(1), mark)
        events = db.execute(
            "UPDATE events SET body = '', salt = '' "
            "WHERE run = %s AND number < %s AND body <> '' AND kind <> 'run-erased'",
            (mark.run, mark.number),
        ).rowcount
        used = [row[0] for row in db.execute("DELETE FROM uses WHERE run = %s RETURNING hash", (mark.run,))]
        blobs = db.execute(
            "DELETE FROM blobs WHERE hash = ANY(%s) AND NOT EXISTS (SELECT FROM uses WHERE uses.hash = blobs.hash)",
            (used,),
        ).rowcount
    return events, blobs


def _present(db: Connection[Any], row: Row) -> bool:
    """Whether this very event is there: its seal is made with a random salt, and is nobody else's."""
    found = db.execute("SELECT seal FROM events WHERE run = %s AND number = %s", (row.run, row.number)).fetchone()
    return found is not None and found[0] == row.seal


@lru_cache(maxsize=64)
def _insertion(rows: int) -> LiteralString:
    return cast("LiteralString", f"INSERT INTO events VALUES {', '.join([_VALUES] * rows)}")  # noqa: S608


@lru_cache(maxsize=64)
def _placed(query: str) -> LiteralString:
    return cast("LiteralString", query.replace("?", "%s"))
