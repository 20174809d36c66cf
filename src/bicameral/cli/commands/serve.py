"""`bicameral serve`: the HTTP server, and its access tokens."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import fetch_missing_weights, on_signals, open_agent
from bicameral.cli._options import CommonOptions, common_options, model_option, quarantine_option
from bicameral.cli._output import OK

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.server import Role, TokenFile


@click.group(
    invoke_without_command=True, short_help="Serve runs over HTTP, and to clients that speak OpenAI's protocol."
)
@click.option("--host", help="Listen on this address instead of the configured one (127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port; 0 takes a free one.")
@click.option("--worker/--no-worker", default=True, help="Whether to do the runs in this process too.")
@click.option("--console/--no-console", default=True, help="Whether to answer browsers with the console.")
@model_option
@quarantine_option
@common_options
@click.pass_context
def command(
    context: click.Context, chosen: CommonOptions, host: str | None, port: int | None, worker: bool, console: bool
) -> int:
    """Serve runs over HTTP: submit, watch, approve, cancel; also as a model for OpenAI's clients.

    A browser gets the console: runs, plans, questions, and where each value came from. Without tokens the command makes
    one for as long as it runs, and listens on this machine alone.
    """
    if context.invoked_subcommand is not None:
        return OK
    config = with_address(chosen.config(), host, port)
    tokens, text = open_tokens(config)
    fetch_missing_weights(chosen.out, config, ["privileged", "quarantined"] if worker else ["privileged"])

    def started(address: str) -> None:
        _say_started(chosen, address, text, console=console)

    return asyncio.run(serve_until_stopped(config, tokens, started, worker=worker, console=console))


def with_address(config: Config, host: str | None, port: int | None) -> Config:
    """The configuration with the address of the command line."""
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    return config.model_copy(update={"server": config.server.model_copy(update=given)}) if given else config


def open_tokens(config: Config) -> tuple[TokenFile, str | None]:
    """The tokens of a server, and the text of one that was made for it because there are none."""
    from bicameral.server import TokenFile, check_may_listen, new_token

    tokens = TokenFile(config.token_file)
    check_may_listen(config.server.host, tokens)
    if tokens.valid_tokens():
        return tokens, None
    # For this process alone: it is printed once and stored nowhere.
    token, text = new_token("local", all_users=True)
    return TokenFile(config.token_file, [token]), text


def _say_started(chosen: CommonOptions, address: str, text: str | None, *, console: bool) -> None:
    if text is not None:
        chosen.out.say("there are no tokens yet: this one holds as long as this process runs")
    facts = {"address": address} | ({"token": text} if text is not None else {})
    chosen.out.write_json({"ok": True, **facts})
    chosen.out.say(f"serving on {address}; Ctrl-C stops" + (f"\n  token: {text}" if text is not None else ""))
    if console:
        chosen.out.say(f"  console: {console_address(address, text)}")


def console_address(address: str, token: str | None) -> str:
    """The address at which a browser signs in. The token is behind `#`: browsers send that part to nobody."""
    return address + "/" if token is None else f"{address}/login#{token}"


async def serve_until_stopped(
    config: Config, tokens: TokenFile, started: Callable[[str], None], *, worker: bool, console: bool
) -> int:
    """Serve until a signal stops it; the exit code."""
    from bicameral.server import serve

    surround = None
    if console:
        from bicameral.console import require_console_packages, with_console

        require_console_packages()
        surround = with_console
    stop = asyncio.Event()
    on_signals(lambda _: stop.set(), signal.SIGINT, signal.SIGTERM)
    async with open_agent(config) as agent:
        await serve(config, agent, tokens, worker=worker, stop=stop, started=started, surround=surround)
    return OK


@command.group(short_help="Who may ask.")
def token() -> None:
    """Make, list and remove tokens. A running server takes notice at once."""


@token.command("add")
@click.argument("user")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="How long it holds; without it, for good.")
@click.option(
    "--role",
    "roles",
    type=click.Choice(["see", "run", "approve"]),
    multiple=True,
    help="See runs, plan and run, or answer what they ask; may be repeated. Without it, all of them.",
)
@click.option("--all-users", is_flag=True, help="For the runs and questions of all users, and not only of this one.")
@common_options
def add(
    chosen: CommonOptions, user: str, days: float | None, roles: tuple[Role, ...], all_users: bool
) -> dict[str, Any]:
    """Make a token for USER and print it, once: only its hash is kept."""
    from bicameral.server import ROLES

    seconds = None if days is None else days * 86400
    made, text = _token_file(chosen).add(user, seconds, roles=roles or ROLES, all_users=all_users)
    chosen.out.say(f"token {made.id} of {made.user}; it is shown only now")
    chosen.out.show(text)
    return {"token": text, **_token_facts(made)}


@token.command("list")
@common_options
def list_(chosen: CommonOptions) -> dict[str, Any]:
    """Every token: its id, whose it is, until when it holds, and what it is for."""
    found = [_token_facts(each) for each in _token_file(chosen).all_tokens()]
    for each in found:
        until, roles = each["expires"] or "removed", ", ".join(each["roles"])
        whose = " of all users" if each["all_users"] else ""
        chosen.out.show(f"{each['id']}  {each['user']}  made {each['created']}  until {until}  for {roles}{whose}")
    if not found:
        chosen.out.say("there are no tokens")
    return {"tokens": found}


@token.command("remove")
@click.argument("token_id", metavar="ID")
@common_options
def remove(chosen: CommonOptions, token_id: str) -> dict[str, Any]:
    """Take a token away by its id."""
    gone = _token_file(chosen).remove(token_id)
    chosen.out.say(f"token {gone.id} of {gone.user} holds no longer")
    return _token_facts(gone)


def _token_file(chosen: CommonOptions) -> TokenFile:
    from bicameral.server import TokenFile

    return TokenFile(chosen.config().token_file)


def _token_facts(token: Any) -> dict[str, Any]:
    def when(seconds: float | None) -> str | None:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")

    facts = {"id": token.id, "user": token.user, "created": when(token.created), "expires": when(token.expires)}
    return facts | {"roles": list(token.roles), "all_users": token.all_users}
