"""Grants: what a person allows for the rest of a run, besides the very calls that he approved.

A yes is one to exactly the calls that were shown. "Also every later call of this tool with this value in this run" is
a choice of its own: a question offers it where it would spare later questions, and it is off unless it is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bicameral.decisions import ArgumentFacts, CallFacts
from bicameral.journal import dumps
from bicameral.labels import PUBLIC, Label, Source, covers, join, join_all, shade_from_json
from bicameral.types import value_from_json, value_to_json

from ._note import shade_json


@dataclass(frozen=True, slots=True)
class Grant:
    """For the rest of one run, this value of this argument of this tool counts as the person's own.

    `ceiling` is the label of everything else in the call that was approved: a later call that is more untrusted, or
    more secret, than that one is asked about all the same. What the value leads to (a link, an address) is the
    person's own in other calls, too.
    """

    tool: str
    argument: str
    value: Any
    ceiling: Label

    def __str__(self) -> str:
        private = "" if self.ceiling.readers is PUBLIC else " (which carries private data)"
        return (
            f"every later call of {self.tool} with {self.argument} = {self.value!r}, until the end of this run, "
            f"if it is no more untrusted or secret than this call{private}; texts that name it may go out, too"
        )

    @property
    def key(self) -> tuple[str, str, str]:
        return self.tool, self.argument, dumps(value_to_json(self.value))

    def to_json(self) -> dict[str, Any]:
        return {
            "tool": self.tool,
            "argument": self.argument,
            "value": value_to_json(self.value),
            "ceiling": shade_json(self.ceiling),
            "scope": str(self),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Grant:
        """The grant that `to_json` wrote."""
        ceiling = shade_from_json(facts["ceiling"]).flat
        return cls(str(facts["tool"]), str(facts["argument"]), value_from_json(facts["value"]), ceiling)


class Grants:
    """What was granted in one run."""

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        self._ceilings: dict[tuple[str, str, str], list[Label]] = {}
        for grant in grants:
            self.add(grant)

    def add(self, grant: Grant) -> None:
        self._ceilings.setdefault(grant.key, []).append(grant.ceiling)

    def applied(self, facts: CallFacts, values: Mapping[str, Any]) -> tuple[CallFacts, tuple[str, ...]] | None:
        """The facts with what was granted trusted, and which arguments that are; None where nothing was."""
        if not self._ceilings:
            return None
        names = tuple(each.name for each in _strangers_directions(facts, values) if self._covers(facts, each, values))
        if not names:
            return None
        source = Source("user", "endorsed", "", facts.step)

        def trusting(argument: ArgumentFacts) -> ArgumentFacts:
            if argument.name not in names:
                return argument
            return replace(argument, label=Label({source}, argument.label.readers))

        return replace(facts, arguments=tuple(map(trusting, facts.arguments))), names

    def _covers(self, facts: CallFacts, argument: ArgumentFacts, values: Mapping[str, Any]) -> bool:
        now = grant_of(facts, argument, values)
        worst = now.ceiling
        if worst.readers is PUBLIC:
            # What is trusted and everybody may read makes no call worse, wherever it comes from.
            worst = Label(source for source in worst.sources if source.trust == "third_party")
        return any(covers(ceiling, worst) for ceiling in self._ceilings.get(now.key, ()))


def possible_grant(facts: CallFacts, values: Mapping[str, Any]) -> Grant | None:
    """What could be granted along with a yes to a call; whether it would spare a question is for policy to say.

    Only where one untrusted value directs the call: of several, none alone would do. Never for what cannot be undone:
    how often that is done must not be anybody else's choice.
    """
    directions = _strangers_directions(facts, values)
    if len(directions) != 1 or facts.effect == "irreversible":
        return None
    return grant_of(facts, directions[0], values)


def grant_of(facts: CallFacts, argument: ArgumentFacts, values: Mapping[str, Any]) -> Grant:
    """The grant of one argument's value, with the call as its ceiling."""
    others = join_all(each.label for each in facts.arguments if each.name != argument.name)
    return Grant(facts.tool, argument.name, values[argument.name], join(facts.pc, others))


def _strangers_directions(facts: CallFacts, values: Mapping[str, Any]) -> list[ArgumentFacts]:
    return [each for each in facts.of("directs") if not each.trusted and each.name in values]
