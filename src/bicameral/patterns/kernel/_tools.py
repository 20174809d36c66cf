"""A pattern as a tool: of plans, of strategies, and of other patterns.

Its call is a part of the run that calls it. What the pattern does are steps of that run, with the same decider, people
and record; its answer carries the labels of everything that it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass

from bicameral.errors import RunError, ToolError
from bicameral.labels import UNKNOWN, LabelTree, join_all, listen_for_escapes, make_labelled, open_labelled
from bicameral.limits import STRATEGY, Limits, Meter, meters_in_force
from bicameral.patterns.kernel._codec import fingerprint, to_record
from bicameral.patterns.kernel._context import Context
from bicameral.patterns.kernel._guards import guards_around
from bicameral.patterns.kernel._pattern import TextPattern
from bicameral.patterns.kernel._record import replace_rule
from bicameral.patterns.kernel._state import PlanServices, SharedState
from bicameral.patterns.strategies import Runtime
from bicameral.policy import Mode
from bicameral.runs import CallGate, Decider, PartOfRun, RunPart
from bicameral.tools import EFFECTS, Argument, Effect, Origin, Registry, Tool
from bicameral.types import STR, Type, mismatch, to_plain

MAX_DEPTH = 3
"""How many patterns may be tools inside of each other."""
REQUEST = "request"
"""The argument of the tool."""
_DEPTH: ContextVar[int] = ContextVar("bicameral-pattern-depth", default=0)


def pattern_tool(
    pattern: TextPattern,
    tools: Registry | Iterable[Tool],
    runtime: Callable[[], Runtime],
    *,
    name: str,
    about: str,
    bounds: Limits | None = None,
    gives: Type = STR,
) -> Tool:
    """A tool that gives a request to a pattern, and returns its answer.

    The tool declares the worst of what the tools below it do: their worst effect, and untrusted text if one of them
    brings any. It is not among its own tools, so it cannot call itself.

    Args:
        pattern: The pattern. It takes one text.
        tools: The tools that the pattern may call.
        runtime: Returns the models, limits and planner that the pattern works with, when it is called. Policies, people
            and the record are those of the run that calls it.
        name: The name of the tool.
        about: What it does, for a planner: in the program's own words.
        bounds: How much a call may take, in addition to the limits around it; by default those of the runtime.
        gives: The type of the answer.

    Example:
        >>> facts = pattern_tool(ReWOO(), [search, lookup], lambda: agent.runtime(), name="find_facts",
        ...                      about="Find facts about a place.")
        >>> agent = Agent([facts, post])
    """
    registry = tools if isinstance(tools, Registry) else Registry(tools)
    effects: list[Effect] = ["read", *(tool.effect for tool in registry)]
    effect = max(effects, key=EFFECTS.index)
    purpose = "selects" if effect == "read" else "directs"
    return Tool(
        name,
        about,
        (Argument(REQUEST, STR, "What it works on, as a text.", purpose=purpose),),
        gives,
        effect,
        _PatternRunner(pattern, registry, runtime, name, gives, bounds),
        origins={"": _worst_origin(registry)},
        outbound=any(tool.outbound for tool in registry),
        declared=True,
        # A run is resumed only with the pattern and the tools that it began with.
        code=lambda: fingerprint([to_record(pattern), {tool.name: tool.fingerprint for tool in registry}]),
    )


def _worst_origin(registry: Registry) -> Origin:
    """The worst origin of what these tools return: a bound for the answer, which has the labels of what was read."""
    origins = [origin for tool in registry for origin in tool.origins.values()]
    known = all(tool.declared and (tool.origins or tool.effect == "pure") for tool in registry)
    trusted = known and all(origin.trust != "third_party" for origin in origins)
    public = known and all(origin.readers == "public" for origin in origins)
    return Origin("system" if trusted else "third_party", "public" if public else "user")


class _StrictDecider:
    """A decider for calls that models choose: what decided them always counts, whatever the mode of the plan."""

    def __init__(self, decider: Decider) -> None:
        self.mode: Mode = "strict"
        self.fingerprint = decider.fingerprint
        self.decides_pure = decider.decides_pure
        self.decide = decider.decide
        self.allows = decider.allows


@dataclass(frozen=True, slots=True)
class _PatternRunner(PartOfRun):
    pattern: TextPattern
    registry: Registry
    runtime: Callable[[], Runtime]
    name: str
    gives: Type
    bounds: Limits | None

    async def run_inside(self, part: RunPart) -> tuple[object, LabelTree]:
        depth = _DEPTH.get() + 1
        if depth > MAX_DEPTH:
            raise RunError(
                "pattern.too-nested",
                f"{self.name!r}: patterns are tools of each other more than {MAX_DEPTH} deep",
                fix="Give the inner pattern fewer tools.",
            )
        token = _DEPTH.set(depth)
        try:
            return await self._run(part)
        finally:
            _DEPTH.reset(token)

    async def _run(self, part: RunPart) -> tuple[object, LabelTree]:
        runtime = self.runtime()
        around = meters_in_force(STRATEGY)
        meter = Meter(self.bounds or runtime.bounds, above=around[-1] if around else None)
        request = make_labelled(str(part.arguments[REQUEST]), part.labels.get(REQUEST, UNKNOWN)).with_label(
            part.control
        )
        decider: Decider = _StrictDecider(part.decider)
        rule = replace_rule(request, part.handler, self.registry)
        shared = SharedState(
            runtime.models,
            CallGate(decider, part.handler, replacing=rule, ordered=False),
            part.handler,
            self.registry,
            places=part.places,
            audience=runtime.audience,
            plans=PlanServices(runtime.planner, runtime.policy, decider, runtime.caps),
        )
        guards, interceptors = guards_around()
        context = Context(
            shared,
            meter,
            f"{self.name}/",
            f"{part.step}/",
            own_read_label=part.control,
            guards=guards,
            interceptors=interceptors,
        )
        try:
            async with meter.running():
                with listen_for_escapes(shared.note_escape):
                    given = await self.pattern.execute(context, request)
        finally:
            context.life.end()
            part.note(shared.written_labels)
        answer = given.with_label(join_all((context.read_label, part.control)))
        value = to_plain(open_labelled(answer))
        if mismatch(value, self.gives):
            # Without a word of the answer.
            raise ToolError(
                "tools.bad-result", f"{self.name!r} did not give what it declares", expected=str(self.gives)
            )
        return value, answer.label_tree
