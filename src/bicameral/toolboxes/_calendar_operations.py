"""Operations on a calendar file in the parser process: list events, and add, change or delete one.

Arguments are bytes and JSON; results are JSON, and the bytes of a changed file. The document parsed last is cached, so
that several operations on the same file parse it once.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from bicameral.errors import ToolError, nearest_name
from bicameral.toolboxes._calendar_document import EventBlock, IcsDocument, read_document
from bicameral.toolboxes._calendar_occurrences import (
    START_FORMAT,
    Occurrence,
    event_moment,
    event_times,
    list_occurrences,
    make_occurrence,
    to_zoned,
)
from bicameral.toolboxes._text import clean_text, one_line

if TYPE_CHECKING:
    from icalendar import Event as Component, vCalAddress


_OCCURRENCE = re.compile(r"(?P<uid>.+)@(?P<start>\d{8}T\d{6})", re.DOTALL)
_ADDRESS = re.compile(r"[^\s@<>,;:\"]+@[^\s@<>,;:\"]+")


@dataclass(frozen=True, slots=True)
class EventChanges:
    """The new values of an event; None leaves a value unchanged."""

    title: str | None = None
    start: datetime | None = None
    minutes: int | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """An event that an id refers to: its block, and the occurrence if it is one of a series."""

    block: EventBlock
    occurrence: Occurrence | None = None


def find_event(document: IcsDocument, id: str, zone: tzinfo | None) -> FoundEvent:
    """The event or occurrence with this id."""
    for block in document.blocks:
        if block.uid == id and not block.is_override:
            return FoundEvent(block)
    if parts := _OCCURRENCE.fullmatch(id):
        # Only the blocks of this series, with all their properties, because the event is written back.
        blocks = [block for block in document.blocks if block.uid == parts["uid"]]
        full = tuple(replace(block, component=document.full_component(block)) for block in blocks)
        series = replace(document, blocks=full)
        overrides = [(block, make_occurrence(block.uid, block.component, zone)) for block in full if block.is_override]
        # Of two blocks for one occurrence the later one counts.
        for block, own in reversed(overrides):
            if own is not None and own.event.id == id:
                return FoundEvent(block, own)
        master = next((block for block in full if not block.is_override), None)
        for occurrence in _occurrences_around(series, parts["start"], zone):
            if master is not None and occurrence.event.id == id:
                return FoundEvent(master, occurrence)
    raise _unknown_event_error(document, id)


def _occurrences_around(document: IcsDocument, stamp: str, zone: tzinfo | None) -> list[Occurrence]:
    try:
        start = datetime.strptime(stamp, START_FORMAT)
        return list_occurrences(document, zone, start - timedelta(days=1), start + timedelta(days=2))
    except (ValueError, OverflowError):
        return []


def _unknown_event_error(document: IcsDocument, id: str) -> ToolError:
    ids = [block.uid for block in document.blocks if not block.is_series]
    titles = {
        one_line(str(b.component.get("SUMMARY", ""))).casefold(): b.uid for b in document.blocks if not b.is_series
    }
    return ToolError(
        "calendar.unknown-event",
        f"there is no event with the id {id!r}",
        nearest=titles.get(id.strip().casefold()) or nearest_name(id, ids),
        fix="Take the id from list_events or search_events.",
    )


def make_event(
    *,
    title: str,
    start: datetime,
    minutes: int,
    location: str,
    description: str,
    attendees: Sequence[str],
    zone: tzinfo | None,
    now: datetime,
) -> Component:
    """A new event component."""
    from icalendar import Event as Component

    event = Component()
    _add_property(event, "UID", f"{uuid.uuid4()}@bicameral")
    _add_property(event, "DTSTAMP", now.astimezone(UTC).replace(microsecond=0))
    begin = to_zoned(start, zone)
    _add_property(event, "DTSTART", begin)
    _add_property(event, "DTEND", (begin.astimezone(UTC) + timedelta(minutes=minutes)).astimezone(begin.tzinfo))
    _add_property(event, "SUMMARY", one_line(title))
    if location.strip():
        _add_property(event, "LOCATION", one_line(location))
    if description.strip():
        _add_property(event, "DESCRIPTION", clean_text(description))
    for attendee in attendees:
        if attendee.strip():
            _add_property(event, "ATTENDEE", _attendee_address(one_line(attendee)))
    return event


def _attendee_address(who: str) -> vCalAddress:
    from icalendar import vCalAddress

    if _ADDRESS.fullmatch(who):
        return vCalAddress(f"mailto:{who}")
    # The form that calendar programs use for a person without an address.
    address = vCalAddress("invalid:nomail")
    # Not every program can read a parameter with a quote or a backslash.
    address.params["CN"] = who.replace('"', "'").replace("\\", "/")
    return address


def apply_change(
    document: IcsDocument, found: FoundEvent, changes: EventChanges, zone: tzinfo | None, now: datetime
) -> tuple[str, Component]:
    """The text of the file with the change, and the changed event."""
    block = found.block
    if found.occurrence is None and block.is_series and changes.start is not None:
        raise ToolError(
            "calendar.series",
            f"{block.uid!r} is a whole series; it is not moved at once",
            fix="Change one occurrence: take its id (UID@start) from list_events.",
        )
    # An occurrence that has no block of its own yet gets one, after that of its series.
    fresh = found.occurrence is not None and not block.is_override
    component = deepcopy(found.occurrence.component) if found.occurrence and fresh else document.full_component(block)
    _apply_changes(component, changes, zone)
    _mark_modified(component, block.uid, now)
    text = component.to_ical(sorted=False).decode("utf-8")
    return document.with_changes({block.first: document.block_text(block) + text if fresh else text}), component


def _apply_changes(component: Component, changes: EventChanges, zone: tzinfo | None) -> None:
    if changes.title is not None:
        _replace_property(component, "SUMMARY", one_line(changes.title))
    if changes.location is not None:
        component.pop("LOCATION", None)
        if changes.location.strip():
            _add_property(component, "LOCATION", one_line(changes.location))
    if changes.start is None and changes.minutes is None:
        return
    start, end, all_day = event_times(component, zone)
    begin = changes.start or start
    length = end - start if changes.minutes is None else timedelta(minutes=changes.minutes)
    whole_days = all_day and changes.minutes is None and begin.time() == datetime.min.time()
    if all_day and not whole_days and changes.minutes is None:
        length = timedelta(hours=1)
    style = event_moment(component, "DTSTART")
    zone_id = getattr(component.get("DTSTART"), "params", {}).get("TZID")
    component.pop("DURATION", None)
    for name, local in (("DTSTART", begin), ("DTEND", begin + length)):
        component.pop(name, None)
        value = local.date() if whole_days else _in_event_zone(local, style, zone)
        own_zone = zone_id if isinstance(value, datetime) and value.tzinfo is None else None
        _add_property(component, name, value, zone_id=own_zone)


def _in_event_zone(local: datetime, style: date | None, zone: tzinfo | None) -> datetime:
    """A local time in the time zone that the event uses."""
    if isinstance(style, datetime):
        return local if style.tzinfo is None else to_zoned(local, zone).astimezone(style.tzinfo)
    return to_zoned(local, zone)


def _add_property(component: Component, name: str, value: object, *, zone_id: str | None = None) -> None:
    untyped: Any = component
    untyped.add(name, value, parameters={"TZID": zone_id} if zone_id else None)


def _replace_property(component: Component, name: str, value: object) -> None:
    component.pop(name, None)
    _add_property(component, name, value)


def _mark_modified(component: Component, uid: str, now: datetime) -> None:
    """Set a higher sequence number and the time of the change, by which other calendar programs notice it."""
    try:
        number = int(str(component.get("SEQUENCE", 0)))
    except ValueError:
        number = 0
    _replace_property(component, "SEQUENCE", number + 1)
    _replace_property(component, "LAST-MODIFIED", now.astimezone(UTC).replace(microsecond=0))
    if "UID" not in component:
        _add_property(component, "UID", uid)


def remove_event(document: IcsDocument, found: FoundEvent, now: datetime) -> str:
    """The text of the file without the event; one occurrence of a series is excluded by an exception date."""
    block = found.block
    same_uid = [other for other in document.blocks if other.uid == block.uid]
    if found.occurrence is None:
        return document.with_changes({other.first: "" for other in same_uid})
    changes = {block.first: ""} if block.is_override else {}
    master = next((other for other in same_uid if not other.is_override), None)
    if master is not None:
        series = document.full_component(master)
        _add_property(series, "EXDATE", event_moment(found.occurrence.component, "RECURRENCE-ID"))
        _mark_modified(series, block.uid, now)
        changes[master.first] = series.to_ical(sorted=False).decode("utf-8")
    return document.with_changes(changes)


_last_document: tuple[bytes, str, IcsDocument] | None = None


def list_between(
    raw: bytes, file: str, zone: str | None, since: str, before: str, series: tuple[str, str] | None = None
) -> list[dict[str, Any]]:
    """The events between two times, each with whether it is busy time."""
    expand = None if series is None else (datetime.fromisoformat(series[0]), datetime.fromisoformat(series[1]))
    start, end = datetime.fromisoformat(since), datetime.fromisoformat(before)
    occurrences = list_occurrences(_parse_document(raw, file), _zone_info(zone), start, end, expand)
    return [{"event": occurrence.event.to_json(), "busy": occurrence.busy} for occurrence in occurrences]


def add_event(
    raw: bytes, file: str, zone: str | None, now: str, start: str, **fields: Any
) -> tuple[dict[str, Any], bytes]:
    """A new event, and the file with it."""
    document, local_zone = _parse_document(raw, file), _zone_info(zone)
    event = make_event(start=datetime.fromisoformat(start), zone=local_zone, now=datetime.fromisoformat(now), **fields)
    text = _zone_text(document, zone, event) + event.to_ical(sorted=False).decode()
    return _changed_file(document.with_changes({}, added=text), file, event, str(event["UID"]), local_zone)


def change_event(
    raw: bytes, file: str, zone: str | None, now: str, id: str, start: str | None = None, **fields: Any
) -> tuple[dict[str, Any], bytes]:
    """A changed event, and the file with it."""
    document, local_zone = _parse_document(raw, file), _zone_info(zone)
    found = find_event(document, id, local_zone)
    changes = EventChanges(start=None if start is None else datetime.fromisoformat(start), **fields)
    text, event = apply_change(document, found, changes, local_zone, datetime.fromisoformat(now))
    return _changed_file(text, file, event, found.block.uid, local_zone)


def delete_event(raw: bytes, file: str, zone: str | None, now: str, id: str) -> tuple[None, bytes]:
    """The file without an event."""
    document = _parse_document(raw, file)
    found = find_event(document, id, _zone_info(zone))
    return None, _encode_checked(remove_event(document, found, datetime.fromisoformat(now)), file)


def _parse_document(raw: bytes, file: str) -> IcsDocument:
    global _last_document
    if _last_document is None or _last_document[:2] != (raw, file):
        _last_document = (raw, file, read_document(raw, file))
    return _last_document[2]


def _changed_file(
    text: str, file: str, component: Component, uid: str, zone: tzinfo | None
) -> tuple[dict[str, Any], bytes]:
    occurrence = make_occurrence(uid, component, zone)
    if occurrence is None:
        raise ToolError("calendar.broken", f"the event {uid!r} has no usable time")
    return occurrence.event.to_json(), _encode_checked(text, file)


def _encode_checked(text: str, file: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    # A file that cannot be parsed again is not written.
    _parse_document(raw, file)
    return raw


def _zone_info(name: str | None) -> tzinfo | None:
    return ZoneInfo(name) if name else None


def _zone_text(document: IcsDocument, name: str | None, event: Component) -> str:
    """The definition of the configured zone, if the event needs it and the file does not have it yet."""
    from icalendar import Timezone

    if name is None or "TZID" not in event["DTSTART"].params or document.defines_zone(name):
        return ""
    return Timezone.from_tzid(name).to_ical().decode()
