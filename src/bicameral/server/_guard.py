"""Admission of requests, and the dependencies that all routes share.

Before any other code sees a request, the guard checks its token, the rate, the size and the speed of its body, and
takes a slot for it. Every part of a response passes the guard too, so nothing is sent after a token has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Annotated, Any, Protocol

from fastapi import Depends, Path, Request, Security
from fastapi.security import HTTPBearer
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bicameral.errors import ServerError
from bicameral.server._context import HttpError, ServerContext, response_for
from bicameral.server._schemas import ID_PATTERN, ErrorAnswer
from bicameral.server._tokens import AccessToken, Role

PUBLIC_PATHS = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Paths that need no token: they say nothing about users."""
BODY_SECONDS = 15.0
"""How long a client may take to send the body."""
READ_SECONDS = 30.0
"""How long a client may take to read a part of the response."""
_SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)


class SlowReader(OSError):
    """The client does not read the response, so no error can be sent to it."""


class Admission(Protocol):
    """How the clients of an application prove who they are, and what they may send."""

    body_type: str
    """The content type of a request body."""

    def is_public(self, scope: Scope) -> bool:
        """Whether a request is answered without asking who sends it. Its body is not read."""
        ...

    def find_holder(self, scope: Scope) -> AccessToken | None:
        """The token of whoever sends a request; None for one that needs none. An error refuses the request."""
        ...

    def check_body(self, scope: Scope, body: bytes) -> None:
        """Refuse a request by its body."""
        ...


class BearerAdmission:
    """Tokens in the header `Authorization`, and bodies in JSON."""

    body_type = "application/json"

    def __init__(self, context: ServerContext) -> None:
        self._tokens = context.tokens

    def is_public(self, scope: Scope) -> bool:
        return scope["path"] in PUBLIC_PATHS

    def find_holder(self, scope: Scope) -> AccessToken:
        token = self._tokens.find_holder(_bearer_token(scope), restricted=True)
        if token is None:
            error = ServerError(
                "server.unauthenticated",
                "there is no token, or it does not hold",
                fix="Send `Authorization: Bearer TOKEN`; `bicameral serve token add USER` makes one.",
            )
            raise HttpError(401, error)
        return token

    def check_body(self, scope: Scope, body: bytes) -> None:
        """A token in a header is sent by no page of another site: there is nothing more to check."""


class AdmissionGuard:
    """ASGI middleware around the application: authentication, limits, and the end of tokens.

    `render` makes the response for an error, in the form that the clients of the application know.
    """

    def __init__(
        self,
        app: ASGIApp,
        context: ServerContext,
        render: Callable[[Exception], Response] = response_for,
        admission: Admission | None = None,
    ) -> None:
        self._app, self._context, self._render = app, context, render
        self._admission = admission or BearerAdmission(context)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = GuardedResponse(scope, send, self._context, self._render)
        with response.slots, suppress(SlowReader):
            try:
                receive = await self._admit(scope, receive, response)
                await self._app(scope, receive, response.send)
            except Exception as error:
                if not response.has_begun:
                    await self._render(error)(scope, receive, response.send)

    async def _admit(self, scope: Scope, receive: Receive, response: GuardedResponse) -> Receive:
        """Check the request, and return what the application reads its body from."""
        admission, context = self._admission, self._context
        if admission.is_public(scope):
            return receive
        if context.stopping.is_set():
            raise HttpError(503, ServerError("server.stopping", "the server is being stopped"), retry_after=5)
        # Before the rate limit: buckets are kept only for users with a token, and for addresses of the last minute.
        token = response.token = admission.find_holder(scope)
        if token is not None:
            scope.setdefault("state", {})["token"] = token
        context.rate.count_request(token.user if token is not None else client_name(scope))
        response.slots.enter_context(context.requests.slot())
        if scope["method"] in ("GET", "HEAD"):
            return receive
        body = await _read_request_body(scope, receive, context.config.server.max_body, admission.body_type)
        admission.check_body(scope, body)
        if token is not None and not context.tokens.is_valid(token):
            # Reading the body takes time, and the token may have ended meanwhile.
            raise HttpError(401, token_ended_error())
        return _replay_body(body, receive)


class GuardedResponse:
    """One response: adds headers, counts it, stops it when its token ends, and limits how long a part may take."""

    def __init__(
        self,
        scope: Scope,
        send: Send,
        context: ServerContext,
        render: Callable[[Exception], Response] = response_for,
    ) -> None:
        self._scope, self._send, self._context, self._render = scope, send, context, render
        self._started = time.perf_counter()
        self.has_begun = False
        self.slots = ExitStack()
        self.token: AccessToken | None = None
        self._over = False

    async def send(self, message: Message) -> None:
        if self.token is not None and not self._context.tokens.is_valid(self.token):
            await self._end()
        if self._over:
            return
        if message["type"] == "http.response.start":
            self.has_begun = True
            given = [*message.get("headers", [])]
            present = {name.lower() for name, _ in given}
            # What a response says itself counts: files that never change may be kept.
            message["headers"] = [*given, *(pair for pair in _SECURITY_HEADERS if pair[0] not in present)]
            route: Any = self._scope.get("route")
            self._context.metrics.count_answer(
                self._scope["method"],
                getattr(route, "path", "none"),
                message["status"],
                time.perf_counter() - self._started,
            )
            # A watch goes on long after this, and has a slot of its own kind.
            self.slots.close()
        await self._send_in_time(message)

    async def _end(self) -> None:
        """End the response because its token has ended.

        A response that has not begun becomes an error; one that has begun ends with a message that says why.
        """
        self.token = None
        if self.has_begun:
            closing = self._scope.get("state", {}).get("closing", b"")
            await self._send_in_time({"type": "http.response.body", "body": closing})
        else:
            await self._render(HttpError(401, token_ended_error()))(self._scope, _receive_disconnect, self.send)
        self._over = True

    async def _send_in_time(self, message: Message) -> None:
        try:
            await asyncio.wait_for(self._send(message), READ_SECONDS)
        except TimeoutError:
            raise SlowReader from None


def token_ended_error() -> ServerError:
    return ServerError(
        "server.token-ended",
        "the token has expired or was removed",
        fix="`bicameral serve token add USER` makes a new one; the run goes on.",
    )


def _bearer_token(scope: Scope) -> str:
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    # Of two headers, a proxy may check one and this server use the other.
    if len(values) != 1:
        return ""
    kind, _, token = values[0].decode("latin-1").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def client_name(scope: Scope) -> str:
    """A name for whoever has no token, by address. It has a blank, so that it is the name of no user."""
    return f"client {(scope.get('client') or ('',))[0]}"


async def _read_request_body(scope: Scope, receive: Receive, most: int, body_type: str) -> bytes:
    """The whole body; an error if it is too large, too slow or of another content type."""
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > most:
        raise _too_large_error(most)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _read_chunks(receive, most)
    except TimeoutError:
        raise HttpError(408, ServerError("server.slow-client", "the body took too long to arrive")) from None
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if body and (kind != body_type or headers.get(b"content-encoding", b"identity") != b"identity"):
        error = ServerError("server.unsupported-type", "the body is of another kind", expected=body_type)
        raise HttpError(415, error)
    return body


async def _read_chunks(receive: Receive, most: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpError(400, ServerError("server.bad-request", "the body ended too early"))
        body += message.get("body", b"")
        if len(body) > most:
            raise _too_large_error(most)
        if not message.get("more_body"):
            return bytes(body)


def _too_large_error(most: int) -> HttpError:
    return HttpError(413, ServerError("server.too-large", "the body is too large", expected=f"at most {most:,} bytes"))


async def _receive_disconnect() -> Message:
    return {"type": "http.disconnect"}


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read, and then what the client sends."""
    replayed = False

    async def again() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


_scheme = HTTPBearer(
    auto_error=False, scheme_name="token", description="A token that `bicameral serve token add USER` made."
)

_STATUS_DESCRIPTIONS = {
    400: "The body is no JSON.",
    401: "There is no token, or it does not hold.",
    403: "The token does not have the role for it.",
    404: "There is no such thing, or it belongs to somebody else.",
    408: "The body took too long to arrive.",
    409: "It does not fit what is there: it was answered or ended already, or the plan does not pass the check.",
    413: "The body is too large.",
    415: "The body is of another kind than `application/json`.",
    422: "The request is not as this document says.",
    429: "Too many requests, or too many watches at once.",
    500: "A mistake of ours; the message names what to look for in the log.",
    502: "A model could not answer.",
    503: "The server has too much to do, is being stopped, or its database cannot be reached.",
}
_RETRY_HEADER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}}
_ERROR_HEADERS = {
    401: {"WWW-Authenticate": {"description": "How to ask.", "schema": {"type": "string"}}},
    429: _RETRY_HEADER,
}
_COMMON_STATUSES = (401, 403, 422, 429, 500, 503)
_BODY_STATUSES = (400, 408, 413, 415)


def error_responses(*more: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """The errors of an operation for the OpenAPI document."""
    statuses = sorted({*_COMMON_STATUSES, *more, *(_BODY_STATUSES if body else ())})
    return {
        status: {"model": ErrorAnswer, "description": _STATUS_DESCRIPTIONS[status]}
        | ({"headers": _ERROR_HEADERS[status]} if status in _ERROR_HEADERS else {})
        for status in statuses
    }


def _caller_token(request: Request, _: Annotated[object, Security(_scheme)]) -> AccessToken:
    """The token that the guard has checked; a request without one does not get here."""
    return request.state.token


def _server_context(request: Request) -> ServerContext:
    return request.app.state.context


def require_role(token: AccessToken, *roles: Role) -> None:
    """Raise `server.not-permitted` unless the token has one of these roles."""
    if not token.may(*roles):
        error = ServerError(
            "server.not-permitted",
            "this token does not have the role for that",
            expected=f"the role {' or '.join(map(repr, roles))}",
            fix=f"`bicameral serve token add USER --role {roles[0]}` makes a token with it.",
        )
        raise HttpError(403, error)


def _caller_with(*roles: Role) -> Callable[[AccessToken], AccessToken]:
    def caller_with_role(token: Annotated[AccessToken, Depends(_caller_token)]) -> AccessToken:
        require_role(token, *roles)
        return token

    return caller_with_role


Caller = Annotated[AccessToken, Depends(_caller_token)]
"""Whoever holds a token; only for what says nothing of a user."""
Viewer = Annotated[AccessToken, Depends(_caller_with("see"))]
Runner = Annotated[AccessToken, Depends(_caller_with("run"))]
Approver = Annotated[AccessToken, Depends(_caller_with("approve"))]
QuestionReader = Annotated[AccessToken, Depends(_caller_with("see", "approve"))]
"""Whoever sees runs, or answers what they ask: nobody can answer what they may not read."""
CurrentContext = Annotated[ServerContext, Depends(_server_context)]
RunId = Annotated[str, Path(pattern=ID_PATTERN, description="The id of the run.")]
ApprovalId = Annotated[str, Path(pattern=ID_PATTERN, description="The id of the approval.")]
