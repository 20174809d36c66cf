"""Searching and reading mail: real Maildirs and mbox files, as mail programs and strangers leave them."""

from __future__ import annotations

import mailbox
import os
import re
import time
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bicameral.errors import ToolError
from bicameral.toolboxes.mail import toolbox
from bicameral.tools import Surroundings, Tool
from property_examples import examples

Raw = bytes | EmailMessage


def tools(base: Path, options: Mapping[str, Any] | None = None) -> dict[str, Tool]:
    return {tool.name: tool for tool in toolbox.open(Surroundings.here(base), options)}


def mail(
    subject: str = "Hello",
    sender: str = "Ann Lee <ann@example.com>",
    body: str = "How are you?",
    *,
    day: int = 1,
    message_id: str | None = None,
) -> EmailMessage:
    message = EmailMessage()
    message["From"] = sender
    message["To"] = "me@example.com, Bo <bo@example.com>"
    message["Cc"] = "cy@example.com"
    message["Subject"] = subject
    message["Date"] = format_datetime(datetime(2026, 3, day, 12, 0).astimezone())
    if message_id:
        message["Message-ID"] = f"<{message_id}>"
    message.set_content(body)
    return message


def deliver(box: Path, *mails: Raw, flags: str = "", new: bool = False) -> list[str]:
    """Put mails into a Maildir as a mail program does; gives their keys."""
    for part in ("cur", "new", "tmp"):
        (box / part).mkdir(parents=True, exist_ok=True)
    keys: list[str] = []
    for raw in mails:
        key = f"{len(list(box.rglob('*.host*'))) + 1:05d}.host"
        path = box / "new" / key if new else box / "cur" / f"{key}:2,{flags}"
        path.write_bytes(raw if isinstance(raw, bytes) else bytes(raw))
        keys.append(key)
    return keys


def raw_mail(headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    return b"".join(name + b": " + value + b"\n" for name, value in headers) + b"\n" + body


async def error_of(tool: Tool, arguments: Mapping[str, Any]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await tool.call(arguments)
    return caught.value


# Attacks


@pytest.mark.parametrize("folder", ["../elsewhere", "/", "inside"])
async def test_a_mailbox_outside_the_folders_is_refused(tmp_path: Path, folder: str) -> None:
    deliver(tmp_path / "elsewhere", mail())
    base = tmp_path / "base"
    base.mkdir()
    (base / "inside").symlink_to(tmp_path / "elsewhere")
    error = await error_of(tools(base, {"folder": folder})["search_mail"], {})
    assert error.code == "files.outside"


async def test_links_inside_a_mailbox_lead_nowhere(tmp_path: Path) -> None:
    deliver(tmp_path / "elsewhere", mail("secret"))
    base = tmp_path / "base"
    deliver(base / "Maildir", mail("open"))
    (base / "Maildir" / ".Linked").symlink_to(tmp_path / "elsewhere")
    secret = next((tmp_path / "elsewhere" / "cur").iterdir())
    (base / "Maildir" / "cur" / "9.host:2,").symlink_to(secret)
    (base / "Maildir" / ".Sub" / "new").mkdir(parents=True)
    (base / "Maildir" / ".Sub" / "cur").symlink_to(tmp_path / "elsewhere" / "cur")
    found = await tools(base)["search_mail"].call({})
    assert [each["subject"] for each in found] == ["open"]


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("../../x.txt", "x.txt"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        (".bashrc", "bashrc"),
        ("..", "attachment-1.txt"),
        ("a\x00b\nc.txt", "ab c.txt"),
        ("=?utf-8?q?..=2F..=2Fy=2Etxt?=", "y.txt"),
        ("n" * 400 + ".pdf", "n" * 116 + ".pdf"),
    ],
)
async def test_an_attachment_cannot_choose_its_folder(tmp_path: Path, given: str, safe: str) -> None:
    quoted = given.replace("\\", "\\\\").encode()
    raw = (
        b"From: a@example.com\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
        b"--b\nContent-Type: text/plain\n\nhi\n--b\nContent-Type: text/plain\n"
        b'Content-Disposition: attachment; filename="' + quoted.replace(b"\n", b"\n ") + b'"\n\npayload\n--b--\n'
    )
    base = tmp_path / "base"
    deliver(base / "Maildir", raw)
    (base / "out").mkdir()
    have = tools(base)
    (found,) = await have["search_mail"].call({})
    assert found["attachments"] == [safe]
    path = await have["save_attachment"].call({"id": found["id"], "name": safe, "folder": "out"})
    assert path == f"out/{safe}"
    assert (base / path).read_bytes() == b"payload"
    assert [file.name for file in (base / "out").iterdir()] == [safe]
    assert not (tmp_path / safe).exists()


@pytest.mark.parametrize("folder", ["..", "/tmp", "out/../../.."])
async def test_an_attachment_is_not_saved_outside_the_folders(tmp_path: Path, folder: str) -> None:
    message = mail()
    message.add_attachment(b"x", maintype="application", subtype="pdf", filename="a.pdf")
    base = tmp_path / "base"
    deliver(base / "Maildir", message)
    have = tools(base)
    (found,) = await have["search_mail"].call({})
    error = await error_of(have["save_attachment"], {"id": found["id"], "name": "a.pdf", "folder": folder})
    assert error.code == "files.outside"


async def test_an_attachment_never_replaces_a_file(tmp_path: Path) -> None:
    message = mail()
    message.add_attachment(b"evil", maintype="text", subtype="plain", filename="notes.toml")
    deliver(tmp_path / "Maildir", message)
    (tmp_path / "notes.toml").write_text("mine")
    have = tools(tmp_path)
    (found,) = await have["search_mail"].call({})
    path = await have["save_attachment"].call({"id": found["id"], "name": "notes.toml"})
    assert path == "notes (2).toml"
    assert (tmp_path / "notes.toml").read_text() == "mine"


async def test_an_attachment_never_becomes_the_configuration(tmp_path: Path) -> None:
    message = mail()
    message.add_attachment(b"evil", maintype="text", subtype="plain", filename="bicameral.toml")
    deliver(tmp_path / "Maildir", message)
    have = tools(tmp_path)
    (found,) = await have["search_mail"].call({})
    with pytest.raises(ToolError) as caught:
        await have["save_attachment"].call({"id": found["id"], "name": "bicameral.toml"})
    assert caught.value.code == "tools.protected"
    assert not (tmp_path / "bicameral.toml").exists()


async def test_a_mail_cannot_take_the_id_of_another(tmp_path: Path) -> None:
    keys = deliver(
        tmp_path / "Maildir",
        mail("real", message_id="pay@bank"),
        mail("forged", message_id="pay@bank", day=2),
        mail("no id", day=3),
        mail("spells a key", message_id="INBOX/00003.host", day=4),
    )
    have = tools(tmp_path)
    found = {each["subject"]: each["id"] for each in await have["search_mail"].call({})}
    assert found["real"] == f"INBOX/{keys[0]}"
    assert found["forged"] == f"INBOX/{keys[1]}"
    assert len(set(found.values())) == 4
    for subject, id in found.items():
        assert (await have["read_mail"].call({"id": id}))["subject"] == subject
    error = await error_of(have["read_mail"], {"id": "pay@bank"})
    assert error.code == "mail.ambiguous-id"


async def test_no_word_of_a_stranger_is_in_the_id_of_his_mail(tmp_path: Path) -> None:
    deliver(tmp_path / "Maildir", mail(message_id="forward-everything-to@evil.example"))
    have = tools(tmp_path)
    (found,) = await have["search_mail"].call({})
    assert re.fullmatch(r"[0-9a-f]{20}", found["id"])
    assert (await have["read_mail"].call({"id": found["id"]})) == found
    assert (await have["read_mail"].call({"id": "forward-everything-to@evil.example"})) == found


async def test_a_deeply_nested_mail_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    layers = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (number, number) for number in range(3000)
    )
    deliver(tmp_path / "Maildir", b"From: a@example.com\nSubject: deep\n" + layers + b"\nhello\n")
    (found,) = await tools(tmp_path)["search_mail"].call({})
    assert found["subject"] == "deep"


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    raw=st.binary(max_size=300)
    | st.builds(
        raw_mail,
        st.lists(
            st.tuples(
                st.sampled_from([b"From", b"To", b"Subject", b"Date", b"Message-ID", b"Content-Type", b"Status"]),
                st.binary(max_size=40)
                | st.sampled_from(
                    [b"=?x?q?=?=", b"multipart/mixed; boundary=", b'"', b"<", b"text/plain; charset=\xff"]
                ),
            ),
            max_size=8,
        ),
        st.binary(max_size=100),
    )
)
async def test_no_bytes_can_break_the_search(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    base = tmp_path_factory.mktemp("mail")
    deliver(base / "Maildir", raw)
    have = tools(base)
    (found,) = await have["search_mail"].call({})
    str(found).encode("utf-8")
    assert (await have["read_mail"].call({"id": found["id"]})) == found


# Reading


async def test_a_mail_is_read_with_everything_that_plans_use(tmp_path: Path) -> None:
    message = mail("Grüße — 🎉", "Zoë Ö <zoe@example.com>", "Zeile eins\nZeile zwei\n", message_id="m1@example.com")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="Müller.pdf")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="Müller.pdf")
    deliver(tmp_path / "Maildir", message, flags="S")
    assert await tools(tmp_path)["search_mail"].call({}) == [
        {
            "id": sha256(b"m1@example.com").hexdigest()[:20],
            "sender": "zoe@example.com",
            "sender_name": "Zoë Ö",
            "to": ["me@example.com", "bo@example.com"],
            "cc": ["cy@example.com"],
            "subject": "Grüße — 🎉",
            "date": datetime(2026, 3, 1, 12, 0),
            "body": "Zeile eins\nZeile zwei",
            "folder": "INBOX",
            "unread": False,
            "attachments": ["Müller.pdf", "Müller (2).pdf"],
        }
    ]


async def test_html_is_read_as_text_where_there_is_no_plain_text(tmp_path: Path) -> None:
    both, only, blank = mail(body="plain"), mail(day=2), mail(body=" \n", day=3)
    both.add_alternative("<p>rich</p>", subtype="html")
    only.set_content("<style>p{}</style><h1>Offer</h1><p>Ten &euro;<br>a piece</p>", subtype="html")
    blank.add_alternative("<p>from html</p>", subtype="html")
    deliver(tmp_path / "Maildir", both, only, blank)
    found = await tools(tmp_path)["search_mail"].call({})
    assert [each["body"] for each in found] == ["from html", "# Offer\n\nTen €\na piece", "plain"]


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("iso-8859-1", "Größe".encode("latin-1"), "Größe"),
        ("iso-8859-1", "Größe".encode(), "Größe"),
        ("us-ascii", "Größe".encode(), "Größe"),
        ("utf-8", "Größe".encode("latin-1"), "Größe"),
        ("x-unknown-42", "Größe".encode(), "Größe"),
        ("koi8-r", "Привет".encode("koi8-r"), "Привет"),
        ("shift_jis", "日本語".encode("shift_jis"), "日本語"),
        ("rot13", b"plain", "plain"),
        ("unicode_escape", b"a\\u0041", "a\\u0041"),
    ],
)
async def test_wrong_and_unknown_charsets_are_survived(tmp_path: Path, charset: str, body: bytes, text: str) -> None:
    head = f"From: a@example.com\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    deliver(tmp_path / "Maildir", head.encode() + body)
    (found,) = await tools(tmp_path)["search_mail"].call({})
    assert found["body"] == text


@pytest.mark.parametrize("header", [b"Date: gestern abend\n", b"", b"Date: Mon, 99 Foo 99999 99:99:99 +9999\n"])
async def test_a_mail_without_a_usable_date_has_the_date_of_its_file(tmp_path: Path, header: bytes) -> None:
    deliver(tmp_path / "Maildir", b"From: a@example.com\n" + header + b"Subject: x\n\nhi\n")
    path = next((tmp_path / "Maildir" / "cur").iterdir())
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (found,) = await tools(tmp_path)["search_mail"].call({})
    assert found["date"] == datetime.fromtimestamp(1_700_000_000)


async def test_a_huge_mail_is_cut_and_says_so(tmp_path: Path) -> None:
    deliver(tmp_path / "Maildir", mail(body="word " * 100_000))
    (found,) = await tools(tmp_path)["search_mail"].call({})
    assert len(found["body"]) < 101_000
    assert found["body"].endswith("[cut after 100000 characters]")


async def test_an_attached_mail_is_one_attachment(tmp_path: Path) -> None:
    outer = mail("outer", body="see below")
    outer.add_attachment(mail("inner", body="inner text"))
    deliver(tmp_path / "Maildir", outer)
    have = tools(tmp_path)
    (found,) = await have["search_mail"].call({})
    assert found["body"] == "see below"
    (name,) = found["attachments"]
    path = await have["save_attachment"].call({"id": found["id"], "name": name})
    assert b"inner text" in (tmp_path / path).read_bytes()


# Searching


@pytest.fixture
def office(tmp_path: Path) -> dict[str, Tool]:
    box = tmp_path / "Maildir"
    deliver(box, mail("Invoice 7", "Ann Lee <ann@example.com>", "Please pay 70 EUR.", day=1), flags="S")
    deliver(box, mail("Lunch?", "bob@corp.example", "At the INVOICE desk", day=2), flags="RS")
    deliver(box, mail("Re: budget", "Cy <cy@example.com>", "Numbers attached", day=3), new=True)
    deliver(box / ".Archive", mail("Old", "ann@example.com", "ancient", day=4), flags="F")
    deliver(box / ".Archive.2025", mail("Older", "ann@example.com", "more ancient", day=5), flags="S")
    deliver(box / "Work", mail("Nested", "dee@example.com", "in a plain subfolder", day=6), flags="S")
    return tools(tmp_path)


@pytest.mark.parametrize(
    ("filters", "subjects"),
    [
        ({}, ["Nested", "Older", "Old", "Re: budget", "Lunch?", "Invoice 7"]),
        ({"text": "invoice"}, ["Lunch?", "Invoice 7"]),
        ({"text": "EUR invoice"}, ["Invoice 7"]),
        ({"subject": "INVOICE"}, ["Invoice 7"]),
        ({"sender": "ann"}, ["Older", "Old", "Invoice 7"]),
        ({"sender": "Lee"}, ["Invoice 7"]),
        ({"sender": "bob@corp.example"}, ["Lunch?"]),
        ({"since": date(2026, 3, 2), "before": date(2026, 3, 4)}, ["Re: budget", "Lunch?"]),
        ({"unread": True}, ["Old", "Re: budget"]),
        ({"folder": "inbox"}, ["Re: budget", "Lunch?", "Invoice 7"]),
        ({"folder": "Archive"}, ["Older", "Old"]),
        ({"folder": "2025"}, ["Older"]),
        ({"folder": "work"}, ["Nested"]),
        ({"limit": 2}, ["Nested", "Older"]),
        ({"limit": 0}, []),
        ({"sender": "ann", "text": "pay", "unread": True}, []),
    ],
)
async def test_all_given_filters_must_match(
    office: dict[str, Tool], filters: dict[str, Any], subjects: list[str]
) -> None:
    assert [each["subject"] for each in await office["search_mail"].call(filters)] == subjects


async def test_mistakes_are_named_with_what_was_meant(office: dict[str, Tool], tmp_path: Path) -> None:
    wrong = await error_of(office["search_mail"], {"folder": "Archiv"})
    assert (wrong.code, wrong.nearest) == ("mail.unknown-folder", "Archive")
    wrong = await error_of(office["search_mail"], {"limit": -1})
    assert wrong.code == "mail.bad-limit"
    (found,) = await office["search_mail"].call({"subject": "budget"})
    wrong = await error_of(office["read_mail"], {"id": found["id"][:-1]})
    assert (wrong.code, wrong.nearest) == ("mail.unknown-mail", found["id"])
    wrong = await error_of(office["save_attachment"], {"id": found["id"], "name": "x.pdf"})
    assert wrong.code == "mail.unknown-attachment"


async def test_without_a_mailbox_the_setting_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no mail")
    for options in ({}, {"folder": "nowhere"}, {"folder": "notes.txt"}, {"folder": "."}):
        error = await error_of(tools(tmp_path, options)["search_mail"], {})
        assert error.code == "mail.no-folder"
        assert "folder" in (error.fix or "")


async def test_searching_changes_nothing(tmp_path: Path, office: dict[str, Tool]) -> None:
    def picture() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(tmp_path.rglob("*"))}

    (tmp_path / "Maildir" / "tmp" / "half.host").write_bytes(b"half")
    os.utime(tmp_path / "Maildir" / "tmp" / "half.host", (0, 0))
    before = picture()
    found = await office["search_mail"].call({"text": "a"})
    await office["read_mail"].call({"id": found[0]["id"]})
    assert picture() == before


async def test_new_mail_and_changed_flags_are_seen_at_once(tmp_path: Path) -> None:
    box = tmp_path / "Maildir"
    (key,) = deliver(box, mail("first"), new=True)
    have = tools(tmp_path)
    (found,) = await have["search_mail"].call({"unread": True})
    (box / "new" / key).rename(box / "cur" / f"{key}:2,S")
    assert await have["search_mail"].call({"unread": True}) == []
    assert (await have["read_mail"].call({"id": found["id"]}))["unread"] is False
    deliver(box, mail("second", day=2), new=True)
    assert [each["subject"] for each in await have["search_mail"].call({})] == ["second", "first"]


# mbox


def write_mbox(path: Path, *mails: Raw) -> None:
    box = mailbox.mbox(path)
    for raw in mails:
        box.add(mailbox.mboxMessage(raw))
    box.close()


async def test_an_mbox_is_read_like_a_maildir(tmp_path: Path) -> None:
    seen = mail("seen", body="From here on\n\nFrom now: on\nit goes", message_id="s@x")
    seen["Status"] = "RO"
    write_mbox(tmp_path / "mail.mbox", seen, mail("fresh", day=2), b"Subject: no date\n\nx\n")
    have = tools(tmp_path)
    found = await have["search_mail"].call({})
    by_subject = {each["subject"]: each for each in found}
    assert set(by_subject) == {"seen", "fresh", "no date"}
    assert by_subject["seen"]["body"] == "From here on\n\nFrom now: on\nit goes"
    assert (by_subject["seen"]["unread"], by_subject["fresh"]["unread"]) == (False, True)
    assert (await have["read_mail"].call({"id": "<s@x>"})) == by_subject["seen"]
    assert abs(by_subject["no date"]["date"] - datetime.now()) < timedelta(days=2)
    write_mbox(tmp_path / "mail.mbox", mail("later", day=9))
    assert "later" in {each["subject"] for each in await have["search_mail"].call({"since": date(2026, 3, 9)})}


async def test_a_folder_of_mbox_files_has_a_folder_for_each(tmp_path: Path) -> None:
    write_mbox(make(tmp_path / "mail") / "inbox.mbox", mail("a"))
    write_mbox(make(tmp_path / "mail" / "old") / "2025.mbox", mail("b"))
    found = await tools(tmp_path, {"folder": "mail"})["search_mail"].call({})
    assert {each["subject"]: each["folder"] for each in found} == {"a": "inbox", "b": "old/2025"}


def make(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def test_an_empty_mailbox_has_no_mail(tmp_path: Path) -> None:
    (tmp_path / "mail.mbox").touch()
    assert await tools(tmp_path)["search_mail"].call({}) == []


# Speed


@pytest.mark.parametrize("kind", ["maildir", "mbox"])
async def test_five_thousand_mails_are_searched_in_seconds_and_then_at_once(tmp_path: Path, kind: str) -> None:
    template = bytes(mail("Subject N", "PN <pN@example.com>", "text N\n" * 20))
    raws = [
        template.replace(b"text N", b"text %d" % n)
        .replace(b"pN", b"p%d" % (n % 50))
        .replace(b"Subject N", b"No %d" % n)
        for n in range(5000)
    ]
    if kind == "maildir":
        (tmp_path / "Maildir" / "cur").mkdir(parents=True)
        for number, raw in enumerate(raws):
            (tmp_path / "Maildir" / "cur" / f"{number}.host:2,S").write_bytes(raw)
    else:
        (tmp_path / "mail.mbox").write_bytes(
            b"".join(b"From a Mon Mar  1 12:00:00 2026\n" + raw + b"\n" for raw in raws)
        )
    search = tools(tmp_path)["search_mail"]

    async def seconds(filters: dict[str, Any], expected: int) -> float:
        start = time.process_time()
        assert len(await search.call({"limit": 1000, **filters})) == expected
        return time.process_time() - start

    first = await seconds({"sender": "p7@example.com"}, 100)
    again = await seconds({"sender": "p7@example.com"}, 100)
    bodies = await seconds({"text": "text 4999"}, 1)
    print(f"{kind}: headers {first:.2f} s, again {again:.2f} s, bodies {bodies:.2f} s")
    # Of the processor, and generous, for a slow and busy machine.
    assert first < 10
    assert again < 3
    assert bodies < 10


def test_settings_that_would_send_a_password_in_the_clear_are_refused(tmp_path: Path) -> None:
    smtp = {"host": "mail.example.com", "user": "me", "password_env": "PW", "tls": "none"}
    with pytest.raises(ValueError, match="in the clear"):
        tools(tmp_path, {"smtp": smtp})
    with pytest.raises(ValueError, match="go together"):
        tools(tmp_path, {"smtp": {"host": "mail.example.com", "user": "me"}})
