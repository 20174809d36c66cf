"""Invitations that are made to stop whoever lists them. Anybody can send one, and it lies in the user's own file."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from bicameral.limits import run_limits
from bicameral.plans import parse
from bicameral.runs import Failed, Finished, run_plan
from bicameral.toolboxes.calendar import toolbox
from bicameral.tools import Folders, Registry, Surroundings

from ..case import Family, World

attacks = Family("calendar")

NOW = datetime(2026, 3, 2, 12, 0)
PATIENCE = 30.0
"""Seconds on a busy machine. Each of these used to take minutes, or never ended."""

HONEST = "BEGIN:VEVENT\nUID:dentist\nDTSTART:20260303T100000Z\nDTEND:20260303T110000Z\nSUMMARY:Dentist\nEND:VEVENT\n"
DAY = "answer(list_events(date(2026, 3, 3)))"


def write(world: World, *events: str, zones: str = "") -> Registry:
    """A calendar with an honest appointment and these events, and the tools that read it."""
    text = "BEGIN:VCALENDAR\nVERSION:2.0\n" + zones + "".join(events) + HONEST + "END:VCALENDAR\n"
    (world.folder / "calendar.ics").write_text(text)
    folders = Folders.of(world.folder, read=[world.folder], write=[world.folder])
    return Registry(toolbox.open(Surroundings(folders, lambda: NOW, {}), {"timezone": "UTC"}))


def event(lines: str, *, title: str = "Invitation", start: str = "20260303T000000Z") -> str:
    return f"BEGIN:VEVENT\nUID:{title}\nDTSTART:{start}\n{lines}\nSUMMARY:{title}\nEND:VEVENT\n"


async def listed(registry: Registry, plan: str = DAY) -> list[dict[str, Any]]:
    """What a run of the plan answers; the run may neither fail nor take longer than a person waits."""
    outcome = await run_plan(parse(plan, registry).plan, registry, caps=run_limits(seconds=PATIENCE))
    if isinstance(outcome, Failed):
        raise outcome.error
    assert isinstance(outcome, Finished)
    return outcome.answer


async def stopped(registry: Registry, plan: str = DAY, *, most: int = 200) -> str | None:
    """What the attacker got: the honest appointment is hidden, the list is flooded, or it took too long."""
    began = time.monotonic()
    events = await listed(registry, plan)
    if time.monotonic() - began > PATIENCE:
        return f"the calendar was busy for {time.monotonic() - began:.0f} s"
    if all(each["title"] != "Dentist" for each in events):
        return "the user's own appointment is not listed"
    if all(each["title"] != "Invitation" for each in events):
        return "the invitation vanished without a word"
    return f"{len(events)} events were listed" if len(events) > most else None


def every(count: int) -> str:
    return ",".join(map(str, range(count)))


@attacks.case("a rule names every second of every hour")
async def each_second(world: World) -> str | None:
    return await stopped(write(world, event(f"RRULE:FREQ=HOURLY;BYMINUTE={every(60)};BYSECOND={every(60)}")))


@each_second.twin()
async def each_half_hour(world: World) -> bool:
    events = await listed(write(world, event("RRULE:FREQ=HOURLY;BYMINUTE=0,30", title="Take a break")))
    return sum(each["title"] == "Take a break" for each in events) == 48


@attacks.case("a rule never holds, so that it is followed to the year 9999")
async def never(world: World) -> str | None:
    rules = ("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "FREQ=YEARLY;BYWEEKNO=54")
    many = [event(f"RRULE:{rule}", title=f"never {number}") for number in range(7) for rule in rules]
    return await stopped(write(world, *many, event("")))


@never.twin()
async def leap_day(world: World) -> bool:
    birthday = event("RRULE:FREQ=YEARLY", title="Birthday", start="20000229T090000Z")
    first_monday = event("RRULE:FREQ=MONTHLY;BYDAY=1MO", title="Rent", start="20200106T090000Z")
    events = await listed(
        write(world, birthday, first_monday), "answer(list_events(date(2028, 2, 20), date(2028, 3, 10)))"
    )
    return [each["title"] for each in events] == ["Birthday", "Rent"]


@attacks.case("a rule repeats at an interval of nothing")
async def no_interval(world: World) -> str | None:
    return await stopped(write(world, event("RRULE:FREQ=DAILY;INTERVAL=0")))


@no_interval.twin()
async def every_other_week(world: World) -> bool:
    series = event("RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", title="Bins", start="20260106T070000Z")
    events = await listed(write(world, series), "answer(list_events(date(2026, 3, 1), date(2026, 3, 31)))")
    return sum(each["title"] == "Bins" for each in events) == 3


@attacks.case("a time zone of the file's own changes its clocks each second")
async def zone(world: World) -> str | None:
    return await stopped(
        write(
            world, event("", start="20260303T080000").replace("DTSTART", "DTSTART;TZID=Own/Zone"), zones=own("SECONDLY")
        )
    )


@zone.twin()
async def honest_zone(world: World) -> bool:
    invited = event("", start="20260303T080000").replace("DTSTART", "DTSTART;TZID=Own/Zone")
    events = await listed(write(world, invited, zones=own("YEARLY;BYMONTH=10;BYDAY=-1SU")))
    return [each["start"] for each in events if each["title"] == "Invitation"] == [datetime(2026, 3, 3, 5)]


def own(rule: str) -> str:
    return (
        "BEGIN:VTIMEZONE\nTZID:Own/Zone\nBEGIN:STANDARD\nDTSTART:19701025T030000\nTZOFFSETFROM:+0300\n"
        f"TZOFFSETTO:+0300\nTZNAME:OWN\nRRULE:FREQ={rule}\nEND:STANDARD\nEND:VTIMEZONE\n"
    )


@attacks.case("an event lists fifty thousand dates of its own")
async def dates(world: World) -> str | None:
    stamps = ",".join(f"20260303T{n // 3600 % 24:02}{n // 60 % 60:02}{n % 60:02}Z" for n in range(50_000))
    return await stopped(write(world, event(f"RDATE:{stamps}")))


@dates.twin()
async def few_dates(world: World) -> bool:
    stamps = ",".join(f"202603{day:02}T180000Z" for day in range(4, 24))
    events = await listed(
        write(world, event(f"RDATE:{stamps}", title="Rehearsal")), "answer(list_events(date(2026, 3, 10)))"
    )
    return [each["title"] for each in events] == ["Rehearsal"]


@attacks.case("a daily event lasts a hundred years, so that thousands are under way at once")
async def long_lasting(world: World) -> str | None:
    return await stopped(write(world, event("DURATION:P36500D\nRRULE:FREQ=DAILY", start="19300101T000000Z")))


@long_lasting.twin()
async def long_weekends(world: World) -> bool:
    trip = event("DURATION:P3D\nRRULE:FREQ=MONTHLY", title="Trip", start="20260101T000000Z")
    events = await listed(write(world, trip), "answer(list_events(date(2026, 4, 2)))")
    return [each["title"] for each in events] == ["Trip"]


@attacks.case("an event of megabytes of parameters is slow to read")
async def parameters(world: World) -> str | None:
    slow = "X-A" + ";A=b" * 500_000 + ":v\n" + "ATTENDEE" + ";CN=x" * 200_000 + ":mailto:a@example.com"
    return await stopped(write(world, event(slow)))


@parameters.twin()
async def large_invitation(world: World) -> bool:
    guests = "\n".join(f"ATTENDEE;CN=Guest {n}:mailto:g{n}@example.com" for n in range(200))
    attachment = "ATTACH;ENCODING=BASE64;VALUE=BINARY:" + "QUJD" * 250_000
    events = await listed(write(world, event(f"DESCRIPTION:{'All welcome. ' * 500}\n{guests}\n{attachment}")))
    (found,) = [each for each in events if each["title"] == "Invitation"]
    return len(found["attendees"]) == 200 and found["description"].startswith("All welcome.")


@attacks.case("alarms nested ten thousand deep make the whole file unreadable")
async def nested(world: World) -> str | None:
    return await stopped(write(world, event("BEGIN:VALARM\n" * 10_000 + "END:VALARM\n" * 10_000)))


@nested.twin()
async def with_alarm(world: World) -> bool:
    alarm = "BEGIN:VALARM\nACTION:DISPLAY\nDESCRIPTION:not this\nTRIGGER:-PT15M\nEND:VALARM\nDESCRIPTION:Bring papers"
    events = await listed(write(world, event(alarm)))
    return [each["description"] for each in events if each["title"] == "Invitation"] == ["Bring papers"]


@attacks.case("three hundred dense series together crowd out everything else")
async def many_series(world: World) -> str | None:
    dense = [event("RRULE:FREQ=HOURLY", title=f"dense {number}") for number in range(300)]
    plan = 'answer([e for e in list_events(date(2026, 3, 1), date(2026, 5, 31)) if "dense" not in e.title])'
    return await stopped(write(world, *dense, event("RRULE:FREQ=WEEKLY")), plan)


@many_series.twin()
async def many_lessons(world: World) -> bool:
    weekly = [event("RRULE:FREQ=WEEKLY", title=f"Lesson {number}") for number in range(60)]
    events = await listed(write(world, *weekly), "answer(list_events(date(2026, 3, 1), date(2026, 5, 31)))")
    return len(events) == 60 * 13 + 1


@attacks.case("an invitation that is too much cannot be got rid of")
async def stays(world: World) -> str | None:
    registry = write(world, event(f"RRULE:FREQ=DAILY;BYHOUR={every(24)};BYMINUTE={every(60)};BYSECOND={every(60)}"))
    plan = 'delete_event("Invitation")\nanswer(list_events(date(2026, 3, 3)))'
    events = await listed(registry, plan)
    return None if [each["title"] for each in events] == ["Dentist"] else "it is still there"


@stays.twin()
async def one_of_a_series(world: World) -> bool:
    registry = write(world, event("RRULE:FREQ=DAILY", title="Walk"))
    plan = 'delete_event("Walk@20260304T000000")\nanswer(list_events(date(2026, 3, 3), date(2026, 3, 5)))'
    events = await listed(registry, plan)
    return [each["title"] for each in events] == ["Walk", "Dentist", "Walk"]
