"""One model, one request: plan, run, judge, and what is needed to say whether the plan would have been doubted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.planning import Outcome, Request, World
from benchmarks.planning.person import Person
from benchmarks.planning.runner import registry_for
from bicameral.agent import Agent
from bicameral.config import Config
from bicameral.errors import BicameralError
from bicameral.limits import Ledger, open_ledger
from bicameral.models import Provider
from bicameral.planning import CompiledPlan, Delta, DoubtCriteria, Intent
from bicameral.plans import print_plan
from bicameral.runs import Failed, Finished, RunOutcome, StepProgress
from bicameral.tools import CHANGING, Registry

NO_THRESHOLD = DoubtCriteria(sure=0.0)
"""Every doubt but the one that depends on a threshold, which is applied when records are summed up."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of a request with one model. `tokens` are those read and written, by role; `fresh` without cached.

    `error` is the code that ended it, and `changed` whether anything that changes the world was begun before. `doubts`
    are kind and reason; `choices` are the tokens of the plan, each with its probability and how much was overruled.
    """

    solved: bool
    why: str
    plan: str = ""
    repairs: int = 0
    seconds: float = 0.0
    error: str | None = None
    changed: bool = False
    tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    fresh: Mapping[str, int] = field(default_factory=dict[str, int])
    doubts: tuple[tuple[str, str], ...] = ()
    choices: tuple[tuple[str, float, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Attempt:
        doubts = tuple((kind, reason) for kind, reason in value.pop("doubts"))
        choices = tuple((text, sure, overruled) for text, sure, overruled in value.pop("choices"))
        return cls(**value, doubts=doubts, choices=choices)


async def attempt(request: Request, model: Provider, quarantined: Provider) -> Attempt:
    """The request with this model as the planner, in a fresh world."""
    started = time.perf_counter()
    compiled, outcome, error, doubts = None, None, None, ()
    begun = _Begun()
    with World() as world, open_ledger() as ledger:
        text = request.text.replace("{site}", world.site)
        agent = Agent(registry_for(world), privileged=model, quarantined=quarantined, cache={}, now=lambda: world.now)
        try:
            intent = await agent.intent(text)
            compiled = await planned(model, intent, agent.registry)
            doubts = doubts_about(compiled, intent, agent.registry)
            outcome = await agent.run(compiled.plan, approver=Person(request, world.data), observer=begun)
        except BicameralError as failure:
            error = failure
        verdict = request.judge(Outcome(world, _answer(outcome), world.sent(), _told(outcome, error), text))
        told = _told(outcome, error)
        return Attempt(
            verdict.ok,
            verdict.why if told is None else f"{told} ({verdict.why})",
            "" if compiled is None else print_plan(compiled.plan, agent.registry),
            0 if compiled is None else compiled.repairs,
            round(time.perf_counter() - started, 2),
            outcome.error.code if isinstance(outcome, Failed) else error.code if error else None,
            begun.changing,
            *spent(ledger),
            doubts,
            choices_of(compiled),
        )


async def planned(model: Provider, intent: Intent, registry: Registry) -> CompiledPlan:
    """A plan as the agent's own Delta would write it, with how sure the model was."""
    config = Config.defaults()
    delta = Delta(
        model,
        limits=config.plan_limits,
        timeout=config.limits.model_timeout,
        repairs=config.limits.repairs,
        confidence=True,
    )
    return await delta.compile(intent, registry)


def doubts_about(compiled: CompiledPlan, intent: Intent, registry: Registry) -> tuple[tuple[str, str], ...]:
    return tuple((doubt.kind, doubt.reason) for doubt in NO_THRESHOLD.find_doubts(compiled, intent, registry))


def choices_of(compiled: CompiledPlan | None) -> tuple[tuple[str, float, float], ...]:
    tokens = () if compiled is None else compiled.confidence
    return tuple((token.text, round(token.probability, 5), round(token.overruled, 5)) for token in tokens)


def spent(ledger: Ledger) -> tuple[dict[str, int], dict[str, int]]:
    """Tokens by role, all of them and those that were not cached."""
    usage = ledger.usage.items()
    return (
        {role: used.prompt + used.output for role, used in usage},
        {role: used.prompt - used.cached + used.output for role, used in usage},
    )


class _Begun:
    """Notes whether a call that changes something was begun."""

    def __init__(self) -> None:
        self.changing = False

    def __call__(self, progress: StepProgress) -> None:
        self.changing = self.changing or progress.facts.get("effect") in CHANGING


def _answer(outcome: RunOutcome | None) -> Any:
    return outcome.answer if isinstance(outcome, Finished) else None


def _told(outcome: RunOutcome | None, error: BicameralError | None) -> str | None:
    if isinstance(outcome, Failed):
        return str(outcome.error)
    return None if error is None else str(error)
