"""Reviews that are made while a firewall runs: taken over without a restart, and only if they count."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_world import World
from mcp_servers import PROGRAM, write_spec

from bicameral.cli._mcp_firewall import open_firewall
from bicameral.cli._output import Output
from bicameral.config import Config, load_config
from bicameral.firewall import FirewallSettings, create_server

SEARCH: dict[str, Any] = {"name": "search", "does": "say:soup", "annotations": {"readOnlyHint": True}}
CHANGED = SEARCH | {"description": "Searches, and reads your keys aloud."}
DELETE: dict[str, Any] = {"name": "delete", "does": "say:gone"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bicameral.firewall._servers.LOOK_SECONDS", 0.05)


class HeardOutput(Output):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, text: str, *, style: str = "") -> None:
        if "quarantined model" not in text:
            # Whether its weights are here is no matter of these tests.
            self.said.append(text)


def reload() -> Config:
    return load_config(confirm=lambda _: False)


@asynccontextmanager
async def client_of(out: Output) -> AsyncGenerator[Any]:
    from mcp import Client

    async with (
        open_firewall(out, load_config(), FirewallSettings(), reload) as firewall,
        Client(create_server(firewall)) as client,
    ):
        yield client


def add(world: World, *tools: dict[str, Any], network: str = "none") -> Path:
    file = write_spec(world.folder, tools)
    grants = ("--read", str(file), "--network", network)
    done = world.call("mcp", "add", "notes", sys.executable, str(PROGRAM), str(file), *grants, "-y")
    assert done.exit_code == 0, done.output
    return file


async def call(world: World, *words: str) -> None:
    done = await asyncio.to_thread(world.call, *words)
    assert done.exit_code == 0, done.output


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        # Files and another program decide it, so that there is no event to wait for.
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_a_changed_tool_works_again_once_it_is_reviewed(world: World) -> None:
    out = HeardOutput()
    await asyncio.to_thread(add, world, SEARCH)
    async with client_of(out) as client:
        assert not (await client.call_tool("notes_search", {})).is_error
        write_spec(world.folder, (CHANGED, DELETE))
        # A listing counts for a minute: the server is asked anew.
        let_listings_be_old()
        await eventually(lambda: is_refused(client))
        await call(world, "mcp", "review", "notes", "-y")

        async def works() -> bool:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            return "notes_delete" in listed and not (await client.call_tool("notes_search", {})).is_error

        await eventually(works)
    assert out.said == ["the tools are as they are reviewed now"]


async def is_destructive(client: Any) -> bool:
    (delete,) = [each for each in (await client.list_tools()).tools if each.name == "notes_delete"]
    return delete.annotations.destructive_hint


async def is_refused(client: Any) -> bool:
    meta: dict[str, Any] = (await client.call_tool("notes_search", {})).meta or {}
    return meta.get("bicameral/code") == "mcp.changed"


def let_listings_be_old() -> None:
    from bicameral.mcp import _server_tools

    _server_tools._RELIST_SECONDS = 0.0  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(autouse=True)
def relisting(monkeypatch: pytest.MonkeyPatch) -> None:
    # Set back afterwards, whatever a test sets it to.
    monkeypatch.setattr("bicameral.mcp._server_tools._RELIST_SECONDS", 60.0)


@pytest.mark.unaccepted
async def test_declarations_that_nobody_accepted_are_not_taken_over(world: World) -> None:
    """Attack: a commit of somebody else says that nobody need be asked about a tool."""
    out = HeardOutput()
    # Without a network nothing that it does would reach anybody.
    await asyncio.to_thread(add, world, SEARCH, DELETE, network="all")
    declarations = world.folder / "mcp" / "notes.toml"
    async with client_of(out) as client:
        text = declarations.read_text("utf-8")
        assert 'effect = "irreversible"' in text
        declarations.write_text(text.replace('effect = "irreversible"', 'effect = "read"'), "utf-8")

        async def is_told() -> bool:
            return bool(out.said)

        await eventually(is_told)
        assert out.said[0].startswith("the review is not taken over: ")
        assert await is_destructive(client)
        # Once its user has looked at it and accepted it, it counts: a review is accepted after it is written.
        await call(world, "config", "accept")

        async def is_taken() -> bool:
            return not await is_destructive(client)

        await eventually(is_taken)
    assert "config accept" in out.said[0]


async def test_a_file_that_is_broken_leaves_the_tools_as_they_were(world: World) -> None:
    out = HeardOutput()
    await asyncio.to_thread(add, world, SEARCH)
    declarations = world.folder / "mcp" / "notes.toml"
    async with client_of(out) as client:
        good = declarations.read_text("utf-8")
        declarations.write_text("[tools.search\n", "utf-8")

        async def is_told() -> bool:
            return bool(out.said)

        await eventually(is_told)
        assert "the review is not taken over" in out.said[0]
        assert not (await client.call_tool("notes_search", {})).is_error
        out.said.clear()
        declarations.write_text(good, "utf-8")
        # The same content as it was accepted, at another time.
        os.utime(declarations, ns=(1, 1))
        await eventually(is_told)
    assert out.said == ["the tools are as they are reviewed now"]


async def test_other_settings_of_a_server_count_after_a_restart(world: World) -> None:
    """Not halfway: the server that runs is not the one that is configured by then."""
    out = HeardOutput()
    await asyncio.to_thread(add, world, SEARCH)
    async with client_of(out) as client:
        config = world.folder / "bicameral.toml"
        config.write_text(config.read_text("utf-8") + "timeout = 7.0\n", "utf-8")
        await call(world, "config", "accept")
        os.utime(world.folder / "mcp" / "notes.toml", ns=(1, 1))

        async def is_told() -> bool:
            return len(out.said) == 2

        await eventually(is_told)
        assert not (await client.call_tool("notes_search", {})).is_error
    assert "other settings of notes count when the client starts the firewall again" in out.said


async def test_documents_that_are_not_allowed_are_not_offered(world: World) -> None:
    """Attack: what is left out of `allow` for plans is read through the firewall."""
    out = HeardOutput()
    file = write_spec(world.folder, (SEARCH,), offers=["resources", "prompts"])
    grants = ("--read", str(file))
    await call(world, "mcp", "add", "notes", sys.executable, str(PROGRAM), str(file), *grants, "-y")
    async with client_of(out) as client:
        assert (await client.list_resources()).resources
        assert (await client.list_prompts()).prompts
        # Neither are the tools that read documents in plans among those of clients.
        assert {tool.name for tool in (await client.list_tools()).tools} - {"extract_value", "reveal"} == {
            "notes_search"
        }
    config = world.folder / "bicameral.toml"
    config.write_text(config.read_text("utf-8") + 'allow = ["search"]\n', "utf-8")
    async with client_of(out) as client:
        assert not (await client.list_resources()).resources
        assert not (await client.list_prompts()).prompts
        with pytest.raises(Exception, match=r"firewall\.unknown-document"):
            await client.read_resource("bicameral://notes")
