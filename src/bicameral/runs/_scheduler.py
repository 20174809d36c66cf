"""Scheduling of steps: which must wait for which, and running the rest concurrently as if sequentially.

Steps wait for the values they read and for the order of effects. When a job fails, jobs with a larger number are
cancelled and those with a smaller one are finished, so that the failure raised is that of a sequential run.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

from bicameral.errors import RunError
from bicameral.plans import (
    Answer,
    Ask,
    Call,
    Compute,
    Const,
    Each,
    Expr,
    Extract,
    ListOf,
    Ref,
    Step,
    TupleOf,
    Update,
    When,
    free_names,
)
from bicameral.tools import Registry

Job = Coroutine[Any, Any, None]
StartJob = Callable[[int], Job | None]
"""Starts the job with this number; returns a coroutine to wait for, or None if it is done already."""
QUIET_TURNS = 6
"""Turns of the event loop without any progress after which no step can continue on its own.

From the end of one job to the start of the next are at most two; nested blocks report progress at each level.
"""


class Activity:
    """What goes on in a run: how many effects are running, and whether its steps get on."""

    def __init__(self) -> None:
        self._running = 0
        self._progress = 0
        self._ended = asyncio.Event()

    def begin(self) -> None:
        """Something begins that takes time."""
        self._running += 1

    def end(self) -> None:
        """It ended."""
        self._running -= 1
        self._progress += 1
        self._ended.set()

    @contextmanager
    def running(self) -> Generator[None]:
        """Something runs meanwhile that takes time."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def note_progress(self) -> None:
        """A job was started, or ended, so that others may start."""
        self._progress += 1

    async def wait_until_idle(self) -> None:
        """Return when nothing is running and no step can continue.

        The turns are counted anew after each progress, at whatever moment it is made: an effect that ends while they
        are counted starts further steps, as one does that ended before.
        """
        quiet = 0
        while self._running or quiet < QUIET_TURNS:
            if self._running:
                self._ended.clear()
                await self._ended.wait()
            before = self._progress
            await asyncio.sleep(0)
            quiet = quiet + 1 if self._progress == before else 0


@dataclass(frozen=True, slots=True)
class JobOrder:
    """Which jobs wait for which: for each the number of jobs before it, the jobs after it, and its urgency.

    The longer the chain of jobs that wait for a job, the sooner it starts.
    """

    predecessor_counts: Sequence[int]
    successors: Sequence[Sequence[int]]
    urgency: Sequence[int]

    @classmethod
    def from_dependencies(cls, dependencies: Sequence[Iterable[int]]) -> JobOrder:
        successors: list[list[int]] = [[] for _ in dependencies]
        counts = [0] * len(dependencies)
        for number, predecessors in enumerate(dependencies):
            for each in predecessors:
                successors[each].append(number)
                counts[number] += 1
        chain = [0] * len(dependencies)
        for number in reversed(range(len(dependencies))):
            chain[number] = max((chain[each] + 1 for each in successors[number]), default=0)
        return cls(counts, successors, [-length for length in chain])

    @classmethod
    def unordered(cls, count: int) -> JobOrder:
        """Jobs that do not wait for each other."""
        return cls([0] * count, [()] * count, [0] * count)


async def run_concurrently(order: JobOrder, act: StartJob, activity: Activity, *, width: int | None = None) -> None:
    """Start each job as soon as those before it have ended, `width` at a time, and note the progress in `activity`.

    When one fails, those with a larger number are cancelled and those with a smaller one are finished, so that the
    failure that is raised is that of a sequential run, independent of timing.
    """
    runner = _JobRunner(order, act, activity, width or len(order.predecessor_counts))
    try:
        await runner.run()
    except BaseException:
        await runner.cancel_all()
        raise


class _JobRunner:
    def __init__(self, order: JobOrder, act: StartJob, activity: Activity, width: int) -> None:
        self._successors = order.successors
        self._urgency = order.urgency
        self._act = act
        self._activity = activity
        self._width = width
        self._missing = list(order.predecessor_counts)
        self._ready = [(order.urgency[number], number) for number, missing in enumerate(self._missing) if not missing]
        heapify(self._ready)
        # The current job of each task; None between two jobs.
        self._running: dict[asyncio.Task[None], int | None] = {}
        self._failed_at = len(self._missing)
        self._failure: BaseException | None = None
        self._over = asyncio.get_running_loop().create_future()
        self._leaving = False

    async def run(self) -> None:
        self._start_ready()
        if self._running:
            await self._over
        if self._failure is not None:
            raise self._failure

    async def cancel_all(self) -> None:
        """Cancel whatever is still running and wait for it, so that nothing continues after the caller has failed."""
        self._leaving = True
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _start_ready(self) -> None:
        while len(self._running) < self._width and (following := self._next_job()):
            task = asyncio.create_task(self._chain(*following))
            self._running[task] = following[0]
            task.add_done_callback(self._on_task_done)
            self._activity.note_progress()

    async def _chain(self, number: int, job: Job) -> None:
        """Do a job and continue with the next one in the same task, without a detour through the event loop."""
        task = asyncio.current_task()
        assert task is not None
        while True:
            await job
            self._activity.note_progress()
            self._running[task] = None
            self._finish_job(number, None)
            if self._leaving or (following := self._next_job()) is None:
                return
            number, job = following
            self._running[task] = number
            self._start_ready()

    def _next_job(self) -> tuple[int, Job] | None:
        """The most urgent job that must be awaited; jobs that are done at once are done on the way."""
        while self._ready:
            _, number = heappop(self._ready)
            if number > self._failed_at:
                continue
            try:
                job = self._act(number)
            except Exception as error:
                self._finish_job(number, error)
                continue
            if job is not None:
                return number, job
            self._finish_job(number, None)
        return None

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        number, failure = self._running.pop(task), _task_failure(task)
        self._activity.note_progress()
        if self._leaving:
            return
        if number is not None:
            self._finish_job(number, failure)
        self._start_ready()
        if not self._running and not self._over.done():
            self._over.set_result(None)

    def _finish_job(self, number: int, failure: BaseException | None) -> None:
        if failure is None:
            for follower in self._successors[number]:
                self._missing[follower] -= 1
                if not self._missing[follower]:
                    heappush(self._ready, (self._urgency[follower], follower))
        elif number < self._failed_at:
            self._failed_at, self._failure = number, failure
            for task, running in self._running.items():
                if running is not None and running > number:
                    task.cancel()


def _task_failure(task: asyncio.Task[None]) -> BaseException | None:
    if task.cancelled():
        return RunError("run.cancelled", "a step was cancelled from inside")
    return task.exception()


NO_NAMES: frozenset[str] = frozenset()

K = TypeVar("K")
V = TypeVar("V")


class WorldAccess(IntEnum):
    """How a step uses the world; the larger, the stricter it must keep its place."""

    NONE = 0
    READS = 1
    ASKS = 2
    CHANGES = 3
    ENDS = 4


@dataclass(frozen=True, slots=True)
class Footprint:
    """The variables that a step reads and writes, how it uses the world, and whether it waits for anything outside."""

    reads: frozenset[str]
    writes: frozenset[str]
    world: WorldAccess
    waits: bool


@dataclass(frozen=True, slots=True)
class LoopDependencies:
    """The dependencies between the turns of a loop.

    `carried` are the variables by which a turn depends on the turn before. Variables that turns only add to are in
    `added` instead: additions are merged afterwards, in the order of the turns.
    """

    carried: frozenset[str]
    added: frozenset[tuple[str, str]]
    world: WorldAccess

    @property
    def may_overlap(self) -> bool:
        return self.world <= WorldAccess.READS and not self.carried


def _memo_by_identity(compute: Callable[[K], V]) -> Callable[[K], V]:
    """The same function, computed once for each object. Comparing steps deeply would cost more than it saves."""
    # Each entry keeps its key alive, so that no other object gets its id.
    known: dict[int, tuple[K, V]] = {}

    def look_up(key: K) -> V:
        entry = known.get(id(key))
        if entry is None:
            entry = known[id(key)] = (key, compute(key))
        return entry[1]

    return look_up


class Footprints:
    """Footprints of the steps of one plan, computed once each."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.of = _memo_by_identity(self._compute)
        self.names = _memo_by_identity(_expression_names)
        """The variables that an expression reads."""
        self.order = _memo_by_identity(self._compute_order)
        """Which steps of a block must have ended before which may begin."""
        self.turns = _memo_by_identity(self._compute_turns)

    def names_read(self, steps: Sequence[Step]) -> frozenset[str]:
        """The variables that any of these steps reads."""
        return self._block(steps).reads

    def waits(self, steps: Sequence[Step]) -> bool:
        return any(self.of(step).waits for step in steps)

    def _compute_order(self, steps: Sequence[Step]) -> JobOrder:
        return JobOrder.from_dependencies(step_dependencies([self.of(step) for step in steps]))

    def _compute_turns(self, each: Each) -> LoopDependencies:
        prints = [self.of(step) for step in each.steps]
        scan = _LoopBodyScan(NO_NAMES.union(*(own.writes for own in prints)), self)
        scan.block(each.steps, frozenset(each.names))
        return LoopDependencies(frozenset(scan.carried), frozenset(scan.added), max(own.world for own in prints))

    def _compute(self, step: Step) -> Footprint:
        match step:
            case Call():
                return self._call(step)
            case Extract():
                reads = free_names(step.source) | free_names(step.instruction)
                # What the executor looks up must be as the changes before this step left it.
                world = WorldAccess.READS if self.registry.executor_tools else WorldAccess.NONE
                return Footprint(reads, frozenset({step.name}), world, True)
            case Compute():
                return Footprint(free_names(step.value), frozenset({step.name}), WorldAccess.NONE, False)
            case Update():
                return Footprint(_update_reads(step) | {step.name}, frozenset({step.name}), WorldAccess.NONE, False)
            case Ask():
                return Footprint(free_names(step.question), frozenset({step.name}), WorldAccess.ASKS, True)
            case Answer():
                return Footprint(free_names(step.value), NO_NAMES, WorldAccess.ENDS, False)
            case Each():
                inner = self._block(step.steps)
                reads = free_names(step.over) | inner.reads
                return Footprint(reads, inner.writes | set(step.names), inner.world, inner.waits)
            case When():
                inner = self._block((*step.steps, *step.otherwise))
                return Footprint(free_names(step.condition) | inner.reads, inner.writes, inner.world, inner.waits)

    def _call(self, step: Call) -> Footprint:
        reads = NO_NAMES.union(*map(_expression_names, step.args.values()))
        writes = frozenset({step.name}) if step.name else NO_NAMES
        tool = self.registry[step.tool]
        looks = tool.effect == "read" or tool.outbound
        world = WorldAccess.CHANGES if tool.changes else WorldAccess.READS if looks else WorldAccess.NONE
        return Footprint(reads, writes, world, True)

    def _block(self, steps: Iterable[Step]) -> Footprint:
        prints = [self.of(step) for step in steps]
        return Footprint(
            NO_NAMES.union(*(each.reads for each in prints)),
            NO_NAMES.union(*(each.writes for each in prints)),
            max((each.world for each in prints), default=WorldAccess.NONE),
            any(each.waits for each in prints),
        )


def step_dependencies(prints: Sequence[Footprint]) -> list[set[int]]:
    """For each step of a block the earlier steps that must have ended before it may begin.

    An effect, a question and the answer wait for everything before them: none of them happens if an earlier step
    fails. A read waits for the last effect, and the readers and writers of a variable keep their order.
    """
    writer: dict[str, int] = {}
    readers: defaultdict[str, set[int]] = defaultdict(set)
    barrier, last_change, answered = 0, -1, -1
    found: list[set[int]] = []
    for number, own in enumerate(prints):
        waits = {writer[name] for name in own.reads | own.writes if name in writer}
        waits.update(*(readers[name] for name in own.writes if name in readers))
        if own.world >= WorldAccess.ASKS:
            waits.update(range(barrier, number))
            barrier = number
        elif own.world is WorldAccess.READS and last_change >= 0:
            waits.add(last_change)
        if answered >= 0:
            waits.add(answered)
        if own.world >= WorldAccess.CHANGES:
            last_change = number
        if own.world is WorldAccess.ENDS:
            answered = number
        for name in own.reads:
            readers[name].add(number)
        for name in own.writes:
            writer[name] = number
            readers.pop(name, None)
        found.append(waits)
    return found


def _expression_names(expr: Expr) -> frozenset[str]:
    """`free_names`, with a fast path for the usual arguments of calls."""
    if isinstance(expr, Ref):
        return frozenset({expr.name})
    if isinstance(expr, Const):
        return NO_NAMES
    if isinstance(expr, ListOf | TupleOf):
        return NO_NAMES.union(*map(_expression_names, expr.items))
    return free_names(expr)


def _update_reads(step: Update) -> frozenset[str]:
    return free_names(step.value) | (free_names(step.key) if step.key is not None else NO_NAMES)


class _LoopBodyScan:
    """Walks the body of a loop with the names that are certainly bound in the turn."""

    def __init__(self, written: frozenset[str], footprints: Footprints) -> None:
        self.carried: set[str] = set()
        self.added: set[tuple[str, str]] = set()
        self._written = written
        self._footprints = footprints

    def block(self, steps: Iterable[Step], bound: frozenset[str]) -> frozenset[str]:
        """The names that are certainly bound after these steps."""
        for step in steps:
            match step:
                case Update():
                    self._reads(_update_reads(step), bound)
                    if step.name not in bound:
                        self.added.add((step.name, step.op))
                case When():
                    self._reads(free_names(step.condition), bound)
                    then = self.block(step.steps, bound)
                    bound = then & self.block(step.otherwise, bound)
                case Each():
                    self._reads(free_names(step.over), bound)
                    self.block(step.steps, bound | set(step.names))
                case _:
                    own = self._footprints.of(step)
                    self._reads(own.reads, bound)
                    bound |= own.writes
        return bound

    def _reads(self, names: frozenset[str], bound: frozenset[str]) -> None:
        self.carried |= (names & self._written) - bound
