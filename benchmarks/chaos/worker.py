"""A worker of the storm: `python -m benchmarks.chaos.worker NAME DATABASE WORLD [CONCURRENCY]`, until it is killed."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

from benchmarks.chaos.expected import policy_over
from benchmarks.chaos.patterns import storm_model
from benchmarks.chaos.tools import registry_over
from benchmarks.chaos.world import ServedWorld
from bicameral.agent import Agent
from bicameral.durable import Runs, Worker


def ends_with_its_starter() -> None:
    """Let this process end when the one that started it is gone, so that no worker outlives a benchmark."""

    def wait() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


async def work(name: str, database: str, world: str, concurrency: int) -> None:
    registry = registry_over(ServedWorld(world))
    runs = await Runs.open(database)
    high, low = storm_model(), storm_model("quarantined")
    agent = Agent(registry, privileged=high, quarantined=low, policy=policy_over(registry))
    await Worker(runs, agent, concurrency=concurrency, name=name).run()


def main() -> None:
    name, database, world, *more = sys.argv[1:]
    ends_with_its_starter()
    asyncio.run(work(name, database, world, int(more[0]) if more else 8))


if __name__ == "__main__":
    main()
