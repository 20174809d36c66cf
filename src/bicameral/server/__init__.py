"""The server: durable runs over HTTP, for programs and for clients that know only OpenAI's protocol.

Requests and plans come in with a token; runs, events, approvals and journals go out to the user whose they are. `serve`
listens and by default works too, so that one process is complete. `Tokens` says who may ask, `create_app` is the
application for those who bring a server of their own. Everything goes through `bicameral.durable`; nothing is decided
here but who may ask, and how much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._serve import may_listen, serve
from ._tokens import Token, Tokens, new_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from ._desk import Desk

__all__ = ["Token", "Tokens", "create_app", "may_listen", "new_token", "serve"]


def create_app(desk: Desk) -> ASGIApp:
    """The application as an ASGI callable."""
    from ._app import create_app as create

    return create(desk)
