"""Checks of MCP servers as text: whether what a server lists now is what was reviewed of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bicameral.cli._mcp_reviews import count_text, untrusted_lines
from bicameral.display import terminal_width, visible_line

if TYPE_CHECKING:
    from bicameral.foreign import ToolCheck
    from bicameral.mcp import ServerCheck


def tool_check_lines(check: ToolCheck, width: int, *, full: bool = False) -> Iterator[str]:
    """What a person reads of one tool."""
    yield f"  {check.name}  {check.state}"
    if check.changes:
        yield from (f"    {line}" for line in untrusted_lines("\n".join(check.changes), width - 4, full=full))


def server_check_lines(check: ServerCheck, *, full: bool = False) -> Iterator[str]:
    """What a person reads of one server."""
    if check.error is not None:
        yield f"{check.name}: {visible_line(str(check.error))}"
        return
    yield f"{check.name}: {'as reviewed' if check.ok else 'NOT as reviewed'}, {count_text(len(check.tools), 'tool')}"
    for each in check.tools:
        yield from tool_check_lines(each, terminal_width(), full=full)
    if not check.ok:
        yield f"  `bicameral mcp review {check.name}` shows what it would be now, and asks whether that is right"
