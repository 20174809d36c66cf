"""What a run is given: the checked plan and the state it starts from.

`Checked` is the report on a plan and the proof of each call. `StartState` holds variables, labels of written places and
what the planner had read, when a run continues earlier ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from bicameral.boundary import HandleContent
from bicameral.errors import BicameralError, JournalError, Place, PlanError
from bicameral.labels import NOTHING, Label, LabelTree, label_tree_from_json, label_tree_to_json
from bicameral.plans import (
    AssembledValues,
    Finding,
    Plan,
    PlanLimits,
    Proof,
    Refused,
    Report,
    assembled_values,
    check,
    prove,
)
from bicameral.runs._replacing import ReplaceRule, ask_before_replacing, narrow_replaced
from bicameral.tools import Registry
from bicameral.types import Type, to_plain, type_from_json, type_to_json, value_from_json, value_to_json

if TYPE_CHECKING:
    from bicameral.planning import Intent, PlanCheck
    from bicameral.policy import CallFacts, Decision, Policy


_KEYS = {"variables", "written", "read"}
_ASSEMBLED = "assembled"


@dataclass(frozen=True, slots=True)
class StartState:
    """What a run starts with.

    Args:
        variables: Values by name, each with its type and its labels.
        written: The labels of the places that earlier runs wrote to.
        read: The label of what the author of the plan had read of earlier results; everything in the run carries it.
        assembled: The variables that a model's plan assembled, so that they are not whole values.
    """

    variables: Mapping[str, HandleContent] = field(default_factory=dict[str, HandleContent])
    written: Mapping[str, LabelTree] = field(default_factory=dict[str, LabelTree])
    read: Label = NOTHING
    assembled: frozenset[str] = frozenset()

    def assembled_values(
        self, plan: Plan, registry: Registry, request: str | None, own: Collection[str] = ()
    ) -> AssembledValues:
        """Which values that direct calls are assembled by a plan that starts here."""
        before = {name: name in self.assembled for name in self.variables}
        return assembled_values(plan, registry, request, own=own, variables=before)

    @property
    def types(self) -> dict[str, Type]:
        return {name: content.type for name, content in self.variables.items()}

    @property
    def values(self) -> dict[str, Any]:
        """Copies, so that a run cannot change the originals."""
        return {name: to_plain(content.value) for name, content in self.variables.items()}

    @property
    def labels(self) -> dict[str, LabelTree]:
        """The labels of the variables, and of the written places."""
        return {name: content.label_tree for name, content in self.variables.items()} | dict(self.written)

    def to_json(self) -> dict[str, Any]:
        """Everything, for the record of the run."""
        variables = {
            name: {
                "value": value_to_json(content.value),
                "type": type_to_json(content.type),
                "shade": label_tree_to_json(content.label_tree),
            }
            for name, content in self.variables.items()
        }
        written = {place: label_tree_to_json(tree) for place, tree in self.written.items()}
        facts: dict[str, Any] = {"variables": variables, "written": written, "read": label_tree_to_json(self.read)}
        return facts | ({_ASSEMBLED: sorted(self.assembled)} if self.assembled else {})

    @classmethod
    def from_json(cls, value: object) -> StartState:
        """The state that `to_json` wrote; anything else is refused."""
        try:
            facts = cast("dict[str, Any]", value)
            if not isinstance(value, dict) or set(facts) - {_ASSEMBLED} != _KEYS:
                raise ValueError("it has other keys")
            variables = {
                name: HandleContent(
                    value_from_json(each["value"]), type_from_json(each["type"]), label_tree_from_json(each["shade"])
                )
                for name, each in facts["variables"].items()
            }
            written = {place: label_tree_from_json(each) for place, each in facts["written"].items()}
            assembled = frozenset(map(str, facts.get(_ASSEMBLED, ())))
            return cls(variables, written, label_tree_from_json(facts["read"]).flat, assembled)
        except (BicameralError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise JournalError("journal.damaged", f"what a run began with cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class CheckBasis:
    """Everything that a check depends on, so that its result is never used for another plan.

    `intent` is what a model wrote the plan for; None if a person wrote it. `against_intent`: the plan was also checked
    against it.
    """

    plan: Plan
    registry: Registry
    policy: Policy
    limits: PlanLimits = field(default_factory=PlanLimits)
    start: StartState = field(default_factory=StartState)
    intent: Intent | None = None
    against_intent: bool = False
    plan_hash: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan_hash", self.plan.hash)

    def covers(self, other: CheckBasis) -> bool:
        """Whether a check on this basis also holds for the other one. In doubt it does not."""
        # By identity: two policies or registries with equal contents may still decide and call differently, since both
        # contain functions. The hash is for the arguments of a call, a dict that may have been changed.
        same = self.plan is other.plan and self.registry is other.registry and self.policy is other.policy
        if not same or self.plan_hash != other.plan_hash:
            return False
        if (self.limits, self.start, self.intent) != (other.limits, other.start, other.intent):
            return False
        return self.against_intent or not other.against_intent


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a plan's check: the report and the proof. A plan with errors has no proof.

    A call that policy would refuse is an error of the report. `assembled` are the values that the plan assembles and
    that direct calls; `basis` is what was checked.
    """

    basis: CheckBasis
    report: Report
    proof: Proof | None = None
    assembled: AssembledValues = field(default_factory=lambda: AssembledValues({}))

    @property
    def plan(self) -> Plan:
        return self.basis.plan

    @property
    def ok(self) -> bool:
        """Whether the plan may run. Conditional calls may still be asked about."""
        return self.report.ok

    def is_for(self, basis: CheckBasis) -> bool:
        """Whether this result holds for that basis; if not, check anew."""
        return self.basis.covers(basis)

    def require(self) -> None:
        """Raise if the plan may not run."""
        if not self.ok:
            first = self.report.errors[0]
            raise PlanError(first.code, f"the plan does not pass the check: {first}")


def check_plan(
    plan: Plan,
    registry: Registry,
    policy: Policy,
    *,
    limits: PlanLimits | None = None,
    places: Mapping[str, Place] | None = None,
    start: StartState | None = None,
    intent: Intent | None = None,
    against_intent: bool = False,
    known: PlanCheck | None = None,
) -> Checked:
    """Check a plan: what is wrong with it, what it does and costs, and what policy decides of each call. Runs nothing.

    Args:
        plan: The plan.
        registry: The tools that it may call.
        policy: The policies that decide about its calls.
        limits: How much it may do.
        places: The places of its steps in a file, for the findings.
        start: What its run starts with.
        intent: What a model wrote it for. Without one a person wrote it.
        against_intent: Whether to check it against the intent too.
        known: The check that its planner made. It is reused if it is of this very plan, and else made anew.

    Example:
        >>> checked = check_plan(plan, registry, Policy.load((), registry))
        >>> checked.ok, checked.proof.questions
    """
    against_intent = against_intent and intent is not None
    basis = CheckBasis(plan, registry, policy, limits or PlanLimits(), start or StartState(), intent, against_intent)
    return _check_basis(basis, places or {}, known)


def recheck(checked: Checked, basis: CheckBasis) -> Checked:
    """The result of an earlier check if it holds for this basis; otherwise that of a new one."""
    return checked if checked.is_for(basis) else _check_basis(basis, {}, None)


def _check_basis(basis: CheckBasis, places: Mapping[str, Place], known: PlanCheck | None) -> Checked:
    plan, registry, policy, start, intent = basis.plan, basis.registry, basis.policy, basis.start, basis.intent
    scope = start.types
    report = None if known is None else known.report_for(plan, registry, basis.limits, scope)
    if report is None:
        report = check(plan, registry, places=places, limits=basis.limits, scope=scope)
    if not report.ok:
        return Checked(basis, report)
    assembled = start.assembled_values(plan, registry, None if intent is None else intent.request, policy.me)
    options: dict[str, Any] = {"env": start.labels, "read": start.read, "assembled": assembled.calls}
    rule = ReplaceRule.for_request(None if intent is None else intent.request, plan, registry)

    def preview(facts: CallFacts) -> Decision:
        facts = narrow_replaced(rule, facts)
        return ask_before_replacing(policy.preview(facts), facts)

    proof = prove(plan, registry, preview, policy.mode, **options)
    found = tuple(_refusal_findings(proof, places))
    if not found and intent is not None and basis.against_intent:
        found = tuple(_intent_findings(plan, intent, registry, policy.me, continues=bool(start.variables)))
    return Checked(basis, replace(report, findings=(*report.findings, *found)), proof, assembled)


def _intent_findings(
    plan: Plan, intent: Intent, registry: Registry, own: Collection[str], *, continues: bool
) -> Iterator[Finding]:
    # Here, since a plan that no model wrote has no intent, and planning takes long to load.
    from bicameral.planning import check_against_intent

    for each in check_against_intent(plan, intent, registry, settings=own):
        if continues and each.code == "plan.unused-object":
            # What an earlier plan has read is in the variables, and this plan need not name it again.
            continue
        yield Finding("error" if each.severe else "warning", each.code, each.message)


def _refusal_findings(proof: Proof, places: Mapping[str, Place]) -> Iterator[Finding]:
    for call in proof.calls:
        if isinstance(call.verdict, Refused):
            reason = call.verdict.reason.rstrip(".")
            yield Finding("error", "plan.refused", reason, path=call.step, place=places.get(call.step))
