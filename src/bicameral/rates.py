"""Rates: how many of something in a time, as settings write them, and calls counted against one."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator

from bicameral.errors import ToolError

_PERIOD_SECONDS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}
_RATE_PATTERN = re.compile(r"([1-9]\d{0,8})\s*/\s*([a-z]+)")


def parse_rate(text: str) -> tuple[int, float]:
    """The number and the period in seconds of a rate.

    Example:
        >>> parse_rate("10/min")
        (10, 60.0)
    """
    found = _RATE_PATTERN.fullmatch(text.strip())
    if found is None or found[2] not in _PERIOD_SECONDS:
        raise ValueError("a rate is a number and a time, such as '10/min' (s, min, h, d)")
    return int(found[1]), _PERIOD_SECONDS[found[2]]


def _validate_rate(text: str) -> str:
    parse_rate(text)
    return text


Rate = Annotated[str, AfterValidator(_validate_rate)]
"""A setting such as `10/min`."""


class CallRate:
    """Counts the calls of one service against a rate; a call beyond it is refused, and not queued.

    Args:
        rate: The rate; None for none.
        what: What is called, for the error.
        now: The clock.
    """

    def __init__(self, rate: str | None, what: str, *, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._period = (0, 0.0) if rate is None else parse_rate(rate)
        self._what, self._now = what, now
        self._calls: deque[float] = deque()

    def count_call(self) -> None:
        """Count one call; `rates.exceeded` if it is one too many."""
        if not self._most:
            return
        now = self._now()
        while self._calls and now - self._calls[0] >= self._period:
            self._calls.popleft()
        if len(self._calls) >= self._most:
            wait = self._period - (now - self._calls[0])
            raise ToolError(
                "rates.exceeded",
                f"{self._what} may be called {self._most} times in {self._period:g} s",
                fix=f"Wait {wait:.0f} s, or change `rate` in its settings.",
            )
        self._calls.append(now)
