"""The bytes of an outgoing mail, written by hand and then read again.

A header's text may come from a mail that somebody else wrote. The header classes of the standard library decode it
when it is set (`=?utf-8?q?Bill=0AReply-To:…?=` becomes two headers), so every line is written here, in ASCII. What was
written is then parsed by both parsers of the standard library and compared with what was meant: the headers and their
decoded values, the addresses, the structure, and the name and bytes of each part. Any difference means that the mail
is not sent.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email import policy
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from email.utils import format_datetime, getaddresses
from typing import Any, TypeAlias, cast
from urllib.parse import quote

from bicameral.errors import ToolError

from ._addresses import ENCODED_WORD, Recipient

_MAX_LINE = 998
_FOLD = 76
_WORD_BYTES = 42
"""Of UTF-8 in one encoded word: with its frame and the name of a header it fits a line."""
_PLAIN_PHRASE = re.compile(r"[A-Za-z0-9!#$%&'*+/^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/^_`{|}~-]+)*")
_PLAIN_FILE_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9 ._()+,-]{0,60}[A-Za-z0-9_)])?")
_MIME_TYPE = re.compile(r"[a-z0-9]+/[a-z0-9.+-]+")
# Lines that a mail store in the mbox format, or a careless server, would take for its own.
_AWKWARD_LINE = re.compile(r"(?m)^(?:From |\.)|[ \t]$")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes along, by the name under which it arrives."""

    name: str
    content: bytes

    @property
    def kind(self) -> str:
        """The MIME type; one that would be taken apart by readers (a mail in a mail) is sent as plain bytes."""
        guessed = mimetypes.guess_type(self.name)[0] or ""
        opaque = not _MIME_TYPE.fullmatch(guessed) or guessed.startswith(("multipart/", "message/"))
        return "application/octet-stream" if opaque else guessed


@dataclass(frozen=True, slots=True)
class Draft:
    """A mail as it is meant."""

    sender: Recipient
    to: tuple[Recipient, ...]
    cc: tuple[Recipient, ...]
    subject: str
    body: str
    date: datetime
    message_id: str
    attachments: tuple[Attachment, ...] = ()

    @property
    def recipients(self) -> list[str]:
        """The envelope: exactly those whom the headers name."""
        return [each.spec for each in (*self.to, *self.cc)]


def without_encoded_words(text: str) -> str:
    """Text of a header in which nothing is an encoded word: each `=?` gets a blank, and is read as it stands.

    Written as an encoded word of its own it would survive one decoding; some gateways and readers decode twice.
    """
    return text.replace(ENCODED_WORD, "= ?")


def compose(draft: Draft) -> bytes:
    """The mail as it is sent; a ToolError if what a reader would see is not exactly what was meant."""
    lines = [
        f"From: {_addresses((draft.sender,))}",
        f"To: {_addresses(draft.to)}",
        *([f"Cc: {_addresses(draft.cc)}"] if draft.cc else []),
        f"Subject: {_unstructured(draft.subject)}",
        f"Date: {format_datetime(draft.date)}",
        f"Message-ID: {draft.message_id}",
        "MIME-Version: 1.0",
    ]
    text = _text_part(draft.body)
    if draft.attachments:
        parts = [text, *map(_attached_part, draft.attachments)]
        boundary = _boundary(parts)
        lines += [f'Content-Type: multipart/mixed; boundary="{boundary}"', "", ""]
        body = "".join(f"--{boundary}\r\n{part}\r\n" for part in parts) + f"--{boundary}--\r\n"
    else:
        body = text
    raw = ("\r\n".join(lines) + ("\r\n" if not draft.attachments else "") + body).encode("ascii")
    verify(raw, draft)
    return raw


def _addresses(recipients: Sequence[Recipient]) -> str:
    return ",\r\n ".join(_address(each) for each in recipients)


def _address(recipient: Recipient) -> str:
    name = recipient.name
    if not name:
        return recipient.spec
    if _PLAIN_PHRASE.fullmatch(name) and len(name) <= _FOLD // 2:
        return f"{name} <{recipient.spec}>"
    if name.isascii() and len(name) <= _FOLD // 2:
        escaped = re.sub(r'(["\\])', r"\\\1", name)
        return f'"{escaped}" <{recipient.spec}>'
    return f"{_encoded_words(name)}\r\n <{recipient.spec}>"


def _unstructured(text: str) -> str:
    words = text.split(" ")
    # Where an encoded word was undone no line may be folded: a reader that drops the blank would put it together again.
    undone = "= ?" in text
    if undone or not text.isascii() or not all(words) or max(map(len, words)) > _FOLD - len("Message-ID: "):
        return _encoded_words(text) if text else ""
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) + 1 > _FOLD - len("Message-ID: "):
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\r\n ".join(lines)


def _encoded_words(text: str) -> str:
    pieces, used = [""], 0
    for character in text:
        length = len(character.encode())
        if used + length > _WORD_BYTES:
            pieces.append("")
            used = 0
        pieces[-1] += character
        used += length
    return "\r\n ".join(f"=?utf-8?b?{base64.b64encode(piece.encode()).decode()}?=" for piece in pieces)


def _text_part(body: str) -> str:
    """The headers and the content of the text: as it stands if no server could trip over it, else encoded."""
    text = body if body.endswith("\n") else f"{body}\n"
    if text.isascii() and not _AWKWARD_LINE.search(text) and max(map(len, text.split("\n"))) <= _FOLD:
        encoding, content = "7bit", text
    else:
        raw = text.encode()
        quoted = re.sub(r"(?m)^(F)(?=rom )|^(\.)", _in_hex, binascii.b2a_qp(raw).decode("ascii"))
        in_base64 = base64.encodebytes(raw).decode("ascii")
        encoding, content = min(("quoted-printable", quoted), ("base64", in_base64), key=lambda each: len(each[1]))
    head = f'Content-Type: text/plain; charset="utf-8"\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n'
    return head + content.replace("\n", "\r\n")


def _in_hex(found: re.Match[str]) -> str:
    return f"={ord(found[0]):02X}"


def _attached_part(attachment: Attachment) -> str:
    name = attachment.name
    given = f'="{name}"' if _PLAIN_FILE_NAME.fullmatch(name) else f"*=utf-8''{quote(name, safe='')}"
    content = base64.encodebytes(attachment.content).decode("ascii").replace("\n", "\r\n")
    return (
        f"Content-Type: {attachment.kind}\r\nContent-Transfer-Encoding: base64\r\n"
        f"Content-Disposition: attachment;\r\n filename{given}\r\n\r\n{content}"
    )


def _boundary(parts: Sequence[str]) -> str:
    """A boundary that stands in none of the parts; nobody can foresee it, and it is looked for all the same."""
    while True:
        boundary = f"=_{secrets.token_hex(20)}"
        if not any(boundary in part for part in parts):
            return boundary


# Reading again

Part: TypeAlias = tuple[str, str | None, bytes]
"""A MIME type, the name of a file, and the decoded bytes."""
Seen: TypeAlias = tuple[tuple[tuple[str, object], ...], tuple[Part, ...]]
"""Headers with their decoded values, in order, and the parts."""

_ADDRESSED = ("from", "to", "cc")


def verify(raw: bytes, draft: Draft) -> None:
    """Refuse bytes that do not say exactly what was meant, to the strict parser and to the lenient one."""
    meant = _meant(draft)
    lines = raw.split(b"\r\n")
    sound = raw.isascii() and not any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines)
    if not sound or max(map(len, lines)) > _MAX_LINE:
        raise _differs("its lines")
    for seen in (_by_strict_parser(raw), _by_lenient_parser(raw)):
        if seen[0] != meant[0]:
            raise _differs("its headers")
        if seen[1] != meant[1]:
            raise _differs("its text or attachments")


def _differs(what: str) -> ToolError:
    return ToolError(
        "mail.not-as-meant",
        f"a mail program would read {what} differently from what was meant, so the mail was not sent",
        fix="Leave out unusual characters in the subject, the names and the file names.",
    )


def _meant(draft: Draft) -> Seen:
    headers: list[tuple[str, object]] = [
        ("from", ((draft.sender.name, draft.sender.spec),)),
        ("to", tuple((each.name, each.spec) for each in draft.to)),
        *([("cc", tuple((each.name, each.spec) for each in draft.cc))] if draft.cc else []),
        ("subject", draft.subject),
        ("date", format_datetime(draft.date)),
        ("message-id", draft.message_id),
        ("mime-version", "1.0"),
    ]
    body = draft.body if draft.body.endswith("\n") else f"{draft.body}\n"
    parts: list[Part] = [("text/plain", None, body.encode())]
    parts += [(each.kind, each.name, each.content) for each in draft.attachments]
    return tuple(headers), tuple(parts)


def _by_strict_parser(raw: bytes) -> Seen:
    message = BytesParser(policy=policy.SMTP).parsebytes(raw)
    headers: list[tuple[str, object]] = []
    for name, value in message.items():
        key = name.lower()
        if key in _ADDRESSED:
            headers.append((key, _known_addresses(value)))
        elif not key.startswith("content-"):
            headers.append((key, str(value)))
    return tuple(headers), _parts(message)


def _known_addresses(field: Any) -> tuple[tuple[str, str], ...]:
    """The addresses of a header; none if it has a defect or a group in it."""
    if field.defects or any(group.display_name for group in field.groups):
        return ()
    return tuple((str(each.display_name), str(each.addr_spec)) for each in field.addresses)


def _by_lenient_parser(raw: bytes) -> Seen:
    message = BytesParser(policy=policy.compat32).parsebytes(raw)
    headers: list[tuple[str, object]] = []
    for name, folded in message.raw_items():
        key, value = name.lower(), re.sub(r"\r?\n(?=[ \t])", "", folded)
        if key in _ADDRESSED:
            headers.append((key, tuple((_decoded(name), spec) for name, spec in getaddresses([value]))))
        elif not key.startswith("content-"):
            headers.append((key, _decoded(value)))
    return tuple(headers), _parts(message)


def _decoded(value: str) -> str:
    return str(make_header(decode_header(value)))


def _parts(message: Message[Any, Any]) -> tuple[Part, ...]:
    """The parts of a mail with one level of structure; a deeper one, or any defect, is nothing that we wrote."""
    leaves = cast("list[Message[Any, Any]]", message.get_payload()) if message.is_multipart() else [message]
    whole = (message, *leaves)
    if message.preamble or message.epilogue or any(each.defects for each in whole):
        return ()
    if message.is_multipart() and message.get_content_type() != "multipart/mixed":
        return ()
    return tuple(_part(each) for each in leaves)


def _part(leaf: Message[Any, Any]) -> Part:
    content = leaf.get_payload(decode=True)
    raw = content if isinstance(content, bytes) else b""
    text = leaf.get_content_disposition() is None
    return leaf.get_content_type(), leaf.get_filename(), raw.replace(b"\r\n", b"\n") if text else raw
