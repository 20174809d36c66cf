"""The choice among several plans for one request.

Where the first plan is doubtful, more are drawn (`planning.draw_plans`). Three judges decide, one after the other:

1. The request: only the plans that fit the intent best go on. Neither the world nor a model has a word in this.
2. The person, if these plans differ in what they change, in what directs that, or in what they read for it, unless most
   of the plans that were written agree with the first one, which is the most probable, or all of them would do the same
   here: to read the notes with or without subfolders is one thing where there are none.
3. The world, among plans with the same effects: one whose words cannot be bound, or that would select nothing, stands
   behind one that selects something. Of several answers the one that most plans give is taken; if these are not more
   than half, a person is asked before an effect, and an answer says that it is doubtful.

The third is safe for these reasons. Whoever wrote a file or a mail can only move the choice among plans that the model
wrote from the request alone, that pass the same check, and that have the same effects under the same conditions, with
the same directing values and readings: to make a graver one win is not in their power. What is learnt about the world
goes into no prompt, and is forgotten when the choice is made. And the choice is a branch like any other, so the plan
that is taken starts with the label of all that was read to take it: in a strict run a person is asked before a
stranger's text that decided between two contents of a mail makes it go out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from bicameral.agent._dry_run import NOT_RUN, DryRun, dry_run, planned_effects
from bicameral.errors import PlanError
from bicameral.labels import TRUSTED_USER, UNKNOWN, Label, join_all
from bicameral.planning import (
    CompiledPlan,
    DrawnPlans,
    EffectCall,
    Intent,
    best_fitting,
    differing_lines,
    effects_of,
    is_stop,
)
from bicameral.plans import PlanLimits
from bicameral.runs import Asker, Doubt, StartState, check_plan
from bicameral.tools import Registry
from bicameral.types import STR

if TYPE_CHECKING:
    from bicameral.binding import PlanBinder
    from bicameral.policy import Policy

DecidedBy = Literal["only", "fit", "votes", "world", "person", "order"]
"""Who decided: there was only one plan; the request; most of the drawn plans; the world; the person; or nobody, so that
the first plan was taken."""
MOST_OFFERED = 4


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """The plan that was taken, and why.

    Args:
        compiled: The plan.
        by: Who decided.
        drawn: All plans that may have been taken.
        start: What its run starts with: the label of what was read to choose it.
        doubts: What is not sure about the choice.
    """

    compiled: CompiledPlan
    by: DecidedBy = "only"
    drawn: DrawnPlans | None = None
    start: StartState = field(default_factory=StartState)
    doubts: tuple[Doubt, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For the journal: nothing of it depends on the contents of the world but which plan was taken."""
        if self.drawn is None or not self.drawn.doubts:
            return {}
        taken = next(place for place, plan in enumerate(self.drawn.plans) if plan.plan is self.compiled.plan)
        return {
            "reasons": [doubt.kind for doubt in self.drawn.doubts],
            "drawn": self.drawn.drawn,
            "different": len(self.drawn.plans),
            "votes": list(self.drawn.votes),
            "taken": taken,
            "by": self.by,
        }


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What the world says of a plan."""

    compiled: CompiledPlan
    questions: int
    passes: bool
    dry: DryRun
    label: Label

    @property
    def rank(self) -> tuple[int, bool, bool]:
        return -self.questions, self.passes, self.dry.selected != "nothing"


class PlanChooser:
    """Chooses one of several plans for a request.

    Args:
        registry: The real tools.
        policy: The policies that plans and dry runs are checked by.
        limits: The limits of plans.
        binder: Binds without a model and without a person: a choice among plans asks neither.
        asker: The person, if there is one.

    Example:
        >>> choice = await PlanChooser(registry, policy, limits, binder, asker).choose(drawn, intent)
        >>> choice.by
        'world'
    """

    def __init__(
        self, registry: Registry, policy: Policy, limits: PlanLimits, binder: PlanBinder, asker: Asker | None
    ) -> None:
        self._registry, self._policy, self._limits = registry, policy, limits
        self._binder, self._asker = binder, asker

    async def choose(self, drawn: DrawnPlans, intent: Intent) -> PlanChoice:
        """The plan to use. A PlanError `plan.several` if the person does not say which is meant."""
        if len(drawn.plans) == 1:
            return PlanChoice(drawn.plans[0], "only", drawn)
        best = [drawn.plans[place] for place in best_fitting(drawn.plans, intent, self._registry)]
        if len(best) == 1:
            return PlanChoice(best[0], "fit", drawn)
        groups: dict[tuple[EffectCall, ...], list[CompiledPlan]] = {}
        for plan in best:
            groups.setdefault(effects_of(plan.plan, self._registry).calls, []).append(plan)
        # Before anything of the world is read: nothing in it can remove the plan that a person would have chosen. The
        # votes are the model's own, for the request alone.
        agreed = _majority(drawn, list(groups.values()))
        if agreed is None or agreed[0] is not best[0]:
            return await self._choose_effects(drawn, [group[0] for group in groups.values()])
        best = agreed
        calls = effects_of(best[0].plan, self._registry).calls
        if calls and self._asker is None:
            # The world's choice would need the person's yes before the effect, and nobody is there to give it.
            return self._take_first(drawn, best, TRUSTED_USER, StartState())
        return await self._choose_by_world(drawn, best)

    async def _choose_effects(self, drawn: DrawnPlans, plans: Sequence[CompiledPlan]) -> PlanChoice:
        """The person's choice among plans with different effects; without a person the plan that was written first."""
        if self._asker is None:
            return self._take_first(drawn, plans, TRUSTED_USER, StartState())
        if (start := await self._same_effects(plans)) is not None:
            return PlanChoice(plans[0], "world", drawn, start)
        chosen = await self._ask(plans, [NOT_RUN] * len(plans))
        return PlanChoice(chosen, "person", drawn)

    async def _same_effects(self, plans: Sequence[CompiledPlan]) -> StartState | None:
        """What a run starts with if all plans would do the same here; None if they would not, or nobody can tell.

        The world cannot move the choice by this: the first plan is taken, and the others would do nothing else.
        """
        known: list[str] = []
        labels: list[Label] = []
        for compiled in plans:
            bound = await self._binder.bind(compiled.plan)
            if bound.questions or not check_plan(bound.plan, self._registry, self._policy, limits=self._limits).ok:
                return None
            effects, label = await planned_effects(bound.plan, self._registry, self._policy, self._limits)
            if effects is None or (known and effects != known[0]):
                return None
            known.append(effects)
            labels += [label, *(binding.label for binding in bound.bindings)]
        return StartState(read=join_all(labels))

    async def _choose_by_world(self, drawn: DrawnPlans, plans: Sequence[CompiledPlan]) -> PlanChoice:
        """The plan that binds and selects something; if that leaves several with different answers, the person's."""
        found = [await self._evidence(plan) for plan in plans]
        best = max(each.rank for each in found)
        left = [each for each in found if each.rank == best]
        # Also the label of the plans that were not taken: what they read has decided, too.
        start = StartState(read=join_all(each.label for each in found))
        if len(left) == 1:
            return PlanChoice(left[0].compiled, "world", drawn, start)
        if _have_one_answer([each.dry for each in left]):
            by: DecidedBy = "world" if len(left) < len(found) else "order"
            return PlanChoice(left[0].compiled, by, drawn, start)
        groups = _by_answer(left)
        if (agreed := _majority(drawn, groups)) is not None:
            return PlanChoice(agreed[0], "votes", drawn, start)
        changes = bool(effects_of(plans[0].plan, self._registry).calls)
        if changes and self._asker is not None:
            chosen = await self._ask([each.compiled for each in left], [each.dry for each in left])
            return PlanChoice(chosen, "person", drawn, start)
        # An answer that most of them give, however few that are, is the likeliest one. It says that it is a guess.
        most = max(groups, key=lambda group: _votes(drawn, group))
        return self._take_first(drawn, [most[0], *(each for group in groups for each in group)], start.read, start)

    def _take_first(
        self, drawn: DrawnPlans, plans: Sequence[CompiledPlan], label: Label, start: StartState
    ) -> PlanChoice:
        count = len({id(plan) for plan in plans})
        text = f"{count} different plans serve the request equally well, and one of them was taken"
        return PlanChoice(plans[0], "order", drawn, start, (Doubt("several-plans", text, label),))

    async def _evidence(self, compiled: CompiledPlan) -> _Evidence:
        """Bind a plan by rules alone, check it, and do its local readings."""
        bound = await self._binder.bind(compiled.plan)
        labels = [binding.label for binding in bound.bindings]
        if bound.questions:
            # Nobody is asked here: it may be that this plan is not taken.
            return _Evidence(compiled, len(bound.questions), False, NOT_RUN, join_all((*labels, UNKNOWN)))
        if not check_plan(bound.plan, self._registry, self._policy, limits=self._limits).ok:
            return _Evidence(compiled, 0, False, NOT_RUN, join_all((*labels, UNKNOWN)))
        dry = await dry_run(bound.plan, self._registry, self._policy, self._limits)
        return _Evidence(compiled, 0, True, dry, join_all((*labels, dry.label)))

    async def _ask(self, plans: Sequence[CompiledPlan], dry: Sequence[DryRun]) -> CompiledPlan:
        plans = plans[:MOST_OFFERED]
        question = render_question(
            list(differing_lines([each.plan for each in plans], self._registry)), [each.preview for each in dry]
        )
        reply = "" if self._asker is None else str(await self._asker.ask(question, STR)).strip().rstrip(".)")
        if is_stop(reply) or not reply.isdecimal() or not 1 <= int(reply) <= len(plans):
            raise PlanError(
                "plan.several",
                "several plans serve the request, and it was not said which one is meant",
                expected=f"a number from 1 to {len(plans)}",
                fix="Say it more exactly, or answer with a number.",
            )
        return plans[int(reply) - 1]


def render_question(lines: Sequence[Sequence[str]], previews: Sequence[Sequence[str]]) -> str:
    """The question to the person: of each plan what the others do not have, and what it would select.

    The lines are the model's, in the words of the request. The previews may quote the world; hidden characters in them
    are visible already. Only the number of a plan comes back, so nothing of this reaches a planner.
    """
    parts = ["The request can be understood in several ways. Which one is meant?"]
    for number, (own, preview) in enumerate(zip(lines, previews, strict=False), 1):
        parts.append(f"{number}. " + ("\n   ".join(own) or "without these lines"))
        parts += [f"   ({text})" for text in preview]
    return "\n".join(parts)


def _have_one_answer(dry: Sequence[DryRun]) -> bool:
    """Whether all plans are known to give the same answer, and do nothing else."""
    answers = {each.answer for each in dry}
    return len(answers) == 1 and None not in answers


def _by_answer(found: Sequence[_Evidence]) -> list[list[CompiledPlan]]:
    """Plans that would give the same answer together; a plan whose answer is not known alone."""
    groups: dict[object, list[CompiledPlan]] = {}
    for each in found:
        key = id(each) if each.dry.answer is None else ("answer", each.dry.answer)
        groups.setdefault(key, []).append(each.compiled)
    return list(groups.values())


def _votes(drawn: DrawnPlans, plans: Sequence[CompiledPlan]) -> int:
    """How often these plans were written."""
    votes: Mapping[int, int] = {id(plan): count for plan, count in zip(drawn.plans, drawn.votes, strict=True)}
    return sum(votes[id(plan)] for plan in plans)


def _majority(drawn: DrawnPlans, groups: Sequence[list[CompiledPlan]]) -> list[CompiledPlan] | None:
    """The plans that were written more often than all others together; the only group there is."""
    if len(groups) == 1:
        return groups[0]
    most = max(groups, key=lambda group: _votes(drawn, group))
    return most if _votes(drawn, most) * 2 > sum(drawn.votes) else None
