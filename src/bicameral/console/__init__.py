"""The console: what an agent plans, does, asks and has done, as pages for a browser.

`with_console` puts the pages around the API of `bicameral serve`, on the same address: runs with their plans, proofs
and journals, where each value came from, questions to answer, requests to write and try, patterns, policies, and the
state of the whole. The pages are rendered on the server; htmx and server-sent events keep them up to date, and nothing
is loaded from another host. Whoever signs in does so with a token of the server, and may do here what the roles of that
token allow. This is a surface: it decides nothing about runs, and is imported by the command line alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicameral.console._proof import make_proof_key as make_proof_key, proof_of as proof_of
from bicameral.errors import ServerError, require_extra

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from bicameral.server.surface import ServerContext


def require_console_packages() -> None:
    """Raise `server.not-installed` if a package that the console needs is missing."""
    require_extra("server", "jinja2", error=ServerError, code="server.not-installed", needs="the console needs")


def with_console(api: ASGIApp, context: ServerContext) -> ASGIApp:
    """The application of a server with the console around it; every path that is no page goes to the API."""
    from bicameral.console._app import create_console

    return create_console(api, context)
