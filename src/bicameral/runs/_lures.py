"""What could be followed in strangers' text that a call would carry out: links, addresses, accounts, numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any

from bicameral.boundary.shield import MARKED, lures_in
from bicameral.decisions import ArgumentFacts, CallFacts
from bicameral.plans import Plan

NOBODY_KNOWS = frozenset({MARKED})
"""Of a text that is not at hand the worst is assumed."""


class Lures:
    """What could be followed in the calls of one run of a plan, less what is the user's own.

    What stands in the plan is his, unless whoever wrote the plan had read what strangers wrote, and so is what he
    granted explicitly; a yes to a call is one to that call alone. `written` is what earlier runs left behind.
    """

    def __init__(self, plan: Plan | None, written: frozenset[str] = frozenset()) -> None:
        self._plan = plan
        self._written = written
        self._endorsed: frozenset[str] = frozenset()

    def of(self, facts: CallFacts, values: Mapping[str, Any]) -> frozenset[str]:
        """Everything to follow in what a call carries out of strangers' texts."""
        if not facts.outbound:
            return frozenset()
        found: frozenset[str] = frozenset()
        for argument in _strangers_texts(facts):
            # What a named file holds is no argument of the call: it was written before.
            found |= lures_in(values[argument.name]) if argument.name in values else self._written
        return found - self._endorsed - self._own if found else found

    def keep(self, facts: CallFacts, values: Mapping[str, Any], *, fetched: bool = False) -> None:
        """Remember what is written: it may be sent from there. What a tool `fetched` itself is not at hand."""
        if fetched:
            self._written |= NOBODY_KNOWS
        if facts.effect != "write":
            return
        if not facts.of("carries"):
            # It copies from somewhere what it is not given.
            self._written |= NOBODY_KNOWS
        for argument in _strangers_texts(facts):
            self._written |= lures_in(values.get(argument.name))

    def endorse(self, value: object) -> None:
        """A person granted a value for the rest of the run: what it leads to is his own from now on."""
        self._endorsed |= lures_in(value) - NOBODY_KNOWS

    def copied(self) -> Lures:
        """The same, to be told of calls that may never be made."""
        return copy(self)

    @cached_property
    def _own(self) -> frozenset[str]:
        texts = () if self._plan is None else self._plan.model_dump(mode="json")["steps"]
        return lures_in(texts) - NOBODY_KNOWS


def _strangers_texts(facts: CallFacts) -> Iterator[ArgumentFacts]:
    return (each for each in facts.of("carries") if not (each.trusted or each.bounded))
