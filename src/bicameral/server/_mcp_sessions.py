"""How many sessions each user of the MCP server has open over HTTP.

Clients of protocols with a handshake open a session; those of 2026-07-28 have none. The SDK bounds the sessions of all
users together, so that one user could take them all. `UserSessions` stands before the SDK and follows its rules for
when a session begins and ends: by the requests that pass, and by the time for which there was none.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bicameral.errors import ServerError
from bicameral.server._context import RETRY_AFTER_SECONDS, HttpError

MAX_USER_SESSIONS = 32
"""Sessions that one user has open at once."""
IDLE_SECONDS = 600.0
"""After so long without a request a session ends. A stream that is open is a request that is being answered."""
_SESSION_HEADER = MCP_SESSION_ID_HEADER.lower().encode()
_VERSION_HEADER = MCP_PROTOCOL_VERSION_HEADER.lower().encode()


@dataclass(slots=True)
class _Session:
    last_used: float
    in_flight: int = 0


class UserSessions:
    """Counts the open sessions of each user, and refuses to open more than `MAX_USER_SESSIONS`.

    Args:
        app: What answers the requests, and ends a session that was idle for `IDLE_SECONDS`.
        clock: Seconds, for tests.
    """

    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        self._app, self._clock = app, clock
        self._sessions: defaultdict[str, dict[str, _Session]] = defaultdict(dict)
        self._opening: Counter[str] = Counter()
        """Requests that may open a session."""

    async def answer(self, user: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Have a request answered; `server.too-many-sessions` if it would open a session too many."""
        version, session = _header(scope, _VERSION_HEADER), _header(scope, _SESSION_HEADER)
        # By the same rule as the SDK: with a version that it does not know as one with a handshake there is no session.
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._app(scope, receive, send)
        elif session is None:
            await self._open(user, scope, receive, send)
        else:
            await self._use(user, session, scope, receive, send)

    def count(self, user: str) -> int:
        """The sessions that a user has open, and those that are being opened."""
        idle_since = self._clock() - IDLE_SECONDS
        kept = {id: each for id, each in self._sessions[user].items() if each.in_flight or each.last_used > idle_since}
        self._sessions[user] = kept
        if not kept:
            del self._sessions[user]
        return len(kept) + self._opening[user]

    async def _open(self, user: str, scope: Scope, receive: Receive, send: Send) -> None:
        if self.count(user) >= MAX_USER_SESSIONS:
            error = ServerError(
                "server.too-many-sessions",
                "too many sessions of this user are open",
                expected=f"at most {MAX_USER_SESSIONS}",
                fix=f"End one with DELETE, or wait: a session without a request for {IDLE_SECONDS:g} seconds ends.",
            )
            raise HttpError(429, error, retry_after=RETRY_AFTER_SECONDS)
        opened: list[str] = []

        async def note_session(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                named = [
                    value.decode("latin-1") for name, value in message["headers"] if name.lower() == _SESSION_HEADER
                ]
                for session in named[:1]:
                    # Before the client knows the id, so that its next request finds the session.
                    self._sessions[user][session] = _Session(self._clock())
                    opened.append(session)
            await send(message)

        # Before anything is awaited: simultaneous requests could all find the last place free.
        self._opening[user] += 1
        try:
            await self._app(scope, receive, note_session)
        except BaseException:
            # The SDK discards a session whose opening request fails or is cancelled.
            self._end(user, *opened)
            raise
        finally:
            self._opening[user] -= 1
            if not self._opening[user]:
                del self._opening[user]

    async def _use(self, user: str, id: str, scope: Scope, receive: Receive, send: Send) -> None:
        # The session of somebody else, or one that has ended, is not among them: the SDK answers that there is none.
        session = self._sessions[user].get(id) if user in self._sessions else None
        if session is None:
            await self._app(scope, receive, send)
            return
        statuses: list[int] = []

        async def note_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        session.in_flight += 1
        try:
            await self._app(scope, receive, note_status)
        finally:
            session.in_flight -= 1
            session.last_used = self._clock()
            deleted = scope["method"] == "DELETE" and statuses[:1] < [400]
            if statuses and (deleted or statuses[0] == 404):
                self._end(user, id)

    def _end(self, user: str, *ids: str) -> None:
        for id in ids:
            self._sessions[user].pop(id, None)
        if not self._sessions[user]:
            del self._sessions[user]


def _header(scope: Scope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)
