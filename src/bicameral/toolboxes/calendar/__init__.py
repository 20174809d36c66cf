"""The calendar: an ICS file. List and search events, find free time, add, change and delete events.

Recurring events come out as their occurrences, each with an id of its own (`UID@start`), so that one of them can be
changed or deleted alone. Times come out, and go in, as local time. A change touches the lines of the event that it is
about and no other line of the file.

Anybody can send an invitation, so the file is hostile: `_reading` and what it imports run in the parser process, within
its limits and their own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bicameral.toolboxes.calendar._tools import CalendarSettings, Event, Slot, toolbox

__all__ = ["CalendarSettings", "Event", "Slot", "toolbox"]

_MODULES = {"CalendarSettings": "_tools", "Event": "_tools", "Slot": "_tools", "toolbox": "_tools"}


def __getattr__(name: str) -> Any:
    # The parser process imports `_reading` from here and needs none of what the tools are made with.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
