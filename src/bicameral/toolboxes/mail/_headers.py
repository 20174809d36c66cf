"""The headers of a mail, read quickly: five thousand mails in about a second.

The modern header objects of the standard library parse each header with a slow grammar and fail on some broken ones;
the older functions used here take whatever comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.parser import BytesHeaderParser
from email.policy import compat32
from email.utils import getaddresses, parsedate_to_datetime

from .._text import decode, one_line

_MAX_ADDRESSES = 500
_MAX_HEADER = 20_000
_MAX_ENCODED = 2_000
"""The standard library looks for encoded words in time quadratic in the length of a header."""
_MAX_DATE = 200


@dataclass(frozen=True, slots=True)
class Headers:
    """What a search needs to know of a mail before its body is read."""

    message_id: str
    sender: str
    sender_name: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    date: datetime | None
    read: bool
    """What the mail itself says about having been read (only mbox files keep that inside the mail)."""


_PARSER = BytesHeaderParser(policy=compat32)


def read_headers(raw: bytes) -> Headers:
    """The headers at the beginning of a mail."""
    fields: dict[str, list[str]] = {}
    # Raw items, because the cooked ones have lost bytes that nobody declared a charset for.
    for name, value in _PARSER.parsebytes(raw).raw_items():
        fields.setdefault(name.lower(), []).append(value[:_MAX_HEADER])

    def first(name: str) -> str:
        return fields.get(name, [""])[0]

    senders = _addresses(fields.get("from", []) or fields.get("sender", []))
    name, address = senders[0] if senders else ("", "")
    return Headers(
        message_id=_message_id(first("message-id")),
        sender=address,
        sender_name=name,
        to=tuple(address for _, address in _addresses(fields.get("to", []))),
        cc=tuple(address for _, address in _addresses(fields.get("cc", []))),
        subject=decoded(first("subject")),
        date=local_date(first("date")),
        read=_says_read(fields),
    )


def decoded(value: str) -> str:
    """A header's text: encoded words decoded, on one line."""
    if "=?" not in value[:_MAX_ENCODED]:
        return one_line(_recovered(value))
    value, rest = value[:_MAX_ENCODED], value[_MAX_ENCODED:]
    try:
        pieces = decode_header(value)
    except (HeaderParseError, ValueError):
        return one_line(_recovered(value + rest))
    return one_line("".join(_piece(text, charset) for text, charset in pieces) + _recovered(rest))


def _piece(text: str | bytes, charset: str | None) -> str:
    return decode(text, charset) if isinstance(text, bytes) else _recovered(text)


def _recovered(value: str) -> str:
    """Eight-bit bytes in a header, which nobody declared, as text."""
    try:
        raw = value.encode("ascii", "surrogateescape")
    except UnicodeEncodeError:
        return value
    return decode(raw)


def _addresses(values: list[str]) -> list[tuple[str, str]]:
    # Addresses are split before encoded words are decoded: a decoded comma or bracket must not make new addresses.
    pairs = getaddresses(values[:10])[:_MAX_ADDRESSES]
    return [(decoded(name), one_line(_recovered(address))) for name, address in pairs if address]


def _message_id(value: str) -> str:
    found = one_line(value).strip("<> ")
    return found if 0 < len(found) <= 200 and " " not in found else ""


def local_date(value: str) -> datetime | None:
    """A date header as naive local time, or None if it is no date."""
    try:
        when = parsedate_to_datetime(value[:_MAX_DATE])
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        return aware.astimezone().replace(tzinfo=None)
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None


def _says_read(fields: dict[str, list[str]]) -> bool:
    if labels := fields.get("x-gmail-labels"):
        return "unread" not in labels[0].lower()
    if mozilla := fields.get("x-mozilla-status"):
        try:
            return bool(int(mozilla[0], 16) & 1)
        except ValueError:
            return False
    return "R" in fields.get("status", [""])[0]
