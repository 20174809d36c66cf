"""The calendar tools."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated

from bicameral.errors import Place, ToolError
from bicameral.labels import Trust
from bicameral.tools import Origin, Participants, Surroundings, Tool, Toolbox, tool
from bicameral.types import Id

from ._changes import Changes, added, changed, deleted, find
from ._document import EMPTY, Document, read_document
from ._free import free_slots
from ._occurrences import Occurrence, occurrence_of, occurrences
from ._records import Event, Slot
from ._settings import CalendarSettings

if TYPE_CHECKING:
    from icalendar import Event as Component

_LONGEST_RANGE = timedelta(days=3660)
_LONGEST_MINUTES = 366 * 24 * 60
_SERIES_AHEAD = timedelta(days=366)

# Whoever sends an invitation writes all of the event, down to its id, and the file does not tell who that was. So an
# event is a stranger's, unless the file lies in a folder in which nobody but the user writes.
_READERS = Participants(("attendees",))


@dataclass(slots=True)
class _Calendar:
    """The file of the settings, read again only when its bytes have changed."""

    settings: CalendarSettings
    surroundings: Surroundings
    _raw: bytes | None = None
    _document: Document | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, *, or_new: bool = False) -> Document:
        try:
            raw = self.surroundings.folders.read_bytes(self.settings.file)
        except ToolError as error:
            if error.code != "files.missing":
                raise
            if not or_new:
                raise ToolError(
                    "calendar.no-file",
                    f"there is no calendar at {self.settings.file!r}",
                    fix="Set `file` under [toolbox.calendar] in bicameral.toml, or add an event to begin one.",
                ) from None
            raw = EMPTY.encode()
        if self._document is None or raw != self._raw:
            self._document, self._raw = read_document(raw, self.settings.file), raw
        return self._document

    def write(self, text: str) -> None:
        raw = text.encode("utf-8", "surrogateescape")
        # What we could not read back we do not write.
        read_document(raw, self.settings.file)
        self.surroundings.folders.write_atomic(self.settings.file, raw)

    def between(
        self, since: datetime, before: datetime, series: tuple[datetime, datetime] | None = None
    ) -> list[Occurrence]:
        with self.lock:
            return occurrences(self.read(), self.settings.zone, since, before, series)

    @property
    def trust(self) -> Trust:
        """Who wrote what is in it."""
        return "user" if self.surroundings.folders.trusts(self.settings.file) else "third_party"

    def event(self, component: Component, uid: str) -> Event:
        found = occurrence_of(uid, component, self.settings.zone)
        if found is None:
            raise ToolError("calendar.broken", f"the event {uid!r} has no usable time")
        return found.event


def _build(settings: CalendarSettings, surroundings: Surroundings) -> list[Tool]:
    calendar = _Calendar(settings, surroundings)
    return [*_reading_tools(calendar), *_changing_tools(calendar)]


def _reading_tools(calendar: _Calendar) -> list[Tool]:
    events = {"": Origin(calendar.trust), "[]": Origin(calendar.trust, _READERS)}

    @tool(effect="read", origins=events)
    def list_events(start: date, end: Annotated[date | None, "last day"] = None) -> list[Event]:
        """Events from a day to another day, by default of one day."""
        since, before = _days(start, end or start)
        return [each.event for each in calendar.between(since, before)]

    @tool(effect="read", origins=events)
    def search_events(text: str, start: date | None = None, end: date | None = None) -> list[Event]:
        """Find events whose title, place, description or attendees have these words."""
        return [each.event for each in _search(calendar, start, end) if _has_words(each.event, text)]

    @tool(effect="read", origins=Origin(calendar.trust))
    def find_free_time(day: date, minutes: int = 60, earliest: time = time(9), latest: time = time(17)) -> list[Slot]:
        """Free stretches of a day that are at least this long."""
        _check_minutes(minutes)
        if earliest >= latest:
            raise ToolError("calendar.bad-hours", f"{earliest:%H:%M} is not before {latest:%H:%M}")
        since, before = _days(day, day)
        busy = [(each.event.start, each.event.end) for each in calendar.between(since, before) if each.busy]
        return free_slots(busy, datetime.combine(day, earliest), datetime.combine(day, latest), minutes)

    return [list_events, search_events, find_free_time]


def _changing_tools(calendar: _Calendar) -> list[Tool]:
    zone, clock = calendar.settings.zone, calendar.surroundings.now

    @tool(
        effect="write",
        purpose={"description": "carries", "title": "carries", "location": "carries"},
        origins=Origin("system", _READERS),
        words=("add", "create", "schedule", "book", "plan", "put", "set up", "arrange", "enter", "block", "invite"),
    )
    def add_event(
        title: str,
        start: datetime,
        minutes: int = 60,
        location: str = "",
        description: str = "",
        attendees: Annotated[Sequence[str], "addresses or names"] = (),
    ) -> Event:
        """Add an event to the calendar."""
        _check_title(title)
        _check_minutes(minutes)
        with calendar.lock:
            document = calendar.read(or_new=True)
            event = added(
                title=title,
                start=start,
                minutes=minutes,
                location=location,
                description=description,
                attendees=attendees,
                zone=zone,
                now=clock(),
            )
            text = _zone_text(document, calendar.settings.timezone, event) + event.to_ical(sorted=False).decode()
            calendar.write(document.edited({}, added=text))
        return calendar.event(event, str(event["UID"]))

    @tool(
        effect="write",
        purpose={"title": "carries", "location": "carries"},
        origins=Origin(calendar.trust, _READERS),
        words=(
            "change",
            "move",
            "reschedule",
            "rename",
            "postpone",
            "shift",
            "update",
            "edit",
            "extend",
            "shorten",
            "push",
            "delay",
            "bring forward",
        ),
    )
    def change_event(
        id: Id,
        title: str | None = None,
        start: datetime | None = None,
        minutes: int | None = None,
        location: str | None = None,
    ) -> Event:
        """Change an event, or one occurrence of a recurring event."""
        if title is not None:
            _check_title(title)
        if minutes is not None:
            _check_minutes(minutes)
        with calendar.lock:
            document = calendar.read()
            found = find(document, id, zone)
            text, event = changed(document, found, Changes(title, start, minutes, location), zone, clock())
            calendar.write(text)
        return calendar.event(event, found.block.uid)

    @tool(
        effect="irreversible",
        outbound=False,
        origins=Origin("system"),
        words=("delete", "remove", "cancel", "drop", "clear", "call off"),
    )
    def delete_event(id: Id) -> None:
        """Delete an event, or one occurrence of a recurring event."""
        with calendar.lock:
            document = calendar.read()
            calendar.write(deleted(document, find(document, id, zone), clock()))

    return [add_event, change_event, delete_event]


def _search(calendar: _Calendar, start: date | None, end: date | None) -> list[Occurrence]:
    """Plain events of any time, and a year of each series: from the start, up to the end, or from today."""
    if start and end:
        since, before = _days(start, end)
        return calendar.between(since, before)
    if start or end:
        since = datetime.combine(start, time()) if start else datetime.min + timedelta(days=2)
        before = datetime.combine(end, time()) + timedelta(days=1) if end else datetime.max - timedelta(days=2)
        series = (since, min(before, since + _SERIES_AHEAD)) if start else (before - _SERIES_AHEAD, before)
    else:
        today = datetime.combine(calendar.surroundings.now().date(), time())
        since, before = datetime.min + timedelta(days=2), datetime.max - timedelta(days=2)
        series = (today, today + _SERIES_AHEAD)
    return calendar.between(since, before, series)


def _days(first: date, last: date) -> tuple[datetime, datetime]:
    since = datetime.combine(first, time())
    try:
        before = datetime.combine(last, time()) + timedelta(days=1)
    except OverflowError:
        before = datetime.max
    if before <= since:
        raise ToolError("calendar.bad-range", f"{last} is before {first}", expected="a last day after the first")
    if before - since > _LONGEST_RANGE:
        raise ToolError("calendar.bad-range", f"{first} to {last} is too long", expected="ten years at most")
    return since, before


def _has_words(event: Event, text: str) -> bool:
    shown = " ".join((event.title, event.location, event.description, *event.attendees)).casefold()
    return all(word in shown for word in text.casefold().split())


def _check_title(title: str) -> None:
    if not title.strip():
        raise ToolError("calendar.bad-title", "an event needs a title", place=Place(argument="title"))


def _check_minutes(minutes: int) -> None:
    if not 0 < minutes <= _LONGEST_MINUTES:
        raise ToolError(
            "calendar.bad-minutes",
            f"{minutes} minutes is no length",
            place=Place(argument="minutes"),
            expected=f"1 to {_LONGEST_MINUTES}",
        )


def _zone_text(document: Document, name: str | None, event: Component) -> str:
    """The rules of the configured zone, if the event needs them and the file has none yet."""
    from icalendar import Timezone

    if name is None or "TZID" not in event["DTSTART"].params or document.mentions_zone(name):
        return ""
    return Timezone.from_tzid(name).to_ical().decode()


toolbox: Toolbox[CalendarSettings] = Toolbox(
    "calendar",
    "Read and change a calendar, find free time.",
    CalendarSettings,
    _build,
    keeps=lambda settings: (settings.file,),
)
