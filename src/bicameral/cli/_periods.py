"""Times as people write them at a command line: how long, and when."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(min|[smhdw])")
_LONGEST = 10 * 365 * 86_400


def seconds_of(text: str) -> float:
    """The seconds of a time such as `90d` or `2h30m`; a ValueError if it is none.

    Example:
        >>> seconds_of("2h30m")
        9000.0
    """
    words = text.strip().lower()
    if not words or _PART.sub("", words).strip():
        raise ValueError(f"{text!r} is no time")
    found = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(words))
    if not 0 < found <= _LONGEST:
        raise ValueError(f"{text!r} is no time")
    return found


class Period(click.ParamType[float]):
    """How long: `90d`, `2h30m`, `45s`."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return seconds_of(str(value))
        except ValueError:
            return self.fail(f"{value!r} is no time. Write a number and s, m, h, d or w: 90d, 2h30m.", param, ctx)


class Moment(click.ParamType[datetime]):
    """When: a date, a date with a time, or a time of the day; in the machine's time zone unless it names one."""

    name = "when"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return _moment(str(value).strip())
        except ValueError:
            message = f"{value!r} is no time. Write 2026-03-01T09:00, 2026-03-01 or 09:00."
            return self.fail(message, param, ctx)


def _moment(text: str) -> datetime:
    if re.fullmatch(r"\d{1,2}:\d{2}", text):
        hour, minute = map(int, text.split(":"))
        now = datetime.now()
        then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
        return (then if then > now else then + timedelta(days=1)).astimezone(UTC)
    return datetime.fromisoformat(text).astimezone(UTC)


def clock(moment: datetime) -> str:
    """A moment as it reads here: the time of the day if that is today, with its date if not."""
    here = moment.astimezone()
    return here.strftime("%H:%M:%S" if here.date() == datetime.now().date() else "%Y-%m-%d %H:%M")
