"""Measuring small things on a machine that does other things too."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any, TypeAlias

Act: TypeAlias = Callable[[], Awaitable[Any]]


async def overhead(through: Act, bare: Act, *, calls: int, rounds: int) -> float:
    """Seconds that a call takes more than its bare part.

    Both are measured in turns, in short batches, and of each the median counts.
    """
    for _ in range(max(calls, 10)):
        await through()
        await bare()
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for act, times in zip((through, bare), taken, strict=True):
            times.append(await _batch(act, calls))
    return median(taken[0]) - median(taken[1])


async def _batch(act: Act, calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        await act()
    return (time.perf_counter() - started) / calls
