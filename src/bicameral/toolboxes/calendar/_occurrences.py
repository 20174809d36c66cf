"""Events in a stretch of time: plain ones as they are, recurring ones expanded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from .._extras import require
from .._text import clean, one_line
from ._document import Block, Document
from ._records import Event
from ._settings import to_local

if TYPE_CHECKING:
    from icalendar import Event as Component

STAMP = "%Y%m%dT%H%M%S"
# A stranger's invitation that repeats each minute would be half a million events a year; it is shown once.
_TOO_OFTEN = (b"SECONDLY", b"MINUTELY")
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event as a plan sees it, with what it was made of."""

    event: Event
    component: Component
    busy: bool


def occurrences(
    document: Document,
    zone: tzinfo | None,
    since: datetime,
    before: datetime,
    series: tuple[datetime, datetime] | None = None,
) -> list[Occurrence]:
    """What overlaps the time from `since` to `before`, in order; `series` is where recurring events are expanded."""
    by_uid: dict[str, list[Block]] = defaultdict(list)
    for block in document.blocks:
        by_uid[block.uid].append(block)
    found: list[Occurrence] = []
    for blocks in by_uid.values():
        if any(map(_recurs, blocks)):
            found.extend(_expanded(blocks, zone, *(series or (since, before))))
        else:
            found.extend(filter(None, (occurrence_of(block.uid, block.component, zone) for block in blocks)))
    within = (each for each in found if _overlaps(each.event, since, before))
    return sorted(within, key=lambda each: (each.event.start, not each.event.all_day, each.event.title))


def _overlaps(event: Event, since: datetime, before: datetime) -> bool:
    return event.start < before and (event.end > since or event.start >= since)


def _recurs(block: Block) -> bool:
    if not block.is_series:
        return False
    rules = [bytes(rule.to_ical()).upper() for rule in _all(block.component, "RRULE")]
    return not any(often in rule for rule in rules for often in _TOO_OFTEN)


def _expanded(blocks: Iterable[Block], zone: tzinfo | None, since: datetime, before: datetime) -> Iterator[Occurrence]:
    require("recurring_ical_events")
    from icalendar import Calendar

    expand: Any = import_module("recurring_ical_events").of
    blocks = list(blocks)
    calendar = Calendar()
    calendar.subcomponents.extend(block.component for block in blocks)
    # A day more on either side, since times without a zone are compared as if they were UTC.
    margin = timedelta(days=1)
    try:
        parts = expand(calendar, skip_bad_series=True).between(since - margin, before + margin)
    except _UNREADABLE:
        # One event that makes no sense must not hide all the others.
        return
    for part in cast("list[Component]", parts):
        if found := occurrence_of(blocks[0].uid, part, zone):
            yield found


def occurrence_of(uid: str, component: Component, zone: tzinfo | None) -> Occurrence | None:
    """What plans see of an event, or None if it has no usable time."""
    try:
        start, end, all_day = times(component, zone)
        recurrence = moment(component, "RECURRENCE-ID")
        id = uid if recurrence is None else f"{uid}@{to_local(recurrence, zone):{STAMP}}"
    except _UNREADABLE:
        return None
    event = Event(
        id=id,
        title=one_line(_text(component, "SUMMARY")),
        start=start,
        end=end,
        all_day=all_day,
        location=one_line(_text(component, "LOCATION")),
        description=clean(_text(component, "DESCRIPTION")).strip(),
        attendees=tuple(filter(None, map(_attendee, _all(component, "ATTENDEE")))),
    )
    return Occurrence(event, component, _is_busy(component, all_day=all_day))


def times(component: Component, zone: tzinfo | None) -> tuple[datetime, datetime, bool]:
    """Start and end in local time, and whether the event is for whole days."""
    first = moment(component, "DTSTART")
    if first is None:
        raise ValueError("an event without a start")
    all_day = not isinstance(first, datetime)
    start, last = to_local(first, zone), moment(component, "DTEND")
    length = getattr(component.get("DURATION"), "dt", None)
    if last is not None:
        end = to_local(last, zone)
    elif isinstance(length, timedelta):
        end = start + length
    else:
        end = start + timedelta(days=1 if all_day else 0)
    return start, max(start, end), all_day


def moment(component: Component, name: str) -> date | None:
    """A date or time among the properties; one that is broken is a ValueError."""
    prop: Any = component.get(name)
    if prop is None:
        return None
    value = getattr(prop, "dt", None)
    if not isinstance(value, date):
        raise ValueError(f"{name} is no date")
    return value


def _text(component: Component, name: str) -> str:
    found = _all(component, name)
    return str(found[0]) if found else ""


def _all(component: Component, name: str) -> list[Any]:
    value: Any = component.get(name)
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _attendee(value: Any) -> str:
    """The address, or the name of someone who has none."""
    text = one_line(str(value))
    if text.lower().startswith("mailto:"):
        return text[len("mailto:") :]
    return one_line(str(getattr(value, "params", {}).get("CN", ""))) or text


def _is_busy(component: Component, *, all_day: bool) -> bool:
    """Whether the event takes up time.

    Cancelled and transparent events do not. Neither do events for whole days, most of which are birthdays, holidays
    and reminders, unless they say that they do.
    """
    if _text(component, "STATUS").upper() == "CANCELLED" or _text(component, "TRANSP").upper() == "TRANSPARENT":
        return False
    said = _text(component, "TRANSP").upper() == "OPAQUE" or _text(component, "X-MICROSOFT-CDO-BUSYSTATUS").upper() in (
        "BUSY",
        "OOF",
    )
    return said or not all_day
