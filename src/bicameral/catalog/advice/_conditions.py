"""Conditions over facts, as data: true, false, or not known, and which facts decided or are missing.

A mapping is so if all of it is. What is not known is neither so nor not so, and is told by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from bicameral.errors import nearest

from ..facts import IDS
from ..facts._reading import Spot
from ._facts import DERIVED, Facts, questions

Operator = Literal["is", "below", "at_most", "at_least", "above", "empty"]
_COMPARE: tuple[Operator, ...] = ("below", "at_most", "at_least", "above", "empty")
_WORDS = {"is": "", "below": "below ", "at_most": "at most ", "at_least": "at least ", "above": "above "}


@dataclass(frozen=True, slots=True)
class Test:
    """One fact against one value."""

    fact: str
    operator: Operator
    value: Any

    def __str__(self) -> str:
        if self.operator == "empty":
            return f"{self.fact} {'none' if self.value else 'some'}"
        shown = {True: "yes", False: "no"}.get(self.value, self.value) if isinstance(self.value, bool) else self.value
        return f"{self.fact} {_WORDS[self.operator]}{shown}"


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition


@dataclass(frozen=True, slots=True)
class Unless:
    """Not so as far as is known: what is open does not stand in the way."""

    part: Condition


@dataclass(frozen=True, slots=True)
class Chosen:
    """Whether patterns were chosen so far: all of these, or one of them."""

    patterns: tuple[str, ...]
    every: bool = True


@dataclass(frozen=True, slots=True)
class NothingOf:
    """Whether nothing was chosen of these categories, which are told by their letters."""

    letters: tuple[str, ...]


Condition: TypeAlias = Test | Every | Some | Not | Unless | Chosen | NothingOf


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a condition holds (None: not known), by which facts, and which that are missing could still change it."""

    holds: bool | None
    by: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def parse_condition(given: Any, spot: Spot) -> Condition:
    """A condition from a file; every fact, pattern and word in it exists."""
    if not isinstance(given, Mapping):
        raise spot.wrong(f"{given!r} is no condition", expected="a mapping of facts")
    return Every(tuple(_part(key, value, spot.at(str(key))) for key, value in cast("Mapping[Any, Any]", given).items()))


def _part(key: str, value: Any, spot: Spot) -> Condition:
    match key:
        case "any":
            return Some(tuple(parse_condition(each, spot) for each in value))
        case "not":
            return Not(parse_condition(value, spot))
        case "unless":
            return Unless(parse_condition(value, spot))
        case "chosen" | "any_chosen":
            return Chosen(_ids(value, spot), every=key == "chosen")
        case "nothing_of":
            return NothingOf(tuple(value))
        case _:
            return _test(key, value, spot)


def _test(fact: str, value: Any, spot: Spot) -> Condition:
    if fact not in questions() and fact not in DERIVED:
        raise spot.wrong(f"there is no fact {fact!r}", nearest=nearest(fact, questions()))
    if not isinstance(value, Mapping):
        return Test(fact, "is", value)
    pairs = cast("Mapping[str, Any]", value).items()
    for operator, _ in pairs:
        if operator not in _COMPARE:
            raise spot.wrong(f"there is no {operator!r}", expected=", ".join(_COMPARE))
    tests = tuple(Test(fact, cast("Operator", operator), bound) for operator, bound in pairs)
    return tests[0] if len(tests) == 1 else Every(tests)


def _ids(value: Any, spot: Spot) -> tuple[str, ...]:
    for id in value:
        if id not in IDS:
            raise spot.wrong(f"there is no pattern {id!r}", nearest=nearest(str(id), IDS))
    return tuple(value)


def judged(condition: Condition, facts: Facts, chosen: Iterable[str], assumed: str | None = None) -> Verdict:
    """Whether a condition holds for these facts and what was chosen so far; tests of an `assumed` fact are so."""
    have = frozenset(chosen)
    match condition:
        case Test(fact=fact) if assumed is not None and assumed in DERIVED.get(fact, (fact,)):
            return Verdict(True, by=(assumed,))
        case Test():
            return _tested(condition, facts)
        case Every(parts=parts):
            return _every([judged(part, facts, have, assumed) for part in parts])
        case Some(parts=parts):
            return _reversed(_every([_reversed(judged(part, facts, have, assumed)) for part in parts]))
        case Not(part=part):
            return _reversed(judged(part, facts, have, assumed))
        case Unless(part=part):
            found = judged(part, facts, have)
            return Verdict(True, missing=found.missing) if found.holds is None else _reversed(found)
        case Chosen(patterns=patterns, every=every):
            return Verdict(have.issuperset(patterns) if every else bool(have.intersection(patterns)))
        case NothingOf(letters=letters):
            return Verdict(not any(id[0] in letters for id in have))


def facts_in(condition: Condition) -> frozenset[str]:
    """The facts that a condition speaks of."""
    match condition:
        case Test(fact=fact):
            return frozenset(DERIVED.get(fact, (fact,)))
        case Every(parts=parts) | Some(parts=parts):
            return frozenset[str]().union(*(facts_in(part) for part in parts))
        case Not(part=part) | Unless(part=part):
            return facts_in(part)
        case Chosen() | NothingOf():
            return frozenset()


def tests_of(condition: Condition, fact: str) -> tuple[Test, ...]:
    """The tests of one fact in a condition."""
    match condition:
        case Test():
            return (condition,) if fact in DERIVED.get(condition.fact, (condition.fact,)) else ()
        case Every(parts=parts) | Some(parts=parts):
            return tuple(test for part in parts for test in tests_of(part, fact))
        case Not(part=part) | Unless(part=part):
            return tests_of(part, fact)
        case Chosen() | NothingOf():
            return ()


def _tested(test: Test, facts: Facts) -> Verdict:
    value = facts.value(test.fact)
    if isinstance(test.value, bool) and isinstance(value, str):
        # Where something is written says that it is.
        value = bool(value)
    names = DERIVED.get(test.fact, (test.fact,))
    if value is None:
        return Verdict(None, missing=tuple(name for name in names if facts.value(name) is None))
    match test.operator:
        case "is":
            holds = value == test.value
        case "below":
            holds = value < test.value
        case "at_most":
            holds = value <= test.value
        case "at_least":
            holds = value >= test.value
        case "above":
            holds = value > test.value
        case "empty":
            holds = (not value) == test.value
    return Verdict(bool(holds), by=names)


def _every(found: list[Verdict]) -> Verdict:
    """One that is not so decides; else one that is open leaves it open; else all are so."""
    false = [each for each in found if each.holds is False]
    if false:
        return Verdict(False, by=_names(each.by for each in false))
    open_ = [each for each in found if each.holds is None]
    if open_:
        return Verdict(None, missing=_names(each.missing for each in open_))
    return Verdict(True, _names(each.by for each in found), _names(each.missing for each in found))


def _reversed(verdict: Verdict) -> Verdict:
    return verdict if verdict.holds is None else Verdict(not verdict.holds, verdict.by, verdict.missing)


def _names(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))
