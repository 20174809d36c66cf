"""An ICS file as lines and as events, so that an edit leaves every other line unchanged.

Parsing an event takes about three microseconds per byte. So only those lines of an event are parsed that a plan can
see, within one limit for each event and one for all events. An event that exceeds a limit is not dropped: only its
name and time are parsed, and its description says so.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bicameral.errors import Place, ToolError
from bicameral.toolboxes._text import require_standard

if TYPE_CHECKING:
    from icalendar import Event as Component

EMPTY_CALENDAR = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//bicameral//calendar//EN\r\nEND:VCALENDAR\r\n"

MAX_BYTES = 32 * 1024 * 1024
"""The largest file. Most of a large file are attachments, which are not parsed."""
MAX_EVENTS = 50_000
MAX_EVENT = 64 * 1024
"""How many bytes of one event are parsed, without texts, which are cheaper and may be four times as long."""
MAX_COST = 6_000_000
"""How many bytes of all events together are parsed; twice as much takes half a minute on a slow machine."""
TOO_LARGE = "it is too large, so that only its name and time were read"

_TEXT_PROPERTIES = frozenset({"SUMMARY", "LOCATION", "DESCRIPTION"})
_READ_PROPERTIES = _TEXT_PROPERTIES | {
    *("UID", "DTSTART", "DTEND", "DURATION", "RECURRENCE-ID", "RRULE", "RDATE", "EXRULE", "EXDATE", "SEQUENCE"),
    *("ATTENDEE", "STATUS", "TRANSP", "X-MICROSOFT-CDO-BUSYSTATUS"),
}
_ESSENTIAL_PROPERTIES = ("UID", "DTSTART", "DTEND", "SUMMARY", "RECURRENCE-ID")
_SHORT = 500
_PER_EVENT = 60
_ZONE_LINES = 400
_MOST_ZONES = 200


@dataclass(frozen=True, slots=True)
class EventBlock:
    """One VEVENT: its lines in the file, the parsed component, and a notice if it exceeds a limit."""

    first: int
    last: int
    uid: str
    component: Component
    limit: str = ""

    @property
    def is_series(self) -> bool:
        return "RRULE" in self.component or "RDATE" in self.component

    @property
    def is_override(self) -> bool:
        """Whether this block replaces one occurrence of a series."""
        return "RECURRENCE-ID" in self.component


@dataclass(frozen=True, slots=True)
class IcsDocument:
    """A parsed ICS file."""

    file: str
    lines: tuple[str, ...]
    blocks: tuple[EventBlock, ...]
    zones: str
    """The lines of the time zones that the file defines."""
    end: int
    """The line that closes the first calendar; new events are inserted before it."""

    def block_text(self, block: EventBlock) -> str:
        return "".join(self.lines[block.first : block.last + 1])

    def full_component(self, block: EventBlock) -> Component:
        """The event with all its properties, which are needed to write it back."""
        return _parse_components([self.block_text(block)], self.zones, self.file)[0]

    def with_changes(self, changes: Mapping[int, str], *, added: str = "") -> str:
        """The text of the file with some blocks (by their first line) replaced and `added` at the end."""
        ends = {block.first: block.last for block in self.blocks}
        out: list[str] = []
        number = 0
        while number < len(self.lines):
            if number == self.end:
                out.append(self._with_line_ends(added))
            if number in changes:
                out.append(self._with_line_ends(changes[number]))
                number = ends[number] + 1
            else:
                out.append(self.lines[number])
                number += 1
        return "".join(out)

    def _with_line_ends(self, text: str) -> str:
        unix = bool(self.lines) and not self.lines[0].endswith("\r\n")
        return text.replace("\r\n", "\n") if unix else text

    def defines_zone(self, name: str) -> bool:
        return any(line.strip() == f"TZID:{name}" for line in self.lines)


@dataclass(frozen=True, slots=True)
class _LineSpans:
    events: list[tuple[int, int]]
    zones: list[tuple[int, int]]
    end: int


@dataclass(frozen=True, slots=True)
class _EventSource:
    """The lines of an event that are parsed, with their estimated cost in bytes, and a notice if some are left out."""

    text: str
    cost: int
    limit: str = ""


def read_document(raw: bytes, file: str) -> IcsDocument:
    """Parse a calendar file; raises with the line of the error if it is not a calendar."""
    if len(raw) > MAX_BYTES:
        raise _too_large_error(file, f"more than {MAX_BYTES:,} bytes")
    text = raw.decode("utf-8-sig", "surrogateescape")
    lines = _split_lines(text if text.strip() else EMPTY_CALENDAR)
    spans = _find_spans(lines, file)
    if len(spans.events) > MAX_EVENTS:
        raise _too_large_error(file, f"more than {MAX_EVENTS:,} events")
    sources = _select_sources([lines[first : last + 1] for first, last in spans.events])
    zones = "".join(_plain_zones(lines, spans.zones))
    components = _parse_components([source.text for source in sources], zones, file)
    return IcsDocument(file, lines, tuple(_make_blocks(lines, spans.events, sources, components)), zones, spans.end)


def _select_sources(events: list[tuple[str, ...]]) -> list[_EventSource]:
    """The parsed lines of each event; if all events together exceed the limit, only names and times of the largest."""
    sources = [_event_source(lines) for lines in events]
    left = MAX_COST - _PER_EVENT * len(sources)
    for number in sorted(range(len(sources)), key=lambda number: sources[number].cost):
        left -= sources[number].cost
        if left < 0 and not sources[number].limit:
            sources[number] = _essential_source(events[number])
    return sources


def _event_source(lines: tuple[str, ...]) -> _EventSource:
    texts, others = 0, 0
    selected: list[str] = [lines[0]]
    for name, content in _properties(lines):
        if name not in _READ_PROPERTIES:
            continue
        selected.append(content)
        if name in _TEXT_PROPERTIES:
            texts += len(content)
        else:
            others += len(content)
    if others > MAX_EVENT or texts > 4 * MAX_EVENT:
        return _essential_source(lines)
    return _EventSource("".join((*selected, lines[-1])), others + texts // 8)


def _essential_source(lines: tuple[str, ...]) -> _EventSource:
    """The name and time of an event, if they are short."""
    essential: dict[str, str] = {}
    for name, content in _properties(lines):
        if name in _ESSENTIAL_PROPERTIES and len(content) <= _SHORT:
            essential.setdefault(name, content)
    text = "".join((lines[0], *essential.values(), lines[-1]))
    return _EventSource(text, len(text), TOO_LARGE)


def _properties(lines: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The properties of an event with all their lines, without those of components inside it (alarms)."""
    depth, name = 0, ""
    parts: list[str] = []
    for line in lines[1:-1]:
        if line[:1] in (" ", "\t"):
            parts.append(line)
            continue
        if parts and not depth:
            yield name, "".join(parts)
        word = line[:40].strip().upper() if line[:1] in "BEbe" else ""
        depth += word.startswith("BEGIN:")
        parts = [] if depth else [line]
        depth -= word.startswith("END:") and depth > 0
        name = line[:80].partition(":")[0].partition(";")[0].strip().upper()
    if parts and not depth:
        yield name, "".join(parts)


def _plain_zones(lines: tuple[str, ...], spans: Iterable[tuple[int, int]]) -> Iterator[str]:
    """The lines of the time zone definitions, without those that real time zones do not need.

    Each time in a zone is converted by iterating the zone's own rules, so a rule that repeats every second would block
    the parser. A time in a zone that is left out counts as local time.
    """
    for first, last in list(spans)[:_MOST_ZONES]:
        zone = lines[first : last + 1]
        if len(zone) <= _ZONE_LINES and all(map(_is_plain_zone_line, _unfold_lines(zone))):
            yield from zone


def _unfold_lines(lines: tuple[str, ...]) -> list[str]:
    unfolded: list[str] = []
    for line in lines:
        if line[:1] in (" ", "\t") and unfolded:
            unfolded[-1] += line[1:].rstrip("\r\n")
        else:
            unfolded.append(line.rstrip("\r\n"))
    return unfolded


def _is_plain_zone_line(line: str) -> bool:
    """Whether a line of a time zone is not a rule, or a rule that repeats once a year."""
    if len(line) > 4 * _SHORT:
        return False
    name, _, rule = line.strip().upper().partition(":")
    if not name.startswith(("RRULE", "EXRULE")):
        return True
    parts = {key: value for key, _, value in (part.partition("=") for part in rule.split(";"))}
    return (
        name == "RRULE"
        and parts.get("FREQ") == "YEARLY"
        and not parts.keys() - {"FREQ", "BYMONTH", "BYDAY", "BYMONTHDAY", "UNTIL", "INTERVAL", "WKST"}
        and parts.get("INTERVAL", "1") == "1"
        and all("," not in parts.get(part, "") for part in ("BYMONTH", "BYDAY"))
    )


def _make_blocks(
    lines: tuple[str, ...], spans: list[tuple[int, int]], sources: list[_EventSource], components: list[Component]
) -> Iterator[EventBlock]:
    used: Counter[str] = Counter()
    for (first, last), source, component in zip(spans, sources, components, strict=True):
        uid = _event_uid(component, lines[first : last + 1])
        if "RECURRENCE-ID" not in component:
            used[uid] += 1
            # A UID should occur once. Events that share one still get different ids.
            uid = uid if used[uid] == 1 else f"{uid}#{used[uid]}"
        yield EventBlock(first, last, uid, component, source.limit)


def _split_lines(text: str) -> tuple[str, ...]:
    # Not `splitlines`, which also splits at characters that may occur in a text.
    pieces = text.split("\n")
    return tuple(f"{piece}\n" for piece in pieces[:-1]) + ((pieces[-1],) if pieces[-1] else ())


def _find_spans(lines: tuple[str, ...], file: str) -> _LineSpans:
    """The first and last lines of each event and time zone, and the line where the first calendar ends."""
    events: list[tuple[int, int]] = []
    zones: list[tuple[int, int]] = []
    open_: list[tuple[str, int]] = []
    end = -1
    for number, line in enumerate(lines):
        # A continuation line begins with a blank, so a BEGIN or END in it belongs to a text and is skipped here.
        if line[:1] not in "BEbe":
            continue
        word, _, name = line.strip().upper().partition(":")
        if word not in ("BEGIN", "END"):
            continue
        if word == "BEGIN":
            open_.append((name, number))
            continue
        if not open_ or open_[-1][0] != name:
            raise _broken_calendar_error(file, number + 1, f"END:{name[:60]} closes nothing")
        _, first = open_.pop()
        if len(open_) == 1 and open_[0][0] == "VCALENDAR":
            if name == "VEVENT":
                events.append((first, number))
            elif name == "VTIMEZONE":
                zones.append((first, number))
        if name == "VCALENDAR" and not open_ and end < 0:
            end = number
    if open_ or end < 0:
        raise _broken_calendar_error(file, len(lines), f"{open_[-1][0][:60] if open_ else 'VCALENDAR'} is not closed")
    return _LineSpans(events, zones, end)


def _parse_components(events: list[str], zones: str, file: str) -> list[Component]:
    """Parse events together with the time zones of their file."""
    require_standard("icalendar")
    from icalendar import Calendar, Event as Component

    text = "".join(("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n", zones, *events, "END:VCALENDAR\r\n"))
    sound = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        calendars = Calendar.from_ical(sound, multiple=True)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise _broken_calendar_error(file, None, str(error)[:200]) from None
    components = [part for calendar in calendars for part in calendar.subcomponents if isinstance(part, Component)]
    # Components are matched to lines by position, so a different number would edit the wrong lines.
    if len(components) != len(events):
        raise _broken_calendar_error(file, None, "its events do not begin and end in pairs")
    return components


def _event_uid(component: Component, lines: tuple[str, ...]) -> str:
    given = str(component.get("UID", "")).strip()
    return given or "event-" + hashlib.sha256("".join(lines).encode("utf-8", "replace")).hexdigest()[:12]


def _too_large_error(file: str, why: str) -> ToolError:
    return ToolError(
        "calendar.too-large",
        f"the calendar has {why}",
        place=Place(file=file),
        fix="Move old events to another file, or set `file` under [toolbox.calendar] in bicameral.toml.",
    )


def _broken_calendar_error(file: str, line: int | None, why: str) -> ToolError:
    return ToolError(
        "calendar.broken",
        f"this is not a calendar that can be read: {why}",
        place=Place(file=file, line=line),
        fix="Mend the file or set `file` under [toolbox.calendar] in bicameral.toml.",
    )
