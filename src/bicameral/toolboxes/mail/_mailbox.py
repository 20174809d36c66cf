"""The mailbox: which mails there are, quickly, and one mail in full."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from bicameral.errors import ToolError, nearest
from bicameral.parsing import Limits, ParseLimit, Parser
from bicameral.tools import Folders

from ._boxes import MAX_MAIL, Stored, is_mailbox, mailboxes, stored
from ._headers import Headers, local_date
from ._records import Mail

_USUAL = ("Maildir", "maildir", "Mail", "mail", "mail.mbox", "inbox.mbox", "mbox")
_KEPT_TEXT = 40_000_000
"""How many characters of bodies are kept in memory between searches."""
_BATCH = 200
_BATCH_BYTES = 4 * 1024 * 1024
_LARGE = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """A mail whose headers are known."""

    stored: Stored
    headers: Headers
    id: str
    date: datetime
    unread: bool


@dataclass(frozen=True, slots=True)
class _Content:
    body: str
    attachments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Text:
    body: str
    attachments: tuple[str, ...]
    problem: ParseLimit | None = field(default=None, compare=False)


# An honest mail is read in milliseconds, one of many megabytes in a second. A search goes on after one that is not, so
# the limits are low, and below the timeout of the tools: a tool that runs out of time is tried again.
_READING = "bicameral.toolboxes.mail._reading"
_HEADS: Parser[list[Headers]] = Parser(f"{_READING}:read_heads", list[Headers], Limits(cpu=2.0, wall=5.0))
_CONTENT: Parser[_Content] = Parser(f"{_READING}:read_mail", _Content, Limits(cpu=2.0, wall=8.0))
_LARGE_CONTENT: Parser[_Content] = Parser(f"{_READING}:read_mail", _Content, Limits(cpu=8.0, wall=15.0))
_ATTACHMENT: Parser[list[str]] = Parser(f"{_READING}:read_attachment", list[str], Limits(cpu=10.0, wall=20.0))


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
            text_of = self._text_of(entry.stored)
            # One that could not be read is among the results: nobody knows that the words are not in it.
            if text_of and (text_of.problem or has_words(f"{headers.subject}\n{text_of.body}", text)):
                found.append(_mail(entry, text_of))
        return found

    def read(self, id: str) -> Mail:
        """One mail by its id."""
        for _ in range(2):
            # Twice, since a mail reader renames files all the time.
            entry = self._find(id)
            text = self._text_of(entry.stored)
            if text is not None and text.problem is not None:
                raise text.problem
            if text is not None:
                return _mail(entry, text)
        raise ToolError("mail.unknown-mail", f"the mail {id!r} has just been moved or deleted")

    def attachment(self, id: str, name: str) -> bytes:
        """The bytes of one attachment."""
        entry = self._find(id)
        if entry.stored.size > MAX_MAIL:
            raise ToolError("mail.too-large", f"the mail {id!r} has {entry.stored.size} bytes", expected=f"{MAX_MAIL}")
        try:
            raw = entry.stored.raw()
        except OSError as error:
            raise ToolError(
                "mail.unreadable", f"the mail {entry.stored.key!r} cannot be read: {error.strerror}"
            ) from None
        attachments, content = _ATTACHMENT.with_body(raw, what=f"the mail {id!r}", name=name)
        # The name becomes that of a file, so it must be a bare one, whatever the parser says.
        if name not in attachments or not is_bare(name):
            raise ToolError(
                "mail.unknown-attachment",
                f"the mail {id!r} has no attachment {name!r}",
                expected=", ".join(map(repr, attachments[:20])) or "a mail with attachments",
                nearest=nearest(name, attachments[:200]),
            )
        return content

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
        known = self._headers_of(self._stored(everything))
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
                kept = self._boxes[path] = (facts.st_mtime_ns, facts.st_size, stored(name, path))
            found.extend(kept[2])
        return found

    def _headers_of(self, items: list[Stored]) -> list[tuple[Stored, Headers]]:
        """The mails that are still there, with their headers; those that are not known yet are read in batches."""
        for batch in _batches(item for item in items if self._known_headers(item) is None):
            try:
                found = _heads(batch)
            except ParseLimit:
                # One of them is too much: each is read alone, so that only that one is not.
                found = [_head_alone(item, raw) for item, raw in batch]
            for (item, _), headers in zip(batch, found, strict=True):
                self._headers[item.key] = (item.modified, item.size, headers)
        return [(item, headers) for item in items if (headers := self._known_headers(item))]

    def _known_headers(self, item: Stored) -> Headers | None:
        kept = self._headers.get(item.key)
        return kept[2] if kept is not None and kept[:2] == (item.modified, item.size) else None

    def _text_of(self, item: Stored) -> _Text | None:
        """The text of a mail, or None when it vanished under our hands."""
        # The lock is for what is kept alone. It is not held while a mail is read: a hostile one takes its time.
        with self._lock:
            kept = self._texts.get(item.key)
            if kept is not None and kept[:2] == (item.modified, item.size):
                self._texts.move_to_end(item.key)
                return kept[2]
        try:
            raw = item.raw()
        except OSError:
            return None
        try:
            parser = _CONTENT if len(raw) <= _LARGE else _LARGE_CONTENT
            content = parser(raw, what=f"the mail {item.key!r}")
            text = _Text(content.body, content.attachments)
        except ParseLimit as problem:
            text = _Text(f"[{problem.message}]", (), problem)
        with self._lock:
            self._keep(item, text)
        return text

    def _keep(self, item: Stored, text: _Text) -> None:
        replaced = self._texts.pop(item.key, None)
        self._texts[item.key] = (item.modified, item.size, text)
        self._kept += len(text.body) - (0 if replaced is None else len(replaced[2].body))
        while self._kept > _KEPT_TEXT:
            _, (_, _, dropped) = self._texts.popitem(last=False)
            self._kept -= len(dropped.body)


def _mail(entry: Entry, text: _Text) -> Mail:
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


def _batches(items: Iterable[Stored]) -> Iterator[list[tuple[Stored, bytes]]]:
    """The beginnings of mails, some at a time; one that vanished is left out."""
    batch: list[tuple[Stored, bytes]] = []
    size = 0
    for item in items:
        try:
            batch.append((item, item.head()))
        except OSError:
            continue
        size += len(batch[-1][1])
        if len(batch) >= _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _heads(batch: list[tuple[Stored, bytes]]) -> list[Headers]:
    raws = [raw for _, raw in batch]
    found = _HEADS(b"".join(raws), what=f"{len(batch)} mails", sizes=list(map(len, raws)))
    if len(found) != len(batch):
        raise ToolError("tools.unreadable", "the parser of mails replied with something else than it should")
    return found


def _head_alone(item: Stored, raw: bytes) -> Headers:
    try:
        return _heads([(item, raw)])[0]
    except ParseLimit as problem:
        return Headers("", "", "", (), (), f"[{problem.message}]", None, read=False)


def is_bare(name: str) -> bool:
    """Whether this is the name of a file and no way to another folder."""
    return name not in ("", ".", "..") and not any(mark in name for mark in "/\\\0") and name.isprintable()


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
