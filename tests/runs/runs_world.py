"""A small world for plans to act on: cells that can be read and written, and a list of what happened."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bicameral.errors import ToolError
from bicameral.plans import Plan, parse
from bicameral.runs import RunOutcome, run_plan
from bicameral.tools import Registry, Tool, tool


@dataclass
class World:
    """`yields` says how often each call lets others go first; the tenth call begins again with the first."""

    yields: list[int] = field(default_factory=lambda: [0])
    cells: dict[str, int] = field(default_factory=dict[str, int])
    happened: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    running: int = 0
    most_running: int = 0
    calls: int = 0

    async def takes_a_while(self) -> None:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.calls += 1
        for _ in range(self.yields[self.calls % len(self.yields)]):
            await asyncio.sleep(0)
        self.running -= 1

    @property
    def registry(self) -> Registry:
        return Registry(self._tools())

    def _tools(self) -> Iterable[Tool]:
        @tool(effect="read")
        async def peek(cell: str) -> int:
            """What a cell holds."""
            await self.takes_a_while()
            self.happened.append(("peek", cell))
            return self.cells.get(cell, 0)

        @tool(effect="write")
        async def poke(cell: str, value: int) -> None:
            """Put a number into a cell."""
            await self.takes_a_while()
            self.cells[cell] = value
            self.happened.append(("poke", (cell, value)))
            await self.takes_a_while()

        @tool(effect="pure")
        async def double(number: int) -> int:
            """Twice the number."""
            await self.takes_a_while()
            return number * 2

        @tool(effect="pure")
        async def picky(number: int) -> int:
            """The same number, unless it can be divided by five."""
            await self.takes_a_while()
            if number % 5 == 0:
                raise ToolError("world.refused", f"{number} is refused")
            return number

        return [peek, poke, double, picky]


def plan_of(source: str, registry: Registry) -> Plan:
    return parse(source, registry).plan


async def run_source(source: str, registry: Registry, **options: Any) -> RunOutcome:
    """Parse and run a plan."""
    return await run_plan(plan_of(source, registry), registry, **options)
