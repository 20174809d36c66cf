"""A durable step against a bare step of DBOS: in one process, on one database, in turns.

Both are measured from inside: from the moment in which the first step is done to that of the last, divided by the steps
between. So what is measured is what one step costs more, and not the queue before it. A bare step is the quicker of
DBOS's two ways, with and without asyncio.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Any

from dbos import DBOS

from benchmarks.durable.tools import MOMENTS, steps_plan
from benchmarks.durable.worker import idle_agent
from bicameral.durable import Runs, Submission, Worker

STEPS = 40
ROUNDS = 9

Way = Callable[[], Awaitable[object]]


def bare_ways(steps: int) -> dict[str, Way]:
    """So many bare steps of DBOS, in both of its ways; declared anew, since a worker that ends forgets them."""

    @DBOS.step(name="benchmark.bare")
    def step(number: int) -> int:
        MOMENTS.append(time.perf_counter())
        return number + 1

    @DBOS.workflow(name="benchmark.steps")
    def workflow(many: int) -> int:
        number = 0
        for _ in range(many):
            number = step(number)
        return number

    @DBOS.step(name="benchmark.bare-async")
    async def step_async(number: int) -> int:
        MOMENTS.append(time.perf_counter())
        return number + 1

    @DBOS.workflow(name="benchmark.steps-async")
    async def workflow_async(many: int) -> int:
        number = 0
        for _ in range(many):
            number = await step_async(number)
        return number

    async def in_thread() -> object:
        return await asyncio.to_thread(lambda: DBOS.start_workflow(workflow, steps).get_result())

    async def on_loop() -> object:
        handle = await DBOS.start_workflow_async(workflow_async, steps)
        return await handle.get_result()

    return {"bare": in_thread, "bare-async": on_loop}


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Seconds for one step, medians of rounds in turns."""

    bare: float
    look: float
    change: float

    def to_json(self, name: str) -> dict[str, Any]:
        return {
            f"step_ratio_{name}": round(self.look / self.bare, 3),
            f"effect_step_ratio_{name}": round(self.change / self.bare, 3),
            f"dbos_step_us_{name}": round(self.bare * 1e6, 1),
            f"step_us_{name}": round(self.look * 1e6, 1),
            f"effect_step_us_{name}": round(self.change * 1e6, 1),
        }


async def step_costs(database: str, rounds: int = ROUNDS, steps: int = STEPS) -> StepCosts:
    """What a step costs on this database, ours and DBOS's."""
    runs = await Runs.open(database)
    stop = asyncio.Event()
    bare = bare_ways(steps)
    working = asyncio.create_task(Worker(runs, idle_agent(), concurrency=2, name="steps").run(stop))
    try:
        ways: dict[str, Way] = {
            **bare,
            "look": lambda: _ours(runs, "look", steps),
            "change": lambda: _ours(runs, "change", steps),
        }
        await _ours(runs, "look", 2)  # until this is done, DBOS may not have been started
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds + 1):
            for name, way in ways.items():
                taken[name].append(await _timed(way, steps))
        # The first round pays for what is made only once.
        found = {name: median(each[1:]) for name, each in taken.items()}
        return StepCosts(min(found["bare"], found["bare-async"]), found["look"], found["change"])
    finally:
        # DBOS made its threads those of this loop, and takes them along when it ends.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        stop.set()
        await working
        await runs.aclose()


async def _timed(way: Way, steps: int) -> float:
    MOMENTS.clear()
    await way()
    if len(MOMENTS) != steps:
        raise SystemExit(f"{len(MOMENTS)} steps were done, and not {steps}")
    return (MOMENTS[-1] - MOMENTS[0]) / (steps - 1)


async def _ours(runs: Runs, tool: str, steps: int) -> object:
    view = await runs.submit(Submission(plan=steps_plan(tool, steps)))
    view = await runs.wait(view.run, timeout=120)
    if view.state != "finished":
        raise SystemExit(f"the run of {tool!r} did not finish: {view}")
    return view.answer
