"""Run it with `python -m benchmarks.durable`: what durable runs cost, on SQLite and on PostgreSQL.

Progress goes to standard error, and the last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.chaos.database import ends_tidily, opened
from benchmarks.durable.steps import ROUNDS, step_costs
from benchmarks.durable.throughput import runs_per_second
from benchmarks.durable.waiting import waited

WORKERS = (1, 2, 4)


def options(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durable", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of steps, ours and DBOS's ({ROUNDS})")
    parser.add_argument("--runs", type=int, default=200, help="runs for each number of workers (200)")
    parser.add_argument("--waiting", type=int, default=1000, help="runs that wait at once (1000)")
    parser.add_argument(
        "--workers", type=int, nargs="+", default=list(WORKERS), help="how many workers, each in turn (1 2 4)"
    )
    parser.add_argument(
        "--database", default="postgresql", help="an empty database instead of one that is started for this"
    )
    return parser.parse_args(given)


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory(prefix="bicameral-durable-", ignore_cleanup_errors=True) as name,
        opened(given.database, Path(name)) as database,
    ):
        folder = Path(name)
        _tell("steps on SQLite")
        embedded = await step_costs(str(folder / "steps.db"), given.rounds)
        _tell("steps on PostgreSQL")
        served = await step_costs(database.url, given.rounds)
        rates: dict[str, float] = {}
        for workers in given.workers:
            _tell(f"{given.runs} runs with {workers} workers")
            rates[str(workers)] = round(await runs_per_second(database, workers, given.runs, folder), 1)
        _tell(f"{given.waiting} runs that wait")
        found = await waited(database, given.waiting, folder)
    return {
        "step_ratio": round(max(each.look / each.bare for each in (embedded, served)), 3),
        "effect_step_ratio": round(max(each.change / each.bare for each in (embedded, served)), 3),
        **embedded.to_json("sqlite"),
        **served.to_json("postgresql"),
        "runs_per_second": rates,
        "waiting": found.waiting,
        "waiting_finished": found.finished,
        "waiting_run_kb": round(found.memory / 1024, 2),
        "waiting_run_stored_kb": round(found.stored / 1024, 2),
        "waiting_seconds": round(found.seconds, 1),
    }


def _tell(what: str) -> None:
    print(what, file=sys.stderr)


ROWS: tuple[tuple[str, str, str], ...] = (
    ("step_ratio", "a durable step over a bare step of DBOS, the worse of both databases", "≤ 1.3"),
    ("effect_step_ratio", "the same, of a step that changes something: it is recorded before and after", ""),
    ("dbos_step_us_sqlite", "a bare step of DBOS on SQLite, µs", ""),
    ("step_us_sqlite", "a durable step on SQLite, µs", ""),
    ("effect_step_us_sqlite", "a durable step that changes something on SQLite, µs", ""),
    ("dbos_step_us_postgresql", "a bare step of DBOS on PostgreSQL, µs", ""),
    ("step_us_postgresql", "a durable step on PostgreSQL, µs", ""),
    ("effect_step_us_postgresql", "a durable step that changes something on PostgreSQL, µs", ""),
    ("waiting", "runs that waited for an approval at once", ""),
    ("waiting_finished", "of them finished after it", "all"),
    ("waiting_run_kb", "memory of the workers for each that waits, KiB", ""),
    ("waiting_run_stored_kb", "in the database for each that waits, KiB", ""),
)


def main(given: Sequence[str] | None = None) -> int:
    chosen = options(given)
    with ends_tidily():
        found = asyncio.run(measure(chosen))
    for name, what, wanted in ROWS:
        print(f"{name:26} {found[name]:>10}  {wanted:6} {what}")
    for workers, rate in found["runs_per_second"].items():
        print(f"{'runs_per_second':26} {rate:>10}  {'':6} small runs in a second, workers: {workers}")
    print(json.dumps(found))
    return 0 if found["waiting_finished"] == chosen.waiting else 1


if __name__ == "__main__":
    sys.exit(main())
