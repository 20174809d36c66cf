"""The MCP server: lists the tools, reads arguments, and turns results, questions and errors into the protocol's.

One server speaks every revision: those with a handshake, where a person is asked during a call, and 2026-07-28, where
the call returns the question with a sealed state. The seal binds the state to the user, the tool, its arguments and a
time; `OpenStates` makes it good for one call.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NoReturn

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from bicameral.errors import Place, ServerError
from bicameral.server._context import HttpError, ServerContext, json_bytes
from bicameral.server._guard import require_role
from bicameral.server._mcp_calls import HANDLERS, McpOptions, Report, ToolCall
from bicameral.server._mcp_questions import (
    ASK_SECONDS,
    REPLY_KEY,
    NobodyToAsk,
    OpenStates,
    Person,
    QuestionPending,
    ReturningPerson,
    SessionPerson,
)
from bicameral.server._mcp_results import Answers, error_parts
from bicameral.server._mcp_tools import INSTRUCTIONS, TOOLS, McpTool
from bicameral.server._tokens import AccessToken

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from pydantic import BaseModel

    from bicameral.server._mcp_questions import CallState

    RequestContext = ServerRequestContext[Any, Any]

NAME = "bicameral"
ERROR_META = "bicameral/error"
"""Where a result that is an error has its facts for programs; its text is for people and models."""
LIST_SECONDS = 3600
"""How long a client may keep the list of tools, which changes only with the version."""


def build_server(context: ServerContext, options: McpOptions, local: AccessToken | None = None) -> Server[Any]:
    """The MCP server for a context.

    Args:
        context: Runs, tokens, limits and the agent.
        options: How clients are treated.
        local: Who calls if the transport has no tokens, such as standard input; None over HTTP.
    """
    from bicameral import __version__

    protocol = McpProtocol(context, options, local)
    server = Server[Any](
        NAME,
        version=__version__,
        title="Bicameral",
        instructions=INSTRUCTIONS,
        on_list_tools=protocol.list_tools,
        on_call_tool=protocol.call_tool,
        # Static: the SDK would otherwise list the tools for every call over HTTP.
        get_tool_input_schema=lambda name: tool.input_schema() if (tool := TOOLS.get(name)) else None,
        cache_hints={"tools/list": CacheHint(ttl_ms=LIST_SECONDS * 1000, scope="public")},
    )
    # The key lives as long as this process: after a restart no state holds, and the person is asked again.
    security = RequestStateSecurity(
        keys=[os.urandom(32)], ttl=ASK_SECONDS, bind_principal=lambda each: protocol.caller(each).user
    )
    server.middleware.append(RequestStateBoundary(security, default_audience=NAME))
    return server


class McpProtocol:
    """Handles the requests of clients."""

    def __init__(self, context: ServerContext, options: McpOptions, local: AccessToken | None) -> None:
        self._context, self._options, self._local = context, options, local
        self._states = OpenStates()

    def caller(self, request: RequestContext) -> AccessToken:
        """Who calls: the holder of the token that the guard has checked, or the one user of a local transport."""
        if self._local is not None:
            return self._local
        token = getattr(getattr(request.request, "state", None), "token", None)
        if not isinstance(token, AccessToken):
            # Never a default user: a request that came around the guard is nobody's.
            raise MCPError(types.INVALID_REQUEST, "there is no token")
        return token

    async def list_tools(
        self, request: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed_tool(tool) for tool in TOOLS.values()])

    async def call_tool(
        self, request: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        caller, tool = self.caller(request), TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such tool", {"tools": list(TOOLS)})
        state = self._states.redeem(caller.user, params.request_state)
        if state is None:
            _refuse_state()
        call = self._tool_call(request, params, caller, state)
        try:
            with ExitStack() as admitted:
                if self._local is not None:
                    # Over HTTP the guard has done both.
                    self._context.rate.count_request(caller.user)
                    admitted.enter_context(self._context.requests.slot())
                require_role(caller, *tool.roles)
                facts = await HANDLERS[tool.name](call, _read_arguments(tool, params.arguments))
            # Inside: a result that is not as its schema says is an error like any other, without its values.
            return _result(tool, facts)
        except QuestionPending as pending:
            sealed = self._states.issue(caller.user, call.state, pending.form)
            return types.InputRequiredResult(input_requests={REPLY_KEY: pending.form.request()}, request_state=sealed)
        except Exception as error:
            return _error_result(error, self._options.answers)

    def _tool_call(
        self, request: RequestContext, params: types.CallToolRequestParams, caller: AccessToken, state: CallState
    ) -> ToolCall:
        person = self._person(request, params, state)
        return ToolCall(self._context, self._options, caller, person, _reporter(request), state)

    def _person(self, request: RequestContext, params: types.CallToolRequestParams, state: CallState) -> Person:
        capabilities = request.session.client_capabilities
        asking = None if capabilities is None else capabilities.elicitation
        # Without any mode, a client means forms: it is older than the other one.
        if asking is None or (asking.form is None and asking.url is not None):
            return NobodyToAsk()
        if request.protocol_version in MODERN_PROTOCOL_VERSIONS:
            replies = params.input_responses or {}
            return ReturningPerson(
                state, {name: each for name, each in replies.items() if isinstance(each, types.ElicitResult)}
            )
        if not request.session.can_send_request:
            return NobodyToAsk()
        return SessionPerson(request.session, request.request_id, self._context.stopping)


def _reporter(request: RequestContext) -> Report:
    """Sends progress if the client asked for it."""

    async def report(progress: float, text: str) -> None:
        await request.session.report_progress(progress, message=text)

    return report


def _refuse_state() -> NoReturn:
    """The same refusal as for a state with a broken seal: what is wrong with it is nobody's business."""
    raise MCPError(types.INVALID_PARAMS, "Invalid or expired requestState", {"reason": "invalid_request_state"})


def _listed_tool(tool: McpTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema(),
        output_schema=tool.output_schema(),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


def _read_arguments(tool: McpTool, arguments: dict[str, Any] | None) -> BaseModel:
    try:
        return tool.arguments.model_validate(arguments or {})
    except ValidationError as error:
        raise _argument_error(tool, error) from None


def _argument_error(tool: McpTool, error: ValidationError) -> HttpError:
    """What is wrong with the arguments, without any of their text."""
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    known = ", ".join(tool.arguments.model_fields)
    if fault["type"] == "extra_forbidden":
        return HttpError(422, ServerError("server.bad-request", "there is no such argument", expected=known))
    where = ".".join(str(part) for part in fault["loc"])[:200]
    text = fault["msg"].removeprefix("Value error, ").rstrip(".")
    place = Place(argument=where) if where else None
    return HttpError(422, ServerError("server.bad-request", text[:1].lower() + text[1:], place=place))


def _result(tool: McpTool, facts: dict[str, Any]) -> types.CallToolResult:
    """The result of a tool: its facts in the form of its schema, and the same as text."""
    content = tool.result.model_validate(facts).model_dump(mode="json", exclude_none=True)
    # Known secrets are masked and hidden characters escaped, as in every answer of the server.
    text = json_bytes(content).decode()
    failed = (tool.name == "run" and content.get("state") == "failed") or (
        tool.name == "plan" and content.get("ok") is False
    )
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=json.loads(text), is_error=failed
    )


def _error_result(error: Exception, shown: Answers) -> types.CallToolResult:
    """An error as the result of the tool, with its code: a model can correct itself, and a program finds the facts."""
    facts, text = error_parts(error, shown)
    # No structured content: it would have to be that of a result, and some clients hold errors against the schema too.
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        is_error=True,
        _meta={ERROR_META: json.loads(json_bytes(facts))},
    )
