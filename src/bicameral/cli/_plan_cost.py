"""What a run of a plan would take: the blanks that the quarantined model fills, and the tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bicameral.errors import PlanError

if TYPE_CHECKING:
    from bicameral.agent import Checked
    from bicameral.catalog.costs import Estimate, Rates
    from bicameral.config import Config
    from bicameral.plans import Extract, Plan


def plan_estimate(config: Config, file: str, sizes: Mapping[str, float], rates: Rates) -> Estimate:
    """A plan file in numbers. What is expected takes lists of unknown length for `items` items; the worst case is that
    of the check, with every blank asked for as often as it may be, at its longest."""
    from bicameral.agent import check_plan
    from bicameral.config import open_policy, open_registry

    from ._plan_files import read_plan

    registry = open_registry(config)
    read = read_plan(file, registry)
    policy, limits = open_policy(config, registry), config.plan_limits
    checked = check_plan(read.plan, registry, policy, limits=limits, places=read.places)
    if not checked.report.ok:
        first = checked.report.errors[0]
        raise PlanError(first.code, first.message, place=first.place, nearest=first.nearest, fix=first.fix)
    items = min(limits.max_items, max(1, round(sizes["items"])))
    usual = check_plan(read.plan, registry, policy, limits=replace(limits, max_items=items), places=read.places)
    return _estimate(read.plan, usual, checked, sizes, rates)


def _estimate(plan: Plan, usual: Checked, worst: Checked, sizes: Mapping[str, float], rates: Rates) -> Estimate:
    from bicameral.agent._spending import ASKS, READS
    from bicameral.boundary import MAX_OUTPUT
    from bicameral.catalog.costs import Amounts, Estimate, Part, Session, expected
    from bicameral.catalog.costs import worst as at_most
    from bicameral.plans import Extract, walk

    blanks = [step for _, step in walk(plan.steps) if isinstance(step, Extract)]
    calls, most = usual.report.cost, worst.report.cost
    head, form = _lengths(blanks)
    reads = min(form + sizes["document"], READS - head)
    session = Session(calls.model_calls.most, head, reads, 0.0, min(sizes["item_output"], MAX_OUTPUT))
    longest = Session(most.model_calls.most * ASKS, head, READS - head, 0.0, MAX_OUTPUT)
    parts = [
        Part("", "plan", "extract", rates.model, expected(session, rates), at_most(longest, rates)),
        Part("", "plan", "tools", "", Amounts(tools=calls.tool_calls.most), Amounts(tools=most.tool_calls.most)),
    ]
    notes: list[str] = []
    if most.model_calls.assumed or most.tool_calls.assumed:
        notes.append("lists of unknown length: as many items as --size items says, at worst as the check assumes")
    unpriced = (rates.model,) if blanks and (rates.read is None or rates.written is None) else ()
    return Estimate(tuple(part for part in parts if part.worst != Amounts()), tuple(notes), unpriced)


def _lengths(blanks: list[Extract]) -> tuple[float, float]:
    """Tokens of what every blank is asked with, and of the form around its text, on the mean."""
    from bicameral.boundary._form import SETUP, form
    from bicameral.catalog.costs import tokens_of
    from bicameral.plans import Const

    head = sum(tokens_of(message.text) for message in SETUP)
    asked = [step.instruction.value if isinstance(step.instruction, Const) else "" for step in blanks]
    forms = [tokens_of(form("", str(said), step.wanted)) for said, step in zip(asked, blanks, strict=True)]
    return head, sum(forms) / len(forms) if forms else 0.0
