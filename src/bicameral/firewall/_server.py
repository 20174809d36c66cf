"""The MCP server that clients connect to: a session for each connection, over any transport of the library.

Older clients are asked with a request to them; for clients of the specification 2026-07-28 the question is a result,
and the call goes on when they come back with the answer. What they carry in between is sealed by the library, bound to
the session, the tool and the arguments, and expires; what it names is used once. A client that cannot ask a person is
never taken for one that has.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bicameral.display import make_visible
from bicameral.errors import BicameralError
from bicameral.firewall._approvals import PersonQuestion
from bicameral.firewall._calls import CallAnswer, ClientCall, own_words
from bicameral.firewall._documents import DocumentKind
from bicameral.firewall._listing import ToolListing
from bicameral.firewall._session import FirewallSession
from bicameral.labels import NOTHING, Label

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.models import InitializationOptions

    from bicameral.firewall._firewall import Firewall

NAME = "bicameral-firewall"
QUESTION = "person"
"""The name of the question within a result that asks for input."""
SCHEME = "bicameral"
PROGRESS_SECONDS = 10.0
"""How often a client that asked for it is told that a call is still under way: many give up after a minute."""
MAX_CLIENT_NAME = 60
INSTRUCTIONS = (
    "Results that others may have written are not shown. They are kept under names such as $r1_ab12, with a summary of "
    "their types. Write such a name as an argument of any tool, or within a text, to use the value; a part of it is "
    "$r1_ab12[0].field. To know what a text says, ask extract_value for a typed value of it, if there is that tool. "
    "Names hold until the connection ends. Some calls are put to the user first; one that they refuse stays refused."
)
_NUMBER = re.compile("[1-9][0-9]{0,4}")

Context = Any
"""`ServerRequestContext[FirewallSession]`; the library's generic is not needed at run time."""


@dataclass(slots=True, eq=False)
class Connection:
    """One connection of a client: what its model has read before, and its session, once there is one."""

    read: Label = NOTHING
    session: FirewallSession | None = None


class FirewallServer(Server[FirewallSession]):
    """The library's server, which says of itself that its list of tools may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


def create_server(firewall: Firewall, *, owner: str = "local", connection: Connection | None = None) -> FirewallServer:
    """The server for clients of one owner. Whoever enters its lifespan has a session of their own.

    `connection` says what the model of the client has read before, and gets the session.

    Example:
        >>> async with Client(create_server(firewall)) as client:
        ...     await client.call_tool("mail_list", {"folder": "inbox"})
    """
    handlers = _Handlers(firewall, owner, connection)
    documents: dict[str, Any] = {}
    if firewall.resources is not None:
        documents = {
            "on_list_resources": handlers.list_resources,
            "on_list_resource_templates": handlers.list_templates,
            "on_read_resource": handlers.read_resource,
            "on_list_prompts": handlers.list_prompts,
            "on_get_prompt": handlers.get_prompt,
        }
    server = FirewallServer(
        NAME,
        version=_version(),
        instructions=INSTRUCTIONS,
        lifespan=handlers.lifespan,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_subscriptions_listen=ListenHandler(handlers.bus, max_subscriptions=64),
        # Otherwise the library lists all tools for each call over HTTP.
        get_tool_input_schema=handlers.input_schema,
        **documents,
    )
    # A key of this process alone: whoever starts anew has no call that an old state could belong to.
    security = RequestStateSecurity(
        keys=[_new_key()], ttl=firewall.settings.approval_seconds, bind_principal=_session_of_request
    )
    server.middleware.append(RequestStateBoundary(security, default_audience=NAME))
    return server


class _Handlers:
    """The handlers of one server."""

    def __init__(self, firewall: Firewall, owner: str, connection: Connection | None) -> None:
        self._firewall = firewall
        self._connection = connection
        self._owner = owner
        self.bus = InMemorySubscriptionBus()

    @asynccontextmanager
    async def lifespan(self, _: Server[FirewallSession]) -> AsyncGenerator[FirewallSession]:
        """A session for as long as the connection lasts."""
        connection = self._connection or Connection()
        session = connection.session = self._firewall.new_session(self._owner, connection.read)
        told = _ListChanges(self.bus)
        session.on_request = told.keep_channel
        stop = self._firewall.on_change(told.notify)
        try:
            yield session
        finally:
            stop()
            # Whatever ended the connection: what has begun is finished, and the record gets its end.
            with anyio.CancelScope(shield=True):
                await session.aclose()

    async def list_tools(self, context: Context, params: object) -> types.ListToolsResult:
        session = _session(context)
        return types.ListToolsResult(tools=[_tool(listing) for listing in session.listings()])

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        found = (listing.schema for listing in self._firewall.tools.listings if listing.name == name)
        return next(found, None)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        session, arguments = _session(context), params.arguments or {}
        begin = partial(session.start_call, params.name, arguments, can_ask=can_ask(context))
        try:
            call = await _begun_call(session, params, (params.name, arguments), begin)
        except BicameralError as error:
            return _tool_result(CallAnswer(f"error: {own_words(error)}", session.label, error.code))
        answer = await _drive(context, session, call)
        return answer if isinstance(answer, types.InputRequiredResult) else _tool_result(answer)

    async def list_resources(self, context: Context, params: object) -> types.ListResourcesResult:
        _session(context)
        names = self._documents("resource")
        found = [
            types.Resource(uri=f"{SCHEME}://{name}", name=f"{name} resources", description=f"What {name} has to read.")
            for name in names
        ]
        return types.ListResourcesResult(resources=found)

    async def list_templates(self, context: Context, params: object) -> types.ListResourceTemplatesResult:
        _session(context)
        template = types.ResourceTemplate(
            uri_template=f"{SCHEME}://{{server}}/{{number}}",
            name="one resource",
            description="A resource by its number in the list that is read at the address of its server.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        server, number = _parse_address(str(params.uri))
        answer = await self._read(context, params, server, "resource", number)
        if isinstance(answer, types.InputRequiredResult):
            return answer
        text = types.TextResourceContents(uri=str(params.uri), mime_type="text/plain", text=answer.text)
        return types.ReadResourceResult(contents=[text])

    async def list_prompts(self, context: Context, params: object) -> types.ListPromptsResult:
        _session(context)
        number = types.PromptArgument(name="number", description="Its number in the list; without it, the list.")
        found = [
            types.Prompt(name=name, description=f"A prompt that {name} offers.", arguments=[number])
            for name in self._documents("prompt")
        ]
        return types.ListPromptsResult(prompts=found)

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        number = _parse_number((params.arguments or {}).get("number", ""))
        answer = await self._read(context, params, params.name, "prompt", number)
        if isinstance(answer, types.InputRequiredResult):
            return answer
        # As the user's message, since the protocol has no other place for it: a name and a summary, and no text.
        message = types.PromptMessage(role="user", content=types.TextContent(text=answer.text))
        return types.GetPromptResult(messages=[message])

    async def _read(
        self, context: Context, params: Any, server: str, kind: DocumentKind, number: int | None
    ) -> CallAnswer | types.InputRequiredResult:
        session = _session(context)
        named = (f"{kind}s of {server}", {"number": number})
        begin = partial(session.start_reading, server, kind, number, can_ask=can_ask(context))
        try:
            call = await _begun_call(session, params, named, begin)
        except BicameralError as error:
            raise _protocol_error(own_words(error)) from None
        answer = await _drive(context, session, call)
        if isinstance(answer, CallAnswer) and answer.failed:
            raise _protocol_error(answer.text)
        return answer

    def _documents(self, kind: DocumentKind) -> list[str]:
        resources = self._firewall.resources
        return [] if resources is None else list(resources.servers(kind))


class _ListChanges:
    """Tells one connection that the list of tools is another one."""

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self._bus = bus
        self._channel: Any = None

    def keep_channel(self, channel: Any) -> None:
        """Keep the channel of a request; those of older clients reach the whole connection."""
        self._channel = channel

    async def notify(self) -> None:
        await self._bus.publish(ToolsListChanged())
        if self._channel is not None:
            # Nobody may listen any more, and nothing depends on it.
            with suppress(Exception):
                await self._channel.send_tool_list_changed()


def _session(context: ServerRequestContext[FirewallSession]) -> FirewallSession:
    """The session of a request; what it says of the client is noted for the people who are asked."""
    session = context.lifespan_context
    session.on_request(context.session)
    client = context.session.client_params
    if client is not None:
        session.client = f"the MCP client {make_visible(client.client_info.name[:MAX_CLIENT_NAME], strict=True)!r}"
    return session


def _session_of_request(context: ServerRequestContext[Any]) -> str:
    return context.lifespan_context.id


def can_ask(context: ServerRequestContext[FirewallSession]) -> bool:
    """Whether the client says that it can show a form to its person."""
    capabilities = context.session.client_capabilities
    asks = None if capabilities is None else capabilities.elicitation
    if asks is None or (asks.form is None and asks.url is not None):
        return False
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS or context.session.can_send_request


async def _begun_call(
    session: FirewallSession, params: Any, named: tuple[str, Mapping[str, Any]], begin: Any
) -> ClientCall:
    """A new call; or the one that the client comes back with an answer for, which goes on with that."""
    if params.request_state is None:
        return await begin()
    call, asked = session.resume(params.request_state, *named)
    responses: Mapping[str, Any] = params.input_responses or {}
    reply = responses.get(QUESTION)
    if set(responses) == {QUESTION} and isinstance(reply, types.ElicitResult):
        asked.set_reply(reply.action, reply.content)
    else:
        # Whatever this is: nobody has agreed to anything.
        asked.set_reply("cancel", None)
    return call


async def _drive(
    context: ServerRequestContext[FirewallSession], session: FirewallSession, call: ClientCall
) -> CallAnswer | types.InputRequiredResult:
    """Go on with a call until there is an answer, or until the client has to ask its person."""
    try:
        while True:
            async with _progress(context):
                event = await call.next()
            if isinstance(event, CallAnswer):
                return event
            if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                session.suspend(call, event)
                return types.InputRequiredResult(input_requests={QUESTION: _elicitation(event)}, request_state=event.id)
            event.set_reply(*await _elicit(context, event))
    except asyncio.CancelledError:
        # The client has cancelled, or is gone.
        call.cancel()
        raise


def _elicitation(asked: PersonQuestion) -> types.ElicitRequest:
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=asked.message, requested_schema=asked.schema)
    )


async def _elicit(
    context: ServerRequestContext[FirewallSession], asked: PersonQuestion
) -> tuple[str, Mapping[str, Any] | None]:
    """What the client of an older protocol answers; anything that is no answer counts as none."""
    try:
        result = await context.session.send_request(
            _elicitation(asked),
            types.ElicitResult,
            request_read_timeout_seconds=asked.seconds_left,
            metadata=ServerMessageMetadata(related_request_id=context.request_id),
        )
    except Exception:
        return "cancel", None
    return result.action, result.content


@asynccontextmanager
async def _progress(context: ServerRequestContext[FirewallSession]) -> AsyncGenerator[None]:
    """Tell the client that asked for it, again and again, that its call is still under way."""
    token = (context.meta or {}).get("progress_token")
    if token is None:
        yield
        return

    async def tell() -> None:
        count = 0
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            count += 1
            related = None if context.request_id is None else str(context.request_id)
            await context.session.send_progress_notification(token, count, related_request_id=related)

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await telling


def _tool(listing: ToolListing) -> types.Tool:
    reads = listing.effect in ("pure", "read")
    return types.Tool(
        name=listing.name,
        description=listing.doc,
        input_schema=dict(listing.schema),
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=listing.effect == "irreversible",
            idempotent_hint=listing.idempotent,
            open_world_hint=listing.outbound,
        ),
    )


def _tool_result(answer: CallAnswer) -> types.CallToolResult:
    # For programs; models are not shown it.
    meta: dict[str, Any] = {"bicameral/trusted": answer.label.trusted}
    if answer.handle:
        meta["bicameral/handle"] = f"${answer.handle}"
    if answer.failed:
        meta["bicameral/code"] = answer.failed
    return types.CallToolResult(content=[types.TextContent(text=answer.text)], is_error=bool(answer.failed), _meta=meta)


def _parse_address(uri: str) -> tuple[str, int | None]:
    """The server and the number of an address such as `bicameral://mail/3`."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise _protocol_error("this is no address of a resource") from None
    if parts.scheme != SCHEME or parts.query or parts.fragment:
        raise _protocol_error("this is no address of a resource")
    return parts.netloc, _parse_number(parts.path.strip("/"))


def _parse_number(text: str) -> int | None:
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise _protocol_error("this is no number of a list")
    return int(text)


def _protocol_error(message: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=message)


def _new_key() -> bytes:
    import secrets

    return secrets.token_bytes(32)


def _version() -> str:
    from bicameral import __version__

    return __version__
