"""What a run is given: the checked plan, the state it starts from, and its caps.

`Checked` is the report on a plan and the proof of each call. `StartState` holds variables, labels of written places and
what the planner had read, when a run continues earlier ones. `Caps` limit what all attempts at a run may take together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from bicameral.boundary import HandleContent
from bicameral.errors import BicameralError, JournalError, Place, PlanError, RunError
from bicameral.labels import NOTHING, Label, LabelTree, label_tree_from_json, label_tree_to_json
from bicameral.limits import Asked, Charge
from bicameral.planning import Intent, PlanCheck, check_against_intent
from bicameral.plans import (
    AssembledValues,
    Finding,
    Plan,
    PlanLimits,
    Proof,
    Refused,
    Report,
    RunWork,
    assembled_values,
    check,
    prove,
)
from bicameral.routing import BudgetMeter, Budgets
from bicameral.tools import Registry
from bicameral.types import Type, to_plain, type_from_json, type_to_json, value_from_json, value_to_json

if TYPE_CHECKING:
    from bicameral.policy import Policy


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
    proof = prove(plan, registry, policy.preview, policy.mode, **options)
    found = tuple(_refusal_findings(proof, places))
    if not found and intent is not None and basis.against_intent:
        found = tuple(_intent_findings(plan, intent, registry))
    return Checked(basis, replace(report, findings=(*report.findings, *found)), proof, assembled)


def _intent_findings(plan: Plan, intent: Intent, registry: Registry) -> Iterator[Finding]:
    for each in check_against_intent(plan, intent, registry):
        yield Finding("error" if each.severe else "warning", each.code, each.message)


def _refusal_findings(proof: Proof, places: Mapping[str, Place]) -> Iterator[Finding]:
    for call in proof.calls:
        if isinstance(call.verdict, Refused):
            reason = call.verdict.reason.rstrip(".")
            yield Finding("error", "plan.refused", reason, path=call.step, place=places.get(call.step))


T = TypeVar("T")

Cap = Literal["rounds", "calls", "tokens", "money", "seconds", "work"]
"""What a run can run out of."""
CAPS: tuple[Cap, ...] = ("rounds", "calls", "tokens", "money", "seconds", "work")
_METERED = CAPS[:5]
"""Those that are counted over all attempts; each attempt computes anew what the one before it computed."""
_UNLIMITED = 10**17


@dataclass(frozen=True, slots=True)
class Caps:
    """How much a run may take of each; nothing is begun beyond that, and how it ends is `run.cap`.

    `rounds` are the plans that were written for one request, of which this run is one; `calls` those of tools and of
    models together; `money` is what is known of the models' cost, in the currency of the price table; `seconds` are
    those in which it works, not those in which it waits for a person. Tokens of the last call, which nobody knows
    before it is made, may go beyond. `work` is what its expressions compute: an item gone over, a value compared or
    made, or 64 characters of text are one step each, about 100 ns.
    """

    rounds: int = 20
    calls: int = 20_000
    tokens: int = 5_000_000
    money: float = 10.0
    seconds: float = 3_600.0
    work: int = 100_000_000

    def __post_init__(self) -> None:
        for name in CAPS:
            limit: object = getattr(self, name)
            whole = type(limit) is int or (type(limit) is float and name in ("money", "seconds"))
            if not whole or not 0 < float(limit) < 1e18:  # pyright: ignore[reportArgumentType]
                raise RunError("run.bad-cap", f"a cap of {limit!r} {name} makes no sense", expected="more than 0")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Caps:
        # A run that was recorded before there was a limit on its work had none.
        return cls(**{name: facts[name] for name in _METERED}, work=facts.get("work") or _UNLIMITED)

    def new_work_counter(self) -> RunWork:
        """What counts the work of one attempt."""
        return RunWork(self.work, lambda: CapReached("work", self.work, self.work))


class CapReached(RunError):
    """A run has no more of something: `taken` of `limit`."""

    def __init__(self, cap: Cap, taken: float, limit: float) -> None:
        super().__init__(
            "run.cap",
            f"the run has no {cap} left: {taken:g} of {limit:g} are taken",
            fix=f"Ask for less, or allow more: `{cap}` in [limits] of bicameral.toml.",
        )
        self.cap: Cap = cap
        self.taken = taken
        self.limit = limit

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"cap": self.cap, "taken": round(self.taken, 9), "limit": self.limit}


@dataclass(frozen=True, slots=True)
class CapUsage:
    """How much was taken of each."""

    rounds: int = 1
    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0


class CapMeter:
    """Counts what a run takes; before each call of a tool or a model it is asked whether there is some left.

    Models are counted by a purse, as an account of theirs.
    """

    def __init__(self, caps: Caps, before: CapUsage = CapUsage()) -> None:  # noqa: B008 (frozen)
        self.caps = caps
        self._before = before
        self._purse = BudgetMeter(Budgets())
        self._tools = 0
        self._people = 0
        self._working = 0.0
        self._since = time.monotonic()
        self._deadline: asyncio.Timeout | None = None

    @property
    def seconds_worked(self) -> float:
        """The seconds that this attempt has worked."""
        return self._working + (0.0 if self._people else time.monotonic() - self._since)

    @property
    def usage(self) -> CapUsage:
        """What all attempts together have taken."""
        before, spent = self._before, self._purse.spent
        return CapUsage(
            before.rounds,
            before.calls + self._tools + spent.calls,
            before.tokens + spent.tokens + spent.reading,
            before.money + spent.money,
            before.seconds + self.seconds_worked,
        )

    def check(self) -> None:
        """Raise if there is nothing left of something."""
        taken = self.usage
        for cap in _METERED:
            limit, had = getattr(self.caps, cap), getattr(taken, cap)
            # The round that is under way counts already.
            if had > limit or (had == limit and cap != "rounds"):
                raise CapReached(cap, had, limit)

    def count_tool_call(self) -> None:
        """A tool is about to be called."""
        self.check()
        self._tools += 1

    def begin(self, call: Asked) -> None:
        """A model is about to be asked."""
        self.check()
        self._purse.begin(call)

    def end(self, call: Asked, charge: Charge) -> None:
        self._purse.end(call, charge)

    @contextmanager
    def pause_for_person(self) -> Generator[None]:
        """A person is asked: that takes as long as it takes."""
        if not self._people:
            self._working = self.seconds_worked
            self._until(None)
        self._people += 1
        try:
            yield
        finally:
            self._people -= 1
            if not self._people:
                self._since = time.monotonic()
                self._until(self._left)

    async def run_within(self, work: Awaitable[T]) -> T:
        """Do it in the seconds that are left; what is under way then comes to its end as when a run is stopped."""
        deadline = self._deadline = asyncio.timeout(self._left)
        try:
            async with deadline:
                return await work
        except TimeoutError:
            if not deadline.expired():
                raise
            raise CapReached("seconds", self.usage.seconds, self.caps.seconds) from None
        finally:
            self._deadline = None

    @property
    def _left(self) -> float:
        return max(0.0, self.caps.seconds - self.usage.seconds)

    def _until(self, seconds: float | None) -> None:
        if self._deadline is not None and not self._deadline.expired():
            now = asyncio.get_running_loop().time()
            self._deadline.reschedule(None if seconds is None else now + seconds)
