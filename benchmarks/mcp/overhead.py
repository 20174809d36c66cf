"""How much longer a call takes through the firewall than directly: same server, same call, in turn, in one run.

A proxy that only passes calls on is measured with them, since two ways instead of one are a part of the ratio.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

from .host import Host
from .servers import SERVERS, RealServer, World, directly, through_firewall, world

CALLS = 200
WARM_UP = 10
RESAMPLES = 2_000
PROXY = Path(__file__).with_name("proxy.py")


async def measure_overhead(
    names: Sequence[str] = ("time", "filesystem", "memory"), calls: int = CALLS
) -> dict[str, Any]:
    """The overhead of some servers; `overhead_ratio` is that of the first one."""
    found: dict[str, Any] = {}
    for server in (each for each in SERVERS if each.name in names and each.installed):
        with world() as place:
            found[server.name] = await _measure(server, place, calls)
        print(f"{server.name}: {found[server.name]}", file=sys.stderr, flush=True)
    first = found[names[0]]
    return {"overhead_ratio": first["ratio"], "overhead_interval": first["interval"], "overhead": found}


async def _measure(server: RealServer, place: World, calls: int) -> dict[str, Any]:
    tools = [f"{server.name}.{name}" for name in (server.job.tool, *(name for name, _ in server.job.first))]
    async with AsyncExitStack() as stack:
        direct = await stack.enter_async_context(directly(server, place))
        passed = await stack.enter_async_context(directly(server, place, sys.executable, str(PROXY)))
        behind = await stack.enter_async_context(through_firewall(server, place, yes=tools))
        for name, arguments in server.job.first:
            for host in (direct, passed):
                await host.call(f"{server.name}.{name}", place.filled(arguments))
        taken: tuple[list[float], list[float], list[float]] = ([], [], [])
        arguments = place.filled(dict(server.job.arguments))
        for number in range(calls + WARM_UP):
            # The order alternates, so that neither always finds the machine as the other has left it.
            ways = ((direct, taken[0]), (behind, taken[1]), (passed, taken[2]))
            for host, seconds in ways if number % 2 else reversed(ways):
                began = time.perf_counter()
                await _call(host, tools[0], arguments)
                if number >= WARM_UP:
                    seconds.append(time.perf_counter() - began)
    ratio = median(taken[1]) / median(taken[0])
    return {
        "calls": calls,
        "direct_ms": round(median(taken[0]) * 1000, 2),
        "proxy_ms": round(median(taken[2]) * 1000, 2),
        "firewall_ms": round(median(taken[1]) * 1000, 2),
        "ratio": round(ratio, 2),
        "interval": bootstrap_ratio(*taken[:2]),
    }


async def _call(host: Host, tool: str, arguments: dict[str, Any]) -> None:
    shown = await host.call(tool, arguments)
    if shown.error:
        raise SystemExit(f"the call failed: {shown.text[:500]}")


def bootstrap_ratio(direct: Sequence[float], behind: Sequence[float], seed: int = 1) -> list[float]:
    """A 95 % interval of the ratio of the medians."""
    draw = random.Random(seed)
    ratios = sorted(
        median(draw.choices(behind, k=len(behind))) / median(draw.choices(direct, k=len(direct)))
        for _ in range(RESAMPLES)
    )
    return [round(ratios[int(RESAMPLES * place)], 2) for place in (0.025, 0.975)]
