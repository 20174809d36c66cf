"""The law of the surface syntax: reading what was printed gives the same plan."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from plan_strategies import expressions, plans

from bicameral.errors import PlanError
from bicameral.plans._expressions import Expr, ListOf
from bicameral.plans._plan import Answer, Each, Plan, walk
from bicameral.plans.syntax._parser import parse
from bicameral.plans.syntax._rendering import print_plan
from bicameral.tools import Registry, tool
from property_examples import examples


@tool(effect="read")
def read_lines(path: str) -> list[str]:
    """The lines of a file."""
    return [path]


@tool(effect="pure")
def grep(lines: list[str], pattern: str, invert: bool = False, ignore_case: bool = True) -> list[str]:
    """Lines that have a pattern."""
    return [line for line in lines if (pattern in line) != invert and ignore_case]


@tool(effect="read")
def today() -> str:
    """The date."""
    return "2026-03-01"


REGISTRY = Registry([read_lines, grep, today])
LAW = settings(max_examples=examples(150, quick=30))
BRIEF = settings(LAW, max_examples=examples(40, quick=15))


@LAW
@given(plans())
def test_reading_a_printed_plan_gives_the_same_plan(plan: Plan) -> None:
    assert parse(print_plan(plan)).plan.to_json() == plan.to_json()


@LAW
@given(plans(REGISTRY))
def test_the_law_holds_with_a_registry_too(plan: Plan) -> None:
    assert parse(print_plan(plan, REGISTRY), REGISTRY).plan.to_json() == plan.to_json()


@LAW
@given(expressions())
def test_printing_is_stable(value: Expr) -> None:
    text = print_plan(Plan(steps=(Answer(value=value),)))
    assert print_plan(parse(text).plan) == text


@BRIEF
@given(plans())
def test_every_step_of_a_read_plan_has_its_place(plan: Plan) -> None:
    parsed = parse(print_plan(plan), file="plan.py")
    assert list(parsed.places) == [path for path, _ in walk(plan.steps)]
    lines = [place.line or 0 for place in parsed.places.values()]
    assert lines == sorted(lines)
    assert all(place.file == "plan.py" for place in parsed.places.values())


@BRIEF
@given(plans())
def test_printed_text_shows_every_character(plan: Plan) -> None:
    assert all(line.isprintable() for line in print_plan(plan).split("\n"))


def test_nesting_up_to_the_bound_survives_and_deeper_is_refused_everywhere() -> None:
    def nested(depth: int) -> Plan:
        value: Expr = ListOf()
        for _ in range(depth - 2):
            value = ListOf(items=(value,))
        return Plan(steps=(Answer(value=value),))

    assert parse(print_plan(nested(50))).plan == nested(50)
    with pytest.raises(PlanError, match="too-deep"):
        print_plan(nested(51))
    with pytest.raises(PlanError, match="too-deep"):
        parse(f"answer({'[' * 51}{']' * 51})")


def test_deep_loops_survive() -> None:
    step = Answer(value=ListOf())
    plan = Plan(steps=(step,))
    for _ in range(47):
        plan = Plan(steps=(Each(names=("x",), over=ListOf(), steps=plan.steps),))
    assert parse(print_plan(plan)).plan == plan


@settings(max_examples=examples(300, quick=50))
@given(
    st.one_of(
        st.text(),
        st.text(alphabet="abx=()[]{}.,:'\"\\ \n\t#+-*/<>!&|1230f_"),
        st.lists(
            st.sampled_from(
                ["x", " ", "\n", "    ", "for", "in", "if", "else", ":", "(", ")", "[", "]", "=", "1", '"a"', "lambda",
                 "answer", "f'{", "}'", "not", "+", ".", ",", "extract", "grep", "and", "is", "None", "while", "*"]
            ),
            max_size=30,
        ).map(" ".join),
    )
)  # fmt: skip
def test_any_text_is_a_plan_or_a_plan_error(text: str) -> None:
    for registry in (None, REGISTRY):
        plan = _read_or_refused(text, registry)
        if plan is not None:
            assert parse(print_plan(plan, registry), registry).plan.to_json() == plan.to_json()


def _read_or_refused(text: str, registry: Registry | None) -> Plan | None:
    try:
        return parse(text, registry).plan
    except PlanError:
        return None
