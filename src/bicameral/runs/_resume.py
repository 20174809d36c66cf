"""Resume a run that has begun and not ended, from its record and with the code it was begun with.

Recorded steps are not done again; the rest is done for real, and is counted on top of what previous attempts used. A
call that had begun and not ended may have happened: it is repeated only if that is harmless or a person approves it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

from bicameral.boundary import Executor, executor_facts
from bicameral.errors import BicameralError, JournalError, Place, RunError
from bicameral.journal import Event, EventKind, Journal
from bicameral.labels import Label, Labelled, LabelTree, label_tree_from_json
from bicameral.limits import QUARANTINED_ROLES, RUN, ChamberUsage, Limits, LimitUsage, Meter
from bicameral.plans import Plan, step_time_limits
from bicameral.policy import Allowed, Ask, CallFacts, Denied, Effect, Mode
from bicameral.runs._approvals import ApprovalQuestion, ApprovalResult, PendingCall, Permit, call_hash
from bicameral.runs._call_policy import CallDecision, Decider, Grants, PolicyDecider, RecordedDecider, StepLabels
from bicameral.runs._changes import ChangeHistory
from bicameral.runs._citations import Citation
from bicameral.runs._doubts import Doubt
from bicameral.runs._effects import (
    ONCE_EFFECT,
    LiveEffectHandler,
    OnceWork,
    RunServices,
    extraction_facts,
    once_facts,
    question_facts,
    tool_call_facts,
)
from bicameral.runs._engine import PlanEngine
from bicameral.runs._inputs import StartState
from bicameral.runs._lookups import Lookups
from bicameral.runs._model_calls import AskModel, ModelAnswer, is_cut_off, recorded_error, wait_if_cut_off
from bicameral.runs._observability import EventWriter
from bicameral.runs._outcome import (
    MAX_ALERTS,
    EffectDone,
    Failed,
    Finished,
    Interrupted,
    RunAlert,
    RunOutcome,
    RunUsage,
    Stopped,
)
from bicameral.runs._replacing import ReplaceRule
from bicameral.runs._run import (
    ENGINE_VERSION,
    PreviousAttempts,
    ShouldLeave,
    Workload,
    can_wait,
    claim_doubts,
    plan_telemetry,
    round_number,
    run_attempt,
)
from bicameral.runs._run_record import (
    IN_DOUBT_CODE,
    RecordedEffectHandler,
    RunRecord,
    read_run_record,
    recorded_request,
)
from bicameral.telemetry import Fact
from bicameral.tools import AttachedFile, Registry, Tool
from bicameral.types import Type, to_plain, value_from_json

if TYPE_CHECKING:
    from bicameral.policy import Policy


_STEP_ENDS = ("step-finished", "step-failed")


def previous_attempts(events: Sequence[Event]) -> PreviousAttempts:
    """The usage, alerts and working time of all attempts so far."""
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
    """What all attempts so far have used of each cap."""
    tools = sum(event.kind in ("step-started", "lookup-started") and "tool" in event.body for event in events)
    spent = earlier.usage.spent
    # An extraction that has begun counts, even if its process died before the model replied.
    extractions = sum(event.kind == "step-started" and event.body.get("what") == "extract" for event in events)
    models = max(spent.calls, sum(1 for _ in _charges(events)), extractions)
    return LimitUsage(
        rounds=round_number(events[0].body.get("part_of")),
        calls=tools + models,
        tokens=spent.tokens,
        money=earlier.usage.money,
        seconds=earlier.seconds,
    )


def recorded_outcome(end: Event, events: Sequence[Event]) -> RunOutcome:
    """The outcome of a run that has ended, from its record."""
    body, earlier = end.body, previous_attempts(events)
    written: Mapping[str, LabelTree] = {
        place: label_tree_from_json(each) for place, each in body.get("written", {}).items()
    }
    effects = tuple(EffectDone(each["step"], each["tool"], each["effect"]) for each in body.get("effects", ()))
    seconds = float(body.get("seconds", earlier.seconds))
    rest: dict[str, Any] = {
        "effects": effects,
        "written": written,
        "usage": earlier.usage,
        "alerts": earlier.alerts,
        "doubts": tuple(Doubt.from_json(each) for each in body.get("doubts", ())),
        "citations": tuple(Citation.from_json(each) for each in body.get("citations", ())),
    }
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
    """The charges of all model calls, also of those without a usable reply."""
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
            executor = event.body.get("role") in QUARANTINED_ROLES
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
            # It has the working time of all attempts until then.
            total, began, asked = float(event.body["seconds"]), event.at, 0.0
        elif event.kind == "approval" or (event.kind == "step-finished" and event.step in asks):
            asked += float(event.body.get("seconds", 0.0))
        last = event.at
    return total + max(0.0, last - began - asked)


class ResumingEffectHandler:
    """Answers from the record first, and performs effects only from where the record ends.

    What is recorded must be what the run does now: a step that differs in anything ends the run, since it is then not
    the run that was begun. It is unknown whether a call happened that had begun and not ended: it is made again, with
    the same key, if that is harmless, and otherwise a person is asked.
    """

    def __init__(self, recorded: RecordedEffectHandler, live: LiveEffectHandler, began: Mapping[str, int]) -> None:
        self._recorded = recorded
        self._live = live
        self._began = began
        # Recorded and new effects are one list, in the order of the run.
        self.effects: list[EffectDone] = live.effects
        self.in_flight: set[str] = live.in_flight
        self.activity = live.activity
        recorded.effects = live.effects
        self.selections = recorded.selections = live.selections
        self.citations = recorded.citations = live.citations
        self.changes = live.changes

    async def call(self, step: str, tool: Tool, bound: dict[str, Any], labels: StepLabels | None = None) -> Any:
        if self._has_ended(step, lambda: tool_call_facts(tool, bound), labels):
            return await self._from_record(self._recorded.call(step, tool, bound, labels))
        await wait_if_cut_off()
        if self._recorded.step_state(step) == "begun" and not tool.is_repeatable:
            shown = {name: to_plain(value) for name, value in bound.items()}
            await self._ask_to_repeat(step, tool.name, tool.effect, shown, call_hash(tool, bound))
        return await self._live.call(step, tool, bound, labels)

    async def do_once(self, step: str, name: str, work: OnceWork, read: Label, *, repeatable: bool) -> Labelled[Any]:
        if self._has_ended(step, lambda: once_facts(name), StepLabels({}, read, lambda _: read)):
            return await self._from_record(self._recorded.do_once(step, name, work, read, repeatable=repeatable))
        await wait_if_cut_off()
        if self._recorded.step_state(step) == "begun" and not repeatable:
            await self._ask_to_repeat(step, name, ONCE_EFFECT, {}, "")
        return await self._live.do_once(step, name, work, read, repeatable=repeatable)

    async def wait_if_unrecorded(self, step: str, call: PendingCall | None = None) -> None:
        await self._recorded.wait_if_unrecorded(step, call)

    async def extract(
        self,
        step: str,
        source: Any,
        instruction: str,
        wanted: Type,
        labels: StepLabels | None = None,
        lookups: Lookups | None = None,
    ) -> Any:
        if self._has_ended(step, lambda: extraction_facts(source, instruction, wanted), labels):
            return await self._from_record(self._recorded.extract(step, source, instruction, wanted, labels))
        await wait_if_cut_off()
        return await self._live.extract(step, source, instruction, wanted, labels, lookups)

    async def ask(self, step: str, question: str, wanted: Type, labels: StepLabels | None = None) -> Any:
        if self._has_ended(step, lambda: question_facts(question, wanted), labels):
            return await self._from_record(self._recorded.ask(step, question, wanted, labels))
        await wait_if_cut_off()
        return await self._live.ask(step, question, wanted, labels)

    async def ask_model(self, step: str, facts: dict[str, Any], ask: AskModel) -> ModelAnswer:
        if self._recorded.has_reply(step):
            return await self._from_record(self._recorded.ask_model(step, facts, ask))
        await wait_if_cut_off()
        return await self._live.ask_model(step, facts, ask)

    def limit_steps(self, limits: Mapping[str, float]) -> None:
        self._live.limit_steps(limits)

    def recorded_note(self, step: str) -> Mapping[str, Any] | None:
        return self._recorded.recorded_note(step)

    def has_unused(self, path: str) -> bool:
        return self._recorded.has_unused(path)

    @property
    def is_recorded(self) -> bool:
        return True

    def record_note(self, step: str, facts: dict[str, Any], *, sync: bool = False) -> None:
        if self._recorded.recorded_note(step) is None:
            if not is_cut_off():
                self._live.record_note(step, facts, sync=sync)
            return
        self._recorded.record_note(step, facts)
        self._raise_on_difference()

    async def approve(self, question: ApprovalQuestion) -> ApprovalResult:
        """The recorded answers about these calls; the calls without one are asked about now."""
        permits: Counter[Permit] = Counter()
        still_open: list[PendingCall] = []
        for call in question.calls:
            answers = {step: self._recorded.recorded_answer(step, call) for step in call.steps}
            permits.update((step, call.hash) for step in call.steps if answers[step])
            if steps := [step for step in call.steps if answers[step] is None]:
                still_open.append(call.at_steps(steps))
        if not still_open:
            return ApprovalResult(permits)
        await wait_if_cut_off()
        before = question.before and len(still_open) == len(question.calls)
        now = await self._live.approve(ApprovalQuestion(tuple(still_open), before))
        return ApprovalResult(permits + now.permits, now.grants)

    async def attached_files(self, step: str, tool: Tool, bound: dict[str, Any]) -> tuple[AttachedFile, ...]:
        # A call that was made is compared with the record; one that is still to be made, with the files as they are.
        if self._recorded.step_state(step) == "ended":
            return await self._recorded.attached_files(step, tool, bound)
        return await self._live.attached_files(step, tool, bound)

    def record_held_call(
        self, step: str, kind: EventKind, tool: Tool, bound: dict[str, Any], labels: StepLabels
    ) -> None:
        if not self._recorded.has_held_call(step, kind):
            self._live.record_held_call(step, kind, tool, bound, labels)
            return
        self._recorded.record_held_call(step, kind, tool, bound, labels)
        self._raise_on_difference()

    def check_effects_repeated(self) -> None:
        """Raise if the run has its answer without an effect that is recorded: it took another way."""
        if missing := self._recorded.unused_effects():
            raise _changed_run_error(f"the run did not come to step {missing[0]!r} again, which it had done before")

    async def _from_record(self, answer: Awaitable[Any]) -> Any:
        try:
            return await answer
        finally:
            # Before any step uses the result.
            self._raise_on_difference()

    def _has_ended(self, step: str, facts: Callable[[], dict[str, Any]], labels: StepLabels | None) -> bool:
        """Whether the record has the end of a step. One that is recorded without its end must be the same as now."""
        state = self._recorded.step_state(step)
        if state in ("begun", "held"):
            self._recorded.compare_started(step, facts() if labels is None else facts() | labels.start_facts())
            self._raise_on_difference()
        return state == "ended"

    def _raise_on_difference(self) -> None:
        if self._recorded.differences:
            raise _changed_run_error(self._recorded.differences[0])

    async def _ask_to_repeat(
        self, step: str, name: str, effect: Effect, arguments: Mapping[str, Any], hash_: str
    ) -> None:
        """Ask about a call that may have been made already; only an approval of the repetition makes it again."""
        call = PendingCall(
            step,
            name,
            effect,
            MappingProxyType(dict(arguments)),
            _repeat_hash(step, hash_, self._began.get(step, -1)),
            f"in doubt: {name!r} had begun when the process ended, and may have done it already. Do it again?",
        )
        result = await self.approve(ApprovalQuestion((call,)))
        if not result.permits[step, call.hash]:
            raise RunError(
                IN_DOUBT_CODE,
                f"the call of {name!r} may have happened, and was not to be repeated",
                place=Place(step=step),
                fix="Look whether it happened; a tool that can be repeated should say so (`idempotent`, `keyed`).",
            )


def _repeat_hash(step: str, hash_: str, began: int) -> str:
    """The hash of a repetition: this call, at this step, begun this time. Its approval does not approve the call."""
    text = json.dumps(["in doubt", hash_, step, began])
    return hashlib.sha256(text.encode()).hexdigest()


def _changed_run_error(what: str) -> RunError:
    return RunError(
        "run.changed",
        f"this is not how the run began: {what}",
        fix="Begin a new run, after a look at what this one did: `bicameral runs show`.",
    )


class ResumingDecider:
    """A decider that never allows more than it did before the run was resumed.

    A step that has ended is not decided again. A call that was asked about still is, even if a grant that came later
    in the earlier attempt would cover it now.
    """

    def __init__(self, decider: Decider, recorded: RecordedDecider, ended: Collection[str]) -> None:
        self.mode: Mode = decider.mode
        self.fingerprint = decider.fingerprint
        self.decides_pure = decider.decides_pure
        self._decider = decider
        self._recorded = recorded
        self._ended = ended

    def decide(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> CallDecision:
        if step not in self._recorded.decisions:
            return self._decider.decide(step, facts, values, grants)
        then = self._recorded.decide(step, facts, values, grants)
        if step in self._ended:
            return then
        now = self._decider.decide(step, facts, values, grants)
        match now.decision, then.decision:
            case (Denied(), _) | (Ask(), Allowed()):
                return now
            case _:
                # An earlier version may have begun it on the approval of another call: that is not enough any more.
                return replace(then, permitted=False)

    def allows(self, facts: CallFacts) -> bool:
        return self._decider.allows(facts)


_TRANSIENT_CODES = ("journal.failed", "journal.locked", "journal.lost")


async def resume_plan(
    journal: Journal,
    run: str,
    registry: Registry,
    *,
    policy: Policy | None = None,
    caps: Limits | None = None,
    leaving: ShouldLeave | None = None,
    **services: Unpack[RunServices],
) -> RunOutcome:
    """Continue a run whose process died, that waits, or that was interrupted; its outcome, if it has ended.

    Its plan, start and mode are those of the record. Steps that have ended are not done again; local ones are computed
    again and must give the same. It is refused with `run.other-code`, and can be resumed later, if tools, policy, plan
    or engine are not those it was begun with. The process that resumes a run owns it: another one that still works on
    it cannot record, and so cannot do, anything more.

    Args:
        journal: The journal with the record.
        run: The id of the run.
        registry: The tools.
        policy: The policies. None only for a run that was begun with labels off.
        caps: By default those of the record.
        leaving: As in `run_plan`.
        services: See `RunServices`; an asker or approver may have the answer that the run waits for.
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
    _check_same_code(record, events[0], registry, None if policy is None else PolicyDecider(policy))
    _check_same_executor(record.run, events[0], services.get("extractor"))
    earlier = previous_attempts(events)
    caps = caps or Limits.from_json(events[0].body["caps"], RUN)
    writing = EventWriter(record.run, journal, first=len(events))
    live = LiveEffectHandler(
        writing,
        meter=Meter(caps, before=cap_usage(events, earlier)),
        may_wait=can_wait(events[0].body.get("part_of")),
        changes=ChangeHistory.from_events(events),
        time_limits=step_time_limits(plan),
        **services,
    )
    attempts = 1 + sum(event.kind == "run-resumed" for event in events)

    def start() -> Workload:
        # Takes the run over: another process that had it finds this event at the number of its own next one.
        writing.write("run-resumed", "", {"attempt": attempts + 1})
        return _resume_workload(record, plan, events, registry, live, policy)

    find_doubts = claim_doubts(plan, registry) if events[0].body.get("intent") else None
    return await run_attempt(
        start, writing, live, plan_telemetry(plan), earlier=earlier, leaving=leaving, find_doubts=find_doubts
    )


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
    handler = ResumingEffectHandler(RecordedEffectHandler(record), live, began)
    decider = None if policy is None else ResumingDecider(PolicyDecider(policy), record.decider, record.finished)
    own = () if policy is None else policy.me
    assembled = (record.start or StartState()).assembled_values(plan, registry, recorded_request(facts), own).calls
    return PlanEngine(
        plan,
        registry,
        handler,
        decider,
        record.start,
        caps=live.meter.limits,
        ahead=bool(facts.get("ahead", True)),
        may_ask=frozenset(map(str, facts.get("may_ask", ()))),
        after=handler.check_effects_repeated,
        # Grants of earlier attempts hold from the beginning: every call that is still to be made comes later.
        grants=record.grants,
        assembled=assembled,
        doubts=tuple(Doubt.from_json(each) for each in facts.get("doubts", ())),
        replacing=ReplaceRule.for_request(
            None if facts.get("may_replace") else recorded_request(facts), plan, registry, live.changes.touched
        ),
    )


async def resume_workload(
    journal: Journal,
    run: str,
    registry: Registry,
    make: Callable[[ResumingEffectHandler, Decider, PreviousAttempts], Workload],
    *,
    decider: Decider,
    told: Mapping[str, Fact] | None = None,
    leaving: ShouldLeave | None = None,
    **services: Unpack[RunServices],
) -> RunOutcome:
    """Continue a run without a plan, a conversation or a pattern, as `resume_plan` does one with a plan.

    Args:
        journal: The journal with the record.
        run: The id of the run.
        registry: The tools.
        make: Returns the workload. It must do again what it did, with the recorded replies and results, and comes to
            new ones where the record ends.
        decider: Decides about its calls, as it did when the run was begun.
        told: Facts for telemetry.
        leaving: As in `run_plan`.
        services: See `RunServices`.
    """
    try:
        events = journal.events(run)
    except JournalError as error:
        if error.code in _TRANSIENT_CODES:
            return Interrupted(run, error)
        raise
    record = read_run_record(events, journal)
    if record.end is not None:
        return recorded_outcome(record.end, events)
    first = events[0]
    if "caps" not in first.body or "engine" not in first.body:
        raise _other_code_error(record.run, "it was begun by a version that could not resume it")
    _check_same_code(record, first, registry, decider)
    earlier = previous_attempts(events)
    writing = EventWriter(record.run, journal, first=len(events))
    live = LiveEffectHandler(
        writing,
        meter=Meter(record.caps, before=cap_usage(events, earlier)),
        may_wait=True,
        changes=ChangeHistory.from_events(events),
        **services,
    )
    attempts = 1 + sum(event.kind == "run-resumed" for event in events)
    began = {event.step: event.number for event in events if event.kind == "step-started"}

    def start() -> Workload:
        # Takes the run over: another process that had it finds this event at the number of its own next one.
        writing.write("run-resumed", "", {"attempt": attempts + 1})
        handler = ResumingEffectHandler(RecordedEffectHandler(record), live, began)
        work = make(handler, ResumingDecider(decider, record.decider, record.finished), earlier)
        return _CheckedWorkload(work, handler)

    return await run_attempt(start, writing, live, told or {}, earlier=earlier, leaving=leaving)


@dataclass(slots=True)
class _CheckedWorkload:
    """A resumed workload that must come to every recorded effect again before it has its answer."""

    work: Workload
    handler: ResumingEffectHandler

    async def run(self) -> Any:
        answer = await self.work.run()
        self.handler.check_effects_repeated()
        return answer

    @property
    def answer_labels(self) -> LabelTree | None:
        return self.work.answer_labels

    @property
    def written_labels(self) -> Mapping[str, LabelTree]:
        return self.work.written_labels


def _check_plan_version(first: Event) -> None:
    try:
        version = json.loads(first.body["plan"])["version"]
    except (KeyError, TypeError, ValueError):
        # No plan, or a damaged one: `read_run_record` reports it.
        return
    known = Plan.model_fields["version"].default
    if version != known:
        raise _other_code_error(first.run, f"its plan is of version {version!r}, and this reads {known!r}")


def _resumable_plan(record: RunRecord, first: Event) -> Plan:
    if record.plan is None:
        raise JournalError(
            "journal.no-plan",
            f"run {record.run} is a conversation or a pattern and has no plan, so that it is not resumed here",
            fix="`Agent.resume` and `bicameral runs resume` go on with a pattern; a conversation can only be replayed.",
        )
    if "caps" not in first.body or "engine" not in first.body:
        raise _other_code_error(record.run, "it was begun by a version that could not resume runs")
    return record.plan


def _check_same_code(record: RunRecord, first: Event, registry: Registry, decider: Decider | None) -> None:
    """Raise `run.other-code` unless everything is what the run was begun with."""
    if difference := next(_code_differences(record, first, registry, decider), None):
        raise _other_code_error(record.run, difference)


def _code_differences(record: RunRecord, first: Event, registry: Registry, decider: Decider | None) -> Iterator[str]:
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
    if decider is None and record.mode is not None:
        yield "it was begun under policies, and there are none"
    if decider is not None and record.mode is None:
        yield "it was begun without labels, and there are policies"
    if decider is not None and record.mode is not None and decider.fingerprint != record.policy:
        yield "the policies are others"
    if decider is not None and record.mode is not None and decider.mode != record.mode:
        yield f"control flow counted as {record.mode!r}, and now as {decider.mode!r}"


def _check_same_executor(run: str, first: Event, executor: Executor | None) -> None:
    """Raise `run.other-code` if the rest of a run would be read by another variant of the executor.

    Another model of the same variant may go on: a run may be resumed where other weights are installed.
    """
    began: dict[str, Any] = first.body.get("executor") or {}
    if not began or executor is None:
        return
    now = executor_facts(executor).to_json()
    if any(began.get(name) != now.get(name) for name in ("variant", "tools")) or len(
        began.get("validators", ())
    ) != len(now.get("validators", ())):
        what = f"its texts were read by the variant {began.get('variant')!r} of the quarantine"
        raise _other_code_error(run, f"{what}, and here by {now['variant']!r} or with other tools or validators")


def _other_code_error(run: str, what: str) -> BicameralError:
    return RunError(
        "run.other-code",
        f"run {run} cannot be resumed here: {what}",
        fix="Resume it with what it was begun with, or begin a new run.",
    )
