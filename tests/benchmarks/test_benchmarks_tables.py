"""`benchmarks.tables` measures both plans, and compares both ways."""

from __future__ import annotations

import json

import pytest

from benchmarks import tables

pytest.importorskip("polars")


def test_every_operation_is_measured_and_both_ways_agree(capsys: pytest.CaptureFixture[str]) -> None:
    tables.main(["--rows", "12000", "--small", "9000", "--rounds", "1"])
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["same"]
    assert set(told["ratios"]) == {"read_csv", "filter_rows", "group_rows", "join_rows", "sort_rows"}
    assert told["ratio"] > 0
    assert told["peak_mb"] > 0
