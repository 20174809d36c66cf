"""The configuration of the firewall for some servers, made as `bicameral mcp add --yes` makes it.

Each server is started and read, declarations are proposed, and what cannot be used is left out. Of the honest servers a
person has then declared what the tools do; of a hostile one, what is proposed is taken as it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bicameral.cli._mcp_reviews import usable_server
from bicameral.cli._mcp_tables import settings_table, with_table
from bicameral.foreign import DeclarationFile, ForeignTool, ToolDeclaration, write_declarations
from bicameral.mcp import McpSettings, mcp_tools, review_server

from .specification import Server

_Reviewed = tuple[DeclarationFile, tuple[ForeignTool, ...]]
_reviewed: dict[str, _Reviewed] = {}
"""Reviews by what a server lists: that of an honest server is the same in every scenario."""


@dataclass(slots=True)
class Configuration:
    """A `bicameral.toml` to which servers are added, in a folder beside the one that they may write.

    In a folder with a configuration a server could make no new files.
    """

    world: Path
    text: str = ""
    tables: dict[str, McpSettings] = field(default_factory=dict[str, McpSettings])

    @property
    def folder(self) -> Path:
        return self.world.parent / "configuration"

    async def add(self, name: str, settings: McpSettings, declared: Mapping[str, Mapping[str, Any]]) -> None:
        """Start a server, read it, and take what is proposed, but for the tools that a person has declared."""
        reviewed = await self.review(name, settings, declared)
        self.add_reviewed(name, settings, reviewed)

    async def review(self, name: str, settings: McpSettings, declared: Mapping[str, Mapping[str, Any]]) -> _Reviewed:
        review = await review_server(name, settings, base=self.world)
        usable = usable_server(settings, review, self._names()).declared
        tools = dict(usable.tools)
        for tool, facts in declared.items():
            if tool in tools:
                known = {"pin": tools[tool].pin, "doc": tools[tool].doc}
                tools[tool] = ToolDeclaration.model_validate(known | dict(facts))
        return usable.model_copy(update={"tools": tools}), review.listed

    def add_reviewed(self, name: str, settings: McpSettings, reviewed: _Reviewed | None) -> None:
        """Add a server with its declarations, or without any."""
        if reviewed is not None:
            write_declarations(self.folder / "mcp" / f"{name}.toml", *reviewed)
            settings = settings.model_copy(update={"tools": f"mcp/{name}.toml"})
        self.tables[name] = settings
        self.text = with_table(self.text, name, settings_table(settings), self.file)

    @property
    def file(self) -> Path:
        return self.folder / "bicameral.toml"

    def write(self) -> Path:
        self.folder.mkdir(exist_ok=True)
        self.file.write_text(self.text, "utf-8")
        return self.file

    def _names(self) -> set[str]:
        """The names of the tools of the servers that were added before."""
        known = {name: each for name, each in self.tables.items() if each.tools is not None}
        servers = mcp_tools(known, base=self.world, beside=self.folder)
        return {tool.name for server in servers for tool in server.tools()}


async def write_config(folder: Path, servers: Sequence[Server]) -> Path:
    """Write `bicameral.toml` and a declaration file for each server of a scenario that was reviewed."""
    written = Configuration(folder)
    for server in servers:
        settings = server_settings(server, folder)
        reviewed = await _review(server, settings, written) if server.reviewed else None
        written.add_reviewed(server.name, settings, reviewed)
    return written.write()


def firewall_command(config: Path, *, undeclared: str = "hide") -> list[str]:
    """The command that starts the firewall."""
    return [
        *(sys.executable, "-m", "bicameral.cli", "mcp", "firewall"),
        *("--config", str(config), "--folder", str(config.parent), "--undeclared", undeclared),
    ]


def server_settings(server: Server, folder: Path) -> McpSettings:
    """A server of others has a network, as most have; one of the user's own only has its folder."""
    return McpSettings.model_validate(
        {
            "command": server.command(folder),
            "read": [str(folder)],
            "write": [str(folder)],
            "network": not server.declared,
            "timeout": server.timeout,
            "start_timeout": server.timeout,
            "show": server.show,
            "undeclared": server.undeclared,
        }
    )


async def _review(server: Server, settings: McpSettings, written: Configuration) -> _Reviewed:
    # Everything that a review depends on: the names of other servers' tools count where one is taken.
    facts = [server.name, server.spec["phases"][server.first], server.spec.get("page"), dict(server.declared)]
    key = json.dumps([*facts, sorted(written.tables)])
    if key not in _reviewed:
        # When it was added it was as harmless as it could be.
        added = Server(
            server.name,
            {"phases": [server.spec["phases"][server.first]], "page": server.spec.get("page", 0)},
        )
        added.write(written.world)
        _reviewed[key] = await written.review(server.name, settings, server.declared)
        server.write(written.world)
        (written.world / f"{server.name}.log").unlink(missing_ok=True)
    return _reviewed[key]
