"""Run a plan and write down what happened."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bicameral.boundary import Executor
from bicameral.errors import BicameralError, JournalError, RunError
from bicameral.intent import Intent
from bicameral.labels import Shade
from bicameral.plans import Call, Plan, walk
from bicameral.sessions import Ledger, Spent, counted
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
) -> RunOutcome:
    """Run a plan that has been checked. Stopping the task that awaits this gives a truthful `Stopped`.

    With a journal no effect happens that is not in it: what cannot be recorded is not done. `policy` decides about
    every call, and `approver` is asked where it says so; nobody there means no. Without a policy labels are off and
    every call is made: that is for measuring, and an agent always gives one. `start` is what the plan goes on from, and
    `link` what is recorded of the whole that this run is a part of; `planning` is what it cost to write the plan, for
    the record too.
    """
    run = run or new_run_id()
    record = Record(run, journal)
    hands = LiveHands(record, extractor=extractor, asker=asker, observer=observer, approver=approver)
    with running(run, plan) as told, counted() as ledger:
        ending = _Ending(run, record, hands, ledger)

        def engine() -> Engine:
            judge = None if policy is None else PolicyJudge(policy)
            record.later(
                "run-started", "", lambda: _facts(plan, registry, intent, judge) | _begun(start, link, planning)
            )
            return Engine(plan, registry, hands, judge, start)

        outcome = await _ended(engine, ending)
        ran(told, outcome)
    return outcome


async def _ended(make: Callable[[], Engine], ending: _Ending) -> RunOutcome:
    """Run an engine to its end, whichever that is."""
    try:
        engine = ending.engine = make()
        answer = await engine.run()
        return ending.finished(answer, engine.answer_shade)
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
        self.engine: Engine | None = None

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
        return {} if self.engine is None else dict(self.engine.written)

    @property
    def usage(self) -> RunUsage:
        return self._hands.noticed.usage(self._ledger.spent)

    @property
    def _alerts(self) -> tuple[RunAlert, ...]:
        return tuple(self._hands.noticed.alerts)

    def _write(self, kind: EventKind, step: str, body: dict[str, Any]) -> None:
        more = {"effects": effects_to_json(self._hands.effects), "usage": self.usage.to_json()}
        self._record.now(kind, step, body | more)


def _facts(plan: Plan, registry: Registry, intent: Intent | None, judge: Judge | None) -> dict[str, Any]:
    used = {step.tool: registry.get(step.tool) for _, step in walk(plan.steps) if isinstance(step, Call)}
    return {
        "request": intent.request if intent else plan.goal,
        "intent": intent.to_json() if intent else None,
        "plan": plan.to_json(),
        "tools": {name: tool.fingerprint for name, tool in sorted(used.items()) if tool},
    } | ({} if judge is None else {"policy": judge.fingerprint, "mode": judge.mode})


def _begun(start: Start | None, link: Mapping[str, Any] | None, planning: Spent | None) -> dict[str, Any]:
    found = {
        "start": None if start is None else start.to_json(),
        "part_of": None if link is None else dict(link),
        "planning": None if planning is None else planning.to_json(),
    }
    return {name: fact for name, fact in found.items() if fact is not None}


def effects_to_json(effects: list[EffectDone]) -> list[dict[str, str]]:
    return [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in effects]
