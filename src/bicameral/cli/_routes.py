"""Which model a call gets or got, and why, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.errors import ConfigError, nearest

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.models import ModelRequest, Route
    from bicameral.routing import Router, Situation


@dataclass(frozen=True, slots=True)
class AliasRow:
    """An alias as people read it."""

    alias: str
    model: str
    chambers: tuple[str, ...]
    used_for: tuple[str, ...]

    def shown(self) -> dict[str, object]:
        return {
            "alias": self.alias,
            "model": self.model,
            "chambers": ", ".join(self.chambers),
            "used for": ", ".join(self.used_for),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "alias": self.alias,
            "model": self.model,
            "chambers": list(self.chambers),
            "used_for": list(self.used_for),
        }


def alias_rows(config: Config) -> list[AliasRow]:
    """Every alias, the model behind it in the first chamber that has it, and what the configuration uses it for."""
    from bicameral.config import open_models

    models = open_models(config)
    sides = {side: _router(getattr(models, side)) for side in ("privileged", "quarantined")}
    names = dict.fromkeys(name for router in sides.values() for name in router.aliases.names)
    rows: list[AliasRow] = []
    for name in names:
        here = [side for side, router in sides.items() if name in router.aliases]
        told = dict.fromkeys(sides[side].aliases[name].identity for side in here)
        rows.append(AliasRow(name, " / ".join(told), tuple(here), tuple(_uses(sides, name))))
    return rows


def notes(config: Config) -> list[ConfigError]:
    """What is worth knowing about the rules and changes nothing."""
    from bicameral.config import routing_notes

    return routing_notes(config)


@dataclass(frozen=True, slots=True)
class Explained:
    """A choice in words, and as facts."""

    text: str
    facts: dict[str, Any]


def explained(config: Config, role: str, **facts: Any) -> Explained:
    """Which model a call of a role gets, and what was looked at before."""
    from bicameral.config import open_router
    from bicameral.routing import ROLES

    if role not in ROLES:
        raise ConfigError(
            "routing.unknown-role",
            f"there is no role {role!r}",
            expected=f"one of {', '.join(ROLES)}",
            nearest=nearest(role, ROLES),
        )
    chamber = "quarantined" if role == "quarantined" else "privileged"
    router = open_router(config, chamber)
    request, here = _call(role, facts)
    route = router.choose(request, here)
    identity = router.aliases[route.alias].identity
    lines = [f"{route.alias} ({identity}), by {_by(route)}"]
    lines += [f"  not {passed}" for passed in _passed(router, request, here, route)]
    told = {"role": role, "chamber": chamber, "model": identity, "route": route.to_json()}
    return Explained("\n".join(lines), told)


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


def _by(route: Route) -> str:
    return route.why if route.by == "rule" else f"{route.by}: {route.why}"


def _passed(router: Router, request: ModelRequest, here: Situation, route: Route) -> list[str]:
    """What would have come first and did not apply."""
    if route.by == "call":
        return []
    last = len(router.selection.rules) if route.rule is None else route.rule
    found = [f"rule {number}: {rule.condition}" for number, rule in enumerate(router.selection.rules[:last])]
    if route.by in ("role", "default") and here.phase is not None:
        found.append(f"the phase map: it has nothing for {here.phase!r}")
    if route.by == "default":
        found.append(f"the role map: it has nothing for {here.role!r}")
    return found


def _call(role: str, facts: Mapping[str, Any]) -> tuple[ModelRequest, Situation]:
    """A call like the one that is asked about."""
    from bicameral.models import Message, ModelRequest, ToolSchema
    from bicameral.routing import Situation

    count = facts.get("messages", 1)
    length = 4 * facts.get("prompt_tokens", 0)
    texts = ["x" * length, *[""] * (count - 1)] if count else []
    request = ModelRequest(
        tuple(Message("user", text) for text in texts),
        model=facts.get("hint"),
        tools=(ToolSchema("a", "a tool", {"type": "object"}),) if facts.get("tools") else (),
        json_schema={} if facts.get("schema") else None,
    )
    here = Situation(
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


def _uses(sides: Mapping[str, Router], alias: str) -> list[str]:
    """What leads to an alias: `default`, roles, phases, rules."""
    found: list[str] = []
    for side, router in sides.items():
        if router.selection.default == alias:
            found.append(f"default ({side})")
    selection = sides["privileged"].selection
    found += [f"role {role}" for role, name in selection.roles.items() if name == alias]
    found += [f"phase {phase}" for phase, name in selection.phases.items() if name == alias]
    found += [f"rule {number}" for number, rule in enumerate(selection.rules) if rule.model == alias]
    return found


def _router(provider: Any) -> Router:
    from bicameral.routing import Router

    assert isinstance(provider, Router)
    return provider
