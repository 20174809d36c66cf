"""The firewall over HTTP: every request has a token, and every connection a session of its own.

Clients of older protocols have a session for each connection that they open; those of the specification 2026-07-28
open none, so that all requests with one token are one session. A session is found by the token and by nothing that
others can guess or send: an id of another token's connection does not exist here. A session without a request for a
while ends, and so does one whose token no longer holds. What was read in it counts for the later sessions of its token,
unless the client has ended it itself.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Message, Receive, Scope, Send

from bicameral.errors import BicameralError
from bicameral.firewall._server import Connection, create_server
from bicameral.labels import NOTHING, Label, join

if TYPE_CHECKING:
    from bicameral.firewall._firewall import Firewall
    from bicameral.server import AccessToken, TokenFile

PATH = "/mcp"
MAX_BODY = 4 * 1024 * 1024
MAX_SESSIONS = 32
"""Sessions of one token at once."""
_SESSION_HEADER = b"mcp-session-id"
_VERSION_HEADER = b"mcp-protocol-version"
_WORDS = {
    401: "there is no token, or it does not hold",
    404: "there is nothing here, or the session has ended",
    503: "too many sessions are open",
}
SessionKey = tuple[str, str]
"""The id of a token, and that of a connection; the latter is empty for clients that open none."""


@dataclass(slots=True, eq=False)
class HttpSession:
    """One session with its own instance of the library's manager, which knows no other connection."""

    token: AccessToken
    manager: StreamableHTTPSessionManager
    connection: Connection
    task: asyncio.Task[None] | None = None
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    in_use: int = 0
    last_used: float = field(default_factory=time.monotonic)

    @property
    def has_ended(self) -> bool:
        """Whether no call can be made in it any more, such as after a fault of the journal."""
        session = self.connection.session
        return (self.task is not None and self.task.done()) or (session is not None and session.is_closed)

    @property
    def read(self) -> Label:
        """What the model of its client has read."""
        session = self.connection.session
        return self.connection.read if session is None else session.label

    async def run(self) -> None:
        """The session from its beginning to its end, in one task."""
        async with self.manager.run():
            self.started.set()
            await self.ending.wait()


class FirewallApp:
    """The ASGI application.

    Args:
        firewall: The firewall.
        tokens: Who may connect.
        security: The hosts and origins that are answered.
        idle_seconds: After these a session without a request ends.
        clock: The clock of that, for tests.
    """

    def __init__(
        self,
        firewall: Firewall,
        tokens: TokenFile,
        security: TransportSecuritySettings,
        *,
        idle_seconds: float = 1800.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._firewall = firewall
        self._tokens = tokens
        self._security = security
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._sessions: dict[SessionKey, HttpSession] = {}
        self._connecting: Counter[str] = Counter()
        """By token, the requests that may open a connection: they count as sessions."""
        self._read: dict[str, Label] = {}
        """By token, what was read in sessions that its clients have not ended: their models still know it."""
        # One at a time: two first requests of a token must not open two sessions, of which one would be forgotten.
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve inside; afterwards all sessions have ended, with their records."""
        sweeping = asyncio.create_task(self._sweep_forever())
        try:
            yield
        finally:
            sweeping.cancel()
            await self.aclose()

    async def aclose(self) -> None:
        """End all sessions."""
        await asyncio.gather(*(self._end(key) for key in list(self._sessions)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        token = self._tokens.find_holder(_bearer_token(scope))
        if token is None:
            await _refuse(401, send)
            return
        if scope["path"] != PATH:
            await _refuse(404, send)
            return
        await self._serve(token, scope, receive, send)

    async def _serve(self, token: AccessToken, scope: Scope, receive: Receive, send: Send) -> None:
        connection, modern = _header(scope, _SESSION_HEADER), _is_modern(scope)
        guarded = self._while_valid(token, send)
        if modern or connection:
            key = token.id, "" if modern else connection
            session = await self._find(key, token, make=modern)
            if session is None:
                await _refuse(404 if not modern else 503, send)
                return
            statuses: list[int] = []

            async def watch(message: Message) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])
                await guarded(message)

            await self._handle(session, scope, receive, watch)
            # Only if it was answered: one from a page of another origin is refused, and ends nothing.
            if scope["method"] == "DELETE" and not modern and statuses and statuses[0] < 400:
                await self._end(key, by_client=True)
            return
        await self._open_connection(token, scope, receive, guarded, send)

    async def _open_connection(
        self, token: AccessToken, scope: Scope, receive: Receive, guarded: Send, send: Send
    ) -> None:
        """A request of an older client without a connection: only one that opens a connection can succeed."""
        if self._count(token) >= MAX_SESSIONS:
            await _refuse(503, send)
            return
        # Counted before anything is awaited: others may open connections meanwhile.
        self._connecting[token.id] += 1
        try:
            await self._open_counted(token, scope, receive, guarded)
        finally:
            self._connecting[token.id] -= 1

    async def _open_counted(self, token: AccessToken, scope: Scope, receive: Receive, guarded: Send) -> None:
        session = await self._start(token)
        opened: list[str] = []

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                names = [value for name, value in message["headers"] if name.lower() == _SESSION_HEADER]
                opened.extend(value.decode("latin-1") for value in names)
                if opened:
                    # Before the client knows the id, so that its next request finds the session.
                    self._sessions[token.id, opened[0]] = session
            await guarded(message)

        try:
            await self._handle(session, scope, receive, watch)
        finally:
            if not opened:
                await self._stop(session)

    async def _handle(self, session: HttpSession, scope: Scope, receive: Receive, send: Send) -> None:
        session.in_use += 1
        try:
            await session.manager.handle_request(scope, receive, send)
        finally:
            session.in_use -= 1
            session.last_used = self._clock()

    async def _find(self, key: SessionKey, token: AccessToken, *, make: bool) -> HttpSession | None:
        async with self._opening:
            known = self._sessions.get(key)
            if known is not None and known.has_ended:
                await self._end(key)
            if key not in self._sessions and make and self._count(token) < MAX_SESSIONS:
                self._sessions[key] = await self._start(token)
            return self._sessions.get(key)

    async def _start(self, token: AccessToken) -> HttpSession:
        connection = Connection(self._read.get(token.id, NOTHING))
        manager = StreamableHTTPSessionManager(
            app=create_server(self._firewall, owner=token.user, connection=connection),
            security_settings=self._security,
            max_request_body_size=MAX_BODY,
            # This module ends sessions itself, with their records.
            session_idle_timeout=None,
            max_sessions=1,
        )
        session = HttpSession(token, manager, connection, last_used=self._clock())
        session.task = asyncio.create_task(session.run())
        started = asyncio.ensure_future(session.started.wait())
        try:
            await asyncio.wait({session.task, started}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            started.cancel()
        return session

    async def _end(self, key: SessionKey, *, by_client: bool = False) -> None:
        if (session := self._sessions.pop(key, None)) is not None:
            if not by_client:
                # The client's model goes on with what it has read, and the next session must know it.
                self._read[key[0]] = join(self._read.get(key[0], NOTHING), session.read)
            await self._stop(session)

    async def _stop(self, session: HttpSession) -> None:
        session.ending.set()
        if session.task is not None:
            await asyncio.wait({session.task})

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(min(30.0, self._idle_seconds / 4))
            # A file of tokens that cannot be read just now is read again later; meanwhile no request gets in.
            with suppress(BicameralError):
                await self.sweep()

    async def sweep(self) -> None:
        """End the sessions that nobody has used for a while, and those whose tokens no longer hold."""
        now = self._clock()
        for key, session in list(self._sessions.items()):
            unused = not session.in_use and now - session.last_used >= self._idle_seconds
            if unused or not self._tokens.is_valid(session.token):
                await self._end(key)

    def _count(self, token: AccessToken) -> int:
        return sum(1 for id_, _ in self._sessions if id_ == token.id) + self._connecting[token.id]

    def _while_valid(self, token: AccessToken, send: Send) -> Send:
        """Sends as long as the token holds: nothing leaves after it was taken away."""

        async def guarded(message: Message) -> None:
            if self._tokens.is_valid(token):
                await send(message)
            elif message["type"] == "http.response.start":
                await _refuse(401, send)
                raise TokenEnded
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                raise TokenEnded

        return guarded


class TokenEnded(OSError):
    """The token of a request no longer holds, so that the response has ended."""


def security_for(names: Iterable[str]) -> TransportSecuritySettings:
    """Which hosts and origins are answered.

    A page in a browser can send requests to this machine under a name of its own; it cannot choose the header that
    says which name it used.
    """
    with_ports = [form for name in names for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{name}" for name in with_ports for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=with_ports, allowed_origins=origins)


def _bearer_token(scope: Scope) -> str:
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    # Of two headers, a proxy may check one and this server use the other.
    if len(values) != 1:
        return ""
    kind, _, token = values[0].decode("latin-1").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _is_modern(scope: Scope) -> bool:
    """Whether the library takes a request for one of a client that opens no connection; by the same rule."""
    version = _header(scope, _VERSION_HEADER)
    return bool(version) and version not in HANDSHAKE_PROTOCOL_VERSIONS


async def _refuse(status: int, send: Send) -> None:
    error: dict[str, Any] = {"code": "firewall.refused", "message": _WORDS[status]}
    body = json.dumps({"error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="bicameral"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
