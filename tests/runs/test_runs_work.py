"""A run has a cap on what it computes: counted, the same in every attempt and replay."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bicameral.limits import RUN, RUN_LIMITS, LimitReached, Limits, run_limits
from bicameral.plans import parse
from bicameral.runs import Failed, Finished, Journal, replay, run_plan
from bicameral.tools import Registry, tool


@tool(effect="read")
async def numbers(count: int) -> list[int]:
    """So many numbers."""
    return list(range(count))


@tool(effect="read")
async def slowly(count: int) -> int:
    """The same number, after a while that is longer for smaller numbers."""
    await asyncio.sleep(0.002 * (10 - count % 10))
    return count


REGISTRY = Registry([numbers, slowly])
LOOP = """
ys = numbers(300)
total = 0
for x in numbers(1000):
    total += len([y for y in ys if y > x])
answer(total)
"""


async def run(plan: str, work: int, **options: Any) -> Any:
    return await run_plan(parse(plan, REGISTRY).plan, REGISTRY, caps=run_limits(work=work), **options)


async def test_a_run_is_stopped_at_the_turn_where_its_work_is_used_up() -> None:
    outcome = await run(LOOP, 100_000)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, LimitReached)
    assert outcome.error.to_json()["cap"] == "work"
    assert outcome.step.startswith("3[")
    assert (await run(LOOP, 100_000)).step == outcome.step
    later = await run(LOOP, 200_000)
    assert int(later.step[2:].partition("]")[0]) > int(outcome.step[2:].partition("]")[0])


async def test_twice_the_turns_are_twice_the_work() -> None:
    async def used(turns: int) -> int:
        low, high = 1, 10_000_000
        plan = LOOP.replace("1000", str(turns))
        while low < high:
            middle = (low + high) // 2
            ended = isinstance(await run(plan, middle), Finished)
            low, high = (low, middle) if ended else (middle + 1, high)
        return low

    once, twice = await used(20), await used(40)
    assert 1.7 < twice / once < 2.1


@pytest.mark.parametrize(
    "plan",
    [
        'text = "a" * 1000000\nfor x in numbers(1000):\n    copy = text + "b"\nanswer(len(copy))',
        'text = "a" * 1000000\nfor x in numbers(1000):\n    text += "b"\nanswer(len(text))',
        'text = "a" * 1000000\nfor x in numbers(1000):\n    copy = text.upper()\nanswer(len(copy))',
        'text = "a" * 1000000\nfor x in numbers(1000):\n    copy = f"{text}{x}"\nanswer(len(copy))',
        'text = "a" * 1000000\nfor x in numbers(1000):\n    copy = text[1:]\nanswer(len(copy))',
        "xs = numbers(100000)\nfor x in numbers(1000):\n    ys = [xs, x]\nanswer(len(ys))",
        "xs = numbers(100000)\nfor x in numbers(1000):\n    ys = xs + [x]\nanswer(len(ys))",
        "xs = numbers(100000)\nfor x in numbers(1000):\n    ys = xs\n    xs.append(x)\nanswer(len(ys))",
        "xs = numbers(100000)\nfor x in numbers(1000):\n    y = max(xs)\nanswer(y)",
        "xs = numbers(100000)\nfor x in numbers(1000):\n    y = -1 in xs\nanswer(y)",
        "xs = numbers(100000)\nanswer(len([[xs] for x in xs]))",
        "xs = numbers(100000)\nanswer(len(sorted(xs, key=lambda x: [xs, x])))",
    ],
)
async def test_what_is_copied_made_or_gone_through_counts(plan: str) -> None:
    outcome = await run(plan, 1_000_000)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.cap"


async def test_turns_that_overlap_come_to_the_same_place_whichever_is_quicker() -> None:
    plan = """
ys = numbers(300)
found = []
for x in numbers(40):
    y = slowly(x)
    found.append(len([z for z in ys if z > y]))
answer(found)
"""
    places = {(await run(plan, 9_000)).step for _ in range(3)}
    assert len(places) == 1
    assert isinstance(await run(plan, 1_000_000), Finished)


async def test_a_replay_stops_where_the_run_did(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        outcome = await run(LOOP, 100_000, journal=journal)
        again = await replay(journal, outcome.run, REGISTRY)
        assert again.identical, again.differences


async def test_a_record_from_before_there_was_such_a_cap_is_replayed_without_one() -> None:
    facts = RUN_LIMITS.to_json()
    assert Limits.from_json(facts, RUN) == RUN_LIMITS
    del facts["work"]
    assert (Limits.from_json(facts, RUN).work or 0) > 10**15


async def test_a_hundred_thousand_rows_are_no_work_to_speak_of() -> None:
    plan = """
rows = [{"n": x, "name": f"name {x}"} for x in numbers(100000)]
total = 0
names = []
for row in rows:
    if row.n % 2 == 0:
        total += row.n
        names.append(row.name.upper())
answer([total, len(sorted(names)), len(sorted(rows, key=lambda r: -r.n))])
"""
    outcome = await run(plan, 10_000_000)
    assert isinstance(outcome, Finished)
