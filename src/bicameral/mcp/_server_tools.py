"""The tools of MCP servers as tools of plans: declared ones without a server, and calls that compare the pin first.

A server with declarations is started by its first call. Its tools are made from the listing that the person reviewed,
as far as that has the hashes of the declarations; whatever the server says then is compared with these hashes before a
tool is called. A server without declarations has to be asked what it has.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bicameral.errors import BicameralError, Place, ToolError, nearest_name
from bicameral.foreign import (
    DeclarationFile,
    ForeignResult,
    ForeignTool,
    ToolDeclaration,
    foreign_tool,
    plain_name,
    read_declarations,
    read_reviewed_listing,
)
from bicameral.mcp._connection import ServerConnection, require_mcp
from bicameral.mcp._grants import FindPlaces
from bicameral.mcp._settings import McpSettings
from bicameral.rates import CallRate
from bicameral.tools import Argument, Origin, Purpose, Tool
from bicameral.types import STR, DictType, Field, ListType, RecordType, StrType

DOCUMENT_TOOLS = ("list_resources", "read_resource", "list_prompts", "read_prompt")
"""What follows the name of a server in the names of the tools that read its documents."""
_RELIST_SECONDS = 60.0
"""How long a listing counts for calls that only read, if the server does not say that it has changed. Before any other
call the server lists anew: what it would then do could not be undone."""


class UnusableServerWarning(UserWarning):
    """A server without declarations could not be asked for its tools, which are left out."""


@dataclass
class ServerTools:
    """One server, its connection, and what was reviewed of it.

    Args:
        connection: The connection; nothing is started before it is used.
        declared: The declarations; None for a server of which nothing was reviewed.
        file: Their file.
    """

    connection: ServerConnection
    declared: DeclarationFile | None = None
    file: Path | None = None
    _listed: Mapping[str, ForeignTool] = field(default_factory=dict[str, ForeignTool])
    _listed_at: tuple[int, float] | None = None
    _rate: CallRate = field(init=False)

    def __post_init__(self) -> None:
        self._rate = CallRate(self.settings.rate, f"the MCP server {self.name!r}")

    @property
    def name(self) -> str:
        return self.connection.name

    @property
    def settings(self) -> McpSettings:
        return self.connection.settings

    async def list_current(self, *, fresh: bool = False) -> Mapping[str, ForeignTool]:
        """What the server lists, by name: as it was compared last, unless that is old or it has changed since."""
        known = self._listed_at
        if known is not None and not fresh:
            generation, when = known
            if generation == self.connection.generation and time.monotonic() - when < _RELIST_SECONDS:
                return self._listed
        listed = await self.connection.list_tools()
        self._listed = {tool.name: tool for tool in listed}
        # The generation of after: the first listing starts the server, which counts as a change.
        self._listed_at = self.connection.generation, time.monotonic()
        return self._listed

    def tools(self) -> Iterator[Tool]:
        """The tools for a registry, those that read its documents included."""
        yield from self.call_tools()
        yield from self._document_tools()

    def call_tools(self) -> Iterator[Tool]:
        """The tools that the server lists, without those that read its documents."""
        if self.declared is None:
            yield from self._undeclared_tools()
            return
        reviewed = read_reviewed_listing(self.file) if self.file is not None else {}
        for name, declaration in self.declared.tools.items():
            if not declaration.use or not self._is_allowed(name):
                continue
            foreign = reviewed.get(name)
            if foreign is None or foreign.pin != declaration.pin:
                raise self._no_pin_error(name, declaration)
            yield self._tool(foreign, declaration)

    def _undeclared_tools(self) -> Iterator[Tool]:
        if self.settings.undeclared == "refuse":
            return
        try:
            listed = run_to_end(self.list_current())
        except BicameralError as error:
            warnings.warn(
                f"the tools of the MCP server {self.name!r} are left out: {error}", UnusableServerWarning, stacklevel=2
            )
            return
        for foreign in listed.values():
            if self._is_allowed(foreign.name):
                yield self._tool(foreign, None)

    def _is_allowed(self, name: str) -> bool:
        return self.settings.allow is None or name in self.settings.allow

    def _tool(self, foreign: ForeignTool, declaration: ToolDeclaration | None) -> Tool:
        seconds = (declaration.timeout if declaration is not None else None) or self.settings.timeout
        limit = seconds + self.settings.start_timeout
        return foreign_tool(
            foreign,
            declaration if declaration is None else declaration.model_copy(update={"timeout": limit}),
            partial(self.call, foreign, seconds, reads=declaration is not None and declaration.effect == "read"),
            server=self.name,
            timeout=limit,
            file=None if self.file is None else str(self.file),
        )

    async def call(
        self, reviewed: ForeignTool, seconds: float, arguments: Mapping[str, Any], *, reads: bool = False
    ) -> ForeignResult:
        """Call a tool, if it still is what was reviewed.

        Args:
            reviewed: The tool as it was reviewed.
            seconds: How long the call may take.
            arguments: By the server's own names.
            reads: Whether it was declared to only read, so that a listing of a minute ago will do.
        """
        self._rate.count_call()
        current = (await self.list_current(fresh=not reads)).get(reviewed.name)
        if current is None or current.pin != reviewed.pin:
            raise self._changed_error(reviewed, current)
        return await self.connection.call_tool(reviewed.name, arguments, seconds=seconds)

    def _changed_error(self, reviewed: ForeignTool, current: ForeignTool | None) -> ToolError:
        if current is None:
            return ToolError(
                "mcp.tool-gone",
                f"the MCP server {self.name!r} does not list {reviewed.name!r} any more, so that it is not called",
                nearest=nearest_name(reviewed.name, self._listed),
                fix=f"`bicameral mcp check {self.name}` shows what it lists.",
            )
        # Its parts alone, in our words: comparing the texts takes long, and none of them belongs into an error.
        parts = ", ".join(reviewed.changed_parts(current))
        return ToolError(
            "mcp.changed",
            f"the tool {reviewed.name!r} of the MCP server {self.name!r} is not the one that was reviewed, so that it "
            f"is not called: what differs is {parts}",
            fix=f"`bicameral mcp check {self.name}` shows the difference; `bicameral mcp review {self.name}` takes it.",
        )

    def _no_pin_error(self, name: str, declaration: ToolDeclaration) -> ToolError:
        why = "has no pin" if not declaration.pin else "was not reviewed as it is pinned"
        return ToolError(
            "mcp.not-reviewed",
            f"the tool {name!r} of the MCP server {self.name!r} {why}",
            place=Place(None if self.file is None else str(self.file)),
            fix=f"Run `bicameral mcp review {self.name}`, or set `use = false` for it.",
        )

    def _document_tools(self) -> Iterator[Tool]:
        """Resources and prompts of a server, as tools that read untrusted documents."""
        prefix = plain_name(self.name)
        # Whoever serves them learns which is read.
        facts: dict[str, Any] = {
            "effect": "read",
            "toolbox": f"mcp:{self.name}",
            "timeout": self.settings.timeout + self.settings.start_timeout,
            "idempotent": True,
            "outbound": not self.is_confined_to_this_machine,
            "attaches": {},
            "declared": True,
        }
        # An address or a value that is sent to another is chosen by nobody else: it could hold what they are to learn.
        purpose: Purpose = "selects" if self.is_confined_to_this_machine else "directs"
        if self.has_documents("resource"):
            entry = RecordType((Field("uri", StrType("url")), Field("name", STR), Field("media", STR)))
            yield Tool(
                name=f"{prefix}_list_resources",
                doc=f"The documents that {self.name} offers.",
                arguments=(),
                result=ListType(entry),
                run=self._list_resources,
                origins={"": Origin("third_party")},
                **facts,
            )
            yield Tool(
                name=f"{prefix}_read_resource",
                doc=f"The text of a document that {self.name} offers.",
                arguments=(Argument("uri", StrType("url"), "The address of the document.", purpose=purpose),),
                result=STR,
                run=self._read_resource,
                origins={"": Origin("third_party")},
                **facts,
            )

        if self.has_documents("prompt"):
            entry = RecordType((Field("name", STR), Field("arguments", ListType(STR))))
            values = Argument("values", DictType(STR), "The values of its arguments.", default={}, purpose=purpose)
            yield Tool(
                name=f"{prefix}_list_prompts",
                doc=f"The prompts that {self.name} offers.",
                arguments=(),
                result=ListType(entry),
                run=self._list_prompts,
                origins={"": Origin("third_party")},
                **facts,
            )
            yield Tool(
                name=f"{prefix}_read_prompt",
                doc=f"The text of a prompt that {self.name} offers.",
                arguments=(Argument("name", STR, "Its name.", purpose=purpose), values),
                result=STR,
                run=self._read_prompt,
                origins={"": Origin("third_party")},
                **facts,
            )

    def has_documents(self, kind: Literal["resource", "prompt"]) -> bool:
        """Whether its resources or prompts may be read: they are declared, and allowed where only some tools are."""
        if self.declared is None:
            return False
        declared = self.declared.resources if kind == "resource" else self.declared.prompts
        return declared and self._is_allowed(f"{kind}s")

    @property
    def is_confined_to_this_machine(self) -> bool:
        """Whether its sandbox keeps it from telling anybody anything."""
        return bool(self.settings.command) and self.settings.sandbox and not self.settings.network

    async def _list_resources(self, arguments: Mapping[str, Any]) -> object:
        self._rate.count_call()
        return await self.connection.list_resources()

    async def _read_resource(self, arguments: Mapping[str, Any]) -> object:
        self._rate.count_call()
        return await self.connection.read_resource(arguments["uri"])

    async def _list_prompts(self, arguments: Mapping[str, Any]) -> object:
        self._rate.count_call()
        return await self.connection.list_prompts()

    async def _read_prompt(self, arguments: Mapping[str, Any]) -> object:
        self._rate.count_call()
        return await self.connection.get_prompt(arguments["name"], arguments["values"])


def run_to_end(work: Any) -> Any:
    """The result of a coroutine, for code that does not await, whether or not a loop runs on this thread."""
    import asyncio
    import threading

    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["value"] = asyncio.run(work)
        except BaseException as error:
            outcome["error"] = error

    # A thread of its own: an agent may be made inside a running loop, and that loop must not be entered again.
    thread = threading.Thread(target=run, name="bicameral-mcp-start", daemon=True)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def mcp_tools(
    servers: Mapping[str, McpSettings],
    *,
    base: Path,
    beside: Path | None = None,
    environment: Mapping[str, str] | None = None,
    places: FindPlaces | None = None,
) -> list[ServerTools]:
    """The configured servers, none of them started.

    Args:
        servers: The settings of each, by its name.
        base: The working folder: relative paths that are granted start here.
        beside: The folder of the configuration: declaration files are found there.
        environment: Where secrets are looked up; by default the environment of this process.
        places: What their sandboxes keep them from, besides what is protected on every machine.

    Example:
        >>> registry = Registry([tool for server in mcp_tools(servers, base=Path.cwd()) for tool in server.tools()])
    """
    found: list[ServerTools] = []
    if servers:
        require_mcp()
    for name, settings in servers.items():
        file = None if settings.tools is None else (beside or base) / settings.tools
        declared = None if file is None else read_declarations(file)
        connection = ServerConnection(name, settings, base=base, environment=environment, places=places)
        found.append(ServerTools(connection, declared, file))
    return found
