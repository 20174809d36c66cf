"""Sending mail through a real SMTP server on this machine."""

from __future__ import annotations

import base64
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import getaddresses
from pathlib import Path
from typing import Any, cast

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from hypothesis import HealthCheck, given, settings, strategies as st

from bicameral.errors import ToolError
from bicameral.toolboxes._mail_compose import (
    Attachment,
    MailDraft,
    Recipient,
    compose_message,
    parse_recipient,
    refuse_line_breaks,
    verify_message,
    without_encoded_words,
)
from bicameral.toolboxes._text import clean_text
from bicameral.toolboxes.mail import toolbox
from bicameral.tools import Folders, Surroundings, Tool
from property_examples import examples

PASSWORD = "correct horse battery"


class Sink:
    """Keeps what it is sent and refuses whoever is called `nobody`."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.logins = 0

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any) -> str:
        if address.startswith("nobody"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if b"Subject: spam" in cast("bytes", envelope.content):
            return "554 no spam here"
        self.envelopes.append(envelope)
        return "250 OK"

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: Any
    ) -> AuthResult:
        self.logins += 1
        good = isinstance(login, LoginPassword) and login.password == PASSWORD.encode()
        return AuthResult(success=good, handled=good)

    def last(self) -> EmailMessage:
        return message_from_bytes(cast("bytes", self.envelopes[-1].content), policy=policy.default)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Sink, int]]:
    sink = Sink()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free: int = probe.getsockname()[1]
    controller = Controller(
        sink, hostname="127.0.0.1", port=free, authenticator=sink.authenticate, auth_require_tls=False
    )
    controller.start()
    yield sink, free
    controller.stop()


@pytest.fixture
def sink(server: tuple[Sink, int]) -> Sink:
    server[0].envelopes.clear()
    server[0].logins = 0
    return server[0]


@pytest.fixture
def port(server: tuple[Sink, int]) -> int:
    return server[1]


def sender(base: Path, port: int, *, environment: Mapping[str, str] | None = None, **options: Any) -> Tool:
    folders = Folders.of(base, read=[base], write=[base])
    now = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
    surroundings = Surroundings(folders, lambda: now, environment or {})
    smtp = {"host": "127.0.0.1", "port": port, "tls": "none", "timeout": 5} | options
    opened = toolbox.open(surroundings, {"address": "Me <me@example.com>", "smtp": smtp})
    return next(tool for tool in opened if tool.name == "send_mail")


LETTER = {"to": ["ann@example.com"], "subject": "Hi", "body": "Hello\n"}


async def error_of(tool: Tool, arguments: Mapping[str, Any]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await tool.call(arguments)
    return caught.value


# Attacks


@pytest.mark.parametrize("line_break", ["\n", "\r", "\r\n", "\x85", "\u2028", "\x00", "\x0b"])
@pytest.mark.parametrize("argument", ["to", "cc", "subject"])
async def test_a_line_break_cannot_forge_a_header(
    tmp_path: Path, sink: Sink, port: int, argument: str, line_break: str
) -> None:
    forged = f"x@example.com{line_break}Bcc: thief@evil.example"
    value = forged if argument == "subject" else [forged]
    error = await error_of(sender(tmp_path, port), LETTER | {argument: value})
    assert error.code == "mail.bad-header"
    assert error.place is not None
    assert error.place.argument == argument
    assert sink.envelopes == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ann",
        "@example.com",
        "ann@",
        "ann@@example.com",
        "a b@example.com",
        "ann@example.com, thief@evil.example",
        "ann@example.com; thief@evil.example",
        "ann@example.com thief@evil.example",
        "<thief@evil.example> ann@example.com",
        "Ann <ann@example.com> <thief@evil.example>",
        "<@relay.example:ann@example.com>",
        "ann@exa mple.com",
        "ann@-example.com",
        "ann@example..com",
        '"a b"@example.com',
        "ann@[127.0.0.1]",
        "ann@" + "x" * 300 + ".com",
        "x" * 70 + "@example.com",
        "group: ann@example.com;",
    ],
)
async def test_what_is_not_one_address_is_refused(tmp_path: Path, sink: Sink, port: int, address: str) -> None:
    for argument in ("to", "cc"):
        error = await error_of(sender(tmp_path, port), LETTER | {argument: [address]})
        assert error.code == "mail.bad-address"
    assert sink.envelopes == []


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/passwd", "link"])
async def test_attachments_come_from_the_folders_only(tmp_path: Path, sink: Sink, port: int, path: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    base = tmp_path / "base"
    base.mkdir()
    (base / "link").symlink_to(tmp_path / "secret.txt")
    error = await error_of(sender(base, port), LETTER | {"attachments": [path]})
    assert error.code == "files.outside"
    assert sink.envelopes == []


async def test_a_server_without_encryption_gets_nothing_when_encryption_is_asked(
    tmp_path: Path, sink: Sink, port: int
) -> None:
    tool = sender(tmp_path, port, tls="starttls", user="me", password_env="PW", environment={"PW": PASSWORD})
    error = await error_of(tool, LETTER)
    assert error.code == "mail.smtp-refused"
    assert (sink.envelopes, sink.logins) == ([], 0)


async def test_the_password_is_in_no_error(tmp_path: Path, port: int) -> None:
    wrong = "hunter2-not-it"
    tool = sender(tmp_path, port, user="me", password_env="PW", environment={"PW": wrong})
    error = await error_of(tool, LETTER)
    assert error.code == "mail.smtp-auth"
    assert wrong not in f"{error} {error.to_json()} {error.__cause__!r} {error.__context__!r} {tool!r}"


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(subject=st.text(max_size=80), body=st.text(max_size=200), to=st.text(max_size=40))
async def test_whatever_the_text_only_the_given_recipients_get_it(
    tmp_path: Path, sink: Sink, port: int, subject: str, body: str, to: str
) -> None:
    sink.envelopes.clear()
    # Text with control characters is refused before anything is sent; the rest arrives at one address.
    with suppress(ToolError):
        await sender(tmp_path, port).call({"to": ["ann@example.com"], "subject": subject, "body": body, "cc": []})
    for envelope in sink.envelopes:
        assert envelope.rcpt_tos == ["ann@example.com"]
        assert set(sink.last().keys()) >= {"From", "To", "Subject", "Date", "Message-ID"}
        assert "Bcc" not in sink.last()
    with pytest.raises(ToolError):
        await sender(tmp_path, port).call(LETTER | {"to": [f"{to} x"]})


# Sending


async def test_a_mail_arrives_as_it_was_written(tmp_path: Path, sink: Sink, port: int) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "Müller.pdf").write_bytes(b"%PDF-1.7")
    await sender(tmp_path, port).call(
        {
            "to": ["ann@example.com", "Bo Öl <bo@example.com>"],
            "cc": ["cy@example.com"],
            "subject": "Grüße 🎉",
            "body": "Zeile eins\nZeile zwei\n.\nEnde\n",
            "attachments": ["out/Müller.pdf"],
        }
    )
    (envelope,) = sink.envelopes
    assert envelope.mail_from == "me@example.com"
    assert envelope.rcpt_tos == ["ann@example.com", "bo@example.com", "cy@example.com"]
    message = sink.last()
    assert message["Subject"] == "Grüße 🎉"
    assert message["From"] == "Me <me@example.com>"
    assert message["To"] == "ann@example.com, Bo Öl <bo@example.com>"
    assert message["Date"].datetime == datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
    assert message["Message-ID"].endswith("@example.com>")
    body = message.get_body()
    assert body is not None
    assert body.get_content().replace("\r\n", "\n") == "Zeile eins\nZeile zwei\n.\nEnde\n"
    (attachment,) = message.iter_attachments()
    assert (attachment.get_filename(), attachment.get_content_type()) == ("Müller.pdf", "application/pdf")
    assert attachment.get_payload(decode=True) == b"%PDF-1.7"


async def test_a_login_uses_the_password_from_the_environment(tmp_path: Path, sink: Sink, port: int) -> None:
    await sender(tmp_path, port, user="me", password_env="PW", environment={"PW": PASSWORD}).call(LETTER)
    assert (len(sink.envelopes), sink.logins) == (1, 1)
    error = await error_of(sender(tmp_path, port, user="me", password_env="PW"), LETTER)
    assert error.code == "mail.smtp-auth"
    assert "'PW'" in str(error)


async def test_a_refusal_by_the_server_is_told(tmp_path: Path, sink: Sink, port: int) -> None:
    error = await error_of(sender(tmp_path, port), LETTER | {"to": ["nobody@example.com"]})
    assert error.code == "mail.smtp-refused"
    assert "550 no such user" in str(error)
    error = await error_of(sender(tmp_path, port), LETTER | {"subject": "spam"})
    assert error.code == "mail.smtp-refused"
    assert "554" in str(error)
    assert sink.envelopes == []


async def test_a_mail_that_only_some_get_is_told_as_such(tmp_path: Path, sink: Sink, port: int) -> None:
    error = await error_of(sender(tmp_path, port), LETTER | {"to": ["ann@example.com", "nobody@example.com"]})
    assert error.code == "mail.smtp-refused"
    assert "was sent, but not to everybody" in str(error)
    assert len(sink.envelopes) == 1


async def test_a_server_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = await error_of(sender(tmp_path, taken.getsockname()[1]), LETTER)
    assert error.code == "mail.smtp-unreachable"


async def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        error = await error_of(sender(tmp_path, silent.getsockname()[1], timeout=0.3), LETTER)
    assert error.code == "mail.smtp-unreachable"


async def test_missing_settings_are_named(tmp_path: Path) -> None:
    surroundings = Surroundings.here(tmp_path)
    for options, code in (({}, "mail.no-smtp"), ({"smtp": {"host": "mail.example.com"}}, "mail.no-address")):
        tool = next(tool for tool in toolbox.open(surroundings, options) if tool.name == "send_mail")
        assert (await error_of(tool, LETTER)).code == code


async def test_nobody_and_crowds_are_refused(tmp_path: Path, port: int) -> None:
    assert (await error_of(sender(tmp_path, port), LETTER | {"to": []})).code == "mail.bad-address"
    crowd = [f"p{number}@example.com" for number in range(101)]
    assert (await error_of(sender(tmp_path, port), LETTER | {"to": crowd})).code == "mail.too-many"


def test_sending_is_never_repeated_by_itself(tmp_path: Path) -> None:
    tool = sender(tmp_path, 25)
    assert (tool.effect, tool.idempotent) == ("send", False)
    assert {argument.name: argument.purpose for argument in tool.arguments} == {
        "to": "directs",
        "subject": "carries",
        "body": "carries",
        "cc": "directs",
        "attachments": "directs",
    }


# What is composed is read again


def draft(**changes: Any) -> MailDraft:
    ann = Recipient("", "ann", "example.com")
    meant = MailDraft(ann, (ann,), (), "Hi", "Hello\n", datetime(2026, 5, 4, tzinfo=UTC), "<1@example.com>")
    return replace(meant, **changes)


def test_bytes_that_say_something_else_are_refused() -> None:
    raw = compose_message(draft())
    for forged in (
        raw.replace(b"Subject: Hi", b"Subject: Ho"),
        raw.replace(b"Subject: Hi", b"Subject: Hi\r\nBcc: eve@evil.example"),
        raw.replace(b"To: ann@", b"To: eve@evil.example, ann@"),
        raw.replace(b"To: ann@example.com", b"To: all: ann@example.com;"),
        raw.replace(b"Hello", b"Howdy"),
        raw.replace(b"Hello", b"He\nllo"),
        raw.replace(b"text/plain", b"text/html"),
        raw.replace(b"Subject: Hi", b"Subject: =?utf-8?q?Hi=0AX:_y?="),
        raw + b"--x\r\n",
    ):
        assert forged != raw
        with pytest.raises(ToolError) as caught:
            verify_message(forged, draft())
        assert caught.value.code == "mail.not-as-meant"


@pytest.mark.parametrize(
    "name",
    [
        "Anna-Maria von und zu Hohenlohe-Waldenburg-Schillingsfürst",
        "Anna Maria von und zu Hohenlohe Waldenburg Schillingsfuerst",
        "Товарищество собственников жилья «Заречье»",
        "0" * 43,
        '"' * 60,
        "Ann\\" * 20,
        "あ" * 60,
        "🎉 " * 40 + "x",
    ],
)
def test_a_long_name_of_a_recipient_arrives_whole(name: str) -> None:
    raw = compose_message(draft(to=(Recipient(name, "bo", "example.com"), Recipient("", "ann", "example.com"))))
    (shown, address), second = getaddresses([message_from_bytes(raw)["To"]])
    assert str(make_header(decode_header(shown))) == name
    assert (address, second) == ("bo@example.com", ("", "ann@example.com"))
    assert max(map(len, raw.split(b"\r\n"))) <= 78


@pytest.mark.parametrize("blanks", [" \u00a0", "\u3000", "  "])
def test_blanks_of_a_name_that_parsers_read_differently_are_one_blank_or_none(blanks: str) -> None:
    assert parse_recipient(f'"{blanks}" <bo@example.com>', "to").name == ""
    named = parse_recipient(f'"{blanks}Бо{blanks}Б{blanks}" <bo@example.com>', "to")
    assert named.name == "Бо Б"
    compose_message(draft(to=(named,)))


@pytest.mark.parametrize("name", ["あ" * 255, "🎉" * 100 + ".pdf", "a" * 300, "é " * 200 + "x"])
def test_a_long_name_of_a_file_arrives_whole(name: str) -> None:
    raw = compose_message(draft(attachments=(Attachment(name, b"x"),)))
    message = message_from_bytes(raw, policy=policy.SMTP)
    assert [attached.get_filename() for attached in message.iter_attachments()] == [name]


@pytest.mark.parametrize("rest", ["utf-8?q?eve?=", "utf-8?q?eve?= " + "x" * 60, "utf-8?q?eve?= é"])
def test_an_encoded_word_behind_a_backslash_is_no_name(rest: str) -> None:
    """Once unquoted it is one, and some programs decode twice."""
    with pytest.raises(ToolError) as caught:
        parse_recipient(f'"=\\?{rest}" <bo@example.com>', "to")
    assert caught.value.code == "mail.bad-address"
    assert parse_recipient('"Is 1 \\= 1?" <bo@example.com>', "to").name == "Is 1 = 1?"


def test_a_blank_in_a_name_that_no_encoding_put_there_is_noticed() -> None:
    long = Recipient("é" * 30, "bo", "example.com")
    raw = compose_message(draft(to=(long,)))
    whole = base64.b64encode(("é" * 21).encode())
    assert whole in raw
    forged = raw.replace(whole, base64.b64encode(("é" * 20 + " é").encode()))
    with pytest.raises(ToolError) as caught:
        verify_message(forged, draft(to=(long,)))
    assert caught.value.code == "mail.not-as-meant"


_BODY = st.text(max_size=300) | st.from_regex(r"(From |\.|--|=_|a| |\n|é){0,40}")
_LINE = st.text(max_size=120) | st.text(alphabet='=?utf-8qb_ "\\,;:<>@()[].%éあ🎉F', max_size=60)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(
    subject=_LINE,
    name=_LINE,
    body=_BODY,
    file=_LINE,
)
def test_whatever_is_taken_can_be_composed(subject: str, name: str, body: str, file: str) -> None:
    """No ordinary mail is refused for what the two parsers make of it: all that can be meant can be written."""
    people = [Recipient("", "ann", "example.com")]
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    with suppress(ToolError):
        people.append(parse_recipient(f'"{quoted}" <bo@example.com>', "to"))
    known = re.sub(r'[<>:"|?*\\/]', "_", clean_text(file)).strip()
    try:
        refuse_line_breaks(subject, "subject")
        refuse_line_breaks(known, "attachments")
    except ToolError:
        return
    attachments = (Attachment(known, body.encode("utf-8", "replace")),) if known else ()
    line = without_encoded_words(clean_text(subject).strip())
    compose_message(draft(to=tuple(people), subject=line, body=clean_text(body), attachments=attachments))
