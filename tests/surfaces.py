"""The same agent behind every surface, in this process, so that a test sees what its models are asked.

The command line, the server and the worker of durable runs are those that users have; only the models reply from a
script.
"""

from __future__ import annotations

import asyncio
import importlib
import warnings
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from click.testing import CliRunner, Result

from bicameral import Agent
from bicameral.cli import main
from bicameral.config import Config
from bicameral.durable import Runs, RunView, Submission, Worker
from bicameral.server import TokenFile, create_app
from bicameral.server._context import ServerContext

PATIENCE = 60.0
MakeAgent = Callable[[Config], Agent]


def call(config: Config, make: MakeAgent, *words: str, stdin: str = "") -> Result:
    """A command of the command line, with this agent."""
    assert config.source is not None
    command, *rest = words
    # An agent is closed with its command, so each command gets its own.
    return CliRunner().invoke(main, [command, "--config", str(config.source), *rest], obj=make, input=stdin)


@dataclass(frozen=True)
class Service:
    """A server with a worker, both in this process."""

    client: httpx.AsyncClient
    runs: Runs

    async def ask(self, method: str, path: str, **options: Any) -> Any:
        answer = await self.client.request(method, path, **options)
        assert answer.is_success, (answer.status_code, answer.text)
        return answer.json()

    async def settled(self, submission: Submission, replies: Sequence[object] = ()) -> RunView:
        """A submitted run once it has ended or waits for more answers than these."""
        left = list(replies)
        run = (await self.runs.submit(submission)).run
        end = asyncio.get_running_loop().time() + PATIENCE
        answered = set[str]()
        while asyncio.get_running_loop().time() < end:
            view = await self.runs.get(run)
            asked = [each for each in view.waits_for if each not in answered]
            if view.has_ended or (asked and not left):
                return view
            for approval in asked[: len(left)]:
                answered.add(approval)
                await self.runs.reply(approval, left.pop(0), user=view.user, by=view.user)
            await asyncio.sleep(0.02)
        raise AssertionError("the run does not end")


@asynccontextmanager
async def serving(config: Config, make: MakeAgent, folder: Path) -> AsyncGenerator[Service]:
    """A server and a worker, each with an agent of its own, until the block ends."""
    with warnings.catch_warnings():
        # DBOS and its helpers say at import what will change in later versions of theirs.
        warnings.simplefilter("ignore")
        importlib.import_module("dbos")
    tokens = TokenFile(folder / "tokens.json")
    _, token = tokens.add("local")
    stop = asyncio.Event()
    async with await Runs.open(str(folder / "durable.db"), config=config) as runs, make(config) as planner:
        work = asyncio.create_task(Worker(runs, make(config)).run(stop))
        app = create_app(ServerContext(config, runs, tokens, planner))
        headers = {"Authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(app)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
                yield Service(client, runs)
        finally:
            stop.set()
            await work
