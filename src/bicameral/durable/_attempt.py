"""One attempt at a run by a worker: plan it if nobody has, run it or go on with it, and say how that ended.

Nothing of this is remembered but in the database and the journal, so it may break off anywhere: whoever takes the run
next finds a plan or makes one, finds a record and goes on from it, or finds its end and only writes that down.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from bicameral.agent import Agent, Planned
from bicameral.errors import BicameralError, DurableError, PlanError
from bicameral.intent import Intent
from bicameral.labels import received
from bicameral.plans import Plan
from bicameral.runs import (
    Caps,
    Event,
    Failed,
    Finished,
    Interrupted,
    Leaving,
    RunOutcome,
    Stopped,
    Waiting,
    resume_plan,
    run_plan,
)
from bicameral.sessions import Spent
from bicameral.tools import CHANGING

from ._ended import Ended, ended, outcome_of, refused
from ._leases import Lease, keep_plan, went_on
from ._people import Answered, LaterApprover, LaterAsker, OpenRequest
from ._questions import of_run

if TYPE_CHECKING:
    import sqlalchemy as sa

    from ._runs import Runs


@dataclass(frozen=True, slots=True)
class Asks:
    """The run waits: for a yes to calls, or for a reply."""

    kind: str
    question: dict[str, Any]
    number: int


@dataclass(frozen=True, slots=True)
class Broken:
    """The attempt came to nothing, and the run did not end: it is tried again."""

    error: BicameralError


Came = Ended | Asks | Broken

_NOT_ITS_OWN = ("run.other-code", "run.left", "journal.", "durable.")
"""What does not end a run: another worker, or a later one, may well do it."""


class Attempt:
    """What a worker does with a run that it has taken. `leaving` says whether it is to be left to others."""

    def __init__(self, runs: Runs, lease: Lease, row: sa.RowMapping, agent: Agent, leaving: Leaving) -> None:
        self._runs = runs
        self._lease = lease
        self._row = row
        self._agent = agent
        self._leaving = leaving
        self._submission = cast("dict[str, Any]", json.loads(row["submission"]))

    @property
    def within(self) -> float:
        """Seconds for which a question of this run waits."""
        return float(self._submission.get("answer_within") or self._runs.config.durable.answer_within)

    async def came_to(self) -> Came:
        """How this attempt ended."""
        run, journal = self._lease.run, self._runs.record
        events = await asyncio.to_thread(journal.after, run, -1)
        if (found := outcome_of(events)) is not None:
            return found
        if self._row["cancel"]:
            return await asyncio.to_thread(self._never_again, events)
        if not await self._came_further(events) and self._row["deaths"] >= self._runs.config.durable.deaths:
            return await asyncio.to_thread(self._given_up, events)
        rows = await self._runs.database.do(lambda db: of_run(self._runs.database, db, run))
        answered = Answered.of(rows, events)
        try:
            outcome = await (self._resumed(answered) if events else self._begun(answered))
        except OpenRequest as waits:
            return Asks("ask", waits.asked, 0)
        except BicameralError as error:
            return Broken(error) if error.code.startswith(_NOT_ITS_OWN) else refused(error)
        return await asyncio.to_thread(self._told, outcome, len(events))

    async def _came_further(self, events: Sequence[Event]) -> bool:
        """Whether the run has come further than when it was last looked at; then it is not stuck."""
        reached = sum(1 for event in events if event.kind == "step-finished")
        if reached > self._row["reached"]:
            await self._runs.database.do(lambda db: went_on(self._runs.database, db, self._lease, reached))
        return reached > self._row["reached"]

    def _given_up(self, events: Sequence[Event]) -> Ended:
        """A run with which one worker after the other was lost, or could not go on."""
        last = f"; the last time: {self._row['why']}" if self._row["why"] else ""
        error = DurableError(
            "durable.poison",
            f"{self._row['deaths']} attempts in a row were lost, and the run got no further{last}",
            fix="Look at its last step: `bicameral runs show`. Submit it again when that is mended.",
        )
        if events:
            self._runs.record.append(
                self._lease.run, "run-failed", "", {"error": error.to_json(), "effects": _effects(events)}
            )
        return refused(error, {"effects": _effects(events)})

    def _never_again(self, events: Sequence[Event]) -> Ended:
        """A run that was cancelled while its worker died."""
        effects = _effects(events)
        if events:
            facts: dict[str, Any] = {"in_flight": [], "why": "it was cancelled", "effects": effects}
            self._runs.record.append(self._lease.run, "run-stopped", "", facts)
        return Ended("stopped", "it was cancelled", {"effects": effects})

    async def _begun(self, answered: Answered) -> RunOutcome:
        plan, intent, spent, calls = await self._plan(answered)
        checked = self._agent.check(plan, intent=intent)
        if not checked.ok:
            first = checked.report.errors[0]
            raise PlanError(first.code, f"the plan does not pass the check: {first}")
        return await run_plan(
            plan,
            self._agent.registry,
            journal=self._runs.record,
            extractor=self._agent.executor,
            asker=LaterAsker(answered),
            approver=LaterApprover(answered),
            policy=self._agent.policy,
            intent=intent,
            run=self._lease.run,
            planning=spent,
            planned_by=calls,
            caps=self._caps or self._agent.config.caps,
            leaving=self._leaving,
        )

    async def _resumed(self, answered: Answered) -> RunOutcome:
        return await resume_plan(
            self._runs.record,
            self._lease.run,
            self._agent.registry,
            policy=self._agent.policy,
            extractor=self._agent.executor,
            asker=LaterAsker(answered),
            approver=LaterApprover(answered),
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

    async def _plan(self, answered: Answered) -> tuple[Plan, Intent | None, Spent | None, Sequence[dict[str, Any]]]:
        """The plan of the run: the one that was submitted, the one that was made, or a new one that is kept."""
        if (given := self._submission["plan"]) is not None:
            return Plan.model_validate_json(given), None, None, ()
        if (kept := self._row["planned"]) is None:
            asker = LaterAsker(answered)
            deterministic = bool(self._submission["deterministic"])
            request = received(self._submission["request"])
            planned = await self._agent.plan(request, deterministic=deterministic, asker=asker)
            kept = _kept(planned)
            text = kept
            await self._runs.database.do(lambda db: keep_plan(self._runs.database, db, self._lease, text))
        found = json.loads(kept)
        plan, intent = Plan.model_validate_json(found["plan"]), Intent.model_validate_json(found["intent"])
        return plan, intent, Spent(**found["spent"]), found["calls"]

    def _told(self, outcome: RunOutcome, before: int) -> Came:
        match outcome:
            case Waiting(question=question, ask=ask):
                number = before + len(self._runs.record.after(self._lease.run, before - 1))
                if question is not None:
                    return Asks("calls", {"calls": question.to_json(), "before": question.before}, number)
                return Asks("ask", {} if ask is None else ask.to_json(), number)
            case Interrupted(error=error):
                return Broken(error)
            case Finished() | Failed() | Stopped():
                return ended(outcome)


def _effects(events: Sequence[Event]) -> list[dict[str, str]]:
    """What a run has done to the world, by its record."""
    begun = {event.step: event.body for event in events if event.kind == "step-started"}
    done = [event.step for event in events if event.kind == "step-finished"]
    return [
        {"step": step, "tool": begun[step]["tool"], "effect": begun[step]["effect"]}
        for step in done
        if begun.get(step, {}).get("effect") in CHANGING
    ]


def _kept(planned: Planned) -> str:
    facts = {
        "plan": planned.plan.to_json(),
        "intent": planned.intent.to_json(),
        "spent": planned.spent.to_json(),
        "calls": [dict(call) for call in planned.calls],
    }
    return json.dumps(facts, separators=(",", ":"))
