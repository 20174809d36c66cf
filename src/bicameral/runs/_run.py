"""Run a plan and write down what happened."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bicameral.boundary import Executor
from bicameral.intent import Intent
from bicameral.journal import Journal
from bicameral.plans import Call, Conditional, Plan, Proof, walk
from bicameral.sessions import Spent
from bicameral.telemetry import Fact
from bicameral.tools import Registry

from ._approvals import Approver
from ._attempt import Leaving, Work, attempt
from ._caps import CapMeter, Caps, Taken
from ._engine import Engine
from ._hands import Asker, LiveHands
from ._judge import Judge, PolicyJudge
from ._outcome import Observer, RunOutcome
from ._record import Record
from ._start import Start

if TYPE_CHECKING:
    from bicameral.policy import Policy


ENGINE = 1
"""Of which version the engine is: another one might come to another order of steps, and cannot take up a run."""


def new_run_id() -> str:
    """An id that sorts by time: when the run began, and a few random letters."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(3)


async def run_plan(
    plan: Plan,
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
    start: Start | None = None,
    link: Mapping[str, Any] | None = None,
    planning: Spent | None = None,
    planned_by: Sequence[Mapping[str, Any]] = (),
    proof: Proof | None = None,
    ahead: bool = True,
    caps: Caps | None = None,
    leaving: Leaving | None = None,
) -> RunOutcome:
    """Run a plan that has been checked. Stopping the task that awaits this gives a truthful `Stopped`.

    With a journal no effect happens that is not in it: what cannot be recorded is not done. `policy` decides about
    every call, and `approver` is asked where it says so; nobody there means no. Without a policy labels are off and
    every call is made: that is for measuring, and an agent always gives one. `intent` is what a model wrote the plan
    for: then what directs a call must be a whole value, or a person is asked. `start` is what the plan goes on from,
    and `link` what is recorded of the whole that this run is a part of; `planning` is what it cost to write the plan
    and `planned_by` the calls that wrote it, for the record too. A question is also about calls that are still to come
    and known already, unless `ahead` is off; with the plan's `proof` it is put before the first step where it can be
    whole.

    `caps` are how much it may take. With a journal whoever is asked may `Suspend` the run, unless it is part of a
    whole: the outcome is `Waiting`, and `resume_plan` takes it up. If its task is cancelled while `leaving` says so,
    the run is left as it is for another process, instead of being stopped.
    """
    caps = caps or Caps()
    judge = None if policy is None else PolicyJudge(policy)
    may_ask = _conditional(proof) if ahead and proof is not None else frozenset[str]()
    request = None if intent is None else intent.request
    own = () if policy is None else policy.me
    assembled = (start or Start()).assembled_values(plan, registry, request, own).calls
    return await run_work(
        lambda hands: Engine(
            plan, registry, hands, judge, start, caps=caps, ahead=ahead, may_ask=may_ask, assembled=assembled
        ),
        lambda: (
            _facts(plan, registry, intent, judge)
            | _begun(start, link, planning, planned_by)
            | {"engine": ENGINE, "caps": caps.to_json(), "ahead": ahead}
            | ({"may_ask": sorted(may_ask)} if may_ask else {})
        ),
        journal=journal,
        extractor=extractor,
        asker=asker,
        observer=observer,
        approver=approver,
        run=run,
        told=steps_of(plan),
        meter=CapMeter(caps, Taken(rounds=round_of(link))),
        may_wait=journal is not None and link is None,
        leaving=leaving,
    )


def round_of(link: Mapping[str, Any] | None) -> int:
    """Which round of a whole this run is; the first, if it is no part of one."""
    found = 1 if link is None else link.get("round", 1)
    return found if type(found) is int and found > 0 else 1


def _conditional(proof: Proof) -> frozenset[str]:
    """The steps at which somebody may be asked."""
    return frozenset(call.step for call in proof.calls if isinstance(call.verdict, Conditional))


def steps_of(plan: Plan) -> dict[str, Fact]:
    """What telemetry is told of a plan that runs."""
    return {"bicameral.plan.steps": sum(1 for _ in walk(plan.steps))}


async def run_work(
    make: Callable[[LiveHands], Work],
    facts: Callable[[], dict[str, Any]],
    *,
    journal: Journal | None = None,
    extractor: Executor | None = None,
    asker: Asker | None = None,
    observer: Observer | None = None,
    approver: Approver | None = None,
    run: str | None = None,
    told: Mapping[str, Fact] | None = None,
    meter: CapMeter | None = None,
    may_wait: bool = False,
    leaving: Leaving | None = None,
) -> RunOutcome:
    """Do some work as a run: with its record, which begins with `facts`, and with its end, whichever that is.

    The hands that `make` is given are the only way to the world. `told` is what telemetry is told of it. Only work that
    `may_wait` can be suspended by whoever is asked: somebody must be able to resume it.
    """
    run = run or new_run_id()
    record = Record(run, journal)
    hands = LiveHands(
        record,
        extractor=extractor,
        asker=asker,
        observer=observer,
        approver=approver,
        meter=meter,
        may_wait=may_wait,
    )

    def begun() -> Work:
        record.later("run-started", "", facts)
        return make(hands)

    return await attempt(begun, record, hands, told or {}, leaving=leaving)


def _facts(plan: Plan, registry: Registry, intent: Intent | None, judge: Judge | None) -> dict[str, Any]:
    used = {step.tool: registry.get(step.tool) for _, step in walk(plan.steps) if isinstance(step, Call)}
    return {
        "request": intent.request if intent else plan.goal,
        "intent": intent.to_json() if intent else None,
        "plan": plan.to_json(),
        "tools": {name: tool.fingerprint for name, tool in sorted(used.items()) if tool},
        "code": {name: tool.code() for name, tool in sorted(used.items()) if tool and tool.code},
    } | ({} if judge is None else {"policy": judge.fingerprint, "mode": judge.mode})


def _begun(
    start: Start | None,
    link: Mapping[str, Any] | None,
    planning: Spent | None,
    planned_by: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    found = {
        "start": None if start is None else start.to_json(),
        "part_of": None if link is None else dict(link),
        "planning": None if planning is None else planning.to_json(),
        "planning_calls": [dict(call) for call in planned_by] or None,
    }
    return {name: fact for name, fact in found.items() if fact is not None}
