"""`bicameral runs`: the record of what was run."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from .._exits import FAILED, OK
from .._options import Common, common
from .._usage import recorded_json, recorded_text
from .._values import answer_text, readable, table

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bicameral.runs import Event


@click.group(short_help="What was run, and running it again from its record.", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int | None:
    """What was run, and running it again from its record. Without a subcommand: the list."""
    return context.invoke(list_runs) if context.invoked_subcommand is None else None


@command.command("list")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="The newest so many.")
@common
def list_runs(chosen: Common, limit: int = 20) -> int:
    """The newest runs."""
    from bicameral.config import open_journal

    with open_journal(chosen.config()) as journal:
        runs = list(journal.runs(limit))
    rows: list[dict[str, object]] = [
        {
            "run": run.run,
            "started": datetime.fromtimestamp(run.started).replace(microsecond=0),
            "status": run.status,
            "seconds": round(run.seconds, 2) if run.seconds is not None else None,
            "request": run.request,
        }
        for run in runs
    ]
    chosen.out.show(table(rows, chosen.out.width) if rows else "no runs yet")
    chosen.out.object({"ok": True, "runs": [readable(row) for row in rows]})
    return OK


def _complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from bicameral.config import load_config, open_journal

    with open_journal(load_config()) as journal:
        found = [CompletionItem(run.run, help=run.request) for run in journal.runs(50) if run.run.startswith(begun)]
    return [*found, *([CompletionItem("last")] if "last".startswith(begun) else [])]


@command.command("show")
@click.argument("run", default="last", shell_complete=_complete)
@click.option("--full", is_flag=True, help="Every event with all its facts.")
@common
def show_run(chosen: Common, run: str, full: bool) -> int:
    """What happened in RUN: its id, the beginning of it, or `last`."""
    from bicameral.config import open_journal

    with open_journal(chosen.config()) as journal:
        events = journal.events(run)
    out = chosen.out
    for event in events:
        out.show(_line(event, full=full))
    facts = [
        {"number": event.number, "at": event.at, "kind": event.kind, "step": event.step, "body": event.body}
        for event in events
    ]
    usage = recorded_json(events)
    if text := recorded_text(usage):
        out.show(text)
    out.object({"ok": True, "run": events[0].run, "events": facts, **usage})
    return OK


@command.command("replay")
@click.argument("run", default="last", shell_complete=_complete)
@common
def replay_run(chosen: Common, run: str) -> int:
    """Run RUN again with its recorded answers of models and tools; nothing is touched."""
    from bicameral.config import open_journal, open_policy, open_registry
    from bicameral.runs import replay
    from bicameral.strategies import is_conversation, replay_conversation

    config = chosen.config()
    registry, out = open_registry(config), chosen.out
    with open_journal(config) as journal:
        run = journal.find(run)
        if is_conversation(journal, run):
            replayed = asyncio.run(replay_conversation(journal, run, registry, open_policy(config, registry)))
        else:
            replayed = asyncio.run(replay(journal, run, registry))
    if replayed.identical:
        out.say(f"run {replayed.run}: identical")
        out.show(answer_text(replayed.answer, out.width))
    else:
        out.say(f"run {replayed.run}: the replay differs from the record")
        for difference in replayed.differences:
            out.show(f"  {difference}")
    out.object(
        {
            "ok": replayed.identical,
            "run": replayed.run,
            "differences": list(replayed.differences),
            "answer": readable(replayed.answer),
        }
    )
    return OK if replayed.identical else FAILED


def _line(event: Event, *, full: bool) -> str:
    clock = datetime.fromtimestamp(event.at).strftime("%H:%M:%S")
    what = f"{clock}  {event.kind:<13} {event.step:<8}"
    if full:
        return f"{what}\n{json.dumps(event.body, ensure_ascii=False, indent=2)}"
    return f"{what} {_gist(event)}".rstrip()


def _gist(event: Event) -> str:
    body: dict[str, Any] = event.body
    match event.kind:
        case "run-started" | "reason-started":
            text = str(body.get("request", ""))
        case "step-started" | "call-waits" | "call-denied":
            text = f"{body.get('what', '')} {json.dumps(body.get('arguments', {}), ensure_ascii=False)}"
        case "step-finished":
            text = _noticed(body) + json.dumps(body.get("result"), ensure_ascii=False)
        case "step-failed" | "run-failed":
            error: dict[str, Any] = body.get("error", {})
            text = f"{_noticed(body)}{error.get('message', '')} [{error.get('code', '')}]"
        case "run-finished":
            text = json.dumps(body.get("answer"), ensure_ascii=False)
        case "approval":
            text = f"asked about {len(body.get('calls', []))}, approved {len(body.get('approved', []))}"
        case "reason-round":
            told = body.get("failed") or "told: " + ("; ".join(body.get("told", [])) or "nothing")
            text = f"round {body.get('round')} (run {body.get('run')}) {told}"
        case "reason-ended":
            taken: dict[str, Any] = body.get("taken", {})
            text = f"{taken.get('rounds')} rounds, {taken.get('tokens')} tokens, {body.get('bound') or ''}"
        case "run-stopped":
            text = f"in flight: {', '.join(body.get('in_flight', [])) or 'nothing'}"
        case _:
            text = str(body.get("model", ""))
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= 100 else one_line[:99] + "…"


def _noticed(body: dict[str, Any]) -> str:
    """How many alerts there were at a step, in front of what it gave."""
    alerts: list[Any] = body.get("alerts", [])
    return f"({len(alerts)} alert{'' if len(alerts) == 1 else 's'}) " if alerts else ""
