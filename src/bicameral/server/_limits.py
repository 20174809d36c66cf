"""How much anybody may take: requests a minute for each user, and places for what lasts."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager

from bicameral.errors import ServerError

from ._errors import Answered

RETRY_SECONDS = 5
"""When to come again if all places are taken."""


class Rate:
    """So many requests a minute for each user; a quarter of them may come at once.

    A bucket that is full again is forgotten, so that this holds no more users than asked in the last minute.
    """

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._each_second = a_minute / 60
        self._burst = max(1.0, a_minute / 4)
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        self._swept = clock()

    def take(self, user: str) -> None:
        """Count one request; `server.too-many-requests` says when to come again."""
        now = self._clock()
        self._sweep(now)
        left, then = self._left.get(user, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._each_second)
        if left < 1:
            wait = math.ceil((1 - left) / self._each_second)
            raise Answered(429, ServerError("server.too-many-requests", "too many requests"), retry_after=wait)
        self._left[user] = (left - 1, now)

    def _sweep(self, now: float) -> None:
        if now - self._swept < 60:
            return
        full = self._burst / self._each_second
        self._left = {user: kept for user, kept in self._left.items() if now - kept[1] < full}
        self._swept = now


class Places:
    """A bounded number of places for each name; whoever finds none is told to come again."""

    def __init__(self, each: int, status: int, code: str, message: str) -> None:
        self._each, self._status = each, status
        self._code, self._message = code, message
        self._taken: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        return self._taken.total()

    @contextmanager
    def one(self, name: str = "") -> Generator[None]:
        """A place until the block ends."""
        if self._taken[name] >= self._each:
            raise Answered(self._status, ServerError(self._code, self._message), retry_after=RETRY_SECONDS)
        self._taken[name] += 1
        try:
            yield
        finally:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]
