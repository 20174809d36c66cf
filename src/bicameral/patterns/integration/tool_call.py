"""I2, function or tool call: the model is shown tools and picks one with its arguments; code does the rest, once.

Use it where words decide which action it is, out of a few. The model runs nothing: whatever it asks for is held to the
tool's declaration, whichever provider promised strict arguments, and then policy decides. A model that has read a
stranger's text picks as that stranger would, so what it picks is judged as his wish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypedDict, cast

from bicameral.boundary import filled
from bicameral.errors import RunError, ToolError
from bicameral.strategies import arguments_of, listed, schemas
from bicameral.tools import Origin, Registry, Tool, tool
from bicameral.types import ANY, Field, RecordType

from ..kernel import Answered, Example, Labelled, Part, Pattern, Role, Stage, changed, said

ROUTER = Role(
    "Router",
    "Pick the one tool that does what is asked for and fill in its arguments. If none of them does, pick none and "
    "answer in one short sentence.",
    tier="large",
    job="acting",
    phase="act",
    max_tokens=256,
)
NONE = "none"
"""What is picked where no tool is."""
_REPLY = RecordType((Field("call", ANY),))
MOST_TOOLS = 15
"""With more of them the wrong one is picked too often."""


class Routed(TypedDict):
    """What came of it: the tool that was called and with what, or no tool and a text as the result."""

    tool: str | None
    arguments: dict[str, Any]
    result: Any


@dataclass(frozen=True)
class ToolCalling(Pattern[[Labelled[str]], Routed]):
    """One call of a tool, or an answer in words. `tools` are the names of those that are shown; left out: all.

    Example:
        >>> outcome = await ToolCalling().run(desk, said("Put lunch with Ada into my calendar: 5 March, 12 o'clock"))
        >>> outcome.value["tool"]
        'add_event'
    """

    id: ClassVar[str] = "I2"
    retries: int = 1
    tools: tuple[str, ...] | None = None
    router: Role = ROUTER

    async def on(self, stage: Stage, /, task: Labelled[str]) -> Labelled[Routed]:
        if self.tools is not None:
            stage.keep_tools(self.tools)
        _check_count(stage.registry)
        schema = _schema(stage.registry)
        tools = stage.give(f"Tools:\n{listed(stage.registry)}")
        wrong: tuple[Part, ...] = ()
        for left in range(self.retries, -1, -1):
            reply = await stage.ask(self.router, task, *wrong, stable=[tools], schema=schema)
            try:
                found, arguments = _picked(stage.read(reply), stage.registry)
            except ToolError as error:
                stage.note("call-rejected", code=error.code, retries=left)
                if left == 0:
                    raise
                # It says only what the model itself wrote and what tools there are.
                wrong = ("\n\nYour last reply does not fit: ", stage.give(str(error)))
                continue
            if found is None:
                return stage.give(Routed(tool=None, arguments={}, result=arguments["answer"]))
            given = await stage.call(found.name, arguments)
            return changed(given, partial(_routed, found.name, arguments))
        raise ToolError("tools.wrong-type", "nothing was asked for")


def _schema(registry: Registry) -> dict[str, Any]:
    """One call of one of the tools, or an answer: what a reply is held to while it is written, if the provider can."""
    choices = [_choice(each.name, "arguments", each.parameters) for each in schemas(registry)]
    choices.append(_choice(NONE, "answer", {"type": "string"}))
    return _object({"call": {"anyOf": choices}})


def _choice(tool: str, field: str, schema: dict[str, Any]) -> dict[str, Any]:
    return _object({"tool": {"const": tool}, field: schema})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    return whole | {"additionalProperties": False}


def _picked(reply: str, registry: Registry) -> tuple[Tool | None, dict[str, Any]]:
    """The tool and the arguments that a reply means, or no tool and the answer; held to the declaration in any case."""
    try:
        call = filled(reply, _REPLY)["call"]
    except ValueError as error:
        raise ToolError("tools.wrong-type", f"this is no call: {error}") from None
    match call:
        case {"tool": str(name), "answer": str(), **others} if name == NONE and not others:
            return None, call
        case {"tool": str(name), "arguments": dict(), **others} if not others:
            found = registry[name[:60]]
            arguments = arguments_of(found, cast("dict[str, Any]", call["arguments"]))
            found.bind(arguments)
            return found, arguments
        case _:
            raise ToolError("tools.wrong-type", "this is no call", expected="a tool and its arguments, or an answer")


def _routed(tool: str, arguments: dict[str, Any], result: Any) -> Routed:
    return Routed(tool=tool, arguments=arguments, result=result)


def _check_count(registry: Registry) -> None:
    if not 0 < len(registry) <= MOST_TOOLS:
        raise RunError(
            "pattern.tool-count",
            f"there are {len(registry)} tools to pick from",
            expected=f"1 to {MOST_TOOLS}",
            fix="Name those that are needed with `tools`, or split the work (O17).",
        )


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


def _good(outcome: Answered[Routed]) -> bool:
    value = outcome.value
    given = value["arguments"]
    right = value["tool"] == "add_event" and given["day"] == date(2027, 3, 5) and given["hour"] == 12
    return right and "ada" in given["title"].lower() and [each.tool for each in outcome.called] == ["add_event"]


def _sizes(folder: Path) -> dict[str, int | float | str]:
    tools = f"Tools:\n{listed(Registry(_tools(folder)))}"
    return {"setup": ROUTER.setup, "tools": tools, "input": _TASK, "item_output": 45}


EXAMPLE = Example(
    "An event goes into a calendar: out of three tools the right one is picked and filled.",
    lambda folder: ToolCalling(),
    lambda folder: (said(_TASK),),
    _good,
    _sizes,
    _tools,
)
