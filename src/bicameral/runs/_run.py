"""Run a plan, or any other workload, and record how it ended.

One attempt does the work as far as it can and writes its end to the journal; a run may take several attempts.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from bicameral.boundary import Executor
from bicameral.errors import BicameralError, JournalError, RunError
from bicameral.journal import EventKind, Journal
from bicameral.labels import LabelTree
from bicameral.limits import RUN_LIMITS, ChamberUsage, Ledger, Limits, LimitUsage, Meter, open_ledger
from bicameral.planning import Intent
from bicameral.plans import Call, Conditional, Plan, walk
from bicameral.runs._approvals import Approver, Suspend
from bicameral.runs._call_policy import Decider, PolicyDecider, label_tree_json
from bicameral.runs._effects import Asker, LiveEffectHandler
from bicameral.runs._engine import PlanEngine
from bicameral.runs._inputs import Checked, StartState, recheck
from bicameral.runs._observability import UNRECORDABLE, EventWriter, record_outcome, run_span
from bicameral.runs._outcome import (
    EffectDone,
    Failed,
    Finished,
    Interrupted,
    Observer,
    RunAlert,
    RunOutcome,
    RunUsage,
    Stopped,
    Waiting,
)
from bicameral.telemetry import Fact
from bicameral.tools import Registry
from bicameral.types import value_to_json

if TYPE_CHECKING:
    from bicameral.policy import Policy


ShouldLeave = Callable[[], bool]
"""Whether a cancelled task leaves its run to another process, instead of stopping it."""


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
    def written(self) -> Mapping[str, LabelTree]:
        """The labels of the places that were, or may have been, written to."""
        ...


@dataclass(frozen=True, slots=True)
class PreviousAttempts:
    """What earlier attempts at the same run came to."""

    usage: RunUsage = field(default_factory=RunUsage)
    alerts: tuple[RunAlert, ...] = ()
    seconds: float = 0.0
    """How long they worked."""


NO_PREVIOUS_ATTEMPTS = PreviousAttempts()


async def run_attempt(
    make: Callable[[], Workload],
    record: EventWriter,
    hands: LiveEffectHandler,
    told: Mapping[str, Fact],
    *,
    earlier: PreviousAttempts = NO_PREVIOUS_ATTEMPTS,
    leaving: ShouldLeave | None = None,
) -> RunOutcome:
    """Do the work that `make` gives, and record how it ended."""
    with run_span(record.run, told) as telling, open_ledger() as ledger:
        ending = OutcomeRecorder(record, hands, ledger, earlier)
        outcome = await _run_to_end(make, ending, leaving)
        record_outcome(telling, outcome)
    return outcome


async def _run_to_end(make: Callable[[], Workload], ending: OutcomeRecorder, leaving: ShouldLeave | None) -> RunOutcome:
    """Do the work to its end, whichever that is."""
    try:
        work = ending.work = make()
        async with ending.meter.running():
            answer = await work.run()
        return ending.finished(answer, work.answer_labels)
    except BicameralError as error:
        return ending.failed(error)
    except Suspend as waits:
        return ending.waiting(waits)
    except asyncio.CancelledError:
        outcome = ending.leave() if leaving is not None and leaving() else ending.stopped()
        # Whoever stopped the run has what he wanted; what the task does next is not to be stopped again.
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        return outcome
    except (KeyboardInterrupt, SystemExit):
        ending.stopped()
        raise
    except Exception as error:
        unforeseen = RunError("run.unforeseen", f"the engine failed: {type(error).__name__}: {error}")
        return ending.failed(unforeseen)


class OutcomeRecorder:
    """The end of an attempt, recorded."""

    def __init__(
        self, record: EventWriter, hands: LiveEffectHandler, ledger: Ledger, earlier: PreviousAttempts
    ) -> None:
        self.meter = hands.meter
        self.work: Workload | None = None
        self._record = record
        self._hands = hands
        self._ledger = ledger
        self._earlier = earlier

    def finished(self, answer: Any, shade: LabelTree | None) -> RunOutcome:
        seconds = self._seconds
        labels = {} if shade is None else {"shade": label_tree_json(shade)}
        facts = {"answer": value_to_json(answer), "seconds": round(seconds, 6)} | labels
        try:
            self._write("run-finished", "", facts)
        except JournalError as error:
            return self.failed(error)
        return Finished(self._record.run, answer, seconds, shade=shade, **self._common_fields)

    def failed(self, error: BicameralError) -> RunOutcome:
        if self._is_record_failure(error):
            return self._interrupted(error)
        seconds = self._seconds
        step = error.place.step if error.place and error.place.step else ""
        try:
            self._write("run-failed", step, {"error": error.to_json(), "seconds": round(seconds, 6)})
        except JournalError as failure:
            # A run whose end is not written down has not ended: who takes it up comes to the same.
            if self._is_record_failure(failure):
                return self._interrupted(failure)
        return Failed(self._record.run, error, step, seconds, **self._common_fields)

    def waiting(self, waits: Suspend) -> RunOutcome:
        seconds = self._seconds
        question, ask = (None if waits.ask else waits.question), waits.ask
        facts = {"question": question.to_json()} if question else {"ask": ask.to_json()} if ask else {}
        try:
            self._write("run-waits", "", facts | {"seconds": round(seconds, 6)})
        except JournalError as error:
            return self._interrupted(error)
        return Waiting(self._record.run, question, ask, seconds, **self._common_fields)

    def stopped(self) -> RunOutcome:
        seconds, in_flight = self._seconds, tuple(sorted(self._hands.in_flight))
        try:
            self._write("run-stopped", "", {"in_flight": list(in_flight), "seconds": round(seconds, 6)})
        except JournalError as error:
            if self._is_record_failure(error):
                return self._interrupted(error)
        return Stopped(self._record.run, in_flight, seconds, **self._common_fields)

    def leave(self) -> Interrupted:
        """The run goes on elsewhere."""
        return self._interrupted(RunError("run.left", "the run is left to another process", fix="Resume it."))

    def _interrupted(self, error: BicameralError) -> Interrupted:
        return Interrupted(self._record.run, error, self._seconds, **self._common_fields)

    def _is_record_failure(self, error: BicameralError) -> bool:
        """Whether it is the record that failed, so that nobody can say how the run ended."""
        return error is self._record.failure and error.code not in (*UNRECORDABLE, "journal.run-exists")

    @property
    def _common_fields(self) -> dict[str, Any]:
        """What every outcome says."""
        effects = tuple(self._hands.effects)
        return {"effects": effects, "written": self._written, "usage": self._usage, "alerts": self._alerts}

    @property
    def _seconds(self) -> float:
        """The time that all attempts together worked."""
        return self._earlier.seconds + self.meter.seconds_worked

    @property
    def _written(self) -> Mapping[str, LabelTree]:
        return {} if self.work is None else dict(self.work.written)

    @property
    def _usage(self) -> RunUsage:
        return self._earlier.usage + self._hands.monitor.usage(self._ledger)

    @property
    def _alerts(self) -> tuple[RunAlert, ...]:
        return (*self._earlier.alerts, *self._hands.monitor.alerts)

    def _write(self, kind: EventKind, step: str, body: dict[str, Any]) -> None:
        more: dict[str, Any] = {"effects": effects_to_json(self._hands.effects), "usage": self._usage.to_json()}
        if written := self._written:
            more["written"] = {place: label_tree_json(shade) for place, shade in written.items()}
        # Calls that came to nothing have no event of their own, and were paid for all the same.
        lost = {"lost_calls": self._ledger.lost} if self._ledger.lost else {}
        # What a run came to matters after a power cut where it has changed something, or where a person is waited for.
        lasting = bool(self._hands.effects or self._hands.in_flight) or kind == "run-waits"
        (self._record.write_synced if lasting else self._record.write)(kind, step, body | more | lost)


def effects_to_json(effects: list[EffectDone]) -> list[dict[str, str]]:
    return [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in effects]


ENGINE_VERSION = 1
"""Of which version the engine is: another one might come to another order of steps, and cannot take up a run."""


def new_run_id() -> str:
    """An id that sorts by time: when the run began, and a few random letters."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(3)


async def run_plan(
    what: Plan | Checked,
    registry: Registry,
    *,
    journal: Journal | None = None,
    extractor: Executor | None = None,
    asker: Asker | None = None,
    observer: Observer | None = None,
    intent: Intent | None = None,
    run: str | None = None,
    policy: Policy | None = None,
    approver: Approver | None = None,
    start: StartState | None = None,
    link: Mapping[str, Any] | None = None,
    planning: ChamberUsage | None = None,
    planned_by: Sequence[Mapping[str, Any]] = (),
    ahead: bool = True,
    early_approvals: bool = True,
    caps: Limits | None = None,
    leaving: ShouldLeave | None = None,
) -> RunOutcome:
    """Run a plan that has been checked. Stopping the task that awaits this gives a truthful `Stopped`.

    `what` is the result of its check, or the plan alone: then whoever calls this has checked it. A result that is not
    of these tools, this policy, this start and this intent is not relied on: the plan is checked anew, and refused if
    it does not pass. Its own policy holds where no other is given.

    With a journal no effect happens that is not in it: what cannot be recorded is not done. `policy` decides about
    every call, and `approver` is asked where it says so; nobody there means no. Without a policy labels are off and
    every call is made: that is for measuring, and an agent always gives one. `intent` is what a model wrote the plan
    for: then what directs a call must be a whole value, or a person is asked. `start` is what the plan goes on from,
    and `link` what is recorded of the whole that this run is a part of; `planning` is what it cost to write the plan
    and `planned_by` the calls that wrote it, for the record too. A question is also about calls that are still to come
    and known already, unless `ahead` is off. With the result of a check it is put before the first step where it can be
    whole, unless `early_approvals` is off.

    `caps` are how much it may take. With a journal whoever is asked may `Suspend` the run, unless it is part of a
    whole: the outcome is `Waiting`, and `resume_plan` takes it up. If its task is cancelled while `leaving` says so,
    the run is left as it is for another process, instead of being stopped.
    """
    caps = caps or RUN_LIMITS
    may_ask = frozenset[str]()
    if isinstance(what, Checked):
        # A checked plan never runs with labels off: that a caller left the policy out must not mean that none holds.
        policy = what.basis.policy if policy is None else policy
        checked = _checked_for_run(what, registry, policy, start, intent)
        plan, assembled = checked.plan, checked.assembled.calls
        if ahead and early_approvals:
            may_ask = _conditional_steps(checked)
    else:
        plan, own = what, () if policy is None else policy.me
        request = None if intent is None else intent.request
        assembled = (start or StartState()).assembled_values(plan, registry, request, own).calls
    judge = None if policy is None else PolicyDecider(policy)
    return await run_workload(
        lambda hands: PlanEngine(
            plan, registry, hands, judge, start, caps=caps, ahead=ahead, may_ask=may_ask, assembled=assembled
        ),
        lambda: (
            _start_facts(plan, registry, intent, judge)
            | _origin_facts(start, link, planning, planned_by)
            | {"engine": ENGINE_VERSION, "caps": caps.to_json(), "ahead": ahead}
            | ({"may_ask": sorted(may_ask)} if may_ask else {})
        ),
        journal=journal,
        extractor=extractor,
        asker=asker,
        observer=observer,
        approver=approver,
        run=run,
        told=plan_telemetry(plan),
        meter=Meter(caps, before=LimitUsage(rounds=round_number(link))),
        may_wait=journal is not None and link is None,
        leaving=leaving,
    )


def round_number(link: Mapping[str, Any] | None) -> int:
    """Which round of a whole this run is; the first, if it is no part of one."""
    found = 1 if link is None else link.get("round", 1)
    return found if type(found) is int and found > 0 else 1


def _checked_for_run(
    checked: Checked, registry: Registry, policy: Policy, start: StartState | None, intent: Intent | None
) -> Checked:
    """The result of the plan's check for this run: the given one if it is true of the run, else that of a new check."""
    basis = replace(checked.basis, registry=registry, policy=policy, start=start or StartState(), intent=intent)
    checked = recheck(checked, basis)
    checked.require()
    return checked


def _conditional_steps(checked: Checked) -> frozenset[str]:
    """The steps at which somebody may be asked."""
    calls = () if checked.proof is None else checked.proof.calls
    return frozenset(call.step for call in calls if isinstance(call.verdict, Conditional))


def plan_telemetry(plan: Plan) -> dict[str, Fact]:
    """What telemetry is told of a plan that runs."""
    return {"bicameral.plan.steps": sum(1 for _ in walk(plan.steps))}


async def run_workload(
    make: Callable[[LiveEffectHandler], Workload],
    facts: Callable[[], dict[str, Any]],
    *,
    journal: Journal | None = None,
    extractor: Executor | None = None,
    asker: Asker | None = None,
    observer: Observer | None = None,
    approver: Approver | None = None,
    run: str | None = None,
    told: Mapping[str, Fact] | None = None,
    meter: Meter | None = None,
    may_wait: bool = False,
    leaving: ShouldLeave | None = None,
) -> RunOutcome:
    """Do some work as a run: with its record, which begins with `facts`, and with its end, whichever that is.

    The hands that `make` is given are the only way to the world. `told` is what telemetry is told of it. Only work that
    `may_wait` can be suspended by whoever is asked: somebody must be able to resume it.
    """
    run = run or new_run_id()
    record = EventWriter(run, journal)
    hands = LiveEffectHandler(
        record,
        extractor=extractor,
        asker=asker,
        observer=observer,
        approver=approver,
        meter=meter,
        may_wait=may_wait,
    )

    def begun() -> Workload:
        record.write_later("run-started", "", facts)
        return make(hands)

    return await run_attempt(begun, record, hands, told or {}, leaving=leaving)


def _start_facts(plan: Plan, registry: Registry, intent: Intent | None, judge: Decider | None) -> dict[str, Any]:
    used = {step.tool: registry.get(step.tool) for _, step in walk(plan.steps) if isinstance(step, Call)}
    return {
        "request": intent.request if intent else plan.goal,
        "intent": intent.to_json() if intent else None,
        "plan": plan.to_json(),
        "tools": {name: tool.fingerprint for name, tool in sorted(used.items()) if tool},
        "code": {name: tool.code() for name, tool in sorted(used.items()) if tool and tool.code},
    } | ({} if judge is None else {"policy": judge.fingerprint, "mode": judge.mode})


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
