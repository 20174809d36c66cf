"""Serving MCP: over standard input and output for one client, or over HTTP for the holders of tokens.

Standard output belongs to the protocol alone. Its descriptor is taken away before anything else is loaded, so that
whatever a library or a tool prints goes to standard error. Over HTTP the same guard stands before the protocol as
before the REST API, and the names under which the server is reached are checked against rebinding of DNS.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import queue
import select
import stat
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from bicameral.errors import ServerError, require_extra
from bicameral.server._serve import REQUIRED_PACKAGES, is_loopback, open_socket, run_worker, serve_http
from bicameral.server._tokens import TokenFile, new_token

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from bicameral.agent import Agent
    from bicameral.config import Config
    from bicameral.server._context import ServerContext
    from bicameral.server._mcp_calls import McpOptions

PATH = "/mcp"
MAX_SESSIONS = 1_000
"""Sessions of clients with a handshake that are open at once, of all users together; later protocols have none."""
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
_QUEUED_LINES = 64


def require_mcp_packages() -> None:
    """Raise `server.not-installed` if a package is missing that serving MCP needs."""
    code = "server.not-installed"
    require_extra("server", *REQUIRED_PACKAGES, error=ServerError, code=code, needs="the server needs")
    require_extra("mcp", "mcp", error=ServerError, code=code, needs="serving MCP needs")


class ProtocolStreams:
    """Standard input and output of the process, for the protocol alone."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target

    def reader(self, most: int) -> LineReader:
        """The lines of standard input; a line of more than `most` bytes is dropped."""
        return LineReader(self._source, most)

    def writer(self) -> LineWriter:
        return LineWriter(self._target)


@contextlib.contextmanager
def claim_standard_streams() -> Generator[ProtocolStreams]:
    """Take standard input and output for the protocol: everyone else reads nothing, and prints to standard error."""
    sys.stdout.flush()
    # Duplicates, which no child process inherits.
    source, target = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    try:
        yield ProtocolStreams(source, target)
    finally:
        sys.stdout.flush()
        os.dup2(source, 0)
        os.dup2(target, 1)
        # The duplicates stay open: a thread may still be blocked on one, and must not get another file's descriptor.


class LineReader:
    """Lines of a descriptor as an async iterator, read by a thread that nobody has to wait for at the end."""

    def __init__(self, source: int, most: int) -> None:
        self._source, self._most = source, most
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        # A client that floods is read no faster than it is served.
        self._free = threading.Semaphore(_QUEUED_LINES)
        threading.Thread(target=self._read, name="bicameral-mcp-input", daemon=True).start()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        self._free.release()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        with contextlib.suppress(RuntimeError):
            for line in _read_lines(self._source, self._most):
                self._put(line)
            self._put(None)

    def _put(self, line: str | None) -> None:
        self._free.acquire()
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line)


def _read_lines(source: int, most: int) -> Iterator[str]:
    buffer, dropping = bytearray(), False
    while True:
        try:
            block = os.read(source, 65_536)
        except OSError:
            return
        if not block:
            return
        *whole, rest = block.split(b"\n")
        for part in whole:
            buffer += part
            if not dropping and len(buffer) <= most:
                yield buffer.decode("utf-8", "replace")
            buffer.clear()
            dropping = False
        buffer += rest
        if len(buffer) > most:
            # The memory is bounded: of a line that is too long nothing is kept.
            buffer.clear()
            dropping = True


class LineWriter:
    """Writes text to a descriptor; in a thread if it would have to wait, so that a client that does not read blocks
    nobody else."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._is_pipe = stat.S_ISFIFO(os.fstat(target).st_mode)
        self._waiting = 0
        """Texts that the thread has: what comes later must not overtake them."""
        self._loop = asyncio.get_running_loop()
        self._texts: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="bicameral-mcp-output", daemon=True).start()

    async def write(self, text: str) -> None:
        from anyio import ClosedResourceError

        data = text.encode("utf-8", "replace")
        try:
            if self._can_take(len(data)):
                os.write(self._target, data)
                return
            written = self._loop.create_future()
            self._waiting += 1
            self._texts.put((data, written))
            await written
        except OSError:
            raise ClosedResourceError from None

    def _can_take(self, size: int) -> bool:
        """Whether so much can be written at once without waiting. Only of pipes that is known before."""
        if not self._is_pipe or self._waiting or size > select.PIPE_BUF:
            return False
        # A pipe that is ready takes as many bytes whole, although it would block for more.
        return bool(select.select([], [self._target], [], 0)[1])

    async def flush(self) -> None:
        """Nothing: a text is written when `write` returns."""

    def _write(self) -> None:
        # A loop that is closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            while True:
                data, written = self._texts.get()
                try:
                    while data:
                        data = data[os.write(self._target, data) :]
                except OSError as error:
                    self._loop.call_soon_threadsafe(self._settle, written, error)
                else:
                    self._loop.call_soon_threadsafe(self._settle, written, None)

    def _settle(self, future: asyncio.Future[None], error: OSError | None) -> None:
        # Also of a text for which nobody waits any more: until now it was in the thread.
        self._waiting -= 1
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


async def serve_mcp_stdio(
    config: Config,
    agent: Agent,
    streams: ProtocolStreams,
    options: McpOptions | None = None,
    *,
    user: str = "local",
    worker: bool = True,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve one client over standard input and output, until it closes them or `stop` is set.

    Args:
        config: The configuration; `[server]` has the limits.
        agent: The agent that plans and checks here, and that the worker uses.
        streams: Standard input and output, see `claim_standard_streams`.
        options: How the client is treated.
        user: Whose client it is.
        worker: Whether a worker runs in this process too.
        stop: Ends the server when set.

    Example:
        >>> with claim_standard_streams() as streams:
        ...     await serve_mcp_stdio(config, Agent.from_config(config), streams)
    """
    require_mcp_packages()
    from anyio import CancelScope
    from mcp.server.stdio import stdio_server

    from bicameral.durable import Runs
    from bicameral.server._context import ServerContext
    from bicameral.server._mcp_calls import McpOptions
    from bicameral.server._mcp_server import build_server

    stop = stop or asyncio.Event()
    # Nobody else can write to this process: whoever does is the user who started it.
    token, _ = new_token(user)
    async with await Runs.open(config) as runs:
        context = ServerContext(config, runs, TokenFile(None, [token]), agent)
        server = build_server(context, options or McpOptions(), token)
        async with run_worker(context, agent, stop, worker):
            with CancelScope() as scope:
                stopping = asyncio.create_task(_stop_serving(context, stop, scope.cancel))
                try:
                    lines: Any = streams.reader(config.server.max_body)
                    async with stdio_server(lines, _as_any(streams.writer())) as (read, write):
                        await server.run(read, write, server.create_initialization_options())
                finally:
                    stopping.cancel()


def _as_any(value: object) -> Any:
    return value


async def _stop_serving(context: ServerContext, stop: asyncio.Event, cancel: Callable[[], None]) -> None:
    await stop.wait()
    # First: calls that are cancelled from here on were not cancelled by the client, and their runs go on.
    context.stopping.set()
    cancel()


async def serve_mcp(
    config: Config,
    agent: Agent,
    tokens: TokenFile,
    options: McpOptions | None = None,
    *,
    names: Iterable[str] = (),
    worker: bool = True,
    stop: asyncio.Event | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve MCP over HTTP until `stop` is set.

    Args:
        config: The configuration; `[server]` has the address and the limits.
        agent: The agent that plans and checks here, and that the worker uses.
        tokens: Who may ask.
        options: How clients are treated.
        names: Further names under which clients reach the server, such as that of a proxy.
        worker: Whether a worker runs in this process too.
        stop: Ends the server when set.
        started: Called with the address once the server listens.

    Example:
        >>> await serve_mcp(Config.load(), agent, TokenFile(Path("tokens.json")), stop=stop)
    """
    require_mcp_packages()
    from bicameral.durable import Runs
    from bicameral.server._context import ServerContext
    from bicameral.server._guard import AdmissionGuard
    from bicameral.server._mcp_calls import McpOptions

    settings, stop = config.server, stop or asyncio.Event()
    hosts = allowed_names(settings.host, names)
    listening = open_socket(settings.host, settings.port)
    with contextlib.closing(listening):
        async with await Runs.open(config) as runs:
            context = ServerContext(config, runs, tokens, agent)
            endpoint = McpEndpoint(context, options or McpOptions(), hosts)
            async with run_worker(context, agent, stop, worker), endpoint.running():
                guard = AdmissionGuard(endpoint, context, json_rpc_error)
                await serve_http(context, guard, listening, stop, started, PATH)


def allowed_names(host: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that requests may address, in the form of the header `Host`, without a port.

    A web page can make a browser send requests to this machine under a name of its own. They carry that name.

    Example:
        >>> allowed_names("127.0.0.1", ["tools.example.org"])
        ('127.0.0.1', 'localhost', '[::1]', 'tools.example.org')
    """
    given = tuple(dict.fromkeys(names))
    if is_loopback(host):
        return (*_LOCAL_NAMES, *given)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return (host, *given)
    if address.is_unspecified and not given:
        raise ServerError(
            "server.no-name",
            f"on {host!r} the server is reached under names that it does not know",
            expected="the names that clients use",
            fix="Say them: `--name tools.example.org`.",
        )
    own = () if address.is_unspecified else (f"[{host}]" if address.version == 6 else host,)
    return (*own, *given)


def json_rpc_error(error: Exception) -> Response:
    """The response for a request that the guard refuses: with the status and facts as over REST, as JSON-RPC has it."""
    from mcp_types import INVALID_REQUEST

    from bicameral.server._context import SafeJsonResponse, response_for

    known = response_for(error)
    facts = json.loads(bytes(known.body))["error"]
    content = {"code": INVALID_REQUEST, "message": facts["message"], "data": facts}
    headers = {name: value for name, value in known.headers.items() if not name.startswith("content-")}
    return SafeJsonResponse({"jsonrpc": "2.0", "id": None, "error": content}, known.status_code, headers=headers)


class McpEndpoint:
    """The ASGI application behind the guard: the protocol at its path, and nothing else."""

    def __init__(self, context: ServerContext, options: McpOptions, hosts: Iterable[str]) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        from bicameral.server._mcp_server import build_server
        from bicameral.server._mcp_sessions import IDLE_SECONDS, UserSessions

        self._context = context
        with_ports = [form for host in hosts for form in (host, f"{host}:*")]
        self._manager = StreamableHTTPSessionManager(
            build_server(context, options),
            security_settings=TransportSecuritySettings(
                allowed_hosts=with_ports,
                allowed_origins=[f"{scheme}://{name}" for name in with_ports for scheme in ("http", "https")],
            ),
            max_request_body_size=context.config.server.max_body,
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=MAX_SESSIONS,
        )
        self._sessions = UserSessions(self._manager.handle_request)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Keep the sessions of clients until the block ends."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
        from mcp.server.auth.provider import AccessToken

        from bicameral.server._context import HttpError

        token = scope.get("state", {}).get("token")
        if scope["type"] != "http" or scope["path"] != PATH or token is None:
            raise HttpError(404, ServerError("server.not-found", "there is nothing here", expected=PATH))
        # A session belongs to the user who opened it: the SDK answers those of others as if they were not there.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=token.user, scopes=[]))
        with contextlib.ExitStack() as slots:
            if scope["method"] == "GET":
                # A stream of notifications stays open; the guard's slot is free again once it has begun.
                slots.enter_context(self._context.watches.slot(token.user))
            await self._sessions.answer(token.user, scope, receive, send)
