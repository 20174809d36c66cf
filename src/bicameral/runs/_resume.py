"""Resume a run that was begun and has not ended, from its record and with the code it was begun with.

Recorded steps are not done a second time; the rest is done for real, and counts on top of what previous attempts used.
A call that had begun and not ended may have happened: it is repeated only if that does no harm, or a person says so.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bicameral.boundary import Executor
from bicameral.errors import BicameralError, JournalError, Place, RunError
from bicameral.journal import Event, EventKind, Journal
from bicameral.labels import LabelTree, label_tree_from_json
from bicameral.limits import RUN, ChamberUsage, Limits, LimitUsage, Meter
from bicameral.plans import Plan
from bicameral.policy import Allowed, Ask, CallFacts, Denied
from bicameral.runs._approvals import ApprovalQuestion, ApprovalResult, Approver, PendingCall, Permit, call_hash
from bicameral.runs._call_policy import CallDecision, Grants, PolicyDecider, RecordedDecider, StepLabels
from bicameral.runs._effects import Asker, LiveEffectHandler, extraction_facts, question_facts, tool_call_facts
from bicameral.runs._engine import PlanEngine
from bicameral.runs._inputs import StartState
from bicameral.runs._observability import EventWriter
from bicameral.runs._outcome import (
    MAX_ALERTS,
    EffectDone,
    Failed,
    Finished,
    Interrupted,
    Observer,
    RunAlert,
    RunOutcome,
    RunUsage,
    Stopped,
)
from bicameral.runs._replay import RecordedEffectHandler, RunRecord, read_run_record, recorded_error, recorded_request
from bicameral.runs._run import (
    ENGINE_VERSION,
    PreviousAttempts,
    ShouldLeave,
    Workload,
    plan_telemetry,
    round_number,
    run_attempt,
)
from bicameral.tools import AttachedFile, Registry, Tool
from bicameral.types import Type, to_plain, value_from_json

if TYPE_CHECKING:
    from bicameral.policy import Policy


_STEP_ENDS = ("step-finished", "step-failed")


def previous_attempts(events: Sequence[Event]) -> PreviousAttempts:
    """What all attempts so far cost and noticed, and how long they worked."""
    ended = [event for event in events if event.kind in _STEP_ENDS]
    rejected = Counter(str(event.body["rejected"]) for event in ended if "rejected" in event.body)
    alerts = [RunAlert.from_json(alert) for event in ended for alert in event.body.get("alerts", ())]
    usage = RunUsage(
        _tokens_spent(events),
        dict(rejected),  # pyright: ignore[reportArgumentType]
        sum(event.body.get("outcome") == "not-found" for event in ended),
        len(alerts),
        sum(float(charge.get("money") or 0.0) for charge in _charges(events)),
        tuple(dict.fromkeys(str(event.body["degraded"]) for event in _model_calls(events) if "degraded" in event.body)),
    )
    return PreviousAttempts(usage, tuple(alerts[:MAX_ALERTS]), _seconds_worked(events))


def cap_usage(events: Sequence[Event], earlier: PreviousAttempts) -> LimitUsage:
    """What all attempts so far took of each cap."""
    tools = sum(event.kind == "step-started" and "tool" in event.body for event in events)
    spent = earlier.usage.spent
    # A blank that was begun counts, also if its process died before the model had replied.
    blanks = sum(event.kind == "step-started" and event.body.get("what") == "extract" for event in events)
    models = max(spent.calls, sum(1 for _ in _charges(events)), blanks)
    return LimitUsage(
        rounds=round_number(events[0].body.get("part_of")),
        calls=tools + models,
        tokens=spent.tokens,
        money=earlier.usage.money,
        seconds=earlier.seconds,
    )


def recorded_outcome(end: Event, events: Sequence[Event]) -> RunOutcome:
    """How a run ended, from its record."""
    body, earlier = end.body, previous_attempts(events)
    written: Mapping[str, LabelTree] = {
        place: label_tree_from_json(each) for place, each in body.get("written", {}).items()
    }
    effects = tuple(EffectDone(each["step"], each["tool"], each["effect"]) for each in body.get("effects", ()))
    seconds = float(body.get("seconds", earlier.seconds))
    rest: dict[str, Any] = {"effects": effects, "written": written, "usage": earlier.usage, "alerts": earlier.alerts}
    match end.kind:
        case "run-finished":
            shade = label_tree_from_json(body["shade"]) if "shade" in body else None
            return Finished(end.run, value_from_json(body["answer"]), seconds, shade=shade, **rest)
        case "run-failed":
            return Failed(end.run, recorded_error(body["error"]), end.step, seconds, **rest)
        case _:
            return Stopped(end.run, tuple(body.get("in_flight", ())), seconds, **rest)


def _model_calls(events: Sequence[Event]) -> Iterable[Event]:
    return (event for event in events if event.kind == "model-called")


def _charges(events: Sequence[Event]) -> Iterable[dict[str, Any]]:
    """Every call of a model, also those that came to nothing."""
    for event in events:
        for call in (event.body, *event.body.get("lost_calls", ())):
            yield from call.get("charges", ())


def _tokens_spent(events: Sequence[Event]) -> ChamberUsage:
    """The tokens of all steps that ended, and of model calls in steps that did not."""
    ended = {event.step: event.body.get("spent", {}) for event in events if event.kind in _STEP_ENDS}
    spent = sum((ChamberUsage(**body) for body in ended.values() if body), ChamberUsage())
    for event in _model_calls(events):
        if event.step not in ended:
            tokens = sum(int(charge["prompt"]) + int(charge["output"]) for charge in event.body.get("charges", ()))
            executor = event.body.get("role") == "quarantined"
            spent += ChamberUsage(0, tokens, 0, 1) if executor else ChamberUsage(tokens, 0, 1, 0)
    return spent


def _seconds_worked(events: Sequence[Event]) -> float:
    """The seconds in which the attempts worked, without those in which they waited for a person."""
    total, began, asked = 0.0, events[0].at, 0.0
    last = began
    asks = {event.step for event in events if event.kind == "step-started" and event.body.get("what") == "ask"}
    for event in events:
        if event.kind == "run-resumed":
            total, began, asked = total + max(0.0, last - began - asked), event.at, 0.0
        elif event.kind == "run-waits":
            # It says itself how long all attempts worked until then.
            total, began, asked = float(event.body["seconds"]), event.at, 0.0
        elif event.kind == "approval" or (event.kind == "step-finished" and event.step in asks):
            asked += float(event.body.get("seconds", 0.0))
        last = event.at
    return total + max(0.0, last - began - asked)


class ResumingEffectHandler:
    """Answers from the record first, and touches the world only from where the record ends.

    What was recorded is held against what the run comes to now: a step that differs in anything ends the run, since it
    is then not the run that was begun. Of a call that had begun and not ended nobody knows whether it happened: it is
    made again if that does no harm, with the same key, and otherwise a person is asked.
    """

    def __init__(self, recorded: RecordedEffectHandler, live: LiveEffectHandler, began: Mapping[str, int]) -> None:
        self._recorded = recorded
        self._live = live
        self._began = began
        # What was done and what is being done are one list, in the order of the run.
        self.effects: list[EffectDone] = live.effects
        self.in_flight: set[str] = live.in_flight
        recorded.effects = live.effects

    async def call(self, step: str, tool: Tool, bound: dict[str, Any], note: StepLabels | None = None) -> Any:
        known = self._recorded.step_state(step)
        if known == "ended":
            return await self._from_record(self._recorded.call(step, tool, bound, note))
        if known is not None:
            self._compare_started(step, tool_call_facts(tool, bound), note)
            if known == "begun" and not tool.is_repeatable:
                await self._ask_to_repeat(step, tool, bound)
        return await self._live.call(step, tool, bound, note)

    async def extract(
        self, step: str, source: Any, instruction: str, wanted: Type, note: StepLabels | None = None
    ) -> Any:
        known = self._recorded.step_state(step)
        if known == "ended":
            return await self._from_record(self._recorded.extract(step, source, instruction, wanted, note))
        if known == "begun":
            self._compare_started(step, extraction_facts(source, instruction, wanted), note)
        return await self._live.extract(step, source, instruction, wanted, note)

    async def ask(self, step: str, question: str, wanted: Type, note: StepLabels | None = None) -> Any:
        known = self._recorded.step_state(step)
        if known == "ended":
            return await self._from_record(self._recorded.ask(step, question, wanted, note))
        if known == "begun":
            self._compare_started(step, question_facts(question, wanted), note)
        return await self._live.ask(step, question, wanted, note)

    async def approve(self, question: ApprovalQuestion) -> ApprovalResult:
        """What was said of these calls before, and for those of which nothing was said, what is said now."""
        permits: Counter[Permit] = Counter()
        still_open: list[PendingCall] = []
        for call in question.calls:
            said = {step: self._recorded.recorded_answer(step, call) for step in call.steps}
            permits.update((step, call.hash) for step in call.steps if said[step])
            if steps := [step for step in call.steps if said[step] is None]:
                still_open.append(call.at_steps(steps))
        if not still_open:
            return ApprovalResult(permits)
        before = question.before and len(still_open) == len(question.calls)
        now = await self._live.approve(ApprovalQuestion(tuple(still_open), before))
        return ApprovalResult(permits + now.permits, now.grants)

    async def attached_files(self, step: str, tool: Tool, bound: dict[str, Any]) -> tuple[AttachedFile, ...]:
        # A call that was made is held against the record; one that is still to be made, against the world.
        if self._recorded.step_state(step) == "ended":
            return await self._recorded.attached_files(step, tool, bound)
        return await self._live.attached_files(step, tool, bound)

    async def wait_until_idle(self) -> None:
        await self._live.wait_until_idle()

    def record_held_call(self, step: str, kind: EventKind, tool: Tool, bound: dict[str, Any], note: StepLabels) -> None:
        if not self._recorded.has_held_call(step, kind):
            self._live.record_held_call(step, kind, tool, bound, note)
            return
        self._recorded.record_held_call(step, kind, tool, bound, note)
        self._raise_on_difference()

    def check_effects_repeated(self) -> None:
        """Nothing that was done before may be missing from a run that has come to its end."""
        if missing := self._recorded.unused_effects():
            raise _changed_run_error(f"the run did not come to step {missing[0]!r} again, which it had done before")

    async def _from_record(self, answer: Awaitable[Any]) -> Any:
        try:
            return await answer
        finally:
            # Before anything else is said or done on the strength of it.
            self._raise_on_difference()

    def _compare_started(self, step: str, facts: dict[str, Any], note: StepLabels | None) -> None:
        self._recorded.compare_started(step, facts if note is None else facts | note.start_facts())
        self._raise_on_difference()

    def _raise_on_difference(self) -> None:
        if self._recorded.differences:
            raise _changed_run_error(self._recorded.differences[0])

    async def _ask_to_repeat(self, step: str, tool: Tool, bound: dict[str, Any]) -> None:
        """Ask about a call that may have been made already; only a yes to just that makes it again."""
        call = PendingCall(
            step,
            tool.name,
            tool.effect,
            MappingProxyType({name: to_plain(value) for name, value in bound.items()}),
            _repeat_hash(step, tool, bound, self._began.get(step, -1)),
            f"in doubt: {tool.name!r} had begun when the process ended, and may have done it already. Do it again?",
        )
        said = await self.approve(ApprovalQuestion((call,)))
        if not said.permits[step, call.hash]:
            raise RunError(
                "run.in-doubt",
                f"the call of {tool.name!r} may have happened, and was not to be repeated",
                place=Place(step=step),
                fix="Look whether it happened; a tool that can be repeated should say so (`idempotent`, `keyed`).",
            )


def _repeat_hash(step: str, tool: Tool, bound: Mapping[str, Any], began: int) -> str:
    """What a yes to a repetition is bound to: this call, at this step, begun this time. It is no yes to the call."""
    text = json.dumps(["in doubt", call_hash(tool, bound), step, began])
    return hashlib.sha256(text.encode()).hexdigest()


def _changed_run_error(what: str) -> RunError:
    return RunError(
        "run.changed",
        f"this is not how the run began: {what}",
        fix="Begin a new run, after a look at what this one did: `bicameral runs show`.",
    )


class ResumingDecider(PolicyDecider):
    """Policy decides, and never more kindly than it had decided before the run was taken up again.

    What has been done already is not decided a second time. A call that was to be asked about still is, also if what
    was granted meanwhile comes earlier this time.
    """

    def __init__(
        self,
        policy: Policy,
        decisions: Mapping[str, dict[str, Any]],
        ended: frozenset[str],
        permitted: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(policy)
        self._known = decisions
        self._ended = ended
        self._recorded = RecordedDecider(self.mode, self.fingerprint, decisions, permitted)

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision:
        if step not in self._known:
            return super().decide(step, facts, values, grants)
        then = self._recorded.decide(step, facts, values, grants)
        if step in self._ended:
            return then
        now = super().decide(step, facts, values, grants)
        match now.decision, then.decision:
            case (Denied(), _) | (Ask(), Allowed()):
                return now
            case _:
                # An earlier version may have begun it on a yes to another call: that is not enough any more.
                return replace(then, permitted=False)


_TRANSIENT_CODES = ("journal.failed", "journal.locked", "journal.lost")


async def resume_plan(
    journal: Journal,
    run: str,
    registry: Registry,
    *,
    policy: Policy | None = None,
    extractor: Executor | None = None,
    asker: Asker | None = None,
    approver: Approver | None = None,
    observer: Observer | None = None,
    caps: Limits | None = None,
    leaving: ShouldLeave | None = None,
) -> RunOutcome:
    """Go on with a run whose process died, that waits, or that was interrupted; how it ended, if it has.

    Its plan, what it went on from and its mode are those of the record, and so are the `caps` unless others are given.
    Steps that have ended are not done again; pure ones are computed again and must come out as they did. It is refused,
    and can be resumed later, with `run.other-code` where tools, policy, plan or engine are not those it was begun with.
    Whoever resumes a run has it: another process that still works on it can do nothing more.
    """
    try:
        events = journal.events(run)
    except JournalError as error:
        if error.code in _TRANSIENT_CODES:
            return Interrupted(run, error)
        raise
    _check_plan_version(events[0])
    record = read_run_record(events, journal)
    if record.end is not None:
        return recorded_outcome(record.end, events)
    plan = _resumable_plan(record, events[0])
    _check_same_code(record, events[0], registry, policy)
    earlier = previous_attempts(events)
    caps = caps or Limits.from_json(events[0].body["caps"], RUN)
    writing = EventWriter(record.run, journal, first=len(events))
    live = LiveEffectHandler(
        writing,
        extractor=extractor,
        asker=asker,
        observer=observer,
        approver=approver,
        meter=Meter(caps, before=cap_usage(events, earlier)),
        may_wait="part_of" not in events[0].body,
    )
    attempts = 1 + sum(event.kind == "run-resumed" for event in events)

    def begun() -> Workload:
        # From here on the run is ours: whoever had it finds this event where his next one should go.
        writing.write("run-resumed", "", {"attempt": attempts + 1})
        return _resume_workload(record, plan, events, registry, live, policy)

    return await run_attempt(begun, writing, live, plan_telemetry(plan), earlier=earlier, leaving=leaving)


def _resume_workload(
    record: RunRecord,
    plan: Plan,
    events: Sequence[Event],
    registry: Registry,
    live: LiveEffectHandler,
    policy: Policy | None,
) -> Workload:
    facts = events[0].body
    began = {event.step: event.number for event in events if event.kind == "step-started"}
    hands = ResumingEffectHandler(record.effect_handler, live, began)
    judge = None
    if policy is not None:
        judge = ResumingDecider(policy, record.decisions, frozenset(record.finished), record.permitted)
    may_ask = frozenset(map(str, facts.get("may_ask", ())))
    ahead = bool(facts.get("ahead", True))
    own = () if policy is None else policy.me
    assembled = (record.start or StartState()).assembled_values(plan, registry, recorded_request(facts), own).calls
    engine = PlanEngine(
        plan,
        registry,
        hands,
        judge,
        record.start,
        caps=live.meter.limits,
        ahead=ahead,
        may_ask=may_ask,
        # What was granted before holds from the beginning: every call that is still to be made comes later.
        grants=record.grants,
        assembled=assembled,
    )
    return _ResumedPlan(engine, hands)


@dataclass(frozen=True, slots=True)
class _ResumedPlan:
    """A plan that is run on; it has ended only if it came to everything that was done before."""

    engine: PlanEngine
    hands: ResumingEffectHandler

    async def run(self) -> Any:
        answer = await self.engine.run()
        self.hands.check_effects_repeated()
        return answer

    @property
    def answer_labels(self) -> LabelTree | None:
        return self.engine.answer_labels

    @property
    def written(self) -> dict[str, LabelTree]:
        return self.engine.written


def _check_plan_version(first: Event) -> None:
    try:
        version = json.loads(first.body["plan"])["version"]
    except (KeyError, TypeError, ValueError):
        # No plan at all, or a damaged one: whoever reads the record says so.
        return
    known = Plan.model_fields["version"].default
    if version != known:
        raise _other_code_error(first.run, f"its plan is of version {version!r}, and this reads {known!r}")


def _resumable_plan(record: RunRecord, first: Event) -> Plan:
    if record.plan is None:
        raise JournalError(
            "journal.no-plan",
            f"run {record.run} is a conversation or a pattern and has no plan, so that it cannot be resumed",
            fix="Begin a new one; `bicameral runs show` tells what this one did.",
        )
    if "caps" not in first.body or "engine" not in first.body:
        raise _other_code_error(record.run, "it was begun by a version that could not resume runs")
    return record.plan


def _check_same_code(record: RunRecord, first: Event, registry: Registry, policy: Policy | None) -> None:
    """Refuse to go on with anything else than what the run was begun with."""
    for what in _code_differences(record, first, registry, policy):
        raise _other_code_error(record.run, what)


def _code_differences(record: RunRecord, first: Event, registry: Registry, policy: Policy | None) -> Iterator[str]:
    if first.body["engine"] != ENGINE_VERSION:
        yield f"it was begun by version {first.body['engine']} of the engine, and this is {ENGINE_VERSION}"
    for name, fingerprint in record.tools.items():
        tool = registry.get(name)
        if tool is None:
            yield f"the tool {name!r} is not there any more"
        elif tool.fingerprint != fingerprint:
            yield f"the tool {name!r} has another version or declaration"
        elif (code := first.body.get("code", {}).get(name)) and tool.code and tool.code() != code:
            yield f"the code of the tool {name!r} has changed"
    if policy is None and record.mode is not None:
        yield "it was begun under policies, and there are none"
    if policy is not None and record.mode is None:
        yield "it was begun without labels, and there are policies"
    if policy is not None and record.mode is not None and policy.fingerprint != record.policy:
        yield "the policies are others"
    if policy is not None and record.mode is not None and policy.mode != record.mode:
        yield f"control flow counted as {record.mode!r}, and now as {policy.mode!r}"


def _other_code_error(run: str, what: str) -> BicameralError:
    return RunError(
        "run.other-code",
        f"run {run} cannot be resumed here: {what}",
        fix="Resume it with what it was begun with, or begin a new run.",
    )
