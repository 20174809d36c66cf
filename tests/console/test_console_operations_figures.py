"""Figures that take long to work out, and plots: each is worked out once, and drawn as what it is."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from bicameral.console import _operations_state
from bicameral.console._operations_costs import PLOT_HEIGHT, PLOT_WIDTH, cost_sums, draw_plot, measured
from bicameral.console._operations_state import Operations
from bicameral.limits import CostEntry, CostReport, CostTotals


async def test_those_who_ask_at_the_same_time_wait_for_the_same_work() -> None:
    operations, begun = Operations(), list[str]()

    async def work() -> int:
        begun.append("")
        await asyncio.sleep(0.01)
        return len(begun)

    found = await asyncio.gather(*(operations.figure("a", work) for _ in range(5)))
    assert [each.value for each in found] == [1] * 5
    assert (await operations.figure("a", work)).value == 1
    # Another person's is another figure.
    assert (await operations.figure("b", work)).value == 2


async def test_a_figure_is_worked_out_again_when_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    operations, begun = Operations(), list[str]()

    async def work() -> int:
        begun.append("")
        return len(begun)

    assert (await operations.figure("a", work)).value == 1
    monkeypatch.setattr(_operations_state, "KEPT_SECONDS", -1.0)
    assert (await operations.figure("a", work)).value == 2


async def test_what_failed_is_tried_again_and_a_browser_that_left_ends_nothing() -> None:
    operations, tries = Operations(), list[str]()
    go_on = asyncio.Event()

    async def work() -> str:
        tries.append("")
        if len(tries) == 1:
            raise ValueError("not yet")
        await go_on.wait()
        return "done"

    with pytest.raises(ValueError, match="not yet"):
        await operations.figure("a", work)
    leaving = asyncio.create_task(operations.figure("a", work))
    staying = asyncio.create_task(operations.figure("a", work))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.sleep(0)
    go_on.set()
    assert (await staying).value == "done"
    assert len(tries) == 2


async def test_figures_take_a_bounded_room() -> None:
    operations = Operations()

    async def work() -> int:
        return 1

    for number in range(3 * _operations_state.MAX_KEPT):
        await operations.figure(number, work)
    assert len(operations._figures) == _operations_state.MAX_KEPT  # pyright: ignore[reportPrivateUsage]


amounts = st.floats(0, 1e7) | st.just(0.0)


@given(st.lists(amounts, min_size=1, max_size=80))
def test_bars_stay_in_the_plot_and_are_as_high_as_what_they_show(money: list[float]) -> None:
    start = datetime(2026, 1, 1)
    buckets = {start + timedelta(days=n): CostTotals(calls=1, money=each) for n, each in enumerate(money)}
    plot = draw_plot(buckets, "day", "money", "USD")
    if max(money) < 1e-9:
        assert plot is None
        return
    assert plot is not None
    assert len(plot.bars) == len(money)
    for bar in plot.bars:
        assert plot.left <= bar.x
        assert bar.x + bar.width <= PLOT_WIDTH + 0.1
        assert 0 <= bar.y <= bar.y + bar.height <= PLOT_HEIGHT
    for one, other in zip(
        zip(money, plot.bars, strict=True), list(zip(money, plot.bars, strict=True))[1:], strict=False
    ):
        assert one[0] <= other[0] or one[1].height >= other[1].height
    assert len(plot.labels) <= 7
    assert plot.levels[0].text == "0 USD"


def test_calls_without_a_price_are_marked_where_money_is_shown() -> None:
    buckets = {datetime(2026, 1, 1): CostTotals(calls=2, money=1.0, unpriced=1, prompt=5)}
    money, calls = draw_plot(buckets, "day", "money", "USD"), draw_plot(buckets, "day", "calls", "USD")
    assert money is not None
    assert calls is not None
    assert (money.bars[0].is_partial, calls.bars[0].is_partial) == (True, False)
    assert "and more" in money.bars[0].words
    assert measured(buckets[datetime(2026, 1, 1)], "tokens") == 5


@pytest.mark.parametrize(
    ("days", "unit", "number"), [(0.5, "hour", 13), (10, "day", 11), (200, "week", 30), (900, "month", 31)]
)
def test_the_unit_of_time_gives_bars_that_can_be_told_apart(days: float, unit: str, number: int) -> None:
    end = datetime(2026, 3, 27, 12)
    times = ((end - timedelta(days=days)).timestamp(), end.timestamp())
    report = CostReport.of(CostEntry("r", at, "", "", "", "m", CostTotals(calls=1)) for at in times)
    _, buckets, found = cost_sums(report, "role")
    assert found == unit
    assert abs(len(buckets) - number) <= 1
    # Times without a call are drawn as such.
    assert sum(cost.calls for cost in buckets.values()) == 2
