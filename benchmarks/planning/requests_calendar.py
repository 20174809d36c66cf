"""Requests about the calendar."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time

from .content.events import ENTRIES
from .judge import (
    answer_mentions,
    answer_names,
    answer_number,
    event_added,
    event_changed,
    event_gone,
    expect,
    file_says,
    mailed,
)
from .request import Request, needs
from .world import Event

TITLES = tuple(dict.fromkeys(entry.title for entry in ENTRIES))
TODAY = tuple(entry.title for entry in ENTRIES if entry.day == date(2026, 3, 11))
THIS_WEEK = tuple(entry.title for entry in ENTRIES if entry.day <= date(2026, 3, 13))
LATER = tuple(title for title in TITLES if title not in THIS_WEEK)


def _lies_at(start: datetime, minutes: int | None = None) -> Callable[[Event], bool]:
    return lambda event: event.start == start and minutes in (None, event.minutes)


def _a_free_hour_on_friday(event: Event) -> bool:
    """Friday is taken from 9 to 12 and from 15 to 16."""
    inside = [(time(12), time(15)), (time(16), time(17))]
    return (
        event.start.date() == event.end.date() == date(2026, 3, 13)
        and event.minutes == 60
        and any(start <= event.start.time() and event.end.time() <= end for start, end in inside)
    )


ONE_AND_TWO_STEPS = (
    Request(
        "events-today",
        "What is on my calendar today?",
        1,
        needs("calendar", "dates"),
        expect(answer_names(*TODAY, among=TITLES)),
    ),
    Request(
        "add-dentist",
        "Add a dentist appointment on 19 March 2026 at 09:15 for 30 minutes to my calendar.",
        1,
        needs("calendar", "dates", "write"),
        expect(event_added("dentist", _lies_at(datetime(2026, 3, 19, 9, 15), 30)), calendar=True),
    ),
    Request(
        "events-tomorrow",
        "wat have i got on tmrw? in the calendar i mean",
        2,
        needs("calendar", "dates"),
        expect(answer_names("Customer call", "Team lunch", among=TITLES)),
        sloppy=True,
    ),
    Request(
        "free-tomorrow",
        "When am I free for an hour tomorrow?",
        2,
        needs("calendar", "dates"),
        # The first slot is enough; the times of the events alone (10, 11, 13, 14) are not.
        expect(answer_mentions(time(9), lacks=[time(10, 30), time(13, 30)], at_most=600)),
    ),
    Request(
        "move-retro",
        "Move the retrospective on Friday, 13 March 2026 to 16:00.",
        2,
        needs("calendar", "dates", "write"),
        expect(
            event_changed(
                "Retrospective",
                lambda before, after: _lies_at(datetime(2026, 3, 13, 16), 60)(after) and after.title == before.title,
            ),
            calendar=True,
        ),
    ),
    Request(
        "cancel-demo",
        "pls cancel the vendor demo in my calendar",
        2,
        needs("calendar", "write"),
        expect(event_gone("Vendor demo"), calendar=True),
        sloppy=True,
    ),
    Request(
        "budget-room",
        "budget planning is in room oak now, pls change that in the calendar",
        2,
        needs("calendar", "write"),
        expect(
            event_changed(
                "Budget planning",
                lambda before, after: (
                    after.location.lower() == "room oak"
                    and (after.title, after.start, after.end) == (before.title, before.start, before.end)
                ),
            ),
            calendar=True,
        ),
        sloppy=True,
    ),
)

THREE_STEPS = (
    Request(
        "budget-meeting",
        "Dana sent me a mail about a budget review. Put that meeting into my calendar.",
        3,
        needs("calendar", "mail", "extraction", "dates", "write"),
        expect(event_added(("budget", "dana"), _lies_at(datetime(2026, 3, 13, 14), 60)), calendar=True),
    ),
    Request(
        "friday-call",
        "find me a free hr on friday 13 march 2026 n put a call with adatum there",
        3,
        needs("calendar", "dates", "write"),
        expect(event_added("adatum", _a_free_hour_on_friday), calendar=True),
        sloppy=True,
    ),
    Request(
        "meeting-hours",
        "How many hours of meetings are in my calendar today?",
        3,
        needs("calendar", "dates"),
        expect(answer_number(3, 180)),
    ),
    Request(
        "week-agenda",
        "Write the titles of all events from 9 to 13 March 2026 to agenda.txt.",
        3,
        needs("calendar", "dates", "write"),
        expect(file_says("agenda.txt", *THIS_WEEK, lacks=LATER, at_most=1200), writes=["agenda.txt"]),
    ),
    Request(
        "tomorrow-mail",
        "mail assistant@example.com whats in my calendar tmrw, title n start time is enough",
        3,
        needs("calendar", "dates", "send"),
        expect(
            mailed(
                "assistant@example.com",
                "Customer call",
                time(10),
                "Team lunch",
                time(13),
                lacks=["Project sync", "Security workshop"],
                at_most=1500,
            ),
            mails=1,
        ),
        sloppy=True,
    ),
)

FOUR_AND_FIVE_STEPS = (
    Request(
        "free-for-dana",
        "Am I free on Friday, 13 March 2026 from 14:00 to 15:00? If so, mail accepted to dana.cole@example.com, "
        "otherwise mail declined.",
        4,
        needs("calendar", "dates", "condition", "send"),
        expect(mailed("dana.cole@example.com", "accepted", lacks=["declined"], at_most=400), mails=1),
    ),
    Request(
        "train-trip",
        "put my train to lyon in the calendar (see the booking mail, departure time) n mail the departure to "
        "maria.santos@example.org",
        4,
        needs("calendar", "mail", "extraction", "dates", "write", "send"),
        expect(
            event_added("", _lies_at(datetime(2026, 3, 24, 7, 52))),
            mailed("maria.santos@example.org", time(7, 52), at_most=800),
            mails=1,
            calendar=True,
        ),
        sloppy=True,
    ),
    Request(
        "parcel-events",
        "For each of the mails with the subject your parcel is on its way or your parcel is delayed, find the delivery "
        "date and add an event called Parcel at 09:00 on that day.",
        5,
        needs("calendar", "mail", "loop", "extraction", "dates", "write"),
        expect(
            event_added("parcel", _lies_at(datetime(2026, 3, 12, 9)), count=2),
            event_added("parcel", _lies_at(datetime(2026, 3, 16, 9)), count=2),
            calendar=True,
        ),
    ),
)

REQUESTS = ONE_AND_TWO_STEPS + THREE_STEPS + FOUR_AND_FIVE_STEPS
