"""What each run must come to: its answer, its effects and its labels, by the inline engine in a world on paper."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.chaos.patterns import storm_model
from benchmarks.chaos.plans import REPLY, Errand
from benchmarks.chaos.tools import registry_over
from benchmarks.chaos.world import PaperWorld
from bicameral.patterns import Answered, Outcome
from bicameral.patterns.kernel import PatternWork, run_pattern
from bicameral.patterns.strategies import ModelPair, Runtime
from bicameral.policy import Policy
from bicameral.runs import Answers, ApprovalQuestion, Event, Finished, Journal, RunOutcome, run_plan
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Registry
from bicameral.types import Type, value_to_json

Labels = Mapping[str, str]
"""The labels of a run by place: those of what went into a step (`0 in`), of what it gave (`0 out`), of the answer."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a run comes to if nothing gets in its way. `effects` are their names in the ledger, in order."""

    answer: Any
    effects: tuple[str, ...]
    labels: Labels


class _Yes:
    async def approve(self, question: ApprovalQuestion) -> Answers:
        return Answers.yes(question.calls)


class _Seven:
    async def ask(self, question: str, type: Type) -> object:
        return REPLY


async def expected(errands: Iterable[Errand]) -> dict[str, Expected]:
    """What is expected of each run, by its ticket."""
    world = PaperWorld()
    registry = registry_over(world)
    policy = policy_over(registry)
    found: dict[str, Expected] = {}
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal.db") as journal:
        for errand in errands:
            begun = len(world.ledger.entries)
            run = f"inline-{errand.ticket}"
            if isinstance(errand.work, PatternWork):
                models = ModelPair(Chambers(storm_model(), Quarantined(storm_model("quarantined"))))
                runtime = Runtime(models, registry, policy, journal=journal, approver=_Yes())
                answer = _answer_of(errand, await run_pattern(errand.work, runtime, run=run))
            else:
                outcome = await run_plan(
                    errand.work, registry, journal=journal, run=run, policy=policy, approver=_Yes(), asker=_Seven()
                )
                answer = _answer_of(errand, outcome)
            effects = tuple(entry.what for entry in world.ledger.entries[begun:])
            found[errand.ticket] = Expected(value_to_json(answer), effects, labels_in(journal.events(run)))
    return found


def _answer_of(errand: Errand, outcome: RunOutcome | Outcome[Any]) -> Any:
    match outcome:
        case Finished(answer=answer) | Answered(value=answer):
            return answer
        case _:
            raise SystemExit(f"{errand.kind!r} does not finish even without a storm: {outcome}")


def policy_over(registry: Registry) -> Policy:
    """The policy of the storm: what follows from the tools' declarations, and nothing else."""
    return Policy.load((), registry)


def labels_in(events: Iterable[Event]) -> dict[str, str]:
    """The labels that a record holds. Of a step that was recorded twice, different labels are kept as both."""
    found: dict[str, str] = {}
    for event in events:
        match event.kind:
            case "step-started":
                held = {name: event.body.get(name) for name in ("shades", "control")}
                place = f"{event.step} in"
            case "step-finished":
                held, place = event.body.get("shade"), f"{event.step} out"
            case "run-finished":
                held, place = event.body.get("shade"), "answer"
            case _:
                continue
        text = json.dumps(held, sort_keys=True)
        if found.setdefault(place, text) != text:
            found[place] += f" and {text}"
    return found
