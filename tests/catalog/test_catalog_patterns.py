"""Every pattern of the catalogue is there and complete, and what it says of others and of costs holds together."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from bicameral.catalog import CATEGORIES, IDS, SIZES, PatternFacts, catalog, default_sizes

EVERY = [pytest.param(pattern, id=pattern.id) for pattern in catalog().patterns.values()]
_NAME = re.compile(r"[a-z][a-z0-9_]*")
# In these a model is only called where rules do not suffice.
RULES_FIRST = {"V2", "V11", "V13", "V19"}


def test_there_are_94_patterns_in_seven_categories() -> None:
    counts = Counter(pattern.category for pattern in catalog().patterns.values())
    assert dict(counts) == {
        "signal": 8,
        "knowledge": 13,
        "reasoning": 19,
        "orchestration": 18,
        "reliability": 20,
        "integration": 6,
        "humanizer": 10,
    }
    assert len(catalog().patterns) == 94
    assert list(catalog().patterns) == list(IDS)
    assert not {"S7", "S10", "R15"} & set(IDS)


def test_no_two_patterns_have_one_name() -> None:
    names = Counter(pattern.name.lower() for pattern in catalog().patterns.values())
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("pattern", EVERY)
def test_a_pattern_is_told_in_full(pattern: PatternFacts) -> None:
    assert len(pattern.what) <= 160
    assert 2 <= len(pattern.when) <= 4
    assert pattern.not_when
    assert pattern.participants
    assert 3 <= len(pattern.invariants) <= 8
    assert 2 <= len(pattern.watch) <= 6
    assert pattern.failures
    assert pattern.mechanisms
    assert pattern.sources
    assert 2 <= len(re.findall(r"[.!?](?:\s|$)", pattern.how)) <= 4
    assert all(_NAME.fullmatch(name) for name in (*pattern.knobs, *pattern.watch))


@pytest.mark.parametrize("pattern", EVERY)
def test_a_model_says_of_what_size_it_is_and_nobody_else_does(pattern: PatternFacts) -> None:
    for participant in pattern.participants:
        assert (participant.tier is not None) == (participant.kind == "model"), participant.name


@pytest.mark.parametrize("pattern", EVERY)
def test_every_pattern_and_mechanism_that_is_named_exists(pattern: PatternFacts) -> None:
    instead = [id for each in pattern.not_when for id in each.use]
    named = [*pattern.goes_with, *pattern.grows_to, *pattern.shrinks_to, *instead]
    assert [id for id in named if id not in IDS] == []
    assert pattern.id not in named
    assert [id for id in pattern.mechanisms if id not in catalog().mechanisms] == []
    assert not set(pattern.grows_to) & set(pattern.shrinks_to)
    text = " ".join([pattern.how, *pattern.when, *(each.mend for each in pattern.failures)])
    said = re.findall(r"\b[SKROVIH]\d{1,2}\b", text)
    assert [id for id in said if id not in IDS] == []


@pytest.mark.parametrize("pattern", EVERY)
def test_a_loop_says_what_bounds_it(pattern: PatternFacts) -> None:
    assert pattern.loops == bool(pattern.bounded_by)
    assert all(name in pattern.knobs for name in pattern.bounded_by)


@pytest.mark.parametrize("pattern", EVERY)
def test_a_knob_has_words_and_a_default_that_it_allows(pattern: PatternFacts) -> None:
    for name, knob in pattern.knobs.items():
        assert knob.what, name
        if knob.numeric:
            assert knob.least is None or knob.least <= knob.default, name
            assert knob.most is None or knob.default <= knob.most, name
        if knob.choices:
            assert knob.default in (None, *knob.choices), name


@pytest.mark.parametrize("pattern", EVERY)
def test_costs_are_numbers_over_names_that_exist_and_the_worst_is_no_less_than_the_usual(pattern: PatternFacts) -> None:
    sizes = default_sizes() | pattern.defaults
    expected = worst = 0.0
    for session in pattern.cost.sessions:
        written = (session.stable, session.prompt, session.grows, session.output, session.calls, session.most)
        assert frozenset().union(*(each.names for each in written)) <= SIZES.keys() | pattern.defaults.keys()
        assert all(each.value(sizes) >= 0 for each in written), session.role
        assert session.parallel.value(sizes) >= 1, session.role
        assert session.calls.value(sizes) <= session.most.value(sizes), session.role
        expected += session.calls.value(sizes)
        worst += session.most.value(sizes)
    assert pattern.cost.tools.value(sizes) >= 0
    if pattern.cost.sessions:
        assert worst > 0
        assert (expected > 0) == (pattern.id not in RULES_FIRST)


@pytest.mark.parametrize("pattern", EVERY)
def test_costs_hold_for_other_sizes_too(pattern: PatternFacts) -> None:
    """Ten times the parts, steps and tries: what bounds a loop bounds its cost as well."""
    sizes = {name: 10 * value for name, value in default_sizes().items()} | pattern.defaults
    for session in pattern.cost.sessions:
        assert 0 <= session.calls.value(sizes) <= session.most.value(sizes), session.role


def test_a_pattern_with_model_calls_has_a_model_and_one_without_has_none_that_must_be_called() -> None:
    for pattern in catalog().patterns.values():
        models = [each for each in pattern.participants if each.kind == "model"]
        assert models or not pattern.cost.sessions, pattern.id


def test_requirements_conflicts_and_rules_name_patterns_that_exist() -> None:
    known = catalog()
    for requirement in known.requirements.values():
        assert requirement.pattern in IDS or requirement.pattern == "H*", requirement.id
        assert requirement.all_of or requirement.any_of, requirement.id
        assert {*requirement.all_of, *requirement.any_of} <= set(IDS), requirement.id
    for conflict in known.conflicts.values():
        assert set(conflict.patterns) <= set(IDS), conflict.id
    for law in known.laws.values():
        assert set(law.patterns) <= set(IDS), law.id
    for anti_pattern in known.anti_patterns.values():
        assert set(anti_pattern.mend) <= set(IDS), anti_pattern.id
    for rule in known.cache_rules.values():
        assert set(rule.patterns) <= set(IDS), rule.id
        assert set(rule.origin) <= {*IDS, *known.mechanisms}, rule.id


def test_the_rules_are_all_there() -> None:
    known = catalog()
    assert len(known.requirements) == 88
    assert len(known.conflicts) == 78
    assert list(known.laws) == [f"LAW{number}" for number in range(1, 11)]
    assert len(known.anti_patterns) == 36
    assert list(known.cache_rules) == [f"C{number}" for number in range(1, 26)]
    assert list(known.mechanisms) == [f"M{number}" for number in range(1, 13)]


def test_every_mechanism_has_patterns_that_rest_on_it_and_rules_that_follow() -> None:
    for mechanism in catalog().mechanisms.values():
        assert any(mechanism.id in pattern.mechanisms for pattern in catalog().patterns.values()), mechanism.id
        assert mechanism.rules, mechanism.id


def test_what_a_pattern_needs_and_where_it_clashes_is_found_from_both_ends() -> None:
    known = catalog()
    needs = {id for each in known.requirements_of("O6") for id in each.all_of}
    assert {"O17", "V9", "V14"} <= needs
    assert "O6" in {each.pattern for each in known.needed_by("O17")}
    assert "CRIT1" in {each.id for each in known.conflicts_of("R5")}
    # H* is about every one of the H patterns, and about no other.
    assert {"K10", "K11"} in [set(each.any_of) for each in known.requirements_of("H7")]
    assert all(each.pattern != "H*" for each in known.requirements_of("V9"))


def test_the_runnable_orchestrations_have_the_knobs_that_their_code_has() -> None:
    parallel, orchestrator = catalog().pattern("O4"), catalog().pattern("O6")
    assert {name: knob.default for name, knob in parallel.knobs.items()} == {
        "width": 8,
        "mode": "sections",
        "n": 3,
        "quorum": 0,
        "seconds": 0,
    }
    assert parallel.knobs["mode"].choices == ("sections", "votes")
    assert {name: knob.default for name, knob in orchestrator.knobs.items()} == {
        "max_workers": 5,
        "max_depth": 1,
        "max_rounds": 1,
        "result_tokens": 400,
    }
    assert (orchestrator.knobs["max_workers"].least, orchestrator.knobs["max_workers"].most) == (1, 10)


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_patterns_of_a_category_come_in_the_order_of_their_numbers(category: str) -> None:
    numbers = [int(id[1:]) for id in catalog().category(category)]
    assert numbers == sorted(numbers)
