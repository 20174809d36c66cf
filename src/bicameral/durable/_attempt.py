"""One attempt at a run by a worker: plan it if nobody has, run or resume it, and report how that ended.

Nothing is remembered but in the database and the journal, so an attempt may break off anywhere: whoever takes the run
next finds a plan or makes one, finds a record and resumes it, or finds its end and only writes that down. People answer
later: the deferred approver and asker know the stored answers, and suspend the run for the rest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

from bicameral.agent import Agent, Planned
from bicameral.durable._leases import Lease, keep_plan, record_progress
from bicameral.durable._queries import MAX_REPLY, answered_questions, parse_answer
from bicameral.durable._views import RunEnd, failed_end, recorded_end, run_end
from bicameral.errors import BicameralError, DurableError, PlanError, RunError
from bicameral.labels import user_input
from bicameral.planning import Intent
from bicameral.plans import Plan
from bicameral.runs import (
    Answers,
    ApprovalQuestion,
    Caps,
    Event,
    Failed,
    Finished,
    Interrupted,
    PendingCall,
    RunOutcome,
    ShouldLeave,
    Stopped,
    Suspend,
    Waiting,
    resume_plan,
    run_plan,
    shown_hash,
)
from bicameral.sessions import ChamberUsage
from bicameral.tools import CHANGING, AttachedFile, call_key, describe_changes
from bicameral.types import Type, mismatch, to_plain, type_from_json, type_to_json, value_from_json, value_to_json

if TYPE_CHECKING:
    import sqlalchemy as sa

    from bicameral.durable._runs import Runs
    from bicameral.durable._views import Approval


_ShownCall = tuple[str, str]
"""A step, and the hash of what was shown of the call there."""


@dataclass(slots=True)
class StoredAnswers:
    """What was answered and has not been acted on yet: calls with yes or no, and replies by what asked for them."""

    calls: dict[_ShownCall, bool] = field(default_factory=dict["_ShownCall", bool])
    granted: set[_ShownCall] = field(default_factory=set["_ShownCall"])
    """The calls with which their offer for the rest of the run was taken."""
    files: dict[tuple[str, str], tuple[AttachedFile, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[AttachedFile, ...]]
    )
    """What went along with a tool's call at a step when it was last asked about."""
    replies: dict[str, Any] = field(default_factory=dict[str, Any])
    unanswered: set[str] = field(default_factory=set[str])
    """What nobody replied to in time."""

    @classmethod
    def from_rows(cls, rows: Sequence[sa.RowMapping], events: Sequence[Event]) -> Self:
        """From the questions of a run and its record: a yes that is recorded was acted on, and does not count twice."""
        found = cls()
        for row in rows:
            question, answer = json.loads(row["question"]), json.loads(row["answer"] or "null")
            if row["kind"] == "ask":
                if row["state"] == "replied":
                    found.replies[question["key"]] = answer
                else:
                    found.unanswered.add(question["key"])
                continue
            later = [event for event in events if event.kind == "approval" and event.number >= row["number"]]
            acted = {
                (step, call["hash"]) for event in later for call in event.body["calls"] for step in _call_steps(call)
            }
            yes, for_run = parse_answer(answer)
            for call in question["calls"]:
                for step in _call_steps(call):
                    found.files[step, call["tool"]] = tuple(map(AttachedFile.from_json, call.get("files", ())))
                    if (step, call["hash"]) not in acted:
                        found.calls[step, shown_hash(call)] = call["hash"] in yes
                        if call["hash"] in for_run:
                            found.granted.add((step, shown_hash(call)))
        return found


class DeferredApprover:
    """Says what was answered, and puts everything else to a person by letting the run wait."""

    def __init__(self, answered: StoredAnswers) -> None:
        self._answered = answered

    async def approve(self, question: ApprovalQuestion) -> Answers:
        keys = {call.hash: _shown_calls(call) for call in question.calls}
        missing = tuple(each for call in question.calls if (each := self._missing(call)) is not None)
        if missing:
            raise Suspend(ApprovalQuestion(missing, question.before))
        known, granted = self._answered.calls, self._answered.granted
        # A no to the call at one of its steps is a no to this entry of the question.
        yes = [call for call in question.calls if all(known[key] for key in keys[call.hash])]
        offers = [call.offer for call in yes if granted.intersection(keys[call.hash])]
        return Answers.yes(yes, for_run=[offer for offer in offers if offer is not None])

    def _missing(self, call: PendingCall) -> PendingCall | None:
        """The call at the steps at which it was not answered, if there are any."""
        steps = [step for step, shown in _shown_calls(call) if (step, shown) not in self._answered.calls]
        if not steps:
            return None
        before = self._answered.files.get((steps[0], call.tool), call.files)
        return replace(call.at_steps(steps), changed=call.changed or describe_changes(before, call.files))


class RequestSuspended(Suspend):
    """A request leaves something open, and the run waits for the reply before there is a plan."""

    def __init__(self, question: str, type: Type) -> None:
        super().__init__()
        self.asked: dict[str, Any] = {"question": question, "type": type_to_json(type), "key": question, "step": ""}


class DeferredAsker:
    """Gives the replies that are there, and lets the run wait for all others."""

    def __init__(self, answered: StoredAnswers) -> None:
        self._answered = answered

    async def ask(self, question: str, type: Type) -> Any:
        # A step of a plan has a key of its own; what a request leaves open is known by its words.
        key = call_key() or question
        if key in self._answered.replies:
            return value_from_json(self._answered.replies[key])
        if key in self._answered.unanswered:
            raise RunError("run.needs-answer", f"nobody replied in time to: {question}")
        raise RequestSuspended(question, type)


def _shown_calls(call: PendingCall) -> list[_ShownCall]:
    """A yes holds for the very call at the very step, for the very reason and with the labels that were shown."""
    shown = shown_hash(call.to_json())
    return [(step, shown) for step in call.steps]


def _call_steps(call: Mapping[str, Any]) -> Sequence[str]:
    """The steps of a call; a question of an earlier version names only the first."""
    return call.get("steps", (call["step"],))


def validate_reply(value: Any, asked: Approval) -> Any:
    """A reply as it is kept: as JSON, held against the type that was asked for."""
    try:
        wanted = type_from_json(asked.type)
        found = _parse_reply(value, wanted)
        reason = mismatch(found, wanted, "the reply")
        kept = value_to_json(found)
    except (TypeError, ValueError, BicameralError) as error:
        raise DurableError("durable.wrong-answer", f"the reply is no value a plan can use: {error}") from None
    if reason:
        raise DurableError("durable.wrong-answer", reason, expected=str(wanted))
    if len(json.dumps(kept)) > MAX_REPLY:
        raise DurableError("durable.wrong-answer", f"the reply is longer than {MAX_REPLY:,} characters")
    return kept


def _parse_reply(value: Any, wanted: Type) -> Any:
    """A value of a program as it is; one that came as JSON, such as a date, in the form that JSON has for it."""
    found = to_plain(value)
    if mismatch(found, wanted, "the reply") is None:
        return found
    try:
        return value_from_json(value)
    except (TypeError, ValueError, KeyError, BicameralError):
        return found


@dataclass(frozen=True, slots=True)
class AttemptWaits:
    """The run waits: for a yes to calls, or for a reply."""

    kind: str
    question: dict[str, Any]
    number: int


@dataclass(frozen=True, slots=True)
class AttemptBroken:
    """The attempt came to nothing, and the run did not end: it is tried again."""

    error: BicameralError


AttemptResult = RunEnd | AttemptWaits | AttemptBroken

_RETRYABLE_CODES = ("run.other-code", "run.left", "journal.", "durable.")
"""What does not end a run: another worker, or a later one, may well do it."""


class Attempt:
    """What a worker does with a run that it has taken. `leaving` says whether it is to be left to others."""

    def __init__(self, runs: Runs, lease: Lease, row: sa.RowMapping, agent: Agent, leaving: ShouldLeave) -> None:
        self._runs = runs
        self._lease = lease
        self._row = row
        self._agent = agent
        self._leaving = leaving
        self._submission = cast("dict[str, Any]", json.loads(row["submission"]))

    @property
    def answer_seconds(self) -> float:
        """Seconds for which a question of this run waits."""
        return float(self._submission.get("answer_within") or self._runs.config.durable.answer_within)

    async def run(self) -> AttemptResult:
        """How this attempt ended."""
        run, journal = self._lease.run, self._runs.run_journal
        events = await asyncio.to_thread(journal.events_after, run, -1)
        if (found := recorded_end(events)) is not None:
            return found
        if self._row["cancel"]:
            return await asyncio.to_thread(self._stop_cancelled, events)
        if not await self._made_progress(events) and self._row["deaths"] >= self._runs.config.durable.deaths:
            return await asyncio.to_thread(self._give_up, events)
        rows = await self._runs.database.run_transaction(lambda db: answered_questions(self._runs.database, db, run))
        answered = StoredAnswers.from_rows(rows, events)
        try:
            outcome = await (self._resume_run(answered) if events else self._start_run(answered))
        except RequestSuspended as waits:
            return AttemptWaits("ask", waits.asked, 0)
        except BicameralError as error:
            return AttemptBroken(error) if error.code.startswith(_RETRYABLE_CODES) else failed_end(error)
        return await asyncio.to_thread(self._result_of, outcome, len(events))

    async def _made_progress(self, events: Sequence[Event]) -> bool:
        """Whether the run has come further than when it was last looked at; then it is not stuck."""
        reached = sum(1 for event in events if event.kind == "step-finished")
        if reached > self._row["reached"]:
            await self._runs.database.run_transaction(
                lambda db: record_progress(self._runs.database, db, self._lease, reached)
            )
        return reached > self._row["reached"]

    def _give_up(self, events: Sequence[Event]) -> RunEnd:
        """A run with which one worker after the other was lost, or could not go on."""
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
        """A run that was cancelled while its worker died."""
        effects = _recorded_effects(events)
        if events:
            facts: dict[str, Any] = {"in_flight": [], "why": "it was cancelled", "effects": effects}
            self._runs.run_journal.append(self._lease.run, "run-stopped", "", facts)
        return RunEnd("stopped", "it was cancelled", {"effects": effects})

    async def _start_run(self, answered: StoredAnswers) -> RunOutcome:
        plan, intent, spent, calls = await self._plan(answered)
        checked = self._agent.check(plan, intent=intent)
        if not checked.ok:
            first = checked.report.errors[0]
            raise PlanError(first.code, f"the plan does not pass the check: {first}")
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
            planning=spent,
            planned_by=calls,
            caps=self._caps or self._agent.config.caps,
            leaving=self._leaving,
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
    def _caps(self) -> Caps | None:
        """What was asked for, and of nothing more than whoever runs the worker allows."""
        if not (given := self._submission.get("caps")):
            return None
        most = self._agent.config.caps.to_json()
        # What was submitted before there was a cap has none of its own.
        return Caps.from_json({name: min(given.get(name, most[name]), most[name]) for name in most})

    async def _plan(
        self, answered: StoredAnswers
    ) -> tuple[Plan, Intent | None, ChamberUsage | None, Sequence[dict[str, Any]]]:
        """The plan of the run: the one that was submitted, the one that was made, or a new one that is kept."""
        if (given := self._submission["plan"]) is not None:
            return Plan.model_validate_json(given), None, None, ()
        if (kept := self._row["planned"]) is None:
            asker = DeferredAsker(answered)
            deterministic = bool(self._submission["deterministic"])
            request = user_input(self._submission["request"])
            planned = await self._agent.plan(request, deterministic=deterministic, asker=asker)
            kept = _planned_json(planned)
            text = kept
            await self._runs.database.run_transaction(lambda db: keep_plan(self._runs.database, db, self._lease, text))
        found = json.loads(kept)
        plan, intent = Plan.model_validate_json(found["plan"]), Intent.model_validate_json(found["intent"])
        return plan, intent, ChamberUsage(**found["spent"]), found["calls"]

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
    """What a run has done to the world, by its record."""
    begun = {event.step: event.body for event in events if event.kind == "step-started"}
    done = [event.step for event in events if event.kind == "step-finished"]
    return [
        {"step": step, "tool": begun[step]["tool"], "effect": begun[step]["effect"]}
        for step in done
        if begun.get(step, {}).get("effect") in CHANGING
    ]


def _planned_json(planned: Planned) -> str:
    facts = {
        "plan": planned.plan.to_json(),
        "intent": planned.intent.to_json(),
        "spent": planned.spent.to_json(),
        "calls": [dict(call) for call in planned.calls],
    }
    return json.dumps(facts, separators=(",", ":"))
