"""A server proves that it is the user's own, before it is given a link that signs them in.

Whoever is first at a port of the machine answers there, and another user could have been. Only the owner of the token
file can read the key beside it. The port is part of the proof: an impostor at another port gets none for its own by
asking the real server.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from bicameral.cache import read_private_file, write_private_file

KEY_NAME = "console-key"
KEY_BYTES = 32
MIN_NONCE, MAX_NONCE = 16, 128


def make_proof_key(tokens: Path) -> bytes:
    """The key beside a token file, which is made if there is none yet."""
    key = read_proof_key(tokens)
    if key is None:
        tokens.parent.mkdir(parents=True, exist_ok=True)
        write_private_file(tokens.with_name(KEY_NAME), [secrets.token_bytes(KEY_BYTES)])
        # Read again: of two that were written at once the second one counts.
        key = read_proof_key(tokens)
    if key is None:
        raise PermissionError(f"{tokens.with_name(KEY_NAME)} cannot be used")
    return key


def read_proof_key(tokens: Path) -> bytes | None:
    """The key beside a token file; None if there is none that only this user can have written."""
    try:
        key = read_private_file(tokens.with_name(KEY_NAME), KEY_BYTES)
    except OSError:
        return None
    return key if len(key) == KEY_BYTES else None


def proof_of(key: bytes, nonce: str, port: int) -> str:
    """The proof of a server that listens on this port."""
    words = f"bicameral console\n{port}\n{nonce}".encode("utf-8", "surrogatepass")
    return hmac.new(key, words, hashlib.sha256).hexdigest()
