"""A key that never shows itself: not in a repr, an error, a log or a trace."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import NoReturn, final

from bicameral.errors import ModelError
from bicameral.secrets import know

_SALT = secrets.token_bytes(32)
_MASKED = "[key]"
_SHOWN_BY_SERVERS = 6


@final
class Key:
    """An API key. Only `reveal` gives it out, and only a provider asks for that; everything else shows its `name`.

    `fingerprint` tells two keys apart within this process and says nothing about them: it is made with a secret that
    nobody keeps.

    Example:
        >>> Key("sk-secret")
        Key(…)
    """

    __slots__ = ("_secret", "fingerprint")

    def __init__(self, secret: str, name: str = "key") -> None:
        # The same key with a space behind it would pass as a second one.
        secret = secret.strip()
        if not secret or not secret.isascii() or not secret.isprintable():
            raise ModelError(
                "models.bad-setting",
                "the key is empty or has characters that no key has",
                fix="Check the environment variable or the keyring that it comes from.",
            )
        know(name, secret)
        self._secret = secret
        self.fingerprint = hashlib.blake2b(secret.encode(), key=_SALT, digest_size=16).hexdigest()

    def reveal(self) -> str:
        """The key itself, for the request that needs it."""
        return self._secret

    def hidden_in(self, text: str) -> str:
        """The text without the key, and without the half of it that servers like to quote (`sk-ab…***`)."""
        text = text.replace(self._secret, _MASKED)
        if len(self._secret) > 2 * _SHOWN_BY_SERVERS:
            text = re.sub(re.escape(self._secret[:_SHOWN_BY_SERVERS]) + r"[^\s'\"]*", _MASKED, text)
        return text

    def __repr__(self) -> str:
        return "Key(…)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written down")
