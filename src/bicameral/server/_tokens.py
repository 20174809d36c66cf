"""Access tokens: who may ask, kept as hashes in a file that only its owner reads.

A token is 256 random bits, so its SHA-256 gives nothing away and needs no salt. A presented token is compared with
every hash in constant time: how long the answer takes says neither which token was near nor whether any was.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from bicameral.errors import Place, ServerError, nearest_name

PREFIX = "bic_"
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_MAX_BYTES = 4_000_000
_SETTLED_NS = 2_000_000_000
"""A file that was changed less than this before it was read may change again within the same tick of its clock, to one
of the same size in the same inode: it is read again until it has settled."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Whose token it is and until when it holds; never the token itself."""

    id: str
    user: str
    hash: str
    created: float
    expires: float | None = None

    def to_json(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"id": self.id, "user": self.user, "hash": self.hash, "created": self.created}
        return facts if self.expires is None else facts | {"expires": self.expires}


class TokenFile:
    """The tokens of a file, read again whenever the file changed: a token that is removed holds no longer.

    Example:
        >>> tokens = TokenFile(Path("tokens.json"))
        >>> token, text = tokens.add("ana")
        >>> tokens.holder(text).user
        'ana'
    """

    def __init__(
        self, file: Path | None, extra: Iterable[AccessToken] = (), *, clock: Callable[[], float] = time.time
    ) -> None:
        self.file = file
        self._extra = tuple(extra)
        self._clock = clock
        self._read: tuple[AccessToken, ...] = ()
        self._seen: _FileState | None = None
        self._certain = False

    def all_tokens(self) -> tuple[AccessToken, ...]:
        """Every token there is, expired ones too."""
        seen = _file_state(self.file)
        if seen != self._seen or not self._certain:
            # Before the file is read: a change in between makes another state, and is read the next time.
            self._certain = seen is None or time.time_ns() - seen.changed > _SETTLED_NS
            self._read = () if seen is None or self.file is None else _load_tokens(self.file)
            self._seen = seen
        return (*self._read, *self._extra)

    def is_valid(self, token: AccessToken) -> bool:
        """Whether a token that was presented still holds as it was then: of the same user, not removed, not expired.

        Whatever lasts longer than a request asks this again, before each piece of what it tells.
        """
        return token in self.all_tokens() and self._is_unexpired(token)

    def _is_unexpired(self, token: AccessToken) -> bool:
        return token.expires is None or token.expires > self._clock()

    def find_holder(self, presented: str) -> AccessToken | None:
        """The token that somebody presents, if it is one and still holds."""
        digest = token_hash(presented)
        found: AccessToken | None = None
        for token in self.all_tokens():
            # All of them, whether one was found or not.
            if hmac.compare_digest(token.hash, digest):
                found = token
        return found if found is not None and self._is_unexpired(found) else None

    def add(self, user: str, seconds: float | None = None) -> tuple[AccessToken, str]:
        """A new token for a user, and its text, which is kept nowhere."""
        token, text = new_token(user, seconds, self._clock())
        with self._locked():
            self._write((*self._stored_tokens(), token))
        return token, text

    def remove(self, token_id: str) -> AccessToken:
        """Take a token away; whoever still holds it is a stranger from now on."""
        with self._locked():
            tokens = self._stored_tokens()
            gone = next((token for token in tokens if token.id == token_id), None)
            if gone is None:
                known = nearest_name(token_id, [token.id for token in tokens])
                raise ServerError("server.unknown-token", f"there is no token {token_id!r}", nearest=known)
            self._write(tuple(token for token in tokens if token is not gone))
        return gone

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Read and write as one: else two that change the file at once could bring back a token that one removed."""
        if self.file is None:
            raise ServerError("server.bad-tokens", "these tokens are kept in no file")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.file.with_name(f".{self.file.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _token_file_error(self.file, f"cannot be written: {error.strerror or error}") from None
        try:
            # Windows has no such lock; there two administrators at once are on their own.
            with suppress(ImportError):
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _stored_tokens(self) -> tuple[AccessToken, ...]:
        return () if self.file is None or _file_state(self.file) is None else _load_tokens(self.file)

    def _write(self, tokens: tuple[AccessToken, ...]) -> None:
        assert self.file is not None
        text = json.dumps({"version": 1, "tokens": [token.to_json() for token in tokens]}, indent=2) + "\n"
        beside = self.file.with_name(f".{self.file.name}.{secrets.token_hex(4)}")
        try:
            # Nobody else may read it at any time, and whoever reads it reads the old or the new whole.
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
                stream.write(text)
                stream.flush()
                # A token that was removed does not come back with the power.
                os.fsync(stream.fileno())
            beside.replace(self.file)
        except OSError as error:
            with suppress(OSError):
                beside.unlink()
            raise _token_file_error(self.file, f"cannot be written: {error.strerror or error}") from None


def new_token(user: str, seconds: float | None = None, now: float | None = None) -> tuple[AccessToken, str]:
    """A token that is in no file yet, and its text."""
    if not _USER.fullmatch(user):
        raise ServerError(
            "server.bad-user",
            f"{user[:80]!r} is no name for a user",
            expected="up to 64 letters, digits and ._@-, beginning with a letter or digit",
        )
    text, now = PREFIX + secrets.token_urlsafe(32), time.time() if now is None else now
    token = AccessToken(secrets.token_hex(4), user, token_hash(text), round(now, 3))
    return (token if seconds is None else replace(token, expires=round(now + seconds, 3))), text


def token_hash(text: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class _FileState(NamedTuple):
    """What tells one version of the file from another."""

    changed: int
    size: int
    inode: int
    status_changed: int


def _file_state(file: Path | None) -> _FileState | None:
    """What tells one version of the file from another; None if there is none."""
    if file is None:
        return None
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _token_file_error(file, f"cannot be read: {error.strerror or error}") from None
    return _FileState(found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)


def _load_tokens(file: Path) -> tuple[AccessToken, ...]:
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MAX_BYTES)
        content = cast("dict[str, Any]", json.loads(raw))
        if content["version"] != 1:
            raise ValueError("another version")
        return tuple(_parse_token(entry) for entry in content["tokens"])
    except OSError as error:
        raise _token_file_error(file, f"cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _token_file_error(file, "is not a file of tokens") from None


def _parse_token(entry: dict[str, Any]) -> AccessToken:
    expires = entry.get("expires")
    token = AccessToken(entry["id"], entry["user"], entry["hash"], float(entry["created"]), expires and float(expires))
    if not _USER.fullmatch(token.user) or not re.fullmatch("[0-9a-f]{64}", token.hash):
        raise ValueError("no token")
    return token


def _token_file_error(file: Path, what: str) -> ServerError:
    return ServerError(
        "server.bad-tokens",
        f"the file of tokens {what}",
        place=Place(file=str(file)),
        fix="Mend it, or remove it and make tokens anew with `bicameral serve token add USER`.",
    )
