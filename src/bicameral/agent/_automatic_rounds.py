"""Requests from start to end: one plan where that is enough, and rounds by themselves where a first look decides.

Rounds are bounded (`rounds` in `[planning]`), each plan of them is checked, proved and recorded like any other, and the
planner sees of results what it sees in rounds that somebody asked for: numbers, days, yes or no.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bicameral.agent._run_events import NOBODY_TOLD, EventCallbacks, RunOptions
from bicameral.errors import BicameralError, PlanError, RunError
from bicameral.labels import Labelled
from bicameral.planning import LOOK, Intent, look_after_refusal, look_before_plan
from bicameral.runs import Failed, Finished, RunOutcome, RunUsage, Stopped

if TYPE_CHECKING:
    from bicameral.agent._agent import Agent
    from bicameral.agent._escalation import Planned
    from bicameral.agent._material import Material
    from bicameral.agent._typed_output import OutputType
    from bicameral.patterns import Outcome


@dataclass(frozen=True, slots=True)
class FirstLook:
    """Why a request is worked on in rounds, and what there was instead: a plan, or the error that there is none."""

    reason: str
    intent: Intent
    planned: Planned | None = None
    error: BicameralError | None = None

    def fall_back(self, reasoned: Outcome[Any]) -> Planned | None:
        """The plan to run instead, if the rounds led to nothing and changed nothing; None if they count."""
        return self.planned if rounds_led_to_nothing(reasoned, self.error) else None


def rounds_led_to_nothing(reasoned: Outcome[Any], error: BicameralError | None) -> bool:
    """Whether what there was before the rounds counts: they have no answer, and have changed nothing.

    That was a plan, or the `error` that there is none, which is then raised: a refusal stays what it is, and rounds
    that find nothing must not turn it into another error. A person's no is an end of its own.
    """
    if reasoned.ok or reasoned.effects or _was_ended_by_person(reasoned):
        return False
    if error is not None:
        raise error
    return True


async def plan_or_look(
    agent: Agent, request: str | Labelled[str], *, rounds: int | None = None, **options: Any
) -> Planned | FirstLook:
    """The plan for a request, or the reason for which a first look is needed.

    Args:
        agent: Whose models and settings are used.
        request: What is to be done.
        rounds: The most rounds, by default as configured; with one round there is no first look.
        options: Further arguments of `Agent.plan`.
    """
    most = agent.config.planning.rounds if rounds is None else rounds
    may_look = most > 1 and LOOK not in agent.registry
    intents: list[Intent] = []
    try:
        planned = await agent.plan(request, understood=intents.append, **options)
    except PlanError as error:
        reason = look_after_refusal(error) if may_look else None
        if reason is None or not intents:
            raise
        return FirstLook(reason, intents[-1], error=error)
    reason = look_before_plan(planned.plan) if may_look else None
    return planned if reason is None else FirstLook(reason, planned.intent, planned)


@dataclass(frozen=True, slots=True)
class RequestRun:
    """Runs a request: by one plan, or in rounds."""

    agent: Agent
    options: RunOptions
    output: OutputType[Any] | None = None
    told: EventCallbacks = NOBODY_TOLD
    material: Material | Labelled[str] | str | None = None

    async def run(self, request: str | Labelled[str], *, deterministic: bool = False) -> RunOutcome:
        """Plan and run. Where rounds lead to nothing and have changed nothing, what there was before them counts."""
        asker = self.options.asker
        found = await plan_or_look(
            self.agent,
            request,
            # Rounds begin without variables, and would not see the material.
            rounds=None if self.material is None else 1,
            asker=asker,
            deterministic=deterministic,
            watch=self.told.statement,
            material=self.material,
        )
        if not isinstance(found, FirstLook):
            return await self._run_planned(found)
        reasoned = await self.agent.reason(
            found.intent,
            rounds=self.agent.config.planning.rounds,
            asker=asker,
            approver=self.options.approver,
            observer=self.options.observer,
            why=found.reason,
            caps=self.options.caps,
        )
        instead = found.fall_back(reasoned)
        return outcome_of_rounds(reasoned) if instead is None else await self._run_planned(instead)

    async def _run_planned(self, planned: Planned) -> RunOutcome:
        if self.told.planned is not None:
            self.told.planned(planned)
        return await self.agent.run_checked(planned, self.options, self.output)


_ENDED_BY_PERSON = (
    "reason.declined",
    "reason.interrupted",
    "run.refused",
    "run.needs-approval",
    "run.needs-answer",
    # An effect that may have happened, and that a person does not want done again: the other plan might.
    "run.in-doubt",
)


def _was_ended_by_person(reasoned: Outcome[Any]) -> bool:
    """Whether a person, or the lack of one, ended the rounds: then another plan must not be tried instead."""
    error = getattr(reasoned, "error", None)
    return isinstance(error, BicameralError) and error.code in _ENDED_BY_PERSON


def outcome_of_rounds(reasoned: Outcome[Any]) -> RunOutcome:
    """The outcome of rounds as that of one run, with the effects and doubts of all rounds."""
    runs = [each.outcome for each in reasoned.rounds if each.outcome is not None]
    common: dict[str, Any] = {
        "effects": reasoned.effects,
        "usage": sum((run.usage for run in runs), RunUsage()),
        "alerts": tuple(alert for run in runs for alert in run.alerts),
        "doubts": tuple(dict.fromkeys(doubt for run in runs for doubt in run.doubts)),
        "citations": tuple(dict.fromkeys(citation for run in runs for citation in run.citations)),
    }
    last = runs[-1] if runs else None
    error = getattr(reasoned, "error", None)
    if not isinstance(error, BicameralError):
        error = RunError("reason.exhausted", "there is no answer within the bounds of the rounds", fix="Allow more.")
    # A run that was stopped since the bounds of the rounds were reached was not stopped by anybody.
    stopped_by_bounds = isinstance(last, Stopped) and error.code == "reason.exhausted"
    if last is not None and not stopped_by_bounds and (reasoned.ok or not isinstance(last, Finished)):
        return replace(last, **common)
    # The last plan only looked: its answer is no answer to the request.
    return Failed(reasoned.run, error, "", reasoned.taken.seconds, **common)
