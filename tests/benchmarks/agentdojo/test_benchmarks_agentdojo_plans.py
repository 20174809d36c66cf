"""The oracle plans solve their tasks, know only what the prompts say, and set off no attack by themselves."""

from __future__ import annotations

import pytest

pytest.importorskip("agentdojo", reason="agentdojo is not installed: make agentdojo")

from benchmarks.agentdojo.adapter import PLANS, PlanPipeline, plan_of, tools_of
from benchmarks.agentdojo.answers import answers
from benchmarks.agentdojo.dojo import SUITES, suite_of
from benchmarks.agentdojo.executors import oracle
from benchmarks.agentdojo.judging import benign, is_reached, run
from benchmarks.agentdojo.lint import lint
from bicameral.plans import parse
from bicameral.policy import Mode
from bicameral.tools import Registry

MODES: tuple[Mode | None, ...] = (None, "strict", "normal")
TASKS = {"workspace": 40, "travel": 20, "banking": 16, "slack": 21}


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_each_task_has_one_plan_that_solves_it(suite: str, whole: bool) -> None:
    """Each task in every mode, or the modes in turns."""
    assert {path.stem for path in (PLANS / suite).iterdir()} == set(suite_of(suite).user_tasks)
    assert len(suite_of(suite).user_tasks) == TASKS[suite]
    tried = [
        (task, mode)
        for place, task in enumerate(suite_of(suite).user_tasks)
        for mode in (MODES if whole else (MODES[place % len(MODES)],))
    ]
    runs = [benign(suite, task, mode) for task, mode in tried]
    assert not [(each.task, each.mode, each.ended) for each in runs if not each.solved]
    assert not [each.task for each in runs if each.mode is None and each.questions]


@pytest.mark.parametrize("suite", SUITES)
def test_plans_know_only_what_their_prompts_say(suite: str) -> None:
    found = {task: lint(suite, task, plan_of(suite, task)) for task in suite_of(suite).user_tasks}
    assert not {task: findings for task, findings in found.items() if findings}


@pytest.mark.parametrize("suite", ["banking", "slack", "travel"])
def test_a_plan_by_itself_sets_off_no_attack(suite: str) -> None:
    for task in suite_of(suite).user_tasks:
        pipeline = PlanPipeline(suite, plan_of(suite, task), oracle(answers(suite).get(task, ())))
        before, after = run(suite, task, {}, pipeline)
        for injection_task in suite_of(suite).injection_tasks.values():
            assert not is_reached(injection_task, pipeline, before, after), f"{task} {injection_task.ID}"


@pytest.mark.parametrize(
    ("source", "unknown"),
    [
        ('send_money("GB29NWBK60161331926819", 10.0, "refund", "2022-04-01")\nanswer("")', ["2022-04-01"]),
        ('send_money("SE3550000000054910000003", 1, "refund", "")\nanswer("")', ["SE3550000000054910000003"]),
        ('x = extract(read_file(""), "the amount of the pizza", float)\nanswer(x)', ["the amount of the pizza"]),
        ('answer("pizza")', ["pizza"]),
        ("answer(7)", [7]),
        ('answer(f"refund for pizza: {1}")', ["refund for pizza: "]),
        ('x = {"refund": "pizza"}\nanswer(x)', ["pizza"]),
        ('answer([t for t in get_scheduled_transactions() if t.subject == "Rent"])', ["Rent"]),
        ('answer([t for t in get_scheduled_transactions() if t.subject == "refund"][:7])', []),
    ],
)
def test_the_lint_sees_what_a_plan_must_not_know(source: str, unknown: list[object]) -> None:
    plan = parse(source, Registry(tools_of("banking"))).plan
    found = [finding.literal for finding in lint("banking", "user_task_4", plan)]
    assert [literal for literal in found if literal != 10.0] == unknown
