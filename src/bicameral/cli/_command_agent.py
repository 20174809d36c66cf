"""The agent of a command from its start to its end: opened with its weights, and stopped by signals.

SIGTERM stops a command as Ctrl-C does: running work is ended and recorded. asyncio is imported late, since `--help`
must be fast.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import click

from bicameral.cli._output import Output, Terminated

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.config import Config, Role

MakeAgent: TypeAlias = "Callable[[Config], Agent]"


def _injected_agent() -> MakeAgent | None:
    """The factory that the caller of the command line put into click's context: tests bring their own models."""
    context = click.get_current_context(silent=True)
    return cast("MakeAgent", context.obj) if context is not None and callable(context.obj) else None


@asynccontextmanager
async def open_agent(config: Config) -> AsyncGenerator[Agent]:
    """The agent, closed at the end. Telemetry is exported if the OTEL_* variables say where to."""
    from bicameral.agent import Agent

    make = _injected_agent()
    problems: list[str] = []
    with ExitStack() as stack:
        if any(name.startswith("OTEL_") for name in os.environ):
            from bicameral.telemetry import export_from_environment

            problems = stack.enter_context(export_from_environment()).problems
        agent = make(config) if make else Agent.from_config(config)
        try:
            yield agent
        finally:
            await agent.aclose()
    for problem in problems:
        Output().say(f"telemetry: {problem}")


def fetch_missing_weights(out: Output, config: Config, roles: Iterable[Role]) -> None:
    """Fetch the weights that these roles need and this machine does not have, after saying so."""
    if _injected_agent() is not None:
        return
    from bicameral.config import fetch_weights, missing_weights, size_text
    from bicameral.models import SilentProgress, terminal_progress

    wanted = tuple(roles)
    missing = missing_weights(config, wanted)
    if not missing:
        return
    for weights in missing:
        out.say(f"{weights.title} is not on this machine yet: fetching {size_text(weights.bytes)}, once.")
    out.say("Ctrl-C stops it; what was fetched is kept, and the next command goes on from there.")
    fetch_weights(config, wanted, progress=SilentProgress() if out.as_json else terminal_progress())


def prepare_prompts(out: Output, config: Config) -> list[str]:
    """Let the local models of a configuration read their prompts, and keep what they read; return their names."""
    if _injected_agent() is not None or config.models.kept_mb == 0:
        return []
    import asyncio

    from bicameral.agent import prepare_models
    from bicameral.cli._displays import open_display
    from bicameral.config import open_registry

    async def prepare() -> list[str]:
        with open_display(out) as shown:
            shown.phase("preparing the models")
            return await prepare_models(config, open_registry(config))

    return asyncio.run(prepare())


T = TypeVar("T")


def on_signals(callback: Callable[[signal.Signals], object], *signals: signal.Signals) -> None:
    """Call this on the event loop for these signals, where the platform allows it."""
    import asyncio

    # Signal handlers are not available in a thread, or on Windows.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        for each in signals:
            asyncio.get_running_loop().add_signal_handler(each, callback, each)


async def run_until_terminated(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work. SIGTERM cancels it, and raises `Terminated` once it has ended."""
    import asyncio

    loop, task, terminated = asyncio.get_running_loop(), asyncio.current_task(), False

    def stop(_: signal.Signals) -> None:
        nonlocal terminated
        terminated = True
        if task is not None:
            task.cancel()

    on_signals(stop, signal.SIGTERM)
    try:
        result = await work
    except asyncio.CancelledError:
        if terminated:
            raise Terminated from None
        raise
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGTERM)
    # The work may have finished despite the cancellation.
    if terminated:
        raise Terminated
    return result
