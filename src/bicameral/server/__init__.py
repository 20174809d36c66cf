"""The server: durable runs over HTTP, for programs and for clients that speak only OpenAI's protocol or MCP.

Requests and plans come in with a token; runs, events, approvals and journals go out to the user who owns them. `serve`
listens and by default also runs a worker, so that one process is enough. `TokenFile` has the access tokens, and
`create_app` gives the application for another ASGI server. `serve_mcp` and `serve_mcp_stdio` offer the same as tools of
an MCP server, and put questions to the person behind the client. Everything goes through `bicameral.durable`; the
server itself decides only who may ask, and how much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bicameral.server._mcp_serve import (
    ProtocolStreams as ProtocolStreams,
    allowed_names as allowed_names,
    claim_standard_streams as claim_standard_streams,
    require_mcp_packages as require_mcp_packages,
    serve_mcp as serve_mcp,
    serve_mcp_stdio as serve_mcp_stdio,
)
from bicameral.server._serve import (
    check_may_listen as check_may_listen,
    open_socket as open_socket,
    serve as serve,
    serve_app as serve_app,
)
from bicameral.server._tokens import (
    ROLES as ROLES,
    AccessToken as AccessToken,
    Role as Role,
    TokenFile as TokenFile,
    new_token as new_token,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from bicameral.server._context import ServerContext
    from bicameral.server._mcp_calls import McpOptions as McpOptions


def create_app(context: ServerContext) -> ASGIApp:
    """The application as an ASGI callable, with authentication and limits around it."""
    from bicameral.server._app import create_app as create

    return create(context)


def __getattr__(name: str) -> Any:
    # Its module needs the packages of the extra.
    if name != "McpOptions":
        raise AttributeError(name)
    from bicameral.server._mcp_calls import McpOptions

    return McpOptions
