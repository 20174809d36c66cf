"""A plan for a request, with everything that led to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bicameral.delta import Mismatch
from bicameral.intent import Intent
from bicameral.models import Usage
from bicameral.plans import Plan, Proof, Report
from bicameral.sessions import Role


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
