"""`bicameral mcp protect` and `unprotect`: the servers of an MCP client behind the firewall, and back.

The client's file is written last: until the person has said yes to every server, and its settings and declarations are
there, the client works as before.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from bicameral.cli._mcp_reviews import (
    ReviewedServer,
    confirm_at_terminal,
    count_text,
    grant_notes,
    read_server,
)
from bicameral.cli._mcp_settings import (
    PairType,
    declarations_file,
    require_new,
    review_options,
    save_server,
    say_unaccepted,
    settings_file,
    validated_settings,
)
from bicameral.cli._mcp_tables import TABLE
from bicameral.cli._options import CommonOptions, common_options
from bicameral.cli._output import FAILED, OK
from bicameral.display import visible_line
from bicameral.errors import BicameralError, ConfigError, Place, ToolError

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.firewall import ClientRewrite
    from bicameral.mcp import McpSettings

_ONLINE = ("fetch",)
"""The known servers that are of no use without a network."""


@click.command("protect", short_help="Let an MCP client reach its servers through the firewall.")
@click.argument("file", metavar="CLIENT_CONFIG", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--leave", metavar="SERVER", multiple=True, help="Leave this server as it is: it does NOT go through the firewall."
)
@click.option(
    "--read", "read", type=PairType(), metavar="SERVER=PATH", multiple=True, help="What a server may read, too."
)
@click.option(
    "--write", "write", type=PairType(), metavar="SERVER=PATH", multiple=True, help="What a server may change, too."
)
@click.option(
    "--network",
    type=PairType(),
    metavar="SERVER=HOST:PORT|all|none",
    multiple=True,
    help="What a server may reach. Without it, every address, but for known servers that need none.",
)
@click.option(
    "--no-sandbox",
    "unconfined",
    metavar="SERVER",
    multiple=True,
    help="Do not confine this server, as the client does.",
)
@click.option(
    "--secrets",
    type=click.Choice(["keep", "keyring"]),
    default="keep",
    show_default=True,
    help="Keep the secrets of servers in the client's file, with the firewall's entry, or use entries of the keyring.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, start nothing and write nothing.")
@review_options
@common_options
def protect(
    chosen: CommonOptions,
    file: Path,
    leave: tuple[str, ...],
    secrets: Literal["keep", "keyring"],
    dry_run: bool,
    full: bool,
    descriptions: bool,
    yes: bool,
    **grants: Any,
) -> int:
    """Rewrite the configuration file of an MCP client so that all of its servers are reached through the firewall.

    Every server is started once, confined, and shown with its tools as `bicameral mcp add` does; one yes is for all of
    them. Their settings go to bicameral.toml, and the client starts `bicameral mcp firewall` in their place. Paths in a
    server's arguments are granted to it, without what Bicameral and the client keep there. What is turned off stays so.
    `bicameral mcp unprotect` brings the file back as it was.

    The exit code is 1 if servers in other places of the file, such as those of a project, do not go through the
    firewall: --leave takes their names, too.

    \b
    bicameral mcp protect ~/.cursor/mcp.json --dry-run
    bicameral mcp protect ~/.cursor/mcp.json
    """
    config, out = chosen.config(), chosen.out
    from bicameral.firewall import rewrite_client_config

    command = _firewall_command(chosen, config)
    planned = rewrite_client_config(file, command, secrets=secrets, leave=leave, write=False)
    own, moved = _split_servers(config, planned, grants)
    for line in _limit_lines(planned):
        out.say(visible_line(line), style="yellow")
    facts = _rewrite_facts(planned)
    if dry_run:
        out.show("\n".join(_plan_lines(config, planned, {**own, **moved}, command)))
        out.write_json({"ok": True, "written": False, **facts})
        return OK
    reviews = _review_servers(chosen, config, planned, moved, descriptions)
    if not out.as_json:
        for each in reviews:
            out.say("\n".join(["", *each.lines(full=full)]))
        out.say("")
    servers = count_text(len(planned.servers), "server")
    used = [each for review in reviews for each in review.tools if each.declaration.use]
    tools = count_text(len(used), "reviewed tool")
    if not confirm_at_terminal(out, f"Put {servers} of {planned.file} behind the firewall, with {tools}?", yes):
        return FAILED
    accepted = _write(config, planned, reviews, command, leave, secrets)
    out.show(f"protected: {planned.file}, {servers} behind the firewall\n  as it was: {planned.backup}")
    for name in planned.outside:
        out.show(f"  NOT behind the firewall: {visible_line(name)}")
    for each in planned.to_set:
        out.say(f"to do: put {each.setting} of {each.server} where {each.reference} says")
    out.say(f"restart the client. `bicameral mcp unprotect {shlex.quote(str(file))}` takes it back")
    say_unaccepted(chosen, settings_file(config), accepted)
    all_of_it = not planned.outside
    found = {**facts, "reviews": [each.to_json() for each in reviews]}
    out.write_json({"ok": all_of_it, "written": True, "accepted": accepted, **found})
    return OK if all_of_it else FAILED


def _firewall_command(chosen: CommonOptions, config: Config) -> list[str]:
    """What the client starts. Its own working folder and search path are not known here, so that all is absolute."""
    program = Path(sys.executable).with_name("bicameral")
    words = [str(program)] if program.exists() else [sys.executable, "-m", "bicameral.cli"]
    words += ["mcp", "firewall", "--folder", str(config.base)]
    if chosen.config_file is not None or os.environ.get("BICAMERAL_CONFIG"):
        # Only then: a file that is named counts as accepted, whoever has changed it since.
        words += ["--config", str(settings_file(config).absolute())]
    return words


def _limit_lines(planned: ClientRewrite) -> Iterator[str]:
    """What does not go through the firewall, and what the client had said that says nothing to it."""
    yield from (f"left as it is, and NOT behind the firewall: {name}" for name in planned.left)
    for name in planned.disabled:
        yield f"turned off in the client, and left so: {name}. Turned on there it is NOT behind the firewall"
    for name in planned.outside:
        yield f"in another place of the file, and NOT behind the firewall: {name}"
    for name, tools in planned.excluded.items():
        yield f"not used, as in the client: {', '.join(tools)} of {name}"
    for name, keys in planned.dropped.items():
        yield f"not taken over: {', '.join(keys)} of {name}"
    for place in planned.rules:
        yield f"without effect on servers behind the firewall, whose names it has: {place}"


def _split_servers(
    config: Config, planned: ClientRewrite, grants: Mapping[str, Any]
) -> tuple[dict[str, McpSettings], dict[str, McpSettings]]:
    """The servers that are configured and reviewed already, and the others with what each may use."""
    named = {name for key in ("read", "write", "network") for name, _ in grants[key]} | {*grants["unconfined"]}
    if unknown := sorted(named - planned.servers.keys()):
        raise ToolError(
            "mcp.unknown", f"the client has no server {unknown[0]!r}", expected=", ".join(planned.servers) or None
        )
    own: dict[str, McpSettings] = {}
    moved: dict[str, McpSettings] = {}
    file = settings_file(config)
    for name, table in planned.servers.items():
        known = config.mcp.get(name)
        if known is not None and known.tools is not None and name not in named:
            if difference := _difference(config, planned, name, known):
                raise ConfigError(
                    "mcp.exists",
                    f"there is a server {name!r} already, and the client's is not the same: {difference}",
                    place=Place(file=str(file)),
                    fix=f"Give it another name in the client's file, leave it as it is (--leave {name}), or take the "
                    f"other one out: `bicameral mcp remove {name}`.",
                )
            own[name] = known
            continue
        require_new(file, file.parent / TABLE / f"{name}.toml", name, replace=False)
        moved[name] = _moved_settings(config, name, table, grants)
    return own, moved


_SAID_BY_CLIENTS = ("command", "url", "env", "secrets", "headers", "bearer")
"""What an entry of a client says of a server. Grants and limits are the user's, in the configuration."""


def _difference(config: Config, planned: ClientRewrite, name: str, known: McpSettings) -> str | None:
    """What a configured server has that the client's entry of its name has not, or None if both are the same one."""
    table = validated_settings(planned.servers[name])
    differing = [key for key in _SAID_BY_CLIENTS if getattr(known, key) != getattr(table, key)]
    if table.allow is not None and (known.allow is None or not {*known.allow} <= {*table.allow}):
        differing.append("allow")
    if differing:
        return ", ".join(f"`{key}`" for key in differing)
    if used := [tool for tool in planned.excluded.get(name, ()) if tool in _used_tools(config, name, known)]:
        return f"the client does not use {', '.join(used)}"
    references = {*table.secrets.values(), *table.headers.values(), table.bearer}
    if any(_has_other_value(planned, each) for each in planned.environment if each in references):
        return "another client has another secret for it"
    return None


def _used_tools(config: Config, name: str, known: McpSettings) -> frozenset[str]:
    from bicameral.foreign import read_declarations

    declared = read_declarations(declarations_file(config, name, known)).tools
    return frozenset(tool for tool, each in declared.items() if each.use)


def _has_other_value(planned: ClientRewrite, reference: str) -> bool:
    """Whether another client that was protected gives a variable another value: then it is another account."""
    from bicameral.firewall import entry_environment
    from bicameral.mcp import recorded_client_files

    own = planned.environment[reference]
    others = (entry_environment(file) for file in recorded_client_files() if file != planned.file)
    return any(each.get(reference, own) != own for each in others)


def _moved_settings(config: Config, name: str, table: Mapping[str, Any], grants: Mapping[str, Any]) -> McpSettings:
    """The settings of a server of the client: what it needs according to its arguments, and what the options grant."""
    from bicameral.mcp import known_server_of

    settings = validated_settings(table)
    if settings.url is not None:
        return settings
    if name in grants["unconfined"]:
        return validated_settings({**table, "sandbox": False})
    paths = [Path(word).expanduser() for word in settings.command[1:] if word.startswith(("/", "~/"))]
    network: list[str] = [where for server, where in grants["network"] if server == name]
    known = known_server_of(settings, config.base)
    reached = "all" in network or (not network and (known is None or known in _ONLINE))
    return validated_settings(
        {
            **table,
            "read": [str(each) for each in paths if each.is_file()] + _granted(grants["read"], name),
            "write": [str(each) for each in paths if each.is_dir()] + _granted(grants["write"], name),
            "network": True if reached else [each for each in network if each != "none"] or False,
        }
    )


def _granted(pairs: tuple[tuple[str, str], ...], server: str) -> list[str]:
    return [path for name, path in pairs if name == server]


def _review_servers(
    chosen: CommonOptions,
    config: Config,
    planned: ClientRewrite,
    moved: Mapping[str, McpSettings],
    descriptions: bool,
) -> list[ReviewedServer]:
    """Start every server once; `mcp.cannot-protect` names those that do not start with what they are granted."""
    environment = {**os.environ, **planned.environment}
    taken: set[str] = set()
    reviews: list[ReviewedServer] = []
    failed: dict[str, BicameralError] = {}
    for name, settings in moved.items():
        try:
            found = read_server(
                chosen.out,
                config,
                name,
                settings,
                descriptions=descriptions,
                environment=environment,
                taken=taken,
                excluded=planned.excluded.get(name, ()),
                closed=planned.files,
            )
        except BicameralError as error:
            failed[name] = error
        else:
            reviews.append(found)
            taken |= {each.tool.name for each in found.tools}
    if failed:
        for error in failed.values():
            chosen.out.say(f"  {error}")
        names = ", ".join(failed)
        raise ToolError(
            "mcp.cannot-protect",
            f"{names} could not be started, and nothing was changed",
            place=Place(file=str(planned.file)),
            fix="Grant what is missing (--read, --write, --network), let a server run as the client does "
            "(--no-sandbox), or leave it as it is (--leave).",
        )
    return reviews


def _write(
    config: Config,
    planned: ClientRewrite,
    reviews: list[ReviewedServer],
    command: list[str],
    leave: tuple[str, ...],
    secrets: Literal["keep", "keyring"],
) -> bool:
    from bicameral.firewall import restore_client_config, rewrite_client_config
    from bicameral.mcp import forget_client_file, record_client_file

    file, accepted = settings_file(config), True
    # What only its owner could read there does not become readable for others here, whatever was not recognised.
    private = not planned.file.stat().st_mode & 0o077
    for each in reviews:
        settings = each.settings.model_copy(update={"tools": f"{TABLE}/{each.name}.toml"})
        accepted = save_server(
            file, config.base, each.name, settings, each.declared, each.review.listed, new=True, private=private
        )
    # Before the client can start a server that would get at its file.
    record_client_file(planned.file, planned.files)
    try:
        done = rewrite_client_config(planned.file, command, secrets=secrets, leave=leave)
        if done != planned:
            restore_client_config(planned.file)
            raise ConfigError(
                "mcp.client-changed",
                "the file was changed while you were asked, and is as it was",
                place=Place(file=str(planned.file)),
                fix="Run the command again.",
            )
    except BaseException:
        forget_client_file(planned.file)
        raise
    return accepted


def _rewrite_facts(planned: ClientRewrite) -> dict[str, Any]:
    return {
        "file": str(planned.file),
        "backup": str(planned.backup),
        "servers": list(planned.servers),
        "renamed": dict(planned.renamed),
        "left": list(planned.left),
        "disabled": list(planned.disabled),
        "outside": list(planned.outside),
        "excluded": {name: list(tools) for name, tools in planned.excluded.items()},
        "dropped": {name: list(keys) for name, keys in planned.dropped.items()},
        "rules": list(planned.rules),
        "secrets": [
            {"server": each.server, "setting": each.setting, "reference": each.reference, "kept": each.kept}
            for each in planned.secrets
        ],
    }


def _plan_lines(
    config: Config, planned: ClientRewrite, servers: Mapping[str, McpSettings], command: list[str]
) -> Iterator[str]:
    from bicameral.mcp import command_text, confinement_text

    yield f"{planned.file}: {count_text(len(servers), 'server')} would be behind the firewall"
    renamed = {new: name for name, new in planned.renamed.items()}
    for name, settings in servers.items():
        before = f", now called {renamed[name]!r}" if name in renamed else ""
        yield f"  {name}: {visible_line(command_text(settings))}  ({confinement_text(settings)}{before})"
        yield from (f"    but {visible_line(note)}" for note in grant_notes(config, name, settings, planned.files))
    for each in planned.secrets:
        where = "stays in the client's file" if each.kept else "must be put there"
        yield f"  {each.setting} of {each.server}, from {each.reference}: {where}"
    yield f"in their place the client would start: {shlex.join(command)}"


@click.command("unprotect", short_help="Bring the configuration file of an MCP client back as it was.")
@click.argument("file", metavar="CLIENT_CONFIG", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@common_options
def unprotect(chosen: CommonOptions, file: Path) -> dict[str, Any]:
    """Bring the configuration file of an MCP client back exactly as it was before `bicameral mcp protect`.

    Its servers stay in bicameral.toml, for plans: `bicameral mcp remove` takes them out.
    """
    from bicameral.firewall import restore_client_config
    from bicameral.mcp import forget_client_file

    restored = restore_client_config(file)
    forget_client_file(restored)
    chosen.out.show(f"restored: {restored}")
    chosen.out.say("its servers stay in bicameral.toml; `bicameral mcp remove NAME` takes one out")
    return {"file": str(restored)}
