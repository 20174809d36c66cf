"""MIME parsing in the parser process: the headers of many mails, the text of one mail, and one attachment.

The newer header classes of the standard library parse each header with a slow grammar and fail on some malformed ones.
The older functions and the older policy used here are many times as fast (five thousand mails in about a second) and
accept any input.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser, BytesParser
from email.policy import compat32
from email.utils import getaddresses, parsedate_to_datetime
from itertools import count
from pathlib import PurePosixPath
from typing import Any, TypeAlias, cast

from bicameral.display import hidden_places
from bicameral.errors import ToolError
from bicameral.toolboxes._text import clean_text, decode_bytes, html_to_text, one_line

_MAX_ADDRESSES = 500
_MAX_HEADER = 20_000
_MAX_ENCODED = 2_000
"""The standard library searches a header for encoded words in quadratic time."""
_MAX_DATE = 200

MAX_BODY = 100_000
_MAX_HTML = 1_000_000
_MAX_DEPTH = 20
_MAX_NAME = 120
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*]')

MimePart: TypeAlias = "Message[Any, Any]"

_HEADER_PARSER = BytesHeaderParser(policy=compat32)
_MAIL_PARSER = BytesParser(policy=compat32)
_PARSER_ERRORS = (RecursionError, LookupError, ValueError, TypeError, AttributeError)
"""Raised by the standard library's parser for some malformed mails."""


@dataclass(frozen=True, slots=True)
class MailHeaders:
    """The headers that a search looks at before the body is parsed."""

    message_id: str
    sender: str
    sender_name: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    date: datetime | None
    read: bool
    """Whether the mail says that it has been read; only mbox files record that inside the mail."""


def read_headers(raw: bytes) -> MailHeaders:
    """The headers at the beginning of a mail."""
    fields: dict[str, list[str]] = {}
    # Raw items, because the decoded ones have lost the bytes without a declared charset.
    for name, value in _HEADER_PARSER.parsebytes(raw).raw_items():
        fields.setdefault(name.lower(), []).append(value[:_MAX_HEADER])

    def first(name: str) -> str:
        return fields.get(name, [""])[0]

    senders = _parse_addresses(fields.get("from", []) or fields.get("sender", []))
    name, address = senders[0] if senders else ("", "")
    return MailHeaders(
        message_id=_clean_message_id(first("message-id")),
        sender=address,
        sender_name=name,
        to=tuple(address for _, address in _parse_addresses(fields.get("to", []))),
        cc=tuple(address for _, address in _parse_addresses(fields.get("cc", []))),
        subject=decode_header_value(first("subject")),
        date=parse_local_date(first("date")),
        read=_says_read(fields),
    )


def decode_header_value(value: str) -> str:
    """The text of a header on one line, with encoded words decoded."""
    if "=?" not in value[:_MAX_ENCODED]:
        return one_line(_recover_bytes(value))
    value, rest = value[:_MAX_ENCODED], value[_MAX_ENCODED:]
    try:
        pieces = decode_header(value)
    except (HeaderParseError, ValueError):
        return one_line(_recover_bytes(value + rest))
    decoded = (
        decode_bytes(text, charset) if isinstance(text, bytes) else _recover_bytes(text) for text, charset in pieces
    )
    return one_line("".join(decoded) + _recover_bytes(rest))


def _recover_bytes(value: str) -> str:
    """Text from a header with eight-bit bytes without a declared charset."""
    try:
        raw = value.encode("ascii", "surrogateescape")
    except UnicodeEncodeError:
        return value
    return decode_bytes(raw)


def _parse_addresses(values: list[str]) -> list[tuple[str, str]]:
    # Split before encoded words are decoded: a decoded comma or bracket must not create another address.
    pairs = getaddresses(values[:10])[:_MAX_ADDRESSES]
    return [(decode_header_value(name), one_line(_recover_bytes(address))) for name, address in pairs if address]


def _clean_message_id(value: str) -> str:
    message_id = one_line(value).strip("<> ")
    return message_id if 0 < len(message_id) <= 200 and " " not in message_id else ""


def parse_local_date(value: str) -> datetime | None:
    """A date header as naive local time, or None if it is not a date."""
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


@dataclass(frozen=True, slots=True)
class MailContent:
    """The text of a mail, and its attachments by safe and unique names."""

    body: str
    attachments: dict[str, MimePart]


def read_content(raw: bytes) -> MailContent:
    """The content of a whole mail; a mail whose MIME structure cannot be parsed becomes plain text."""
    try:
        message = _MAIL_PARSER.parsebytes(raw)
        leaves = list(_leaves(message, 0))
        body = _part_text(message, 0)
        return MailContent(_cap_body(body), _name_attachments([leaf for leaf in leaves if _is_attached(leaf)]))
    except _PARSER_ERRORS:
        _, _, rest = raw.replace(b"\r\n", b"\n").partition(b"\n\n")
        return MailContent(_cap_body(decode_bytes(rest)), {})


def attachment_bytes(part: MimePart) -> bytes:
    """The decoded bytes of an attachment; an attached mail is returned whole."""
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        first = cast("list[MimePart]", inner)[0] if isinstance(inner, list) and inner else None
        try:
            return first.as_bytes() if first is not None else b""
        except _PARSER_ERRORS:
            raise ToolError("mail.unreadable", "the attached mail is too broken to be saved") from None
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _children(part: MimePart) -> list[MimePart]:
    payload = part.get_payload() if part.is_multipart() else None
    return cast("list[MimePart]", payload) if isinstance(payload, list) else []


def _leaves(part: MimePart, depth: int) -> Iterator[MimePart]:
    if depth > _MAX_DEPTH:
        return
    # An attached mail is one attachment: its parts do not belong to this mail.
    children = [] if part.get_content_type() == "message/rfc822" else _children(part)
    if not children:
        yield part
    for child in children:
        yield from _leaves(child, depth + 1)


def _is_attached(part: MimePart) -> bool:
    kind = part.get_content_type()
    if part.get_content_disposition() == "attachment" or kind == "message/rfc822":
        return True
    return bool(_given_name(part)) or not (kind.startswith(("text/", "multipart/")))


def _part_text(part: MimePart, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return ""
    kind = part.get_content_type()
    children = [] if kind == "message/rfc822" else _children(part)
    if children and kind == "multipart/alternative":
        return _best_alternative([(child.get_content_type(), _part_text(child, depth + 1)) for child in children])
    if children:
        return "\n\n".join(filter(None, (_part_text(child, depth + 1) for child in children)))
    if not kind.startswith("text/") or _is_attached(part):
        return ""
    payload = part.get_payload(decode=True)
    text = decode_bytes(payload if isinstance(payload, bytes) else b"", part.get_content_charset())
    return html_to_text(text[:_MAX_HTML]) if kind == "text/html" else text.strip()


def _best_alternative(alternatives: list[tuple[str, str]]) -> str:
    """The plain text if it is not empty, else the last alternative (by convention the richest)."""
    plain = next((text for kind, text in alternatives if kind == "text/plain" and text.strip()), "")
    return plain or next((text for _, text in reversed(alternatives) if text.strip()), "")


def _cap_body(body: str) -> str:
    text = clean_text(body)
    return text if len(text) <= MAX_BODY else f"{text[:MAX_BODY]}\n[cut after {MAX_BODY} characters]"


def _given_name(part: MimePart) -> str:
    try:
        return part.get_filename() or ""
    except _PARSER_ERRORS:
        return ""


def _name_attachments(parts: list[MimePart]) -> dict[str, MimePart]:
    named: dict[str, MimePart] = {}
    for number, part in enumerate(parts, 1):
        name = safe_file_name(_given_name(part)) or f"attachment-{number}{_extension(part)}"
        free = name if name not in named else next(n for i in count(2) if (n := number_name(name, i)) not in named)
        named[free] = part
    return named


def number_name(name: str, copy: int) -> str:
    """The name of a further file of the same name, such as `report (2).pdf`."""
    path = PurePosixPath(name)
    return f"{path.stem} ({copy}){path.suffix}"


def _extension(part: MimePart) -> str:
    kind = part.get_content_type()
    return ".eml" if kind == "message/rfc822" else mimetypes.guess_extension(kind) or ""


def safe_file_name(given: str) -> str:
    """An untrusted file name without folders, leading dots, and invisible characters that change its display."""
    last = re.split(r"[/\\]", one_line(decode_header_value(given)))[-1]
    hidden = hidden_places(last)
    visible = "".join("_" if at in hidden else character for at, character in enumerate(last))
    bare = _UNSAFE.sub("_", visible).strip(" .")
    if len(bare.encode()) <= _MAX_NAME:
        return bare
    stem, dot, ending = bare.rpartition(".")
    ending = ending if dot and len(ending) <= 10 else ""
    cut = (stem or bare).encode()[: _MAX_NAME - len(ending.encode()) - 1].decode("utf-8", "ignore")
    return f"{cut}.{ending}" if ending else cut


def read_heads(raw: bytes, sizes: list[int]) -> list[dict[str, Any]]:
    """The headers of several mails, whose heads of these sizes follow one another."""
    mails: list[dict[str, Any]] = []
    start = 0
    for size in sizes:
        headers = read_headers(raw[start : start + size])
        date = None if headers.date is None else headers.date.isoformat()
        mails.append(asdict(headers) | {"date": date})
        start += size
    return mails


def read_mail(raw: bytes) -> dict[str, Any]:
    """The text of a mail and the names of its attachments."""
    content = read_content(raw)
    return {"body": content.body, "attachments": list(content.attachments)}


def read_attachment(raw: bytes, name: str) -> tuple[list[str], bytes]:
    """The names of all attachments, and the bytes of the one with this name, if there is one."""
    attachments = read_content(raw).attachments
    return list(attachments), attachment_bytes(attachments[name]) if name in attachments else b""
