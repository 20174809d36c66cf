"""Execution of one effect: its time limit, its errors, and its end when the run is stopped meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
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


MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class CallAttempts:
    """How often a call of a tool that may be repeated is tried, and how long each attempt may take.

    Args:
        most: The most attempts.
        pause: The seconds before the second attempt; they double from one to the next.
        seconds: The most seconds of one attempt, if that is less than the tool's own time limit.
        before: Called before each attempt; raises to refuse it.
        after: Called after each attempt, with its error if it failed.
    """

    most: int = MAX_ATTEMPTS
    pause: float = 0.4
    seconds: float | None = None
    before: Callable[[int], None] = lambda attempt: None
    after: Callable[[int, BaseException | None], None] = lambda attempt, error: None


_CALL_ATTEMPTS: ContextVar[CallAttempts | None] = ContextVar("bicameral-call-attempts", default=None)
_DEFAULT_ATTEMPTS = CallAttempts()


@contextmanager
def use_call_attempts(attempts: CallAttempts) -> Generator[None]:
    """Try the calls that are made inside in this way."""
    token = _CALL_ATTEMPTS.set(attempts)
    try:
        yield
    finally:
        _CALL_ATTEMPTS.reset(token)


def current_call_attempts() -> CallAttempts:
    """How calls of tools are tried here."""
    return _CALL_ATTEMPTS.get() or _DEFAULT_ATTEMPTS


async def call_with_timeout(tool: Tool, bound: dict[str, Any], seconds: float | None = None) -> Any:
    """What a tool returns, or an error if it takes longer than it may: its own time, or `seconds` if that is less."""
    # A copy for each attempt: a tool that changes its arguments must not change the plan's variables.
    given = {name: to_plain(value) for name, value in bound.items()}
    limit = tool.timeout if seconds is None else min(seconds, tool.timeout)
    try:
        async with asyncio.timeout(limit):
            return await tool.call(given)
    except TimeoutError:
        raise ToolError(
            "tools.timeout",
            f"{tool.name!r} took longer than {limit:g} s",
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
