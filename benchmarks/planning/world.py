"""A temporary world laid out from generated data: files, mail, a calendar, a website and an SMTP sink."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from email.message import EmailMessage
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from .data import ME, NOW, SEED, Data, Entry, Letter, Side
from .generate import generate
from .servers import MailSink, Website


@dataclass(frozen=True, slots=True)
class Event:
    """An event as it stands in the calendar file, in local time."""

    id: str
    title: str
    start: datetime
    end: datetime
    location: str

    @property
    def minutes(self) -> int:
        return round((self.end - self.start).total_seconds() / 60)


class World:
    """A context manager: the world exists inside the `with` and is gone after it.

    Args:
        side: Which of the two worlds.
        seed: What its contents are drawn with.
        port: The port of its website, if it is free; a request that holds an address keeps it in both worlds so.
        data: Other contents than the generated ones.

    Example:
        >>> with World("b") as world:
        ...     print((world.folder / "todo.txt").read_text())
    """

    def __init__(self, side: Side = "a", seed: int = SEED, port: int = 0, data: Data | None = None) -> None:
        self.now = NOW
        self.data: Data = data or generate(side, seed)
        self._port = port
        self._stack = ExitStack()

    def __enter__(self) -> World:
        with ExitStack() as stack:
            self.root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="world-"))).resolve()
            self.folder = self.root / "files"
            self.maildir = self.root / "mail"
            self.calendar = self.root / "calendar" / "calendar.ics"
            _lay_out(self.folder, self.data.files())
            _deliver(self.maildir, self.data.letters)
            self.calendar.parent.mkdir()
            self.calendar.write_text(_calendar_text(self.data.entries), newline="")
            self._sink = stack.enter_context(MailSink())
            _lay_out(self.root / "site", _site_files(self.data))
            self._website = stack.enter_context(Website(self.root / "site", self._port))
            self._before = _contents(self.folder)
            self._elsewhere_before = self._hashes_elsewhere()
            self._events_before = self.events()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stack.close()

    @property
    def site(self) -> str:
        """The website's address without a slash at the end; `{site}` in a request and its reference plan."""
        return self._website.address

    @property
    def port(self) -> int:
        """The website's port."""
        return self._website.port

    @property
    def reads(self) -> tuple[Path, ...]:
        """The folders that tools may read; relative paths start at `folder`, the first of them."""
        return self.folder, self.maildir, self.calendar.parent

    @property
    def writes(self) -> tuple[Path, ...]:
        """The folders that tools may write."""
        return self.folder, self.calendar.parent

    @cached_property
    def settings(self) -> dict[str, dict[str, Any]]:
        """Settings by toolbox, as `bicameral.toml` would hold them."""
        return {
            "mail": {
                "folder": str(self.maildir),
                "address": ME,
                "smtp": {"host": "127.0.0.1", "port": self._sink.port, "tls": "none"},
            },
            "calendar": {"file": str(self.calendar)},
            # As a configuration passes them on.
            "find": {"mail": str(self.maildir), "calendar": str(self.calendar)},
            "web": {"hosts": ["127.0.0.1"]},
        }

    def sent(self) -> list[EmailMessage]:
        """The mails that reached the sink, in order."""
        return self._sink.messages()

    def read(self, path: str) -> str | None:
        """The text of a file in the folder, or None if there is no such file."""
        file = self.folder / path
        return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None

    def before(self, path: str) -> str:
        """The text that a file had at the beginning."""
        return self._before[path].decode()

    def changed(self) -> set[str]:
        """Every file that is new, gone or different, in the folder and anywhere else in the world.

        The calendar is judged by its events; mails count without their flags, since reading one may mark it.
        """
        after, elsewhere = _contents(self.folder), self._hashes_elsewhere()
        return _differing(self._before, after) | {f"<{path}>" for path in _differing(self._elsewhere_before, elsewhere)}

    def _hashes_elsewhere(self) -> dict[str, str]:
        """The hashes of all files outside the folder, apart from the calendar itself."""
        found = {
            str(path.relative_to(self.root)): path
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and self.folder not in path.parents and path != self.calendar
        }
        return {
            name.replace("mail/new/", "mail/cur/").partition(":")[0]: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in found.items()
        }

    def events(self) -> list[Event]:
        """What the calendar file holds now; an empty list if it can no longer be read."""
        return _read_events(self.calendar)

    def added_events(self) -> list[Event]:
        """Events that are new, or are no longer what they were."""
        return [event for event in self.events() if event not in self._events_before]

    def lost_events(self) -> list[Event]:
        """Events that are gone, or are no longer what they were."""
        now = self.events()
        return [event for event in self._events_before if event not in now]


def _lay_out(folder: Path, files: Mapping[str, str]) -> None:
    written = (NOW - timedelta(days=8)).timestamp()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        os.utime(path, (written, written))


def _site_files(data: Data) -> dict[str, str]:
    pages = {page.path: page.text for page in data.pages.values()}
    return pages | {f"api/{name}.json": json.dumps(value) for name, value in data.values.items()}


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _deliver(maildir: Path, letters: Sequence[Letter]) -> None:
    for part in ("cur", "new", "tmp"):
        (maildir / part).mkdir(parents=True)
    for number, letter in enumerate(letters, start=1):
        # Read mail lies in `cur` with the flag S; what nobody has seen yet lies in `new`.
        name = f"{int(letter.date.timestamp())}.{number:03}.example"
        place = maildir / "new" / name if letter.unread else maildir / "cur" / f"{name}:2,S"
        place.write_bytes(_message(letter, number).as_bytes())


def _message(letter: Letter, number: int) -> EmailMessage:
    message = EmailMessage()
    message["From"] = f"{letter.name} <{letter.sender}>"
    message["To"] = ME
    message["Subject"] = letter.subject
    message["Date"] = letter.date.astimezone()
    message["Message-ID"] = f"<{number:03}@{letter.sender.partition('@')[2]}>"
    message.set_content(letter.body + "\n")
    for name, text in letter.attachments:
        message.add_attachment(text, subtype=name.rpartition(".")[2], filename=name)
    if letter.attachments:
        message.set_boundary(f"part-of-{number:03}")  # otherwise random, and no two worlds would be the same
    return message


def _calendar_text(entries: Sequence[Entry]) -> str:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//example//planning world//EN"]
    for number, entry in enumerate(entries, start=1):
        lines += [
            "BEGIN:VEVENT",
            f"UID:event-{number:02}@example.com",
            "DTSTAMP:20260301T080000Z",
            f"DTSTART:{entry.start:%Y%m%dT%H%M%S}",
            f"DTEND:{entry.end:%Y%m%dT%H%M%S}",
            f"SUMMARY:{entry.title}",
            *([f"LOCATION:{entry.location}"] if entry.location else []),
            "END:VEVENT",
        ]
    return "\r\n".join([*lines, "END:VCALENDAR", ""])


def _read_events(file: Path) -> list[Event]:
    from icalendar import Calendar, Event as Component

    try:
        calendar = Calendar.from_ical(file.read_bytes())
    except (OSError, ValueError):
        return []
    return [
        Event(
            id=str(component.get("UID", "")),
            title=str(component.get("SUMMARY", "")),
            start=_local(component.start),
            end=_local(component.end),
            location=str(component.get("LOCATION", "")),
        )
        for component in calendar.subcomponents
        if isinstance(component, Component)
    ]


def _local(moment: date) -> datetime:
    """Local time without a zone, whatever way the file writes it; a whole day starts at midnight."""
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day)
    return moment.astimezone().replace(tzinfo=None) if moment.tzinfo else moment
