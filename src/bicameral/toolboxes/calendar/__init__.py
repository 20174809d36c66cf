"""The calendar, an ICS file: list and search events, find free time, add, change and delete events.

Recurring events are listed as occurrences, each with its own id (`UID@start`), so that one of them can be changed or
deleted alone. All times are local times. A change rewrites the lines of its event and no other line of the file.

Anybody can send an invitation, so the file is untrusted: `_operations` and the modules that it imports run in the
parser process, within its limits and their own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bicameral.toolboxes.calendar._tools import CalendarSettings, Event, Slot, toolbox

__all__ = ["CalendarSettings", "Event", "Slot", "toolbox"]

_MODULES = {"CalendarSettings": "_tools", "Event": "_tools", "Slot": "_tools", "toolbox": "_tools"}


def __getattr__(name: str) -> Any:
    # Lazy, because the parser process imports `_operations` from this package and must not load the tools.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
