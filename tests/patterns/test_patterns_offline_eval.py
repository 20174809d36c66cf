"""V16, as somebody would attack it who wants a worse change to ship."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from patterns_models import performed
from patterns_world import HOSTILE, Table, table

from bicameral.catalog.costs import estimate
from bicameral.catalog.stacks import stack_of
from bicameral.errors import CatalogError, EvaluationError, ModelError
from bicameral.evaluation import Baseline, By, Case, Judged, Suite, evaluate
from bicameral.labels import TRUSTED_USER, Label, Source
from bicameral.limits import strategy_limits
from bicameral.models import LocalProvider, ModelRequest
from bicameral.patterns import Answered, GaveUp, OfflineEval, ReAct, Role
from bicameral.patterns.kernel import replay_pattern
from bicameral.patterns.reliability.judge import Dimension, Rubric, SingleJudge
from bicameral.patterns.reliability.offline_eval import REQUIRED_CATEGORIES, EvalVerdict
from bicameral.runs import Journal
from invariants import holds

SYSTEM = Role("System", "You repeat what you read, in capitals.")
THIRD = Label((Source("third_party", "page"),))
RUBRIC = Rubric(
    "replies", (Dimension("loud", "it is in capitals"), Dimension("safe", "it harms nobody", blocking=True))
)


def suite(each: int = 2) -> Suite[str, str]:
    return Suite(
        "capitals",
        tuple(
            Case(
                f"{category}-{number}",
                f"word {category} {number}",
                expected=f"word {category} {number}".upper(),
                category=category,
                label=THIRD if category == "hostile" else TRUSTED_USER,
            )
            for category in REQUIRED_CATEGORIES
            for number in range(each)
        ),
    )


def shouting(wrong: Mapping[str, str | Exception] | None = None) -> Callable[[ModelRequest], str]:
    def reply(request: ModelRequest) -> str:
        text = request.messages[-1].text
        answer = (wrong or {}).get(text, text.upper())
        if isinstance(answer, Exception):
            raise answer
        return answer

    return reply


def world(wrong: Mapping[str, str | Exception] | None = None, **options: Any) -> Table:
    return table(shouting(wrong), shouting(wrong), **options)


def run(pattern: OfflineEval, at: Table | None = None) -> Answered[EvalVerdict]:
    outcome = asyncio.run(pattern.run((at or world()).desk))
    assert isinstance(outcome, Answered), outcome
    return outcome


def accepted(pattern: OfflineEval | None = None) -> Baseline:
    pattern = pattern or OfflineEval(SYSTEM, suite())
    return pattern.promote(run(pattern), by="anna", reason="first")


def kinds(outcome: Answered[EvalVerdict]) -> set[str]:
    return {each["kind"] for each in outcome.value["failures"]}


def test_the_same_system_passes_and_a_regression_does_not() -> None:
    pattern = OfflineEval(SYSTEM, suite(), accepted())
    assert run(pattern).value["passed"]
    worse = run(pattern, world({"word edge 0": "no"}))
    assert kinds(worse) == {"regression"}
    assert worse.value["categories"] == {"positive": 1, "negative": 1, "edge": 0.5, "hostile": 1, "regression": 1}


@holds("V16.1")
def test_the_hash_of_the_cases_is_constant_during_a_run() -> None:
    seen = {"n": 0}

    def check(output: str) -> bool:
        return True

    changing = Suite("s", tuple(replace(case, expected=None, check=By(check)) for case in suite(1).cases))

    def reply(request: ModelRequest) -> str:
        seen["n"] += 1
        object.__setattr__(changing.cases[0], "input", "an easier one")
        return "yes"

    outcome = asyncio.run(OfflineEval(SYSTEM, changing).run(table(reply, reply).desk))
    assert seen["n"] == 5
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "evaluation.suite-changed"


@holds("V16.2")
@pytest.mark.parametrize("category", REQUIRED_CATEGORIES)
@holds("V16.2")
def test_a_deleted_category_is_refused_before_anything_runs(category: str) -> None:
    fewer = Suite("s", tuple(case for case in suite().cases if case.category != category))
    with pytest.raises(EvaluationError) as caught:
        OfflineEval(SYSTEM, fewer, accepted())
    assert caught.value.code == "evaluation.incomplete-suite"


@holds("V16.3")
def test_safety_and_hostile_cases_have_no_tolerance() -> None:
    many, bounds = suite(21), strategy_limits(calls=200)
    first = OfflineEval(SYSTEM, many)
    baseline = first.promote(run(first, world(bounds=bounds)), by="anna", reason="first")
    pattern = OfflineEval(SYSTEM, many, baseline, tolerance=0.05)
    assert run(pattern, world({"word edge 0": "no"}, bounds=bounds)).value["passed"]
    assert kinds(run(pattern, world({"word hostile 0": "no"}, bounds=bounds))) == {"critical"}
    down = ModelError("models.unavailable", "it is down")
    assert kinds(run(pattern, world({"word hostile 0": down}, bounds=bounds))) == {"critical"}
    for tolerance in (0.06, -0.01, float("nan")):
        with pytest.raises(CatalogError):
            replace(pattern, tolerance=tolerance)


@holds("V16.4")
def test_every_repeat_is_reported_and_none_is_tried_again() -> None:
    at = world({"word positive 0": ModelError("models.unavailable", "it is down")})
    outcome = run(OfflineEval(SYSTEM, suite(1), repeats=3), at)
    results = outcome.value["results"]
    assert len(results) == len(at.privileged.asked) + len(at.quarantined.asked) == 15
    failed = [(each["repeat"], each["error"]) for each in results if each["case"] == "positive-0"]
    assert failed == [(0, "models.unavailable"), (1, "models.unavailable"), (2, "models.unavailable")]


@holds("V16.5")
def test_a_baseline_moves_only_by_a_recorded_promotion(tmp_path: Path) -> None:
    pattern = OfflineEval(SYSTEM, suite())
    first = accepted(pattern)
    second = replace(pattern, baseline=first).promote(run(pattern), by="bo", reason="a new prompt")
    assert [(each.by, each.reason) for each in second.promotions] == [("anna", "first"), ("bo", "a new prompt")]
    for by, reason in (("", "x"), ("x", " ")):
        with pytest.raises(EvaluationError):
            pattern.promote(run(pattern), by=by, reason=reason)
    written = second.to_json()
    written["promotions"][-1]["cases"]["edge-0"]["scores"] = [0.0]
    (tmp_path / "b.json").write_text(json.dumps(written))
    with pytest.raises(EvaluationError) as caught:
        Baseline.read(tmp_path / "b.json")
    assert caught.value.code == "evaluation.damaged-baseline"
    with pytest.raises(EvaluationError):
        Baseline((replace(second.promotions[0], reason="another"),))


@holds("V16.5")
def test_a_worse_baseline_that_was_sealed_again_is_found_by_the_known_seal() -> None:
    honest = accepted()
    pattern = OfflineEval(SYSTEM, suite())
    slipped = pattern.promote(run(pattern, world({"word edge 0": "no"})), by="eve", reason="first")
    assert OfflineEval(SYSTEM, suite(), honest, known=honest.seal)
    for baseline in (slipped, None):
        with pytest.raises(EvaluationError) as caught:
            OfflineEval(SYSTEM, suite(), baseline, known=honest.seal)
        assert caught.value.code == "evaluation.damaged-baseline"


def test_a_swapped_suite_does_not_pass() -> None:
    cases = (*suite().cases[:-1], replace(suite().cases[-1], expected="anything"))
    outcome = run(OfflineEval(SYSTEM, Suite("capitals", cases), accepted()), world({"word regression 1": "anything"}))
    assert kinds(outcome) == {"suite-changed"}
    with pytest.raises(EvaluationError) as caught:
        OfflineEval(SYSTEM, Suite("capitals", cases)).promote(run(OfflineEval(SYSTEM, suite())), by="a", reason="b")
    assert caught.value.code == "evaluation.other-suite"


@holds("V16.6")
def test_no_case_occurs_in_prompts_or_corpora() -> None:
    told = Role("System", "Repeat in capitals. For word edge 1 say WORD EDGE 1.")
    with pytest.raises(EvaluationError) as caught:
        OfflineEval(told, suite())
    assert caught.value.code == "evaluation.leaked-case"
    with pytest.raises(EvaluationError):
        OfflineEval(SYSTEM, suite(), corpora={"training": "…\nword hostile 0\n…"})
    with pytest.raises(EvaluationError):
        OfflineEval(ReAct(agent=told), suite())
    assert OfflineEval(SYSTEM, suite(), corpora={"training": "other words of other people"})


def judged(verdict: Callable[[str], bool]) -> Callable[[ModelRequest], str]:
    def reply(request: ModelRequest) -> str:
        text = request.messages[-1].text
        if "<answer>" not in text:
            return text.upper()
        said = "yes" if verdict(text.split("<answer>\n")[1].split("\n</answer>")[0]) else "no"
        return json.dumps({"reason": "so", "loud": said, "safe": said})

    return reply


def for_judge(**options: Any) -> OfflineEval:
    cases = tuple(replace(case, expected=None, check=Judged()) for case in suite(1).cases)
    judge = SingleJudge(RUBRIC, author="people", uncalibrated="a test")
    return OfflineEval(SYSTEM, Suite("judged", cases), judge=judge, **options)


def test_a_judge_scores_and_never_sees_what_was_accepted() -> None:
    at = table(judged(str.isupper), judged(str.isupper))
    baseline = for_judge().promote(run(for_judge(), at), by="anna", reason="first")
    again = table(judged(str.isupper), judged(str.isupper))
    assert run(for_judge(baseline=baseline), again).value["passed"]
    prompts = again.privileged.prompts + again.quarantined.prompts
    assert len(prompts) == 10
    assert not any(baseline.seal in each or "anna" in each for each in prompts)
    wrong = table(judged(lambda said: "EDGE" not in said), judged(str.isupper))
    assert kinds(run(for_judge(baseline=baseline), wrong)) == {"regression"}


@holds("V16.7")
def test_a_new_judge_or_model_version_needs_a_new_baseline() -> None:
    at = table(judged(str.isupper), judged(str.isupper))
    baseline = for_judge().promote(run(for_judge(), at), by="anna", reason="first")
    stricter = for_judge(baseline=baseline)
    assert stricter.judge is not None
    stricter = replace(stricter, judge=replace(stricter.judge, rubric=replace(RUBRIC, pass_at=0.9)))
    assert "other-judge" in kinds(run(stricter, table(judged(str.isupper), judged(str.isupper))))
    other = world()
    other.privileged.name = "high 2"  # pyright: ignore[reportAttributeAccessIssue] a new version of the model
    assert "other-model" in kinds(run(OfflineEval(SYSTEM, suite(), accepted()), other))


def test_cases_for_a_judge_need_one() -> None:
    with pytest.raises(EvaluationError) as caught:
        replace(for_judge(), judge=None)
    assert caught.value.code == "evaluation.no-judge"


def test_hostile_cases_are_read_in_quarantine_and_others_are_not() -> None:
    cases = (*suite(1).cases[:3], Case("h", HOSTILE, expected=HOSTILE.upper(), category="hostile", label=THIRD))
    at = world()
    outcome = run(OfflineEval(SYSTEM, Suite("s", (*cases, suite(1).cases[4], suite(1).cases[3]))), at)
    assert len(at.quarantined.asked) == 2
    assert len(at.privileged.asked) == 4
    assert not any(HOSTILE in each for each in at.privileged.prompts)
    assert not outcome.label.trusted


def test_the_number_of_cases_is_that_of_the_suite() -> None:
    assert OfflineEval(SYSTEM, suite()).cases == 10
    with pytest.raises(CatalogError) as caught:
        OfflineEval(SYSTEM, suite(), cases=40)
    assert caught.value.code == "pattern.bad-knob"


def test_a_run_is_replayed_with_the_same_verdict(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        at = world({"word edge 0": "no"}, journal=journal)
        outcome = run(OfflineEval(SYSTEM, suite(), accepted()), at)
        again = asyncio.run(replay_pattern(journal, outcome.run, at.desk.registry, at.desk.policy))
        assert again.identical, again.differences
        assert again.answer == outcome.value


def test_a_pattern_a_role_and_a_judge_are_evaluated_outside_of_a_run() -> None:
    at = table(judged(str.isupper), judged(str.isupper))
    judge = SingleJudge(RUBRIC, author="people", uncalibrated="a test").as_judge(at.desk)
    cases: tuple[Case[str, str], ...] = (
        Case("a", "some words", check=Judged()),
        Case("b", "more words", expected="MORE WORDS", label=THIRD),
    )
    report = asyncio.run(evaluate(SYSTEM, cases, runtime=at.desk, judge=judge))
    assert [each.correct for each in report.results] == [True, True]
    assert [each.output.label.trusted for each in report.results if each.output is not None] == [True, False]
    assert (report.total.taken.calls, report.judge) == (2, judge.fingerprint)
    assert report.total.taken.judge_tokens > 0
    react = asyncio.run(evaluate(ReAct(), [cases[1]], runtime=world().desk))
    assert react.subject == "R4 ReAct"
    assert react.accuracy == 1.0


def test_a_limit_and_an_error_of_a_pattern_are_counted_as_such() -> None:
    down = ModelError("models.unavailable", "it is down")
    report = asyncio.run(evaluate(SYSTEM, suite(1), runtime=world({"word edge 0": down}).desk, parallel=3))
    assert [(each.case, each.error) for each in report.wrong] == [("edge-0", "models.unavailable")]


def test_repeats_have_seeds_of_their_own() -> None:
    at = world()
    warm = replace(SYSTEM, temperature=0.7)
    asyncio.run(evaluate(warm, suite(1), runtime=at.desk, repeats=3, seed=5))
    assert {each.seed for each in at.privileged.asked} == {5, 6, 7}


def test_the_cost_model_counts_the_system_and_the_judge_once_a_case() -> None:
    found = estimate(stack_of(for_judge(repeats=2).architecture()), {"setup": 10, "input": 5, "output": 5})
    assert [(part.pattern, part.role, part.expected.calls) for part in found.parts] == [
        ("V16", "System", 10),
        ("V16", "Judge", 10),
    ]
    assert (found.expected.calls, found.apart.calls, found.total.calls) == (0, 20, 20)


@pytest.mark.model
def test_the_example_works_with_a_real_model(small_model: LocalProvider, tmp_path: Path) -> None:
    example, outcome = performed("V16", small_model, tmp_path)
    assert isinstance(outcome, Answered), outcome
    assert example.is_correct(outcome), outcome.value
