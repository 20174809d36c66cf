"""The agent for code that does not await."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from bicameral.intent import Intent
from bicameral.labels import Labelled
from bicameral.plans import Plan
from bicameral.runs import Checked, Finished, Replayed, RunOutcome

from ._planned import Planned

if TYPE_CHECKING:
    from bicameral.reasoner import Reasoned
    from bicameral.strategies import Worked

    from ._agent import Agent

T = TypeVar("T")


class SyncAgent:
    """An agent whose methods block. One event loop runs in a thread of its own, so it works in notebooks too."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def intent(self, request: str | Labelled[str], **options: Any) -> Intent:
        return _blocking(self._agent.intent(request, **options))

    def plan(self, request: str | Labelled[str] | Intent, **options: Any) -> Planned:
        return _blocking(self._agent.plan(request, **options))

    def check(self, plan: Plan, **options: Any) -> Checked:
        return self._agent.check(plan, **options)

    def run(self, what: Plan | Planned | str | Labelled[str], **options: Any) -> RunOutcome:
        return _blocking(self._agent.run(what, **options))

    def reason(self, request: str | Labelled[str] | Intent, **options: Any) -> Reasoned:
        return _blocking(self._agent.reason(request, **options))

    def follow(self, what: Finished | Labelled[str] | str, **options: Any) -> Planned:
        return _blocking(self._agent.follow(what, **options))

    def work(self, request: str | Labelled[str], **options: Any) -> Worked:
        return _blocking(self._agent.work(request, **options))

    def resume(self, run: str, **options: Any) -> RunOutcome:
        return _blocking(self._agent.resume(run, **options))

    def replay(self, run: str) -> Replayed:
        return _blocking(self._agent.replay(run))

    def close(self) -> None:
        _blocking(self._agent.aclose())

    def __enter__(self) -> SyncAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_loop: asyncio.AbstractEventLoop | None = None
_starting = threading.Lock()


def _blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop's thread and wait; Ctrl-C stops the coroutine and waits until it has written that."""
    loop, running = _shared_loop(), list[asyncio.Task[Any]]()

    async def kept() -> T:
        running.extend(task for task in [asyncio.current_task()] if task is not None)
        return await work

    future = asyncio.run_coroutine_threadsafe(kept(), loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        for task in running:
            loop.call_soon_threadsafe(task.cancel)
        with contextlib.suppress(Exception, asyncio.CancelledError):
            future.result(timeout=10)
        raise


def _shared_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _starting:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="bicameral", daemon=True).start()
        return _loop
