"""The small world in which plans are tried: files, mails and a calendar in a temporary folder.

The tools are the standard ones, described to the planner as everywhere else. Nothing leaves the folder, whatever a
plan of an untried model says: mails are kept instead of sent, and tools that reach the network refuse.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.message import EmailMessage
from pathlib import Path
from types import TracebackType
from typing import Any

from bicameral.config import STANDARD
from bicameral.errors import ToolError
from bicameral.tools import Folders, Registry, Surroundings, Tool, load_toolboxes
from bicameral.trials._cases import WorldEvent, WorldFacts, WorldMail, world_facts


@dataclass(frozen=True, slots=True)
class KeptMail:
    """A mail that a plan wanted to send."""

    to: tuple[str, ...]
    subject: str
    body: str
    attachments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """An event as the calendar has it."""

    title: str
    start: dt.datetime
    minutes: int


class World:
    """A context manager: the world exists inside the `with`, and its folder is removed after it.

    Example:
        >>> with World() as world:
        ...     agent = Agent(world.registry, privileged=model, quarantined=reader, now=world.now)
    """

    def __init__(self, facts: WorldFacts | None = None) -> None:
        self.facts = facts or world_facts()
        self.sent: list[KeptMail] = []

    def __enter__(self) -> World:
        self._folder = tempfile.TemporaryDirectory(prefix="bicameral-trial-")
        root = Path(self._folder.name).resolve()
        self.files, maildir, calendar = root / "files", root / "mail", root / "calendar" / "calendar.ics"
        for name, text in self.facts.files.items():
            path = self.files / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        _deliver(maildir, self.facts.mail, self.facts.me)
        calendar.parent.mkdir()
        calendar.write_text(_calendar_text(self.facts.event), encoding="utf-8", newline="")
        settings: dict[str, Any] = {
            # The port is never used: `send_mail` keeps what it would send.
            "mail": {"folder": str(maildir), "address": self.facts.me, "smtp": {"host": "127.0.0.1", "tls": "none"}},
            "calendar": {"file": str(calendar)},
            "find": {"mail": str(maildir), "calendar": str(calendar)},
        }
        folders = Folders(self.files, (self.files, maildir, calendar.parent), (self.files, calendar.parent))
        self._surroundings = Surroundings(folders, now=lambda: self.now().astimezone(), environment={})
        self._tools = load_toolboxes({name: settings.get(name, {}) for name in STANDARD}, self._surroundings)
        self.registry = Registry(self._confined(tool) for tool in self._tools)
        self._before = self._contents()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._surroundings.close()
        self._folder.cleanup()

    def now(self) -> dt.datetime:
        """The time in the world, which stands still."""
        return self.facts.today

    def changed_files(self) -> frozenset[str]:
        """The files that are new, gone or different."""
        before, after = self._before, self._contents()
        return frozenset(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))

    def read(self, name: str) -> str | None:
        """The text of a file, or None if there is none of this name."""
        content = self._contents().get(name)
        return None if content is None else content.decode("utf-8", errors="replace")

    async def events(self) -> list[CalendarEvent]:
        """What is in the calendar now, as the calendar's own tool reads it."""
        year = self.facts.today.year
        given = {"start": dt.date(year, 1, 1), "end": dt.date(year, 12, 31)}
        found: Any = await self._tools["list_events"].run(given)
        return [_calendar_event(each) for each in found]

    def _contents(self) -> dict[str, bytes]:
        found = {path.relative_to(self.files): path for path in sorted(self.files.rglob("*")) if path.is_file()}
        return {name.as_posix(): path.read_bytes() for name, path in found.items()}

    def _confined(self, tool: Tool) -> Tool:
        if tool.name == "send_mail":
            return replace(tool, run=self._keep_mail)
        # No plan of a model on trial reaches the network: what it asks for would already tell somebody something.
        return replace(tool, run=_refuse) if tool.outbound else tool

    async def _keep_mail(self, given: Mapping[str, Any]) -> None:
        receivers = (*given.get("to", ()), *given.get("cc", ()))
        attachments = tuple(map(str, given.get("attachments", ())))
        self.sent.append(KeptMail(tuple(map(str, receivers)), str(given["subject"]), str(given["body"]), attachments))


async def _refuse(_: Mapping[str, Any]) -> object:
    raise ToolError("web.forbidden-host", "there is no network in a trial")


def _calendar_event(event: Any) -> CalendarEvent:
    start, end = _local(event.start), _local(event.end)
    return CalendarEvent(str(event.title), start, round((end - start).total_seconds() / 60))


def _local(moment: dt.datetime) -> dt.datetime:
    return moment.astimezone().replace(tzinfo=None) if moment.tzinfo else moment


def _deliver(maildir: Path, mails: tuple[WorldMail, ...], me: str) -> None:
    for part in ("cur", "new", "tmp"):
        (maildir / part).mkdir(parents=True)
    for number, mail in enumerate(mails, start=1):
        message = EmailMessage()
        message["From"] = f"{mail.sender} <{mail.address}>"
        message["To"] = me
        message["Subject"] = mail.subject
        message["Date"] = mail.date.astimezone()
        message["Message-ID"] = f"<{number:03}@{mail.address.partition('@')[2]}>"
        message.set_content(mail.body + "\n")
        (maildir / "cur" / f"{int(mail.date.timestamp())}.{number:03}.trial:2,S").write_bytes(message.as_bytes())


def _calendar_text(events: tuple[WorldEvent, ...]) -> str:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//bicameral//trial//EN"]
    for number, event in enumerate(events, start=1):
        end = event.start + dt.timedelta(minutes=event.minutes)
        lines += [
            "BEGIN:VEVENT",
            f"UID:event-{number:02}@trial.example",
            f"DTSTAMP:{event.start:%Y%m%dT%H%M%S}Z",
            f"DTSTART:{event.start:%Y%m%dT%H%M%S}",
            f"DTEND:{end:%Y%m%dT%H%M%S}",
            f"SUMMARY:{event.title}",
            *([f"LOCATION:{event.place}"] if event.place else []),
            "END:VEVENT",
        ]
    return "\r\n".join([*lines, "END:VCALENDAR", ""])
