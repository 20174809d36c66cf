"""Runs that wait for a person: what one costs in memory and in the database, and that all of them finish."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.chaos.database import Database
from benchmarks.chaos.storm import Process, started
from benchmarks.durable.tools import waiting_plan
from bicameral.durable import Runs, RunState, Submission

CONCURRENCY = 8
LIMIT = 600.0
WARM = 50


@dataclass(frozen=True, slots=True)
class Waited:
    """So many runs waited at once; bytes for one of them, in the workers' memory and in the database."""

    waiting: int
    finished: int
    memory: float
    stored: float
    seconds: float


async def waited(database: Database, runs: int, folder: Path, workers: int = 2) -> Waited:
    """Let so many runs wait for an approval at once, then approve all of them."""
    store = await Runs.open(database.url)
    processes: list[Process] = []
    try:
        for number in range(workers):
            name = f"waiting-{number}"
            with (folder / f"{name}.log").open("w") as log:
                given = (name, database.url, str(CONCURRENCY))
                processes.append(started(name, "worker", *given, log=log, package="benchmarks.durable"))
        # What is made once, for the first runs, is not what a further run costs.
        await _brought_to_an_end(store, min(WARM, runs), "warm")
        begun = time.monotonic()
        memory, stored = _memory(processes), _stored(database)
        await _all_wait(store, runs, "waiting")
        one_memory, one_stored = (_memory(processes) - memory) / runs, (_stored(database) - stored) / runs
        waiting = (await store.counts("waiting"))["waiting"]
        finished = await _all_answered(store, runs, "waiting")
        return Waited(waiting, finished, one_memory, one_stored, time.monotonic() - begun)
    finally:
        for process in processes:
            process.kill()
        await store.aclose()


async def _brought_to_an_end(store: Runs, runs: int, user: str) -> None:
    await _all_wait(store, runs, user)
    await _all_answered(store, runs, user)


async def _all_wait(store: Runs, runs: int, user: str) -> None:
    for number in range(runs):
        await store.submit(Submission(plan=waiting_plan(number), user=user))
    await _until(store, user, "waiting", runs)


async def _all_answered(store: Runs, runs: int, user: str) -> int:
    for approval in await store.approvals(user=user, limit=runs):
        await store.answer(approval.id, approve="all", user=user, by="benchmark")
    return await _until(store, user, "finished", runs)


async def _until(store: Runs, user: str, state: RunState, wanted: int) -> int:
    """Wait until it is so many, and say so as it goes; what it is at last, if they never come."""
    until = time.monotonic() + LIMIT
    told = time.monotonic()
    while True:
        found = (await store.counts(user))[state]
        if found >= wanted or time.monotonic() > until:
            return found
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{state}: {found} of {wanted}", file=sys.stderr)
        await asyncio.sleep(0.2)


def _memory(processes: list[Process]) -> int:
    """What the workers hold for themselves, without what they share."""
    return sum(psutil.Process(process.popen.pid).memory_full_info().uss for process in processes)


def _stored(database: Database) -> int:
    if database.kind == "sqlite":
        return Path(database.url).stat().st_size
    return int(str(database.select("SELECT pg_database_size(current_database())")[0][0]))
