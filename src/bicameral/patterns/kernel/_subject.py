"""Patterns and roles as subjects of an evaluation: a recorded run for each case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from bicameral.evaluation import Subject
from bicameral.labels import Labelled
from bicameral.limits import STRATEGY, LimitReached
from bicameral.patterns._outcome import Answered, Exhausted, Outcome
from bicameral.patterns.kernel._codec import fingerprint, to_record
from bicameral.patterns.kernel._context import Context
from bicameral.patterns.kernel._conversation import Role
from bicameral.patterns.kernel._pattern import Pattern
from bicameral.patterns.strategies import Runtime

T = TypeVar("T")
V = TypeVar("V")


def labelled_answer(outcome: Outcome[T]) -> Labelled[T]:
    """The answer of an outcome with its labels; the error, or the limit, of one that has none."""
    match outcome:
        case Answered():
            return outcome.labelled
        case Exhausted(bound=bound, spent=spent, limit=limit):
            raise LimitReached(STRATEGY, bound, spent, limit)
        case _:
            raise outcome.error


def pattern_subject(
    pattern: Pattern[..., T],
    runtime: Runtime,
    arguments: Callable[[Labelled[V]], tuple[Any, ...]] = lambda given: (given,),
) -> Subject[V, T]:
    """A pattern as a subject; `arguments` makes what it is given of the input of a case."""
    chambers = runtime.models.chambers
    facts = [to_record(pattern), chambers.privileged.name, chambers.quarantined.name]

    async def attempt(given: Labelled[V], seed: int) -> Labelled[T]:
        seeded = replace(runtime, models=replace(runtime.models, seed=seed))
        return labelled_answer(await pattern.run(seeded, *arguments(given)))

    return Subject(f"{pattern.id} {pattern.facts.name}", attempt, fingerprint(facts))


def role_subject(role: Role, runtime: Runtime) -> Subject[str, str]:
    """A role that is asked once as a subject."""
    return replace(pattern_subject(_PlainQuestion(role), runtime), name=f"role {role.name}")


@dataclass(frozen=True)
class _PlainQuestion(Pattern[[Labelled[str]], str]):
    """A role is asked, and its reply is the result."""

    id: ClassVar[str] = "S1"
    role: Role

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[str]:
        return await context.ask(self.role, task)
