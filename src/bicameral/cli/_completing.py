"""What a shell is offered after Tab: runs, questions. Whatever goes wrong here, it is offered nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bicameral.config import Config

_MOST = 50


def complete_runs(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The newest runs, recorded or submitted, and `last`."""
    from click.shell_completion import CompletionItem

    found: dict[str, str] = {}
    with suppress(Exception):
        found |= asyncio.run(_submitted())
    with suppress(Exception):
        found |= _recorded()
    items = [CompletionItem(run, help=request) for run, request in found.items() if run.startswith(begun)]
    return [*items, *([CompletionItem("last")] if "last".startswith(begun) else [])]


def quiet_config() -> Config:
    """The configuration without a word: of one that is not accepted what widens is not used, and nobody is asked."""
    from bicameral.config import load_config

    return load_config(confirm=lambda _: False)


def _recorded() -> dict[str, str]:
    from bicameral.config import open_journal

    with open_journal(quiet_config()) as journal:
        return {run.run: run.request for run in journal.runs(_MOST)}


async def _submitted() -> dict[str, str]:
    from ._durable import is_there, submitted_runs

    config = quiet_config()
    if not is_there(config):
        return {}
    async with submitted_runs(config) as runs:
        return {view.run: view.request for view in await runs.list(limit=_MOST)}


def complete_approvals(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The questions that are open."""
    from click.shell_completion import CompletionItem

    with suppress(Exception):
        found = asyncio.run(_open())
        return [CompletionItem(id, help=told) for id, told in found.items() if id.startswith(begun)]
    return []


async def _open() -> dict[str, str]:
    from ._durable import submitted_runs
    from ._questions import gist

    async with submitted_runs(quiet_config()) as runs:
        return {each.id: gist(each) for each in await runs.approvals(limit=_MOST)}
