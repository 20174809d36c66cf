"""The key of a call: the same for every attempt of it, so that a service can tell a repetition from something new."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

KEY_VARIABLE = "BICAMERAL_CALL_KEY"
"""The environment variable in which a command finds its key."""

_KEY: ContextVar[str | None] = ContextVar("bicameral-call-key", default=None)


def call_key() -> str | None:
    """The key of the call that is being made; None outside of a run.

    A tool that hands it to its service as an idempotency key, or looks whether it has done this one already, may call
    itself `keyed`: the call is then repeated where nobody knows whether it happened.

    Example:
        >>> @tool(effect="send", keyed=True)
        ... def book(room: str) -> str:
        ...     "Book a room."
        ...     return service.book(room, idempotency_key=call_key())
    """
    return _KEY.get()


def key_of(run: str, step: str, what: str) -> str:
    """The key of what a run does at a step: 32 letters and digits that tell nothing about either."""
    text = json.dumps(["bicameral call", run, step, what], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@contextmanager
def under_key(key: str) -> Generator[None]:
    """Make a call under a key."""
    before = _KEY.set(key)
    try:
        yield
    finally:
        _KEY.reset(before)
