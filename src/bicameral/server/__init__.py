"""The server: durable runs over HTTP, for programs and for clients that know only OpenAI's protocol.

Requests and plans come in with a token; runs, events, approvals and journals go out to the user whose they are. `serve`
listens and by default works too, so that one process is complete. `TokenFile` says who may ask, `create_app` is the
application for those who bring a server of their own. Everything goes through `bicameral.durable`; nothing is decided
here but who may ask, and how much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicameral.server._serve import check_may_listen, serve
from bicameral.server._tokens import AccessToken, TokenFile, new_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from bicameral.server._context import ServerContext

__all__ = ["AccessToken", "TokenFile", "check_may_listen", "create_app", "new_token", "serve"]


def create_app(desk: ServerContext) -> ASGIApp:
    """The application as an ASGI callable."""
    from bicameral.server._app import create_app as create

    return create(desk)
