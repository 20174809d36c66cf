"""The laws of flow: what no stranger had a hand in is the same whatever strangers write, and more labels give more."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from flow_strategies import (
    SMALL,
    TYPES,
    Covered,
    Seen,
    covered,
    differs,
    expressions_covered,
    expressions_seen,
    seen,
    written,
)
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from plan_strategies import expressions

from bicameral.labels import NOTHING, covers, join_all
from bicameral.plans import EvaluationError, evaluate_expr, free_names
from bicameral.plans.labels._transfer import compile_labels, labels_of
from bicameral.policy import Mode
from property_examples import examples

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
MODES: st.SearchStrategy[Mode] = st.sampled_from(["strict", "normal"])


def _value(expr: Any, variables: dict[str, Any]) -> Any:
    try:
        return evaluate_expr(expr, variables)
    except EvaluationError:
        return EvaluationError


def _strangers_change_nothing(expr: Any, variables: dict[str, Seen]) -> bool:
    one = _value(expr, {name: each.one for name, each in variables.items()})
    other = _value(expr, {name: each.other for name, each in variables.items()})
    if one is EvaluationError or other is EvaluationError:
        # That there is no value at all is seen by everyone, and ends the run.
        return False
    shade = labels_of(expr, {name: each.shade for name, each in variables.items()})
    assert differs(shade, one, other) is None, variables
    return True


def _more_gives_more(expr: Any, variables: dict[str, Covered], mode: Mode) -> bool:
    if _value(expr, {name: each.value for name, each in variables.items()}) is EvaluationError:
        return False
    lower = labels_of(expr, {name: each.lower for name, each in variables.items()}, mode=mode)
    upper = labels_of(expr, {name: each.upper for name, each in variables.items()}, mode=mode)
    assert covers(upper, lower), variables
    assert covers(upper.flat, lower.flat), variables
    return True


@pytest.mark.parametrize("text", SMALL)
def test_each_kind_of_expression_alone_keeps_the_laws(text: str) -> None:
    expr = written(text)
    names = sorted(free_names(expr))
    pick = Random(text).choice
    changed = [_strangers_change_nothing(expr, {name: seen(TYPES[name], pick) for name in names}) for _ in range(400)]
    assert any(changed), "it always fails, and so tells nothing"
    for mode in ("strict", "normal"):
        for _ in range(100):
            _more_gives_more(expr, {name: covered(TYPES[name], pick) for name in names}, mode)


@settings(max_examples=examples(600), suppress_health_check=SLOW)
@given(expressions_seen())
def test_what_strangers_write_never_changes_what_is_labelled_trusted(drawn: tuple[Any, dict[str, Seen]]) -> None:
    assume(_strangers_change_nothing(*drawn))


@settings(max_examples=examples(400), suppress_health_check=SLOW)
@given(expressions_covered(), MODES)
def test_labels_that_cover_more_give_labels_that_cover_more(drawn: tuple[Any, dict[str, Covered]], mode: Mode) -> None:
    assume(_more_gives_more(*drawn, mode))


@settings(max_examples=examples(300), suppress_health_check=SLOW)
@given(expressions_covered())
def test_strict_covers_normal(drawn: tuple[Any, dict[str, Covered]]) -> None:
    expr, variables = drawn
    assume(_value(expr, {name: each.value for name, each in variables.items()}) is not EvaluationError)
    env = {name: each.lower for name, each in variables.items()}
    assert covers(labels_of(expr, env, mode="strict"), labels_of(expr, env, mode="normal"))


@settings(max_examples=examples(300), suppress_health_check=SLOW)
@given(expressions(), MODES)
def test_every_expression_has_a_shade_made_only_of_what_it_reads(expr: Any, mode: Mode) -> None:
    shade = compile_labels(expr, mode)({})
    known = compile_labels(expr, mode)(dict.fromkeys(free_names(expr), NOTHING))
    everything = join_all((shade.flat, known.flat))
    assert {source.tool for source in everything.sources} <= {"request", "unknown"}
