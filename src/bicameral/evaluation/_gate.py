"""The gate: whether a report may replace what was accepted. It fails closed: what cannot be compared does not pass."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.errors import EvaluationError
from bicameral.evaluation._baseline import Baseline, Promotion, category_scores
from bicameral.evaluation._report import Report

MAX_TOLERANCE = 0.05
"""The largest drop of a category that a gate can be told to allow."""
DEFAULT_TOLERANCE = 0.02
_ROUNDING = 1e-6
_NOISE_WIDTH = 2.33
"""Standard errors that a drop must exceed: chance alone makes so large a one in a hundred comparisons."""
_ALL_CASES = "all cases"

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
    lose at most `tolerance` of its mean score, beyond what the difference between repeats of one case explains; so may
    all cases together. Critical cases have no tolerance: each must be right each time, whatever
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
        failures += _regressions(report, accepted, tolerance)
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


def _regressions(report: Report[Any], accepted: Promotion, tolerance: float) -> Iterator[GateFailure]:
    """What has become worse: single categories, and all cases together."""
    now: dict[str, list[float]] = {}
    for each in report.results:
        if each.ending != "not-run":
            now.setdefault(each.case, []).append(each.score)
    pairs = {id: (case.scores, now[id]) for id, case in accepted.cases.items() if id in now}
    groups = {name: [id for id in pairs if accepted.cases[id].category == name] for name in report.categories}
    for name, ids in {**groups, _ALL_CASES: list(pairs)}.items():
        found = [pairs[id] for id in ids]
        if not found:
            continue
        before, after = (statistics.fmean(statistics.fmean(pair[side]) for pair in found) for side in (0, 1))
        noise = _NOISE_WIDTH * _standard_error(found)
        if before - after > tolerance + noise + _ROUNDING:
            said = f" (repeats differ by up to {noise:.1%})" if noise else ""
            yield GateFailure("regression", f"{name}: {before:.1%} before, {after:.1%} now{said}", name)


def _standard_error(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """How much the difference of two means varies by chance, as far as repeats of the same case show it.

    Without repeats, and where all repeats of each case are equal, it is 0: then every difference counts.
    """
    spread = sum(statistics.variance(each) / len(each) for pair in pairs for each in pair if len(each) > 1)
    return math.sqrt(spread) / len(pairs)
