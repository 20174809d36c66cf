"""A compiled expression is the expression: its value, its failure and its work are those of a plain walk over it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings, strategies as st
from plain_evaluation import plain_evaluate, plain_weigh
from plan_strategies import expressions
from typed_plans import VARIABLES, typed_expressions, values_of

import bicameral.plans.evaluate._bounds as bounds
from bicameral.plans import Compute, EvaluationError, evaluate_expr, parse
from bicameral.plans.evaluate._bounds import WORK_KEY, LoopWork, measure
from bicameral.tools import Registry
from property_examples import examples

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
VALUES = st.fixed_dictionaries({name: values_of(type_) for name, type_ in VARIABLES.items()})
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**60, -(2**60), 2**60 - 1, 2**999, 2**1100, 0.0, -0.0, 1.5, 1e300, True, False]),
)


def outcome(evaluated: Any, expr: Any, variables: dict[str, Any], work: int | None) -> tuple[str, str, int]:
    """The value or the failure, and how much of its work is left. The variables are its own: it may not change them."""
    own = copy.deepcopy(variables)
    left = LoopWork()
    if work is not None:
        left.remaining = work
    try:
        code, shown = "value", repr(evaluated(expr, own | {WORK_KEY: left}))
    except EvaluationError as error:
        code, shown = error.code, error.message
    assert repr(own) == repr(variables)
    return code, shown, left.remaining


def alike(expr: Any, variables: dict[str, Any], work: int | None) -> str:
    compiled, plain = (outcome(each, expr, variables, work) for each in (evaluate_expr, plain_evaluate))
    assert compiled == plain
    return compiled[0]


WORKS = st.one_of(st.none(), st.integers(0, 60))


@settings(max_examples=examples(600), suppress_health_check=SLOW)
@given(typed_expressions(), VALUES, WORKS)
def test_a_compiled_expression_that_fits_its_types_is_the_expression(
    expr: Any, variables: dict[str, Any], work: int | None
) -> None:
    event(alike(expr, variables, work))


@settings(max_examples=examples(600), suppress_health_check=SLOW)
@given(expressions(), st.dictionaries(st.sampled_from(["x", "lines", "mail"]), values_of(VARIABLES["mails"])), WORKS)
def test_any_compiled_expression_is_the_expression(expr: Any, variables: dict[str, Any], work: int | None) -> None:
    event(alike(expr, variables, work))


OPERATORS = ("+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "in", "not in")


@pytest.mark.parametrize("op", OPERATORS)
@given(x=st.one_of(NUMBERS, st.text(max_size=3), st.none()), y=st.one_of(NUMBERS, st.text(max_size=3)))
def test_an_operator_is_the_same_for_numbers_of_any_size(op: str, x: Any, y: Any) -> None:
    for source in (f"x {op} y", f"[a {op} y for a in [x]]", f"x {op} 7", f"[a {op} 0 for a in [x]]"):
        alike(_expr(source), {"x": x, "y": y}, None)


def test_a_field_is_the_same_for_records_lists_dates_and_what_is_not_there() -> None:
    values: list[Any] = [{"name": 1}, {"nam": 1}, [], "text", None, 3, {}]
    for value in values:
        for source in ("x.name", "[a.name for a in [x]]", "y.name", "x['name']"):
            alike(_expr(source), {"x": value}, None)


def _expr(source: str) -> Any:
    step = parse(f"x = ask('?')\ny = ask('?')\nit = {source}\nanswer(it)", Registry([])).plan.steps[2]
    assert isinstance(step, Compute)
    return step.value


class _Text(str):
    """A text of a kind of its own, as tools might give."""


LEAVES = st.one_of(NUMBERS, st.none(), st.text(max_size=4), st.text(max_size=4).map(_Text))
NESTED: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=40),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=20),
    ),
    max_leaves=80,
)


@settings(max_examples=examples(400), suppress_health_check=SLOW)
@given(value=NESTED, most=st.integers(0, 60), most_text=st.integers(0, 60), deepest=st.integers(1, 5))
def test_values_weigh_the_same_at_once_and_one_by_one(value: Any, most: int, most_text: int, deepest: int) -> None:
    def weighed(weighing: Any) -> Any:
        try:
            return weighing()
        except EvaluationError as error:
            return error.code, error.message

    assert measure(value) == plain_weigh(value)
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in (("MAX_ITEMS", most), ("MAX_ALL_TEXT", most_text), ("MAX_VALUE_DEPTH", deepest)):
            patch.setattr(bounds, name, limit)
        # Without the short way, which is only for what is far below all limits.
        patch.setattr(bounds, "_FEW_VALUES", 0 if most < 16 or most_text < 16 * 4 else 16)
        found = weighed(lambda: measure(value))
    assert found == weighed(lambda: plain_weigh(value, most, most_text, deepest))
