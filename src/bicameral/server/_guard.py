"""The door: who asks, how much, how large and how slowly, before anything of ours looks at it."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack, suppress
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bicameral.errors import ServerError

from ._desk import Desk
from ._errors import Answered, answer_for
from ._tokens import Token

OPEN = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""What anybody may ask: it tells nothing of anybody."""
BODY_SECONDS = 15.0
"""How long a client may take to send what it asks."""
READ_SECONDS = 30.0
"""How long a client may take to read a piece of the answer."""
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)


class TooSlow(OSError):
    """Whoever asked does not read the answer; there is nobody to tell."""


class Guard:
    """Stands around the application. What it lets through has a user, a size and a place."""

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self._app, self._desk = app, desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        answering = Answering(scope, send, self._desk)
        with answering.places, suppress(TooSlow):
            try:
                receive = await self._admit(scope, receive, answering)
                await self._app(scope, receive, answering.send)
            except Exception as error:
                if not answering.began:
                    await answer_for(error)(scope, receive, answering.send)

    async def _admit(self, scope: Scope, receive: Receive, answering: Answering) -> Receive:
        if scope["path"] in OPEN:
            return receive
        desk = self._desk
        if desk.stopping.is_set():
            raise Answered(503, ServerError("server.stopping", "the server is being stopped"), retry_after=5)
        token = answering.token = desk.tokens.holder(_bearer(scope))
        if token is None:
            error = ServerError(
                "server.unauthenticated",
                "there is no token, or it does not hold",
                fix="Send `Authorization: Bearer TOKEN`; `bicameral serve token add USER` makes one.",
            )
            raise Answered(401, error)
        scope.setdefault("state", {})["token"] = token
        desk.rate.take(token.user)
        answering.places.enter_context(desk.requests.one())
        if scope["method"] in ("GET", "HEAD"):
            return receive
        body = await _body(scope, receive, desk.config.server.max_body)
        if not desk.tokens.holds(token):
            # A body may take its time, and nothing is done for a token that has ended meanwhile.
            raise Answered(401, token_ended())
        return _replayed(body, receive)


class Answering:
    """One answer under way: adds headers, counts it, and does not wait for ever for who reads it."""

    def __init__(self, scope: Scope, send: Send, desk: Desk) -> None:
        self._scope, self._send, self._desk = scope, send, desk
        self._started = time.perf_counter()
        self.began = False
        self.places = ExitStack()
        self.token: Token | None = None
        self._over = False

    async def send(self, message: Message) -> None:
        if self.token is not None and not self._desk.tokens.holds(self.token):
            await self._end()
        if self._over:
            return
        if message["type"] == "http.response.start":
            self.began = True
            message["headers"] = [*message.get("headers", []), *_HEADERS]
            route: Any = self._scope.get("route")
            self._desk.metrics.answered(
                self._scope["method"],
                getattr(route, "path", "none"),
                message["status"],
                time.perf_counter() - self._started,
            )
            # What goes on for long after this, a watch, has places of its own.
            self.places.close()
        await self._sent(message)

    async def _end(self) -> None:
        """The token has ended: every piece of every answer passes here, so nothing goes on telling after that.

        An answer that has not begun becomes an error; one that has is told why it ends, and ends.
        """
        self.token = None
        if self.began:
            closing = self._scope.get("state", {}).get("closing", b"")
            await self._sent({"type": "http.response.body", "body": closing})
        else:
            await answer_for(Answered(401, token_ended()))(self._scope, _nothing_more, self.send)
        self._over = True

    async def _sent(self, message: Message) -> None:
        try:
            await asyncio.wait_for(self._send(message), READ_SECONDS)
        except TimeoutError:
            raise TooSlow from None


def token_ended() -> ServerError:
    return ServerError(
        "server.token-ended",
        "the token has expired or was removed",
        fix="`bicameral serve token add USER` makes a new one; the run goes on.",
    )


def _bearer(scope: Scope) -> str:
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(given) != 1:
        return ""
    kind, _, token = given[0].decode("latin-1").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


async def _body(scope: Scope, receive: Receive, most: int) -> bytes:
    """The whole body, unless it is too large, too slow or no JSON."""
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _read(receive, most)
    except TimeoutError:
        raise Answered(408, ServerError("server.slow-client", "the body took too long to arrive")) from None
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if body and (kind != "application/json" or headers.get(b"content-encoding", b"identity") != b"identity"):
        error = ServerError("server.unsupported-type", "the body is of another kind", expected="application/json")
        raise Answered(415, error)
    return body


async def _read(receive: Receive, most: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Answered(400, ServerError("server.bad-request", "the body ended too early"))
        body += message.get("body", b"")
        if len(body) > most:
            raise _too_large(most)
        if not message.get("more_body"):
            return bytes(body)


def _too_large(most: int) -> Answered:
    return Answered(413, ServerError("server.too-large", "the body is too large", expected=f"at most {most:,} bytes"))


async def _nothing_more() -> Message:
    return {"type": "http.disconnect"}


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What was read, once, and then whatever else comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
