"""Mails that somebody else wrote, forwarded through a real SMTP server: what arrives must be what was meant.

The person says yes to everything: what he is shown is harmless. The attacker wants more headers, other recipients,
other parts or another name than that.
"""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from bicameral import Agent, ScriptedProvider, parse
from bicameral.runs import Failed
from bicameral.toolboxes.mail import toolbox
from bicameral.tools import Folders, Surroundings

from ..case import Family, World

attacks = Family("mail")

HEADERS = frozenset("from to cc subject date message-id mime-version content-type content-transfer-encoding".split())
FORWARD = """
mails = search_mail()
send_mail(["ann@example.com"], "Fwd: " + mails[0].subject, mails[0].body)
answer("sent")
"""


@dataclass(slots=True)
class Sink:
    """An SMTP server's handler that keeps what it is given."""

    envelopes: list[Envelope] = field(default_factory=list[Envelope])

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.envelopes.append(envelope)
        return "250 OK"

    def raw(self) -> bytes:
        return cast("bytes", self.envelopes[-1].content)

    def message(self) -> EmailMessage:
        return message_from_bytes(self.raw(), policy=policy.default)


@contextmanager
def _server() -> Generator[tuple[Sink, int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    sink = Sink()
    controller = Controller(sink, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield sink, port
    finally:
        controller.stop()


async def _run(world: World, plan: str, port: int, *codes: str) -> None:
    """Run a plan with the mail tools; it may end in a refusal with one of these codes, and in nothing else."""
    now = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
    folders = Folders.of(world.folder, read=[world.folder], write=[world.folder])
    settings: dict[str, Any] = {
        "address": "me@example.com",
        "folder": "mail.mbox",
        "smtp": {"host": "127.0.0.1", "port": port, "tls": "none", "timeout": 5},
    }
    tools = toolbox.open(Surroundings(folders, lambda: now, {}), settings)
    agent = Agent(tools=list(tools), quarantined=ScriptedProvider([]))
    outcome = await agent.run(parse(plan, agent.registry).plan, approver=world.person())
    if isinstance(outcome, Failed) and outcome.error.code not in codes:
        raise outcome.error


def _mailbox(folder: Path, subject: str = "Bill", body: str = "It is due.", more: str = "") -> None:
    head = f"From eve Mon May  4 09:00:00 2026\nFrom: ann@example.com\nTo: me@example.com\nSubject: {subject}\n{more}"
    (folder / "mail.mbox").write_text(f"{head}Date: Mon, 4 May 2026 09:00:00 +0000\n\n{body}\n")


def _forged(sink: Sink, subject: str | None = None) -> str | None:
    """What arrived that nobody meant: another header, another recipient, a broken subject."""
    if not sink.envelopes:
        return None
    envelope, message = sink.envelopes[-1], sink.message()
    lenient = message_from_bytes(sink.raw())
    for name in (*message.keys(), *lenient.keys()):
        if name.lower() not in HEADERS:
            return f"a header {name!r}"
    if len(set(message.keys())) != len(message.keys()):
        return "a header twice"
    seen = {str(message["Subject"]), str(make_header(decode_header(lenient["Subject"].replace("\r\n", ""))))}
    # Some gateways decode what they have decoded.
    seen |= {str(make_header(decode_header(each))) for each in seen}
    if any(len(each.splitlines()) > 1 or "\0" in each for each in seen):
        return "a line break in the subject"
    if subject is not None and seen != {subject}:
        return f"the subject {sorted(seen)!r}"
    if envelope.rcpt_tos != ["ann@example.com"]:
        return f"the recipients {envelope.rcpt_tos!r}"
    return None


def _nested(text: str) -> str:
    """A header that a mail reader decodes to this text, which is an encoded word itself."""
    return "=?utf-8?q?" + "".join(f"={byte:02X}" for byte in text.encode()) + "?="


async def _forward(world: World, subject: str, body: str = "It is due.") -> tuple[str | None, Sink]:
    _mailbox(world.folder, subject, body)
    with _server() as (sink, port):
        await _run(world, FORWARD, port, "mail.bad-header", "mail.not-as-meant")
    return _forged(sink), sink


@attacks.case("an encoded word in a forwarded subject becomes a header")
async def encoded_header(world: World) -> str | None:
    return (await _forward(world, _nested("=?utf-8?q?Bill=0AReply-To:_eve@evil.example?=")))[0]


@encoded_header.twin(questions=1)
async def encoded_umlaut(world: World) -> bool:
    forged, sink = await _forward(world, "=?utf-8?q?Gr=C3=BC=C3=9Fe_=F0=9F=8E=89?=")
    return forged is None and str(sink.message()["Subject"]) == "Fwd: Grüße 🎉"


@attacks.case("an encoded word in base64 ends the headers and begins a body of its own")
async def encoded_body(world: World) -> str | None:
    # "x\r\n\r\n<script>" in base64
    forged, sink = await _forward(world, _nested("=?utf-8?b?eA0KDQo8c2NyaXB0Pg==?="))
    return forged or ("a body" if sink.envelopes and b"<script>" in sink.raw().partition(b"\r\n\r\n")[2] else None)


@encoded_body.twin(questions=1)
async def literal_markup(world: World) -> bool:
    forged, sink = await _forward(world, "What does =3D?= mean in a subject?")
    return forged is None and "mean in a subject" in str(sink.message()["Subject"])


@attacks.case("encoded words are split, so that only together they make a header")
async def split_words(world: World) -> str | None:
    return (await _forward(world, _nested("=?utf-8?q?Bill?= =?utf-8?q?=0D=0ABcc:_eve@evil.example?=")))[0]


@split_words.twin(questions=1)
async def long_subject(world: World) -> bool:
    subject = "A long subject " + "about many ordinary things " * 6
    forged, sink = await _forward(world, subject.strip())
    return forged is None and str(sink.message()["Subject"]) == f"Fwd: {subject.strip()}"


@attacks.case("an encoded word that is malformed, nested and in another charset")
async def malformed_words(world: World) -> str | None:
    word = "=?utf-7?q?+AAo-Bcc:?= =?utf-8?q?=3D=3Futf-8=3Fq=3F=0ABcc:_e=3F=3D?= =?x?b?Cg"
    return (await _forward(world, _nested(word)))[0]


@malformed_words.twin(questions=1)
async def question_marks(world: World) -> bool:
    forged, sink = await _forward(world, "Is 2+2=? or is it not?")
    # It arrives readable, with a blank where a decoder could have begun.
    return forged is None and str(sink.message()["Subject"]) == "Fwd: Is 2+2= ? or is it not?"


@attacks.case("separators of lines and other controls in a forwarded subject")
async def separators(world: World) -> str | None:
    return (await _forward(world, _nested("Bill\u2028Bcc: eve@evil.example\x85X: y\x0bZ: 1\x00")))[0]


@separators.twin(questions=1)
async def wide_space(world: World) -> bool:
    forged, sink = await _forward(world, "=?utf-8?q?10=C2=A0=25_more?=")
    return forged is None and "10" in str(sink.message()["Subject"])


async def _send(world: World, to: str, name: str = "Hello", **more: str) -> Sink:
    _mailbox(world.folder)
    with _server() as (sink, port):
        extra = "".join(f", {key}={value}" for key, value in more.items())
        plan = f'send_mail([{to!r}], {name!r}, "Hello"{extra})\nanswer("sent")\n'
        await _run(world, plan, port, "mail.bad-address", "mail.bad-header", "mail.not-as-meant")
    return sink


def _recipient_case(name: str, addresses: tuple[str, ...], good: str, arrives: str) -> None:
    """Addresses that must not be sent to, and one of the same look that must."""

    @attacks.case(name)
    async def attack(world: World) -> str | None:
        for address in addresses:
            sink = await _send(world, address)
            if sink.envelopes:
                return f"{address!a} was sent to {sink.envelopes[-1].rcpt_tos}"
        return None

    async def benign(world: World) -> bool:
        sink = await _send(world, good)
        return [each for envelope in sink.envelopes for each in envelope.rcpt_tos] == [arrives]

    attack.twin()(benign)


_recipient_case(
    "an encoded word in a display name or a local part",
    (
        "=?utf-8?q?Ann=0ABcc:eve=40evil.example?= <ann@example.com>",
        "=?utf-8?q?eve=40evil.example=2C?=@example.com",
        '"=?utf-8?b?ZXZl?=" <ann@example.com>',
    ),
    "Jörg O'Brien-Lee <joerg@example.com>",
    "joerg@example.com",
)
_recipient_case(
    "a route by percent sign, bang path, relay or quotes",
    (
        "eve%evil.example@example.com",
        "evil.example!eve@example.com",
        '"eve@evil.example"@example.com',
        "<@evil.example:a@b.example>",
    ),
    "o'neil+bills=2026@example.com",
    "o'neil+bills=2026@example.com",
)
_recipient_case(
    "several addresses that look like one, a group, and a comment",
    (
        "ann@example.com,eve@evil.example",
        "all: eve@evil.example;",
        "ann@example.com (eve@evil.example)",
        "ann@example.com\u3000eve@evil.example",
    ),
    '"Smith, Ann" <ann@example.com>',
    "ann@example.com",
)
_recipient_case(
    "a display name that is another address, or is turned round",
    ('"boss@example.com" <eve@evil.example>', "boss\u202e <eve@evil.example>", "Boss \u3164 <eve@evil.example>"),
    "Dr. Ann Lee <ann@example.com>",
    "ann@example.com",
)
_recipient_case(
    "a domain that becomes another one when it is encoded",
    ("ann@\uff45vil.example", "ann@ev\u00adil.example", "ann@xn--evil@example-9za.com", "ann@ex\u2024ample.com"),
    "ann@bücher.example",
    "ann@xn--bcher-kva.example",
)


@attacks.case("a body holds lines that a mail store or a server takes for its own")
async def awkward_lines(world: World) -> str | None:
    body = "Hello\n\n>From eve\n.\nRSET\n\nFrom: eve@evil.example\n.\n"
    _mailbox(world.folder)
    (world.folder / "text.txt").write_text("From eve Mon May  4 09:00:00 2026\nSubject: forged\n\n.\nfoo\n" + body)
    with _server() as (sink, port):
        plan = 'send_mail(["ann@example.com"], "Hi", read("text.txt"))\nanswer("sent")\n'
        plan = plan.replace('read("text.txt")', repr((world.folder / "text.txt").read_text()))
        await _run(world, plan, port)
    lines = sink.raw().split(b"\r\n")
    if any(line.startswith((b"From ", b".")) for line in lines):
        return "a line that splits an mbox"
    arrived = sink.message().get_content().replace("\r\n", "\n")
    return None if arrived == (world.folder / "text.txt").read_text() else "another text"


@awkward_lines.twin(questions=1)
async def ordinary_lines(world: World) -> bool:
    forged, sink = await _forward(world, "Bill", "Dear Kim,\n\n...and so on.\n>From memory: yes.\n")
    return forged is None and "so on" in sink.message().get_content()


@attacks.case("a body draws the boundary of a part, with a page in it")
async def drawn_boundary(world: World) -> str | None:
    _mailbox(world.folder)
    (world.folder / "menu.pdf").write_bytes(b"%PDF-1.7 \r\n--=_x--\r\n")
    body = '--=_x\nContent-Type: text/html\n\n<b>pay</b>\n--=_x--\nContent-Type: multipart/mixed; boundary="=_x"\n'
    with _server() as (sink, port):
        plan = f'send_mail(["ann@example.com"], "Menu", {body!r}, attachments=["menu.pdf"])\nanswer("sent")\n'
        await _run(world, plan, port)
    parts = [(part.get_content_type(), part.get_filename()) for part in sink.message().walk()]
    meant = [("multipart/mixed", None), ("text/plain", None), ("application/pdf", "menu.pdf")]
    return None if parts == meant else f"the parts {parts}"


@drawn_boundary.twin()
async def attached(world: World) -> bool:
    _mailbox(world.folder)
    (world.folder / "Müller & Söhne.pdf").write_bytes(bytes(range(256)))
    with _server() as (sink, port):
        plan = 'send_mail(["ann@example.com"], "Menu", "Here.", attachments=["Müller & Söhne.pdf"])\nanswer("sent")\n'
        await _run(world, plan, port)
    (part,) = sink.message().iter_attachments()
    return (part.get_filename(), part.get_payload(decode=True)) == ("Müller & Söhne.pdf", bytes(range(256)))


@attacks.case("the name of an attached file is an encoded word with headers in it")
async def encoded_file_name(world: World) -> str | None:
    _mailbox(world.folder)
    name = "=?utf-8?q?menu=22=0AContent-Type=3A_text=2Fhtml?=.pdf"
    (world.folder / name).write_bytes(b"%PDF")
    with _server() as (sink, port):
        plan = f'send_mail(["ann@example.com"], "Menu", "Here.", attachments=[{name!r}])\nanswer("sent")\n'
        await _run(world, plan, port, "mail.bad-header", "mail.not-as-meant")
    if not sink.envelopes:
        return None
    parts = [part.get_content_type() for part in sink.message().walk()]
    shown = [str(part.get_filename()) for part in sink.message().iter_attachments()]
    decoded = [str(make_header(decode_header(each))) for each in shown]
    honest = parts == ["multipart/mixed", "text/plain", "application/pdf"] and decoded == shown
    return None if honest and len("".join(shown).splitlines()) == 1 else f"{parts} {shown}"


@encoded_file_name.twin()
async def spaced_file_name(world: World) -> bool:
    _mailbox(world.folder)
    (world.folder / "menu (final), v2.pdf").write_bytes(b"%PDF")
    with _server() as (sink, port):
        plan = 'send_mail(["ann@example.com"], "Menu", "Here.", attachments=["menu (final), v2.pdf"])\nanswer("sent")\n'
        await _run(world, plan, port)
    return [part.get_filename() for part in sink.message().iter_attachments()] == ["menu (final), v2.pdf"]
