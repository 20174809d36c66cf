"""How much a server may send: counted by the minute, by events, and by connections."""

from __future__ import annotations

from hypothesis import given, strategies as st

from bicameral.mcp._inflow import (
    MAX_BYTES,
    MAX_IDLE_BYTES,
    MAX_IDLE_MESSAGES,
    MAX_MESSAGES,
    WINDOW_SECONDS,
    EventCounter,
    InflowLimit,
    ReconnectPace,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_little_may_be_sent_while_nothing_is_asked() -> None:
    limit = InflowLimit(Clock())
    assert limit.problem(MAX_IDLE_MESSAGES, 0) is None
    assert "messages" in (limit.problem(1, 0) or "")
    assert "bytes" in (InflowLimit(Clock()).problem(1, MAX_IDLE_BYTES + 1) or "")


def test_much_may_be_sent_while_a_request_waits_and_not_after_it() -> None:
    limit = InflowLimit(Clock())
    limit.note_request("1")
    assert limit.problem(MAX_MESSAGES, MAX_BYTES) is None
    assert limit.problem(1, 0) is not None
    limit.note_request("2")
    assert limit.problem(MAX_IDLE_MESSAGES, 0) is None
    for identifier in ("1", "2", "never asked"):
        limit.note_end(identifier)
    assert limit.problem(1, 0) is not None


def test_a_minute_later_as_much_may_be_sent_again() -> None:
    clock = Clock()
    limit = InflowLimit(clock)
    for _ in range(5):
        assert limit.problem(MAX_IDLE_MESSAGES, 0) is None
        clock.now += WINDOW_SECONDS
    assert limit.problem(MAX_IDLE_MESSAGES + 1, 0) is not None


@given(
    st.lists(st.sampled_from(["data: x", "event: y", "id: 1", ": z"]), min_size=0, max_size=4).map(tuple),
    st.integers(0, 6),
    st.sampled_from(["\n", "\r", "\r\n"]),
    st.integers(1, 7),
)
def test_events_are_counted_wherever_the_stream_is_cut(
    lines: tuple[str, ...], events: int, end: str, size: int
) -> None:
    event = "".join(f"{line}{end}" for line in (*lines, "data: last")) + end
    stream = (event * events).encode()
    counter = EventCounter()
    assert sum(counter.count(stream[at : at + size]) for at in range(0, len(stream), size)) == events


def test_a_stream_that_is_closed_at_once_is_not_opened_again_at_once() -> None:
    clock = Clock()
    pace = ReconnectPace(clock)
    opened: list[float] = []
    while clock.now < 100:
        clock.now += pace.delay()
        opened.append(clock.now)
    assert opened[0] == 0.0
    assert len(opened) < 20
    pace.note_request()
    clock.now += 30
    assert pace.delay() == 0.0
    assert pace.delay() == 1.0
