"""What a server lists, page by page: tools, resources and prompts, with limits on the whole list.

A page has the limit of a message, and a server decides how many there are: what is kept is counted after each.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bicameral.errors import ToolError
from bicameral.foreign import MAX_TOOLS, ForeignTool, read_listing

if TYPE_CHECKING:
    from mcp import Client

Entry = TypeVar("Entry", bound=dict[str, Any])

_MAX_PAGES = 100
"""Pages of one listing: a server that always has a next page is cut off."""
_MAX_LISTING = 8_000_000
"""Bytes of all tools, resources or prompts of a server, as JSON. As Python values they take twenty times as much."""
_MAX_DOCUMENTS = 10_000

_PARTS = {
    "name": "name",
    "title": "title",
    "description": "description",
    "inputSchema": "input_schema",
    "outputSchema": "output_schema",
    "annotations": "annotations",
}
"""The fields of a tool that are used, by their names in the protocol and here."""


async def list_tools(client: Client) -> tuple[ForeignTool, ...]:
    """All tools that a server lists; `foreign.bad-listing` if they cannot be used."""
    listed: list[dict[str, Any]] = []
    async for page in _pages(lambda cursor: _tool_page(client, cursor)):
        listed += page
        if len(listed) > MAX_TOOLS:
            raise _listing_error("there are too many tools", f"at most {MAX_TOOLS}")
    # In a thread: looking at a large list takes seconds, and all connections share this loop.
    return await asyncio.to_thread(read_listing, map(_tool_facts, listed))


async def list_resources(client: Client) -> list[dict[str, str]]:
    """The addresses, names and media types of the resources of a server."""
    found: list[dict[str, str]] = []

    async def read(cursor: str | None) -> tuple[list[dict[str, str]], str | None]:
        page = await client.list_resources(cursor=cursor, cache_mode="bypass")
        return [
            {"uri": each.uri, "name": each.name, "media": each.mime_type or ""} for each in page.resources
        ], page.next_cursor

    async for page in _pages(read):
        found += page
        _require_few(len(found), "resources")
    return found


async def has_resources(client: Client) -> bool:
    """Whether there is a resource, or a template for the addresses of some."""
    from mcp.shared.exceptions import MCPError

    if (await client.list_resources(cache_mode="bypass")).resources:
        return True
    try:
        return bool((await client.list_resource_templates(cache_mode="bypass")).resource_templates)
    except MCPError:
        # Not every server knows templates.
        return False


async def list_prompts(client: Client) -> list[dict[str, Any]]:
    """The prompts of a server, with the names of their arguments."""
    found: list[dict[str, Any]] = []

    async def read(cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        page = await client.list_prompts(cursor=cursor, cache_mode="bypass")
        return [
            {"name": each.name, "arguments": [argument.name for argument in each.arguments or ()]}
            for each in page.prompts
        ], page.next_cursor

    async for page in _pages(read):
        found += page
        _require_few(len(found), "prompts")
    return found


async def _pages(
    read: Callable[[str | None], Awaitable[tuple[list[Entry], str | None]]],
) -> AsyncIterator[list[Entry]]:
    """The pages of a list, as long as it stays within its limits."""
    cursor: str | None = None
    size = 0
    for _ in range(_MAX_PAGES):
        page, cursor = await read(cursor)
        size += sum(map(_json_size, page))
        if size > _MAX_LISTING:
            raise _listing_error("it is too large", f"at most {_MAX_LISTING:,} bytes")
        yield page
        if cursor is None:
            return
    raise _listing_error(f"it has more than {_MAX_PAGES} pages", "an end")


@cache
def _raw_result() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(dict[str, Any])


async def _tool_page(client: Client, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """A page of tools as the server wrote them: the library's own model leaves out what it does not know."""
    from mcp_types import ListToolsRequest, ListToolsResult, PaginatedRequestParams

    request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))
    raw = cast("dict[str, Any]", await client.session.send_request(request, _raw_result()))
    page = ListToolsResult.model_validate(raw, by_name=False)
    by_identity = {id(tool): facts for tool, facts in zip(page.tools, raw["tools"], strict=True)}
    # It leaves out tools that it could not call, and remembers which arguments of the others are sent as headers.
    complete = cursor is None and page.next_cursor is None
    kept = client.session._absorb_tool_listing(page, complete=complete)  # pyright: ignore[reportPrivateUsage]
    return [by_identity[id(tool)] for tool in kept.tools], page.next_cursor


def _tool_facts(raw: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {ours: raw.get(theirs) for theirs, ours in _PARTS.items()}
    return facts | {"more": {name: value for name, value in raw.items() if name not in _PARTS}}


def _json_size(value: object) -> int:
    try:
        return len(json.dumps(value))
    except RecursionError:
        return _MAX_LISTING + 1


def _require_few(count: int, what: str) -> None:
    if count > _MAX_DOCUMENTS:
        raise _listing_error(f"there are too many {what}", f"at most {_MAX_DOCUMENTS:,}")


def _listing_error(message: str, expected: str) -> ToolError:
    return ToolError("foreign.bad-listing", f"what the server lists cannot be used: {message}", expected=expected)
