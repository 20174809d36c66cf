"""`bicameral usage`: calls, tokens and money of the models, by role, phase, step, model, run or day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import click

from bicameral.cli._options import CommonOptions, common_options
from bicameral.cli._output import OK
from bicameral.cli._plain_values import render_table
from bicameral.cli._render import money_text, say_degraded

if TYPE_CHECKING:
    from bicameral.limits import CostEntry, CostGrouping, CostReport, CostTotals
    from bicameral.runs import Journal

_GROUPINGS = ("role", "phase", "step", "model", "run", "day")


@click.command(short_help="What the models took: calls, tokens and money.")
@click.argument("run", required=False)
@click.option("--since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="Only what was asked since then.")
@click.option("--by", type=click.Choice(_GROUPINGS), default="role", show_default=True, help="What to tell apart.")
@common_options
def command(chosen: CommonOptions, run: str | None, since: datetime | None, by: str) -> int:
    """What the models took in RUN (its id, the beginning of it, or `last`), or in all runs.

    Planning counts for the run that it led to. A plan that never ran is in no run and not counted. The cost of a model
    whose price nobody knows is not 0: it is left out of the sum, and said.
    """
    from bicameral.cli._run_records import find_recorded_run, open_journals
    from bicameral.config import open_prices
    from bicameral.limits import CostReport

    config = chosen.config()
    currency = open_prices(config).currency
    with open_journals(config) as known:
        costs = CostReport.of(
            _run_spendings(*find_recorded_run(known, run)) if run is not None else _all_spendings(known, since)
        )
    if run is not None and since is not None:
        costs = CostReport.of(each for each in costs.entries if each.at >= since.timestamp())
    _show_usage(chosen, costs, cast("CostGrouping", by), currency)
    return OK


def _all_spendings(known: Iterable[Journal], since: datetime | None) -> Iterator[CostEntry]:
    from bicameral.limits import cost_entries

    for journal in known:
        for event in journal.cost_events(since.timestamp() if since is not None else 0.0):
            yield from cost_entries(*event)


def _run_spendings(journal: Journal, run: str) -> Iterator[CostEntry]:
    """The costs of a run; for a request in rounds, those of every round."""
    from bicameral.limits import cost_entries

    for event in journal.events(run):
        yield from cost_entries(event.run, event.at, event.kind, event.step, event.body)
        part: object = event.body.get("run") if event.kind == "reason-round" else None
        if isinstance(part, str):
            yield from _run_spendings(journal, part)


def _show_usage(chosen: CommonOptions, costs: CostReport, by: CostGrouping, currency: str) -> None:
    out, sums = chosen.out, costs.by(by)
    if not sums:
        out.show("no model was asked")
    else:
        rows = [_usage_row(by, key, cost, currency) for key, cost in sums.items()]
        out.show(
            render_table([*rows, _usage_row(by, "total", costs.total, currency)] if len(rows) > 1 else rows, out.width)
        )
    if costs.unpriced:
        out.say(f"price not known, and not in the sum: {', '.join(costs.unpriced)}", style="yellow")
    if costs.total.estimated:
        out.say(f"tokens are estimated for {costs.total.estimated:,} of the calls", style="dim")
    say_degraded(out, costs.degraded)
    facts: dict[str, Any] = {
        "ok": True,
        "by": by,
        "currency": currency,
        "costs": {key: cost.to_json() for key, cost in sums.items()},
        "total": costs.total.to_json(),
        "unpriced": list(costs.unpriced),
        "degraded": list(costs.degraded),
    }
    out.write_json(facts)


def _usage_row(by: str, key: str, cost: CostTotals, currency: str) -> dict[str, object]:
    unknown = cost.unpriced == cost.calls
    money = money_text(None if unknown else cost.money, currency)
    return {
        by: key,
        "calls": cost.calls,
        "read": cost.prompt,
        "cached": cost.cached,
        "written": cost.output,
        "cost": money if unknown or not cost.unpriced else f"{money} and more",
    }
