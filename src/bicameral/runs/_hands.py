"""The hands of a run: everything that touches the world goes through here and is written down first."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Protocol

from bicameral.boundary import Executor, Filled
from bicameral.errors import BicameralError, Place, RunError, ToolError, words_of
from bicameral.journal import EventKind
from bicameral.sessions import counted
from bicameral.tools import AttachedFile, Tool, attached_files, key_of, under_key
from bicameral.turns import in_turns, turn
from bicameral.types import Type, mismatch, plain, to_json, value_to_json

from ._approvals import Approver, NeedsApproval, Question, asked
from ._caps import CapMeter, Caps
from ._note import Note, shade_json
from ._outcome import EffectDone, Observer, Progress, ProgressKind
from ._permits import Said
from ._record import Record
from ._suspend import PendingAsk, Suspend
from ._telling import approved, approving, asking, calling, extracted, extracting
from ._usage import Noticed

ATTEMPTS = 3
GRACE = 5.0
CLEANUP = 1.0
TRANSIENT = ("unreachable", "timeout")
BREATHS = 6
"""So many turns of the event loop it takes until what can go on has come to something that takes time, or ended."""
NOTHING_MORE: Mapping[str, Any] = MappingProxyType({})


class Asker(Protocol):
    """Someone who can be asked while a run goes on."""

    async def ask(self, question: str, type: Type) -> Any: ...


class Hands(Protocol):
    """What an engine can do to the world at a step."""

    effects: list[EffectDone]
    in_flight: set[str]

    async def call(self, step: str, tool: Tool, bound: dict[str, Any], note: Note | None = None) -> Any: ...

    async def extract(
        self, step: str, source: Any, instruction: str, wanted: Type, note: Note | None = None
    ) -> Any: ...

    async def ask(self, step: str, question: str, wanted: Type, note: Note | None = None) -> Any: ...

    async def approve(self, question: Question) -> Said: ...

    async def attached(self, step: str, tool: Tool, bound: dict[str, Any]) -> tuple[AttachedFile, ...]:
        """The files that go along with a call, as they are; none where the tool does not say where they lie."""
        ...

    async def quiet(self) -> None:
        """Until nothing is under way, and nothing more begins."""
        ...

    def held(self, step: str, kind: EventKind, tool: Tool, bound: dict[str, Any], note: Note) -> None:
        """A call is not made, or not yet."""
        ...


Act = Callable[[], Coroutine[Any, Any, Any]]


class LiveHands:
    """Hands that really do it: each effect is on the disk before it begins, and its end before anything follows."""

    def __init__(
        self,
        record: Record,
        *,
        extractor: Executor | None,
        asker: Asker | None,
        observer: Observer | None,
        approver: Approver | None = None,
        meter: CapMeter | None = None,
        may_wait: bool = False,
    ) -> None:
        self._may_wait = may_wait
        self.meter = meter or CapMeter(Caps())
        self.effects: list[EffectDone] = []
        self.in_flight: set[str] = set()
        self.noticed = Noticed()
        self._record = record
        self._extractor = extractor
        self._reading = asyncio.Semaphore(extractor.overlap if extractor else 1)
        self._asker = asker
        self._observer = observer
        self._approver = approver
        self._under_way = 0
        self._ended = asyncio.Event()

    async def call(self, step: str, tool: Tool, bound: dict[str, Any], note: Note | None = None) -> Any:
        if not in_turns():
            return await self._called(step, tool, bound, note)
        # Who waits for his turn is under way, though nothing of it has begun and nothing is recorded of it.
        self._under_way += 1
        try:
            async with turn("tool", tool.name):
                return await self._called(step, tool, bound, note)
        finally:
            self._under_way -= 1
            self._ended.set()

    async def _called(self, step: str, tool: Tool, bound: dict[str, Any], note: Note | None) -> Any:
        changing = tool if tool.changes else None
        facts = call_facts(tool, bound)
        self.meter.tool()
        with calling(step, tool):
            return await self._step(step, tool.name, facts, lambda: self._attempts(step, tool, bound), note, changing)

    async def attached(self, step: str, tool: Tool, bound: dict[str, Any]) -> tuple[AttachedFile, ...]:
        # Large files take a while to hash, and the run goes on meanwhile.
        return () if tool.attached_in is None else await asyncio.to_thread(attached_files, tool, bound)

    async def approve(self, question: Question) -> Said:
        """One question for all these calls; the answer is in the record before anything is done on its strength."""
        step, calls = question.calls[0].step, question.to_json()
        facts: dict[str, Any] = {"calls": calls} | ({"before": True} if question.before else {})
        asked_at = time.time()
        with approving(question) as told, self.meter.asking():
            try:
                answers = await asked(self._approver, question)
            except Suspend as waits:
                if not self._may_wait:
                    raise NeedsApproval(question) from None
                waits.question = waits.question or question
                raise
            except BicameralError as error:
                self._record.now("approval", step, facts | {"approved": [], "error": error.to_json()})
                raise
            approved(told, question, answers)
        waited = round(time.time() - asked_at, 6)
        facts |= {"granted": [grant.to_json() for grant in answers.for_run]} if answers.for_run else {}
        self._record.now("approval", step, facts | {"approved": sorted(answers.approved), "seconds": waited})
        yes = (call for call in question.calls if call.hash in answers.approved)
        return Said(Counter((step, call.hash) for call in yes for step in call.steps), answers.for_run)

    async def quiet(self) -> None:
        await breathe()
        while self._under_way:
            self._ended.clear()
            await self._ended.wait()
            await breathe()

    def held(self, step: str, kind: EventKind, tool: Tool, bound: dict[str, Any], note: Note) -> None:
        if self._record.kept:
            self._record.later(kind, step, call_facts(tool, bound) | note.started())

    def model_called(self, step: str, facts: dict[str, Any]) -> None:
        """A model was asked in a conversation: what it wrote, and under which label."""
        self._record.later("model-called", step, facts)

    async def extract(self, step: str, source: Any, instruction: str, wanted: Type, note: Note | None = None) -> Any:
        extractor = self._extractor
        facts = extract_facts(source, instruction, wanted) | {"model": extractor.model if extractor else None}

        async def read() -> Any:
            if extractor is None:
                raise RunError(
                    "run.no-quarantined-model",
                    "the plan reads text with the quarantined model, and there is none",
                    fix="Give the agent a quarantined provider, or run `bicameral doctor`.",
                )
            async with self._reading:
                with counted() as ledger:
                    try:
                        outcome = await extractor.extract(source, instruction, wanted)
                    finally:
                        found["spent"] = ledger.spent.to_json()
                        for call in ledger.records or ():
                            self._record.later("model-called", step, call)
            found.update(self.noticed.extraction(outcome, step, note.strangers("source") if note else ()))
            extracted(told, found)
            if not isinstance(outcome, Filled):
                raise RunError("run.extraction-rejected", f"nothing usable was read: {outcome.reason}")
            return self._fitting_blank(outcome.value, wanted)

        found: dict[str, Any] = {}
        with extracting(step) as told:
            return await self._step(step, "extract", facts, read, note, found=found)

    async def ask(self, step: str, question: str, wanted: Type, note: Note | None = None) -> Any:
        asker = self._asker

        async def reply() -> Any:
            if asker is None:
                raise _needs_answer(question)
            key = key_of(self._record.run, step, "ask")
            try:
                with self.meter.asking(), under_key(key):
                    said = await asker.ask(question, wanted)
            except Suspend as waits:
                if not self._may_wait:
                    raise _needs_answer(question) from None
                waits.ask = PendingAsk(step, question, wanted, key)
                raise
            return _fitting_reply(said, wanted)

        with asking(step):
            return await self._step(step, "ask", ask_facts(question, wanted), reply, note)

    async def _step(
        self,
        step: str,
        what: str,
        facts: dict[str, Any],
        act: Act,
        note: Note | None,
        changing: Tool | None = None,
        found: Mapping[str, Any] = NOTHING_MORE,
    ) -> Any:
        """Do one thing to the world with a record before and after; what cannot be recorded is not begun.

        `found` is what else there is to record when it has ended.
        """
        write = self._record.later if changing is None else self._record.synced
        labels = note if self._record.kept else None
        write("step-started", step, facts if labels is None else facts | labels.started())
        self._tell("started", step, what, facts=facts)
        self.in_flight.add(step)
        self._under_way += 1
        started = time.perf_counter()
        stopped = False
        try:
            if changing is None:
                value = await _truthful(what, act)
            else:
                task, stopped = await _to_its_end(_truthful(what, act))
                value = task.result()
                self.effects.append(EffectDone(step, changing.name, changing.effect))
        except Suspend:
            self.in_flight.discard(step)
            raise
        except BicameralError as error:
            self.in_flight.discard(step)
            error.place = error.place or Place(step=step)
            write("step-failed", step, {"error": error.to_json(), **found})
            self._tell("failed", step, what, time.perf_counter() - started, {"error": str(error)})
            if stopped:
                raise asyncio.CancelledError from None
            raise
        finally:
            self._under_way -= 1
            self._ended.set()
        self.in_flight.discard(step)
        seconds = time.perf_counter() - started
        ended: dict[str, Any] = {"result": value_to_json(value), "seconds": round(seconds, 6), **found}
        if labels is not None:
            ended["shade"] = shade_json(labels.shade(value))
        write("step-finished", step, ended)
        self._tell("finished", step, what, seconds)
        if stopped:
            raise asyncio.CancelledError
        return value

    def _fitting_blank(self, value: object, wanted: Type) -> Any:
        """What was read, held against its type once more: whoever fills blanks for a run is not taken at his word."""
        try:
            found = plain(value)
        except TypeError:
            self.noticed.rejected("wrong-type")
            raise RunError("run.extraction-rejected", "what was read is no value a plan can use") from None
        if mismatch(found, wanted):
            self.noticed.rejected("wrong-type")
            raise RunError("run.extraction-rejected", "what was read does not fit the blank", expected=str(wanted))
        return found

    async def _attempts(self, step: str, tool: Tool, bound: dict[str, Any]) -> Any:
        attempt, key = 1, key_of(self._record.run, step, tool.name)
        while True:
            try:
                with under_key(key):
                    return await _attempt(tool, bound)
            except ToolError as error:
                if not ((tool.idempotent or tool.keyed) and attempt < ATTEMPTS and error.code.endswith(TRANSIENT)):
                    raise
                self._record.later("step-retried", step, {"attempt": attempt, "error": error.to_json()})
                self._tell("retrying", step, tool.name, facts={"error": str(error), "attempt": attempt})
            await asyncio.sleep(0.2 * 2**attempt)
            attempt += 1

    def _tell(
        self, kind: ProgressKind, step: str, what: str, seconds: float = 0.0, facts: dict[str, Any] | None = None
    ) -> None:
        if self._observer is None:
            return
        # Whoever watches cannot change what happens: a broken display does not end a run in the middle.
        with suppress(Exception):
            self._observer(Progress(kind, step, what, seconds, facts or {}))


async def breathe() -> None:
    """Let everything go on that can."""
    for _ in range(BREATHS):
        await asyncio.sleep(0)


def call_facts(tool: Tool, bound: dict[str, Any]) -> dict[str, Any]:
    """What is recorded when a tool is called; a replay must come to the same."""
    arguments = {name: value_to_json(value) for name, value in bound.items()}
    return {"what": tool.name, "effect": tool.effect, "tool": tool.name, "arguments": arguments}


def extract_facts(source: Any, instruction: str, wanted: Type) -> dict[str, Any]:
    return {"what": "extract", "instruction": instruction, "type": to_json(wanted), "source": value_to_json(source)}


def ask_facts(question: str, wanted: Type) -> dict[str, Any]:
    return {"what": "ask", "question": question, "type": to_json(wanted)}


async def _attempt(tool: Tool, bound: dict[str, Any]) -> Any:
    # A copy for each attempt: a tool that changes its arguments must not change the plan's variables.
    given = {name: plain(value) for name, value in bound.items()}
    try:
        async with asyncio.timeout(tool.timeout):
            return await tool.call(given)
    except TimeoutError:
        raise ToolError(
            "tools.timeout",
            f"{tool.name!r} took longer than {tool.timeout:g} s",
            fix="Its effect may or may not have happened." if tool.changes else None,
        ) from None


async def _truthful(what: str, act: Act) -> Any:
    """Do it; whatever goes wrong inside is a typed failure, and only who stops the run can cancel it."""
    try:
        return await act()
    except BicameralError:
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ToolError("tools.failed", f"{what!r} was cancelled from inside") from None
    except KeyboardInterrupt:
        raise
    except Suspend as waits:
        # Only whoever is asked something can let the run wait.
        if waits.ask is None:
            raise ToolError("tools.failed", f"{what!r} cannot let the run wait") from None
        raise
    except BaseException as error:
        raise ToolError("tools.failed", f"{what!r} failed: {words_of(error)}") from error


async def _to_its_end(act: Coroutine[Any, Any, Any]) -> tuple[asyncio.Task[Any], bool]:
    """Let an effect that has begun come to its end, also when the run is stopped meanwhile; True if it was.

    An effect that takes too long for that is cancelled, and then nobody knows whether it happened.
    """
    task = asyncio.create_task(act)
    try:
        await asyncio.wait({task})
        return task, False
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=GRACE)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CLEANUP)
        if task.done() and not task.cancelled():
            return task, True
        raise
    finally:
        task.cancel()


def _needs_answer(question: str) -> RunError:
    return RunError(
        "run.needs-answer", f"the plan asks: {question}", fix="Run it interactively, or say it in the request."
    )


def _fitting_reply(value: object, wanted: Type) -> Any:
    try:
        reply = plain(value)
    except TypeError as error:
        raise RunError("run.wrong-reply", f"the reply is no value a plan can use: {error}") from None
    if reason := mismatch(reply, wanted, "the reply"):
        raise RunError("run.wrong-reply", reason, expected=str(wanted))
    return reply
