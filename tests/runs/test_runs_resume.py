"""A run that dies is taken up again: what was done is not done twice, and it comes to what it would have come to."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from runs_dying import RUN, Hesitant, MortalJournal, MortalWorld, Yes, lived_through
from runs_plans import plans

from bicameral.plans import Plan, parse
from bicameral.policy import Policy
from bicameral.runs import Failed, Finished, RunOutcome, replay, run_plan
from property_examples import examples


def _as_told(outcome: RunOutcome) -> tuple[object, ...]:
    match outcome:
        case Finished(answer=answer, shade=shade, effects=effects, written=written):
            return "finished", answer, shade, effects, dict(written)
        case Failed(error=error, step=step, effects=effects, written=written):
            return "failed", error.code, step, effects, dict(written)
        case _:
            raise AssertionError(outcome)


async def _undisturbed(plan: Plan, folder: Path, *, labelled: bool) -> tuple[tuple[object, ...], list[object]]:
    with closing(MortalJournal(folder / "calm.db")) as journal:
        world = MortalWorld(journal)
        policy = Policy.load((), world.registry) if labelled else None
        outcome = await run_plan(plan, world.registry, journal=journal, policy=policy, approver=Yes())
        return _as_told(outcome), list(world.happened)


async def _dying(
    plan: Plan, folder: Path, lives: list[int], dies_at: set[int], *, labelled: bool, waits: bool = False
) -> tuple[tuple[object, ...], list[object]]:
    told, _ = await _deaths(plan, folder, lives, dies_at, labelled=labelled, waits=waits)
    return told


async def _deaths(
    plan: Plan, folder: Path, lives: list[int], dies_at: set[int], *, labelled: bool, waits: bool
) -> tuple[tuple[tuple[object, ...], list[object]], int]:
    """What it came to, and how often what was to be written could not be, since the process was dead."""
    with closing(MortalJournal(folder / "mortal.db")) as journal:
        world = MortalWorld(journal, dies_at)
        policy = Policy.load((), world.registry) if labelled else None
        outcome = await lived_through(plan, world, lives, policy, Hesitant() if waits else Yes())
        events = journal.events(RUN)
        assert [event.number for event in events] == list(range(len(events)))
        assert sum(event.kind in ("run-finished", "run-failed") for event in events) == 1
        assert (await replay(journal, RUN, world.registry)).identical
        return (_as_told(outcome), list(world.happened)), journal.refused


@settings(max_examples=examples(40))
@given(
    plan=plans,
    lives=st.lists(st.integers(0, 12), max_size=5),
    dies_at=st.sets(st.integers(-8, 8).filter(bool), max_size=4),
    labelled=st.booleans(),
    waits=st.booleans(),
)
async def test_a_run_that_dies_anywhere_does_everything_once_and_comes_to_the_same(
    plan: Plan, lives: list[int], dies_at: set[int], labelled: bool, waits: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        calm = await _undisturbed(plan, folder, labelled=labelled)
        assert await _dying(plan, folder, lives, dies_at, labelled=labelled, waits=waits) == calm


MOST_POINTS = 60
EVERYTHING = """
a = peek('left')
poke('left', a + 1)
for n in [1, 2, 3]:
    b = peek('right')
    poke('right', n + b)
    if b >= 1:
        poke('more', double(n))
answer([a, b, peek('right')])
"""


@pytest.mark.parametrize(("labelled", "waits"), [(True, True), (True, False), (False, False)])
async def test_it_may_die_at_every_single_point(tmp_path: Path, labelled: bool, waits: bool) -> None:
    with closing(MortalJournal(tmp_path / "any.db")) as journal:
        plan = parse(EVERYTHING, MortalWorld(journal).registry).plan
    (tmp_path / "calm").mkdir()
    calm = await _undisturbed(plan, tmp_path / "calm", labelled=labelled)
    for point in range(MOST_POINTS):
        folder = tmp_path / str(point)
        folder.mkdir()
        told, deaths = await _deaths(plan, folder, [point], set(), labelled=labelled, waits=waits)
        assert told == calm, point
        if not deaths:
            # With so many lives, or more, it comes to its end.
            break
    else:
        raise AssertionError("it dies at more points than are tried")
    for effect in range(1, 8):
        for when in (-effect, effect):
            folder = tmp_path / f"effect{when}"
            folder.mkdir()
            assert await _dying(plan, folder, [], {when}, labelled=labelled, waits=waits) == calm
