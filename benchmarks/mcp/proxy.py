"""A proxy that only passes tools and calls on: `python proxy.py COMMAND...`. What the second way alone costs.

It is made of the parts of the official SDK, and checks, records and decides nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def main(command: list[str]) -> None:
    """Serve the tools of a server until the input ends."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(stdio_client(parameters)) as behind:

        async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=(await behind.list_tools()).tools)

        async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            return await behind.call_tool(params.name, params.arguments)

        server = Server[Any]("proxy", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
