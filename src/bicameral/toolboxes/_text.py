"""Bytes and header text from strangers, made into text that any plan, journal or database can hold."""

from __future__ import annotations

import codecs
import re

# Pages and mails labelled with these are very often UTF-8; a multi-byte text that decodes as UTF-8 is UTF-8.
_WESTERN = frozenset({"ascii", "iso8859-1", "cp1252", "iso8859-15"})
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SPACES = re.compile(r"\s+")
_LONGEST_CHARSET = 60


def decode(raw: bytes, declared: str | None = None) -> str:
    """The text of these bytes: the declared charset if it fits, else what they look like; this never fails."""
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            return clean(raw.decode(encoding, "replace"))
    known = _codec(declared)
    order = ("utf-8", known) if known is None or known in _WESTERN else (known, "utf-8")
    for encoding in order:
        if encoding:
            try:
                return clean(raw.decode(encoding))
            except (UnicodeError, ValueError):
                continue
    return clean(raw.decode("cp1252", "replace"))


def _codec(declared: str | None) -> str | None:
    if declared is not None and len(declared) > _LONGEST_CHARSET:
        return None
    try:
        name = codecs.lookup((declared or "").strip().strip("\"'")).name
        b"x".decode(name)
    except (LookupError, ValueError):
        return None
    # Python's own escapes are codecs too, but no text on the wire is written in them.
    return None if "escape" in name or name in ("idna", "punycode", "undefined") else name


def clean(text: str) -> str:
    """Text without lone surrogates and control characters, with plain line ends."""
    sound = text.encode("utf-8", "replace").decode("utf-8")
    return _CONTROLS.sub("", sound.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """Text as a single line with single spaces."""
    return _SPACES.sub(" ", clean(text)).strip()
