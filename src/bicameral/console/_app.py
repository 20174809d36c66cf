"""The ASGI application of the console: its routes behind its guard, beside the API."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bicameral.console._admission import STATIC_PREFIX, SessionAdmission
from bicameral.console._approval_pages import approval_routes
from bicameral.console._architecture_pages import architecture_routes
from bicameral.console._ask_pages import ask_routes
from bicameral.console._assets import asset_file
from bicameral.console._drafts import Drafts
from bicameral.console._operations_pages import operation_routes
from bicameral.console._pages import ErrorPage
from bicameral.console._pattern_pages import pattern_routes
from bicameral.console._policy_pages import policy_routes
from bicameral.console._run_actions import run_action_routes
from bicameral.console._run_list import run_list_routes
from bicameral.console._run_pages import run_routes
from bicameral.console._sessions import Sessions
from bicameral.console._sign_in import sign_in_routes
from bicameral.errors import BicameralError, ServerError
from bicameral.server.surface import AdmissionGuard, HttpError, ServerContext


def create_console(api: ASGIApp, context: ServerContext) -> ASGIApp:
    """The pages, and the API for every path that is none of theirs."""
    sessions = Sessions(context.tokens)
    routes: list[BaseRoute] = [
        *sign_in_routes,
        *run_list_routes,
        *run_routes,
        *run_action_routes,
        *approval_routes,
        *ask_routes,
        *operation_routes,
        *pattern_routes,
        *architecture_routes,
        *policy_routes,
        Route(f"{STATIC_PREFIX}{{name}}", asset_file),
    ]
    pages = Starlette(routes=routes)
    # A redirect of the router has none of our headers, and names the scheme of this side of a TLS proxy.
    pages.router.redirect_slashes = False
    pages.add_exception_handler(HTTPException, _handle_http_error)
    for kind in (HttpError, BicameralError, Exception):
        pages.add_exception_handler(kind, _handle_error)
    pages.state.context, pages.state.sessions, pages.state.drafts = context, sessions, Drafts()
    guard = AdmissionGuard(pages, context, ErrorPage, SessionAdmission(sessions, context.config.server.names))
    return _PathSwitch(api, guard, _first_parts(routes))


def _first_parts(routes: list[BaseRoute]) -> frozenset[str]:
    """The first parts of the paths of all pages."""
    return frozenset(route.path.split("/")[1] for route in routes if isinstance(route, Route))


class _PathSwitch:
    """Sends a request to the pages if the first part of its path is one of theirs, and to the API otherwise.

    The API asks for a token in a header, and never takes the cookie of a session.
    """

    def __init__(self, api: ASGIApp, pages: ASGIApp, parts: frozenset[str]) -> None:
        self._api, self._pages, self._parts = api, pages, parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._pages if self._is_page(scope) else self._api)(scope, receive, send)

    def _is_page(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        path: str = scope["path"]
        # Of the paths whose first part is empty only `/` is a page: what `//v1/runs` is, the API says in its own form.
        first = path.removeprefix("/").partition("/")[0]
        return path == "/" if not first else first in self._parts


async def _handle_error(_: Request, error: Exception) -> ErrorPage:
    return ErrorPage(error)


async def _handle_http_error(request: Request, error: Exception) -> ErrorPage:
    """Unknown paths and methods."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "there is no such page", 405: "this cannot be done here"}.get(status, "this request cannot be read")
    code = {404: "server.not-found", 405: "server.method-not-allowed"}.get(status, "server.bad-request")
    return ErrorPage(HttpError(status, ServerError(code, words)))
