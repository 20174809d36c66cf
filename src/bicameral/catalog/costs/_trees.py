"""Costs of patterns inside of patterns, where a stack says which they are, and of an agent as a whole.

How often the patterns inside of another run is in `nesting.yaml`, under `inside`:

| inside | the patterns inside |
|---|---|
| `steps` | run in order, once each, with the result of the one before; of several at one step one is taken |
| `parts` | run at the same time, once each, with the same task or with the brief of a part |
| `ladder` | the first runs; the others only where it fails, so that they are in the worst case alone |
| `share` | do the calls of the session `at`, in equal shares; at worst one of them does all |

They do the work of that session, which is not counted any more. A pattern without such a session (V5) or that only
lengthens a call (H1) runs what is inside of it once. What runs inside may again have patterns inside of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from bicameral.catalog.costs._composition import (
    AgentCosts,
    CostContext,
    CostedPattern,
    PatternChain,
    Repetition,
    SizeValues,
    evaluate_session,
    extra_tokens,
    inner_context,
    longest_shape,
    session_parts,
    tool_parts,
    wrapping_chain,
)
from bicameral.catalog.costs._sessions import CostPart
from bicameral.catalog.facts import SessionCost

PART_NAME_TOKENS = 4
"""What the name of a part adds to its result where the results of several are put together."""


def agent_parts(agent: AgentCosts, outside: CostContext | None = None) -> Iterator[CostPart]:
    """The cost of every session of an agent; `outside` are the surroundings of the whole agent."""
    around = outside or CostContext()
    around = around.lengthened(agent.late_tokens)
    chain = wrapping_chain(agent)
    hosts = sorted(agent.of_manner("hosts"), key=lambda member: member.nesting.depth)
    shapes = agent.of_manner("shapes")
    if not chain:
        chain = hosts[-1:] or ([] if agent.trees else longest_shape(shapes, around.sizes(agent)))
    pattern_chain = PatternChain(agent, [member for member in shapes if member not in chain])
    yield from pattern_chain.parts(chain, around)
    for tree in agent.trees:
        yield from tree_parts(agent, tree, pattern_chain.lengthened(around))
    for member in (*hosts, *shapes):
        if member not in chain:
            yield from session_parts(agent, member, member.other_sessions, around)
    yield from additional_parts(agent, around)


def additional_parts(agent: AgentCosts, around: CostContext) -> Iterator[CostPart]:
    """The sessions that are added to the calls of an agent, and those outside of its runs."""
    for member in agent.of_manner("adds", "apart"):
        apart = member.nesting.manner == "apart"
        yield from session_parts(agent, member, member.pattern.cost.sessions, around, apart=apart)
        yield from tool_parts(agent, member, around, apart=apart)


def tree_parts(agent: AgentCosts, member: CostedPattern, around: CostContext) -> Iterator[CostPart]:
    """The cost of a pattern and of everything inside of it."""
    apart = member.nesting.manner == "apart"
    if not member.inner:
        main = member.main_session
        for cost in member.pattern.cost.sessions:
            yield from session_parts(agent, member, [cost], around, lengthened=cost is main, apart=apart)
        yield from tool_parts(agent, member, around, apart=apart)
        return
    inside = list(_inner_contexts(agent, member, around))
    known = _known_values(agent, member, inside, around)
    own = _own_sessions(member)
    yield from session_parts(agent, member, own, around, apart=apart, expected=known)
    counted = {cost.role for cost in own}
    for child, context in inside:
        # The judge of an evaluation is a session of the evaluation, which is counted above.
        if member.id in child.nesting.part_of and counted.issuperset(cost.role for cost in child.pattern.cost.sessions):
            continue
        yield from tree_parts(agent, child, context)


def _own_sessions(member: CostedPattern) -> Sequence[SessionCost]:
    """The sessions of a pattern that are not the work of those inside of it."""
    if member.nesting.inside == "steps":
        return ()
    # A pattern that is put together of parts with its own id only calls them.
    is_facade = member.nesting.manner == "adds" and any(child.id == member.id for child in member.inner)
    return () if is_facade else member.other_sessions


def _known_values(
    agent: AgentCosts, member: CostedPattern, inside: Sequence[tuple[CostedPattern, CostContext]], around: CostContext
) -> SizeValues:
    """What the patterns inside tell of the values of the one around them: the length of the results that it reads."""
    most = member.values(around.sizes(agent)).get("result_tokens")
    if most is None:
        return {}
    mean = sum(result_tokens(agent, child, context) for child, context in inside) / len(inside)
    return {"result_tokens": min(most, mean)}


def _inner_contexts(
    agent: AgentCosts, member: CostedPattern, around: CostContext
) -> Iterator[tuple[CostedPattern, CostContext]]:
    """The patterns inside of another, each with its surroundings."""
    main = member.main_session
    values = member.values(around.sizes(agent), main.role if main is not None else "")
    inner = replace(around, patterns=(*around.patterns, member.id), given=values["input"])
    if main is None:
        for number, child in enumerate(member.inner):
            is_fallback = member.nesting.inside == "ladder" and number > 0
            yield child, _repeated(inner, Repetition(0.0 if is_fallback else 1.0))
        return
    usual, most = evaluate_session(main, values)
    again = Repetition(1.0, most.calls / usual.calls if usual.calls > 0 else 1.0)
    match member.nesting.inside:
        case "steps":
            given = values["input"]
            for _, ways in groupby(member.inner, _step_name):
                # Of the ways of one step one is taken, and at worst the most expensive.
                several = list(ways)
                level = replace(again, often=again.often / len(several))
                context = replace(_repeated(inner, level), given=given)
                yield from ((child, context) for child in several)
                given = sum(result_tokens(agent, child, context) for child in several) / len(several)
        case "parts":
            given = member.own_sizes.get("brief", values["input"])
            context = replace(_repeated(inner, again), given=given, overlap=around.overlap * usual.parallel)
            yield from ((child, context) for child in member.inner)
        case _ if member.nesting.manner == "wraps":
            # At worst the most expensive of them does all the work, and which one that is depends on the model.
            share = Repetition(usual.calls / len(member.inner), most.calls, usual.parallel)
            context = inner_context(agent, member, main, around)
            context = replace(context, levels=(*context.levels[:-1], share))
            yield from ((child, context) for child in member.inner)
        case _:
            longer = replace(extra_tokens(usual, values, once=True), grows=usual.grows)
            context = _repeated(inner, again).lengthened(longer)
            yield from ((child, context) for child in member.inner)


def _step_name(member: CostedPattern) -> str:
    """What the ways of one step have in common: `steps[1]` of `steps[1].ways.refund`."""
    return member.step.partition(".")[0] or member.place


def _repeated(context: CostContext, level: Repetition) -> CostContext:
    return replace(context, levels=(*context.levels, level))


def result_tokens(agent: AgentCosts, member: CostedPattern, around: CostContext) -> float:
    """The expected length of what a pattern gives, which is what the next one reads."""
    main = member.main_session
    if "output" in member.own_sizes or not member.inner:
        role = main.role if main is not None else ""
        return member.values(around.sizes(agent), role)["output"]
    inside = list(_inner_contexts(agent, member, around))
    results = [result_tokens(agent, child, context) for child, context in inside]
    match member.nesting.inside:
        case "steps":
            return results[-1]
        case "parts":
            return sum(results) + PART_NAME_TOKENS * len(results)
        case "share" if member.nesting.manner == "wraps":
            return member.values(around.sizes(agent))["output"]
        case _:
            return results[0]
