"""`bicameral route`: which model a call gets or got, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, common_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bicameral.config import AliasUses
    from bicameral.runs import Event


def alias_rows(uses: Iterable[AliasUses]) -> list[dict[str, object]]:
    """The rows of a table of aliases."""
    return [
        {
            "alias": each.alias,
            "model": each.model,
            "chambers": ", ".join(each.chambers),
            "used for": ", ".join(each.used_for),
        }
        for each in uses
    ]


def route_line(call: Mapping[str, Any]) -> str:
    """A recorded call: `delta: main (openai:gpt-4.1), by rule 0 (has_tools)`."""
    route: Mapping[str, Any] = call.get("route") or {}
    model = str(call.get("answered") or call.get("model") or "")
    opened = f"\n    sees more than one typed sub-task: {call['open_reason']}" if call.get("open_reason") else ""
    if not route:
        return f"{call.get('role', '')}: {model}{opened}"
    line = f"{call.get('role', '')}: {route.get('alias', '')} ({model}), {route.get('why', '')}" + opened
    if call.get("temperature"):
        line += f"\n    temperature {call['temperature']:g}, seed {call.get('seed', 0)}"
    if route.get("note"):
        line += f"\n    note: {route['note']}"
    for name, reason in route.get("attempts", []):
        line += f"\n    before it: {name} ({reason})"
    return line + (f"\n    degraded: {call['degraded']}" if call.get("degraded") else "")


@click.group(short_help="Which model answered which call of a run, and why.")
def command() -> None:
    """Which model answered which call of a run, and why."""


@command.command("explain")
@click.argument("run", metavar="RUN[:CALL]")
@common_options
def explain(chosen: CommonOptions, run: str) -> dict[str, Any]:
    """The model calls of a recorded RUN (its id, the beginning of it, or `last`), each with its route.

    With `:CALL` only the one with this number. Of a strategy it also says how it was chosen, and which calls showed the
    request or tools to a model that had read untrusted text.
    """
    from bicameral.cli._run_records import find_recorded_run, open_journals

    name, _, number = run.partition(":")
    with open_journals(chosen.config()) as known:
        journal, name = find_recorded_run(known, name)
        events = journal.events(name)
    calls, strategy = recorded_calls(events), strategy_facts(events)
    if number:
        calls = [_pick_call(calls, number, name)]
    for line in strategy_lines(strategy) if not number else ():
        chosen.out.show(line)
    for call in calls:
        chosen.out.show(f"{call['call']:>3}  {call['step'] or 'planning':<10} {route_line(call)}")
    if not calls:
        chosen.out.say("no model was asked in this run")
    return {"run": name, **strategy, "calls": calls}


def strategy_facts(events: Iterable[Event]) -> dict[str, Any]:
    """The strategy of a recorded run, how it was chosen, and how often the second key rule did not hold."""
    found: dict[str, Any] = {}
    for event in events:
        if event.kind == "run-started":
            found |= {name: event.body[name] for name in ("strategy", "strategy_choice") if name in event.body}
        elif event.kind == "model-called" and "strategy" in found:
            found["open_calls"] = found.get("open_calls", 0) + (event.body.get("rule_two") is False)
    return found


def strategy_lines(facts: Mapping[str, Any]) -> list[str]:
    """The same for people."""
    from bicameral.patterns.strategies import StrategyChoice

    lines: list[str] = []
    if "strategy_choice" in facts:
        lines.append(f"strategy: {StrategyChoice(**facts['strategy_choice'])}")
    elif "strategy" in facts:
        lines.append(f"strategy: {facts['strategy']}")
    if "strategy" in facts:
        count = facts.get("open_calls", 0)
        lines.append(
            f"who read untrusted text saw the request or tools in {count} call{'' if count == 1 else 's'}"
            if count
            else "who read untrusted text saw one typed sub-task and the data, and no tools"
        )
    return lines


def recorded_calls(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The model calls of a run in order: those that wrote its plan, and those of its steps."""
    found: list[dict[str, Any]] = []
    for event in events:
        if event.kind == "run-started":
            found += [{"step": "", **call} for call in event.body.get("planning_calls", [])]
        elif event.kind == "model-called":
            found.append({"step": event.step} | {name: event.body[name] for name in _CALL_FIELDS if name in event.body})
    return [{"call": number, **call} for number, call in enumerate(found)]


_CALL_FIELDS = (
    "role",
    "phase",
    "model",
    "answered",
    "seconds",
    "charges",
    "route",
    "degraded",
    "rule_two",
    "open_reason",
)
"""The facts of a call, without its messages."""


def _pick_call(calls: list[dict[str, Any]], number: str, run: str) -> dict[str, Any]:
    if not number.isascii() or not number.isdigit() or int(number) >= len(calls):
        known = f"It has {len(calls)}, from 0 on." if calls else "It has none."
        raise click.UsageError(f"There is no call {number!r} in the run {run!r}. {known}")
    return calls[int(number)]
