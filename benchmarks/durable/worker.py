"""A worker with tools that do nothing: `python -m benchmarks.durable.worker NAME DATABASE CONCURRENCY`."""

from __future__ import annotations

import asyncio
import sys

from benchmarks.chaos.expected import policy_over
from benchmarks.chaos.worker import ends_with_its_starter
from benchmarks.durable.tools import REGISTRY
from bicameral import ScriptedProvider
from bicameral.agent import Agent
from bicameral.durable import Runs, Worker


def nobody(name: str) -> ScriptedProvider:
    """A model that no plan asks."""

    def refuse(_: object) -> str:
        raise RuntimeError(f"the {name} model was asked")

    return ScriptedProvider(refuse)


def idle_agent() -> Agent:
    """An agent for plans that need no model."""
    policy = policy_over(REGISTRY)
    return Agent(REGISTRY, privileged=nobody("privileged"), quarantined=nobody("quarantined"), policy=policy)


async def work(name: str, database: str, concurrency: int) -> None:
    runs = await Runs.open(database)
    await Worker(runs, idle_agent(), concurrency=concurrency, name=name).run()


def main() -> None:
    name, database, concurrency = sys.argv[1:4]
    ends_with_its_starter()
    asyncio.run(work(name, database, int(concurrency)))


if __name__ == "__main__":
    main()
