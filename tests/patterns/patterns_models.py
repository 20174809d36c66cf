"""Examples of patterns with the real local models: one set of weights in both chambers, as two providers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

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
        desk = Runtime(
            ModelPair(Chambers(model, Quarantined(reads))), registry, Policy((), registry), strategy_limits(seconds=540)
        )
        try:
            return await example.make(folder).run(desk, *example.arguments(folder))
        finally:
            await reads.aclose()

    return example, asyncio.run(run())
