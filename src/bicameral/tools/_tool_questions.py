"""Questions that a tool puts to the person while it is called, such as those of an MCP server.

A run with somebody to ask sets the way to them around each call. A tool that finds none gets no answer, and what it
does then is a refusal: nobody answers for a person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from bicameral.types import Type

AskPerson = Callable[[str, Type], Awaitable[Any]]
"""Asks the person a question, and returns a value of a type."""

_ASK: ContextVar[AskPerson | None] = ContextVar("bicameral-ask-person", default=None)


@contextmanager
def use_person(ask: AskPerson | None) -> Generator[None]:
    """Let the tools that are called inside ask the person in this way, on the event loop that runs now.

    A tool may be on another loop when it asks, such as that of its connection; whoever asks a person is bound to one.
    """
    token = _ASK.set(None if ask is None else _PersonOnLoop(ask, asyncio.get_running_loop()))
    try:
        yield
    finally:
        _ASK.reset(token)


@dataclass(frozen=True, slots=True)
class _PersonOnLoop:
    """A person who is asked on one loop. Two of the same are equal, so that questions can wait for each other."""

    ask: AskPerson
    loop: asyncio.AbstractEventLoop

    async def __call__(self, question: str, wanted: Type) -> Any:
        if asyncio.get_running_loop() is self.loop:
            return await self.ask(question, wanted)

        async def work() -> Any:
            return await self.ask(question, wanted)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self.loop))


def current_person() -> AskPerson | None:
    """How the person can be asked here; None if nobody can."""
    return _ASK.get()
