"""Patterns inside of patterns: how a stack says it, what the linter makes of it, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral.catalog.costs import estimate
from bicameral.catalog.facts import IDS, catalog
from bicameral.catalog.lint import lint
from bicameral.catalog.stacks import FACTS, INNER_KEY, SIZES_KEY, Stack, parse_stack, runtime_guarantees, stack_of
from bicameral.errors import CatalogError


def parsed(patterns: str, *more: str) -> Stack:
    return parse_stack("\n".join(("name: X", f"patterns: {patterns}", *more)))


def missing(stack: Stack) -> set[str]:
    return {want for each in lint(stack).findings for want in each.wants if each.severity in ("error", "warning")}


# Reading ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "places"),
    [
        ("R5", ["inner"]),
        ("{R5: {max_calls: 3}}", ["inner"]),
        ("[R5, S6]", ["inner[0]", "inner[1]"]),
        ("{parts.a: R5, parts.b: {R4: {max_steps: 2}}}", ["parts.a", "parts.b"]),
    ],
)
def test_one_pattern_a_list_or_a_mapping_by_place_is_inside(written: str, places: list[str]) -> None:
    (use,) = parsed(f"[{{O2: {{max_retries: 2, inner: {written}}}}}]").whole.uses
    assert [each.place for each in use.inner] == places
    assert use.knobs == {"max_retries": 2}


def test_no_pattern_has_a_knob_with_the_name_of_a_key() -> None:
    assert not [id for id in IDS if {INNER_KEY, SIZES_KEY} & {*catalog().pattern(id).knobs}]


@pytest.mark.parametrize(
    ("patterns", "code", "said"),
    [
        ("[{O2: {inner: [R99]}}]", "stack.unknown-pattern", "R99"),
        ("[{O2: {inner: 5}}]", "stack.bad-value", "a text"),
        ("[{O2: {inner: {a: 5}}}]", "stack.bad-value", "a text"),
        ("[{R4: {sizes: {outptu: 5}}}]", "stack.unknown-key", "output"),
        ("[{R4: {sizes: {Agnet.output: 5}}}]", "stack.unknown-key", "Agent.output"),
        ("[{R4: {sizes: {output: -1}}}]", "stack.bad-value", "from 0"),
        ("[{R4: {sizes: {output: yes}}}]", "stack.bad-value", "from 0"),
        ("[{R4: {sizes: {output: .nan}}}]", "stack.bad-value", "from 0"),
    ],
)
def test_a_mistake_inside_is_reported_where_it_is(patterns: str, code: str, said: str) -> None:
    with pytest.raises(CatalogError) as caught:
        parsed(patterns)
    assert caught.value.code == code
    assert said in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.line == 2


def test_a_description_of_endless_depth_is_refused() -> None:
    described: Any = "R4"
    for _ in range(5_000):
        described = {"V5": {"inner": described}}
    with pytest.raises(CatalogError, match="too deeply"):
        stack_of({"patterns": [described]})


def test_an_unknown_runtime_is_refused_with_the_nearest() -> None:
    with pytest.raises(CatalogError, match="bicameral") as caught:
        parsed("[R4]", "runtime: bicamerl")
    assert caught.value.code == "stack.bad-value"


# The linter ---------------------------------------------------------------------------------------------------------


def test_what_is_inside_of_one_step_is_nothing_to_another() -> None:
    """R14 needs V8: one that is inside of another step does not run its programs."""
    inside = "[V9, V14, V11, {O2: {inner: [{V8: {isolation: microvm, inner: R14}}, S6, V20]}}]"
    assert "V8" not in missing(parsed(inside))
    beside = "[V9, V14, V11, {O2: {inner: [R14, {V8: {isolation: microvm, inner: S6}}, V20]}}]"
    assert "V8" in missing(parsed(beside))
    for_all = "[V9, V14, V11, {V8: {isolation: microvm}}, {O2: {inner: [R14, S6, V20]}}]"
    assert "V8" not in missing(parsed(for_all))


def test_bounds_inside_of_one_part_do_not_bound_the_whole() -> None:
    assert "V9" in missing(parsed("[V14, {O2: {inner: [{V9: {inner: S6}}, V20]}}]"))


def test_steps_have_tasks_of_their_own_and_nested_patterns_share_one() -> None:
    apart = parsed("[V9, V14, {O2: {inner: [R4, R5, S6, V20]}}]")
    assert not [each for each in lint(apart).findings if "same task" in each.message]
    nested = parsed("[V9, V14, {R4: {inner: R5}}]")
    assert [each for each in lint(nested).findings if "same task" in each.message]
    listed = parsed("[V9, V14, R4, {O2: {inner: [R5, S6, V20]}}]")
    assert [each for each in lint(listed).findings if "same task" in each.message]


def test_a_worker_that_loops_has_bounds_of_its_own() -> None:
    around = "V9, V14, V12, O17, O4"
    unbounded = parsed(f"[{around}, {{O6: {{inner: {{workers.a: R4}}}}}}]")
    assert [each for each in lint(unbounded).findings if "no bounds of its own" in each.message]
    bounded = parsed(f"[{around}, {{O6: {{inner: {{workers.a: {{V9: {{inner: R4}}}}}}}}}}]")
    assert not [each for each in lint(bounded).findings if "no bounds of its own" in each.message]


# What the runtime brings --------------------------------------------------------------------------------------------


def test_every_guarantee_is_a_pattern_or_a_fact_of_the_vocabulary_with_a_reason() -> None:
    for id, each in runtime_guarantees().items():
        assert (id in IDS) != (id in FACTS)
        assert len(each.why) > 20
        assert all(other in IDS for other in each.with_any)
        if id in FACTS:
            assert FACTS[id].accepts(each.value)


def test_the_runtime_meets_requirements_only_where_it_is_named() -> None:
    assert {"V9", "V14"} <= missing(parsed("[R4]"))
    assert {"V9", "V14"} <= missing(parsed("[R4]", "runtime: other"))
    assert missing(parsed("[R4]", "runtime: bicameral")) == set()


def test_the_runtime_brings_no_more_than_it_says() -> None:
    """Guards at the input, a person before what cannot be undone, and an evaluation have to be in the stack."""
    facts = "facts: {production: true, external_input: true}"
    actions = "actions: {send: {reversible: false, gate: V1}}"
    assert {"V5", "V16", "V1"} <= missing(parsed("[R4]", "runtime: bicameral", facts, actions))


def test_what_is_brought_with_some_patterns_is_not_there_without_them() -> None:
    assert "V8" not in missing(parsed("[I4]", "runtime: bicameral"))
    assert "V8" in missing(parsed("[R13]", "runtime: bicameral"))


def test_no_rule_applies_because_of_what_is_brought() -> None:
    """V4 of a stack should come with V3; that of the runtime is not in the stack."""
    assert [each for each in lint(parsed("[V4, V9, V14]")).findings if "V3" in each.wants]
    assert not [each for each in lint(parsed("[R4]", "runtime: bicameral")).findings if "V3" in each.wants]


def test_a_stack_may_say_otherwise_than_the_runtime() -> None:
    swallowed = parsed("[R4]", "runtime: bicameral", "facts: {swallows_errors: true}")
    assert [each for each in lint(swallowed).findings if each.rule == "A10" and each.severity != "note"]
    assert not [each for each in lint(parsed("[R4]", "runtime: bicameral")).findings if each.rule == "A10"]


# Costs --------------------------------------------------------------------------------------------------------------

SIZES = {"setup": 10.0, "input": 20.0, "output": 5.0, "steps": 3, "items": 2, "observation": 4.0, "tools": 0.0}


def amounts(patterns: str) -> tuple[float, float]:
    found = estimate(parsed(patterns, "runtime: bicameral"), SIZES)
    return found.expected.calls, found.worst.calls


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ("[{O2: {max_retries: 0, inner: [R5, S6]}}]", 3),
        ("[{O4: {inner: {a: R4, b: S1, c: R5}}}]", 6),
        ("[{V5: {inner: {O2: {inner: [R4, S6]}}}}]", 4),
        ("[{O6: {inner: {a: R4, b: R4}}}]", 2 + 2 * 3),
        # Two briefs, of which each worker takes one: three calls of the loop, two of the plan.
        ("[{O6: {inner: {a: R4, b: R5}}}]", 2 + 3 + 2),
        # Depth 3: the orchestrator, two workers of a loop and a question each, a form at the end.
        ("[{O2: {inner: [{O6: {inner: {a: {O4: {inner: {x: R4, y: S1}}}}}}, S6]}}]", 2 + 2 * (3 + 1) + 1),
        ("[{V19: {inner: [R4, R5]}}]", 3),
        # Of the two ways of the second step one is taken.
        ("[{O2: {inner: {'steps[0]': S1, 'steps[1].ways.a': R4, 'steps[1].ways.b': S1}}}]", 1 + (3 + 1) / 2),
    ],
)
def test_the_calls_of_a_composition_are_those_of_its_parts(patterns: str, expected: float) -> None:
    usual, worst = amounts(patterns)
    assert abs(usual - expected) < 1e-9
    assert worst >= usual


def test_the_worst_of_a_ladder_has_all_rungs_and_of_a_chain_all_retries() -> None:
    ladder, rung = amounts("[{V19: {inner: [{R4: {max_steps: 4}}, {R4: {max_steps: 6}}]}}]"), amounts("[V19]")
    assert ladder[1] == 4 + 6 + rung[1]
    assert amounts("[{O2: {max_retries: 2, inner: [{R4: {max_steps: 4}}, S1]}}]")[1] == 3 * (4 + 1)


def test_a_step_reads_what_the_one_before_gives() -> None:
    short = "[{O2: {inner: [{S1: {sizes: {output: 7}}}, S1]}}]"
    long = "[{O2: {inner: [{S1: {sizes: {output: 107}}}, S1]}}]"
    first, second = (estimate(parsed(each), SIZES).expected.prompt for each in (short, long))
    assert second - first == 100


def test_sizes_of_a_role_count_for_that_role_alone() -> None:
    plain, known = "[R5]", "[{R5: {sizes: {Planner.setup: 110}}}]"
    before, after = (estimate(parsed(each), SIZES).expected.prompt for each in (plain, known))
    assert after - before == 100


def test_parts_at_the_same_time_take_the_time_of_some_of_them() -> None:
    from bicameral.catalog.costs import Rates

    rates = {tier: Rates("m", 1, 1, prompt_speed=100, output_speed=10) for tier in ("small", "mid", "large")}
    one = estimate(parsed("[{O4: {inner: {a: S1}}}]"), SIZES, rates).expected.seconds
    three = estimate(parsed("[{O4: {inner: {a: S1, b: S1, c: S1}}}]"), SIZES, rates).expected.seconds
    assert one is not None
    assert three is not None
    assert abs(three - one) < 1e-9


def test_parts_of_an_estimate_say_where_they_are() -> None:
    found = estimate(parsed("[{O2: {inner: {first: {O4: {inner: {a: R4, b: R4}}}, last: S1}}}]"), SIZES)
    places = {(part.place, part.pattern) for part in found.parts if part.expected.calls}
    assert places == {("first.a", "R4"), ("first.b", "R4"), ("last", "S1")}


def test_the_page_lists_all_that_the_runtime_brings() -> None:
    page = (Path(__file__).parents[3] / "docs" / "lint.md").read_text(encoding="utf-8")
    for id, each in runtime_guarantees().items():
        name = id if id in IDS else f"`{id}: {str(each.value).lower()}`"
        assert f"| {name} | {each.why} | {', '.join(each.with_any) or 'every stack'} |" in page
