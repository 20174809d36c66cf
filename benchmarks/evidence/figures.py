"""The figures of evidence: rows of single attempts, paired by case."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bicameral.evaluation import bootstrap_interval, sign_test

from ..shards import result_lines

AttemptKey = tuple[str, str, str, str]
"""Which attempt: its pattern, model, arm and case."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One case with one arm: a score between 0 and 1 for each thing that is counted; none if it failed."""

    pattern: str
    model: str
    arm: str
    case: str
    category: str
    scores: dict[str, float]
    tokens: int
    seconds: float
    error: str = ""

    @property
    def key(self) -> AttemptKey:
        return self.pattern, self.model, self.arm, self.case

    def to_line(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def read_attempts(files: Sequence[Path]) -> list[Attempt]:
    return [Attempt(**json.loads(line)) for line in result_lines(files)]


def compare_arms(rows: Iterable[Attempt], score: str, first: str, second: str, *, worst: float = 0.0) -> dict[str, Any]:
    """How much more of a score the second arm has, over the cases that both have run.

    An attempt that failed counts with the `worst` score: it never counts as a success.
    """
    by_arm: dict[str, dict[str, float]] = {first: {}, second: {}}
    for row in rows:
        if row.arm in by_arm:
            by_arm[row.arm][row.case] = row.scores.get(score, worst)
    both = sorted(set(by_arm[first]) & set(by_arm[second]))
    if not both:
        return {"cases": 0, "gain": None, "low": None, "high": None}
    differences = [by_arm[second][case] - by_arm[first][case] for case in both]
    interval = bootstrap_interval(differences)
    assert interval is not None
    better, worse = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return {
        "cases": len(both),
        first: round(statistics.fmean(by_arm[first][case] for case in both), 4),
        second: round(statistics.fmean(by_arm[second][case] for case in both), 4),
        "gain": round(statistics.fmean(differences), 4),
        "low": round(interval[0], 4),
        "high": round(interval[1], 4),
        "better": better,
        "worse": worse,
        "p": round(sign_test(better, worse), 6),
    }


def by_category(rows: Iterable[Attempt], score: str, *, worst: float = 0.0) -> dict[str, dict[str, float]]:
    """The mean score of each arm in each category."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        found.setdefault(row.category, {}).setdefault(row.arm, []).append(row.scores.get(score, worst))
    return {
        category: {arm: round(statistics.fmean(scores), 4) for arm, scores in arms.items()}
        for category, arms in found.items()
    }


def mean_tokens(rows: Iterable[Attempt]) -> dict[str, float]:
    """The mean number of tokens of an attempt by arm."""
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row.arm, []).append(row.tokens)
    return {arm: round(statistics.fmean(tokens), 1) for arm, tokens in found.items()}
