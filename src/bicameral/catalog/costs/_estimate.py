"""The estimate of a stack before it is built: calls, tokens, tools, money and seconds, expected and at worst.

| where | how it counts |
|---|---|
| a pattern of the whole that wraps | wraps all agents; each takes an equal share of the calls |
| a pattern of the whole that shapes | lengthens the calls of every agent |
| any other pattern of the whole | is added once |
| agents that nothing wraps | run once each, one after the other |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, TypeAlias, cast

from bicameral.catalog.costs._composition import (
    EMPTY_SESSION,
    AgentCosts,
    CostContext,
    CostedPattern,
    Repetition,
    SizeValues,
    nestings,
    resolve_sizes,
    wrapping_chain,
    wrapping_parts,
)
from bicameral.catalog.costs._sessions import (
    LOCAL_RATES,
    NO_AMOUNTS,
    TIERS,
    Amounts,
    CostPart,
    Rates,
    SessionLoad,
    no_amount_error,
)
from bicameral.catalog.costs._trees import additional_parts, agent_parts, tree_parts
from bicameral.catalog.facts import IDS, SessionCost, catalog
from bicameral.catalog.stacks import PatternUse, Stack, StackMember, runtime_guarantees
from bicameral.errors import CatalogError

_PIECE = re.compile(r"[A-Za-z]+|\d|[^\W\d_]+|[^\w\s]+\n*|_+|\n\s*")
_ONE_TOKEN = 8
"""Words up to this length are usually one token; longer ones have one more for about every six letters."""


def estimate_tokens(text: str) -> int:
    """The estimated tokens of a text; for English, code and JSON within 10 % of the local tokenizer.

    Example:
        >>> estimate_tokens("The fee is 40 euros.")
        7
    """
    return sum(_piece_tokens(piece) for piece in _PIECE.findall(text))


def _piece_tokens(piece: str) -> int:
    first = piece[0]
    if first.isascii() and first.isalpha():
        return 1 if len(piece) <= _ONE_TOKEN else 1 + (len(piece) - 4) // 6
    if first.isdigit() or first == "\n":
        return 1
    # Letters of other scripts, and runs of punctuation, have about two characters a token.
    return -(-len(piece.strip()) // 2)


PatternList: TypeAlias = Sequence[str | Mapping[str, Mapping[str, Any]]]
"""Ids, or ids with their knobs: `["O6", {"R4": {"max_steps": 8}}]`, as in a stack."""

TOKENS_PER_TOOL = 200
"""The tokens of a tool's schema if they are not known."""


def agent_from_patterns(
    patterns: PatternList, sizes: SizeValues, rates: Mapping[str, Rates], tool_seconds: float
) -> AgentCosts:
    """Patterns without a stack, as one agent."""
    members: dict[str, CostedPattern] = {}
    for each in patterns:
        pairs = cast("Iterable[tuple[str, Any]]", [(each, {})] if isinstance(each, str) else each.items())
        for id, knobs in pairs:
            pattern = catalog().pattern(id)
            members[pattern.id] = CostedPattern(pattern, knobs or {}, nestings()[pattern.id])
    return AgentCosts("agent", list(members.values()), sizes, _rates_by_tier(rates), tool_seconds=tool_seconds)


def stack_parts(
    stack: Stack, sizes: SizeValues, rates: Mapping[str, Rates], tool_seconds: float
) -> tuple[list[CostPart], list[str]]:
    """The cost of every session of a stack, and notes on what could not be counted."""
    notes = [
        f"{id} is a pattern of your own, and nothing is known of its cost"
        for id in dict.fromkeys(use.id for member in stack.members for use in member.all_uses if use.id not in IDS)
    ]
    isolated = stack.runtime != "other" and "O17" in runtime_guarantees()
    whole = _agent_costs(stack.whole, None, sizes, rates, tool_seconds, isolated=isolated)
    if not stack.agents:
        return list(agent_parts(whole)), [*notes, *_cap_notes(stack)]
    chain = wrapping_chain(whole)
    parts, around = wrapping_parts(whole, chain, CostContext())
    shapes = whole.of_manner("shapes")
    share = _share_levels(around, len(stack.agents)) if chain else around
    for member in stack.agents:
        agent = _agent_costs(member, stack.whole, sizes, rates, tool_seconds, isolated=isolated)
        own = frozenset(each.id for each in agent.members)
        more = [each for each in shapes if each.id not in own]
        beside = frozenset(each.id for each in whole.members)
        parts += agent_parts(replace(agent, members=[*agent.members, *more], beside=beside), share)
    parts += additional_parts(whole, CostContext())
    for tree in whole.trees:
        parts += tree_parts(whole, tree, CostContext())
    return parts, [*notes, *_cap_notes(stack)]


def _share_levels(around: CostContext, agents: int) -> CostContext:
    """The innermost repetition, divided equally among the agents."""
    if not around.levels:
        return around
    last = around.levels[-1]
    part = Repetition(last.often / agents, last.most / agents, last.at_once)
    return replace(around, levels=(*around.levels[:-1], part))


def _agent_costs(
    member: StackMember,
    whole: StackMember | None,
    sizes: SizeValues,
    rates: Mapping[str, Rates],
    tool_seconds: float,
    *,
    isolated: bool,
) -> AgentCosts:
    prompt = _PromptSizes.of(member)
    return AgentCosts(
        member.name,
        [_costed_use(use) for use in member.uses if use.id in IDS],
        {**sizes, **_tool_sizes(member), **prompt.sizes},
        _rates_by_role(member, whole, rates),
        described=prompt.owners,
        late_tokens=prompt.late,
        tool_seconds=tool_seconds,
        isolated=isolated,
    )


def _costed_use(use: PatternUse, around: str = "") -> CostedPattern:
    pattern = catalog().pattern(use.id)
    # Keys that only say where a pattern is used cost nothing.
    knobs = {name: value for name, value in use.knobs.items() if name in pattern.knobs}
    place = f"{around}.{use.place}".strip(".")
    inner = tuple(_costed_use(each, place) for each in use.inner if each.id in IDS)
    nesting = nestings()[use.id]
    # As many parts as are described, whatever the task has elsewhere.
    sizes = {**use.sizes, "items": len(inner)} if inner and nesting.inside == "parts" else use.sizes
    return CostedPattern(pattern, knobs, nesting, inner, sizes, place, use.place)


def _tool_sizes(member: StackMember) -> dict[str, float]:
    if member.tools is None:
        return {}
    if member.tools.schema_tokens is not None:
        return {"tools": member.tools.schema_tokens}
    return {} if member.tools.count is None else {"tools": member.tools.count * TOKENS_PER_TOOL}


@dataclass(frozen=True, slots=True)
class _PromptSizes:
    """The sizes of a described prompt, the patterns of its parts, and the tokens that cannot be cached."""

    sizes: Mapping[str, float]
    owners: frozenset[str] = frozenset()
    late: SessionLoad = EMPTY_SESSION

    @staticmethod
    def of(member: StackMember) -> _PromptSizes:
        parts = [part for part in member.prompt or () if part.tokens is not None]
        if not parts:
            return _PromptSizes({})
        fixed = [(number, part.tokens or 0) for number, part in enumerate(parts) if part.stable != "per_call"]
        varying = [(number, part.tokens or 0) for number, part in enumerate(parts) if part.stable == "per_call"]
        sizes: dict[str, float] = {"setup": sum(tokens for _, tokens in fixed)}
        if varying:
            sizes["input"] = sum(tokens for _, tokens in varying)
        # Behind the first part that varies nothing is found in the cache, even if it is fixed.
        first = min((number for number, _ in varying), default=len(parts))
        late = sum(tokens for number, tokens in fixed if number > first)
        owners = frozenset(part.part.partition(".")[0] for part in parts)
        return _PromptSizes(sizes, owners, SessionLoad(0, stable=-late, prompt=late))


def _rates_by_tier(rates: Mapping[str, Rates]) -> Callable[[SessionCost], Rates]:
    return lambda cost: rates["mid" if cost.tier == "any" else cost.tier]


def _rates_by_role(
    member: StackMember, whole: StackMember | None, rates: Mapping[str, Rates]
) -> Callable[[SessionCost], Rates]:
    """The model of a session: that of the session of this name, else of the agent, of the whole, or of its class."""
    named = {session.name.lower(): session.model for session in member.sessions or () if session.model}
    usual = member.model or (whole.model if whole is not None else None)
    by_tier = _rates_by_tier(rates)

    def rates_of(cost: SessionCost) -> Rates:
        name = named.get(cost.role.lower()) or usual
        return by_tier(cost) if name is None else rates.get(name) or Rates(name)

    return rates_of


def _cap_notes(stack: Stack) -> Iterator[str]:
    """The caps of loops, at which a run ends before the worst case."""
    for member in stack.members:
        for loop in member.loops or ():
            caps = [f"{value:g} {name}" for name in ("tokens", "money", "seconds") if (value := getattr(loop, name))]
            if caps:
                where = f"agents.{member.name}.loops" if member.name else "loops"
                yield f"{where}.{loop.name} ends at {', '.join(caps)}, which may be before the worst case"


@dataclass(frozen=True)
class Estimate:
    """The cost of everything, by part and in all; `notes` say what was assumed or is not known."""

    parts: tuple[CostPart, ...]
    notes: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    """Models without a known price; their cost is in no sum of money."""

    @cached_property
    def expected(self) -> Amounts:
        """The expected cost of a run."""
        return reduce(Amounts.plus, (part.expected for part in self.parts if not part.apart), NO_AMOUNTS)

    @cached_property
    def worst(self) -> Amounts:
        """The worst cost of a run: every bound is reached, and nothing is found in a cache."""
        return reduce(Amounts.plus, (part.worst for part in self.parts if not part.apart), NO_AMOUNTS)

    @cached_property
    def total(self) -> Amounts:
        """The expected cost of a run and of what is outside of runs: what it takes to run such a pattern by itself."""
        return self.expected.plus(self.apart)

    @cached_property
    def apart(self) -> Amounts:
        """The expected cost outside of runs, such as the tests before a release."""
        return reduce(Amounts.plus, (part.expected for part in self.parts if part.apart), NO_AMOUNTS)

    def without_part(self, ids: Iterable[str]) -> list[str]:
        """Those of these patterns that have no part of their own: they cost nothing, or are in the calls of others."""
        told = {part.pattern for part in self.parts}
        return [id for id in ids if id not in told]

    def by_pattern(self) -> dict[str, tuple[Amounts, Amounts]]:
        """Expected and worst of each pattern's own sessions."""
        return _group_amounts((part.pattern, part) for part in self.parts)

    def by_agent(self) -> dict[str, tuple[Amounts, Amounts]]:
        """Expected and worst of each agent of the stack."""
        return _group_amounts((part.agent, part) for part in self.parts if not part.apart)

    def to_json(self) -> dict[str, Any]:
        return {
            "expected": self.expected.to_json(),
            "worst": self.worst.to_json(),
            "apart": self.apart.to_json(),
            "parts": [part.to_json() for part in self.parts],
            "notes": list(self.notes),
            "unpriced": list(self.unpriced),
        }


def _group_amounts(parts: Iterable[tuple[str, CostPart]]) -> dict[str, tuple[Amounts, Amounts]]:
    groups: dict[str, tuple[Amounts, Amounts]] = {}
    for key, part in parts:
        usual, most = groups.get(key, (NO_AMOUNTS, NO_AMOUNTS))
        groups[key] = (usual.plus(part.expected), most.plus(part.worst))
    return groups


def estimate(
    what: Stack | PatternList,
    sizes: Mapping[str, float] | None = None,
    rates: Mapping[str, Rates] | None = None,
    *,
    tool_seconds: float = 0.0,
) -> Estimate:
    """The cost of a stack, or of patterns together.

    Args:
        what: A stack, or ids of patterns with their knobs.
        sizes: Measured sizes; the others are those of a small task.
        rates: The models for `small`, `mid` and `large`, and others that a stack names; the local weights by default.
        tool_seconds: How long a tool call takes.

    Example:
        >>> estimate(["R4"], {"steps": 3}).expected.calls
        3.0
    """
    known = rates or LOCAL_RATES
    for tier in TIERS:
        if tier not in known:
            raise CatalogError(
                "catalog.unknown-model", f"no model is named for {tier!r}", fix=f"Name one for {', '.join(TIERS)}."
            )
    if isinstance(what, Stack):
        parts, notes = stack_parts(what, resolve_sizes(sizes), known, tool_seconds)
    else:
        parts, notes = list(agent_parts(agent_from_patterns(what, resolve_sizes(sizes), known, tool_seconds))), []
    return _build_estimate(parts, known, notes)


def _build_estimate(parts: Iterable[CostPart], rates: Mapping[str, Rates], notes: list[str]) -> Estimate:
    """The estimate of these parts, with notes on unknown prices and speeds, and windows that are too small."""
    kept = tuple(part for part in parts if part.worst != NO_AMOUNTS)
    if not all(part.expected.is_finite and part.worst.is_finite for part in kept):
        raise no_amount_error()
    models = {rate.model: rate for rate in rates.values()}
    names = dict.fromkeys(part.model for part in kept if part.model)
    used = [models.get(name) or Rates(name) for name in names]
    unpriced = tuple(each.model for each in used if each.read is None or each.written is None)
    unmeasured = (each.model for each in used if each.prompt_speed is None or each.output_speed is None)
    notes += [f"the speed of {model} is not known" for model in unmeasured]
    for part in kept:
        window = models[part.model].window if part.model in models else None
        if window is not None and part.worst.longest > window:
            notes.append(
                f"{part.pattern} {part.role}: a call of up to {part.worst.longest:,.0f} tokens does not fit"
                f" the window of {part.model} ({window:,})"
            )
    found = Estimate(kept, tuple(dict.fromkeys(notes)), unpriced)
    if not all(each.is_finite for each in (found.total, found.worst)):
        raise no_amount_error()
    return found
