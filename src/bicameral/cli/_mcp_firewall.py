"""`bicameral mcp firewall`: the configured servers for a client of another program, behind the firewall."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import is_agent_given, on_signals, open_agent
from bicameral.cli._mcp_reviews import grant_notes
from bicameral.cli._options import CommonOptions, PeriodType, common_options, quarantine_option
from bicameral.cli._output import OK, Output
from bicameral.display import visible_line
from bicameral.errors import ConfigError, missing_packages

if TYPE_CHECKING:
    from bicameral.boundary import Executor
    from bicameral.config import Config
    from bicameral.durable import Runs
    from bicameral.firewall import Firewall, FirewallSettings, Transport
    from bicameral.runs import Answers, ApprovalQuestion


@click.command("firewall", short_help="Stand between an MCP client and the configured servers.")
@click.option(
    "--client",
    type=click.Choice(["trusted", "untrusted"]),
    default="trusted",
    show_default=True,
    help="Whether what the client's model writes counts as your own word until it has read something else.",
)
@click.option(
    "--approvals",
    type=click.Choice(["elicitation", "inbox", "refuse"]),
    default="elicitation",
    show_default=True,
    help="How you are asked: by the client, and where it cannot by `bicameral approvals`; only there; or not at all.",
)
@click.option(
    "--wait",
    type=PeriodType(),
    default=300.0,
    show_default="5m",
    help="How long an answer is waited for. Then it is no.",
)
@click.option(
    "--undeclared",
    type=click.Choice(["hide", "show"]),
    default="hide",
    show_default=True,
    help="What becomes of tools that you have not reviewed: their names are untrusted text.",
)
@click.option("--careful", is_flag=True, help="Ask also about what policy allows if it cannot be taken back.")
@click.option("--http", is_flag=True, help="Listen on HTTP instead of standard input and output.")
@click.option("--host", help="With --http: listen on this address instead of the configured one (127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="With --http: listen on this port; 0 takes a free one.")
@click.option("--name", "names", multiple=True, help="With --http: a name under which clients reach it, as of a proxy.")
@quarantine_option
@common_options
def firewall(
    chosen: CommonOptions,
    client: str,
    approvals: str,
    wait: float,
    undeclared: str,
    careful: bool,
    http: bool,
    host: str | None,
    port: int | None,
    names: tuple[str, ...],
) -> int:
    """Stand between an MCP client and the configured servers.

    The client sees the tools that you have reviewed. What others may have written reaches its model as names with typed
    summaries, which it can pass on to other tools. Every call is decided by the same policies as in a plan: what needs
    a yes is put to you through the client, or waits for `bicameral approvals`.

    Without --http it serves the client that started it, over standard input and output. `bicameral mcp protect` writes
    it into the configuration of a client. With --http a client needs a token of `bicameral serve token add`.
    """
    if not http and (host is not None or port is not None or names):
        raise click.UsageError("--host, --port and --name go with --http.")
    if not http and chosen.out.as_json:
        raise click.UsageError("Without --http, standard output belongs to the protocol: leave out --json.")
    from bicameral.firewall import FirewallSettings, ServerRules
    from bicameral.mcp import require_mcp

    require_mcp()
    config = chosen.config()
    _require_servers(config)
    settings = FirewallSettings.model_validate(
        {
            "client": client,
            "approvals": approvals,
            "approval_seconds": wait,
            "undeclared": undeclared,
            "careful": careful,
            "servers": {name: ServerRules(show=each.show, rate=each.rate) for name, each in config.mcp.items()},
        }
    )
    if http:
        return _serve_http(chosen, config, settings, host, port, names)
    return asyncio.run(_serve_stdio(chosen, config, settings))


def _require_servers(config: Config) -> None:
    """A firewall without servers would start, and its client would not know why there are no tools."""
    if config.mcp:
        return
    if any(each.startswith("mcp.") for each in config.withheld):
        what, fix = (
            "the servers of the configuration are not accepted",
            "Look at it, then run `bicameral config accept`.",
        )
    else:
        what, fix = "no MCP server is configured", "`bicameral mcp add` adds one."
    raise ConfigError("mcp.no-servers", what, fix=fix)


async def _serve_stdio(chosen: CommonOptions, config: Config, settings: FirewallSettings) -> int:
    from bicameral.firewall import StdioTransport
    from bicameral.server import claim_standard_streams

    # Before anything is opened: what tools and models print must not get into the protocol.
    with claim_standard_streams() as streams:
        return await _serve(chosen, config, settings, StdioTransport(streams), None)


def _serve_http(
    chosen: CommonOptions,
    config: Config,
    settings: FirewallSettings,
    host: str | None,
    port: int | None,
    names: tuple[str, ...],
) -> int:
    from bicameral.cli.commands.serve import open_tokens, with_address
    from bicameral.firewall import HttpTransport

    config = with_address(config, host, port)
    tokens, text = open_tokens(config)

    def say_started(address: str) -> None:
        chosen.out.write_json({"ok": True, "address": address} | ({} if text is None else {"token": text}))
        if text is not None:
            chosen.out.say("there are no tokens yet: this one holds as long as this process runs")
        chosen.out.say(f"firewall on {address}; Ctrl-C stops" + ("" if text is None else f"\n  token: {text}"))

    transport = HttpTransport(tokens, config.server.host, config.server.port, names)
    return asyncio.run(_serve(chosen, config, settings, transport, say_started))


async def _serve(
    chosen: CommonOptions,
    config: Config,
    settings: FirewallSettings,
    transport: Transport,
    started: Callable[[str], None] | None,
) -> int:
    from bicameral.firewall import serve_firewall

    stop = asyncio.Event()
    on_signals(lambda _: stop.set(), signal.SIGINT, signal.SIGTERM)
    async with open_firewall(chosen.out, config, settings, chosen.config_again) as opened:
        # What is loaded by now stays to the end: the collector need not look at it again and again.
        gc.freeze()
        await serve_firewall(opened, transport, stop=stop, started=started)
    return OK


@asynccontextmanager
async def open_firewall(
    out: Output, config: Config, settings: FirewallSettings, reload: Callable[[], Config] | None = None
) -> AsyncGenerator[Firewall]:
    """The firewall of a configuration, with its servers, its journal, its inbox and its quarantined model.

    With `reload`, which reads the configuration anew, it takes reviews over that are made while it runs.
    """
    from bicameral.config import open_journal, open_policy
    from bicameral.firewall import Firewall, FirewallServers, follow_reviews
    from bicameral.tools import Registry

    for name, server in config.mcp.items():
        for note in grant_notes(config, name, server):
            out.say(f"{name}: {visible_line(note)}")
    # In a thread: a server without declarations is started for its list.
    servers = await asyncio.to_thread(FirewallServers.open, config, settings, asyncio.get_running_loop())
    async with AsyncExitStack() as stack:
        stack.push_async_callback(servers.aclose)
        # The policies may name any tool, also those that clients do not get.
        policy = open_policy(config, Registry(servers.tools))
        journal = open_journal(config)
        stack.callback(journal.close)
        inbox = DurableInbox(config) if settings.approvals != "refuse" and not missing_packages("dbos") else None
        if inbox is not None:
            stack.push_async_callback(inbox.aclose)
        opened = Firewall(
            servers.registry(),
            policy,
            settings,
            journal=journal,
            extractor=await stack.enter_async_context(_open_extractor(out, config)),
            inbox=inbox,
            resources=servers.documents,
        )
        if reload is not None:
            watching = asyncio.create_task(follow_reviews(servers, opened, reload, partial(out.say, style="yellow")))
            stack.callback(watching.cancel)
        yield opened


@asynccontextmanager
async def _open_extractor(out: Output, config: Config) -> AsyncGenerator[Executor | None]:
    """The quarantined model for typed values; none where its weights are not on this machine."""
    from bicameral.config import missing_weights, open_executor, open_models

    if is_agent_given():
        async with open_agent(config) as agent:
            yield agent.executor
        return
    if missing_weights(config, ["quarantined"]):
        # A client does not wait for them. Everything else works without.
        out.say(
            "the quarantined model is not on this machine: no values are extracted; `bicameral models pull` fetches it"
        )
        yield None
        return
    models = open_models(config)
    opened = open_executor(
        config, models.quarantined, privileged=models.privileged, timeout=config.limits.model_timeout
    )
    try:
        yield opened.executor
    finally:
        await opened.aclose()
        await models.quarantined.aclose()
        await models.privileged.aclose()


class DurableInbox:
    """The questions of `bicameral approvals`, opened with the first question: the database takes a second to load.

    Args:
        config: The configuration, which says where the database is.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._stack = AsyncExitStack()
        self._runs: Runs | None = None
        # Two questions at once must not open two.
        self._opening = asyncio.Lock()

    async def ask(self, question: ApprovalQuestion, **about: Any) -> Answers:
        """See `Runs.ask`."""
        async with self._opening:
            if self._runs is None:
                from bicameral.durable import Runs

                self._runs = await self._stack.enter_async_context(await Runs.open(self._config))
        return await self._runs.ask(question, **about)

    async def aclose(self) -> None:
        await self._stack.aclose()
