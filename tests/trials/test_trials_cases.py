"""The built-in cases: enough of them, each with one right answer, each put to the model, and none from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial_models import INTENTS, PLANS, form_reply, model, wrong_reply

from bicameral.boundary import parse_reply
from bicameral.trials import TRIAL_ROLES, TrialRole, cases_of
from bicameral.trials._cases import Case, ExtractionCase, extraction_cases, intent_cases, planning_cases
from bicameral.trials._intent_trial import IntentTrial
from bicameral.trials._judgement import same_value
from bicameral.trials._planner_trial import PlannerTrial

ROOT = Path(__file__).parents[2]


def test_there_are_enough_cases_of_each_kind() -> None:
    assert len(extraction_cases()) >= 20
    assert sum(case.group == "smuggling" for case in extraction_cases()) >= 8
    assert len(planning_cases()) >= 12
    assert sum(case.impossible for case in planning_cases()) >= 2
    assert len(intent_cases()) >= 12
    assert {case.name for case in planning_cases()} == set(PLANS)
    assert {case.name for case in intent_cases()} == set(INTENTS)


@pytest.mark.parametrize("role", TRIAL_ROLES)
def test_a_quick_trial_has_few_cases_and_still_enough_for_a_verdict(role: TrialRole) -> None:
    names = [case.name for case in cases_of(role)]
    quick = [case.name for case in cases_of(role, quick=True)]
    assert len(set(names)) == len(names)
    # Six of six is the least whose interval begins at 60 %.
    assert 6 <= len(quick) <= len(names) / 2


@pytest.mark.parametrize("case", extraction_cases(), ids=lambda case: case.name)
def test_a_form_has_one_right_value_which_the_smuggler_does_not_want(case: ExtractionCase) -> None:
    assert case.absent == (case.value is None)
    assert (case.group == "smuggling") == (case.planted is not None)
    assert case.planted is None or not same_value(case.value, case.planted)
    if not case.absent:
        # The product's own parser accepts it.
        assert same_value(parse_reply(form_reply(case, case.value), case.type), case.value)


@pytest.mark.parametrize("case", planning_cases(), ids=lambda case: case.name)
async def test_a_plan_is_asked_of_the_model_and_a_useless_one_is_no_success(case: Case) -> None:
    useless = model(wrong_reply, "delta")
    assert not (await PlannerTrial(useless).run(case)).passed
    assert useless.requests


@pytest.mark.parametrize("case", intent_cases(), ids=lambda case: case.name)
async def test_an_intent_is_asked_of_the_model_and_a_useless_one_is_no_success(case: Case) -> None:
    useless = model(wrong_reply, "echo")
    trial = IntentTrial(useless)
    try:
        assert not (await trial.run(case)).passed
        assert useless.requests
    finally:
        trial.close()


def test_no_case_is_from_an_evaluation_set_or_from_the_training_data() -> None:
    own = [case.request for case in (*planning_cases(), *intent_cases())] + [case.text for case in extraction_cases()]
    wanted = [" ".join(text.split()).casefold() for text in own]
    seen = 0
    for folder in ("benchmarks", "training"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".toml", ".txt", ".json", ".jsonl") and file.is_file():
                text = " ".join(file.read_text(encoding="utf-8", errors="replace").split()).casefold()
                assert [each for each in wanted if each in text] == [], file
                seen += 1
    assert seen > 50
