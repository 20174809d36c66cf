"""The choice: by the rules of the flows, with what the chosen need, without what excludes each other; no more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ..facts import Requirement
from ._conditions import Verdict, judged
from ._facts import Facts
from ._flows import Exclusion, Flow, Rule, Rulebook, met


@dataclass(frozen=True, slots=True)
class Choice:
    """A pattern that was chosen: by which rule, why, and which facts decided."""

    pattern: str
    rule: str
    why: str
    by: tuple[str, ...] = ()
    """What the rule rests on: laws, decisions, conflicts, cache rules."""
    facts: tuple[tuple[str, Any], ...] = ()
    needed_by: tuple[str, ...] = ()
    """The patterns that cannot do without it."""
    one_of: bool = False
    """Whether another pattern would have done as well."""


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A pattern that was looked at and not taken, and what decided that."""

    pattern: str
    rule: str
    why: str
    facts: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Undecided:
    """A rule that cannot be judged, or could still turn out otherwise: which facts are missing."""

    rule: Rule
    missing: tuple[str, ...]
    taken: bool
    """Whether its patterns are chosen as long as nobody says otherwise."""


@dataclass(slots=True)
class Draft:
    """What was chosen so far, and all that was noted on the way."""

    choices: dict[str, Choice] = field(default_factory=dict[str, Choice])
    ruled_out: dict[str, RuledOut] = field(default_factory=dict[str, RuledOut])
    undecided: list[Undecided] = field(default_factory=list[Undecided])

    @property
    def patterns(self) -> frozenset[str]:
        return frozenset(self.choices)


def choose(facts: Facts, book: Rulebook) -> Draft:
    """The smallest set of patterns that breaks no rule, with how it came about."""
    banned: dict[str, RuledOut] = {}
    while True:
        draft = _with_needs(_by_flows(facts, book, banned), book)
        clash = _clash(draft, book)
        if clash is None:
            _prune(draft, facts, book)
            draft.ruled_out |= banned
            for pattern in draft.choices:
                draft.ruled_out.pop(pattern, None)
            return draft
        banned[clash.pattern] = clash


def broken(patterns: Iterable[str], facts: Facts, book: Rulebook) -> list[str]:
    """The ids of all rules, needs and exclusions that a set of patterns breaks; none for what the advisor chose."""
    have = frozenset(patterns)
    found = [
        rule.id for flow in book.flows for rule in _holding(flow, facts, have, book) if not have.issuperset(rule.then)
    ]
    found += [need.id for id in sorted(have) for need in book.hard(id) if not met(need, have)]
    found += [each.id for each in book.exclusions if have.issuperset(each.patterns)]
    return list(dict.fromkeys(found))


def _holding(flow: Flow, facts: Facts, chosen: frozenset[str], book: Rulebook) -> list[Rule]:
    """The rules of a flow that ask for something, of the first kind at most one; not for what something excludes."""
    found = [
        rule
        for rule in flow.rules
        if judged(rule.condition, facts, chosen).holds and not _excludes(chosen, frozenset(rule.then), book)
    ]
    return found[:1] if flow.take == "first" else found


def _excludes(chosen: frozenset[str], more: frozenset[str], book: Rulebook) -> bool:
    return any(
        each <= chosen | more and not each <= chosen for each in (frozenset(one.patterns) for one in book.exclusions)
    )


def _by_flows(facts: Facts, book: Rulebook, banned: dict[str, RuledOut]) -> Draft:
    draft = Draft()
    for flow in book.flows:
        if flow.id == "base":
            _with_needs(draft, book)
        _follow(flow, facts, draft, banned)
    return draft


def _follow(flow: Flow, facts: Facts, draft: Draft, banned: dict[str, RuledOut]) -> None:
    taken: Rule | None = None
    for rule in flow.rules:
        if taken is not None and flow.take == "first":
            for pattern in rule.then:
                why = f"{' and '.join(taken.then)} {'do' if len(taken.then) > 1 else 'does'} it: {taken.why}"
                draft.ruled_out.setdefault(pattern, RuledOut(pattern, taken.id, why))
            continue
        verdict = judged(rule.condition, facts, draft.patterns)
        if verdict.holds and not any(pattern in banned for pattern in rule.then):
            taken = rule
            _take(rule, verdict, facts, draft)
        elif verdict.holds is False:
            _rule_out(rule, verdict, facts, draft)
        if verdict.missing:
            draft.undecided.append(Undecided(rule, verdict.missing, bool(verdict.holds)))


def _take(rule: Rule, verdict: Verdict, facts: Facts, draft: Draft) -> None:
    for pattern in rule.then:
        draft.choices.setdefault(pattern, Choice(pattern, rule.id, rule.why, rule.by, _values(verdict.by, facts)))


def _rule_out(rule: Rule, verdict: Verdict, facts: Facts, draft: Draft) -> None:
    if not verdict.by:
        return
    decided = _values(verdict.by, facts)
    for pattern in rule.then:
        said = f"it would be for: {rule.why}"
        draft.ruled_out.setdefault(pattern, RuledOut(pattern, rule.id, said, decided))


def _values(names: Iterable[str], facts: Facts) -> tuple[tuple[str, Any], ...]:
    return tuple((name, facts.value(name)) for name in names)


def _with_needs(draft: Draft, book: Rulebook) -> Draft:
    """What the chosen cannot do without: first what there is no choice about, then one of several, the smallest."""
    while True:
        wanting = [(id, need) for id in draft.choices for need in book.hard(id) if not met(need, draft.patterns)]
        if not wanting:
            return draft
        sure = [(id, need) for id, need in wanting if not draft.patterns.issuperset(need.all_of)]
        for id, need in sure or wanting[:1]:
            wanted = need.all_of if sure else (_smallest(need, draft, book),)
            for pattern in wanted:
                draft.choices.setdefault(pattern, Choice(pattern, need.id, need.why, needed_by=(id,), one_of=not sure))


def _smallest(need: Requirement, draft: Draft, book: Rulebook) -> str:
    """The one that brings least with it; of equals, the one named first."""

    def brings(pattern: str) -> int:
        wanted, found = [pattern], set(draft.patterns)
        while wanted:
            each = wanted.pop()
            if each not in found:
                found.add(each)
                wanted += [more for further in book.hard(each) for more in further.all_of]
        return len(found)

    return min(need.any_of, key=brings)


def _clash(draft: Draft, book: Rulebook) -> RuledOut | None:
    """Of two that exclude each other, the one that goes: not the one that others need, else the one chosen later."""
    for exclusion in book.exclusions:
        if draft.patterns.issuperset(exclusion.patterns):
            order = list(draft.choices)
            needed = {need for id in draft.choices for each in book.hard(id) for need in each.all_of}
            goes = max(exclusion.patterns, key=lambda id: (id not in needed, order.index(id)))
            return _excluded(goes, exclusion)
    return None


def _excluded(pattern: str, exclusion: Exclusion) -> RuledOut:
    others = ", ".join(id for id in exclusion.patterns if id != pattern)
    return RuledOut(pattern, exclusion.id, f"it does not go with {others}: {exclusion.why}")


def _prune(draft: Draft, facts: Facts, book: Rulebook) -> None:
    """Drop what was one of several and is not needed any more, since another of them came in later."""
    for pattern in reversed([id for id, choice in draft.choices.items() if choice.one_of]):
        if not broken(draft.patterns - {pattern}, facts, book):
            del draft.choices[pattern]
    for pattern, choice in draft.choices.items():
        users = tuple(id for id in draft.choices if any(pattern in need.all_of for need in book.hard(id)))
        draft.choices[pattern] = replace(choice, needed_by=choice.needed_by or users)
