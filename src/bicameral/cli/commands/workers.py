"""`bicameral workers`: who does the work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from .._durable import is_there, submitted_runs
from .._exits import OK
from .._options import Common, common
from .._periods import clock
from .._values import table

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import WorkerView


@click.command(short_help="The workers that do submitted runs.")
@common
def command(chosen: Common) -> int:
    """Every worker that was heard of lately: where it is, how many runs it has, and whether it is still heard of."""
    found = asyncio.run(_workers(chosen.config()))
    rows: list[dict[str, object]] = [
        {
            "worker": each.worker,
            "host": each.host,
            "pid": each.pid,
            "runs": f"{each.runs}/{each.concurrency}",
            "started": clock(each.started),
            "heard of": clock(each.seen),
            "state": "alive" if each.alive else "not heard of",
        }
        for each in found
    ]
    nobody = "no worker is there: `bicameral worker` starts one"
    chosen.out.show(table(rows, chosen.out.width) if rows else nobody)
    chosen.out.object({"ok": True, "workers": [each.to_json() for each in found]})
    return OK


async def _workers(config: Config) -> list[WorkerView]:
    if not is_there(config):
        return []
    async with submitted_runs(config) as runs:
        return await runs.workers()
