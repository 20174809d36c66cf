"""Quotas: whoever would use a shared tool or model waits here until a slot is free.

Where something is shared by many (a server that takes ten calls a minute, a model that answers two at a time), the
workers that share it install a gate. Without one, as in a single run, everything goes ahead at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from typing import Literal

What = Literal["tool", "model"]
QuotaGate = Callable[[What, str], AbstractAsyncContextManager[None]]

_QUOTA_GATE: ContextVar[QuotaGate | None] = ContextVar("bicameral_turns", default=None)


@contextmanager
def use_quotas(turns: QuotaGate) -> Generator[None]:
    """Everything inside waits for its turn."""
    token = _QUOTA_GATE.set(turns)
    try:
        yield
    finally:
        _QUOTA_GATE.reset(token)


class _NoQuota:
    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *_: object) -> None:
        return None


_NO_QUOTA = _NoQuota()


def quota_slot(what: What, name: str) -> AbstractAsyncContextManager[None]:
    """Wait for a turn, and have it until this ends."""
    turns = _QUOTA_GATE.get()
    return _NO_QUOTA if turns is None else turns(what, name)


def has_quotas() -> bool:
    """Whether there is anybody to wait for."""
    return _QUOTA_GATE.get() is not None
