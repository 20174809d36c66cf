"""Operations on a calendar file, run in the parser process: list events, and add, change or delete one.

Everything comes in as bytes and JSON and goes out as JSON, and a changed file as bytes. The last file that was parsed
is kept, so that it is not parsed again for each question about it.
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
from bicameral.toolboxes._text import clean_text, one_line
from bicameral.toolboxes.calendar._document import EventBlock, IcsDocument, read_document
from bicameral.toolboxes.calendar._occurrences import (
    START_FORMAT,
    Occurrence,
    event_moment,
    event_times,
    list_occurrences,
    make_occurrence,
    to_zoned,
)

if TYPE_CHECKING:
    from icalendar import Event as Component
    from icalendar import vCalAddress


_OCCURRENCE = re.compile(r"(?P<uid>.+)@(?P<start>\d{8}T\d{6})", re.DOTALL)
_ADDRESS = re.compile(r"[^\s@<>,;:\"]+@[^\s@<>,;:\"]+")


@dataclass(frozen=True, slots=True)
class EventChanges:
    """What to change of an event; None leaves it."""

    title: str | None = None
    start: datetime | None = None
    minutes: int | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """An event by its id: the block that describes it, and the occurrence if it is one of a series."""

    block: EventBlock
    occurrence: Occurrence | None = None


def find_event(document: IcsDocument, id: str, zone: tzinfo | None) -> FoundEvent:
    """The event or occurrence with this id."""
    for block in document.blocks:
        if block.uid == id and not block.is_override:
            return FoundEvent(block)
    if parts := _OCCURRENCE.fullmatch(id):
        # Only the blocks of this series, with all that is in them: what is found here is written again.
        series = replace(
            document,
            blocks=tuple(
                replace(block, component=document.full_component(block))
                for block in document.blocks
                if block.uid == parts["uid"]
            ),
        )
        overrides = {
            own.event.id: (block, own) for block in series.blocks if (own := _override_occurrence(block, zone))
        }
        if id in overrides:
            return FoundEvent(*overrides[id])
        master = next((block for block in series.blocks if not block.is_override), None)
        for each in _occurrences_around(series, parts["start"], zone):
            if master is not None and each.event.id == id:
                return FoundEvent(master, each)
    raise _unknown_event_error(document, id)


def _override_occurrence(block: EventBlock, zone: tzinfo | None) -> Occurrence | None:
    return make_occurrence(block.uid, block.component, zone) if block.is_override else None


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
    """A new event."""
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
    # How calendar programs write someone without an address.
    address = vCalAddress("invalid:nomail")
    # Neither a quote nor a backslash can stand in a parameter and be read back by every program.
    address.params["CN"] = who.replace('"', "'").replace("\\", "/")
    return address


def apply_change(
    document: IcsDocument, found: FoundEvent, changes: EventChanges, zone: tzinfo | None, now: datetime
) -> tuple[str, Component]:
    """The file with the change made, and the changed event."""
    block = found.block
    if found.occurrence is None and block.is_series and changes.start is not None:
        raise ToolError(
            "calendar.series",
            f"{block.uid!r} is a whole series; it is not moved at once",
            fix="Change one occurrence: take its id (UID@start) from list_events.",
        )
    # An occurrence that nobody has touched yet gets a block of its own, after that of its series.
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
        kept = zone_id if isinstance(value, datetime) and value.tzinfo is None else None
        _add_property(component, name, value, zone_id=kept)


def _in_event_zone(local: datetime, style: date | None, zone: tzinfo | None) -> datetime:
    """Local time in the zone that the event was written in."""
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
    """What a change owes to other calendar programs: a higher number and a time."""
    try:
        number = int(str(component.get("SEQUENCE", 0)))
    except ValueError:
        number = 0
    _replace_property(component, "SEQUENCE", number + 1)
    _replace_property(component, "LAST-MODIFIED", now.astimezone(UTC).replace(microsecond=0))
    if "UID" not in component:
        _add_property(component, "UID", uid)


def remove_event(document: IcsDocument, found: FoundEvent, now: datetime) -> str:
    """The file without the event; of a series only the one occurrence is taken out, by an exception date."""
    block = found.block
    if found.occurrence is None:
        return document.with_changes({each.first: "" for each in document.blocks if each.uid == block.uid})
    changes = {block.first: ""} if block.is_override else {}
    master = next((each for each in document.blocks if each.uid == block.uid and not each.is_override), None)
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
    """The events between two times, each with whether it takes up time."""
    expand = None if series is None else (datetime.fromisoformat(series[0]), datetime.fromisoformat(series[1]))
    start, end = datetime.fromisoformat(since), datetime.fromisoformat(before)
    found = list_occurrences(_parse_document(raw, file), _zone_info(zone), start, end, expand)
    return [{"event": each.event.to_json(), "busy": each.busy} for each in found]


def add_event(
    raw: bytes, file: str, zone: str | None, now: str, start: str, **fields: Any
) -> tuple[dict[str, Any], bytes]:
    """A new event, and the file with it."""
    document, where = _parse_document(raw, file), _zone_info(zone)
    event = make_event(start=datetime.fromisoformat(start), zone=where, now=datetime.fromisoformat(now), **fields)
    text = _zone_text(document, zone, event) + event.to_ical(sorted=False).decode()
    return _changed_file(document.with_changes({}, added=text), file, event, str(event["UID"]), where)


def change_event(
    raw: bytes, file: str, zone: str | None, now: str, id: str, start: str | None = None, **fields: Any
) -> tuple[dict[str, Any], bytes]:
    """A changed event, and the file with it."""
    document, where = _parse_document(raw, file), _zone_info(zone)
    found = find_event(document, id, where)
    changes = EventChanges(start=None if start is None else datetime.fromisoformat(start), **fields)
    text, event = apply_change(document, found, changes, where, datetime.fromisoformat(now))
    return _changed_file(text, file, event, found.block.uid, where)


def delete_event(raw: bytes, file: str, zone: str | None, now: str, id: str) -> tuple[None, bytes]:
    """The file without an event."""
    document = _parse_document(raw, file)
    return None, _encode_checked(
        remove_event(document, find_event(document, id, _zone_info(zone)), datetime.fromisoformat(now)), file
    )


def _parse_document(raw: bytes, file: str) -> IcsDocument:
    global _last_document
    if _last_document is None or _last_document[:2] != (raw, file):
        _last_document = (raw, file, read_document(raw, file))
    return _last_document[2]


def _changed_file(
    text: str, file: str, component: Component, uid: str, zone: tzinfo | None
) -> tuple[dict[str, Any], bytes]:
    found = make_occurrence(uid, component, zone)
    if found is None:
        raise ToolError("calendar.broken", f"the event {uid!r} has no usable time")
    return found.event.to_json(), _encode_checked(text, file)


def _encode_checked(text: str, file: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    # What we could not read back is not written.
    _parse_document(raw, file)
    return raw


def _zone_info(name: str | None) -> tzinfo | None:
    return ZoneInfo(name) if name else None


def _zone_text(document: IcsDocument, name: str | None, event: Component) -> str:
    """The rules of the configured zone, if the event needs them and the file has none yet."""
    from icalendar import Timezone

    if name is None or "TZID" not in event["DTSTART"].params or document.defines_zone(name):
        return ""
    return Timezone.from_tzid(name).to_ical().decode()
