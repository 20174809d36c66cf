"""Occurrences of events in a stretch of time: plain events as they are, series expanded as far as is affordable.

`dateutil` follows a rule from its beginning, day by day and time by time, and `recurring_ical_events` copies the
event for each occurrence in the window, at about 0.3 ms each. A rule of forty bytes can ask for a million of them. So
the cost of each series is estimated from above (frequency, lists of its parts, window), and only what is affordable
is expanded. The estimate holds because no rule is followed beyond the window: see `stop_after`.
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

from bicameral.toolboxes._text import clean_text, one_line, require_standard
from bicameral.toolboxes.calendar._document import EventBlock, IcsDocument

if TYPE_CHECKING:
    from icalendar import Event as Component


_UTC_NAMES = ("UTC", "Etc/UTC", "Zulu", "GMT", "Etc/GMT")


def to_local(value: date, zone: tzinfo | None) -> datetime:
    """A date or time from a calendar as naive local time; times without a zone are local already."""
    if not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value if value.tzinfo is None else value.astimezone(zone).replace(tzinfo=None)


def to_zoned(local: datetime, zone: tzinfo | None) -> datetime:
    """Local time as a calendar stores it: in the configured zone, or in UTC where only the machine knows its zone."""
    if local.tzinfo is not None:
        return local.astimezone(UTC)
    if zone is None or str(zone) in _UTC_NAMES:
        return (local.astimezone() if zone is None else local.replace(tzinfo=zone)).astimezone(UTC)
    return local.replace(tzinfo=zone)


MAX_OCCURRENCES = 5_000
"""Of one series, in one window: an hourly event for half a year, a daily one for more than ten."""
MAX_ALL_OCCURRENCES = 10_000
MAX_STEPS = 1_000_000
"""Days and times that are looked at between the first occurrence and the end of the window."""
MAX_EXCEPTIONS = 20_000
MAX_RULES = 10
MAX_OVERRIDES = 2_000
_MAX_LIST = 400

_FREQUENCY_DAYS = {"YEARLY": 365.2425, "MONTHLY": 30.436875, "WEEKLY": 7.0, "DAILY": 1.0, "HOURLY": 1 / 24}
_DAYS_PER_TURN = {"YEARLY": 366, "MONTHLY": 31, "WEEKLY": 7, "DAILY": 4, "HOURLY": 4}
"""What one turn of a rule costs, in days looked at."""
_MAX_DAYS_A_YEAR = {"BYMONTH": 31, "BYMONTHDAY": 12, "BYYEARDAY": 1, "BYWEEKNO": 7, "BYDAY": 53}
"""On how many days of a year one entry of a list can hold, at most."""


class RepeatsTooOften(Exception):
    """An event repeats more often than can be shown."""


@dataclass(frozen=True, slots=True)
class ExpansionCost:
    """What expanding a series takes, at most."""

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
    """What expanding a series takes between two times; `RepeatsTooOften` where no bound can be given.

    `first` is where it begins. Of an event that lasts a year (`longest`), those that began
    a year before are looked for, too.
    """
    components = list(components)
    masters = [each for each in components if "RECURRENCE-ID" not in each]
    if len(components) - len(masters) > MAX_OVERRIDES:
        raise RepeatsTooOften
    try:
        begin = max(first, since - longest)
    except OverflowError:
        begin = first
    window = _day_count(before - begin)
    found = ExpansionCost(occurrences=len(components))
    for component in masters:
        rules = [rule for name in ("RRULE", "EXRULE") for rule in _rule_values(component, name)]
        if len(rules) > MAX_RULES or _date_count(component, "EXDATE") > MAX_EXCEPTIONS:
            raise RepeatsTooOften
        for rule in rules:
            found += _rule_cost(cast("dict[str, Any]", rule), _day_count(before - first), window)
        found += ExpansionCost(occurrences=_date_count(component, "RDATE"))
    return found


def _rule_cost(rule: dict[str, Any], span: float, window: float) -> ExpansionCost:
    frequency = str(_first_value(rule, "FREQ")).upper()
    interval = int(_first_value(rule, "INTERVAL", 1))
    if frequency not in _FREQUENCY_DAYS or interval < 1:
        # Each second or minute is more than can be shown, and an interval of nothing never ends.
        raise RepeatsTooOften
    lists = {name: len(set(map(str, _rule_values(rule, name)))) for name in rule if str(name).startswith("BY")}
    if any(length > _MAX_LIST for length in lists.values()):
        raise RepeatsTooOften
    times = math.prod(max(1, lists.get(name, 0)) for name in ("BYMINUTE", "BYSECOND"))
    if frequency != "HOURLY":
        times *= max(1, lists.get("BYHOUR", 0))
    turns = span / (_FREQUENCY_DAYS[frequency] * interval) + 2
    per_turn = _days_of_turn(frequency, lists)
    most = _rule_count(rule, lists)
    # What comes before the window is gone through, too, though nothing is made of it.
    steps = turns * _DAYS_PER_TURN[frequency] + min(most, turns * per_turn * times)
    shown = window / (_FREQUENCY_DAYS[frequency] * interval) + 2
    days = min(shown * per_turn, _days_of_lists(lists, window) if frequency != "HOURLY" else math.inf)
    if "BYSETPOS" in lists:
        return ExpansionCost(steps, min(most, shown * lists["BYSETPOS"]))
    return ExpansionCost(steps, min(most, days * times))


def _days_of_turn(frequency: str, lists: dict[str, int]) -> int:
    """On how many days of one turn (a year, a month, a week) a rule can hold."""
    if frequency in ("DAILY", "HOURLY"):
        return 1
    if frequency == "WEEKLY":
        return min(7, max(1, lists.get("BYDAY", 0)))
    dated = [name for name in ("BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO") if name in lists]
    if not dated:
        return max(1, lists.get("BYMONTH", 0)) if frequency == "YEARLY" else 1
    return min(_DAYS_PER_TURN[frequency], min(lists[name] * _MAX_DAYS_A_YEAR[name] for name in dated))


def _days_of_lists(lists: dict[str, int], window: float) -> float:
    """On how many days of a window all lists can hold: of each year that it touches, as many as the shortest allows."""
    years = window / 365 + 2
    in_a_year = min((lists[name] * most for name, most in _MAX_DAYS_A_YEAR.items() if name in lists), default=366)
    return min(window + 2, years * min(366, in_a_year))


def _rule_count(rule: dict[str, Any], lists: dict[str, int]) -> float:
    count = _first_value(rule, "COUNT", None)
    return math.inf if count is None else max(0, int(count))


def _first_value(rule: dict[str, Any], name: str, default: object = "") -> Any:
    found = _rule_values(rule, name)
    return found[0] if found else default


def _rule_values(holder: Any, name: str) -> list[Any]:
    value: Any = holder.get(name)
    if value is None:
        return []
    return list(cast("Iterable[Any]", value)) if isinstance(value, list | tuple) else [value]


def _date_count(component: Component, name: str) -> int:
    return sum(len(getattr(each, "dts", ())) or 1 for each in _rule_values(component, name))


def _day_count(length: timedelta) -> float:
    return max(0.0, length / timedelta(days=1))


class _BeyondWindow(Exception):
    """A rule has come past what is wanted of it."""


_horizon = date.max


@contextmanager
def stop_after(last: date) -> Generator[None]:
    """Let no rule be followed beyond a day.

    `dateutil` stops when it has found an occurrence after the window. A rule that never holds (the 30th of February)
    has none, and would be followed to the year 9999.
    """
    global _horizon
    _bound_rules()
    before, _horizon = _horizon, last
    try:
        yield
    finally:
        _horizon = before


def _bound_rules() -> None:
    """Make `dateutil` look at the horizon at each turn of a rule; this is the parser process, and nobody else's."""
    rules: Any = import_module("dateutil.rrule")
    if getattr(rules, "_bicameral", False):
        return
    follow, info = rules.rrule._iter, rules._iterinfo

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

    def followed(self: Any) -> Generator[datetime]:
        total = 0
        try:
            for found in follow(self):
                total += 1
                yield found
        except _BeyondWindow:
            # What the rule's own end says, too: its cache goes by it.
            self._len = total

    rules.rrule._iter, rules._iterinfo, rules._bicameral = followed, BoundedInfo, True


START_FORMAT = "%Y%m%dT%H%M%S"
TOO_OFTEN_NOTICE = "it repeats too often, so that it is shown once and takes up no time"
UNREADABLE_NOTICE = "its repetition cannot be read, so that it is shown once"
_UNREADABLE_ERRORS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError)


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

    blocks: tuple[EventBlock, ...]
    effort: ExpansionCost | None


def list_occurrences(
    document: IcsDocument,
    zone: tzinfo | None,
    since: datetime,
    before: datetime,
    series: tuple[datetime, datetime] | None = None,
) -> list[Occurrence]:
    """What overlaps the time from `since` to `before`, in order; `series` is where recurring events are expanded.

    A series that would be too much is there once, with a notice; all others are there as ever.
    """
    by_uid: dict[str, list[EventBlock]] = defaultdict(list)
    for block in document.blocks:
        by_uid[block.uid].append(block)
    window = series or (since, before)
    found: list[Occurrence] = []
    recurring: list[_Series] = []
    for blocks in by_uid.values():
        if any(block.is_series for block in blocks):
            recurring.append(_Series(tuple(blocks), _estimate_series(blocks, zone, *window)))
        else:
            found.extend(filter(None, (_plain_occurrence(block, zone) for block in blocks)))
    left = float(MAX_ALL_OCCURRENCES)
    # The cheapest first: where all are too much, those that repeat most often are left out.
    for each in sorted(recurring, key=lambda each: each.effort.occurrences if each.effort else left):
        left -= each.effort.occurrences if each.effort else 0
        affordable = each.effort is not None and each.effort.is_affordable and left >= 0
        found.extend(
            _expand_series(each.blocks, zone, *window) if affordable else _show_once(each.blocks, zone, *window)
        )
    within = (each for each in found if _overlaps(each.event, since, before))
    return sorted(within, key=lambda each: (each.event.start, not each.event.all_day, each.event.title))


def _overlaps(event: EventFields, since: datetime, before: datetime) -> bool:
    return event.start < before and (event.end > since or event.start >= since)


def _plain_occurrence(block: EventBlock, zone: tzinfo | None) -> Occurrence | None:
    found = make_occurrence(block.uid, block.component, zone)
    return found.with_notice(block.limit) if found and block.limit else found


_MARGIN = timedelta(days=1)
"""Times without a zone are compared as if they were UTC."""


def _estimate_series(
    blocks: Sequence[EventBlock], zone: tzinfo | None, since: datetime, before: datetime
) -> ExpansionCost | None:
    """What expanding these takes, or None if that is more than anybody can say."""
    try:
        spans = [event_times(block.component, zone) for block in blocks]
        first = min(start for start, _, _ in spans)
        longest = max(end - start for start, end, _ in spans)
        components = [block.component for block in blocks]
        return expansion_cost(components, first, longest, since - _MARGIN, before + _MARGIN)
    except RepeatsTooOften:
        return None
    except _UNREADABLE_ERRORS:
        # No time at all: the expansion says the same at once, and nothing is multiplied for it.
        return ExpansionCost()


def _show_once(
    blocks: Sequence[EventBlock], zone: tzinfo | None, since: datetime, before: datetime
) -> Iterator[Occurrence]:
    """A series that is not expanded: one entry, in the window if it can be in it at all."""
    master = next((block for block in blocks if not block.is_override), blocks[0])
    found = make_occurrence(master.uid, master.component, zone)
    if found is None or found.event.start >= before:
        return
    start = max(found.event.start, since)
    try:
        end = min(start + (found.event.end - found.event.start), before)
    except OverflowError:
        end = before
    once = replace(found, event=replace(found.event, start=start, end=max(start, end)), busy=False)
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
                # None in the window, or skipped as bad: this raises for the latter.
                expand(calendar).between(since - _MARGIN, before + _MARGIN)
    except _UNREADABLE_ERRORS:
        # One event that makes no sense must not hide all the others.
        yield from (each.with_notice(UNREADABLE_NOTICE) for block in blocks if (each := _plain_occurrence(block, zone)))
        return
    notice = next((block.limit for block in blocks if block.limit), "")
    for part in cast("list[Component]", parts):
        if found := make_occurrence(blocks[0].uid, part, zone):
            yield found.with_notice(notice) if notice else found


def make_occurrence(uid: str, component: Component, zone: tzinfo | None) -> Occurrence | None:
    """What plans see of an event, or None if it has no usable time."""
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
    """Start and end in local time, and whether the event is for whole days."""
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
    """A date or time among the properties; one that is broken is a ValueError."""
    prop: Any = component.get(name)
    if prop is None:
        return None
    value = getattr(prop, "dt", None)
    if not isinstance(value, date):
        raise ValueError(f"{name} is no date")
    return value


def _property_text(component: Component, name: str) -> str:
    found = _property_values(component, name)
    return str(found[0]) if found else ""


def _property_values(component: Component, name: str) -> list[Any]:
    value: Any = component.get(name)
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _attendee_text(value: Any) -> str:
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
    if (
        _property_text(component, "STATUS").upper() == "CANCELLED"
        or _property_text(component, "TRANSP").upper() == "TRANSPARENT"
    ):
        return False
    said = _property_text(component, "TRANSP").upper() == "OPAQUE" or _property_text(
        component, "X-MICROSOFT-CDO-BUSYSTATUS"
    ).upper() in (
        "BUSY",
        "OOF",
    )
    return said or not all_day
