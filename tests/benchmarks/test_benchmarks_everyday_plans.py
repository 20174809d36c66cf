"""Every everyday request has a reference plan that a planner may write: it parses, and passes check and intent."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from benchmarks.everyday import REQUESTS, WORLDS, Household, Request, World, content_of, expected_of
from benchmarks.everyday.__main__ import parse_arguments
from benchmarks.everyday._plans import PLANS, fill_days
from benchmarks.everyday._run import oracle_planner, registry_for, serve_by_plan
from bicameral.errors import ModelError
from bicameral.models import ScriptedProvider
from bicameral.planning import Delta, Echo
from bicameral.plans import Call, Plan, parse, walk

REFUSED = [each for each in REQUESTS if PLANS[each.id].lstrip().startswith("cannot(")]
SERVED = [each for each in REQUESTS if each not in REFUSED]
LOOKED_UP = [each for each in SERVED if "find(" in PLANS[each.id] and each.kind != "impossible"]


def called(id: str) -> Request:
    return next(each for each in REQUESTS if each.id == id)


def tools_of(plan: Plan) -> list[str]:
    return [step.tool for _, step in walk(plan.steps) if isinstance(step, Call)]


def test_every_request_has_one_plan() -> None:
    assert [each.id for each in REQUESTS] == list(PLANS)


@pytest.mark.parametrize("request_", SERVED, ids=lambda request: request.id)
@pytest.mark.parametrize("world", WORLDS)
async def test_the_reference_plan_is_taken_as_it_is(request_: Request, world: World) -> None:
    with Household(content_of(request_.language, world), servers=False) as home:
        registry, today = registry_for(home), home.now.date()
        source = fill_days(PLANS[request_.id], request_, today)
        intent = await Echo(ScriptedProvider([])).intent(request_.text, registry, today, deterministic=True)
        assert not intent.questions
        compiled = await Delta(oracle_planner(source), repairs=0).compile(intent, registry)
        # A note without a place goes to a file that the request does not name, which is a mismatch, but no severe one.
        assert {each.code for each in compiled.mismatches} <= {"plan.invented-object"}
        assert tools_of(compiled.plan) == tools_of(parse(source, registry).plan)


@pytest.mark.parametrize("request_", LOOKED_UP[::5], ids=lambda request: request.id)
@pytest.mark.parametrize("world", WORLDS)
async def test_the_reader_is_shown_the_place_of_the_answer(request_: Request, world: World) -> None:
    reader = ScriptedProvider(lambda _: ModelError("models.unavailable", "nobody reads"))
    await serve_by_plan(request_, world, reader)
    shown = reader.requests[0].messages[-1].text
    _, _, place = expected_of(request_, world).place.partition(" ")
    # A file is shown with its name alone: folders and endings say nothing to a reader.
    assert (PurePosixPath(place).stem if PurePosixPath(place).suffix else place) in shown


@pytest.mark.parametrize("request_", REFUSED, ids=lambda request: request.id)
async def test_a_reference_plan_that_refuses_is_a_refusal(request_: Request) -> None:
    assert request_.kind == "impossible"
    result = await serve_by_plan(request_, "a", ScriptedProvider([]))
    assert result.ok, result.why
    assert result.how == "refused"


@pytest.mark.parametrize("id", ["en-supper", "fr-diner"])
@pytest.mark.parametrize("world", WORLDS)
async def test_a_reference_plan_is_bound_run_and_judged_like_a_planned_one(id: str, world: World) -> None:
    result = await serve_by_plan(called(id), world, ScriptedProvider([]))
    assert result.ok, result.why
    assert result.plan.endswith(PLANS[id].splitlines()[-1] + "\n")


async def test_a_wrong_plan_is_served_and_judged_wrong() -> None:
    other = PLANS["en-supper"].replace("19, 30", "7, 30")
    result = await serve_by_plan(called("en-supper"), "a", ScriptedProvider([]), source=other)
    assert not result.ok


async def test_a_plan_that_does_not_pass_the_check_is_no_plan() -> None:
    result = await serve_by_plan(called("en-supper"), "a", ScriptedProvider([]), source="answer(unknown)\n")
    assert not result.ok
    assert result.how in ("refused", "broke")


def test_days_are_those_of_the_world() -> None:
    days = [
        fill_days(PLANS["en-tomatoes"], called("en-tomatoes"), content_of("en", each).now.date()) for each in WORLDS
    ]
    assert ["datetime(2026, 9, 18, 8, 0)" in days[0], "datetime(2026, 5, 6, 8, 0)" in days[1]] == [True, True]
    with pytest.raises(StopIteration):
        fill_days("<d:next winter>", called("en-tomatoes"), content_of("en", "a").now.date())


def test_the_planner_of_the_command_line_is_the_model_unless_asked_otherwise() -> None:
    assert parse_arguments([]).planner == "model"
    assert parse_arguments(["--planner", "oracle"]).planner == "oracle"
