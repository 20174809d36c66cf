"""The mailbox: a cache of parsed mails, search, and reading of one mail. What is on disk is in `_mail_files`."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TypeAlias

from bicameral.errors import ToolError, nearest_name
from bicameral.parsing import ParseLimitError, ParseLimits, Parser
from bicameral.toolboxes._mail_files import MAX_MAIL, StoredMail, is_mailbox, list_mailboxes, list_stored_mails
from bicameral.toolboxes._mime import MailHeaders, parse_local_date
from bicameral.toolboxes.mail import Mail
from bicameral.tools import Folders, Selection, note_selection

_USUAL_PLACES = ("Maildir", "maildir", "Mail", "mail", "mail.mbox", "inbox.mbox", "mbox")
_MAX_CACHED_TEXT = 40_000_000
"""How many characters of bodies are kept in memory between searches."""
_BATCH = 200
_BATCH_BYTES = 4 * 1024 * 1024
_LARGE_MAIL = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class MailEntry:
    """A mail with its headers and its id."""

    stored: StoredMail
    headers: MailHeaders
    id: str
    date: datetime
    unread: bool


_Stamp: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _ParsedContent:
    body: str
    attachments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _MailText:
    body: str
    attachments: tuple[str, ...]
    problem: ParseLimitError | None = field(default=None, compare=False)


# An ordinary mail is parsed in milliseconds, one of many megabytes in a second. A search continues after a mail that
# exceeds a limit, so the limits are low. They are below the time-out of the tools, because a tool that times out is
# retried, which would not help here.
_PARSER_MODULE = "bicameral.toolboxes._mime"
_HEADERS_PARSER: Parser[list[MailHeaders]] = Parser(
    f"{_PARSER_MODULE}:read_heads", list[MailHeaders], ParseLimits(cpu=2.0, wall=5.0)
)
_CONTENT_PARSER: Parser[_ParsedContent] = Parser(
    f"{_PARSER_MODULE}:read_mail", _ParsedContent, ParseLimits(cpu=2.0, wall=8.0)
)
_LARGE_CONTENT_PARSER: Parser[_ParsedContent] = Parser(
    f"{_PARSER_MODULE}:read_mail", _ParsedContent, ParseLimits(cpu=8.0, wall=15.0)
)
_ATTACHMENT_PARSER: Parser[list[str]] = Parser(
    f"{_PARSER_MODULE}:read_attachment", list[str], ParseLimits(cpu=10.0, wall=20.0)
)


@dataclass(slots=True)
class Mailbox:
    """The mail of one folder or file, with caches of parsed mails. Each cached value has the stamp of its source."""

    folders: Folders
    folder: str | None
    _headers: dict[str, tuple[_Stamp, MailHeaders]] = field(default_factory=dict[str, tuple[_Stamp, MailHeaders]])
    _boxes: dict[Path, tuple[_Stamp, list[StoredMail]]] = field(
        default_factory=dict[Path, tuple[_Stamp, list[StoredMail]]]
    )
    _texts: OrderedDict[str, tuple[_Stamp, _MailText]] = field(
        default_factory=OrderedDict[str, tuple[_Stamp, _MailText]]
    )
    _cached_characters: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def search(
        self,
        text: str,
        sender: str,
        subject: str,
        since: date | None,
        before: date | None,
        *,
        unread: bool,
        folder: str,
        limit: int,
    ) -> list[Mail]:
        """The newest mails that match all filters; a body is parsed only if the headers match."""
        mails: list[Mail] = []
        entries = sorted(self._entries(folder), key=lambda entry: entry.date, reverse=True)
        looked_at = unparsed = skipped = 0
        for entry in entries:
            if len(mails) >= limit:
                break
            looked_at += 1
            headers, day = entry.headers, entry.date.date()
            if (
                (unread and not entry.unread)
                or (since and day < since)
                or (before and day >= before)
                or not has_words(f"{headers.sender_name} {headers.sender}", sender)
                or not has_words(headers.subject, subject)
            ):
                continue
            content = self._load_text(entry.stored)
            skipped += content is None
            unparsed += bool(content and content.problem)
            # A mail that could not be parsed is a result, too: the words may be in it.
            if content and (content.problem or has_words(f"{headers.subject}\n{content.body}", text)):
                mails.append(_make_mail(entry, content))
        filters = {"text": text, "sender": sender, "subject": subject, "since": since, "before": before}
        words = [f"{name} {str(wanted)[:80]!r}" for name, wanted in filters.items() if wanted]
        # Those beyond the limit were not looked at, so that nothing is known of them.
        note_selection(Selection(looked_at, len(mails), "mails", ", ".join(words), unread=unparsed, skipped=skipped))
        return mails

    def read(self, id: str) -> Mail:
        """One mail by its id."""
        for _ in range(2):
            # Two attempts, because mail programs rename files when flags change.
            entry = self._find_entry(id)
            text = self._load_text(entry.stored)
            if text is not None and text.problem is not None:
                raise text.problem
            if text is not None:
                return _make_mail(entry, text)
        raise ToolError("mail.unknown-mail", f"the mail {id!r} has just been moved or deleted")

    def attachment(self, id: str, name: str) -> bytes:
        """The bytes of one attachment."""
        entry = self._find_entry(id)
        if entry.stored.size > MAX_MAIL:
            raise ToolError("mail.too-large", f"the mail {id!r} has {entry.stored.size} bytes", expected=f"{MAX_MAIL}")
        try:
            raw = entry.stored.read_all()
        except OSError as error:
            raise ToolError(
                "mail.unreadable", f"the mail {entry.stored.key!r} cannot be read: {error.strerror}"
            ) from None
        attachments, content = _ATTACHMENT_PARSER.with_body(raw, what=f"the mail {id!r}", name=name)
        # The name becomes a file name, so it must have no path in it. The parser's reply is untrusted and not enough.
        if name not in attachments or not is_bare_name(name):
            raise ToolError(
                "mail.unknown-attachment",
                f"the mail {id!r} has no attachment {name!r}",
                expected=", ".join(map(repr, attachments[:20])) or "a mail with attachments",
                nearest=nearest_name(name, attachments[:200]),
            )
        return content

    def find_stored(self, id: str) -> StoredMail:
        """Where one mail lies on disk."""
        return self._find_entry(id).stored

    def writable_root(self) -> Path:
        """The folder that folders of mail are made in; an error if the mailbox is a single file."""
        root = self._mailbox_root()
        if root.is_file():
            raise ToolError(
                "mail.in-mbox",
                f"the mailbox is the mbox file {root.name!r}, which has no folders and is never changed",
                fix="Use a Maildir, or do it in your mail program.",
            )
        return root

    def _find_entry(self, id: str) -> MailEntry:
        entries = self._entries("")
        wanted = id.strip("<> ")
        by_id = [entry for entry in entries if wanted in (entry.id, entry.stored.key)]
        if by_id:
            return by_id[0]
        by_message_id = [entry for entry in entries if entry.headers.message_id == wanted and wanted]
        if len(by_message_id) == 1:
            return by_message_id[0]
        if by_message_id:
            ids = " or ".join(repr(entry.id) for entry in by_message_id)
            raise ToolError("mail.ambiguous-id", f"several mails call themselves {id!r}", expected=ids)
        raise ToolError(
            "mail.unknown-mail",
            f"there is no mail with the id {id!r}",
            nearest=nearest_name(wanted, (entry.id for entry in entries)),
            fix="Take the id from search_mail.",
        )

    def _entries(self, folder: str) -> list[MailEntry]:
        boxes = list_mailboxes(self._mailbox_root())
        chosen = {name for name, _ in boxes if _is_in_folder(name, folder)}
        if not chosen and folder:
            names = [name for name, _ in boxes]
            raise ToolError(
                "mail.unknown-folder",
                f"there is no mail folder {folder!r}",
                expected=", ".join(map(repr, names)),
                nearest=nearest_name(folder, names),
            )
        known = self._with_headers(self._list_stored(boxes))
        # All folders count for the ids, also those that are not searched.
        ids = mail_ids([(item.key, headers.message_id) for item, headers in known])
        return [
            _make_entry(item, headers, id)
            for (item, headers), id in zip(known, ids, strict=True)
            if item.folder in chosen
        ]

    @property
    def root(self) -> Path | None:
        """Where the mail lies, or None if there is none."""
        try:
            return self._mailbox_root()
        except ToolError:
            return None

    def list_stored(self) -> list[StoredMail]:
        """All mails of all folders, as the mailbox records them; nothing is parsed."""
        with self._lock:
            return self._list_stored(list_mailboxes(self._mailbox_root()))

    def read_stored(self, items: list[StoredMail]) -> Iterator[tuple[StoredMail, MailHeaders, datetime, str | None]]:
        """These mails with headers, date and body; None for a body that cannot be parsed within the limits.

        Mails that have disappeared meanwhile are left out.
        """
        for item, headers in self._with_headers(items):
            if (text := self._load_text(item)) is not None:
                yield item, headers, headers.date or _fallback_date(item), None if text.problem else text.body

    def problem(self) -> ToolError | None:
        """Why there is no mailbox; None if there is one."""
        try:
            self._mailbox_root()
        except ToolError as error:
            return error
        return None

    def _mailbox_root(self) -> Path:
        if self.folder is not None:
            root = _find_readable(self.folders, self.folder)
            if root is None or not is_mailbox(root):
                raise ToolError(
                    "mail.no-folder",
                    f"there is no Maildir or mbox at {self.folder!r}",
                    fix="Set `folder` under [toolbox.mail] in bicameral.toml.",
                )
            return root
        for name in _USUAL_PLACES:
            root = _find_readable(self.folders, name)
            if root is not None and is_mailbox(root):
                return root
        raise ToolError(
            "mail.no-folder",
            f"there is no mail here: looked for {', '.join(_USUAL_PLACES)}",
            fix="Set `folder` under [toolbox.mail] in bicameral.toml to a Maildir folder or an mbox file.",
        )

    def _list_stored(self, boxes: Iterable[tuple[str, Path]]) -> list[StoredMail]:
        mails: list[StoredMail] = []
        for name, path in boxes:
            if not path.is_file():
                mails.extend(list_stored_mails(name, path))
                continue
            facts = path.stat()
            stamp = (facts.st_mtime_ns, facts.st_size)
            cached = self._boxes.get(path)
            if cached is None or cached[0] != stamp:
                cached = self._boxes[path] = (stamp, list_stored_mails(name, path))
            mails.extend(cached[1])
        return mails

    def _with_headers(self, items: list[StoredMail]) -> list[tuple[StoredMail, MailHeaders]]:
        """The mails that still exist, with their headers; unknown headers are parsed in batches."""
        for batch in _read_batches(item for item in items if self._cached_headers(item) is None):
            try:
                parsed = _parse_headers(batch)
            except ParseLimitError:
                # One mail of the batch exceeds a limit. Each is parsed alone, so that only that one is lost.
                parsed = [_parse_one_header(item, raw) for item, raw in batch]
            for (item, _), headers in zip(batch, parsed, strict=True):
                self._headers[item.key] = (item.stamp, headers)
        return [(item, headers) for item in items if (headers := self._cached_headers(item))]

    def _cached_headers(self, item: StoredMail) -> MailHeaders | None:
        cached = self._headers.get(item.key)
        return cached[1] if cached is not None and cached[0] == item.stamp else None

    def _load_text(self, item: StoredMail) -> _MailText | None:
        """The text of a mail, or None if it has disappeared meanwhile."""
        # The lock protects the cache only. It is not held during parsing, which a hostile mail can make slow.
        with self._lock:
            cached = self._texts.get(item.key)
            if cached is not None and cached[0] == item.stamp:
                self._texts.move_to_end(item.key)
                return cached[1]
        try:
            raw = item.read_all()
        except OSError:
            return None
        try:
            parser = _CONTENT_PARSER if len(raw) <= _LARGE_MAIL else _LARGE_CONTENT_PARSER
            content = parser(raw, what=f"the mail {item.key!r}")
            text = _MailText(content.body, content.attachments)
        except ParseLimitError as problem:
            text = _MailText(f"[{problem.message}]", (), problem)
        with self._lock:
            self._cache_text(item, text)
        return text

    def _cache_text(self, item: StoredMail, text: _MailText) -> None:
        replaced = self._texts.pop(item.key, None)
        self._texts[item.key] = (item.stamp, text)
        self._cached_characters += len(text.body) - (0 if replaced is None else len(replaced[1].body))
        while self._cached_characters > _MAX_CACHED_TEXT:
            _, (_, dropped) = self._texts.popitem(last=False)
            self._cached_characters -= len(dropped.body)


def _make_mail(entry: MailEntry, text: _MailText) -> Mail:
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


def _read_batches(items: Iterable[StoredMail]) -> Iterator[list[tuple[StoredMail, bytes]]]:
    """The heads of mails in batches; mails that have disappeared are left out."""
    batch: list[tuple[StoredMail, bytes]] = []
    size = 0
    for item in items:
        try:
            batch.append((item, item.read_head()))
        except OSError:
            continue
        size += len(batch[-1][1])
        if len(batch) >= _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _parse_headers(batch: list[tuple[StoredMail, bytes]]) -> list[MailHeaders]:
    raws = [raw for _, raw in batch]
    headers = _HEADERS_PARSER(b"".join(raws), what=f"{len(batch)} mails", sizes=list(map(len, raws)))
    # The reply is untrusted: the headers of one mail must not be taken for those of another.
    if len(headers) != len(batch):
        raise ToolError("tools.unreadable", "the parser of mails replied with something else than it should")
    return headers


def _parse_one_header(item: StoredMail, raw: bytes) -> MailHeaders:
    try:
        return _parse_headers([(item, raw)])[0]
    except ParseLimitError as problem:
        return MailHeaders("", "", "", (), (), f"[{problem.message}]", None, read=False)


def is_bare_name(name: str) -> bool:
    """Whether this is a file name without a path to another folder."""
    return name not in ("", ".", "..") and not any(mark in name for mark in "/\\\0") and name.isprintable()


def _find_readable(folders: Folders, path: str) -> Path | None:
    try:
        return folders.resolve_readable(path)
    except ToolError as error:
        if error.code == "files.missing":
            return None
        raise


def has_words(text: str, words: str) -> bool:
    """Whether every word occurs in the text, in any case."""
    folded = text.casefold()
    return all(word in folded for word in words.casefold().split())


def _is_in_folder(name: str, folder: str) -> bool:
    wanted, own = folder.strip("/").casefold(), name.casefold()
    return not wanted or own == wanted or own.startswith(f"{wanted}/") or own.endswith(f"/{wanted}")


def mail_ids(known: Sequence[tuple[str, str]]) -> list[str]:
    """The ids of all mails of a mailbox, from their keys and Message-IDs.

    The sender chooses the Message-ID. One that occurs twice, or equals the key of another mail, is not used as an id.
    """
    uses = Counter(message_id for _, message_id in known)
    uses.update(key for key, _ in known)
    return [_hash_message_id(name) if name and uses[name] == 1 else key for key, name in known]


def _make_entry(item: StoredMail, headers: MailHeaders, id: str) -> MailEntry:
    unread = not headers.read if item.unread is None else item.unread
    return MailEntry(item, headers, id, headers.date or _fallback_date(item), unread)


def _hash_message_id(message_id: str) -> str:
    """An id that stays the same when the mail is moved, and contains no text of the sender."""
    return hashlib.sha256(message_id.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _fallback_date(item: StoredMail) -> datetime:
    if not item.envelope:
        return datetime.fromtimestamp(item.modified // 1_000_000_000)
    _, _, sent = item.envelope.decode("ascii", "replace").removeprefix("From ").strip().partition(" ")
    return parse_local_date(sent) or datetime.fromtimestamp(0)
