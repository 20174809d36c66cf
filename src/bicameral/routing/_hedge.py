"""Ask a second time when the first reply is slow to come, and take whichever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from bicameral.errors import ModelError
from bicameral.models import ModelReply, ModelRequest, Provider

from ._clock import Deadline, called_off
from ._failures import elsewhere, refused
from ._part import Part
from ._streams import Opened, Start, amended, opened
from ._told import less, told

T = TypeVar("T")
R = TypeVar("R")


class Hedged(Part):
    """A model, and after `after` seconds without a reply the same or another beside it. The loser is called off.

    There is exactly one reply; what the loser had cost until then is counted. A refusal of either is final, also when
    the other has something to say. A failure of one is no failure as long as the other is asked.

    Example:
        >>> Hedged(main, after=4.0, second=fast)
    """

    def __init__(self, first: Provider, *, after: float, second: Provider | None = None) -> None:
        if not after >= 0:
            raise ModelError("models.bad-setting", f"a second request after {after!r} s makes no sense")
        super().__init__([first] if second is None else [first, second])
        self._after = after

    async def generate(self, request: ModelRequest) -> ModelReply:
        deadline = Deadline.of(request)

        async def ask(model: Provider) -> ModelReply:
            async with deadline.kept():
                return await model.generate(deadline.given(request))

        ran = await self._race(ask)
        return self._told(ran.result(), ran)

    async def _flow(self, request: ModelRequest, start: Start[T]) -> AsyncGenerator[T, None]:
        """The reply whose first piece came first."""
        deadline = Deadline.of(request)
        ran = await self._race(lambda model: opened(start, model, request, deadline))
        async with aclosing(ran.result().pieces()) as pieces:
            async for piece in pieces:
                yield amended(piece, lambda reply: self._told(reply, ran))

    def _told(self, reply: ModelReply, ran: _Race[Any]) -> ModelReply:
        """The reply; one of the second model says so."""
        first, second = self._asked[0].name, self._asked[-1].name
        if ran.winner is ran.tasks[0]:
            return reply
        why = "it failed" if ran.failed else f"no reply within {self._after:g} s"
        reply = told(reply, second, "hedge", [(first, why)])
        return reply if first == second else less(reply, f"{second} answered instead of {first} ({why})")

    async def _race(self, ask: Callable[[Provider], Coroutine[Any, Any, R]]) -> _Race[R]:
        tasks = [asyncio.create_task(ask(self._asked[0]))]
        try:
            await asyncio.wait(tasks, timeout=self._after)
            if not tasks[0].done():
                tasks.append(asyncio.create_task(ask(self._asked[-1])))
            winner = await _first_good(tasks)
            await _left([task for task in tasks if task is not winner])
            # A refusal that came while the loser was called off counts as well.
            for task in tasks:
                if _failed(task, refused):
                    task.result()
        except BaseException:
            await _left(tasks)
            raise
        return _Race(tasks, winner)


@dataclass(frozen=True, slots=True)
class _Race(Generic[R]):
    """One or two calls that have ended or were called off, and the one that won."""

    tasks: list[asyncio.Task[R]]
    winner: asyncio.Task[R]

    def result(self) -> R:
        return self.winner.result()

    @property
    def failed(self) -> bool:
        """Whether the first call ended by itself, with an error."""
        first = self.tasks[0]
        return first.done() and not first.cancelled() and first.exception() is not None


async def _first_good(tasks: list[asyncio.Task[R]]) -> asyncio.Task[R]:
    """The first of these that has a result. A failure that another model cannot mend ends the race."""
    pending: set[asyncio.Task[R]] = set(tasks)
    while pending:
        _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        done = [task for task in tasks if task.done()]
        for task in done:
            if _failed(task, _final):
                task.result()
        for task in done:
            if not _failed(task, _any):
                return task
    tasks[0].result()
    raise AssertionError("a race without an end")


def _final(error: BaseException) -> bool:
    return not elsewhere(error)


def _any(error: BaseException) -> bool:
    return True


def _failed(task: asyncio.Task[Any], how: Callable[[BaseException], bool]) -> bool:
    """Whether it has ended with such an error."""
    if not task.done():
        return False
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    return error is not None and how(error)


async def _left(tasks: list[asyncio.Task[Any]]) -> None:
    """Call these off; a reply that began to come meanwhile is closed."""
    await called_off(*tasks)
    for task in tasks:
        if task.done() and not _failed(task, _any):
            result: object = task.result()
            if isinstance(result, Opened):
                await cast("Opened[Any]", result).aclose()
