"""Call context and deadline: what is known about a call besides the request, and how long it may take altogether.

Sessions set the role, the chamber and whether the text is trusted; strategies set their name and the phase; budgets set
what is left. A router reads them from a `ContextVar`, so that they need not be passed along and concurrent calls do not
see each other's. A deadline covers all models that are called for one request.

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
class PromptSize:
    """How long a prompt is that nobody has written: a route can be explained for a call without making its text.

    Args:
        messages: How many messages it has.
        tokens: How many tokens it has, in all messages.
    """

    messages: int = 1
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class CallContext:
    """The circumstances of one call. None means not known, or not limited.

    Args:
        strategy: The strategy that the phase belongs to.
        hint: What kind of work the current step is, by the plan or the program. Unlike the `model` of a request it
            never names an alias.
        tier: How capable a model the work needs: `small`, `mid` or `large`. It counts as the hint where there is none
            and a rule or a role of the configuration has its name.
        trusted: False as soon as the conversation contains untrusted text.
        failures: The calls for the same job that failed or were not accepted.
        cost_cap: The most that this call may cost. Money is in the currency of the price table.
        prompt_size: How long the prompt counts as; None for every real call, whose request says it.
        keeps_sampling: Whether the temperature and the seed of the request were configured for its role, so that those
            of an alias, which are for all its calls, do not replace them.
    """

    role: str | None = None
    phase: str | None = None
    strategy: str | None = None
    hint: str | None = None
    tier: str | None = None
    chamber: Chamber | None = None
    trusted: bool | None = None
    tokens_left: int | None = None
    money_left: float | None = None
    seconds_left: float | None = None
    failures: int = 0
    cost_cap: float | None = None
    prompt_size: PromptSize | None = None
    keeps_sampling: bool = False


EMPTY_CONTEXT = CallContext()
_CURRENT_CONTEXT: ContextVar[CallContext] = ContextVar("bicameral_situation", default=EMPTY_CONTEXT)


def current_context() -> CallContext:
    """The context of the current task."""
    return _CURRENT_CONTEXT.get()


@contextmanager
def call_context(**changes: Any) -> Generator[CallContext]:
    """The current context with these changes, within the block.

    Not for use around a `yield` of an asynchronous generator: between two items the caller's context must hold.
    """
    here = replace(_CURRENT_CONTEXT.get(), **changes)
    token = _CURRENT_CONTEXT.set(here)
    try:
        yield here
    finally:
        _CURRENT_CONTEXT.reset(token)


CHARACTERS_PER_TOKEN = 4


def count_messages(request: ModelRequest, here: CallContext) -> int:
    """The messages of a call."""
    return len(request.messages) if here.prompt_size is None else here.prompt_size.messages


def count_prompt_tokens(request: ModelRequest, here: CallContext) -> int:
    """The tokens of a call, estimated where there is a text."""
    return estimate_prompt_tokens(request) if here.prompt_size is None else here.prompt_size.tokens


def estimate_prompt_tokens(request: ModelRequest) -> int:
    """The estimated tokens of a request: a quarter of its characters, without a tokenizer."""
    characters = len(request.prefill)
    for message in request.messages:
        characters += len(message.text)
    return characters // CHARACTERS_PER_TOKEN


CANCEL_GRACE_SECONDS = 1.0
"""Seconds that a cancelled call has to clean up; after that nobody waits for it."""


def loop_time() -> float:
    """Seconds on the monotonic clock of the event loop."""
    return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a call must have ended, by the clock of the event loop; None for no deadline."""

    at: float | None

    @classmethod
    def of(cls, request: ModelRequest) -> Deadline:
        """The deadline of a request: its timeout, or what the context leaves if that is less."""
        allowed = [left for left in (request.timeout, current_context().seconds_left) if left is not None]
        return cls(loop_time() + min(allowed) if allowed else None)

    @property
    def left(self) -> float | None:
        return None if self.at is None else self.at - loop_time()

    def is_after(self, moment: float) -> bool:
        """Whether the deadline is later than this moment."""
        return self.at is None or moment < self.at

    def limit_request(self, request: ModelRequest) -> ModelRequest:
        """The request with the remaining time as its timeout; `models.timeout` if there is none."""
        left = self.left
        if left is None:
            return request
        if left <= 0:
            raise _deadline_error()
        return replace(request, timeout=left)

    def scope(self) -> _DeadlineScope:
        """Cancel the block at the deadline, also if a provider ignores the timeout of its request."""
        return _DeadlineScope(self.at)


class _DeadlineScope:
    """`asyncio.timeout_at` with `models.timeout` as its error. Without a deadline it costs nothing."""

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
            # Only an expired deadline raises here; a TimeoutError of the block passes unchanged.
            raise _deadline_error() from None


async def cancel_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancel these and wait a short time for them to end; a task that ignores it is left behind."""
    for task in tasks:
        task.cancel()
        # Otherwise asyncio would log an exception that was never retrieved.
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
