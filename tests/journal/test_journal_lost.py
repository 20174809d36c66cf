"""A connection to PostgreSQL may be lost at any moment: what was appended is there once, or the caller is told."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from bicameral.errors import JournalError
from bicameral.runs import Journal, open_journal_at
from journal_places import Proxy
from postgres import execute, kill_connections


@pytest.fixture
def journal(postgres_url: str) -> Iterator[Journal]:
    with open_journal_at(postgres_url) as journal:
        journal.append("r1", "run-started", "", {})
        yield journal


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    proxy = Proxy(postgres_url)
    yield proxy
    proxy.close()


def _code(act: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(JournalError) as caught:
        act(*arguments, **options)
    return caught.value.code


def test_a_connection_that_was_ended_is_made_again(journal: Journal, postgres_url: str) -> None:
    for number in range(1, 6):
        assert kill_connections(postgres_url) == 1
        journal.append("r1", "step-finished", str(number), {"n": number}, first=number)
        assert kill_connections(postgres_url) == 1
        assert len(journal.events("r1")) == number + 1
    assert journal.verify() == []


def test_an_end_in_the_middle_of_a_transaction_leaves_nothing_half_done(
    journal: Journal, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bicameral.journal import _postgres
    from bicameral.journal._events import compress_blob

    killed: list[int] = []

    def killing(raw: bytes) -> bytes:
        if len(killed) < 3:
            killed.append(kill_connections(postgres_url))
        return compress_blob(raw)

    monkeypatch.setattr(_postgres, "compress_blob", killing)
    journal.append("r1", "step-finished", "0", {"large": "x" * 10_000}, first=1)
    assert killed == [1, 1, 1]
    assert [event.number for event in journal.events("r1")] == [0, 1]
    assert journal.verify() == []


@pytest.mark.parametrize("lose", ["answer", "request"])
@pytest.mark.parametrize("body", [{"n": 1}, {"large": "x" * 10_000}])
def test_an_append_in_doubt_happens_once(proxy: Proxy, postgres_url: str, lose: Any, body: dict[str, Any]) -> None:
    with open_journal_at(proxy.url) as journal:
        journal.append("r1", "run-started", "", {})
        for number in range(1, 6):
            proxy.lose = lose
            journal.append("r1", "step-finished", str(number), body, first=number)
        assert proxy.lost == 5
        assert [event.step for event in journal.events("r1")] == ["", "1", "2", "3", "4", "5"]
        assert journal.verify() == []


def test_an_append_in_doubt_was_somebody_elses_turn(proxy: Proxy, postgres_url: str) -> None:
    with open_journal_at(proxy.url) as journal, open_journal_at(postgres_url) as other:
        journal.append("r1", "run-started", "", {})
        proxy.lose = "request"
        entered = other.append("r1", "run-resumed", "", {}, first=1)
        assert _code(journal.append, "r1", "step-started", "0", {}, first=1) == "journal.fenced"
        assert journal.events("r1")[1] == entered


def test_an_append_waits_for_a_first_try_that_is_still_under_way(
    journal: Journal, proxy: Proxy, postgres_url: str
) -> None:
    """The connection is lost while the server still works on the insert, which then comes through after all."""
    import psycopg

    with open_journal_at(proxy.url) as slow, psycopg.connect(postgres_url) as holder:
        slow.append("r2", "run-started", "", {})
        holder.execute("LOCK TABLE bicameral.events IN SHARE MODE")

        def lose_and_let_go() -> None:
            time.sleep(0.3)
            proxy.cut()
            time.sleep(0.3)
            holder.rollback()

        thread = threading.Thread(target=lose_and_let_go)
        thread.start()
        slow.append("r2", "step-started", "0", {}, first=1)
        thread.join()
        assert [event.number for event in slow.events("r2")] == [0, 1]
        slow.append("r2", "step-finished", "0", {}, first=2)
        assert slow.verify() == []


def test_reading_and_erasing_survive_it_too(proxy: Proxy) -> None:
    with open_journal_at(proxy.url) as journal:
        journal.append("r1", "run-started", "", {"large": "x" * 10_000})
        proxy.lose = "answer"
        assert len(journal.events("r1")) == 1
        proxy.lose = "answer"
        assert len(list(journal.runs())) == 1
        proxy.lose = "answer"
        journal.erase("r1")
        assert journal.verify() == []
        assert [event.body for event in journal.events("r1", erased=True)] == [{}, {"why": "asked for"}]


def test_a_database_that_stays_away_is_told_in_time(
    proxy: Proxy, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bicameral.postgres.RECONNECT_SECONDS", 0.5)
    with open_journal_at(proxy.url) as journal:
        journal.append("r1", "run-started", "", {})
        proxy.close()
        proxy.cut()
        started = time.monotonic()
        assert _code(journal.append, "r1", "step-started", "0", {}, first=1) == "journal.lost"
        assert time.monotonic() - started < 8  # without this patience it is 10
    with open_journal_at(postgres_url) as journal:
        assert len(journal.events("r1")) == 1


def test_a_database_that_does_not_let_us_in_is_told_at_once(postgres_url: str) -> None:
    elsewhere = postgres_url.replace("/test_", "/nowhere_").replace("postgres:@", "postgres:hidden-password@")
    started = time.monotonic()
    with pytest.raises(JournalError) as caught:
        open_journal_at(elsewhere)
    assert caught.value.code == "journal.refused"
    assert "hidden-password" not in str(caught.value)
    assert time.monotonic() - started < 8  # one that is only away is tried for 10


def test_a_closed_journal_says_so(journal: Journal) -> None:
    journal.close()
    assert _code(journal.append, "r1", "step-started", "0", {}) == "journal.failed"


def test_another_version_is_refused(postgres_url: str) -> None:
    open_journal_at(postgres_url).close()
    execute(postgres_url, "UPDATE bicameral.journal SET format = 99")
    assert _code(open_journal_at, postgres_url) == "journal.unknown-version"


def test_a_user_who_may_not_write_is_told(postgres_url: str) -> None:
    open_journal_at(postgres_url).close()
    execute(postgres_url, "DROP ROLE IF EXISTS reader")
    execute(postgres_url, "CREATE ROLE reader LOGIN")
    execute(postgres_url, "GRANT USAGE ON SCHEMA bicameral TO reader")
    execute(postgres_url, "GRANT SELECT ON ALL TABLES IN SCHEMA bicameral TO reader")
    with open_journal_at(postgres_url.replace("postgres:@", "reader:@")) as journal:
        assert _code(journal.append, "r1", "run-started", "", {}) == "journal.read-only"


def test_the_package_is_only_asked_for_where_it_is_needed(postgres_url: str) -> None:
    code = (
        "import sys\nsys.modules['psycopg'] = None\nfrom bicameral.runs import open_journal_at\n"
        "from bicameral.errors import JournalError\n"
        "try:\n    open_journal_at('postgresql://h/d')\nexcept JournalError as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
    assert 'pip install "bicameral[durable]"' in said
    assert "[journal.missing-package]" in said
    code = "import sys, bicameral.runs\nprint('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).stdout == b"False\n"
