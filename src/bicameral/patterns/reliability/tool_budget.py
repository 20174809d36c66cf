"""V13, tool budget: a limit on how many tools, and how many tokens of their schemas, a model is shown at once.

Use it where a pattern chooses tools and there are more than fifteen, or where servers can add some. Tools that are over
the limit are chosen per task: by the words of the task, and by a small model that sees names and first lines where the
words find nothing. What is not chosen cannot be called. If no choice can be made the task fails; it never goes on with
all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, ParamSpec, TypeVar, cast

from bicameral.errors import CatalogError, RunError
from bicameral.patterns._outcome import ToolCallEvent
from bicameral.patterns.integration.tool_call import ROUTER as CALLER, RoutedCall, ToolCalling
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    Role,
    approximate_tokens,
)
from bicameral.patterns.strategies import list_tools, tool_schemas
from bicameral.planning import ranked_tools
from bicameral.tools import Origin, Registry, Tool, tool
from bicameral.types import ListType, LiteralType

ROUTER = Role(
    "Model router",
    "Name the tools that are needed for the task, and no others. Each line has the name of a tool and what it does.",
    tier="small",
    job="acting",
    phase="plan",
    max_tokens=256,
)
LEAST_SCORE: Final = 0.3
"""The share of the best score that a tool needs, so that a common word does not fill the budget."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ToolBudget(Pattern[P, T]):
    """Another pattern with no more tools than fit; the first text among its arguments is the task.

    Args:
        inner: The pattern that gets the tools.
        max_tools: How many it gets at most.
        hard_limit: No setting allows more than this.
        max_schema_tokens: How many tokens their schemas have at most.
        max_window_share: Which share of the window they fill at most.
        window: How many tokens the model reads at once.
        router: Who chooses where the words of the task find nothing; None if nobody does.

    Example:
        >>> outcome = await ToolBudget(ReAct(), max_tools=8).run(runtime, program_text("Which invoices are open?"))
    """

    id: ClassVar[str] = "V13"
    inner: Pattern[P, T]
    max_tools: int = 15
    hard_limit: int = 40
    max_schema_tokens: int = 10_000
    max_window_share: float = 0.1
    window: int = 32_768
    router: Role | None = ROUTER

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_tools > self.hard_limit:
            raise CatalogError(
                "pattern.bad-knob",
                f"V13: max_tools is {self.max_tools}",
                expected=f"at most hard_limit, which is {self.hard_limit}",
            )

    @property
    def most_tokens(self) -> int:
        """How many tokens the schemas may have: the smaller one of both limits."""
        return min(self.max_schema_tokens, int(self.max_window_share * self.window))

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        shown = await self._choose(context, _task_of(args))
        begun = len(context.shared.trace)

        async def limited(part: Context) -> Labelled[T]:
            part.restrict_tools(tool.name for tool in shown)
            try:
                return await self.inner.execute(part, *args, **kwargs)
            finally:
                events = context.shared.trace[begun:]
                called = {each.tool for each in events if isinstance(each, ToolCallEvent)}
                unused = sorted(tool.name for tool in shown if tool.name not in called)
                part.note("tools-unused", count=len(unused), names=", ".join(unused))

        return await context.run_part("within budget", limited)

    async def _choose(self, context: Context, task: Labelled[Any] | None) -> Sequence[Tool]:
        """The tools to show: all of them if they fit, else those that the task needs."""
        # A self-described tool is shown to no model, and may say of itself whatever ranks high.
        tools = [tool for tool in context.registry if not tool.self_described]
        fitting = self._fit(tools)
        if len(fitting) < len(tools):
            text = None if task is None else context.read(task)
            if task is None or not isinstance(text, str):
                raise _budget_error(f"there are {len(tools)} tools, and no task by which some could be chosen")
            fitting = self._fit(ranked_tools(text, tools, least=LEAST_SCORE))
            if not fitting:
                fitting = self._fit(await self._ask_router(context, task, tools))
            if not fitting:
                raise _budget_error("none of the tools was chosen for the task")
        context.note("tools-shown", count=len(fitting), of=len(tools), tokens=schema_tokens(fitting))
        return fitting

    def _fit(self, tools: Sequence[Tool]) -> list[Tool]:
        """The first of these tools that are within both limits together."""
        chosen: list[Tool] = []
        left = self.most_tokens
        for each in tools:
            tokens = schema_tokens([each])
            if tokens <= left and len(chosen) < self.max_tools:
                chosen.append(each)
                left -= tokens
        return chosen

    async def _ask_router(self, context: Context, task: Labelled[Any], tools: Sequence[Tool]) -> list[Tool]:
        if self.router is None:
            return []
        lines = "\n".join(f"- {tool.name}: {tool.doc.strip().partition(chr(10))[0][:120]}" for tool in tools)
        wanted = ListType(LiteralType(tuple(tool.name for tool in tools)))
        # Without a limit a small model names one tool after the other until its reply is cut off.
        picked = await context.fill(
            self.router, task, wanted=wanted, max_items=self.max_tools, stable=[context.derive(lines)]
        )
        chosen = dict.fromkeys(cast("list[str]", context.read(picked)))
        context.note("tools-routed", count=len(chosen))
        return [context.find_tool(name) for name in chosen]


def schema_tokens(tools: Sequence[Tool]) -> int:
    """About how many tokens the schemas of these tools have, as they are sent."""
    sent = tool_schemas(Registry(tools))
    return sum(approximate_tokens(json.dumps([each.name, each.description, each.parameters])) for each in sent)


def _task_of(args: tuple[Any, ...]) -> Labelled[Any] | None:
    return next((cast("Labelled[Any]", each) for each in args if isinstance(each, Labelled)), None)


def _budget_error(what: str) -> RunError:
    return RunError(
        "pattern.tool-budget",
        what,
        expected="tools within max_tools and max_schema_tokens",
        fix="Say in the task what it is about, give a router, or split the work (O17).",
    )


# An example ---------------------------------------------------------------------------------------------------------

_TASK: Final = "How warm is it in Lisbon?"
_SUBJECTS: Final = (
    "orders parcels invoices refunds tickets meetings rooms flights trains hotels "
    "recipes songs films books plants shares loans permits lessons"
).split()


def _tools(folder: Path) -> Sequence[Tool]:
    def count_tool(subject: str) -> Tool:
        def count(place: str) -> int:
            return 0

        count.__name__ = f"count_{subject}"
        count.__doc__ = f"How many {subject} there are in a place."
        return tool(effect="read", outbound=False, origins=Origin("system"), purpose={"place": "selects"})(count)

    @tool(effect="read", outbound=False, origins=Origin("system"), purpose={"city": "selects"})
    def read_temperature(city: str) -> float:
        """How warm it is in a city, in degrees."""
        return {"Lisbon": 21.5}.get(city, 9.0)

    return (*map(count_tool, _SUBJECTS), read_temperature)


def _is_correct(outcome: Answered[RoutedCall]) -> bool:
    return outcome.value["tool"] == "read_temperature" and outcome.value["result"] == 21.5


def _sizes(folder: Path) -> dict[str, int | float | str]:
    shown = [each for each in _tools(folder) if each.name == "read_temperature"]
    tools = f"Tools:\n{list_tools(Registry(shown))}"
    return {"setup": CALLER.setup, "tools": tools, "input": _TASK, "item_output": 25}


EXAMPLE = PatternExample(
    "One of twenty tools is needed, and only what the question is about is shown.",
    lambda folder: ToolBudget(ToolCalling(), max_tools=5),
    _TASK,
    _is_correct,
    _sizes,
    _tools,
    model="1.5b",
)
