"""Serving the firewall: to the client that started this process, or over HTTP to the holders of tokens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from bicameral.errors import ServerError, require_extra

if TYPE_CHECKING:
    from bicameral.firewall._firewall import Firewall
    from bicameral.server import ProtocolStreams, TokenFile

MAX_LINE = 8 * 1024 * 1024
"""Bytes of one message over standard input. A longer one is dropped."""
STOP_SECONDS = 10
"""How long running responses may take after the server was asked to stop."""


@dataclass(frozen=True, slots=True)
class StdioTransport:
    """One client, which has started this process.

    Args:
        streams: Standard input and output, see `claim_standard_streams` of `bicameral.server`. Without them they are
            claimed while the client is served.
        owner: Whose client it is.
    """

    streams: ProtocolStreams | None = None
    owner: str = "local"


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """Any number of clients over HTTP, each with a token.

    Args:
        tokens: Who may connect. Sessions belong to the users of the tokens.
        host: The address to listen on.
        port: The port; 0 for a free one.
        names: Further names under which clients reach the server, such as that of a proxy.
        idle_seconds: After these a session without a request ends.
    """

    tokens: TokenFile
    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()
    idle_seconds: float = 1800.0


Transport = StdioTransport | HttpTransport


def require_mcp() -> None:
    """Raise `firewall.not-installed` if the package is missing that speaks MCP."""
    require_extra("mcp", "mcp", error=ServerError, code="firewall.not-installed", needs="the firewall needs")


async def serve_firewall(
    firewall: Firewall,
    transport: Transport,
    *,
    stop: asyncio.Event | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve clients until they are gone (over standard input and output) or `stop` is set.

    Args:
        firewall: What stands between the clients and the tools.
        transport: How clients connect.
        stop: Ends the server when set; what has begun is finished, and the sessions get their ends in the journal.
        started: Called with the address once clients can connect over HTTP.

    Example:
        >>> await serve_firewall(firewall, HttpTransport(TokenFile(Path("tokens.json"))), started=print)
    """
    require_mcp()
    stop = stop or asyncio.Event()
    if isinstance(transport, HttpTransport):
        await _serve_http(firewall, transport, stop, started)
    elif transport.streams is not None:
        await _serve_stdio(firewall, transport.streams, transport.owner, stop)
    else:
        from bicameral.server import claim_standard_streams

        with claim_standard_streams() as streams:
            await _serve_stdio(firewall, streams, transport.owner, stop)


async def _serve_stdio(firewall: Firewall, streams: ProtocolStreams, owner: str, stop: asyncio.Event) -> None:
    from anyio import CancelScope
    from mcp.server.stdio import stdio_server

    from bicameral.firewall._server import create_server

    server = create_server(firewall, owner=owner)
    with CancelScope() as scope:

        async def stopping() -> None:
            await stop.wait()
            scope.cancel()

        waiting = asyncio.create_task(stopping())
        try:
            lines, writer = cast("Any", streams.reader(MAX_LINE)), cast("Any", streams.writer())
            async with stdio_server(lines, writer) as (read, write):
                await server.run(read, write, server.create_initialization_options())
        finally:
            waiting.cancel()


async def _serve_http(
    firewall: Firewall, transport: HttpTransport, stop: asyncio.Event, started: Callable[[str], None] | None
) -> None:
    from bicameral.firewall._http import PATH, FirewallApp, security_for
    from bicameral.server import allowed_names, check_may_listen, open_socket, serve_app

    check_may_listen(transport.host, transport.tokens)
    names = allowed_names(transport.host, transport.names)
    app = FirewallApp(firewall, transport.tokens, security_for(names), idle_seconds=transport.idle_seconds)
    with contextlib.closing(open_socket(transport.host, transport.port)) as listening:
        async with app.running():
            await serve_app(cast("Any", app), listening, stop, started, PATH, app.aclose)
