"""Outgoing mail: recipients are parsed strictly, and a message is composed by hand and then parsed again.

The parsers of the standard library accept much more than one address (groups, comments, routes, quoted local parts,
encoded words) and drop what they do not understand. So a recipient must match a small grammar, which excludes
everything that a server or a mail program could take for another address.

The text of a header may be untrusted. The header classes of the standard library decode it when it is set
(`=?utf-8?q?Bill=0AReply-To:...?=` becomes two headers), so every line is written here, in ASCII. The result is parsed
by both parsers of the standard library and compared with the draft: the headers and their decoded values, the
addresses, the structure, and the name and bytes of each part. A mail with any difference is not sent.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
import secrets
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
_MAX_LINE = 998
_FOLD = 76
_WORD_BYTES = 42
"""Bytes of UTF-8 in one encoded word, which then fits on a line with its frame and the name of a header."""
# `name <spec>` with the name in quotes, or without any character that has a meaning in a list of addresses.
_NAMED = re.compile(r"""(?P<name>"(?:[^"\\]|\\.)*"|[^"\\<>@,;:()\[\]]*)\s*<(?P<spec>[^<>\s]+)>""")
# No `%` and no `!`: a server may take `a%b@c` and `c!b!a` for a route. No leading `-`, which could be an option.
_LOCAL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_+'&~#=*^$-]|\.(?!\.))*(?<!\.)")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LINE_BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
ENCODED_WORD = "=?"
_PLAIN_PHRASE = re.compile(r"[A-Za-z0-9!#$%&'*+/^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/^_`{|}~-]+)*")
_PLAIN_FILE_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9 ._()+,-]{0,60}[A-Za-z0-9_)])?")
_MIME_TYPE = re.compile(r"[a-z0-9]+/[a-z0-9.+-]+")
# Lines with a meaning of their own in an mbox file or in SMTP, and trailing blanks, which a server may drop.
_AWKWARD_LINE = re.compile(r"(?m)^(?:From |\.)|[ \t]$")
_ADDRESS_HEADERS = ("from", "to", "cc")

ParsedPart: TypeAlias = tuple[str, str | None, bytes]
"""A MIME type, a file name, and the decoded bytes."""
ParsedMessage: TypeAlias = tuple[tuple[tuple[str, object], ...], tuple[ParsedPart, ...]]
"""The headers with their decoded values, in order, and the parts."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """A display name, which may be empty, and an ASCII address."""

    name: str
    local: str
    domain: str

    @property
    def address(self) -> str:
        return f"{self.local}@{self.domain}"


def parse_recipient(given: str, argument: str) -> Recipient:
    """Parse one recipient, `a@example.com` or `Ann <a@example.com>`; raises for anything else."""
    refuse_line_breaks(given, argument)
    text = given.strip()
    named = _NAMED.fullmatch(text)
    name, spec = (_unquote_name(named["name"].strip()), named["spec"]) if named else ("", text)
    local, at, given_domain = spec.partition("@")
    domain = _ascii_domain(given_domain)
    # A name that looks like an address, or has invisible characters, could show the user another recipient.
    bad_name = len(name) > _MAX_NAME or any(sign in name for sign in "@<>") or has_hidden(name)
    bad_local = len(local) > 64 or not _LOCAL.fullmatch(local)
    # In the name too: a backslash between the two signs is gone once it is unquoted.
    encoded = ENCODED_WORD in text or ENCODED_WORD in name
    if not at or domain is None or bad_local or bad_name or encoded:
        raise _bad_address_error(given, argument)
    return Recipient(name, local, domain)


def refuse_line_breaks(text: str, argument: str) -> None:
    """Raise for control characters and everything that some programs take for the end of a header line."""
    if _LINE_BREAKING.search(text):
        raise ToolError(
            "mail.bad-header",
            f"the {argument} has a line break or control character in it, which could forge a header",
            place=Place(argument=argument),
            expected="one line of text",
        )


def _unquote_name(name: str) -> str:
    """The name without its quotes, its words one blank apart: parsers differ in what they leave of other blanks."""
    bare = re.sub(r"\\(.)", r"\1", name[1:-1]) if name.startswith('"') else name
    return " ".join(bare.split())


def _ascii_domain(given: str) -> str | None:
    """A domain in ASCII, or None; labels are encoded but never mapped to similar ones."""
    labels = [_ascii_label(label) for label in given.split(".")]
    domain = ".".join(label or "" for label in labels)
    if None in labels or len(domain) > _MAX_DOMAIN or domain.rpartition(".")[2].isdigit():
        return None
    return domain


def _ascii_label(given: str) -> str | None:
    label = given.lower()
    if label.isascii():
        return label if _LABEL.fullmatch(label) and _is_sound_punycode(label) else None
    # The mapping of IDNA 2003 would turn full-width letters and `ß` into others, and so into another domain.
    if unicodedata.normalize("NFKC", label) != label or has_hidden(label) or not _has_only_letters(label):
        return None
    encoded = f"xn--{label.encode('punycode').decode('ascii')}"
    return encoded if _LABEL.fullmatch(encoded) else None


def _is_sound_punycode(label: str) -> bool:
    """Whether a label is not punycode, or decodes to letters only (`xn--` can encode `@` and blanks)."""
    if not label.startswith("xn--"):
        return True
    try:
        decoded = label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return False
    return not decoded.isascii() and _has_only_letters(decoded)


def _has_only_letters(label: str) -> bool:
    return all(character in "-\u00b7" or unicodedata.category(character)[0] in "LMN" for character in label)


def _bad_address_error(given: str, argument: str) -> ToolError:
    shown = given if len(given) <= _MAX_SHOWN else given[: _MAX_SHOWN - 3] + "..."
    return ToolError(
        "mail.bad-address",
        f"{make_visible(shown, strict=True)!r} is not a mail address",
        place=Place(argument=argument),
        expected="one address such as 'ann@example.com' for each recipient",
    )


@dataclass(frozen=True, slots=True)
class Attachment:
    """An attached file with the name that the receiver sees."""

    name: str
    content: bytes

    @property
    def kind(self) -> str:
        """The MIME type; one that mail programs would open as part of the mail is sent as plain bytes."""
        guessed = mimetypes.guess_type(self.name)[0] or ""
        opaque = not _MIME_TYPE.fullmatch(guessed) or guessed.startswith(("multipart/", "message/"))
        return "application/octet-stream" if opaque else guessed


@dataclass(frozen=True, slots=True)
class MailDraft:
    """A mail before it is composed."""

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
        """The addresses of the envelope: exactly those in the headers."""
        return [recipient.address for recipient in (*self.to, *self.cc)]


def without_encoded_words(text: str) -> str:
    """The text of a header with a blank in each `=?`, so that it contains no encoded word.

    Encoding it once more would not be enough: some gateways and mail programs decode twice.
    """
    return text.replace(ENCODED_WORD, "= ?")


def compose_message(draft: MailDraft) -> bytes:
    """The bytes of the mail; raises `mail.not-as-meant` if they do not parse to exactly the draft."""
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
    return ",\r\n ".join(map(_address_text, recipients))


def _address_text(recipient: Recipient) -> str:
    name = recipient.name
    if not name:
        return recipient.address
    if _PLAIN_PHRASE.fullmatch(name) and len(name) <= _FOLD // 2:
        return f"{name} <{recipient.address}>"
    escaped = re.sub(r'(["\\])', r"\\\1", name)
    if name.isascii() and len(escaped) <= _FOLD - len(' "",'):
        gap = "\r\n " if len(name) > _FOLD // 2 else " "
        return f'"{escaped}"{gap}<{recipient.address}>'
    return f"{_encoded_words(name)}\r\n <{recipient.address}>"


def _subject_text(text: str) -> str:
    words = text.split(" ")
    # A line is not folded at the blank of `without_encoded_words`: a program that drops it would restore the word.
    split_word = "= ?" in text
    if split_word or not text.isascii() or not all(words) or max(map(len, words)) > _FOLD - len("Message-ID: "):
        return _encoded_words(text) if text else ""
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) + 1 > _FOLD - len("Message-ID: "):
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\r\n ".join(lines)


def _encoded_words(text: str) -> str:
    words = (base64.b64encode(piece.encode()).decode() for piece in _word_pieces(text))
    return "\r\n ".join(f"=?utf-8?b?{word}?=" for word in words)


def _word_pieces(text: str) -> list[str]:
    """The text in pieces that each fit into one encoded word; no character is divided."""
    pieces, used = [""], 0
    for character in text:
        length = len(character.encode())
        if used + length > _WORD_BYTES:
            pieces.append("")
            used = 0
        pieces[-1] += character
        used += length
    return pieces


def _text_part(body: str) -> str:
    """The headers and the content of the text; it is encoded unless every server transmits it unchanged."""
    text = body if body.endswith("\n") else f"{body}\n"
    if text.isascii() and not _AWKWARD_LINE.search(text) and max(map(len, text.split("\n"))) <= _FOLD:
        encoding, content = "7bit", text
    else:
        raw = text.encode()
        plain = binascii.b2a_qp(raw).decode("ascii")
        quoted = re.sub(r"(?m)^F(?=rom )|^\.", lambda match: f"={ord(match[0]):02X}", plain)
        in_base64 = base64.encodebytes(raw).decode("ascii")
        encoding, content = min(("quoted-printable", quoted), ("base64", in_base64), key=lambda pair: len(pair[1]))
    head = f'Content-Type: text/plain; charset="utf-8"\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n'
    return head + content.replace("\n", "\r\n")


def _attached_part(attachment: Attachment) -> str:
    content = base64.encodebytes(attachment.content).decode("ascii").replace("\n", "\r\n")
    return (
        f"Content-Type: {attachment.kind}\r\nContent-Transfer-Encoding: base64\r\n"
        f"Content-Disposition: attachment;\r\n {_file_name_text(attachment.name)}\r\n\r\n{content}"
    )


def _file_name_text(name: str) -> str:
    """The parameter with the name of a file, on several lines (RFC 2231) only if one line cannot hold it."""
    if _PLAIN_FILE_NAME.fullmatch(name):
        return f'filename="{name}"'
    encoded = [quote(character, safe="") for character in name]
    if sum(map(len, encoded)) <= _MAX_LINE - len(" filename*=utf-8'';"):
        return f"filename*=utf-8''{''.join(encoded)}"
    lines = ["utf-8''"]
    for character in encoded:
        if len(lines[-1]) + len(character) > _FOLD - len(" filename*99*=;"):
            lines.append("")
        lines[-1] += character
    return ";\r\n ".join(f"filename*{number}*={line}" for number, line in enumerate(lines))


def _boundary(parts: Sequence[str]) -> str:
    """A boundary that occurs in none of the parts. It cannot be guessed, and is searched for all the same."""
    while True:
        boundary = f"=_{secrets.token_hex(20)}"
        if not any(boundary in part for part in parts):
            return boundary


def verify_message(raw: bytes, draft: MailDraft) -> None:
    """Raise unless both parsers, the strict and the lenient one, read exactly the draft from these bytes."""
    expected = _expected_message(draft)
    lines = raw.split(b"\r\n")
    sound = raw.isascii() and not any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines)
    if not sound or max(map(len, lines)) > _MAX_LINE:
        raise _differs_error("its lines")
    spaced = _expected_message(_with_spaced_names(draft))
    for parsed, readings in ((_parse_strictly(raw), (expected, spaced)), (_parse_leniently(raw), (expected,))):
        if parsed[0] not in [reading[0] for reading in readings]:
            raise _differs_error("its headers")
        if parsed[1] != expected[1]:
            raise _differs_error("its text or attachments")


def _with_spaced_names(draft: MailDraft) -> MailDraft:
    """The draft as a program reads it that leaves the blank between the encoded words of a long name.

    Python's own strict parser does so. Only names that were encoded in several words are read differently, and only by
    these blanks.
    """

    def spaced(recipient: Recipient) -> Recipient:
        encoded = _address_text(recipient).startswith(ENCODED_WORD)
        return replace(recipient, name=" ".join(_word_pieces(recipient.name))) if encoded else recipient

    to, cc = tuple(map(spaced, draft.to)), tuple(map(spaced, draft.cc))
    return replace(draft, sender=spaced(draft.sender), to=to, cc=cc)


def _differs_error(part: str) -> ToolError:
    return ToolError(
        "mail.not-as-meant",
        f"a mail program would read {part} differently from what was meant, so the mail was not sent",
        fix="Leave out unusual characters in the subject, the names and the file names.",
    )


def _expected_message(draft: MailDraft) -> ParsedMessage:
    headers: list[tuple[str, object]] = [
        ("from", ((draft.sender.name, draft.sender.address),)),
        ("to", tuple((recipient.name, recipient.address) for recipient in draft.to)),
        *([("cc", tuple((recipient.name, recipient.address) for recipient in draft.cc))] if draft.cc else []),
        ("subject", draft.subject),
        ("date", format_datetime(draft.date)),
        ("message-id", draft.message_id),
        ("mime-version", "1.0"),
    ]
    body = draft.body if draft.body.endswith("\n") else f"{draft.body}\n"
    parts: list[ParsedPart] = [("text/plain", None, body.encode())]
    parts += [(attachment.kind, attachment.name, attachment.content) for attachment in draft.attachments]
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
    """The addresses of a header; empty if it has a defect or a group."""
    if field.defects or any(group.display_name for group in field.groups):
        return ()
    return tuple((str(address.display_name), str(address.addr_spec)) for address in field.addresses)


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
    """The parts of a mail as it is composed here, with one level of structure; empty for any other mail."""
    leaves = cast("list[Message[Any, Any]]", message.get_payload()) if message.is_multipart() else [message]
    if message.preamble or message.epilogue or any(part.defects for part in (message, *leaves)):
        return ()
    if message.is_multipart() and message.get_content_type() != "multipart/mixed":
        return ()
    return tuple(map(_message_part, leaves))


def _message_part(leaf: Message[Any, Any]) -> ParsedPart:
    content = leaf.get_payload(decode=True)
    raw = content if isinstance(content, bytes) else b""
    text = leaf.get_content_disposition() is None
    return leaf.get_content_type(), leaf.get_filename(), raw.replace(b"\r\n", b"\n") if text else raw
