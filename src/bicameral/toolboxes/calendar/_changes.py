"""Adding, changing and deleting events, one occurrence of a recurring event included."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from bicameral.errors import ToolError, nearest

from .._text import clean, one_line
from ._document import Block, Document
from ._occurrences import STAMP, Occurrence, moment, occurrence_of, occurrences, times
from ._times import to_zoned

if TYPE_CHECKING:
    from icalendar import Event as Component
    from icalendar import vCalAddress

_OCCURRENCE = re.compile(r"(?P<uid>.+)@(?P<start>\d{8}T\d{6})", re.DOTALL)
_ADDRESS = re.compile(r"[^\s@<>,;:\"]+@[^\s@<>,;:\"]+")


@dataclass(frozen=True, slots=True)
class Changes:
    """What to change of an event; None leaves it."""

    title: str | None = None
    start: datetime | None = None
    minutes: int | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """An event by its id: the block that describes it, and the occurrence if it is one of a series."""

    block: Block
    occurrence: Occurrence | None = None


def find(document: Document, id: str, zone: tzinfo | None) -> Found:
    """The event or occurrence with this id."""
    for block in document.blocks:
        if block.uid == id and not block.is_override:
            return Found(block)
    if parts := _OCCURRENCE.fullmatch(id):
        # Only the blocks of this series, with all that is in them: what is found here is written again.
        series = replace(
            document,
            blocks=tuple(
                replace(block, component=document.whole(block))
                for block in document.blocks
                if block.uid == parts["uid"]
            ),
        )
        overrides = {own.event.id: (block, own) for block in series.blocks if (own := _override(block, zone))}
        if id in overrides:
            return Found(*overrides[id])
        master = next((block for block in series.blocks if not block.is_override), None)
        for each in _around(series, parts["start"], zone):
            if master is not None and each.event.id == id:
                return Found(master, each)
    raise _unknown(document, id)


def _override(block: Block, zone: tzinfo | None) -> Occurrence | None:
    return occurrence_of(block.uid, block.component, zone) if block.is_override else None


def _around(document: Document, stamp: str, zone: tzinfo | None) -> list[Occurrence]:
    try:
        start = datetime.strptime(stamp, STAMP)
        return occurrences(document, zone, start - timedelta(days=1), start + timedelta(days=2))
    except (ValueError, OverflowError):
        return []


def _unknown(document: Document, id: str) -> ToolError:
    ids = [block.uid for block in document.blocks if not block.is_series]
    titles = {
        one_line(str(b.component.get("SUMMARY", ""))).casefold(): b.uid for b in document.blocks if not b.is_series
    }
    return ToolError(
        "calendar.unknown-event",
        f"there is no event with the id {id!r}",
        nearest=titles.get(id.strip().casefold()) or nearest(id, ids),
        fix="Take the id from list_events or search_events.",
    )


def added(
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
    _add(event, "UID", f"{uuid.uuid4()}@bicameral")
    _add(event, "DTSTAMP", now.astimezone(UTC).replace(microsecond=0))
    begin = to_zoned(start, zone)
    _add(event, "DTSTART", begin)
    _add(event, "DTEND", (begin.astimezone(UTC) + timedelta(minutes=minutes)).astimezone(begin.tzinfo))
    _add(event, "SUMMARY", one_line(title))
    if location.strip():
        _add(event, "LOCATION", one_line(location))
    if description.strip():
        _add(event, "DESCRIPTION", clean(description))
    for attendee in attendees:
        if attendee.strip():
            _add(event, "ATTENDEE", _attendee(one_line(attendee)))
    return event


def _attendee(who: str) -> vCalAddress:
    from icalendar import vCalAddress

    if _ADDRESS.fullmatch(who):
        return vCalAddress(f"mailto:{who}")
    # How calendar programs write someone without an address.
    address = vCalAddress("invalid:nomail")
    # Neither a quote nor a backslash can stand in a parameter and be read back by every program.
    address.params["CN"] = who.replace('"', "'").replace("\\", "/")
    return address


def changed(
    document: Document, found: Found, changes: Changes, zone: tzinfo | None, now: datetime
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
    component = deepcopy(found.occurrence.component) if found.occurrence and fresh else document.whole(block)
    _apply(component, changes, zone)
    _touch(component, block.uid, now)
    text = component.to_ical(sorted=False).decode("utf-8")
    return document.edited({block.first: document.text_of(block) + text if fresh else text}), component


def _apply(component: Component, changes: Changes, zone: tzinfo | None) -> None:
    if changes.title is not None:
        _put(component, "SUMMARY", one_line(changes.title))
    if changes.location is not None:
        component.pop("LOCATION", None)
        if changes.location.strip():
            _add(component, "LOCATION", one_line(changes.location))
    if changes.start is None and changes.minutes is None:
        return
    start, end, all_day = times(component, zone)
    begin = changes.start or start
    length = end - start if changes.minutes is None else timedelta(minutes=changes.minutes)
    whole_days = all_day and changes.minutes is None and begin.time() == datetime.min.time()
    if all_day and not whole_days and changes.minutes is None:
        length = timedelta(hours=1)
    style = moment(component, "DTSTART")
    zone_id = getattr(component.get("DTSTART"), "params", {}).get("TZID")
    component.pop("DURATION", None)
    for name, local in (("DTSTART", begin), ("DTEND", begin + length)):
        component.pop(name, None)
        value = local.date() if whole_days else _in_style(local, style, zone)
        kept = zone_id if isinstance(value, datetime) and value.tzinfo is None else None
        _add(component, name, value, zone_id=kept)


def _in_style(local: datetime, style: date | None, zone: tzinfo | None) -> datetime:
    """Local time in the zone that the event was written in."""
    if isinstance(style, datetime):
        return local if style.tzinfo is None else to_zoned(local, zone).astimezone(style.tzinfo)
    return to_zoned(local, zone)


def _add(component: Component, name: str, value: object, *, zone_id: str | None = None) -> None:
    untyped: Any = component
    untyped.add(name, value, parameters={"TZID": zone_id} if zone_id else None)


def _put(component: Component, name: str, value: object) -> None:
    component.pop(name, None)
    _add(component, name, value)


def _touch(component: Component, uid: str, now: datetime) -> None:
    """What a change owes to other calendar programs: a higher number and a time."""
    try:
        number = int(str(component.get("SEQUENCE", 0)))
    except ValueError:
        number = 0
    _put(component, "SEQUENCE", number + 1)
    _put(component, "LAST-MODIFIED", now.astimezone(UTC).replace(microsecond=0))
    if "UID" not in component:
        _add(component, "UID", uid)


def deleted(document: Document, found: Found, now: datetime) -> str:
    """The file without the event; of a series only the one occurrence is taken out, by an exception date."""
    block = found.block
    if found.occurrence is None:
        return document.edited({each.first: "" for each in document.blocks if each.uid == block.uid})
    changes = {block.first: ""} if block.is_override else {}
    master = next((each for each in document.blocks if each.uid == block.uid and not each.is_override), None)
    if master is not None:
        series = document.whole(master)
        _add(series, "EXDATE", moment(found.occurrence.component, "RECURRENCE-ID"))
        _touch(series, block.uid, now)
        changes[master.first] = series.to_ical(sorted=False).decode("utf-8")
    return document.edited(changes)
