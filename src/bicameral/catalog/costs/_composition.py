"""Costs of the patterns of one agent together: which wraps which, what is added, and how often each repeats.

| as | what it does in a stack |
|---|---|
| `wraps` | wraps the deeper patterns: they run in its session `at`, as often as that is called |
| `hosts` | is the call itself if nothing wraps; otherwise its session `at` counts nothing |
| `shapes` | lengthens the innermost call by what its session `at` has more than a plain call |
| `adds` | its sessions are added, once a run |
| `apart` | happens outside of runs (before a release, between sessions): reported, and not in the sum of a run |

Other sessions of a pattern than `at` are always added. A pattern that is `part_of` another in the same agent counts
nothing: the other's sessions are its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, cast

from bicameral.catalog.costs._sessions import (
    NO_AMOUNTS,
    Amounts,
    CostPart,
    Rates,
    SessionLoad,
    expected_amounts,
    round_count,
    round_down,
    round_up,
    worst_amounts,
)
from bicameral.catalog.facts import SIZES, Expression, PatternFacts, SessionCost, default_sizes
from bicameral.catalog.facts._reader import load_records
from bicameral.catalog.stacks import MAX_SIZE, MIN_SIZE
from bicameral.errors import CatalogError, nearest_name


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often something is repeated, expected and at most, and how many run in parallel."""

    often: float = 1.0
    most: float = 1.0
    at_once: float = 1.0


def expected_repeated(
    session: SessionLoad, rates: Rates, levels: Sequence[Repetition], *, warmed: bool = False
) -> Amounts:
    """The expected cost. The prefix is cached from the second repetition on, or from the second parallel round."""
    levels, session = _fit_lanes(levels, session, rates.lanes)
    often = math.prod(level.often for level in levels)
    if often <= 0 or session.calls <= 0:
        return NO_AMOUNTS
    at_once = math.prod(max(1.0, min(level.often, round_down(level.at_once))) for level in levels)
    turns = math.prod(round_count(level.often, level.at_once) for level in levels)
    cold = min(often, 1.0 if warmed else at_once)
    first = expected_amounts(replace(session, later=session.later or often > cold), rates, warmed=warmed)
    later = expected_amounts(replace(session, known=True), rates, warmed=warmed)
    found = first.times(cold).plus(later.times(often - cold))
    seconds = None
    if first.seconds is not None and later.seconds is not None:
        seconds = first.seconds * min(1.0, turns) + later.seconds * max(0.0, turns - 1.0)
    return replace(found, seconds=seconds, memory=first.memory * at_once)


def worst_repeated(
    session: SessionLoad, rates: Rates, levels: Sequence[Repetition], *, warmed: bool = False
) -> Amounts:
    """The worst cost: every repetition, and nothing is found in the cache."""
    levels, session = _fit_lanes(levels, session, rates.lanes)
    again = math.prod(level.most for level in levels) > 1
    found = worst_amounts(replace(session, later=session.later or again), rates, warmed=warmed)
    for level in levels:
        found = found.times(round_up(level.most), level.at_once)
    return found


def _fit_lanes(
    levels: Sequence[Repetition], session: SessionLoad, lanes: float
) -> tuple[list[Repetition], SessionLoad]:
    """Limit parallel calls to what the model can do: the outermost level first."""
    found: list[Repetition] = []
    for level in levels:
        at_once = max(1.0, min(level.at_once, lanes))
        lanes = max(1.0, lanes / at_once)
        found.append(replace(level, at_once=at_once))
    return found, replace(session, parallel=min(session.parallel, lanes))


NestingManner = Literal["wraps", "hosts", "shapes", "adds", "apart"]
InnerManner = Literal["steps", "parts", "ladder", "share"]


@dataclass(frozen=True, slots=True)
class Nesting:
    """How a pattern is combined with others."""

    id: str
    manner: NestingManner
    at: str = ""
    depth: int = 0
    """Of patterns that wrap, the smallest is outermost; of patterns that host, the largest is the call itself."""
    hands_on: bool = False
    """Whether inner sessions get a brief instead of the task, and without O17 also what the outer one has read."""
    part_of: tuple[str, ...] = ()
    inside: InnerManner = "share"
    """How often the patterns inside of it run, where a stack says which they are; see `_trees`."""


@cache
def nestings() -> Mapping[str, Nesting]:
    """Every pattern's entry in `nesting.yaml`."""
    return load_records("nesting.yaml", Nesting)


SizeValues = Mapping[str, float]


def resolve_sizes(given: Mapping[str, Any] | None) -> dict[str, float]:
    """All sizes: the given ones over those of a small task; `catalog.unknown-size` for an unknown name."""
    found = default_sizes()
    for name, value in (given or {}).items():
        if name not in SIZES:
            raise CatalogError(
                "catalog.unknown-size",
                f"there is no size {name!r}",
                nearest=nearest_name(name, SIZES),
                fix=f"There are {', '.join(SIZES)}.",
            )
        found[name] = _check_number(f"the size {name}", value, 0, MAX_SIZE)
    return found


def resolve_knobs(pattern: PatternFacts, sizes: SizeValues, knobs: Mapping[str, Any]) -> dict[str, float]:
    """The values of all names in the expressions of a pattern."""
    values = {**sizes, **pattern.defaults}
    for name, value in knobs.items():
        knob = pattern.knobs.get(name)
        if knob is None:
            raise CatalogError(
                "catalog.unknown-knob",
                f"{pattern.id} has no knob {name!r}",
                nearest=nearest_name(name, pattern.knobs),
                fix=f"It has {', '.join(pattern.knobs)}." if pattern.knobs else "It has none.",
            )
        if knob.numeric:
            values[name] = _check_number(f"the knob {name} of {pattern.id}", value, knob.least, knob.most)
    return values


def evaluate_session(cost: SessionCost, values: SizeValues) -> tuple[SessionLoad, SessionLoad]:
    """The expected and the worst load of a session. The expected one never exceeds the worst.

    At worst there is as much work as the knobs allow; what no knob bounds is as large as the sizes say.
    """
    most = _bounded_value(cost.most, values)
    calls = min(_non_negative_value(cost.calls, values), most)
    parallel = max(1.0, _non_negative_value(cost.parallel, values))
    sizes = {name: cast("Expression", getattr(cost, name)) for name in ("stable", "prompt", "grows", "output")}
    usual: dict[str, Any] = {name: _non_negative_value(each, values) for name, each in sizes.items()}
    worst: dict[str, Any] = {name: _bounded_value(each, values) for name, each in sizes.items()}
    return SessionLoad(calls, **usual, parallel=parallel), SessionLoad(most, **worst, parallel=parallel)


def evaluate_tool_calls(pattern: PatternFacts, values: SizeValues, role: str = "") -> tuple[float, float]:
    """The expected and the worst number of tool calls.

    At worst there are as many as the knobs allow, and they grow with the calls of the main session: the one of this
    role, or the first.
    """
    counted, bound = _non_negative_value(pattern.cost.tools, values), _bounded_value(pattern.cost.tools, values)
    main = next((each for each in pattern.cost.sessions if each.role == role), next(iter(pattern.cost.sessions), None))
    if main is None:
        return counted, bound
    calls, most = _non_negative_value(main.calls, values), _bounded_value(main.most, values)
    grown = most / calls if calls > 0 else 1.0
    usual = counted * min(1.0, grown)
    return usual, max(counted * grown, bound)


_COUNTS = tuple(name for name, size in SIZES.items() if size.unit == "count")


def _bounded_value(expression: Expression, values: SizeValues) -> float:
    """The largest value of an expression if knobs bound it; otherwise its value for the sizes."""
    given = _non_negative_value(expression, values)
    if not expression.names.intersection(_COUNTS):
        return given
    far, farther = (
        _non_negative_value(expression, {**values, **dict.fromkeys(_COUNTS, count)}) for count in (1e6, 1e7)
    )
    return max(given, far) if far == farther else given


def _non_negative_value(expression: Expression, values: SizeValues) -> float:
    return max(0.0, expression.value(values))


def _check_number(what: str, value: Any, least: float | None, most: float | None) -> float:
    low, high = (-MAX_SIZE if least is None else least), (MAX_SIZE if most is None else most)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        is_open = most is None or most >= MAX_SIZE
        # Where nobody can mean the bound of all numbers, it is said only to those who went over it.
        is_over = isinstance(value, int | float) and value > high
        bounds = f"from {low:g} on" if is_open and not is_over else f"{low:g} to {high:g}"
        raise CatalogError("catalog.bad-number", f"{what} is {value!r}", expected=f"a number {bounds}")
    if 0 < abs(value) < MIN_SIZE:
        # A share of next to nothing: what is divided by it has no end.
        expected = f"0, or a number from {MIN_SIZE:g} to {high:g}"
        raise CatalogError("catalog.bad-number", f"{what} is {value!r}", expected=expected)
    return float(value)


EMPTY_SESSION = SessionLoad(0)

TOOLS_ROLE = "tools"
"""The role of tool calls in a report."""


@dataclass(frozen=True, slots=True)
class CostedPattern:
    """A pattern of an agent with its knobs, its nesting, its own sizes, and the patterns inside of it."""

    pattern: PatternFacts
    knobs: Mapping[str, Any]
    nesting: Nesting
    inner: tuple[CostedPattern, ...] = ()
    own_sizes: Mapping[str, float] = field(default_factory=dict[str, float])
    """By name, or by role and name."""
    place: str = ""
    """Where it is in the outermost pattern around it."""
    step: str = ""
    """Where it is in the pattern around it."""

    @property
    def id(self) -> str:
        return self.pattern.id

    @property
    def main_session(self) -> SessionCost | None:
        """The session in which deeper patterns run, or which is the call itself."""
        sessions = self.pattern.cost.sessions
        return next((each for each in sessions if each.role == self.nesting.at), None)

    @property
    def other_sessions(self) -> list[SessionCost]:
        at = self.main_session
        return [each for each in self.pattern.cost.sessions if each is not at]

    def values(self, sizes: SizeValues, role: str = "") -> dict[str, float]:
        """The values of all names in its expressions; its own sizes, and those of the role, come first."""
        own = {name: size for name, size in self.own_sizes.items() if "." not in name}
        of_role = {
            name.rpartition(".")[2]: size
            for name, size in self.own_sizes.items()
            if role and name.rpartition(".")[0] == role
        }
        return resolve_knobs(self.pattern, {**sizes, **own, **of_role}, self.knobs)

    def tools(self, sizes: SizeValues) -> tuple[float, float]:
        return evaluate_tool_calls(self.pattern, self.values(sizes), self.nesting.at)


@dataclass(frozen=True, slots=True)
class AgentCosts:
    """Everything that the cost of an agent depends on: patterns, sizes, and the model of each session."""

    name: str
    members: Sequence[CostedPattern]
    sizes: SizeValues
    rates: Callable[[SessionCost], Rates]
    beside: frozenset[str] = frozenset()
    """Patterns of the whole, which apply to this agent and are counted there."""
    described: frozenset[str] = frozenset()
    """Patterns whose tokens are in the sizes already, because the prompt is described part by part."""
    late_tokens: SessionLoad = EMPTY_SESSION
    """Tokens of every innermost call that move from the stable prefix to the rest."""
    tool_seconds: float = 0.0
    isolated: bool = False
    """Whether the runtime gives every worker a context of its own, as O17 does."""

    def has(self, id: str) -> bool:
        return id in self.beside or any(member.id == id for member in self.members)

    @property
    def trees(self) -> list[CostedPattern]:
        """The members that say which patterns work inside of them; each is a work of its own."""
        return [member for member in self.members if member.inner]

    def of_manner(self, *manners: str) -> list[CostedPattern]:
        """The members of these manners that are no part of another pattern of the agent."""
        return [
            member
            for member in self.members
            if not member.inner
            and member.nesting.manner in manners
            and not any(self.has(other) for other in member.nesting.part_of)
        ]


@dataclass(frozen=True, slots=True)
class CostContext:
    """The surroundings of a session: what repeats it, the patterns around it, and what lengthens its calls.

    Args:
        given: The tokens that it is given instead of the task: a brief, or the result of another pattern.
        overlap: How many different patterns run at the same time as it.
    """

    levels: tuple[Repetition, ...] = ()
    patterns: tuple[str, ...] = ()
    given: float | None = None
    usual: SessionLoad = EMPTY_SESSION
    most: SessionLoad = EMPTY_SESSION
    overlap: float = 1.0

    def sizes(self, agent: AgentCosts) -> SizeValues:
        return agent.sizes if self.given is None else {**agent.sizes, "input": self.given}

    def lengthened(self, usual: SessionLoad, most: SessionLoad | None = None) -> CostContext:
        """The same with longer calls. A change may be negative as long as the call that it is added to is not."""
        most = usual if most is None else most
        return replace(self, usual=self.usual.plus(usual, least=-math.inf), most=self.most.plus(most, least=-math.inf))


def wrapping_chain(agent: AgentCosts) -> list[CostedPattern]:
    """The patterns of an agent that wrap others, the outermost first."""
    return sorted(agent.of_manner("wraps"), key=lambda member: member.nesting.depth)


def wrapping_parts(
    whole: AgentCosts, chain: Sequence[CostedPattern], around: CostContext
) -> tuple[list[CostPart], CostContext]:
    """The cost of the wrapping patterns of the whole, and the surroundings that they are for the agents."""
    found: list[CostPart] = []
    for member in chain:
        found += session_parts(whole, member, member.other_sessions, around)
        if not member.nesting.hands_on:
            found += tool_parts(whole, member, around)
        if member.main_session is not None:
            around = inner_context(whole, member, member.main_session, around)
    return found, around


def longest_shape(shapes: Sequence[CostedPattern], sizes: SizeValues) -> list[CostedPattern]:
    """The shape with the longest call, which is the call itself if nothing wraps or hosts."""

    def length(member: CostedPattern) -> float:
        main = member.main_session
        return -1.0 if main is None else evaluate_session(main, member.values(sizes))[0].first

    return sorted(shapes, key=length, reverse=True)[:1]


@dataclass(frozen=True, slots=True)
class PatternChain:
    """Patterns that wrap each other, with the shapes that lengthen the innermost call."""

    agent: AgentCosts
    shapes: Sequence[CostedPattern]

    def parts(self, chain: Sequence[CostedPattern], around: CostContext) -> Iterator[CostPart]:
        if not chain:
            return
        member, deeper = chain[0], chain[1:]
        yield from session_parts(self.agent, member, member.other_sessions, around)
        if member.main_session is not None and deeper:
            yield from self.parts(deeper, inner_context(self.agent, member, member.main_session, around))
        elif member.main_session is not None:
            innermost = self.lengthened(around)
            yield from session_parts(self.agent, member, [member.main_session], innermost, lengthened=True)
        # The tool calls of workers are counted by the pattern of the workers, if there is one.
        if not (member.nesting.hands_on and any(each.tools(around.sizes(self.agent))[0] for each in deeper)):
            yield from tool_parts(self.agent, member, around)

    def lengthened(self, around: CostContext) -> CostContext:
        """The surroundings with the tokens of every shape; a shape that may repeat the call raises the worst case."""
        levels, further = list(around.levels), EMPTY_SESSION
        for shape in self.shapes:
            if shape.main_session is None:
                continue
            values = shape.values(around.sizes(self.agent))
            usual, most = evaluate_session(shape.main_session, values)
            if shape.id not in self.agent.described:
                extra = replace(extra_tokens(usual, values, once=True), grows=usual.grows)
                further = further.plus(extra, least=-math.inf)
            if usual.calls > 0 and most.calls > usual.calls:
                levels.append(Repetition(1.0, most.calls / usual.calls))
        return replace(around, levels=tuple(levels)).lengthened(further)


def inner_context(agent: AgentCosts, member: CostedPattern, at: SessionCost, around: CostContext) -> CostContext:
    """The surroundings of deeper patterns: this one repeats them, and gives them a brief or lengthens their calls."""
    values = member.values(around.sizes(agent))
    usual, most = evaluate_session(at, values)
    levels = (*around.levels, Repetition(usual.calls, most.calls, usual.parallel))
    inner = replace(around, levels=levels, patterns=(*around.patterns, member.id))
    if not member.nesting.hands_on:
        return inner.lengthened(extra_tokens(usual, values), extra_tokens(most, values))
    inner = replace(inner, given=values["brief"])
    if agent.has("O17") or agent.isolated:
        return inner
    # Without a context of its own (O17) a worker also reads the context of the orchestrator.
    read = max((evaluate_session(other, values)[0].first for other in member.other_sessions), default=0.0)
    return inner.lengthened(SessionLoad(0, prompt=read))


def extra_tokens(session: SessionLoad, values: SizeValues, *, once: bool = False) -> SessionLoad:
    """The tokens of a call beyond a plain one; growth from call to call is averaged over the calls."""
    grown = 0.0 if once else session.grows * max(0.0, session.calls - 1) / 2
    return SessionLoad(
        0,
        session.stable - values["setup"],
        session.prompt - values["input"] + grown,
        0.0,
        session.output - values["output"],
    )


def _with_context(session: SessionLoad, change: SessionLoad, values: SizeValues) -> SessionLoad:
    """A session whose calls are longer or shorter by a change to a plain call.

    Shorter replies are so by a share and not by a number of tokens: a pattern that divides a reply among several calls
    has calls that are shorter than a plain one already.
    """
    if change.output >= 0 or not values["output"]:
        return session.plus(change)
    share = max(0.0, 1 + change.output / values["output"])
    return replace(session, output=session.output * share).plus(replace(change, output=0.0))


def session_parts(
    agent: AgentCosts,
    member: CostedPattern,
    costs: Sequence[SessionCost],
    around: CostContext,
    *,
    lengthened: bool = False,
    apart: bool = False,
    expected: SizeValues | None = None,
) -> Iterator[CostPart]:
    """The cost of these sessions; `expected` are values that are known better than the knobs and sizes say."""
    warmed = agent.has("O18")
    for cost in costs:
        values = member.values(around.sizes(agent), cost.role)
        usual, most = evaluate_session(cost, values)
        if expected is not None:
            usual = evaluate_session(cost, {**values, **expected})[0]
        if lengthened:
            usual = _compact_session(agent, _with_context(usual, around.usual, values))
            most = _compact_session(agent, _with_context(most, around.most, values))
        if member.id == "O18":
            # Its warm-up call stores the prefix, which all workers then find in the cache.
            usual = replace(usual, later=cost.role != member.nesting.at, known=cost.role == member.nesting.at)
        rates = agent.rates(cost)
        yield CostPart(
            agent.name,
            member.id,
            cost.role,
            rates.model,
            _overlapped(expected_repeated(usual, rates, around.levels, warmed=warmed), around.overlap, rates.lanes),
            worst_repeated(most, rates, around.levels, warmed=warmed),
            around.patterns,
            apart,
            member.place,
        )


def _overlapped(amounts: Amounts, overlap: float, lanes: float) -> Amounts:
    """An amount whose seconds pass while other patterns run, as far as the model answers several at once."""
    at_once = max(1.0, min(overlap, lanes))
    return amounts if amounts.seconds is None else replace(amounts, seconds=amounts.seconds / at_once)


def _compact_session(agent: AgentCosts, session: SessionLoad) -> SessionLoad:
    """With K6 a prompt grows only to a share of the window; each summary invalidates the cache behind it."""
    member = next((each for each in agent.members if each.id == "K6"), None)
    if member is None or session.grows <= 0:
        return session
    values = member.values(agent.sizes)
    freed = max(1.0, values["span_tokens"] - values["summary_tokens"])
    return replace(session, cap=values["trigger"] * values["window_tokens"], resets=min(1.0, session.grows / freed))


def tool_parts(
    agent: AgentCosts, member: CostedPattern, around: CostContext, *, apart: bool = False
) -> Iterator[CostPart]:
    usual, most = member.tools(around.sizes(agent))
    if not most:
        return
    expected = Amounts(tools=usual, seconds=usual * agent.tool_seconds)
    worst = Amounts(tools=most, seconds=most * agent.tool_seconds)
    for level in around.levels:
        expected = expected.times(level.often, level.at_once)
        worst = worst.times(round_up(level.most), level.at_once)
    yield CostPart(agent.name, member.id, TOOLS_ROLE, "", expected, worst, around.patterns, apart, member.place)
