"""Many that come to an empty database at the same moment: one makes its tables, and none waits for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bicameral.durable import Runs

if TYPE_CHECKING:
    from conftest import House


async def test_everybody_who_opens_an_empty_database_at_once_comes_in(house: House) -> None:
    """DBOS makes indexes while others go on; that waits for open transactions, and so nobody may wait in one."""
    async with asyncio.timeout(60):
        opened = await asyncio.gather(*(Runs.open(house.address) for _ in range(4)))
        await asyncio.gather(*(runs.database.run_in_thread(runs.dispatch.client) for runs in opened))
        counts = [await runs.counts() for runs in opened]
        await asyncio.gather(*(runs.aclose() for runs in opened))
    assert counts == [counts[0]] * 4
