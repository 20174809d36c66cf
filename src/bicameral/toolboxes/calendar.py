"""The calendar, an ICS file: list and search events, find free time, add, change and delete events.

Recurring events are listed as occurrences, each with its own id (`UID@start`), so that one of them can be changed or
deleted alone. All times are local times. A change rewrites the lines of its event and no other line of the file.

Anybody can send an invitation, so the file is untrusted: `_calendar_operations` and the modules that it imports run in
the parser process, within its limits and their own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import field_validator

from bicameral.errors import Place, ToolError
from bicameral.labels import Trust
from bicameral.parsing import MIB, ParseLimits, Parser
from bicameral.toolboxes._calendar_document import EMPTY_CALENDAR, MAX_BYTES
from bicameral.toolboxes._calendar_occurrences import EventFields
from bicameral.tools import (
    MissingSetting,
    Origin,
    Participants,
    Selection,
    Settings,
    Surroundings,
    Tool,
    Toolbox,
    missing_extra,
    note_selection,
    tool,
)
from bicameral.types import Id


class CalendarSettings(Settings):
    """Where the calendar is and in which time zone its owner lives."""

    file: str = "calendar.ics"
    timezone: str | None = None
    """Such as `Europe/Berlin`; without it, the time zone of the machine."""

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, name: str | None) -> str | None:
        try:
            return name if name is None else ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{name!r} is not a time zone; write one like 'Europe/Berlin'") from None


@dataclass(frozen=True, slots=True)
class Event(EventFields):
    """An event, or one occurrence of a recurring one, in local time; an all-day event ends at the next midnight."""

    id: Id


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of free time."""

    start: datetime
    end: datetime


def free_slots(busy: Iterable[tuple[datetime, datetime]], start: datetime, end: datetime, minutes: int) -> list[Slot]:
    """The free slots between start and end with at least so many minutes, each as long as possible."""
    shortest = timedelta(minutes=minutes)
    slots: list[Slot] = []
    free_from = start
    for begin, finish in sorted(busy):
        if min(begin, end) - free_from >= shortest:
            slots.append(Slot(free_from, min(begin, end)))
        free_from = max(free_from, finish)
    if end - free_from >= shortest:
        slots.append(Slot(free_from, end))
    return slots


_LONGEST_RANGE = timedelta(days=3660)
_LONGEST_MINUTES = 366 * 24 * 60
_SERIES_AHEAD = timedelta(days=366)
_MAX_TRIES = 5
_CHANGE_WORDS = "change|move|reschedule|rename|postpone|shift|update|edit|extend|shorten|push|delay|bring forward"

# The sender of an invitation writes all of the event, including its id, and the file does not record who that was. So
# events are untrusted, unless the file lies in a folder that only the user writes to.
_READERS = Participants(("attendees",))

# Twice what the limits in `_calendar_document` and `_calendar_occurrences` should allow, and less than the time-out of
# the tools: a tool that times out is retried, which would not help here.
_PARSE_LIMITS = ParseLimits(cpu=30.0, wall=45.0, memory=1536 * MIB)
_TIMEOUT = 60


@dataclass(frozen=True, slots=True)
class _ListedEvent:
    event: Event
    busy: bool


_PARSER_MODULE = "bicameral.toolboxes._calendar_operations"
_LIST_PARSER: Parser[list[_ListedEvent]] = Parser(f"{_PARSER_MODULE}:list_between", list[_ListedEvent], _PARSE_LIMITS)
_ADD_PARSER: Parser[Event] = Parser(f"{_PARSER_MODULE}:add_event", Event, _PARSE_LIMITS)
_CHANGE_PARSER: Parser[Event] = Parser(f"{_PARSER_MODULE}:change_event", Event, _PARSE_LIMITS)
_DELETE_PARSER: Parser[None] = Parser(f"{_PARSER_MODULE}:delete_event", None, _PARSE_LIMITS)


_FILE_SETTING = "Set `file` under [toolbox.calendar] in bicameral.toml, or add an event to begin one."
_FILE_TOOLS = ("list_events", "search_events", "find_free_time", "change_event", "delete_event")


def _no_file_text(settings: CalendarSettings) -> str:
    return f"there is no calendar at {settings.file!r}"


def _missing_packages(_settings: CalendarSettings, _surroundings: Surroundings) -> Sequence[MissingSetting]:
    return missing_extra(("add_event", *_FILE_TOOLS), "standard", "icalendar", "recurring_ical_events")


def _missing_file(settings: CalendarSettings, surroundings: Surroundings) -> Sequence[MissingSetting]:
    try:
        surroundings.folders.resolve_readable(settings.file)
    except ToolError as error:
        lacking = _no_file_text(settings) if error.code == "files.missing" else error.message
        return (MissingSetting(_FILE_TOOLS, lacking, _FILE_SETTING, begun_by=("add_event",)),)
    return ()


@dataclass(slots=True)
class _Calendar:
    """The calendar file of the settings."""

    settings: CalendarSettings
    surroundings: Surroundings
    lock: threading.Lock = field(default_factory=threading.Lock)

    def list_between(
        self, since: datetime, before: datetime, series: tuple[datetime, datetime] | None = None
    ) -> list[_ListedEvent]:
        expand = None if series is None else [moment.isoformat() for moment in series]
        facts = {"since": since.isoformat(), "before": before.isoformat(), "series": expand}
        return _LIST_PARSER(self._read_file(), what=self._display_name, **self._with_file_facts(facts))

    def change_file(self, parser: Parser[Any], facts: dict[str, Any], *, or_new: bool = False) -> Any:
        """Write a change to the file; return the changed event."""
        facts = self._with_file_facts(facts | {"now": self.surroundings.now().isoformat()})
        for _ in range(_MAX_TRIES):
            raw = self._read_file(or_new=or_new)
            event, changed = parser.with_body(raw, what=self._display_name, **facts)
            # The lock is held for comparing and writing only, not during parsing, which a hostile event can make slow.
            # If the file has changed meanwhile, the change is made again from its new content.
            with self.lock:
                if self._read_file(or_new=or_new) == raw:
                    self.surroundings.folders.write_atomic(self.settings.file, changed)
                    return event
        raise ToolError(
            "calendar.busy",
            f"the calendar at {self.settings.file!r} is being changed by others all the time",
            fix="Try again.",
        )

    def _read_file(self, *, or_new: bool = False) -> bytes:
        try:
            return self.surroundings.folders.read_bytes(self.settings.file, max_bytes=MAX_BYTES)
        except ToolError as error:
            if error.code != "files.missing":
                raise
            if or_new:
                return EMPTY_CALENDAR.encode()
            raise ToolError("calendar.no-file", _no_file_text(self.settings), fix=_FILE_SETTING) from None

    @property
    def _display_name(self) -> str:
        return f"the calendar {self.settings.file!r}"

    def _with_file_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        return facts | {"file": self.settings.file, "zone": self.settings.timezone}

    @property
    def trust(self) -> Trust:
        """How far its events are trusted."""
        return "user" if self.surroundings.folders.is_trusted(self.settings.file) else "third_party"


def _build(settings: CalendarSettings, surroundings: Surroundings) -> list[Tool]:
    calendar = _Calendar(settings, surroundings)
    return [*_reading_tools(calendar), *_changing_tools(calendar)]


def _reading_tools(calendar: _Calendar) -> list[Tool]:
    events = {"": Origin(calendar.trust), "[]": Origin(calendar.trust, _READERS)}

    @tool(effect="read", timeout=_TIMEOUT, origins=events)
    def list_events(start: date, end: Annotated[date | None, "last day"] = None) -> list[Event]:
        """Events from a day to another day, by default of one day."""
        since, before = _day_range(start, end or start)
        return [listed.event for listed in calendar.list_between(since, before)]

    @tool(effect="read", timeout=_TIMEOUT, origins=events)
    def search_events(text: str, start: date | None = None, end: date | None = None) -> list[Event]:
        """Find events whose title, place, description or attendees have these words."""
        events = _search_range(calendar, start, end)
        found = [listed.event for listed in events if _has_words(listed.event, text)]
        note_selection(Selection(len(events), len(found), "events", f"has the words {text[:200]!r}"))
        return found

    @tool(effect="read", timeout=_TIMEOUT, origins=Origin(calendar.trust))
    def find_free_time(day: date, minutes: int = 60, earliest: time = time(9), latest: time = time(17)) -> list[Slot]:
        """Free stretches of a day that are at least this long."""
        _check_minutes(minutes)
        if earliest >= latest:
            raise ToolError("calendar.bad-hours", f"{earliest:%H:%M} is not before {latest:%H:%M}")
        since, before = _day_range(day, day)
        events = [listed.event for listed in calendar.list_between(since, before) if listed.busy]
        busy = [(event.start, event.end) for event in events]
        return free_slots(busy, datetime.combine(day, earliest), datetime.combine(day, latest), minutes)

    return [list_events, search_events, find_free_time]


def _changing_tools(calendar: _Calendar) -> list[Tool]:
    @tool(
        effect="write",
        files_only=True,
        timeout=_TIMEOUT,
        purpose={"description": "carries", "title": "carries", "location": "carries"},
        origins=Origin("system", _READERS),
        words=("add", "create", "schedule", "book", "plan", "put", "set up", "arrange", "enter", "block", "invite"),
        refers={"attendees": "person"},
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
        facts = {
            "title": title,
            "start": start.isoformat(),
            "minutes": minutes,
            "location": location,
            "description": description,
            "attendees": list(attendees),
        }
        return calendar.change_file(_ADD_PARSER, facts, or_new=True)

    @tool(
        effect="write",
        files_only=True,
        timeout=_TIMEOUT,
        purpose={"title": "carries", "location": "carries"},
        refers={"id": "event"},
        origins=Origin(calendar.trust, _READERS),
        words=tuple(_CHANGE_WORDS.split("|")),
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
        facts = {
            "id": id,
            "title": title,
            "start": None if start is None else start.isoformat(),
            "minutes": minutes,
            "location": location,
        }
        return calendar.change_file(_CHANGE_PARSER, facts)

    @tool(
        effect="irreversible",
        files_only=True,
        timeout=_TIMEOUT,
        outbound=False,
        refers={"id": "event"},
        origins=Origin("system"),
        words=("delete", "remove", "cancel", "drop", "clear", "call off"),
    )
    def delete_event(id: Id) -> None:
        """Delete an event, or one occurrence of a recurring event."""
        calendar.change_file(_DELETE_PARSER, {"id": id})

    return [add_event, change_event, delete_event]


def _search_range(calendar: _Calendar, start: date | None, end: date | None) -> list[_ListedEvent]:
    """Single events of any time, and one year of each series: from the start, up to the end, or from today."""
    if start and end:
        since, before = _day_range(start, end)
        return calendar.list_between(since, before)
    if start or end:
        since = datetime.combine(start, time()) if start else datetime.min + timedelta(days=2)
        before = datetime.combine(end, time()) + timedelta(days=1) if end else datetime.max - timedelta(days=2)
        series = (since, min(before, since + _SERIES_AHEAD)) if start else (before - _SERIES_AHEAD, before)
    else:
        today = datetime.combine(calendar.surroundings.now().date(), time())
        since, before = datetime.min + timedelta(days=2), datetime.max - timedelta(days=2)
        series = (today, today + _SERIES_AHEAD)
    return calendar.list_between(since, before, series)


def searchable_events(settings: CalendarSettings, surroundings: Surroundings) -> list[Event]:
    """The events that a search without days looks at: single ones of any time, and a year of each series from today."""
    return [listed.event for listed in _search_range(_Calendar(settings, surroundings), None, None)]


def _day_range(first: date, last: date) -> tuple[datetime, datetime]:
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
    searched = " ".join((event.title, event.location, event.description, *event.attendees)).casefold()
    return all(word in searched for word in text.casefold().split())


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


toolbox: Toolbox[CalendarSettings] = Toolbox(
    "calendar",
    "Read and change a calendar, find free time.",
    CalendarSettings,
    _build,
    keeps=lambda settings: (settings.file,),
    lacks=_missing_packages,
    unready=_missing_file,
)
