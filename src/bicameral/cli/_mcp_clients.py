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
    command_text,
    confinement_text,
    confirm_at_terminal,
    count_text,
    read_server,
)
from bicameral.cli._mcp_settings import (
    PairType,
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
    server's arguments are granted to it. `bicameral mcp unprotect` brings the file back as it was.

    \b
    bicameral mcp protect ~/.cursor/mcp.json --dry-run
    bicameral mcp protect ~/.cursor/mcp.json
    """
    config, out = chosen.config(), chosen.out
    planned, left = _plan_rewrite(chosen, config, file, leave, secrets)
    own, moved = _split_servers(config, planned, grants)
    for name in left:
        out.say(f"left as it is, and NOT behind the firewall: {visible_line(name)}", style="yellow")
    facts = _rewrite_facts(planned, left)
    if dry_run:
        out.show("\n".join(_plan_lines(planned, {**own, **moved}, _firewall_command(chosen, config))))
        out.write_json({"ok": True, "written": False, **facts})
        return OK
    reviews = _review_servers(chosen, config, planned, moved, descriptions)
    if not out.as_json:
        for each in reviews:
            out.say("\n".join(["", *each.lines(full=full)]))
        out.say("")
    servers = count_text(len(planned.servers), "server")
    tools = count_text(sum(len(each.tools) for each in reviews), "reviewed tool")
    if not confirm_at_terminal(out, f"Put {servers} of {planned.file} behind the firewall, with {tools}?", yes):
        return FAILED
    accepted = _write(chosen, config, planned, reviews, left, secrets)
    out.show(f"protected: {planned.file}, {servers} behind the firewall\n  as it was: {planned.backup}")
    for each in planned.to_set:
        out.say(f"to do: put {each.setting} of {each.server} where {each.reference} says")
    out.say(f"restart the client. `bicameral mcp unprotect {shlex.quote(str(file))}` takes it back")
    say_unaccepted(chosen, settings_file(config), accepted)
    out.write_json(
        {"ok": True, "written": True, "accepted": accepted, **facts, "reviews": [each.to_json() for each in reviews]}
    )
    return OK


def _firewall_command(chosen: CommonOptions, config: Config) -> list[str]:
    """What the client starts. Its own working folder and search path are not known here, so that all is absolute."""
    program = Path(sys.executable).with_name("bicameral")
    words = [str(program)] if program.exists() else [sys.executable, "-m", "bicameral.cli"]
    words += ["mcp", "firewall", "--folder", str(config.base)]
    if chosen.config_file is not None or os.environ.get("BICAMERAL_CONFIG"):
        # Only then: a file that is named counts as accepted, whoever has changed it since.
        words += ["--config", str(settings_file(config).absolute())]
    return words


def _plan_rewrite(
    chosen: CommonOptions,
    config: Config,
    file: Path,
    leave: tuple[str, ...],
    secrets: Literal["keep", "keyring"],
) -> tuple[ClientRewrite, tuple[str, ...]]:
    """What would become of the client's file, and the entries that stay: those that it does not start stay so."""
    from bicameral.firewall import rewrite_client_config

    command = _firewall_command(chosen, config)
    planned = rewrite_client_config(file, command, secrets=secrets, leave=leave, write=False)
    if not planned.disabled:
        return planned, planned.left
    names = {new: name for name, new in planned.renamed.items()}
    off = tuple(names.get(name, name) for name in planned.disabled)
    planned = rewrite_client_config(file, command, secrets=secrets, leave=(*leave, *off), write=False)
    return planned, planned.left


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
        if known is not None and known.tools is not None and name not in named and _is_same(known, table):
            own[name] = known
            continue
        require_new(file, file.parent / TABLE / f"{name}.toml", name, replace=False)
        moved[name] = _moved_settings(name, table, grants)
    return own, moved


def _is_same(known: McpSettings, table: Mapping[str, Any]) -> bool:
    return list(known.command) == list(table.get("command", ())) and known.url == table.get("url")


def _moved_settings(name: str, table: Mapping[str, Any], grants: Mapping[str, Any]) -> McpSettings:
    """The settings of a server of the client: what it needs according to its arguments, and what the options grant."""
    from bicameral.mcp import known_server_of

    settings = validated_settings(table)
    if settings.url is not None:
        return settings
    if name in grants["unconfined"]:
        return validated_settings({**table, "sandbox": False})
    paths = [Path(word).expanduser() for word in settings.command[1:] if word.startswith(("/", "~/"))]
    network: list[str] = [where for server, where in grants["network"] if server == name]
    known = known_server_of(settings)
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
    chosen: CommonOptions,
    config: Config,
    planned: ClientRewrite,
    reviews: list[ReviewedServer],
    left: tuple[str, ...],
    secrets: Literal["keep", "keyring"],
) -> bool:
    from bicameral.firewall import restore_client_config, rewrite_client_config

    file, accepted = settings_file(config), True
    for each in reviews:
        settings = each.settings.model_copy(update={"tools": f"{TABLE}/{each.name}.toml"})
        accepted = save_server(file, config.base, each.name, settings, each.declared, each.review.listed, new=True)
    command = _firewall_command(chosen, config)
    done = rewrite_client_config(planned.file, command, secrets=secrets, leave=left)
    if (done.servers, done.environment) != (planned.servers, planned.environment):
        restore_client_config(planned.file)
        raise ConfigError(
            "mcp.client-changed",
            "the file was changed while you were asked, and is as it was",
            place=Place(file=str(planned.file)),
            fix="Run the command again.",
        )
    return accepted


def _rewrite_facts(planned: ClientRewrite, left: tuple[str, ...]) -> dict[str, Any]:
    return {
        "file": str(planned.file),
        "backup": str(planned.backup),
        "servers": list(planned.servers),
        "renamed": dict(planned.renamed),
        "left": list(left),
        "secrets": [
            {"server": each.server, "setting": each.setting, "reference": each.reference, "kept": each.kept}
            for each in planned.secrets
        ],
    }


def _plan_lines(planned: ClientRewrite, servers: Mapping[str, McpSettings], command: list[str]) -> Iterator[str]:
    yield f"{planned.file}: {count_text(len(servers), 'server')} would be behind the firewall"
    renamed = {new: name for name, new in planned.renamed.items()}
    for name, settings in servers.items():
        before = f", now called {renamed[name]!r}" if name in renamed else ""
        yield f"  {name}: {visible_line(command_text(settings))}  ({confinement_text(settings)}{before})"
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

    restored = restore_client_config(file)
    chosen.out.show(f"restored: {restored}")
    chosen.out.say("its servers stay in bicameral.toml; `bicameral mcp remove NAME` takes one out")
    return {"file": str(restored)}
