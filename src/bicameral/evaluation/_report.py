"""Results of cases, and the report of an evaluation: what was right, what it took, and what was not run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from bicameral.evaluation._cases import SuiteFacts
from bicameral.labels import Labelled

Out = TypeVar("Out")

Ending = Literal["answered", "failed", "not-run"]
"""`answered` is an output with a score; `failed` an error of the subject or of the check, which counts as wrong."""
CORRECT = 1.0
REPORT_VERSION = "evaluation-report/1"


def wilson_interval(passed: float, n: int) -> tuple[float, float] | None:
    """The 95 % Wilson interval of a share; None without cases.

    Example:
        >>> wilson_interval(8, 10)
        (0.4902, 0.9433)
    """
    if not n:
        return None
    z, share = 1.959964, passed / n
    middle = share + z * z / (2 * n)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return round(max(0.0, (middle - spread) / scale), 4), round(min(1.0, (middle + spread) / scale), 4)


@dataclass(frozen=True, slots=True)
class CaseUsage:
    """What an attempt took. `money` is None where no price is known of a model that was asked."""

    calls: int = 0
    tokens: int = 0
    money: float | None = 0.0
    seconds: float = 0.0
    judge_tokens: int = 0
    """What the judge took is no part of `tokens`."""

    def __add__(self, other: CaseUsage) -> CaseUsage:
        money = None if self.money is None or other.money is None else self.money + other.money
        return CaseUsage(
            self.calls + other.calls,
            self.tokens + other.tokens,
            money,
            self.seconds + other.seconds,
            self.judge_tokens + other.judge_tokens,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "tokens": self.tokens,
            "money": None if self.money is None else round(self.money, 9),
            "seconds": round(self.seconds, 3),
            "judge_tokens": self.judge_tokens,
        }


@dataclass(frozen=True, slots=True)
class CaseResult(Generic[Out]):
    """What became of one attempt at one case.

    Args:
        score: 0 to 1; 0 unless it was answered.
        error: The code of the error, if it failed; why, if it was not run. Messages may quote outputs and are left out.
        models: The models that were asked, in order of their names.
        output: The output with its labels. None if there is none, or if the result was read from a file.
    """

    case: str
    category: str
    critical: bool
    repeat: int
    ending: Ending
    score: float = 0.0
    error: str | None = None
    taken: CaseUsage = CaseUsage()
    models: tuple[str, ...] = ()
    output: Labelled[Out] | None = None

    @property
    def correct(self) -> bool:
        return self.ending == "answered" and self.score >= CORRECT

    def to_json(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "case": self.case,
            "category": self.category,
            "critical": self.critical,
            "repeat": self.repeat,
            "ending": self.ending,
            "score": round(self.score, 6),
            "error": self.error,
            "models": list(self.models),
            **self.taken.to_json(),
        }
        return facts


@dataclass(frozen=True, slots=True)
class Summary:
    """Results taken together. Shares are of the attempts that were run, in which errors count as wrong."""

    cases: int
    attempts: int
    correct: int
    failed: int
    not_run: int
    score: float
    """The mean score of all attempts that were run."""
    interval: tuple[float, float] | None
    """The 95 % Wilson interval of the share of correct attempts, by the number of cases: repeats are no new cases."""
    taken: CaseUsage
    median_seconds: float | None

    @property
    def accuracy(self) -> float:
        """The share of correct attempts; 0 if none was run."""
        return self.correct / run if (run := self.attempts - self.not_run) else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "cases": self.cases,
            "attempts": self.attempts,
            "correct": self.correct,
            "failed": self.failed,
            "not_run": self.not_run,
            "accuracy": round(self.accuracy, 4),
            "score": round(self.score, 4),
            "interval": self.interval,
            **self.taken.to_json(),
            "median_seconds": self.median_seconds,
        }


def summarise(results: Iterable[CaseResult[Any]]) -> Summary:
    """The summary of some results."""
    found = list(results)
    run = [each for each in found if each.ending != "not-run"]
    by_case = _by_case(run)
    shares = [statistics.fmean(each.correct for each in own) for own in by_case.values()]
    return Summary(
        len({each.case for each in found}),
        len(found),
        sum(each.correct for each in found),
        sum(each.ending == "failed" for each in found),
        len(found) - len(run),
        statistics.fmean(each.score for each in run) if run else 0.0,
        wilson_interval(math.fsum(shares), len(shares)),
        sum((each.taken for each in found), CaseUsage()),
        round(statistics.median(each.taken.seconds for each in run), 3) if run else None,
    )


def _by_case(results: Iterable[CaseResult[Any]]) -> dict[str, list[CaseResult[Any]]]:
    found: dict[str, list[CaseResult[Any]]] = {}
    for each in results:
        found.setdefault(each.case, []).append(each)
    return found


@dataclass(frozen=True)
class Report(Generic[Out]):
    """The report of an evaluation: a result for each case and repeat of the suite, run or not.

    Args:
        suite: The suite without its texts.
        subject: The name of the subject, and `fingerprint` what it was.
        judge: The fingerprint of the judge; empty if no case needed one.
    """

    suite: SuiteFacts
    subject: str
    fingerprint: str
    judge: str
    repeats: int
    seed: int
    results: tuple[CaseResult[Out], ...]

    @property
    def total(self) -> Summary:
        """All results."""
        return summarise(self.results)

    @property
    def categories(self) -> Mapping[str, Summary]:
        """The results of each category."""
        names = dict.fromkeys(each.category for each in self.results)
        return {name: summarise(each for each in self.results if each.category == name) for name in names}

    @property
    def accuracy(self) -> float:
        """The share of attempts that were right, of those that were run."""
        return self.total.accuracy

    @property
    def is_partial(self) -> bool:
        """Whether anything was not run."""
        return any(each.ending == "not-run" for each in self.results)

    @property
    def models(self) -> frozenset[str]:
        """All models that were asked."""
        return frozenset(model for each in self.results for model in each.models)

    @property
    def wrong(self) -> Sequence[CaseResult[Out]]:
        """The results that are not right, with errors and without those that were not run."""
        return [each for each in self.results if not each.correct and each.ending != "not-run"]

    def scores(self) -> Mapping[str, float]:
        """The mean score of each case that was run, errors as 0."""
        run = _by_case(each for each in self.results if each.ending != "not-run")
        return {case: statistics.fmean(each.score for each in own) for case, own in run.items()}

    def to_json(self) -> dict[str, Any]:
        return {
            "version": REPORT_VERSION,
            "suite": {"name": self.suite.name, "hash": self.suite.hash},
            "subject": {"name": self.subject, "fingerprint": self.fingerprint},
            "judge": self.judge or None,
            "models": sorted(self.models),
            "repeats": self.repeats,
            "seed": self.seed,
            "partial": self.is_partial,
            "total": self.total.to_json(),
            "categories": {name: found.to_json() for name, found in self.categories.items()},
            "results": [each.to_json() for each in self.results],
        }
