"""In which order to build what was chosen: what others need comes first, then by stages that have proved themselves."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from ..facts import IDS
from ._flows import Rulebook

_FIRST = ("V9", "V14")
"""Whatever is built has a bound and a record from the first day on."""


def adoption_order(chosen: Iterable[str], book: Rulebook) -> tuple[tuple[str, ...], ...]:
    """The patterns in stages: those of one stage can be built at the same time."""
    have = [id for id in IDS if id in frozenset(chosen)]
    before: dict[str, set[str]] = {id: set() for id in have}
    for id in have:
        if id not in _FIRST:
            needed = {each for need in book.hard(id) for each in need.all_of}
            before[id] = {each for each in (*needed, *_FIRST) if each in before and each != id}
    for order in book.sequences:
        stages = [[id for id in stage if id in before] for stage in order.stages]
        filled = [stage for stage in stages if stage]
        for earlier, later in pairwise(filled):
            for id in later:
                for other in earlier:
                    _put_before(before, id, other)
    return _stages(before, have)


def _put_before(before: dict[str, set[str]], id: str, other: str) -> None:
    """A stage is advice: where a need says the opposite, the need wins."""
    if id == other or id in _FIRST:
        return
    before[id].add(other)
    try:
        TopologicalSorter(before).prepare()
    except CycleError:
        before[id].discard(other)


def _stages(before: dict[str, set[str]], have: list[str]) -> tuple[tuple[str, ...], ...]:
    sorter = TopologicalSorter(before)
    sorter.prepare()
    found: list[tuple[str, ...]] = []
    while sorter.is_active():
        ready = sorter.get_ready()
        found.append(tuple(sorted(ready, key=have.index)))
        sorter.done(*ready)
    return tuple(found)
