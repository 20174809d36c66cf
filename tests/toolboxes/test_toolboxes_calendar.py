"""The calendar: real ICS files, read and changed."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from bicameral.errors import ToolError
from bicameral.toolboxes.calendar import Slot, free_slots, toolbox
from bicameral.tools import Folders, Surroundings, Tool
from property_examples import examples

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)

BERLIN = """BEGIN:VTIMEZONE
TZID:Europe/Berlin
X-LIC-LOCATION:Europe/Berlin
BEGIN:DAYLIGHT
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
DTSTART:19700329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
END:DAYLIGHT
BEGIN:STANDARD
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
DTSTART:19701025T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
END:STANDARD
END:VTIMEZONE
"""

OFFICE = f"""BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Somebody//Else//EN
X-WR-CALNAME:Büro
{BERLIN}BEGIN:VEVENT
UID:dentist@example.com
DTSTAMP:20260101T000000Z
DTSTART;TZID=Europe/Berlin:20260303T100000
DTEND;TZID=Europe/Berlin:20260303T104500
SUMMARY:Dentist
LOCATION:Main Street 1
DESCRIPTION:Bring the card\\, please.\\nAnd be early.
ATTENDEE;CN=Dr. Who;PARTSTAT=ACCEPTED:mailto:dr@example.com
X-COLOR;X-KIND=hex:#ff0000
BEGIN:VALARM
ACTION:DISPLAY
TRIGGER:-PT15M
END:VALARM
END:VEVENT
BEGIN:VEVENT
UID:standup@example.com
DTSTAMP:20260101T000000Z
DTSTART;TZID=Europe/Berlin:20260302T090000
DTEND;TZID=Europe/Berlin:20260302T091500
RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR
EXDATE;TZID=Europe/Berlin:20260305T090000
SUMMARY:Stand-up
END:VEVENT
BEGIN:VEVENT
UID:standup@example.com
DTSTAMP:20260101T000000Z
RECURRENCE-ID;TZID=Europe/Berlin:20260304T090000
DTSTART;TZID=Europe/Berlin:20260304T140000
DTEND;TZID=Europe/Berlin:20260304T141500
SUMMARY:Stand-up (late)
END:VEVENT
BEGIN:VEVENT
UID:holiday@example.com
DTSTAMP:20260101T000000Z
DTSTART;VALUE=DATE:20260305
DTEND;VALUE=DATE:20260307
SUMMARY:Fair
END:VEVENT
BEGIN:VEVENT
UID:call@example.com
DTSTART:20260304T130000Z
DURATION:PT90M
SUMMARY:Call
END:VEVENT
END:VCALENDAR
"""


@pytest.fixture(autouse=True)
def machine_in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    clock.tzset()
    yield
    monkeypatch.undo()
    clock.tzset()


def tools(base: Path, **options: Any) -> dict[str, Tool]:
    surroundings = Surroundings(Folders.of(base, read=[base], write=[base]), lambda: NOW, {})
    return {tool.name: tool for tool in toolbox.open(surroundings, {"timezone": "Europe/Berlin"} | options)}


@pytest.fixture
def office(tmp_path: Path) -> dict[str, Tool]:
    (tmp_path / "calendar.ics").write_bytes(OFFICE.encode())
    return tools(tmp_path)


async def error_of(tool: Tool, arguments: Mapping[str, Any]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await tool.call(arguments)
    return caught.value


async def on(have: dict[str, Tool], first: date, last: date | None = None) -> list[dict[str, Any]]:
    return await have["list_events"].call({"start": first, "end": last})


def march(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, minute)


def is_edit_of(old: str, new: str, removed: str) -> bool:
    """Whether everything but the removed lines is still there, in order."""
    kept = old.replace(removed, "", 1)
    rest = iter(new.splitlines())
    return removed in old and all(line in rest for line in kept.splitlines())


# Attacks


@pytest.mark.parametrize("file", ["../out.ics", "/etc/hostname", "link.ics"])
async def test_a_calendar_outside_the_folders_is_refused(tmp_path: Path, file: str) -> None:
    (tmp_path / "out.ics").write_text(OFFICE)
    base = tmp_path / "base"
    base.mkdir()
    (base / "link.ics").symlink_to(tmp_path / "out.ics")
    have = tools(base, file=file)
    assert (await error_of(have["list_events"], {"start": date(2026, 3, 3)})).code == "files.outside"
    assert (await error_of(have["add_event"], {"title": "x", "start": march(3)})).code == "files.outside"
    assert (tmp_path / "out.ics").read_text() == OFFICE


EVIL = "x\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nUID:evil\r\nDTSTART:20260303T100000Z\r\nSUMMARY:Evil"


@pytest.mark.parametrize("argument", ["title", "location", "description", "attendees"])
@pytest.mark.parametrize(
    "text", [EVIL, EVIL.replace("\r\n", "\n"), EVIL.replace("\r\n", "\r"), 'a";X="b:c', "\x00\u2028"]
)
async def test_no_text_can_forge_an_event(tmp_path: Path, argument: str, text: str) -> None:
    have = tools(tmp_path)
    value = [text, "b@example.com"] if argument == "attendees" else f"t {text}"
    await have["add_event"].call({"title": "t", "start": march(3, 9), argument: value})
    events = await on(have, date(2026, 1, 1), date(2026, 12, 31))
    assert len(events) == 1
    assert events[0]["start"] == march(3, 9)
    assert events[0]["id"] != "evil"


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    title=st.text(max_size=60), description=st.text(max_size=80), attendees=st.lists(st.text(max_size=20), max_size=3)
)
@example(title="0", description="", attendees=["\\"])
async def test_whatever_is_added_is_one_event_that_reads_back(
    tmp_path: Path, title: str, description: str, attendees: list[str]
) -> None:
    (tmp_path / "calendar.ics").write_bytes(OFFICE.encode())
    have = tools(tmp_path)
    if not title.strip():
        assert (await error_of(have["add_event"], {"title": title, "start": march(20)})).code == "calendar.bad-title"
        return
    arguments = {"title": title, "start": march(21, 12), "description": description, "attendees": attendees}
    event = await have["add_event"].call(arguments)
    assert await on(have, date(2026, 3, 21)) == [event]
    assert (tmp_path / "calendar.ics").read_bytes().startswith(OFFICE.encode().removesuffix(b"END:VCALENDAR\n"))


@pytest.mark.parametrize(
    "rule", ["FREQ=SECONDLY", "FREQ=MINUTELY", "FREQ=DAILY;BYHOUR=99", "FREQ=NEVER", "nonsense", "FREQ=DAILY;COUNT=x"]
)
async def test_an_absurd_rule_hides_no_other_event_and_takes_no_time(tmp_path: Path, rule: str) -> None:
    evil = f"BEGIN:VEVENT\nUID:evil\nDTSTART:20260303T080000Z\nRRULE:{rule}\nSUMMARY:Evil\nEND:VEVENT\nEND:VCALENDAR\n"
    (tmp_path / "calendar.ics").write_text(OFFICE.replace("END:VCALENDAR\n", evil))
    start = clock.process_time()
    events = await on(tools(tmp_path), date(2026, 3, 3), date(2026, 3, 31))
    assert {"Dentist", "Call", "Stand-up"} <= {event["title"] for event in events}
    assert clock.process_time() - start < 5


@pytest.mark.parametrize(
    "lines",
    [
        "DTSTART:garbage",
        "",
        "DTSTART:20260303T100000Z\nDTEND:20260101T000000Z",
        "DTSTART:00010101T000000Z\nDURATION:-P1D",
    ],
)
async def test_an_event_without_a_usable_time_hides_no_other(tmp_path: Path, lines: str) -> None:
    odd = f"BEGIN:VEVENT\nUID:odd\n{lines}\nSUMMARY:Odd\nEND:VEVENT\nEND:VCALENDAR\n".replace("\n\n", "\n")
    (tmp_path / "calendar.ics").write_text(OFFICE.replace("END:VCALENDAR\n", odd))
    events = await on(tools(tmp_path), date(2026, 3, 3))
    assert "Dentist" in {event["title"] for event in events}


@pytest.mark.parametrize(
    "text",
    ["hello", "BEGIN:VCALENDAR\n", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n", "END:VCALENDAR\n", "\x00\xff"],
)
async def test_a_file_that_is_no_calendar_is_refused_named_and_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "calendar.ics").write_text(text)
    have = tools(tmp_path)
    for tool, arguments in (
        ("list_events", {"start": date(2026, 3, 3)}),
        ("add_event", {"title": "x", "start": march(3)}),
    ):
        error = await error_of(have[tool], arguments)
        assert error.code == "calendar.broken"
        assert "calendar.ics" in str(error)
    assert (tmp_path / "calendar.ics").read_text() == text


# Reading


async def test_a_day_lists_its_events_in_local_time(office: dict[str, Tool]) -> None:
    standup, dentist = await on(office, date(2026, 3, 3))
    assert (standup["id"], standup["start"]) == ("standup@example.com@20260303T090000", march(3, 9))
    assert dentist == {
        "id": "dentist@example.com",
        "title": "Dentist",
        "start": march(3, 10),
        "end": march(3, 10, 45),
        "all_day": False,
        "location": "Main Street 1",
        "description": "Bring the card, please.\nAnd be early.",
        "attendees": ["dr@example.com"],
    }


async def test_series_are_expanded_with_their_exceptions(office: dict[str, Tool]) -> None:
    events = await on(office, date(2026, 3, 2), date(2026, 3, 8))
    assert [(event["title"], event["start"]) for event in events] == [
        ("Stand-up", march(2, 9)),
        ("Stand-up", march(3, 9)),
        ("Dentist", march(3, 10)),
        ("Call", march(4, 14)),
        ("Stand-up (late)", march(4, 14)),
        ("Fair", march(5)),
        ("Stand-up", march(6, 9)),
    ]
    fair = events[5]
    assert (fair["all_day"], fair["end"]) == (True, march(7))


async def test_a_series_keeps_its_local_hour_when_clocks_change(office: dict[str, Tool]) -> None:
    (before,) = [e for e in await on(office, date(2026, 3, 27)) if e["title"] == "Stand-up"]
    (after,) = [e for e in await on(office, date(2026, 3, 30)) if e["title"] == "Stand-up"]
    assert (before["start"].hour, after["start"].hour) == (9, 9)


async def test_the_zone_of_the_settings_is_local_time(tmp_path: Path) -> None:
    (tmp_path / "calendar.ics").write_text(OFFICE)
    for zone, hour in (("Europe/Berlin", 10), ("America/New_York", 4), (None, 9)):
        events = await tools(tmp_path, timezone=zone)["search_events"].call({"text": "dentist"})
        assert events[0]["start"] == march(3, hour)
    with pytest.raises(ValueError, match="not a time zone"):
        tools(tmp_path, timezone="Mars/Base")


async def test_a_series_from_another_zone_falls_on_the_local_day(tmp_path: Path) -> None:
    event = "BEGIN:VEVENT\nUID:late\nDTSTART:20260301T233000Z\nRRULE:FREQ=DAILY\nSUMMARY:Late\nEND:VEVENT\n"
    (tmp_path / "calendar.ics").write_text(f"BEGIN:VCALENDAR\n{event}END:VCALENDAR\n")
    for zone, hour in (("Pacific/Auckland", time(12, 30)), ("America/New_York", time(18, 30)), (None, time(23, 30))):
        (found,) = await on(tools(tmp_path, timezone=zone), date(2026, 3, 5))
        assert found["start"] == datetime.combine(date(2026, 3, 5), hour)


@pytest.mark.parametrize(
    ("arguments", "titles"),
    [
        ({"text": "dentist"}, ["Dentist"]),
        ({"text": "CARD main"}, ["Dentist"]),
        ({"text": "dr@example.com"}, ["Dentist"]),
        ({"text": "stand-up", "start": date(2026, 3, 4), "end": date(2026, 3, 6)}, ["Stand-up (late)", "Stand-up"]),
        ({"text": "fair", "start": date(2026, 3, 6)}, ["Fair"]),
        ({"text": "fair", "start": date(2026, 3, 7)}, []),
        ({"text": "fair", "end": date(2026, 3, 4)}, []),
        ({"text": "unicorn"}, []),
    ],
)
async def test_search_finds_words_anywhere(
    office: dict[str, Tool], arguments: dict[str, Any], titles: list[str]
) -> None:
    assert [event["title"] for event in await office["search_events"].call(arguments)] == titles


async def test_search_shows_a_year_of_a_series(office: dict[str, Tool]) -> None:
    events = await office["search_events"].call({"text": "stand-up"})
    assert events[0]["start"] == march(2, 9)
    assert march(2) < events[-1]["start"] < march(2) + timedelta(days=367)
    assert 250 < len(events) < 265
    assert len({event["id"] for event in events}) == len(events)


async def test_a_missing_calendar_and_bad_ranges_are_told(tmp_path: Path) -> None:
    have = tools(tmp_path)
    error = await error_of(have["list_events"], {"start": date(2026, 3, 3)})
    assert error.code == "calendar.no-file"
    assert "file" in (error.fix or "")
    for last in (date(2026, 3, 2), date(2099, 1, 1)):
        assert (
            await error_of(have["list_events"], {"start": date(2026, 3, 3), "end": last})
        ).code == "calendar.bad-range"


# Free time


async def test_free_time_is_what_busy_events_leave(office: dict[str, Tool]) -> None:
    def slots(*pairs: tuple[datetime, datetime]) -> list[dict[str, datetime]]:
        return [{"start": start, "end": end} for start, end in pairs]

    free = office["find_free_time"]
    assert await free.call({"day": date(2026, 3, 3)}) == slots((march(3, 10, 45), march(3, 17)))
    assert await free.call({"day": date(2026, 3, 3), "minutes": 45}) == slots(
        (march(3, 9, 15), march(3, 10)), (march(3, 10, 45), march(3, 17))
    )
    # The call and the late stand-up overlap.
    assert await free.call({"day": date(2026, 3, 4)}) == slots(
        (march(4, 9), march(4, 14)), (march(4, 15, 30), march(4, 17))
    )
    # An all-day event does not say that it takes up time.
    assert await free.call({"day": date(2026, 3, 5)}) == slots((march(5, 9), march(5, 17)))
    late = {"day": date(2026, 3, 4), "earliest": time(14, 30), "latest": time(15)}
    assert await free.call(late) == []


@pytest.mark.parametrize(
    ("lines", "busy"),
    [
        ("DTSTART;VALUE=DATE:20260310", False),
        ("DTSTART;VALUE=DATE:20260310\nTRANSP:OPAQUE", True),
        ("DTSTART;VALUE=DATE:20260310\nX-MICROSOFT-CDO-BUSYSTATUS:OOF", True),
        ("DTSTART;VALUE=DATE:20260310\nTRANSP:TRANSPARENT", False),
        ("DTSTART:20260310T000000\nDTEND:20260311T000000", True),
        ("DTSTART:20260310T000000\nDTEND:20260311T000000\nTRANSP:TRANSPARENT", False),
        ("DTSTART:20260310T000000\nDTEND:20260311T000000\nSTATUS:CANCELLED", False),
        ("DTSTART:20260309T120000\nDTEND:20260312T120000", True),
    ],
)
async def test_which_events_take_up_time(tmp_path: Path, lines: str, busy: bool) -> None:
    text = f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n"
    (tmp_path / "calendar.ics").write_text(text)
    assert (await tools(tmp_path)["find_free_time"].call({"day": date(2026, 3, 10)}) == []) == busy


async def test_absurd_lengths_and_hours_are_refused(office: dict[str, Tool]) -> None:
    day = date(2026, 3, 3)
    for minutes in (0, -5, 10**9):
        assert (
            await error_of(office["find_free_time"], {"day": day, "minutes": minutes})
        ).code == "calendar.bad-minutes"
        arguments = {"title": "x", "start": march(3), "minutes": minutes}
        assert (await error_of(office["add_event"], arguments)).code == "calendar.bad-minutes"
    error = await error_of(office["find_free_time"], {"day": day, "earliest": time(17), "latest": time(9)})
    assert error.code == "calendar.bad-hours"


minutes_of_day = st.integers(0, 24 * 60 - 1)


@given(busy=st.lists(st.tuples(minutes_of_day, minutes_of_day).map(sorted)), minutes=st.integers(1, 300))
def test_a_minute_is_free_or_busy_and_never_both(busy: list[list[int]], minutes: int) -> None:
    start, end = march(3, 9), march(3, 17)
    day = march(3)
    spans = [(day + timedelta(minutes=a), day + timedelta(minutes=b)) for a, b in busy]
    slots: list[Slot] = free_slots(spans, start, end, minutes)
    assert all(slot.end - slot.start >= timedelta(minutes=minutes) for slot in slots)
    assert all(start <= slot.start and slot.end <= end for slot in slots)
    for slot in slots:
        assert not any(a < slot.end and slot.start < b for a, b in spans if a != b)
    if minutes == 1:
        for offset in range(0, 480, 7):
            at = start + timedelta(minutes=offset)
            taken = any(a <= at < b for a, b in spans)
            assert taken != any(slot.start <= at < slot.end for slot in slots)


# Changing


async def test_an_added_event_is_there_and_the_rest_is_untouched(tmp_path: Path, office: dict[str, Tool]) -> None:
    event = await office["add_event"].call(
        {
            "title": "Lunch, with; Ann",
            "start": march(10, 12),
            "minutes": 90,
            "location": "Café",
            "description": "one\ntwo",
            "attendees": ["ann@example.com", "Bob"],
        }
    )
    assert await on(office, date(2026, 3, 10)) == [
        (
            await office["search_events"].call(
                {"text": "stand-up", "start": date(2026, 3, 10), "end": date(2026, 3, 10)}
            )
        )[0],
        event,
    ]
    assert (event["title"], event["end"], event["attendees"]) == (
        "Lunch, with; Ann",
        march(10, 13, 30),
        ["ann@example.com", "Bob"],
    )
    text = (tmp_path / "calendar.ics").read_text()
    assert text.startswith(OFFICE.removesuffix("END:VCALENDAR\n"))
    assert b"\r" not in (tmp_path / "calendar.ics").read_bytes()
    assert "\nDTSTART;TZID=Europe/Berlin:20260310T120000\n" in text
    assert text.count("BEGIN:VTIMEZONE") == 1


async def test_the_first_event_makes_the_file(tmp_path: Path) -> None:
    await tools(tmp_path)["add_event"].call({"title": "First", "start": march(10, 12)})
    text = (tmp_path / "calendar.ics").read_bytes().decode()
    assert text.startswith("BEGIN:VCALENDAR\r\n")
    assert text.count("BEGIN:VTIMEZONE") == 1
    await tools(tmp_path)["add_event"].call({"title": "Second", "start": march(10, 13)})
    assert (tmp_path / "calendar.ics").read_bytes().decode().count("BEGIN:VTIMEZONE") == 1
    plain = tools(tmp_path, file="other.ics", timezone=None)
    event = await plain["add_event"].call({"title": "Plain", "start": march(10, 12)})
    assert "DTSTART:20260310T120000Z" in (tmp_path / "other.ics").read_text()
    assert event["start"] == march(10, 12)


async def test_a_changed_event_keeps_what_was_not_changed(tmp_path: Path, office: dict[str, Tool]) -> None:
    event = await office["change_event"].call(
        {"id": "dentist@example.com", "title": "Dentist!", "start": march(4, 11), "location": ""}
    )
    assert (event["title"], event["start"], event["end"]) == ("Dentist!", march(4, 11), march(4, 11, 45))
    assert (event["location"], event["attendees"]) == ("", ["dr@example.com"])
    text = (tmp_path / "calendar.ics").read_text()
    for kept in (
        "X-COLOR;X-KIND=hex:#ff0000",
        "TRIGGER:-PT15M",
        "DTSTART;TZID=Europe/Berlin:20260304T110000",
        "SEQUENCE:1",
    ):
        assert kept in text
    begin, end = OFFICE.index("BEGIN:VEVENT\nUID:dentist"), OFFICE.index("BEGIN:VEVENT\nUID:standup")
    assert is_edit_of(OFFICE, text, OFFICE[begin:end])
    assert (await office["change_event"].call({"id": event["id"], "minutes": 20}))["end"] == march(4, 11, 20)


async def test_a_duration_and_another_zone_are_kept(tmp_path: Path, office: dict[str, Tool]) -> None:
    event = await office["change_event"].call({"id": "call@example.com", "start": march(9, 15)})
    assert (event["start"], event["end"]) == (march(9, 15), march(9, 16, 30))
    assert "DTSTART:20260309T140000Z" in (tmp_path / "calendar.ics").read_text()


async def test_an_all_day_event_moves_by_days_or_gets_an_hour(office: dict[str, Tool]) -> None:
    moved = await office["change_event"].call({"id": "holiday@example.com", "start": march(12)})
    assert (moved["all_day"], moved["start"], moved["end"]) == (True, march(12), march(14))
    timed = await office["change_event"].call({"id": "holiday@example.com", "start": march(12, 15)})
    assert (timed["all_day"], timed["start"], timed["end"]) == (False, march(12, 15), march(12, 16))


async def test_one_occurrence_is_changed_alone(tmp_path: Path, office: dict[str, Tool]) -> None:
    id = "standup@example.com@20260310T090000"
    event = await office["change_event"].call({"id": id, "start": march(11, 16), "title": "Stand-down"})
    assert (event["id"], event["start"], event["end"]) == (id, march(11, 16), march(11, 16, 15))
    titles = {e["start"]: e["title"] for e in await on(office, date(2026, 3, 9), date(2026, 3, 12))}
    assert titles == {
        march(9, 9): "Stand-up",
        march(11, 9): "Stand-up",
        march(11, 16): "Stand-down",
        march(12, 9): "Stand-up",
    }
    text = (tmp_path / "calendar.ics").read_text()
    assert is_edit_of(OFFICE, text, "X-WR-CALNAME:Büro\n")
    assert "RECURRENCE-ID;TZID=Europe/Berlin:20260310T090000" in text
    again = await office["change_event"].call({"id": id, "minutes": 30})
    assert (again["id"], again["start"], again["end"]) == (id, march(11, 16), march(11, 16, 30))
    assert (tmp_path / "calendar.ics").read_text().count("20260310T090000") == 1


async def test_one_occurrence_is_deleted_alone(tmp_path: Path, office: dict[str, Tool]) -> None:
    for id in ("standup@example.com@20260310T090000", "standup@example.com@20260304T090000"):
        assert await office["delete_event"].call({"id": id}) is None
        assert (await error_of(office["delete_event"], {"id": id})).code == "calendar.unknown-event"
    starts = [e["start"] for e in await on(office, date(2026, 3, 3), date(2026, 3, 11)) if "Stand-up" in e["title"]]
    assert starts == [march(3, 9), march(6, 9), march(9, 9), march(11, 9)]
    text = (tmp_path / "calendar.ics").read_text()
    assert "Stand-up (late)" not in text
    assert "UID:dentist@example.com" in text


async def test_an_event_or_a_whole_series_is_deleted_by_its_uid(tmp_path: Path, office: dict[str, Tool]) -> None:
    await office["delete_event"].call({"id": "dentist@example.com"})
    await office["delete_event"].call({"id": "standup@example.com"})
    events = await on(office, date(2026, 1, 1), date(2026, 12, 31))
    assert [event["title"] for event in events] == ["Call", "Fair"]
    text = (tmp_path / "calendar.ics").read_text()
    assert "VALARM" not in text
    assert "END:VTIMEZONE" in text


async def test_all_day_series_work_too(tmp_path: Path) -> None:
    event = "BEGIN:VEVENT\nUID:bins\nDTSTART;VALUE=DATE:20260302\nRRULE:FREQ=WEEKLY\nSUMMARY:Bins\nEND:VEVENT\n"
    text = f"BEGIN:VCALENDAR\n{event}END:VCALENDAR\n"
    (tmp_path / "calendar.ics").write_text(text)
    have = tools(tmp_path)
    first, second, third = await on(have, date(2026, 3, 1), date(2026, 3, 20))
    await have["delete_event"].call({"id": second["id"]})
    await have["change_event"].call({"id": third["id"], "title": "Bins!"})
    assert [e["title"] for e in await on(have, date(2026, 3, 1), date(2026, 3, 29))] == ["Bins", "Bins!", "Bins"]
    assert "EXDATE;VALUE=DATE:20260309" in (tmp_path / "calendar.ics").read_text()
    assert first["all_day"]


async def test_a_series_is_not_moved_at_once(office: dict[str, Tool]) -> None:
    error = await error_of(office["change_event"], {"id": "standup@example.com", "start": march(9, 10)})
    assert error.code == "calendar.series"
    await office["change_event"].call({"id": "standup@example.com", "title": "Daily"})
    assert (await on(office, date(2026, 3, 9)))[0]["title"] == "Daily"


@pytest.mark.parametrize(
    ("id", "nearest"),
    [
        ("dentist@exmple.com", "dentist@example.com"),
        ("Dentist", "dentist@example.com"),
        ("standup@example.com@20260307T090000", None),
        ("standup@example.com@20260305T090000", None),
        ("standup@example.com@99999999T999999", None),
        ("", None),
    ],
)
async def test_an_unknown_id_is_told_with_the_nearest(office: dict[str, Tool], id: str, nearest: str | None) -> None:
    for tool in ("change_event", "delete_event"):
        error = await error_of(office[tool], {"id": id})
        assert error.code == "calendar.unknown-event"
        assert nearest is None or error.nearest == nearest


async def test_an_event_without_a_uid_can_be_changed(tmp_path: Path) -> None:
    text = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260310T120000\nSUMMARY:Anonymous\nEND:VEVENT\nEND:VCALENDAR\n"
    (tmp_path / "calendar.ics").write_text(text)
    have = tools(tmp_path)
    (event,) = await on(have, date(2026, 3, 10))
    changed = await have["change_event"].call({"id": event["id"], "title": "Named"})
    assert changed["id"] == event["id"]
    assert [e["title"] for e in await on(have, date(2026, 3, 10))] == ["Named"]


async def test_two_events_with_one_uid_are_told_apart(tmp_path: Path) -> None:
    twin = "BEGIN:VEVENT\nUID:call@example.com\nDTSTART:20260304T130000Z\nSUMMARY:Forged\nEND:VEVENT\nEND:VCALENDAR\n"
    (tmp_path / "calendar.ics").write_text(OFFICE.replace("END:VCALENDAR\n", twin))
    have = tools(tmp_path)
    await have["delete_event"].call({"id": "call@example.com#2"})
    assert [e["title"] for e in await on(have, date(2026, 3, 4))] == ["Call", "Stand-up (late)"]
    assert (tmp_path / "calendar.ics").read_text() == OFFICE


async def test_a_large_calendar_is_read_in_seconds_and_then_at_once(tmp_path: Path) -> None:
    times = "DTSTART:202603{d:02d}T{h:02d}0000Z\nDURATION:PT30M"
    event = "BEGIN:VEVENT\nUID:{n}\nDTSTAMP:20260101T000000Z\n" + times + "\nSUMMARY:No {n}\nEND:VEVENT\n"
    events = "".join(event.format(n=n, d=n % 28 + 1, h=n % 24) for n in range(2000))
    (tmp_path / "calendar.ics").write_text(f"BEGIN:VCALENDAR\n{events}END:VCALENDAR\n")
    have = tools(tmp_path)
    seconds: list[float] = []
    for _ in range(2):
        start = clock.process_time()
        assert 60 < len(await on(have, date(2026, 3, 5))) < 90
        seconds.append(clock.process_time() - start)
    print(f"2000 events: first {seconds[0]:.2f} s, again {seconds[1]:.2f} s")
    assert seconds[0] < 10
    assert seconds[1] < 1


async def test_bytes_that_are_not_utf8_survive_an_edit(tmp_path: Path) -> None:
    raw = OFFICE.encode().replace(b"Fair", b"F\xe4ir")
    (tmp_path / "calendar.ics").write_bytes(raw)
    await tools(tmp_path)["add_event"].call({"title": "x", "start": march(20)})
    assert b"F\xe4ir" in (tmp_path / "calendar.ics").read_bytes()


async def test_a_failed_write_leaves_the_calendar_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "calendar.ics").write_text(OFFICE)
    surroundings = Surroundings(Folders.of(tmp_path, read=[tmp_path], write=[]), lambda: NOW, {})
    have = {tool.name: tool for tool in toolbox.open(surroundings)}
    assert (await error_of(have["delete_event"], {"id": "call@example.com"})).code == "files.outside"
    assert (tmp_path / "calendar.ics").read_text() == OFFICE
    assert os.listdir(tmp_path) == ["calendar.ics"]


def test_what_changes_the_calendar_says_so(office: dict[str, Tool]) -> None:
    effects = {name: tool.effect for name, tool in office.items()}
    assert effects == {
        "list_events": "read",
        "search_events": "read",
        "find_free_time": "read",
        "add_event": "write",
        "change_event": "write",
        "delete_event": "irreversible",
    }
