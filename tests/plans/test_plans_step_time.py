"""Time limits of steps and ids of plans, as text and as JSON."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from bicameral.errors import PlanError
from bicameral.plans import Answer, Call, Const, Plan, load_plan, parse, print_plan
from bicameral.plans._plan import step_time_limits
from bicameral.tools import Registry, tool


@tool(effect="read")
def look(place: str) -> str:
    """Look."""
    return place


REGISTRY = Registry([look])
SOURCE = """\
\"\"\"Look around\"\"\"
plan_id("uuid-5678")
a = within(30, look("x"))
for b in [a]:
    c = within(0.5, extract(b, "the name", str))
within(2, look(a))
answer(a)
"""


def test_limits_and_ids_are_written_and_read() -> None:
    plan = parse(SOURCE, REGISTRY).plan
    assert print_plan(plan, REGISTRY) == SOURCE
    assert load_plan(plan.to_json()) == plan
    assert (plan.plan_id, step_time_limits(plan)) == ("uuid-5678", {"0": 30.0, "1/0": 0.5, "2": 2.0})


def test_a_limit_may_stand_inside_an_expression() -> None:
    plan = parse('answer(len(within(3, look("x"))))', REGISTRY).plan
    assert step_time_limits(plan) == {"0": 3.0}


def test_a_plan_without_them_has_the_bytes_that_it_always_had() -> None:
    plan = Plan(
        goal="g", steps=(Call(name="a", tool="look", args={"place": Const(value="x")}), Answer(value=Const(value=1)))
    )
    assert json.loads(plan.to_json()) == {
        "version": "plan/1",
        "goal": "g",
        "steps": [
            {"do": "call", "name": "a", "tool": "look", "args": {"place": {"kind": "const", "value": "x"}}},
            {"do": "answer", "value": {"kind": "const", "value": 1}},
        ],
    }
    assert plan.hash == "4f5fa055b45d7e05c7ad1baef0fca8c2f157f0ebb4e01ed589c74986478d2d59"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ('within(0, look("x"))', "plan.wrong-type"),
        ('within(-1, look("x"))', "plan.wrong-type"),
        ('within(86401, look("x"))', "plan.wrong-type"),
        ('within(True, look("x"))', "plan.wrong-type"),
        ('n = 3\nwithin(n, look("x"))', "plan.wrong-type"),
        ("within(3)", "plan.missing-argument"),
        ("within(3, 4)", "plan.not-in-language"),
        ('within(3, ask("x"))', "plan.not-in-language"),
        ('within(3, within(4, look("x")))', "plan.not-in-language"),
        ('plan_id("two words")', "plan.invalid"),
        ('plan_id("x\\n")', "plan.invalid"),
        ("plan_id(7)", "plan.invalid"),
        ('answer(1)\nplan_id("late")', "plan.no-effect"),
    ],
)
def test_what_is_no_limit_and_no_id_is_refused(source: str, code: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse(source, REGISTRY)
    assert caught.value.code == code


@pytest.mark.parametrize("seconds", [0, -1, 86_401, "3", True, float("nan")])
def test_json_is_held_to_the_same_limits(seconds: object) -> None:
    with pytest.raises(ValidationError):
        Call.model_validate({"tool": "look", "timeout_secs": seconds})


def test_the_new_words_are_no_tools() -> None:
    for word in ("within", "plan_id"):
        with pytest.raises(ValidationError):
            Call(tool=word)
