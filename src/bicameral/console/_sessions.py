"""Sessions of the console: who has signed in with which token, in the memory of the server alone.

A browser holds the id of its session in a cookie that scripts cannot read. The server holds the hash of the id, so that
nobody who reads its memory dump or a log gets in, and the token that was presented: a session is never worth more than
its token, and ends with it. Sessions end after some hours, and when the server stops.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from bicameral.server import AccessToken, TokenFile

SESSION_SECONDS = 12 * 3600.0
"""How long a session lasts."""
MAX_SESSIONS = 2_000
MAX_USER_SESSIONS = 20
"""Sessions of one user at once; the oldest ends when another begins."""


@dataclass(slots=True)
class Session:
    """One browser that has signed in. `csrf` is what every form of it must carry."""

    token: AccessToken
    key: str
    began: float
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    notice: str = ""
    """What the next page says of the last change; shown once."""

    def take_notice(self) -> str:
        """The notice, which is gone then."""
        said, self.notice = self.notice, ""
        return said

    def accepts(self, presented: str) -> bool:
        """Whether a form carries the secret of this session."""
        return hmac.compare_digest(self.csrf.encode(), presented.encode("utf-8", "surrogatepass"))


class Sessions:
    """The sessions of one server.

    Args:
        tokens: The tokens with which people sign in; a session whose token has ended is none.
        clock: Seconds, for tests.

    Example:
        >>> sessions = Sessions(TokenFile(Path("tokens.json")))
        >>> session, cookie = sessions.begin(token)
        >>> sessions.find(cookie) is session
        True
    """

    def __init__(self, tokens: TokenFile, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens, self._clock = tokens, clock
        # In the order in which they began: the oldest ends first.
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def begin(self, token: AccessToken) -> tuple[Session, str]:
        """A new session for whoever presented a token, and the text of its cookie."""
        self._end_old(token.user)
        cookie = secrets.token_urlsafe(32)
        session = Session(token, _key(cookie), self._clock())
        self._sessions[session.key] = session
        return session, cookie

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie; None if there is none, or if its time or its token has ended."""
        session = self._sessions.get(_key(cookie)) if cookie else None
        return session if session is not None and self.is_open(session) else None

    def is_open(self, session: Session) -> bool:
        """Whether a session has not ended, and its token neither."""
        if self._is_over(session) or not self._tokens.is_valid(session.token):
            self.end(session)
        return session.key in self._sessions

    def end(self, session: Session) -> None:
        """End a session; its cookie is worth nothing from now on."""
        self._sessions.pop(session.key, None)

    def _is_over(self, session: Session) -> bool:
        return self._clock() - session.began > SESSION_SECONDS

    def _end_old(self, user: str) -> None:
        """End what is over, and the oldest of whoever has too many, so that memory is bounded."""
        for session in [each for each in self._sessions.values() if self._is_over(each)]:
            self.end(session)
        own = [each for each in self._sessions.values() if each.token.user == user]
        crowded = list(self._sessions.values())[: max(0, len(self._sessions) - MAX_SESSIONS + 1)]
        for session in (*own[: max(0, len(own) - MAX_USER_SESSIONS + 1)], *crowded):
            self.end(session)


def _key(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).hexdigest()
