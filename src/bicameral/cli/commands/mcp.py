"""`bicameral mcp`: the MCP servers of the configuration, the review of their tools, and servers of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._mcp_checks import server_check_lines, tool_check_lines
from bicameral.cli._mcp_clients import protect, unprotect
from bicameral.cli._mcp_firewall import firewall
from bicameral.cli._mcp_reviews import (
    ReviewedTool,
    confirm_at_terminal,
    count_text,
    grant_lines,
    grant_notes,
    read_server,
    refused_lines,
    reviewed_tool,
    with_declarations,
)
from bicameral.cli._mcp_serve import serve
from bicameral.cli._mcp_settings import (
    declarations_file,
    find_server,
    given_settings,
    require_new,
    review_options,
    save_server,
    say_unaccepted,
    server_options,
    settings_file,
)
from bicameral.cli._mcp_tables import (
    TABLE,
    Acceptance,
    read_config_text,
    server_tables,
    without_table,
    write_config_text,
)
from bicameral.cli._options import (
    CommonOptions,
    DefaultGroup,
    common_options,
    completer,
    load_config_quietly,
)
from bicameral.cli._output import FAILED, OK
from bicameral.display import terminal_width, visible_line
from bicameral.errors import BicameralError, ToolError, nearest_name

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.foreign import ToolCheck
    from bicameral.mcp import McpSettings


@click.group(short_help="MCP servers: add and review their tools, serve as one, stand before others.", cls=DefaultGroup)
def command() -> None:
    """MCP servers whose tools plans can use, as far as you have reviewed them. Without a subcommand: the list.

    \b
    bicameral mcp add time -- mcp-server-time
    bicameral mcp check
    """


@completer
def complete_server() -> Iterable[str]:
    """The configured servers."""
    return load_config_quietly().mcp


@command.command("add", short_help="Add a server, after you have seen what it offers.")
@click.argument("name")
@click.argument("words", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@server_options
@click.option("--replace", is_flag=True, help="Replace the settings and declarations of a server of this name.")
@review_options
@common_options
def add(chosen: CommonOptions, name: str, words: tuple[str, ...], **options: Any) -> int:
    """Start the server COMMAND, show what it offers and what is proposed of it, and add it once you say yes.

    NAME begins the names of its tools in plans. The command comes after `--`. It runs confined: without a network, and
    with no file but its own, unless an option grants it. Nothing that the server says of itself is read by a model.

    What you agree to is written to `mcp/NAME.toml` beside bicameral.toml, a file of yours, with a hash of every tool:
    one that changes is not called any more until you have looked at it again.

    \b
    bicameral mcp add time -- mcp-server-time
    bicameral mcp add notes --read notes -- npx -y @modelcontextprotocol/server-filesystem notes
    bicameral mcp add tracker --url https://tracker.example.com/mcp --bearer TRACKER_TOKEN
    """
    config = chosen.config()
    settings = given_settings(name, words, **options)
    file = settings_file(config)
    declarations = file.parent / TABLE / f"{name}.toml"
    require_new(file, declarations, name, replace=options["replace"])
    found = read_server(chosen.out, config, name, settings, descriptions=options["descriptions"])
    if not chosen.out.as_json:
        chosen.out.say("\n".join(["", *found.lines(full=options["full"]), "", *found.summary_lines(), ""]))
    number = count_text(len(found.tools), "tool")
    if not confirm_at_terminal(chosen.out, f"Use {name!r} with {number} from now on?", options["yes"]):
        return FAILED
    written = settings.model_copy(update={"tools": f"{TABLE}/{name}.toml"})
    accepted = save_server(file, config.base, name, written, found.declared, found.review.listed, new=True)
    chosen.out.show(f"added: {name}, {number}\n  {file}\n  {declarations}")
    say_unaccepted(chosen, file, accepted)
    facts = {"file": str(file), "declarations": str(declarations), "accepted": accepted, **found.to_json()}
    chosen.out.write_json({"ok": True, **facts})
    return OK


@command.command("review", short_help="Look at a server again, and take over what has changed.")
@click.argument("name", shell_complete=complete_server)
@click.option("--anew", is_flag=True, help="Propose everything anew instead of keeping what you declared before.")
@review_options
@common_options
def review(chosen: CommonOptions, name: str, anew: bool, full: bool, descriptions: bool, yes: bool) -> int:
    """Start a configured server, show what differs from what you reviewed, and take it over once you say yes.

    What you declared of its tools is kept. Nothing is asked if nothing differs.
    """
    from bicameral.foreign import compare_listing, read_declarations, read_reviewed_listing

    config, out = chosen.config(), chosen.out
    settings = find_server(config, name)
    file = settings_file(config)
    declarations = declarations_file(config, name, settings)
    old = None if anew or not declarations.exists() else read_declarations(declarations)
    found = read_server(out, config, name, settings, old=old, descriptions=descriptions)
    checks = compare_listing(
        old, read_reviewed_listing(declarations), {each.name: each for each in found.review.listed}
    )
    facts = {"declarations": str(declarations), "changes": [each.to_json() for each in checks], **found.to_json()}
    if old is not None and settings.tools is not None and not any(each.differs for each in checks):
        out.show(f"{name}: as reviewed, {count_text(len(found.tools), 'tool')}")
        out.write_json({"ok": True, "written": False, **facts})
        return OK
    declared = found.declared if old is None else with_declarations(found, old)
    if not out.as_json:
        lines = list(found.lines(full=full) if old is None else _difference_lines(checks, found.tools, full=full))
        lines += [] if old is None else refused_lines(found.refused)
        absent = declared.tools.keys() - {each.foreign.name for each in found.tools}
        out.say("\n".join(["", *lines, "", *found.summary_lines(sorted(absent - found.refused.keys())), ""]))
    if not confirm_at_terminal(out, f"Use the tools of {name!r} as they are now?", yes):
        return FAILED
    tools = settings.tools or f"{TABLE}/{name}.toml"
    settings = settings.model_copy(update={"tools": tools})
    accepted = save_server(file, config.base, name, settings, declared, found.review.listed, new=False)
    out.show(f"reviewed: {name}, {count_text(len(found.tools), 'tool')}\n  {declarations}")
    say_unaccepted(chosen, file, accepted)
    out.write_json({"ok": True, "written": True, "accepted": accepted, **facts})
    return OK


def _difference_lines(checks: Iterable[ToolCheck], tools: Iterable[ReviewedTool], *, full: bool) -> Iterator[str]:
    """What differs, each tool with the difference and with what it would be from now on."""
    width, proposed = terminal_width(), {each.foreign.name: each for each in tools}
    for check in checks:
        yield from tool_check_lines(check, width, full=full)
        if check.differs and (tool := proposed.get(check.name)) is not None:
            yield from (f"  {line}" for line in tool.lines(width - 2, full=full))
            yield ""


@command.command("check", short_help="Whether servers are what you reviewed.")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_server)
@click.option("--full", is_flag=True, help="Show all that differs.")
@common_options
def check(chosen: CommonOptions, names: tuple[str, ...], full: bool) -> int:
    """Start the configured servers, or those named, and say whether their tools are what you reviewed.

    The exit code is 1 if a tool has changed, is gone or was never reviewed, or if a server does not start.
    """
    from bicameral.config import open_mcp_servers
    from bicameral.mcp import check_servers

    config = chosen.config()
    wanted = {name: find_server(config, name) for name in names or config.mcp}
    found = asyncio.run(check_servers(open_mcp_servers(config.model_copy(update={"mcp": wanted}))))
    if not found:
        chosen.out.say("no MCP server is configured")
    for each in found:
        chosen.out.show("\n".join(server_check_lines(each, full=full)))
    ok = all(each.ok for each in found)
    chosen.out.write_json({"ok": ok, "servers": [each.to_json() for each in found]})
    return OK if ok else FAILED


@command.command("list", short_help="The configured servers.")
@common_options
def list_servers(chosen: CommonOptions) -> dict[str, Any]:
    """The configured servers: how each is reached, what confines it, and which of its tools are used.

    Nothing is started.
    """
    config = chosen.config()
    found = [_server_facts(config, name, settings) for name, settings in config.mcp.items()]
    for each in found:
        chosen.out.show(f"{each['name']}  {visible_line(each['reached'])}  ({each['confinement']})")
        chosen.out.show(f"    {each['error'] or _tools_text(each)}")
    if not found:
        chosen.out.say("no MCP server is configured; `bicameral mcp add` adds one")
    return {"servers": found}


def _server_facts(config: Config, name: str, settings: McpSettings) -> dict[str, Any]:
    from bicameral.foreign import ForeignTool, read_declarations, tool_name
    from bicameral.mcp import command_text, confinement_text

    facts: dict[str, Any] = {
        "name": name,
        "reached": command_text(settings),
        "confinement": confinement_text(settings),
        "declarations": None,
        "tools": [],
        "undeclared": settings.undeclared,
        "error": None,
    }
    if settings.tools is None:
        return facts
    file = declarations_file(config, name, settings)
    facts["declarations"] = str(file)
    try:
        declared = read_declarations(file).tools
    except BicameralError as error:
        # The others are listed although this one cannot be used.
        return facts | {"error": str(error)}
    used = (each for each in declared if settings.allow is None or each in settings.allow)
    facts["tools"] = [tool_name(name, ForeignTool(each), declared[each]) for each in used if declared[each].use]
    return facts


def _tools_text(facts: dict[str, Any]) -> str:
    if facts["tools"]:
        return ", ".join(facts["tools"])
    if facts["declarations"] is not None or facts["undeclared"] == "refuse":
        return "none of its tools is used"
    return f"not reviewed: every call asks. `bicameral mcp review {facts['name']}` reviews it"


@command.command("show", short_help="Everything about one server.")
@click.argument("name", shell_complete=complete_server)
@click.option("--full", is_flag=True, help="Show all that the server said of its tools.")
@common_options
def show_server(chosen: CommonOptions, name: str, full: bool) -> dict[str, Any]:
    """Everything about one server: what it may do, and its tools as you reviewed them. Nothing is started."""
    from bicameral.foreign import read_declarations, read_reviewed_listing
    from bicameral.mcp import command_text

    config = chosen.config()
    settings = find_server(config, name)
    out, facts = chosen.out, _server_facts(config, name, settings)
    out.show(f"{name}: {visible_line(command_text(settings))}")
    out.show("\n".join(map(visible_line, grant_lines(settings))))
    for note in grant_notes(config, name, settings):
        out.show(f"  but {visible_line(note)}")
    tools: list[dict[str, Any]] = []
    if settings.tools is not None and facts["error"] is None:
        file = declarations_file(config, name, settings)
        reviewed = read_reviewed_listing(file)
        out.show(f"declarations: {file}")
        for each, declaration in read_declarations(file).tools.items():
            foreign = reviewed.get(each)
            if foreign is None and not declaration.use:
                out.show(f"\n{each}  not used")
                tools.append({"tool": each, "use": False})
                continue
            if foreign is None or foreign.pin != declaration.pin:
                out.show(f"\n{each}  NOT as reviewed: it is not used until `bicameral mcp review {name}`")
                tools.append({"tool": each, "reviewed": False})
                continue
            tool = reviewed_tool(name, foreign, declaration)
            out.show("\n".join(["", *tool.lines(terminal_width(), full=full)]))
            tools.append({**tool.to_json(), "reviewed": True})
    else:
        out.show(f"{facts['error'] or _tools_text(facts)}")
    return {**facts, "settings": settings.model_dump(mode="json", exclude_defaults=True), "tools": tools}


@command.command("remove", short_help="Take a server out of the configuration.")
@click.argument("name", shell_complete=complete_server)
@click.option("-y", "--yes", is_flag=True, help="Delete its declarations without asking.")
@common_options
def remove(chosen: CommonOptions, name: str, yes: bool) -> dict[str, Any]:
    """Take a server out of bicameral.toml; its declarations are deleted if you say so, and else stay.

    Nothing else in the file is changed.
    """
    from bicameral.config import find_file

    # The configuration is not loaded: a server whose settings are wrong can be removed, too.
    base = (chosen.folder or Path.cwd()).absolute()
    file = (chosen.config_file or find_file(chosen.folder) or base / "bicameral.toml").absolute()
    text = read_config_text(file)
    known = server_tables(text, file)
    if name not in known:
        raise ToolError(
            "mcp.unknown",
            f"there is no MCP server {name!r} in {file}",
            nearest=nearest_name(name, known),
            fix="`bicameral mcp list` has them.",
        )
    new = without_table(text, name, file)
    doomed = _declarations_of(file, known, name)
    interactive = doomed and not yes and chosen.out.is_interactive
    delete = yes or (interactive and confirm_at_terminal(chosen.out, f"Delete {doomed[0]}, too?", yes))
    accepted = Acceptance.of(file, base)
    write_config_text(file, new)
    deleted = [each for each in doomed if delete]
    for each in deleted:
        each.unlink(missing_ok=True)
    used = accepted.renew(name, ())
    chosen.out.show(f"removed: {name}")
    for each in doomed:
        chosen.out.show(f"  {'deleted' if delete else 'left'}: {each}")
    say_unaccepted(chosen, file, used)
    return {"name": name, "file": str(file), "deleted": [str(each) for each in deleted], "accepted": used}


def _declarations_of(file: Path, known: dict[str, Any], name: str) -> list[Path]:
    """The files with the declarations of a server, if they are that and no other server has the same."""
    from bicameral.foreign import pins_file, read_declarations

    def named(server: str) -> Path | None:
        tools = known[server].get("tools") if isinstance(known[server], dict) else None
        return file.parent / Path(tools).expanduser() if isinstance(tools, str) else None

    own = named(name)
    if own is None or any(named(other) == own for other in known if other != name):
        return []
    try:
        read_declarations(own)
    except BicameralError:
        # Whatever else it is, it is not for this command to delete.
        return []
    return [each for each in (own, pins_file(own)) if each.exists()]


@command.command("known", short_help="The servers whose declarations come along.")
@common_options
def known_list(chosen: CommonOptions) -> dict[str, Any]:
    """The servers whose declarations come with Bicameral: they are proposed where a command names the package."""
    from bicameral.mcp import known_declarations, known_servers

    found = {name: known_declarations(name) for name in known_servers()}
    for name, declared in found.items():
        chosen.out.show(name)
        for tool, declaration in declared.tools.items():
            chosen.out.show(f"  {tool}  [{declaration.effect}]  {declaration.doc}")
    return {
        "servers": {
            name: {tool: {"effect": each.effect, "doc": each.doc} for tool, each in declared.tools.items()}
            for name, declared in found.items()
        }
    }


for each in (firewall, protect, unprotect, serve):
    command.add_command(each)
