"""I2, function or tool call: the model picks tools and their arguments; code makes each call, once.

Use it where a text decides which of a few actions is meant: `ToolCalling` is one call, `SeveralToolCalls` are calls
that do not need each other. Where a result decides what is called next, R4 is the loop. The model runs nothing:
whatever it asks for is checked against the tool's declaration, even if the provider promises strict arguments, and then
policy decides. A model that has read untrusted text may pick what that text asks for, so its pick is judged as
untrusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypedDict, cast

from bicameral.errors import BicameralError, RunError, ToolError
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    Role,
    join_labelled,
    map_labelled,
    require_tokens,
)
from bicameral.patterns.strategies import list_tools, parse_arguments, tool_schemas
from bicameral.tools import Origin, Registry, Tool, tool
from bicameral.types import ANY, Field, ListType, RecordType

ROUTER = Role(
    "Router",
    "Pick the one tool that does what is asked for and fill in its arguments. If none of them does, pick none and "
    "answer in one short sentence.",
    tier="large",
    job="acting",
    phase="act",
    max_tokens=256,
)
SEVERAL_ROUTER = replace(
    ROUTER,
    setup="Pick the tools that do what is asked for and fill in their arguments, one call for each thing; none of them "
    "may need the result of another. If no tool does it, pick none and answer in one short sentence.",
    max_tokens=512,
)
NO_TOOL = "none"
"""The pick of a reply without a tool."""
_REPLY = RecordType((Field("call", ANY),))
_SEVERAL_REPLIES = RecordType((Field("calls", ListType(ANY)),))
MAX_TOOLS = 15
"""With more tools the wrong one is picked too often."""


class RoutedCall(TypedDict):
    """The tool that was called, its arguments and its result; or no tool, and the answer as the result."""

    tool: str | None
    arguments: dict[str, Any]
    result: Any


@dataclass(frozen=True)
class ToolCalling(Pattern[[Labelled[str]], RoutedCall]):
    """One call of a tool, or an answer in words. `tools` are the names of the tools to pick from; by default all.

    Example:
        >>> request = program_text("Put lunch with Ada into my calendar: 5 March, 12 o'clock")
        >>> outcome = await ToolCalling().run(runtime, request)
        >>> outcome.value["tool"]
        'add_event'
    """

    id: ClassVar[str] = "I2"
    retries: int = 1
    tools: tuple[str, ...] | None = None
    router: Role = ROUTER

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[RoutedCall]:
        _restrict_tools(context, self.tools)
        picks = await _ask_router(context, self.router, task, self.retries, most=None)
        ((found, arguments),) = picks
        if found is None:
            return context.derive(RoutedCall(tool=None, arguments={}, result=arguments["answer"]))
        result = await context.call(found.name, arguments)
        return map_labelled(result, partial(_routed_call, found.name, arguments))


class CallOutcome(RoutedCall):
    """One of several calls: `error` is the code of its error, and the result is then None."""

    error: str | None


@dataclass(frozen=True)
class SeveralToolCalls(Pattern[[Labelled[str]], list[CallOutcome]]):
    """Up to `max_calls` calls out of one reply, or an answer in words as the only outcome.

    Policy decides about each call. One that is denied or fails does not end the others, and its code is in its place.
    Calls that only read run at once, and those with a change one after another, in the order of the reply.

    Args:
        max_calls: The most calls; a reply with more is not accepted.
        tools: The names of the tools to pick from; by default all.
        result_tokens: The most tokens of a result, as an estimate; a longer one is an error with `pattern.long-result`.

    Example:
        >>> outcome = await SeveralToolCalls().run(runtime, program_text("How many live in Ghent, how many in Bruges?"))
        >>> [(each["arguments"], each["result"]) for each in outcome.value]
        [({'city': 'Ghent'}, 270473), ({'city': 'Bruges'}, 119541)]
    """

    id: ClassVar[str] = "I2"
    retries: int = 1
    max_calls: int = 4
    tools: tuple[str, ...] | None = None
    result_tokens: int = 2_000
    router: Role = SEVERAL_ROUTER

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[list[CallOutcome]]:
        _restrict_tools(context, self.tools)
        picks = await _ask_router(context, self.router, task, self.retries, most=self.max_calls)
        calls = [(found, arguments) for found, arguments in picks if found is not None]
        if not calls:
            ((_, said),) = picks
            return context.derive([CallOutcome(tool=None, arguments={}, result=said["answer"], error=None)])
        works = [
            (f"call {n}", partial(self._call, tool=found, arguments=given)) for n, (found, given) in enumerate(calls, 1)
        ]
        changes = any(found.changes for found, _ in calls)
        results = await context.run_parallel(works, width=1 if changes else len(works))
        for (name, _), each in zip(works, results, strict=True):
            if isinstance(each, BicameralError):
                context.note("call-failed", call=name, code=each.code)
        outcomes = [
            _call_outcome(context, found.name, given, each) for (found, given), each in zip(calls, results, strict=True)
        ]
        return join_labelled(outcomes)

    async def _call(self, part: Context, tool: Tool, arguments: Mapping[str, Any]) -> Labelled[Any]:
        result = await part.call(tool.name, arguments)
        require_tokens(tool.name, part.read(result), self.result_tokens, fix="Pick fewer things at once.")
        return result


def _restrict_tools(context: Context, tools: tuple[str, ...] | None) -> None:
    if tools is not None:
        context.restrict_tools(tools)
    if not 0 < len(context.registry) <= MAX_TOOLS:
        raise RunError(
            "pattern.tool-count",
            f"there are {len(context.registry)} tools to pick from",
            expected=f"1 to {MAX_TOOLS}",
            fix="Name those that are needed with `tools`, or split the work (O17).",
        )


async def _ask_router(
    context: Context, router: Role, task: Labelled[str], retries: int, *, most: int | None
) -> list[tuple[Tool | None, dict[str, Any]]]:
    """The calls that the Router picks, or its answer without a tool. Without `most` it is one."""
    name, wanted = ("call", _REPLY) if most is None else ("calls", _SEVERAL_REPLIES)
    pick = await context.fill(
        router,
        task,
        wanted=wanted,
        schema=_pick_schema(context.registry, most),
        check=lambda pick: _pick_fault(pick[name], context.registry, most),
        stable=[context.derive(f"Tools:\n{list_tools(context.registry)}")],
        retries=retries,
    )
    return _parse_picks(context.read(pick)[name], context.registry, most)


def _pick_schema(registry: Registry, most: int | None) -> dict[str, Any]:
    """The schema of a reply, calls or an answer, for providers that constrain the reply to it."""
    choices = [
        _object_schema({"tool": {"const": each.name}, "arguments": each.parameters}) for each in tool_schemas(registry)
    ]
    choices.append(_object_schema({"tool": {"const": NO_TOOL}, "answer": {"type": "string"}}))
    one = {"anyOf": choices}
    if most is None:
        return _object_schema({"call": one})
    return _object_schema({"calls": {"type": "array", "items": one, "minItems": 1, "maxItems": most}})


def _object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    return whole | {"additionalProperties": False}


def _pick_fault(picked: Any, registry: Registry, most: int | None) -> str | None:
    """What is wrong with the calls in a reply."""
    try:
        _parse_picks(picked, registry, most)
    except ToolError as error:
        return str(error)
    return None


def _parse_picks(picked: Any, registry: Registry, most: int | None) -> list[tuple[Tool | None, dict[str, Any]]]:
    """All calls of a reply, or its answer alone."""
    if most is None:
        return [_parse_pick(picked, registry)]
    calls = [_parse_pick(each, registry) for each in picked]
    if not 0 < len(calls) <= most or (len(calls) > 1 and any(found is None for found, _ in calls)):
        raise ToolError(
            "tools.wrong-type", f"there are {len(calls)} calls", expected=f"1 to {most} calls, or one answer alone"
        )
    return calls


def _parse_pick(call: Any, registry: Registry) -> tuple[Tool | None, dict[str, Any]]:
    """The tool and the arguments of a call, checked against the declaration; or no tool, and the answer."""
    match call:
        case {"tool": str(name), "answer": str(), **others} if name == NO_TOOL and not others:
            return None, call
        case {"tool": str(name), "arguments": dict(), **others} if not others:
            found = registry[name[:60]]
            arguments = parse_arguments(found, cast("dict[str, Any]", call["arguments"]))
            found.bind(arguments)
            return found, arguments
        case _:
            raise ToolError("tools.wrong-type", "this is no call", expected="a tool and its arguments, or an answer")


def _routed_call(tool: str, arguments: dict[str, Any], result: Any) -> RoutedCall:
    return RoutedCall(tool=tool, arguments=arguments, result=result)


def _call_outcome(
    context: Context, tool: str, arguments: dict[str, Any], result: Labelled[Any] | BicameralError
) -> Labelled[CallOutcome]:
    if isinstance(result, BicameralError):
        return context.derive(CallOutcome(tool=tool, arguments=arguments, result=None, error=result.code))
    called = map_labelled(result, lambda value: CallOutcome(tool=tool, arguments=arguments, result=value, error=None))
    return called.with_label(context.read_label)


# An example ---------------------------------------------------------------------------------------------------------

_TASK: Final = "Please put lunch with Ada into my calendar for 2027-03-05 at 12 o'clock."


def _tools(folder: Path) -> Sequence[Tool]:
    own = Origin("system")

    @tool(effect="read", outbound=False, origins=own, purpose={"day": "selects"})
    def list_events(day: date) -> list[str]:
        """The events of a day."""
        return []

    @tool(
        effect="write", outbound=False, origins=own, purpose={"title": "directs", "day": "directs", "hour": "directs"}
    )
    def add_event(title: str, day: date, hour: int) -> str:
        """Put a new event into the calendar."""
        return f"{title} on {day} at {hour}"

    @tool(effect="irreversible", outbound=False, origins=own, purpose={"title": "directs"})
    def delete_event(title: str) -> str:
        """Delete an event for good."""
        return f"{title} is gone"

    return (list_events, add_event, delete_event)


def _is_correct(outcome: Answered[RoutedCall]) -> bool:
    value = outcome.value
    given = value["arguments"]
    right = value["tool"] == "add_event" and given["day"] == date(2027, 3, 5) and given["hour"] == 12
    return right and "ada" in given["title"].lower() and [each.tool for each in outcome.tool_calls] == ["add_event"]


def _sizes(folder: Path) -> dict[str, int | float | str]:
    tools = f"Tools:\n{list_tools(Registry(_tools(folder)))}"
    return {"setup": ROUTER.setup, "tools": tools, "input": _TASK, "item_output": 45}


EXAMPLE = PatternExample(
    "An event goes into a calendar: out of three tools the right one is picked and filled.",
    lambda folder: ToolCalling(),
    _TASK,
    _is_correct,
    _sizes,
    _tools,
)
