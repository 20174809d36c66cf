"""The journal in PostgreSQL: schema and store.

If the connection is lost before the answer to an append arrives, it is unknown whether the append was committed. Before
it is repeated, it is searched for by its seal, which is unique.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar, cast

from bicameral.errors import JournalError
from bicameral.journal._events import EventRow, NumberTaken, compress_blob
from bicameral.postgres import PostgresConnection, PostgresFault, VersionedTables

if TYPE_CHECKING:
    from psycopg import Connection


SCHEMA = "bicameral"
TABLES_FORMAT = 2
"""The version of the tables; the same as that of a SQLite file with the same content."""
ADVISORY_LOCK = 0x62696361
"""Advisory lock for creating the tables, and between erasing (exclusive) and storing blobs (shared)."""

# Collation "C" compares bytes, as SQLite does: the range query for the beginning of an id works in every locale.
CREATE_TABLES: LiteralString = """
CREATE TABLE events (
    run TEXT COLLATE "C" NOT NULL, number INTEGER NOT NULL, at DOUBLE PRECISION NOT NULL,
    kind TEXT COLLATE "C" NOT NULL, step TEXT NOT NULL, body TEXT NOT NULL, salt BYTEA NOT NULL,
    digest BYTEA NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (run, number)
);
CREATE INDEX newest ON events (at, run) WHERE kind = 'run-started';
CREATE UNIQUE INDEX starts ON events (run) WHERE kind = 'run-started';
CREATE INDEX erased ON events (run, number) WHERE kind = 'run-erased';
CREATE TABLE blobs (hash TEXT COLLATE "C" PRIMARY KEY, content BYTEA NOT NULL);
ALTER TABLE blobs ALTER content SET STORAGE EXTERNAL;
CREATE TABLE uses (run TEXT COLLATE "C" NOT NULL, hash TEXT COLLATE "C" NOT NULL, PRIMARY KEY (run, hash));
CREATE INDEX users ON uses (hash);
CREATE TABLE journal (format INTEGER NOT NULL);

CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'append-only: % of %', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION events_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.body = '' AND NEW.salt = '' AND OLD.kind <> 'run-erased'
        AND (NEW.run, NEW.number, NEW.at, NEW.kind, NEW.step, NEW.digest, NEW.seal)
            = (OLD.run, OLD.number, OLD.at, OLD.kind, OLD.step, OLD.digest, OLD.seal)
        AND EXISTS (SELECT FROM bicameral.events
                    WHERE run = OLD.run AND number > OLD.number AND kind = 'run-erased')
    THEN RETURN NEW; END IF;
    RAISE EXCEPTION 'append-only: % of %', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION blobs_last() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM bicameral.uses WHERE hash = OLD.hash) THEN RETURN OLD; END IF;
    RAISE EXCEPTION 'append-only: % of %', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION uses_last() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM bicameral.events WHERE run = OLD.run AND kind = 'run-erased') THEN RETURN OLD; END IF;
    RAISE EXCEPTION 'append-only: % of %', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER events_stay BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION events_stay();
CREATE TRIGGER events_last BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER blobs_stay BEFORE UPDATE ON blobs FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER blobs_last BEFORE DELETE ON blobs FOR EACH ROW EXECUTE FUNCTION blobs_last();
CREATE TRIGGER uses_stay BEFORE UPDATE ON uses FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER uses_last BEFORE DELETE ON uses FOR EACH ROW EXECUTE FUNCTION uses_last();
CREATE TRIGGER events_whole BEFORE TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER blobs_whole BEFORE TRUNCATE ON blobs FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER uses_whole BEFORE TRUNCATE ON uses FOR EACH STATEMENT EXECUTE FUNCTION append_only();
INSERT INTO journal VALUES (2);
"""


Result = TypeVar("Result")


_CODES: dict[PostgresFault, str] = {
    "lost": "journal.lost",
    "disk-full": "journal.disk-full",
    "read-only": "journal.read-only",
    "damaged": "journal.damaged",
    "refused": "journal.refused",
    "failed": "journal.failed",
    "missing-package": "journal.missing-package",
}


def _ensure_tables(db: Connection[Any]) -> None:
    tables = VersionedTables(SCHEMA, "journal", TABLES_FORMAT, CREATE_TABLES, ADVISORY_LOCK)
    if (version := tables.ensure(db)) != TABLES_FORMAT:
        raise JournalError(
            "journal.unknown-version",
            f"the database was written by another version (journal {version}, this one reads {TABLES_FORMAT})",
            fix="Use another database, or the version that wrote it.",
        )


_VALUES = "(%s, %s, %s, %s, %s, %s, %s, %s, %s)"


class PostgresStore:
    """Rows and blobs in the schema `bicameral` of the database at a `postgresql://` address."""

    def __init__(self, url: str) -> None:
        self._connection = PostgresConnection(url, JournalError, _CODES, SCHEMA, _ensure_tables)
        self.name = self._connection.name

    def close(self) -> None:
        self._connection.close()

    def append(self, rows: Sequence[EventRow], blobs: Mapping[str, bytes], *, sync: bool) -> None:
        # Every commit of this connection waits for the disk (see `PostgresConnection`), whatever `sync` says.
        self._run_once(rows[-1], lambda db: _insert_rows(db, rows, blobs), None)

    def _run_once(self, row: EventRow, act: Callable[[Connection[Any]], Result], done: Result) -> Result:
        """Call `act`, which stores `row`, such that a lost connection cannot make it happen twice.

        `done` is returned if an earlier attempt turns out to be committed.
        """
        return self._connection.run_once(act, lambda db: _is_stored(db, row), done, NumberTaken)

    def select(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        text = _with_placeholders(query)
        return self._connection.run(lambda db: db.execute(text, values, prepare=True).fetchall())

    def blob(self, hash_: str) -> bytes | None:
        rows = self.select("SELECT content FROM blobs WHERE hash = ?", (hash_,))
        return bytes(rows[0][0]) if rows else None

    def erase(self, mark: EventRow) -> tuple[int, int]:
        return self._run_once(mark, lambda db: _erase_run(db, mark), (0, 0))

    def scrub(self) -> bool:
        """Vacuum the tables, so that old row versions are removed and their space is reused."""

        def act(db: Connection[Any]) -> None:
            for table in ("events", "blobs", "uses"):
                db.execute(f"VACUUM {table}")

        try:
            self._connection.run(act)
        except JournalError:
            return False
        return True


def _insert_rows(db: Connection[Any], rows: Sequence[EventRow], blobs: Mapping[str, bytes]) -> None:
    text, values = _insert_statement(len(rows)), [value for row in rows for value in row]
    if not blobs:
        db.execute(text, values, prepare=True)
        return
    run, hashes = rows[0].run, list(blobs)
    with db.transaction():
        # An erasure waits for this lock, so it cannot delete a blob that is about to be used.
        db.execute("SELECT pg_advisory_xact_lock_shared(%s)", (ADVISORY_LOCK,), prepare=True)
        stored = db.execute("SELECT hash FROM blobs WHERE hash = ANY(%s)", (hashes,), prepare=True)
        missing = blobs.keys() - {hash_ for (hash_,) in stored}
        with db.pipeline():
            for hash_ in sorted(missing):
                values_ = (hash_, compress_blob(blobs[hash_]))
                db.execute("INSERT INTO blobs VALUES (%s, %s) ON CONFLICT DO NOTHING", values_, prepare=True)
            db.execute(
                "INSERT INTO uses SELECT %s, unnest(%s::text[]) ON CONFLICT DO NOTHING", (run, hashes), prepare=True
            )
            db.execute(text, values, prepare=True)


def _erase_run(db: Connection[Any], mark: EventRow) -> tuple[int, int]:
    """Empty the events of a run and delete its unused blobs, in one transaction."""
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        db.execute(_insert_statement(1), mark)
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


def _is_stored(db: Connection[Any], row: EventRow) -> bool:
    """Whether this very event is stored: its seal depends on a random salt, so no other event has it."""
    stored = db.execute("SELECT seal FROM events WHERE run = %s AND number = %s", (row.run, row.number)).fetchone()
    return stored is not None and stored[0] == row.seal


@lru_cache(maxsize=64)
def _insert_statement(rows: int) -> LiteralString:
    return cast("LiteralString", f"INSERT INTO events VALUES {', '.join([_VALUES] * rows)}")  # noqa: S608


@lru_cache(maxsize=64)
def _with_placeholders(query: str) -> LiteralString:
    return cast("LiteralString", query.replace("?", "%s"))
