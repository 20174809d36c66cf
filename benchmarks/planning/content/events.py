"""The events in the world's calendar."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Entry:
    """One event; `minutes` 0 means the whole day."""

    title: str
    start: datetime
    minutes: int
    location: str = ""
    description: str = ""

    @property
    def day(self) -> date:
        return self.start.date()

    @property
    def end(self) -> datetime:
        return self.start + timedelta(minutes=self.minutes or 24 * 60)


def _at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, minute)


ENTRIES: tuple[Entry, ...] = (
    Entry("Weekly stand-up", _at(9, 9, 30), 30, "Room Oak"),
    Entry("Design review", _at(10, 13), 60, "Room Birch"),
    Entry("Coffee with Lee", _at(11, 9), 30, "Kitchen"),
    Entry("Project sync", _at(11, 11), 60, "Room Oak", "Status of the new shop."),
    Entry("Budget planning", _at(11, 14), 90, "Room Maple", "Bring the numbers for the second quarter."),
    Entry("Customer call", _at(12, 10), 60, "Online", "First call with Adatum."),
    Entry("Team lunch", _at(12, 13), 60, "Green Fork"),
    Entry("Security workshop", _at(13, 9), 180, "Room Birch", "Laptops needed."),
    Entry("Retrospective", _at(13, 15), 60, "Room Oak"),
    Entry("Weekly stand-up", _at(16, 9, 30), 30, "Room Oak"),
    Entry("Performance talk", _at(17, 16), 60, "Office 3"),
    Entry("Company day", _at(18, 0), 0),
    Entry("Vendor demo", _at(19, 11), 90, "Online", "Fabrikam shows the new press."),
)
