"""Which model answers which call, by a configuration: the aliases and what selects each, and a single call explained.

No model is loaded, fetched or asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bicameral.config._config import Config
from bicameral.config._models import call_sampling, open_models, open_router
from bicameral.config._quarantine_routes import NEVER_UNTRUSTED
from bicameral.config._routing import model_selection, unknown_role_error
from bicameral.errors import ConfigError, nearest_name

if TYPE_CHECKING:
    from bicameral.models import Chamber, ModelRequest, Route
    from bicameral.routing import CallContext, Router


@dataclass(frozen=True, slots=True)
class AliasUses:
    """An alias, its model, the chambers that have it, and what it is used for."""

    alias: str
    model: str
    chambers: list[str]
    used_for: list[str]


def alias_uses(config: Config) -> list[AliasUses]:
    """Every alias, the model behind it in each chamber that has it, and what the configuration uses it for."""
    models = open_models(config)
    sides = {side: _as_router(getattr(models, side)) for side in ("privileged", "quarantined")}
    names = dict.fromkeys(name for router in sides.values() for name in router.aliases.names)
    found: list[AliasUses] = []
    for name in names:
        here = [side for side, router in sides.items() if name in router.aliases]
        models_of = dict.fromkeys(sides[side].aliases[name].identity for side in here)
        found.append(AliasUses(name, " / ".join(models_of), here, _alias_uses(sides, name)))
    return found


@dataclass(frozen=True, slots=True)
class ExplainedRoute:
    """The model that a call gets, by what, and why the choices before it did not apply.

    Args:
        here: The purpose of the call: its role, phase, strategy and chamber.
        model: The model.
        route: Its alias, and what chose it.
        skipped: The choices with precedence over it, which did not apply.
        notes: What else is to be known of it.
        sampling: The temperature and the seed of the call; None for a cascade, whose stages differ.
    """

    here: CallContext
    model: str
    route: Route
    skipped: tuple[str, ...]
    notes: tuple[str, ...]
    sampling: tuple[float, int] | None

    @property
    def chamber(self) -> Chamber:
        return self.here.chamber or "privileged"

    @property
    def reason(self) -> str:
        """What chose the alias."""
        return self.route.why if self.route.by == "rule" else f"{self.route.by}: {self.route.why}"

    def lines(self) -> list[str]:
        """The same for people."""
        lines = [f"{self.route.alias} ({self.model}), by {self.reason}"]
        lines += [f"  not {passed}" for passed in self.skipped]
        lines += [f"  note: {note}" for note in self.notes]
        if self.sampling is not None and (self.sampling[0] > 0 or self.here.role == "echo"):
            lines.append(f"  temperature {self.sampling[0]:g}, seed {self.sampling[1]}")
        return lines

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"role": self.here.role, "chamber": self.chamber, "model": self.model}
        found |= {"route": self.route.to_json()}
        found |= {name: value for name in ("phase", "strategy") if (value := getattr(self.here, name)) is not None}
        if self.sampling is not None:
            found |= {"temperature": self.sampling[0], "seed": self.sampling[1]}
        return found | ({"notes": list(self.notes)} if self.notes else {})


class CallRoutes:
    """The routes of a configuration, for one call after another.

    Example:
        >>> CallRoutes(Config.defaults()).explain("delta").route.alias
        'embedded'
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._routers: dict[str, Router] = {}

    def explain(self, role: str, **facts: Any) -> ExplainedRoute:
        """The model that a call of this role gets.

        Args:
            role: A role, one of the user's own, or a phase of a strategy.
            facts: What else is known of the call: `phase`, `strategy`, `hint`, `tools`, `schema`, `messages`,
                `prompt_tokens`, `untrusted`, `failures`, `tokens_left`, `money_left`, `seconds_left` and `cost_cap`.
        """
        config = self._config
        request, here = _sample_call(config, role, facts)
        router = self._router(here.chamber or "privileged")
        route = router.choose(request, here)
        notes = tuple(each for each in (route.note, _untrusted_note(here)) if each is not None)
        sampling = call_sampling(config, route.alias, here.role or "")
        skipped = tuple(_skipped_choices(router, here, route))
        return ExplainedRoute(here, router.aliases[route.alias].identity, route, skipped, notes, sampling)

    def _router(self, chamber: Chamber) -> Router:
        if chamber not in self._routers:
            self._routers[chamber] = open_router(self._config, chamber)
        return self._routers[chamber]


def _untrusted_note(here: CallContext) -> str | None:
    if here.trusted or here.role not in NEVER_UNTRUSTED:
        return None
    return f"{here.role} never reads untrusted text; this is what the quarantined chamber would choose"


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
    from bicameral.models import ModelRequest, ToolSchema
    from bicameral.routing import PromptSize

    request = ModelRequest(
        (),
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
        # The numbers alone: a prompt of this size would have to be held in memory.
        prompt_size=PromptSize(facts.get("messages", 1), facts.get("prompt_tokens", 0)),
    )
    return request, here


def _call_purpose(config: Config, name: str, phase: str | None, strategy: str | None) -> CallContext:
    """The role, the phase, the strategy and the hint of a call."""
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
