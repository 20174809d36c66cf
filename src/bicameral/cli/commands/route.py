"""`bicameral route`: which model answered a recorded call, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .._exits import OK
from .._options import Common, common

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bicameral.runs import Event


@click.group(short_help="Which model answered which call of a run, and why.")
def command() -> None:
    """Which model answered which call of a run, and why."""


@command.command("explain")
@click.argument("run", metavar="RUN[:CALL]")
@common
def explain(chosen: Common, run: str) -> int:
    """The model calls of a recorded RUN (its id, the beginning of it, or `last`), each with its route.

    With `:CALL` only the one with this number.
    """
    from .._records import journals, recorded_in
    from .._routes import route_line

    name, _, number = run.partition(":")
    with journals(chosen.config()) as known:
        journal, name = recorded_in(known, name)
        calls = recorded_calls(journal.events(name))
    if number:
        calls = [_numbered(calls, number, name)]
    for call in calls:
        chosen.out.show(f"{call['call']:>3}  {call['step'] or 'planning':<10} {route_line(call)}")
    if not calls:
        chosen.out.say("no model was asked in this run")
    chosen.out.object({"ok": True, "run": name, "calls": calls})
    return OK


def recorded_calls(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The model calls of a run in order: those that wrote its plan, and those of its steps."""
    found: list[dict[str, Any]] = []
    for event in events:
        if event.kind == "run-started":
            found += [{"step": "", **call} for call in event.body.get("planning_calls", [])]
        elif event.kind == "model-called":
            found.append({"step": event.step, **_facts(event.body)})
    return [{"call": number, **call} for number, call in enumerate(found)]


_KEPT = ("role", "phase", "model", "answered", "seconds", "charges", "route", "degraded")


def _facts(body: dict[str, Any]) -> dict[str, Any]:
    """What is told of a call; what was said in it stays in the record."""
    return {name: body[name] for name in _KEPT if name in body}


def _numbered(calls: list[dict[str, Any]], number: str, run: str) -> dict[str, Any]:
    if not number.isascii() or not number.isdigit() or int(number) >= len(calls):
        known = f"It has {len(calls)}, from 0 on." if calls else "It has none."
        raise click.UsageError(f"There is no call {number!r} in the run {run!r}. {known}")
    return calls[int(number)]
