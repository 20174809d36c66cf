"""Attempts of the planner: one reply, judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bicameral.planning._compiled_plan import CompiledPlan
from bicameral.planning._failed_plans import FailedPlan, PlanFault

_DROPPED_CODES = frozenset({"plan.unasked-effect", "plan.unsupported-claim"})


@dataclass(frozen=True, slots=True)
class PlanAttempt:
    """The outcome of one reply of the planner: a plan that passes the check, or problems, or both."""

    code: str = ""
    problems: tuple[str, ...] = ()
    faults: tuple[PlanFault, ...] = ()
    wrong_line: int | None = None
    compiled: CompiledPlan | None = None
    refusal: str | None = None

    @property
    def usable(self) -> CompiledPlan | None:
        """The plan, unless a severe mismatch with its intent forbids using it."""
        compiled = self.compiled
        return None if compiled is None or any(each.severe for each in compiled.mismatches) else compiled

    @property
    def claims_dropped(self) -> bool:
        """Whether nothing else forbids the plan than an answer that tells of calls which nobody asked for."""
        severe = () if self.compiled is None else [each.code for each in self.compiled.mismatches if each.severe]
        return self.compiled is not None and bool(self.compiled.dropped) and _DROPPED_CODES.issuperset(severe)

    def describe(self, readable: Callable[[str], str]) -> FailedPlan:
        """What the planner wrote and what is wrong with it, each fault once, with the real names of tools."""
        faults = (PlanFault(each.code, readable(each.message), each.line) for each in self.faults)
        return FailedPlan(readable(self.code).rstrip(), tuple(dict.fromkeys(faults)))
