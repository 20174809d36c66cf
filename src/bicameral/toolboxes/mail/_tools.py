"""The mail tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any

from bicameral.errors import Place, ToolError
from bicameral.tools import Folders, Origin, Participants, Surroundings, Target, Tool, Toolbox, tool
from bicameral.types import Address, Id

from ._bodies import numbered
from ._mailbox import Mailbox
from ._records import Mail
from ._send import know_password, send
from ._settings import MailSettings

_MAX_LIMIT = 1000

# Whoever sends a mail writes all of it, its sender, date and recipients too: nobody has authenticated them. (An mbox
# keeps even what was read inside the mail.) Anybody can send one that a search finds, so how many there are is theirs
# as well. Only the id is of our making, and the folder is where the user or his server put it. Those whom a mail names
# have read it.
_WRITTEN = Origin("third_party", Participants(("sender", "to", "cc")))
_OURS = Origin("system")
_MAIL = {"": _WRITTEN, "id": _OURS, "folder": _OURS}
_MAILS = {"": Origin("third_party"), "[]": _WRITTEN, "[].id": _OURS, "[].folder": _OURS}


def _build(settings: MailSettings, surroundings: Surroundings) -> list[Tool]:
    know_password(settings, surroundings)
    mailbox = Mailbox(surroundings.folders, settings.folder)

    @tool(effect="read", timeout=60, origins=_MAILS)
    def search_mail(
        text: Annotated[str, "words in subject or body"] = "",
        sender: Annotated[str, "address or name"] = "",
        subject: str = "",
        since: date | None = None,
        before: date | None = None,
        unread: Annotated[bool, "only unread"] = False,
        folder: str = "",
        limit: int = 50,
    ) -> list[Mail]:
        """Find mails that match all given filters, newest first."""
        if not 0 <= limit <= _MAX_LIMIT:
            raise ToolError(
                "mail.bad-limit", f"limit is {limit}", place=Place(argument="limit"), expected=f"0 to {_MAX_LIMIT}"
            )
        return mailbox.search(
            text=text,
            sender=sender,
            subject=subject,
            since=since,
            before=before,
            unread=unread,
            folder=folder,
            limit=limit,
        )

    @tool(effect="read", origins=_MAIL)
    def read_mail(id: Id) -> Mail:
        """Read one mail by its id."""
        return mailbox.read(id)

    @tool(
        effect="send",
        # A connection, a greeting, a login and a mail may each take the whole timeout of the server.
        timeout=120,
        # An attachment names the file that goes out, so it decides what the mail does.
        purpose={"to": "directs", "cc": "directs", "attachments": "directs", "subject": "carries", "body": "carries"},
        receivers=("to", "cc"),
        # A file is the user's alone, whoever wrote it.
        attaches=("attachments",),
        attached_in=surroundings.folders,
        origins=_OURS,
        words=(
            *(
                "send",
                "mail",
                "email",
                "forward",
                "fwd",
                "reply",
                "answer",
                "tell",
                "notify",
                "inform",
                "remind",
                "invite",
            ),
            *("write to", "ping", "message", "shoot", "drop", "pass on"),
        ),
    )
    def send_mail(
        to: Annotated[Sequence[Address], "addresses"],
        subject: str,
        body: str,
        cc: Sequence[Address] = (),
        attachments: Annotated[Sequence[str], "file paths"] = (),
    ) -> None:
        """Send a mail."""
        send(settings, surroundings, to=to, cc=cc, subject=subject, body=body, attachments=attachments)

    @tool(
        effect="write",
        timeout=60,
        purpose={"id": "selects", "name": "directs", "folder": "directs"},
        origins=_OURS,
        target=lambda given: _attachment_target(surroundings.folders, given),
        words=("save", "download", "store", "keep", "put", "extract"),
    )
    def save_attachment(id: Id, name: str, folder: str = ".") -> Annotated[str, "path"]:
        """Save an attachment of a mail into a folder; gives the path."""
        return _save(surroundings.folders, folder, name, mailbox.attachment(id, name))

    return [search_mail, read_mail, send_mail, save_attachment]


def _attachment_target(folders: Folders, given: Mapping[str, Any]) -> Target:
    """Where an attachment goes: whoever sent it wrote it."""
    name = given.get("name")
    return folders.target(f"{given.get('folder', '.')}/{name}" if isinstance(name, str) else None, copied=True)


def _save(folders: Folders, folder: str, name: str, content: bytes) -> str:
    """Write under a name that is free: a stranger's attachment never replaces a file."""
    for copy in range(1, 1000):
        path = f"{folder}/{name if copy == 1 else numbered(name, copy)}"
        try:
            folders.write_atomic(path, content, replace=False)
        except ToolError as error:
            if error.code != "files.exists":
                raise
        else:
            return folders.shown(folders.writing(path))
    raise ToolError("mail.exists", f"there are too many files like {name!r} in {folder!r}")


toolbox: Toolbox[MailSettings] = Toolbox(
    "mail",
    "Search, read and send mail, save attachments.",
    MailSettings,
    _build,
    keeps=lambda settings: (settings.folder,) if settings.folder else (),
)
