"""Checks of MCP servers: whether what a server lists now is what was reviewed of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bicameral.cli._mcp_reviews import count_text, untrusted_lines
from bicameral.display import terminal_width, visible_line
from bicameral.errors import BicameralError

if TYPE_CHECKING:
    from bicameral.foreign import DeclarationFile, ForeignTool
    from bicameral.mcp import ServerTools

ToolState = Literal["as reviewed", "changed", "gone", "new", "listing lost", "not used", "left out"]
"""`listing lost`: what was reviewed is not there any more, so that no tool can be made of it. `not used`: declared with
`use = false`. `left out`: seen at the review, as it is now, and not declared."""
_DIFFERS = ("changed", "gone", "new", "listing lost")
_SERVERS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """What became of one tool since it was reviewed, with the lines that differ. They are the server's own text."""

    name: str
    state: ToolState
    changes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        return self.state in _DIFFERS

    def lines(self, width: int, *, full: bool = False) -> Iterator[str]:
        yield f"  {self.name}  {self.state}"
        if self.changes:
            yield from (f"    {line}" for line in untrusted_lines("\n".join(self.changes), width - 4, full=full))

    def to_json(self) -> dict[str, Any]:
        return {"tool": self.name, "state": self.state, **({"changes": list(self.changes)} if self.changes else {})}


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
            yield from each.lines(terminal_width(), full=full)
        if not self.ok:
            yield f"  `bicameral mcp review {self.name}` shows what it would be now, and asks whether that is right"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            "tools": [each.to_json() for each in self.tools],
            **({} if self.error is None else {"error": self.error.to_json()}),
        }


def compare_listing(
    declared: DeclarationFile | None, reviewed: Mapping[str, ForeignTool], listed: Mapping[str, ForeignTool]
) -> tuple[ToolCheck, ...]:
    """Every tool that is declared or listed, with what became of it.

    Args:
        declared: The declarations; None for a server of which nothing was reviewed.
        reviewed: The listing as it was reviewed, to show differences. What counts are the hashes in the declarations.
        listed: The listing as it is now.
    """
    names = dict.fromkeys((*(() if declared is None else declared.tools), *listed))
    return tuple(_compare_tool(name, declared, reviewed.get(name), listed.get(name)) for name in names)


def _compare_tool(
    name: str, declared: DeclarationFile | None, reviewed: ForeignTool | None, listed: ForeignTool | None
) -> ToolCheck:
    from bicameral.foreign import listing_changes

    declaration = None if declared is None else declared.tools.get(name)
    if declaration is None:
        # One that was seen and could not be used is no news as long as it stays what it was.
        seen = declared is not None and reviewed is not None and listed is not None and reviewed.pin == listed.pin
        return ToolCheck(name, "left out" if seen else "new")
    if not declaration.use:
        return ToolCheck(name, "not used")
    if listed is None:
        return ToolCheck(name, "gone")
    known = reviewed if reviewed is not None and reviewed.pin == declaration.pin else None
    if listed.pin == declaration.pin:
        return ToolCheck(name, "listing lost" if known is None else "as reviewed")
    return ToolCheck(name, "changed", tuple(listing_changes(known, listed)))


async def check_servers(servers: list[ServerTools]) -> list[ServerCheck]:
    """Start these servers, compare what they list with what was reviewed, and end them."""
    slots = asyncio.Semaphore(_SERVERS_AT_ONCE)

    async def check(server: ServerTools) -> ServerCheck:
        from bicameral.foreign import ForeignTool, read_reviewed_listing

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
