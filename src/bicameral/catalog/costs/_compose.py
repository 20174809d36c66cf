"""The patterns of one agent together: who goes round whom, what comes on top, and what that makes of each session."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..facts import Pattern, SessionCost
from ._amounts import Amounts
from ._nesting import Nesting
from ._part import Part
from ._rates import Rates
from ._repeats import Level, repeated, repeated_at_worst
from ._sessions import Session
from ._values import Values, evaluated, tool_calls, with_knobs

NONE = Session(0)

TOOLS = "tools"
"""The role under which the calls of tools are told."""


@dataclass(frozen=True, slots=True)
class Member:
    """A pattern of an agent with its knobs, and how it goes together with the others."""

    pattern: Pattern
    knobs: Mapping[str, Any]
    nesting: Nesting

    @property
    def id(self) -> str:
        return self.pattern.id

    @property
    def at(self) -> SessionCost | None:
        """The session where what is deeper runs, or which is the call itself."""
        sessions = self.pattern.cost.sessions
        return next((each for each in sessions if each.role == self.nesting.at), None)

    @property
    def others(self) -> list[SessionCost]:
        at = self.at
        return [each for each in self.pattern.cost.sessions if each is not at]

    def values(self, sizes: Values) -> dict[str, float]:
        return with_knobs(self.pattern, sizes, self.knobs)

    def tools(self, sizes: Values) -> tuple[float, float]:
        return tool_calls(self.pattern, self.values(sizes), self.nesting.at)


@dataclass(frozen=True, slots=True)
class Agent:
    """All that the cost of an agent depends on: its patterns, sizes, and which model a session has."""

    name: str
    members: Sequence[Member]
    sizes: Values
    rates: Callable[[SessionCost], Rates]
    beside: frozenset[str] = frozenset()
    """Patterns of the whole, which hold for this agent too and are counted there."""
    described: frozenset[str] = frozenset()
    """Patterns whose tokens are in the sizes already, since the prompt was described part by part."""
    late: Session = NONE
    """What every innermost call has at another place than the patterns say."""
    tool_seconds: float = 0.0

    def has(self, id: str) -> bool:
        return id in self.beside or any(member.id == id for member in self.members)

    def of(self, *manners: str) -> list[Member]:
        """Those that go together with the others in one of these ways, and are no part of another that is there."""
        return [
            member
            for member in self.members
            if member.nesting.manner in manners and not any(self.has(other) for other in member.nesting.part_of)
        ]


@dataclass(frozen=True, slots=True)
class Around:
    """What is around a session: what repeats it, which patterns, and what lengthens its calls.

    `briefed` says that what stands there is a part of the task, with the size of a brief.
    """

    levels: tuple[Level, ...] = ()
    patterns: tuple[str, ...] = ()
    briefed: bool = False
    usual: Session = NONE
    most: Session = NONE

    def sizes(self, agent: Agent) -> Values:
        return {**agent.sizes, "input": agent.sizes["brief"]} if self.briefed else agent.sizes


def agent_parts(agent: Agent, outside: Around | None = None) -> Iterator[Part]:
    """Every session of the agent with what it takes; `outside` is what goes round the whole agent."""
    around = outside or Around()
    around = replace(around, usual=_sum(around.usual, agent.late), most=_sum(around.most, agent.late))
    chain = chain_of(agent)
    hosts = sorted(agent.of("hosts"), key=lambda member: member.nesting.depth)
    shapes = agent.of("shapes")
    if not chain:
        chain = hosts[-1:] or _longest(shapes, around.sizes(agent))
    yield from _Chain(agent, [member for member in shapes if member not in chain]).parts(chain, around)
    for member in (*hosts, *shapes):
        if member not in chain:
            yield from _sessions(agent, member, member.others, around)
    yield from parts_on_top(agent, around)


def parts_on_top(agent: Agent, around: Around) -> Iterator[Part]:
    """What comes on top of the calls of an agent, and what happens apart from its runs."""
    for member in agent.of("adds", "apart"):
        apart = member.nesting.manner == "apart"
        yield from _sessions(agent, member, member.pattern.cost.sessions, around, apart=apart)
        yield from _tools(agent, member, around, apart=apart)


def chain_of(agent: Agent) -> list[Member]:
    """The patterns of an agent that go round others, the outermost first."""
    return sorted(agent.of("wraps"), key=lambda member: member.nesting.depth)


def parts_around(whole: Agent, chain: Sequence[Member], around: Around) -> tuple[list[Part], Around]:
    """What the chain of the whole takes by itself, and what it is for the agents inside."""
    found: list[Part] = []
    for member in chain:
        found += _sessions(whole, member, member.others, around)
        if not member.nesting.hands_on:
            found += _tools(whole, member, around)
        if member.at is not None:
            around = within(whole, member, member.at, around)
    return found, around


def _longest(shapes: Sequence[Member], sizes: Values) -> list[Member]:
    """Where nothing wraps and nothing hosts, the call is that of the shape which makes it longest."""

    def length(member: Member) -> float:
        return evaluated(member.at, member.values(sizes))[0].first if member.at is not None else -1.0

    found = max(shapes, key=length, default=None)
    return [] if found is None else [found]


@dataclass(frozen=True, slots=True)
class _Chain:
    """Patterns one inside the other, with the shapes that lengthen the innermost call."""

    agent: Agent
    shapes: Sequence[Member]

    def parts(self, chain: Sequence[Member], around: Around) -> Iterator[Part]:
        if not chain:
            return
        member, deeper = chain[0], chain[1:]
        yield from _sessions(self.agent, member, member.others, around)
        if member.at is not None and deeper:
            yield from self.parts(deeper, within(self.agent, member, member.at, around))
        elif member.at is not None:
            innermost = self._lengthened(around)
            yield from _sessions(self.agent, member, [member.at], innermost, lengthened=True)
        # What a pattern says of its workers' tools is said by the pattern of the workers, where there is one.
        if not (member.nesting.hands_on and any(each.tools(around.sizes(self.agent))[0] for each in deeper)):
            yield from _tools(self.agent, member, around)

    def _lengthened(self, around: Around) -> Around:
        """The innermost call with what every shape adds; one that may call again makes the worst case longer."""
        levels, further = list(around.levels), NONE
        for shape in self.shapes:
            if shape.at is None:
                continue
            values = shape.values(around.sizes(self.agent))
            usual, most = evaluated(shape.at, values)
            if shape.id not in self.agent.described:
                further = _sum(further, replace(_further(usual, values, once=True), grows=usual.grows))
            if usual.calls > 0 and most.calls > usual.calls:
                levels.append(Level(1.0, most.calls / usual.calls))
        return replace(around, levels=tuple(levels), usual=_sum(around.usual, further), most=_sum(around.most, further))


def within(agent: Agent, member: Member, at: SessionCost, around: Around) -> Around:
    """What is around those deeper: this pattern repeats them, and hands them a brief or lengthens their calls."""
    values = member.values(around.sizes(agent))
    usual, most = evaluated(at, values)
    levels = (*around.levels, Level(usual.calls, most.calls, usual.parallel))
    inner = replace(around, levels=levels, patterns=(*around.patterns, member.id))
    if not member.nesting.hands_on:
        return replace(
            inner,
            usual=_sum(around.usual, _further(usual, values)),
            most=_sum(around.most, _further(most, values)),
        )
    inner = replace(inner, briefed=True)
    if agent.has("O17"):
        return inner
    # Without a window of its own a worker also reads what stands before the one that sent it.
    read = max((evaluated(other, values)[0].first for other in member.others), default=0.0)
    seen = Session(0, prompt=read)
    return replace(inner, usual=_sum(inner.usual, seen), most=_sum(inner.most, seen))


def _further(session: Session, values: Values, *, once: bool = False) -> Session:
    """What a call has more than a plain one. What grows from call to call is on the mean in every one of them."""
    grown = 0.0 if once else session.grows * max(0.0, session.calls - 1) / 2
    return Session(
        0,
        session.stable - values["setup"],
        session.prompt - values["input"] + grown,
        0.0,
        session.output - values["output"],
    )


def _sum(one: Session, other: Session) -> Session:
    """Both together; a part may be below nothing as long as the call it is added to is not."""
    return replace(
        one,
        stable=one.stable + other.stable,
        prompt=one.prompt + other.prompt,
        grows=max(one.grows, other.grows),
        output=one.output + other.output,
    )


def _sessions(
    agent: Agent,
    member: Member,
    costs: Sequence[SessionCost],
    around: Around,
    *,
    lengthened: bool = False,
    apart: bool = False,
) -> Iterator[Part]:
    values = member.values(around.sizes(agent))
    warmed = agent.has("O18")
    for cost in costs:
        usual, most = evaluated(cost, values)
        if lengthened:
            usual, most = _compacted(agent, usual.more(around.usual)), _compacted(agent, most.more(around.most))
        if member.id == "O18":
            # Its warm-up stores the head for the workers, which all find it.
            usual = replace(usual, later=cost.role != member.nesting.at, known=cost.role == member.nesting.at)
        rates = agent.rates(cost)
        yield Part(
            agent.name,
            member.id,
            cost.role,
            rates.model,
            repeated(usual, rates, around.levels, warmed=warmed),
            repeated_at_worst(most, rates, around.levels, warmed=warmed),
            around.patterns,
            apart,
        )


def _compacted(agent: Agent, session: Session) -> Session:
    """With K6 a prompt grows to a share of the window and no further; each summary rewrites what lies behind it."""
    member = next((each for each in agent.members if each.id == "K6"), None)
    if member is None or session.grows <= 0:
        return session
    values = member.values(agent.sizes)
    freed = max(1.0, values["span_tokens"] - values["summary_tokens"])
    return replace(session, cap=values["trigger"] * values["window_tokens"], resets=min(1.0, session.grows / freed))


def _tools(agent: Agent, member: Member, around: Around, *, apart: bool = False) -> Iterator[Part]:
    usual, most = member.tools(around.sizes(agent))
    if not most:
        return
    expected = Amounts(tools=usual, seconds=usual * agent.tool_seconds)
    worst = Amounts(tools=most, seconds=most * agent.tool_seconds)
    for level in around.levels:
        expected = expected.times(level.often, level.at_once)
        worst = worst.times(math.ceil(level.most), level.at_once)
    yield Part(agent.name, member.id, TOOLS, "", expected, worst, around.patterns, apart)
