"""An evaluation: every case once per repeat, errors and cases that were not run counted, results resumed."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation_suites import report, subject, suite

from bicameral.errors import EvaluationError, RunError
from bicameral.evaluation import By, Case, Evaluation, Judged, Progress, Subject, Suite, evaluate, plain_subject
from bicameral.labels import UNKNOWN, Labelled, make_labelled, open_labelled
from bicameral.limits import BudgetSpent


def test_every_case_is_run_and_errors_count_as_wrong() -> None:
    found = report(wrong={"edge 0": "no", "edge 1": "!"})
    total, edge = found.total, found.categories["edge"]
    assert (total.cases, total.attempts, total.correct, total.failed, total.not_run) == (20, 20, 18, 1, 0)
    assert (edge.correct, edge.failed, edge.accuracy, edge.score) == (2, 1, 0.5, 0.5)
    assert [each.error for each in found.results if each.ending == "failed"] == ["run.stopped"]
    assert not found.is_partial
    assert {each.case for each in found.wrong} == {"edge-0", "edge-1"}


def test_every_repeat_is_reported_and_none_is_tried_again() -> None:
    seeds: list[tuple[str, int]] = []

    async def attempt(given: Labelled[str], seed: int) -> Labelled[str]:
        seeds.append((open_labelled(given), seed))
        if seed == 8:
            raise RunError("run.stopped", "it stopped")
        return given.map(str.upper)

    found = asyncio.run(evaluate(Subject("s", attempt), suite(1), repeats=3, seed=7, parallel=4))
    assert len(found.results) == len(set(seeds)) == len(seeds) == 15
    assert {seed for _, seed in seeds} == {7, 8, 9}
    assert [each.correct for each in found.results if each.case == "edge-0"] == [True, False, True]
    low, high = found.total.interval or (0, 0)
    assert low < 2 / 3 < high
    assert high - low > 0.6, "five cases are five cases, however often they are run"


def test_cases_over_the_limit_are_reported_as_not_run() -> None:
    found = report(limit=3)
    assert found.is_partial
    assert (found.total.attempts, found.total.not_run, found.accuracy) == (20, 17, 1.0)
    assert {each.error for each in found.results if each.ending == "not-run"} == {"evaluation.over-limit"}


def test_a_spent_budget_ends_the_evaluation_and_is_not_held_against_the_subject() -> None:
    async def attempt(given: Labelled[str], seed: int) -> Labelled[str]:
        if open_labelled(given) == "edge 0":
            raise BudgetSpent("money", 1, 1, "model")
        return given.map(str.upper)

    found = asyncio.run(evaluate(Subject("s", attempt), suite()))
    assert (found.total.correct, found.total.failed, found.total.not_run) == (8, 0, 12)


def _divide(given: Any) -> Any:
    return 1 / 0


def _give_naked(given: Any) -> Any:
    return "naked"


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (_divide, "evaluation.subject-failed"),
        (str, "labels.closed"),
        (_give_naked, "evaluation.naked-output"),
    ],
)
def test_a_subject_that_breaks_is_counted_and_its_words_are_not_kept(function: Any, code: str) -> None:
    async def attempt(given: Labelled[str], seed: int) -> Labelled[str]:
        return function(given)

    found = asyncio.run(evaluate(Subject("s", attempt), suite(1)))
    assert {(each.ending, each.error, each.output) for each in found.results} == {("failed", code, None)}


def test_an_attempt_has_a_time_limit() -> None:
    async def attempt(given: Labelled[str], seed: int) -> Labelled[str]:
        await asyncio.sleep(60 if open_labelled(given) == "edge 0" else 0)
        return given.map(str.upper)

    found = asyncio.run(evaluate(Subject("s", attempt), suite(1), seconds=0.05))
    assert [each.error for each in found.wrong] == ["evaluation.timeout"]


@pytest.mark.parametrize("score", [float("nan"), 1.5, -1.0, "broken"])
def test_a_check_that_gives_no_score_is_an_error_and_never_right(score: Any) -> None:
    def check(output: str) -> float:
        return {"broken": float("x")}[output] if score == "broken" else score

    case = Case("1", "a", check=By(check))
    found = asyncio.run(evaluate(subject(), [case]))
    assert [(each.ending, each.error, each.score) for each in found.results] == [
        ("failed", "evaluation.check-failed", 0.0)
    ]


def test_outputs_keep_their_labels_and_what_has_none_is_untrusted() -> None:
    async def foreign(text: str) -> str:
        return text.upper()

    plain = asyncio.run(evaluate(plain_subject(foreign), suite(1)))
    own = report(suite(1))
    assert plain.accuracy == own.accuracy == 1.0
    assert {each.output.label.trusted for each in plain.results if each.output is not None} == {False}
    assert {each.output.label.trusted for each in own.results if each.output is not None} == {True}


class Strict:
    """A judge that likes short outputs."""

    fingerprint = "strict 1"

    def __init__(self) -> None:
        self.read: list[tuple[str, str]] = []

    async def score(self, input: Labelled[str], output: Labelled[str], /) -> float:
        self.read.append((open_labelled(input), open_labelled(output)))
        return float(len(open_labelled(output)) < 4)


def test_a_judge_scores_only_the_cases_that_are_for_one() -> None:
    cases: tuple[Case[str, str], ...] = (
        Case("a", "abc", check=Judged()),
        Case("b", "abcdef", check=Judged()),
        Case("c", "x", expected="X"),
    )
    judge = Strict()
    found = asyncio.run(evaluate(subject(), cases, judge=judge))
    assert [each.correct for each in found.results] == [True, False, True]
    assert judge.read == [("abc", "ABC"), ("abcdef", "ABCDEF")]
    assert found.judge == "strict 1"
    assert asyncio.run(evaluate(subject(), cases[2:], judge=judge)).judge == ""


def test_without_a_judge_nothing_is_run() -> None:
    with pytest.raises(EvaluationError) as caught:
        Evaluation(subject(), Suite("s", (Case("a", "abc", check=Judged()),)))
    assert caught.value.code == "evaluation.no-judge"


def test_a_suite_that_is_changed_while_it_runs_is_refused() -> None:
    cases: tuple[Case[dict[str, int], int], ...] = (
        Case("a", {"n": 1}, check=By(bool)),
        Case("b", {"n": 2}, check=By(bool)),
    )

    async def attempt(given: Labelled[dict[str, int]], seed: int) -> Labelled[int]:
        inner = open_labelled(given)
        inner["n"] += 1
        return make_labelled(inner["n"], UNKNOWN)

    with pytest.raises(EvaluationError) as caught:
        asyncio.run(evaluate(Subject("s", attempt), cases))
    assert caught.value.code == "evaluation.suite-changed"


@pytest.mark.parametrize("option", ["repeats", "parallel", "limit"])
def test_a_setting_below_one_is_refused(option: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        report(None, None, **{option: 0})
    assert caught.value.code == "evaluation.bad-setting"


# The file of results ------------------------------------------------------------------------------------------------


async def interrupt(file: Path, after: int) -> None:
    """Run a part of an evaluation, and stop it."""

    def watch(progress: Progress) -> None:
        if progress.done == after:
            running.cancel()

    running = asyncio.ensure_future(evaluate(subject({"edge 0": "no"}), suite(), results=file, watch=watch))
    with pytest.raises(asyncio.CancelledError):
        await running


def test_an_interrupted_evaluation_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    asyncio.run(interrupt(file, 7))
    seen: list[Progress] = []
    found = asyncio.run(evaluate(subject({"edge 0": "no"}), suite(), results=file, watch=seen.append))
    assert [each.done for each in seen] == list(range(8, 21))
    assert (found.total.correct, found.is_partial) == (19, False)
    again = asyncio.run(evaluate(subject({"edge 0": "no"}), suite(), results=file))
    assert [replace(each, output=None) for each in again.results] == [
        replace(each, output=None, taken=replace(each.taken, seconds=round(each.taken.seconds, 3)))
        for each in found.results
    ]
    assert all(each.output is None for each in again.results), "a label that is read from a file proves nothing"


def test_a_line_that_a_crash_has_cut_off_is_run_again(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    report(results=file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    assert report(results=file).accuracy == 1.0
    assert len(file.read_bytes().splitlines()) == 21


def test_results_of_something_else_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    report(results=file)
    others: list[dict[str, Any]] = [
        {"cases": suite(3)},
        {"subject": subject(name="other")},
        {"subject": replace(subject(), fingerprint="2")},
        {"repeats": 2},
        {"seed": 1},
    ]
    for other in others:
        given: dict[str, Any] = {"subject": subject(), "cases": suite(), **other}
        with pytest.raises(EvaluationError) as caught:
            asyncio.run(evaluate(**given, results=file))
        assert caught.value.code == "evaluation.other-results"


@pytest.mark.parametrize(
    "change",
    [{"score": 2.0}, {"score": "1"}, {"case": "other"}, {"category": "edge"}, {"ending": "not-run"}, {"more": 1}],
)
def test_a_line_that_was_edited_beyond_what_it_can_say_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    file = tmp_path / "results.jsonl"
    report(results=file)
    lines = file.read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | change)
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(EvaluationError) as caught:
        report(results=file)
    assert caught.value.code == "evaluation.damaged-results"
    assert caught.value.place is not None
    assert caught.value.place.line == 2


def test_a_result_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    report(results=file)
    file.write_text(file.read_text() + file.read_text().splitlines()[-1] + "\n")
    with pytest.raises(EvaluationError):
        report(results=file)
