"""Whether MCP servers are what was reviewed: each is started or dialled, asked what it lists now, and ended.

Both the command line and the console ask so: with the confinement and the time limits of the settings, and without
calling a tool. What a server lists is untrusted text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from bicameral.errors import BicameralError
from bicameral.foreign import DeclarationFile, ForeignTool, ToolCheck, compare_listing, read_reviewed_listing
from bicameral.mcp._server_tools import ServerTools

_SERVERS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """What a server listed when it was asked, and how that compares with its review; or why it could not be asked.

    Args:
        name: The name of the server in the configuration.
        at: When it answered, or failed to.
        error: Why it could not be asked.
        listed: What it listed, by the server's own names.
        declared: The declarations with which that was compared; None for a server of which nothing was reviewed.
        reviewed: The listing of the review, by the server's own names.
        tools: What became of each tool since the review.
    """

    name: str
    at: float = field(default_factory=time.time)
    error: BicameralError | None = None
    listed: Mapping[str, ForeignTool] = field(default_factory=dict[str, ForeignTool])
    declared: DeclarationFile | None = None
    reviewed: Mapping[str, ForeignTool] = field(default_factory=dict[str, ForeignTool])
    tools: tuple[ToolCheck, ...] = ()

    @property
    def ok(self) -> bool:
        return self.error is None and not any(each.differs for each in self.tools)

    def compare(self, declared: DeclarationFile | None, reviewed: Mapping[str, ForeignTool]) -> ServerCheck:
        """The same answer, compared with this review."""
        if self.error is not None or (declared == self.declared and _pins(reviewed) == _pins(self.reviewed)):
            # Comparing the texts of a large listing takes long: it is done once for each review.
            return self
        tools = compare_listing(declared, reviewed, self.listed)
        return replace(self, declared=declared, reviewed=reviewed, tools=tools)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            "tools": [each.to_json() for each in self.tools],
            **({} if self.error is None else {"error": self.error.to_json()}),
        }


def _pins(listing: Mapping[str, ForeignTool]) -> dict[str, str]:
    return {name: tool.pin for name, tool in listing.items()}


async def check_servers(
    servers: Iterable[ServerTools], answered: Callable[[ServerCheck], None] | None = None
) -> list[ServerCheck]:
    """Start these servers, compare what they list with what was reviewed, and end them.

    Args:
        servers: The servers. Their connections are closed afterwards.
        answered: Gets the check of each server as soon as there is one.

    Example:
        >>> [each.ok for each in await check_servers(open_mcp_servers(Config.load()))]
        [True]
    """
    slots = asyncio.Semaphore(_SERVERS_AT_ONCE)

    async def check(server: ServerTools) -> ServerCheck:
        async with slots:
            found = await _check_server(server)
        if answered is not None:
            answered(found)
        return found

    # A group and no `gather`: when it is cancelled, or one fails, no server is left running.
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(check(server)) for server in servers]
    return [task.result() for task in tasks]


async def _check_server(server: ServerTools) -> ServerCheck:
    """Start one server, compare what it lists with what was reviewed, and end it."""
    try:
        has_tools = "tools" in await server.connection.offers()
        listed = await server.list_current(fresh=True) if has_tools else dict[str, ForeignTool]()
    except BicameralError as error:
        return ServerCheck(server.name, error=error)
    finally:
        with suppress(BicameralError):
            await server.connection.aclose()
    # In a thread: comparing a large listing line by line takes long, and a server decides how large it is.
    return await asyncio.to_thread(_compare_with_review, server, listed)


def _compare_with_review(server: ServerTools, listed: Mapping[str, ForeignTool]) -> ServerCheck:
    reviewed = {} if server.file is None else read_reviewed_listing(server.file)
    tools = compare_listing(server.declared, reviewed, listed)
    return ServerCheck(server.name, listed=listed, declared=server.declared, reviewed=reviewed, tools=tools)
