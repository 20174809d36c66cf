"""What the models took: calls, tokens and money by role, phase, step, model, run or day, and over time.

A token for one user gets the costs of that user's own runs and of nobody else's.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, get_args

from starlette.responses import Response

from bicameral.console._operations_state import Figure, operations_of
from bicameral.console._pages import PageCall, page_route
from bicameral.durable import CostLog, Runs
from bicameral.errors import ServerError
from bicameral.limits import CostGrouping, CostReport, CostTotals, TimeUnit
from bicameral.server.surface import HttpError

GROUPINGS: tuple[CostGrouping, ...] = get_args(CostGrouping)
Measure = Literal["money", "tokens", "calls"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
_GROUPINGS_BY_NAME: Mapping[str, CostGrouping] = {each: each for each in GROUPINGS}
_MEASURES_BY_NAME: Mapping[str, Measure] = {each: each for each in MEASURES}
PERIODS: Mapping[str, str] = {"1": "today", "7": "7 days", "30": "30 days", "90": "90 days", "all": "all times"}
"""Periods that can be chosen, by the number of days with the one of today."""
MAX_ROWS = 100
MAX_BARS = 62
"""Bars that can be told apart."""
PLOT_WIDTH, PLOT_HEIGHT = 960, 210
PLOT_LEFT, PLOT_TOP, PLOT_BOTTOM = 72, 12, 26
MAX_LABELS = 7


@dataclass(frozen=True, slots=True)
class Period:
    """A time from the beginning of one day to the end of another, by the clock of the server."""

    name: str
    since: float
    until: float
    first: str = ""
    last: str = ""
    """The days of a period that was typed."""

    @classmethod
    def of(cls, call: PageCall) -> Period:
        """The period of the address; 30 days by default, `server.bad-request` if what was typed is none."""
        first, last = call.query("from").strip(), call.query("to").strip()
        if first or last:
            since = 0.0 if not first else _day_start(first)
            until = math.inf if not last else _day_start(last, after=1)
            if since >= until:
                raise _bad_period(f"{last!r} is before {first!r}")
            return cls("", since, until, first, last)
        name = call.query("period") if call.query("period") in PERIODS else "30"
        if name == "all":
            return cls(name, 0.0, math.inf)
        today = dt.datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
        return cls(name, (today - dt.timedelta(days=int(name) - 1)).timestamp(), math.inf)


def _day_start(written: str, *, after: int = 0) -> float:
    try:
        day = dt.date.fromisoformat(written) + dt.timedelta(days=after)
        return dt.datetime(day.year, day.month, day.day).timestamp()
    except (ValueError, OverflowError):
        raise _bad_period(f"{written[:40]!r} is no day") from None


def _bad_period(message: str) -> HttpError:
    return HttpError(422, ServerError("server.bad-request", message, expected="days such as 2026-03-27, in order"))


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a plot, with what is said of it in words."""

    x: float
    y: float
    width: float
    height: float
    words: str
    is_partial: bool
    """Whether calls without a known price are missing from it."""


@dataclass(frozen=True, slots=True)
class PlotMark:
    """A line or a label of an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A bar chart: what the template writes as attributes of shapes."""

    bars: Sequence[Bar]
    levels: Sequence[PlotMark]
    labels: Sequence[PlotMark]
    unit: TimeUnit
    width: int = PLOT_WIDTH
    height: int = PLOT_HEIGHT
    left: int = PLOT_LEFT
    floor: int = PLOT_HEIGHT - PLOT_BOTTOM


@dataclass(frozen=True, slots=True)
class CostRow:
    """One row of a table."""

    key: str
    cost: CostTotals
    run: str = ""
    """The run that it is, for a link."""


@dataclass(frozen=True, slots=True)
class ShownCosts:
    """The costs of a period, with what is said of all of them.

    What goes through every charge is worked out here, in a thread: there may be very many.
    """

    report: CostReport
    total: CostTotals
    unpriced: Sequence[str]
    """The models without a known price."""
    degraded: Sequence[str]
    """The ways in which replies were less than what was asked for."""

    @classmethod
    def of(cls, report: CostReport) -> ShownCosts:
        return cls(report, report.total, report.unpriced, report.degraded)


@dataclass(frozen=True, slots=True)
class CostTables:
    """The costs of a period by what is chosen, and over time."""

    rows: Sequence[CostRow]
    more: int
    """How many rows are left out, of which `rest` is the sum."""
    rest: CostTotals
    buckets: Mapping[dt.datetime, CostTotals]
    unit: TimeUnit

    @classmethod
    def of(cls, report: CostReport, by: CostGrouping) -> CostTables:
        sums, buckets, unit = cost_sums(report, by)
        rows = [CostRow(key, cost, key if by == "run" else "") for key, cost in list(sums.items())[:MAX_ROWS]]
        rest = list(sums.values())[MAX_ROWS:]
        return cls(rows, len(rest), CostTotals.sum(rest), buckets, unit)

    @property
    def times(self) -> list[CostRow]:
        """The times in which a model was called."""
        return [CostRow(unit_name(start, self.unit), cost) for start, cost in self.buckets.items() if cost.calls]


async def costs_page(call: PageCall) -> Response:
    """The costs of a period, over time and by what is chosen."""
    period = Period.of(call)
    by = _GROUPINGS_BY_NAME.get(call.query("by"), "role")
    found = await cost_figure(call, period.since, period.until, slot=True)
    costs = found.value
    default: Measure = "money" if costs.total.money else "tokens"
    measure = _MEASURES_BY_NAME.get(call.query("show"), default)
    prices = call.context.agent.prices
    tables = await asyncio.to_thread(CostTables.of, costs.report, by)
    return call.page(
        "operations_costs.html",
        period=period,
        periods=PERIODS,
        groupings=GROUPINGS,
        measures=MEASURES,
        by=by,
        measure=measure,
        costs=costs,
        found=found,
        currency=prices.currency,
        prices=prices,
        tables=tables,
        plot=draw_plot(tables.buckets, tables.unit, measure, prices.currency),
        is_shared=call.context.runs.database.sqlite,
    )


async def cost_figure(
    call: PageCall, since: float, until: float = math.inf, *, slot: bool = False
) -> Figure[ShownCosts]:
    """The costs that a person may see; `slot` takes one of the slots for work that keeps the machine busy."""
    runs, owner, operations = call.context.runs, call.token.owner, operations_of(call)

    async def work() -> ShownCosts:
        ids = None if owner is None else await runs.ids(owner)
        with call.context.plans.slot() if slot else nullcontext():
            return await asyncio.to_thread(_read_costs, runs, operations.cost_log, ids, since, until)

    return await operations.figure(("costs", owner, since, until), work)


def _read_costs(runs: Runs, log: CostLog, ids: Sequence[str] | None, since: float, until: float) -> ShownCosts:
    with runs.open_journal() as journal:
        return ShownCosts.of(CostReport.of(log.entries(journal, ids, since, until)))


def cost_sums(
    costs: CostReport, by: CostGrouping
) -> tuple[dict[str, CostTotals], dict[dt.datetime, CostTotals], TimeUnit]:
    """The sums by a grouping and over time, and the unit of time that gives bars that can be told apart."""
    sums = costs.by(by)
    if not costs.entries:
        return sums, {}, "day"
    first, last = costs.entries[0].at, costs.entries[-1].at
    days = (last - first) / 86_400
    unit: TimeUnit = "hour" if days < 2 else "day" if days < MAX_BARS else "week" if days < 7 * MAX_BARS else "month"
    return sums, dict(_without_gaps(costs.over_time(unit), unit)), unit


def _without_gaps(found: Mapping[dt.datetime, CostTotals], unit: TimeUnit) -> Iterator[tuple[dt.datetime, CostTotals]]:
    """The sums with those of times at which nothing was called, as far as all of them can be drawn."""
    starts = list(found)
    each, last = starts[0], starts[-1]
    while each <= last:
        yield each, found.get(each, CostTotals())
        each = _next_start(each, unit)


def _next_start(start: dt.datetime, unit: TimeUnit) -> dt.datetime:
    match unit:
        case "hour":
            return start + dt.timedelta(hours=1)
        case "day":
            return start + dt.timedelta(days=1)
        case "week":
            return start + dt.timedelta(weeks=1)
        case "month":
            return (start + dt.timedelta(days=32)).replace(day=1)


def unit_name(start: dt.datetime, unit: TimeUnit) -> str:
    """An hour, day, week or month as text."""
    match unit:
        case "hour":
            return start.strftime("%Y-%m-%d %H:00")
        case "day":
            return start.strftime("%Y-%m-%d")
        case "week":
            return f"week of {start:%Y-%m-%d}"
        case "month":
            return start.strftime("%Y-%m")


def _short_name(start: dt.datetime, unit: TimeUnit) -> str:
    formats: Mapping[TimeUnit, str] = {"hour": "%H:00", "day": "%m-%d", "week": "%m-%d", "month": "%Y-%m"}
    return start.strftime(formats[unit])


def measured(cost: CostTotals, measure: Measure) -> float:
    """What a bar is about."""
    return cost.money if measure == "money" else float(cost.tokens if measure == "tokens" else cost.calls)


def amount_text(amount: float, measure: Measure, currency: str) -> str:
    """An amount beside an axis or in a tip."""
    if measure != "money":
        return f"{amount:,.0f}"
    return f"{amount:,.2f} {currency}" if amount >= 10 else f"{amount:.3g} {currency}"


def draw_plot(
    buckets: Mapping[dt.datetime, CostTotals], unit: TimeUnit, measure: Measure, currency: str
) -> Plot | None:
    """The bars of a plot; None if there is nothing to draw."""
    top = _top_level(max((measured(cost, measure) for cost in buckets.values()), default=0.0), measure)
    if not top:
        return None
    floor = PLOT_HEIGHT - PLOT_BOTTOM
    tall, step = floor - PLOT_TOP, (PLOT_WIDTH - PLOT_LEFT) / len(buckets)
    width = max(1.0, min(step * 0.8, 60.0))
    bars: list[Bar] = []
    labels: list[PlotMark] = []
    every = math.ceil(len(buckets) / MAX_LABELS)
    for number, (start, cost) in enumerate(buckets.items()):
        amount = measured(cost, measure)
        middle = PLOT_LEFT + step * (number + 0.5)
        # A bar that is there is seen, however low it is.
        height = max(1.5, tall * amount / top) if amount else 0.0
        is_partial = measure == "money" and bool(cost.unpriced)
        words = f"{unit_name(start, unit)}: {amount_text(amount, measure, currency)}"
        words += " and more, since the price of some calls is not known" if is_partial else ""
        bars.append(
            Bar(
                round(middle - width / 2, 2),
                round(floor - height, 2),
                round(width, 2),
                round(height, 2),
                words,
                is_partial,
            )
        )
        if number % every == 0:
            labels.append(PlotMark(round(middle, 2), _short_name(start, unit)))
    # Half a call is none: where a count has no whole half, only both ends are marked.
    shares = (0, 0.5, 1) if measure == "money" or top % 2 == 0 else (0, 1)
    levels = [PlotMark(round(floor - tall * share, 2), amount_text(top * share, measure, currency)) for share in shares]
    return Plot(bars, levels, labels, unit)


def _top_level(amount: float, measure: Measure) -> float:
    """The uppermost level of a plot: a round number, for counts one with a whole half as far as there is one."""
    top = _round_up(amount)
    return 6.0 if measure != "money" and top == 5 else top


def _round_up(amount: float) -> float:
    """The next round number: 1, 2, 4 or 5 times a power of ten. 0 for 0, and for what is too small to be drawn."""
    if amount < 1e-9:
        return 0.0
    power = 10.0 ** math.floor(math.log10(amount))
    return next(step * power for step in (1, 2, 4, 5, 10) if step * power >= amount * (1 - 1e-9))


cost_routes = [page_route("/operations/costs", costs_page, "see")]
