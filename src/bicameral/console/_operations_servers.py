"""MCP servers and APIs of the configuration: what of each was reviewed, what has changed, and what is withheld.

Everything comes from the files of the reviews. No server is started and no document is fetched for it: what a server
lists now is compared before each call, and what was refused then is in the journal. Names and descriptions of tools are
untrusted text.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from starlette.responses import Response

from bicameral.console._operations_alerts import recent_figure
from bicameral.console._operations_state import Figure, operations_of, require_all_users
from bicameral.console._pages import PageCall, page_route
from bicameral.console._records import run_address
from bicameral.errors import BicameralError
from bicameral.journal import Journal

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.foreign import DeclarationFile, ForeignTool, ToolCheck
    from bicameral.mcp import McpSettings
    from bicameral.openapi import OpenApiSettings
    from bicameral.tools import Registry

ToolUse = Literal["accepted", "asks", "changed", "lost", "unused", "withheld", "undeclared"]
USE_WORDS: Mapping[ToolUse, tuple[str, str, str]] = {
    "accepted": ("accepted", "allowed", "It is called as it was reviewed, as far as policy allows."),
    "asks": ("asks at every call", "asked", "Nobody has decided about it: a person is asked before every call."),
    "changed": ("changed", "denied", "It is not what was reviewed, and is not called."),
    "lost": ("not to be found", "denied", "What was reviewed is not there any more, so that it is not called."),
    "unused": ("not used", "planned", "It is declared with `use = false`."),
    "withheld": ("withheld", "planned", "It is not in the `allow` of the settings."),
    "undeclared": ("not reviewed", "planned", "It is listed and not declared, so that it is not called."),
}
"""What becomes of a tool: a word, how it is marked, and what that means."""
REFUSED_CODES = frozenset(
    {"mcp.changed", "mcp.tool-gone", "mcp.not-reviewed", "openapi.changed", "openapi.not-reviewed"}
)
MAX_REFUSED = 20
MAX_SAID = 4_000
"""Characters of a description that are shown."""


@dataclass(frozen=True, slots=True)
class ShownTool:
    """One tool or operation of a server.

    Args:
        name: The server's own name for it.
        plan_name: Its name in plans.
        use: What becomes of it.
        effect: What a call does, as it was declared.
        doc: What was declared of it, which models read.
        said: What the server says of it, which no model reads.
        pin: The hash of what was reviewed.
        changes: Lines of the difference.
        is_old_known: Whether the difference is one to what was reviewed, and not everything that is listed.
    """

    name: str
    plan_name: str
    use: ToolUse
    effect: str = ""
    doc: str = ""
    said: str = ""
    pin: str = ""
    changes: Sequence[str] = ()
    is_old_known: bool = True

    @property
    def words(self) -> tuple[str, str, str]:
        return USE_WORDS[self.use]


@dataclass(frozen=True, slots=True)
class ShownServer:
    """A server or an API with its tools.

    Args:
        name: Its name in the configuration.
        kind: `mcp` or `openapi`.
        reached: How it is reached.
        facts: What it may do, as pairs of a word and a value.
        tools: Its tools.
        error: Why it cannot be used as it is.
        is_declared: Whether anything of it was reviewed.
        is_refused: Whether tools that were not reviewed are refused.
        is_document_changed: For an API: whether its document is not the one that was reviewed.
    """

    name: str
    kind: Literal["mcp", "openapi"]
    reached: str
    facts: Sequence[tuple[str, str]]
    tools: Sequence[ShownTool] = ()
    error: BicameralError | None = None
    is_declared: bool = True
    is_refused: bool = False
    is_document_changed: bool = False

    @property
    def changed(self) -> int:
        """How many of its tools are not called although they are wanted."""
        return sum(each.use in ("changed", "lost") for each in self.tools)

    @property
    def is_as_reviewed(self) -> bool:
        return self.error is None and not self.changed and not self.is_document_changed

    @property
    def what(self) -> str:
        return "tool" if self.kind == "mcp" else "operation"


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that was not made since its tool is not as it was reviewed."""

    at: float
    run: str
    part: str
    step: str
    message: str
    fix: str

    @property
    def address(self) -> str:
        return run_address(self.run, self.part)


@dataclass(slots=True)
class ServerFacts:
    """All servers, and the settings that are not used since nobody has accepted them."""

    servers: list[ShownServer] = field(default_factory=list[ShownServer])
    withheld: list[str] = field(default_factory=list[str])


async def servers_page(call: PageCall) -> Response:
    """The servers and their reviews."""
    require_all_users(call)
    found = await servers_figure(call)
    refused = await recent_figure(call, "refused", read_refused)
    return call.page("operations_servers.html", found=found, refused=refused.value)


async def servers_figure(call: PageCall) -> Figure[ServerFacts]:
    """What is known of the servers; only for a token of all users."""
    config, registry = call.context.config, call.context.agent.registry

    async def work() -> ServerFacts:
        return await asyncio.to_thread(read_servers, config, registry)

    return await operations_of(call).figure("servers", work)


def read_servers(config: Config, registry: Registry) -> ServerFacts:
    """The servers of a configuration, by the files of their reviews."""
    beside = config.source.parent if config.source is not None else config.base
    servers = [_mcp_server(name, settings, beside, registry) for name, settings in config.mcp.items()]
    servers += [_api_server(name, settings, beside, registry) for name, settings in config.openapi.items()]
    return ServerFacts(servers, [each for each in config.withheld if each.startswith(("mcp", "openapi"))])


def _mcp_server(name: str, settings: McpSettings, beside: Path, registry: Registry) -> ShownServer:
    from bicameral.foreign import compare_listing, read_declarations, read_reviewed_listing
    from bicameral.mcp import command_text

    reached, facts = command_text(settings), list(_mcp_facts(settings))
    if settings.tools is None:
        tools, refused = _undeclared_tools(f"mcp:{name}", registry), settings.undeclared == "refuse"
        return ShownServer(name, "mcp", reached, facts, tools, is_declared=False, is_refused=refused)
    file = beside / os.path.expanduser(settings.tools)
    try:
        declared = read_declarations(file)
    except BicameralError as error:
        return ShownServer(name, "mcp", reached, facts, error=error)
    reviewed = read_reviewed_listing(file)
    checks = compare_listing(declared, reviewed, reviewed)
    tools = [_shown_tool(name, each, declared, reviewed, reviewed, settings.allow) for each in checks]
    return ShownServer(name, "mcp", reached, facts, tools)


def _mcp_facts(settings: McpSettings) -> Iterator[tuple[str, str]]:
    """What a server may do. Values of variables are left out: only their names are of use here."""
    from bicameral.mcp import confinement_text

    yield "sandbox", confinement_text(settings)
    reached = settings.network if isinstance(settings.network, tuple) else ()
    network = "every address" if settings.network is True else ", ".join(reached)
    named = (
        ("reads", ", ".join(settings.read)),
        ("writes", ", ".join(settings.write)),
        ("reaches", network if settings.url is None else ""),
        ("is given", ", ".join([*settings.env, *(f"{each} (secret)" for each in settings.secrets)])),
        ("is sent", ", ".join([*settings.headers, *(["a token"] if settings.bearer is not None else [])])),
        ("calls", str(settings.rate or "")),
    )
    yield from ((word, value) for word, value in named if value)


def _api_server(name: str, settings: OpenApiSettings, beside: Path, registry: Registry) -> ShownServer:
    from bicameral.foreign import compare_listing, read_declarations, read_reviewed_listing
    from bicameral.openapi import read_stored_document, review_document

    facts = [("keys", ", ".join([*settings.keys, *settings.headers, *(["a token"] if settings.bearer else [])]))]
    facts = [(word, value) for word, value in facts if value]
    if settings.tools is None:
        tools, refused = _undeclared_tools(f"openapi:{name}", registry), settings.undeclared == "refuse"
        return ShownServer(name, "openapi", settings.server, facts, tools, is_declared=False, is_refused=refused)
    file = beside / os.path.expanduser(settings.tools)
    try:
        declared = read_declarations(file)
        document = read_stored_document(beside / os.path.expanduser(settings.document))
        # Operations that were never declared are not looked at: a document may have very many.
        operations = review_document(name, document, names=declared.tools).operations
    except BicameralError as error:
        return ShownServer(name, "openapi", settings.server, facts, error=error)
    listed = {each.tool.name: each.tool for each in operations}
    reviewed = read_reviewed_listing(file)
    checks = compare_listing(declared, reviewed, listed)
    tools = [_shown_tool(name, each, declared, reviewed, listed, settings.allow) for each in checks]
    changed = declared.document != document.digest
    return ShownServer(name, "openapi", settings.server, facts, tools, is_document_changed=changed)


def _shown_tool(
    server: str,
    check: ToolCheck,
    declared: DeclarationFile,
    reviewed: Mapping[str, ForeignTool],
    listed: Mapping[str, ForeignTool],
    allow: tuple[str, ...] | None,
) -> ShownTool:
    from bicameral.foreign import plain_name

    declaration, tool = declared.tools.get(check.name), listed.get(check.name) or reviewed.get(check.name)
    said = "" if tool is None else "\n".join(filter(None, (tool.title, tool.description)))[:MAX_SAID]
    plan_name = (
        declaration.name if declaration is not None else None
    ) or f"{plain_name(server)}_{plain_name(check.name)}"
    if declaration is None:
        return ShownTool(check.name, plan_name, "undeclared", said=said)
    old = reviewed.get(check.name)
    return ShownTool(
        check.name,
        plan_name,
        _tool_use(check, declaration.reviewed, allow),
        declaration.effect,
        declaration.doc,
        said,
        declaration.pin,
        check.changes,
        old is not None and old.pin == declaration.pin,
    )


def _tool_use(check: ToolCheck, decided: bool, allow: tuple[str, ...] | None) -> ToolUse:
    match check.state:
        case "changed":
            return "changed"
        case "gone" | "listing lost":
            return "lost"
        case "not used":
            return "unused"
        case "new" | "left out":
            return "undeclared"
        case "as reviewed":
            if allow is not None and check.name not in allow:
                return "withheld"
            return "accepted" if decided else "asks"


def _undeclared_tools(toolbox: str, registry: Registry) -> list[ShownTool]:
    """The tools of a server of which nothing was reviewed, as far as this process has asked it for them."""
    tools = [tool for tool in registry if tool.toolbox == toolbox]
    return [ShownTool(tool.name, tool.name, "asks", tool.effect) for tool in tools]


def read_refused(journal: Journal, runs: Sequence[str], rounds: Mapping[str, str]) -> list[RefusedCall]:
    """The calls of these runs that were refused since a tool is not as it was reviewed, the newest first."""
    found: list[RefusedCall] = []
    for event in journal.events_with("error", ("step-failed",), runs=runs):
        error: object = event.body["error"]
        facts = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
        if facts.get("code") in REFUSED_CODES:
            whole = rounds.get(event.run, event.run)
            message, fix = str(facts.get("message", "")), str(facts.get("fix") or "")
            found.append(RefusedCall(event.at, whole, event.run, event.step, message, fix))
    return sorted(found, key=lambda each: -each.at)[:MAX_REFUSED]


server_routes = [page_route("/operations/servers", servers_page, "see")]
