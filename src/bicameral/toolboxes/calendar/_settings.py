"""What a user can set for the calendar in `bicameral.toml`, and what local time means."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import field_validator

from bicameral.tools import Settings

_UTC_NAMES = ("UTC", "Etc/UTC", "Zulu", "GMT", "Etc/GMT")


class CalendarSettings(Settings):
    """Where the calendar is and in which time zone its owner lives."""

    file: str = "calendar.ics"
    timezone: str | None = None
    """Such as `Europe/Berlin`; without it, the time zone of the machine."""

    @field_validator("timezone")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        try:
            return name if name is None else ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{name!r} is not a time zone; write one like 'Europe/Berlin'") from None

    @property
    def zone(self) -> tzinfo | None:
        return ZoneInfo(self.timezone) if self.timezone else None


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
