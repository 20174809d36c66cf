"""A stack in numbers: what was said of its agents becomes sizes and models, and its whole goes round them.

| where | how it counts |
|---|---|
| a pattern of the whole that wraps | goes round all agents; each takes an equal share of the calls |
| a pattern of the whole that shapes | makes the calls of every agent longer |
| any other pattern of the whole | comes on top, once |
| agents that nothing goes round | run once each, one after the other |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from ..facts import IDS, SessionCost, catalog
from ..stacks import Member as Said
from ..stacks import Stack
from ._compose import NONE, Agent, Around, Member, agent_parts, chain_of, parts_around, parts_on_top
from ._nesting import nestings
from ._part import Part
from ._rates import Rates
from ._repeats import Level
from ._sessions import Session
from ._values import Values

Patterns: TypeAlias = Sequence[str | Mapping[str, Mapping[str, Any]]]
"""Ids, or ids with their knobs: `["O6", {"R4": {"max_steps": 8}}]`, as in a stack."""

TOKENS_OF_A_TOOL = 200
"""What the schema of a tool takes where nobody counted."""


def patterns_alone(what: Patterns, sizes: Values, rates: Mapping[str, Rates], tool_seconds: float) -> Agent:
    """Patterns that nothing else is said of, as one agent."""
    members: dict[str, Member] = {}
    for each in what:
        pairs = cast("Iterable[tuple[str, Any]]", [(each, {})] if isinstance(each, str) else each.items())
        for id, knobs in pairs:
            pattern = catalog().pattern(id)
            members[pattern.id] = Member(pattern, knobs or {}, nestings()[pattern.id])
    return Agent("agent", list(members.values()), sizes, _by_tier(rates), tool_seconds=tool_seconds)


def stack_parts(
    stack: Stack, sizes: Values, rates: Mapping[str, Rates], tool_seconds: float
) -> tuple[list[Part], list[str]]:
    """What every session of a stack takes, and what could not be counted."""
    notes = [
        f"{id} is a pattern of your own, and nothing is known of its cost"
        for id in dict.fromkeys(use.id for member in stack.members for use in member.uses if use.id not in IDS)
    ]
    whole = _agent(stack.whole, None, sizes, rates, tool_seconds)
    if not stack.agents:
        return list(agent_parts(whole)), [*notes, *_caps(stack)]
    chain = chain_of(whole)
    parts, around = parts_around(whole, chain, Around())
    shapes = whole.of("shapes")
    share = _shared(around, len(stack.agents)) if chain else around
    for said in stack.agents:
        agent = _agent(said, stack.whole, sizes, rates, tool_seconds)
        own = frozenset(member.id for member in agent.members)
        more = [member for member in shapes if member.id not in own]
        beside = frozenset(member.id for member in whole.members)
        parts += agent_parts(replace(agent, members=[*agent.members, *more], beside=beside), share)
    parts += parts_on_top(whole, Around())
    return parts, [*notes, *_caps(stack)]


def _shared(around: Around, agents: int) -> Around:
    """The innermost of what repeats, in equal shares."""
    if not around.levels:
        return around
    last = around.levels[-1]
    part = Level(last.often / agents, last.most / agents, last.at_once)
    return replace(around, levels=(*around.levels[:-1], part))


def _agent(said: Said, whole: Said | None, sizes: Values, rates: Mapping[str, Rates], tool_seconds: float) -> Agent:
    prompt = _Prompt.of(said)
    members = [
        Member(catalog().pattern(use.id), _knobs(use.id, use.knobs), nestings()[use.id])
        for use in said.uses
        if use.id in IDS
    ]
    return Agent(
        said.name,
        members,
        {**sizes, **_tools(said), **prompt.sizes},
        _by_role(said, whole, rates),
        described=prompt.owners,
        late=prompt.late,
        tool_seconds=tool_seconds,
    )


def _knobs(id: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs of the pattern. A stack may also say where a pattern is used, which costs nothing."""
    return {name: value for name, value in given.items() if name in catalog().pattern(id).knobs}


def _tools(said: Said) -> dict[str, float]:
    if said.tools is None:
        return {}
    if said.tools.schema_tokens is not None:
        return {"tools": said.tools.schema_tokens}
    return {} if said.tools.count is None else {"tools": said.tools.count * TOKENS_OF_A_TOOL}


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt that was described part by part: its sizes, whose they are, and what comes too late to be cached."""

    sizes: Mapping[str, float]
    owners: frozenset[str] = frozenset()
    late: Session = NONE

    @staticmethod
    def of(said: Said) -> _Prompt:
        parts = [part for part in said.prompt or () if part.tokens is not None]
        if not parts:
            return _Prompt({})
        fixed = [(number, part.tokens or 0) for number, part in enumerate(parts) if part.stable != "per_call"]
        varying = [(number, part.tokens or 0) for number, part in enumerate(parts) if part.stable == "per_call"]
        sizes: dict[str, float] = {"setup": sum(tokens for _, tokens in fixed)}
        if varying:
            sizes["input"] = sum(tokens for _, tokens in varying)
        # Behind the first word that varies nothing is found in the cache, however fixed it is.
        first = min((number for number, _ in varying), default=len(parts))
        late = sum(tokens for number, tokens in fixed if number > first)
        owners = frozenset(part.part.partition(".")[0] for part in parts)
        return _Prompt(sizes, owners, Session(0, stable=-late, prompt=late))


def _by_tier(rates: Mapping[str, Rates]) -> Callable[[SessionCost], Rates]:
    return lambda cost: rates["mid" if cost.tier == "any" else cost.tier]


def _by_role(said: Said, whole: Said | None, rates: Mapping[str, Rates]) -> Callable[[SessionCost], Rates]:
    """The model of a session: what is said of a session of this name, else the agent's, the whole's, its class."""
    named = {session.name.lower(): session.model for session in said.sessions or () if session.model}
    usual = said.model or (whole.model if whole is not None else None)
    by_tier = _by_tier(rates)

    def chosen(cost: SessionCost) -> Rates:
        name = named.get(cost.role.lower()) or usual
        return by_tier(cost) if name is None else rates.get(name) or Rates(name)

    return chosen


def _caps(stack: Stack) -> Iterator[str]:
    """What the loops of a stack cap, since a run ends there whatever the worst case is."""
    for member in stack.members:
        for loop in member.loops or ():
            caps = [f"{value:g} {name}" for name in ("tokens", "money", "seconds") if (value := getattr(loop, name))]
            if caps:
                where = f"agents.{member.name}.loops" if member.name else "loops"
                yield f"{where}.{loop.name} ends at {', '.join(caps)}, which may be before the worst case"
