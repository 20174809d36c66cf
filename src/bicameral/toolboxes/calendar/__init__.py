"""The calendar: an ICS file. List and search events, find free time, add, change and delete events.

Recurring events come out as their occurrences, each with an id of its own (`UID@start`), so that one of them can be
changed or deleted alone. Times come out, and go in, as local time. A change touches the lines of the event that it is
about and no other line of the file.
"""

from ._records import Event, Slot
from ._settings import CalendarSettings
from ._tools import toolbox

__all__ = ["CalendarSettings", "Event", "Slot", "toolbox"]
