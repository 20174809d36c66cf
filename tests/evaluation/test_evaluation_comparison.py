"""Paired comparison: case by case, with an interval, and chance is called chance."""

from __future__ import annotations

import asyncio
import math
import random

import pytest
from evaluation_suites import report, subject, suite
from hypothesis import given, strategies as st

from bicameral.errors import EvaluationError
from bicameral.evaluation import bootstrap_interval, compare, compare_reports, sign_test


def test_a_clear_difference_is_told_and_an_equal_pair_is_not() -> None:
    worse = {f"{category} {number}": "no" for category in ("positive", "negative", "edge") for number in range(4)}
    told = asyncio.run(compare(subject(worse, name="old"), subject(name="new"), suite()))
    assert (told.difference, told.better, told.worse) == (0.6, 12, 0)
    assert told.is_told_apart
    assert told.text.startswith("new is better than old: +60.0 points")
    back = asyncio.run(compare(subject(name="new"), subject(worse, name="old"), suite()))
    assert back.text.startswith("new is better than old: -60.0 points")
    same = asyncio.run(compare(subject(), subject(), suite()))
    assert same.text.startswith("No difference that can be told from chance: +0.0 points")


def test_a_few_cases_that_all_agree_are_no_proof() -> None:
    """Resampling three equal differences gives an interval without any width."""
    few = compare_reports(report(suite(1), {"edge 0": "no", "positive 0": "no", "negative 0": "no"}), report(suite(1)))
    assert few.better == 3
    assert bootstrap_interval([1.0, 1.0, 1.0]) == (1.0, 1.0)
    assert not few.is_told_apart
    assert "told from chance" in few.text


def test_cases_that_only_one_has_run_are_counted_and_left_out() -> None:
    found = compare_reports(report(limit=10), report(wrong={"edge 0": "!"}))
    assert (found.cases, found.unpaired) == (10, 10)
    assert found.difference == pytest.approx(-0.1)
    assert found.of_second.failed == 1
    assert "10 cases are left out" in found.text


def test_reports_of_different_suites_cannot_be_compared() -> None:
    with pytest.raises(EvaluationError) as caught:
        compare_reports(report(suite(1)), report(suite(2)))
    assert caught.value.code == "evaluation.other-suite"


def test_the_interval_is_the_same_each_time_and_covers_the_true_mean() -> None:
    draw = random.Random(1)
    covered = 0
    for _ in range(100):
        sample = [float(draw.random() < 0.3) for _ in range(60)]
        interval = bootstrap_interval(sample, resamples=400, seed=5)
        assert interval == bootstrap_interval(sample, resamples=400, seed=5)
        assert interval is not None
        covered += interval[0] <= 0.3 <= interval[1]
    assert covered >= 88


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_an_interval_holds_the_mean(values: list[float]) -> None:
    interval = bootstrap_interval(values, resamples=200)
    assert interval is not None
    assert min(values) - 1e-9 <= interval[0] <= interval[1] <= max(values) + 1e-9


def test_no_values_have_no_interval() -> None:
    assert bootstrap_interval([]) is None


@pytest.mark.parametrize(("better", "worse", "p"), [(0, 0, 1.0), (5, 5, 1.0), (5, 0, 0.0625), (9, 1, 0.021484375)])
def test_the_sign_test_is_the_exact_one(better: int, worse: int, p: float) -> None:
    assert sign_test(better, worse) == sign_test(worse, better) == p


def test_the_sign_test_is_right_for_many_cases() -> None:
    normal = math.erfc((60 - 50 - 0.5) / math.sqrt(100 / 4) / math.sqrt(2))
    assert sign_test(60, 40) == pytest.approx(normal, abs=0.002)
