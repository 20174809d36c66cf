"""The agents of a worker: one for everybody, or one for each user, made when it is needed and closed when it is not."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from bicameral.agent import Agent

KEPT = 16
"""How many agents that nobody uses are kept for their next run."""


class Agents:
    """Lends an agent to a run. One that was given is its owner's to close; those made here are closed here."""

    def __init__(self, agent: Agent | Callable[[str], Agent]) -> None:
        self._one = agent if isinstance(agent, Agent) else None
        self._make = None if isinstance(agent, Agent) else agent
        self._made: OrderedDict[str, Agent] = OrderedDict()
        self._lent: dict[str, int] = {}
        self._making = asyncio.Lock()

    @asynccontextmanager
    async def lent(self, user: str) -> AsyncGenerator[Agent]:
        if self._one is not None:
            yield self._one
            return
        agent = await self._of(user)
        self._lent[user] = self._lent.get(user, 0) + 1
        try:
            yield agent
        finally:
            self._lent[user] -= 1
            if not self._lent[user]:
                del self._lent[user]
            await self._closed(KEPT)

    async def _of(self, user: str) -> Agent:
        async with self._making:
            if user not in self._made and self._make is not None:
                self._made[user] = await asyncio.to_thread(self._make, user)
            self._made.move_to_end(user)
            return self._made[user]

    async def _closed(self, kept: int) -> None:
        """Close the agents that were not used for the longest time."""
        for user in [user for user in self._made if user not in self._lent]:
            if len(self._made) <= kept:
                return
            await self._made.pop(user).aclose()

    async def aclose(self) -> None:
        await self._closed(0)
