"""Patterns and stacks in numbers: how they go together, worked out by hand, and laws that hold for all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, example, given, settings, strategies as st

from bicameral.catalog import IDS, SIZES, catalog
from bicameral.catalog.costs import (
    LOCAL_RATES,
    Amounts,
    Estimate,
    Rates,
    estimate,
    estimate_tokens,
    number_text,
)
from bicameral.catalog.costs._composition import nestings
from bicameral.catalog.stacks import stack_of
from bicameral.errors import CatalogError
from property_examples import examples

SIZE = {
    "setup": 400,
    "input": 200,
    "output": 300,
    "observation": 300,
    "tools": 600,
    "brief": 250,
    "example": 100,
    "item_output": 50,
    "steps": 3,
    "items": 4,
    "tries": 2,
}
PLAIN = {
    tier: Rates(f"{tier}-model", read=price, written=4 * price, caching=None)
    for tier, price in (("small", 1.0), ("mid", 2.0), ("large", 4.0))
}


def _parts(found: Estimate) -> dict[str, Amounts]:
    return {f"{part.pattern} {part.role}": part.expected for part in found.parts}


def test_a_loop_reads_everything_that_went_before() -> None:
    found = estimate(["R4"], SIZE, PLAIN)
    # 1000 of setup and tools and 200 of task, and 600 more each time: 1200 + 1800 + 2400.
    assert (found.expected.calls, found.expected.prompt, found.expected.output) == (3, 5400, 900)
    assert found.expected.tools == 2
    # At worst eight steps: 8 * 1200 + 600 * 28, and a tool after all but the last.
    assert (found.worst.calls, found.worst.prompt, found.worst.tools) == (8, 26_400, 7)
    assert found.expected.money == pytest.approx((5400 * 4 + 900 * 16) / 1e6)


def test_one_plan_costs_a_fraction_of_a_loop_over_the_same_calls() -> None:
    loop = estimate(["R4"], {**SIZE, "steps": 7}, PLAIN).expected
    plan = estimate(["R5"], {**SIZE, "items": 6}, PLAIN).expected
    assert (loop.tools, plan.tools) == (6, 6)
    assert loop.prompt > 5 * plan.prompt


def test_a_knob_bounds_what_is_expected() -> None:
    assert estimate([{"R4": {"max_steps": 2}}], {**SIZE, "steps": 9}, PLAIN).expected.calls == 2


def test_a_worker_pattern_is_multiplied_by_the_workers() -> None:
    found = estimate(["O6", "O17", "R4"], SIZE, PLAIN)
    worker = next(part for part in found.parts if part.pattern == "R4" and part.role == "Agent")
    assert worker.inside == ("O6",)
    # Four workers of three steps, each with its brief of 250 in place of the task: 1250 + 1850 + 2450.
    assert (worker.expected.calls, worker.expected.prompt) == (12, 4 * 5550)
    assert "O6 Worker" not in _parts(found)
    assert _parts(found)["O6 Orchestrator"].calls == 1


def test_workers_without_windows_of_their_own_read_what_the_orchestrator_read() -> None:
    apart = estimate(["O6", "O17", "R4"], SIZE, PLAIN).expected
    shared = estimate(["O6", "R4"], SIZE, PLAIN)
    read = _parts(shared)["O6 Synthesis"].prompt
    assert shared.expected.prompt == apart.prompt + 12 * read
    assert shared.expected.longest > apart.longest


def test_a_fan_out_inside_a_fan_out_is_the_same_one() -> None:
    once, both = estimate(["O6", "O17", "R4"], SIZE, PLAIN), estimate(["O6", "O17", "O4", "R4"], SIZE, PLAIN)
    assert once.expected == both.expected


def test_the_judge_of_a_loop_is_not_counted_twice() -> None:
    assert estimate(["O5"], SIZE, PLAIN).expected == estimate(["O5", "V15"], SIZE, PLAIN).expected
    assert estimate(["R4", "V15"], SIZE, PLAIN).expected.calls == 5


def test_bounds_records_and_guards_add_nothing() -> None:
    assert (
        estimate(["R4", "V5", "V9", "V14", "O1", "I2"], SIZE, PLAIN).expected == estimate(["R4"], SIZE, PLAIN).expected
    )


def test_examples_make_every_call_of_a_loop_longer() -> None:
    alone, shown = estimate(["R4"], SIZE, PLAIN).expected, estimate(["R4", "S2"], SIZE, PLAIN).expected
    assert shown.calls == alone.calls
    assert shown.prompt == alone.prompt + 3 * 3 * 100


def test_tries_repeat_a_loop_and_carry_what_was_said_of_the_last() -> None:
    alone, tried = estimate(["R4"], SIZE, PLAIN).expected, estimate(["R7", "R4"], SIZE, PLAIN)
    loop = _parts(tried)["R4 Agent"]
    # Two tries; the second has a critique of 50 in front of each of its three calls.
    assert loop.calls == 6
    assert loop.prompt == 2 * alone.prompt + 3 * 50


def test_a_vote_shares_its_task_so_that_it_can_be_cached() -> None:
    rates = {tier: replace(rate, caching=None) for tier, rate in LOCAL_RATES.items()}
    assert estimate([{"R17": {"samples": 5}}, "R4"], SIZE, rates).expected.calls == 15
    cached = {tier: replace(rate, caching=LOCAL_RATES["small"].caching) for tier, rate in LOCAL_RATES.items()}
    assert estimate([{"R17": {"samples": 5}}, "R4"], SIZE, cached).expected.cached > 0


def test_a_context_that_is_summed_up_stays_below_its_share_of_the_window() -> None:
    sizes = {**SIZE, "steps": 40}
    knobs = {"R4": {"max_steps": 40}}
    small = {"K6": {"window_tokens": 8000, "trigger": 0.5, "span_tokens": 2000, "summary_tokens": 200}}
    loop = _parts(estimate([knobs], sizes, PLAIN))["R4 Agent"]
    held = _parts(estimate([knobs, small], sizes, PLAIN))["R4 Agent"]
    assert held.longest <= 4000 + 300
    assert held.prompt < loop.prompt / 3


def test_a_shape_that_may_ask_again_doubles_the_worst_case() -> None:
    found = estimate(["R4", {"S5": {"max_retries": 1}}], SIZE, PLAIN)
    assert (found.expected.calls, found.worst.calls) == (3, 16)


def test_what_happens_before_a_release_is_told_apart() -> None:
    found = estimate(["S1", {"V16": {"cases": 50, "repeats": 1}}], SIZE, PLAIN)
    assert found.expected.calls == 1
    assert found.apart.calls == 100


def test_a_warmed_pool_costs_one_write_and_reads() -> None:
    # 3000 tokens of setup, tools and context: the warm-up writes them, four workers read them at a tenth.
    rates = {tier: Rates("m", 1, 1) for tier in LOCAL_RATES}
    found = _parts(estimate(["O18"], {**SIZE, "context": 2000}, rates))
    assert found["O18 Warm-up"].charged == 3000 * 1.25 + 50
    assert found["O18 Worker"].charged == 4 * (3000 * 0.1 + 250)


def test_the_class_of_a_session_names_its_model() -> None:
    found = {part.role: part.model for part in estimate(["R5"], SIZE, PLAIN).parts}
    assert found == {"Planner": "large-model", "Solver": "small-model", "tools": ""}


def test_one_model_alone_does_one_call_at_a_time() -> None:
    fan = {"O4": {"width": 4}}
    alone = estimate([fan], SIZE, {tier: replace(rate, caching=None) for tier, rate in LOCAL_RATES.items()}).expected
    many = estimate(
        [fan], SIZE, {tier: replace(rate, caching=None, lanes=8) for tier, rate in LOCAL_RATES.items()}
    ).expected
    assert alone.seconds == pytest.approx(4 * (many.seconds or 0))


def test_what_is_said_of_agents_counts() -> None:
    described = {
        "patterns": ["V9", "V14"],
        "agents": {
            "reader": {"patterns": ["R4"], "tools": {"schema_tokens": 1600}, "model": "own"},
            "writer": {"patterns": ["S1"], "tools": {"count": 3}, "sessions": {"host": {"model": "small"}}},
        },
    }
    own = Rates("own-model", read=8.0, written=8.0, caching=None)
    found = estimate(stack_of(described), SIZE, {**PLAIN, "own": own})
    by_agent = found.by_agent()
    assert by_agent["reader"][0].prompt == 5400 + 3 * 1000
    assert {part.agent: part.model for part in found.parts if part.model} == {
        "reader": "own-model",
        "writer": "small-model",
    }
    assert found.expected.calls == 4
    assert estimate(stack_of({**described, "model": "who"}), SIZE, {**PLAIN, "own": own}).unpriced == ()
    unknown = estimate(stack_of({"patterns": ["S1"], "model": "who"}), SIZE, PLAIN)
    assert (unknown.unpriced, unknown.expected.money) == (("who",), None)


def test_what_goes_round_the_whole_is_shared_by_its_agents() -> None:
    one = stack_of({"patterns": ["O6", "O17"], "agents": {"worker": {"patterns": ["R4"]}}})
    two = stack_of({"patterns": ["O6", "O17"], "agents": {"a": {"patterns": ["R4"]}, "b": {"patterns": ["R4"]}}})
    alone = estimate(["O6", "O17", "R4"], SIZE, PLAIN)
    assert estimate(one, SIZE, PLAIN).expected == alone.expected
    halves = estimate(two, SIZE, PLAIN)
    assert halves.expected.calls == alone.expected.calls
    assert {name: usual.calls for name, (usual, _) in halves.by_agent().items()} == {"": 2, "a": 6, "b": 6}


def test_fixed_text_behind_a_word_that_varies_is_not_cached() -> None:
    def charged(parts: list[Mapping[str, Any]]) -> float:
        stack = stack_of({"agents": {"a": {"patterns": ["R4"], "prompt": parts, "tools": {"schema_tokens": 0}}}})
        return estimate(stack, {**SIZE, "steps": 4}, {tier: Rates("m", 1, 1) for tier in LOCAL_RATES}).expected.charged

    fixed = {"part": "S3", "stable": "global", "tokens": 2000}
    varying = {"part": "query", "stable": "per_call", "tokens": 300}
    # 2000 + 300 and 600 more each time: 4 * 2300 + 3600, of which the head is written once and read three times.
    assert charged([fixed, varying]) == 12_800 - 8000 + 2000 * (1.25 + 0.3)
    assert charged([varying, fixed]) == 12_800


def test_a_pattern_of_ones_own_is_told_and_not_guessed() -> None:
    found = estimate(stack_of({"patterns": ["R4", "MY"], "define": {"MY": {"name": "mine"}}}), SIZE, PLAIN)
    assert found.expected == estimate(["R4"], SIZE, PLAIN).expected
    assert any("MY is a pattern of your own" in note for note in found.notes)


def test_a_call_that_does_not_fit_the_window_is_noted() -> None:
    rates = {tier: replace(rate, window=1500) for tier, rate in PLAIN.items()}
    assert any("does not fit the window of large-model (1,500)" in note for note in estimate(["R4"], SIZE, rates).notes)
    assert not any("does not fit" in note for note in estimate(["S1"], SIZE, rates).notes)


@pytest.mark.parametrize(
    ("what", "sizes", "code", "said"),
    [
        (["R44"], {}, "catalog.unknown-pattern", "R4"),
        ([{"R4": {"max_step": 3}}], {}, "catalog.unknown-knob", "max_steps"),
        ([{"R4": {"max_steps": 0}}], {}, "catalog.bad-number", "1 to"),
        ([{"R4": {"max_steps": "many"}}], {}, "catalog.bad-number", "'many'"),
        (["R4"], {"step": 3}, "catalog.unknown-size", "steps"),
        (["R4"], {"steps": -1}, "catalog.bad-number", "from 0 on"),
        (["R4"], {"steps": math.nan}, "catalog.bad-number", "from 0 on"),
        (["R4"], {"steps": math.inf}, "catalog.bad-number", "0 to 1e+12"),
        (["R4"], {"steps": 1e-320}, "catalog.bad-number", "0, or a number from 1e-09 to 1e+12"),
        ([{"O15": {"max_depth": 1e308}}], {}, "catalog.bad-number", "1 to 1e+12"),
        ([{"O15": {"max_depth": 10**400}}], {}, "catalog.bad-number", "1 to 1e+12"),
        ([{"O14": {"miss_rate": 1e-320}}], {}, "catalog.bad-number", "0, or a number from 1e-09 to 1"),
    ],
)
def test_what_cannot_be_counted_is_told(what: Any, sizes: dict[str, float], code: str, said: str) -> None:
    with pytest.raises(CatalogError) as raised:
        estimate(what, sizes)
    assert raised.value.code == code
    assert said in str(raised.value)


EXTREMES = st.sampled_from([0, 1, 1e-9, 1e12, 0.5, 7])
WRAPPING = [id for id in IDS if nestings()[id].manner in ("wraps", "hosts")]


@st.composite
def extreme_uses(draw: st.DrawFn, depth: int = 6) -> dict[str, Any]:
    """A pattern with sizes of its own and a pattern inside of it, and so on."""
    id = draw(st.sampled_from(WRAPPING))
    sizes = draw(st.dictionaries(st.sampled_from([*SIZES]), EXTREMES, max_size=4))
    inner = [draw(extreme_uses(depth - 1))] if depth and draw(st.booleans()) else []
    return {id: {"sizes": sizes, "inner": inner} if inner else {"sizes": sizes}}


@given(st.lists(extreme_uses(), min_size=1, max_size=3), st.dictionaries(st.sampled_from([*SIZES]), EXTREMES))
def test_a_cost_is_a_number_or_an_error_however_large_the_sizes_are(
    uses: list[dict[str, Any]], sizes: dict[str, float]
) -> None:
    found: Estimate | CatalogError
    try:
        found = estimate(stack_of({"patterns": uses}), sizes)
    except CatalogError as error:
        found = error
    if isinstance(found, CatalogError):
        assert found.code == "catalog.no-value"
    else:
        assert all(each.is_finite for each in (found.expected, found.worst, found.apart))
        assert found.to_json()


def test_sizes_that_multiply_beyond_every_number_are_an_error() -> None:
    uses: Any = "R4"
    for _ in range(10):
        uses = {"O6": {"sizes": {"items": 1e12}, "max_workers": 8, "inner": [uses]}}
    slow = {tier: replace(rate, prompt_speed=1e-300, output_speed=1e-300) for tier, rate in PLAIN.items()}
    assert estimate(stack_of({"patterns": [uses]})).worst.is_finite
    with pytest.raises(CatalogError) as raised:
        estimate(stack_of({"patterns": [uses]}), {"setup": 1e12}, slow)
    assert raised.value.code == "catalog.no-value"


@given(st.floats(), st.integers(0, 6))
def test_every_number_has_a_text(value: float, digits: int) -> None:
    assert number_text(value, digits)
    assert math.isfinite(value) or number_text(value, digits) == "not known"


def test_a_class_without_a_model_is_told() -> None:
    with pytest.raises(CatalogError, match="no model is named for 'mid'"):
        estimate(["R4"], rates={"small": Rates("a"), "large": Rates("b")})


@pytest.mark.parametrize("id", IDS)
def test_every_pattern_has_its_place_among_others(id: str) -> None:
    pattern, nesting = catalog().pattern(id), nestings()[id]
    roles = {session.role for session in pattern.cost.sessions}
    assert (nesting.at in roles) if nesting.manner in ("wraps", "hosts", "shapes") else nesting.at == ""
    assert set(nesting.part_of) <= set(IDS) - {id}
    assert list(nestings()) == list(IDS)


@pytest.mark.parametrize("id", IDS)
def test_a_pattern_alone_costs_what_its_expressions_say(id: str) -> None:
    pattern = catalog().pattern(id)
    values = {name: size.default for name, size in SIZES.items()} | pattern.defaults
    found = estimate([id], rates=PLAIN)
    usual = found.apart if nestings()[id].manner == "apart" else found.expected
    calls = [min(each.calls.value(values), each.most.value(values)) for each in pattern.cost.sessions]
    assert usual.calls == pytest.approx(sum(max(0.0, each) for each in calls))
    assert usual.tools == pytest.approx(max(0.0, pattern.cost.tools.value(values)))
    assert found.expected.prompt <= found.worst.prompt


STACKS = st.lists(st.sampled_from(sorted(IDS)), min_size=1, max_size=7, unique=True)
COUNTS = st.fixed_dictionaries({"steps": st.integers(0, 12), "items": st.integers(0, 12), "tries": st.integers(0, 5)})
FIELDS = ("calls", "prompt", "charged", "output", "tools", "money", "seconds", "longest", "memory")
ALL = {tier: replace(rate, lanes=4) for tier, rate in LOCAL_RATES.items()} | {
    "large": Rates("r", 2, 8, 0.2, 3000, 60, wait=0.5)
}


@settings(max_examples=examples(150))
@given(STACKS, COUNTS)
def test_at_worst_nothing_is_less_than_expected(patterns: list[str], counts: dict[str, int]) -> None:
    found = estimate(patterns, counts, ALL)
    for name in FIELDS:
        low, high = getattr(found.expected, name), getattr(found.worst, name)
        assert low <= high * (1 + 1e-9) + 1e-6, (name, low, high)


@settings(max_examples=examples(150))
@example(["H1", "R12", "O13"], {"steps": 1, "items": 1, "tries": 0}, "items", 1)
@given(STACKS, COUNTS, st.sampled_from(["steps", "items", "tries"]), st.integers(1, 4))
def test_more_to_do_is_never_cheaper(patterns: list[str], counts: dict[str, int], which: str, more: int) -> None:
    # K6 is asked to sum up what is there, however little: its own arithmetic may round the other way.
    assume("K6" not in patterns)
    rates = {tier: replace(rate, caching=None) for tier, rate in ALL.items()}
    before, after = (
        estimate(patterns, given, rates).expected for given in (counts, {**counts, which: counts[which] + more})
    )
    for name in ("calls", "prompt", "output", "tools", "money"):
        low, high = getattr(before, name), getattr(after, name)
        assert low <= high * (1 + 1e-9) + 1e-6, (name, low, high)


@settings(max_examples=examples(60))
@given(STACKS)
def test_parts_add_up(patterns: list[str]) -> None:
    found = estimate(patterns, rates=ALL)
    by_pattern = found.by_pattern().values()
    assert sum(usual.calls for usual, _ in by_pattern) == pytest.approx(found.expected.calls + found.apart.calls)
    assert sum(part.worst.prompt for part in found.parts if not part.apart) == pytest.approx(found.worst.prompt)


def test_texts_are_counted_about_as_a_tokenizer_does() -> None:
    assert estimate_tokens("The fee is 40 euros.") == 7
    assert estimate_tokens("") == 0
    assert estimate_tokens('{"value": 12}') == 6
