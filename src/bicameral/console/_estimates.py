"""Estimates as tables: what each part of a stack or a pattern would take, and what is to be known of the sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bicameral.catalog.costs import Amounts, CostPart, Estimate, Rates, number_text, part_name, range_text
from bicameral.config import Config, open_prices


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """One part, or the sum: expected and worst in each cell."""

    part: str
    calls: str
    read: str
    written: str
    tools: str
    seconds: str
    money: str


@dataclass(frozen=True, slots=True)
class EstimateTable:
    """An estimate as it is shown."""

    rows: Sequence[EstimateRow]
    total: EstimateRow
    remarks: Sequence[str]
    currency: str
    models: Mapping[str, str]
    """The model of each class that the estimate counts with."""


def estimate_table(found: Estimate, config: Config, rates: Mapping[str, Rates]) -> EstimateTable:
    """The table of an estimate."""
    rows = [_row(part_name(part), part.expected, part.worst) for part in found.parts if not part.apart]
    total = _row("in all", found.expected, found.worst)
    models = {tier: rate.model for tier, rate in rates.items()}
    return EstimateTable(rows, total, _remarks(found), open_prices(config).currency, models)


def _row(name: str, usual: Amounts, worst: Amounts) -> EstimateRow:
    return EstimateRow(
        name,
        range_text(usual.calls, worst.calls),
        range_text(usual.prompt, worst.prompt),
        range_text(usual.output, worst.output),
        range_text(usual.tools, worst.tools),
        range_text(usual.seconds, worst.seconds),
        range_text(usual.money, worst.money, digits=4),
    )


def _remarks(found: Estimate) -> list[str]:
    remarks = list(found.notes)
    if found.worst.longest:
        longest = f"{found.expected.longest:,.0f} tokens, at worst {found.worst.longest:,.0f}"
        remarks.insert(0, f"the longest call has {longest}")
    if apart := [part for part in found.parts if part.apart]:
        remarks.append(f"beside runs, each time: {number_text(found.apart.calls)} calls ({_names(apart)})")
    if found.unpriced:
        remarks.append(f"price not known: {', '.join(found.unpriced)}")
    return remarks


def _names(parts: Sequence[CostPart]) -> str:
    return ", ".join(dict.fromkeys(part_name(part) for part in parts))
