"""How tools look to a model in a conversation: their schemas, the arguments of a call, and a result as text."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any, cast

from bicameral.errors import ToolError
from bicameral.models import ToolCall, ToolSchema
from bicameral.tools import Registry, Tool
from bicameral.types import (
    DateTimeType,
    DateType,
    DictType,
    DurationType,
    ListType,
    OptionalType,
    RecordType,
    TimeType,
    TupleType,
    Type,
    to_plain,
    type_json_schema,
)

MAX_RESULT = 20_000
"""How many characters of a result a model reads; a note says that the rest was cut."""


def tool_schemas(registry: Registry) -> tuple[ToolSchema, ...]:
    """Every tool of a registry for a model to read."""
    return tuple(
        ToolSchema(tool.name, _tool_summary(tool), _tool_parameters(tool)) for tool in _readable_tools(registry)
    )


def list_tools(registry: Registry) -> str:
    """The same for a model that is to plan with them and cannot call them yet."""
    return "\n".join(f"- {tool.signature}: {_tool_summary(tool)}" for tool in _readable_tools(registry)) or "(none)"


def _readable_tools(registry: Registry) -> Iterator[Tool]:
    """The tools that a privileged model may read of.

    A program that describes itself, and whose word the user does not take, could say anything there. Unlike a plan, a
    conversation has no place where neutral names could be bound, so such a tool is left out.
    """
    return (tool for tool in registry if not tool.self_described)


def _tool_summary(tool: Tool) -> str:
    return " ".join(tool.doc.split())[:1000]


def _tool_parameters(tool: Tool) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for argument in tool.arguments:
        described = {"description": argument.doc} if argument.doc else {}
        properties[argument.name] = type_json_schema(argument.type) | described
    return {
        "type": "object",
        "properties": properties,
        "required": [argument.name for argument in tool.arguments if argument.required],
        "additionalProperties": False,
    }


def parse_arguments(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call from JSON: dates and times are read, all else must already fit and is left as it is."""
    types = {argument.name: argument.type for argument in tool.arguments}
    return {name: _parse_value(value, types[name]) if name in types else value for name, value in arguments.items()}


def _parse_value(value: Any, wanted: Type) -> Any:
    match wanted, value:
        case OptionalType(item=item), _:
            return None if value is None else _parse_value(value, item)
        case DateTimeType() | DateType() | TimeType(), str():
            return _parse_moment(value, wanted)
        case DurationType(), int() | float() if not isinstance(value, bool):
            return _parse_duration(value)
        case ListType(item=item), list():
            return [_parse_value(each, item) for each in cast("list[Any]", value)]
        case TupleType(items=items), list() if len(cast("list[Any]", value)) == len(items):
            return [_parse_value(each, item) for each, item in zip(cast("list[Any]", value), items, strict=True)]
        case DictType(value=item), dict():
            return {name: _parse_value(each, item) for name, each in cast("dict[str, Any]", value).items()}
        case RecordType(), dict():
            entries = cast("dict[str, Any]", value)
            fields = {name: wanted.get(name) for name in entries}
            return {
                name: each if (kind := fields[name]) is None else _parse_value(each, kind)
                for name, each in entries.items()
            }
        case _:
            return value


def _parse_moment(text: str, wanted: Type) -> Any:
    kind = dt.datetime if isinstance(wanted, DateTimeType) else dt.date if isinstance(wanted, DateType) else dt.time
    try:
        return kind.fromisoformat(text)
    except ValueError:
        # It stays a text, and the tool refuses it with the type that it wants.
        return text


def _parse_duration(seconds: float) -> Any:
    try:
        return dt.timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return seconds


def render_result(value: Any) -> str:
    """A result as a model reads it: a text as it is, anything else as JSON, cut to a length."""
    text = write_result(value)
    if len(text) <= MAX_RESULT:
        return text
    return f"{text[:MAX_RESULT]}\n… ({len(text) - MAX_RESULT:,} more characters are not shown)"


def write_result(value: Any) -> str:
    """A result as a text, all of it: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_json_default)


def _json_default(value: object) -> Any:
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def read_arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments that a model wrote, as plain JSON."""
    try:
        written = to_plain(call.arguments)
    except TypeError as error:
        raise ToolError("tools.wrong-type", f"these are no arguments: {error}") from None
    if type(written) is not dict:
        raise ToolError("tools.wrong-type", "these are no arguments", expected="an object with the arguments")
    return cast("dict[str, Any]", written)
