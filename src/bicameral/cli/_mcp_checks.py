"""Checks of MCP servers: whether what a server lists now is what was reviewed of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.cli._mcp_reviews import count_text, untrusted_lines
from bicameral.display import terminal_width, visible_line
from bicameral.errors import BicameralError

if TYPE_CHECKING:
    from bicameral.foreign import ToolCheck
    from bicameral.mcp import ServerTools

_SERVERS_AT_ONCE = 4


def tool_check_lines(check: ToolCheck, width: int, *, full: bool = False) -> Iterator[str]:
    """What a person reads of one tool."""
    yield f"  {check.name}  {check.state}"
    if check.changes:
        yield from (f"    {line}" for line in untrusted_lines("\n".join(check.changes), width - 4, full=full))


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """What became of a server since it was reviewed: its tools, or why it could not be asked."""

    name: str
    tools: tuple[ToolCheck, ...] = ()
    error: BicameralError | None = None

    @property
    def ok(self) -> bool:
        return self.error is None and not any(each.differs for each in self.tools)

    def lines(self, *, full: bool = False) -> Iterator[str]:
        """What a person reads of it."""
        if self.error is not None:
            yield f"{self.name}: {visible_line(str(self.error))}"
            return
        yield f"{self.name}: {'as reviewed' if self.ok else 'NOT as reviewed'}, {count_text(len(self.tools), 'tool')}"
        for each in self.tools:
            yield from tool_check_lines(each, terminal_width(), full=full)
        if not self.ok:
            yield f"  `bicameral mcp review {self.name}` shows what it would be now, and asks whether that is right"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            "tools": [each.to_json() for each in self.tools],
            **({} if self.error is None else {"error": self.error.to_json()}),
        }


async def check_servers(servers: list[ServerTools]) -> list[ServerCheck]:
    """Start these servers, compare what they list with what was reviewed, and end them."""
    slots = asyncio.Semaphore(_SERVERS_AT_ONCE)

    async def check(server: ServerTools) -> ServerCheck:
        from bicameral.foreign import ForeignTool, compare_listing, read_reviewed_listing

        async with slots:
            try:
                has_tools = "tools" in await server.connection.offers()
                listed = await server.list_current(fresh=True) if has_tools else dict[str, ForeignTool]()
            except BicameralError as error:
                return ServerCheck(server.name, error=error)
            finally:
                with suppress(BicameralError):
                    await server.connection.aclose()
        reviewed = {} if server.file is None else read_reviewed_listing(server.file)
        return ServerCheck(server.name, compare_listing(server.declared, reviewed, listed))

    return list(await asyncio.gather(*map(check, servers)))
