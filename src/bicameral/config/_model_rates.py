"""Rates of models: what those cost that a stack or a pattern would ask, and how fast they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bicameral.config._models import open_router
from bicameral.config._resources import open_prices
from bicameral.errors import CatalogError, nearest_name

if TYPE_CHECKING:
    from bicameral.catalog.costs import Rates
    from bicameral.catalog.stacks import Stack
    from bicameral.config._config import Config


@dataclass(frozen=True, slots=True)
class TokenSpeeds:
    """Tokens a second that models read and write whose speed is not known."""

    prompt: float | None = None
    output: float | None = None


def tier_rates(config: Config, models: Sequence[str], speeds: TokenSpeeds) -> dict[str, Rates]:
    """Which model is small, mid and large: those named, or those that the configuration uses."""
    from bicameral.catalog.costs import TIERS

    privileged, quarantined = (open_router(config, chamber).models[0] for chamber in ("privileged", "quarantined"))
    names: dict[str, str] = {"small": quarantined, "mid": privileged, "large": privileged}
    for each in models:
        tier, equals, name = each.partition("=")
        if not equals:
            names |= dict.fromkeys(names, each)
        elif tier in names:
            names[tier] = name
        else:
            raise CatalogError(
                "catalog.unknown-model",
                f"there is no class of models {tier!r}",
                expected=f"one of {', '.join(TIERS)}",
                nearest=nearest_name(tier, TIERS),
            )
    return {tier: model_rates(config, name, speeds) for tier, name in names.items()}


def stack_rates(config: Config, stack: Stack, rates: Mapping[str, Rates], speeds: TokenSpeeds) -> dict[str, Rates]:
    """The rates, and those of every model that a stack names."""
    named = {member.model for member in stack.members} | {
        session.model for member in stack.members for session in member.sessions or ()
    }
    more = {name: model_rates(config, name, speeds) for name in named if name is not None and name not in rates}
    return {**rates, **more}


def model_rates(config: Config, name: str, speeds: TokenSpeeds) -> Rates:
    """What a model costs and how fast it is, by its name or by an alias of the configuration."""
    from bicameral.catalog.costs import LOCAL_RATES, Caching, Rates

    name = _model_behind(config, name)
    known = {rate.model.partition(":")[2]: rate for rate in LOCAL_RATES.values()}
    local = next((rate for size, rate in known.items() if name.startswith("local:") and size in name), None)
    if local is not None:
        return replace(local, model=name)
    price = open_prices(config).of(name)
    found = Rates(name, prompt_speed=speeds.prompt, output_speed=speeds.output, caching=None)
    if price is None:
        return found
    if price.cached is None:
        return replace(found, read=price.read, written=price.written)
    # Some services charge for what they store, most do not.
    write = 1.25 if name.startswith("anthropic:") else 1.0
    caching = Caching(write=write, history=True)
    return replace(found, read=price.read, written=price.written, cached=price.cached, caching=caching)


def _model_behind(config: Config, name: str) -> str:
    """The model behind an alias; any other name is a model's own."""
    for chamber in ("privileged", "quarantined"):
        aliases = open_router(config, chamber).aliases
        if name in aliases:
            return aliases[name].identity
    return name
