"""Events in a stretch of time: plain ones as they are, recurring ones expanded as far as that is affordable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from .._extras import require
from .._text import clean, one_line
from ._document import Block, Document
from ._repetition import MAX_ALL_OCCURRENCES, Effort, TooOften, effort_of, stop_after
from ._times import to_local

if TYPE_CHECKING:
    from icalendar import Event as Component

STAMP = "%Y%m%dT%H%M%S"
TOO_OFTEN = "it repeats too often, so that it is shown once and takes up no time"
UNREADABLE = "its repetition cannot be read, so that it is shown once"
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError)


@dataclass(frozen=True, slots=True)
class EventFields:
    """What plans see of an event; the fields of `Event`."""

    id: str
    title: str
    start: datetime
    end: datetime
    all_day: bool
    location: str
    description: str
    attendees: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"start": self.start.isoformat(), "end": self.end.isoformat()}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event as a plan sees it, with what it was made of."""

    event: EventFields
    component: Component
    busy: bool

    def with_notice(self, notice: str) -> Occurrence:
        """The same, with what was not done about it where whoever reads it sees it first."""
        told = f"[{notice}]\n{self.event.description}".strip()
        return replace(self, event=replace(self.event, description=told))


@dataclass(frozen=True, slots=True)
class _Series:
    """The blocks of one UID, and what expanding them takes."""

    blocks: tuple[Block, ...]
    effort: Effort | None


def occurrences(
    document: Document,
    zone: tzinfo | None,
    since: datetime,
    before: datetime,
    series: tuple[datetime, datetime] | None = None,
) -> list[Occurrence]:
    """What overlaps the time from `since` to `before`, in order; `series` is where recurring events are expanded.

    A series that would be too much is there once, with a notice; all others are there as ever.
    """
    by_uid: dict[str, list[Block]] = defaultdict(list)
    for block in document.blocks:
        by_uid[block.uid].append(block)
    window = series or (since, before)
    found: list[Occurrence] = []
    recurring: list[_Series] = []
    for blocks in by_uid.values():
        if any(block.is_series for block in blocks):
            recurring.append(_Series(tuple(blocks), _effort(blocks, zone, *window)))
        else:
            found.extend(filter(None, (_plain(block, zone) for block in blocks)))
    left = float(MAX_ALL_OCCURRENCES)
    # The cheapest first: where all are too much, those that repeat most often are left out.
    for each in sorted(recurring, key=lambda each: each.effort.occurrences if each.effort else left):
        left -= each.effort.occurrences if each.effort else 0
        affordable = each.effort is not None and each.effort.is_affordable and left >= 0
        found.extend(_expanded(each.blocks, zone, *window) if affordable else _once(each.blocks, zone, *window))
    within = (each for each in found if _overlaps(each.event, since, before))
    return sorted(within, key=lambda each: (each.event.start, not each.event.all_day, each.event.title))


def _overlaps(event: EventFields, since: datetime, before: datetime) -> bool:
    return event.start < before and (event.end > since or event.start >= since)


def _plain(block: Block, zone: tzinfo | None) -> Occurrence | None:
    found = occurrence_of(block.uid, block.component, zone)
    return found.with_notice(block.limit) if found and block.limit else found


_MARGIN = timedelta(days=1)
"""Times without a zone are compared as if they were UTC."""


def _effort(blocks: Sequence[Block], zone: tzinfo | None, since: datetime, before: datetime) -> Effort | None:
    """What expanding these takes, or None if that is more than anybody can say."""
    try:
        spans = [times(block.component, zone) for block in blocks]
        first = min(start for start, _, _ in spans)
        longest = max(end - start for start, end, _ in spans)
        components = [block.component for block in blocks]
        return effort_of(components, first, longest, since - _MARGIN, before + _MARGIN)
    except TooOften:
        return None
    except _UNREADABLE:
        # No time at all: the expansion says the same at once, and nothing is multiplied for it.
        return Effort()


def _once(blocks: Sequence[Block], zone: tzinfo | None, since: datetime, before: datetime) -> Iterator[Occurrence]:
    """A series that is not expanded: one entry, in the window if it can be in it at all."""
    master = next((block for block in blocks if not block.is_override), blocks[0])
    found = occurrence_of(master.uid, master.component, zone)
    if found is None or found.event.start >= before:
        return
    start = max(found.event.start, since)
    try:
        end = min(start + (found.event.end - found.event.start), before)
    except OverflowError:
        end = before
    once = replace(found, event=replace(found.event, start=start, end=max(start, end)), busy=False)
    yield once.with_notice(TOO_OFTEN)


def _expanded(blocks: Sequence[Block], zone: tzinfo | None, since: datetime, before: datetime) -> Iterator[Occurrence]:
    require("recurring_ical_events")
    from icalendar import Calendar

    expand: Any = import_module("recurring_ical_events").of
    calendar = Calendar()
    calendar.subcomponents.extend(block.component for block in blocks)
    try:
        longest = max(end - start for start, end, _ in (times(block.component, zone) for block in blocks))
        with stop_after((before + longest + timedelta(days=8)).date()):
            parts = expand(calendar, skip_bad_series=True).between(since - _MARGIN, before + _MARGIN)
            if not parts:
                # None in the window, or skipped as bad: this raises for the latter.
                expand(calendar).between(since - _MARGIN, before + _MARGIN)
    except _UNREADABLE:
        # One event that makes no sense must not hide all the others.
        yield from (each.with_notice(UNREADABLE) for block in blocks if (each := _plain(block, zone)))
        return
    notice = next((block.limit for block in blocks if block.limit), "")
    for part in cast("list[Component]", parts):
        if found := occurrence_of(blocks[0].uid, part, zone):
            yield found.with_notice(notice) if notice else found


def occurrence_of(uid: str, component: Component, zone: tzinfo | None) -> Occurrence | None:
    """What plans see of an event, or None if it has no usable time."""
    try:
        start, end, all_day = times(component, zone)
        recurrence = moment(component, "RECURRENCE-ID")
        id = uid if recurrence is None else f"{uid}@{to_local(recurrence, zone):{STAMP}}"
    except _UNREADABLE:
        return None
    event = EventFields(
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
