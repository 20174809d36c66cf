"""What `find` searches: files, mails and events as items of text, discovered by their stamps and read when they change.

Discovery looks at names, times and sizes alone. Everything that is left out (hidden, a link, binary, too large,
unreadable, beyond the limits) is counted, so that an answer can say what was not searched.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, cast

from bicameral.cache import FOLDER_KINDS, user_folder
from bicameral.columns import find_contacts
from bicameral.errors import BicameralError, ToolError
from bicameral.parsing import SHORT_TEXT, InvalidJson, ParseLimits, Parser, read_json
from bicameral.toolboxes._contacts import Card, find_address, read_vcards, row_person
from bicameral.toolboxes._documents import Document, can_read, read_document
from bicameral.toolboxes._mail_files import StoredMail, list_mailboxes
from bicameral.toolboxes._mailbox import Mailbox
from bicameral.toolboxes._table_cells import cell_as_text
from bicameral.toolboxes._table_files import read_csv_rows
from bicameral.toolboxes._text import clean_text, decode_bytes, document_kind, one_line
from bicameral.toolboxes.calendar import CalendarSettings, Event, searchable_events
from bicameral.tools import Folders, Surroundings

ItemKind = Literal["note", "page", "document", "table", "contact", "mail", "event"]
PlaceKind = Literal["file", "mail", "calendar"]
SkipReason = Literal["hidden", "link", "binary", "document", "large", "unreadable", "limit", "mail"]
MISSED: tuple[SkipReason, ...] = ("document", "large", "unreadable", "limit", "mail")
"""Reasons for which a text was not searched that a question may be about; a picture or a hidden file is none."""

_TEXT_SUFFIXES = frozenset(
    ".txt .text .md .markdown .mdown .rst .org .adoc .asciidoc .tex .log .ini .cfg .toml .yaml .yml .xml".split()
)
_DOCUMENT_SUFFIXES = frozenset(".pdf .doc .docx .odt .rtf .pages .xls .xlsx .ods .numbers .ppt .pptx .odp".split())
"""Documents. They are text to a person, so that leaving out those that no parser here reads has to be said."""
_DOCUMENT_SECONDS = 45.0
"""How long documents are read before one search, below the time-out of the tools. The others are read by the next."""
_COUNTED_DOCUMENT = 300_000
"""Of the bytes of a document: most are pictures and fonts, which are not searched."""
_PAGE_SUFFIXES = frozenset({".html", ".htm", ".xhtml"})
_SETTLED_NS = 2_000_000_000
"""A file that was changed less than this before it was read may change again without a new time: clocks of file systems
are coarse. Its stamp is not believed, and it is read again next time."""
_MAX_TITLE = 100
_MOST_NAMES = 10
_MAX_COUNTED_MAIL = 100_000
_OCCURRENCES = 3
"""Of one series: these many from today on, and the last one before."""
_LETTER = re.compile(r"[^\W\d_]")
_DAY_IN_NAME = re.compile(r"(?<!\d)(?:19|20)\d\d[-_.]?[01]\d(?:[-_.]?[0-3]\d)?(?!\d)")
_ID_NAME = re.compile(r"(?=.*\d)[0-9a-fA-F_-]{12,}")
_MAILDIR_PARTS = ("cur", "new", "tmp")
_GENERATED = frozenset({"node_modules", "__pycache__", "site-packages"})


@dataclass(frozen=True)
class Item:
    """One thing that can be found. `people` may read it besides the user; `persons` are names with addresses in it."""

    id: str
    kind: ItemKind
    title: str
    day: date | None
    texts: tuple[str, ...]
    people: tuple[str, ...] = ()
    persons: tuple[tuple[str, tuple[str, ...]], ...] = ()
    places: tuple[str, ...] = ()
    """Where each text stands in a document: its page, or its sheet and row."""

    @property
    def own_day(self) -> date | None:
        """The day of a mail or an event. That on which a file was last changed is no day of its text."""
        return self.day if self.kind in ("mail", "event") else None

    @property
    def sender(self) -> str:
        """The name of the sender of a mail, or else the address."""
        if self.kind != "mail":
            return ""
        return (self.persons[0][0] if self.persons else "") or (self.people[0] if self.people else "")


@dataclass(frozen=True)
class ReadSource:
    """What a file, a mail or a calendar contained when it had this stamp."""

    stamp: tuple[int, ...]
    items: tuple[Item, ...] = ()
    skipped: SkipReason | None = None
    more: int = 0
    """Rows of a table beyond the limit."""
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file, a mail or a calendar that was discovered."""

    key: str
    place: PlaceKind
    name: str
    """The path, or the key of the mail."""
    stamp: tuple[int, ...]
    modified: int
    size: int


@dataclass(frozen=True, slots=True)
class Discovery:
    """Everything that is there, the newest first, and how much is left out for which reason."""

    candidates: tuple[Candidate, ...]
    skipped: Mapping[str, int]
    missed: tuple[str, ...] = ()
    """Names of some that were left out and might have been what is asked for."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How much is searched at most; what is beyond is counted.

    Args:
        file_bytes: The largest file.
        document_bytes: The largest document.
        sources: The most files and mails together; the newest are kept.
        total_bytes: Of all of them.
        rows: Of one table.
    """

    file_bytes: int = 2_000_000
    document_bytes: int = 20_000_000
    sources: int = 20_000
    total_bytes: int = 64_000_000
    rows: int = 2_000


class SkippedSources:
    """What is left out, counted by reason, with the first few names of what might have been asked for."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.missed: list[str] = []

    def add(self, reason: SkipReason, name: str) -> None:
        self.counts[reason] += 1
        if reason in MISSED and len(self.missed) < _MOST_NAMES:
            self.missed.append(name)


@dataclass(frozen=True)
class _ReadPage:
    url: str
    title: str
    text: str
    links: list[dict[str, str]]


_PAGE_PARSER: Parser[_ReadPage] = Parser(
    "bicameral.toolboxes._text:read_page", _ReadPage, ParseLimits(cpu=2.0, wall=8.0)
)
_CARD_PARSER: Parser[list[Card]] = Parser(
    "bicameral.toolboxes._contacts:read_vcards", list[Card], ParseLimits(cpu=2.0, wall=8.0)
)


@dataclass(slots=True)
class Sources:
    """The configured folders, mailbox and calendar.

    Args:
        surroundings: The folders that may be read, and the clock.
        places: Which kinds are searched.
        mail: The Maildir or mbox; None looks in the usual places.
        calendar: The calendar's file and time zone.
        contacts: Paths of tables with people; others are found by their columns.
        limits: How much is searched at most.
    """

    surroundings: Surroundings
    places: frozenset[PlaceKind] = frozenset({"file", "mail", "calendar"})
    mail: str | None = None
    calendar: CalendarSettings = field(default_factory=CalendarSettings)
    contacts: tuple[str, ...] = ("contacts.csv",)
    limits: SearchLimits = field(default_factory=SearchLimits)
    _mailbox: Mailbox | None = None

    @property
    def folders(self) -> Folders:
        return self.surroundings.folders

    def owner(self, candidate_place: PlaceKind, name: str) -> Literal["user", "others"]:
        """Who wrote a source: the same answer as reading it with its own tool gives, made anew for each result.

        It is not stored with the index: whoever could write the stored index could otherwise make a text trusted.
        """
        if candidate_place == "mail":
            return "others"
        return "user" if self.folders.is_trusted(name) else "others"

    def discover(self) -> Discovery:
        """Everything that can be searched now; only names, times and sizes are looked at."""
        skipped = SkippedSources()
        root = self._open_mailbox().root if "mail" in self.places else None
        found = [*self._discover_mail(skipped, root), *self._discover_calendar()]
        if "file" in self.places:
            found += self._discover_files(skipped, root)
        unique = {each.key: each for each in found}
        kept: list[Candidate] = []
        total = 0
        for each in sorted(unique.values(), key=lambda each: (-each.modified, each.key)):
            total += min(each.size, _most_counted(each))
            # Once over a limit nothing older gets in, so that what is searched depends on the present state alone.
            if len(kept) < self.limits.sources and total <= self.limits.total_bytes:
                kept.append(each)
            else:
                skipped.add("limit", "a mail" if each.place == "mail" else each.name)
        return Discovery(tuple(kept), dict(skipped.counts), tuple(skipped.missed))

    def _open_mailbox(self) -> Mailbox:
        if self._mailbox is None:
            self._mailbox = Mailbox(self.folders, self.mail)
        return self._mailbox

    def _discover_mail(self, skipped: SkippedSources, root: Path | None) -> Iterator[Candidate]:
        if root is None:
            return
        try:
            stored = self._open_mailbox().list_stored()
        except (ToolError, OSError):
            skipped.add("unreadable", "the mailbox")
            return
        for each in stored:
            yield Candidate(f"mail:{each.key}", "mail", each.key, each.stamp, each.modified, each.size)

    def _discover_calendar(self) -> Iterator[Candidate]:
        if "calendar" not in self.places:
            return
        path = self.calendar.file
        try:
            info = self.folders.resolve_readable(path).stat()
        except (ToolError, OSError):
            return
        # The occurrences of a series depend on the day.
        stamp = (*_file_stamp(info), self.surroundings.now().date().toordinal())
        yield Candidate(f"calendar:{path}", "calendar", path, stamp, info.st_mtime_ns, info.st_size)

    def _discover_files(self, skipped: SkippedSources, mail_root: Path | None) -> Iterator[Candidate]:
        # What another place reads is not read as a file as well: a mail would be found twice, once with raw headers.
        left_out = {*_mail_paths(mail_root), *(user_folder(kind) for kind in FOLDER_KINDS)}
        if "calendar" in self.places:
            with suppress(ToolError):
                left_out.add(self.folders.resolve_readable(self.calendar.file))

        def enter(path: Path) -> bool:
            return (
                path not in left_out
                and not path.name.startswith(".")
                and path.name not in _GENERATED
                and not _is_maildir(path)
            )

        for root in self.folders.read:
            # A folder that is named in the settings is looked into whatever it is called, unless it is mail.
            if not left_out.isdisjoint((root, *root.parents)):
                continue
            if _is_maildir(root) or (root.name in _MAILDIR_PARTS and _is_maildir(root.parent)):
                if root != mail_root:
                    skipped.add("mail", self.folders.display_path(root))
                continue
            if not root.is_dir():
                yield from self._discover_file(root, skipped)
                continue
            for path, info in self.folders.scan_files(str(root), enter=enter):
                if path in left_out or path == mail_root:
                    continue
                name = self.folders.display_path(path)
                if path.name.startswith("."):
                    skipped.add("hidden", name)
                elif info is None:
                    reason = "link" if path.is_symlink() else "mail" if _is_maildir(path) else "unreadable"
                    skipped.add(reason, name)
                elif path.suffix.lower() in _DOCUMENT_SUFFIXES and not _is_searched_document(path):
                    skipped.add("document", name)
                elif info.st_size > self._most_bytes(path):
                    skipped.add("large", name)
                elif info.st_size:
                    yield self._file_candidate(path, info)

    def _discover_file(self, path: Path, skipped: SkippedSources) -> Iterator[Candidate]:
        try:
            info = path.stat()
        except OSError:
            skipped.add("unreadable", self.folders.display_path(path))
            return
        if info.st_size > self._most_bytes(path):
            skipped.add("large", self.folders.display_path(path))
        else:
            yield self._file_candidate(path, info)

    def _most_bytes(self, path: Path) -> int:
        return self.limits.document_bytes if _is_searched_document(path) else self.limits.file_bytes

    def _file_candidate(self, path: Path, info: os.stat_result) -> Candidate:
        name = self.folders.display_path(path)
        return Candidate(f"file:{name}", "file", name, _file_stamp(info), info.st_mtime_ns, info.st_size)

    # Reading

    def read(self, changed: Sequence[Candidate]) -> dict[str, ReadSource]:
        """The contents of these sources; one that has disappeared meanwhile is left out."""
        contents: dict[str, ReadSource] = {}
        mails = {each.name: each for each in changed if each.place == "mail"}
        if mails:
            contents |= self._read_mails(mails)
        until = time.monotonic() + _DOCUMENT_SECONDS
        for each in changed:
            match each.place:
                case "file" if _is_searched_document(Path(each.name)):
                    # Without a stamp, so that it is read the next time.
                    late = time.monotonic() > until
                    contents[each.key] = ReadSource((), skipped="limit") if late else self._read_document(each)
                case "file":
                    contents[each.key] = self._read_file(each)
                case "calendar":
                    contents[each.key] = self._read_calendar(each)
                case "mail":
                    pass
        return contents

    def _read_mails(self, wanted: Mapping[str, Candidate]) -> dict[str, ReadSource]:
        mailbox = self._open_mailbox()
        stored: list[StoredMail] = [each for each in mailbox.list_stored() if each.key in wanted]
        contents: dict[str, ReadSource] = {}
        for item, headers, day, body in mailbox.read_stored(stored):
            people = tuple(dict.fromkeys((headers.sender, *headers.to, *headers.cc)))
            head = [
                f"From: {headers.sender_name} <{headers.sender}>" if headers.sender_name else f"From: {headers.sender}",
                f"To: {', '.join(headers.to[:20])}",
                f"Date: {day:%Y-%m-%d %H:%M}",
            ]
            persons = [(headers.sender_name, (headers.sender,))] if headers.sender else []
            persons += [("", (each,)) for each in (*headers.to, *headers.cc)[:50]]
            text = "\n".join(head) + "\n\n" + (body or "")
            found = Item("", "mail", _short(headers.subject), day.date(), (text,), people, tuple(persons))
            contents[f"mail:{item.key}"] = ReadSource(
                _believed(item.stamp, item.modified),
                (found,),
                "unreadable" if body is None else None,
                message_id=headers.message_id,
            )
        return contents

    def _read_calendar(self, candidate: Candidate) -> ReadSource:
        try:
            events = searchable_events(self.calendar, self.surroundings)
        except ToolError:
            return ReadSource(candidate.stamp, skipped="unreadable")
        today = self.surroundings.now().date()
        series: dict[tuple[object, ...], list[int]] = {}
        for number, event in enumerate(events):
            same = (event.title, event.location, event.description, event.attendees)
            series.setdefault(same, []).append(number)
        kept: set[int] = set()
        for numbers in series.values():
            ordered = sorted(numbers, key=lambda number: events[number].start)
            coming = [number for number in ordered if events[number].end.date() >= today]
            past = [number for number in ordered if events[number].end.date() < today]
            kept.update(coming[:_OCCURRENCES], past[-1:])
        items = tuple(_event_item(events[number]) for number in sorted(kept))
        return ReadSource(_believed(candidate.stamp, candidate.modified), items)

    def _read_file(self, candidate: Candidate) -> ReadSource:
        stamp = _believed(candidate.stamp, candidate.modified)
        try:
            raw = self.folders.read_bytes(candidate.name, max_bytes=self.limits.file_bytes)
        except ToolError as error:
            return ReadSource(stamp, skipped="large" if error.code == "files.too-large" else "unreadable")
        path = Path(candidate.name)
        if _is_binary(raw, path.suffix.lower()):
            return ReadSource(stamp, skipped="document" if raw.startswith(b"%PDF") else "binary")
        try:
            kind, title, texts, persons = self._parse_file(raw, candidate.name)
        except (BicameralError, InvalidJson):
            # What is no table, page or card after all is searched as the text that it is.
            kind, title, texts, persons = "note", "", [decode_bytes(raw)], []
        day = datetime.fromtimestamp(candidate.modified // 1_000_000_000).date()
        more = max(0, len(texts) - self.limits.rows)
        item = Item(
            "", kind, _short(title or _file_title(path)), day, tuple(texts[: self.limits.rows]), (), tuple(persons)
        )
        return ReadSource(stamp, (item,), None, more)

    def _read_document(self, candidate: Candidate) -> ReadSource:
        stamp, path = _believed(candidate.stamp, candidate.modified), Path(candidate.name)
        try:
            raw = self.folders.read_bytes(candidate.name, max_bytes=self.limits.document_bytes)
            document = read_document(raw, candidate.name, scans=False)
        except ToolError as error:
            if error.code == "files.too-large":
                return ReadSource(stamp, skipped="large")
            # What is missing here, and not in the document, may be there the next time.
            lasting = error.code.startswith("documents.") or error.code == "tools.parse-limit"
            return ReadSource(stamp if lasting else (), skipped="document")
        day = datetime.fromtimestamp(candidate.modified // 1_000_000_000).date()
        kind: ItemKind = "table" if document_kind(candidate.name) == "sheets" else "document"
        parts = _document_parts(document)
        kept = parts[: self.limits.rows]
        texts, places = tuple(text for text, _ in kept), tuple(place for _, place in kept)
        item = Item("", kind, _short(_file_title(path)), day, texts, places=places)
        return ReadSource(stamp, (item,), None, len(parts) - len(kept))

    def _parse_file(self, raw: bytes, name: str) -> tuple[ItemKind, str, list[str], list[tuple[str, tuple[str, ...]]]]:
        suffix = Path(name).suffix.lower()
        if suffix in _PAGE_SUFFIXES:
            page = _PAGE_PARSER(raw, what=f"the file {name!r}", url="", kind="text/html", charset=None)
            return "page", page.title, [page.text], []
        if suffix == ".vcf":
            cards = _read_cards(raw, name)
            return "contact", "", [card.text for card in cards], [(card.name, card.addresses) for card in cards]
        text = decode_bytes(raw)
        if suffix in (".csv", ".tsv"):
            rows: list[dict[str, Any]] = read_csv_rows(text, name)
            named = [found for row in rows if (found := row_person(row))] if name in self.contacts else []
            return "table", "", [_row_text(row) for row in rows], named or _table_people(rows)
        if suffix in (".json", ".jsonl", ".ndjson"):
            lines = [text] if suffix == ".json" else [line for line in text.split("\n") if line.strip()]
            values: list[object] = [read_json(line, what=f"the file {name!r}") for line in lines]
            whole = values[0] if suffix == ".json" else values
            records = cast("list[object]", whole) if isinstance(whole, list) else [whole]
            listed = [cast("dict[str, Any]", record) for record in records if isinstance(record, dict)]
            return "table", "", [_value_text(record) for record in records], _table_people(listed)
        return "note", "", [text], []


def _is_searched_document(path: Path) -> bool:
    """Whether this is a document that can be read here; characters in pictures take too long for a search."""
    kind = document_kind(path.name)
    return kind is not None and kind != "picture" and can_read(kind)


def _most_counted(candidate: Candidate) -> int:
    """How many bytes of a source count at most: not all of them are searched."""
    if candidate.place == "mail":
        return _MAX_COUNTED_MAIL
    is_document = candidate.place == "file" and _is_searched_document(Path(candidate.name))
    return _COUNTED_DOCUMENT if is_document else candidate.size


def _document_parts(document: Document) -> list[tuple[str, str]]:
    """The texts of a document with their places: a page, or a row of a sheet."""
    parts: list[tuple[str, str]] = []
    for section in document.sections:
        if section.rows:
            parts += [(row, f"{section.place}, row {number}") for number, row in enumerate(section.rows, 1) if row]
        elif section.text:
            parts.append((section.text, section.place))
    return parts


def _table_people(rows: Sequence[Mapping[str, object]]) -> list[tuple[str, tuple[str, ...]]]:
    """The people of a table that is a list of people by its columns, whatever its name."""
    return [(one_line(contact.names[0]), contact.addresses) for contact in find_contacts(rows)]


def _read_cards(raw: bytes, name: str) -> list[Card]:
    # As with tables: reading takes linear time, so a short file cannot block this process; a long one could, a little.
    if len(raw) <= SHORT_TEXT:
        return [Card(card["name"], tuple(card["addresses"]), card["text"]) for card in read_vcards(raw)]
    return _CARD_PARSER(raw, what=f"the file {name!r}")


def _file_stamp(info: os.stat_result) -> tuple[int, int, int]:
    # The time of the last change of the entry counts, too: a program may set the other time to what it likes.
    return info.st_mtime_ns, info.st_size, info.st_ctime_ns


def _believed(stamp: tuple[int, ...], modified: int) -> tuple[int, ...]:
    return stamp if abs(time.time_ns() - modified) > _SETTLED_NS else ()


def _mail_paths(root: Path | None) -> Iterator[Path]:
    """The files and folders in which a mailbox keeps mails: the folder around them may have notes, too."""
    if root is None:
        return
    for _, path in list_mailboxes(root):
        yield from (path,) if path.is_file() else (path / part for part in _MAILDIR_PARTS)


def _is_maildir(path: Path) -> bool:
    return (path / "cur").is_dir() and (path / "new").is_dir()


def _is_binary(raw: bytes, suffix: str) -> bool:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    if b"\x00" in raw or raw.startswith(b"%PDF"):
        return True
    known = suffix in _TEXT_SUFFIXES or suffix in _PAGE_SUFFIXES or suffix in (".csv", ".tsv", ".json", ".vcf")
    if known:
        return False
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _event_item(event: Event) -> Item:
    when = f"{event.start:%Y-%m-%d}" if event.all_day else f"{event.start:%Y-%m-%d %H:%M} to {event.end:%H:%M}"
    lines = [f"When: {when}"]
    lines += [f"Where: {one_line(event.location)}"] if event.location else []
    lines += [f"With: {', '.join(map(one_line, event.attendees[:50]))}"] if event.attendees else []
    text = "\n".join(lines) + (f"\n\n{event.description}" if event.description else "")
    persons = [
        ("", (address,)) if (address := find_address(each)) else (one_line(each), ()) for each in event.attendees
    ]
    day, readers = event.start.date(), tuple(event.attendees)
    return Item(event.id, "event", _short(event.title), day, (text,), readers, tuple(persons[:50]))


def _row_text(row: Mapping[str, object]) -> str:
    return "; ".join(f"{name}: {cell_as_text(value)}" for name, value in row.items() if value not in (None, ""))


def _value_text(value: object, prefix: str = "", depth: int = 0) -> str:
    """A JSON value as text: `key: value` with the path of each key."""
    if depth > 6:
        return ""
    match value:
        case dict():
            pairs = cast("dict[str, object]", value).items()
            return "; ".join(filter(None, (_value_text(each, f"{prefix}{key}: ", depth + 1) for key, each in pairs)))
        case list():
            return "; ".join(
                filter(None, (_value_text(each, prefix, depth + 1) for each in cast("list[object]", value)))
            )
        case None | "":
            return ""
        case _:
            return f"{prefix}{cell_as_text(value)}"


def _file_title(path: Path) -> str:
    """The name of a file as a heading of its text: without the ending, and nothing if it is only a number or an id."""
    name = path.name if path.name.startswith(".") else path.stem
    return name if _DAY_IN_NAME.search(name) or (_LETTER.search(name) and not _ID_NAME.fullmatch(name)) else ""


def _short(title: str) -> str:
    return one_line(clean_text(title))[:_MAX_TITLE]
