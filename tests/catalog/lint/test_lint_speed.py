"""A linter that is run on every commit has to be quick."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from bicameral.catalog import IDS, catalog
from bicameral.catalog.lint import lint, rules
from bicameral.catalog.stacks import FACTS, Stack, stack_of

STACKS = 200
SECONDS = 1.0
STEPS, STEPS_SECONDS = 4_000_000, 0.25
"""A loop that takes so long where the bar of a second was set: a busy or slow machine takes longer for both."""


def random_stack(chance: random.Random) -> dict[str, Any]:
    truths = [name for name, fact in FACTS.items() if fact.kind == "truth"]

    def member(most: int) -> dict[str, Any]:
        return {
            "patterns": chance.sample([*IDS], chance.randint(1, most)),
            "facts": {name: chance.random() < 0.5 for name in chance.sample(truths, 10)},
        }

    agents = {f"agent-{number}": member(10) for number in range(chance.randint(0, 3))}
    return {**member(8), "agents": agents}


def test_two_hundred_stacks_are_linted_in_a_second() -> None:
    chance = random.Random(7)
    stacks = [stack_of(random_stack(chance)) for _ in range(STACKS)]
    # Read once, whatever is linted.
    assert rules()
    assert catalog().patterns
    taken = min(_seconds(lambda: _lint_all(stacks)) / _seconds(_count) for _ in range(3)) * STEPS_SECONDS
    assert taken < SECONDS, f"{taken:.2f} s"


def _lint_all(stacks: Sequence[Stack]) -> None:
    assert sum(len(lint(stack).findings) for stack in stacks) > STACKS


def _count() -> None:
    assert sum(number & 1 for number in range(STEPS)) == STEPS // 2


def _seconds(work: Callable[[], None]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began
