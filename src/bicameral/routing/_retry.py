"""Ask the same model again when it failed in passing."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from bicameral.errors import ModelError
from bicameral.models import ModelReply, ModelRequest, Provider

from ._clock import Deadline, now
from ._failures import again, reason_of, retry_after
from ._part import Part
from ._streams import Start, amended, opened
from ._told import Failed, told

T = TypeVar("T")
R = TypeVar("R")

_CHANCE: Callable[[], float] = secrets.SystemRandom().random


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How often a model is asked at most, and how long is waited before each further time.

    The wait begins at `first` seconds and doubles up to `most`; up to `jitter` of it (from 0 to 1) is left off by
    chance, so that callers who failed together do not come back together. A service that says when to come back is
    believed; for one that says more than `patience` seconds nobody waits. `each` bounds a single attempt.
    """

    attempts: int = 3
    first: float = 0.5
    most: float = 30.0
    jitter: float = 0.5
    patience: float = 60.0
    each: float | None = None

    def __post_init__(self) -> None:
        right = self.attempts >= 1 and 0 <= self.first <= self.most and 0 <= self.jitter <= 1 and self.patience >= 0
        if not right or (self.each is not None and not self.each > 0):
            raise ModelError("models.bad-setting", f"these settings for trying again make no sense: {self}")

    def wait(self, attempt: int, wanted: float | None, chance: float) -> float:
        """How long to wait after so many attempts; never less than the service wants."""
        # The exponent is bounded since 2.0 to a large power is no number any more.
        delay = min(self.most, self.first * 2.0 ** min(attempt - 1, 60))
        return max(delay * (1 - self.jitter * chance), wanted or 0.0)


class Retry(Part):
    """The same model, asked again after a rate limit, an outage, a time-out or a reply that cannot be read.

    Never after a refusal, never past the deadline of the call, and never once a part of the reply was shown.

    Example:
        >>> Retry(provider, RetrySettings(attempts=5))
    """

    def __init__(
        self, provider: Provider, settings: RetrySettings | None = None, *, chance: Callable[[], float] = _CHANCE
    ) -> None:
        super().__init__([provider])
        self._settings = settings or RetrySettings()
        self._chance = chance

    async def generate(self, request: ModelRequest) -> ModelReply:
        async def ask(one: Deadline) -> ModelReply:
            async with one.kept():
                return await self._asked[0].generate(one.given(request))

        reply, failed = await self._tried(Deadline.of(request), ask)
        return told(reply, self.name, "retry", failed)

    async def _flow(self, request: ModelRequest, start: Start[T]) -> AsyncGenerator[T, None]:
        deadline = Deadline.of(request)
        reply, failed = await self._tried(deadline, lambda one: opened(start, self._asked[0], request, deadline, one))
        async with aclosing(reply.pieces()) as pieces:
            async for piece in pieces:
                yield amended(piece, lambda reply: told(reply, self.name, "retry", failed))

    async def _tried(self, deadline: Deadline, ask: Callable[[Deadline], Awaitable[R]]) -> tuple[R, Failed]:
        """What came back in the end, and the failures before it."""
        failed: Failed = []
        while True:
            try:
                return await ask(self._attempt(deadline)), failed
            except ModelError as error:
                await self._pause(error, len(failed) + 1, deadline)
                failed.append((self.name, reason_of(error)))

    def _attempt(self, deadline: Deadline) -> Deadline:
        each = self._settings.each
        if each is None or not deadline.before(now() + each):
            return deadline
        return Deadline(now() + each)

    async def _pause(self, error: ModelError, attempt: int, deadline: Deadline) -> None:
        """Wait until it makes sense to ask again; raise the error where it never will, or not in time."""
        wanted = retry_after(error)
        if not again(error) or attempt >= self._settings.attempts or (wanted or 0.0) > self._settings.patience:
            raise error
        delay = self._settings.wait(attempt, wanted, self._chance())
        if not deadline.before(now() + delay):
            raise error
        await asyncio.sleep(delay)
