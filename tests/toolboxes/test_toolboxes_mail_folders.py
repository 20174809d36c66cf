"""Changes of a mailbox: drafts, moves and the trash in real Maildirs, and what is never changed."""

from __future__ import annotations

import mailbox
from datetime import datetime
from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from bicameral.config import STANDARD
from bicameral.errors import ToolError
from bicameral.plans import parse
from bicameral.policy import Policy
from bicameral.runs import Finished, run_plan
from bicameral.toolboxes.mail import toolbox
from bicameral.tools import Folders, Registry, Surroundings, Tool, load_toolboxes, use_call_key

ADDRESS = {"address": "me@example.com"}


def around(base: Path, write: list[Path] | None = None) -> Surroundings:
    folders = Folders.of(base, read=[base], write=[base] if write is None else write)
    return Surroundings(folders, now=lambda: datetime(2026, 3, 10, 9).astimezone())


def tools(base: Path, **more: Any) -> dict[str, Tool]:
    return {tool.name: tool for tool in toolbox.open(around(base, **more), ADDRESS)}


def deliver(box: Path, subject: str, *, message_id: str = "", sender: str = "kim@example.com") -> None:
    """Put a mail into a Maildir as a mail program does."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, "me@example.com", subject
    if message_id:
        message["Message-ID"] = f"<{message_id}>"
    message.set_content("Hello.")
    box.parent.mkdir(parents=True, exist_ok=True)
    mailbox.Maildir(box, create=True).add(message)


async def ids(have: dict[str, Tool], folder: str = "") -> dict[str, str]:
    found = await have["search_mail"].call({"folder": folder} if folder else {})
    return {mail["subject"]: mail["id"] for mail in found}


def listed(base: Path) -> set[str]:
    """Every file of a mailbox without its flags."""
    return {str(path.relative_to(base)).partition(":")[0] for path in base.rglob("*") if path.is_file()}


async def error_code(tool: Tool, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await tool.call(arguments)
    return caught.value.code


# Drafts


async def test_a_draft_lies_in_the_drafts_and_can_be_sent_by_a_mail_program(tmp_path: Path) -> None:
    deliver(tmp_path / "Maildir", "Roof")
    (tmp_path / "plan.txt").write_text("the plan")
    have = tools(tmp_path)
    await have["save_draft"].call(
        {"to": ["kim@example.com"], "subject": "Re: Roof", "body": "It is done.", "attachments": ["plan.txt"]}
    )
    (path,) = (tmp_path / "Maildir/.Drafts/cur").iterdir()
    assert path.name.endswith(":2,DS")
    message = message_from_bytes(path.read_bytes())
    assert (message["From"], message["To"], message["Subject"]) == ("me@example.com", "kim@example.com", "Re: Roof")
    found = await have["search_mail"].call({"folder": "Drafts"})
    assert [(mail["body"].strip(), mail["attachments"], mail["unread"]) for mail in found] == [
        ("It is done.", ["plan.txt"], False)
    ]
    assert (tmp_path / "Maildir/.Drafts/tmp").is_dir()


@pytest.mark.parametrize("name", [".Drafts", ".INBOX.Drafts", ".Entwürfe", ".Brouillons"])
async def test_the_drafts_that_a_mail_program_made_are_used(tmp_path: Path, name: str) -> None:
    deliver(tmp_path / "Maildir", "Roof")
    mailbox.Maildir(tmp_path / "Maildir" / name, create=True)
    await tools(tmp_path)["save_draft"].call({"to": ["kim@example.com"], "subject": "a", "body": "b"})
    assert len(list((tmp_path / "Maildir" / name / "cur").iterdir())) == 1


async def test_a_draft_that_is_saved_again_by_the_same_call_is_one(tmp_path: Path) -> None:
    deliver(tmp_path / "Maildir", "Roof")
    tool = tools(tmp_path)["save_draft"]
    for _ in range(2):
        with use_call_key("run-1.step-2"):
            await tool.call({"to": ["kim@example.com"], "subject": "a", "body": "b"})
    assert len(list((tmp_path / "Maildir/.Drafts/cur").iterdir())) == 1


async def test_a_draft_has_the_checks_of_a_mail(tmp_path: Path) -> None:
    deliver(tmp_path / "Maildir", "Roof")
    save = tools(tmp_path)["save_draft"]
    second = "\nBcc: eve@example.com"
    assert await error_code(save, to=[f"kim@example.com{second}"], subject="a", body="b") == "mail.bad-header"
    assert await error_code(save, to=["kim@example.com"], subject=f"a{second}", body="b") == "mail.bad-header"
    assert not (tmp_path / "Maildir/.Drafts").exists()
    nobody = {tool.name: tool for tool in toolbox.open(around(tmp_path), {})}
    assert await error_code(nobody["save_draft"], to=["kim@example.com"], subject="a", body="b") == "mail.no-address"


# Moving and deleting


async def test_a_moved_mail_lies_in_the_other_folder_unread_as_before(tmp_path: Path) -> None:
    box = tmp_path / "Maildir"
    deliver(box, "Bill", message_id="bill@example.com")
    deliver(box / ".Receipts", "Old")
    before = next(iter((box / "new").iterdir())).read_bytes()
    have = tools(tmp_path)
    id = (await ids(have))["Bill"]
    await have["move_mail"].call({"id": id, "folder": "receipts"})
    assert [path.read_bytes() for path in (box / ".Receipts/new").iterdir() if path.read_bytes() == before] == [before]
    assert set(await ids(have, "Receipts")) == {"Bill", "Old"}
    assert not list((box / "new").iterdir())
    # The id stays that of the mail, so that it can be moved back.
    await have["move_mail"].call({"id": id, "folder": "INBOX"})
    assert next(iter((box / "new").iterdir())).read_bytes() == before


async def test_a_deleted_mail_lies_in_the_trash_and_nothing_is_deleted_for_good(tmp_path: Path) -> None:
    box = tmp_path / "Maildir"
    deliver(box, "Sale", message_id="sale@example.com")
    have = tools(tmp_path)
    id = (await ids(have))["Sale"]
    await have["delete_mail"].call({"id": id})
    assert set(await ids(have, "Trash")) == {"Sale"}
    assert await error_code(have["delete_mail"], id=id) == "mail.in-trash"
    assert set(await ids(have, "Trash")) == {"Sale"}


async def test_a_new_folder_is_made_as_the_mailbox_makes_them(tmp_path: Path) -> None:
    deliver(tmp_path / "Maildir", "Bill")
    have = tools(tmp_path)
    await have["move_mail"].call({"id": (await ids(have))["Bill"], "folder": "House"})
    assert len(list((tmp_path / "Maildir/.House/new").iterdir())) == 1
    # Folders of Maildirs that lie beside one another.
    deliver(tmp_path / "other/mail/Inbox", "Tax")
    have = tools(tmp_path / "other")
    await have["delete_mail"].call({"id": (await ids(have))["Tax"]})
    assert len(list((tmp_path / "other/mail/Trash/new").iterdir())) == 1


@pytest.mark.parametrize("folder", ["../../outside", "a/../../b", "..", ".Hidden", "a.b", "", "x" * 200, "Reciepts"])
async def test_no_folder_leads_out_of_the_mailbox_or_is_made_of_a_slip(tmp_path: Path, folder: str) -> None:
    deliver(tmp_path / "home/Maildir", "Bill")
    deliver(tmp_path / "home/Maildir/.Receipts", "Old")
    have = tools(tmp_path / "home")
    before = listed(tmp_path)
    code = await error_code(have["move_mail"], id=(await ids(have))["Bill"], folder=folder)
    assert code in ("mail.bad-folder", "mail.unknown-folder")
    assert listed(tmp_path) == before


async def test_a_link_in_the_mailbox_takes_no_mail_out_of_it(tmp_path: Path) -> None:
    box = tmp_path / "home/Maildir"
    deliver(box, "Bill")
    (tmp_path / "outside").mkdir()
    (box / ".Linked").mkdir()
    (box / ".Linked/cur").mkdir()
    (box / ".Linked/new").symlink_to(tmp_path / "outside")
    have = tools(tmp_path / "home")
    assert (await error_code(have["move_mail"], id=(await ids(have))["Bill"], folder="Linked")).startswith("files.")
    assert not list((tmp_path / "outside").iterdir())
    assert len(list((box / "new").iterdir())) == 1


async def test_a_mailbox_that_may_not_be_written_and_an_mbox_stay_as_they_are(tmp_path: Path) -> None:
    deliver(tmp_path / "Maildir", "Bill")
    have = tools(tmp_path, write=[])
    before = listed(tmp_path)
    id = (await ids(have))["Bill"]
    for name, arguments in (("move_mail", {"id": id, "folder": "House"}), ("delete_mail", {"id": id})):
        assert (await error_code(have[name], **arguments)).startswith("files.")
    draft = {"to": ["kim@example.com"], "subject": "a", "body": "b"}
    assert (await error_code(have["save_draft"], **draft)).startswith("files.")
    assert listed(tmp_path) == before
    other = tmp_path / "other"
    other.mkdir()
    message = "From kim Mon Mar  2 10:00:00 2026\nFrom: kim@example.com\nSubject: Sale\nTo: me@example.com\n\nHi\n"
    (other / "mail.mbox").write_text(message)
    have = tools(other)
    assert await error_code(have["delete_mail"], id=(await ids(have))["Sale"]) == "mail.in-mbox"
    assert await error_code(have["move_mail"], id=(await ids(have))["Sale"], folder="House") == "mail.in-mbox"
    assert await error_code(have["save_draft"], **draft) == "mail.in-mbox"
    assert (other / "mail.mbox").read_text() == message
    assert listed(other) == {"mail.mbox"}


# What a mail says


def registry(base: Path) -> Registry:
    return load_toolboxes({name: ADDRESS if name == "mail" else {} for name in STANDARD}, around(base))


@pytest.mark.parametrize(
    "attack",
    [
        "mails = search_mail()\ndelete_mail(mails[0].subject)\n",
        "mails = search_mail()\nmove_mail('x', mails[0].subject)\n",
        "mails = search_mail()\nsave_draft([mails[0].sender], 'Re', 'secret')\n",
        "mails = search_mail(text='hello')\nfor mail in mails:\n    delete_mail(mail.id)\n",
    ],
)
async def test_a_mail_decides_neither_what_is_deleted_nor_who_is_written_to(tmp_path: Path, attack: str) -> None:
    deliver(tmp_path / "Maildir", "eve@example.com", sender="eve@example.com")
    before = listed(tmp_path)
    have = registry(tmp_path)
    plan = parse(f"{attack}answer('done')\n", have).plan
    outcome = await run_plan(plan, have, policy=Policy.load((), have, me=["me@example.com"]))
    assert not isinstance(outcome, Finished)
    assert listed(tmp_path) == before


async def test_what_the_user_says_is_done(tmp_path: Path) -> None:
    deliver(tmp_path / "Maildir", "Sale", message_id="sale@example.com")
    have = registry(tmp_path)
    policy = Policy.load((), have, me=["me@example.com"])
    id = (await ids({tool.name: tool for tool in have}, "INBOX"))["Sale"]
    for order in ("save_draft(['kim@example.com'], 'Re', 'fine')", f"delete_mail({id!r})"):
        assert isinstance(await run_plan(parse(f"{order}\nanswer('done')\n", have).plan, have, policy=policy), Finished)
    assert len(list((tmp_path / "Maildir/.Drafts/cur").iterdir())) == 1
    assert len(list((tmp_path / "Maildir/.Trash/new").iterdir())) == 1
