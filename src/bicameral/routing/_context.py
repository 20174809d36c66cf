"""What is known about a call besides the request itself: what it is for, and what is left to spend on it.

Sessions set the role, the chamber and whether the text may be trusted; strategies set the phase; budgets set what is
left. A router reads all of it, and nobody passes it along: it is kept per task (a `ContextVar`), so that calls made at
the same time do not see each other's.

    with situated(role="delta", chamber="privileged"):
        reply = await provider.generate(request)
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from bicameral.models import Chamber


@dataclass(frozen=True, slots=True)
class Situation:
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


NOTHING_KNOWN = Situation()
_current: ContextVar[Situation] = ContextVar("bicameral_situation", default=NOTHING_KNOWN)


def situation() -> Situation:
    """The circumstances of what runs now."""
    return _current.get()


@contextmanager
def situated(**changes: Any) -> Generator[Situation]:
    """The circumstances as they are now with these changes, as long as the block runs.

    Not around a `yield` of an asynchronous generator: between two items its caller's circumstances hold.
    """
    here = replace(_current.get(), **changes)
    token = _current.set(here)
    try:
        yield here
    finally:
        _current.reset(token)
