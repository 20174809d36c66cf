"""Cases: a request, worlds for it, and what the right plan does there. What cannot tell right from wrong is dropped."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bicameral.planning import Intent, understand
from bicameral.planning._decode import refusal_reason

from ..blocks import Block, language_of
from ..sample import Sample, standard_registry
from .contents import Content, make_content
from .facts import Outcome, same
from .mutants import Mutant, mutants
from .needs import Needs, plan_needs
from .runs import Attempt, attempt

VARIANTS = 8
"""So many worlds are tried for a plan."""
WORLDS = 2
"""A plan must be right in so many at least."""


@dataclass(frozen=True, slots=True)
class Case:
    """A request with everything that is needed to judge another plan for it.

    Args:
        place: The block that it is made of.
        request: The request.
        told: What the planner is told.
        plan: The right plan.
        today: The day of the request.
        language: The code of its language.
        variants: The worlds.
        outcomes: What the right plan does in each world.
    """

    place: str
    request: str
    told: str
    plan: str
    today: dt.date
    language: str
    variants: tuple[int, ...] = ()
    outcomes: tuple[Outcome, ...] = ()

    @property
    def needs(self) -> Needs:
        return plan_needs(self.plan)

    @property
    def intent(self) -> Intent:
        return understand(self.request, standard_registry(), self.today)

    def content(self, variant: int) -> Content:
        return make_content(self.needs, self.language, self.today, variant, self.place)

    def to_json(self) -> dict[str, Any]:
        return {
            "place": self.place,
            "request": self.request,
            "told": self.told,
            "plan": self.plan,
            "today": str(self.today),
            "language": self.language,
            "variants": self.variants,
            "outcomes": [each.to_json() for each in self.outcomes],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Case:
        return cls(
            stored["place"],
            stored["request"],
            stored["told"],
            stored["plan"],
            dt.date.fromisoformat(stored["today"]),
            stored["language"],
            tuple(stored["variants"]),
            tuple(Outcome.from_json(each) for each in stored["outcomes"]),
        )


@dataclass(frozen=True, slots=True)
class Dropped:
    """Why there is no case: a code such as `reference: bind.nothing-found` or `branch`, and an example."""

    reason: str
    place: str
    detail: str = ""


@dataclass
class _Trial:
    """The worlds that were chosen so far, and the wrong plans that none of them tells from the right one."""

    left: list[Mutant]
    variants: list[int] = field(default_factory=list[int])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def is_same(self) -> bool:
        """Whether the right plan does the same in all worlds: an answer that is always 1 could be made up."""
        return len(set(self.outcomes)) == 1 and not self.outcomes[0].changes


async def make_case(block: Block, sample: Sample) -> Case | Dropped:
    """A case of a block's filling, with worlds that tell its plan from wrong ones."""
    case = Case(block.place, sample.intent.request, sample.told, sample.plan, sample.today, language_of(block))
    if refusal_reason(case.plan) is not None:
        return _with(case, [0], [Outcome(refused=True)])
    needs, intent = case.needs, sample.intent
    trial = _Trial(list(mutants(case.plan)))
    failed: list[Attempt] = []
    for variant in range(VARIANTS):
        if len(trial.variants) >= WORLDS and not trial.left and not trial.is_same:
            break
        if variant >= VARIANTS // 2 and len(trial.variants) >= WORLDS and not any(m.must_differ for m in trial.left):
            break
        if not trial.variants and len(failed) >= 3:
            break
        content = case.content(variant)
        right = await attempt(case.plan, content, case.today, needs.asked, intent)
        if right.outcome is None:
            failed.append(right)
            continue
        left = [each for each in trial.left if await _does_same(each, right.outcome, content, case, intent)]
        # Beyond the first ones a world is kept only if it tells more wrong plans from the right one, or another answer.
        other = bool(trial.outcomes) and trial.is_same and right.outcome not in trial.outcomes
        if len(trial.variants) < WORLDS or len(left) < len(trial.left) or other:
            trial.variants.append(variant)
            trial.outcomes.append(right.outcome)
            trial.left = left
    if len(trial.variants) < WORLDS:
        # The first failure: later worlds fail for reasons of their own, such as nothing to choose from.
        return Dropped(f"reference: {failed[0].code}", case.place, f"{failed[0].message}\n{case.plan}")
    if surviving := [each for each in trial.left if each.must_differ]:
        return Dropped(f"same outcome: {surviving[0].fault}", case.place, f"{case.plan}---\n{surviving[0].plan}")
    if trial.is_same:
        return Dropped("same outcome: worlds", case.place, case.plan)
    return _with(case, trial.variants, trial.outcomes)


def _with(case: Case, variants: list[int], outcomes: list[Outcome]) -> Case:
    return Case(
        case.place, case.request, case.told, case.plan, case.today, case.language, tuple(variants), tuple(outcomes)
    )


async def _does_same(mutant: Mutant, right: Outcome, content: Content, case: Case, intent: Intent) -> bool:
    wrong = await attempt(mutant.plan, content, case.today, case.needs.asked, intent)
    return wrong.outcome is not None and same(wrong.outcome, right, case.request)


async def judge_plan(case: Case, plan: str) -> tuple[bool, str]:
    """Whether a plan does in every world of a case what the right one does; if not, why."""
    refused = refusal_reason(plan) is not None
    needs, intent = case.needs, case.intent
    for variant, expected in zip(case.variants, case.outcomes, strict=True):
        if expected.refused or refused:
            return expected.refused == refused, "" if expected.refused == refused else "refusal"
        found = await attempt(plan, case.content(variant), case.today, needs.asked, intent)
        if found.outcome is None:
            return False, found.code
        if not same(found.outcome, expected, case.request):
            return False, "outcome"
    return True, ""


def make_case_now(block: Block, sample: Sample) -> Case | Dropped:
    """`make_case` for a process of its own."""
    return asyncio.run(make_case(block, sample))
