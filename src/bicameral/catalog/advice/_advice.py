"""Advice: the smallest stack that is enough for what is known, and how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..costs import Estimate, Rates, estimate
from ..facts import Requirement, catalog
from ..stacks import Stack, stack_of
from ._choosing import Choice, Draft, RuledOut, broken, choose
from ._facts import Facts, facts_of
from ._flows import Rulebook, met, rulebook
from ._open import Open, open_questions
from ._order import adoption_order
from ._stack import description, stack_text


@dataclass(frozen=True)
class Advice:
    """What to build: each pattern with the rule that chose it, what was ruled out, what is open, in which order.

    `settled` is false while something is open that bears on safety: then the stack may lack a wall that it needs.
    """

    facts: Facts
    choices: Mapping[str, Choice]
    ruled_out: Mapping[str, RuledOut]
    open: tuple[Open, ...]
    order: tuple[tuple[str, ...], ...]
    wanted: tuple[Requirement, ...]
    """What the chosen patterns should have and do not: strong needs, which the linter warns of."""
    described: Mapping[str, Any] = field(repr=False)
    rates: Mapping[str, Rates] | None = field(default=None, repr=False)
    sizes: Mapping[str, float] | None = field(default=None, repr=False)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The ids of what was chosen, in the order in which to build it."""
        return tuple(id for stage in self.order for id in stage)

    @property
    def settled(self) -> bool:
        return not any(each.safety for each in self.open)

    @property
    def next_question(self) -> Open | None:
        """The question that is worth asking next."""
        return self.open[0] if self.open else None

    @cached_property
    def stack(self) -> Stack:
        """The stack, which the linter finds no error in."""
        return stack_of(self.described)

    @cached_property
    def estimate(self) -> Estimate:
        """What a run of it takes."""
        return estimate(self.stack, self.sizes, self.rates)

    @cached_property
    def over_budget(self) -> tuple[str, ...]:
        """Where the expected cost is above a budget, and what could be smaller."""
        usual = self.estimate.expected
        found: list[str] = []
        for name, value, budget in (
            ("seconds", usual.seconds, self.facts.latency_budget_s),
            ("money", usual.money, self.facts.money_budget),
        ):
            if value is not None and budget is not None and value > budget:
                found.append(f"{name}: {value:,.4g} expected, {budget:g} allowed{self._smaller(name)}")
        return tuple(found)

    def _smaller(self, name: str) -> str:
        """The pattern that takes most, and what the catalogue has below it."""
        by_pattern = {id: getattr(usual, name) or 0.0 for id, (usual, _) in self.estimate.by_pattern().items()}
        dearest = max(by_pattern, key=lambda id: by_pattern[id])
        smaller = [id for id in catalog().pattern(dearest).shrinks_to if id not in self.choices and id[0] == dearest[0]]
        return f"; {dearest} takes most" + (f", and {' or '.join(smaller)} would be smaller" if smaller else "")

    def yaml(self) -> str:
        """The stack as a file, with the rule beside each pattern."""
        return stack_text(self.described, self.choices)

    def to_json(self) -> dict[str, Any]:
        return {
            "facts": self.facts.to_json(),
            "patterns": list(self.patterns),
            "choices": [_choice_json(choice) for choice in self.choices.values()],
            "ruled_out": [
                {"pattern": out.pattern, "rule": out.rule, "why": out.why, "facts": dict(out.facts)}
                for out in self.ruled_out.values()
            ],
            "open": [each.to_json() for each in self.open],
            "settled": self.settled,
            "order": [list(stage) for stage in self.order],
            "wanted": [{"rule": need.id, "pattern": need.pattern, "why": need.why} for need in self.wanted],
            "stack": dict(self.described),
            "estimate": {"expected": self.estimate.expected.to_json(), "worst": self.estimate.worst.to_json()},
            "over_budget": list(self.over_budget),
        }


def _choice_json(choice: Choice) -> dict[str, Any]:
    return {
        "pattern": choice.pattern,
        "rule": choice.rule,
        "why": choice.why,
        "by": list(choice.by),
        "facts": dict(choice.facts),
        "needed_by": list(choice.needed_by),
    }


def advise(
    facts: Facts | Mapping[str, Any],
    *,
    name: str = "Advised stack",
    rates: Mapping[str, Rates] | None = None,
    sizes: Mapping[str, float] | None = None,
) -> Advice:
    """The smallest stack that is enough for what is known.

    Example:
        >>> advise({"tools": 4, "calls_independent": True}).patterns
        ('V9', 'V14', 'R5', 'I2')
    """
    known = facts if isinstance(facts, Facts) else facts_of(facts)
    book = rulebook()
    draft = choose(known, book)
    return Advice(
        known,
        draft.choices,
        draft.ruled_out,
        open_questions(draft.undecided, known, draft.patterns),
        adoption_order(draft.choices, book),
        _wanted(draft, book),
        description(name, draft.choices, known),
        rates,
        sizes,
    )


def broken_rules(patterns: Mapping[str, Any] | list[str] | frozenset[str], facts: Facts) -> list[str]:
    """The ids of the rules that a set of patterns breaks for these facts; none for what `advise` chose."""
    return broken(patterns, facts, rulebook())


def _wanted(draft: Draft, book: Rulebook) -> tuple[Requirement, ...]:
    strong = (need for need in book.needs if need.strength == "strong" and need.when is None)
    return tuple(
        need for need in strong if any(need.binds(id) for id in draft.choices) and not met(need, draft.patterns)
    )
