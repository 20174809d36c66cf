"""Work on a request with a strategy: a run like any other, with its record, its approvals and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bicameral.decisions import Allowed, Ask, CallFacts
from bicameral.errors import RunError
from bicameral.labels import TRUSTED_USER, Labelled, Shade, opened, own_value
from bicameral.routing import BudgetSpent
from bicameral.runs import (
    Approver,
    CapMeter,
    Caps,
    Door,
    Failed,
    Finished,
    Grants,
    Interrupted,
    Journal,
    Judge,
    Judged,
    LiveHands,
    Observer,
    PolicyJudge,
    RecordedHands,
    RunOutcome,
    Stopped,
    Waiting,
    run_work,
    shade_json,
)
from bicameral.sessions import Ledger, Spent, counted, within
from bicameral.tools import Registry

from ._bounds import Bounds, Exhaustion, Meter, Taken
from ._conversation import Audience, Conversation, Voices
from ._native_react import native_react
from ._outcome import Answered, Exhausted, GaveUp, Turn, Worked
from ._phases import Params, StrategyName
from ._plan_and_execute import plan_and_execute
from ._spar import spar
from ._words import SYSTEM

if TYPE_CHECKING:
    from bicameral.policy import Policy

Strategy = Callable[[Conversation, Params], Awaitable[str]]
_STRATEGIES: Mapping[str, Strategy] = {
    "native_react": native_react,
    "plan_and_execute": plan_and_execute,
    "spar": spar,
}
_NOTHING = Taken(0, 0, Spent(), 0.0)


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything that work needs besides the request: models, tools, policy, and whoever is there."""

    voices: Voices
    registry: Registry
    policy: Policy
    bounds: Bounds = field(default_factory=Bounds)
    journal: Journal | None = None
    approver: Approver | None = None
    observer: Observer | None = None
    audience: Audience = field(default_factory=Audience)
    careful: bool = False
    """Whether a person is asked before every call that cannot be taken back, also where policy allows it."""
    caps: Caps = field(default_factory=Caps)
    """How much the whole of it may take, tools and models together."""


async def work(request: str | Labelled[str], strategy: StrategyName, desk: Desk) -> Worked:
    """Do what a request asks for. Stopping the task that awaits this gives a `GaveUp`; nothing that was done is lost.

    A naked request is the user's own words. One with a label, such as the answer of an earlier outcome
    (`outcome.labelled`), keeps it: if a stranger had a hand in it, the quarantined model works on it from the start.

    Calls are always judged strictly, whatever the mode: which tool is called is itself something that the model wrote,
    and there is no plan of a trusted hand whose control flow could be told from its data.
    """
    judge = Careful(desk.policy) if desk.careful else PolicyJudge(desk.policy, "strict")
    works: list[Working] = []
    asked = own_value(request) if isinstance(request, str) else request

    def make(hands: LiveHands) -> Working:
        works.append(Working(asked, strategy, desk, judge, hands))
        return works[0]

    outcome = await run_work(
        make,
        lambda: _facts(asked, strategy, desk, judge),
        journal=desk.journal,
        observer=desk.observer,
        approver=desk.approver,
        told={"bicameral.strategy": strategy},
        meter=CapMeter(desk.caps),
    )
    return _worked(outcome, strategy, works[0] if works else None)


class Careful(PolicyJudge):
    """Policy decides, and what it allows is asked about all the same if it cannot be taken back.

    Nobody has read a plan beforehand and said that it may run.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, "strict")

    def judge(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> Judged:
        judged = super().judge(step, facts, values, grants)
        if isinstance(judged.decision, Allowed) and facts.effect in ("send", "irreversible"):
            return Judged(Ask(f"{facts.tool}: it cannot be taken back. Shall it be done?"))
        return judged

    def allows(self, facts: CallFacts) -> bool:
        return super().allows(facts) and facts.effect not in ("send", "irreversible")


@dataclass(slots=True)
class Working:
    """One request being worked on."""

    request: Labelled[str]
    strategy: StrategyName
    desk: Desk
    judge: Judge
    hands: LiveHands | RecordedHands
    talk: Conversation | None = None
    ledger: Ledger = field(default_factory=Ledger)

    async def run(self) -> Any:
        desk = self.desk
        with counted() as self.ledger:
            meter = Meter(desk.bounds, self.ledger)
            door = Door(self.judge, self.hands)
            self.talk = Conversation(desk.voices, door, self.hands, desk.registry, meter, desk.audience)
            self.talk.system(SYSTEM)
            self.talk.tell(opened(self.request), self.request.label)
            limit = asyncio.timeout(desk.bounds.seconds)
            try:
                async with limit:
                    with within(meter):
                        return await _STRATEGIES[self.strategy](self.talk, desk.voices.params)
            except TimeoutError:
                if limit.expired():
                    raise meter.out_of_time() from None
                raise

    @property
    def answer_shade(self) -> Shade | None:
        return None if self.talk is None else self.talk.label

    @property
    def written(self) -> Mapping[str, Shade]:
        return {} if self.talk is None else self.talk.written

    @property
    def turns(self) -> tuple[Turn, ...]:
        return () if self.talk is None else tuple(self.talk.turns)


def _facts(request: Labelled[str], strategy: StrategyName, desk: Desk, judge: Judge) -> dict[str, Any]:
    bounds, params = desk.bounds, desk.voices.params
    label = {} if request.shade is TRUSTED_USER else {"request_shade": shade_json(request.shade)}
    return label | {
        "request": opened(request),
        "intent": None,
        "strategy": strategy,
        "params": {
            "max_step_iterations": params.max_step_iterations,
            "max_steps": params.max_steps,
            "reflect_every_step": params.reflect_every_step,
            "phase_models": dict(params.phase_models),
        },
        "bounds": {name: getattr(bounds, name) for name in ("rounds", "calls", "tool_calls", "tokens", "seconds")},
        "tools": {tool.name: tool.fingerprint for tool in desk.registry},
        "policy": judge.fingerprint,
        "mode": judge.mode,
    }


def _worked(outcome: RunOutcome, strategy: StrategyName, work: Working | None) -> Worked:
    turns = () if work is None else work.turns
    taken = _NOTHING if work is None or work.talk is None else work.talk.meter.taken
    match outcome:
        case Finished(run=run, answer=answer, shade=shade, effects=effects):
            left_open = () if work is None or work.talk is None else tuple(work.talk.left_open)
            return Answered(run, strategy, answer, shade, turns, taken, effects, left_open)
        case Failed(
            run=run,
            error=Exhaustion(bound=bound, spent=spent, limit=limit)
            | BudgetSpent(bound=bound, spent=spent, limit=limit),
            effects=effects,
        ):
            return Exhausted(run, strategy, bound, spent, limit, turns, taken, effects)
        case Failed(run=run, error=error, effects=effects):
            return GaveUp(run, strategy, error, turns, taken, effects)
        case Stopped(run=run, effects=effects, in_flight=in_flight):
            error = RunError("run.stopped", "the work was stopped")
            return GaveUp(run, strategy, error, turns, taken, effects, in_flight)
        case Interrupted(run=run, error=error, effects=effects):
            return GaveUp(run, strategy, error, turns, taken, effects)
        case Waiting(run=run, effects=effects):
            # A conversation cannot be resumed, so whoever is asked in one cannot let it wait.
            return GaveUp(run, strategy, RunError("run.waits", "the work waits"), turns, taken, effects)
