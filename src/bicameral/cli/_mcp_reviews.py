"""Reviews of MCP servers at the command line: what each tool is, what is proposed of it, and what a server says itself.

What a server says is untrusted. It stands behind a bar, with invisible characters made visible and folded, so that none
of it can pass for a line of our own. The tools are shown as plans would see them: names, types and choices come from
the server, and reviewing them is what lets models read them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bicameral.cli._output import Output
from bicameral.display import MAX_VALUE_LINES, break_line, fold_lines, make_visible, terminal_width, visible_line
from bicameral.errors import BicameralError, RunError, ToolError

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.foreign import DeclarationFile, ForeignResult, ForeignTool, Proposal, ToolDeclaration
    from bicameral.mcp import McpSettings, ProtectedPlaces, ServerReview
    from bicameral.tools import Tool

_MOST_LINES = 12
"""Lines of what a server says of one tool, unless all of it is asked for."""
_MIN_WIDTH = 20
_MOST_NAMED = 40
"""Tools of one kind that a summary names."""


def count_text(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def grant_lines(settings: McpSettings) -> Iterator[str]:
    """What a server may do, as its settings say."""
    if settings.url is not None:
        yield "It runs elsewhere: whatever it is given leaves this machine."
        sent = [f"the header {name} from {where}" for name, where in settings.headers.items()]
        if settings.bearer is not None:
            sent.append(f"a token from {settings.bearer}")
        if sent:
            yield f"It is sent {', '.join(sent)}."
        return
    if settings.sandbox:
        yield "It runs confined:"
        yield f"  reads   {', '.join(['the system and its own program', *settings.read])}"
        yield f"  writes  {', '.join(settings.write) or 'nothing'}"
        reached = settings.network if isinstance(settings.network, tuple) else ()
        yield f"  reaches {'every address' if settings.network is True else ', '.join(reached) or 'no network'}"
    else:
        yield "It is NOT confined: it may do whatever you may."
    given = [f"{name}={value}" for name, value in settings.env.items()]
    given += [f"{name} (secret, from {where})" for name, where in settings.secrets.items()]
    if given:
        yield f"  is given {', '.join(given)}"


@dataclass(frozen=True, slots=True)
class ReviewedTool:
    """A tool as it is listed, as it is declared, and as plans would see it.

    Args:
        foreign: The tool as the server lists it.
        declaration: What is proposed, or was declared.
        tool: The tool of plans that this makes.
        reasons: Why it is proposed.
    """

    foreign: ForeignTool
    declaration: ToolDeclaration
    tool: Tool
    reasons: tuple[str, ...] = ()

    def lines(self, width: int, *, full: bool = False) -> Iterator[str]:
        """The tool for a person who decides about it."""
        tool, inner = self.tool, max(width - 4, _MIN_WIDTH)
        tells = "tells others something" if tool.outbound else "tells nobody anything"
        yield f"{tool.name}  [{tool.effect}; {tells}]" + ("" if self.declaration.use else "  not used")
        if tool.doc:
            yield from _indented([visible_line(tool.doc)], inner)
        for argument in tool.arguments:
            needed = "" if argument.required else ", optional"
            doc = f"; {visible_line(argument.doc)}" if argument.doc else ""
            yield from _indented([f"{argument.name}: {argument.type}{needed}  ({argument.purpose}{doc})"], inner)
        yield from _indented([f"result: {tool.result}  ({_origin_text(tool)})"], inner)
        if self.reasons:
            yield from _indented([f"why: {'; '.join(map(visible_line, self.reasons))}"], inner)
        if not tool.name.endswith(f"_{self.foreign.name}"):
            yield f"    the server's name of it: {self.foreign.name}"
        words = _server_words(self.foreign)
        if words:
            yield "    what the server says of it, which no model reads:"
            yield from (f"    {line}" for line in untrusted_lines(words, inner, full=full))

    def to_json(self) -> dict[str, Any]:
        return {
            "tool": self.foreign.name,
            "name": self.tool.name,
            "use": self.declaration.use,
            "effect": self.tool.effect,
            "outbound": self.tool.outbound,
            "doc": self.tool.doc,
            "arguments": {each.name: each.purpose for each in self.tool.arguments},
            "pin": self.foreign.pin,
            **({"why": list(self.reasons)} if self.reasons else {}),
        }


def _indented(texts: Iterable[str], width: int) -> Iterator[str]:
    for text in texts:
        for number, piece in enumerate(break_line(text, width - 2)):
            yield f"    {'  ' if number else ''}{piece}"


def _origin_text(tool: Tool) -> str:
    parts: dict[str, list[str]] = {}
    for part, origin in tool.origins.items():
        parts.setdefault(_WRITERS.get(origin.trust, origin.trust), []).append(part)
    texts = (writer if "" in named else f"{writer}: {', '.join(named)}" for writer, named in parts.items())
    return "; ".join(texts) or "written by anybody"


_WRITERS = {"user": "your own word", "system": "the service's own", "third_party": "written by anybody"}


def _server_words(foreign: ForeignTool) -> str:
    """Everything that a server says of a tool in words, without the schemas around them."""
    said = [foreign.title] if foreign.title and foreign.title != foreign.name else []
    said += [foreign.description] if foreign.description.strip() else []
    properties: Any = foreign.input_schema.get("properties")
    for name, schema in cast("dict[str, Any]", properties if isinstance(properties, dict) else {}).items():
        words: Any = cast("dict[str, Any]", schema).get("description") if isinstance(schema, dict) else None
        if isinstance(words, str) and words.strip():
            said.append(f"{name}: {words}")
    return "\n".join(said)


def untrusted_lines(text: str, width: int, *, full: bool = False, how: str = "--full shows them") -> list[str]:
    """The lines of an untrusted text, each behind a bar and broken here, so that the terminal breaks none of them."""
    lines = [line for line in make_visible(text).replace("\t", "    ").split("\n") if line.strip()]
    pieces = [piece for line in lines for piece in break_line(line, max(width - 2, _MIN_WIDTH))]
    # The line about what is left out is the only one without a bar.
    return fold_lines([f"│ {piece}" for piece in pieces], MAX_VALUE_LINES if full else _MOST_LINES, text, how)


@dataclass(frozen=True)
class ReviewedServer:
    """A server that was started and read, and what of it can be used.

    Args:
        name: Its name in the configuration.
        settings: How it is reached, and what it may do.
        review: What it lists and what is proposed.
        tools: The tools that plans would get.
        refused: The tools that cannot be used, and why.
        notes: What is left out of what its settings grant.
    """

    name: str
    settings: McpSettings
    review: ServerReview
    tools: tuple[ReviewedTool, ...]
    refused: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def declared(self) -> DeclarationFile:
        """The declarations as they would be written."""
        whole = self.review.declared
        return whole.model_copy(update={"tools": {each.foreign.name: each.declaration for each in self.tools}})

    def lines(self, *, full: bool = False) -> Iterator[str]:
        """All of it for a person who decides about it."""
        from bicameral.mcp import command_text

        width = terminal_width()
        yield f"{self.name}: {visible_line(command_text(self.settings))}"
        yield from map(visible_line, grant_lines(self.settings))
        yield from (f"  but {visible_line(note)}" for note in self.notes)
        if self.review.known is not None:
            yield f"It is the server {self.review.known!r}, whose declarations come with Bicameral."
        for kind in ("resources", "prompts"):
            if kind in self.review.offers:
                yield f"It offers {kind}: they are untrusted documents, whatever is in them."
        for each in self.tools:
            yield ""
            yield from each.lines(width, full=full)
        yield from refused_lines(self.refused)

    def summary_lines(self, kept: Iterable[str] = ()) -> Iterator[str]:
        """What a yes is to, in a few lines: a long review may have left the screen.

        Args:
            kept: Tools that cannot be used now, and stay declared.
        """
        from bicameral.tools import EFFECTS

        used = [each.tool for each in self.tools if each.declaration.use]
        yield f"In short: {self.name}, {count_text(len(used), 'tool')}"
        yield from (f"  {visible_line(line)}" for line in grant_lines(self.settings))
        counts = Counter(each.effect for each in used)
        worst_first = [effect for effect in reversed(EFFECTS) if counts[effect]]
        yield f"  effects: {', '.join(f'{counts[effect]} {effect}' for effect in worst_first) or 'none'}"
        named = [
            ("do more than read", [f"{each.name} [{each.effect}]" for each in used if each.effect != "read"]),
            ("ask at every call", [each.name for each in used if each.unreviewed]),
            ("are not used", [each.tool.name for each in self.tools if not each.declaration.use]),
            ("cannot be used", list(self.refused)),
            ("stay declared with `use = false`, since they are not there", list(kept)),
        ]
        for what, names in named:
            if names:
                more = f" … and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
                text = f"{what}: {', '.join(names[:_MOST_NAMED])}{more}"
                yield from (line[2:] for line in _indented([text], terminal_width() - 2))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "known": self.review.known,
            "tools": [each.to_json() for each in self.tools],
            "refused": {name: make_visible(why) for name, why in self.refused.items()},
            **({"notes": list(self.notes)} if self.notes else {}),
        }


def refused_lines(refused: Mapping[str, str]) -> Iterator[str]:
    """The tools that cannot be used, and why."""
    if refused:
        yield ""
        yield "cannot be used:"
        yield from (f"  {name}: {visible_line(why)}" for name, why in refused.items())


async def _call_nothing(arguments: Mapping[str, Any]) -> ForeignResult:
    raise AssertionError("a tool that is reviewed is not called")


def reviewed_tool(
    server: str, foreign: ForeignTool, declaration: ToolDeclaration, reasons: Sequence[str] = ()
) -> ReviewedTool:
    """A tool as it would be in plans; a ToolError if it cannot be."""
    from bicameral.foreign import foreign_tool

    tool = foreign_tool(foreign, declaration, _call_nothing, server=server)
    return ReviewedTool(foreign, declaration, tool, tuple(reasons))


def usable_server(settings: McpSettings, review: ServerReview, taken: Iterable[str]) -> ReviewedServer:
    """What of a review can be used: tools that make no tool of plans are refused, and names that are taken changed.

    Args:
        settings: The settings of the server.
        review: What was read of it.
        taken: Names of tools that are there already.
    """
    from bicameral.foreign import plain_name
    from bicameral.mcp import DOCUMENT_TOOLS
    from bicameral.patterns.handles import EXTRACT_TOOL

    # The firewall's own.
    used = {*taken, EXTRACT_TOOL}
    used |= {f"{plain_name(review.name)}_{each}" for each in DOCUMENT_TOOLS}
    refused, tools = dict(review.refused), list[ReviewedTool]()
    for proposal in review.proposals:
        try:
            found = reviewed_tool(review.name, proposal.tool, proposal.declaration, proposal.reasons)
            if found.tool.name in used:
                free = _free_name(found.tool.name, used)
                renamed = proposal.declaration.model_copy(update={"name": free})
                why = (*proposal.reasons, f"it is named {free!r}, since {found.tool.name!r} is taken")
                found = reviewed_tool(review.name, proposal.tool, renamed, why)
        except ToolError as error:
            refused[proposal.tool.name] = error.message
            continue
        used.add(found.tool.name)
        tools.append(found)
    return ReviewedServer(review.name, settings, review, tuple(tools), refused)


def _free_name(name: str, used: set[str]) -> str:
    number = 2
    while f"{name}_{number}" in used:
        number += 1
    return f"{name}_{number}"


def taken_names(config: Config, server: str) -> set[str]:
    """The names of all tools but those of one server. No server is started for it."""
    from bicameral.config import open_mcp_servers, open_registry

    taken: set[str] = set()
    others = {name: each for name, each in config.mcp.items() if name != server and each.tools is not None}
    # What cannot be opened has no names; that it cannot is reported where it is used.
    with suppress(BicameralError):
        taken |= set(open_registry(config.model_copy(update={"mcp": {}})).names)
    for name, settings in others.items():
        try:
            for opened in open_mcp_servers(config.model_copy(update={"mcp": {name: settings}})):
                taken |= {tool.name for tool in opened.tools()}
        except BicameralError:
            continue
    return taken


def read_server(
    out: Output,
    config: Config,
    name: str,
    settings: McpSettings,
    *,
    old: DeclarationFile | None = None,
    descriptions: bool = False,
    environment: Mapping[str, str] | None = None,
    taken: Iterable[str] = (),
    excluded: Collection[str] = (),
    closed: Collection[Path] = (),
) -> ReviewedServer:
    """Start a server, read it, end it, and say what of it can be used.

    Args:
        out: Where it is said what is done.
        config: The configuration around it.
        name: Its name in the configuration.
        settings: How it is reached.
        old: What was declared before, which is kept.
        descriptions: Propose the server's own words as the lines that models read.
        environment: Where its secrets are; by default the environment of this process.
        taken: Names of tools that are taken besides those of the configuration.
        excluded: Tools that are proposed not to be used.
        closed: Files that it must not get at, besides those that no server does.
    """
    from bicameral.mcp import command_text, confinement_text

    doing = "asking" if settings.url is not None else "starting"
    out.say(f"{doing} {name}: {visible_line(command_text(settings))} ({confinement_text(settings)})")
    review = asyncio.run(_read_review(config, name, settings, descriptions, environment, closed))
    if old is not None:
        review = review.keeping(old)
    found = usable_server(settings, _without_tools(review, excluded), {*taken, *taken_names(config, name)})
    return replace(found, notes=grant_notes(config, name, settings, closed))


async def _read_review(
    config: Config,
    name: str,
    settings: McpSettings,
    descriptions: bool,
    environment: Mapping[str, str] | None,
    closed: Collection[Path],
) -> ServerReview:
    from bicameral.mcp import review_server

    return await review_server(
        name,
        settings,
        base=config.base,
        environment=environment,
        use_descriptions=descriptions,
        places=lambda: _places(config, closed),
    )


def _places(config: Config, closed: Collection[Path]) -> ProtectedPlaces:
    from bicameral.config import server_places
    from bicameral.tools import ProtectedPath

    places = server_places(config)
    files = tuple(ProtectedPath(each, "the file of an MCP client") for each in closed)
    return replace(places, private=(*places.private, *files))


def grant_notes(config: Config, name: str, settings: McpSettings, closed: Collection[Path] = ()) -> tuple[str, ...]:
    """What of a server's grants is left out or refused, for a person. Nothing is started."""
    from bicameral.mcp import server_grants

    if settings.url is not None or not settings.sandbox:
        return ()
    try:
        return server_grants(name, settings, config.base, _places(config, closed)).notes
    except BicameralError as error:
        return (str(error),)


def _without_tools(review: ServerReview, excluded: Collection[str]) -> ServerReview:
    """The review with tools that are not to be used: somebody had taken them out before."""

    def without(proposal: Proposal) -> Proposal:
        if proposal.tool.name not in excluded:
            return proposal
        unused = proposal.declaration.model_copy(update={"use": False})
        return replace(proposal, declaration=unused, reasons=(*proposal.reasons, "the client does not use it"))

    return replace(review, proposals=tuple(map(without, review.proposals)))


def confirm_at_terminal(out: Output, question: str, yes: bool) -> bool:
    """Whether the person says so; without a terminal only `--yes` does."""
    if yes:
        return True
    if not out.is_interactive:
        raise RunError("run.needs-answer", f"nobody is there to be asked: {question}", fix="--yes says yes.")
    from bicameral.cli._prompts import confirm_yes, discard_typed_input

    # A yes must be to what is on the screen, and not have been typed while the server was started.
    discard_typed_input()
    if asyncio.run(confirm_yes(question)):
        return True
    out.say("nothing was changed")
    return False


def server_head(name: str, file: Path) -> str:
    """The comment at the top of the declarations of a server."""
    from bicameral.foreign import declarations_head

    return declarations_head(
        file,
        f"What you have reviewed of the tools of the MCP server {name!r}. This file is yours: change what you know\n"
        f"better. `bicameral mcp review {name}` looks at the server again and keeps what stands here.",
    )


def with_declarations(review: ReviewedServer, old: DeclarationFile) -> DeclarationFile:
    """The declarations of a server that is reviewed again, with what the person had decided before.

    Tools that cannot be used now stay declared and are not used: one that was forbidden and comes back is still
    forbidden, and no other comes back with what was declared of it unless the person says so.
    """
    tools = review.declared.tools
    absent = {name: each.model_copy(update={"use": False}) for name, each in old.tools.items() if name not in tools}
    return review.declared.model_copy(
        update={"resources": old.resources, "prompts": old.prompts, "tools": {**tools, **absent}}
    )
