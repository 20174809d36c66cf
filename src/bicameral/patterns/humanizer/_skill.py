"""A skill: what it says, where it comes from, how it fared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.labels import Label
from bicameral.retrieval import words

from ._endorsed import strangers_in

State = Literal["active", "quarantined", "failing"]
FAILS_AFTER = 3
"""A skill is given up once so many uses were counted and fewer than half of them succeeded."""
_SHORT_WORD = 3
_SEVERAL = ("preconditions", "parameters", "steps")


@dataclass(frozen=True, slots=True)
class SkillText:
    """What a skill says. It is text for whoever plans, and nothing in it runs."""

    name: str
    when: str
    preconditions: tuple[str, ...]
    parameters: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def words(self) -> frozenset[str]:
        """What it is about."""
        return content_words(" ".join((self.name, self.when, *self.steps)))

    @property
    def lines(self) -> tuple[str, ...]:
        return (*self.preconditions, *self.steps)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill, where it comes from and how it fared. Uses in runs that a stranger had a hand in are not counted."""

    id: str
    text: SkillText
    tools: tuple[str, ...]
    runs: tuple[str, ...]
    """The successes that it was made from."""
    topic: frozenset[str]
    """The words that the tasks of all of them had in common: what is a matter of one task is not among them."""
    label: Label
    learned: int
    reviewed: bool = False
    uses: int = 0
    successes: int = 0

    @property
    def words(self) -> frozenset[str]:
        """What it is found by."""
        return self.text.words | self.topic

    @property
    def state(self) -> State:
        if not self.label.trusted:
            return "quarantined"
        return "failing" if self.uses >= FAILS_AFTER and 2 * self.successes < self.uses else "active"

    @property
    def sources(self) -> tuple[str, ...]:
        """The strangers' texts that had a hand in it."""
        return strangers_in(self.label)

    @property
    def usefulness(self) -> float:
        """The share of successes, guarded: a half for one that was never used."""
        return (self.successes + 1) / (self.uses + 2)


Reviewer = Callable[[Skill], Awaitable[bool]]
"""A person who looks at a skill and at where it comes from. Nothing but True is a yes."""


def content_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about."""
    return frozenset(word for word in words(text) if len(word) > _SHORT_WORD)


def alike(left: frozenset[str], right: frozenset[str]) -> float:
    """How much two sets of words have in common, 0 to 1."""
    return len(left & right) / (len(left) * len(right)) ** 0.5 if left and right else 0.0


def text_to_json(text: SkillText) -> dict[str, Any]:
    several = {name: list(getattr(text, name)) for name in _SEVERAL}
    return {"name": text.name, "when": text.when, **several}


def text_from_json(written: Mapping[str, Any]) -> SkillText:
    """What `text_to_json` wrote; a ValueError for anything else."""
    if set(written) != {"name", "when", *_SEVERAL}:
        raise ValueError("it has other fields than a skill")
    found = SkillText(written["name"], written["when"], *(tuple(written[name]) for name in _SEVERAL))
    if any(type(each) is not str for each in (found.name, found.when, *found.lines, *found.parameters)):
        raise ValueError("a skill is made of texts")
    return found
