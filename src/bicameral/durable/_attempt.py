"""One attempt of a run by a worker: plan it if there is no plan yet, run or resume it, and return how that ended.

All state is in the database and the journal, so an attempt may break off anywhere. The next one finds a plan or makes
one, finds journal entries and resumes the run, or finds the end of the run and only stores it.

A request that needs a first look is worked on in rounds, by the same reasoner as everywhere. Then the journal of the
run is that of the reasoning, and each of its plans is a run of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from bicameral.agent import Agent, FirstLook, outcome_of_rounds, plan_or_look, rounds_led_to_nothing
from bicameral.binding import binding_doubts
from bicameral.config import bounds_of
from bicameral.durable._answers import DeferredApprover, DeferredAsker, RequestSuspended, StoredAnswers
from bicameral.durable._leases import Lease, keep_plan, record_progress
from bicameral.durable._queries import answered_questions, planned_facts
from bicameral.durable._views import (
    RunEnd,
    end_facts,
    end_kind,
    failed_end,
    is_ended,
    recorded_end,
    run_end,
    run_of_fallback,
    runs_of_rounds,
)
from bicameral.errors import BicameralError, CatalogError, DurableError, RunError
from bicameral.labels import user_input
from bicameral.limits import RUN, ChamberUsage, Limits
from bicameral.patterns.kernel import PatternWork, resume_pattern_work, run_pattern_work
from bicameral.patterns.reasoner import ResumableRounds, RoundsSuspended
from bicameral.planning import Intent
from bicameral.plans import Plan, drop_bindings
from bicameral.runs import (
    RESUMABLE,
    Doubt,
    Event,
    Failed,
    Finished,
    Interrupted,
    RunOutcome,
    ShouldLeave,
    StartState,
    Stopped,
    Waiting,
    recorded_error,
    resume_plan,
    run_plan,
)
from bicameral.tools import CHANGING

if TYPE_CHECKING:
    import sqlalchemy as sa

    from bicameral.durable._runs import Runs


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
        self._questions: Sequence[sa.RowMapping] = ()
        """The questions of the run that are no longer open."""

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
        self._questions = await self._runs.dispatch.run(answered_questions, run)
        try:
            if "work" in self._submission:
                outcome = await self._run_pattern(run, begun=bool(events))
            elif events and events[0].kind == "run-started":
                outcome = await self._resume_run(run)
            else:
                facts = await self._plan(StoredAnswers.from_rows(self._questions, ()))
                if "look" in facts:
                    return await self._run_rounds(facts, events)
                outcome = await self._start_run(run, facts)
        except RequestSuspended as waits:
            return AttemptWaits("ask", waits.asked, 0)
        except RoundsSuspended as waits:
            outcome = waits.outcome
        except BicameralError as error:
            return AttemptBroken(error) if error.code.startswith(_RETRYABLE_CODES) else failed_end(error)
        return await asyncio.to_thread(self._result_of, outcome)

    async def _made_progress(self, events: Sequence[Event]) -> bool:
        """Whether more steps have finished than at the start of the last attempt; then the run is not stuck."""
        records = await asyncio.to_thread(self._records, events)
        kinds = ("step-finished", "reason-planned", "reason-round")
        if "work" in self._submission:
            # A recorded reply is not asked for again.
            kinds = (*kinds, "model-called")
        reached = sum(1 for record in records.values() for event in record if event.kind in kinds)
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
        return self._end_unfinished(events, failed_end(error))

    def _stop_cancelled(self, events: Sequence[Event]) -> RunEnd:
        """Stop a run that was cancelled before its worker died."""
        return self._end_unfinished(events, RunEnd("stopped", "it was cancelled", {}))

    def _end_unfinished(self, events: Sequence[Event], end: RunEnd) -> RunEnd:
        """Record this end of the run and of those of its rounds that have none, with the effects that they had."""
        effects: list[dict[str, str]] = []
        for run, record in reversed(self._records(events).items()):
            own = _recorded_effects(record)
            effects += own
            if record and not is_ended(record):
                facts = end_facts(end) | {"effects": effects if run == self._lease.run else own}
                self._runs.run_journal.append(run, end_kind(end), "", facts)
        return replace(end, outcome=end.outcome | {"effects": effects})

    def _records(self, events: Sequence[Event]) -> dict[str, Sequence[Event]]:
        """The journal of the run, and those of its rounds, the newest first."""
        parts = reversed(runs_of_rounds(self._lease.run, events))
        return {self._lease.run: events} | {part: self._runs.run_journal.events_after(part, -1) for part in parts}

    def _people(self, run: str) -> tuple[DeferredAsker, DeferredApprover]:
        """Who is asked in this run, or in the run of a round: an approval in one round is none in another."""
        events = self._runs.run_journal.events_after(run, -1)
        answered = StoredAnswers.from_rows(self._questions, events, "" if run == self._lease.run else run)
        return DeferredAsker(answered), DeferredApprover(answered)

    async def _start_run(self, run: str, facts: Mapping[str, Any], link: Mapping[str, Any] | None = None) -> RunOutcome:
        plan, intent, planning = _parse_planned(facts)
        # Also a stored plan: another worker, with another policy or version, may have made it.
        self._agent.check(plan, intent=intent, start=planning.get("start")).require()
        asker, approver = await asyncio.to_thread(self._people, run)
        return await run_plan(
            plan,
            self._agent.registry,
            journal=self._runs.run_journal,
            extractor=self._agent.executor,
            asker=asker,
            approver=approver,
            policy=self._agent.policy,
            intent=intent,
            run=run,
            link=link,
            caps=self._caps or self._agent.config.caps,
            leaving=self._leaving,
            **planning,
        )

    async def _resume_run(self, run: str) -> RunOutcome:
        asker, approver = await asyncio.to_thread(self._people, run)
        return await resume_plan(
            self._runs.run_journal,
            run,
            self._agent.registry,
            policy=self._agent.policy,
            extractor=self._agent.executor,
            asker=asker,
            approver=approver,
            caps=self._caps,
            leaving=self._leaving,
        )

    async def _run_pattern(self, run: str, *, begun: bool) -> RunOutcome:
        """Run the submitted pattern, or continue it."""
        asker, approver = await asyncio.to_thread(self._people, run)
        journal = self._runs.run_journal
        runtime = replace(self._agent.runtime(asker=asker, approver=approver, caps=self._caps), journal=journal)
        with self._agent.spending():
            try:
                if begun:
                    return await resume_pattern_work(journal, run, runtime, leaving=self._leaving)
                work = PatternWork.from_json(self._submission["work"])
            except CatalogError as error:
                # Another worker may have what this one lacks.
                raise RunError("run.other-code", f"run {run} cannot be done here: {error}") from None
            return await run_pattern_work(work, runtime, run=run, leaving=self._leaving)

    async def _run_rounds(self, facts: Mapping[str, Any], events: Sequence[Event]) -> AttemptResult:
        """Work on the request in rounds, or continue them. If they lead to nothing, what there was before counts."""
        look = facts["look"]
        reasoned = await self._agent.reason(
            Intent.model_validate_json(facts["intent"]),
            bounds=self._bounds,
            asker=DeferredAsker(StoredAnswers.from_rows(self._questions, ())),
            why=look["reason"],
            caps=self._caps,
            resumable=ResumableRounds(
                self._lease.run, self._runs.run_journal, self._people, events, leaving=self._leaving
            ),
        )
        error = getattr(reasoned, "error", None)
        if isinstance(error, BicameralError) and error.code == "reason.interrupted":
            effects = [done.to_json() for done in reasoned.effects]
            return await self._close_rounds(RunEnd("stopped", "it was cancelled", {"effects": effects}))
        refusal = recorded_error(look["error"]) if look["error"] else None
        try:
            instead = rounds_led_to_nothing(reasoned, refusal)
            outcome = await self._run_instead(facts) if instead else outcome_of_rounds(reasoned)
        except BicameralError as failure:
            if failure.code.startswith(_RETRYABLE_CODES):
                raise
            return await self._close_rounds(failed_end(failure))
        if isinstance(outcome, Waiting | Interrupted):
            raise RoundsSuspended(outcome)
        return await self._close_rounds(run_end(outcome))

    async def _run_instead(self, facts: Mapping[str, Any]) -> RunOutcome:
        """Run the plan that there was before the rounds, or resume it, as one more part of the run."""
        run = run_of_fallback(self._lease.run)
        if await asyncio.to_thread(self._runs.run_journal.events_after, run, -1):
            return await self._resume_run(run)
        return await self._start_run(run, facts, {"reason": self._lease.run, RESUMABLE: True})

    async def _close_rounds(self, end: RunEnd) -> RunEnd:
        """Record the end of the whole: whoever finds it there only stores it."""
        append = self._runs.run_journal.append
        await asyncio.to_thread(append, self._lease.run, end_kind(end), "", end_facts(end), sync=True)
        return end

    @property
    def _rounds(self) -> int:
        """The most rounds: as configured, and no more than the submission allows."""
        most = self._agent.config.planning.rounds
        return most if self._caps is None else min(most, int(self._caps.rounds or most))

    @property
    def _bounds(self) -> Limits:
        """The bounds of all rounds together; the caps of the submission hold for the whole, and not only for each."""
        bounds, caps = replace(bounds_of(self._agent.config), rounds=self._rounds), self._caps
        names = () if caps is None else ("calls", "tokens", "money", "seconds")
        both = {name: (getattr(bounds, name), getattr(caps, name)) for name in names}
        return replace(bounds, **{name: min(each for each in pair if each is not None) for name, pair in both.items()})

    @property
    def _caps(self) -> Limits | None:
        """The caps of the submission, none above those of the worker's configuration."""
        if not (given := self._submission.get("caps")):
            return None
        most = self._agent.config.caps.to_json()
        # A submission that is older than a cap does not have it.
        return Limits.from_json({name: min(given.get(name, most[name]), most[name]) for name in most}, RUN)

    async def _plan(self, answered: StoredAnswers) -> Mapping[str, Any]:
        """The plan of the run and what planning knows of it, as it is stored; or why a first look is needed.

        The plan is the submitted one, the one an earlier attempt stored, or a new one, which is stored.
        """
        given = self._submission["plan"]
        if (planned_json := self._row["planned"]) is None and given is not None:
            # Whoever submitted it may have written bindings with labels of their own: it is bound here, or not run.
            # Stored like a plan for a request: what its words were bound to must not change between two attempts.
            plan = drop_bindings(Plan.model_validate_json(given))
            planned_json = await self._bind_plan(plan, DeferredAsker(answered))
            await self._runs.dispatch.run(keep_plan, self._lease, planned_json)
        if planned_json is None and "planned" in self._submission:
            # Whoever submitted it had it from the planner of this very server; its run checks it for its request.
            planned_json = json.dumps(self._submission["planned"], separators=(",", ":"))
            await self._runs.dispatch.run(keep_plan, self._lease, planned_json)
        if planned_json is None:
            asker = DeferredAsker(answered)
            deterministic = bool(self._submission["deterministic"])
            request = user_input(self._submission["request"])
            found = await plan_or_look(
                self._agent, request, rounds=self._rounds, deterministic=deterministic, asker=asker
            )
            facts = _look_facts(found) if isinstance(found, FirstLook) else planned_facts(found)
            planned_json = json.dumps(facts, separators=(",", ":"))
            await self._runs.dispatch.run(keep_plan, self._lease, planned_json)
        return json.loads(planned_json)

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

    def _result_of(self, outcome: RunOutcome) -> AttemptResult:
        match outcome:
            case Waiting(run=run, question=question, ask=ask):
                number = len(self._runs.run_journal.events_after(run, -1))
                part = {} if run == self._lease.run else {"part": run}
                if question is not None:
                    asked = {"calls": question.to_json(), "before": question.before}
                    return AttemptWaits("calls", asked | part, number)
                return AttemptWaits("ask", ({} if ask is None else ask.to_json()) | part, number)
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


def _parse_planned(facts: Mapping[str, Any]) -> tuple[Plan, Intent | None, dict[str, Any]]:
    """A stored plan, its intent, and what planning knows of it, as options of `run_plan`."""
    plan = Plan.model_validate_json(facts["plan"])
    intent = None if facts["intent"] is None else Intent.model_validate_json(facts["intent"])
    # A plan that an earlier version stored has neither doubts nor a start nor a choice.
    doubts = tuple(map(Doubt.from_json, facts.get("doubts", ())))
    spent = ChamberUsage(**facts["spent"])
    start = None if facts.get("start") is None else StartState.from_json(facts["start"])
    record = {"planning": spent, "planned_by": facts["calls"], "doubts": doubts, "start": start}
    return plan, intent, record | {"choice": facts.get("choice")}


def _look_facts(found: FirstLook) -> dict[str, Any]:
    """Why the request is worked on in rounds, for every attempt; with the plan that there was before, if any."""
    error = None if found.error is None else found.error.to_json()
    before = {"intent": found.intent.to_json()} if found.planned is None else planned_facts(found.planned)
    return before | {"look": {"reason": found.reason, "error": error}}
