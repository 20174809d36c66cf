"""The events of a run, as they happen: statements of the plan, the plan, the steps with their results, the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from bicameral.agent._escalation import Planned
from bicameral.limits import Limits
from bicameral.runs import Approver, Asker, Doubt, Observer, RunOutcome, StepProgress


@dataclass(frozen=True, slots=True)
class StatementWritten:
    """A statement of the plan, as the planner has written it. A plan that is repaired is written again."""

    text: str


RunEvent = StatementWritten | Planned | StepProgress | RunOutcome
"""What `Agent.stream` gives. The last event is the outcome."""


@dataclass(frozen=True, slots=True)
class EventCallbacks:
    """What a request tells about itself while it is planned; each may be missing."""

    statement: Callable[[str], None] | None = None
    planned: Callable[[Planned], None] | None = None


NOBODY_TOLD = EventCallbacks()


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Who is asked and told while a plan runs, and what it may take."""

    asker: Asker | None = None
    approver: Approver | None = None
    observer: Observer | None = None
    caps: Limits | None = None
    doubts: tuple[Doubt, ...] = ()
    may_replace: bool = False


async def stream_events(
    work: Callable[[EventCallbacks, Callable[[StepProgress], None]], Awaitable[RunOutcome]],
) -> AsyncGenerator[RunEvent, None]:
    """The events of a piece of work, in order. Whoever stops listening stops the work, which records its end."""
    events: asyncio.Queue[RunEvent | None] = asyncio.Queue()
    told = EventCallbacks(lambda text: events.put_nowait(StatementWritten(text)), events.put_nowait)

    async def run() -> RunOutcome:
        try:
            return await work(told, events.put_nowait)
        finally:
            events.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await task
    finally:
        if not task.done():
            task.cancel()
            # Its end is recorded before the caller continues.
            with suppress(asyncio.CancelledError):
                await task
