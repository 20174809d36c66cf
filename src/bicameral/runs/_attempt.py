"""One attempt at a run: the work is done to its end, or as far as it can be, and how that was is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bicameral.errors import BicameralError, JournalError, RunError
from bicameral.journal import EventKind
from bicameral.labels import Shade
from bicameral.routing import accounted
from bicameral.sessions import Ledger, counted
from bicameral.telemetry import Fact
from bicameral.types import value_to_json

from ._hands import LiveHands
from ._note import shade_json
from ._outcome import EffectDone, Failed, Finished, Interrupted, RunOutcome, Stopped, Waiting
from ._record import UNRECORDABLE, Record
from ._suspend import Suspend
from ._telling import ran, running
from ._usage import RunAlert, RunUsage

Leaving = Callable[[], bool]
"""Whether a cancelled task leaves its run to another process, instead of stopping it."""


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


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier attempts at the same run came to."""

    usage: RunUsage = field(default_factory=RunUsage)
    alerts: tuple[RunAlert, ...] = ()
    seconds: float = 0.0
    """How long they worked."""


NOTHING_EARLIER = Earlier()


async def attempt(
    make: Callable[[], Work],
    record: Record,
    hands: LiveHands,
    told: Mapping[str, Fact],
    *,
    earlier: Earlier = NOTHING_EARLIER,
    leaving: Leaving | None = None,
) -> RunOutcome:
    """Do the work that `make` gives, and record how it ended."""
    with running(record.run, told) as telling, counted() as ledger, accounted(hands.meter):
        ending = Ending(record, hands, ledger, earlier)
        outcome = await _ended(make, ending, leaving)
        ran(telling, outcome)
    return outcome


async def _ended(make: Callable[[], Work], ending: Ending, leaving: Leaving | None) -> RunOutcome:
    """Do the work to its end, whichever that is."""
    try:
        work = ending.work = make()
        answer = await ending.meter.within(work.run())
        return ending.finished(answer, work.answer_shade)
    except BicameralError as error:
        return ending.failed(error)
    except Suspend as waits:
        return ending.waiting(waits)
    except asyncio.CancelledError:
        outcome = ending.left() if leaving is not None and leaving() else ending.stopped()
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


class Ending:
    """The end of an attempt, recorded."""

    def __init__(self, record: Record, hands: LiveHands, ledger: Ledger, earlier: Earlier) -> None:
        self.meter = hands.meter
        self.work: Work | None = None
        self._record = record
        self._hands = hands
        self._ledger = ledger
        self._earlier = earlier

    def finished(self, answer: Any, shade: Shade | None) -> RunOutcome:
        seconds = self._seconds
        labels = {} if shade is None else {"shade": shade_json(shade)}
        facts = {"answer": value_to_json(answer), "seconds": round(seconds, 6)} | labels
        try:
            self._write("run-finished", "", facts)
        except JournalError as error:
            return self.failed(error)
        return Finished(self._record.run, answer, seconds, shade=shade, **self._rest)

    def failed(self, error: BicameralError) -> RunOutcome:
        if self._is_of_the_record(error):
            return self._interrupted(error)
        seconds = self._seconds
        step = error.place.step if error.place and error.place.step else ""
        try:
            self._write("run-failed", step, {"error": error.to_json(), "seconds": round(seconds, 6)})
        except JournalError as failure:
            # A run whose end is not written down has not ended: who takes it up comes to the same.
            if self._is_of_the_record(failure):
                return self._interrupted(failure)
        return Failed(self._record.run, error, step, seconds, **self._rest)

    def waiting(self, waits: Suspend) -> RunOutcome:
        seconds = self._seconds
        question, ask = (None if waits.ask else waits.question), waits.ask
        facts = {"question": question.to_json()} if question else {"ask": ask.to_json()} if ask else {}
        try:
            self._write("run-waits", "", facts | {"seconds": round(seconds, 6)})
        except JournalError as error:
            return self._interrupted(error)
        return Waiting(self._record.run, question, ask, seconds, **self._rest)

    def stopped(self) -> RunOutcome:
        seconds, in_flight = self._seconds, tuple(sorted(self._hands.in_flight))
        try:
            self._write("run-stopped", "", {"in_flight": list(in_flight), "seconds": round(seconds, 6)})
        except JournalError as error:
            if self._is_of_the_record(error):
                return self._interrupted(error)
        return Stopped(self._record.run, in_flight, seconds, **self._rest)

    def left(self) -> Interrupted:
        """The run goes on elsewhere."""
        return self._interrupted(RunError("run.left", "the run is left to another process", fix="Resume it."))

    def _interrupted(self, error: BicameralError) -> Interrupted:
        return Interrupted(self._record.run, error, self._seconds, **self._rest)

    def _is_of_the_record(self, error: BicameralError) -> bool:
        """Whether it is the record that failed, so that nobody can say how the run ended."""
        return error is self._record.failure and error.code not in (*UNRECORDABLE, "journal.run-exists")

    @property
    def _rest(self) -> dict[str, Any]:
        """What every outcome says."""
        effects = tuple(self._hands.effects)
        return {"effects": effects, "written": self._written, "usage": self._usage, "alerts": self._alerts}

    @property
    def _seconds(self) -> float:
        """The time that all attempts together worked."""
        return self._earlier.seconds + self.meter.worked

    @property
    def _written(self) -> Mapping[str, Shade]:
        return {} if self.work is None else dict(self.work.written)

    @property
    def _usage(self) -> RunUsage:
        return self._earlier.usage + self._hands.noticed.usage(self._ledger)

    @property
    def _alerts(self) -> tuple[RunAlert, ...]:
        return (*self._earlier.alerts, *self._hands.noticed.alerts)

    def _write(self, kind: EventKind, step: str, body: dict[str, Any]) -> None:
        more: dict[str, Any] = {"effects": effects_to_json(self._hands.effects), "usage": self._usage.to_json()}
        if written := self._written:
            more["written"] = {place: shade_json(shade) for place, shade in written.items()}
        # Calls that came to nothing have no event of their own, and were paid for all the same.
        lost = {"lost_calls": self._ledger.lost} if self._ledger.lost else {}
        # What a run came to matters after a power cut where it has changed something, or where a person is waited for.
        lasting = bool(self._hands.effects or self._hands.in_flight) or kind == "run-waits"
        (self._record.synced if lasting else self._record.now)(kind, step, body | more | lost)


def effects_to_json(effects: list[EffectDone]) -> list[dict[str, str]]:
    return [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in effects]
