"""Turns: whoever would use a tool or a model waits here until it is his turn.

Where something is shared by many (a server that takes ten calls a minute, a model that answers two at a time), those
who share it agree on an order. Without such an agreement, as in a single run, everyone goes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from typing import Literal

What = Literal["tool", "model"]
Turns = Callable[[What, str], AbstractAsyncContextManager[None]]

_turns: ContextVar[Turns | None] = ContextVar("bicameral_turns", default=None)


@contextmanager
def taking_turns(turns: Turns) -> Generator[None]:
    """Everything inside waits for its turn."""
    token = _turns.set(turns)
    try:
        yield
    finally:
        _turns.reset(token)


class _AtOnce:
    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *_: object) -> None:
        return None


_AT_ONCE = _AtOnce()


def turn(what: What, name: str) -> AbstractAsyncContextManager[None]:
    """Wait for a turn, and have it until this ends."""
    turns = _turns.get()
    return _AT_ONCE if turns is None else turns(what, name)


def in_turns() -> bool:
    """Whether there is anybody to wait for."""
    return _turns.get() is not None
