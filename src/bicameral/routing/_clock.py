"""Time, and how long a call may take altogether, however many models are asked for it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from bicameral.errors import ModelError
from bicameral.models import ModelRequest

from ._context import situation

GRACE = 1.0
"""For so many seconds a call that was called off may still tidy up; then nobody waits for it."""


def now() -> float:
    """Seconds on the clock of the event loop, which never goes back."""
    return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a call must have ended, by the clock of the event loop; None for whenever."""

    at: float | None

    @classmethod
    def of(cls, request: ModelRequest) -> Deadline:
        """From what the request allows, and what is left to whoever makes it."""
        allowed = [left for left in (request.timeout, situation().seconds_left) if left is not None]
        return cls(now() + min(allowed) if allowed else None)

    @property
    def left(self) -> float | None:
        return None if self.at is None else self.at - now()

    def before(self, moment: float) -> bool:
        """Whether there is time until that moment and after it."""
        return self.at is None or moment < self.at

    def given(self, request: ModelRequest) -> ModelRequest:
        """The request with the time that is left; raises when there is none."""
        left = self.left
        if left is None:
            return request
        if left <= 0:
            raise _late()
        return replace(request, timeout=left)

    def kept(self) -> _Kept:
        """Stop what is inside at the deadline, also if it does not heed the timeout of its request."""
        return _Kept(self.at)


class _Kept:
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
            raise _late() from None


async def called_off(*tasks: asyncio.Task[Any]) -> None:
    """Cancel these and wait until they have ended, though not for long: one that does not heed it is left behind."""
    for task in tasks:
        task.cancel()
        # What nobody waits for any more must not be complained about later.
        task.add_done_callback(_forget)
    waiting = [task for task in tasks if not task.done()]
    if waiting:
        await asyncio.wait(waiting, timeout=GRACE)


def _forget(task: asyncio.Task[Any]) -> None:
    with suppress(asyncio.CancelledError):
        task.exception()


def _late() -> ModelError:
    return ModelError(
        "models.timeout",
        "there was no reply in the time that this call may take",
        fix="Allow more time, or name a faster model.",
    )
