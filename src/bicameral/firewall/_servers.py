"""The servers behind a firewall: their tools and documents, and the reviews that are made while it runs.

A review that takes a changed tool over is of no use to a client that has to be restarted for it. So the files of
declarations are looked at again and again. What is in them counts only if the configuration does: it is loaded as at
the start, and one that the user has not accepted changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bicameral.errors import BicameralError
from bicameral.firewall._documents import Document, DocumentKind

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.firewall._firewall import Firewall
    from bicameral.firewall._settings import FirewallSettings
    from bicameral.labels import Labelled
    from bicameral.mcp import ServerTools
    from bicameral.tools import Registry, Tool

FOREIGN_TOOLBOXES = ("mcp:", "openapi:")
"""The toolboxes whose tools a client gets. Those of this machine are for plans, which `bicameral mcp serve` offers."""
LOOK_SECONDS = 1.0
"""How often the files are looked at."""


@dataclass(slots=True)
class FirewallServers:
    """The servers of a configuration as the firewall uses them.

    Args:
        config: The configuration.
        servers: The servers, by name.
        own: The tools of the configuration that are those of no MCP server.
        tools: All tools.
    """

    config: Config
    servers: dict[str, ServerTools]
    own: Sequence[Tool]
    tools: Sequence[Tool] = ()
    documents: ServerDocuments = field(init=False)

    def __post_init__(self) -> None:
        self.documents = ServerDocuments(self.servers)

    @classmethod
    def open(cls, config: Config, settings: FirewallSettings, loop: asyncio.AbstractEventLoop) -> FirewallServers:
        """The servers of a configuration, which work on a loop. One without declarations is started for its list."""
        from bicameral.config import open_mcp_servers, open_registry

        servers = {
            server.name: server
            for server in open_mcp_servers(config)
            # One that is hidden anyway need not be started for its list.
            if server.declared is not None or settings.undeclared == "show"
        }
        for server in servers.values():
            server.connection.use_loop(loop)
        opened = cls(config, servers, tuple(open_registry(config.model_copy(update={"mcp": {}}))))
        opened.tools = opened._tools_of(servers)
        return opened

    def registry(self) -> Registry:
        """The tools that clients get."""
        return _client_tools(self.tools)

    def files(self) -> dict[Path, tuple[int, int] | None]:
        """The files with declarations, and whether each has changed: its time and size, None if it is gone."""
        found: dict[Path, tuple[int, int] | None] = {}
        for server in self.servers.values():
            if server.file is not None:
                found[server.file] = None
                with suppress(OSError):
                    about = server.file.stat()
                    found[server.file] = about.st_mtime_ns, about.st_size
        return found

    def take_reviews(self, config: Config) -> Registry:
        """Take over what was reviewed meanwhile, and return the tools that clients get from now on.

        Servers whose settings are others now stay as they are. An error leaves everything as it is.
        """
        from bicameral.mcp import mcp_tools

        beside = config.source.parent if config.source is not None else config.base
        kept = {name: config.mcp[name] for name in self.servers.keys() - self.other_settings(config)}
        declared = {each.name: each.declared for each in mcp_tools(kept, base=config.base, beside=beside)}
        servers = {
            name: replace(server, declared=declared.get(name, server.declared)) for name, server in self.servers.items()
        }
        tools = self._tools_of(servers)
        registry = _client_tools(tools)
        # From here on nothing fails: the documents have the same servers as the tools.
        self.servers.update(servers)
        self.tools = tools
        return registry

    async def aclose(self) -> None:
        """End the servers."""
        for server in self.servers.values():
            await server.connection.aclose()

    def other_settings(self, config: Config) -> set[str]:
        """The servers that have other settings in a configuration, or are not there."""
        return {name for name in self.servers if config.mcp.get(name) != self.config.mcp[name]}

    def _tools_of(self, servers: Mapping[str, ServerTools]) -> list[Tool]:
        from bicameral.foreign import set_aside_mentioning

        tools = [tool for server in servers.values() for tool in server.call_tools()]
        return set_aside_mentioning([*self.own, *tools])


async def follow_reviews(
    servers: FirewallServers,
    firewall: Firewall,
    reload: Callable[[], Config],
    say: Callable[[str], None],
) -> None:
    """Let a firewall use what is reviewed while it runs, until this is cancelled.

    Args:
        servers: Its servers.
        firewall: The firewall.
        reload: Reads the configuration anew, without asking anybody.
        say: Gets a line for the user about what was taken over, and what was not.
    """
    known = tried = servers.files()
    told = ""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if (now := servers.files()) == known:
            continue
        problem, others = await _take_reviews(servers, firewall, reload)
        if not problem:
            known, told = now, ""
            say("the tools are as they are reviewed now")
            if others:
                say(f"other settings of {', '.join(others)} count when the client starts the firewall again")
        elif now == tried and problem != told:
            # Not at the first look: a review writes two files, and what it has written is accepted after that.
            told = problem
            say(f"the review is not taken over: {problem}")
        # Tried again at each look: it may be accepted, or mended, later.
        tried = now


async def _take_reviews(
    servers: FirewallServers, firewall: Firewall, reload: Callable[[], Config]
) -> tuple[str, Sequence[str]]:
    """Why what was reviewed is not taken over, nothing if it is; and the servers that have other settings by now."""
    try:
        config = await asyncio.to_thread(reload)
        if withheld := [each for each in config.withheld if each.startswith("mcp")]:
            return f"{withheld[0]} is not accepted; run `bicameral config accept`", ()
        registry = await asyncio.to_thread(servers.take_reviews, config)
        await firewall.replace_registry(registry)
    except BicameralError as error:
        return str(error), ()
    except Exception as error:
        # Whatever it is: the tools stay as they were reviewed before, and the next look tries again.
        return f"something went wrong here ({type(error).__name__})", ()
    return "", sorted(servers.other_settings(config))


def _client_tools(tools: Sequence[Tool]) -> Registry:
    from bicameral.tools import Registry

    everything = Registry(tools)
    return everything.without(tool.name for tool in everything if not tool.toolbox.startswith(FOREIGN_TOOLBOXES))


class ServerDocuments:
    """Resources and prompts of the servers whose declarations allow them. All of it is untrusted text.

    Args:
        servers: The servers by name; what is there now counts.
    """

    def __init__(self, servers: Mapping[str, ServerTools]) -> None:
        self._servers = servers

    def servers(self, kind: DocumentKind, /) -> Sequence[str]:
        return [name for name, server in self._servers.items() if server.has_documents(kind)]

    def is_outbound(self, server: str, /) -> bool:
        return not self._servers[server].is_confined_to_this_machine

    async def list(self, server: str, kind: DocumentKind, /) -> Labelled[Sequence[Document]]:
        from bicameral.labels import untrusted_value

        connection = self._servers[server].connection
        if kind == "resource":
            found = [Document(each["uri"], each["name"], each["media"]) for each in await connection.list_resources()]
        else:
            # One that wants arguments cannot be read without them.
            listed = await connection.list_prompts()
            found = [Document(each["name"], each["name"]) for each in listed if not each["arguments"]]
        return untrusted_value(cast("Sequence[Document]", tuple(found)), f"mcp:{server}", private=True)

    async def read(self, server: str, kind: DocumentKind, address: str, /) -> Labelled[str]:
        from bicameral.labels import untrusted_value

        connection = self._servers[server].connection
        text = await (connection.read_resource(address) if kind == "resource" else connection.get_prompt(address, {}))
        return untrusted_value(text, f"mcp:{server}", private=True)
