"""Jobs side by side that end as if they had run one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

from bicameral.errors import RunError

Job = Coroutine[Any, Any, None]
Act = Callable[[int], Job | None]
"""Begin the job with this number: a coroutine to wait for, or None if it is done already."""


@dataclass(frozen=True, slots=True)
class Order:
    """Which jobs wait for which: for each the number of jobs before it, the jobs after it, and how urgent it is.

    The longer the chain of jobs that wait for a job, the sooner it is begun.
    """

    before: Sequence[int]
    after_it: Sequence[Sequence[int]]
    urgency: Sequence[int]

    @classmethod
    def after(cls, dependencies: Sequence[Iterable[int]]) -> Order:
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
    def free(cls, count: int) -> Order:
        """Any order will do."""
        return cls([0] * count, [()] * count, [0] * count)


async def side_by_side(order: Order, act: Act, *, width: int | None = None) -> None:
    """Begin each job as soon as those before it have ended, `width` at a time.

    When one fails, those with a larger number are stopped and those with a smaller one come to their end, so that
    the failure that is raised is the one of a run without any overlap, whatever took how long.
    """
    crew = _Crew(order, act, width or len(order.before))
    try:
        await crew.work()
    except BaseException:
        await crew.leave()
        raise


class _Crew:
    def __init__(self, order: Order, act: Act, width: int) -> None:
        self._after_it = order.after_it
        self._urgency = order.urgency
        self._act = act
        self._width = width
        self._missing = list(order.before)
        self._ready = [(order.urgency[number], number) for number, missing in enumerate(self._missing) if not missing]
        heapify(self._ready)
        # The job that each task is at; None when it has ended one and looks for the next.
        self._running: dict[asyncio.Task[None], int | None] = {}
        self._failed_at = len(self._missing)
        self._failure: BaseException | None = None
        self._over = asyncio.get_running_loop().create_future()
        self._leaving = False

    async def work(self) -> None:
        self._begin()
        if self._running:
            await self._over
        if self._failure is not None:
            raise self._failure

    async def leave(self) -> None:
        """Stop whatever is still running and wait for it, so that nothing goes on behind the caller's back."""
        self._leaving = True
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _begin(self) -> None:
        while len(self._running) < self._width and (following := self._next()):
            task = asyncio.create_task(self._chain(*following))
            self._running[task] = following[0]
            task.add_done_callback(self._left)

    async def _chain(self, number: int, job: Job) -> None:
        """Do a job and go on with what follows, without a detour through the event loop."""
        task = asyncio.current_task()
        assert task is not None
        while True:
            await job
            self._running[task] = None
            self._ended(number, None)
            if self._leaving or (following := self._next()) is None:
                return
            number, job = following
            self._running[task] = number
            self._begin()

    def _next(self) -> tuple[int, Job] | None:
        """The most urgent job that has to be waited for; those that are done at once are done on the way."""
        while self._ready:
            _, number = heappop(self._ready)
            if number > self._failed_at:
                continue
            try:
                job = self._act(number)
            except Exception as error:
                self._ended(number, error)
                continue
            if job is not None:
                return number, job
            self._ended(number, None)
        return None

    def _left(self, task: asyncio.Task[None]) -> None:
        number, failure = self._running.pop(task), _failure_of(task)
        if self._leaving:
            return
        if number is not None:
            self._ended(number, failure)
        self._begin()
        if not self._running and not self._over.done():
            self._over.set_result(None)

    def _ended(self, number: int, failure: BaseException | None) -> None:
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


def _failure_of(task: asyncio.Task[None]) -> BaseException | None:
    if task.cancelled():
        return RunError("run.cancelled", "a step was cancelled from inside")
    return task.exception()
