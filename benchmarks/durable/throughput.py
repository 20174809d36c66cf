"""Runs in a second: a queue that is full before the first worker starts, and how fast so many workers empty it."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.chaos.database import Database
from benchmarks.chaos.storm import Process, started
from benchmarks.durable.tools import small_plan
from bicameral.durable import Runs, Submission

CONCURRENCY = 8
LIMIT = 300.0


async def runs_per_second(database: Database, workers: int, runs: int, folder: Path) -> float:
    """How many small runs so many workers end in a second, from when all of them are there to the last run."""
    plan = small_plan()
    store = await Runs.open(database.url)
    try:
        mark = f"{workers}-{time.time_ns()}"
        views = [await store.submit(Submission(plan=plan, user=mark)) for _ in range(runs)]
        with ExitStack() as stack:
            processes: list[Process] = []
            for name in (f"{mark}-{number}" for number in range(workers)):
                log = stack.enter_context((folder / f"{name}.log").open("w"))
                given = (name, database.url, str(CONCURRENCY))
                process = started(name, "worker", *given, log=log, package="benchmarks.durable")
                stack.callback(process.kill)
                processes.append(process)
            return await _rate(store, mark, len(views), processes)
    finally:
        await store.aclose()


async def _rate(store: Runs, user: str, runs: int, processes: list[Process]) -> float:
    """The rate between two looks: when all workers have come, and when all runs have ended."""
    until = time.monotonic() + LIMIT
    while not await _all_there(store, processes):
        await asyncio.sleep(0.05)
        _in_time(until, "the workers did not start")
    begun, before = time.monotonic(), await _finished(store, user)
    if before == runs:
        raise SystemExit("all runs had ended before all workers were there: give it more of them with --runs")
    while (after := await _finished(store, user)) < runs:
        await asyncio.sleep(0.1)
        _in_time(until, f"only {after} of {runs} runs ended")
    return (runs - before) / (time.monotonic() - begun)


async def _all_there(store: Runs, processes: list[Process]) -> bool:
    there = [view.worker for view in await store.workers() if view.alive]
    return all(any(map(process.is_worker, there)) for process in processes)


async def _finished(store: Runs, user: str) -> int:
    return (await store.counts(user))["finished"]


def _in_time(until: float, otherwise: str) -> None:
    if time.monotonic() > until:
        raise SystemExit(otherwise)
