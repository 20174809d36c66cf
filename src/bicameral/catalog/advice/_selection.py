"""Selection of patterns: the rules of the flows, what the chosen patterns need, conflicts, build order, open questions.

The result is the smallest set that breaks no rule: conflicts are resolved, and an alternative that is no longer needed
is dropped. Patterns that others need are built first, then by stages; where a stage contradicts a requirement, the
requirement wins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
    """A condition with the patterns to use if it holds: why, and the laws, decisions and conflicts behind it."""

    id: str
    condition: Node
    then: tuple[str, ...]
    why: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleFlow:
    """Rules in order, of which the first that holds is taken, or each."""

    id: str
    take: Literal["first", "each"]
    rules: tuple[AdviceRule, ...]


@dataclass(frozen=True, slots=True)
class PatternDecision:
    """Two patterns and the fact that decides between them."""

    id: str
    between: tuple[str, ...]
    fact: str
    rule: str


@dataclass(frozen=True, slots=True)
class AdoptionSequence:
    """The stages in which patterns are adopted."""

    id: str
    stages: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Patterns that must not be used together for one task."""

    id: str
    patterns: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Rulebook:
    """All rules of the advisor."""

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
        """The unconditional hard requirements of a pattern; conditional ones are rules of the flows."""
        return [need for need in self.needs if need.strength == "hard" and need.when is None and need.binds(pattern)]


@cache
def rulebook() -> Rulebook:
    """The rules of the package."""
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
    """Whether these patterns meet a requirement."""
    return chosen.issuperset(need.all_of) and (not need.any_of or not chosen.isdisjoint(need.any_of))


@dataclass(frozen=True, slots=True)
class _WrittenRule:
    """A rule as it is in the file."""

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
    """The conflicts between patterns that must not be used together."""
    return tuple(
        Exclusion(conflict.id, tuple(check["all"]), conflict.why)
        for conflict in catalog().conflicts.values()
        for check in conflict.checks
        if check.get("kind") == "together"
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen pattern: by which rule, why, and which facts decided."""

    pattern: str
    rule: str
    why: str
    by: tuple[str, ...] = ()
    """The laws, decisions, conflicts and cache rules behind the rule."""
    facts: tuple[tuple[str, Any], ...] = ()
    needed_by: tuple[str, ...] = ()
    """The patterns that need it."""
    one_of: bool = False
    """Whether another pattern would meet the same requirement."""


@dataclass(frozen=True, slots=True)
class RejectedPattern:
    """A pattern that was considered and not chosen, and why."""

    pattern: str
    rule: str
    why: str
    facts: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class UndecidedRule:
    """A rule that is undecided, or could change: which facts are missing."""

    rule: AdviceRule
    missing: tuple[str, ...]
    is_taken: bool
    """Whether its patterns are chosen while the facts are missing."""


@dataclass(slots=True)
class PatternSelection:
    """The patterns chosen so far, those ruled out, and undecided rules."""

    choices: dict[str, Choice] = field(default_factory=dict[str, Choice])
    ruled_out: dict[str, RejectedPattern] = field(default_factory=dict[str, RejectedPattern])
    undecided: list[UndecidedRule] = field(default_factory=list[UndecidedRule])

    @property
    def patterns(self) -> frozenset[str]:
        return frozenset(self.choices)


def choose_patterns(facts: TaskFacts, book: Rulebook) -> PatternSelection:
    """The smallest set of patterns that breaks no rule, with the reasons."""
    banned: dict[str, RejectedPattern] = {}
    # Every round bans one more pattern (`_first_conflict` returns none that is banned), so the loop ends.
    while True:
        draft = _add_needed_patterns(_apply_flows(facts, book, banned), book, banned)
        clash = _first_conflict(draft, book, banned)
        if clash is None:
            _prune_alternatives(draft, facts, book)
            draft.ruled_out |= banned
            for pattern in draft.choices:
                draft.ruled_out.pop(pattern, None)
            return draft
        banned[clash.pattern] = clash


def broken_rule_ids(patterns: Iterable[str], facts: TaskFacts, book: Rulebook) -> list[str]:
    """The ids of all rules, requirements and conflicts that a set of patterns breaks; none for an advised one."""
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
    """The rules of a flow that hold and do not conflict with the chosen patterns; one at most if the first is taken."""
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
        # The base rules test whether anything was chosen, so the needed patterns must be there.
        if flow.id == "base":
            _add_needed_patterns(draft, book, banned)
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


def _add_needed_patterns(draft: PatternSelection, book: Rulebook, banned: Collection[str]) -> PatternSelection:
    """Add what the chosen patterns need: first what is required without a choice, then the smallest alternative."""
    while True:
        wanting = [
            (id, need) for id in draft.choices for need in book.hard_needs(id) if not is_met(need, draft.patterns)
        ]
        if not wanting:
            return draft
        sure = [(id, need) for id, need in wanting if not draft.patterns.issuperset(need.all_of)]
        for id, need in sure or wanting[:1]:
            wanted = need.all_of if sure else (_smallest_alternative(need, draft, book, banned),)
            for pattern in wanted:
                draft.choices.setdefault(pattern, Choice(pattern, need.id, need.why, needed_by=(id,), one_of=not sure))


def _smallest_alternative(need: Requirement, draft: PatternSelection, book: Rulebook, banned: Collection[str]) -> str:
    """The alternative that needs the fewest further patterns; of equals, the first. A banned one only if all are."""

    def brings(pattern: str) -> int:
        wanted, found = [pattern], set(draft.patterns)
        while wanted:
            each = wanted.pop()
            if each not in found:
                found.add(each)
                wanted += [more for further in book.hard_needs(each) for more in further.all_of]
        return len(found)

    return min(need.any_of, key=lambda pattern: (pattern in banned, brings(pattern)))


def _first_conflict(draft: PatternSelection, book: Rulebook, banned: Collection[str]) -> RejectedPattern | None:
    """Of conflicting patterns the one to drop: rather one that no other needs, else the one chosen later.

    One that is banned and there all the same is required without a choice: then another one has to go.
    """
    for exclusion in book.exclusions:
        if draft.patterns.issuperset(exclusion.patterns):
            order = list(draft.choices)
            needed = {need for id in draft.choices for each in book.hard_needs(id) for need in each.all_of}
            may_go = [id for id in exclusion.patterns if id not in banned]
            if not may_go:
                raise AssertionError(f"{exclusion.id}: all of its patterns are required by others")
            goes = max(may_go, key=lambda id: (id not in needed, order.index(id)))
            others = ", ".join(id for id in exclusion.patterns if id != goes)
            return RejectedPattern(goes, exclusion.id, f"it does not go with {others}: {exclusion.why}")
    return None


def _prune_alternatives(draft: PatternSelection, facts: TaskFacts, book: Rulebook) -> None:
    """Drop alternatives that are not needed any more because another one was chosen later."""
    for pattern in reversed([id for id, choice in draft.choices.items() if choice.one_of]):
        if not broken_rule_ids(draft.patterns - {pattern}, facts, book):
            del draft.choices[pattern]
    for pattern, choice in draft.choices.items():
        users = tuple(id for id in draft.choices if any(pattern in need.all_of for need in book.hard_needs(id)))
        draft.choices[pattern] = replace(choice, needed_by=choice.needed_by or users)


_BUILT_FIRST = ("V9", "V14")
"""Bounds and traces come before everything else."""


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
    """Order two patterns by their stages, unless a requirement says the opposite."""
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
    """What an answer could change: patterns that a rule would add or remove."""

    test: str
    patterns: tuple[str, ...]
    rule: str
    also: tuple[str, ...] = ()
    """Other facts that are needed to decide it."""
    goes: bool = False

    def __str__(self) -> str:
        what = f"{'without' if self.goes else 'with'} {', '.join(self.patterns)}"
        return f"{self.test}: {what}" + (f", by {' and '.join(self.also)} too" if self.also else "")


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """An unknown fact, the question for it, and what the answer could change."""

    question: FactQuestion
    changes: tuple[PatternChange, ...]
    first: bool = True
    """Whether a rule needs this fact first; otherwise another one must be known before."""

    @property
    def fact(self) -> str:
        return self.question.id

    @property
    def changes_text(self) -> str:
        """What an answer decides by itself, and what it could lead to together with other open facts."""
        direct = [
            f"{change.test.removeprefix(f'{self.fact} ')}: {'-' if change.goes else '+'} {', '.join(change.patterns)}"
            for change in self.changes
            if not change.also
        ]
        later = dict.fromkeys(id for change in self.changes if change.also for id in change.patterns)
        return "; ".join([*direct, *([f"could lead to {', '.join(later)}"] if later else [])])

    @property
    def safety(self) -> bool:
        """Whether the advice is unsettled without it."""
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
    """The unknown facts that could change the advice, the most useful first.

    Facts that a rule tests first come before all others, since its other facts matter only then; of these the ones of
    safety come first, then those that decide most rules with the fewest other unknown facts.
    """
    changes: dict[str, list[PatternChange]] = {}
    weights: dict[str, float] = {}
    first: set[str] = set()
    for each in undecided:
        affected = _affected_patterns(each, chosen)
        for fact in each.missing if affected else ():
            also = () if each.is_taken else judge_condition(each.rule.condition, facts, chosen, assumed=fact).missing
            test = describe_tests(each.rule.condition, fact)
            changes.setdefault(fact, []).append(PatternChange(test, affected, each.rule.id, also, each.is_taken))
            weights[fact] = weights.get(fact, 0.0) + 1 / (1 + len(also))
        first.update(each.missing[:1] if affected else ())
    known = questions()
    order = {name: place for place, name in enumerate(known)}
    found = [OpenQuestion(known[fact], tuple(each), fact in first) for fact, each in changes.items()]
    return tuple(
        sorted(found, key=lambda one: (not one.first, not one.question.safety, -weights[one.fact], order[one.fact]))
    )


def _affected_patterns(undecided: UndecidedRule, chosen: frozenset[str]) -> tuple[str, ...]:
    """The patterns of the rule that it would add, or that would go."""
    return tuple(id for id in undecided.rule.then if (id in chosen) == undecided.is_taken)
