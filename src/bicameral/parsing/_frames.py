"""What goes over the pipes between a process and its parser: a kind, JSON text and bytes, with their lengths first."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

PREFIX = struct.Struct(">cQQ")
"""The kind, and the lengths of the JSON text and of the body."""

REQUEST, HELLO, VALUE, ERROR, LIMIT, FAILED = b"r", b"h", b"v", b"e", b"l", b"f"
"""What a frame is: a request; the first words of a process; a value, a typed error, a limit or a failure."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: JSON text, and bytes that are not JSON (a mail, an attachment)."""

    kind: bytes
    text: bytes
    body: bytes = b""

    @classmethod
    def of(cls, kind: bytes, value: object, body: bytes = b"") -> Frame:
        """A frame with this value as its text; what JSON does not have does not get across."""
        # ASCII, so that half a character (a lone surrogate) is an escape and not broken UTF-8.
        return cls(kind, json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii"), body)

    @property
    def value(self) -> Any:
        return json.loads(self.text)

    def to_bytes(self) -> bytes:
        return b"".join((PREFIX.pack(self.kind, len(self.text), len(self.body)), self.text, self.body))
