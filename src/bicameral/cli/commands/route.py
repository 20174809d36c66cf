"""`bicameral route`: which model a call gets or got, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, common_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bicameral.config import Config
    from bicameral.models import ModelRequest, Route
    from bicameral.routing import CallContext, Router
    from bicameral.runs import Event


@dataclass(frozen=True, slots=True)
class AliasRow:
    """An alias, its model, the chambers that have it, and what it is used for."""

    alias: str
    model: str
    chambers: list[str]
    used_for: list[str]

    def to_row(self) -> dict[str, object]:
        chambers, used_for = ", ".join(self.chambers), ", ".join(self.used_for)
        return {"alias": self.alias, "model": self.model, "chambers": chambers, "used for": used_for}


def alias_rows(config: Config) -> list[AliasRow]:
    """Every alias, the model behind it in the first chamber that has it, and what the configuration uses it for."""
    from bicameral.config import open_models

    models = open_models(config)
    sides = {side: _as_router(getattr(models, side)) for side in ("privileged", "quarantined")}
    names = dict.fromkeys(name for router in sides.values() for name in router.aliases.names)
    rows: list[AliasRow] = []
    for name in names:
        here = [side for side, router in sides.items() if name in router.aliases]
        models_of = dict.fromkeys(sides[side].aliases[name].identity for side in here)
        rows.append(AliasRow(name, " / ".join(models_of), here, _alias_uses(sides, name)))
    return rows


def explain_route(config: Config, role: str, **facts: Any) -> tuple[str, dict[str, Any]]:
    """The model that a call of this role gets, and the choices that did not apply, as text and as JSON."""
    from bicameral.config import open_router, unknown_role_error
    from bicameral.routing import ROLES

    if role not in ROLES:
        raise unknown_role_error(role)
    chamber = "quarantined" if role == "quarantined" else "privileged"
    router = open_router(config, chamber)
    request, here = _sample_call(role, facts)
    route = router.choose(request, here)
    identity = router.aliases[route.alias].identity
    reason = route.why if route.by == "rule" else f"{route.by}: {route.why}"
    lines = [f"{route.alias} ({identity}), by {reason}"]
    lines += [f"  not {passed}" for passed in _skipped_choices(router, here, route)]
    route_facts = {"role": role, "chamber": chamber, "model": identity, "route": route.to_json()}
    return "\n".join(lines), route_facts


def route_line(call: Mapping[str, Any]) -> str:
    """A recorded call: `delta: main (openai:gpt-4.1), by rule 0 (has_tools)`."""
    route: Mapping[str, Any] = call.get("route") or {}
    model = str(call.get("answered") or call.get("model") or "")
    if not route:
        return f"{call.get('role', '')}: {model}"
    line = f"{call.get('role', '')}: {route.get('alias', '')} ({model}), {route.get('why', '')}"
    for name, reason in route.get("attempts", []):
        line += f"\n    before it: {name} ({reason})"
    return line + (f"\n    degraded: {call['degraded']}" if call.get("degraded") else "")


def _skipped_choices(router: Router, here: CallContext, route: Route) -> list[str]:
    """The choices with precedence over the one that was made, which did not apply."""
    if route.by == "call":
        return []
    last = len(router.selection.rules) if route.rule is None else route.rule
    found = [f"rule {number}: {rule.condition}" for number, rule in enumerate(router.selection.rules[:last])]
    if route.by in ("role", "default") and here.phase is not None:
        found.append(f"the phase map: it has nothing for {here.phase!r}")
    if route.by == "default":
        found.append(f"the role map: it has nothing for {here.role!r}")
    return found


def _sample_call(role: str, facts: Mapping[str, Any]) -> tuple[ModelRequest, CallContext]:
    """A request and its context with the given facts."""
    from bicameral.models import Message, ModelRequest, ToolSchema
    from bicameral.routing import CallContext

    count = facts.get("messages", 1)
    length = 4 * facts.get("prompt_tokens", 0)
    texts = ["x" * length, *[""] * (count - 1)] if count else []
    request = ModelRequest(
        tuple(Message("user", text) for text in texts),
        model=facts.get("hint"),
        tools=(ToolSchema("a", "a tool", {"type": "object"}),) if facts.get("tools") else (),
        json_schema={} if facts.get("schema") else None,
    )
    here = CallContext(
        role=role,
        phase=facts.get("phase"),
        chamber="quarantined" if role == "quarantined" else "privileged",
        trusted=role != "quarantined" and not facts.get("untrusted"),
        tokens_left=facts.get("tokens_left"),
        money_left=facts.get("money_left"),
        seconds_left=facts.get("seconds_left"),
        failures=facts.get("failures", 0),
        cost_cap=facts.get("cost_cap"),
    )
    return request, here


def _alias_uses(sides: Mapping[str, Router], alias: str) -> list[str]:
    """What selects an alias: `default`, roles, phases, rules."""
    found: list[str] = []
    for side, router in sides.items():
        if router.selection.default == alias:
            found.append(f"default ({side})")
    selection = sides["privileged"].selection
    found += [f"role {role}" for role, name in selection.roles.items() if name == alias]
    found += [f"phase {phase}" for phase, name in selection.phases.items() if name == alias]
    found += [f"rule {number}" for number, rule in enumerate(selection.rules) if rule.model == alias]
    return found


def _as_router(provider: Any) -> Router:
    from bicameral.routing import Router

    assert isinstance(provider, Router)
    return provider


@click.group(short_help="Which model answered which call of a run, and why.")
def command() -> None:
    """Which model answered which call of a run, and why."""


@command.command("explain")
@click.argument("run", metavar="RUN[:CALL]")
@common_options
def explain(chosen: CommonOptions, run: str) -> dict[str, Any]:
    """The model calls of a recorded RUN (its id, the beginning of it, or `last`), each with its route.

    With `:CALL` only the one with this number.
    """
    from bicameral.cli._run_records import find_recorded_run, open_journals

    name, _, number = run.partition(":")
    with open_journals(chosen.config()) as known:
        journal, name = find_recorded_run(known, name)
        calls = recorded_calls(journal.events(name))
    if number:
        calls = [_pick_call(calls, number, name)]
    for call in calls:
        chosen.out.show(f"{call['call']:>3}  {call['step'] or 'planning':<10} {route_line(call)}")
    if not calls:
        chosen.out.say("no model was asked in this run")
    return {"run": name, "calls": calls}


def recorded_calls(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The model calls of a run in order: those that wrote its plan, and those of its steps."""
    found: list[dict[str, Any]] = []
    for event in events:
        if event.kind == "run-started":
            found += [{"step": "", **call} for call in event.body.get("planning_calls", [])]
        elif event.kind == "model-called":
            found.append({"step": event.step} | {name: event.body[name] for name in _CALL_FIELDS if name in event.body})
    return [{"call": number, **call} for number, call in enumerate(found)]


_CALL_FIELDS = ("role", "phase", "model", "answered", "seconds", "charges", "route", "degraded")
"""The facts of a call, without its messages."""


def _pick_call(calls: list[dict[str, Any]], number: str, run: str) -> dict[str, Any]:
    if not number.isascii() or not number.isdigit() or int(number) >= len(calls):
        known = f"It has {len(calls)}, from 0 on." if calls else "It has none."
        raise click.UsageError(f"There is no call {number!r} in the run {run!r}. {known}")
    return calls[int(number)]
