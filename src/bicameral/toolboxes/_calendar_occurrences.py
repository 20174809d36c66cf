"""Occurrences of events in a window of time: single events as they are, series expanded within a budget.

`dateutil` iterates a rule from its beginning, day by day and time by time, and `recurring_ical_events` copies the event
for each occurrence in the window, at about 0.3 ms each. A rule of forty bytes can ask for a million of them. So an
upper bound of the cost of each series is computed (from its frequency, its BY lists and the window), and only series
within the budget are expanded. The bound holds because no rule is iterated beyond the window: see `stop_after`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from bicameral.toolboxes._calendar_document import EventBlock, IcsDocument
from bicameral.toolboxes._text import clean_text, one_line, require_standard

if TYPE_CHECKING:
    from icalendar import Event as Component


_UTC_NAMES = ("UTC", "Etc/UTC", "Zulu", "GMT", "Etc/GMT")


def to_local(value: date, zone: tzinfo | None) -> datetime:
    """A date or time of a calendar as naive local time; a time without a zone is local already."""
    if not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value if value.tzinfo is None else value.astimezone(zone).replace(tzinfo=None)


def to_zoned(local: datetime, zone: tzinfo | None) -> datetime:
    """A local time as it is stored: in the configured zone, or in UTC if none is configured."""
    if local.tzinfo is not None:
        return local.astimezone(UTC)
    if zone is None or str(zone) in _UTC_NAMES:
        return (local.astimezone() if zone is None else local.replace(tzinfo=zone)).astimezone(UTC)
    return local.replace(tzinfo=zone)


MAX_OCCURRENCES = 5_000
"""Of one series in one window: enough for an hourly event for half a year, or a daily one for more than ten years."""
MAX_ALL_OCCURRENCES = 10_000
MAX_STEPS = 1_000_000
"""Days and times that are examined between the first occurrence and the end of the window."""
MAX_EXCEPTIONS = 20_000
MAX_RULES = 10
MAX_OVERRIDES = 2_000
_MAX_LIST = 400

_FREQUENCY_DAYS = {"YEARLY": 365.2425, "MONTHLY": 30.436875, "WEEKLY": 7.0, "DAILY": 1.0, "HOURLY": 1 / 24}
_DAYS_PER_TURN = {"YEARLY": 366, "MONTHLY": 31, "WEEKLY": 7, "DAILY": 4, "HOURLY": 4}
"""The cost of one iteration of a rule, in days examined."""
_MAX_DAYS_A_YEAR = {"BYMONTH": 31, "BYMONTHDAY": 12, "BYYEARDAY": 1, "BYWEEKNO": 7, "BYDAY": 53}
"""On how many days of a year one entry of a list can apply, at most."""

START_FORMAT = "%Y%m%dT%H%M%S"
TOO_OFTEN_NOTICE = "it repeats too often, so that it is shown once and takes up no time"
UNREADABLE_NOTICE = "its repetition cannot be read, so that it is shown once"
_UNREADABLE_ERRORS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError)
_MARGIN = timedelta(days=1)
"""Times without a zone are compared as if they were UTC, so the window is widened by this much."""


class RepeatsTooOften(Exception):
    """An event repeats more often than can be shown."""


@dataclass(frozen=True, slots=True)
class ExpansionCost:
    """An upper bound of the cost of expanding a series."""

    steps: float = 0.0
    occurrences: float = 0.0

    def __add__(self, other: ExpansionCost) -> ExpansionCost:
        return ExpansionCost(self.steps + other.steps, self.occurrences + other.occurrences)

    @property
    def is_affordable(self) -> bool:
        return self.steps <= MAX_STEPS and self.occurrences <= MAX_OCCURRENCES


def expansion_cost(
    components: Iterable[Component], first: datetime, longest: timedelta, since: datetime, before: datetime
) -> ExpansionCost:
    """The cost of expanding a series between two times; raises `RepeatsTooOften` if there is no useful bound.

    Args:
        first: When the series begins.
        longest: The length of its longest event: occurrences that began so long before the window can reach into it.
    """
    components = list(components)
    masters = [component for component in components if "RECURRENCE-ID" not in component]
    if len(components) - len(masters) > MAX_OVERRIDES:
        raise RepeatsTooOften
    try:
        begin = max(first, since - longest)
    except OverflowError:
        begin = first
    window = _day_count(before - begin)
    cost = ExpansionCost(occurrences=len(components))
    for component in masters:
        rules = [rule for name in ("RRULE", "EXRULE") for rule in _property_values(component, name)]
        if len(rules) > MAX_RULES or _date_count(component, "EXDATE") > MAX_EXCEPTIONS:
            raise RepeatsTooOften
        for rule in rules:
            cost += _rule_cost(cast("dict[str, Any]", rule), _day_count(before - first), window)
        cost += ExpansionCost(occurrences=_date_count(component, "RDATE"))
    return cost


def _rule_cost(rule: dict[str, Any], span: float, window: float) -> ExpansionCost:
    frequency = str(_first_value(rule, "FREQ")).upper()
    interval = int(_first_value(rule, "INTERVAL", 1))
    if frequency not in _FREQUENCY_DAYS or interval < 1:
        # Every second or minute is more than can be shown, and an interval of zero never ends.
        raise RepeatsTooOften
    lists = {name: len(set(map(str, _property_values(rule, name)))) for name in rule if str(name).startswith("BY")}
    if any(length > _MAX_LIST for length in lists.values()):
        raise RepeatsTooOften
    times = math.prod(max(1, lists.get(name, 0)) for name in ("BYMINUTE", "BYSECOND"))
    if frequency != "HOURLY":
        times *= max(1, lists.get("BYHOUR", 0))
    turns = span / (_FREQUENCY_DAYS[frequency] * interval) + 2
    per_turn = _days_of_turn(frequency, lists)
    count = _first_value(rule, "COUNT", None)
    most = math.inf if count is None else max(0, int(count))
    # The occurrences before the window are iterated, too, though they are not copied.
    steps = turns * _DAYS_PER_TURN[frequency] + min(most, turns * per_turn * times)
    shown = window / (_FREQUENCY_DAYS[frequency] * interval) + 2
    days = min(shown * per_turn, _days_of_lists(lists, window) if frequency != "HOURLY" else math.inf)
    if "BYSETPOS" in lists:
        return ExpansionCost(steps, min(most, shown * lists["BYSETPOS"]))
    return ExpansionCost(steps, min(most, days * times))


def _days_of_turn(frequency: str, lists: dict[str, int]) -> int:
    """On how many days of one iteration (a year, a month, a week) a rule can apply."""
    if frequency in ("DAILY", "HOURLY"):
        return 1
    if frequency == "WEEKLY":
        return min(7, max(1, lists.get("BYDAY", 0)))
    dated = [name for name in ("BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO") if name in lists]
    if not dated:
        return max(1, lists.get("BYMONTH", 0)) if frequency == "YEARLY" else 1
    return min(_DAYS_PER_TURN[frequency], min(lists[name] * _MAX_DAYS_A_YEAR[name] for name in dated))


def _days_of_lists(lists: dict[str, int], window: float) -> float:
    """On how many days of a window all lists can apply: in each of its years, as many as the strictest list allows."""
    years = window / 365 + 2
    in_a_year = min((lists[name] * most for name, most in _MAX_DAYS_A_YEAR.items() if name in lists), default=366)
    return min(window + 2, years * min(366, in_a_year))


def _first_value(rule: dict[str, Any], name: str, default: object = "") -> Any:
    return next(iter(_property_values(rule, name)), default)


def _property_values(holder: Any, name: str) -> list[Any]:
    """The values of a property or of a part of a rule, which may be one value or a list."""
    value: Any = holder.get(name)
    if value is None:
        return []
    return list(cast("Iterable[Any]", value)) if isinstance(value, list | tuple) else [value]


def _date_count(component: Component, name: str) -> int:
    return sum(len(getattr(value, "dts", ())) or 1 for value in _property_values(component, name))


def _day_count(length: timedelta) -> float:
    return max(0.0, length / timedelta(days=1))


class _BeyondWindow(Exception):
    """A rule was iterated to the end of the window."""


_horizon = date.max


@contextmanager
def stop_after(last: date) -> Generator[None]:
    """Stop the iteration of all rules after a day.

    `dateutil` stops at the first occurrence after the window. A rule that never applies (the 30th of February) has
    none, and would be iterated to the year 9999.
    """
    global _horizon
    _bound_rules()
    before, _horizon = _horizon, last
    try:
        yield
    finally:
        _horizon = before


def _bound_rules() -> None:
    """Patch `dateutil` to check the horizon at each iteration; this affects the parser process only."""
    rules: Any = import_module("dateutil.rrule")
    if getattr(rules, "_bicameral", False):
        return
    original_iter, info = rules.rrule._iter, rules._iterinfo

    class BoundedInfo(info):  # pyright: ignore[reportUntypedBaseClass]
        def _check(self, year: int, month: int, day: int) -> None:
            if (year, month, day) > (_horizon.year, _horizon.month, _horizon.day):
                raise _BeyondWindow

        def ydayset(self, year: int, month: int, day: int) -> Any:
            self._check(year, 1, 1)
            return super().ydayset(year, month, day)  # pyright: ignore

        def mdayset(self, year: int, month: int, day: int) -> Any:
            self._check(year, month, 1)
            return super().mdayset(year, month, day)  # pyright: ignore

        def wdayset(self, year: int, month: int, day: int) -> Any:
            self._check(year, month, day)
            return super().wdayset(year, month, day)  # pyright: ignore

        def ddayset(self, year: int, month: int, day: int) -> Any:
            self._check(year, month, day)
            return super().ddayset(year, month, day)  # pyright: ignore

    def bounded_iter(self: Any) -> Generator[datetime]:
        total = 0
        try:
            for moment in original_iter(self):
                total += 1
                yield moment
        except _BeyondWindow:
            # `dateutil` sets this at the end of a rule, and its cache relies on it.
            self._len = total

    rules.rrule._iter, rules._iterinfo, rules._bicameral = bounded_iter, BoundedInfo, True


@dataclass(frozen=True, slots=True)
class EventFields:
    """The fields of `calendar.Event`, whose id has a type of its own in plans."""

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
    """An event as a plan sees it, with the component that it was made from."""

    event: EventFields
    component: Component
    busy: bool

    def with_notice(self, notice: str) -> Occurrence:
        """The occurrence with a notice at the beginning of its description."""
        description = f"[{notice}]\n{self.event.description}".strip()
        return replace(self, event=replace(self.event, description=description))


@dataclass(frozen=True, slots=True)
class _Series:
    """The blocks of one UID, and the cost of expanding them; None if it has no useful bound."""

    blocks: tuple[EventBlock, ...]
    cost: ExpansionCost | None


def list_occurrences(
    document: IcsDocument,
    zone: tzinfo | None,
    since: datetime,
    before: datetime,
    series: tuple[datetime, datetime] | None = None,
) -> list[Occurrence]:
    """The occurrences that overlap the time from `since` to `before`, in order.

    A series that exceeds the budget is listed once, with a notice. `series` is a narrower window for expanding.
    """
    by_uid: dict[str, list[EventBlock]] = defaultdict(list)
    for block in document.blocks:
        by_uid[block.uid].append(block)
    window = series or (since, before)
    occurrences: list[Occurrence] = []
    recurring: list[_Series] = []
    for blocks in by_uid.values():
        if any(block.is_series for block in blocks):
            recurring.append(_Series(tuple(blocks), _estimate_series(blocks, zone, *window)))
        else:
            occurrences.extend(filter(None, (_plain_occurrence(block, zone) for block in blocks)))
    left = float(MAX_ALL_OCCURRENCES)
    # The cheapest first: if the budget is exceeded, the series that repeat most often are not expanded.
    for group in sorted(recurring, key=lambda group: group.cost.occurrences if group.cost else left):
        left -= group.cost.occurrences if group.cost else 0
        affordable = group.cost is not None and group.cost.is_affordable and left >= 0
        occurrences.extend((_expand_series if affordable else _show_once)(group.blocks, zone, *window))
    within = [
        occurrence
        for occurrence in occurrences
        if occurrence.event.start < before and (occurrence.event.end > since or occurrence.event.start >= since)
    ]
    return sorted(within, key=lambda found: (found.event.start, not found.event.all_day, found.event.title))


def _plain_occurrence(block: EventBlock, zone: tzinfo | None) -> Occurrence | None:
    occurrence = make_occurrence(block.uid, block.component, zone)
    return occurrence.with_notice(block.limit) if occurrence and block.limit else occurrence


def _estimate_series(
    blocks: Sequence[EventBlock], zone: tzinfo | None, since: datetime, before: datetime
) -> ExpansionCost | None:
    """The cost of expanding these blocks, or None if it has no useful bound."""
    try:
        spans = [event_times(block.component, zone) for block in blocks]
        first = min(start for start, _, _ in spans)
        longest = max(end - start for start, end, _ in spans)
        components = [block.component for block in blocks]
        return expansion_cost(components, first, longest, since - _MARGIN, before + _MARGIN)
    except RepeatsTooOften:
        return None
    except _UNREADABLE_ERRORS:
        # The times cannot be read, and the expansion fails at once for the same reason; so it costs nothing.
        return ExpansionCost()


def _show_once(
    blocks: Sequence[EventBlock], zone: tzinfo | None, since: datetime, before: datetime
) -> Iterator[Occurrence]:
    """One entry for a series that is not expanded, inside the window unless it begins after it."""
    master = next((block for block in blocks if not block.is_override), blocks[0])
    occurrence = make_occurrence(master.uid, master.component, zone)
    if occurrence is None or occurrence.event.start >= before:
        return
    event = occurrence.event
    start = max(event.start, since)
    try:
        end = min(start + (event.end - event.start), before)
    except OverflowError:
        end = before
    once = replace(occurrence, event=replace(event, start=start, end=max(start, end)), busy=False)
    yield once.with_notice(TOO_OFTEN_NOTICE)


def _expand_series(
    blocks: Sequence[EventBlock], zone: tzinfo | None, since: datetime, before: datetime
) -> Iterator[Occurrence]:
    require_standard("recurring_ical_events")
    from icalendar import Calendar

    expand: Any = import_module("recurring_ical_events").of
    calendar = Calendar()
    calendar.subcomponents.extend(block.component for block in blocks)
    try:
        longest = max(end - start for start, end, _ in (event_times(block.component, zone) for block in blocks))
        with stop_after((before + longest + timedelta(days=8)).date()):
            parts = expand(calendar, skip_bad_series=True).between(since - _MARGIN, before + _MARGIN)
            if not parts:
                # Either there is none in the window, or the series was skipped as bad; then this raises.
                expand(calendar).between(since - _MARGIN, before + _MARGIN)
    except _UNREADABLE_ERRORS:
        # One malformed event must not hide all the others.
        for block in blocks:
            if occurrence := _plain_occurrence(block, zone):
                yield occurrence.with_notice(UNREADABLE_NOTICE)
        return
    notice = next((block.limit for block in blocks if block.limit), "")
    for part in cast("list[Component]", parts):
        if occurrence := make_occurrence(blocks[0].uid, part, zone):
            yield occurrence.with_notice(notice) if notice else occurrence


def make_occurrence(uid: str, component: Component, zone: tzinfo | None) -> Occurrence | None:
    """The occurrence for a component, or None if it has no usable time."""
    try:
        start, end, all_day = event_times(component, zone)
        recurrence = event_moment(component, "RECURRENCE-ID")
        id = uid if recurrence is None else f"{uid}@{to_local(recurrence, zone):{START_FORMAT}}"
    except _UNREADABLE_ERRORS:
        return None
    event = EventFields(
        id=id,
        title=one_line(_property_text(component, "SUMMARY")),
        start=start,
        end=end,
        all_day=all_day,
        location=one_line(_property_text(component, "LOCATION")),
        description=clean_text(_property_text(component, "DESCRIPTION")).strip(),
        attendees=tuple(filter(None, map(_attendee_text, _property_values(component, "ATTENDEE")))),
    )
    return Occurrence(event, component, _is_busy(component, all_day=all_day))


def event_times(component: Component, zone: tzinfo | None) -> tuple[datetime, datetime, bool]:
    """Start and end in local time, and whether the event lasts whole days."""
    first = event_moment(component, "DTSTART")
    if first is None:
        raise ValueError("an event without a start")
    all_day = not isinstance(first, datetime)
    start, last = to_local(first, zone), event_moment(component, "DTEND")
    length = getattr(component.get("DURATION"), "dt", None)
    if last is not None:
        end = to_local(last, zone)
    elif isinstance(length, timedelta):
        end = start + length
    else:
        end = start + timedelta(days=1 if all_day else 0)
    return start, max(start, end), all_day


def event_moment(component: Component, name: str) -> date | None:
    """The date or time of a property, or None if there is none; raises ValueError if it is malformed."""
    prop: Any = component.get(name)
    if prop is None:
        return None
    value = getattr(prop, "dt", None)
    if not isinstance(value, date):
        raise ValueError(f"{name} is no date")
    return value


def _property_text(component: Component, name: str) -> str:
    values = _property_values(component, name)
    return str(values[0]) if values else ""


def _attendee_text(value: Any) -> str:
    """The address of an attendee, or the name if there is none."""
    text = one_line(str(value))
    if text.lower().startswith("mailto:"):
        return text[len("mailto:") :]
    return one_line(str(getattr(value, "params", {}).get("CN", ""))) or text


def _is_busy(component: Component, *, all_day: bool) -> bool:
    """Whether the event is busy time.

    Cancelled and transparent events are not. Neither are all-day events, most of which are birthdays, holidays and
    reminders, unless they are marked as busy.
    """
    status, transparency, busy_status = (
        _property_text(component, name).upper() for name in ("STATUS", "TRANSP", "X-MICROSOFT-CDO-BUSYSTATUS")
    )
    if status == "CANCELLED" or transparency == "TRANSPARENT":
        return False
    return transparency == "OPAQUE" or busy_status in ("BUSY", "OOF") or not all_day
