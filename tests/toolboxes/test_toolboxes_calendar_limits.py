"""How often a series repeats is never underestimated, and what is not expanded says so."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import dateutil.rrule as rules
import pytest
from hypothesis import given, reject, strategies as st

from bicameral.toolboxes import _calendar_document as _document
from bicameral.toolboxes._calendar_document import MAX_COST, read_document
from bicameral.toolboxes._calendar_occurrences import RepeatsTooOften, expansion_cost, list_occurrences, stop_after
from bicameral.toolboxes.calendar import toolbox
from bicameral.tools import Surroundings, Tool

SINCE = datetime(2026, 3, 1)


def event(lines: str, uid: str = "series") -> str:
    return f"BEGIN:VEVENT\nUID:{uid}\n{lines}\nSUMMARY:{uid}\nEND:VEVENT\n"


def calendar(*events: str) -> bytes:
    return ("BEGIN:VCALENDAR\nVERSION:2.0\n" + "".join(events) + "END:VCALENDAR\n").encode()


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    return st.lists(st.integers(low, high).filter(bool), min_size=1, max_size=4, unique=True).map(
        lambda found: ",".join(map(str, sorted(found)))
    )


def rule_of(frequency: str, parts: dict[str, str]) -> str:
    return ";".join([f"FREQ={frequency}", *(f"{name}={value}" for name, value in parts.items())])


RULES = st.builds(
    rule_of,
    st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY"]),
    st.fixed_dictionaries(
        {},
        optional={
            "INTERVAL": st.integers(1, 40).map(str),
            "COUNT": st.integers(1, 300).map(str),
            "BYMONTH": numbers(1, 12),
            "BYMONTHDAY": numbers(-31, 31),
            "BYYEARDAY": numbers(-366, 366),
            "BYDAY": st.lists(st.sampled_from("MO TU WE TH FR SA SU".split()), min_size=1, unique=True).map(",".join),
            "BYHOUR": numbers(1, 23),
            "BYMINUTE": numbers(1, 59),
            "BYSETPOS": numbers(-3, 3),
        },
    ),
)


@given(RULES, st.integers(0, 3000), st.integers(1, 400), st.integers(0, 20))
def test_no_series_has_more_occurrences_than_were_estimated(rule: str, age: int, days: int, length: int) -> None:
    start = SINCE - timedelta(days=age)
    raw = calendar(event(f"DTSTART:{start:%Y%m%dT%H%M%S}\nDURATION:P{length}D\nRRULE:{rule}"))
    document = read_document(raw, "x")
    before = SINCE + timedelta(days=days)
    try:
        effort = expansion_cost([document.blocks[0].component], start, timedelta(days=length), SINCE, before)
    except RepeatsTooOften:
        return
    if effort.is_affordable:
        found = list_occurrences(document, None, SINCE, before)
        assert len(found) <= effort.occurrences


@given(RULES, st.integers(0, 2000), st.integers(1, 200))
def test_no_occurrence_is_lost_for_stopping_at_the_window(rule: str, age: int, days: int) -> None:
    start, before = SINCE - timedelta(days=age), SINCE + timedelta(days=days)
    if "FREQ=HOURLY" in rule:
        start = SINCE - timedelta(days=age // 50)
    end = "" if "COUNT" in rule else f";UNTIL={before:%Y%m%dT%H%M%S}"
    try:
        whole = rules.rrulestr(rule + end, dtstart=start)
    except ValueError:
        # Such as every second hour from midnight on, at one o'clock: the library refuses a rule that never holds.
        reject()
    with stop_after((before + timedelta(days=8)).date()):
        found = rules.rrulestr(rule, dtstart=start, cache=True).between(SINCE, before, inc=True)
    # Bounded by itself: the same rule with an end of its own, followed without any horizon.
    with stop_after(date(2040, 1, 1)):
        expected = [each for each in whole if SINCE <= each <= before]
    assert found == expected


def tools(base: Path) -> dict[str, Tool]:
    return {tool.name: tool for tool in toolbox.open(Surroundings.here(base), {"timezone": "UTC"})}


async def listed(base: Path, *events: str, day: date = date(2026, 3, 3)) -> list[dict[str, Any]]:
    (base / "calendar.ics").write_bytes(calendar(*events))
    return await tools(base)["list_events"].call({"start": day})


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY",
        "FREQ=MINUTELY",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=HOURLY;BYMINUTE=" + ",".join(map(str, range(60))) + ";BYSECOND=" + ",".join(map(str, range(60))),
        "FREQ=DAILY;BYHOUR=" + ",".join(["1"] * 20_000),
    ],
)
async def test_a_series_that_is_not_expanded_is_there_once_and_says_so(tmp_path: Path, rule: str) -> None:
    events = await listed(tmp_path, event(f"DTSTART:20260101T080000Z\nRRULE:{rule}"))
    assert [each["title"] for each in events] == ["series"]
    if "BYHOUR" not in rule:
        assert events[0]["description"].startswith("[it repeats too often")
        assert events[0]["start"].date() == date(2026, 3, 3)


async def test_a_series_that_is_not_expanded_takes_up_no_time(tmp_path: Path) -> None:
    (tmp_path / "calendar.ics").write_bytes(calendar(event("DTSTART:20260303T080000Z\nRRULE:FREQ=SECONDLY")))
    free = await tools(tmp_path)["find_free_time"].call({"day": date(2026, 3, 3)})
    assert len(free) == 1


async def test_a_repetition_that_cannot_be_read_is_shown_once_and_says_so(tmp_path: Path) -> None:
    events = await listed(tmp_path, event("DTSTART:20260303T080000Z\nRRULE:FREQ=DAILY;UNTIL=never"))
    assert [each["description"] for each in events] == ["[its repetition cannot be read, so that it is shown once]"]


async def test_the_largest_events_are_left_out_first_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = MAX_COST // 10
    guests = "\n".join("ATTENDEE:mailto:guest@example.com" for _ in range(1500))
    large = [event(f"DTSTART:20260303T080000Z\n{guests}", f"large {n}") for n in range(most // 40_000)]
    small = [event("DTSTART:20260303T080000Z\nLOCATION:Room 1", f"small {n}") for n in range(20)]
    with monkeypatch.context() as patch:
        patch.setattr(_document, "MAX_COST", most)
        document = read_document(calendar(*large, *small), "x")
    left_out = {block.uid for block in document.blocks if block.limit}
    assert left_out
    assert all(uid.startswith("large") for uid in left_out)
    events = await listed(tmp_path, event(f"DTSTART:20260303T080000Z\n{guests}\n{guests}", "huge"), small[0])
    assert [each["description"][:16] for each in events if each["title"] == "huge"] == ["[it is too large"]


async def test_a_change_keeps_what_listing_does_not_read(tmp_path: Path) -> None:
    attached = "ATTACH;ENCODING=BASE64;VALUE=BINARY:" + "QUJD" * 100
    alarm = "BEGIN:VALARM\nACTION:DISPLAY\nTRIGGER:-PT15M\nEND:VALARM"
    (tmp_path / "calendar.ics").write_bytes(
        calendar(event(f"DTSTART:20260303T080000Z\nRRULE:FREQ=DAILY\nX-OWN:kept\n{attached}\n{alarm}"))
    )
    await tools(tmp_path)["change_event"].call({"id": "series@20260304T080000", "title": "Moved"})
    text = (tmp_path / "calendar.ics").read_text().replace("\n ", "")
    assert text.count("X-OWN:kept") == 2
    assert text.count("BEGIN:VALARM") == 2
    assert text.count("QUJD" * 100) == 2


async def test_two_changes_at_once_are_both_made(tmp_path: Path) -> None:
    import asyncio

    own = tools(tmp_path)["add_event"]
    adding = [own.call({"title": f"event {n}", "start": datetime(2026, 3, 3, 8 + n)}) for n in range(4)]
    await asyncio.gather(*adding)
    events = await tools(tmp_path)["list_events"].call({"start": date(2026, 3, 3)})
    assert [each["title"] for each in events] == [f"event {n}" for n in range(4)]
