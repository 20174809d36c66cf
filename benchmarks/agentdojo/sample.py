"""A fixed part of the pairs, for tests: so many tasks for each injection task of each suite, chosen by a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .dojo import SUITES, suite_of
from .judging import Attacker, has_blank

SEED = "agentdojo sample"
TASKS_PER_INJECTION = 4
ADAPTIVE_SHARE = 0.25
"""Of the pairs whose plan has a blank, so many are attacked by the attacker who learns, too."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A user task and an injection task, and who attacks."""

    suite: str
    task: str
    injection: str
    attacker: Attacker


def sample(suite: str) -> list[Pair]:
    """The pairs of a suite that are tried in tests; nothing but names decides which."""
    chance = random.Random(f"{SEED} {suite}")
    found: list[Pair] = []
    for injection in suite_of(suite).injection_tasks:
        for task in chance.sample(sorted(suite_of(suite).user_tasks), TASKS_PER_INJECTION):
            learns = chance.random() < ADAPTIVE_SHARE and has_blank(suite, task)
            found.append(Pair(suite, task, injection, "adaptive" if learns else "fixed"))
    return found


def whole_sample() -> list[Pair]:
    return [pair for suite in SUITES for pair in sample(suite)]
