"""I2, function or tool call: the model picks one tool and its arguments; code makes the call, once.

Use it where a text decides which of a few actions is meant. The model runs nothing: whatever it asks for is checked
against the tool's declaration, even if the provider promises strict arguments, and then policy decides. A model that
has read untrusted text may pick what that text asks for, so its pick is judged as untrusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypedDict, cast

from bicameral.errors import RunError, ToolError
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    Role,
    map_labelled,
)
from bicameral.patterns.strategies import list_tools, parse_arguments, tool_schemas
from bicameral.tools import Origin, Registry, Tool, tool
from bicameral.types import ANY, Field, RecordType

ROUTER = Role(
    "Router",
    "Pick the one tool that does what is asked for and fill in its arguments. If none of them does, pick none and "
    "answer in one short sentence.",
    tier="large",
    job="acting",
    phase="act",
    max_tokens=256,
)
NO_TOOL = "none"
"""The pick of a reply without a tool."""
_REPLY = RecordType((Field("call", ANY),))
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
        if self.tools is not None:
            context.restrict_tools(self.tools)
        if not 0 < len(context.registry) <= MAX_TOOLS:
            raise RunError(
                "pattern.tool-count",
                f"there are {len(context.registry)} tools to pick from",
                expected=f"1 to {MAX_TOOLS}",
                fix="Name those that are needed with `tools`, or split the work (O17).",
            )
        schema = _pick_schema(context.registry)
        tools = context.derive(f"Tools:\n{list_tools(context.registry)}")
        pick = await context.fill(
            self.router,
            task,
            wanted=_REPLY,
            schema=schema,
            check=lambda pick: _pick_fault(pick, context.registry),
            stable=[tools],
            retries=self.retries,
        )
        found, arguments = _parse_pick(context.read(pick)["call"], context.registry)
        if found is None:
            return context.derive(RoutedCall(tool=None, arguments={}, result=arguments["answer"]))
        result = await context.call(found.name, arguments)
        return map_labelled(result, partial(_routed_call, found.name, arguments))


def _pick_schema(registry: Registry) -> dict[str, Any]:
    """The schema of a reply, one call or an answer, for providers that constrain the reply to it."""
    choices = [
        _object_schema({"tool": {"const": each.name}, "arguments": each.parameters}) for each in tool_schemas(registry)
    ]
    choices.append(_object_schema({"tool": {"const": NO_TOOL}, "answer": {"type": "string"}}))
    return _object_schema({"call": {"anyOf": choices}})


def _object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    return whole | {"additionalProperties": False}


def _pick_fault(pick: Mapping[str, Any], registry: Registry) -> str | None:
    """What is wrong with the call in a reply."""
    try:
        _parse_pick(pick["call"], registry)
    except ToolError as error:
        return str(error)
    return None


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
