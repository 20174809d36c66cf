"""The server process: listens, runs a worker beside the server, and shuts both down in order.

FastAPI and uvicorn are imported only to serve: this module must be importable without them, for a clear error.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING

from bicameral.errors import ServerError, require_extra
from bicameral.server._tokens import TokenFile

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from bicameral.agent import Agent
    from bicameral.config import Config
    from bicameral.server._context import ServerContext

STOP_SECONDS = 10
"""How long running responses may take after the server was asked to stop."""
REQUIRED_PACKAGES = ("fastapi", "uvicorn", "h11")


def check_may_listen(host: str, tokens: TokenFile) -> None:
    """Refuse to listen on an address that other machines reach while there is no token.

    Example:
        >>> check_may_listen("127.0.0.1", TokenFile(None))
    """
    if not tokens.valid_tokens() and not is_loopback(host):
        raise ServerError(
            "server.no-tokens",
            f"nobody has a token, so the server does not listen on {host!r}, where others could reach it",
            fix="Make a token first: `bicameral serve token add USER`.",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def serve(
    config: Config,
    agent: Agent,
    tokens: TokenFile,
    *,
    worker: bool = True,
    stop: asyncio.Event | None = None,
    started: Callable[[str], None] | None = None,
    surround: Callable[[ASGIApp, ServerContext], ASGIApp] | None = None,
) -> None:
    """Serve until `stop` is set.

    Args:
        config: The configuration; `[server]` has the address and the limits.
        agent: The agent that plans and checks here, and that the worker uses.
        tokens: Who may ask.
        worker: Whether a worker runs in this process too.
        stop: Ends the server when set.
        started: Called with the address once the server listens.
        surround: Puts more around the application, such as the console.

    Example:
        >>> await serve(Config.load(), agent, TokenFile(Path("tokens.json")), stop=stop)
    """
    code = "server.not-installed"
    require_extra("server", *REQUIRED_PACKAGES, error=ServerError, code=code, needs="the server needs")
    from bicameral.durable import Runs
    from bicameral.server._context import ServerContext

    settings, stop = config.server, stop or asyncio.Event()
    listening = open_socket(settings.host, settings.port)
    with contextlib.closing(listening):
        async with await Runs.open(config) as runs:
            context = ServerContext(config, runs, tokens, agent)
            from bicameral.server._app import create_app

            app = create_app(context)
            if surround is not None:
                app = surround(app, context)
            async with run_worker(context, agent, stop, worker):
                await serve_http(context, app, listening, stop, started)


def open_socket(host: str, port: int) -> socket.socket:
    """The listening socket, opened first: a server that cannot listen must not start a worker."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, proto)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(256)
        except BaseException:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:
        words = error.strerror or error if isinstance(error, OSError) else "no name of a host"
        raise ServerError(
            "server.cannot-listen", f"cannot listen on {host} port {port}: {words}", fix="Choose another --port."
        ) from None
    listening.setblocking(False)
    return listening


@contextlib.asynccontextmanager
async def run_worker(context: ServerContext, agent: Agent, stop: asyncio.Event, wanted: bool) -> AsyncGenerator[None]:
    """Run a worker until the server has stopped; a worker that fails stops the server."""
    if not wanted:
        yield
        return
    from bicameral.durable import Worker

    ending = asyncio.Event()
    work = asyncio.create_task(Worker(context.runs, agent).run(ending))
    work.add_done_callback(lambda _: stop.set())
    try:
        yield
    finally:
        ending.set()
        await work


async def serve_http(
    context: ServerContext,
    app: ASGIApp,
    listening: socket.socket,
    stop: asyncio.Event,
    started: Callable[[str], None] | None,
    path: str = "",
) -> None:
    """Serve an application of a context on a socket until `stop` is set; `started` gets its address with the path."""

    async def end() -> None:
        context.stopping.set()

    await serve_app(app, listening, stop, started, path, end)


async def serve_app(
    app: ASGIApp,
    listening: socket.socket,
    stop: asyncio.Event,
    started: Callable[[str], None] | None,
    path: str,
    end: Callable[[], Awaitable[None]],
) -> None:
    """Serve an application on a socket until `stop` is set.

    Args:
        app: The application; it gets no events of a lifespan.
        listening: The socket.
        stop: Ends it.
        started: Gets its address with the path.
        path: Where clients find it.
        end: Called when it is stopped: ends the streams that are open, since uvicorn waits for them.
    """
    import uvicorn

    from bicameral.server._slow_heads import HeadTimeoutProtocol

    config = uvicorn.Config(
        app,
        http=HeadTimeoutProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=STOP_SECONDS,
        h11_max_incomplete_event_size=32_768,
    )
    server = uvicorn.Server(config)
    # No signal handlers: the command line handles signals, because it also has to stop the worker.
    server.capture_signals = contextlib.nullcontext  # pyright: ignore[reportAttributeAccessIssue]
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        if started is not None:
            host, port = listening.getsockname()[:2]
            started(f"http://[{host}]:{port}{path}" if ":" in host else f"http://{host}:{port}{path}")
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        await end()
        server.should_exit = True
        await serving
