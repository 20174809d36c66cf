"""Compiled plans: a plan that passes the check, the attempts before it, its check, and its entry in the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from bicameral.models import ReplyToken, Route
from bicameral.planning._failed_plans import FailedPlan, PlanFault
from bicameral.planning._intent_check import Mismatch
from bicameral.planning._refusals import OverriddenRefusal
from bicameral.plans import Call, Plan, PlanLimits, Report, open_references, plan_references, walk
from bicameral.tools import Registry
from bicameral.types import Type

PLAN_CACHE_FORM = "plan-cache/3"
"""The format of a cache entry; entries of another format are ignored."""


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """The report of `plans.check` on a plan, with all inputs of the check.

    The registry is the planner's, which knows nothing of the world. `report_for` returns the report where the same
    check is needed again, and only if what the plan uses is the same.
    """

    plan: Plan
    registry: Registry
    limits: PlanLimits
    scope: Mapping[str, Type]
    report: Report

    def report_for(
        self, plan: Plan, registry: Registry, limits: PlanLimits, scope: Mapping[str, Type]
    ) -> Report | None:
        """The report, if it is of this plan, these tools, limits and variables; None if the plan must be checked."""
        # Plan and tools by identity: an equal object may still check differently. A tool that reads files for the check
        # is another object in the planner's registry.
        calls = {step.tool for _, step in walk(plan.steps) if isinstance(step, Call)}
        if plan is not self.plan or any(self.registry.get(name) is not registry.get(name) for name in calls):
            return None
        # The planner's check lets references be open; a plan with one is never run.
        if open_references(plan):
            return None
        if limits != self.limits or dict(scope) != dict(self.scope):
            return None
        # The lines are those of the model's text, which nobody is shown.
        return replace(self.report, findings=tuple(replace(each, place=None) for each in self.report.findings))


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A plan that passes the check, and how it was made."""

    plan: Plan
    report: Report
    mismatches: tuple[Mismatch, ...]
    repairs: int
    cached: bool
    seconds: float
    looks: tuple[str, ...] | None = None
    """The variables that the planner asks to see before the next plan; None if the plan answers."""
    confidence: tuple[ReplyToken, ...] = ()
    """The probability of each token, if it was asked for and the provider reports it."""
    route: Route | None = None
    """The model that wrote it and why, where there was a choice."""
    draft: Plan | None = None
    """The plan as the planner may read it, with neutral names for tools that describe themselves."""
    written: Plan | None = None
    """The draft with the calls that nobody asked for. Caches store it, so that it is judged anew with them."""
    draft_types: Mapping[str, Type] = field(default_factory=dict[str, Type])
    """The types of the draft's variables, as a planner may read them."""
    dropped: tuple[str, ...] = ()
    """The tools of the calls that the model wrote, that nobody asked for, and that are not in the plan."""
    overridden: OverriddenRefusal | None = None
    """The planner's refusal that did not stand, so that this plan was written. Where it is set the plan is doubtful."""
    check: PlanCheck | None = field(default=None, repr=False, compare=False)
    """The check that the plan passed, so that it is not repeated."""


def render_entry(key: str, compiled: CompiledPlan) -> str:
    """A plan as a cache entry. It contains its key, so that an entry that was copied to another key is not used."""
    if compiled.written is None:
        raise AssertionError("only a usable attempt is kept")
    written = compiled.written.to_json()
    refusal = None if compiled.overridden is None else compiled.overridden.reason
    entry = {"form": PLAN_CACHE_FORM, "key": key, "looks": compiled.looks, "plan": written, "refusal": refusal}
    return json.dumps(entry)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A plan from the cache, the variables that it asks to see, and the refusal in whose place it was written."""

    plan: Plan
    looks: tuple[str, ...] | None
    refusal: str | None


def parse_entry(key: str, text: str) -> CacheEntry | None:
    """The plan of a cache entry; None if it is damaged, of another format, or of another key."""
    try:
        entry: Any = json.loads(text)
        if (entry["form"], entry["key"]) != (PLAN_CACHE_FORM, key):
            return None
        looks, refusal = entry["looks"], entry["refusal"]
        plan = Plan.model_validate_json(entry["plan"])
        # A model cannot write what a reference is bound to, so neither can an entry: it would choose value and label.
        if any(each.bound is not None for each in plan_references(plan)):
            return None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if refusal is not None and not isinstance(refusal, str):
        return None
    if looks is None:
        return CacheEntry(plan, None, refusal)
    if not isinstance(looks, list) or not all(isinstance(name, str) for name in cast("list[object]", looks)):
        return None
    return CacheEntry(plan, tuple(cast("list[str]", looks)), refusal)


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
