"""What a stack, patterns or a plan would take, as a table; and the rates of the models that would be asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from bicameral.errors import CatalogError, nearest

from ._costs import money_text
from ._output import Output
from ._values import table

if TYPE_CHECKING:
    from bicameral.catalog.costs import Amounts, Estimate, Rates
    from bicameral.catalog.stacks import Stack
    from bicameral.config import Config
    from bicameral.routing import Prices

_DAYS = 30


@dataclass(frozen=True, slots=True)
class Speeds:
    """Tokens a second that models read and write whose speed is not known."""

    prompt: float | None = None
    output: float | None = None


def parse_pairs(given: Iterable[str], what: str) -> dict[str, float]:
    """`name=value` as numbers."""
    found: dict[str, float] = {}
    for each in given:
        name, equals, value = each.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise click.UsageError(f"{each!r} is no {what}: write name=number.")
    return found


def parse_knobs(given: Iterable[str]) -> dict[str, dict[str, float]]:
    """`R4.max_steps=8` as knobs of patterns."""
    found: dict[str, dict[str, float]] = {}
    for name, value in parse_pairs(given, "knob").items():
        pattern, dot, knob = name.partition(".")
        if not dot or not knob:
            raise click.UsageError(f"{name!r} is no knob: write PATTERN.knob=number.")
        found.setdefault(pattern.upper(), {})[knob] = value
    return found


def tier_rates(config: Config, models: Sequence[str], speeds: Speeds) -> dict[str, Rates]:
    """Which model is small, mid and large: those named, or those that the configuration uses."""
    from bicameral.catalog.costs import TIERS
    from bicameral.config import open_router

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
                nearest=nearest(tier, TIERS),
            )
    return {tier: model_rates(config, name, speeds) for tier, name in names.items()}


def stack_rates(config: Config, stack: Stack, rates: Mapping[str, Rates], speeds: Speeds) -> dict[str, Rates]:
    """The rates, and those of every model that a stack names."""
    named = {member.model for member in stack.members} | {
        session.model for member in stack.members for session in member.sessions or ()
    }
    more = {name: model_rates(config, name, speeds) for name in named if name is not None and name not in rates}
    return {**rates, **more}


def model_rates(config: Config, name: str, speeds: Speeds) -> Rates:
    """What a model costs and how fast it is, by its name or by an alias of the configuration."""
    from bicameral.catalog.costs import LOCAL, Caching, Rates
    from bicameral.config import open_prices

    name = _behind(config, name)
    known = {rate.model.partition(":")[2]: rate for rate in LOCAL.values()}
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


def _behind(config: Config, name: str) -> str:
    """The model behind an alias; any other name is a model's own."""
    from bicameral.config import open_router

    for chamber in ("privileged", "quarantined"):
        aliases = open_router(config, chamber).aliases
        if name in aliases:
            return aliases[name].identity
    return name


def show_cost(
    out: Output, what: str, estimate: Estimate, prices: Prices, *, calls: int | None, silent: Sequence[str] = ()
) -> None:
    """Every part with what it takes, expected and at worst, then the sum and what is to be known of it."""
    run = [part for part in estimate.parts if not part.apart]
    rows = [_row(_named(part.agent, part.pattern, part.role), part.expected, part.worst, prices) for part in run]
    total = _row("in all", estimate.expected, estimate.worst, prices)
    out.show(f"{what}: one run, expected / at worst")
    out.show(table([*rows, total] if len(rows) != 1 else rows, out.width))
    for line in _remarks(estimate, prices, silent):
        out.show(line)
    if calls is not None:
        out.show(f"{calls:,} runs a day: {_month_text(estimate, calls, prices.currency)} a month")
    for note in estimate.notes:
        out.say(f"note: {note}")
    out.say("This is what it would take; `bicameral costs` tells what was spent.", style="dim")


def cost_json(
    what: str,
    estimate: Estimate,
    prices: Prices,
    rates: Mapping[str, Rates],
    sizes: Mapping[str, float],
    calls: int | None,
) -> dict[str, Any]:
    """The same for a program."""
    found = {
        "ok": True,
        "of": what,
        "currency": prices.currency,
        "models": {name: rate.model for name, rate in rates.items()},
        "sizes": dict(sizes),
        **estimate.to_json(),
    }
    if calls is not None:
        usual, worst = estimate.expected.money, estimate.worst.money
        found["month"] = {
            "runs": calls * _DAYS,
            "expected": None if usual is None else usual * calls * _DAYS,
            "worst": None if worst is None else worst * calls * _DAYS,
        }
    return found


def _named(agent: str, pattern: str, role: str) -> str:
    where = f"{agent}: " if agent not in ("", "agent") else ""
    return f"{where}{pattern} {role}".strip()


def _row(name: str, usual: Amounts, worst: Amounts, prices: Prices) -> dict[str, object]:
    return {
        "part": name,
        "calls": _both(usual.calls, worst.calls),
        "read": _both(usual.prompt, worst.prompt),
        "cached": _number(usual.cached) if usual.cached else "",
        "written": _both(usual.output, worst.output),
        "tools": _both(usual.tools, worst.tools),
        "seconds": _both(usual.seconds, worst.seconds),
        prices.currency: _both(usual.money, worst.money, digits=4),
    }


def _both(usual: float | None, worst: float | None, digits: int = 1) -> str:
    if usual is None or worst is None:
        return "not known"
    if not usual and not worst:
        return ""
    return f"{_number(usual, digits)} / {_number(worst, digits)}"


def _number(value: float, digits: int = 1) -> str:
    """A number to read: whole where it is large or whole."""
    if value == math.floor(value) or (value >= 100 and digits == 1):
        return f"{value:,.0f}"
    return f"{value:,.{digits}f}"


def _remarks(estimate: Estimate, prices: Prices, silent: Sequence[str]) -> list[str]:
    usual, lines = estimate.expected, list[str]()
    if silent:
        lines.append(f"in the calls of others, or without a model: {', '.join(silent)}")
    if estimate.worst.longest:
        memory = f", {usual.memory / 1e6:,.0f} MB of cache" if usual.memory else ""
        lines.append(
            f"the longest call has {usual.longest:,.0f} tokens{memory}; at worst {estimate.worst.longest:,.0f}"
        )
    if estimate.apart.calls:
        money = money_text(estimate.apart.money, prices.currency)
        lines.append(f"beside runs, each time: {_number(estimate.apart.calls)} calls, {money}")
    if estimate.unpriced:
        lines.append(f"price not known: {', '.join(estimate.unpriced)}")
    return lines


def _month_text(estimate: Estimate, calls: int, currency: str) -> str:
    usual, worst = estimate.expected.money, estimate.worst.money
    if usual is None or worst is None:
        return "price not known"
    return f"{money_text(usual * calls * _DAYS, currency)}, at worst {money_text(worst * calls * _DAYS, currency)}"
