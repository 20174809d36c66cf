"""Selection of patterns: the rules of the flows, what the chosen patterns need, conflicts, build order, open questions.

The result is the smallest set that breaks no rule: what excludes each other is resolved, and an alternative that is no
longer needed is dropped. Patterns that others need are built first, then by stages; a stage is advice, and where a need
says the opposite, the need wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, Literal

from bicameral.catalog.advice._facts import (
    FactQuestion,
    TaskFacts,
    describe_tests,
    judge_condition,
    parse_fact_condition,
    questions,
)
from bicameral.catalog.facts import IDS, Requirement, catalog
from bicameral.catalog.facts._reader import DataPlace, load_rows, read_record
from bicameral.catalog.facts._records import json_fields
from bicameral.errors import nearest_name
from bicameral.expressions import Node


@dataclass(frozen=True, slots=True)
class AdviceRule:
    """If this is so, then these patterns: why, and which laws, decisions and conflicts it rests on."""

    id: str
    condition: Node
    then: tuple[str, ...]
    why: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleFlow:
    """Rules in an order: the first that is so, or each of them."""

    id: str
    take: Literal["first", "each"]
    rules: tuple[AdviceRule, ...]


@dataclass(frozen=True, slots=True)
class PatternDecision:
    """Two patterns between which one question decides."""

    id: str
    between: tuple[str, ...]
    fact: str
    rule: str


@dataclass(frozen=True, slots=True)
class AdoptionSequence:
    """Stages in which patterns are taken up, the earlier first."""

    id: str
    stages: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Patterns that are not used together on one task."""

    id: str
    patterns: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Rulebook:
    """Everything that the advisor goes by."""

    flows: tuple[RuleFlow, ...]
    decisions: Mapping[str, PatternDecision]
    sequences: tuple[AdoptionSequence, ...]
    needs: tuple[Requirement, ...]
    exclusions: tuple[Exclusion, ...]

    @cached_property
    def rules(self) -> Mapping[str, AdviceRule]:
        """Every rule by its id."""
        return {rule.id: rule for flow in self.flows for rule in flow.rules}

    def hard_needs(self, pattern: str) -> list[Requirement]:
        """What a pattern cannot do without, whatever the facts are; what hangs on a fact is a rule of the flows."""
        return [need for need in self.needs if need.strength == "hard" and need.when is None and need.binds(pattern)]


@cache
def rulebook() -> Rulebook:
    """The rules that come with the package."""
    flows: list[RuleFlow] = []
    decisions: dict[str, PatternDecision] = {}
    sequences: list[AdoptionSequence] = []
    for at in load_rows("flows.yaml"):
        if "rules" in at.value:
            written = read_record(_WrittenFlow, at)
            rules = (_read_rule(each, at.child("rules", number)) for number, each in enumerate(written.rules))
            flows.append(RuleFlow(written.id, written.take, tuple(rules)))
        elif "between" in at.value:
            found = read_record(PatternDecision, at)
            _check_known([found.fact], questions(), at, "fact")
            _check_known(found.between, IDS, at, "pattern")
            decisions[found.id] = found
        else:
            order = read_record(AdoptionSequence, at)
            _check_known([id for stage in order.stages for id in stage], IDS, at, "pattern")
            sequences.append(order)
    needs = tuple(catalog().requirements.values())
    return Rulebook(tuple(flows), decisions, tuple(sequences), needs, _exclusions())


def is_met(need: Requirement, chosen: frozenset[str]) -> bool:
    """Whether these patterns have what one of them needs."""
    return chosen.issuperset(need.all_of) and (not need.any_of or not chosen.isdisjoint(need.any_of))


@dataclass(frozen=True, slots=True)
class _WrittenRule:
    """A rule as it stands in the file."""

    id: str
    condition: str
    then: tuple[str, ...]
    why: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _WrittenFlow:
    id: str
    take: Literal["first", "each"]
    rules: tuple[_WrittenRule, ...]


def _read_rule(rule: _WrittenRule, at: DataPlace) -> AdviceRule:
    _check_known(rule.then, IDS, at.child("then"), "pattern")
    return AdviceRule(rule.id, parse_fact_condition(rule.condition, at.child("if")), rule.then, rule.why, rule.by)


def _check_known(names: Sequence[str], known: Mapping[str, Any], spot: DataPlace, what: str) -> None:
    for name in names:
        if name not in known:
            raise spot.error(f"there is no {what} {name!r}", nearest=nearest_name(name, known))


def _exclusions() -> tuple[Exclusion, ...]:
    """The conflicts that say of patterns that they must not be used together."""
    return tuple(
        Exclusion(conflict.id, tuple(check["all"]), conflict.why)
        for conflict in catalog().conflicts.values()
        for check in conflict.checks
        if check.get("kind") == "together"
    )


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
class RejectedPattern:
    """A pattern that was looked at and not taken, and what decided that."""

    pattern: str
    rule: str
    why: str
    facts: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class UndecidedRule:
    """A rule that cannot be judged, or could still turn out otherwise: which facts are missing."""

    rule: AdviceRule
    missing: tuple[str, ...]
    is_taken: bool
    """Whether its patterns are chosen as long as nobody says otherwise."""


@dataclass(slots=True)
class PatternSelection:
    """What was chosen so far, and all that was noted on the way."""

    choices: dict[str, Choice] = field(default_factory=dict[str, Choice])
    ruled_out: dict[str, RejectedPattern] = field(default_factory=dict[str, RejectedPattern])
    undecided: list[UndecidedRule] = field(default_factory=list[UndecidedRule])

    @property
    def patterns(self) -> frozenset[str]:
        return frozenset(self.choices)


def choose_patterns(facts: TaskFacts, book: Rulebook) -> PatternSelection:
    """The smallest set of patterns that breaks no rule, with how it came about."""
    banned: dict[str, RejectedPattern] = {}
    while True:
        draft = _add_needed_patterns(_apply_flows(facts, book, banned), book)
        clash = _first_conflict(draft, book)
        if clash is None:
            _prune_alternatives(draft, facts, book)
            draft.ruled_out |= banned
            for pattern in draft.choices:
                draft.ruled_out.pop(pattern, None)
            return draft
        banned[clash.pattern] = clash


def broken_rule_ids(patterns: Iterable[str], facts: TaskFacts, book: Rulebook) -> list[str]:
    """The ids of all rules, needs and exclusions that a set of patterns breaks; none for what the advisor chose."""
    have = frozenset(patterns)
    found = [
        rule.id
        for flow in book.flows
        for rule in _active_rules(flow, facts, have, book)
        if not have.issuperset(rule.then)
    ]
    found += [need.id for id in sorted(have) for need in book.hard_needs(id) if not is_met(need, have)]
    found += [each.id for each in book.exclusions if have.issuperset(each.patterns)]
    return list(dict.fromkeys(found))


def _active_rules(flow: RuleFlow, facts: TaskFacts, chosen: frozenset[str], book: Rulebook) -> list[AdviceRule]:
    """The rules of a flow that ask for something, of the first kind at most one; not for what something excludes."""
    found = [
        rule
        for rule in flow.rules
        if judge_condition(rule.condition, facts, chosen).holds
        and not _would_conflict(chosen, frozenset(rule.then), book)
    ]
    return found[:1] if flow.take == "first" else found


def _would_conflict(chosen: frozenset[str], more: frozenset[str], book: Rulebook) -> bool:
    return any(
        each <= chosen | more and not each <= chosen for each in (frozenset(one.patterns) for one in book.exclusions)
    )


def _apply_flows(facts: TaskFacts, book: Rulebook, banned: dict[str, RejectedPattern]) -> PatternSelection:
    draft = PatternSelection()
    for flow in book.flows:
        if flow.id == "base":
            _add_needed_patterns(draft, book)
        _apply_flow(flow, facts, draft, banned)
    return draft


def _apply_flow(flow: RuleFlow, facts: TaskFacts, draft: PatternSelection, banned: dict[str, RejectedPattern]) -> None:
    taken: AdviceRule | None = None
    for rule in flow.rules:
        if taken is not None and flow.take == "first":
            for pattern in rule.then:
                why = f"{' and '.join(taken.then)} {'do' if len(taken.then) > 1 else 'does'} it: {taken.why}"
                draft.ruled_out.setdefault(pattern, RejectedPattern(pattern, taken.id, why))
            continue
        verdict = judge_condition(rule.condition, facts, draft.patterns)
        decisive = tuple((name, facts.value(name)) for name in verdict.decided_by)
        if verdict.holds and not any(pattern in banned for pattern in rule.then):
            taken = rule
            for pattern in rule.then:
                draft.choices.setdefault(pattern, Choice(pattern, rule.id, rule.why, rule.by, decisive))
        elif verdict.holds is False and decisive:
            why = f"it would be for: {rule.why}"
            for pattern in rule.then:
                draft.ruled_out.setdefault(pattern, RejectedPattern(pattern, rule.id, why, decisive))
        if verdict.missing:
            draft.undecided.append(UndecidedRule(rule, verdict.missing, bool(verdict.holds)))


def _add_needed_patterns(draft: PatternSelection, book: Rulebook) -> PatternSelection:
    """What the chosen cannot do without: first what there is no choice about, then one of several, the smallest."""
    while True:
        wanting = [
            (id, need) for id in draft.choices for need in book.hard_needs(id) if not is_met(need, draft.patterns)
        ]
        if not wanting:
            return draft
        sure = [(id, need) for id, need in wanting if not draft.patterns.issuperset(need.all_of)]
        for id, need in sure or wanting[:1]:
            wanted = need.all_of if sure else (_smallest_alternative(need, draft, book),)
            for pattern in wanted:
                draft.choices.setdefault(pattern, Choice(pattern, need.id, need.why, needed_by=(id,), one_of=not sure))


def _smallest_alternative(need: Requirement, draft: PatternSelection, book: Rulebook) -> str:
    """The one that brings least with it; of equals, the one named first."""

    def brings(pattern: str) -> int:
        wanted, found = [pattern], set(draft.patterns)
        while wanted:
            each = wanted.pop()
            if each not in found:
                found.add(each)
                wanted += [more for further in book.hard_needs(each) for more in further.all_of]
        return len(found)

    return min(need.any_of, key=brings)


def _first_conflict(draft: PatternSelection, book: Rulebook) -> RejectedPattern | None:
    """Of two that exclude each other, the one that goes: not the one that others need, else the one chosen later."""
    for exclusion in book.exclusions:
        if draft.patterns.issuperset(exclusion.patterns):
            order = list(draft.choices)
            needed = {need for id in draft.choices for each in book.hard_needs(id) for need in each.all_of}
            goes = max(exclusion.patterns, key=lambda id: (id not in needed, order.index(id)))
            others = ", ".join(id for id in exclusion.patterns if id != goes)
            return RejectedPattern(goes, exclusion.id, f"it does not go with {others}: {exclusion.why}")
    return None


def _prune_alternatives(draft: PatternSelection, facts: TaskFacts, book: Rulebook) -> None:
    """Drop what was one of several and is not needed any more, since another of them came in later."""
    for pattern in reversed([id for id, choice in draft.choices.items() if choice.one_of]):
        if not broken_rule_ids(draft.patterns - {pattern}, facts, book):
            del draft.choices[pattern]
    for pattern, choice in draft.choices.items():
        users = tuple(id for id in draft.choices if any(pattern in need.all_of for need in book.hard_needs(id)))
        draft.choices[pattern] = replace(choice, needed_by=choice.needed_by or users)


_BUILT_FIRST = ("V9", "V14")
"""Whatever is built has a bound and a record from the first day on."""


def adoption_order(chosen: Iterable[str], book: Rulebook) -> tuple[tuple[str, ...], ...]:
    """The patterns in stages: those of one stage can be built at the same time."""
    have = [id for id in IDS if id in frozenset(chosen)]
    before: dict[str, set[str]] = {id: set() for id in have}
    for id in have:
        if id not in _BUILT_FIRST:
            needed = {each for need in book.hard_needs(id) for each in need.all_of}
            before[id] = {each for each in (*needed, *_BUILT_FIRST) if each in before and each != id}
    for order in book.sequences:
        stages = [[id for id in stage if id in before] for stage in order.stages]
        filled = [stage for stage in stages if stage]
        for earlier, later in pairwise(filled):
            for id in later:
                for other in earlier:
                    _add_order(before, id, other)
    return _build_stages(before, have)


def _add_order(before: dict[str, set[str]], id: str, other: str) -> None:
    """A stage is advice: where a need says the opposite, the need wins."""
    if id == other or id in _BUILT_FIRST:
        return
    before[id].add(other)
    try:
        TopologicalSorter(before).prepare()
    except CycleError:
        before[id].discard(other)


def _build_stages(before: dict[str, set[str]], have: list[str]) -> tuple[tuple[str, ...], ...]:
    sorter = TopologicalSorter(before)
    sorter.prepare()
    found: list[tuple[str, ...]] = []
    while sorter.is_active():
        ready = sorter.get_ready()
        found.append(tuple(sorted(ready, key=have.index)))
        sorter.done(*ready)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PatternChange:
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
class OpenQuestion:
    """A fact that is not known, how it is asked for, and what would change if it were."""

    question: FactQuestion
    changes: tuple[PatternChange, ...]
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
            "wanted": self.question.expected_input,
            "safety": self.safety,
            "first": self.first,
            "changes": [json_fields(each, *(() if each.goes else ("goes",))) for each in self.changes],
        }


def open_questions(
    undecided: Iterable[UndecidedRule], facts: TaskFacts, chosen: frozenset[str]
) -> tuple[OpenQuestion, ...]:
    """The facts that could change something, best first.

    Before all others come those that a rule asks for first, since the rest of it matters only then; of these the ones
    that bear on safety, then those that decide most and need least besides.
    """
    changes: dict[str, list[PatternChange]] = {}
    weights: dict[str, float] = {}
    first: set[str] = set()
    for each in undecided:
        affected = _affected_patterns(each, chosen)
        for fact in each.missing if affected else ():
            also = () if each.is_taken else judge_condition(each.rule.condition, facts, chosen, assumed=fact).missing
            said = describe_tests(each.rule.condition, fact)
            changes.setdefault(fact, []).append(PatternChange(said, affected, each.rule.id, also, each.is_taken))
            weights[fact] = weights.get(fact, 0.0) + 1 / (1 + len(also))
        first.update(each.missing[:1] if affected else ())
    known = questions()
    order = {name: place for place, name in enumerate(known)}
    found = [OpenQuestion(known[fact], tuple(told), fact in first) for fact, told in changes.items()]
    return tuple(
        sorted(found, key=lambda one: (not one.first, not one.question.safety, -weights[one.fact], order[one.fact]))
    )


def _affected_patterns(undecided: UndecidedRule, chosen: frozenset[str]) -> tuple[str, ...]:
    """The patterns of the rule that are not there yet, or those that would go."""
    return tuple(id for id in undecided.rule.then if (id in chosen) == undecided.is_taken)
