"""Figures that take long to work out, and plots: each is worked out once, and drawn as what it is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

import pytest
from hypothesis import given, strategies as st

from bicameral.console import _operations_state
from bicameral.console._operations_costs import (
    PLOT_HEIGHT,
    PLOT_WIDTH,
    CostTables,
    Measure,
    ShownCosts,
    cost_sums,
    draw_plot,
    measured,
)
from bicameral.console._operations_state import Figure, Operations
from bicameral.console._pages import money_text, render
from bicameral.limits import CostEntry, CostReport, CostTotals, Prices
from bicameral.server import AccessToken


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


counts_of_days = st.lists(st.integers(0, 12) | st.integers(0, 10**7), min_size=1, max_size=20)


@given(counts_of_days, st.sampled_from(["calls", "tokens"]))
def test_the_axis_of_a_count_has_whole_levels_at_their_places(counts: list[int], measure: Measure) -> None:
    start = datetime(2026, 1, 1)
    buckets = {start + timedelta(days=n): CostTotals(calls=each, prompt=each) for n, each in enumerate(counts)}
    plot = draw_plot(buckets, "day", measure, "USD")
    if not any(counts):
        assert plot is None
        return
    assert plot is not None
    levels = [int(level.text.replace(",", "")) for level in plot.levels]
    assert levels == sorted(set(levels))
    assert levels[-1] >= max(counts)
    bottom, top = plot.levels[0].at, plot.levels[-1].at
    for level, said in zip(plot.levels, levels, strict=True):
        assert level.at == pytest.approx(bottom + (top - bottom) * said / levels[-1], abs=0.01)


@pytest.mark.parametrize(("count", "levels"), [(1, ["0", "1"]), (2, ["0", "1", "2"]), (5, ["0", "3", "6"])])
def test_few_calls_are_counted_in_whole_calls(count: int, levels: list[str]) -> None:
    plot = draw_plot({datetime(2026, 1, 1): CostTotals(calls=count)}, "day", "calls", "USD")
    assert plot is not None
    assert [level.text for level in plot.levels] == levels


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (None, "price not known"),
        (0, "0.00 USD"),
        (1e-9, "< 0.000001 USD"),
        (0.000012, "0.000012 USD"),
        (0.00034567, "0.00035 USD"),
        (0.0012, "0.0012 USD"),
        (12.5, "12.5000 USD"),
        (1234.5, "1,234.50 USD"),
    ],
)
def test_money_that_was_taken_never_looks_like_none(amount: float | None, said: str) -> None:
    assert money_text(amount, "USD") == said


@given(st.floats(min_value=1e-300, max_value=1e15))
def test_an_amount_that_is_known_shows_a_digit_that_is_not_0(amount: float) -> None:
    assert any(digit in money_text(amount, "USD") for digit in "123456789")
    assert "e" not in money_text(amount, "USD")


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


class Untouched:
    """A report of very many charges, which nobody may go through on the event loop."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"the page asks for {name} of all charges")


def test_a_page_of_costs_does_not_go_through_all_charges_while_it_is_rendered() -> None:
    entries = [CostEntry(f"r{n}", 1e9 + n, "", "", "", "m", CostTotals(calls=1, unpriced=n % 2)) for n in range(150)]
    report = CostReport.of(entries)
    tables, whole = CostTables.of(report, "run"), ShownCosts.of(report)
    assert (len(tables.rows), tables.more, tables.rest.calls) == (100, 50, 50)
    page = render(
        "operations_costs_part.html",
        costs=replace(whole, report=cast("CostReport", Untouched())),
        found=Figure(whole, 0.0),
        tables=tables,
        plot=None,
        by="run",
        measure="calls",
        currency="USD",
        prices=Prices(),
        token=AccessToken("id", "ana", "0" * 64, 0.0),
        is_shared=True,
    )
    assert "50 more" in page
    assert "The price of 75 calls is not known" in page
