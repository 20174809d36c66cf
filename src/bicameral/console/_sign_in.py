"""Signing in with a token, and out again."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from bicameral.console._admission import (
    PROOF_PATH,
    SECURITY_HEADERS,
    SIGN_IN_PATH,
    cookie_name,
    header,
    parse_form,
)
from bicameral.console._pages import PageCall, page_response, page_route, shared_facts
from bicameral.console._proof import MAX_NONCE, MIN_NONCE, proof_of, read_proof_key
from bicameral.console._sessions import SESSION_SECONDS, Session, Sessions
from bicameral.errors import ServerError
from bicameral.server import ROLES, AccessToken, TokenFile
from bicameral.server.surface import HttpError

MAX_ADDRESS = 2_000


async def sign_in_page(request: Request) -> Response:
    """The form for a token."""
    return _form(request, request.query_params.get("next", ""))


async def sign_in(request: Request) -> Response:
    """Begin a session for whoever presents a valid token."""
    fields = parse_form(await request.body())
    presented, wanted = fields.get("token", [""])[0].strip(), fields.get("next", [""])[0]
    tokens: TokenFile = request.app.state.context.tokens
    token = tokens.find_holder(presented, restricted=True) or tokens.exchange_link(presented, SESSION_SECONDS)
    if token is None:
        # What was typed is not repeated: it may be another secret.
        fault = "This token does not hold: it is misspelt, has expired or was removed. A link holds once."
        return _form(request, wanted, fault)
    sessions: Sessions = request.app.state.sessions
    session: Session | None = request.state.session
    if session is not None:
        _end_session(request, session)
    _, cookie = sessions.begin(token)
    answer = RedirectResponse(own_address(wanted) or _first_page(token), 303, headers=dict(SECURITY_HEADERS))
    answer.set_cookie(
        cookie_name(request.scope),
        cookie,
        max_age=int(SESSION_SECONDS),
        httponly=True,
        samesite="lax",
        # Behind a TLS proxy the browser says so; over plain HTTP such a cookie would not come back.
        secure=header(request.scope, b"origin").startswith("https:"),
    )
    return answer


async def sign_out(call: PageCall) -> Response:
    """End the session."""
    _end_session(call.request, call.session)
    answer = RedirectResponse(SIGN_IN_PATH, 303, headers=dict(SECURITY_HEADERS))
    answer.delete_cookie(cookie_name(call.request.scope))
    return answer


def _end_session(request: Request, session: Session) -> None:
    """End a session, with what it alone had."""
    request.app.state.sessions.end(session)
    request.app.state.drafts.forget(session.key)
    request.app.state.context.tokens.end_sign_in(session.token)


async def prove(request: Request) -> Response:
    """Prove that this server can read the key beside the tokens, without giving it away."""
    file, nonce = request.app.state.context.tokens.file, request.query_params.get("nonce", "")
    key = None if file is None else read_proof_key(file)
    port = (request.scope.get("server") or ("", 0))[1]
    if key is None or not MIN_NONCE <= len(nonce) <= MAX_NONCE:
        raise HttpError(404, ServerError("server.not-found", "there is nothing to prove"))
    return Response(proof_of(key, nonce, port), headers=dict(SECURITY_HEADERS), media_type="text/plain")


async def home(call: PageCall) -> Response:
    """The first page for the roles of a token."""
    return RedirectResponse(_first_page(call.token), 303, headers=dict(SECURITY_HEADERS))


def _first_page(token: AccessToken) -> str:
    return "/runs" if token.may("see") else "/approvals" if token.may("approve") else "/ask"


def _form(request: Request, wanted: str, fault: str = "") -> Response:
    session: Session | None = request.state.session
    facts = {"next": own_address(wanted), "fault": fault}
    return page_response("login.html", 401 if fault else 200, **shared_facts(session, SIGN_IN_PATH), **facts)


def own_address(address: str) -> str:
    """An address of this console; empty for one that leads elsewhere."""
    try:
        parts = urlsplit(address[:MAX_ADDRESS]) if address.isprintable() and address.isascii() else None
    except ValueError:
        return ""
    # Two slashes, or a backslash, which browsers read as one, begin the name of a host.
    own = parts is not None and not parts.scheme and not parts.netloc and address[:1] == "/"
    return address[:MAX_ADDRESS] if own and address[1:2] not in ("/", "\\") and "\\" not in address else ""


sign_in_routes = [
    Route(SIGN_IN_PATH, sign_in_page),
    Route(SIGN_IN_PATH, sign_in, methods=["POST"]),
    Route(PROOF_PATH, prove),
    page_route("/logout", sign_out, *ROLES, method="POST"),
    page_route("/", home, *ROLES),
]
