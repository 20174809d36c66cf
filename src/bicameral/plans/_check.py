"""The check before a run: every tool, argument, name and type holds, the plan answers, and its cost is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bicameral.errors import Place, PlanError
from bicameral.tools import Registry
from bicameral.types import Type

from ._cost import cost_of, effects_of
from ._depth import bound_depth
from ._findings import Finding, Limits, Report
from ._merge import settled
from ._plan import Ask, Call, Compute, Extract, Plan, walk
from ._scope import Scope
from ._steps import StepChecker


def check(
    plan: Plan,
    registry: Registry,
    *,
    places: Mapping[str, Place] | None = None,
    limits: Limits | None = None,
    scope: Mapping[str, Type] | None = None,
) -> Report:
    """Everything that is wrong with a plan, what it does to the world, and what it costs at worst.

    `scope` are the variables that are there before the first step, with their types.

    Example:
        >>> report = check(plan, registry)
        >>> report.ok, [str(finding) for finding in report.errors]
    """
    try:
        bound_depth(plan)
    except PlanError as error:
        where = error.place.step if error.place else None
        told = Finding("error", error.code, error.message, where or "", expected=error.expected, fix=error.fix)
        return Report(_placed([told], places or {}))
    checker = StepChecker(registry)
    after = checker.block(plan.steps, Scope.of(scope or {}))
    findings = list(dict.fromkeys(checker.typer.findings))
    findings += _missing_answer(plan, after)
    cost, too_much = cost_of(plan, registry, limits or Limits())
    findings += too_much
    findings += _unused(plan, checker.typer.reads)
    types = {name: settled(variable.type) for name, variable in after.variables.items()}
    return Report(_placed(findings, places or {}), effects_of(plan, registry), cost, types)


def _missing_answer(plan: Plan, scope: Scope) -> list[Finding]:
    if scope.ended:
        return []
    last = str(len(plan.steps) - 1) if plan.steps else ""
    message = "the plan may end without an answer" if plan.steps else "the plan is empty"
    return [Finding("error", "plan.missing-answer", message, last, fix="End with answer(…).")]


def _unused(plan: Plan, reads: set[str]) -> list[Finding]:
    """Names that nothing reads; those that begin with '_' say so themselves."""
    found: dict[str, str] = {}
    for path, step in walk(plan.steps):
        if isinstance(step, Call | Compute | Extract | Ask) and step.name is not None:
            found.setdefault(step.name, path)
    return [
        Finding("note", "plan.unused", f"`{name}` is never used", path)
        for name, path in found.items()
        if name not in reads and not name.startswith("_")
    ]


def _placed(findings: list[Finding], places: Mapping[str, Place]) -> tuple[Finding, ...]:
    """The findings with their places, in the order of the plan's errors, warnings and notes as found."""
    return tuple(replace(finding, place=_place(finding.path, places)) for finding in findings)


def _place(path: str, places: Mapping[str, Place]) -> Place | None:
    """The place of a step, or of the nearest step around it."""
    while path and path not in places:
        path = path.rpartition("/")[0]
    return places.get(path)
