"""Changes of a mailbox: saving drafts, moving mails, and moving them to the trash.

A mail is only ever renamed within the mailbox, so that every change can be taken back; nothing is deleted for good. All
of it goes through `Folders`, which checks that the mailbox may be written. Only Maildirs are changed: an mbox is one
file for all mails, which a mail program may be writing at the same time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bicameral.errors import ToolError, nearest_name
from bicameral.toolboxes._mail_files import INBOX, StoredMail, list_mailboxes
from bicameral.toolboxes._mailbox import Mailbox, is_bare_name
from bicameral.tools import Folders

SpecialFolder = Literal["Drafts", "Trash"]

# The names that mail programs give these folders in four languages.
_SPECIAL_NAMES: dict[SpecialFolder, frozenset[str]] = {
    "Drafts": frozenset({"drafts", "draft", "entwürfe", "entwurf", "brouillons", "borradores"}),
    "Trash": frozenset(
        {
            *("trash", "bin", "deleted", "deleted items", "deleted messages", "papierkorb", "gelöschte elemente"),
            *("corbeille", "éléments supprimés", "papelera", "elementos eliminados"),
        }
    ),
}
_MAILDIR_PARTS = ("cur", "new", "tmp")
_DRAFT_FLAGS = ":2,DS"


@dataclass(frozen=True, slots=True)
class MailFolders:
    """The folders of a mailbox as places to put mails in.

    Args:
        mailbox: Finds mails.
        folders: Checks and makes every change.
    """

    mailbox: Mailbox
    folders: Folders

    def save_draft(self, content: bytes, message_id: str) -> None:
        """Put a mail into the drafts; one with the same Message-ID is replaced, so that a repeated call saves one."""
        folder = self._special_folder("Drafts")
        name = hashlib.sha256(message_id.encode()).hexdigest()[:24]
        self.folders.write_atomic(self._display(folder / "cur" / f"{name}.bicameral{_DRAFT_FLAGS}"), content)

    def move(self, id: str, folder: str) -> None:
        """Move a mail to a folder; one that is not there yet is made, unless its name is almost that of another."""
        stored = self.mailbox.find_stored(id)
        self._require_maildir(stored)
        self._rename(stored, self._named_folder(folder))

    def move_to_trash(self, id: str) -> None:
        """Move a mail to the trash."""
        stored = self.mailbox.find_stored(id)
        self._require_maildir(stored)
        if _is_special(stored.folder, "Trash"):
            raise ToolError("mail.in-trash", f"the mail {id!r} is in the trash already; no mail is deleted for good")
        self._rename(stored, self._special_folder("Trash"))

    def _rename(self, stored: StoredMail, folder: Path) -> None:
        # `new` or `cur` stays what it is, and so do the flags in the name: an unread mail is unread there, too.
        target = folder / stored.path.parent.name / stored.path.name
        if target == stored.path:
            return
        self.folders.move(self._display(stored.path), self._display(target))

    def _require_maildir(self, stored: StoredMail) -> None:
        if stored.envelope:
            raise _mbox_error(f"the mail lies in the mbox file {stored.path.name!r}")

    def _named_folder(self, name: str) -> Path:
        wanted = name.strip().strip("/")
        known = dict(list_mailboxes(self.mailbox.writable_root()))
        same = [each for each in known if each.casefold() == wanted.casefold()]
        same = same or [each for each in known if each.casefold().endswith(f"/{wanted.casefold()}")]
        if len(same) == 1:
            return self._require_maildir_folder(same[0], known[same[0]])
        special = next((each for each in _SPECIAL_NAMES if wanted.casefold() in _SPECIAL_NAMES[each]), None)
        if special is not None and not same:
            return self._special_folder(special)
        near = nearest_name(wanted, known)
        if same or near or wanted.casefold() == INBOX.casefold():
            raise ToolError(
                "mail.unknown-folder",
                f"there is no mail folder {name!r}",
                expected=", ".join(map(repr, (same or list(known))[:20])),
                nearest=near,
            )
        return self._make_folder(wanted)

    def _special_folder(self, kind: SpecialFolder) -> Path:
        known = list_mailboxes(self.mailbox.writable_root())
        # The shortest name: `Drafts`, and not one below an archive.
        found = sorted((each for each in known if _is_special(each[0], kind)), key=lambda each: len(each[0]))
        return self._require_maildir_folder(*found[0]) if found else self._make_folder(kind)

    def _require_maildir_folder(self, name: str, path: Path) -> Path:
        if path.is_file():
            raise _mbox_error(f"the folder {name!r} is an mbox file")
        return path

    def _make_folder(self, name: str) -> Path:
        root = self.mailbox.writable_root()
        nested = _is_maildir(root)
        # In a Maildir++ folders lie beside `cur` with a dot before their name, and a dot separates levels.
        if not is_bare_name(name) or name.startswith(".") or (nested and "." in name) or len(name) > 100:
            raise ToolError(
                "mail.bad-folder", f"{name[:100]!r} cannot be the name of a mail folder", expected="a plain name"
            )
        path = root / (f".{name}" if nested else name)
        for part in _MAILDIR_PARTS:
            self.folders.make_folder(self._display(path / part))
        return path

    def _display(self, path: Path) -> str:
        return self.folders.display_path(path)


def _is_special(folder: str, kind: SpecialFolder) -> bool:
    return folder.rpartition("/")[2].casefold() in _SPECIAL_NAMES[kind]


def _is_maildir(path: Path) -> bool:
    return (path / "cur").is_dir() and (path / "new").is_dir()


def _mbox_error(message: str) -> ToolError:
    return ToolError(
        "mail.in-mbox",
        f"{message}, which is never changed",
        fix="Use a Maildir, or do it in your mail program.",
    )
