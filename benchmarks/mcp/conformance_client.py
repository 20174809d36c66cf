"""The client of `[mcp.NAME]` as the reference conformance suite starts it, with the address of its server.

    python -m benchmarks.mcp.conformance_client http://localhost:1234/mcp

The suite says in the environment what to do, and watches what is sent. Here nobody is there to be asked.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bicameral.errors import BicameralError
from bicameral.foreign import ForeignTool
from bicameral.mcp import McpSettings, ServerConnection

SAMPLES: dict[str, Any] = {"string": "x", "number": 5, "integer": 5, "boolean": True, "array": [], "object": {}}


def planned_calls(scenario: str, context: dict[str, Any], tools: Sequence[ForeignTool]) -> list[tuple[str, Any]]:
    """The calls of a scenario: those that it names, or one of each tool, with arguments that fit its schema."""
    if named := context.get("toolCalls"):
        return [(each["name"], each.get("arguments", {})) for each in named]
    if scenario == "json-schema-2020-12-preservation":
        [schema] = [dict(each.input_schema) for each in tools if each.name == "json_schema_2020_12_tool"]
        return [("json_schema_echo", {"schema": schema})]
    return [
        (
            each.name,
            {
                name: SAMPLES.get(schema.get("type"), "x")
                for name, schema in each.input_schema.get("properties", {}).items()
            },
        )
        for each in tools
    ]


async def main(address: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    connection = ServerConnection("conformance", McpSettings(url=address), base=Path.cwd())
    try:
        tools = await connection.list_tools()
        for name, arguments in planned_calls(os.environ.get("MCP_CONFORMANCE_SCENARIO", ""), context, tools):
            try:
                result = await connection.call_tool(name, arguments)
                print(f"{name}: {result}")
            except BicameralError as error:
                # A tool that fails is a part of some scenarios.
                print(f"{name}: {error}")
    finally:
        await connection.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
