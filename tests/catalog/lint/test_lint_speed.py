"""A linter that is run on every commit has to be quick."""

from __future__ import annotations

import random
import time
from typing import Any

from bicameral.catalog import IDS, catalog
from bicameral.catalog.lint import lint, rules
from bicameral.catalog.stacks import FACTS, stack_of

STACKS = 200
SECONDS = 1.0


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
    began = time.thread_time()
    found = sum(len(lint(stack).findings) for stack in stacks)
    taken = time.thread_time() - began
    assert found > STACKS
    assert taken < SECONDS, f"{taken:.2f} s"
