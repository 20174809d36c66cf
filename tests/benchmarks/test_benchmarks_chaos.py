"""A small storm on both databases: real workers, really killed, and nothing is lost, repeated or left out."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.chaos import __main__ as benchmark


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("what", ["plans", "patterns"])
def test_in_a_small_storm_nothing_is_lost_and_nothing_happens_twice(
    database: str, what: str, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = postgres_url if database == "postgresql" else database
    workers = "2" if database == "postgresql" else "1"
    small = ["--runs", "9", "--workers", workers, "--kills", "2", "--wait", "1", "--limit", "120"]
    code = benchmark.main([*small, "--database", where, *(["--patterns"] if what == "patterns" else [])])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {name: found[name] for name in benchmark.FAULTS} == dict.fromkeys(benchmark.FAULTS, 0)
    assert code == 0
    assert (found["runs"], found["database"]) == (9, database)
    # Where the runs were quicker than the storm, there was nobody left to kill.
    assert 1 <= found["kills"] <= 2


def test_it_says_how_it_is_used() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "benchmarks.chaos", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert all(option in shown for option in ("--runs", "--workers", "--kills", "--patterns", "--sqlite", "--database"))


def test_postgresql_is_the_default_and_sqlite_one_flag() -> None:
    assert benchmark.options(["--runs", "300", "--workers", "3", "--kills", "40"]).database == "postgresql"
    assert benchmark.options(["--runs", "60", "--workers", "1", "--kills", "15", "--sqlite"]).database == "sqlite"
