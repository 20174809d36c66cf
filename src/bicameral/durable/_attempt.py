"""One attempt of a run by a worker: plan it if there is no plan yet, run or resume it, and return how that ended.

All state is in the database and the journal, so an attempt may break off anywhere. The next one finds a plan or makes
one, finds journal entries and resumes the run, or finds the end of the run and only stores it. People answer later: the
deferred approver and asker use the stored answers, and suspend the run for everything else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

from bicameral.agent import Agent, Planned
from bicameral.binding import binding_doubts
from bicameral.durable._leases import Lease, keep_plan, record_progress
from bicameral.durable._queries import MAX_REPLY, answered_questions, parse_answer
from bicameral.durable._views import RunEnd, failed_end, recorded_end, run_end
from bicameral.errors import BicameralError, DurableError, RunError
from bicameral.labels import user_input
from bicameral.limits import RUN, ChamberUsage, Limits
from bicameral.planning import Intent
from bicameral.plans import Plan, drop_bindings
from bicameral.runs import (
    Answers,
    ApprovalQuestion,
    Doubt,
    Event,
    Failed,
    Finished,
    Interrupted,
    PendingCall,
    RunOutcome,
    ShouldLeave,
    StartState,
    Stopped,
    Suspend,
    Waiting,
    resume_plan,
    run_plan,
    shown_hash,
)
from bicameral.tools import CHANGING, AttachedFile, call_key, describe_changes
from bicameral.types import Type, mismatch, to_plain, type_from_json, type_to_json, value_from_json, value_to_json

if TYPE_CHECKING:
    import sqlalchemy as sa

    from bicameral.durable._runs import Runs
    from bicameral.durable._views import Approval


_ShownCall = tuple[str, str]
"""A step, and the hash of the call as it was shown to the person."""


@dataclass(slots=True)
class StoredAnswers:
    """Answers that were not acted on yet: calls with yes or no, and replies by the key of their question."""

    calls: dict[_ShownCall, bool] = field(default_factory=dict["_ShownCall", bool])
    granted: set[_ShownCall] = field(default_factory=set["_ShownCall"])
    """The calls whose offer for the rest of the run was accepted."""
    files: dict[tuple[str, str], tuple[AttachedFile, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[AttachedFile, ...]]
    )
    """The files that were attached to a tool's call at a step when it was last asked about."""
    replies: dict[str, Any] = field(default_factory=dict[str, Any])
    unanswered: set[str] = field(default_factory=set[str])
    """The keys of questions that expired without a reply."""

    @classmethod
    def from_rows(cls, rows: Sequence[sa.RowMapping], events: Sequence[Event]) -> Self:
        """From the questions of a run and its journal. An approval in the journal was used, and counts no more."""
        answers = cls()
        for row in rows:
            question, answer = json.loads(row["question"]), json.loads(row["answer"] or "null")
            if row["kind"] == "ask":
                if row["state"] == "replied":
                    answers.replies[question["key"]] = answer
                else:
                    answers.unanswered.add(question["key"])
                continue
            later = [event for event in events if event.kind == "approval" and event.number >= row["number"]]
            used = {
                (step, call["hash"]) for event in later for call in event.body["calls"] for step in _call_steps(call)
            }
            approved, for_run = parse_answer(answer)
            for call in question["calls"]:
                for step in _call_steps(call):
                    answers.files[step, call["tool"]] = tuple(map(AttachedFile.from_json, call.get("files", ())))
                    if (step, call["hash"]) not in used:
                        answers.calls[step, shown_hash(call)] = call["hash"] in approved
                        if call["hash"] in for_run:
                            answers.granted.add((step, shown_hash(call)))
        return answers


class DeferredApprover:
    """Approver that gives the stored answers, and suspends the run for calls that have none."""

    def __init__(self, answered: StoredAnswers) -> None:
        self._answered = answered

    async def approve(self, question: ApprovalQuestion) -> Answers:
        keys = {call.hash: _shown_calls(call) for call in question.calls}
        missing = tuple(each for call in question.calls if (each := self._missing(call)) is not None)
        if missing:
            raise Suspend(ApprovalQuestion(missing, question.before))
        known, granted = self._answered.calls, self._answered.granted
        # One entry may stand for the same call at several steps: a no at any of them denies the entry.
        approved = [call for call in question.calls if all(known[key] for key in keys[call.hash])]
        offers = [call.offer for call in approved if granted.intersection(keys[call.hash])]
        return Answers.yes(approved, for_run=[offer for offer in offers if offer is not None])

    def _missing(self, call: PendingCall) -> PendingCall | None:
        """The call, reduced to the steps that have no answer; None if all have one."""
        steps = [step for step, shown in _shown_calls(call) if (step, shown) not in self._answered.calls]
        if not steps:
            return None
        before = self._answered.files.get((steps[0], call.tool), call.files)
        return replace(call.at_steps(steps), changed=call.changed or describe_changes(before, call.files))


class RequestSuspended(Suspend):
    """A request leaves something open: the run waits for the reply before it has a plan."""

    def __init__(self, question: str, type: Type) -> None:
        super().__init__()
        self.asked: dict[str, Any] = {"question": question, "type": type_to_json(type), "key": question, "step": ""}


class DeferredAsker:
    """Asker that gives the stored replies, and suspends the run for the others."""

    def __init__(self, answered: StoredAnswers) -> None:
        self._answered = answered

    async def ask(self, question: str, type: Type) -> Any:
        # A step of a plan has a call key. A question about the request has none, and is identified by its text.
        key = call_key() or question
        if key in self._answered.replies:
            return value_from_json(self._answered.replies[key])
        if key in self._answered.unanswered:
            raise RunError("run.needs-answer", f"nobody replied in time to: {question}")
        raise RequestSuspended(question, type)


def _shown_calls(call: PendingCall) -> list[_ShownCall]:
    """The keys of an approval: it holds for this call at this step, with the reason and the labels that were shown."""
    shown = shown_hash(call.to_json())
    return [(step, shown) for step in call.steps]


def _call_steps(call: Mapping[str, Any]) -> Sequence[str]:
    """The steps of a call; a question stored by an earlier version has only the first."""
    return call.get("steps", (call["step"],))


def validate_reply(value: Any, asked: Approval) -> Any:
    """A reply as it is stored, as JSON; `durable.wrong-answer` if it does not have the type of the question."""
    try:
        wanted = type_from_json(asked.type)
        reply = _parse_reply(value, wanted)
        reason = mismatch(reply, wanted, "the reply")
        reply_json = value_to_json(reply)
    except (TypeError, ValueError, BicameralError) as error:
        raise DurableError("durable.wrong-answer", f"the reply is no value a plan can use: {error}") from None
    if reason:
        raise DurableError("durable.wrong-answer", reason, expected=str(wanted))
    if len(json.dumps(reply_json)) > MAX_REPLY:
        raise DurableError("durable.wrong-answer", f"the reply is longer than {MAX_REPLY:,} characters")
    return reply_json


def _parse_reply(value: Any, wanted: Type) -> Any:
    """A Python value as it is; a value from JSON, such as a date in its JSON form, as the value it stands for."""
    plain = to_plain(value)
    if mismatch(plain, wanted, "the reply") is None:
        return plain
    try:
        return value_from_json(value)
    except (TypeError, ValueError, KeyError, BicameralError):
        return plain


@dataclass(frozen=True, slots=True)
class AttemptWaits:
    """The run waits for an approval of calls, or for a reply; `number` is the length of its journal."""

    kind: str
    question: dict[str, Any]
    number: int


@dataclass(frozen=True, slots=True)
class AttemptBroken:
    """The attempt failed and the run did not end: it is tried again."""

    error: BicameralError


AttemptResult = RunEnd | AttemptWaits | AttemptBroken

_RETRYABLE_CODES = ("run.other-code", "run.left", "journal.", "durable.")
"""Errors that do not end a run: another worker, or a later attempt, may succeed."""


class Attempt:
    """One attempt of a run that a worker has claimed. `leaving` says whether the worker gives the run up."""

    def __init__(self, runs: Runs, lease: Lease, row: sa.RowMapping, agent: Agent, leaving: ShouldLeave) -> None:
        self._runs = runs
        self._lease = lease
        self._row = row
        self._agent = agent
        self._leaving = leaving
        self._submission = cast("dict[str, Any]", json.loads(row["submission"]))

    @property
    def answer_seconds(self) -> float:
        """Seconds for which a question of this run waits for an answer."""
        return float(self._submission.get("answer_within") or self._runs.config.durable.answer_within)

    async def run(self) -> AttemptResult:
        """Make the attempt, and return how it ended."""
        run, journal = self._lease.run, self._runs.run_journal
        events = await asyncio.to_thread(journal.events_after, run, -1)
        if (end := recorded_end(events)) is not None:
            return end
        if self._row["cancel"]:
            return await asyncio.to_thread(self._stop_cancelled, events)
        if not await self._made_progress(events) and self._row["deaths"] >= self._runs.config.durable.deaths:
            return await asyncio.to_thread(self._give_up, events)
        answered = StoredAnswers.from_rows(await self._runs.dispatch.run(answered_questions, run), events)
        try:
            outcome = await (self._resume_run(answered) if events else self._start_run(answered))
        except RequestSuspended as waits:
            return AttemptWaits("ask", waits.asked, 0)
        except BicameralError as error:
            return AttemptBroken(error) if error.code.startswith(_RETRYABLE_CODES) else failed_end(error)
        return await asyncio.to_thread(self._result_of, outcome, len(events))

    async def _made_progress(self, events: Sequence[Event]) -> bool:
        """Whether more steps have finished than at the start of the last attempt; then the run is not stuck."""
        reached = sum(1 for event in events if event.kind == "step-finished")
        if reached > self._row["reached"]:
            await self._runs.dispatch.run(record_progress, self._lease, reached)
        return reached > self._row["reached"]

    def _give_up(self, events: Sequence[Event]) -> RunEnd:
        """Fail a run that lost too many attempts in a row without progress."""
        last = f"; the last time: {self._row['why']}" if self._row["why"] else ""
        error = DurableError(
            "durable.poison",
            f"{self._row['deaths']} attempts in a row were lost, and the run got no further{last}",
            fix="Look at its last step: `bicameral runs show`. Submit it again when that is mended.",
        )
        if events:
            self._runs.run_journal.append(
                self._lease.run, "run-failed", "", {"error": error.to_json(), "effects": _recorded_effects(events)}
            )
        return failed_end(error, {"effects": _recorded_effects(events)})

    def _stop_cancelled(self, events: Sequence[Event]) -> RunEnd:
        """Stop a run that was cancelled before its worker died."""
        effects = _recorded_effects(events)
        if events:
            facts: dict[str, Any] = {"in_flight": [], "why": "it was cancelled", "effects": effects}
            self._runs.run_journal.append(self._lease.run, "run-stopped", "", facts)
        return RunEnd("stopped", "it was cancelled", {"effects": effects})

    async def _start_run(self, answered: StoredAnswers) -> RunOutcome:
        plan, intent, planning = await self._plan(answered)
        # Also a stored plan: another worker, with another policy or version, may have made it.
        self._agent.check(plan, intent=intent, start=planning.get("start")).require()
        return await run_plan(
            plan,
            self._agent.registry,
            journal=self._runs.run_journal,
            extractor=self._agent.executor,
            asker=DeferredAsker(answered),
            approver=DeferredApprover(answered),
            policy=self._agent.policy,
            intent=intent,
            run=self._lease.run,
            caps=self._caps or self._agent.config.caps,
            leaving=self._leaving,
            **planning,
        )

    async def _resume_run(self, answered: StoredAnswers) -> RunOutcome:
        return await resume_plan(
            self._runs.run_journal,
            self._lease.run,
            self._agent.registry,
            policy=self._agent.policy,
            extractor=self._agent.executor,
            asker=DeferredAsker(answered),
            approver=DeferredApprover(answered),
            caps=self._caps,
            leaving=self._leaving,
        )

    @property
    def _caps(self) -> Limits | None:
        """The caps of the submission, none above those of the worker's configuration."""
        if not (given := self._submission.get("caps")):
            return None
        most = self._agent.config.caps.to_json()
        # A submission that is older than a cap does not have it.
        return Limits.from_json({name: min(given.get(name, most[name]), most[name]) for name in most}, RUN)

    async def _plan(self, answered: StoredAnswers) -> tuple[Plan, Intent | None, dict[str, Any]]:
        """The plan of the run, its intent, and what planning knows of it, as options of `run_plan`.

        The plan is the submitted one, the one an earlier attempt stored, or a new one, which is stored.
        """
        given = self._submission["plan"]
        if (planned_json := self._row["planned"]) is None and given is not None:
            # Whoever submitted it may have written bindings with labels of their own: it is bound here, or not run.
            # Stored like a plan for a request: what its words were bound to must not change between two attempts.
            plan = drop_bindings(Plan.model_validate_json(given))
            planned_json = await self._bind_plan(plan, DeferredAsker(answered))
            await self._runs.dispatch.run(keep_plan, self._lease, planned_json)
        if planned_json is None:
            asker = DeferredAsker(answered)
            deterministic = bool(self._submission["deterministic"])
            request = user_input(self._submission["request"])
            planned = await self._agent.plan(request, deterministic=deterministic, asker=asker)
            planned_json = _planned_json(planned)
            await self._runs.dispatch.run(keep_plan, self._lease, planned_json)
        facts = json.loads(planned_json)
        plan = Plan.model_validate_json(facts["plan"])
        intent = None if facts["intent"] is None else Intent.model_validate_json(facts["intent"])
        # A plan that an earlier version stored has neither doubts nor a start nor a choice.
        doubts = tuple(map(Doubt.from_json, facts.get("doubts", ())))
        spent = ChamberUsage(**facts["spent"])
        start = None if facts.get("start") is None else StartState.from_json(facts["start"])
        record = {"planning": spent, "planned_by": facts["calls"], "doubts": doubts, "start": start}
        return plan, intent, record | {"choice": facts.get("choice")}

    async def _bind_plan(self, plan: Plan, asker: DeferredAsker) -> str:
        """A submitted plan with its words bound, as it is stored; the questions of binding are questions of the run."""
        bound = await self._agent.bind(plan, asker=asker)
        bound.require()
        facts: dict[str, Any] = {
            "plan": bound.plan.to_json(),
            "intent": None,
            "spent": ChamberUsage().to_json(),
            "calls": [],
            "doubts": [doubt.to_json() for doubt in binding_doubts(bound.bindings)],
        }
        return json.dumps(facts, separators=(",", ":"))

    def _result_of(self, outcome: RunOutcome, before: int) -> AttemptResult:
        match outcome:
            case Waiting(question=question, ask=ask):
                number = before + len(self._runs.run_journal.events_after(self._lease.run, before - 1))
                if question is not None:
                    return AttemptWaits("calls", {"calls": question.to_json(), "before": question.before}, number)
                return AttemptWaits("ask", {} if ask is None else ask.to_json(), number)
            case Interrupted(error=error):
                return AttemptBroken(error)
            case Finished() | Failed() | Stopped():
                return run_end(outcome)


def _recorded_effects(events: Sequence[Event]) -> list[dict[str, str]]:
    """The effects of a run that its journal has."""
    started = {event.step: event.body for event in events if event.kind == "step-started"}
    finished = [event.step for event in events if event.kind == "step-finished"]
    return [
        {"step": step, "tool": started[step]["tool"], "effect": started[step]["effect"]}
        for step in finished
        if started.get(step, {}).get("effect") in CHANGING
    ]


def _planned_json(planned: Planned) -> str:
    facts = {
        "plan": planned.plan.to_json(),
        "intent": planned.intent.to_json(),
        "spent": planned.spent.to_json(),
        "calls": [dict(call) for call in planned.calls],
        "doubts": [doubt.to_json() for doubt in planned.doubts],
        "start": None if planned.start == StartState() else planned.start.to_json(),
        "choice": dict(planned.choice),
    }
    return json.dumps(facts, separators=(",", ":"))
