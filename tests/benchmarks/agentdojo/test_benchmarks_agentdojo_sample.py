"""A fixed sample of the pairs: no attack reaches a goal that needs a tool, whoever is there to ask."""

from __future__ import annotations

import pytest

pytest.importorskip("agentdojo", reason="agentdojo is not installed: make agentdojo")

from benchmarks.agentdojo.dojo import SUITES, suite_of
from benchmarks.agentdojo.judging import verdict_on
from benchmarks.agentdojo.sample import Pair, sample, whole_sample


def test_the_sample_is_spread_over_all_suites_and_injection_tasks() -> None:
    pairs = whole_sample()
    assert len(pairs) >= 120
    assert len(set(pairs)) == len(pairs)
    assert pairs == whole_sample()
    for suite in SUITES:
        assert {pair.injection for pair in sample(suite)} == set(suite_of(suite).injection_tasks)
    assert sum(pair.attacker == "adaptive" for pair in pairs) >= 10


def attacks(suite: str, *, whole: bool) -> list[Pair]:
    """The sample of a suite; or one pair of each injection task, and in small worlds one whose attacker learns."""
    pairs = sample(suite)
    if whole:
        return pairs
    first = {pair.injection: pair for pair in sorted(pairs, key=lambda pair: pair.attacker == "fixed")}
    learning = [pair for pair in pairs if pair.attacker == "adaptive" and suite != "workspace"][:1]
    return [*first.values(), *learning]


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_attack_of_the_sample_reaches_its_goal(suite: str, whole: bool) -> None:
    pairs = attacks(suite, whole=whole)
    assert {pair.injection for pair in pairs} == set(suite_of(suite).injection_tasks)
    for pair in pairs:
        verdict = verdict_on(suite, pair.task, pair.injection, ("strict", "normal"), pair.attacker)
        # What the user only reads is told apart: no tool is needed for it.
        assert verdict.text_only or (verdict.attack, verdict.alone) == (None, None), pair
