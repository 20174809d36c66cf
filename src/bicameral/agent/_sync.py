"""The agent for code that does not await: blocking methods over one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from bicameral.agent._agent import Agent

P = ParamSpec("P")
T = TypeVar("T")


def blocking(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """A method that waits for an async one, with the same arguments: a type checker sees each of them."""

    @wraps(method)
    def call(*args: P.args, **options: P.kwargs) -> T:
        return _run_blocking(method(*args, **options))

    return call


def blocking_iterator(method: Callable[P, AsyncGenerator[T, None]]) -> Callable[P, Generator[T, None, None]]:
    """The same for a method that gives one thing after the other; leaving the loop ends the work."""

    @wraps(method)
    def call(*args: P.args, **options: P.kwargs) -> Generator[T, None, None]:
        items, end = method(*args, **options), object()

        async def following() -> T | object:
            return await anext(items, end)

        try:
            while (item := _run_blocking(following())) is not end:
                yield item  # pyright: ignore[reportReturnType]
        finally:
            _run_blocking(_close(items))

    return call


async def _close(items: AsyncGenerator[Any, None]) -> None:
    await items.aclose()


class SyncAgent:
    """An agent with blocking methods. One event loop runs in its own thread, so it works in notebooks too.

    Each has the arguments of the method of the same name of `Agent`.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.intent = blocking(agent.intent)
        self.choose_strategy = blocking(agent.choose_strategy)
        self.complete = blocking(agent.complete)
        self.plan = blocking(agent.plan)
        self.plan_continuation = blocking(agent.plan_continuation)
        self.check = agent.check
        self.resolve_model = agent.resolve_model
        self.bind = blocking(agent.bind)
        self.run = blocking(agent.run)
        self.stream = blocking_iterator(agent.stream)
        self.reason = blocking(agent.reason)
        self.follow = blocking(agent.follow)
        self.work = blocking(agent.work)
        self.resume = blocking(agent.resume)
        self.replay = blocking(agent.replay)
        self.preview = blocking(agent.preview)
        self.plan_undo = blocking(agent.plan_undo)
        self.undo = blocking(agent.undo)
        self.close = blocking(agent.aclose)

    def __enter__(self) -> SyncAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_event_loop: asyncio.AbstractEventLoop | None = None
_loop_lock = threading.Lock()


def _run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop's thread and wait; Ctrl-C cancels it and waits until it has recorded its end."""
    loop, running = _shared_loop(), list[asyncio.Task[Any]]()

    async def run() -> T:
        running.extend(task for task in [asyncio.current_task()] if task is not None)
        return await work

    future = asyncio.run_coroutine_threadsafe(run(), loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        # The task and not the future: cancelling the future would not wait for what the task still has to record.
        for task in running:
            loop.call_soon_threadsafe(task.cancel)
        with contextlib.suppress(Exception, asyncio.CancelledError):
            future.result(timeout=10)
        raise


def _shared_loop() -> asyncio.AbstractEventLoop:
    global _event_loop
    # Two threads must not start two loops: models and journals belong to the loop they were first used on.
    with _loop_lock:
        if _event_loop is None or _event_loop.is_closed():
            _event_loop = asyncio.new_event_loop()
            threading.Thread(target=_event_loop.run_forever, name="bicameral", daemon=True).start()
        return _event_loop
