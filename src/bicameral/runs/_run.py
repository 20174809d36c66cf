"""Run a plan and write down what happened."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from bicameral.boundary import Executor
from bicameral.errors import BicameralError, JournalError, RunError
from bicameral.intent import Intent
from bicameral.labels import Shade
from bicameral.plans import Call, Plan, walk
from bicameral.sessions import Ledger, Spent, counted
from bicameral.telemetry import Fact
from bicameral.tools import Registry
from bicameral.types import value_to_json

from ._approvals import Approver
from ._engine import Engine
from ._hands import Asker, LiveHands
from ._journal import EventKind, Journal
from ._judge import Judge, PolicyJudge
from ._note import shade_json
from ._outcome import EffectDone, Failed, Finished, Observer, RunOutcome, Stopped
from ._record import Record
from ._start import Start
from ._telling import ran, running
from ._usage import RunAlert, RunUsage

if TYPE_CHECKING:
    from bicameral.policy import Policy


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
) -> RunOutcome:
    """Run a plan that has been checked. Stopping the task that awaits this gives a truthful `Stopped`.

    With a journal no effect happens that is not in it: what cannot be recorded is not done. `policy` decides about
    every call, and `approver` is asked where it says so; nobody there means no. Without a policy labels are off and
    every call is made: that is for measuring, and an agent always gives one. `start` is what the plan goes on from, and
    `link` what is recorded of the whole that this run is a part of; `planning` is what it cost to write the plan and
    `planned_by` the calls that wrote it, for the record too.
    """
    judge = None if policy is None else PolicyJudge(policy)
    return await run_work(
        lambda hands: Engine(plan, registry, hands, judge, start),
        lambda: _facts(plan, registry, intent, judge) | _begun(start, link, planning, planned_by),
        journal=journal,
        extractor=extractor,
        asker=asker,
        observer=observer,
        approver=approver,
        run=run,
        told=steps_of(plan),
    )


def steps_of(plan: Plan) -> dict[str, Fact]:
    """What telemetry is told of a plan that runs."""
    return {"bicameral.plan.steps": sum(1 for _ in walk(plan.steps))}


class Work(Protocol):
    """What a run does: the steps of a plan, or the calls that a conversation asks for."""

    async def run(self) -> Any:
        """The answer."""
        ...

    @property
    def answer_shade(self) -> Shade | None:
        """The labels of the answer."""
        ...

    @property
    def written(self) -> Mapping[str, Shade]:
        """The labels of the places that were, or may have been, written to."""
        ...


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
) -> RunOutcome:
    """Do some work as a run: with its record, which begins with `facts`, and with its end, whichever that is.

    The hands that `make` is given are the only way to the world. `told` is what telemetry is told of it.
    """
    run = run or new_run_id()
    record = Record(run, journal)
    hands = LiveHands(record, extractor=extractor, asker=asker, observer=observer, approver=approver)
    with running(run, told or {}) as telling, counted() as ledger:
        ending = _Ending(run, record, hands, ledger)

        def begun() -> Work:
            record.later("run-started", "", facts)
            return make(hands)

        outcome = await _ended(begun, ending)
        ran(telling, outcome)
    return outcome


async def _ended(make: Callable[[], Work], ending: _Ending) -> RunOutcome:
    """Do the work to its end, whichever that is."""
    try:
        work = ending.work = make()
        answer = await work.run()
        return ending.finished(answer, work.answer_shade)
    except BicameralError as error:
        return ending.failed(error)
    except asyncio.CancelledError:
        outcome = ending.stopped()
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


class _Ending:
    """The end of a run, recorded."""

    def __init__(self, run: str, record: Record, hands: LiveHands, ledger: Ledger) -> None:
        self._run = run
        self._record = record
        self._hands = hands
        self._ledger = ledger
        self._started = time.perf_counter()
        self.work: Work | None = None

    def finished(self, answer: Any, shade: Shade | None) -> Finished:
        effects, seconds = tuple(self._hands.effects), time.perf_counter() - self._started
        labels = {} if shade is None else {"shade": shade_json(shade)}
        self._write("run-finished", "", {"answer": value_to_json(answer), "seconds": round(seconds, 6)} | labels)
        return Finished(self._run, answer, seconds, effects, shade, self._written, self.usage, self._alerts)

    def failed(self, error: BicameralError) -> Failed:
        effects, seconds = tuple(self._hands.effects), time.perf_counter() - self._started
        step = error.place.step if error.place and error.place.step else ""
        # A journal that failed once may fail again; the first failure is the one to tell.
        with suppress(JournalError):
            self._write("run-failed", step, {"error": error.to_json()})
        return Failed(self._run, error, step, seconds, effects, self._written, self.usage, self._alerts)

    def stopped(self) -> Stopped:
        effects, seconds = tuple(self._hands.effects), time.perf_counter() - self._started
        in_flight = tuple(sorted(self._hands.in_flight))
        with suppress(JournalError):
            self._write("run-stopped", "", {"in_flight": list(in_flight)})
        return Stopped(self._run, in_flight, seconds, effects, self._written, self.usage, self._alerts)

    @property
    def _written(self) -> Mapping[str, Shade]:
        return {} if self.work is None else dict(self.work.written)

    @property
    def usage(self) -> RunUsage:
        return self._hands.noticed.usage(self._ledger)

    @property
    def _alerts(self) -> tuple[RunAlert, ...]:
        return tuple(self._hands.noticed.alerts)

    def _write(self, kind: EventKind, step: str, body: dict[str, Any]) -> None:
        more = {"effects": effects_to_json(self._hands.effects), "usage": self.usage.to_json()}
        # Calls that came to nothing have no event of their own, and were paid for all the same.
        lost = {"lost_calls": self._ledger.lost} if self._ledger.lost else {}
        self._record.now(kind, step, body | more | lost)


def _facts(plan: Plan, registry: Registry, intent: Intent | None, judge: Judge | None) -> dict[str, Any]:
    used = {step.tool: registry.get(step.tool) for _, step in walk(plan.steps) if isinstance(step, Call)}
    return {
        "request": intent.request if intent else plan.goal,
        "intent": intent.to_json() if intent else None,
        "plan": plan.to_json(),
        "tools": {name: tool.fingerprint for name, tool in sorted(used.items()) if tool},
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


def effects_to_json(effects: list[EffectDone]) -> list[dict[str, str]]:
    return [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in effects]
