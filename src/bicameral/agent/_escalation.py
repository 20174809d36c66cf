"""The plan for a request with all that led to it, and escalation to a larger model's plan.

Escalation happens once, if the run of the first plan failed before it had changed anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from bicameral.binding import Binding, PlanBinding, planning_doubts
from bicameral.errors import ModelError, PlanError
from bicameral.labels import Label, join
from bicameral.limits import ChamberUsage, Role, open_ledger
from bicameral.models import Route, Usage
from bicameral.planning import CompiledPlan, Intent, Mismatch, PlanCascade, Planner
from bicameral.plans import RUN_CODES, Plan, PlanLimits, Proof, Report
from bicameral.runs import Checked, Doubt, Failed, Observer, RunOutcome, StartState, StepProgress, check_plan
from bicameral.telemetry import Fact, Span
from bicameral.tools import CHANGING, Registry
from bicameral.types import Type

if TYPE_CHECKING:
    from bicameral.policy import Policy


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with everything that led to it; `source` is the plan as people read it.

    `checked` is the result of its check. `plan` is run, for `intent`: if one of them is replaced, the plan is checked
    anew.
    """

    intent: Intent
    plan: Plan
    checked: Checked = field(repr=False)
    mismatches: tuple[Mismatch, ...]
    source: str
    repairs: int
    cached: bool
    seconds: float
    usage: Mapping[Role, Usage]
    spent: ChamberUsage = field(default_factory=ChamberUsage)
    """What planning cost, by chamber; the plan's runs are counted separately."""
    route: Route | None = None
    """Which model of a cascade wrote it, and why those before did not."""
    money: float = 0.0
    """The known cost of planning, in the currency of the price table."""
    degraded: tuple[str, ...] = ()
    """How replies were degraded, such as by another model than the configured one."""
    calls: tuple[dict[str, Any], ...] = field(default=(), repr=False, compare=False)
    """The model calls of planning, for the journal."""
    bindings: tuple[Binding, ...] = ()
    """What the words of the plan were bound to; `source` has the words, `plan` what they mean."""
    doubts: tuple[Doubt, ...] = ()
    """What is not sure about the plan; its run says so before the answer."""
    start: StartState = field(default_factory=StartState, repr=False)
    """What its run starts with: the label of what was read to choose it among several."""
    choice: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How it was chosen among several, for the journal; empty if there was no reason to draw more than one."""
    draft: Plan | None = field(default=None, repr=False, compare=False)
    """The plan as its planner may read it, with nothing bound."""
    draft_types: Mapping[str, Type] = field(default_factory=dict[str, Type], repr=False, compare=False)
    """The types of the draft's variables, as a planner may read them."""
    continues: str = ""
    """The run whose result it starts from; its value and labels are read from the journal."""
    reads_material: bool = False
    """Whether its run starts with the text that came with the request."""
    strategy_choice: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Why a plan was written for the request, for the journal; empty unless that was chosen automatically."""

    @property
    def report(self) -> Report:
        """What is wrong with the plan, what it does, and what it costs at worst."""
        return self.checked.report

    @property
    def proof(self) -> Proof | None:
        """What policy decides of each call; None if the report has errors."""
        return self.checked.proof


def record_planned(trace: Span, planned: Planned) -> None:
    """Record the size of a plan, its check and its cost, but not its text."""
    if not trace.is_recording:
        return
    facts: dict[str, Fact] = {
        "bicameral.planning.by": planned.intent.by,
        "bicameral.plan.steps": len(planned.plan.steps),
        "bicameral.plan.ok": planned.report.ok,
        "bicameral.plan.proved": planned.proof is not None and planned.proof.proved,
        "bicameral.plan.cached": planned.cached,
        "bicameral.plan.repairs": planned.repairs,
    }
    if planned.route is not None:
        facts["bicameral.plan.alias"] = planned.route.alias
        facts["bicameral.plan.escalations"] = len(planned.route.attempts)
    trace.set_facts(facts | {f"bicameral.{name}": number for name, number in planned.spent.to_json().items()})


RunPlan: TypeAlias = Callable[..., Awaitable[RunOutcome]]
ESCALATION_CODES = frozenset({*RUN_CODES, "files.missing"})
"""Failures that a better plan may avoid: a missing value, a wrong name."""


class EffectObserver:
    """An observer that passes everything on and notes whether a call that changes something was ever begun.

    An effect that has begun may have happened, however its step ended.
    """

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer
        self.has_changed = False

    def __call__(self, progress: StepProgress) -> None:
        self.has_changed = self.has_changed or progress.facts.get("effect") in CHANGING
        if self._observer is not None:
            self._observer(progress)


@dataclass(frozen=True, slots=True)
class Escalation:
    """Runs a plan, and then a larger model's plan if the first one was at fault and has changed nothing.

    The larger model reads the request and nothing of the run, so the run only decides which of two plans for the same
    request is used. Untrusted text may cause that decision: everything the second plan does carries its label.
    """

    planner: Planner
    planned: Planned
    checked: Checked
    registry: Registry
    policy: Policy
    limits: PlanLimits
    bind: Callable[[Plan], Awaitable[PlanBinding]]

    async def run(self, run: RunPlan, observer: Observer | None, written_by: Mapping[str, Any]) -> RunOutcome:
        begun = EffectObserver(observer)
        outcome = await run(self.checked, observer=begun, **written_by)
        with open_ledger() as ledger:
            compiled = await self._escalated_plan(outcome, begun)
        if compiled is None or not isinstance(outcome, Failed):
            return outcome
        bound = await self.bind(compiled.plan)
        if bound.questions:
            return outcome
        start = StartState(read=join(self.planned.start.read, self._failure_label(outcome)))
        options: dict[str, Any] = {"limits": self.limits, "start": start, "intent": self.planned.intent}
        checked = check_plan(bound.plan, self.registry, self.policy, known=compiled.check, **options)
        if not checked.ok:
            return outcome
        intent, own = self.planned.intent, self.policy.me
        shown = bound.shown_plan(compiled.plan)
        doubts = planning_doubts(
            shown, intent, bound.bindings, self.registry, own, dropped=compiled.dropped, overridden=compiled.overridden
        )
        spent: dict[str, Any] = {"planning": ledger.spent, "planned_by": ledger.records or (), "doubts": doubts}
        # No question before the first step: the failure of the first plan, and not the user, led to this one.
        part: dict[str, Any] = {"start": start, "link": {"instead_of": outcome.run}, "early_approvals": False}
        return await run(checked, observer=observer, **part, **spent)

    async def _escalated_plan(self, outcome: RunOutcome, begun: EffectObserver) -> CompiledPlan | None:
        """The plan of a larger model, if the failure is worth it and there is one; else None."""
        planner, route = self.planner, self.planned.route
        if not isinstance(planner, PlanCascade) or not isinstance(outcome, Failed):
            return None
        if begun.has_changed or outcome.effects or outcome.error.code not in ESCALATION_CODES:
            return None
        if route is None or not planner.can_escalate(route):
            return None
        with suppress(PlanError, ModelError):
            reason = f"its run failed before it changed anything [{outcome.error.code}]"
            return await planner.escalate(route, reason, self.planned.intent, self.registry)
        return None

    def _failure_label(self, outcome: Failed) -> Label:
        from bicameral.patterns.reasoner import label_of_failure, round_failure

        failure = round_failure(outcome.error, self.planned.plan, self.registry, outcome.step)
        return label_of_failure(failure, self.checked.proof, self.registry)
