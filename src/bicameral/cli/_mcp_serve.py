"""`bicameral mcp serve`: Bicameral as an MCP server, for one client or over HTTP."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any, Literal

import click

from bicameral.cli._command_agent import fetch_missing_weights, is_agent_given, on_signals, open_agent
from bicameral.cli._options import CommonOptions, common_options, model_option, quarantine_option
from bicameral.cli._output import OK
from bicameral.errors import ServerError

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.server import McpOptions


@click.command("serve", short_help="Offer plan, check, run, approvals and patterns as MCP tools.")
@click.option("--http", is_flag=True, help="Listen on HTTP instead of standard input and output.")
@click.option("--host", help="With --http: listen on this address instead of the configured one (127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="With --http: listen on this port; 0 takes a free one.")
@click.option("--name", "names", multiple=True, help="With --http: a name under which clients reach it, as of a proxy.")
@click.option("--user", help="Without --http: whose runs these are (local).")
@click.option(
    "--requests",
    type=click.Choice(["untrusted", "trusted"]),
    default="untrusted",
    show_default=True,
    help="Whose words requests are: a person must endorse untrusted ones; trusted ones count as the user's own.",
)
@click.option(
    "--answers",
    type=click.Choice(["marked", "plain", "withheld"]),
    default="marked",
    show_default=True,
    help="What clients get of answers that strangers may have written: marked text, the values, or nothing.",
)
@click.option("--worker/--no-worker", default=True, help="Whether to do the runs in this process too.")
@model_option
@quarantine_option
@common_options
def serve(
    chosen: CommonOptions,
    http: bool,
    host: str | None,
    port: int | None,
    names: tuple[str, ...],
    user: str | None,
    requests: Literal["untrusted", "trusted"],
    answers: Literal["marked", "plain", "withheld"],
    worker: bool,
) -> int:
    """Offer plan, check, run, approvals and patterns to an MCP client.

    Without --http it serves the client that started it, over standard input and output. With --http a client needs a
    token of `bicameral serve token add`; without tokens one is made for as long as it runs, for this machine alone.

    The client's model never answers for you: requests, and calls that need a yes, are put to you through the client,
    or wait for `bicameral approvals`.

    \b
    bicameral mcp serve
    bicameral mcp serve --http --port 8420
    """
    if not http and (host is not None or port is not None or names):
        raise click.UsageError("--host, --port and --name go with --http.")
    if not http and chosen.out.as_json:
        raise click.UsageError("Without --http, standard output belongs to the protocol: leave out --json.")
    if http and user is not None:
        raise click.UsageError("With --http the token says whose runs these are: leave out --user.")
    from bicameral.server import require_mcp_packages

    require_mcp_packages()
    from bicameral.server import McpOptions

    config, options = chosen.config(), McpOptions(requests, answers)
    if http:
        return _serve_http(chosen, config, options, host, port, names, worker)
    _require_weights(config, worker)
    return asyncio.run(_serve_stdio(config, options, user or "local", worker))


def _require_weights(config: Config, worker: bool) -> None:
    """Refuse to start without weights: a client that waits for them would give up before they have come."""
    if is_agent_given():
        return
    from bicameral.config import missing_weights

    if missing := missing_weights(config, ["privileged", "quarantined"] if worker else ["privileged"]):
        names = ", ".join(weights.title for weights in missing)
        raise ServerError(
            "server.no-weights", f"{names}: not on this machine yet", fix="Fetch them first: `bicameral models pull`."
        )


async def _serve_stdio(config: Config, options: McpOptions, user: str, worker: bool) -> int:
    from bicameral.server import claim_standard_streams, serve_mcp_stdio

    stop = asyncio.Event()
    on_signals(lambda _: stop.set(), signal.SIGINT, signal.SIGTERM)
    # Before the agent is made: what its models and tools print must not get into the protocol.
    with claim_standard_streams() as streams:
        async with open_agent(config) as agent:
            await serve_mcp_stdio(config, agent, streams, options, user=user, worker=worker, stop=stop)
    return OK


def _serve_http(
    chosen: CommonOptions,
    config: Config,
    options: McpOptions,
    host: str | None,
    port: int | None,
    names: tuple[str, ...],
    worker: bool,
) -> int:
    from bicameral.cli.commands.serve import open_tokens, with_address

    config = with_address(config, host, port)
    tokens, text = open_tokens(config)
    fetch_missing_weights(chosen.out, config, ["privileged", "quarantined"] if worker else ["privileged"])

    def say_started(address: str) -> None:
        facts: dict[str, Any] = {"address": address} | ({} if text is None else {"token": text})
        chosen.out.write_json({"ok": True, **facts})
        if text is not None:
            chosen.out.say("there are no tokens yet: this one holds as long as this process runs")
        chosen.out.say(f"MCP on {address}; Ctrl-C stops" + ("" if text is None else f"\n  token: {text}"))

    async def serve_until_stopped() -> int:
        from bicameral.server import serve_mcp

        stop = asyncio.Event()
        on_signals(lambda _: stop.set(), signal.SIGINT, signal.SIGTERM)
        async with open_agent(config) as agent:
            await serve_mcp(config, agent, tokens, options, names=names, worker=worker, stop=stop, started=say_started)
        return OK

    return asyncio.run(serve_until_stopped())
