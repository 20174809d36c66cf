"""One request in one world: plan it, run it with the person beside it, and judge what came of it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass
from datetime import UTC
from typing import Any

from bicameral.agent import Agent
from bicameral.errors import BicameralError
from bicameral.models import Provider, ScriptedProvider
from bicameral.runs import Failed, Finished, RunOutcome, Waiting, ending_of_code
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes

from ._facts import as_text
from ._folders import Content, Household
from ._judge import Ending, Expected, Verdict, judge
from ._person import Person
from ._plans import PLANS, fill_days
from ._requests import REQUESTS, SEED, content_of, expected_of
from ._scenario import NOW, Request, World

TOOLBOXES = ("files", "lines", "tables", "mail", "calendar", "clock", "find")
"""The toolboxes of every run; the web is off, since nothing of it is in the folders."""
REFUSAL_FAMILIES = ("find.", "policy.")
"""Errors that tell the person honestly why nothing was done, beside those that `ending_of_code` knows."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one request in one world."""

    id: str
    world: World
    ok: bool
    why: str
    wrong_confident: bool
    attacked: bool
    how: str
    asked: int
    approvals: int
    seconds: float
    plan: str
    answer: str

    @property
    def request(self) -> Request:
        return next(each for each in REQUESTS if each.id == self.id)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def registry_for(home: Household) -> Registry:
    """The standard toolboxes over one household."""
    folders = Folders(base=home.folder, read=home.reads, write=home.writes)
    surroundings = Surroundings(folders, now=lambda: home.now.replace(tzinfo=UTC))
    home.call_at_end(surroundings.close)
    return load_toolboxes({name: home.settings.get(name, {}) for name in TOOLBOXES}, surroundings)


def conclude(outcome: RunOutcome, asked: int) -> Ending:
    """The ending of a run that was carried out."""
    match outcome:
        case Finished():
            doubts = tuple(str(each) for each in getattr(outcome, "doubts", ()))
            return Ending("answered", outcome.answer, doubts, asked)
        case Failed():
            return conclude_error(outcome.error, asked)
        case Waiting():
            return Ending("question", asked=asked)
        case _:
            return Ending("broke", asked=asked, reason=type(outcome).__name__)


def conclude_error(error: BaseException, asked: int) -> Ending:
    """The ending of a request that an error stopped, before or while it ran."""
    code = error.code if isinstance(error, BicameralError) else ""
    match ending_of_code(code):
        case "asked":
            return Ending("question", asked=asked, reason=str(error))
        case "refused":
            return Ending("refused", asked=asked, reason=str(error))
        case _:
            refused = code.startswith(REFUSAL_FAMILIES)
            return Ending("refused" if refused else "broke", asked=asked, reason=str(error))


async def serve_by_plan(
    request: Request,
    world: World,
    quarantined: Provider,
    *,
    source: str | None = None,
    seed: int = SEED,
    seconds: float = 600,
) -> Result:
    """Serve one request with its reference plan, or another one, in place of a planner's; all the rest is the same.

    Args:
        request: The request.
        world: Which of the two worlds of its language.
        quarantined: The model that reads what the world says.
        source: Another plan in the form of the reference plans.
        seed: Decides the facts of the world.
        seconds: Time until a run counts as broken.
    """
    planner = oracle_planner(fill_days(source or PLANS[request.id], request, NOW[world].date()))
    return await serve(request, world, planner, quarantined, seed=seed, seconds=seconds, deterministic=True)


def oracle_planner(plan: str) -> Provider:
    """A planner that writes this plan, however often it is asked; what is wrong with the plan is not mended."""
    return ScriptedProvider(lambda _: f"{plan}```", name="planner", grammars=False)


async def serve(
    request: Request,
    world: World,
    privileged: Provider,
    quarantined: Provider,
    *,
    seed: int = SEED,
    seconds: float = 600,
    content: Content | None = None,
    deterministic: bool = False,
) -> Result:
    """Serve one request in a fresh household, and judge it.

    Args:
        request: The request.
        world: Which of the two worlds of its language.
        privileged: The model that plans.
        quarantined: The model that reads what the world says.
        seed: Decides the facts of the world.
        seconds: Time until a run counts as broken.
        content: Another folder than the world's, such as one with canaries; the oracle stays the world's.
        deterministic: Understand the request by rules alone.
    """
    expected = expected_of(request, world, seed)
    started = time.perf_counter()
    with Household(content or content_of(request.language, world, seed)) as home:
        person = Person(expected, request.language)
        agent = Agent(
            registry_for(home), privileged=privileged, quarantined=quarantined, cache={}, now=lambda: home.now
        )
        plan = ""
        try:
            async with asyncio.timeout(seconds):
                planned = await agent.plan(request.text, asker=person, deterministic=deterministic)
                plan = planned.source
                ending = conclude(await agent.run(planned, asker=person, approver=person), person.asked)
        except (BicameralError, TimeoutError) as error:
            ending = conclude_error(error, person.asked)
        verdict = judge(expected, home, ending)
    return _result(request, world, verdict, ending, person, time.perf_counter() - started, plan)


def _result(
    request: Request, world: World, verdict: Verdict, ending: Ending, person: Person, seconds: float, plan: str
) -> Result:
    return Result(
        id=request.id,
        world=world,
        ok=verdict.ok,
        why=verdict.why,
        wrong_confident=verdict.wrong_confident,
        attacked=verdict.attacked,
        how=ending.how,
        asked=ending.asked,
        approvals=person.approvals,
        seconds=round(seconds, 2),
        plan=plan,
        answer=as_text(ending.answer)[:2000] if ending.how == "answered" else ending.reason[:2000],
    )


def describe(expected: Expected) -> str:
    """What was expected, in one line for a person."""
    if expected.impossible:
        return f"refuse: {expected.impossible}"
    return f"{expected.effect or expected.says} in {expected.place or 'the request'}"
