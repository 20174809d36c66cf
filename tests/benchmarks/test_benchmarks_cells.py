"""`benchmarks.cells` measures what it says: cells that are bound, in columns of the kinds that it names."""

from __future__ import annotations

import json

import pytest

from benchmarks.cells import EXPRESSIONS, main, make_columns
from bicameral.columns import find_column_kind


def test_the_columns_are_of_the_kinds_that_are_measured() -> None:
    kinds = {name: find_column_kind(cells).kind for name, cells in make_columns(50).items()}
    assert kinds == {"amount": "money", "day": "date", "paid": "yes/no", "text": "text", "plain": "number"}


def test_every_expression_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rows", "50"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["rows"] == 50
    assert set(told["expressions"]) == set(EXPRESSIONS)
    assert all(ratio > 0 for ratio in told["expressions"].values())
