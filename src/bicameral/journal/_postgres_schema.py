"""The journal's tables in PostgreSQL, in a schema of their own."""

from __future__ import annotations

from typing import LiteralString

SCHEMA = "bicameral"
FORMAT = 2
"""The version of the tables; the same number as that of the SQLite file with the same content."""
LOCK = 0x62696361
"""What those who make the tables, and those who erase and those who store values, wait for one another at."""

# Texts are compared by their bytes, as SQLite does: the beginning of an id finds it whatever the language.
TABLES: LiteralString = """
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
