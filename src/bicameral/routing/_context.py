"""Call context and deadline: what is known about a call besides the request, and how long it may take altogether.

Sessions set the role, the chamber and whether the text may be trusted; strategies set the phase; budgets set what is
left. A router reads all of it and nobody passes it along: it is kept per task (a `ContextVar`), so that concurrent
calls do not see each other's. A deadline holds however many models are asked for one call.

    with call_context(role="delta", chamber="privileged"):
        reply = await provider.generate(request)
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from bicameral.errors import ModelError
from bicameral.models import Chamber, ModelRequest


@dataclass(frozen=True, slots=True)
class CallContext:
    """The circumstances of one call. None says that nobody told, or that there is no bound.

    `trusted` is False as soon as the conversation holds anything that a stranger may have written. `failures` counts
    the calls for the same job that failed or were not accepted. `cost_cap` is the most that this one call may cost.
    Money is in the currency of the price table.
    """

    role: str | None = None
    phase: str | None = None
    chamber: Chamber | None = None
    trusted: bool | None = None
    tokens_left: int | None = None
    money_left: float | None = None
    seconds_left: float | None = None
    failures: int = 0
    cost_cap: float | None = None


EMPTY_CONTEXT = CallContext()
_CURRENT_CONTEXT: ContextVar[CallContext] = ContextVar("bicameral_situation", default=EMPTY_CONTEXT)


def current_context() -> CallContext:
    """The circumstances of what runs now."""
    return _CURRENT_CONTEXT.get()


@contextmanager
def call_context(**changes: Any) -> Generator[CallContext]:
    """The circumstances as they are now with these changes, as long as the block runs.

    Not around a `yield` of an asynchronous generator: between two items its caller's circumstances hold.
    """
    here = replace(_CURRENT_CONTEXT.get(), **changes)
    token = _CURRENT_CONTEXT.set(here)
    try:
        yield here
    finally:
        _CURRENT_CONTEXT.reset(token)


CHARACTERS_PER_TOKEN = 4


def estimate_prompt_tokens(request: ModelRequest) -> int:
    """The estimated tokens of a request: a quarter of its characters, without a tokenizer."""
    characters = len(request.prefill)
    for message in request.messages:
        characters += len(message.text)
    return characters // CHARACTERS_PER_TOKEN


CANCEL_GRACE_SECONDS = 1.0
"""For so many seconds a call that was called off may still tidy up; then nobody waits for it."""


def loop_time() -> float:
    """Seconds on the clock of the event loop, which never goes back."""
    return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a call must have ended, by the clock of the event loop; None for whenever."""

    at: float | None

    @classmethod
    def of(cls, request: ModelRequest) -> Deadline:
        """From what the request allows, and what is left to whoever makes it."""
        allowed = [left for left in (request.timeout, current_context().seconds_left) if left is not None]
        return cls(loop_time() + min(allowed) if allowed else None)

    @property
    def left(self) -> float | None:
        return None if self.at is None else self.at - loop_time()

    def is_after(self, moment: float) -> bool:
        """Whether there is time until that moment and after it."""
        return self.at is None or moment < self.at

    def limit_request(self, request: ModelRequest) -> ModelRequest:
        """The request with the time that is left; raises when there is none."""
        left = self.left
        if left is None:
            return request
        if left <= 0:
            raise _deadline_error()
        return replace(request, timeout=left)

    def scope(self) -> _DeadlineScope:
        """Stop what is inside at the deadline, also if it does not heed the timeout of its request."""
        return _DeadlineScope(self.at)


class _DeadlineScope:
    """`asyncio.timeout_at`, with an error of ours; where there is no deadline it costs nothing."""

    __slots__ = ("_scope",)

    def __init__(self, at: float | None) -> None:
        self._scope = None if at is None else asyncio.timeout_at(at)

    async def __aenter__(self) -> None:
        if self._scope is not None:
            await self._scope.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scope is None:
            return
        try:
            await self._scope.__aexit__(kind, error, trace)
        except TimeoutError:
            raise _deadline_error() from None


async def cancel_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancel these and wait until they have ended, though not for long: one that does not heed it is left behind."""
    for task in tasks:
        task.cancel()
        # What nobody waits for any more must not be complained about later.
        task.add_done_callback(_retrieve_exception)
    waiting = [task for task in tasks if not task.done()]
    if waiting:
        await asyncio.wait(waiting, timeout=CANCEL_GRACE_SECONDS)


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    with suppress(asyncio.CancelledError):
        task.exception()


def _deadline_error() -> ModelError:
    return ModelError(
        "models.timeout",
        "there was no reply in the time that this call may take",
        fix="Allow more time, or name a faster model.",
    )
