"""Access tokens, stored as hashes in a file that only its owner can read.

A token is 256 random bits, so its SHA-256 reveals nothing and needs no salt. A presented token is compared with every
hash in constant time, so the response time does not reveal whether any of them was close.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field

from bicameral.cache import file_lock, write_private_file
from bicameral.errors import Place, ServerError, nearest_name

Role = Literal["see", "run", "approve"]
"""What a token is for: `see` reads runs and questions, `run` plans, runs and cancels, `approve` answers questions."""
ROLES: tuple[Role, ...] = get_args(Role)
PREFIX = "bic_"
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_MAX_BYTES = 4_000_000
_FORGET_SECONDS = 7 * 86_400.0
"""Tokens that expired so long ago are removed when another one is added."""
_SETTLED_NS = 2_000_000_000
"""A file that changed less than this before it was read may change again within the same tick of the file system's
clock, with the same size and inode. Until it is older than this, it is read every time."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """The user, the hash, the validity and the roles of a token; never the token itself."""

    id: str
    user: Annotated[str, Field(pattern=f"^{_USER.pattern}$")]
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    created: float
    expires: float | None = None
    roles: Annotated[tuple[Role, ...], Field(min_length=1)] = ROLES
    all_users: bool = False
    """Whether it is for the runs and questions of all users. A server that does not know the field ignores it."""
    link: bool = False
    """Whether it is for signing in once, by a link, and for nothing else."""

    @property
    def owner(self) -> str | None:
        """Whose runs and questions it is for; None: those of all users."""
        return None if self.all_users else self.user

    @property
    def is_restricted(self) -> bool:
        """Whether the token may not do everything that its user may."""
        return not set(ROLES) <= set(self.roles)

    def may(self, *roles: Role) -> bool:
        """Whether the token has one of these roles."""
        return any(role in self.roles for role in roles)

    def to_json(self) -> dict[str, Any]:
        facts = {name: value for name, value in asdict(self).items() if value is not None and value is not False}
        return facts if self.is_restricted else {name: fact for name, fact in facts.items() if name != "roles"}


class _StoredTokens(BaseModel):
    """The content of a token file."""

    model_config = ConfigDict(strict=True)
    # 2 if a token has roles: a server that does not know them must not read it as one that may do everything.
    version: Literal[1, 2]
    tokens: tuple[AccessToken, ...]


class TokenFile:
    """The tokens of a file. It is read again whenever it changes, so a removed token is invalid at once.

    Args:
        file: The file; it is created with the first token. None for tokens in memory alone.
        extra: Tokens that are valid besides those of the file.
        clock: Seconds since 1970, for tests.

    Example:
        >>> tokens = TokenFile(Path("tokens.json"))
        >>> token, text = tokens.add("ana")
        >>> tokens.find_holder(text).user
        'ana'
    """

    def __init__(
        self, file: Path | None, extra: Iterable[AccessToken] = (), *, clock: Callable[[], float] = time.time
    ) -> None:
        self.file = file
        self._extra = tuple(extra)
        self._signed_in: tuple[AccessToken, ...] = ()
        """What links were exchanged for: in memory alone, so that it ends with this process."""
        self._clock = clock
        self._read: tuple[AccessToken, ...] = ()
        self._state: _FileState | None = None
        self._is_settled = False

    def all_tokens(self) -> tuple[AccessToken, ...]:
        """All tokens, expired ones too."""
        state = _file_state(self.file)
        if state != self._state or not self._is_settled:
            # The state is taken before the file is read: a change in between is another state, and is read next time.
            self._is_settled = state is None or time.time_ns() - state.changed > _SETTLED_NS
            self._read = self._stored_tokens()
            self._state = state
        return (*self._read, *self._extra, *self._signed_in)

    def valid_tokens(self) -> tuple[AccessToken, ...]:
        """The tokens that have not expired."""
        return tuple(token for token in self.all_tokens() if self._is_unexpired(token))

    def is_valid(self, token: AccessToken) -> bool:
        """Whether a token that was presented earlier is still valid: the same user, not removed, not expired.

        A response that takes time checks this before each part that it sends.
        """
        return token in self.all_tokens() and self._is_unexpired(token)

    def _is_unexpired(self, token: AccessToken) -> bool:
        return token.expires is None or token.expires > self._clock()

    def find_holder(self, presented: str, *, restricted: bool = False) -> AccessToken | None:
        """The token with this text, if there is a valid one.

        Args:
            presented: The text.
            restricted: Whether a token that has only some roles counts. Whoever asks for these checks the roles.
        """
        digest = token_hash(presented)
        found: AccessToken | None = None
        for token in self.all_tokens():
            # No early exit: the time must not depend on which token matches.
            if hmac.compare_digest(token.hash, digest):
                found = token
        # Whoever presents the token of a link has to exchange it first, so that it is worth nothing afterwards.
        if found is None or found.link or not self._is_unexpired(found):
            return None
        # Unless it was asked for: a server that knows no roles would let it do everything.
        return found if restricted or not found.is_restricted else None

    def exchange_link(self, presented: str, seconds: float) -> AccessToken | None:
        """Sign in with the token of a link; it holds once. None if it does not hold.

        What is returned has the same user and roles, and is kept in memory alone: no text opens it.

        Args:
            presented: The text of the token.
            seconds: How long what is returned is valid.
        """
        digest = token_hash(presented)
        if not any(token.link and hmac.compare_digest(token.hash, digest) for token in self.valid_tokens()):
            return None
        found = next((token for token in self._extra if token.hash == digest), None)
        if found is not None:
            self._extra = tuple(token for token in self._extra if token is not found)
        else:
            # Under the lock: of two processes that are given the same link at once only one finds it.
            with self._locked():
                stored = self._stored_tokens()
                found = next((token for token in stored if token.hash == digest), None)
                if found is None:
                    return None
                self._write(tuple(token for token in stored if token is not found))
        now = self._clock()
        signed_in, _ = new_token(found.user, seconds, now, roles=found.roles, all_users=found.all_users)
        self._signed_in = (*(each for each in self._signed_in if self._is_unexpired(each)), signed_in)
        return signed_in

    def end_sign_in(self, token: AccessToken) -> None:
        """End what a link was exchanged for. Any other token stays: it is for more than one browser."""
        self._signed_in = tuple(each for each in self._signed_in if each is not token)

    def add(
        self,
        user: str,
        seconds: float | None = None,
        *,
        roles: Collection[Role] = ROLES,
        all_users: bool = False,
        link: bool = False,
    ) -> tuple[AccessToken, str]:
        """Add a token for a user, valid for so many seconds; returns it with its text, which is not stored."""
        token, text = new_token(user, seconds, self._clock(), roles=roles, all_users=all_users, link=link)
        forgotten = self._clock() - _FORGET_SECONDS
        with self._locked():
            kept = (each for each in self._stored_tokens() if each.expires is None or each.expires > forgotten)
            self._write((*kept, token))
        return token, text

    def remove(self, token_id: str) -> AccessToken:
        """Remove a token; requests with it are refused from now on."""
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
        """Lock reading and writing together: otherwise a concurrent writer could bring back a removed token."""
        if self.file is None:
            raise ServerError("server.bad-tokens", "these tokens are kept in no file")
        with ExitStack() as held:
            try:
                held.enter_context(file_lock(self.file.with_name(f".{self.file.name}.lock")))
            except OSError as error:
                raise _token_file_error(self.file, f"cannot be written: {error.strerror or error}") from None
            yield

    def _stored_tokens(self) -> tuple[AccessToken, ...]:
        return () if self.file is None or _file_state(self.file) is None else _load_tokens(self.file)

    def _write(self, tokens: tuple[AccessToken, ...]) -> None:
        assert self.file is not None
        version = 2 if any(token.is_restricted for token in tokens) else 1
        text = json.dumps({"version": version, "tokens": [token.to_json() for token in tokens]}, indent=2) + "\n"
        try:
            # Synchronised: otherwise a removed token could come back after a power failure.
            write_private_file(self.file, [text.encode()], sync=True)
        except OSError as error:
            raise _token_file_error(self.file, f"cannot be written: {error.strerror or error}") from None


def new_token(
    user: str,
    seconds: float | None = None,
    now: float | None = None,
    *,
    roles: Collection[Role] = ROLES,
    all_users: bool = False,
    link: bool = False,
) -> tuple[AccessToken, str]:
    """A token that is in no file yet, and its text.

    Example:
        >>> token, text = new_token("ana")
        >>> TokenFile(None, [token]).find_holder(text).user
        'ana'
    """
    if not _USER.fullmatch(user):
        raise ServerError(
            "server.bad-user",
            f"{user[:80]!r} is no name for a user",
            expected="up to 64 letters, digits and ._@-, beginning with a letter or digit",
        )
    text, now = PREFIX + secrets.token_urlsafe(32), time.time() if now is None else now
    known: tuple[Role, ...] = tuple(role for role in ROLES if role in roles)
    if not known or len(known) < len(set(roles)):
        raise ServerError("server.bad-role", "a token has at least one role", expected=f"of {', '.join(ROLES)}")
    token = AccessToken(
        secrets.token_hex(4), user, token_hash(text), round(now, 3), roles=known, all_users=all_users, link=link
    )
    return (token if seconds is None else replace(token, expires=round(now + seconds, 3))), text


def token_hash(text: str) -> str:
    """The hash that is stored for a token."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class _FileState(NamedTuple):
    """What distinguishes one version of the file from another."""

    changed: int
    size: int
    inode: int
    status_changed: int


def _file_state(file: Path | None) -> _FileState | None:
    """The state of the file; None if it does not exist."""
    if file is None:
        return None
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _token_file_error(file, f"cannot be read: {error.strerror or error}") from None
    return _FileState(status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)


def _load_tokens(file: Path) -> tuple[AccessToken, ...]:
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MAX_BYTES)
        return _StoredTokens.model_validate_json(raw).tokens
    except OSError as error:
        raise _token_file_error(file, f"cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise _token_file_error(file, "is not a file of tokens") from None


def _token_file_error(file: Path, fault: str) -> ServerError:
    return ServerError(
        "server.bad-tokens",
        f"the file of tokens {fault}",
        place=Place(file=str(file)),
        fix="Mend it, or remove it and make tokens anew with `bicameral serve token add USER`.",
    )
