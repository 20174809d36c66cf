"""Open the agent that a command works with, and see to it that its weights are here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias, cast

import click

from ._output import Output

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.config import Config, Role

MakeAgent: TypeAlias = "Callable[[Config], Agent]"


def given_agent() -> MakeAgent | None:
    """What whoever invoked the command line wants used instead of the configured agent: tests bring their models."""
    context = click.get_current_context(silent=True)
    return cast("MakeAgent", context.obj) if context is not None and callable(context.obj) else None


@asynccontextmanager
async def opened(config: Config, make: MakeAgent | None = None) -> AsyncGenerator[Agent]:
    """The agent, closed at the end. What goes on is told to where OTEL_* variables say, if they do."""
    from bicameral.agent import Agent
    from bicameral.telemetry import from_environment

    with from_environment() as exporting:
        agent = make(config) if make else Agent.from_config(config)
        try:
            yield agent
        finally:
            await agent.aclose()
    for problem in exporting.problems:
        Output().say(f"telemetry: {problem}")


def bring_weights(out: Output, config: Config, roles: Iterable[Role]) -> None:
    """Fetch the weights that these roles need and this machine lacks, after saying so."""
    from bicameral.config import fetch_weights, missing_weights, size_text
    from bicameral.models import SilentProgress, terminal_progress

    wanted = tuple(roles)
    missing = missing_weights(config, wanted)
    if not missing:
        return
    for weights in missing:
        out.say(f"{weights.title} is not on this machine yet: fetching {size_text(weights.bytes)}, once.")
    fetch_weights(config, wanted, progress=SilentProgress() if out.as_json else terminal_progress())
