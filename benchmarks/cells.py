"""How long tables take: finding the kinds of columns, and computing with cells instead of plain numbers.

Run it with `python -m benchmarks.cells`. Times are those of the processor, in one process, the best of a few; a row of
`expressions` compares an expression over cells with the same one over plain numbers. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from bicameral import types as t
from bicameral.columns import find_column_kind, parse_amount, parse_date
from bicameral.plans import bind_cells, compile_expr, parse
from bicameral.plans.evaluate._bounds import RUN_WORK_KEY, RunWork
from bicameral.toolboxes._table_files import value_shape
from bicameral.tools import Registry

EXPRESSIONS = {
    "amount > number": ("[r for r in rows if r['amount'] > 100]", "[r for r in rows if r['plain'] > 100]"),
    "amount > number of the row": (
        "[r for r in rows if r['amount'] > r['plain']]",
        "[r for r in rows if r['plain'] >= r['plain']]",
    ),
    "paid == False": ("[r for r in rows if r['paid'] == False]", "[r for r in rows if r['plain'] > 500]"),
    "day > date": (
        "[r for r in rows if r['day'] > date('2020-01-01')]",
        "[r for r in rows if date('2021-01-01') > date('2020-01-01')]",
    ),
    "amount * 2": ("[r['amount'] * 2 for r in rows]", "[r['plain'] * 2 for r in rows]"),
    "sum of amounts": ("sum([r['amount'] for r in rows])", "sum([r['plain'] for r in rows])"),
    "sorted by amount": ("sorted(rows, key=lambda r: r['amount'])", "sorted(rows, key=lambda r: r['plain'])"),
}
"""What is computed with cells, and the same with plain numbers that keeps about as many rows."""


def make_columns(count: int, seed: int = 1) -> dict[str, list[Any]]:
    """Columns of nearly distinct cells in the notations of people."""
    draw = random.Random(seed)
    return {
        "amount": [
            f"{draw.randint(1, 999)}.{draw.randint(0, 999):03},{draw.randint(0, 99):02} €" for _ in range(count)
        ],
        "day": [f"{draw.randint(1, 28)}.{draw.randint(1, 12)}.{draw.randint(1900, 2025)}" for _ in range(count)],
        "paid": [draw.choice(("ja", "nein")) for _ in range(count)],
        "text": [f"item {draw.randint(0, 10**6)}" for _ in range(count)],
        "plain": [draw.randint(1, 999) for _ in range(count)],
    }


def measure(work: Callable[[], object], times: int = 3) -> float:
    """The seconds of processor time that something takes, the best of a few."""
    found: list[float] = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def measure_expressions(columns: dict[str, list[Any]]) -> dict[str, float]:
    """How many times as long each expression takes over cells as over plain numbers."""
    names = list(columns)
    rows = [dict(zip(names, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    scope: dict[str, t.Type] = {"rows": value_shape(rows, trusted=True)}
    registry = Registry([])

    def seconds(source: str) -> float:
        bound: Any = bind_cells(parse(f"rows = rows\nanswer({source})").plan, registry, scope)
        code = compile_expr(bound.steps[-1].value)
        work = RunWork(10**9, lambda: RuntimeError("too much work"))
        return measure(lambda: code({"rows": rows, RUN_WORK_KEY: work}), 5)

    return {name: round(seconds(cells) / seconds(plain), 2) for name, (cells, plain) in EXPRESSIONS.items()}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cells", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=100_000, help="how many rows have their kinds found")
    given = parser.parse_args(words)
    columns = make_columns(given.rows)
    kinds = {name: round(measure(lambda c=cells: find_column_kind(c)), 3) for name, cells in columns.items()}
    amounts, days = columns["amount"], columns["day"]
    # What it would take to read each cell once in the right notation, known beforehand.
    by_cell = {
        "amount": round(measure(lambda: [parse_amount(cell, ",") for cell in amounts]), 3),
        "day": round(measure(lambda: [parse_date(cell) for cell in days]), 3),
    }
    ratios = measure_expressions(make_columns(min(given.rows, 5_000)))
    for name, seconds in kinds.items():
        print(f"{name:30} {seconds:8.3f} s for the kind of {given.rows:,} cells")
    for name, ratio in ratios.items():
        print(f"{name:30} {ratio:8.2f} times the plain expression")
    print(json.dumps({"rows": given.rows, "kind_seconds": kinds, "cell_seconds": by_cell, "expressions": ratios}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
