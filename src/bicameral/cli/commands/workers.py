"""`bicameral workers`: the workers that do submitted runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, common_options
from bicameral.cli._plain_values import local_time_text, render_table
from bicameral.cli._run_records import NO_WORKER, has_submitted_runs, open_submitted_runs

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import WorkerView


@click.command(short_help="The workers that do submitted runs.")
@common_options
def command(chosen: CommonOptions) -> dict[str, Any]:
    """Every worker that was heard of lately: where it is, how many runs it has, and whether it is still heard of."""
    found = asyncio.run(_list_workers(chosen.config()))
    rows: list[dict[str, object]] = [
        {
            "worker": each.worker,
            "host": each.host,
            "pid": each.pid,
            "runs": f"{each.runs}/{each.concurrency}",
            "started": local_time_text(each.started),
            "heard of": local_time_text(each.seen),
            "state": "alive" if each.alive else "not heard of",
        }
        for each in found
    ]
    chosen.out.show(render_table(rows, chosen.out.width) if rows else NO_WORKER)
    return {"workers": [each.to_json() for each in found]}


async def _list_workers(config: Config) -> list[WorkerView]:
    if not has_submitted_runs(config):
        return []
    async with open_submitted_runs(config) as runs:
        return await runs.workers()
