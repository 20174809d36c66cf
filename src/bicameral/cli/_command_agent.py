"""The agent of a command from its start to its end: opened with its weights, and stopped by signals.

SIGTERM stops a command as Ctrl-C does: running work is ended and recorded. asyncio is imported late, since `--help`
must be fast.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Iterable
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, cast

import click

from bicameral.cli._output import Output, Terminated
from bicameral.errors import BicameralError, PlanError

if TYPE_CHECKING:
    from types import FrameType

    from bicameral.agent import Agent
    from bicameral.config import Config, Role

MakeAgent: TypeAlias = "Callable[[Config], Agent]"


def _injected_agent() -> MakeAgent | None:
    """The factory that the caller of the command line put into click's context: tests bring their own models."""
    context = click.get_current_context(silent=True)
    return cast("MakeAgent", context.obj) if context is not None and callable(context.obj) else None


def is_agent_given() -> bool:
    """Whether the caller of the command line brings an agent, which needs no weights."""
    return _injected_agent() is not None


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
        _say_lapsed_effects(agent)
        try:
            yield agent
        except PlanError as error:
            note_larger_models(error, config)
            raise
        finally:
            await agent.aclose()
    for problem in problems:
        Output().say(f"telemetry: {problem}")


def _say_lapsed_effects(agent: Agent) -> None:
    """Say which confirmed effects no longer count: the tools are irreversible again, and a run asks about them."""
    for tool in agent.registry:
        if tool.described is not None and tool.described.state == "lapsed":
            Output().say(f"warning: the effect of {tool.name!r} is {tool.described}. [tools.lapsed]", style="yellow")


def note_larger_models(error: BicameralError, config: Config) -> None:
    """Note in the error of a request without a plan which models may find one, unless code knows that none can."""
    from bicameral.config import larger_planning_models
    from bicameral.planning import NoPlanError

    if isinstance(error, NoPlanError) and not error.is_founded:
        error.larger_models = larger_planning_models(config)


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


def prepare_prompts(out: Output, config: Config, only: Collection[str] | None = None) -> list[str]:
    """Let the local models of a configuration read their prompts, and keep what they read; return their names.

    Args:
        out: Where the progress goes.
        config: The configuration.
        only: The SHA-256 of the weights to prepare; without it, all that are used.
    """
    if _injected_agent() is not None or config.models.kept_mb == 0:
        return []
    import asyncio

    from bicameral.agent import prepare_models
    from bicameral.cli._displays import open_display

    async def prepare() -> list[str]:
        async with open_agent(config) as agent:
            with open_display(out) as shown:
                shown.phase("preparing the models")
                return await prepare_models(config, agent.planning_registry, only=only)

    return asyncio.run(prepare())


T = TypeVar("T")


def on_signals(callback: Callable[[signal.Signals], object], *signals: signal.Signals) -> None:
    """Call this on the event loop for these signals, where the platform allows it."""
    import asyncio

    # Signal handlers are not available in a thread, or on Windows.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        for each in signals:
            asyncio.get_running_loop().add_signal_handler(each, callback, each)


_GRACE_SECONDS = 1.0
"""Seconds that an effect in flight is given at Ctrl-C: a person waits for the prompt."""
_BLOCKED_SECONDS = 1.0
"""A loop that does nothing for so many seconds is blocked by a tool."""


async def run_until_terminated(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work. SIGTERM cancels it, and raises `Terminated` once it has ended."""
    with _interrupting_blocked_loop():
        return await _run_until_terminated(work)


@contextmanager
def _interrupting_blocked_loop() -> Generator[None]:
    """Make one Ctrl-C enough to end a tool that blocks the event loop itself.

    The first one cancels the work, which takes effect when the loop goes on. If the loop does not go on, a second one
    is sent: it raises `KeyboardInterrupt` in the tool.
    """
    import asyncio
    import threading

    loop, before, watching = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT), list[threading.Thread]()
    ended = threading.Event()

    def watch() -> None:
        alive = threading.Event()
        loop.call_soon_threadsafe(alive.set)
        if not alive.wait(_BLOCKED_SECONDS) and not ended.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not watching:
            watching.append(threading.Thread(target=watch, name="bicameral-interrupt", daemon=True))
            watching[0].start()
        if callable(before):
            before(number, frame)

    # Signal handlers can be set in the main thread only.
    handles = callable(before) and threading.current_thread() is threading.main_thread()
    if handles:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        ended.set()
        if handles:
            signal.signal(signal.SIGINT, before)


def exit_despite_tools(code: int) -> NoReturn:
    """End the process, also while a tool is stuck in a thread, which the interpreter would wait for.

    The run is recorded by now, with the effect in flight as one whose outcome is not known.
    """
    import threading

    tools = sys.modules.get("bicameral.tools")
    if tools is not None and tools.has_running_calls():
        timer = threading.Timer(_END_SECONDS, _exit_now, (code,))
        timer.daemon = True
        timer.start()
    sys.exit(code)


_END_SECONDS = 0.2


def _exit_now(code: int) -> None:
    import atexit

    # What is registered there (histories, processes of parsers) would be run only after all threads have ended.
    with suppress(Exception):
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


async def _run_until_terminated(work: Coroutine[Any, Any, T]) -> T:
    import asyncio

    from bicameral.runs import interrupt_grace

    interrupt_grace.set(_GRACE_SECONDS)
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
