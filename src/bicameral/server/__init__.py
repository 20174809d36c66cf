"""The server: durable runs over HTTP, for programs and for clients that speak only OpenAI's protocol.

Requests and plans come in with a token; runs, events, approvals and journals go out to the user who owns them. `serve`
listens and by default also runs a worker, so that one process is enough. `TokenFile` has the access tokens, and
`create_app` gives the application for another ASGI server. Everything goes through `bicameral.durable`; the server
itself decides only who may ask, and how much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicameral.server._serve import check_may_listen as check_may_listen, serve as serve
from bicameral.server._tokens import AccessToken as AccessToken, TokenFile as TokenFile, new_token as new_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from bicameral.server._context import ServerContext


def create_app(context: ServerContext) -> ASGIApp:
    """The application as an ASGI callable, with authentication and limits around it."""
    from bicameral.server._app import create_app as create

    return create(context)
