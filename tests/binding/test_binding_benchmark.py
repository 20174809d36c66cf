"""The benchmark of the binder: its cases are many, the same each time, and its halves share no words."""

from __future__ import annotations

import asyncio

from benchmarks.binding.__main__ import ROUNDS, SEED, judge_half, summarise, wilson
from benchmarks.binding._vocabulary import DEVELOPMENT, HELD
from benchmarks.binding._worlds import FAMILIES, make_cases


def test_there_are_enough_cases_and_the_seed_decides_them() -> None:
    first = list(make_cases(HELD, SEED, ROUNDS))
    assert first == list(make_cases(HELD, SEED, ROUNDS))
    assert 2 * len(first) >= 400
    assert len(first) == ROUNDS * len(FAMILIES)


def test_the_halves_share_no_words() -> None:
    halves = (DEVELOPMENT, HELD)
    things, names, columns = (
        [set(part) for part in parts]
        for parts in (
            ({word for thing in (*half.things, *half.plurals) for word in thing} for half in halves),
            ((*half.first_names, *half.surnames, *half.topics, *half.cells) for half in halves),
            ((*half.columns, *half.folders, *half.qualifiers) for half in halves),
        )
    )
    for one, other in (things, names, columns):
        assert not one & other


def test_a_round_of_the_held_half_reaches_the_aims() -> None:
    figures = summarise(asyncio.run(judge_half(HELD, rounds=1)))
    assert figures["hostile_bound"] == 0
    assert figures["precision"] >= 0.98
    assert figures["asked_when_ambiguous"] >= 0.95


def test_the_interval_of_a_rate_is_wilsons() -> None:
    assert wilson(8, 10) == [0.49, 0.943]
    assert wilson(0, 0) == [0.0, 1.0]
