"""Reviewing a server: start it in its sandbox, read what it lists, and propose declarations for a person.

Well-known servers have declarations that come with Bicameral. They are proposed where the configured command names the
package: the command is the user's word, and what a server says of itself is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath

from bicameral.display import has_hidden
from bicameral.errors import ToolError
from bicameral.foreign import (
    DeclarationFile,
    Enforced,
    ForeignTool,
    Proposal,
    ToolDeclaration,
    parse_declarations,
    propose_declaration,
    schema_problem,
    with_own_names,
    without_unusable_patterns,
    write_declarations,
)
from bicameral.mcp._connection import ServerConnection
from bicameral.mcp._settings import McpSettings

_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "fetch": ("mcp-server-fetch", "mcp_server_fetch"),
    "filesystem": ("@modelcontextprotocol/server-filesystem", "mcp-server-filesystem"),
    "git": ("mcp-server-git", "mcp_server_git"),
    "memory": ("@modelcontextprotocol/server-memory", "mcp-server-memory"),
    "sqlite": ("mcp-server-sqlite", "mcp_server_sqlite"),
    "time": ("mcp-server-time", "mcp_server_time"),
}
"""By the name of a known server: how a command names its package."""


def known_servers() -> tuple[str, ...]:
    """The servers whose declarations come with Bicameral."""
    return tuple(_PACKAGES)


@cache
def known_declarations(name: str) -> DeclarationFile:
    """The declarations of a well-known server, without pins."""
    text = files("bicameral.mcp").joinpath("known", f"{name}.toml").read_text("utf-8")
    return parse_declarations(text, f"{name}.toml")


def known_server_of(settings: McpSettings) -> str | None:
    """The well-known server that a command names by its package; None for any other."""
    for name, packages in _PACKAGES.items():
        if any(_names_package(word, package) for word in settings.command for package in packages):
            return name
    return None


def _names_package(word: str, package: str) -> bool:
    """Whether a word of a command is a package, a version of it, a program of its name, or a file inside of it."""
    unversioned = re.sub(r"(?<=.)(@|==)[\w.^~*-]+$", "", word)
    return unversioned == package or PurePath(word).name == package or f"/{package}/" in word


@dataclass(frozen=True, slots=True)
class ServerReview:
    """What a server lists, and what is proposed for each of its tools.

    Args:
        name: The name of the server in the configuration.
        known: The well-known server that its command names, if any.
        listed: Every tool as it is listed now.
        proposals: A declaration for each tool that can be used.
        refused: The tools that cannot be used, and why.
        offers: What the server has: `tools`, `resources`, `prompts`.
    """

    name: str
    known: str | None
    listed: tuple[ForeignTool, ...]
    proposals: tuple[Proposal, ...]
    refused: Mapping[str, str]
    offers: frozenset[str]

    @property
    def declared(self) -> DeclarationFile:
        """The proposed declarations as a file."""
        return DeclarationFile(
            version=1,
            server=self.name,
            resources="resources" in self.offers,
            prompts="prompts" in self.offers,
            tools={each.tool.name: each.declaration for each in self.proposals},
        )

    def keeping(self, old: DeclarationFile) -> ServerReview:
        """The same, with what was declared before for the tools that have not changed, or only in their texts."""
        kept = (_keep_declared(each, old.tools.get(each.tool.name)) for each in self.proposals)
        return replace(self, proposals=with_own_names(kept, self.name))

    def write(self, file: Path, *, head: str = "") -> None:
        """Write the declarations and the reviewed listing."""
        write_declarations(file, self.declared, self.listed, head=head)


def _keep_declared(proposal: Proposal, old: ToolDeclaration | None) -> Proposal:
    if old is None or (old.arguments.keys() - proposal.declaration.arguments.keys()):
        return proposal
    declared = old.model_copy(update={"pin": proposal.tool.pin})
    return replace(proposal, declaration=declared, reasons=("as you declared it before",))


async def review_server(
    name: str,
    settings: McpSettings,
    *,
    base: Path,
    environment: Mapping[str, str] | None = None,
    use_descriptions: bool = False,
) -> ServerReview:
    """Start a server, read what it lists, and propose declarations. The server is ended afterwards.

    Args:
        name: The name of the server in the configuration.
        settings: How it is reached.
        base: The working folder.
        environment: Where secrets are looked up.
        use_descriptions: Propose the first line of each description as the line that models read. Only for a server
            whose texts the user has read and takes for their own.
    """
    connection = ServerConnection(name, settings, base=base, environment=environment)
    try:
        offers = await connection.offers()
        listed = await connection.list_tools() if "tools" in offers else ()
    finally:
        await connection.aclose()
    known = known_server_of(settings)
    declared = known_declarations(known).tools if known is not None else {}
    around = Enforced(
        network=not (settings.command and settings.sandbox) or bool(settings.network),
        writes=not (settings.command and settings.sandbox) or bool(settings.write),
    )
    proposals: list[Proposal] = []
    refused: dict[str, str] = {}
    for tool in listed:
        problem = schema_problem(without_unusable_patterns(tool.input_schema))
        if problem is None and tool.output_schema is not None:
            problem = schema_problem(without_unusable_patterns(tool.output_schema))
        if problem is not None:
            refused[tool.name] = problem
            continue
        try:
            proposal = propose_declaration(tool, server=name, around=around, known=declared.get(tool.name))
        except ToolError as error:
            refused[tool.name] = error.message
            continue
        proposals.append(_with_description(proposal) if use_descriptions else proposal)
    return ServerReview(name, known, listed, with_own_names(proposals, name), refused, offers)


def _with_description(proposal: Proposal) -> Proposal:
    line = next((each.strip() for each in proposal.tool.description.splitlines() if each.strip()), "")
    # What a person cannot see is nothing that a person has read.
    if not line or has_hidden(line):
        return proposal
    return replace(proposal, declaration=proposal.declaration.model_copy(update={"doc": line[:200]}))
