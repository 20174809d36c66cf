"""Conditions: what is written is what is tested, nothing is run as code, and a slip is pointed at."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings, strategies as st
from routing_world import TOOL, hints, holds, request, requests, situations, trees, written

from bicameral.errors import ConfigError
from bicameral.expressions import AllOf, AnyOf, Not
from bicameral.models import ModelRequest
from bicameral.routing import CallContext, RoutingCondition, parse_condition
from bicameral.routing._conditions import (
    ALWAYS_TRUE,
    CONDITION_WORDS,
    FieldTest,
    QuantityComparison,
    compile_condition,
)
from bicameral.routing._selection import RoutingRule, can_hold, is_quarantined_only
from property_examples import examples


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("has_tools", FieldTest("tools", "yes")),
        ("no_tools", FieldTest("tools", "no")),
        ("has_schema", FieldTest("schema", "yes")),
        ("always", ALWAYS_TRUE),
        ("message_count > 10", QuantityComparison("message_count", ">", 10)),
        ("message_count>10", QuantityComparison("message_count", ">", 10)),
        ("hint:planning", FieldTest("hint", "planning")),
        ("hint: planning", FieldTest("hint", "planning")),
        ("chamber == quarantined", FieldTest("chamber", "quarantined")),
        ("chamber != quarantined", Not(FieldTest("chamber", "quarantined"))),
        ("label: untrusted", FieldTest("label", "untrusted")),
        ("prompt_tokens >= 10_000", QuantityComparison("prompt_tokens", ">=", 10_000)),
        ("budget_left < 0.5", QuantityComparison("money_left", "<", 0.5)),
        ("budget_left < 0.5 money", QuantityComparison("money_left", "<", 0.5)),
        ("budget_left < 2000 tokens", QuantityComparison("tokens_left", "<", 2000)),
        ("time_left < 30 s", QuantityComparison("time_left", "<", 30)),
        ("deadline", QuantityComparison("time_left", "<", math.inf)),
        (
            "failures >= 2 and cost_cap < 1",
            AllOf((QuantityComparison("failures", ">=", 2), QuantityComparison("cost_cap", "<", 1))),
        ),
        (
            "has_tools or no_schema and not role:delta",
            AnyOf(
                (
                    FieldTest("tools", "yes"),
                    AllOf((FieldTest("schema", "no"), Not(FieldTest("role", "delta")))),
                )
            ),
        ),
        ("not (has_tools or phase:act)", Not(AnyOf((FieldTest("tools", "yes"), FieldTest("phase", "act"))))),
    ],
)
def test_a_condition_means_what_it_says(text: str, meant: RoutingCondition) -> None:
    assert parse_condition(text) == meant


@given(trees)
def test_what_is_written_reads_back_as_the_same(tree: RoutingCondition) -> None:
    assert parse_condition(written(tree)) == tree


@given(trees, requests, situations, hints)
@settings(max_examples=examples(400))
def test_the_compiled_condition_holds_exactly_where_the_condition_does(
    tree: RoutingCondition, call: ModelRequest, here: CallContext, hint: str | None
) -> None:
    assert compile_condition(tree)(call, here, hint) == holds(tree, call, here, hint)


@given(trees, trees, requests, situations, hints)
@settings(max_examples=examples(400))
def test_what_happens_is_never_said_to_be_impossible(
    tree: RoutingCondition, other: RoutingCondition, call: ModelRequest, here: CallContext, hint: str | None
) -> None:
    if holds(tree, call, here, hint):
        assert can_hold([tree])
        if not holds(other, call, here, hint):
            assert can_hold([tree, Not(other)])


@pytest.mark.parametrize(
    "text",
    [
        "has_tools and no_tools",
        "message_count > 5 and message_count < 3",
        "message_count > 2 and message_count < 3",
        "failures < 0",
        "hint:a and hint:b",
        "hint:a and not hint:a",
        "chamber == privileged and chamber == quarantined",
        "label: trusted and label: untrusted",
        "deadline and not time_left < 1_000_000_000 and time_left < 5",
        "not (has_tools or no_tools)",
        "message_count == 3 and message_count != 3",
        "has_schema and (no_schema or has_tools and no_tools)",
        "not always",
    ],
)
def test_a_contradiction_is_seen(text: str) -> None:
    assert not can_hold([parse_condition(text)])


@pytest.mark.parametrize(
    "text",
    [
        "money_left > 2 and money_left < 3",
        "message_count > 2 and message_count < 4",
        "time_left > 5 and not deadline",
        "not deadline",
        "budget_left < 0",
        "hint:planning and role:delta",
        "not hint:a and not hint:b",
    ],
)
def test_what_can_be_is_left_alone(text: str) -> None:
    assert can_hold([parse_condition(text)])


def test_many_alternatives_are_no_contradiction() -> None:
    text = " and ".join(f"(hint:a{n} or phase:p{n} or role:r{n} or failures > {n})" for n in range(20))
    assert can_hold([parse_condition(text)])
    assert can_hold([Not(parse_condition(text))])


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("chamber == quarantined", True),
        ("chamber != privileged and has_tools", True),
        ("role:quarantined", True),
        ("not chamber == privileged", True),
        ("not (chamber == privileged or has_tools)", True),
        ("chamber: quarantined and has_tools or chamber: quarantined and no_tools", True),
        ("has_tools and (chamber == quarantined or no_tools)", True),
        ("chamber == quarantined or has_tools", False),
        ("has_tools", False),
        ("always", False),
        ("not role:quarantined", False),
    ],
)
def test_a_rule_for_the_quarantined_chamber_alone_is_recognised(text: str, only: bool) -> None:
    assert is_quarantined_only(RoutingRule.of(text, "small")) is only


@pytest.mark.parametrize(
    ("text", "code", "column", "near"),
    [
        ("has_tool", "routing.unknown-condition", 1, "has_tools"),
        ("has_tools and mesage_count > 3", "routing.unknown-condition", 15, "message_count"),
        ("has_tools an no_tools", "routing.bad-condition", 11, "and"),
        ("message_count 3", "routing.bad-condition", 15, None),
        ("message_count > many", "routing.bad-condition", 17, None),
        ("message_count >", "routing.bad-condition", 16, None),
        ("label: untrustd", "routing.bad-condition", 8, "untrusted"),
        ("chamber == other", "routing.bad-condition", 12, None),
        ("(has_tools", "routing.bad-condition", 11, None),
        ("has_tools)", "routing.bad-condition", 10, None),
        ("", "routing.bad-condition", 1, None),
        ("hint:", "routing.bad-condition", 6, None),
        ("__import__('os').system('x')", "routing.bad-condition", 12, None),
        ("message_count > 1; x", "routing.bad-condition", 18, None),
        ("message_count > 1e9", "routing.bad-condition", 17, None),
        ("has_tools; drop", "routing.bad-condition", 10, None),
    ],
)
def test_a_slip_is_told_with_its_column(text: str, code: str, column: int, near: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_condition(text)
    assert caught.value.code == code
    assert caught.value.place is not None
    assert caught.value.place.column == column
    assert caught.value.nearest == near


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from([*CONDITION_WORDS, "and", "or", "not", "(", ")", ":", "<", "==", "3", "x"])).map(
        " ".join
    )
)
@example("(" * 500)
@example("not " * 500 + "has_tools")
@example("x" * 5_000)
@settings(max_examples=examples(500))
def test_any_text_is_a_condition_or_a_clear_error(text: str) -> None:
    tree: RoutingCondition | None = None
    wrong: ConfigError | None = None
    try:
        tree = parse_condition(text)
    except ConfigError as error:
        wrong = error
    if tree is not None:
        assert compile_condition(tree)(request(tools=(TOOL,)), CallContext(), None) in (True, False)
    else:
        assert wrong is not None
        assert wrong.code in ("routing.bad-condition", "routing.unknown-condition")
        assert wrong.place is not None
        assert wrong.place.column is not None
