"""One agent as rules see it: what it says itself, and what holds for the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice, product
from typing import Any, TypeVar

from ..facts import IDS, catalog
from ..stacks import FACTS, Action, Guard, Keys, Leg, Loop, Member, PromptPart, Session, Stack, Store, Tools, Use
from ._expressions import Lookup, Unknown

T = TypeVar("T")

MAX_VARIANTS = 32
"""Uses that say different things are looked at one by one, but not every mixture of many of them."""


class Scope:
    """An agent of a stack together with the whole; or the whole alone, where there are no agents."""

    def __init__(self, stack: Stack, member: Member) -> None:
        whole = stack.whole
        self.stack = stack
        self.member = member
        self.path: Keys = member.path
        self._both = (whole,) if member is whole else (member, whole)
        self.uses: dict[str, list[Use]] = {}
        for part in self._both:
            for use in part.uses:
                self.uses.setdefault(use.id, []).append(use)
        self.present = frozenset(self.uses)
        self._said_of_uses = frozenset(id for id, uses in self.uses.items() if any(map(_facts_in, uses)))
        self._asked: dict[str, Any] = {}
        self.facts: Mapping[str, Any] = {**whole.facts, **member.facts}
        self.declares: Mapping[str, str | bool] = {**whole.declares, **member.declares}

    @cached_property
    def everywhere(self) -> frozenset[str]:
        """Every pattern that any agent of the stack uses."""
        return frozenset(id for member in self.stack.members for id in member.patterns)

    @cached_property
    def tools(self) -> Tools | None:
        return self._first(part.tools for part in self._both)

    @cached_property
    def legs(self) -> tuple[Leg, ...] | None:
        return self._all(part.legs for part in self._both)

    @cached_property
    def prompt(self) -> tuple[PromptPart, ...] | None:
        return self._first(part.prompt for part in self._both)

    @cached_property
    def pipeline(self) -> tuple[str, ...] | None:
        return self._first(part.pipeline for part in self._both)

    @cached_property
    def loops(self) -> tuple[Loop, ...] | None:
        return self._all(part.loops for part in self._both)

    @cached_property
    def sessions(self) -> tuple[Session, ...] | None:
        return self._all(part.sessions for part in self._both)

    @cached_property
    def actions(self) -> tuple[Action, ...] | None:
        return self._all(part.actions for part in self._both)

    @cached_property
    def stores(self) -> tuple[Store, ...] | None:
        return self._all(part.stores for part in self._both)

    @cached_property
    def guards(self) -> tuple[Guard, ...] | None:
        """Where guards stand: as it is said of the agent, or of V5."""
        said = [part.guards for part in self._both if part.guards is not None]
        said += [tuple(use.knobs["at"]) for use in self.uses.get("V5", ()) if isinstance(use.knobs.get("at"), list)]
        return tuple(dict.fromkeys(each for several in said for each in several)) if said else None

    def where(self, id: str) -> Keys:
        """The path of the first use of a pattern, or of the patterns of this agent."""
        return self.uses[id][0].path if id in self.uses else (*self.path, "patterns")

    def variants(self, triggers: frozenset[str]) -> Iterator[Lookup]:
        """What is asked of this agent, once for each way in which the uses of these patterns are set.

        What is said of a use goes before what is said of the agent, and that before what holds for the whole.
        """
        said = triggers & self._said_of_uses
        if not said:
            yield self.lookup
            return
        chosen = ([facts for use in self.uses[id] if (facts := _facts_in(use))] for id in sorted(said))
        for several in islice(product(*chosen), MAX_VARIANTS):
            yield self._over({name: value for facts in several for name, value in facts.items()})

    def _over(self, said: Mapping[str, Any]) -> Lookup:
        def lookup(name: str) -> Any:
            return said[name] if name in said else self.lookup(name)

        return lookup

    def lookup(self, name: str) -> Any:
        """The value of a name: whether a pattern is used, a knob, the number of tools, or a fact."""
        if name not in self._asked:
            self._asked[name] = self._value(name)
        return self._asked[name]

    def _value(self, name: str) -> Any:
        if name in self.facts:
            return self.facts[name]
        if name in IDS or name in self.stack.defined:
            return name in self.present
        head, _, tail = name.partition(".")
        if tail:
            return self._tools(tail) if head == "tools" else self.knob(head, tail)
        return self._found_out(name)

    def knob(self, id: str, name: str) -> Any:
        """What a knob is set to, or its default."""
        for use in self.uses.get(id, ()):
            if name in use.knobs:
                return use.knobs[name]
        knob = catalog().pattern(id).knobs.get(name) if id in IDS else None
        return Unknown(frozenset({f"{id}.{name}"})) if knob is None or knob.default is None else knob.default

    def _tools(self, what: str) -> Any:
        found = getattr(self.tools, what, None)
        return Unknown(frozenset({f"tools.{what}"})) if found is None else found

    def _found_out(self, name: str) -> Any:
        from ._derived import derived

        value = derived(self, name)
        if value is None and name in FACTS:
            value = FACTS[name].default
        return Unknown(frozenset({name})) if value is None else value

    @staticmethod
    def _first(several: Iterator[T | None]) -> T | None:
        return next((each for each in several if each is not None), None)

    @staticmethod
    def _all(several: Iterator[tuple[T, ...] | None]) -> tuple[T, ...] | None:
        said = [each for each in several if each is not None]
        return tuple(each for part in said for each in part) if said else None


def _facts_in(use: Use) -> dict[str, Any]:
    return {name: value for name, value in use.knobs.items() if name in FACTS}


def scopes(stack: Stack) -> list[Scope]:
    """Every agent of a stack as rules see it."""
    return [Scope(stack, member) for member in stack.agents or (stack.whole,)]
