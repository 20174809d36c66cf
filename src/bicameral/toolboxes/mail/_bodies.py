"""The body and the attachments of a mail: MIME as strangers write it.

As in the headers, the older policy of the standard library is used: many times as fast, and it takes whatever comes.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from itertools import count
from pathlib import PurePosixPath
from typing import Any, TypeAlias, cast

from bicameral.display import hidden_places
from bicameral.errors import ToolError

from .._html import html_to_text
from .._text import clean, decode, one_line
from ._headers import decoded

MAX_BODY = 100_000
_MAX_HTML = 1_000_000
_MAX_DEPTH = 20
_MAX_NAME = 120
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*]')

Part: TypeAlias = "Message[Any, Any]"

_PARSER = BytesParser(policy=compat32)
_TRIPS = (RecursionError, LookupError, ValueError, TypeError, AttributeError)
"""What the standard library's parser raises over some malformed mails."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a mail says and what is attached to it, by safe and unique names."""

    body: str
    attachments: dict[str, Part]


def read_content(raw: bytes) -> Content:
    """The content of a whole mail; a MIME tree that cannot be followed is shown as the text that it is."""
    try:
        message = _PARSER.parsebytes(raw)
        leaves = list(_leaves(message, 0))
        body = _text(message, 0)
        return Content(_capped(body), _named([leaf for leaf in leaves if _is_attached(leaf)]))
    except _TRIPS:
        _, _, rest = raw.replace(b"\r\n", b"\n").partition(b"\n\n")
        return Content(_capped(decode(rest)), {})


def attachment_bytes(part: Part) -> bytes:
    """The decoded bytes of an attachment; an attached mail is the mail as it was."""
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        first = cast("list[Part]", inner)[0] if isinstance(inner, list) and inner else None
        try:
            return first.as_bytes() if first is not None else b""
        except _TRIPS:
            raise ToolError("mail.unreadable", "the attached mail is too broken to be saved") from None
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _children(part: Part) -> list[Part]:
    payload = part.get_payload() if part.is_multipart() else None
    return cast("list[Part]", payload) if isinstance(payload, list) else []


def _leaves(part: Part, depth: int) -> Iterator[Part]:
    if depth > _MAX_DEPTH:
        return
    # An attached mail is one attachment: what is in it does not belong to this mail.
    children = [] if part.get_content_type() == "message/rfc822" else _children(part)
    if not children:
        yield part
    for child in children:
        yield from _leaves(child, depth + 1)


def _is_attached(part: Part) -> bool:
    kind = part.get_content_type()
    if part.get_content_disposition() == "attachment" or kind == "message/rfc822":
        return True
    return bool(_given_name(part)) or not (kind.startswith(("text/", "multipart/")))


def _text(part: Part, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return ""
    kind = part.get_content_type()
    children = [] if kind == "message/rfc822" else _children(part)
    if children and kind == "multipart/alternative":
        return _best([(child.get_content_type(), _text(child, depth + 1)) for child in children])
    if children:
        return "\n\n".join(filter(None, (_text(child, depth + 1) for child in children)))
    if not kind.startswith("text/") or _is_attached(part):
        return ""
    payload = part.get_payload(decode=True)
    text = decode(payload if isinstance(payload, bytes) else b"", part.get_content_charset())
    return html_to_text(text[:_MAX_HTML]) if kind == "text/html" else text.strip()


def _best(alternatives: list[tuple[str, str]]) -> str:
    """Plain text if it says anything, else the last of the others (the richest by convention)."""
    plain = next((text for kind, text in alternatives if kind == "text/plain" and text.strip()), "")
    return plain or next((text for _, text in reversed(alternatives) if text.strip()), "")


def _capped(body: str) -> str:
    text = clean(body)
    return text if len(text) <= MAX_BODY else f"{text[:MAX_BODY]}\n[cut after {MAX_BODY} characters]"


def _given_name(part: Part) -> str:
    try:
        return part.get_filename() or ""
    except _TRIPS:
        return ""


def _named(parts: list[Part]) -> dict[str, Part]:
    named: dict[str, Part] = {}
    for number, part in enumerate(parts, 1):
        name = safe_name(_given_name(part)) or f"attachment-{number}{_extension(part)}"
        free = name if name not in named else next(n for i in count(2) if (n := numbered(name, i)) not in named)
        named[free] = part
    return named


def numbered(name: str, copy: int) -> str:
    """`report (2).pdf`: the name of another file that would have the same name."""
    path = PurePosixPath(name)
    return f"{path.stem} ({copy}){path.suffix}"


def _extension(part: Part) -> str:
    kind = part.get_content_type()
    return ".eml" if kind == "message/rfc822" else mimetypes.guess_extension(kind) or ""


def safe_name(given: str) -> str:
    """A stranger's file name as a bare name: no folders, no leading dots, nothing hidden that changes how it reads."""
    last = re.split(r"[/\\]", one_line(decoded(given)))[-1]
    hidden = hidden_places(last)
    seen = "".join("_" if at in hidden else each for at, each in enumerate(last))
    bare = _UNSAFE.sub("_", seen).strip(" .")
    if len(bare.encode()) <= _MAX_NAME:
        return bare
    stem, dot, ending = bare.rpartition(".")
    ending = ending if dot and len(ending) <= 10 else ""
    cut = (stem or bare).encode()[: _MAX_NAME - len(ending.encode()) - 1].decode("utf-8", "ignore")
    return f"{cut}.{ending}" if ending else cut
