"""What the parser process does for the mail tools: headers of many mails, the text of one, one attachment."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ._bodies import attachment_bytes, read_content
from ._headers import read_headers


def read_heads(raw: bytes, sizes: list[int]) -> list[dict[str, Any]]:
    """The headers of mails whose beginnings follow one another, each so many bytes long."""
    found: list[dict[str, Any]] = []
    start = 0
    for size in sizes:
        headers = read_headers(raw[start : start + size])
        date = None if headers.date is None else headers.date.isoformat()
        found.append(asdict(headers) | {"date": date})
        start += size
    return found


def read_mail(raw: bytes) -> dict[str, Any]:
    """The text of a mail and the names of its attachments."""
    content = read_content(raw)
    return {"body": content.body, "attachments": list(content.attachments)}


def read_attachment(raw: bytes, name: str) -> tuple[list[str], bytes]:
    """The names of all attachments, and the bytes of one of them if there is one of this name."""
    attachments = read_content(raw).attachments
    return list(attachments), attachment_bytes(attachments[name]) if name in attachments else b""
