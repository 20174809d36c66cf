"""The record of a reasoning: what it writes to the journal, and how another process continues from it.

A reasoning that can be continued records each plan before it runs, so that no round is planned twice, and gives the run
of each round an id of its own. Whoever continues it computes the ended rounds again from the records of their runs:
variables, labels and what the planner was told come from the same code, and no tool and no model is asked. The round
that was under way is resumed like any other run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from bicameral.errors import BicameralError, JournalError, RunError
from bicameral.labels import label_tree_to_json
from bicameral.limits import REASONING, Limits, LimitUsage
from bicameral.patterns._outcome import Answered, Exhausted, GaveUp, Outcome
from bicameral.patterns._reasoner_types import Round, RoundFailure
from bicameral.planning import CompiledPlan, Intent
from bicameral.plans import Plan, Report
from bicameral.runs import (
    Approver,
    Asker,
    Doubt,
    Event,
    EventWriter,
    Failed,
    Interrupted,
    Journal,
    RunOutcome,
    ShouldLeave,
    Waiting,
    previous_attempts,
    recorded_error,
)
from bicameral.types import Type, type_from_json, type_to_json

if TYPE_CHECKING:
    from bicameral.policy import Policy


@dataclass(frozen=True, slots=True)
class ResumableRounds:
    """Makes a reasoning one that any process can continue.

    Args:
        run: The id of the reasoning.
        journal: Where it and the runs of its rounds are recorded.
        people: The asker and the approver of a round, given the id of its run. They may suspend it.
        events: What earlier attempts have recorded under the id of the reasoning.
        leaving: As in `run_plan`.
    """

    run: str
    journal: Journal
    people: Callable[[str], tuple[Asker, Approver]]
    events: Sequence[Event] = ()
    leaving: ShouldLeave | None = None

    def run_of_round(self, number: int) -> str:
        """The id of the run of a round: the same in every attempt, so that no effect gets another key."""
        return f"{self.run}-{number}"

    def raise_unfinished(self, outcome: RunOutcome) -> None:
        """Raise `RoundsSuspended` if the run of a round has not ended: somebody will resume it."""
        match outcome:
            case Waiting() | Interrupted():
                raise RoundsSuspended(outcome)
            case Failed(error=JournalError(code="journal.run-exists") as error):
                # Another process began it a moment ago: whoever has the reasoning resumes it.
                raise RoundsSuspended(Interrupted(outcome.run, error))
            case _:
                return


class RoundsSuspended(Exception):
    """A resumable reasoning has not ended: its round waits for a person, or is left to another process."""

    def __init__(self, outcome: Waiting | Interrupted) -> None:
        super().__init__("the reasoning goes on later")
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class PlannedRound:
    """The plan of a round as it was recorded before it ran."""

    plan: Plan
    draft: Plan
    draft_types: Mapping[str, Type]
    looks: tuple[str, ...] | None
    doubts: tuple[Doubt, ...]
    calls: tuple[dict[str, Any], ...]

    def compiled(self, report: Report) -> CompiledPlan:
        """The plan with the report of its check."""
        return CompiledPlan(
            self.plan,
            report,
            mismatches=(),
            repairs=0,
            cached=False,
            seconds=0.0,
            looks=self.looks,
            draft=self.draft,
            draft_types=self.draft_types,
        )

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> PlannedRound:
        looks = facts["looks"]
        return cls(
            Plan.model_validate_json(facts["plan"]),
            Plan.model_validate_json(facts["draft"]),
            {str(name): type_from_json(each) for name, each in facts["draft_types"].items()},
            None if looks is None else tuple(map(str, looks)),
            tuple(map(Doubt.from_json, facts["doubts"])),
            tuple(map(dict[str, Any], facts["calls"])),
        )


@dataclass(frozen=True, slots=True)
class RecordedRounds:
    """What earlier attempts at a reasoning have recorded."""

    plans: Mapping[int, PlannedRound] = field(default_factory=dict[int, PlannedRound])
    ended: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    end: Mapping[str, Any] | None = None
    taken: LimitUsage = field(default_factory=lambda: LimitUsage(scope=REASONING))

    @classmethod
    def read(cls, resumable: ResumableRounds | None) -> RecordedRounds:
        """From the events of earlier attempts; nothing if there are none."""
        if resumable is None or not resumable.events:
            return cls()
        bodies = [(event.kind, event.body) for event in resumable.events]
        try:
            plans = {int(body["round"]): PlannedRound.from_json(body) for kind, body in bodies if kind == PLANNED}
            ended = {int(body["round"]): body for kind, body in bodies if kind == "reason-round"}
            end = next((body for kind, body in bodies if kind == "reason-ended"), None)
            known = [body["taken"] for _, body in bodies if "taken" in body]
            taken = LimitUsage.from_json(known[-1], REASONING) if known else cls().taken
        except (KeyError, TypeError, ValueError, BicameralError) as error:
            raise JournalError("journal.damaged", f"the rounds of {resumable.run} cannot be read: {error}") from None
        under_way = [resumable.run_of_round(number) for number in plans if number not in ended]
        return cls(plans, ended, end, _with_usage_of(taken, resumable.journal, under_way))

    def failure(self, number: int) -> RoundFailure | None:
        """How a round failed for which nothing was run; None if it was run, or is not recorded."""
        body = self.ended.get(number, {})
        facts = body.get("failure")
        return RoundFailure(**facts) if facts is not None and body.get("run") is None else None

    def final_error(self, number: int) -> BicameralError | None:
        """The error with which the reasoning was to end after this round."""
        facts = self.ended.get(number, {}).get("final")
        return None if facts is None else recorded_error(facts)


def _with_usage_of(taken: LimitUsage, journal: Journal, runs: Sequence[str]) -> LimitUsage:
    """The usage, with what earlier attempts have taken in runs that have not ended."""
    for run in runs:
        if events := journal.events_after(run, -1):
            earlier = previous_attempts(events)
            taken = LimitUsage.of_models(
                taken.models + earlier.usage.spent,
                REASONING,
                money=taken.money + earlier.usage.money,
                seconds=taken.seconds + earlier.seconds,
            )
    return taken


PLANNED = "reason-planned"


class ReasoningRecord:
    """Records one reasoning under its id; without a journal nothing is recorded.

    A process that was taken for dead and is not writes nothing more: another one has written the next event.
    """

    def __init__(self, id: str, journal: Journal | None, resumable: ResumableRounds | None = None) -> None:
        events = () if resumable is None else resumable.events
        self._events = events
        self._is_resumable = resumable is not None
        self._writer = EventWriter(id, journal, first=len(events))

    def record_start(self, intent: Intent, bounds: Limits, policy: Policy, why: str = "") -> None:
        """Record the beginning; or that this process continues, which nobody else may then do."""
        if self._events:
            self._check_same_policy(self._events[0], policy)
            if any(event.kind == "reason-ended" for event in self._events):
                return
            attempts = 1 + sum(event.kind == "run-resumed" for event in self._events)
            self._writer.write("run-resumed", "", {"attempt": attempts + 1})
            return
        facts = {
            "request": intent.request,
            "bounds": bounds.to_json(),
            "policy": policy.fingerprint,
            "mode": policy.mode,
        }
        self._writer.write("reason-started", "", facts | ({"why": why} if why else {}))

    def record_plan(
        self,
        number: int,
        run: str,
        compiled: CompiledPlan,
        doubts: Sequence[Doubt],
        calls: Sequence[Mapping[str, Any]],
        taken: LimitUsage,
    ) -> None:
        """Record the plan of a round before it runs, with all that later rounds take from it."""
        facts: dict[str, Any] = {
            "round": number,
            "run": run,
            "plan": compiled.plan.to_json(),
            "draft": (compiled.draft or compiled.plan).to_json(),
            "draft_types": {name: type_to_json(each) for name, each in compiled.draft_types.items()},
            "looks": None if compiled.looks is None else list(compiled.looks),
            "doubts": [doubt.to_json() for doubt in doubts],
            "calls": [dict(call) for call in calls],
            "taken": taken.to_json(),
        }
        self._writer.write(PLANNED, "", facts)

    def record_round(
        self,
        this: Round,
        calls: Sequence[Mapping[str, Any]],
        taken: LimitUsage,
        final: BicameralError | None = None,
    ) -> None:
        """Record a round with the exact lines that the reasoner saw, and their label: nothing else crosses to it.

        `final` is the error with which the reasoning is to end after it.
        """
        facts: dict[str, Any] = {
            "round": this.number,
            "run": this.run,
            "told": list(this.told),
            "left": list(this.left),
            "read": label_tree_to_json(this.read),
            "taken": taken.to_json(),
        }
        facts |= {"planning_calls": [dict(call) for call in calls]} if calls else {}
        if this.failure is not None:
            facts |= {"failed": str(this.failure), "failure": asdict(this.failure)}
        self._writer.write("reason-round", "", facts | ({} if final is None else {"final": final.to_json()}))

    def record_end(self, reasoned: Outcome[Any]) -> Outcome[Any]:
        """Record the outcome and return it.

        If the journal fails, a `GaveUp`, since nothing that was done is undone; a resumable reasoning has not ended.
        """
        facts: dict[str, Any] = {"ok": reasoned.ok, "taken": reasoned.taken.to_json()}
        facts |= {"doubts": [doubt.to_json() for doubt in reasoned.doubts]} if reasoned.doubts else {}
        match reasoned:
            case Exhausted(bound=bound):
                facts["bound"] = bound
            case GaveUp(error=error):
                facts["error"] = error.to_json()
            case Answered():
                pass
        try:
            self._writer.write("reason-ended", "", facts)
        except JournalError as error:
            if self._is_resumable:
                raise
            common = {name: getattr(reasoned, name) for name in ("run", "way", "taken", "effects", "doubts", "rounds")}
            return reasoned if isinstance(reasoned, GaveUp) else GaveUp(error=error, **common)
        return reasoned

    @staticmethod
    def _check_same_policy(first: Event, policy: Policy) -> None:
        # Ended rounds are computed again: under other policies they would have other labels and other proofs.
        if (first.body.get("policy"), first.body.get("mode")) != (policy.fingerprint, policy.mode):
            raise other_code_error(first.run, "the policies are others")


def other_code_error(run: str, what: str) -> RunError:
    """The reasoning cannot be continued here, and can be where everything is as it was."""
    return RunError(
        "run.other-code",
        f"the rounds of {run} cannot be continued here: {what}",
        fix="Continue it with what it was begun with, or begin anew.",
    )
