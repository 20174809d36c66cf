"""`bicameral runs`: the record of what was run, and what is to become of submitted runs."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from .._completing import complete_runs
from .._durable import run_facts, state_text
from .._events import event_json, event_line
from .._exits import FAILED, OK
from .._options import Common, common
from .._records import Records, records
from .._usage import recorded_json, recorded_text
from .._values import answer_text, readable, table
from ._runs_going import cancel, resume, watch
from ._runs_kept import erase, prune, verify

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.durable import RunView
    from bicameral.runs import Event, Replayed, RunSummary

_STATES = ("queued", "running", "waiting", "finished", "failed", "stopped", "unfinished", "erased")
_MOST = 10_000


@click.group(short_help="What was run, and running it again from its record.", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int | None:
    """What was run, and running it again from its record. Without a subcommand: the list."""
    return context.invoke(list_runs) if context.invoked_subcommand is None else None


for each in (watch, cancel, resume, erase, prune, verify):
    command.add_command(each)


@command.command("list")
@click.option("--limit", type=click.IntRange(1, _MOST), default=20, show_default=True, help="The newest so many.")
@click.option("--state", type=click.Choice(_STATES), help="Only those that stand so.")
@common
def list_runs(chosen: Common, limit: int = 20, state: str | None = None) -> int:
    """The newest runs, submitted or not: `queued` and `waiting` are submitted ones."""
    rows = asyncio.run(_listed(chosen, limit if state is None else _MOST))
    rows = [row for row in rows if state in (None, row["status"])][:limit]
    chosen.out.show(table(rows, chosen.out.width) if rows else "no runs yet" if state is None else f"no run is {state}")
    chosen.out.object({"ok": True, "runs": [readable(row) for row in rows]})
    return OK


async def _listed(chosen: Common, limit: int) -> list[dict[str, object]]:
    async with records(chosen.config()) as known:
        views = {view.run: view for view in await known.views(limit)}
        recorded = await known.summaries(limit)
    _say_trouble(chosen, known)
    rows = [_row(each, views.pop(each.run, None)) for each in recorded] + [_unbegun(view) for view in views.values()]
    return sorted(rows, key=lambda row: str(row["started"]), reverse=True)[:limit]


def _row(run: RunSummary, view: RunView | None) -> dict[str, object]:
    return {
        "run": run.run,
        "started": datetime.fromtimestamp(run.started).replace(microsecond=0),
        "status": view.state if view is not None and run.status == "unfinished" else run.status,
        "seconds": round(run.seconds, 2) if run.seconds is not None else None,
        "request": run.request,
    }


def _unbegun(view: RunView) -> dict[str, object]:
    """A submitted run of which nothing is recorded yet."""
    return {
        "run": view.run,
        "started": view.created.astimezone().replace(microsecond=0, tzinfo=None),
        "status": view.state,
        "seconds": None,
        "request": view.request,
    }


def _say_trouble(chosen: Common, known: Records) -> None:
    if known.trouble is not None:
        chosen.out.say(f"submitted runs are not shown: {known.trouble}", style="yellow")


@command.command("show")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--full", is_flag=True, help="Every event with all its facts.")
@common
def show_run(chosen: Common, run: str, full: bool) -> int:
    """What happened in RUN (its id, the beginning of it, or `last`), and how it stands if it was submitted."""
    run, events, view = asyncio.run(_shown(chosen, run))
    out = chosen.out
    for event in events:
        out.show(event_line(event, full=full))
    usage = recorded_json(events)
    if text := recorded_text(usage):
        out.show(text)
    if view is not None and not view.ended:
        out.show(f"{view.run}: {state_text(view)}")
    submitted = {} if view is None else {"submitted": run_facts(view)}
    out.object({"ok": True, "run": run, "events": [event_json(event) for event in events], **usage, **submitted})
    return OK


async def _shown(chosen: Common, run: str) -> tuple[str, list[Event], RunView | None]:
    async with records(chosen.config()) as known:
        found = await known.find(run)
        return found.run, found.journal.events(found.run, erased=True) if found.journal else [], found.view


@command.command("replay")
@click.argument("run", default="last", shell_complete=complete_runs)
@common
def replay_run(chosen: Common, run: str) -> int:
    """Run RUN again with its recorded answers of models and tools; nothing is touched."""
    replayed, out = asyncio.run(_replayed(chosen.config(), run)), chosen.out
    if replayed.identical:
        out.say(f"run {replayed.run}: identical")
        out.show(answer_text(replayed.answer, out.width))
    else:
        out.say(f"run {replayed.run}: the replay differs from the record")
        for difference in replayed.differences:
            out.show(f"  {difference}")
    facts: dict[str, Any] = {"run": replayed.run, "differences": list(replayed.differences)}
    out.object({"ok": replayed.identical, **facts, "answer": readable(replayed.answer)})
    return OK if replayed.identical else FAILED


async def _replayed(config: Config, run: str) -> Replayed:
    from bicameral.config import open_policy, open_registry
    from bicameral.runs import replay
    from bicameral.strategies import is_conversation, replay_conversation

    registry = open_registry(config)
    async with records(config) as known:
        found = await known.find(run)
        journal = found.ended()
        if is_conversation(journal, found.run):
            return await replay_conversation(journal, found.run, registry, open_policy(config, registry))
        return await replay(journal, found.run, registry)
