"""What a user can set for the calendar in `bicameral.toml`."""

from __future__ import annotations

from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import field_validator

from bicameral.tools import Settings


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
