"""Connections to MCP servers: started at first use, with bounds on everything, started again after a server died.

All connections of a process live on one thread with an event loop of its own. A connection lasts longer than a run, and
a run may be on any loop: calls are handed over and their results handed back.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bicameral.display import make_visible
from bicameral.errors import BicameralError, ToolError, describe_error, require_extra
from bicameral.foreign import ForeignResult, ForeignTool
from bicameral.mcp._grants import FindPlaces
from bicameral.mcp._library_logs import keep_library_logs_visible, log_loop_problem
from bicameral.mcp._listings import has_resources, list_prompts, list_resources, list_tools
from bicameral.mcp._questions import ServerQuestions
from bicameral.mcp._results import foreign_result, resource_text
from bicameral.mcp._settings import McpSettings
from bicameral.mcp._transport import ServerOutput, open_transport
from bicameral.tools import call_key

if TYPE_CHECKING:
    from mcp import Client
    from pydantic import TypeAdapter

T = TypeVar("T")

_MAX_STARTS, _STARTS_SECONDS = 5, 60.0
"""How often a server may be started in a time: one that dies at every call is left alone."""
_MAX_TIMEOUTS = 2
"""Requests in a row without an answer after which a server counts as hung."""
_CLOSE_SECONDS = 15.0
CALL_KEY = "bicameral/callKey"
"""The key in `_meta` under which a server finds the idempotency key of a call."""


def require_mcp() -> None:
    """Raise `mcp.not-installed` if the extra is not. From then on the library prints nothing that a server wrote."""
    require_extra("mcp", "mcp", "re2", error=ToolError, code="mcp.not-installed", needs="MCP needs")
    keep_library_logs_visible()


@cache
def _shared_loop() -> asyncio.AbstractEventLoop:
    """The loop of connections, on its own thread. A daemon: it must not keep a process from ending."""
    loop = asyncio.new_event_loop()
    # What fails in a task of the library may have a text of a server in its traceback.
    loop.set_exception_handler(log_loop_problem)
    threading.Thread(target=loop.run_forever, name="bicameral-mcp", daemon=True).start()
    return loop


class ServerConnection:
    """One MCP server, as its settings say.

    Args:
        name: The name of the server in the configuration.
        settings: How it is reached and what it may use.
        base: The working folder.
        environment: Where secrets are looked up; by default the environment of this process.
        places: What its sandbox keeps it from, besides what is protected on every machine.

    Example:
        >>> connection = ServerConnection("time", settings, base=Path.cwd())
        >>> [tool.name for tool in await connection.list_tools()]
        ['get_current_time', 'convert_time']
    """

    def __init__(
        self,
        name: str,
        settings: McpSettings,
        *,
        base: Path,
        environment: Mapping[str, str] | None = None,
        places: FindPlaces | None = None,
    ) -> None:
        self.name, self.settings = name, settings
        self._base, self._environment, self._places = base, environment, places
        self._loop: asyncio.AbstractEventLoop | None = None
        self._questions = ServerQuestions(name)
        self.output = ServerOutput()
        self._session: _Session | None = None
        self._starts: list[float] = []
        self._generation = 0
        self._timeouts = 0
        # On the loop of the connections alone: two calls at once must not start two servers.
        self._starting: asyncio.Lock | None = None

    @property
    def generation(self) -> int:
        """Counts up whenever the tools may have changed: the server was started again, or said so."""
        return self._generation

    async def list_tools(self) -> tuple[ForeignTool, ...]:
        """All tools that the server lists now; `foreign.bad-listing` if they cannot be used."""
        return await self._on_loop(self._request("its tools", list_tools))

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, seconds: float | None = None
    ) -> ForeignResult:
        """Call a tool. What the server asks meanwhile is put to the person, if there is one."""
        meta = {} if (key := call_key()) is None else {CALL_KEY: key}
        limit = seconds or self.settings.timeout

        async def call(client: Client) -> ForeignResult:
            with self._questions.answering():
                return foreign_result(await _call_tool(client, name, dict(arguments), meta, limit))

        return await self._on_loop(self._request(f"a call of {name!r}", call, limit))

    async def list_resources(self) -> list[dict[str, str]]:
        """The resources that the server offers: their addresses, names and media types."""
        return await self._on_loop(self._request("its resources", list_resources))

    async def read_resource(self, uri: str) -> str:
        """The text of a resource. It is untrusted, like every other text of a server."""

        async def read(client: Client) -> str:
            with self._questions.answering():
                return resource_text(await client.read_resource(uri, cache_mode="bypass"))

        return await self._on_loop(self._request("a resource", read))

    async def list_prompts(self) -> list[dict[str, Any]]:
        """The prompts that the server offers, with the names of their arguments."""
        return await self._on_loop(self._request("its prompts", list_prompts))

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a prompt: an untrusted document, and never an instruction."""

        async def get(client: Client) -> str:
            with self._questions.answering():
                found = await client.get_prompt(name, dict(arguments))
            return "\n\n".join(str(getattr(each.content, "text", "")) for each in found.messages)

        return await self._on_loop(self._request("a prompt", get))

    async def offers(self) -> frozenset[str]:
        """What the server has: `tools`, and `resources` and `prompts` if there are any.

        Many servers say that they have resources or prompts, and list none.
        """

        async def capabilities(client: Client) -> frozenset[str]:
            found = client.server_capabilities
            return frozenset(each for each in ("tools", "resources", "prompts") if getattr(found, each) is not None)

        offered = set(await self._on_loop(self._request("what it has", capabilities)))
        if "resources" in offered and not await self._on_loop(self._request("its resources", has_resources)):
            offered.discard("resources")
        if "prompts" in offered and not await self.list_prompts():
            offered.discard("prompts")
        return frozenset(offered)

    def use_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work on a loop of the caller, who closes the connection before the loop; before the first request.

        It saves each request the way to another thread and back. On that loop `close` cannot be used, only `aclose`.
        """
        self._loop = loop
        # As on the loop of our own: what nobody caught may quote a server, so that it goes to the log and not to the
        # terminal.
        loop.set_exception_handler(log_loop_problem)

    async def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine on the loop of the connection; cancelling the caller cancels it there."""
        self._loop = loop = self._loop or _shared_loop()
        if loop is asyncio.get_running_loop():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    async def aclose(self) -> None:
        """End the connection, and the server if it was started here."""
        await self._on_loop(self._close())

    def close(self) -> None:
        """The same, for code that does not await. The end of a server that hangs is not waited for."""
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._close(), self._loop or _shared_loop()).result(_CLOSE_SECONDS)

    # On the loop of the connections ----------------------------------------------------------------------------------

    async def _request(
        self, what: str, ask: Callable[[Client], Coroutine[Any, Any, T]], seconds: float | None = None
    ) -> T:
        session = await self._require_session()
        limit = seconds or self.settings.timeout
        request = asyncio.ensure_future(ask(session.client))
        try:
            # The end of the session ends the wait: no request may hang on a server that is gone.
            await asyncio.wait({request, session.task}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if request.done():
                found = request.result()
                self._timeouts = 0
                return found
        except BicameralError:
            raise
        except asyncio.CancelledError:
            raise
        except Exception as error:
            raise self._request_error(what, session, error) from None
        finally:
            if not request.done():
                request.cancel()
                await asyncio.wait({request}, timeout=1.0)
        if not session.is_open:
            raise self._gone_error(what)
        self._timeouts += 1
        if self._timeouts >= _MAX_TIMEOUTS:
            # It does not answer any more. The next request starts it again.
            await session.close()
        raise ToolError("mcp.timeout", f"the MCP server {self.name!r} did not answer {what} within {limit:g} s")

    async def _require_session(self) -> _Session:
        require_mcp()
        self._starting = self._starting or asyncio.Lock()
        async with self._starting:
            if self._session is not None and self._session.is_open:
                return self._session
            if self._session is not None:
                # It is gone, and perhaps not yet cleared away: two of one server must not run side by side.
                await self._session.close()
            self._count_start()
            self.output = ServerOutput()
            self._session = session = _Session(self)
            self._generation += 1
            try:
                await session.wait_until_ready(self.settings.start_timeout)
            except BaseException:
                await session.close()
                raise
            return session

    def _count_start(self) -> None:
        now = time.monotonic()
        self._starts = [each for each in self._starts if now - each < _STARTS_SECONDS]
        if len(self._starts) >= _MAX_STARTS:
            raise ToolError(
                "mcp.server-down",
                f"the MCP server {self.name!r} ended {_MAX_STARTS} times within a minute: {self.output.describe()}",
                fix=f"`bicameral mcp check {self.name}` shows what it says. It is tried again in a minute.",
            )
        self._starts.append(now)

    def _request_error(self, what: str, session: _Session, error: Exception) -> ToolError:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED

        if not session.is_open or self.output.fault:
            return self._gone_error(what)
        if isinstance(error, MCPError):
            if error.error.code == CONNECTION_CLOSED:
                return self._gone_error(what)
            said = _short(str(error.error.message), 300)
            return ToolError("mcp.server-error", f"the MCP server {self.name!r} answered {what} with an error: {said}")
        return ToolError(
            "mcp.bad-answer",
            f"what the MCP server {self.name!r} answered to {what} is not of the protocol: "
            f"{_short(describe_error(error), 300)}",
        )

    def _gone_error(self, what: str) -> ToolError:
        return ToolError(
            "mcp.unreachable",
            f"the MCP server {self.name!r} did not answer {what}: {self.output.describe()}",
            fix=f"`bicameral mcp check {self.name}` starts it and shows what it says.",
        )

    def start_error(self, error: BaseException | None) -> ToolError:
        """Why a server could not be started or does not speak the protocol."""
        causes = _leaves(error)
        ours = next((each for each in causes if isinstance(each, ToolError)), None)
        if ours is not None:
            return ours
        why = self.output.describe() if self.output.fault or self.output.stderr else ""
        if not why:
            why = describe_error(causes[0]) if causes else self.output.describe()
        hint = (
            "If it needs a file, a folder or the network, grant it with `read`, `write` or `network`."
            if self.settings.command and self.settings.sandbox
            else None
        )
        return ToolError(
            "mcp.cannot-start",
            f"the MCP server {self.name!r} could not be started: {_short(why, 500)}",
            fix=hint,
        )

    def note_change(self) -> None:
        """The server says that its tools have changed."""
        self._generation += 1

    def open_client(self) -> Client:
        """A client of the library, not entered yet."""
        from importlib.metadata import version

        from mcp import Client
        from mcp_types import Implementation

        transport = open_transport(
            self.name,
            self.settings,
            self.output,
            base=self._base,
            environment=self._environment,
            places=self._places,
        )
        return Client(
            transport,  # pyright: ignore[reportArgumentType]
            read_timeout_seconds=self.settings.timeout,
            elicitation_callback=self._questions.elicit,
            sampling_callback=self._questions.sample,
            message_handler=self._on_message,
            client_info=Implementation(name="bicameral", version=version("bicameral")),
            # No answer of a server is kept for later: what was listed then is not what is there now.
            cache=None,
        )

    async def _on_message(self, message: object) -> None:
        from mcp_types import ToolListChangedNotification

        root = getattr(message, "root", message)
        if isinstance(root, ToolListChangedNotification):
            self.note_change()

    async def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class _Session:
    """One life of a connection: a task that enters the client, and leaves it when it is told to."""

    def __init__(self, owner: ServerConnection) -> None:
        self._owner = owner
        self._ready = asyncio.Event()
        # Set by whoever closes the session, and by the transport when the server is gone.
        self._end = owner.output.gone
        self._client: Client | None = None
        # The library's context must be left by the task that entered it.
        self.task = asyncio.create_task(self._live(), name=f"mcp {owner.name}")

    @property
    def is_open(self) -> bool:
        return not (self.task.done() or self._end.is_set())

    @property
    def client(self) -> Client:
        if self._client is None:
            raise AssertionError("a session is used after it is ready")
        return self._client

    async def _live(self) -> None:
        async with self._owner.open_client() as client:
            self._client = client
            self._ready.set()
            await self._end.wait()

    async def wait_until_ready(self, seconds: float) -> None:
        ready = asyncio.ensure_future(self._ready.wait())
        done, _ = await asyncio.wait({ready, self.task}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._ready.is_set() and not self.task.done():
            return
        if self.task in done:
            raise self._owner.start_error(None if self.task.cancelled() else self.task.exception())
        raise self._owner.start_error(TimeoutError(f"it did not answer within {seconds:g} s"))

    async def close(self) -> None:
        if not self._ready.is_set():
            # It never came to the point at which it waits for its end.
            self.task.cancel()
        self._end.set()
        done, _ = await asyncio.wait({self.task}, timeout=_CLOSE_SECONDS)
        if not done:
            self.task.cancel()
            await asyncio.wait({self.task}, timeout=_CLOSE_SECONDS)
        if self.task.done() and not self.task.cancelled():
            # Looked at, so that asyncio does not report it: what failed at the end of a session changes nothing.
            self.task.exception()


def _short(text: str, most: int) -> str:
    """The beginning of an untrusted text, on one line and with hidden characters visible."""
    # Cut first: looking for what is hidden takes seconds for megabytes, and all connections share this loop.
    return make_visible(" ".join(text[: most * 4].split()))[:most]


def _leaves(error: BaseException | None) -> list[BaseException]:
    """The exceptions in a group of groups."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return [leaf for each in group.exceptions for leaf in _leaves(each)]
    return [] if error is None else [error]


@cache
def _call_result() -> TypeAdapter[Any]:
    """Reads the result of a call. Making it takes longer than a call."""
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    return TypeAdapter(CallToolResult | InputRequiredResult)


async def _call_tool(client: Client, name: str, arguments: dict[str, Any], meta: dict[str, Any], seconds: float) -> Any:
    """The result of a call, after the person has answered what the server asks in between."""
    from mcp_types import CallToolRequest, CallToolRequestParams

    async def send(responses: Any, state: str | None) -> Any:
        params = CallToolRequestParams.model_validate(
            {
                "name": name,
                "arguments": arguments,
                "input_responses": responses,
                "request_state": state,
                "_meta": meta or None,
            },
            by_name=True,
            by_alias=True,
        )
        # Not `call_tool` of the library: it would check the result against a schema of a stranger, without bounds.
        return await client.session.send_request(
            CallToolRequest(params=params), _call_result(), request_read_timeout_seconds=seconds
        )

    return await client._drive_input_required(await send(None, None), send)  # pyright: ignore[reportPrivateUsage]
