"""`bicameral route`: which model a call gets or got, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    """The model that a call of this role or phase gets, and the choices that did not apply, as text and as JSON."""
    from bicameral.config import call_sampling, open_router

    request, here = _sample_call(config, role, facts)
    chamber = here.chamber or "privileged"
    router = open_router(config, chamber)
    route = router.choose(request, here)
    identity = router.aliases[route.alias].identity
    reason = route.why if route.by == "rule" else f"{route.by}: {route.why}"
    lines = [f"{route.alias} ({identity}), by {reason}"]
    lines += [f"  not {passed}" for passed in _skipped_choices(router, here, route)]
    notes = [each for each in (route.note, _untrusted_note(here)) if each is not None]
    lines += [f"  note: {note}" for note in notes]
    found: dict[str, Any] = {"role": here.role, "chamber": chamber, "model": identity, "route": route.to_json()}
    found |= {name: value for name in ("phase", "strategy") if (value := getattr(here, name)) is not None}
    sampling = call_sampling(config, route.alias, here.role or "")
    if sampling is not None:
        found |= {"temperature": sampling[0], "seed": sampling[1]}
        if sampling[0] > 0 or here.role == "echo":
            lines.append(f"  temperature {sampling[0]:g}, seed {sampling[1]}")
    return "\n".join(lines), found | ({"notes": notes} if notes else {})


def _untrusted_note(here: CallContext) -> str | None:
    from bicameral.config import NEVER_UNTRUSTED

    if here.trusted or here.role not in NEVER_UNTRUSTED:
        return None
    return f"{here.role} never reads untrusted text; this is what the quarantined chamber would choose"


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


def _skipped_choices(router: Router, here: CallContext, route: Route) -> list[str]:
    """The choices with precedence over the one that was made, which did not apply."""
    if route.by == "call":
        return []
    last = len(router.selection.rules) if route.rule is None else route.rule
    found = [f"rule {number}: {rule.condition}" for number, rule in enumerate(router.selection.rules[:last])]
    # An entry that the chamber may not use is in the note of the route.
    entries = {entry.by for entry in router.selection.map_entries(phase=here.phase, strategy=here.strategy)}
    if route.by in ("role", "default") and here.phase is not None and "phase" not in entries:
        found.append(f"the phase map: it has nothing for {here.phase!r}")
    if route.by == "default" and router.selection.of_role(here.role or "") is None:
        found.append(f"the role map: it has nothing for {here.role!r}")
    return found


def _sample_call(config: Config, name: str, facts: Mapping[str, Any]) -> tuple[ModelRequest, CallContext]:
    """A request and its context with the given facts; the name is a role, one of the user's own, or a phase."""
    from bicameral.limits import QUARANTINED_ROLES
    from bicameral.models import Message, ModelRequest, ToolSchema

    count = facts.get("messages", 1)
    length = 4 * facts.get("prompt_tokens", 0)
    texts = ["x" * length, *[""] * (count - 1)] if count else []
    request = ModelRequest(
        tuple(Message("user", text) for text in texts),
        model=facts.get("hint"),
        tools=(ToolSchema("a", "a tool", {"type": "object"}),) if facts.get("tools") else (),
        json_schema={} if facts.get("schema") else None,
    )
    purpose = _call_purpose(config, name, facts.get("phase"), facts.get("strategy"))
    # As sessions do it: untrusted text is read by the quarantined chamber, whatever the role of the call.
    trusted = purpose.role not in QUARANTINED_ROLES and not facts.get("untrusted")
    here = replace(
        purpose,
        chamber="privileged" if trusted else "quarantined",
        trusted=trusted,
        tokens_left=facts.get("tokens_left"),
        money_left=facts.get("money_left"),
        seconds_left=facts.get("seconds_left"),
        failures=facts.get("failures", 0),
        cost_cap=facts.get("cost_cap"),
    )
    return request, here


def _call_purpose(config: Config, name: str, phase: str | None, strategy: str | None) -> CallContext:
    """The role, the phase, the strategy and the hint of a call."""
    from bicameral.config import model_selection, unknown_role_error
    from bicameral.errors import ConfigError, nearest_name
    from bicameral.patterns.strategies import phase_role
    from bicameral.routing import PHASES, STRATEGY_PHASES, CallContext

    selection = model_selection(config)
    if strategy is not None and strategy not in STRATEGY_PHASES:
        known = tuple(STRATEGY_PHASES)
        message, expected = f"there is no strategy {strategy!r} with phases", f"one of {', '.join(known)}"
        raise ConfigError("strategy.unknown", message, expected=expected, nearest=nearest_name(strategy, known))
    if name in PHASES:
        return CallContext(phase_role(name, strategy), name, strategy)
    if name in selection.custom_roles:
        # A role of the user's own is the hint of a step; the call itself has one of the roles that there are.
        phase = phase or "act"
        return CallContext(phase_role(phase, strategy), phase, strategy, hint=name)
    if name not in selection.role_names:
        raise unknown_role_error(name, (*selection.role_names, *PHASES))
    return CallContext(name, phase, strategy)


def _alias_uses(sides: Mapping[str, Router], alias: str) -> list[str]:
    """What selects an alias: `default`, roles, phases, rules."""
    found: list[str] = []
    for side, router in sides.items():
        if router.selection.default == alias:
            found.append(f"default ({side})")
    selection = sides["privileged"].selection
    found += [f"role {role}" for role, name in selection.roles.items() if name == alias]
    found += [f"phase {phase}" for phase, name in selection.phases.items() if name == alias]
    for strategy, phases in selection.strategy_phases.items():
        found += [f"phase {phase} of {strategy}" for phase, name in phases.items() if name == alias]
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
