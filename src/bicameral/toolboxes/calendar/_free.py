"""The gaps between busy times."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from ._records import Slot


def free_slots(busy: Iterable[tuple[datetime, datetime]], start: datetime, end: datetime, minutes: int) -> list[Slot]:
    """The free stretches between start and end that are long enough, each as long as it can be."""
    enough = timedelta(minutes=minutes)
    slots: list[Slot] = []
    free_from = start
    for begin, finish in sorted(busy):
        if min(begin, end) - free_from >= enough:
            slots.append(Slot(free_from, min(begin, end)))
        free_from = max(free_from, finish)
    if end - free_from >= enough:
        slots.append(Slot(free_from, end))
    return slots
