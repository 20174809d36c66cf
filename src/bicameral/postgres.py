"""PostgreSQL connections: options, which errors are worth a retry, the retry itself, and addresses without passwords.

The journal (psycopg) and durable runs (SQLAlchemy) share this. Errors are judged by their SQLSTATE and their text, so
neither package is imported here.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import unquote

from bicameral.secrets import mask, register_secret

T = TypeVar("T")

# A network that drops all packets is detected within seconds instead of waited for.
CONNECT_OPTIONS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "bicameral",
}
IDLE_TRANSACTION_MS = 3_000
"""For how long a transaction may be idle: a process that is frozen inside of one must not keep its locks."""

# Worth a retry: the server stops or starts, has no free connection or lock, or rolled back a conflict of transactions.
# Not 57014, a cancelled statement: what ran into a time limit would run into it again.
_TRANSIENT_STATES = ("08", "57P", "25P03", "53300", "40001", "40P01", "55P03")
# Invalid authorization, and a database that does not exist.
_PERMANENT_STATES = ("28", "3D")
# An error while connecting has no SQLSTATE.
_PERMANENT_WORDS = ("authentication failed", "does not exist", "no password supplied", "no pg_hba.conf entry")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_MAX_ERROR_TEXT = 300

# A password may contain what should be escaped: up to the last `@` before the query, or else what libpq takes for it.
_CREDENTIALS = re.compile(r"([^:/@?]*):([^?]*|[^@/]*)@")
_SQLALCHEMY_CREDENTIALS = re.compile(r"([^:/]*):([^@]*)@")
_SECRET_OPTIONS = {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}


def sqlstate(error: BaseException | None) -> str:
    """The SQLSTATE of an error of psycopg; empty if it has none."""
    return getattr(error, "sqlstate", None) or ""


def is_transient(error: BaseException | None) -> bool:
    """Whether the server says that a retry may succeed. A connection that just broke may have no SQLSTATE."""
    return sqlstate(error).startswith(_TRANSIENT_STATES)


def is_permanent(error: BaseException | None) -> bool:
    """Whether a retry is pointless, as with a wrong password."""
    if state := sqlstate(error):
        return state.startswith(_PERMANENT_STATES)
    return any(words in str(error) for words in _PERMANENT_WORDS)


def error_text(error: BaseException) -> str:
    """The first line of an error, without secrets. Later lines may quote values of a row, which are private."""
    lines = str(error).strip().splitlines()
    return mask(lines[0])[:_MAX_ERROR_TEXT] if lines else type(error).__name__


def masked_address(address: str) -> str:
    """An address without its passwords, which are registered as secrets and masked from now on.

    Example:
        >>> masked_address("postgresql://ann:correct-horse@db.example.com/runs?sslpassword=battery&sslmode=require")
        'postgresql://ann@db.example.com/runs?sslmode=require'
    """
    scheme, separator, rest = address.partition("://")
    if not separator or scheme == "sqlite":
        return address
    passwords = [found[2]] if (found := _SQLALCHEMY_CREDENTIALS.match(rest)) else []
    if found := _CREDENTIALS.match(rest):
        passwords.append(found[2])
        rest = f"{found[1]}@{rest[found.end() :]}"
    rest, _, query = rest.partition("?")
    options: list[str] = []
    for option in query.split("&") if query else ():
        name, _, value = option.partition("=")
        if unquote(name).strip().lower() in _SECRET_OPTIONS:
            passwords.append(value)
        else:
            options.append(option)
    for password in passwords:
        # In its plain form too: libpq takes it as it is where it has nothing to decode.
        register_secret("DATABASE_PASSWORD", unquote(password))
        register_secret("DATABASE_PASSWORD", password)
    return f"{scheme}://{rest}" + (f"?{'&'.join(options)}" if options else "")


def retry(
    act: Callable[[], T],
    *,
    seconds: float,
    is_transient: Callable[[Exception], bool],
    on_retry: Callable[[], None] | None = None,
) -> T:
    """Call `act` until it succeeds, fails with an error that is not transient, or the time is up; then raise its error.

    Args:
        act: Must be safe to repeat: the first call may have been committed although its answer was lost.
        seconds: No new attempt begins after them.
        is_transient: Whether an error is worth another attempt.
        on_retry: Called before each further attempt, for example to drop the connection.
    """
    end, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while True:
        try:
            return act()
        except Exception as error:
            if not is_transient(error) or time.monotonic() + pause > end:
                raise
        if on_retry is not None:
            on_retry()
        # Jitter: all clients lose a restarting server at the same moment and should not return together.
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
        pause = min(2 * pause, _LONGEST_PAUSE)
