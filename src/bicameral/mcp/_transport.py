"""Transports to MCP servers: a confined program's pipes, or HTTP, both with bounds on what a server may send.

The SDK's own transports read a line, or a body, of any length into memory. A server is not trusted to end either.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicameral.display import make_visible
from bicameral.foreign import read_secret
from bicameral.mcp._grants import FindPlaces, server_grants
from bicameral.mcp._inflow import EventCounter, InflowLimit, ReconnectPace
from bicameral.mcp._program_folders import argument_files, program_folders, shown_program_paths
from bicameral.mcp._settings import McpSettings
from bicameral.tools import MIB, PATH, Confinement, program_path, start_confined, start_unconfined

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from bicameral.tools import RunningProgram

_MAX_STREAM = 256 * MIB
"""Bytes of one stream of events. It may last as long as the connection, so that only a bound far above what any server
sends keeps it from being cut off; what comes in a minute is bounded by `InflowLimit`, and each event like a message."""
_STDERR_LINES = 20
_CONFINED_ENVIRONMENT = {
    # Nothing of the user's home can be read, and programs that look there would take that for an error.
    "HOME": "/nonexistent",
    # Git refuses to work where it cannot read the machine's configuration.
    "GIT_CONFIG_NOSYSTEM": "1",
}
_STDERR_LINE = 400
_FLUSH_SECONDS = 5.0


@dataclass(slots=True)
class ServerOutput:
    """What became of a server besides its messages: why it was cut off, and the end of its standard error.

    Everything here is the server's own text, and shown to a person only.
    """

    fault: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when no message will come any more."""
    stderr: deque[str] = field(default_factory=lambda: deque(maxlen=_STDERR_LINES))

    def describe(self) -> str:
        """Why there is no answer, in one line."""
        last = next((line for line in reversed(self.stderr) if line.strip()), "")
        said = f"; its last words: {make_visible(last)}" if last else ""
        return f"{self.fault or 'it ended'}{said}"


def open_transport(
    name: str,
    settings: McpSettings,
    output: ServerOutput,
    *,
    base: Path,
    environment: Mapping[str, str] | None = None,
    places: FindPlaces | None = None,
) -> AbstractAsyncContextManager[TransportStreams]:
    """The transport to a server as its settings say.

    Args:
        name: The name of the server, for errors.
        settings: How it is reached.
        output: Gets what is known when it fails.
        base: The working folder: relative paths of the settings start here.
        environment: Where secrets are looked up; by default the environment of this process.
        places: What its sandbox keeps it from, besides what is protected on every machine.
    """
    if settings.url is not None:
        return _http_transport(name, settings, output, environment)
    return _pipe_transport(settings, output, partial(_start_program, name, settings, base, environment, places))


@asynccontextmanager
async def _pipe_transport(
    settings: McpSettings, output: ServerOutput, start: Callable[[], RunningProgram]
) -> AsyncGenerator[TransportStreams]:
    import anyio
    from mcp.shared.message import SessionMessage

    # In a thread: starting waits for the program to begin, and other connections share this loop.
    program = await asyncio.to_thread(start)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    pipes = _ProgramPipes(program, output, settings.max_result)
    try:
        await pipes.open()
        async with anyio.create_task_group() as group:
            group.start_soon(pipes.read_messages, to_client)
            group.start_soon(pipes.write_messages, from_client)
            group.start_soon(pipes.read_errors)
            try:
                yield from_server, to_server
            finally:
                group.cancel_scope.cancel()
    finally:
        # Also if this task is cancelled: no server may outlive its connection.
        with anyio.CancelScope(shield=True):
            # The pipes first: stopping the program closes them, and the loop must not watch a number that then is
            # given to another pipe.
            pipes.close()
            with suppress(RuntimeError):
                # At the end of the process no thread can be started any more: then the program is stopped there.
                await asyncio.to_thread(program.stop)
            for stream in (to_client, from_server, to_server, from_client):
                stream.close()


def _start_program(
    name: str, settings: McpSettings, base: Path, environment: Mapping[str, str] | None, places: FindPlaces | None
) -> RunningProgram:
    given = dict(settings.env)
    for variable, reference in settings.secrets.items():
        given[variable] = read_secret(reference, environment, what=f"the MCP server {name!r}").reveal()
    if not settings.sandbox:
        return start_unconfined(settings.command, given, base)
    program = server_program(settings.command[0])
    argv = (program, *settings.command[1:])
    # At every start: a protected place may have been made since the last one.
    grants = server_grants(name, settings, base, None if places is None else places())
    confinement = Confinement(
        read=tuple(dict.fromkeys((*_program_files(argv, base), *grants.read))),
        write=grants.write,
        denied=grants.denied,
        network=_network_rules(settings),
        memory=settings.memory_mb * MIB,
        processes=64,
        environment={**_CONFINED_ENVIRONMENT, **_path_with(program), **given},
        folder=base,
    )
    return start_confined(argv, confinement)


def server_program(name: str) -> str:
    """The path of a server's program: an absolute path, one of the environment of this Python, or of the system."""
    beside = Path(sys.executable).parent / name
    if "/" not in name and beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    return program_path(name)


def _program_files(argv: tuple[str, ...], base: Path) -> tuple[Path, ...]:
    return (*program_folders(argv[0], base), *argument_files(argv, base))


def granted_program_paths(settings: McpSettings, base: Path) -> tuple[str, ...]:
    """What a confined server reads of its own outside the system, for the person who reviews it."""
    if not settings.command or not settings.sandbox:
        return ()
    return shown_program_paths(_program_files((server_program(settings.command[0]), *settings.command[1:]), base))


def _network_rules(settings: McpSettings) -> tuple[str, ...]:
    if isinstance(settings.network, tuple):
        return settings.network
    return ("*:*",) if settings.network else ()


def _path_with(program: str) -> dict[str, str]:
    return {"PATH": f"{os.path.dirname(program)}:{PATH}"}


class _ProgramPipes:
    """The three streams of a server's program, as messages."""

    def __init__(self, program: RunningProgram, output: ServerOutput, max_message: int) -> None:
        self._program = program
        self._output = output
        self._max_message = max_message
        self._inflow = InflowLimit()
        self._transports: list[asyncio.ReadTransport | asyncio.WriteTransport] = []

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        # The limit of a line is the limit of a message. A longer one is never in memory as a whole.
        self._stdout = asyncio.StreamReader(limit=self._max_message)
        self._stderr = asyncio.StreamReader(limit=64 * 1024)
        for reader, pipe in ((self._stdout, self._program.stdout), (self._stderr, self._program.stderr)):
            transport, _ = await loop.connect_read_pipe(
                lambda reader=reader: asyncio.StreamReaderProtocol(reader), pipe
            )
            self._transports.append(transport)
        protocol = asyncio.streams.FlowControlMixin()
        transport, _ = await loop.connect_write_pipe(lambda: protocol, self._program.stdin)
        self._transports.append(transport)
        self._stdin = asyncio.StreamWriter(transport, protocol, None, loop)

    def close(self) -> None:
        for transport in self._transports:
            if isinstance(transport, asyncio.WriteTransport):
                # Closing would wait until the program has read everything.
                transport.abort()
            else:
                transport.close()

    async def read_messages(self, to_client: Any) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

        async with to_client:
            try:
                async for line in self._lines():
                    if problem := self._inflow.problem(1, len(line)):
                        self._output.fault = problem
                        return
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except (ValueError, RecursionError):
                        # Whoever writes anything else there does not speak the protocol (any more).
                        self._output.fault = "it wrote something to its standard output that is no message"
                        return
                    if isinstance(message, JSONRPCResponse | JSONRPCError):
                        self._inflow.note_end(message.id)
                    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                        await to_client.send(SessionMessage(message))
            finally:
                self._output.gone.set()

    async def _lines(self) -> AsyncIterator[bytes]:
        while True:
            try:
                line = await self._stdout.readline()
            except ValueError:
                self._output.fault = f"it sent a message of more than {self._max_message:,} bytes"
                return
            if not line:
                return
            if line.strip():
                yield line

    async def write_messages(self, from_client: Any) -> None:
        async with from_client:
            async for message in from_client:
                _note_sent(self._inflow, message.message)
                data = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    self._stdin.write(data.encode() + b"\n")
                    # A server that does not read its input must not hold this up without end.
                    await asyncio.wait_for(self._stdin.drain(), _FLUSH_SECONDS)
                except (OSError, TimeoutError):
                    self._output.fault = self._output.fault or "it does not take requests any more"
                    # It will not answer what it does not read: the next request starts it again.
                    self._output.gone.set()
                    return

    async def read_errors(self) -> None:
        while True:
            try:
                line = await self._stderr.readline()
            except ValueError:
                continue
            if not line:
                return
            self._output.stderr.append(line[:_STDERR_LINE].decode(errors="replace").rstrip())


def _note_sent(inflow: InflowLimit, message: Any) -> None:
    """Tell the limit of a message of ours that begins or ends a wait."""
    from mcp_types import JSONRPCNotification, JSONRPCRequest

    if isinstance(message, JSONRPCRequest):
        inflow.note_request(message.id)
    elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
        given_up = (message.params or {}).get("requestId")
        inflow.note_end(given_up if isinstance(given_up, str | int) else None)


@asynccontextmanager
async def _http_transport(
    name: str, settings: McpSettings, output: ServerOutput, environment: Mapping[str, str] | None
) -> AsyncGenerator[TransportStreams]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    what = f"the MCP server {name!r}"
    headers = {key: read_secret(ref, environment, what=what).reveal() for key, ref in settings.headers.items()}
    if settings.bearer is not None:
        headers["Authorization"] = f"Bearer {read_secret(settings.bearer, environment, what=what).reveal()}"
    timeout = httpx2.Timeout(settings.start_timeout, read=settings.timeout + settings.start_timeout)
    transport = _limited_transport(settings.max_result, output)
    async with (
        # Neither proxies nor keys of the environment: the address is the one that the settings name.
        httpx2.AsyncClient(headers=headers, timeout=timeout, transport=transport, trust_env=False) as client,
        streamable_http_client(
            str(settings.url), http_client=client, max_sse_event_size=settings.max_result
        ) as streams,
    ):
        yield streams


def _limited_transport(max_body: int, output: ServerOutput) -> Any:
    """An HTTP transport whose responses end at a size: the SDK would read the whole of any."""
    import httpx2

    inflow, pace = InflowLimit(), ReconnectPace()

    class LimitedStream(httpx2.AsyncByteStream):
        def __init__(self, inner: Any, most: int, events: EventCounter | None, asked: object) -> None:
            self._inner, self._most, self._events, self._asked = inner, most, events, asked

        async def __aiter__(self) -> AsyncIterator[bytes]:
            read = 0
            async for chunk in self._inner:
                read += len(chunk)
                if read > self._most:
                    output.fault = f"it sent more than {self._most:,} bytes"
                    raise httpx2.ReadError(output.fault)
                if problem := inflow.problem(0 if self._events is None else self._events.count(chunk), len(chunk)):
                    output.fault = problem
                    # Not this stream alone: the library would open another one.
                    output.gone.set()
                    raise httpx2.ReadError(problem)
                yield chunk

        async def aclose(self) -> None:
            inflow.note_end(self._asked)
            await self._inner.aclose()

    class LimitedTransport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: Any) -> Any:
            # Not compressed: a few bytes could be unpacked to gigabytes after they were counted.
            request.headers["Accept-Encoding"] = "identity"
            asked = None
            if request.method == "GET":
                await asyncio.sleep(pace.delay())
            elif _is_request(request.content):
                asked = object()
                inflow.note_request(asked)
                pace.note_request()
            try:
                response = await super().handle_async_request(request)
            except BaseException:
                inflow.note_end(asked)
                raise
            is_stream = _is_event_stream(request.method, response)
            events = EventCounter() if is_stream else None
            response.stream = LimitedStream(response.stream, _MAX_STREAM if is_stream else max_body, events, asked)
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                output.fault = "it sent a compressed answer, which was not asked for"
                await response.aclose()
                raise httpx2.ReadError(output.fault)
            return response

    return LimitedTransport()


def _is_event_stream(method: str, response: Any) -> bool:
    """Whether a response is read as events, each with a limit of its own. The library reads any other as a whole."""
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return response.status_code == 200 and method in ("GET", "POST") and media == "text/event-stream"


def _is_request(content: bytes) -> bool:
    """Whether what is sent is a request of ours, and neither a notification nor an answer to the server."""
    try:
        sent: Any = json.loads(content)
    except ValueError:
        return False
    return isinstance(sent, dict) and "method" in sent and "id" in sent
