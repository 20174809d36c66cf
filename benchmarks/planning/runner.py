"""One request in all its worlds: plan, run, judge."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, Literal

from bicameral.agent import Agent
from bicameral.errors import BicameralError
from bicameral.models import ModelRequest, Provider, ScriptedProvider
from bicameral.plans import parse
from bicameral.runs import Failed, Finished, RunOutcome, ending_of_code
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes

from .data import SEED, SIDES, Data, Side
from .facts import as_text, mentions
from .judge import Expected, Outcome, Verdict, effect_beyond
from .person import Person
from .request import Request
from .world import World

TOOLBOXES = ("files", "lines", "tables", "mail", "calendar", "web", "clock", "find")

Ending = Literal["finished", "asked", "refused", "failed"]
"""`finished`: the run ended well; `asked` and `refused`: it said why it does not; `failed`: something broke."""

_NOT_FOUND = (
    "files.missing",
    "files.not-a-file",
    "tables.",
    "mail.not-found",
    "mail.missing",
    "calendar.not-found",
    "calendar.missing",
)
"""Errors that say honestly that something is not there."""
_FOUND_NOTHING = (
    "not found",
    "no such",
    "nothing",
    "none",
    "could not find",
    "does not exist",
    "there is no",
    "i don't know",
    "no hay",
    "nicht gefunden",
    "kein",
    "aucun",
    "introuvable",
)


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a request in one world."""

    side: Side
    solved: bool
    why: str
    ending: Ending
    seconds: float
    plan: str = ""
    repairs: int = 0
    questions: int = 0
    approvals: int = 0
    doubts: int = 0
    tokens: int = 0
    told: str = ""
    """What the person was told or asked when it ended without an answer."""

    @property
    def wrong_confident(self) -> bool:
        """It ended well, without any doubt, and was wrong."""
        return self.ending == "finished" and not self.solved and not self.doubts


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a request in all its worlds."""

    request: Request
    runs: Sequence[Run] = field(default_factory=tuple[Run, ...])

    @property
    def solved(self) -> bool:
        """Right in every world: whoever is right in one alone was lucky."""
        return bool(self.runs) and all(run.solved for run in self.runs)

    @property
    def seconds(self) -> float:
        return sum(run.seconds for run in self.runs)

    @property
    def plan(self) -> str:
        return self.runs[0].plan if self.runs else ""

    @property
    def why(self) -> str:
        return "; ".join(f"{run.side}: {run.why}" for run in self.runs if not run.solved)


@dataclass(frozen=True, slots=True)
class Models:
    """The two models; `cascade` as the agent takes it."""

    privileged: Provider
    quarantined: Provider
    cascade: Mapping[str, Provider] | None = None


def registry_for(world: World) -> Registry:
    """The standard toolbox over a world."""
    folders = Folders(base=world.folder, read=tuple(world.reads), write=tuple(world.writes))
    surroundings = Surroundings(folders, now=lambda: world.now.replace(tzinfo=UTC))
    return load_toolboxes({name: world.settings.get(name, {}) for name in TOOLBOXES}, surroundings)


def reference_plan(request: Request, world: World) -> str:
    """The reference plan of a request as it reads in this world."""
    return world.data.resolve(request.plan).replace("{site}", world.site)


def perfect_reader(data: Data) -> ScriptedProvider:
    """A quarantined model that fills each blank with what the world's author knows to be right."""

    def reply(request: ModelRequest) -> str:
        text = request.messages[-1].text
        source = text.split("<<<\n", 1)[1].rsplit("\n>>>", 1)[0]
        fields = list((request.json_schema or {})["properties"])
        blanks = {name: data.read_blank(source, name) for name in fields}
        return json.dumps(blanks, default=lambda value: value.isoformat())

    return ScriptedProvider(reply)


async def solve(
    request: Request,
    models: Models,
    *,
    deterministic: bool = False,
    sides: Sequence[Side] = SIDES,
    seed: int = SEED,
) -> Result:
    """Plan and run a request in each world.

    The worlds share the cache of plans: where a plan cannot depend on the world, the second one runs the first one's
    plan, and what is bound to the world while it runs is bound anew.
    """
    cache: dict[str, Any] = {}
    runs: list[Run] = []
    port = 0
    for side in sides:
        with World(side, seed, port) as world:
            port = world.port
            agent = Agent(
                registry_for(world),
                privileged=models.privileged,
                quarantined=models.quarantined,
                cascade=models.cascade,
                cache=cache,
                now=lambda: world.now,
            )
            runs.append(await _run_in(world, request, agent, deterministic=deterministic))
    return Result(request, tuple(runs))


async def solve_by_plan(
    request: Request, *, plan: str | None = None, sides: Sequence[Side] = SIDES, seed: int = SEED
) -> Result:
    """The reference plan of a request, or another one in its form, in each world: no model is asked."""
    runs: list[Run] = []
    for side in sides:
        with World(side, seed) as world:
            registry = registry_for(world)
            source = (plan or request.plan).strip() + "\n"
            source = world.data.resolve(source).replace("{site}", world.site)
            agent = Agent(
                registry,
                privileged=ScriptedProvider([], name="planner"),
                quarantined=perfect_reader(world.data),
                cache={},
                now=lambda: world.now,
            )
            runs.append(await _run_in(world, request, agent, source=source))
    return Result(request, tuple(runs))


async def _run_in(
    world: World, request: Request, agent: Agent, *, source: str | None = None, deterministic: bool = False
) -> Run:
    started = time.perf_counter()
    text = request.text.replace("{site}", world.site)
    person = Person(request, world.data)
    plan, repairs, outcome, error = source or "", 0, None, None
    written: list[str] = []
    try:
        if source is not None:
            outcome = await agent.run(parse(source, agent.registry).plan, approver=person, asker=person)
        else:
            planned = await agent.plan(text, deterministic=deterministic, asker=person, watch=written.append)
            plan, repairs = planned.source, planned.repairs
            outcome = await agent.run(planned, approver=person, asker=person)
    except BicameralError as failure:
        error = failure
    if isinstance(outcome, Failed):
        error = outcome.error
    ending = ending_of(outcome, error, person)
    answer = outcome.answer if isinstance(outcome, Finished) else None
    told = None if error is None else str(error)
    seen = Outcome(world, answer, world.sent(), told, text)
    verdict = judge_run(request, seen, ending, "" if error is None else error.code)
    return Run(
        world.data.side,
        verdict.ok,
        verdict.why if error is None or verdict.ok else f"{error.code}: {verdict.why}",
        ending,
        time.perf_counter() - started,
        # Of a request that was not planned, the statements of all attempts.
        plan or "\n".join(written),
        repairs,
        person.questions,
        person.approvals,
        len(getattr(outcome, "doubts", ())),
        agent.ledger.tokens,
        told or "",
    )


def ending_of(outcome: RunOutcome | None, error: BicameralError | None, person: Person) -> Ending:
    """How a run ended, whether or not that was right."""
    if person.stopped:
        return "asked"
    if isinstance(outcome, Finished):
        return "finished"
    if error is None:
        return "failed"
    match ending_of_code(error.code):
        case "asked":
            return "asked"
        case "refused" | "denied" | "invalid":
            return "refused"
        case _:
            return "refused" if error.code.startswith("policy.") else "failed"


def judge_run(request: Request, outcome: Outcome, ending: Ending, code: str) -> Verdict:
    """The verdict over a run: of a request that cannot be served, only an honest end without any effect is right."""
    if request.obstacle is None:
        if ending == "finished":
            return request.judge(outcome)
        return Verdict(False, effect_beyond(outcome, Expected()) or f"it ended as {ending}")
    if why := effect_beyond(outcome, Expected()):
        return Verdict(False, why)
    if ending in ("asked", "refused"):
        return Verdict(True)
    if request.obstacle == "missing":
        if ending == "failed" and code.startswith(_NOT_FOUND):
            return Verdict(True)
        text = as_text(outcome.answer)
        if ending == "finished" and len(text) < 200 and any(mentions(text, each) for each in _FOUND_NOTHING):
            return Verdict(True)
    return Verdict(False, f"it ended as {ending}, though this cannot be served")
