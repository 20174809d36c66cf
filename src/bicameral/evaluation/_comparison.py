"""Paired comparison of two subjects on the same cases, and whether chance explains the difference."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bicameral.errors import EvaluationError
from bicameral.evaluation._cases import Case, Suite, suite_of
from bicameral.evaluation._checks import CaseJudge
from bicameral.evaluation._evaluation import evaluate
from bicameral.evaluation._report import Report, Summary, summarise
from bicameral.evaluation._subject import Evaluable, Subject
from bicameral.labels import Labelled

In = TypeVar("In")
Out = TypeVar("Out")
RESAMPLES = 5_000
_SIGNIFICANT = 0.05


def bootstrap_interval(
    values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float] | None:
    """The 95 % percentile interval of the mean, by resampling with a fixed seed; None without values.

    Example:
        >>> bootstrap_interval([0.0, 1.0, 1.0, 1.0])
        (0.25, 1.0)
    """
    if not values:
        return None
    draw = random.Random(seed)  # noqa: S311 a fixed seed, so that an interval can be computed again
    means = sorted(math.fsum(draw.choices(values, k=len(values))) / len(values) for _ in range(resamples))
    at = round(0.025 * (resamples - 1))
    return means[at], means[resamples - 1 - at]


def sign_test(better: int, worse: int) -> float:
    """The probability that chance alone makes so uneven a count, or one more uneven; ties are left out.

    Example:
        >>> sign_test(9, 1)
        0.021484375
    """
    n = better + worse
    tail = sum(math.comb(n, count) for count in range(max(better, worse), n + 1)) / 2**n
    return min(1.0, 2 * tail)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two subjects on the same cases. Differences are of the second from the first: above 0 the second is better.

    Args:
        cases: The cases that both have run.
        unpaired: The cases that only one of them has run, or none.
        interval: The 95 % bootstrap interval of the difference, over cases.
        p: The sign test: how likely chance alone makes so uneven a count of better and worse cases.
    """

    first: str
    second: str
    cases: int
    unpaired: int
    difference: float
    interval: tuple[float, float]
    better: int
    worse: int
    p: float
    of_first: Summary
    of_second: Summary

    @property
    def is_told_apart(self) -> bool:
        """Whether chance does not explain the difference: the interval is on one side of 0, and so is the sign test.

        Both are needed. With few cases that all agree, resampling finds no variance at all.
        """
        low, high = self.interval
        return (low > 0 or high < 0) and self.p < _SIGNIFICANT

    @property
    def text(self) -> str:
        """The comparison in a sentence or two."""
        low, high = (100 * each for each in self.interval)
        points = (
            f"{100 * self.difference:+.1f} points (95 % interval {low:+.1f} to {high:+.1f}, sign test p = {self.p:.3f})"
        )
        if self.is_told_apart:
            winner, loser = (self.second, self.first) if self.difference > 0 else (self.first, self.second)
            said = f"{winner} is better than {loser}: {points}"
        else:
            said = f"No difference that can be told from chance: {points}"
        lost = f" {self.unpaired} cases are left out, since not both have run them." if self.unpaired else ""
        return f"{said}, on {self.cases} cases.{lost}"

    def to_json(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "second": self.second,
            "cases": self.cases,
            "unpaired": self.unpaired,
            "difference": round(self.difference, 4),
            "low": round(self.interval[0], 4),
            "high": round(self.interval[1], 4),
            "better": self.better,
            "worse": self.worse,
            "p": round(self.p, 6),
            "told_apart": self.is_told_apart,
            "text": self.text,
            "of_first": self.of_first.to_json(),
            "of_second": self.of_second.to_json(),
        }


def compare_reports(first: Report[Any], second: Report[Any], *, seed: int = 0) -> Comparison:
    """Compare two reports on the same suite, case by case. Errors count as wrong."""
    if first.suite.hash != second.suite.hash or first.judge != second.judge:
        raise EvaluationError(
            "evaluation.other-suite",
            "the two reports are of different cases or different judges",
            expected="reports on one suite",
        )
    left, right = first.scores(), second.scores()
    both = [case for case in first.suite.cases if case in left and case in right]
    if not both:
        raise EvaluationError("evaluation.nothing-to-compare", "there is no case that both have run")
    differences = [right[case] - left[case] for case in both]
    interval = bootstrap_interval(differences, seed=seed)
    assert interval is not None
    better, worse = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    paired = set(both)
    return Comparison(
        first.subject,
        second.subject,
        len(both),
        len(first.suite.cases) - len(both),
        statistics.fmean(differences),
        interval,
        better,
        worse,
        sign_test(better, worse),
        summarise(each for each in first.results if each.case in paired),
        summarise(each for each in second.results if each.case in paired),
    )


AnySubject = Subject[In, Out] | Evaluable[Any, In, Out] | Callable[[Labelled[In]], Awaitable[Labelled[Out]]]


async def compare(
    first: AnySubject[In, Out],
    second: AnySubject[In, Out],
    cases: Suite[In, Out] | Iterable[Case[In, Out]],
    *,
    runtime: object = None,
    judge: CaseJudge[In, Out] | None = None,
    repeats: int = 1,
    parallel: int = 1,
    seed: int = 0,
) -> Comparison:
    """Put the same cases to two subjects and compare them case by case.

    Example:
        >>> comparison = await compare(ReAct(), ReWOO(), suite, runtime=agent.runtime())
        >>> comparison.text
        'No difference that can be told from chance: +2.0 points (95 % interval -3.0 to +7.0, …), on 40 cases.'
    """
    suite = suite_of(cases)
    reports = [
        await evaluate(subject, suite, runtime=runtime, judge=judge, repeats=repeats, parallel=parallel, seed=seed)
        for subject in (first, second)
    ]
    return compare_reports(*reports, seed=seed)
