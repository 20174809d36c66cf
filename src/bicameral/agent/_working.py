"""Working with a strategy: what the configuration says of it, and the compiled plan as one of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bicameral.errors import BicameralError, RunError
from bicameral.runs import Failed, Finished, Interrupted, Stopped, Waiting
from bicameral.sessions import counted
from bicameral.strategies import Answered, GaveUp, Params, StrategyName, Taken

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.labels import Labelled
    from bicameral.runs import Approver, Asker, Observer
    from bicameral.strategies import Worked

    from ._agent import Agent

_COMPILED: StrategyName = "compiled"


def configured(config: Config) -> tuple[StrategyName, Params]:
    """The strategy of a configuration and its parameters; the compiled plan, where it says nothing.

    The phase map is not among them: the routers of both chambers have it, and know what comes before it.
    """
    params = config.agent.planning_strategy_params
    return config.agent.planning_strategy or _COMPILED, Params(
        params.max_step_iterations, params.max_steps, params.reflect_every_step
    )


async def compiled(
    agent: Agent,
    request: str | Labelled[str],
    *,
    asker: Asker | None,
    approver: Approver | None,
    observer: Observer | None,
    deterministic: bool,
) -> Worked:
    """Plan the request, check the plan, run it. Without a plan there is no run."""
    started = time.perf_counter()
    with counted() as ledger:
        try:
            planned = await agent.plan(request, asker=asker, deterministic=deterministic)
            outcome = await agent.run(planned, asker=asker, approver=approver, observer=observer)
        except BicameralError as error:
            taken = Taken(0, 0, ledger.spent, time.perf_counter() - started)
            return GaveUp("", _COMPILED, error, (), taken)
    taken = Taken(0, 0, planned.spent + outcome.usage.spent, planned.seconds + outcome.seconds)
    match outcome:
        case Finished(run=run, answer=answer, shade=shade, effects=effects):
            return Answered(run, _COMPILED, answer, shade, (), taken, effects)
        case Failed(run=run, error=error, effects=effects) | Interrupted(run=run, error=error, effects=effects):
            return GaveUp(run, _COMPILED, error, (), taken, effects)
        case Stopped(run=run, effects=effects, in_flight=in_flight):
            stopped = RunError("run.stopped", "the work was stopped")
            return GaveUp(run, _COMPILED, stopped, (), taken, effects, in_flight)
        case Waiting(run=run, effects=effects):
            waits = RunError("run.waits", "the run waits for a person", fix=f"Resume run {run} with the answer.")
            return GaveUp(run, _COMPILED, waits, (), taken, effects)
