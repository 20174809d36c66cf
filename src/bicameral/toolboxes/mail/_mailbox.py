"""The mailbox: which mails there are, quickly, and one mail in full."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from bicameral.errors import ToolError, nearest
from bicameral.tools import Folders

from ._bodies import Content, attachment_bytes, read_content
from ._boxes import MAX_MAIL, Stored, is_mailbox, mailboxes, stored
from ._headers import Headers, local_date, read_headers
from ._records import Mail

_USUAL = ("Maildir", "maildir", "Mail", "mail", "mail.mbox", "inbox.mbox", "mbox")
_KEPT_TEXT = 40_000_000
"""How many characters of bodies are kept in memory between searches."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A mail whose headers are known."""

    stored: Stored
    headers: Headers
    id: str
    date: datetime
    unread: bool


@dataclass(frozen=True, slots=True)
class _Text:
    body: str
    attachments: tuple[str, ...]


@dataclass(slots=True)
class Mailbox:
    """Mail under one folder or file, with a memory of what has been parsed."""

    folders: Folders
    folder: str | None
    _headers: dict[str, tuple[int, int, Headers]] = field(default_factory=dict[str, tuple[int, int, Headers]])
    _boxes: dict[Path, tuple[int, int, list[Stored]]] = field(default_factory=dict[Path, tuple[int, int, list[Stored]]])
    _texts: OrderedDict[str, tuple[int, int, _Text]] = field(default_factory=OrderedDict[str, tuple[int, int, _Text]])
    _kept: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def search(
        self,
        *,
        text: str,
        sender: str,
        subject: str,
        since: date | None,
        before: date | None,
        unread: bool,
        folder: str,
        limit: int,
    ) -> list[Mail]:
        """The newest mails that every filter lets through; bodies are read only for those that get so far."""
        found: list[Mail] = []
        with self._lock:
            for entry in sorted(self._entries(folder), key=lambda entry: entry.date, reverse=True):
                if len(found) >= limit:
                    break
                headers, day = entry.headers, entry.date.date()
                if (
                    (unread and not entry.unread)
                    or (since and day < since)
                    or (before and day >= before)
                    or not has_words(f"{headers.sender_name} {headers.sender}", sender)
                    or not has_words(headers.subject, subject)
                ):
                    continue
                mail = self._mail(entry)
                if mail and has_words(f"{mail.subject}\n{mail.body}", text):
                    found.append(mail)
        return found

    def read(self, id: str) -> Mail:
        """One mail by its id."""
        with self._lock:
            mail = self._mail(self._find(id)) or self._mail(self._find(id))
        if mail is None:
            raise ToolError("mail.unknown-mail", f"the mail {id!r} has just been moved or deleted")
        return mail

    def attachment(self, id: str, name: str) -> bytes:
        """The bytes of one attachment."""
        with self._lock:
            entry = self._find(id)
        if entry.stored.size > MAX_MAIL:
            raise ToolError("mail.too-large", f"the mail {id!r} has {entry.stored.size} bytes", expected=f"{MAX_MAIL}")
        attachments = self._content(entry.stored).attachments
        if name not in attachments:
            raise ToolError(
                "mail.unknown-attachment",
                f"the mail {id!r} has no attachment {name!r}",
                expected=", ".join(map(repr, attachments)) or "a mail with attachments",
                nearest=nearest(name, attachments),
            )
        return attachment_bytes(attachments[name])

    def _find(self, id: str) -> Entry:
        entries = self._entries("")
        wanted = id.strip("<> ")
        found = [entry for entry in entries if wanted in (entry.id, entry.stored.key)]
        if found:
            return found[0]
        named = [entry for entry in entries if entry.headers.message_id == wanted and wanted]
        if len(named) == 1:
            return named[0]
        if named:
            twins = " or ".join(repr(entry.id) for entry in named)
            raise ToolError("mail.ambiguous-id", f"several mails call themselves {id!r}", expected=twins)
        raise ToolError(
            "mail.unknown-mail",
            f"there is no mail with the id {id!r}",
            nearest=nearest(wanted, (entry.id for entry in entries)),
            fix="Take the id from search_mail.",
        )

    def _entries(self, folder: str) -> list[Entry]:
        everything = mailboxes(self._root())
        chosen = [(name, path) for name, path in everything if _is_in(name, folder)]
        if not chosen and folder:
            names = [name for name, _ in everything]
            raise ToolError(
                "mail.unknown-folder",
                f"there is no mail folder {folder!r}",
                expected=", ".join(map(repr, names)),
                nearest=nearest(folder, names),
            )
        known = [(item, headers) for item in self._stored(everything) if (headers := self._headers_of(item))]
        # Strangers choose the Message-ID: one that is used twice, or spells another mail's key, names nobody.
        taken = Counter(headers.message_id for _, headers in known)
        taken.update(item.key for item, _ in known)
        names = {name for name, _ in chosen}
        return [
            _entry(item, headers, unique=taken[headers.message_id] == 1)
            for item, headers in known
            if item.folder in names
        ]

    def _root(self) -> Path:
        if self.folder is not None:
            root = _reading(self.folders, self.folder)
            if root is None or not is_mailbox(root):
                raise ToolError(
                    "mail.no-folder",
                    f"there is no Maildir or mbox at {self.folder!r}",
                    fix="Set `folder` under [toolbox.mail] in bicameral.toml.",
                )
            return root
        for name in _USUAL:
            root = _reading(self.folders, name)
            if root is not None and is_mailbox(root):
                return root
        raise ToolError(
            "mail.no-folder",
            f"there is no mail here: looked for {', '.join(_USUAL)}",
            fix="Set `folder` under [toolbox.mail] in bicameral.toml to a Maildir folder or an mbox file.",
        )

    def _stored(self, boxes: Iterable[tuple[str, Path]]) -> list[Stored]:
        found: list[Stored] = []
        for name, path in boxes:
            if not path.is_file():
                found.extend(stored(name, path))
                continue
            facts = path.stat()
            kept = self._boxes.get(path)
            if kept is None or kept[:2] != (facts.st_mtime_ns, facts.st_size):
                kept = self._boxes[path] = (facts.st_mtime_ns, facts.st_size, list(stored(name, path)))
            found.extend(kept[2])
        return found

    def _headers_of(self, item: Stored) -> Headers | None:
        kept = self._headers.get(item.key)
        if kept is None or kept[:2] != (item.modified, item.size):
            try:
                kept = self._headers[item.key] = (item.modified, item.size, read_headers(item.head()))
            except OSError:
                return None
        return kept[2]

    def _content(self, item: Stored) -> Content:
        try:
            return read_content(item.raw())
        except OSError as error:
            raise ToolError("mail.unreadable", f"the mail {item.key!r} cannot be read: {error.strerror}") from None

    def _text_of(self, item: Stored) -> _Text:
        kept = self._texts.get(item.key)
        if kept is not None and kept[:2] == (item.modified, item.size):
            self._texts.move_to_end(item.key)
            return kept[2]
        content = read_content(item.raw())
        text = _Text(content.body, tuple(content.attachments))
        if kept is not None:
            self._kept -= len(kept[2].body)
        self._texts[item.key] = (item.modified, item.size, text)
        self._kept += len(text.body)
        while self._kept > _KEPT_TEXT:
            _, (_, _, dropped) = self._texts.popitem(last=False)
            self._kept -= len(dropped.body)
        return text

    def _mail(self, entry: Entry) -> Mail | None:
        """The mail in full, or None when it vanished under our hands (a mail reader renames files all the time)."""
        try:
            text = self._text_of(entry.stored)
        except OSError:
            return None
        headers = entry.headers
        return Mail(
            id=entry.id,
            sender=headers.sender,
            sender_name=headers.sender_name,
            to=headers.to,
            cc=headers.cc,
            subject=headers.subject,
            date=entry.date,
            body=text.body,
            folder=entry.stored.folder,
            unread=entry.unread,
            attachments=text.attachments,
        )


def _reading(folders: Folders, path: str) -> Path | None:
    try:
        return folders.reading(path)
    except ToolError as error:
        if error.code == "files.missing":
            return None
        raise


def has_words(text: str, words: str) -> bool:
    """Whether every word occurs in the text, in any case."""
    folded = text.casefold()
    return all(word in folded for word in words.casefold().split())


def _is_in(name: str, folder: str) -> bool:
    wanted, own = folder.strip("/").casefold(), name.casefold()
    return not wanted or own == wanted or own.startswith(f"{wanted}/") or own.endswith(f"/{wanted}")


def _entry(item: Stored, headers: Headers, *, unique: bool) -> Entry:
    id = _own_id(headers.message_id) if headers.message_id and unique else item.key
    unread = not headers.read if item.unread is None else item.unread
    return Entry(item, headers, id, headers.date or _fallback_date(item), unread)


def _own_id(message_id: str) -> str:
    """An id of our own making: it stays when the mail is moved, and holds no word of the stranger who sent it."""
    return hashlib.sha256(message_id.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _fallback_date(item: Stored) -> datetime:
    if not item.envelope:
        return datetime.fromtimestamp(item.modified // 1_000_000_000)
    _, _, sent = item.envelope.decode("ascii", "replace").removeprefix("From ").strip().partition(" ")
    return local_date(sent) or datetime.fromtimestamp(0)
