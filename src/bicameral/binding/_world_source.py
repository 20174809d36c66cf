"""Candidates from the world: what the tools of a registry read, as a plan would read it with them.

Every candidate comes from a call of a tool, so the folders, limits and parsers of the tools apply, no link leads out,
and the labels are those of the tool's result. Where no name fits, files are known by what is inside: headings of texts,
and words in the cells of tables. Nothing here is read by a privileged model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, cast

from bicameral.binding._candidates import BIND_STEP, JSON_TABLES, Candidate, Kind, SourceLimits
from bicameral.binding._people import (
    CARD_ENDING,
    FOUND_CONTACTS,
    NOTE_ENDINGS,
    contacts_in_note,
    contacts_in_rows,
    contacts_in_vcards,
)
from bicameral.binding._words import calendar_words, words_of
from bicameral.columns import Contact
from bicameral.errors import BindError, ToolError, nearest_name
from bicameral.labels import NOTHING, Label, LabelTree, join
from bicameral.tools import SHEET_SUFFIXES, TABLE_SUFFIXES, Folders, Registry

TEXT_ENDINGS = (".md", ".txt", ".rst", ".org")
_NOTHING_THERE = frozenset({"mail.no-folder", "calendar.no-file", "files.missing"})
_UNKNOWN_SIZE = 1 << 62
"""Of a listing that does not say how large files are: too large to be looked through."""
_MAILDIR_PARTS = frozenset({"cur", "new", "tmp"})
_HEADING = re.compile(r"(?:#{1,6}|=+|\*+)\s+\S")
_COUNTED_ROWS = 2_000
_MOST_CELL_WORDS = 2_000
_LONGEST_CELL = 80
_COMMON_ROWS = 2
_COMMON_SHARE = 20
"""A word is common in a table if it stands in two rows at least, and in one of so many."""


@dataclass(frozen=True, slots=True)
class WorldSource:
    """The world behind the tools of a registry.

    A kind whose tool is not in the registry has no candidates: a plan could not use them either.

    Args:
        registry: The tools; `list_files`, `read_csv`, `read_json`, `read_text`, `search_mail` and `search_events` are
            used.
        folders: The folders of the tools. With them, empty folders and folders outside the base are offered, and files
            in trusted folders are the user's own.
        contacts: The paths of tables or vCard files with the people that the user knows; one that is not there is left
            out. Other files with people are found by what is in them.
        today: The day for words such as "tomorrow".
        limits: How much is looked at.

    Example:
        >>> source = WorldSource(registry, folders=surroundings.folders, contacts=["contacts.csv"])
    """

    registry: Registry
    folders: Folders | None = None
    contacts: Sequence[str] = ()
    today: date | None = None
    limits: SourceLimits = field(default_factory=SourceLimits)

    async def candidates(self, kind: Kind, within: tuple[str, ...] = ()) -> Sequence[Candidate]:
        """Everything of a kind; an error if there is too much to look at, or no table to look in."""
        match kind:
            case "file":
                return await self._files(within)
            case "table":
                endings = (*TABLE_SUFFIXES, *SHEET_SUFFIXES, *JSON_TABLES)
                files = await self._files(within)
                return [replace(each, kind=kind) for each in files if str(each.value).lower().endswith(endings)]
            case "folder":
                return await self._folders(within)
            case "column":
                rows, label = await self._rows(_required(within, 1, kind)[0])
                names = dict.fromkeys(name for row in rows for name in row)
                return [Candidate("column", name, (name,), label=label) for name in names]
            case "value":
                return await self._values(*_required(within, 2, kind)[:2])
            case "person":
                return await self._people()
            case "mail":
                return await self._mails()
            case "event":
                return await self._events()

    async def describe(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Files with their headings or columns; of too many, none, since those left out might be meant as well."""
        files = [each for each in candidates if each.kind in ("file", "table")]
        if not files or len(files) > self.limits.opened:
            return candidates
        return [await self._described(each) if each in files else each for each in candidates]

    # Files and folders

    async def _files(self, within: tuple[str, ...]) -> list[Candidate]:
        return [file for file, _ in await self._sized_files(within)]

    async def _sized_files(self, within: tuple[str, ...]) -> list[tuple[Candidate, int]]:
        """The files with their sizes in bytes."""
        found: dict[str, tuple[Candidate, int]] = {}
        for root in within[:1] or self._roots():
            listed, labels = await self._call("list_files", folder=root, recursive=True)
            label = join(labels.item.field("path"), labels.own)
            parents = {PurePosixPath(each["path"]).parent for each in listed}
            for each in listed:
                path = PurePosixPath(each["path"])
                # The files of a Maildir are mails, and their names are the mail server's.
                if path.parent.name in _MAILDIR_PARTS and _is_maildir(path.parent.parent, parents):
                    continue
                candidate = Candidate(
                    "file",
                    each["path"],
                    (path.name,),
                    _folder_names(path.parent),
                    label,
                    each["modified"],
                )
                # The first call that lists a file labels it: trusted folders come first.
                found.setdefault(each["path"], (candidate, each.get("size", _UNKNOWN_SIZE)))
            self._check_count(len(found), "files")
        return list(found.values())

    async def _folders(self, within: tuple[str, ...]) -> list[Candidate]:
        found: dict[str, Candidate] = {}
        for file in await self._files(within):
            for parent in PurePosixPath(str(file.value)).parents:
                if str(parent) not in (".", "/"):
                    found.setdefault(str(parent), _folder(parent, file.label))
        tool = self.registry.get("list_files")
        if self.folders is not None and tool is not None:
            for root in within[:1] or self._roots():
                label = tool.result_labels(None, BIND_STEP, arguments={"folder": root}).flat
                # Empty folders: no file lists them.
                # What cannot be listed was noted when its files were.
                for folder in self.folders.list_folders(root, skip=lambda _: None):
                    shown = PurePosixPath(self.folders.display_path(folder))
                    if not any(part.startswith(".") or part in _MAILDIR_PARTS for part in shown.parts):
                        found.setdefault(str(shown), _folder(shown, label))
                    self._check_count(len(found), "folders")
        return list(found.values())

    def _roots(self) -> list[str]:
        if self.folders is None:
            return ["."]
        # Trusted folders first: what is listed there is the user's own. One that does not exist has nothing.
        roots = [root for root in (*self.folders.trusted, *self.folders.read) if root.is_dir()]
        return list(dict.fromkeys(self.folders.display_path(root) for root in roots))

    async def _described(self, candidate: Candidate) -> Candidate:
        path = str(candidate.value)
        try:
            if (
                self.folders is not None
                and self.folders.resolve_readable(path).stat().st_size > self.limits.opened_bytes
            ):
                return candidate
            if path.lower().endswith((*TABLE_SUFFIXES, *SHEET_SUFFIXES, *JSON_TABLES)):
                rows, label = await self._rows(path)
                contents = tuple(dict.fromkeys(name for row in rows[:50] for name in row))[:60]
                cells, rare = cell_words(rows)
            elif path.lower().endswith(TEXT_ENDINGS):
                text, labels = await self._call("read_text", path=path)
                label, contents, cells, rare = labels.flat, headings(text), (), ()
            else:
                return candidate
        except (ToolError, OSError):
            # A file that cannot be read has a name only.
            return candidate
        label = join(candidate.label, label)
        return replace(candidate, contents=contents, cells=cells, rare_cells=rare, label=label)

    def _check_count(self, count: int, what: str) -> None:
        if count > self.limits.files:
            raise BindError(
                "bind.too-many",
                f"there are more than {self.limits.files:,} {what} to choose from",
                fix="Name the folder, or configure narrower folders.",
            )

    # Tables

    async def _rows(self, path: str) -> tuple[list[dict[str, Any]], Label]:
        name = "read_json" if path.lower().endswith(JSON_TABLES) else "read_csv"
        content, labels = await self._call(name, path=path)
        if not isinstance(content, list):
            return [], labels.flat
        rows = [cast("dict[str, Any]", row) for row in cast("list[object]", content) if isinstance(row, dict)]
        return rows, labels.flat

    async def _values(self, path: str, column: str) -> list[Candidate]:
        rows, label = await self._rows(path)
        cells = (row.get(column) for row in rows)
        plain = [cell for cell in cells if isinstance(cell, str | int | float) and cell != ""]
        # Keyed by type, too: the number 1 and true are equal in Python.
        distinct = {(type(cell), cell): cell for cell in plain}
        if rows and not any(column in row for row in rows):
            names = list(dict.fromkeys(name for row in rows for name in row))
            raise BindError("bind.no-column", "the table has no such column", nearest=nearest_name(column, names))
        if len(distinct) > self.limits.cells:
            raise BindError(
                "bind.too-many",
                f"the column has more than {self.limits.cells:,} different cells",
                fix="Compare with the words themselves instead of a cell.",
            )
        return [Candidate("value", cell, (_cell_text(cell),), label=label) for cell in distinct.values()]

    # People, mail and events

    async def _people(self) -> list[Candidate]:
        people: dict[str, Candidate] = {}
        found = [*await self._contacts(), *await self._correspondents(), *await self._attendees()]
        for person in found:
            key = str(person.value).casefold()
            known = people.get(key)
            if known is None:
                people[key] = person
            elif not known.label.trusted or person.label.trusted:
                names = tuple(dict.fromkeys((*known.names, *person.names)))
                people[key] = replace(known, names=names, label=join(known.label, person.label))
            # Otherwise a name from a mail would be added to the user's own contact, whose label it does not have.
        return list(people.values())

    async def _contacts(self) -> list[Candidate]:
        found: list[Candidate] = []
        for path in self.contacts:
            try:
                found += await self._contacts_in(path, named=True)
            except ToolError as error:
                if error.code not in _NOTHING_THERE:
                    raise
        for path in await self._contact_files():
            try:
                found += await self._contacts_in(path)
            except (ToolError, OSError):
                # Nobody said that people are in it, and a broken table must not keep everybody from being found.
                continue
        return found

    async def _contact_files(self) -> list[str]:
        """The files besides the configured ones that may have people in them, within the limits."""
        try:
            files = await self._sized_files(())
        except BindError:
            # With so many files only what is named is looked through; mail and calendar are still asked.
            return []
        endings = (*TABLE_SUFFIXES, *JSON_TABLES, CARD_ENDING, *NOTE_ENDINGS)
        known = {str(PurePosixPath(path)) for path in self.contacts}
        usable = [
            (file, size)
            for file, size in files
            if size <= self.limits.opened_bytes
            and str(file.value).lower().endswith(endings)
            and file.value not in known
        ]
        # Those in trusted folders first, so that no number of other files keeps the user's own from being read.
        usable.sort(key=lambda each: (not each[0].label.trusted, -_moment(each[0].modified)))
        chosen: list[str] = []
        total = 0
        for file, size in usable[: self.limits.people_files]:
            total += size
            if total > self.limits.people_bytes:
                break
            chosen.append(str(file.value))
        return chosen

    async def _contacts_in(self, path: str, *, named: bool = False) -> list[Candidate]:
        contacts, label = await self._read_contacts(path, named=named)
        return [_person(each.names, address, label) for each in contacts for address in each.addresses]

    async def _read_contacts(self, path: str, *, named: bool) -> tuple[tuple[Contact, ...], Label]:
        ending = path.lower()
        is_table = not ending.endswith((CARD_ENDING, *NOTE_ENDINGS))
        reader = "read_text" if not is_table else "read_json" if ending.endswith(JSON_TABLES) else "read_csv"
        tool = self.registry.get(reader)
        if tool is None:
            return (), NOTHING.flat
        bound = tool.bind({"path": path})
        before = tool.result_labels(None, BIND_STEP, arguments=bound).flat
        file = None if self.folders is None or named else self.folders.resolve_readable(path)
        info = None if file is None else file.stat()
        if file is not None and info is not None and (kept := FOUND_CONTACTS.get(str(file), info)) is not None:
            return kept, before
        if is_table:
            rows, label = await self._rows(path)
            contacts = contacts_in_rows(rows, named=named)
        else:
            text, labels = await self._call(reader, path=path)
            label = labels.flat
            contacts = contacts_in_vcards(text) if ending.endswith(CARD_ENDING) else contacts_in_note(text)
        # A label that depends on what was read cannot be made anew without reading.
        if file is not None and info is not None and label == before:
            FOUND_CONTACTS.store(str(file), info, contacts)
        return contacts, label

    async def _correspondents(self) -> list[Candidate]:
        mails, labels = await self._call("search_mail", limit=self.limits.mails)
        label = labels.item.flat
        return [
            _person((name,) if name else (), address, label)
            for mail in mails
            for name, address in (
                (mail["sender_name"], mail["sender"]),
                *(("", to) for to in (*mail["to"], *mail["cc"])),
            )
            if "@" in address
        ]

    async def _attendees(self) -> list[Candidate]:
        events, labels = await self._call("search_events", text="")
        label = labels.item.flat
        listed = dict.fromkeys(attendee for event in events for attendee in event["attendees"])
        return [_person((), each, label) for each in listed if each.strip()]

    async def _mails(self) -> list[Candidate]:
        mails, labels = await self._call("search_mail", limit=self.limits.mails)
        # The id is the service's own, but it is chosen by a subject and a sender that anybody may write.
        label = join(labels.own, labels.item.flat)
        return [
            Candidate(
                "mail",
                mail["id"],
                (mail["subject"],),
                (mail["sender_name"], mail["sender"], *self._day_words(mail["date"])),
                label,
                mail["date"],
            )
            for mail in mails
        ]

    async def _events(self) -> list[Candidate]:
        events, labels = await self._call("search_events", text="")
        label = join(labels.own, labels.item.flat)
        return [
            Candidate(
                "event",
                event["id"],
                (event["title"],),
                (event["location"], *event["attendees"], *self._day_words(event["start"])),
                label,
                event["start"],
            )
            for event in events
        ]

    def _day_words(self, moment: datetime) -> tuple[str, ...]:
        words = calendar_words(moment.year, moment.month, moment.day, moment.weekday())
        if self.today is None:
            return words
        near = {timedelta(0): "today", timedelta(1): "tomorrow", timedelta(-1): "yesterday"}
        relative = near.get(moment.date() - self.today)
        return (*words, relative) if relative else words

    async def _call(self, name: str, **arguments: Any) -> tuple[Any, LabelTree]:
        """The result of a tool with its labels; an empty list if there is no such tool, mailbox or calendar."""
        tool = self.registry.get(name)
        if tool is None:
            return [], NOTHING
        try:
            bound = tool.bind(arguments)
            value = await tool.call(bound)
        except ToolError as error:
            # Only what is not there at all is left out. With a mailbox that cannot be read, the one person found
            # elsewhere might not be the only one.
            if error.code in _NOTHING_THERE and name in ("search_mail", "search_events", "list_files"):
                return [], NOTHING
            raise
        return value, tool.result_labels(value, BIND_STEP, arguments=bound)


def _required(within: tuple[str, ...], count: int, kind: Kind) -> tuple[str, ...]:
    if len(within) < count:
        needed = "the path of its table" if count == 1 else "the path of its table and its column"
        raise BindError("bind.no-place", f"a {kind} is looked up in a table", expected=f"`within` with {needed}")
    return within


def _folder_names(folder: PurePosixPath) -> tuple[str, ...]:
    return tuple(part for part in folder.parts if part not in (".", "/"))


def _folder(path: PurePosixPath, label: Label) -> Candidate:
    return Candidate("folder", str(path), (path.name,), _folder_names(path.parent), label)


def _is_maildir(folder: PurePosixPath, parents: set[PurePosixPath]) -> bool:
    # An empty `new` has no file: one of them is enough beside names that look like a server's.
    return any(folder / part in parents for part in ("cur", "new"))


def _moment(modified: datetime | None) -> float:
    return modified.timestamp() if modified is not None else 0.0


def _cell_text(cell: object) -> str:
    return ("true" if cell else "false") if isinstance(cell, bool) else str(cell)


def _person(names: Sequence[str], address: str, label: Label) -> Candidate:
    known = [name.strip() for name in names if name.strip()]
    local, _, domain = address.partition("@")
    # The local part names a person as the display name does: kim.holt@ is Kim Holt. The domain only describes.
    return Candidate("person", address, tuple(dict.fromkeys((*known, local))), (domain,) if domain else (), label)


def cell_words(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words in the cells of a table: those that many rows have, and those that few have."""
    counted: Counter[str] = Counter()
    rows = rows[:_COUNTED_ROWS]
    for row in rows:
        texts = (cell for cell in row.values() if isinstance(cell, str) and len(cell) <= _LONGEST_CELL)
        # A number says nothing of what a table is about, and a word of one or two letters little.
        counted.update({word for text in texts for word in words_of(text) if len(word) > 2 and not word.isdecimal()})
    enough = max(_COMMON_ROWS, len(rows) // _COMMON_SHARE)
    words = counted.most_common(_MOST_CELL_WORDS)
    return tuple(word for word, rows in words if rows >= enough), tuple(word for word, rows in words if rows < enough)


def headings(text: str) -> tuple[str, ...]:
    """The first line of a text, and its headings."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line.lstrip("#=* ").strip() for line in lines if _HEADING.match(line)]
    return tuple(each[:120] for each in (*lines[:1], *marked))[:20]
