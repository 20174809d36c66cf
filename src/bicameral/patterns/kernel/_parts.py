"""Parts of a pattern: one after another, side by side, in rounds, and with limits of their own.

What a part opens adds no label to the others. What was cut off, because its time was over or enough others had
answered, is recorded: whoever runs the pattern again cuts it off at the same place, whatever the time says.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar

from bicameral.errors import BicameralError, JournalError, RunError
from bicameral.labels import Labelled, join, join_all, label_tree_from_json
from bicameral.limits import STRATEGY, Bound, BudgetSpent, LimitReached, Limits, Meter, charge_to
from bicameral.patterns._conversation import FINAL_CODES
from bicameral.patterns._outcome import NoteEvent
from bicameral.patterns.kernel._state import ContextState, PartLife, PlaceNumbers
from bicameral.runs import CutOff, Suspend, cut_off_as_recorded, is_cut_off, label_tree_json, wait_if_cut_off
from bicameral.telemetry import span

T = TypeVar("T")
_IDLE_TURNS = 1_000
_IDLE_SECONDS = 5.0
"""How long a part that is run again may take for what is recorded of it; after that it has taken another way."""
_RECORDED_SECONDS = 3600.0
"""The time limit of a part that is run again, whose end is in the record."""
NEAR_LIMIT = "limit-near"
_WITHIN_LIMITS: dict[str, Any] = {"bound": None}
"""What is recorded of a part that reached none of its own limits."""
_CLEANUP_SECONDS = 2.0
"""How long a part that was cancelled has to end. After that nobody waits for it; it can do nothing any more."""
_POLL_SECONDS = 0.05
"""How often the time of parts is looked at while a person is asked."""


class Parts(ContextState):
    """The parts that a context runs."""

    __slots__ = ()

    def part(self, name: str) -> Self:
        """A part with its own context: it starts with the label of this one, and adds nothing to it."""
        name = self.numbers.part_name(name)
        path, place = f"{self.path}{name}/", f"{self.place}{name}/"
        errors = None if self.error_log is None else self.error_log.for_part()
        return self._inner(path=path, place=place, life=PartLife(self.life), error_log=errors)

    def _inner(self, **changes: Any) -> Self:
        own: dict[str, Any] = {
            "own_read_label": self.read_label,
            "last_model": "",
            "numbers": PlaceNumbers(),
            "reads_for": None,
        }
        return replace(self, **own | changes)

    async def run_part(self, name: str, work: Callable[[Self], Awaitable[Labelled[T]]]) -> Labelled[T]:
        """Run work in a part; its result carries the label of everything that the part has opened."""
        return await self._run_work(self.part(name), work)

    async def _run_work(self, part: Self, work: Callable[[Self], Awaitable[Labelled[T]]]) -> Labelled[T]:
        with span("part", part.path.rstrip("/"), {"bicameral.step": part.place.rstrip("/")}):
            try:
                given = await work(part)
            except BicameralError:
                self.read_label = join(self.read_label, part.read_label)
                raise
            finally:
                part.life.end()
        return given.with_label(part.read_label)

    # Side by side ---------------------------------------------------------------------------------------------------

    async def run_parallel(
        self, works: Sequence[tuple[str, Callable[[Self], Awaitable[Labelled[T]]]]], *, width: int
    ) -> list[Labelled[T] | BicameralError]:
        """Run parts concurrently, `width` at once; the result or the error of each, in their order.

        A part that fails does not end the others. A limit of the whole, a refusal of a person and a record that cannot
        be written end all of them. A part that waits for a person lets the others come to their end first.
        """
        return await self.gather(works, width=width)

    async def gather(
        self,
        works: Sequence[tuple[str, Callable[[Self], Awaitable[Labelled[T]]]]],
        *,
        width: int,
        quorum: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (it cuts off parts, and raises nothing)
    ) -> list[Labelled[T] | BicameralError]:
        """Run parts concurrently as `run_parallel` does, until enough have a result or their time is over.

        A part that is not needed any more is cancelled, and can do nothing afterwards; a change that it had begun is
        finished. In its place is an error with the code `pattern.not-needed` or `pattern.part-timeout`. How long parts
        take is decided by all that they read, so that this context then has the labels of all of them.

        Args:
            works: The name and the work of each part.
            width: How many run at once.
            quorum: How many results are enough.
            timeout: Seconds for all of them, without those in which a person is asked.

        Example:
            >>> votes = await context.gather([(f"voter {n}", vote) for n in range(5)], width=5, quorum=3)
        """
        if not all(limit is None or limit > 0 for limit in (width, quorum, timeout)):
            raise RunError(
                "pattern.bad-gather", "a width, quorum or timeout of 0 or less", expected="more than 0 of each"
            )
        # All contexts are made now: what one part opens before it fails is not in the label of one that starts later.
        runs = [_PartRun(self.part(name), work) for name, work in works]
        if quorum is None and timeout is None:
            await self._run_all(runs, width)
        else:
            place = self.step_name("gather")
            recorded = self.shared.handler.recorded_note(place)
            why = await self._run_some(runs, width, quorum, timeout, recorded)
            _raise_if_suspended(runs)
            if recorded is None:
                # In a part that was cut off before it came here, it does not come further now.
                await wait_if_cut_off()
            cut = {number: run.is_started for number, run in enumerate(runs) if run.is_cut}
            label = join_all((self.read_label, *(run.part.read_label for run in runs if cut)))
            if recorded is not None:
                # How far a part came before it was cut off is only in the record.
                cut = dict(recorded["cut"])
                label = join(self.read_label, label_tree_from_json(recorded["shade"]).flat)
            facts = {"cut": [list(each) for each in cut.items()], "why": why, "shade": label_tree_json(label)}
            self.shared.handler.record_note(place, facts)
            self.read_label = label
            for number in cut:
                runs[number].result = _cut_error(why, quorum, timeout)
        _raise_if_suspended(runs)
        return [run.outcome for run in runs]

    async def _run_all(self, runs: Sequence[_PartRun[Self, T]], width: int) -> None:
        room = _make_room(width, len(runs))
        try:
            async with asyncio.TaskGroup() as group:
                for run in runs:
                    group.create_task(self._run_in(room, run))
        except* BicameralError as errors:
            raise _first_error(errors) from None

    async def _run_in(
        self, room: asyncio.Semaphore, run: _PartRun[Self, T], is_enough: Callable[[], bool] | None = None
    ) -> None:
        """Run one part when there is room for it, unless there is enough. Only what ends the other parts is raised."""
        async with room:
            if is_enough is not None and is_enough() and not self.shared.handler.has_unused(run.part.place):
                return
            run.is_started = True
            try:
                run.result = await self._run_work(run.part, run.work)
            except BicameralError as error:
                if self.ends_run(error):
                    raise
                run.result = error
            except Suspend as waits:
                # The run ends here and is resumed with the answer, so that there is no result to read.
                run.suspended = waits
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                run.result = RunError("pattern.part-cancelled", "the part was cancelled from inside")

    async def _run_some(
        self,
        runs: Sequence[_PartRun[Self, T]],
        width: int,
        quorum: int | None,
        seconds: float | None,
        recorded: Mapping[str, Any] | None,
    ) -> str:
        """Run parts until there are enough results, or the time is over; which of the two, if any was cut off."""
        cut: dict[int, bool] = {} if recorded is None else dict(recorded["cut"])
        room = _make_room(width, len(runs), len(cut))
        # Only a clock that stands still while a person is asked: the limits are reached around it first.
        meter = Meter(self.meter.limits)

        def is_enough() -> bool:
            results = sum(isinstance(run.result, Labelled) for run in runs)
            return recorded is None and quorum is not None and results >= quorum

        async def start(number: int, run: _PartRun[Self, T]) -> None:
            with cut_off_as_recorded(active=number in cut) as run.cut_off:
                await self._run_in(room, run, is_enough)

        with charge_to(meter):
            # A part that was cut off before it began does not begin now.
            begin = [(number, run) for number, run in enumerate(runs) if cut.get(number, True)]
            tasks = {asyncio.create_task(start(number, run)): number for number, run in begin}
        try:
            if recorded is None:
                why = await self._until_enough(set(tasks), is_enough, seconds, meter)
                # A run that is resumed comes to all that it had done before, and no further.
                unfinished = [runs[number] for task, number in tasks.items() if not task.done()]
                for run in unfinished:
                    if run.cut_off is not None:
                        run.cut_off.is_active = True
                    if self.shared.handler.has_unused(run.part.place):
                        room.release()
                for run in unfinished:
                    await self._until_used(run.part)
                return why
            await self._until_as_recorded(tasks, runs, cut)
            return str(recorded["why"])
        finally:
            await _cancel_parts(tasks, runs)

    async def _until_enough(
        self, waiting: set[asyncio.Task[None]], is_enough: Callable[[], bool], seconds: float | None, meter: Meter
    ) -> str:
        while waiting and not is_enough():
            left = None if seconds is None else max(0.0, seconds - meter.seconds_worked)
            if left == 0.0:
                return "timeout"
            if left is not None and meter.waits_for_person:
                left = max(left, _POLL_SECONDS)
            done, waiting = await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            _raise_first_error(done)
        return "quorum"

    async def _until_as_recorded(
        self, tasks: Mapping[asyncio.Task[None], int], runs: Sequence[_PartRun[Self, T]], cut: Mapping[int, bool]
    ) -> None:
        """Let parts come as far as they came: those that were cut off do what is recorded of them, and no more."""
        if whole := {task for task, number in tasks.items() if number not in cut}:
            done, _ = await asyncio.wait(whole, return_when=asyncio.FIRST_EXCEPTION)
            _raise_first_error(done)
        for number in filter(cut.get, cut):
            await self._until_used(runs[number].part)

    async def _until_used(self, part: ContextState) -> None:
        """Wait until a part has asked for all that is recorded of it."""
        # Recorded replies come at once. What a pattern computes in between, in a thread perhaps, takes its time.
        until = time.monotonic() + _IDLE_SECONDS
        for turn in itertools.count():
            if not self.shared.handler.has_unused(part.place) or time.monotonic() > until:
                return
            await asyncio.sleep(0 if turn < _IDLE_TURNS else _POLL_SECONDS / 10)

    def ends_run(self, error: BicameralError) -> bool:
        """Whether this error of a part ends the other parts: the limit or the refusal was not the part's own."""
        if isinstance(error, LimitReached) and error.scope is STRATEGY:
            return self.meter.is_exhausted_by(error)
        common = isinstance(error, JournalError | BudgetSpent | LimitReached) or error.code in FINAL_CODES
        return common or isinstance(self.shared.call_gate.failure, BicameralError)

    # Limits and rounds ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def within_limits(self, bounds: Limits, *, warn_at: float | None = None) -> AsyncGenerator[Self]:
        """This context with its own limits, in addition to those around it.

        How it ended is recorded: a replay ends what is inside where it ended, whatever the time says. From the share
        `warn_at` of a limit on, a note `limit-near` names it.
        """
        place = self.step_name("limits")
        recorded = self.shared.handler.recorded_note(place)
        reached = recorded if recorded is not None and recorded["bound"] is not None else None
        if recorded is not None or is_cut_off():
            # It ends where it ended then, or is cut off from outside.
            bounds = replace(bounds, seconds=_RECORDED_SECONDS)

        def warn(bound: Bound) -> None:
            self._note_near_limit(place, bound, bounds)

        meter = Meter(bounds, above=self.meter, warn_at=warn_at or 1.0, warn=warn if warn_at else None)
        inner = self._inner(place=f"{place}/", meter=meter, life=PartLife(self.life), reads_for=self)
        try:
            async with (
                meter.running(),
                self._cut_off(inner) if reached else self._time_after_record(inner),
                self._time_warning(place, meter, warn_at),
            ):
                yield inner
            self.shared.handler.record_note(place, _WITHIN_LIMITS)
        except LimitReached as error:
            if error.counter is not meter:
                self.shared.handler.record_note(place, _WITHIN_LIMITS)
                raise
            if reached is not None:
                error = LimitReached(STRATEGY, reached["bound"], reached["spent"], reached["limit"], meter)
                inner.read_label = join(inner.read_label, label_tree_from_json(reached["shade"]).flat)
            facts: dict[str, Any] = {"bound": error.bound, "spent": error.spent, "limit": error.limit}
            self.shared.handler.record_note(place, facts | {"shade": label_tree_json(inner.read_label)})
            raise error from None
        except BicameralError:
            self.shared.handler.record_note(place, _WITHIN_LIMITS)
            raise
        finally:
            inner.life.end()

    def _note_near_limit(self, place: str, bound: Bound, bounds: Limits) -> None:
        # Parts beside each other come near a limit in any order, so that each bound has a place of its own.
        event = NoteEvent(self.path, NEAR_LIMIT, {"bound": bound, "limit": getattr(bounds, bound)})
        self.shared.trace.append(event)
        self.shared.handler.record_note(f"{place} near {bound}", event.to_json())

    @asynccontextmanager
    async def _time_warning(self, place: str, meter: Meter, share: float | None) -> AsyncGenerator[None]:
        """Note once that the time is nearly over; whoever runs it again notes that if it is recorded."""

        async def watch(seconds: float) -> None:
            # The time stands still while a person is asked, so that nothing is there to wait for but the time itself.
            while (left := seconds - meter.seconds_worked) > 0:  # noqa: ASYNC110
                await asyncio.sleep(max(left, _POLL_SECONDS))
            self._note_near_limit(place, "seconds", meter.limits)

        recorded = self.shared.handler.recorded_note(f"{place} near seconds")
        if recorded is not None:
            self._note_near_limit(place, "seconds", replace(meter.limits, seconds=recorded["limit"]))
        if recorded is not None or share is None or meter.limits.seconds is None or is_cut_off():
            yield
            return
        watching = asyncio.create_task(watch(share * meter.limits.seconds))
        try:
            yield
        finally:
            watching.cancel()

    @asynccontextmanager
    async def _time_after_record(self, inner: Self) -> AsyncGenerator[None]:
        """Let the time of a part begin where its record ends: what it had done before, it must come to again."""

        async def wait() -> None:
            with inner.meter.pause_for_person():
                await self._until_used(inner)

        if not self.shared.handler.has_unused(inner.place):
            yield
            return
        watching = asyncio.create_task(wait())
        # The pause begins before anything else does.
        await asyncio.sleep(0)
        try:
            yield
        finally:
            watching.cancel()

    @asynccontextmanager
    async def _cut_off(self, inner: Self) -> AsyncGenerator[None]:
        """Do what is recorded of a part that reached its limit, and then let its time be over."""

        async def expire() -> None:
            await self._until_used(inner)
            inner.meter.expire()

        with cut_off_as_recorded():
            watching = asyncio.create_task(expire())
            try:
                with suppress(BicameralError):
                    yield
                if (refusal := inner.meter.refusal) is not None:
                    # What is inside has caught its end, and would not be ended a second time.
                    raise refusal
                # Without what took its time then it may come to an end now, which it did not.
                await wait_if_cut_off()
            finally:
                watching.cancel()

    def rounds(self, *, most: int, best: Callable[[Any], float] | None = None) -> Rounds[Self]:
        """Up to `most` rounds, of which the best result is kept.

        Args:
            most: How many rounds there are at most.
            best: The score of a result; without it each result is given with its score.

        Example:
            >>> rounds = context.rounds(most=4, best=len)
            >>> async for turn in rounds:
            ...     turn.give(await turn.context.ask(WRITER, task))
            >>> return rounds.result
        """
        if most < 1:
            raise RunError("pattern.bad-rounds", f"there are {most} rounds", expected="1 or more")
        return Rounds(self, most, best)

    def round_context(self, number: int) -> Self:
        """The context of one round: what it opens, this context has opened. For the kernel alone."""
        name = self.numbers.part_name(f"round {number}")
        path, place = f"{self.path}{name}/", f"{self.place}{name}/"
        return self._inner(path=path, place=place, life=PartLife(self.life), reads_for=self)


C = TypeVar("C", bound=Parts)


@dataclass(slots=True)
class _PartRun(Generic[C, T]):
    """A part that runs beside others, and what came of it."""

    part: C
    work: Callable[[C], Awaitable[Labelled[T]]]
    result: Labelled[T] | BicameralError | None = None
    suspended: Suspend | None = None
    cut_off: CutOff | None = None
    is_started: bool = False
    is_cut: bool = False

    @property
    def outcome(self) -> Labelled[T] | BicameralError:
        if self.result is None:
            raise RuntimeError("a part has neither a result nor an error")
        return self.result


def _make_room(width: int, parts: int, cut: int = 0) -> asyncio.Semaphore:
    """Room for so many parts at once. Those that were cut off only do what is recorded, and never make room again."""
    return asyncio.Semaphore(parts if is_cut_off() else width + cut)


async def _cancel_parts(tasks: Mapping[asyncio.Task[None], int], runs: Sequence[_PartRun[Any, Any]]) -> None:
    """Cancel the parts that have not ended, and wait for their end."""
    running = [task for task in tasks if not task.done()]
    for run in runs:
        run.is_cut = not (run.is_started or run.suspended)
    for task in running:
        run = runs[tasks[task]]
        run.is_cut = True
        # Before the cancellation: a task that ignores it, and whatever it has started, can do nothing any more.
        run.part.life.end()
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=_CLEANUP_SECONDS)
    for task in running:
        if task.done() and not task.cancelled():
            # Its error is of no interest: it was cut off, whatever it made of that.
            task.exception()


def _raise_if_suspended(runs: Sequence[_PartRun[Any, Any]]) -> None:
    for run in runs:
        if run.suspended is not None:
            raise run.suspended


def _raise_first_error(done: set[asyncio.Task[None]]) -> None:
    for task in done:
        if (error := task.exception()) is not None:
            raise error


def _cut_error(why: str, quorum: int | None, timeout: float | None) -> RunError:
    if why == "timeout":
        return RunError("pattern.part-timeout", f"the part had no result after {timeout:g} s")
    return RunError("pattern.not-needed", f"{quorum} other parts had a result, which is enough")


def _first_error(group: BaseExceptionGroup[BicameralError]) -> BicameralError:
    for error in group.exceptions:
        return _first_error(error) if isinstance(error, BaseExceptionGroup) else error
    raise RuntimeError("an empty group of errors")


@dataclass(frozen=True, slots=True)
class Round(Generic[C]):
    """One round: its number from 1 on, and its context, whose reading counts as that of the whole."""

    number: int
    context: C
    _rounds: Rounds[C] = field(repr=False)

    def give(self, value: Labelled[Any], score: Labelled[float] | None = None) -> bool:
        """Keep a result if it is better than those before it; whether it is."""
        return self._rounds.keep(self, value, score)


@dataclass(slots=True)
class Rounds(Generic[C]):
    """Rounds over the same work: an iterator of at most so many, and the best result so far.

    The scores decide which result is the best, so that it has the labels of everything that they were read from.
    """

    _context: C
    most: int
    _best: Callable[[Any], float] | None = None
    begun: int = 0
    score: float | None = None
    """The score of the best result."""
    _kept: Labelled[Any] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Round[C]:
        if self.begun >= self.most:
            raise StopAsyncIteration
        self.begun += 1
        return Round(self.begun, self._context.round_context(self.begun), self)

    def keep(self, turn: Round[C], value: Labelled[Any], score: Labelled[float] | None) -> bool:
        """As `Round.give`."""
        context = turn.context
        counted = self._score(context, value, score)
        better = self.score is None or counted > self.score
        if better:
            self.score, self._kept = counted, value
        context.note("round", number=turn.number, score=counted, best=better)
        return better

    def _score(self, context: C, value: Labelled[Any], score: Labelled[float] | None) -> float:
        counted = math.nan
        if score is not None:
            counted = context.read(score)
        elif self._best is not None:
            counted = self._best(context.read(value))
        if not math.isfinite(counted):
            raise RunError("pattern.no-score", "a result has no score", fix="Give it a number, or pass `best`.")
        return counted

    @property
    def result(self) -> Labelled[Any]:
        """The best result so far."""
        if self._kept is None:
            raise RunError("pattern.no-result", f"not one of {self.begun} rounds gave a result")
        return self._kept.with_label(self._context.read_label)
