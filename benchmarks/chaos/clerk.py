"""Who answers the runs' questions, in a process of its own: `python -m benchmarks.chaos.clerk DATABASE WORLD SECONDS`.

A call that waits is approved unless the ledger says that it has happened. So a call that policy asks about is approved,
and of one that may have happened already, before its worker died, the ledger knows: a person would look there, too.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from collections.abc import Mapping
from typing import Any

from benchmarks.chaos.plans import REPLY
from benchmarks.chaos.world import ServedWorld
from bicameral.durable import Approval, Runs


class Clerk:
    """Lets each question wait for a while of its own, then answers it."""

    def __init__(self, runs: Runs, world: ServedWorld, longest: float) -> None:
        self._runs = runs
        self._world = world
        self._longest = longest
        self._due: dict[str, float] = {}
        self.answered = 0

    async def attend(self) -> None:
        """Answer what is due now."""
        now = asyncio.get_running_loop().time()
        for approval in await self._runs.approvals():
            due = self._due.setdefault(approval.id, now + random.random() * self._longest)
            if now >= due:
                await self.answer(approval)
                self.answered += 1

    async def answer(self, approval: Approval) -> None:
        if approval.kind == "ask":
            await self._runs.reply(approval.id, REPLY, by="clerk")
            return
        yes = [str(call["hash"]) for call in approval.calls if not self._happened(call)]
        await self._runs.answer(approval.id, approve=yes or "none", by="clerk")

    def _happened(self, call: Mapping[str, Any]) -> bool:
        return self._world.happened(str(call["arguments"]["what"]))


async def attend(database: str, world: str, longest: float, over: threading.Event) -> None:
    runs = await Runs.open(database)
    clerk = Clerk(runs, ServedWorld(world), longest)
    while not over.is_set():
        try:
            await clerk.attend()
        except Exception as error:
            # A connection that was lost, or a question that was over before its answer came.
            print(f"clerk: {type(error).__name__}: {error}", file=sys.stderr)
        await asyncio.sleep(0.25)
    await runs.aclose()


def main() -> None:
    database, world, longest = sys.argv[1:4]
    over = threading.Event()

    def wait() -> None:
        sys.stdin.read()  # it ends when whoever started this is gone
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    asyncio.run(attend(database, world, float(longest), over))


if __name__ == "__main__":
    main()
