"""Quotas: a call of a shared tool or model waits until a slot is free.

Where a tool or model is shared (a server that takes ten calls a minute, a model that answers two at a time), the
workers that share it install a gate. Without one, as in a single run, every call proceeds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Literal

What = Literal["tool", "model"]
QuotaGate = Callable[[What, str], AbstractAsyncContextManager[None]]
"""Gives the slot of a tool or model, by its name."""

_QUOTA_GATE: ContextVar[QuotaGate | None] = ContextVar("bicameral_turns", default=None)


@contextmanager
def use_quotas(gate: QuotaGate) -> Generator[None]:
    """Let every call inside wait at this gate."""
    token = _QUOTA_GATE.set(gate)
    try:
        yield
    finally:
        _QUOTA_GATE.reset(token)


# Shared by all calls: it has no state.
_NO_QUOTA: AbstractAsyncContextManager[None] = nullcontext()


def quota_slot(kind: What, name: str) -> AbstractAsyncContextManager[None]:
    """Wait for a slot, and hold it inside the `async with`."""
    gate = _QUOTA_GATE.get()
    return _NO_QUOTA if gate is None else gate(kind, name)


def has_quotas() -> bool:
    """Whether a gate is installed."""
    return _QUOTA_GATE.get() is not None
