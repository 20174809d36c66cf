"""What a stack costs before anything of it is built: calls, tokens, tools, money and seconds, expected and at worst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bicameral.errors import CatalogError

from ..stacks import Stack
from ._amounts import NOTHING, Amounts
from ._compose import agent_parts
from ._part import Part
from ._rates import LOCAL, TIERS, Rates
from ._stacks import Patterns, patterns_alone, stack_parts
from ._values import sizes_of


@dataclass(frozen=True)
class Estimate:
    """What everything takes, part by part and in all; `notes` say what was assumed or could not be known."""

    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    """Models whose price is not known; what they cost is in no sum of money."""

    @cached_property
    def expected(self) -> Amounts:
        """A run as a rule."""
        return total(part.expected for part in self.parts if not part.apart)

    @cached_property
    def worst(self) -> Amounts:
        """A run at most: every bound reached, and nothing found in a cache."""
        return total(part.worst for part in self.parts if not part.apart)

    @cached_property
    def apart(self) -> Amounts:
        """What happens beside runs, such as the tests before a release; as a rule, and once."""
        return total(part.expected for part in self.parts if part.apart)

    def by_pattern(self) -> dict[str, tuple[Amounts, Amounts]]:
        """Expected and worst of each pattern's own sessions."""
        found: dict[str, tuple[Amounts, Amounts]] = {}
        for part in self.parts:
            usual, most = found.get(part.pattern, (NOTHING, NOTHING))
            found[part.pattern] = (usual.plus(part.expected), most.plus(part.worst))
        return found

    def by_agent(self) -> dict[str, tuple[Amounts, Amounts]]:
        """Expected and worst of each agent of the stack."""
        found: dict[str, tuple[Amounts, Amounts]] = {}
        for part in self.parts:
            if not part.apart:
                usual, most = found.get(part.agent, (NOTHING, NOTHING))
                found[part.agent] = (usual.plus(part.expected), most.plus(part.worst))
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "expected": self.expected.to_json(),
            "worst": self.worst.to_json(),
            "apart": self.apart.to_json(),
            "parts": [part.to_json() for part in self.parts],
            "notes": list(self.notes),
            "unpriced": list(self.unpriced),
        }


def total(amounts: Iterable[Amounts]) -> Amounts:
    """All of them, one after the other."""
    found = NOTHING
    for each in amounts:
        found = found.plus(each)
    return found


def estimate(
    what: Stack | Patterns,
    sizes: Mapping[str, float] | None = None,
    rates: Mapping[str, Rates] | None = None,
    *,
    tool_seconds: float = 0.0,
) -> Estimate:
    """What a stack takes, or patterns together. `rates` says which model is small, mid and large, and what others are
    that a stack names; without it these are the local weights.

    Example:
        >>> estimate(["R4"], {"steps": 3}).expected.calls
        3.0
    """
    known = rates or LOCAL
    for tier in TIERS:
        if tier not in known:
            raise CatalogError(
                "catalog.unknown-model", f"no model is named for {tier!r}", fix=f"Name one for {', '.join(TIERS)}."
            )
    if isinstance(what, Stack):
        parts, notes = stack_parts(what, sizes_of(sizes), known, tool_seconds)
    else:
        parts, notes = list(agent_parts(patterns_alone(what, sizes_of(sizes), known, tool_seconds))), []
    return _estimated(parts, known, notes)


def _estimated(parts: Iterable[Part], rates: Mapping[str, Rates], notes: list[str]) -> Estimate:
    """The parts with notes on what is not known: prices, speeds, and windows that are too small."""
    kept = tuple(part for part in parts if part.worst != NOTHING)
    models = {rate.model: rate for rate in rates.values()}
    names = dict.fromkeys(part.model for part in kept if part.model)
    used = [models.get(name) or Rates(name) for name in names]
    unpriced = tuple(each.model for each in used if each.read is None or each.written is None)
    notes += [f"the speed of {each.model} is not known" for each in used if _speed_unknown(each)]
    for part in kept:
        window = models[part.model].window if part.model in models else None
        if window is not None and part.worst.longest > window:
            notes.append(
                f"{part.pattern} {part.role}: a call of up to {part.worst.longest:,.0f} tokens does not fit"
                f" the window of {part.model} ({window:,})"
            )
    return Estimate(kept, tuple(dict.fromkeys(notes)), unpriced)


def _speed_unknown(rates: Rates) -> bool:
    return rates.prompt_speed is None or rates.output_speed is None
