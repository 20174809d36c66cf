"""The agent for code that does not await: blocking methods over one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from bicameral.binding import PlanBinding
from bicameral.labels import Labelled
from bicameral.planning import Intent
from bicameral.plans import Plan
from bicameral.runs import Checked, Finished, Replayed, RunOutcome, Undo

if TYPE_CHECKING:
    from bicameral.agent._agent import Agent
    from bicameral.agent._escalation import Planned
    from bicameral.agent._plan_preview import CallPreview
    from bicameral.patterns import Outcome

T = TypeVar("T")


class SyncAgent:
    """An agent with blocking methods. One event loop runs in its own thread, so it works in notebooks too."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def intent(self, request: str | Labelled[str], **options: Any) -> Intent:
        return _run_blocking(self._agent.intent(request, **options))

    def complete(self, intent: Intent, **options: Any) -> Intent:
        return _run_blocking(self._agent.complete(intent, **options))

    def plan(self, request: str | Labelled[str] | Intent, **options: Any) -> Planned:
        return _run_blocking(self._agent.plan(request, **options))

    def plan_continuation(self, request: str | Labelled[str], run: str, **options: Any) -> Planned:
        return _run_blocking(self._agent.plan_continuation(request, run, **options))

    def check(self, plan: Plan, **options: Any) -> Checked:
        return self._agent.check(plan, **options)

    def bind(self, plan: Plan, **options: Any) -> PlanBinding:
        return _run_blocking(self._agent.bind(plan, **options))

    def run(self, what: Plan | Planned | Checked | str | Labelled[str], **options: Any) -> RunOutcome:
        return _run_blocking(self._agent.run(what, **options))

    def reason(self, request: str | Labelled[str] | Intent, **options: Any) -> Outcome[Any]:
        return _run_blocking(self._agent.reason(request, **options))

    def follow(self, what: Finished | Labelled[str] | str, **options: Any) -> Planned:
        return _run_blocking(self._agent.follow(what, **options))

    def work(self, request: str | Labelled[str], **options: Any) -> Outcome[Any]:
        return _run_blocking(self._agent.work(request, **options))

    def resume(self, run: str, **options: Any) -> RunOutcome:
        return _run_blocking(self._agent.resume(run, **options))

    def replay(self, run: str) -> Replayed:
        return _run_blocking(self._agent.replay(run))

    def preview(self, what: Plan | Planned | Checked) -> tuple[CallPreview, ...]:
        return _run_blocking(self._agent.preview(what))

    def plan_undo(self, run: str = "last", **options: Any) -> Undo:
        return _run_blocking(self._agent.plan_undo(run, **options))

    def undo(self, run: str = "last", **options: Any) -> Undo:
        return _run_blocking(self._agent.undo(run, **options))

    def close(self) -> None:
        _run_blocking(self._agent.aclose())

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
