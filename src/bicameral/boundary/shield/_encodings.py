"""Text in another writing: base64, hex, percent signs, entities, escapes. Decoded once and only to be looked at."""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from ._marks import Mark

LONG_WORD = 24
"""Shorter words are not tried: there is little that one can say in them."""
MAX_TRIED = 200
MAX_DECODED = 4_096

# No pattern has a part that could match in two ways, so each takes one look at every character.
_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{LONG_WORD},}}+={{0,2}}")
_HEX = re.compile("(?:[0-9A-Fa-f]{2})+")
_PERCENT = re.compile("(?:%[0-9A-Fa-f]{2}){6,}+")
_ENTITIES = re.compile("(?:&#x?[0-9A-Fa-f]{1,6};){6,}+")
_ESCAPES = re.compile(r"(?:\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}){6,}+")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")

Decoded = tuple[Mark, str]


def encoded(text: str, *, long_words: bool) -> Iterator[Decoded]:
    """Pieces that decode to text, each with what it says. `long_words`: whether there are any."""
    if long_words:
        yield from _tried(text, _BASE64, _base64_or_hex, 0.4)
    if "%" in text:
        yield from _tried(text, _PERCENT, unquote, 0.4)
    if "&#" in text:
        yield from _tried(text, _ENTITIES, _entities, 0.4)
    # JSON of texts in other scripts is full of these.
    if "\\u" in text or "\\x" in text:
        yield from _tried(text, _ESCAPES, _unescaped, 0.1)


def _tried(
    text: str, pattern: re.Pattern[str], decode: Callable[[str], str | None], weight: float
) -> Iterator[Decoded]:
    for tried, found in enumerate(pattern.finditer(text)):
        if tried >= MAX_TRIED:
            return
        said = decode(found[0][:MAX_DECODED])
        if said is not None and reads_like_text(said):
            yield Mark("encoded", found.start(), found.end(), weight, "a piece that decodes to text"), said


def _base64_or_hex(piece: str) -> str | None:
    bare = piece.rstrip("=")
    if _HEX.fullmatch(bare) and (said := _utf8(bytes.fromhex(bare))) is not None:
        return said
    plain = bare.replace("-", "+").replace("_", "/")
    plain = plain[: len(plain) - (len(plain) % 4 == 1)]
    try:
        return _utf8(base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True))
    except (binascii.Error, ValueError):
        return None


def _utf8(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        # A piece is cut off at a length, perhaps inside a character.
        return raw[: error.start].decode("utf-8") if error.start >= len(raw) - 3 > 0 else None


def _unescaped(piece: str) -> str:
    return "".join(chr(int(four or two, 16)) for four, two in _ESCAPE.findall(piece))


def _entities(piece: str) -> str:
    return html.unescape(piece[: piece.rfind(";") + 1])


def reads_like_text(said: str) -> bool:
    """Whether it is something to read: letters for the most part, nothing unprintable."""
    if len(said) < 6:
        return False
    letters = sum(character.isalpha() or character.isspace() for character in said)
    odd = sum(not (character.isprintable() or character in "\n\r\t") for character in said)
    return odd == 0 and letters >= 0.6 * len(said)
