"""Events and free slots as plans see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Event:
    """An event, or one occurrence of a recurring one, in local time; an all-day event ends at the next midnight."""

    id: Id
    title: str
    start: datetime
    end: datetime
    all_day: bool
    location: str
    description: str
    attendees: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of free time."""

    start: datetime
    end: datetime
