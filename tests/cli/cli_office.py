"""A small office whose runs are submitted: tools that leave traces, and workers as real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cli_terminal import PROGRAM
from cli_world import World

from bicameral.agent import Agent
from bicameral.config import load_config
from bicameral.durable import Runs, Worker

T = TypeVar("T")

TOOLS = '''
import asyncio
import os
import signal
from pathlib import Path

from bicameral import tool
from bicameral.tools import Origin

OWN = Origin("system")


def trace(text):
    with Path("traces.txt").open("a") as file:
        file.write(text + "\\n")


@tool(effect="send", purpose={"to": "directs", "text": "carries"}, origins=OWN)
async def post(to: str, text: str) -> None:
    """Post a text to somebody."""
    trace(f"{to}: {text}")


@tool(effect="write", idempotent=True, purpose={"place": "directs"}, origins=OWN)
async def put(place: str) -> str:
    """Put something somewhere, as slowly as a file says; while it says nothing, as long as it is there."""
    trace(f"begun {place}")
    while Path("slow").exists():
        if seconds := Path("slow").read_text():
            await asyncio.sleep(float(seconds))
            break
        await asyncio.sleep(0.02)
    trace(f"put {place}")
    return place


@tool(effect="read", outbound=False, purpose={"name": "selects"}, origins=OWN)
async def fragile(name: str) -> str:
    """Kill whoever calls this the first time."""
    if not Path(name).exists():
        Path(name).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return name
'''
EACH = 'for line in read_lines("mail.txt"):\n    post("kim@example.com", line)\nanswer("all")\n'
FOUND = 'answer(grep(read_lines("mail.txt"), "invoice"))\n'
SLOW = 'put("here")\nput("there")\nanswer("both")\n'
FRAGILE = 'place = put("here")\nname = fragile("died.txt")\nanswer([place, name])\n'
ASK = 'age = ask("How old?", int)\nanswer(age + 1)\n'


@dataclass(frozen=True)
class Office:
    """The world, and programs of it that run beside each other."""

    world: World

    @property
    def traces(self) -> list[str]:
        file = self.world.folder / "traces.txt"
        return file.read_text().splitlines() if file.exists() else []

    def program(self, *words: str, seconds: float = 90) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *words], capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )

    def told(self, *words: str, code: int = 0) -> dict[str, Any]:
        """What a program says with --json, on its last line."""
        done = self.program(*words, "--json")
        assert done.returncode == code, (done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def submitted(self, source: str, *words: str) -> str:
        """The id of a run of this plan."""
        self.world.write("plan.py", source)
        return self.world.json("submit", "--plan", "plan.py", *words)["run"]

    def asked(self) -> dict[str, Any]:
        """The one question that is open, as soon as there is one."""
        found = until(lambda: self.world.json("approvals", "list")["approvals"])
        assert len(found) == 1, found
        return found[0]

    def ended(self, run: str) -> dict[str, Any]:
        """How a run ended, as the last line of watching it says; whatever the exit code."""
        result = self.world.call("runs", "watch", run, "--json")
        return json.loads(result.stdout.splitlines()[-1])


@contextmanager
def working_here(name: str | None = None) -> Generator[list[str]]:
    """A worker in a thread of this process, for what does not hang on whose process it is; the list is what it says.

    There can be one at a time, and no signal reaches it: it is told to end at the end.
    """
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    log: list[str] = []

    def told(run: str, state: str, why: str | None) -> None:
        log.append(f"{run} {state} {why}")

    async def work() -> None:
        config = load_config()
        async with await Runs.open(config) as runs, aclosing(Agent.from_config(config)) as agent:
            stop = asyncio.Event()
            worker = Worker(runs, agent, name=name, observer=told)
            asyncio.get_running_loop().call_soon(loops.append, (asyncio.get_running_loop(), stop))
            await worker.run(stop)

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(asyncio.run, work())
        try:
            until(lambda: loops or working.done())
            yield log
        finally:
            for loop, stop in loops:
                loop.call_soon_threadsafe(stop.set)
            working.result(60)


@contextmanager
def working(*words: str) -> Generator[subprocess.Popen[str]]:
    """A worker in a process of its own, told to end at the end."""
    command = [PROGRAM, "worker", "--no-fetch", *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    log = Path(f"worker-{time.monotonic_ns()}.log")
    with (
        log.open("w") as told,
        subprocess.Popen(command, stdout=told, stderr=told, env=environment, text=True) as process,
    ):
        process.log = log  # type: ignore[attr-defined]
        try:
            until(lambda: "worker " in log.read_text() or '"started"' in log.read_text())
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()


def said(process: subprocess.Popen[str]) -> str:
    return process.log.read_text()  # type: ignore[attr-defined]


def until(found: Callable[[], T], seconds: float = 60) -> T:
    """What is found, as soon as it is."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.1)
    return value
