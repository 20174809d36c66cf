"""Every request that can be served is solvable: its reference plan satisfies the judge in both worlds.

And the judge cannot be fooled: plans that are wrong in the ways in which planners are wrong do not pass.
"""

from __future__ import annotations

import pytest
from planning_wrong_plans import WRONG_PLANS, WrongPlan

from benchmarks.planning import REQUESTS, Request
from benchmarks.planning.runner import Models, solve, solve_by_plan
from bicameral.models import ScriptedProvider

BY_ID = {request.id: request for request in REQUESTS}
FIRST_WORDINGS = list({id(request.oracle): request for request in REQUESTS if request.obstacle is None}.values())


@pytest.mark.parametrize("request_", FIRST_WORDINGS, ids=lambda request: request.id)
async def test_the_reference_plan_is_right_in_both_worlds(request_: Request) -> None:
    result = await solve_by_plan(request_)
    assert result.solved, result.why


@pytest.mark.parametrize("wrong", WRONG_PLANS, ids=lambda wrong: f"{wrong.request}-{wrong.fault}".replace(" ", "-"))
async def test_a_wrong_plan_is_not_right_in_both_worlds(wrong: WrongPlan) -> None:
    result = await solve_by_plan(BY_ID[wrong.request], plan=wrong.plan)
    assert not result.solved
    assert all(run.ending in ("finished", "refused", "failed") for run in result.runs)
    # It ran: what is judged is what it did, and not that it does not run.
    assert any(run.ending == "finished" for run in result.runs) or wrong.stopped, result.why


async def test_a_yes_or_no_is_compared_as_one_however_the_cells_say_it() -> None:
    plan = """
rows = read_csv("<bills>")
answer(sum([row["<bills.amount>"] for row in rows if row["<bills.paid>"] == "false"]))
"""
    result = await solve_by_plan(BY_ID["still-to-pay"], plan=plan)
    assert result.solved, result.why


async def test_another_seed_makes_other_worlds_in_which_the_reference_plans_are_right_too() -> None:
    for request in FIRST_WORDINGS[::12]:
        result = await solve_by_plan(request, seed=7)
        assert result.solved, f"{request.id}: {result.why}"


async def test_a_request_whose_prompt_does_not_depend_on_the_world_is_planned_once() -> None:
    request = BY_ID["count-errors"]
    planner = ScriptedProvider([f"{request.plan}```"], name="planner", grammars=False)
    result = await solve(request, Models(planner, ScriptedProvider([], name="reader", grammars=False)))
    assert result.solved, result.why
    assert [run.side for run in result.runs] == ["a", "b"]


async def test_a_planner_that_finds_no_plan_is_honest_and_not_confident() -> None:
    planner = ScriptedProvider(["x = y()\n```"] * 6, name="planner", grammars=False)
    models = Models(planner, ScriptedProvider([], name="reader", grammars=False))
    result = await solve(BY_ID["travel-spending"], models)
    assert not result.solved
    assert {run.ending for run in result.runs} == {"refused"}
    assert not any(run.wrong_confident for run in result.runs)
