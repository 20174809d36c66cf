"""The server as a process: it listens, works, and when it is told to stop brings everything to an end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bicameral.errors import ServerError

from ._tokens import Tokens

if TYPE_CHECKING:
    import uvicorn

    from bicameral.agent import Agent
    from bicameral.config import Config

    from ._desk import Desk

STOP_SECONDS = 10
"""How long answers that are under way may take once the server is told to stop."""
NEEDED = ("fastapi", "uvicorn", "h11")


def installed() -> None:
    """Say at once, and clearly, if a package is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ServerError(
            "server.not-installed",
            f"the server needs {', '.join(missing)}, which is not installed",
            fix='Install it with `pip install "bicameral[server]"`.',
        )


def may_listen(host: str, tokens: Tokens) -> None:
    """Refuse to listen where others can reach the server while nobody has a token."""
    if not tokens.all() and not _own_machine(host):
        raise ServerError(
            "server.no-tokens",
            f"nobody has a token, so the server does not listen on {host!r}, where others could reach it",
            fix="Make a token first: `bicameral serve token add USER`.",
        )


def _own_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def serve(
    config: Config,
    agent: Agent,
    tokens: Tokens,
    *,
    worker: bool = True,
    stop: asyncio.Event | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve until `stop` is set. `started` is told the address once it is listened on.

    Example:
        >>> await serve(Config.load(), agent, Tokens(Path("tokens.json")), stop=stop)
    """
    installed()
    from bicameral.durable import Runs

    from ._desk import Desk

    settings, stop = config.server, stop or asyncio.Event()
    listening = _listen(settings.host, settings.port)
    with contextlib.closing(listening):
        async with await Runs.open(config) as runs:
            desk = Desk(config, runs, tokens, lambda: agent)
            async with _working(desk, agent, stop, worker):
                await _answer(desk, listening, stop, started)


def _listen(host: str, port: int) -> socket.socket:
    """The socket, opened before anything else: whoever cannot listen should not begin to work."""
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
async def _working(desk: Desk, agent: Agent, stop: asyncio.Event, wanted: bool) -> AsyncGenerator[None]:
    """A worker beside the server, told to stop after the server has; a worker that fails stops the server."""
    if not wanted:
        yield
        return
    from bicameral.durable import Worker

    ending = asyncio.Event()
    work = asyncio.create_task(Worker(desk.runs, agent).run(ending))
    work.add_done_callback(lambda _: stop.set())
    try:
        yield
    finally:
        ending.set()
        await work


async def _answer(
    desk: Desk, listening: socket.socket, stop: asyncio.Event, started: Callable[[str], None] | None
) -> None:
    import uvicorn

    from ._app import create_app
    from ._protocol import Impatient

    config = uvicorn.Config(
        create_app(desk),
        http=Impatient,
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
    server = _quiet(uvicorn.Server(config))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        if started is not None:
            started(_address(listening))
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Watches end first: they would hold the server open.
        desk.stopping.set()
        server.should_exit = True
        stopping.cancel()
        await serving


def _quiet(server: uvicorn.Server) -> uvicorn.Server:
    """Without its own way with signals: those are for the command line, which has more than this to bring to an end."""

    @contextlib.contextmanager
    def none() -> Generator[None]:
        yield

    server.capture_signals = none
    return server


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
