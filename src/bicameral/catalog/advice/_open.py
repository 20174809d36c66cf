"""What is not known yet, and which question is worth asking next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ._choosing import Undecided
from ._conditions import judged, tests_of
from ._facts import Facts, Question, questions


@dataclass(frozen=True, slots=True)
class Change:
    """What an answer could change: patterns that would come, or go, if the fact were so, and by which rule."""

    test: str
    patterns: tuple[str, ...]
    rule: str
    also: tuple[str, ...] = ()
    """Other facts that have to be known before it is decided."""
    goes: bool = False

    def __str__(self) -> str:
        what = f"{'without' if self.goes else 'with'} {', '.join(self.patterns)}"
        return f"{self.test}: {what}" + (f", by {' and '.join(self.also)} too" if self.also else "")


@dataclass(frozen=True, slots=True)
class Open:
    """A fact that is not known, how it is asked for, and what would change if it were."""

    question: Question
    changes: tuple[Change, ...]
    first: bool = True
    """Whether a rule waits for just this; otherwise something else has to be known before."""

    @property
    def fact(self) -> str:
        return self.question.id

    @property
    def safety(self) -> bool:
        """Whether the advice is not settled without it."""
        return self.question.safety and self.first

    def to_json(self) -> dict[str, Any]:
        return {
            "fact": self.fact,
            "ask": self.question.ask,
            "why": self.question.why,
            "wanted": self.question.wanted,
            "safety": self.safety,
            "first": self.first,
            "changes": [
                {"test": each.test, "patterns": list(each.patterns), "rule": each.rule, "also": list(each.also)}
                | ({"goes": True} if each.goes else {})
                for each in self.changes
            ],
        }


def open_questions(undecided: Iterable[Undecided], facts: Facts, chosen: frozenset[str]) -> tuple[Open, ...]:
    """The facts that could change something, best first.

    Before all others come those that a rule asks for first, since the rest of it matters only then; of these the ones
    that bear on safety, then those that decide most and need least besides.
    """
    changes: dict[str, list[Change]] = {}
    weights: dict[str, float] = {}
    first: set[str] = set()
    for each in undecided:
        affected = _affected(each, chosen)
        for fact in each.missing if affected else ():
            also = () if each.taken else judged(each.rule.condition, facts, chosen, assumed=fact).missing
            said = " or ".join(str(test) for test in dict.fromkeys(tests_of(each.rule.condition, fact)))
            changes.setdefault(fact, []).append(Change(said, affected, each.rule.id, also, each.taken))
            weights[fact] = weights.get(fact, 0.0) + 1 / (1 + len(also))
        first.update(each.missing[:1] if affected else ())
    known = questions()
    order = {name: place for place, name in enumerate(known)}
    found = [Open(known[fact], tuple(told), fact in first) for fact, told in changes.items()]
    return tuple(
        sorted(found, key=lambda one: (not one.first, not one.question.safety, -weights[one.fact], order[one.fact]))
    )


def _affected(undecided: Undecided, chosen: frozenset[str]) -> tuple[str, ...]:
    """The patterns of the rule that are not there yet, or those that would go."""
    return tuple(id for id in undecided.rule.then if (id in chosen) == undecided.taken)
