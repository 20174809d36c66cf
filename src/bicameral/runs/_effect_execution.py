"""Execution of one effect: its time limit, its errors, and its end when the run is stopped meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

from bicameral.errors import BicameralError, RunError, ToolError, describe_error
from bicameral.runs._approvals import Suspend
from bicameral.tools import Tool
from bicameral.types import to_plain

GRACE_SECONDS = 5.0
interrupt_grace: ContextVar[float | None] = ContextVar("interrupt_grace", default=None)
"""Set where Ctrl-C cancels the run: the seconds that an effect in flight is then given instead of `GRACE_SECONDS`."""
CLEANUP_SECONDS = 1.0
EffectAction = Callable[[], Coroutine[Any, Any, Any]]


async def call_with_timeout(tool: Tool, bound: dict[str, Any]) -> Any:
    """What a tool returns, or an error if it takes longer than it may."""
    # A copy for each attempt: a tool that changes its arguments must not change the plan's variables.
    given = {name: to_plain(value) for name, value in bound.items()}
    try:
        async with asyncio.timeout(tool.timeout):
            return await tool.call(given)
    except TimeoutError:
        raise ToolError(
            "tools.timeout",
            f"{tool.name!r} took longer than {tool.timeout:g} s",
            fix="Its effect may or may not have happened." if tool.changes else None,
        ) from None


async def finish_within(seconds: float | None, tool: Tool | None, act: Coroutine[Any, Any, Any]) -> Any:
    """What a step gives, or an error if it takes longer than the plan allows it, its retries included.

    Cancelling a command kills it with everything that it started. A tool in a thread cannot be killed: nobody waits
    for it any longer, and its result is dropped.
    """
    if seconds is None:
        return await act
    try:
        async with asyncio.timeout(seconds):
            return await act
    except TimeoutError:
        what = "reading with the quarantined model" if tool is None else repr(tool.name)
        raise RunError(
            "run.step-timeout",
            f"{what} took longer than the {seconds:g} s that the plan gives this step",
            fix="Its effect may or may not have happened." if tool is not None and tool.changes else None,
        ) from None


async def run_with_typed_errors(what: str, act: EffectAction) -> Any:
    """Run it; whatever fails inside becomes a typed error, and only stopping the run can cancel it."""
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
        if interrupt_grace.get() is None:
            raise
        # The run is cancelled already, and the tool blocked the loop: as a cancellation it is recorded as any other.
        raise asyncio.CancelledError from None
    except Suspend as waits:
        # Only an approver or an asker may suspend a run, not a tool.
        if waits.ask is None:
            raise ToolError("tools.failed", f"{what!r} cannot let the run wait") from None
        raise
    except BaseException as error:
        raise ToolError("tools.failed", f"{what!r} failed: {describe_error(error)}") from error


async def finish_despite_cancel(act: Coroutine[Any, Any, Any]) -> tuple[asyncio.Task[Any], bool]:
    """Finish an effect that has begun, even if the run is stopped meanwhile; True if it was stopped.

    An effect that takes longer than the grace time is cancelled, and then it is unknown whether it happened.
    """
    task = asyncio.create_task(act)
    try:
        await asyncio.wait({task})
        return task, False
    except asyncio.CancelledError:
        given = interrupt_grace.get()
        await asyncio.wait({task}, timeout=GRACE_SECONDS if given is None else given)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CLEANUP_SECONDS)
        if task.done() and not task.cancelled():
            return task, True
        raise
    finally:
        task.cancel()
