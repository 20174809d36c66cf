"""Examples of patterns with the real local models: one set of weights in both chambers, as two providers."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from bicameral import Agent
from bicameral.config import Config
from bicameral.journal import open_journal_at
from bicameral.limits import strategy_limits
from bicameral.models import LocalProvider
from bicameral.patterns import Outcome, example_of
from bicameral.patterns.strategies import ModelPair, Runtime
from bicameral.policy import Policy
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Registry


def performed(pattern: str, model: LocalProvider, folder: Path) -> tuple[Any, Outcome[Any]]:
    """The example of a pattern, and how it came out with this model."""
    example = example_of(pattern)
    registry = Registry(example.tools(folder))

    async def run() -> Outcome[Any]:
        reads = LocalProvider(model._path, name=f"{model.name} (quarantined)")  # pyright: ignore[reportPrivateUsage]
        # Some patterns plan, and some do not run without a record.
        planning = Agent(list(registry), privileged=model, quarantined=reads, config=Config.defaults(), cache={})
        try:
            with tempfile.TemporaryDirectory() as records, open_journal_at(Path(records, "journal.db")) as journal:
                desk = Runtime(
                    ModelPair(Chambers(model, Quarantined(reads))),
                    registry,
                    Policy((), registry),
                    strategy_limits(seconds=540),
                    journal,
                    planner=planning.runtime().planner,
                )
                return await example.make(folder).run(desk, *example.arguments(folder))
        finally:
            await reads.aclose()

    return example, asyncio.run(run())
