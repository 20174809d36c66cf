"""One way to connect to PostgreSQL: what is worth a retry, how often, and addresses without passwords."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import psycopg
import pytest
import sqlalchemy as sa

from bicameral.durable._database import Database
from bicameral.errors import DurableError
from bicameral.postgres import error_text, is_permanent, is_transient, masked_address, retry
from bicameral.runs import open_journal_at
from bicameral.secrets import mask
from postgres import execute, kill_connections


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    database = Database(postgres_url)
    yield database
    database.close()


# Addresses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "password", ["short", "a-longer-password", "p%40ss%3Aword-with-signs", "a#password@with", "a#password?with"]
)
@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:{}@h:1/d?connect_timeout=3", "postgresql://me@h:1/d?connect_timeout=3"),
        ("postgresql://me:{}@/d?host=/run/pg", "postgresql://me@/d?host=/run/pg"),
        ("postgresql+psycopg://me:{}@h/d", "postgresql+psycopg://me@h/d"),
    ],
)
def test_the_password_before_the_host_is_not_shown(address: str, shown: str, password: str) -> None:
    assert masked_address(address.format(password)) == shown
    _expect_masked(password)


@pytest.mark.parametrize("password", ["short", "another-password", "p%40ss%3Aword+with-signs", "a#password/with?all@"])
@pytest.mark.parametrize("option", ["password", "sslpassword", "pass%77ord", "oauth_client_secret"])
def test_a_password_in_the_query_is_not_shown(option: str, password: str) -> None:
    assert masked_address(f"postgresql://me@h/d?{option}={password}&a=b") == "postgresql://me@h/d?a=b"
    assert masked_address(f"postgresql:///d?{option}={password}") == "postgresql:///d"
    _expect_masked(password)


def _expect_masked(password: str) -> None:
    if len(password) >= 8:
        for form in (password, unquote(password)):
            assert form not in mask(f"the server says: {form} is wrong")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://h/d",
        "postgresql://me@h/d?a=b&c=d%20e",
        "postgresql://me@h:5432/d",
        "runs.db",
        "sqlite:///a:b@c.db",
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(address: str) -> None:
    assert masked_address(address) == address


def test_a_password_in_the_query_is_a_secret_as_soon_as_a_database_is_named() -> None:
    with pytest.raises(DurableError) as caught:
        Database("postgresql://ann@127.0.0.1:1/none?password=never-to-be-shown").transact(lambda db: db, patience=0.1)
    assert "never-to-be-shown" not in str(caught.value)
    assert "never-to-be-shown" not in mask("never-to-be-shown")


# Errors --------------------------------------------------------------------------------------------------------------


class _StateError(Exception):
    def __init__(self, sqlstate: str | None, message: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


@pytest.mark.parametrize("state", ["08006", "57P01", "57P03", "25P03", "53300", "40001", "40P01", "55P03"])
def test_what_passes_is_worth_a_retry(state: str) -> None:
    assert is_transient(_StateError(state))
    assert not is_permanent(_StateError(state))


@pytest.mark.parametrize("state", ["57014", "23505", "42501", "53100", None])
def test_what_stays_is_not(state: str | None) -> None:
    assert not is_transient(_StateError(state))


@pytest.mark.parametrize(
    "error",
    [
        _StateError("28P01"),
        _StateError("3D000"),
        _StateError(None, 'connection failed: FATAL:  database "x" does not exist'),
        _StateError(None, 'FATAL:  password authentication failed for user "ann"'),
    ],
)
def test_a_refusal_is_no_reason_to_wait(error: Exception) -> None:
    assert is_permanent(error)


def test_the_values_of_a_row_are_not_in_the_text_of_an_error(postgres_url: str) -> None:
    execute(postgres_url, "CREATE TABLE people (name TEXT PRIMARY KEY)")
    with psycopg.connect(postgres_url) as db, pytest.raises(psycopg.Error) as caught:
        db.execute("INSERT INTO people VALUES ('Ann Private'), ('Ann Private')")
    assert "Ann Private" in str(caught.value)
    assert error_text(caught.value) == 'duplicate key value violates unique constraint "people_pkey"'


# Retries -------------------------------------------------------------------------------------------------------------


def test_it_is_tried_again_until_it_works() -> None:
    tries: list[str] = []

    def act() -> str:
        tries.append("act")
        if tries.count("act") < 4:
            raise OSError
        return "done"

    assert retry(act, seconds=60, is_transient=lambda _: True, on_retry=lambda: tries.append("again")) == "done"
    assert tries == ["act", "again"] * 3 + ["act"]


@pytest.mark.parametrize(("seconds", "transient"), [(60.0, False), (0.3, True)])
def test_an_error_that_stays_is_raised_at_once_or_when_the_time_is_up(seconds: float, transient: bool) -> None:
    tries: list[float] = []

    def act() -> None:
        tries.append(time.monotonic())
        raise OSError(f"number {len(tries)}")

    started = time.monotonic()
    with pytest.raises(OSError, match=f"number {'' if transient else 1}"):
        retry(act, seconds=seconds, is_transient=lambda _: transient)
    assert (len(tries) > 1) == transient
    assert time.monotonic() - started < 5


def test_a_lost_connection_is_made_again(database: Database, postgres_url: str) -> None:
    assert database.transact(lambda db: db.scalar(sa.text("SELECT 1"))) == 1
    lost: list[int] = []

    def work(db: sa.Connection) -> Any:
        db.scalar(sa.text("SELECT 1"))
        if not lost:
            lost.append(kill_connections(postgres_url))
        return db.scalar(sa.text("SELECT 2"))

    assert database.transact(work) == 2
    assert lost[0] >= 1


def test_a_statement_that_ran_into_its_time_limit_is_not_repeated(database: Database) -> None:
    tries: list[int] = []

    def work(db: sa.Connection) -> None:
        tries.append(1)
        db.execute(sa.text("SET LOCAL statement_timeout = 50"))
        db.execute(sa.text("SELECT pg_sleep(5)"))

    with pytest.raises(DurableError) as caught:
        database.transact(work)
    assert (caught.value.code, len(tries)) == ("durable.no-database", 1)


def test_both_wait_for_a_lock_that_another_session_holds(postgres_url: str) -> None:
    """A lock time-out of the role's own (55P03) passes when the other session is done."""
    with open_journal_at(postgres_url) as journal:
        journal.append("r1", "run-started", "", {})
    patient = f"{postgres_url}&options=-c%20lock_timeout%3D50"
    database = Database(patient)
    with open_journal_at(patient) as journal, psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE bicameral.events IN ACCESS EXCLUSIVE MODE")
        let_go = threading.Timer(0.5, holder.rollback)
        let_go.start()
        journal.append("r1", "step-started", "0", {}, first=1)
        let_go.join()
        holder.execute("LOCK TABLE bicameral.events IN ACCESS EXCLUSIVE MODE")
        let_go = threading.Timer(0.5, holder.rollback)
        let_go.start()
        assert database.transact(lambda db: db.scalar(sa.text("SELECT count(*) FROM bicameral.events"))) == 2
        let_go.join()
    database.close()


def test_a_database_that_does_not_exist_is_reported_at_once(postgres_url: str) -> None:
    database = Database(postgres_url.replace("/test_", "/nowhere_"))
    started = time.monotonic()
    with pytest.raises(DurableError, match="does not exist"):
        database.transact(lambda db: db)
    with pytest.raises(DurableError, match="does not exist"):
        database.create_tables()
    database.close()
    assert time.monotonic() - started < 8  # one that is only away is tried for 30
