"""However steps overlap, a run ends as if they had run one after the other."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from runs_plans import plans
from runs_reference import meaning
from runs_world import World, plan_of, run_source

from bicameral.plans import Plan
from bicameral.runs import Failed, Finished, Journal, RunOutcome, replay, run_plan
from property_examples import examples

delays = st.lists(st.integers(0, 6), min_size=1, max_size=10)


@pytest.fixture(scope="module")
def journal() -> Iterator[Journal]:
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal.db") as journal:
        yield journal


def test_a_run_means_what_its_steps_mean_one_after_the_other(journal: Journal) -> None:
    @settings(max_examples=examples(200))
    @given(plan=plans, yields=delays)
    def law(plan: Plan, yields: list[int]) -> None:
        asyncio.run(_same(plan, yields, journal))

    law()


async def _same(plan: Plan, yields: list[int], journal: Journal) -> None:
    there, here = World(), World(yields)
    expected = await meaning(plan, there.registry)
    outcome = await run_plan(plan, here.registry, journal=journal)
    effects = [done.step for done in outcome.effects]
    if isinstance(outcome, Failed) and outcome.error.code == "run.cap":
        # A list that is added to itself in nested loops is more work than a run may do, and the reference has no limit.
        assert effects == expected.effects[: len(effects)]
        return
    assert effects == expected.effects
    assert here.cells == there.cells
    assert [what for what in here.happened if what[0] == "poke"] == [
        what for what in there.happened if what[0] == "poke"
    ]
    match outcome:
        case Finished(answer=answer):
            assert expected.failure is None
            assert answer == expected.answer
        case Failed(error=error, step=step):
            assert (error.code, step) == expected.failure
        case other:
            raise AssertionError(other)
    again = await replay(journal, outcome.run, World().registry)
    assert again.identical, again.differences


async def _answer(source: str, world: World) -> object:
    outcome: RunOutcome = await run_source(source, world.registry)
    assert isinstance(outcome, Finished), outcome
    return outcome.answer


async def test_a_list_that_grows_without_end_ends_at_the_limit_on_work(journal: Journal) -> None:
    source = """
xs = [1, 2, 3]
for a in range(20):
    poke('left', a)
    for b in range(3):
        xs += xs
answer(len(xs))
"""
    outcome = await run_plan(plan_of(source, World().registry), World().registry, journal=journal)
    assert isinstance(outcome, Failed)
    assert outcome.error.code in ("run.cap", "run.too-large")
    steps = [done.step for done in outcome.effects]
    assert steps == [f"1[{turn}]/0" for turn in range(len(steps))]


ALIASES = {
    "another name": "ys = xs\nxs.append(9)\nanswer([xs, ys])",
    "a list of lists": "zs = [xs, xs]\nxs.append(9)\nanswer([xs, zs])",
    "an item of a list": "zs = [xs]\ny = zs[0]\ny.append(9)\nanswer([xs, zs, y])",
    "the value of a dict": "d = {'k': xs}\ny = d.k\ny.append(9)\nanswer([xs, d, y])",
    "the variable of a loop": "zs = [xs]\nfor y in zs:\n    y.append(9)\nanswer([xs, zs, y])",
    "a function's own argument": "y = first([xs])\ny.append(9)\nanswer([xs, y])",
    "itself": "xs.append(len(xs))\nzs = [xs]\nzs.append(xs)\nxs.append(9)\nanswer([xs, zs])",
    "an addition": "ys = []\nys += xs\nys.append(9)\nxs.append(8)\nanswer([xs, ys])",
    "a dict put into a dict": "d = {}\ne = {}\nd['e'] = e\ne['n'] = 1\nanswer([d, e])",
    "one branch of a choice": "y = xs if len(xs) > 0 else []\ny.append(9)\nanswer([xs, y])",
    "turns of a loop": """zs = []
for n in [1, 2, 3]:
    m = double(n)
    row = xs
    row.append(m)
    zs.append(row)
answer([xs, zs])""",
    "additions after a look": ("zs = []\nfor n in [1, 2, 3]:\n    xs.append(n)\n    zs.append(xs)\nanswer([xs, zs])"),
}


@pytest.mark.parametrize("name", ALIASES)
async def test_a_value_never_changes_under_another_name(name: str) -> None:
    source = "xs = [1, 2]\n" + ALIASES[name]
    world = World([3, 1])
    registry = World().registry
    expected = await meaning(plan_of(source, registry), registry)
    assert expected.failure is None
    assert await _answer(source, world) == expected.answer


async def test_turns_that_only_add_overlap_and_come_out_in_order() -> None:
    world = World([6, 4, 3])
    source = """
out = []
total = 0.5
seen = {}
for n in range(12):
    m = double(n)
    out.append(m)
    total += m
    seen[str(n % 3)] = m
answer([out, total, seen])
"""
    assert await _answer(source, world) == [[2 * n for n in range(12)], 132.5, {"0": 18, "1": 20, "2": 22}]
    assert world.most_running == 12


async def test_turns_that_need_the_turn_before_run_one_after_the_other() -> None:
    world = World([4])
    assert await _answer("n = 1\nfor i in range(8):\n    n = double(n)\nanswer(n)", world) == 256
    assert world.most_running == 1


async def test_nested_loops_do_not_wait_for_each_other() -> None:
    world = World([2])
    source = """
out = []
for i in range(40):
    for j in range(20):
        m = double(j)
        out.append(m + i)
answer(sum(out))
"""
    async with asyncio.timeout(30):
        assert await _answer(source, world) == sum(2 * j + i for i in range(40) for j in range(20))
    assert 16 < world.most_running <= 64


async def test_additions_of_overlapping_turns_that_have_no_meaning_fail_at_their_step() -> None:
    world = World([2])
    outcome = await run_source(
        "out = 0\nfor n in range(4):\n    m = double(n)\n    out.append(m)\nanswer(out)", world.registry
    )
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, outcome.step) == ("run.type", "1[0]/1")
