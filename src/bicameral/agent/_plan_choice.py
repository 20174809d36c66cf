"""The choice among several plans for one request.

Where the first plan is doubtful, more are drawn (`planning.draw_plans`). Four judges decide, one after the other:

1. The request: only the plans that fit the intent best go on. Neither the world nor a model has a word in this.
2. The model: if at least two thirds of these plans agree with the first one, which is the most probable, in what they
   change, in what directs that and in what they read for it, those go on. Plans that differ only in wording that the
   request leaves free (a subject, a heading) are one plan.
3. The world. Plans that would do the same here are one: to read the notes with or without subfolders is one thing where
   there are none. Among plans that are directed by the same words one whose words cannot be bound, or that would select
   nothing, stands behind one that selects something. Of several answers the one that most plans give is taken.
4. The person, if what is left differs in its effects.

The third is safe for these reasons. What is found in the world never chooses whom or what an effect reaches: a plan is
dropped for what it finds only if the values that direct its effects are computed in the same way as those of the
others, and for what does not bind only if they differ at most in what a column of the same table is called. Otherwise
all plans must do the same, or the person is asked. Whoever wrote a file or a mail can only move the choice among plans
that the model wrote from the request alone and that pass the same check: to make a graver one win is not in their
power. What is learnt about the world goes into no prompt, and is forgotten when the choice is made. And the choice is a
branch like any other, so the plan that is taken starts with the label of all that was read to take it: in a strict run
a person is asked before a stranger's text that decided between two contents of a mail makes it go out.

A plan that was taken although others would have had other effects has the doubt `several-plans`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from bicameral.agent._dry_run import NOT_RUN, DryRun, dry_run
from bicameral.agent._planned_effects import PlannedEffects, find_planned_effects
from bicameral.errors import PlanError
from bicameral.labels import TRUSTED_USER, UNKNOWN, Label, join_all
from bicameral.planning import (
    CompiledPlan,
    DrawnPlans,
    EffectSignature,
    Intent,
    Mention,
    best_fitting,
    describe_effects,
    differing_lines,
    effects_of,
    is_stop,
)
from bicameral.plans import Const, Plan, PlanLimits, Reference, rewrite_steps
from bicameral.runs import Asker, Doubt, StartState, check_plan
from bicameral.tools import Registry
from bicameral.types import STR

if TYPE_CHECKING:
    from bicameral.binding import OtherReading, PlanBinder
    from bicameral.policy import Policy

DecidedBy = Literal["only", "fit", "wording", "votes", "world", "person", "order"]
"""Who decided: there was only one plan; the request; nobody need, since only free wording differs; most of the drawn
plans; the world; the person; or nobody, so that the first plan was taken."""
MOST_OFFERED = 4
NO_CALLS = "[]"
"""The targets of a plan that would have no effect here."""


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """The plan that was taken, and why.

    Args:
        compiled: The plan.
        by: Who decided.
        drawn: All plans that may have been taken.
        start: What its run starts with: the label of what was read to choose it.
        doubts: What is not sure about the choice.
        instead: Why it was written in place of a plan with other readings.
    """

    compiled: CompiledPlan
    by: DecidedBy = "only"
    drawn: DrawnPlans | None = None
    start: StartState = field(default_factory=StartState)
    doubts: tuple[Doubt, ...] = ()
    instead: OtherReading | None = None

    def to_json(self) -> dict[str, Any]:
        """For the journal: nothing of it depends on the contents of the world but which plan was taken."""
        if self.instead is not None:
            return {"by": self.by, self.instead.reason: list(self.instead.words)}
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
    """What the world says of a plan.

    Args:
        compiled: The plan.
        questions: How many of its words rules do not bind.
        passes: Whether it is bound, and passes the check.
        dry: What its local readings select.
        label: Where all of this came from.
        effects: What it would do here.
        written: Its effects as it was written.
        signature: Its effects after binding.
    """

    compiled: CompiledPlan
    questions: int
    passes: bool
    dry: DryRun
    label: Label

    effects: PlannedEffects
    written: EffectSignature
    signature: EffectSignature

    @property
    def rank(self) -> tuple[int, bool, bool]:
        return -self.questions, self.passes, self.dry.selected != "nothing"

    @property
    def key(self) -> object:
        """What the plan would do here; a plan of which nobody can tell is like no other."""
        effects = self.effects
        return (effects.targets, effects.contents) if self.passes and effects.is_comparable else id(self)

    @property
    def directing(self) -> object:
        """What directs the effects of the bound plan, and from which readings that is computed."""
        return [(call.tool, call.directing) for call in self.signature.calls]


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
        places = best_fitting(drawn.plans, intent, self._registry)
        choice = await self._choose_fitting(drawn, [drawn.plans[place] for place in places], intent)
        equal = best_fitting(drawn.plans, intent, self._registry, forms=False)
        if set(equal) <= set(places) or choice.doubts or choice.by == "person":
            return choice
        # Single words of the request ("the sum", "one mail each") ranked plans that are equal otherwise.
        return replace(choice, doubts=(_several_plans(len(equal), TRUSTED_USER),))

    async def _choose_fitting(self, drawn: DrawnPlans, best: Sequence[CompiledPlan], intent: Intent) -> PlanChoice:
        """The plan to use among those that fit the request equally well."""
        if len(best) == 1:
            return PlanChoice(best[0], "fit", drawn)
        signatures = {id(plan): effects_of(plan.plan, self._registry, intent.mentions) for plan in best}
        groups = _group(best, lambda plan: signatures[id(plan)].calls)
        # Before anything of the world is read: nothing in it can remove the plan that a person would have chosen. The
        # votes are the model's own, for the request alone.
        agreed = _clear_majority(drawn, groups)
        if agreed is not None and not signatures[id(agreed[0])].calls:
            choice = await self._choose_answer(drawn, agreed)
            others = len(groups) > 1 and not choice.doubts
            return replace(choice, doubts=(_several_plans(len(best), TRUSTED_USER),)) if others else choice
        plans = best if agreed is None else agreed
        wordings = _group(plans, lambda plan: signatures[id(plan)].meaning)
        if len(wordings) == 1:
            doubtful = len(groups) > 1 or not _agree_in_reading([signatures[id(plan)] for plan in plans])
            return self._take_first(drawn, best if doubtful else plans, "wording", doubtful=doubtful)
        if self._asker is None:
            # The world's choice would need the person's yes before the effect, and nobody is there to give it.
            return self._take_first(drawn, plans, "order")
        representatives = [group[0] for group in wordings]
        choice = await self._choose_effects(drawn, representatives, wordings, signatures, intent.mentions)
        if len(groups) > 1 and choice.by != "person" and agreed is not None:
            return replace(choice, doubts=(_several_plans(len(best), choice.start.read),))
        return choice

    async def _choose_effects(
        self,
        drawn: DrawnPlans,
        plans: Sequence[CompiledPlan],
        wordings: Sequence[Sequence[CompiledPlan]],
        signatures: Mapping[int, EffectSignature],
        mentions: Sequence[Mention],
    ) -> PlanChoice:
        """The choice among plans with effects: by what they would do here, and by the person if that differs."""
        found = [await self._evidence(plan, signatures[id(plan)], mentions) for plan in plans]
        # Also the label of the plans that were not taken: what they read has decided, too.
        start = StartState(read=join_all(each.label for each in found))
        if len({each.written.targets for each in found}) > 1:
            # Directed by other words: only if all of them do the same here it does not matter which is taken. Where no
            # effect is foreseen that is not known, and what the world says removes none of them from the question.
            if len(_group(found, lambda each: each.key)) == 1 and found[0].effects.targets not in (None, NO_CALLS):
                return self._take_known(drawn, found, wordings, start)
            return PlanChoice(await self._ask(plans), "person", drawn)
        left = self._drop_failing(found)
        groups = _group(left, lambda each: each.key)
        if len(groups) == 1:
            return self._take_known(drawn, left, wordings, start)
        if len({str(each.directing) for each in left}) == 1:
            # Whom and what the effects reach is the same in all of them, whatever was found.
            whole = {id(group[0]): group for group in wordings}
            together = [[plan for each in group for plan in whole[id(each.compiled)]] for group in groups]
            if (agreed := _clear_majority(drawn, together)) is not None:
                return self._take_first(drawn, [agreed[0], *plans], "votes", start)
            if not any(each.passes for each in left) and len({each.written.contents for each in left}) == 1:
                # They differ in what is selected or when, in words that rules do not bind: what these mean is asked
                # when the plan is bound, which a person can answer better than which of two words is meant.
                return self._take_first(drawn, [left[0].compiled, *plans], "order", start)
        return PlanChoice(await self._ask([group[0].compiled for group in groups]), "person", drawn, start)

    def _take_known(
        self,
        drawn: DrawnPlans,
        same: Sequence[_Evidence],
        wordings: Sequence[Sequence[CompiledPlan]],
        start: StartState,
    ) -> PlanChoice:
        """The first of plans that do the same here; it is doubtful if they read or answer differently."""
        taken = {id(each.compiled): each for each in same}
        count = sum(len(group) for group in wordings if id(group[0]) in taken)
        agree = _agree_in_reading([each.signature for each in same]) and count == len(same)
        doubts = () if agree else (_several_plans(count, start.read),)
        return PlanChoice(same[0].compiled, "world", drawn, start, doubts)

    def _drop_failing(self, found: Sequence[_Evidence]) -> Sequence[_Evidence]:
        """The plans without those that cannot be bound, or find nothing where others find something.

        Only among plans that are directed by the same words; see the reasons at the top.
        """
        # What is sent to somebody is chosen neither by what can be bound nor by what a search finds: a file or a mail
        # that a stranger puts there would choose which of two readings is told.
        sends = any(self._tells(call.tool) for each in found for call in each.written.calls)
        if sends and len({str(_sources(each.written)) for each in found}) > 1:
            return found
        best = max(each.rank[:2] for each in found)
        left = [each for each in found if each.rank[:2] == best]
        if len({str(each.directing) for each in left}) > 1:
            return left
        return [each for each in left if each.dry.selected != "nothing"] or left

    def _tells(self, name: str) -> bool:
        tool = self._registry.get(name)
        return tool is None or tool.effect != "write" or tool.outbound

    async def _choose_answer(self, drawn: DrawnPlans, plans: Sequence[CompiledPlan]) -> PlanChoice:
        """Of plans without effects the one that binds, selects something, and gives the answer of most."""
        found = [await self._evidence(plan, effects_of(plan.plan, self._registry), ()) for plan in plans]
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
        # An answer that most of them give, however few that are, is the likeliest one. It says that it is a guess.
        most = max(groups, key=lambda group: _votes(drawn, group))
        return self._take_first(drawn, [most[0], *(each for group in groups for each in group)], "order", start)

    def _take_first(
        self,
        drawn: DrawnPlans,
        plans: Sequence[CompiledPlan],
        by: DecidedBy,
        start: StartState | None = None,
        *,
        doubtful: bool = True,
    ) -> PlanChoice:
        start = start or StartState()
        # Nothing was read for a choice without a start, so the doubt tells nothing of the world.
        label = TRUSTED_USER if start == StartState() else start.read
        doubts = (_several_plans(len({id(plan) for plan in plans}), label),) if doubtful else ()
        return PlanChoice(plans[0], by, drawn, start, doubts)

    async def _evidence(
        self, compiled: CompiledPlan, written: EffectSignature, mentions: Sequence[Mention]
    ) -> _Evidence:
        """Bind a plan by rules alone, check it, do its local readings, and note what it would change."""
        bound = await self._binder.bind(compiled.plan)
        labels = [binding.label for binding in bound.bindings]
        signature = effects_of(_with_bound_values(bound.plan), self._registry, mentions)
        passes = not bound.questions and check_plan(bound.plan, self._registry, self._policy, limits=self._limits).ok
        if not passes:
            # Nobody is asked here: it may be that this plan is not taken.
            label, unknown = join_all((*labels, UNKNOWN)), PlannedEffects(None, None)
            return _Evidence(compiled, len(bound.questions), False, NOT_RUN, label, unknown, written, signature)
        dry = await dry_run(bound.plan, self._registry, self._policy, self._limits)
        labels.append(dry.label)
        effects = PlannedEffects(None, None)
        if signature.changes:
            effects = await find_planned_effects(bound.plan, self._registry, self._policy, self._limits, mentions)
            labels.append(effects.label)
        return _Evidence(compiled, 0, True, dry, join_all(labels), effects, written, signature)

    async def _ask(self, plans: Sequence[CompiledPlan]) -> CompiledPlan:
        plans = plans[:MOST_OFFERED]
        question = render_question([each.plan for each in plans], self._registry)
        reply = "" if self._asker is None else str(await self._asker.ask(question, STR)).strip().rstrip(".)")
        if is_stop(reply) or not reply.isdecimal() or not 1 <= int(reply) <= len(plans):
            raise PlanError(
                "plan.several",
                "several plans serve the request, and it was not said which one is meant",
                expected=f"a number from 1 to {len(plans)}",
                fix="Say it more exactly, or answer with a number.",
            )
        return plans[int(reply) - 1]


def render_question(plans: Sequence[Plan], registry: Registry) -> str:
    """The question to the person: of each plan what it would do, in plain sentences.

    They are the model's, in the words of the request: nothing of the world is in them that could persuade the person.
    Only the number of a plan comes back, so nothing of this reaches a planner.
    """
    parts = ["The request can be understood in several ways. Which one is meant?"]
    told = ["\n   ".join(describe_effects(plan, registry)) for plan in plans]
    lines = list(differing_lines(plans, registry))
    for number, (text, own) in enumerate(zip(told, lines, strict=True), 1):
        # Sentences are short: two that read the same are told apart by the lines of their plans.
        clear = text and told.count(text) == 1
        parts.append(f"{number}. " + (text if clear else "\n   ".join(own) or "without these lines"))
    return "\n".join(parts)


def _several_plans(count: int, label: Label) -> Doubt:
    text = f"{count} different plans serve the request equally well, and one of them was taken"
    return Doubt("several-plans", text, label)


def _agree_in_reading(signatures: Sequence[EffectSignature]) -> bool:
    """Whether plans that do the same ask a model for the same, and say what agrees in their answers.

    One answer may say less than another: that is wording.
    """
    first = signatures[0]
    return all(
        each.instructions == first.instructions and (each.answers <= first.answers or each.answers >= first.answers)
        for each in signatures
    )


def _sources(signature: EffectSignature) -> list[tuple[str, ...]]:
    """From which readings the contents of the effects come."""
    return [call.sources for call in signature.calls]


def _with_bound_values(plan: Plan) -> Plan:
    """The plan with what its references are bound to in their place, to compare it with one that says so itself."""

    def value(expr: Any) -> Any:
        return Const(value=expr.bound.value) if isinstance(expr, Reference) and expr.bound is not None else expr

    return plan.model_copy(update={"steps": rewrite_steps(plan.steps, lambda step: step, value)})


_Item = TypeVar("_Item")


def _group(items: Iterable[_Item], key: Callable[[_Item], object]) -> list[list[_Item]]:
    """The items with the same key together, in the order of the first of each."""
    groups: dict[object, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


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


def _clear_majority(drawn: DrawnPlans, groups: Sequence[list[CompiledPlan]]) -> list[CompiledPlan] | None:
    """The group of the first plan if at least two thirds of these plans are in it; the only group there is."""
    return groups[0] if _votes(drawn, groups[0]) * 3 >= 2 * sum(_votes(drawn, group) for group in groups) else None
