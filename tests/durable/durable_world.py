"""A small world for durable runs: tools that leave traces in files, and workers that can be killed."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bicameral.agent import Agent
from bicameral.config import Config
from bicameral.durable import Runs, Worker
from bicameral.models import ModelReply, ModelRequest, ScriptedProvider
from bicameral.plans import Plan, parse
from bicameral.tools import Origin, Registry, Tool, call_key, tool

OWN = Origin("system")


def tools(folder: Path) -> list[Tool]:
    """Tools whose every call is a line of a file, so that a test can count what really happened."""

    def trace(name: str, **facts: Any) -> None:
        line = json.dumps({"name": name, "pid": os.getpid(), "at": time.time(), **facts}) + "\n"
        with (folder / "trace.jsonl").open("a") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def slow() -> float:
        return float((folder / "slow").read_text()) if (folder / "slow").exists() else 0.0

    @tool(effect="read", outbound=False, origins=OWN, purpose={"number": "selects"})
    async def look(number: int) -> int:
        """Look at a number."""
        trace("look", number=number)
        await asyncio.sleep(slow())
        return number * 10

    @tool(
        effect="write", idempotent=True, origins=OWN, purpose={"place": "directs", "number": "carries"}, words=("put",)
    )
    async def put(place: str, number: int) -> int:
        """Put a number into a place."""
        trace("begun", number=number, place=place, key=call_key())
        await asyncio.sleep(slow())
        trace("put", number=number, place=place, key=call_key())
        return number

    @tool(effect="send", origins=OWN, purpose={"to": "directs", "text": "carries"}, receivers=("to",), words=("post",))
    async def post(to: str, text: str) -> bool:
        """Post a text to somebody."""
        trace("begun", to=to)
        await asyncio.sleep(slow())
        trace("post", to=to, text=text, key=call_key())
        return True

    @tool(effect="irreversible", origins=OWN, purpose={"what": "directs"})
    async def burn(what: str) -> bool:
        """Burn something."""
        trace("begun", what=what)
        await asyncio.sleep(slow())
        trace("burn", what=what)
        return True

    @tool(effect="read", outbound=False, origins=OWN, purpose={"number": "selects"})
    async def die(number: int) -> int:
        """Kill whoever calls this."""
        trace("die", number=number)
        # What only reads is recorded a moment after it has begun.
        await asyncio.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
        return number

    @tool(effect="read", outbound=False, origins=Origin("third_party"), purpose={"number": "selects"})
    async def letter(number: int) -> str:
        """A letter that a stranger wrote."""
        trace("letter", number=number)
        return f"stranger{number}@example.org"

    @tool(effect="read", outbound=False, origins=OWN, purpose={"number": "selects"})
    async def much(number: int) -> str:
        """A long text."""
        return "x" * number

    @tool(effect="read", outbound=False, origins=OWN, purpose={"number": "selects"}, words=("tally",))
    async def tally(number: int) -> int:
        """Tally a number."""
        trace("tally", number=number)
        return number * 10

    return [look, put, post, burn, die, letter, much, tally]


def registry(folder: Path) -> Registry:
    return Registry(tools(folder))


def agent(folder: Path, config: Config | None = None, without: str = "") -> Agent:
    script = folder / "plans.json"
    privileged = planner(folder, json.loads(script.read_text())) if script.exists() else ScriptedProvider([])
    # In rounds `look` is the word with which a plan asks to see a result.
    without = "look" if script.exists() else without
    own = [each for each in tools(folder) if each.name != without]
    quarantined = ScriptedProvider([("", '{"value": "no"}')], grammars=False)
    return Agent(own, config=config, privileged=privileged, quarantined=quarantined, cache={})


def planner(folder: Path, rules: list[list[str]]) -> ScriptedProvider:
    """A planner that replies by what the prompt has and writes the prompt down.

    It dies once of the words in the file `die-of`. Of those in `hold` it renames the file to `held`, and waits until
    that is gone.
    """

    def reply(request: ModelRequest) -> str:
        prompt = "\n".join(message.text for message in request.messages)
        with (folder / "prompts.jsonl").open("a") as file:
            file.write(json.dumps({"pid": os.getpid(), "prompt": prompt}) + "\n")
        deadly = folder / "die-of"
        if deadly.exists() and deadly.read_text() in prompt:
            deadly.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return next(text for words, text in rules if words in prompt)

    class Planner(ScriptedProvider):
        async def generate(self, request: ModelRequest) -> ModelReply:
            hold = folder / "hold"
            if hold.exists() and hold.read_text() in "\n".join(message.text for message in request.messages):
                hold.rename(folder / "held")
                while (folder / "held").exists():  # noqa: ASYNC110 (a file, since workers are processes)
                    await asyncio.sleep(0.02)
            return await super().generate(request)

    return Planner(reply, grammars=False)


def prompts(folder: Path) -> list[str]:
    """What the planner was asked, by any process."""
    file = folder / "prompts.jsonl"
    return [json.loads(line)["prompt"] for line in file.read_text().splitlines()] if file.exists() else []


def plan(source: str, folder: Path) -> Plan:
    return parse(source, registry(folder)).plan


def config(options: dict[str, Any]) -> Config:
    durable = {"lease": 1.0, "concurrency": 4} | options
    return Config.model_validate({"durable": durable, "base": Path.cwd()})


def trace(folder: Path) -> list[dict[str, Any]]:
    file = folder / "trace.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def named(folder: Path, name: str) -> list[dict[str, Any]]:
    return [line for line in trace(folder) if line["name"] == name]


@contextmanager
def worker(database: str, folder: Path, **options: Any) -> Generator[BaseProcess]:
    """A worker in a process of its own, that is killed at the end if it is still there.

    It is forked from a process that has loaded everything and done nothing.
    """
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["durable_world", "dbos", "sqlalchemy", "psycopg", "bicameral.durable._queue"])
    process = forks.Process(target=work, args=(database, folder, options))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def work(database: str, folder: Path, options: dict[str, Any]) -> None:
    asyncio.run(main(database, folder, options))


async def main(database: str, folder: Path, options: dict[str, Any]) -> None:
    settings = config(options)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with await Runs.open(database, config=settings) as runs, agent(folder, settings) as who:
        await Worker(runs, who).run(stop)
