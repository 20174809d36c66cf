"""Outgoing mail: recipients parsed strictly, and the bytes of a message composed by hand and then read again.

The parsers of the standard library accept much more than one address (groups, comments, routes, quoted local parts,
encoded words) and drop what they do not understand, so a recipient is first matched against a small grammar of our
own: what a server or a mail reader could take for another address is refused.

A header's text may come from an untrusted mail. The header classes of the standard library decode it when it is set
(`=?utf-8?q?Bill=0AReply-To:...?=` becomes two headers), so every line is written here, in ASCII. The result is parsed
by both parsers of the standard library and compared with the draft: the headers and their decoded values, the
addresses, the structure, and the name and bytes of each part. Any difference means that the mail is not sent.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
import secrets
import unicodedata
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

from bicameral.display import has_hidden, make_visible
from bicameral.errors import Place, ToolError

_MAX_NAME = 200
_MAX_SHOWN = 80
_MAX_DOMAIN = 253
# `name <spec>` with the name in quotes or without any character that structures a list of addresses.
_NAMED = re.compile(r"""(?P<name>"(?:[^"\\]|\\.)*"|[^"\\<>@,;:()\[\]]*)\s*<(?P<spec>[^<>\s]+)>""")
# No `%` and no `!`: a server may take `a%b@c` and `c!b!a` for a route. Nothing that a program could take for an option.
_LOCAL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_+'&~#=*^$-]|\.(?!\.))*(?<!\.)")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LINE_BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
ENCODED_WORD = "=?"


@dataclass(frozen=True, slots=True)
class Recipient:
    """A display name, which may be empty, and an address in ASCII."""

    name: str
    local: str
    domain: str

    @property
    def address(self) -> str:
        return f"{self.local}@{self.domain}"


def parse_recipient(given: str, argument: str) -> Recipient:
    """One recipient, `a@example.com` or `Ann <a@example.com>`; anything else is refused."""
    refuse_line_breaks(given, argument)
    whole = given.strip()
    named = _NAMED.fullmatch(whole)
    name, spec = (_unquote_name(named["name"].strip()), named["spec"]) if named else ("", whole)
    local, at, domain = spec.partition("@")
    sound = _ascii_domain(domain)
    # A name that looks like an address, or hides something, shows the reader somebody else than who gets the mail.
    odd_name = len(name) > _MAX_NAME or any(sign in name for sign in "@<>") or has_hidden(name)
    odd_local = len(local) > 64 or not _LOCAL.fullmatch(local)
    if not at or sound is None or odd_local or odd_name or ENCODED_WORD in whole:
        raise _bad_address_error(given, argument)
    return Recipient(name, local, sound)


def refuse_line_breaks(text: str, argument: str) -> None:
    """Refuse what could end a header: every control character, and what some readers take for the end of a line."""
    if _LINE_BREAKING.search(text):
        raise ToolError(
            "mail.bad-header",
            f"the {argument} has a line break or control character in it, which could forge a header",
            place=Place(argument=argument),
            expected="one line of text",
        )


def _unquote_name(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name.startswith('"') else name


def _ascii_domain(given: str) -> str | None:
    """A domain in ASCII, or None: each label as it was given, never as one that only looks or sounds like it."""
    labels = [_ascii_label(label) for label in given.split(".")]
    domain = ".".join(label or "" for label in labels)
    if None in labels or len(domain) > _MAX_DOMAIN or domain.rpartition(".")[2].isdigit():
        return None
    return domain


def _ascii_label(given: str) -> str | None:
    label = given.lower()
    if label.isascii():
        return label if _LABEL.fullmatch(label) and _is_sound_punycode(label) else None
    # The mapping of IDNA 2003 would turn full-width letters and `ß` into others: a domain that nobody has written.
    if unicodedata.normalize("NFKC", label) != label or has_hidden(label) or not _has_only_letters(label):
        return None
    encoded = f"xn--{label.encode('punycode').decode('ascii')}"
    return encoded if _LABEL.fullmatch(encoded) else None


def _is_sound_punycode(label: str) -> bool:
    """Whether a label is no punycode, or stands for letters and nothing else (`xn--` can spell `@` and blanks)."""
    if not label.startswith("xn--"):
        return True
    try:
        stands_for = label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return False
    return not stands_for.isascii() and _has_only_letters(stands_for)


def _has_only_letters(label: str) -> bool:
    return all(each in "-\u00b7" or unicodedata.category(each)[0] in "LMN" for each in label)


def _bad_address_error(given: str, argument: str) -> ToolError:
    shown = given if len(given) <= _MAX_SHOWN else given[: _MAX_SHOWN - 3] + "..."
    return ToolError(
        "mail.bad-address",
        f"{make_visible(shown, strict=True)!r} is not a mail address",
        place=Place(argument=argument),
        expected="one address such as 'ann@example.com' for each recipient",
    )


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
class MailDraft:
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
        return [each.address for each in (*self.to, *self.cc)]


def without_encoded_words(text: str) -> str:
    """Text of a header in which nothing is an encoded word: each `=?` gets a blank, and is read as it stands.

    Written as an encoded word of its own it would survive one decoding; some gateways and readers decode twice.
    """
    return text.replace(ENCODED_WORD, "= ?")


def compose_message(draft: MailDraft) -> bytes:
    """The mail as it is sent; a ToolError if what a reader would see is not exactly what was meant."""
    lines = [
        f"From: {_address_list((draft.sender,))}",
        f"To: {_address_list(draft.to)}",
        *([f"Cc: {_address_list(draft.cc)}"] if draft.cc else []),
        f"Subject: {_subject_text(draft.subject)}",
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
    verify_message(raw, draft)
    return raw


def _address_list(recipients: Sequence[Recipient]) -> str:
    return ",\r\n ".join(_address_text(each) for each in recipients)


def _address_text(recipient: Recipient) -> str:
    name = recipient.name
    if not name:
        return recipient.address
    if _PLAIN_PHRASE.fullmatch(name) and len(name) <= _FOLD // 2:
        return f"{name} <{recipient.address}>"
    if name.isascii() and len(name) <= _FOLD // 2:
        escaped = re.sub(r'(["\\])', r"\\\1", name)
        return f'"{escaped}" <{recipient.address}>'
    return f"{_encoded_words(name)}\r\n <{recipient.address}>"


def _subject_text(text: str) -> str:
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
        quoted = re.sub(r"(?m)^(F)(?=rom )|^(\.)", _hex_escape, binascii.b2a_qp(raw).decode("ascii"))
        in_base64 = base64.encodebytes(raw).decode("ascii")
        encoding, content = min(("quoted-printable", quoted), ("base64", in_base64), key=lambda each: len(each[1]))
    head = f'Content-Type: text/plain; charset="utf-8"\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n'
    return head + content.replace("\n", "\r\n")


def _hex_escape(found: re.Match[str]) -> str:
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

ParsedPart: TypeAlias = tuple[str, str | None, bytes]
"""A MIME type, the name of a file, and the decoded bytes."""
ParsedMessage: TypeAlias = tuple[tuple[tuple[str, object], ...], tuple[ParsedPart, ...]]
"""Headers with their decoded values, in order, and the parts."""

_ADDRESS_HEADERS = ("from", "to", "cc")


def verify_message(raw: bytes, draft: MailDraft) -> None:
    """Refuse bytes that do not say exactly what was meant, to the strict parser and to the lenient one."""
    meant = _expected_message(draft)
    lines = raw.split(b"\r\n")
    sound = raw.isascii() and not any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines)
    if not sound or max(map(len, lines)) > _MAX_LINE:
        raise _differs_error("its lines")
    for seen in (_parse_strictly(raw), _parse_leniently(raw)):
        if seen[0] != meant[0]:
            raise _differs_error("its headers")
        if seen[1] != meant[1]:
            raise _differs_error("its text or attachments")


def _differs_error(what: str) -> ToolError:
    return ToolError(
        "mail.not-as-meant",
        f"a mail program would read {what} differently from what was meant, so the mail was not sent",
        fix="Leave out unusual characters in the subject, the names and the file names.",
    )


def _expected_message(draft: MailDraft) -> ParsedMessage:
    headers: list[tuple[str, object]] = [
        ("from", ((draft.sender.name, draft.sender.address),)),
        ("to", tuple((each.name, each.address) for each in draft.to)),
        *([("cc", tuple((each.name, each.address) for each in draft.cc))] if draft.cc else []),
        ("subject", draft.subject),
        ("date", format_datetime(draft.date)),
        ("message-id", draft.message_id),
        ("mime-version", "1.0"),
    ]
    body = draft.body if draft.body.endswith("\n") else f"{draft.body}\n"
    parts: list[ParsedPart] = [("text/plain", None, body.encode())]
    parts += [(each.kind, each.name, each.content) for each in draft.attachments]
    return tuple(headers), tuple(parts)


def _parse_strictly(raw: bytes) -> ParsedMessage:
    message = BytesParser(policy=policy.SMTP).parsebytes(raw)
    headers: list[tuple[str, object]] = []
    for name, value in message.items():
        key = name.lower()
        if key in _ADDRESS_HEADERS:
            headers.append((key, _header_addresses(value)))
        elif not key.startswith("content-"):
            headers.append((key, str(value)))
    return tuple(headers), _message_parts(message)


def _header_addresses(field: Any) -> tuple[tuple[str, str], ...]:
    """The addresses of a header; none if it has a defect or a group in it."""
    if field.defects or any(group.display_name for group in field.groups):
        return ()
    return tuple((str(each.display_name), str(each.addr_spec)) for each in field.addresses)


def _parse_leniently(raw: bytes) -> ParsedMessage:
    message = BytesParser(policy=policy.compat32).parsebytes(raw)
    headers: list[tuple[str, object]] = []
    for name, folded in message.raw_items():
        key, value = name.lower(), re.sub(r"\r?\n(?=[ \t])", "", folded)
        if key in _ADDRESS_HEADERS:
            headers.append((key, tuple((_decode_header_text(name), spec) for name, spec in getaddresses([value]))))
        elif not key.startswith("content-"):
            headers.append((key, _decode_header_text(value)))
    return tuple(headers), _message_parts(message)


def _decode_header_text(value: str) -> str:
    return str(make_header(decode_header(value)))


def _message_parts(message: Message[Any, Any]) -> tuple[ParsedPart, ...]:
    """The parts of a mail with one level of structure; a deeper one, or any defect, is nothing that we wrote."""
    leaves = cast("list[Message[Any, Any]]", message.get_payload()) if message.is_multipart() else [message]
    whole = (message, *leaves)
    if message.preamble or message.epilogue or any(each.defects for each in whole):
        return ()
    if message.is_multipart() and message.get_content_type() != "multipart/mixed":
        return ()
    return tuple(_message_part(each) for each in leaves)


def _message_part(leaf: Message[Any, Any]) -> ParsedPart:
    content = leaf.get_payload(decode=True)
    raw = content if isinstance(content, bytes) else b""
    text = leaf.get_content_disposition() is None
    return leaf.get_content_type(), leaf.get_filename(), raw.replace(b"\r\n", b"\n") if text else raw
