"""Cases about the calendar."""

from __future__ import annotations

from datetime import datetime

from ..planning.judge import Added, Changed, Expected, names, says
from .case import case
from .data import DATA

_TITLES = tuple(entry.title for entry in DATA.entries)
_PLACES = tuple(entry.location for entry in DATA.entries)

CALENDAR_CASES = (
    case(
        "event-add",
        ('Add the event "Wheel building" on 2026-03-19 at 18:30', "to my calendar"),
        lambda _: Expected(added=(Added("Wheel building", datetime(2026, 3, 19, 18, 30)),)),
        """
event = add_event("Wheel building", datetime("2026-03-19T18:30"))
answer(event)
""",
        'Put "Wheel building" into my calendar for 2026-03-19 at 18:30.',
        'On 2026-03-19 at 18:30 there is "Wheel building"; enter it in the calendar.',
        'I have "Wheel building" on 2026-03-19, starting at 18:30. Please note it in my calendar.',
        'Create a calendar entry called "Wheel building" that starts on 2026-03-19 at 18:30.',
    ),
    case(
        "event-add-long",
        ('Enter "Frame painting" for 45 minutes on 2026-03-18 at 14:00', "in the calendar"),
        lambda _: Expected(added=(Added("Frame painting", datetime(2026, 3, 18, 14, 0), minutes=45),)),
        """
event = add_event("Frame painting", datetime("2026-03-18T14:00"), minutes=45)
answer(event)
""",
        'Put a 45 minutes event "Frame painting" on 2026-03-18 at 14:00 into the calendar.',
        'Block 45 minutes for "Frame painting" in the calendar, 2026-03-18 at 14:00.',
        'Schedule "Frame painting": 2026-03-18, 14:00, it takes 45 minutes.',
        '"Frame painting" is on 2026-03-18 at 14:00 and lasts 45 minutes. Add it to the calendar.',
    ),
    case(
        "event-delete",
        ('Delete the event "Tool inventory"', "from my calendar"),
        lambda data: Expected(removed=(data.entry("Tool inventory"),)),
        """
events = search_events("Tool inventory")
if events:
    delete_event(events[0].id)
    answer("Deleted")
else:
    answer("There is no such event")
""",
        'Remove "Tool inventory" from the calendar.',
        '"Tool inventory" is off. Take it out of my calendar.',
        'Please cancel the calendar entry "Tool inventory".',
        'My calendar has an event "Tool inventory"; delete it.',
    ),
    case(
        "event-move",
        ('Move the event "Committee meeting"', "to 2026-03-18 at 20:00"),
        lambda data: Expected(changed=(Changed(data.entry("Committee meeting"), start=datetime(2026, 3, 18, 20, 0)),)),
        """
events = search_events("Committee meeting")
if events:
    event = change_event(events[0].id, start=datetime("2026-03-18T20:00"))
    answer(event)
else:
    answer("There is no such event")
""",
        'Reschedule "Committee meeting" to 2026-03-18, 20:00.',
        '"Committee meeting" takes place on 2026-03-18 at 20:00 instead. Change it in the calendar.',
        'Shift the "Committee meeting" in my calendar: it now starts on 2026-03-18 at 20:00.',
        'Please change the start of the event "Committee meeting" to 2026-03-18 at 20:00.',
    ),
    case(
        "event-day",
        ("Which events are there on 2026-03-17", "in my calendar"),
        lambda _: Expected(answer=names(["Tyre unloading"], _TITLES)),
        """
events = list_events(date("2026-03-17"))
answer([event.title for event in events])
""",
        "What is in my calendar on 2026-03-17?",
        "Show me the events of 2026-03-17.",
        "List what I have in the calendar for 2026-03-17.",
        "Tell me which calendar events take place on 2026-03-17.",
        end="?",
        among=_TITLES,
    ),
    case(
        "event-place",
        ('Where is the event "Brake course"', "according to my calendar"),
        lambda _: Expected(answer=says("Back room", lacks=[place for place in _PLACES if place != "Back room"])),
        """
events = search_events("Brake course")
if events:
    answer(events[0].location)
else:
    answer("There is no such event")
""",
        'What is the location of "Brake course" in my calendar?',
        'Look up in my calendar where "Brake course" takes place.',
        'My calendar has an event "Brake course". Tell me its location.',
        'Find the place of the calendar event "Brake course".',
        end="?",
        among=_PLACES,
    ),
)
