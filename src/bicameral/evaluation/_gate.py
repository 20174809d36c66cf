"""The gate: whether a report may replace what was accepted. It fails closed: what cannot be compared does not pass."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.errors import EvaluationError
from bicameral.evaluation._baseline import Baseline, Promotion, category_scores
from bicameral.evaluation._report import Report, Summary

MAX_TOLERANCE = 0.05
"""The largest drop of a category that a gate can be told to allow."""
DEFAULT_TOLERANCE = 0.02
_ROUNDING = 1e-6

GateFailureKind = Literal[
    "suite-changed",
    "case-removed",
    "category-removed",
    "category-missing",
    "too-few-cases",
    "not-run",
    "fewer-repeats",
    "critical",
    "regression",
    "other-subject",
    "other-model",
    "other-judge",
]


@dataclass(frozen=True, slots=True)
class GateFailure:
    """Why a report does not pass; `where` is the case or the category."""

    kind: GateFailureKind
    message: str
    where: str = ""

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "message": self.message, "where": self.where}


@dataclass(frozen=True, slots=True)
class CategoryChange:
    """The mean score of a category, before and now."""

    before: float | None
    now: float

    @property
    def change(self) -> float | None:
        return None if self.before is None else self.now - self.before

    def to_json(self) -> dict[str, Any]:
        change = self.change
        return {
            "before": None if self.before is None else round(self.before, 4),
            "now": round(self.now, 4),
            "change": None if change is None else round(change, 4),
        }


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a report passes, why not, and how each category changed. Cases that became worse are in `worse`.

    One case can become worse within the tolerance of its category; it is named all the same.
    """

    failures: tuple[GateFailure, ...]
    categories: Mapping[str, CategoryChange]
    worse: tuple[str, ...]
    better: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.failures

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "failures": [each.to_json() for each in self.failures],
            "categories": {name: each.to_json() for name, each in self.categories.items()},
            "worse": list(self.worse),
            "better": list(self.better),
        }


def gate(
    report: Report[Any],
    baseline: Baseline | None,
    tolerance: float = DEFAULT_TOLERANCE,
    *,
    minimum: int = 1,
    required: Collection[str] = (),
) -> GateResult:
    """Hold a report against the accepted results.

    Every case must have been run, on the same suite, with the same models and judge, at least as often. A category may
    lose at most `tolerance` of its mean score. Critical cases have no tolerance: each must be right each time, whatever
    the baseline says. A suite, a model or a judge that has changed needs a new promotion.

    Args:
        baseline: The accepted results; without one only the rules that need none are held.
        tolerance: At most `MAX_TOLERANCE`.
        minimum: The least number of cases.
        required: Categories that must be there.
    """
    if not 0 <= tolerance <= MAX_TOLERANCE:
        raise EvaluationError(
            "evaluation.bad-setting", f"the tolerance is {tolerance}", expected=f"0 to {MAX_TOLERANCE}"
        )
    accepted = baseline.accepted if baseline else None
    now = report.categories
    failures = [*_incomplete(report, minimum, required)]
    categories = {name: CategoryChange(None, found.score) for name, found in now.items()}
    worse: list[str] = []
    better: list[str] = []
    if accepted is not None:
        failures += _incomparable(report, accepted)
        before = {name: statistics.fmean(scores) for name, scores in category_scores(accepted.cases).items()}
        categories = {name: CategoryChange(before.get(name), found.score) for name, found in now.items()}
        failures += _regressions(now, before, tolerance)
        scores = report.scores()
        for id, case in accepted.cases.items():
            change = scores.get(id, 0.0) - statistics.fmean(case.scores)
            if id in report.suite.cases and abs(change) > _ROUNDING:
                (worse if change < 0 else better).append(id)
    return GateResult(tuple(failures), categories, tuple(worse), tuple(better))


def _incomplete(report: Report[Any], minimum: int, required: Collection[str]) -> Iterator[GateFailure]:
    """What a report lacks by itself."""
    cases = report.suite.cases
    if len(cases) < minimum:
        yield GateFailure("too-few-cases", f"there are {len(cases)} cases, and {minimum} are needed")
    for name in required:
        if name not in report.suite.categories:
            yield GateFailure("category-missing", f"there is no case of the category {name!r}", name)
    # Held against the suite and not against the results: a report from which results were left out must not pass.
    found = {(each.case, each.repeat): each for each in report.results}
    for id, facts in cases.items():
        results = [found.get((id, repeat)) for repeat in range(report.repeats)]
        run = [each for each in results if each is not None and each.ending != "not-run"]
        if len(run) < len(results):
            yield GateFailure("not-run", f"the case {id!r} was run {len(run)} of {len(results)} times", id)
        elif facts.critical and not all(each.correct for each in run):
            wrong = sum(not each.correct for each in run)
            yield GateFailure("critical", f"the critical case {id!r} is wrong {wrong} of {len(run)} times", id)


def _incomparable(report: Report[Any], accepted: Promotion) -> Iterator[GateFailure]:
    """Why a report cannot be held against these results."""
    before, now = accepted.suite_facts, report.suite
    for name in sorted(set(before.categories) - set(now.categories)):
        yield GateFailure("category-removed", f"the category {name!r} is not there any more", name)
    for id in (id for id in before.cases if id not in now.cases):
        yield GateFailure("case-removed", f"the case {id!r} is not there any more", id)
    if now.hash != accepted.suite_hash:
        changed = [id for id, case in now.cases.items() if id in before.cases and before.cases[id] != case]
        added = [id for id in now.cases if id not in before.cases]
        yield GateFailure(
            "suite-changed",
            f"the suite is not the one of the baseline: {len(changed)} cases are changed and {len(added)} are new",
            (changed or added or [""])[0],
        )
    if report.subject != accepted.subject:
        yield GateFailure("other-subject", f"the baseline is of {accepted.subject!r}", report.subject)
    if sorted(report.models) != accepted.models:
        names = ", ".join(accepted.models) or "no model"
        yield GateFailure("other-model", f"the baseline was made with {names}: another model needs another baseline")
    if report.judge != accepted.judge:
        yield GateFailure("other-judge", "the baseline was made with another judge, or another version of it")
    if report.repeats < accepted.repeats:
        yield GateFailure("fewer-repeats", f"each case was run {accepted.repeats} times for the baseline")


def _regressions(now: Mapping[str, Summary], before: Mapping[str, float], tolerance: float) -> Iterator[GateFailure]:
    for name, found in now.items():
        drop = before.get(name, 0.0) - found.score
        if drop > tolerance + _ROUNDING:
            yield GateFailure("regression", f"{name}: {before[name]:.1%} before, {found.score:.1%} now", name)
