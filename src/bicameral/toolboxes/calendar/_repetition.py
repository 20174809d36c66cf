"""How often an event repeats, estimated from its rules before anything is multiplied out.

`dateutil` goes through a rule from its beginning, day by day and time by time, and `recurring_ical_events` makes a copy
of the event for each occurrence in the window, at about 0.3 ms each. A rule of forty bytes can ask for a million of
them. So each series is estimated from above (frequency, lists of its parts, window), and only what is affordable is
expanded. The estimate holds because no rule is followed beyond the window: see `stop_after`.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from icalendar import Event as Component

MAX_OCCURRENCES = 5_000
"""Of one series, in one window: an hourly event for half a year, a daily one for more than ten."""
MAX_ALL_OCCURRENCES = 10_000
MAX_STEPS = 1_000_000
"""Days and times that are looked at between the first occurrence and the end of the window."""
MAX_EXCEPTIONS = 20_000
MAX_RULES = 10
MAX_OVERRIDES = 2_000
_MAX_LIST = 400

_DAYS = {"YEARLY": 365.2425, "MONTHLY": 30.436875, "WEEKLY": 7.0, "DAILY": 1.0, "HOURLY": 1 / 24}
_LOOKED_AT = {"YEARLY": 366, "MONTHLY": 31, "WEEKLY": 7, "DAILY": 4, "HOURLY": 4}
"""What one turn of a rule costs, in days looked at."""
_IN_A_YEAR = {"BYMONTH": 31, "BYMONTHDAY": 12, "BYYEARDAY": 1, "BYWEEKNO": 7, "BYDAY": 53}
"""On how many days of a year one entry of a list can hold, at most."""


class TooOften(Exception):
    """An event repeats more often than can be shown."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What expanding a series takes, at most."""

    steps: float = 0.0
    occurrences: float = 0.0

    def __add__(self, other: Effort) -> Effort:
        return Effort(self.steps + other.steps, self.occurrences + other.occurrences)

    @property
    def is_affordable(self) -> bool:
        return self.steps <= MAX_STEPS and self.occurrences <= MAX_OCCURRENCES


def effort_of(
    components: Iterable[Component], first: datetime, longest: timedelta, since: datetime, before: datetime
) -> Effort:
    """What expanding a series takes between two times; `TooOften` where no bound can be given.

    `first` is where it begins. Of an event that lasts a year (`longest`), those that began
    a year before are looked for, too.
    """
    components = list(components)
    masters = [each for each in components if "RECURRENCE-ID" not in each]
    if len(components) - len(masters) > MAX_OVERRIDES:
        raise TooOften
    try:
        begin = max(first, since - longest)
    except OverflowError:
        begin = first
    window = _days(before - begin)
    found = Effort(occurrences=len(components))
    for component in masters:
        rules = [rule for name in ("RRULE", "EXRULE") for rule in _all(component, name)]
        if len(rules) > MAX_RULES or _dates(component, "EXDATE") > MAX_EXCEPTIONS:
            raise TooOften
        for rule in rules:
            found += _of_rule(cast("dict[str, Any]", rule), _days(before - first), window)
        found += Effort(occurrences=_dates(component, "RDATE"))
    return found


def _of_rule(rule: dict[str, Any], span: float, window: float) -> Effort:
    frequency = str(_one(rule, "FREQ")).upper()
    interval = int(_one(rule, "INTERVAL", 1))
    if frequency not in _DAYS or interval < 1:
        # Each second or minute is more than can be shown, and an interval of nothing never ends.
        raise TooOften
    lists = {name: len(set(map(str, _all(rule, name)))) for name in rule if str(name).startswith("BY")}
    if any(length > _MAX_LIST for length in lists.values()):
        raise TooOften
    times = math.prod(max(1, lists.get(name, 0)) for name in ("BYMINUTE", "BYSECOND"))
    if frequency != "HOURLY":
        times *= max(1, lists.get("BYHOUR", 0))
    turns = span / (_DAYS[frequency] * interval) + 2
    per_turn = _days_of_turn(frequency, lists)
    most = _limit(rule, lists)
    # What comes before the window is gone through, too, though nothing is made of it.
    steps = turns * _LOOKED_AT[frequency] + min(most, turns * per_turn * times)
    shown = window / (_DAYS[frequency] * interval) + 2
    days = min(shown * per_turn, _days_of_lists(lists, window) if frequency != "HOURLY" else math.inf)
    if "BYSETPOS" in lists:
        return Effort(steps, min(most, shown * lists["BYSETPOS"]))
    return Effort(steps, min(most, days * times))


def _days_of_turn(frequency: str, lists: dict[str, int]) -> int:
    """On how many days of one turn (a year, a month, a week) a rule can hold."""
    if frequency in ("DAILY", "HOURLY"):
        return 1
    if frequency == "WEEKLY":
        return min(7, max(1, lists.get("BYDAY", 0)))
    dated = [name for name in ("BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO") if name in lists]
    if not dated:
        return max(1, lists.get("BYMONTH", 0)) if frequency == "YEARLY" else 1
    return min(_LOOKED_AT[frequency], min(lists[name] * _IN_A_YEAR[name] for name in dated))


def _days_of_lists(lists: dict[str, int], window: float) -> float:
    """On how many days of a window all lists can hold: of each year that it touches, as many as the shortest allows."""
    years = window / 365 + 2
    in_a_year = min((lists[name] * most for name, most in _IN_A_YEAR.items() if name in lists), default=366)
    return min(window + 2, years * min(366, in_a_year))


def _limit(rule: dict[str, Any], lists: dict[str, int]) -> float:
    count = _one(rule, "COUNT", None)
    return math.inf if count is None else max(0, int(count))


def _one(rule: dict[str, Any], name: str, default: object = "") -> Any:
    found = _all(rule, name)
    return found[0] if found else default


def _all(holder: Any, name: str) -> list[Any]:
    value: Any = holder.get(name)
    if value is None:
        return []
    return list(cast("Iterable[Any]", value)) if isinstance(value, list | tuple) else [value]


def _dates(component: Component, name: str) -> int:
    return sum(len(getattr(each, "dts", ())) or 1 for each in _all(component, name))


def _days(length: timedelta) -> float:
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
