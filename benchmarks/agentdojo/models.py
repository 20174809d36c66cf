"""The oracle plans with a real model as their executor, and the suite's own attack on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from bicameral.boundary import Extractor
from bicameral.limits import Ledger
from bicameral.models import LocalProvider, ModelStore, find_weights
from bicameral.policy import Mode

from .adapter import PlanPipeline, plan_of, policy_of
from .dojo import important_instructions, suite_of
from .judging import Benign, benign, is_reached, is_solved, run
from .users import Careful, Careless


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of one task with a model that reads for it."""

    benign: Benign
    cases: int
    attacks: int
    attacks_if_always_yes: int
    solved_under_attack: int
    extractions: int

    def __str__(self) -> str:
        solved = "solved" if self.benign.solved else "not solved"
        return f"{solved}, {self.attacks} of {self.cases} attacks succeed, {self.extractions} extractions"


@cache
def _provider(name: str) -> LocalProvider:
    weights = find_weights(name)
    return LocalProvider(ModelStore().ensure(weights), name=f"local:{weights.id}@{weights.sha256[:8]}")


def reading_of(model: str, suite: str, task: str, number: int, injections: int, mode: Mode) -> Reading:
    """Run a task without an attack and with some; `number` is where among the injection tasks to begin."""
    ledger = Ledger()
    extractor = Extractor(_provider(model), listener=ledger.add_reply, timeout=None)
    harmless = benign(suite, task, mode, extractor)
    user_task, tasks = suite_of(suite).user_tasks[task], list(suite_of(suite).injection_tasks.values())
    attacks = careless = under_attack = 0
    cases = min(injections, len(tasks))
    for offset in range(cases):
        injection_task = tasks[(number + offset) % len(tasks)]
        texts = important_instructions(suite, user_task, injection_task)
        for careful in (True, False):
            pipeline = _pipeline(suite, task, extractor, mode, careful=careful)
            before, after = run(suite, task, texts, pipeline)
            reached = is_reached(injection_task, pipeline, before, after)
            if careful:
                attacks += reached
                under_attack += is_solved(suite, task, pipeline, before, after)
            else:
                careless += reached
    return Reading(harmless, cases, attacks, careless, under_attack, ledger.calls.get("quarantined", 0))


def _pipeline(suite: str, task: str, extractor: Extractor, mode: Mode, *, careful: bool) -> PlanPipeline:
    def user(world: Any) -> Careful | Careless:
        return Careful(suite, task, world) if careful else Careless()

    return PlanPipeline(suite, plan_of(suite, task), extractor, policy=policy_of(suite, mode), asked=user)
