"""A plan for a request, with everything that led to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bicameral.delta import Mismatch
from bicameral.intent import Intent
from bicameral.models import Route, Usage
from bicameral.plans import Plan, Proof, Report
from bicameral.sessions import Role, Spent
from bicameral.telemetry import Fact, Span


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with everything that led to it; `source` is the plan as people read it.

    `proof` has what policy will say of each call; it is None if the report has errors.
    """

    intent: Intent
    plan: Plan
    report: Report
    proof: Proof | None
    mismatches: tuple[Mismatch, ...]
    source: str
    repairs: int
    cached: bool
    seconds: float
    usage: Mapping[Role, Usage]
    spent: Spent = field(default_factory=Spent)
    """What planning cost, by chamber; the plan's runs count for themselves."""
    route: Route | None = None
    """Which model of a cascade wrote it, and why those before did not."""
    money: float = 0.0
    """What is known of the cost of planning, in the currency of the price table."""
    degraded: tuple[str, ...] = ()
    """The ways in which replies were less than what was wanted, such as those of another model."""
    calls: tuple[dict[str, Any], ...] = field(default=(), repr=False, compare=False)
    """The calls that planning took, for the journal."""


def tell_planned(told: Span, planned: Planned) -> None:
    """What a plan is like and what it cost; not what it says."""
    if not told.on:
        return
    facts: dict[str, Fact] = {
        "bicameral.intent.by": planned.intent.by,
        "bicameral.plan.steps": len(planned.plan.steps),
        "bicameral.plan.ok": planned.report.ok,
        "bicameral.plan.proved": planned.proof is not None and planned.proof.proved,
        "bicameral.plan.cached": planned.cached,
        "bicameral.plan.repairs": planned.repairs,
    }
    if planned.route is not None:
        facts["bicameral.plan.alias"] = planned.route.alias
        facts["bicameral.plan.escalations"] = len(planned.route.attempts)
    told.tell(facts | {f"bicameral.{name}": number for name, number in planned.spent.to_json().items()})
