"""Baselines and the gate, as somebody would attack them who wants a worse change to ship."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation_suites import CATEGORIES, report, suite

from bicameral.errors import EvaluationError
from bicameral.evaluation import Baseline, Case, GateResult, Report, Suite, gate
from bicameral.evaluation._baseline import Promotion

AT = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


def accepted(found: Report[Any] | None = None, **options: Any) -> Baseline:
    return Baseline.promote(found or report(), by="anna", reason="first", at=AT, **options)


def kinds(found: GateResult) -> set[str]:
    return {each.kind for each in found.failures}


def test_the_same_results_pass() -> None:
    found = gate(report(), accepted(), minimum=20, required=CATEGORIES)
    assert found.passed
    assert not found.worse


def test_a_drop_within_the_tolerance_passes_and_is_named_and_a_larger_one_fails() -> None:
    cases = suite(50)
    baseline = accepted(report(cases))
    one = gate(report(cases, {"edge 0": "no"}), baseline, 0.02)
    assert one.passed
    assert one.worse == ("edge-0",)
    two = gate(report(cases, {"edge 0": "no", "edge 1": "no"}), baseline, 0.02)
    assert kinds(two) == {"regression"}
    assert two.failures[0].where == "edge"
    assert not gate(report(cases, {"edge 0": "no"}), baseline, 0.0).passed


def scored(scores: dict[str, list[float]]) -> Report[Any]:
    """A report with these scores of three repeats of each case; all others are right."""
    found = report(suite(10), repeats=3)
    results = [replace(each, score=scores.get(each.case, [1.0] * 3)[each.repeat]) for each in found.results]
    return replace(found, results=tuple(results))


def test_a_drop_that_repeats_explain_is_no_regression_and_one_beyond_it_is() -> None:
    shaky = {f"edge-{number}": [1.0, 0.0, 1.0] for number in range(10)}
    baseline = accepted(scored(shaky))
    assert gate(scored({**shaky, "edge-0": [0.0, 0.0, 1.0]}), baseline).passed
    assert kinds(gate(scored({id: [0.0, 0.0, 0.0] for id in shaky}), baseline)) == {"regression"}


def test_without_noise_in_the_repeats_every_drop_counts() -> None:
    baseline = accepted(scored({}))
    assert kinds(gate(scored({"edge-0": [0.0, 0.0, 0.0]}), baseline)) == {"regression"}


def test_a_small_drop_everywhere_is_a_regression_of_all_cases() -> None:
    ids = [
        f"{category}-{number}" for category in ("positive", "negative", "edge", "regression") for number in range(10)
    ]
    before = {id: [1.0, 1.0, 0.0] if number % 10 == 0 else [1.0] * 3 for number, id in enumerate(ids)}
    after = {id: [1.0, 0.0, 0.0] if number % 5 == 0 else [1.0] * 3 for number, id in enumerate(ids)}
    found = gate(scored(after), accepted(scored(before)))
    assert {each.where for each in found.failures} == {"all cases"}


def test_a_gain_elsewhere_does_not_pay_for_a_regression() -> None:
    before = accepted(report(wrong={f"positive {number}": "no" for number in range(4)}))
    after = gate(report(wrong={"edge 0": "no"}), before)
    assert kinds(after) == {"regression"}
    assert len(after.better) == 4


@pytest.mark.parametrize("answer", ["no", "!"])
def test_a_critical_case_has_no_tolerance(answer: str) -> None:
    cases = suite(50)
    found = gate(report(cases, {"hostile 0": answer}), accepted(report(cases)), 0.05)
    assert kinds(found) == {"critical"}
    assert found.failures[0].where == "hostile-0"


def test_a_critical_case_that_is_wrong_once_in_several_repeats_fails() -> None:
    found = report(suite(1), repeats=3)
    results = tuple(
        replace(each, score=0.0) if (each.case, each.repeat) == ("hostile-0", 2) else each for each in found.results
    )
    assert kinds(gate(replace(found, results=results), None)) == {"critical"}


@pytest.mark.parametrize("tolerance", [-0.01, 0.051, 1.0, float("nan"), float("inf")])
def test_a_tolerance_beyond_the_largest_is_refused(tolerance: float) -> None:
    with pytest.raises(EvaluationError) as caught:
        gate(report(), accepted(), tolerance)
    assert caught.value.code == "evaluation.bad-setting"


def without(keep: Callable[[Case[str, str]], bool]) -> Suite[str, str]:
    return Suite("capitals", tuple(case for case in suite().cases if keep(case)))


def test_a_deleted_case_and_a_deleted_category_fail() -> None:
    one = gate(report(without(lambda case: case.id != "edge-1")), accepted())
    assert kinds(one) == {"case-removed", "suite-changed"}
    whole = gate(report(without(lambda case: case.category != "hostile")), accepted())
    assert kinds(whole) == {"category-removed", "case-removed", "suite-changed"}
    assert kinds(gate(report(without(lambda case: case.category != "hostile")), None, required=CATEGORIES)) == {
        "category-missing"
    }


@pytest.mark.parametrize(
    "change",
    [
        {"category": "edge"},
        {"expected": "anything"},
        {"input": "an easier one"},
        {"tags": ("new",)},
    ],
)
def test_a_swapped_case_fails_even_if_everything_is_right(change: dict[str, Any]) -> None:
    cases = tuple(replace(case, **change) if case.id == "hostile-0" else case for case in suite().cases)
    found = report(Suite("capitals", cases), {"an easier one": "HOSTILE 0"})
    assert "suite-changed" in kinds(gate(found, accepted()))


def test_an_added_case_needs_a_promotion() -> None:
    more = Suite("capitals", (*suite().cases, Case("incident-7", "incident", "INCIDENT", category="regression")))
    assert kinds(gate(report(more), accepted())) == {"suite-changed"}
    assert gate(report(more), accepted(report(more), previous=accepted())).passed


def test_results_that_are_left_out_do_not_pass() -> None:
    found = report()
    fewer = replace(found, results=tuple(each for each in found.results if each.category != "hostile"))
    assert kinds(gate(fewer, accepted())) == {"not-run"}
    assert kinds(gate(report(limit=19), accepted())) == {"not-run"}


def test_too_few_cases_fail() -> None:
    assert kinds(gate(report(), accepted(), minimum=30)) == {"too-few-cases"}


def test_another_subject_model_or_judge_and_fewer_repeats_need_another_baseline() -> None:
    found = report()
    asked = replace(found, results=tuple(replace(each, models=("large 2",)) for each in found.results))
    assert kinds(gate(asked, accepted())) == {"other-model"}
    assert kinds(gate(replace(found, judge="strict 2"), accepted())) == {"other-judge"}
    assert kinds(gate(replace(found, subject="other"), accepted())) == {"other-subject"}
    assert kinds(gate(found, accepted(report(repeats=2)))) == {"fewer-repeats"}
    assert gate(replace(found, fingerprint="changed"), accepted()).passed, "a change of the subject is what is gated"


# Promotions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"by": " "}, {"reason": ""}, {"reason": "x" * 2001}])
def test_a_promotion_says_who_and_why(options: dict[str, Any]) -> None:
    with pytest.raises(EvaluationError) as caught:
        Baseline.promote(report(), by=options.get("by", "anna"), reason=options.get("reason", "first"))
    assert caught.value.code == "evaluation.cannot-promote"


def test_a_partial_report_and_one_with_a_wrong_critical_case_are_not_promoted() -> None:
    for found in (report(limit=3), report(wrong={"hostile 0": "no"})):
        with pytest.raises(EvaluationError) as caught:
            accepted(found)
        assert caught.value.code == "evaluation.cannot-promote"
    assert accepted(report(wrong={"edge 0": "no"})).accepted.cases["edge-0"].scores == [0.0]


def test_a_promotion_records_what_it_removes(tmp_path: Path) -> None:
    second = accepted(report(without(lambda case: case.id != "edge-1")), previous=accepted())
    assert second.accepted.removed == ["edge-1"]
    second.write(tmp_path / "b.json")
    assert Baseline.read(tmp_path / "b.json", known=second.seal) == second


def write(path: Path, baseline: Baseline, edit: Callable[[dict[str, Any]], None]) -> Path:
    written = baseline.to_json()
    edit(written["promotions"][-1])
    path.write_text(json.dumps(written))
    return path


def raise_score(last: dict[str, Any]) -> None:
    last["cases"]["edge-0"]["scores"] = [0.0]


def drop_case(last: dict[str, Any]) -> None:
    del last["cases"]["hostile-0"]


def make_tolerable(last: dict[str, Any]) -> None:
    last["cases"]["hostile-0"]["critical"] = False


def change_model(last: dict[str, Any]) -> None:
    last["models"] = ["another"]


@pytest.mark.parametrize("edit", [raise_score, drop_case, make_tolerable, change_model])
def test_a_baseline_that_was_edited_by_hand_is_refused(tmp_path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    path = write(tmp_path / "b.json", accepted(), edit)
    with pytest.raises(EvaluationError) as caught:
        Baseline.read(path)
    assert caught.value.code == "evaluation.damaged-baseline"
    assert caught.value.place is not None
    assert caught.value.place.file == str(path)


def test_a_baseline_that_was_sealed_again_is_found_by_the_known_seal(tmp_path: Path) -> None:
    """Whoever has read the code can compute the seal anew, and not make it the one that is stored elsewhere."""
    honest = accepted()

    def forge(last: dict[str, Any]) -> None:
        raise_score(last)
        cases = {id: dataclasses.replace(case, scores=last["cases"][id]["scores"]) for id, case in forged.cases.items()}
        last["seal"] = dataclasses.replace(forged, cases=cases).expected_seal

    forged: Promotion = honest.accepted
    path = write(tmp_path / "b.json", honest, forge)
    assert Baseline.read(path).accepted.cases["edge-0"].scores == [0.0]
    with pytest.raises(EvaluationError) as caught:
        Baseline.read(path, known=honest.seal)
    assert caught.value.code == "evaluation.damaged-baseline"


def test_a_promotion_that_was_removed_or_moved_is_found(tmp_path: Path) -> None:
    second = accepted(report(wrong={"edge 0": "no"}), previous=accepted())
    third = accepted(report(), previous=second)
    for kept in ([0, 2], [1, 0, 2], [1, 2], []):
        written = third.to_json()
        written["promotions"] = [written["promotions"][each] for each in kept]
        (tmp_path / "b.json").write_text(json.dumps(written))
        with pytest.raises(EvaluationError):
            Baseline.read(tmp_path / "b.json")


def test_a_promotion_of_another_baseline_does_not_follow_this_one() -> None:
    """Its own seal is right, and so is its number."""
    other = Baseline.promote(report(), by="eve", reason="another history", at=AT)
    theirs = accepted(report(wrong={"edge 0": "no"}), previous=other)
    with pytest.raises(EvaluationError) as caught:
        Baseline((accepted().accepted, theirs.accepted))
    assert caught.value.code == "evaluation.damaged-baseline"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": "evaluation-baseline/2", "promotions": []}', "\xff"])
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(EvaluationError) as caught:
        Baseline.read(tmp_path / "b.json")
    assert caught.value.code == "evaluation.damaged-baseline"


def test_a_baseline_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError) as caught:
        Baseline.read(tmp_path / "none.json")
    assert caught.value.code == "evaluation.no-baseline"
