"""Scheduling of steps: which must wait for which, and running the rest concurrently as if sequentially.

Steps wait for the values they read and for the order of effects. When a job fails, jobs with a larger number are
cancelled and those with a smaller one are finished, so that the failure raised is that of a sequential run.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Any

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
"""Begin the job with this number: a coroutine to wait for, or None if it is done already."""


@dataclass(frozen=True, slots=True)
class JobOrder:
    """Which jobs wait for which: for each the number of jobs before it, the jobs after it, and how urgent it is.

    The longer the chain of jobs that wait for a job, the sooner it is begun.
    """

    predecessor_counts: Sequence[int]
    successors: Sequence[Sequence[int]]
    urgency: Sequence[int]

    @classmethod
    def from_dependencies(cls, dependencies: Sequence[Iterable[int]]) -> JobOrder:
        after_it: list[list[int]] = [[] for _ in dependencies]
        before = [0] * len(dependencies)
        for number, earlier in enumerate(dependencies):
            for each in earlier:
                after_it[each].append(number)
                before[number] += 1
        chain = [0] * len(dependencies)
        for number in reversed(range(len(dependencies))):
            chain[number] = max((chain[each] + 1 for each in after_it[number]), default=0)
        return cls(before, after_it, [-length for length in chain])

    @classmethod
    def unordered(cls, count: int) -> JobOrder:
        """Any order will do."""
        return cls([0] * count, [()] * count, [0] * count)


async def run_concurrently(order: JobOrder, act: StartJob, *, width: int | None = None) -> None:
    """Begin each job as soon as those before it have ended, `width` at a time.

    When one fails, those with a larger number are stopped and those with a smaller one come to their end, so that
    the failure that is raised is the one of a run without any overlap, whatever took how long.
    """
    crew = _JobRunner(order, act, width or len(order.predecessor_counts))
    try:
        await crew.run()
    except BaseException:
        await crew.cancel_all()
        raise


class _JobRunner:
    def __init__(self, order: JobOrder, act: StartJob, width: int) -> None:
        self._after_it = order.successors
        self._urgency = order.urgency
        self._act = act
        self._width = width
        self._missing = list(order.predecessor_counts)
        self._ready = [(order.urgency[number], number) for number, missing in enumerate(self._missing) if not missing]
        heapify(self._ready)
        # The job that each task is at; None when it has ended one and looks for the next.
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
        """Stop whatever is still running and wait for it, so that nothing goes on behind the caller's back."""
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

    async def _chain(self, number: int, job: Job) -> None:
        """Do a job and go on with what follows, without a detour through the event loop."""
        task = asyncio.current_task()
        assert task is not None
        while True:
            await job
            self._running[task] = None
            self._finish_job(number, None)
            if self._leaving or (following := self._next_job()) is None:
                return
            number, job = following
            self._running[task] = number
            self._start_ready()

    def _next_job(self) -> tuple[int, Job] | None:
        """The most urgent job that has to be waited for; those that are done at once are done on the way."""
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
        if self._leaving:
            return
        if number is not None:
            self._finish_job(number, failure)
        self._start_ready()
        if not self._running and not self._over.done():
            self._over.set_result(None)

    def _finish_job(self, number: int, failure: BaseException | None) -> None:
        if failure is None:
            for follower in self._after_it[number]:
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


class WorldAccess(IntEnum):
    """What a step has to do with the world; the larger, the more it must keep its place."""

    NONE = 0
    READS = 1
    ASKS = 2
    CHANGES = 3
    ENDS = 4


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a step reads and writes, what it does to the world, and whether it has to wait for anything outside."""

    reads: frozenset[str]
    writes: frozenset[str]
    world: WorldAccess
    waits: bool


@dataclass(frozen=True, slots=True)
class LoopDependencies:
    """What the turns of a loop have to do with each other.

    `carried` are the variables by which one turn depends on the turn before. What turns only add to is not among
    them but in `added`: additions are put together afterwards, in the order of the turns.
    """

    carried: frozenset[str]
    added: frozenset[tuple[str, str]]
    world: WorldAccess

    @property
    def may_overlap(self) -> bool:
        return self.world <= WorldAccess.READS and not self.carried


class Footprints:
    """Footprints of the steps of one plan, computed once each."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        # By identity: comparing steps deeply would cost more than it saves. Each entry keeps its key alive.
        self._of: dict[int, tuple[object, Footprint]] = {}
        self._orders: dict[int, tuple[object, JobOrder]] = {}
        self._turns: dict[int, tuple[object, LoopDependencies]] = {}
        self._names: dict[int, tuple[object, frozenset[str]]] = {}

    def of(self, step: Step) -> Footprint:
        known = self._of.get(id(step))
        if known is None:
            known = self._of[id(step)] = (step, self._compute(step))
        return known[1]

    def names(self, expr: Expr) -> frozenset[str]:
        """The variables that an expression reads."""
        known = self._names.get(id(expr))
        if known is None:
            known = self._names[id(expr)] = (expr, _expression_names(expr))
        return known[1]

    def names_read(self, steps: Sequence[Step]) -> frozenset[str]:
        """The variables that any of these steps reads."""
        return self._block(steps).reads

    def waits(self, steps: Sequence[Step]) -> bool:
        return any(self.of(step).waits for step in steps)

    def order(self, steps: Sequence[Step]) -> JobOrder:
        """Which steps of a block must have ended before which may begin."""
        known = self._orders.get(id(steps))
        if known is None:
            known = self._orders[id(steps)] = (
                steps,
                JobOrder.from_dependencies(step_dependencies([self.of(step) for step in steps])),
            )
        return known[1]

    def turns(self, each: Each) -> LoopDependencies:
        known = self._turns.get(id(each))
        if known is None:
            known = self._turns[id(each)] = (each, _loop_dependencies(each, self))
        return known[1]

    def _compute(self, step: Step) -> Footprint:
        match step:
            case Call():
                return self._call(step)
            case Extract():
                reads = free_names(step.source) | free_names(step.instruction)
                return Footprint(reads, frozenset({step.name}), WorldAccess.NONE, True)
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

    An effect, a question and the answer wait for everything before them: none of them happens when an earlier step
    fails. A read waits for the last effect, and a variable's readers and writers keep their order.
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
    """`free_names`, and at once for what the arguments of most calls are."""
    if isinstance(expr, Ref):
        return frozenset({expr.name})
    if isinstance(expr, Const):
        return NO_NAMES
    if isinstance(expr, ListOf | TupleOf):
        return NO_NAMES.union(*map(_expression_names, expr.items))
    return free_names(expr)


def _update_reads(step: Update) -> frozenset[str]:
    return free_names(step.value) | (free_names(step.key) if step.key is not None else NO_NAMES)


def _loop_dependencies(each: Each, footprints: Footprints) -> LoopDependencies:
    prints = [footprints.of(step) for step in each.steps]
    scan = _LoopBodyScan(NO_NAMES.union(*(own.writes for own in prints)), footprints)
    scan.block(each.steps, frozenset(each.names))
    return LoopDependencies(frozenset(scan.carried), frozenset(scan.added), max(own.world for own in prints))


class _LoopBodyScan:
    """Goes through the body of a loop with the names that are certainly bound in this turn."""

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
