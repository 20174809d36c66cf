"""Models and routes: which model serves which role and phase, aliases and prices, and the weights on this machine.

All of it is what the configuration says; no model is loaded or asked for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bicameral.console._pages import PageCall, page_route
from bicameral.errors import BicameralError, ConfigError, ModelError, ServerError
from bicameral.limits import Price
from bicameral.server.surface import HttpError

if TYPE_CHECKING:
    from bicameral.config import Config, ExplainedRoute
    from bicameral.models import StoreEntry

MAX_TEXT = 200
MAX_NUMBER = 10**9
NUMBERS = ("messages", "prompt_tokens", "failures", "tokens_left")
AMOUNTS = ("money_left", "seconds_left", "cost_cap")
WORDS = ("phase", "strategy", "hint")
TICKS = ("tools", "schema", "untrusted")


@dataclass(frozen=True, slots=True)
class RoleRoute:
    """What answers calls of a role or a phase; without a route, why nothing does."""

    name: str
    found: ExplainedRoute | None
    price: Price | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class ShownAlias:
    """An alias with what the configuration says of it besides its model."""

    alias: str
    model: str
    chambers: Sequence[str]
    used_for: Sequence[str]
    price: Price | None
    more: Sequence[str]
    """Fallbacks, cascades, retries and such, in words."""


@dataclass(frozen=True, slots=True)
class ShownWeights:
    """Weights of the store, and whether this configuration uses them."""

    entry: StoreEntry
    is_used: bool
    size: str


@dataclass(slots=True)
class ModelFacts:
    """Everything about the models of a configuration."""

    roles: list[RoleRoute] = field(default_factory=list[RoleRoute])
    phases: list[RoleRoute] = field(default_factory=list[RoleRoute])
    aliases: list[ShownAlias] = field(default_factory=list[ShownAlias])
    rules: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notes: list[BicameralError] = field(default_factory=list[BicameralError])
    weights: list[ShownWeights] = field(default_factory=list[ShownWeights])
    names: list[str] = field(default_factory=list[str])
    """The roles and phases that can be asked about."""
    strategies: list[str] = field(default_factory=list[str])
    phase_names: list[str] = field(default_factory=list[str])


async def models_page(call: PageCall) -> Response:
    """Roles, aliases, prices and weights; with a role in the address also which model would answer such a call."""
    role = call.query("role")[:MAX_TEXT]
    found = await asyncio.to_thread(_explain, call, role) if role else None
    if call.is_partial:
        return call.page("operations_route.html", found=found)
    facts = await asyncio.to_thread(_model_facts, call)
    prices = call.context.agent.prices
    return call.page("operations_models.html", facts=facts, found=found, role=role, prices=prices, given=call.query)


def _explain(call: PageCall, role: str) -> ExplainedRoute:
    from bicameral.config import CallRoutes

    given: dict[str, Any] = {name: call.query(name)[:MAX_TEXT] for name in WORDS if call.query(name)}
    given |= {name: True for name in TICKS if call.query(name)}
    given |= {name: int(_number(call, name)) for name in NUMBERS if call.query(name)}
    given |= {name: _number(call, name) for name in AMOUNTS if call.query(name)}
    try:
        return CallRoutes(call.context.config).explain(role, **given)
    except (ConfigError, ModelError) as error:
        # It says what of the form is wrong; on its own it would count as a fault of the server.
        raise HttpError(422, error) from None


def _number(call: PageCall, name: str) -> float:
    written = call.query(name).strip()
    with suppress(ValueError):
        if (
            len(written) <= 20
            and 0 <= (found := float(written)) <= MAX_NUMBER
            and (name in AMOUNTS or found == int(found))
        ):
            return found
    message = f"{name.replace('_', ' ')}: {written[:40]!r} is no number that it can be"
    raise HttpError(422, ServerError("server.bad-request", message, expected=f"0 to {MAX_NUMBER:,}"))


def _model_facts(call: PageCall) -> ModelFacts:
    from bicameral.config import CallRoutes, alias_uses, model_selection, quarantine_notes, routing_notes
    from bicameral.routing import PHASES, STRATEGY_PHASES

    config, price = call.context.config, call.context.agent.prices.of
    selection, facts = model_selection(config), ModelFacts()
    routes = CallRoutes(config)
    facts.names, facts.strategies = [*selection.role_names, *PHASES], list(STRATEGY_PHASES)
    facts.phase_names = list(PHASES)
    facts.roles = [_role_route(routes, price, role) for role in selection.role_names]
    facts.phases = [_role_route(routes, price, phase) for phase in PHASES]
    facts.rules = [(rule.condition, rule.model) for rule in selection.rules]
    facts.weights = list(_weights(config, facts))
    try:
        for each in alias_uses(config):
            more = tuple(_alias_facts(config, each.alias, call.context.agent.prices.currency))
            shown = ShownAlias(
                each.alias, each.model, each.chambers, each.used_for, price(each.model.split(" / ")[0]), more
            )
            facts.aliases.append(shown)
        facts.notes += [*routing_notes(config), *quarantine_notes(config)]
    except BicameralError as error:
        facts.notes.append(error)
    return facts


def _role_route(routes: Any, price: Any, role: str) -> RoleRoute:
    try:
        found: ExplainedRoute = routes.explain(role)
    except BicameralError as error:
        return RoleRoute(role, None, fault=error.message)
    return RoleRoute(role, found, price(found.model))


def _alias_facts(config: Config, alias: str, currency: str) -> Iterator[str]:
    """What is configured of an alias besides its model. No key and no address is in it."""
    settings = config.llm.models.get(alias)
    if settings is None:
        return
    for words, names in (("falls back to", settings.fallback), ("cascade of", settings.cascade)):
        if names:
            yield f"{words} {', '.join(names)}"
    if settings.hedge_after is not None:
        yield f"second request after {settings.hedge_after:g} s to {settings.hedge_with or 'the same model'}"
    if settings.retry is not None:
        yield f"asked {settings.retry.attempts} times at most"
    if settings.cache:
        yield "replies are kept"
    if settings.budget is not None:
        said = settings.budget.model_dump(exclude_none=True)
        yield "at most " + ", ".join(
            f"{amount:,g} {currency if name == 'money' else name}" for name, amount in said.items()
        )


def _weights(config: Config, facts: ModelFacts) -> Iterator[ShownWeights]:
    from bicameral.config import model_store, needed_weights, size_text

    used = set[str]()
    try:
        used = {weights.sha256 for weights in needed_weights(config)}
    except ModelError as error:
        facts.notes.append(error)
    for entry in model_store(config).list():
        yield ShownWeights(entry, entry.weights.sha256 in used, size_text(entry.weights.bytes))


model_routes = [page_route("/operations/models", models_page, "see")]
