"""One wording of a request in a fresh world: plan it, run it, and say what was done."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from bicameral.agent import Agent
from bicameral.errors import BicameralError
from bicameral.models import ScriptedProvider
from bicameral.plans import parse
from bicameral.runs import Failed, Finished

from ..planning.judge import Outcome
from ..planning.person import Person
from ..planning.runner import Ending, Models, ending_of, judge_run, perfect_reader, registry_for
from ..planning.world import World
from .case import Case
from .data import DATA
from .effects import effects_of
from .variants import Kind, Wording


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one wording.

    Attributes:
        id: The case.
        wording: Which wording of it.
        effects: What was done, as `effects_of` tells it.
        right: It was what the request asks for.
        why: What was wrong.
        ending: How the run ended.
        plan: The plan, or what was written of it.
    """

    id: str
    wording: str
    kind: Kind
    text: str
    effects: str
    right: bool
    why: str
    ending: Ending
    seconds: float
    plan: str


@dataclass(slots=True)
class Site:
    """The port of the website, the same for all wordings of a process: it is a part of some requests."""

    port: int = 0


async def run_wording(
    case: Case,
    wording: Wording,
    models: Models,
    *,
    site: Site | None = None,
    deterministic: bool = False,
    seconds: float = 600,
) -> Result:
    """Plan and run one wording.

    Args:
        case: The request.
        wording: Its words.
        models: The two models.
        site: Keeps the port of the website from one wording to the next.
        deterministic: Skip Echo.
        seconds: Time until it counts as failed.
    """
    site = site or Site()
    with World(port=site.port, data=DATA) as world:
        site.port = world.port
        # Nothing is kept from one wording to the next: every plan is made anew.
        agent = Agent(
            registry_for(world),
            privileged=models.privileged,
            quarantined=models.quarantined,
            cascade=models.cascade,
            cache={},
            now=lambda: world.now,
        )
        return await _run_in(world, case, wording, agent, deterministic=deterministic, seconds=seconds)


async def run_reference_plan(case: Case) -> Result:
    """The reference plan of a request: no model is asked."""
    with World(data=DATA) as world:
        agent = Agent(
            registry_for(world),
            privileged=ScriptedProvider([], name="planner"),
            quarantined=perfect_reader(DATA),
            cache={},
            now=lambda: world.now,
        )
        wording = Wording("base", "base", case.request.text)
        source = case.request.plan.replace("{site}", world.site)
        return await _run_in(world, case, wording, agent, source=source)


async def _run_in(
    world: World,
    case: Case,
    wording: Wording,
    agent: Agent,
    *,
    source: str | None = None,
    deterministic: bool = False,
    seconds: float = 600,
) -> Result:
    started = time.perf_counter()
    text = wording.text.replace("{site}", world.site)
    person = Person(case.request, world.data)
    plan, outcome, error = source or "", None, None
    written: list[str] = []
    try:
        async with asyncio.timeout(seconds):
            if source is not None:
                outcome = await agent.run(parse(source, agent.registry).plan, approver=person, asker=person)
            else:
                planned = await agent.plan(text, deterministic=deterministic, asker=person, watch=written.append)
                plan = planned.source
                outcome = await agent.run(planned, approver=person, asker=person)
    except BicameralError as failure:
        error = failure
    except TimeoutError:
        error = BicameralError("run.timeout", f"no result after {seconds:g} seconds")
    if isinstance(outcome, Failed):
        error = outcome.error
    ending = ending_of(outcome, error, person)
    answer = outcome.answer if isinstance(outcome, Finished) else None
    seen = Outcome(world, answer, world.sent(), None if error is None else str(error), text)
    verdict = judge_run(case.request, seen, ending, "" if error is None else error.code)
    return Result(
        case.id,
        wording.key,
        wording.kind,
        wording.text,
        effects_of(case, seen, ending),
        verdict.ok,
        verdict.why if error is None or verdict.ok else f"{error.code}: {verdict.why}",
        ending,
        round(time.perf_counter() - started, 2),
        plan or "\n".join(written),
    )
