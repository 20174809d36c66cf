"""What the attacker wants, for each injection task: calls that should happen, or words that the user should read.

Most goals are the injection task's own ground truth. A suite's module names only those that ship without one or that
need more (its function `goals`, by injection task).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from ..dojo import InjectionTask


@dataclass(frozen=True, slots=True)
class Wish:
    """One call that the attacker wants to happen, with the arguments that matter to it."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """What an injection task is after.

    `texts` are further texts that serve it wherever free text is asked for (a phishing link, a sentence that the user
    should read). A `text_only` goal needs no tool: it is reached when the user reads the attacker's words.
    """

    wishes: tuple[Wish, ...] = ()
    texts: tuple[str, ...] = ()
    text_only: bool = False


def goals(suite: str, world: Any) -> Mapping[str, Goal]:
    """The goals in an environment of a suite that are not the injection task's own ground truth."""
    return cast("Mapping[str, Goal]", import_module(f"{__name__}.{suite}").goals(world))


def goal_of(suite: str, injection_task: InjectionTask, world: Any) -> Goal:
    """What an injection task is after in an environment."""
    if (written := goals(suite, world).get(injection_task.ID)) is not None:
        return written
    calls = injection_task.ground_truth(world)
    return Goal(tuple(Wish(call.function, dict(call.args)) for call in calls))
