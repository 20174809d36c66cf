"""Run it with `python -m benchmarks.chaos --runs 300 --workers 3 --kills 40`; `--sqlite` for the embedded database.

With `--patterns` the runs are those of patterns, alone and put together, instead of plans.

Progress goes to standard error, the last line of standard output is one JSON object, and the exit code is 1 if anything
was lost, done twice, left out or recorded wrongly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.chaos.database import Database, ends_tidily, opened
from benchmarks.chaos.expected import expected
from benchmarks.chaos.judge import Ended, judge, p95, takeovers
from benchmarks.chaos.patterns import pattern_errands
from benchmarks.chaos.plans import errands
from benchmarks.chaos.storm import Storm, started
from benchmarks.chaos.tools import registry_over
from benchmarks.chaos.world import SLOWEST, PaperWorld, ServedWorld
from bicameral.durable import Runs
from bicameral.runs import Event

FAULTS = ("lost", "effects_duplicated", "effects_missing", "answers_wrong", "labels_wrong", "journal_breaks")


def options(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=300, help="how many runs (300)")
    parser.add_argument("--workers", type=int, default=3, help="how many worker processes (3)")
    parser.add_argument("--kills", type=int, default=40, help="kills of workers and cuts of connections together (40)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--database",
        default="postgresql",
        help="postgresql (one that is started for this; the default), sqlite, or the address of an empty database",
    )
    where.add_argument("--sqlite", dest="database", action="store_const", const="sqlite", help="the same as sqlite")
    parser.add_argument("--patterns", action="store_true", help="runs of patterns instead of plans")
    parser.add_argument("--seed", type=int, default=0, help="of the plans and of the storm (0)")
    parser.add_argument("--limit", type=float, default=900, help="seconds after which a run counts as lost (900)")
    parser.add_argument("--wait", type=float, default=6, help="seconds a question waits at most for its answer (6)")
    parser.add_argument("--keep", type=Path, help="a folder for the logs and the database file, which stays")
    return parser.parse_args(given)


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """The whole storm, in a folder that goes with it."""
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
        return await _in_folder(given, given.keep)
    with tempfile.TemporaryDirectory(prefix="bicameral-storm-", ignore_cleanup_errors=True) as folder:
        return await _in_folder(given, Path(folder))


async def _in_folder(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    with (folder / "harness.log").open("w") as log, opened(given.database, folder) as database:
        server = started("world", "world", str(SLOWEST), log=log, answers=True)
        try:
            assert server.popen.stdout is not None
            world = server.popen.stdout.readline().strip()
            clerk = started("clerk", "clerk", database.url, world, str(given.wait), log=log)
            try:
                return await _weathered(given, folder, database, world)
            finally:
                clerk.end()
        finally:
            server.end()


async def _weathered(given: argparse.Namespace, folder: Path, database: Database, world: str) -> dict[str, Any]:
    registry = registry_over(PaperWorld())
    todo = pattern_errands(given.runs, given.seed) if given.patterns else errands(given.runs, registry, given.seed)
    wanted = await expected(todo)
    print(f"{len(todo)} runs, {sum(len(each.effects) for each in wanted.values())} effects", file=sys.stderr)
    runs = await Runs.open(database.url)
    begun = time.monotonic()
    storm = Storm(runs, database, world, folder, given.workers, given.kills, random.Random(given.seed))
    try:
        await storm.rage(todo, given.limit)
        seconds = time.monotonic() - begun
        ended = [await _ended(runs, run, ticket) for run, ticket in storm.tickets.items()]
        breaks = await asyncio.to_thread(runs.run_journal.verify, None)
    finally:
        await runs.aclose()
    ledger = ServedWorld(world)
    verdict = judge(ended, wanted, ledger.entries())
    ledger.close()
    for fault in [*verdict.told(), *(f"journal: {each}" for each in breaks)]:
        print(fault, file=sys.stderr)
    records = {each.run: each.events for each in ended}
    waits = takeovers(storm.losses, ended, storm.deserted)
    slowest = p95(waits)
    kept = [_story(loss, wait, records[loss[0]]) for loss, wait in zip(storm.losses, waits, strict=True)]
    (folder / "storm.json").write_text(json.dumps({"kills": storm.told, "takeovers": kept}, indent=1))
    return {
        "runs": len(ended),
        "workers": given.workers,
        "kills": storm.done,
        "connection_kills": storm.connection_kills,
        "connections_cut": storm.connections,
        "lost": len(verdict.lost) + given.runs - len(ended),
        "effects_duplicated": len(verdict.duplicated),
        "effects_missing": len(verdict.missing),
        "answers_wrong": len(verdict.answers),
        "labels_wrong": len(verdict.labels),
        "journal_breaks": len(breaks),
        "takeover_p95_s": None if slowest is None else round(slowest, 2),
        "takeover_worst_s": round(max(takeovers(storm.losses, ended)), 2) if waits else None,
        "takeovers": len(waits),
        "effects": sum(len(each.effects) for each in wanted.values()),
        "retried": verdict.retried,
        "in_doubt": verdict.in_doubt,
        "seconds": round(seconds, 1),
        "database": database.kind,
    }


def _story(loss: tuple[str, float], wait: float, events: Sequence[Event]) -> dict[str, Any]:
    """What a run did around the loss of its worker, for whoever looks into it."""
    run, at = loss
    near = [f"{event.at - at:.2f} {event.kind} {event.step}" for event in events if -5 < event.at - at < 30]
    return {"run": run, "at": at, "seconds": round(wait, 2), "events": near}


async def _ended(runs: Runs, run: str, ticket: str) -> Ended:
    view = await runs.get(run)
    code = str((view.error or {}).get("code", ""))
    events, updated = await runs.journal(run), view.updated.timestamp()
    return Ended(ticket, run, view.state, code, view.why or "", view.answer, events, updated)


ROWS: tuple[tuple[str, str, str], ...] = (
    ("runs", "runs", ""),
    ("kills", "kills of workers and cuts of connections", ""),
    ("connection_kills", "of them cuts of connections", ""),
    ("lost", "runs that did not come to their end", "0"),
    ("effects_duplicated", "effects that happened twice, or were asked for again after their end", "0"),
    ("effects_missing", "effects of runs that did not happen", "0"),
    ("answers_wrong", "answers that the inline engine does not give", "0"),
    ("labels_wrong", "places whose labels the inline engine does not give", "0"),
    ("journal_breaks", "breaks in the records", "0"),
    ("takeover_p95_s", "from a kill until somebody goes on with its runs, s, 95 of 100", "≤ 10"),
    ("takeover_worst_s", "the longest, with the time in which no worker was left", ""),
    ("takeovers", "runs that lost their worker", ""),
    ("retried", "effects that were asked for again with their key", ""),
    ("in_doubt", "runs that rightly ended at an effect that cannot be repeated", ""),
    ("seconds", "seconds", ""),
)


def main(given: list[str] | None = None) -> int:
    chosen = options(given)
    with ends_tidily():
        found = asyncio.run(measure(chosen))
    for name, what, wanted in ROWS:
        shown = "-" if found[name] is None else found[name]
        print(f"{name:20} {shown:>8}  {wanted:5} {what}")
    print(json.dumps(found))
    return 1 if any(found[name] for name in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
