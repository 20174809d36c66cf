"""MCP servers and APIs of the configuration: what of each was reviewed, what has changed, and what is withheld.

To show a page no server is started and no document is fetched: it has the files of the reviews, and what MCP servers
listed when somebody last had them asked. What a server lists is compared before each call, too, and what was refused
then is in the journal. Names and descriptions of tools are untrusted text.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from starlette.responses import Response

from bicameral.console._operations_alerts import recent_figure
from bicameral.console._operations_asking import asking_routes
from bicameral.console._operations_state import AskedServer, Figure, operations_of, require_all_users
from bicameral.console._pages import PageCall, page_route
from bicameral.console._records import run_address
from bicameral.errors import BicameralError
from bicameral.journal import Journal

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.foreign import DeclarationFile, ForeignTool, ToolCheck
    from bicameral.mcp import McpSettings, ServerCheck
    from bicameral.openapi import OpenApiSettings
    from bicameral.tools import Registry

ToolUse = Literal["accepted", "asks", "changed", "removed", "lost", "unused", "withheld", "new", "undeclared"]
USE_WORDS: Mapping[ToolUse, tuple[str, str, str]] = {
    "accepted": ("accepted", "allowed", "It is called as it was reviewed, as far as policy allows."),
    "asks": ("asks at every call", "asked", "Nobody has decided about it: a person is asked before every call."),
    "changed": ("changed", "denied", "It is not what was reviewed, and is not called."),
    "removed": ("removed", "denied", "It is not listed any more, so that it is not called."),
    "lost": ("review lost", "denied", "What was reviewed of it is not stored any more, so that it is not called."),
    "unused": ("not used", "planned", "It is declared with `use = false`."),
    "withheld": ("withheld", "planned", "It is not in the `allow` of the settings."),
    "new": ("new", "denied", "It is listed and was not at the review, so that it is not called."),
    "undeclared": ("not reviewed", "planned", "It is listed and not declared, so that it is not called."),
}
"""What becomes of a tool: a word, how it is marked, and what that means."""
DIFFERENT_USES = frozenset[ToolUse]({"changed", "removed", "lost", "new"})
ServerState = Literal[
    "unusable", "no answer", "not reviewed", "damaged", "differs", "not asked", "outdated", "as reviewed"
]
STATE_WORDS: Mapping[ServerState, tuple[str, str]] = {
    "unusable": ("cannot be used", "denied"),
    "no answer": ("no answer", "failed"),
    "not reviewed": ("not reviewed", "asked"),
    "damaged": ("review not intact", "denied"),
    "differs": ("not as reviewed", "denied"),
    "not asked": ("review intact, not asked", "planned"),
    "outdated": ("review intact, not asked since", "planned"),
    "as reviewed": ("as reviewed", "allowed"),
}
"""What is known of a server: in words, and how that is marked. Nothing is claimed that nobody has looked at."""
REFUSED_CODES = frozenset(
    {"mcp.changed", "mcp.tool-gone", "mcp.not-reviewed", "openapi.changed", "openapi.not-reviewed"}
)
MAX_REFUSED = 20
MAX_SAID = 4_000
"""Characters of a description that are shown."""
MAX_SERVER_TEXT = 200_000
"""Characters of all texts of one server that are shown: how many it has, and what it changes, is up to the server."""
MORE_TEXT = "… more than is shown here: see it at the command line"


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
        parts: In what it differs from what was reviewed, in our words.
        changes: Lines of the difference.
        is_old_known: Whether the difference is one to what was reviewed, and not everything that is listed.
        is_declared: Whether somebody has declared it; the name of any other is untrusted text.
    """

    name: str
    plan_name: str
    use: ToolUse
    effect: str = ""
    doc: str = ""
    said: str = ""
    pin: str = ""
    parts: Sequence[str] = ()
    changes: Sequence[str] = ()
    is_old_known: bool = True
    is_declared: bool = True

    @property
    def words(self) -> tuple[str, str, str]:
        return USE_WORDS[self.use]


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """When a server was last asked what it lists, by whom, and why it did not say.

    Args:
        at: When it answered, or failed to.
        by: Who asked.
        error: Why it could not be asked.
        is_older: Whether its present review is newer and differs, so that the answer says nothing about it.
    """

    at: float
    by: str
    error: BicameralError | None = None
    is_older: bool = False


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
        answer: For an MCP server that was asked: when, by whom, and why it did not answer.
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
    answer: ShownAnswer | None = None

    @property
    def is_compared(self) -> bool:
        """Whether what it lists was compared with its review; an API lists what the stored copy of its document has."""
        answer = self.answer
        return self.kind == "openapi" or (answer is not None and answer.error is None and not answer.is_older)

    @property
    def state(self) -> ServerState:
        """What is known of it."""
        if self.error is not None:
            return "unusable"
        if self.answer is not None and self.answer.error is not None:
            return "no answer"
        if not self.is_declared:
            return "not reviewed"
        if self.is_document_changed or any(each.use in DIFFERENT_USES for each in self.tools):
            return "differs" if self.is_compared else "damaged"
        if self.is_compared:
            return "as reviewed"
        return "not asked" if self.answer is None else "outdated"

    @property
    def words(self) -> tuple[str, str]:
        return STATE_WORDS[self.state]

    @property
    def needs_review(self) -> bool:
        """Whether it takes a review to put it right."""
        return self.state in ("unusable", "damaged", "differs")

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
    """The servers and their reviews; the same part of the page comes anew while they are being asked."""
    require_all_users(call)
    found = await servers_figure(call)
    refused = await recent_figure(call, "refused", read_refused)
    # In a thread: servers decide how much they list, and a large page takes long to render.
    return await asyncio.to_thread(
        call.page,
        "operations_servers_part.html" if call.is_partial else "operations_servers.html",
        found=found,
        refused=refused.value,
        asking=operations_of(call).round,
        can_ask=bool(call.context.config.mcp),
    )


async def servers_figure(call: PageCall) -> Figure[ServerFacts]:
    """What is known of the servers; only for a token of all users."""
    config, registry, operations = call.context.config, call.context.agent.registry, operations_of(call)

    async def work() -> ServerFacts:
        return await asyncio.to_thread(read_servers, config, registry, dict(operations.asked))

    return await operations.figure(("servers", operations.answers), work)


def read_servers(config: Config, registry: Registry, asked: Mapping[str, AskedServer] | None = None) -> ServerFacts:
    """The servers of a configuration, by the files of their reviews and by what they listed when they were asked."""
    beside, answers = config.source.parent if config.source is not None else config.base, asked or {}
    servers = [
        _mcp_server(name, settings, beside, registry, answers.get(name)) for name, settings in config.mcp.items()
    ]
    servers += [_api_server(name, settings, beside, registry) for name, settings in config.openapi.items()]
    return ServerFacts(servers, [each for each in config.withheld if each.startswith(("mcp", "openapi"))])


def _mcp_server(
    name: str, settings: McpSettings, beside: Path, registry: Registry, asked: AskedServer | None
) -> ShownServer:
    from bicameral.foreign import read_declarations, read_reviewed_listing
    from bicameral.mcp import command_text

    answer = None if asked is None else ShownAnswer(asked.check.at, asked.by, asked.check.error)
    shown = ShownServer(name, "mcp", command_text(settings), list(_mcp_facts(settings)), answer=answer)
    if settings.tools is None:
        listed = asked.check.listed if asked is not None and asked.check.error is None else None
        tools = _undeclared_tools(f"mcp:{name}", registry) if listed is None else _listed_tools(name, listed, settings)
        return replace(shown, tools=tools, is_declared=False, is_refused=settings.undeclared == "refuse")
    file = beside / os.path.expanduser(settings.tools)
    try:
        declared = read_declarations(file)
    except BicameralError as error:
        return replace(shown, error=error)
    reviewed = read_reviewed_listing(file)
    if asked is None or answer is None or answer.error is not None:
        return replace(shown, tools=_reviewed_tools(name, declared, reviewed, settings))
    if not _renew(asked, declared, reviewed):
        tools = _reviewed_tools(name, declared, reviewed, settings)
        return replace(shown, tools=tools, answer=replace(answer, is_older=True))
    check = asked.check
    return replace(shown, tools=_shown_tools(name, check.tools, declared, reviewed, check.listed, settings.allow))


def _renew(asked: AskedServer, declared: DeclarationFile, reviewed: Mapping[str, ForeignTool]) -> bool:
    """Compare an answer with the review as it is now; False if that is newer and differs, so that it says nothing."""
    if asked.is_outdated:
        return False
    check = asked.check.compare(declared, reviewed)
    if not check.ok and _is_newer(declared, asked.check):
        asked.is_outdated = True
        return False
    # Kept, so that large listings are compared once for each review.
    asked.check = check
    return True


def _is_newer(declared: DeclarationFile, check: ServerCheck) -> bool:
    """Whether other tools have been reviewed since a server was asked. Its answer then says nothing about them."""
    before = {} if check.declared is None else check.declared.tools
    return {name: each.pin for name, each in declared.tools.items()} != {
        name: each.pin for name, each in before.items()
    }


def _reviewed_tools(
    server: str, declared: DeclarationFile, reviewed: Mapping[str, ForeignTool], settings: McpSettings
) -> list[ShownTool]:
    """The tools by their review alone: what the server lists now is not known, only whether the review is intact."""
    from bicameral.foreign import compare_listing

    checks = compare_listing(declared, reviewed, reviewed)
    tools = _shown_tools(server, checks, declared, reviewed, reviewed, settings.allow)
    # A stored listing that is not the one of the declarations says nothing about what the server lists.
    return [replace(each, use="lost") if each.use in DIFFERENT_USES else each for each in tools]


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
    tools = _shown_tools(name, checks, declared, reviewed, listed, settings.allow)
    changed = declared.document != document.digest
    return ShownServer(name, "openapi", settings.server, facts, tools, is_document_changed=changed)


def _shown_tools(
    server: str,
    checks: Sequence[ToolCheck],
    declared: DeclarationFile,
    reviewed: Mapping[str, ForeignTool],
    listed: Mapping[str, ForeignTool],
    allow: tuple[str, ...] | None,
) -> list[ShownTool]:
    return list(_within_bounds(_shown_tool(server, each, declared, reviewed, listed, allow) for each in checks))


def _within_bounds(tools: Iterable[ShownTool]) -> Iterator[ShownTool]:
    """The tools, without the texts for which there is no room on one page."""
    left = MAX_SERVER_TEXT
    for tool in tools:
        # Where there is a difference, the whole text is not shown beside it.
        left -= sum(map(len, tool.changes)) or len(tool.said)
        yield tool if left >= 0 else replace(tool, said=tool.said and MORE_TEXT, changes=tool.changes and [MORE_TEXT])


def _shown_tool(
    server: str,
    check: ToolCheck,
    declared: DeclarationFile,
    reviewed: Mapping[str, ForeignTool],
    listed: Mapping[str, ForeignTool],
    allow: tuple[str, ...] | None,
) -> ShownTool:
    declaration, old, new = declared.tools.get(check.name), reviewed.get(check.name), listed.get(check.name)
    said = _server_words(new or old)
    if declaration is None:
        use = "new" if check.state == "new" else "undeclared"
        return ShownTool(check.name, _plan_name(server, check.name), use, said=said, is_declared=False)
    is_old_known = old is not None and old.pin == declaration.pin
    parts: list[str] = []
    if old is not None and new is not None and is_old_known and check.state == "changed":
        parts = [part.replace("_", " ") for part in old.changed_parts(new)]
    return ShownTool(
        check.name,
        declaration.name or _plan_name(server, check.name),
        _tool_use(check, declaration.reviewed, allow),
        declaration.effect,
        declaration.doc,
        said,
        declaration.pin,
        parts,
        check.changes,
        is_old_known,
    )


def _plan_name(server: str, tool: str) -> str:
    from bicameral.foreign import plain_name

    return f"{plain_name(server)}_{plain_name(tool)}"


def _server_words(tool: ForeignTool | None) -> str:
    """What a server says of a tool."""
    return "" if tool is None else "\n".join(filter(None, (tool.title, tool.description)))[:MAX_SAID]


def _tool_use(check: ToolCheck, decided: bool, allow: tuple[str, ...] | None) -> ToolUse:
    match check.state:
        case "changed":
            return "changed"
        case "gone":
            return "removed"
        case "listing lost":
            return "lost"
        case "not used":
            return "unused"
        case "new":
            return "new"
        case "left out":
            return "undeclared"
        case "as reviewed":
            if allow is not None and check.name not in allow:
                return "withheld"
            return "accepted" if decided else "asks"


def _undeclared_tools(toolbox: str, registry: Registry) -> list[ShownTool]:
    """The tools of a server of which nothing was reviewed, as far as this process has asked it for them."""
    tools = [tool for tool in registry if tool.toolbox == toolbox]
    return [ShownTool(tool.name, tool.name, "asks", tool.effect, is_declared=False) for tool in tools]


def _listed_tools(server: str, listed: Mapping[str, ForeignTool], settings: McpSettings) -> list[ShownTool]:
    """The tools that a server listed when it was asked, of which nothing was reviewed."""
    is_refused, allow = settings.undeclared == "refuse", settings.allow
    tools: list[ShownTool] = []
    for name, tool in listed.items():
        is_withheld = allow is not None and name not in allow
        use: ToolUse = "undeclared" if is_refused else "withheld" if is_withheld else "asks"
        tools.append(ShownTool(name, _plan_name(server, name), use, said=_server_words(tool), is_declared=False))
    return list(_within_bounds(tools))


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


server_routes = [page_route("/operations/servers", servers_page, "see"), *asking_routes]
