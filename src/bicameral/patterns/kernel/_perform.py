"""Run a pattern as a run like any other: with its record, its approvals, its bounds and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bicameral.errors import RunError
from bicameral.labels import UNKNOWN, Labelled, Shade, escapes_to, opened
from bicameral.routing import BudgetSpent
from bicameral.runs import (
    CapMeter,
    Door,
    Failed,
    Finished,
    Interrupted,
    Judge,
    LiveHands,
    PolicyJudge,
    RunOutcome,
    Stopped,
    Waiting,
    run_work,
)
from bicameral.sessions import Spent, counted, within
from bicameral.strategies import Careful, Desk, Exhaustion, Meter, Taken

from ._outcome import Answered, Exhausted, GaveUp, Outcome
from ._stage import Shared, Stage

T = TypeVar("T")
_NOTHING = Taken(0, 0, Spent(), 0.0)


async def perform(
    pattern: str, knobs: Mapping[str, Any], desk: Desk, work: Callable[[Stage], Awaitable[Labelled[T]]]
) -> Outcome[T]:
    """Let `work` have a stage, and say how it ended. Stopping the task that awaits this gives a `GaveUp`.

    Calls of tools are judged strictly, whatever the mode.
    """
    judge = Careful(desk.policy) if desk.careful else PolicyJudge(desk.policy, "strict")
    shows: list[_Performance] = []

    def make(hands: LiveHands) -> _Performance:
        shows.append(_Performance(desk, judge, hands, work))
        return shows[0]

    outcome = await run_work(
        make,
        lambda: _facts(pattern, knobs, desk, judge),
        journal=desk.journal,
        observer=desk.observer,
        approver=desk.approver,
        told={"bicameral.pattern": pattern},
        meter=CapMeter(desk.caps),
    )
    return _came_to(outcome, pattern, shows[0] if shows else None)


@dataclass(slots=True)
class _Performance:
    """One pattern being run."""

    desk: Desk
    judge: Judge
    hands: LiveHands
    work: Callable[[Stage], Awaitable[Labelled[Any]]]
    stage: Stage | None = None
    given: Labelled[Any] | None = None
    written: dict[str, Shade] = field(default_factory=dict[str, Shade])

    async def run(self) -> Any:
        desk = self.desk
        with counted() as ledger:
            meter = Meter(desk.bounds, ledger)
            door = Door(self.judge, self.hands)
            shared = Shared(desk.voices, door, self.hands, desk.registry, written=self.written, audience=desk.audience)
            self.stage = Stage(shared, meter)
            limit = asyncio.timeout(desk.bounds.seconds)
            try:
                async with limit:
                    with within(meter), escapes_to(shared.note_escape):
                        given = await self.work(self.stage)
            except TimeoutError:
                if limit.expired():
                    raise meter.out_of_time() from None
                raise
            # Which value it is was decided with everything that was opened on the way.
            self.given = given.under(self.stage.opened)
            return opened(self.given)

    @property
    def answer_shade(self) -> Shade | None:
        return None if self.given is None else self.given.shade


def _facts(pattern: str, knobs: Mapping[str, Any], desk: Desk, judge: Judge) -> dict[str, Any]:
    bounds = desk.bounds
    return {
        "request": f"pattern {pattern}",
        "intent": None,
        "pattern": pattern,
        "knobs": dict(knobs),
        "bounds": {name: getattr(bounds, name) for name in ("rounds", "calls", "tool_calls", "tokens", "seconds")},
        "tools": {tool.name: tool.fingerprint for tool in desk.registry},
        "policy": judge.fingerprint,
        "mode": judge.mode,
    }


def _came_to(outcome: RunOutcome, pattern: str, show: _Performance | None) -> Outcome[Any]:
    stage = None if show is None else show.stage
    trace = () if stage is None else tuple(stage.shared.trace)
    taken = _NOTHING if stage is None else stage.meter.taken
    match outcome:
        case Finished(run=run, answer=answer, shade=shade, effects=effects):
            # Without a label it would be trusted by nobody.
            return Answered(run, pattern, trace, taken, effects, answer, UNKNOWN if shade is None else shade)
        case Failed(
            run=run,
            error=Exhaustion(bound=bound, spent=spent, limit=limit)
            | BudgetSpent(bound=bound, spent=spent, limit=limit),
            effects=effects,
        ):
            return Exhausted(run, pattern, trace, taken, effects, bound, spent, limit)
        case Failed(run=run, error=error, effects=effects) | Interrupted(run=run, error=error, effects=effects):
            return GaveUp(run, pattern, trace, taken, effects, error)
        case Stopped(run=run, effects=effects, in_flight=in_flight):
            return GaveUp(run, pattern, trace, taken, effects, RunError("run.stopped", "it was stopped"), in_flight)
        case Waiting(run=run, effects=effects):
            # A pattern cannot be resumed, so whoever is asked in one cannot let it wait.
            return GaveUp(run, pattern, trace, taken, effects, RunError("run.waits", "it waits"))
