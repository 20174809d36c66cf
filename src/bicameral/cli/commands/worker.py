"""`bicameral worker`: claims and executes submitted runs until it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import datetime
from typing import TYPE_CHECKING

import click

from bicameral.cli._command_agent import fetch_missing_weights, on_signals, open_agent
from bicameral.cli._options import CommonOptions, common_options, model_option, quarantine_option
from bicameral.cli._output import INTERRUPTED, OK, TERMINATED, Output
from bicameral.cli._run_records import open_submitted_runs
from bicameral.postgres import masked_address

if TYPE_CHECKING:
    from bicameral.config import Config


@click.command(short_help="Do submitted runs, until told to stop.")
@click.option("--concurrency", type=click.IntRange(1, 1000), help="Runs at the same time; by default as configured.")
@click.option("--name", help="How the worker is called in `bicameral workers`; by default as the machine is.")
@click.option("--no-fetch", is_flag=True, help="Fetch no weights: a run fails that needs some that are not here.")
@model_option
@quarantine_option
@common_options
def command(chosen: CommonOptions, concurrency: int | None, name: str | None, no_fetch: bool) -> int:
    """Take submitted runs and do them, several at a time, with the tools and models that are configured here.

    Start as many as you like, on any machine that reaches the database. SIGTERM or Ctrl-C drains it: effects that have
    begun come to their end, runs under way go to other workers, and it ends with exit code 0. A second one stops it
    at once; its runs are taken over when its lease is over. With --json it prints an object a line.

    \b
    bicameral worker --concurrency 4
    """
    config = chosen.config()
    if not no_fetch:
        fetch_missing_weights(chosen.out, config, ["privileged", "quarantined"])
    return asyncio.run(_work(chosen.out, config, concurrency, name))


async def _work(out: Output, config: Config, concurrency: int | None, name: str | None) -> int:
    from bicameral.durable import Worker

    log = WorkerLog(out)
    async with open_submitted_runs(config, make=True) as runs, open_agent(config) as agent:
        worker = Worker(runs, agent, concurrency=concurrency, name=name, observer=log.record_state)
        log.record_start(worker.name, worker.concurrency, masked_address(config.durable_database))
        on_signals(log.stop, signal.SIGINT, signal.SIGTERM)
        await worker.run(log.stopping)
    log.record_end(worker.name)
    return OK


class WorkerLog:
    """Writes a line, or a JSON object, for each change of a run's state; handles the signals that stop a worker."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._under_way: set[str] = set()
        self._done = 0
        self.stopping = asyncio.Event()

    def record_start(self, worker: str, concurrency: int, database: str) -> None:
        self._out.say(f"worker {worker}: up to {concurrency} runs at a time from {database}; Ctrl-C drains")
        facts = {"worker": worker, "concurrency": concurrency, "database": database}
        self._out.write_json({"ok": True, "event": "started", **facts})

    def record_state(self, run: str, state: str, why: str | None) -> None:
        """Observer of the worker: a run was claimed, ended, waits or was given back."""
        self._under_way.add(run) if state == "running" else self._under_way.discard(run)
        self._done += state in ("finished", "failed", "stopped")
        self._out.write_json({"event": "run", "run": run, "state": state, "why": why})
        if not self._out.as_json:
            self._out.say(f"{datetime.now():%H:%M:%S}  {run}  {_state_words(state, why)}")

    def stop(self, sign: signal.Signals) -> None:
        """Drain on the first signal; exit at once on the second."""
        if self.stopping.is_set():
            self._out.say("stopped at once: others take over what was under way")
            # Not sys.exit: clean-up could wait for what hangs. Leases expire, and other workers take over.
            os._exit(TERMINATED if sign == signal.SIGTERM else INTERRUPTED)
        number = len(self._under_way)
        what = f"what is begun in {number} run{'' if number == 1 else 's'} comes to its end, others go on with the rest"
        self._out.say(f"draining: {what if number else 'nothing is under way'}; once more stops at once")
        self._out.write_json({"event": "draining", "runs": number})
        self.stopping.set()

    def record_end(self, worker: str) -> None:
        self._out.say(f"drained: {self._done} run{'' if self._done == 1 else 's'} came to an end here")
        self._out.write_json({"ok": True, "event": "drained", "worker": worker, "runs": self._done})


def _state_words(state: str, why: str | None) -> str:
    match state:
        case "waiting":
            return f"waiting for an answer: bicameral approvals show {why}"
        case "queued":
            return f"given back{f': {why}' if why else ''}"
        case "lost":
            return "another worker has it now"
        case _:
            return f"{state}{f': {why}' if why else ''}"
