"""The storm: real workers, some of which are killed at any moment, and connections that are cut."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from benchmarks.chaos.database import Database
from benchmarks.chaos.plans import Errand
from bicameral.durable import ENDED_STATES, Runs, RunView

CONCURRENCY = 6
"""How many runs a worker has in hand at once."""
AHEAD = 1.5
"""How many runs wait for a worker, for each that one could have in hand."""
BETWEEN = (0.2, 4.0)
"""Seconds from one kill to the next."""
DESERTED = 0.1
"""How often it does not matter whether any other worker is left."""


@dataclass(slots=True)
class Process:
    """A process of the harness, which ends with it: it reads a standard input that ends when the harness does."""

    name: str
    popen: subprocess.Popen[str]

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self.popen.kill()
        self.end()

    def end(self) -> None:
        """Let it come to its end."""
        if self.popen.stdin is not None:
            self.popen.stdin.close()
        try:
            self.popen.wait(10)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait(10)
        if self.popen.stdout is not None:
            self.popen.stdout.close()

    def is_worker(self, name: str | None) -> bool:
        """Whether a worker of this name is this process: its name goes on with the process and a few letters."""
        return name is not None and name.startswith(f"{self.name}-{self.popen.pid}-")


def started(
    name: str, module: str, *arguments: str, log: IO[str], answers: bool = False, package: str = "benchmarks.chaos"
) -> Process:
    """A Python process that runs one of the benchmark's modules."""
    popen = subprocess.Popen(
        [sys.executable, "-m", f"{package}.{module}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if answers else log,
        stderr=log,
        text=True,
    )
    return Process(name, popen)


@dataclass(slots=True)
class Storm:
    """Starts workers, kills them and starts them again; feeds them runs as it goes, so that there is always something
    to interrupt."""

    runs: Runs
    database: Database
    world: str
    folder: Path
    workers: int
    kills: int
    choose: random.Random
    worker_kills: int = 0
    connection_kills: int = 0
    connections: int = 0
    told: list[str] = field(default_factory=list[str])
    losses: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    deserted: list[float] = field(default_factory=list[float])
    tickets: dict[str, str] = field(default_factory=dict[str, str])
    _alive: dict[int, Process] = field(default_factory=dict[int, Process])
    _generation: int = 0
    _wanted: int = 0
    """How many runs there are to be for a kill that is due."""
    _fed: bool = False

    @property
    def done(self) -> int:
        return self.worker_kills + self.connection_kills

    async def rage(self, errands: list[Errand], limit: float) -> None:
        """Until every kill is made and every run has ended, or the time is over."""
        deadline = time.monotonic() + limit
        for slot in range(self.workers):
            self._start(slot)
        feeding = asyncio.create_task(self._feed(errands))
        try:
            await self._kill_all(deadline)
            await asyncio.wait({feeding}, timeout=max(0.0, deadline - time.monotonic()))
            await self._calm(deadline)
        finally:
            feeding.cancel()
            self.end()

    def end(self) -> None:
        for process in self._alive.values():
            process.kill()
        self._alive.clear()

    def _start(self, slot: int) -> None:
        self._generation += 1
        name = f"worker-{slot}-{self._generation}"
        with (self.folder / f"{name}.log").open("w") as log:
            given = (name, self.database.worker_url, self.world, str(CONCURRENCY))
            self._alive[slot] = started(name, "worker", *given, log=log)

    async def _feed(self, errands: list[Errand]) -> None:
        """Submit the runs little by little, the last near the last kill; earlier, if a kill finds none at work."""
        most = int(self.workers * CONCURRENCY * (1 + AHEAD))
        for number, errand in enumerate(errands):
            while await self._busy() >= (most if self._due(number / len(errands)) else self._wanted):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
            view = await self.runs.submit(errand.submission)
            self.tickets[view.run] = errand.ticket
        self._fed = True

    def _due(self, share: float) -> bool:
        """Whether this share of the runs is to be there, by how many kills have been made."""
        return share * (self.kills + 1) <= self.done + 1

    async def _busy(self) -> int:
        """How many runs there are that a worker has, or should have."""
        counts = await self.runs.counts()
        return counts["queued"] + counts["running"]

    async def _ended(self) -> int:
        counts = await self.runs.counts()
        return sum(counts[state] for state in ENDED_STATES)

    async def _running(self) -> list[RunView]:
        return await self.runs.list(state="running", limit=1000)

    async def _kill_all(self, deadline: float) -> None:
        told = 0
        while self.done < self.kills:
            await asyncio.sleep(self.choose.uniform(*BETWEEN))
            working = await self._at_work(deadline)
            if not working:
                return
            if self.database.kind == "postgresql" and self.choose.random() < 1 / 3:
                self._cut()
            else:
                if slots := await self._spared(working):
                    await self._kill(self.choose.choice(slots))
            if (self.done % 5 == 0 or self.done == self.kills) and self.done > told:
                told = self.done
                print(f"{self.done} kills, {len(self.tickets)} runs, {await self._ended()} ended", file=sys.stderr)

    async def _at_work(self, deadline: float) -> list[int]:
        """The workers that have a run in hand, as soon as there are any; none if the time, or the work, is over."""
        self._wanted = self.workers
        while not (working := await self._working()) and time.monotonic() < deadline:
            if self._fed and await self._ended() >= len(self.tickets):
                break
            await asyncio.sleep(self.choose.uniform(0, 0.1))
        self._wanted = 0
        return working

    async def _working(self) -> list[int]:
        """The workers that have a run in hand now."""
        holders = {view.worker for view in await self._running()}
        for slot, process in list(self._alive.items()):
            if process.popen.poll() is not None:
                self._start(slot)  # it ended by itself, which it should not
                process.end()
                print(f"{process.name} ended with {process.popen.returncode}: see its log", file=sys.stderr)
        return [slot for slot, process in self._alive.items() if any(map(process.is_worker, holders))]

    def _cut(self) -> None:
        many = self.choose.choice([1, 2, 100])
        cut = self.database.cut(many)
        self.told.append(f"{time.time():.2f} {cut} connections")
        self.connections += cut
        self.connection_kills += 1

    async def _spared(self, working: list[int]) -> list[int]:
        """Those who may be killed: mostly not the last one that is there, so that there is somebody to take over."""
        there = await self._there()
        others = [slot for slot in working if there - {slot}]
        return others if self.workers > 1 and self.choose.random() > DESERTED else working

    async def _there(self) -> set[int]:
        """The workers that are up and were heard of."""
        names = [view.worker for view in await self.runs.workers() if view.alive]
        return {slot for slot, process in self._alive.items() if any(map(process.is_worker, names))}

    async def _kill(self, slot: int) -> None:
        process, others = self._alive[slot], await self._there() - {slot}
        process.popen.send_signal(signal.SIGKILL)
        process.popen.wait(10)
        at = time.time()
        self.told.append(f"{at:.2f} {process.name}{'' if others else ', the last one'}")
        # What it still holds now, it held when it died: nobody takes a run before its lease is over.
        self.losses += [(view.run, at) for view in await self._running() if process.is_worker(view.worker)]
        if not others:
            self.deserted.append(at)
        self.worker_kills += 1
        process.end()
        self._start(slot)

    async def _calm(self, deadline: float) -> None:
        """No more kills: what is left comes to its end."""
        while time.monotonic() < deadline:
            if await self._ended() >= len(self.tickets):
                return
            await self._working()
            await asyncio.sleep(0.3)
