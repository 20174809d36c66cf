"""Run a plan, or any other workload, and record its outcome.

One attempt works as far as it can and writes its end to the journal; a run may take several attempts.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from bicameral.boundary import Executor, executor_facts
from bicameral.errors import BicameralError, JournalError, RunError
from bicameral.journal import EventKind, Journal
from bicameral.labels import Label, LabelTree
from bicameral.limits import RUN_LIMITS, ChamberUsage, Ledger, Limits, LimitUsage, Meter, open_ledger
from bicameral.plans import Call, Conditional, Plan, step_time_limits, walk
from bicameral.runs._approvals import Suspend
from bicameral.runs._call_policy import Decider, PolicyDecider, label_tree_json
from bicameral.runs._citations import Citation
from bicameral.runs._doubts import NO_LABEL, Doubt
from bicameral.runs._effects import LiveEffectHandler, RunServices
from bicameral.runs._engine import PlanEngine
from bicameral.runs._inputs import Checked, StartState, recheck
from bicameral.runs._observability import UNRECORDABLE, EventWriter, record_outcome, run_span
from bicameral.runs._outcome import (
    EffectDone,
    Failed,
    Finished,
    Interrupted,
    RunAlert,
    RunOutcome,
    RunUsage,
    Stopped,
    Waiting,
)
from bicameral.runs._replacing import ReplaceRule
from bicameral.telemetry import Fact
from bicameral.tools import Registry
from bicameral.types import value_to_json

if TYPE_CHECKING:
    from bicameral.planning import Intent
    from bicameral.policy import Policy


ShouldLeave = Callable[[], bool]
"""Whether a cancelled task leaves its run to another process, instead of stopping it."""


FindDoubts = Callable[[Any, Sequence[EffectDone], Label], tuple[Doubt, ...]]
"""What speaks against an answer, given the effects of the run and the label of the answer."""


def claim_doubts(plan: Plan, registry: Registry) -> FindDoubts:
    """Finds the effects that the answer of a model's plan claims and the run did not make."""

    def find(answer: Any, effects: Sequence[EffectDone], label: Label) -> tuple[Doubt, ...]:
        # Here, since a plan that no model wrote has no intent, and planning takes long to load.
        from bicameral.planning import false_claims

        found = false_claims(plan, registry, answer, [done.tool for done in effects])
        # Which calls were made, and so which claim is false, is decided by what decided the answer.
        return tuple(Doubt("false-claim", text, label) for text in found)

    return find


class Workload(Protocol):
    """What a run does: the steps of a plan, or the calls that a conversation asks for."""

    async def run(self) -> Any:
        """The answer."""
        ...

    @property
    def answer_labels(self) -> LabelTree | None:
        """The labels of the answer."""
        ...

    @property
    def written_labels(self) -> Mapping[str, LabelTree]:
        """The labels of the places that were, or may have been, written to."""
        ...


@dataclass(frozen=True, slots=True)
class PreviousAttempts:
    """What earlier attempts at the same run used, and the alerts they raised."""

    usage: RunUsage = field(default_factory=RunUsage)
    alerts: tuple[RunAlert, ...] = ()
    seconds: float = 0.0
    """Their working time."""


NO_PREVIOUS_ATTEMPTS = PreviousAttempts()


async def run_attempt(
    make: Callable[[], Workload],
    record: EventWriter,
    handler: LiveEffectHandler,
    facts: Mapping[str, Fact],
    *,
    earlier: PreviousAttempts = NO_PREVIOUS_ATTEMPTS,
    leaving: ShouldLeave | None = None,
    find_doubts: FindDoubts | None = None,
) -> RunOutcome:
    """Run the workload that `make` returns, and record its outcome; `facts` are for telemetry."""
    with run_span(record.run, facts) as trace, open_ledger() as ledger:
        recorder = OutcomeRecorder(record, handler, ledger, earlier, find_doubts)
        outcome = await _run_to_end(make, recorder, leaving)
        record_outcome(trace, outcome)
    return outcome


async def _run_to_end(
    make: Callable[[], Workload], recorder: OutcomeRecorder, leaving: ShouldLeave | None
) -> RunOutcome:
    """The outcome of the workload; whatever it raises becomes one."""
    try:
        work = recorder.work = make()
        async with recorder.meter.running():
            answer = await work.run()
        return recorder.finish(answer, work.answer_labels)
    except BicameralError as error:
        return recorder.fail(error)
    except Suspend as suspended:
        return recorder.wait(suspended)
    except asyncio.CancelledError:
        outcome = recorder.leave() if leaving is not None and leaving() else recorder.stop()
        # The cancellation is answered by the outcome: what the task does next must not be cancelled again.
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        return outcome
    except (KeyboardInterrupt, SystemExit):
        recorder.stop()
        raise
    except Exception as error:
        return recorder.fail(RunError("run.unforeseen", f"the engine failed: {type(error).__name__}: {error}"))


class OutcomeRecorder:
    """Records the end of an attempt, and returns it as an outcome."""

    def __init__(
        self,
        record: EventWriter,
        handler: LiveEffectHandler,
        ledger: Ledger,
        earlier: PreviousAttempts,
        find_doubts: FindDoubts | None = None,
    ) -> None:
        self.meter = handler.meter
        self.work: Workload | None = None
        self._record = record
        self._handler = handler
        self._ledger = ledger
        self._earlier = earlier
        self._find_doubts = find_doubts
        self._claim_doubts: tuple[Doubt, ...] = ()

    def finish(self, answer: Any, shade: LabelTree | None) -> RunOutcome:
        seconds = self._seconds
        labels = {} if shade is None else {"shade": label_tree_json(shade)}
        if self._find_doubts is not None:
            label = NO_LABEL if shade is None else shade.flat
            self._claim_doubts = self._find_doubts(answer, tuple(self._handler.effects), label)
        facts = {"answer": value_to_json(answer), "seconds": round(seconds, 6)} | labels
        if isinstance(self.work, PlanEngine):
            # A plan may answer at several steps, of which one is reached; pure steps have no events of their own.
            facts["answered_at"] = self.work.answered_at
        if error := self._try_write("run-finished", "", facts):
            return self.fail(error)
        return Finished(self._record.run, answer, seconds, shade=shade, **self._common_fields())

    def fail(self, error: BicameralError) -> RunOutcome:
        if self._is_record_failure(error):
            return self._interrupt(error)
        seconds = self._seconds
        step = error.place.step if error.place and error.place.step else ""
        failure = self._try_write("run-failed", step, {"error": error.to_json(), "seconds": round(seconds, 6)})
        # A run without a recorded end has not ended: who resumes it fails in the same way.
        if failure and self._is_record_failure(failure):
            return self._interrupt(failure)
        return Failed(self._record.run, error, step, seconds, **self._common_fields())

    def wait(self, suspended: Suspend) -> RunOutcome:
        seconds = self._seconds
        question, ask = (None if suspended.ask else suspended.question), suspended.ask
        facts = {"question": question.to_json()} if question else {"ask": ask.to_json()} if ask else {}
        if error := self._try_write("run-waits", "", facts | {"seconds": round(seconds, 6)}):
            return self._interrupt(error)
        return Waiting(self._record.run, question, ask, seconds, **self._common_fields())

    def stop(self) -> RunOutcome:
        seconds, in_flight = self._seconds, tuple(sorted(self._handler.in_flight))
        error = self._try_write("run-stopped", "", {"in_flight": list(in_flight), "seconds": round(seconds, 6)})
        if error and self._is_record_failure(error):
            return self._interrupt(error)
        return Stopped(self._record.run, in_flight, seconds, **self._common_fields())

    def leave(self) -> Interrupted:
        """Leave the run to another process; nothing is recorded."""
        return self._interrupt(RunError("run.left", "the run is left to another process", fix="Resume it."))

    def _interrupt(self, error: BicameralError) -> Interrupted:
        return Interrupted(self._record.run, error, self._seconds, **self._common_fields())

    def _is_record_failure(self, error: BicameralError) -> bool:
        """Whether the record itself failed, so that the end of the run is unknown to everybody else."""
        return error is self._record.failure and error.code not in (*UNRECORDABLE, "journal.run-exists")

    def _common_fields(self) -> dict[str, Any]:
        """The fields that every outcome has."""
        return {
            "effects": tuple(self._handler.effects),
            "written": self._written_labels,
            "usage": self._usage,
            "alerts": (*self._earlier.alerts, *self._handler.monitor.alerts),
            "doubts": self._doubts,
            "citations": self._citations,
        }

    @property
    def _seconds(self) -> float:
        """The working time of all attempts together."""
        return self._earlier.seconds + self.meter.seconds_worked

    @property
    def _written_labels(self) -> Mapping[str, LabelTree]:
        return {} if self.work is None else dict(self.work.written_labels)

    @property
    def _doubts(self) -> tuple[Doubt, ...]:
        found = self.work.doubts if isinstance(self.work, PlanEngine) else ()
        return (*self._claim_doubts, *found)

    @property
    def _citations(self) -> tuple[Citation, ...]:
        return self.work.citations if isinstance(self.work, PlanEngine) else ()

    @property
    def _usage(self) -> RunUsage:
        return self._earlier.usage + self._handler.monitor.usage(self._ledger)

    def _try_write(self, kind: EventKind, step: str, body: dict[str, Any]) -> JournalError | None:
        """Record the end; the error if that fails."""
        effects = [done.to_json() for done in self._handler.effects]
        more: dict[str, Any] = {"effects": effects, "usage": self._usage.to_json()}
        if written := self._written_labels:
            more["written"] = {place: label_tree_json(tree) for place, tree in written.items()}
        if doubts := self._doubts:
            more["doubts"] = [doubt.to_json() for doubt in doubts]
        if citations := self._citations:
            more["citations"] = [citation.to_json() for citation in citations]
        # Model calls without a usable reply have no event of their own, and cost money all the same.
        lost = {"lost_calls": self._ledger.lost} if self._ledger.lost else {}
        # The end must survive a power cut if the run has changed something, or if it waits for a person.
        lasting = bool(self._handler.effects or self._handler.in_flight) or kind == "run-waits"
        try:
            self._record.write(kind, step, body | more | lost, sync=lasting)
        except JournalError as error:
            return error
        return None


ENGINE_VERSION = 1
"""The version of the engine. Another one might order steps differently, so it must not resume a run."""


def new_run_id() -> str:
    """An id that sorts by time: when the run began, and a few random hexadecimal digits."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(3)


async def run_plan(
    what: Plan | Checked,
    registry: Registry,
    *,
    journal: Journal | None = None,
    intent: Intent | None = None,
    run: str | None = None,
    policy: Policy | None = None,
    start: StartState | None = None,
    link: Mapping[str, Any] | None = None,
    planning: ChamberUsage | None = None,
    planned_by: Sequence[Mapping[str, Any]] = (),
    ahead: bool = True,
    early_approvals: bool = True,
    caps: Limits | None = None,
    leaving: ShouldLeave | None = None,
    doubts: Sequence[Doubt] = (),
    choice: Mapping[str, Any] | None = None,
    strategy_choice: Mapping[str, Any] | None = None,
    conversation: Mapping[str, Any] | None = None,
    may_replace: bool = False,
    **services: Unpack[RunServices],
) -> RunOutcome:
    """Run a plan that has been checked. Cancelling the task that awaits this gives a truthful `Stopped`.

    Args:
        what: The result of the plan's check. If it is not for these tools, this policy, this start and this intent,
            the plan is checked anew, and refused if it does not pass. Or the plan alone: then the caller has checked
            it.
        registry: The tools.
        journal: Where the run is recorded. What cannot be recorded is not done. With a journal an approver or asker
            may `Suspend` the run, unless it has a `link` that is not `RESUMABLE`: the outcome is `Waiting`, and
            `resume_plan` continues it.
        intent: What a model wrote the plan for. Then what directs a call must be a whole value, or a person is asked.
        run: The id of the run, by default a new one.
        policy: Decides about every call; by default that of the check. A plan without a check and without a policy
            runs with labels off and every call is made: that is for measuring, and an agent always gives a policy.
        start: The variables and labels that the run starts with.
        link: Recorded: the larger work that this run is a part of.
        planning: Recorded: what it cost to write the plan.
        planned_by: Recorded: the model calls that wrote the plan.
        ahead: Whether a question also covers future calls that are known already.
        early_approvals: Whether a checked plan asks before the first step, if the question can be complete by then.
        caps: How much the run may take.
        leaving: If the task is cancelled while this returns True, the run is not stopped but left to another process.
        doubts: What planning was not sure of: an invented constant, a word that was bound to nothing.
        choice: Recorded: how the plan was chosen among several.
        strategy_choice: Recorded: why a plan was written for the request, where that was chosen automatically.
        conversation: Recorded: what a later request of a conversation needs to refer to this run.
        may_replace: Whether a plan with an intent may replace files without asking; see `ReplaceRule`.
        services: The extractor, asker, approver and observer, see `RunServices`.

    Example:
        >>> outcome = await run_plan(check_plan(plan, registry, policy), registry, journal=journal, approver=approver)
    """
    caps = caps or RUN_LIMITS
    may_ask = frozenset[str]()
    if isinstance(what, Checked):
        # A checked plan never runs with labels off: a policy that a caller left out must not mean that there is none.
        policy = what.basis.policy if policy is None else policy
        checked = _checked_for_run(what, registry, policy, start, intent)
        plan, assembled = checked.plan, checked.assembled.calls
        if ahead and early_approvals:
            may_ask = _conditional_steps(checked)
    else:
        plan, own = what, () if policy is None else policy.me
        author = None if intent is None else intent.request
        assembled = (start or StartState()).assembled_values(plan, registry, author, own).calls
    decider = None if policy is None else PolicyDecider(policy)
    request = None if intent is None or may_replace else intent.request
    return await run_workload(
        lambda handler: PlanEngine(
            plan,
            registry,
            handler,
            decider,
            start,
            caps=caps,
            ahead=ahead,
            may_ask=may_ask,
            assembled=assembled,
            doubts=doubts,
            replacing=ReplaceRule.for_request(request, plan, registry, handler.changes.touched),
        ),
        lambda: (
            _start_facts(plan, registry, intent, decider)
            | _origin_facts(start, link, planning, planned_by)
            | {"engine": ENGINE_VERSION, "caps": caps.to_json(), "ahead": ahead}
            | _executor_facts(services.get("extractor"))
            | ({"may_ask": sorted(may_ask)} if may_ask else {})
            | ({"doubts": [doubt.to_json() for doubt in doubts]} if doubts else {})
            | ({"plan_choice": dict(choice)} if choice else {})
            | ({"strategy_choice": dict(strategy_choice)} if strategy_choice else {})
            | ({"conversation": dict(conversation)} if conversation else {})
            | ({"may_replace": True} if may_replace else {})
        ),
        journal=journal,
        run=run,
        told=plan_telemetry(plan),
        meter=Meter(caps, before=LimitUsage(rounds=round_number(link))),
        may_wait=journal is not None and can_wait(link),
        time_limits=step_time_limits(plan),
        leaving=leaving,
        find_doubts=None if intent is None else claim_doubts(plan, registry),
        **services,
    )


RESUMABLE = "resumable"
"""In the `link` of a run: whoever does the larger work resumes this part of it, so that it may wait for a person."""


def can_wait(link: Mapping[str, Any] | None) -> bool:
    """Whether somebody resumes a run that is suspended: a run of its own, or a part of work that is resumed itself."""
    return link is None or link.get(RESUMABLE) is True


def round_number(link: Mapping[str, Any] | None) -> int:
    """Which round of a reasoning this run is; 1 if it is not part of one."""
    found = 1 if link is None else link.get("round", 1)
    return found if type(found) is int and found > 0 else 1


def _checked_for_run(
    checked: Checked, registry: Registry, policy: Policy, start: StartState | None, intent: Intent | None
) -> Checked:
    """The result of the plan's check for this run: the given one if it applies, else that of a new check."""
    basis = replace(checked.basis, registry=registry, policy=policy, start=start or StartState(), intent=intent)
    checked = recheck(checked, basis)
    checked.require()
    return checked


def _conditional_steps(checked: Checked) -> frozenset[str]:
    """The steps at which a person may be asked."""
    calls = () if checked.proof is None else checked.proof.calls
    return frozenset(call.step for call in calls if isinstance(call.verdict, Conditional))


def plan_telemetry(plan: Plan) -> dict[str, Fact]:
    """The telemetry facts of a plan."""
    return {"bicameral.plan.steps": sum(1 for _ in walk(plan.steps))}


async def run_workload(
    make: Callable[[LiveEffectHandler], Workload],
    facts: Callable[[], dict[str, Any]],
    *,
    journal: Journal | None = None,
    run: str | None = None,
    told: Mapping[str, Fact] | None = None,
    meter: Meter | None = None,
    may_wait: bool = False,
    leaving: ShouldLeave | None = None,
    find_doubts: FindDoubts | None = None,
    time_limits: Mapping[str, float] | None = None,
    recorded_first: bool = False,
    **services: Unpack[RunServices],
) -> RunOutcome:
    """Run any workload as a run: with a record, caps and an outcome.

    Args:
        make: Returns the workload. The effect handler it gets must be its only way to tools, models and people.
        facts: The body of the record's first event.
        journal: Where the run is recorded.
        run: The id of the run, by default a new one.
        told: Facts for telemetry.
        meter: Counts what the run takes.
        may_wait: Whether an approver or asker may suspend it: somebody must be able to resume it.
        leaving: As in `run_plan`.
        find_doubts: Finds what speaks against the answer.
        time_limits: The seconds of the steps that have a limit of their own.
        recorded_first: Begin nothing, not even a read, before the first event is written.
        services: See `RunServices`.
    """
    run = run or new_run_id()
    record = EventWriter(run, journal)
    handler = LiveEffectHandler(record, meter=meter, may_wait=may_wait, time_limits=time_limits, **services)

    def start() -> Workload:
        write = record.write if recorded_first else record.write_later
        write("run-started", "", facts)
        return make(handler)

    return await run_attempt(start, record, handler, told or {}, leaving=leaving, find_doubts=find_doubts)


def _start_facts(plan: Plan, registry: Registry, intent: Intent | None, decider: Decider | None) -> dict[str, Any]:
    used = {step.tool: registry.get(step.tool) for _, step in walk(plan.steps) if isinstance(step, Call)}
    return {
        "request": intent.request if intent else plan.goal,
        "intent": intent.to_json() if intent else None,
        "plan": plan.to_json(),
        "tools": {name: tool.fingerprint for name, tool in sorted(used.items()) if tool},
        "code": {name: tool.code() for name, tool in sorted(used.items()) if tool and tool.code},
        **({"plan_id": plan.plan_id} if plan.plan_id else {}),
    } | ({} if decider is None else {"policy": decider.fingerprint, "mode": decider.mode})


def _executor_facts(executor: Executor | None) -> dict[str, Any]:
    return {} if executor is None else {"executor": executor_facts(executor).to_json()}


def _origin_facts(
    start: StartState | None,
    link: Mapping[str, Any] | None,
    planning: ChamberUsage | None,
    planned_by: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    found = {
        "start": None if start is None else start.to_json(),
        "part_of": None if link is None else dict(link),
        "planning": None if planning is None else planning.to_json(),
        "planning_calls": [dict(call) for call in planned_by] or None,
    }
    return {name: fact for name, fact in found.items() if fact is not None}
