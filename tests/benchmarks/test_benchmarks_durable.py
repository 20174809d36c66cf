"""The benchmark of durable runs, tiny: every figure is there, and every run that waited has finished."""

from __future__ import annotations

import json

import pytest

from benchmarks.durable import __main__ as benchmark


@pytest.mark.slow
def test_every_figure_is_measured(postgres_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    # So many runs that some are left when the worker's first heartbeat is seen: the rate is taken from there on.
    tiny = ["--rounds", "1", "--runs", "120", "--waiting", "4", "--workers", "1"]
    code = benchmark.main([*tiny, "--database", postgres_url])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert code == 0
    assert (found["waiting"], found["waiting_finished"]) == (4, 4)
    assert found["runs_per_second"]["1"] > 0
    assert found["waiting_run_stored_kb"] > 0
    for name in ("step_us_sqlite", "step_us_postgresql", "dbos_step_us_sqlite", "dbos_step_us_postgresql"):
        assert found[name] > 0
