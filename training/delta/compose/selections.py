"""Which rows a request speaks of: conditions, and the statements of a plan that pick those rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .domains import Category, Day, Domain, Flag, Language, Measure, Period

Op = Literal[">", "<", ">="]


@dataclass(frozen=True, slots=True)
class Has:
    """A yes/no column is yes, or no."""

    flag: Flag
    wanted: bool


@dataclass(frozen=True, slots=True)
class Is:
    """A column has a value."""

    category: Category
    value: str


@dataclass(frozen=True, slots=True)
class Either:
    """A column has one of two values."""

    category: Category
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Compares:
    """A number is more than, less than or at least another one."""

    measure: Measure
    op: Op


@dataclass(frozen=True, slots=True)
class Within:
    """A day lies in a period."""

    day: Day
    period: Period


Condition = Has | Is | Either | Compares | Within
Comparison = tuple[str, str, str]
"""A column, an operator and a value, as they stand in a plan."""

# One comprehension takes two comparisons at most: the planner's grammar has no longer conditions.
_MOST = 2
_NAMES = ("chosen", "kept", "left", "rest", "last")


def comparisons(condition: Condition) -> list[Comparison]:
    """What a row must fulfil."""
    match condition:
        case Has(flag, wanted):
            return [(flag.column, "==", str(wanted))]
        case Is(category, value):
            return [(category.column, "==", f'value("{value}")')]
        case Either(category, first, second):
            return [(category.column, "==", f'value("{value}")') for value in (first, second)]
        case Compares(measure, op):
            return [(measure.column, op, measure.slot)]
        case Within(day, Period(phrase=phrase, bounds="range")):
            return [
                (day.column, ">=", f'date("<d.start:{phrase}>")'),
                (day.column, "<=", f'date("<d.end:{phrase}>")'),
            ]
        case Within(day, Period(phrase=phrase, bounds="since")):
            return [(day.column, ">=", f'date("<d.start:{phrase}>")')]
        case Within(day, Period(phrase=phrase, bounds="before")):
            return [(day.column, "<", f'date("<d.start:{phrase}>")')]
        case Within(day, period):
            return [(day.column, "==", f'date("<d:{period.phrase}>")')]


def as_test(comparison: Comparison) -> str:
    column, op, value = comparison
    return f'row[column("{column}")] {op} {value}'


def select_rows(rows: str, conditions: Sequence[Condition], names: Sequence[str] = _NAMES) -> tuple[list[str], str]:
    """Statements that pick the rows, and the variable that holds them; without conditions all rows are picked.

    The same conditions always give the same statements (`training.delta.canonical`).
    """
    groups: list[tuple[str, list[Comparison]]] = []
    for condition in conditions:
        found = comparisons(condition)
        word = " or " if isinstance(condition, Either) else " and "
        if groups and word == groups[-1][0] == " and " and len(groups[-1][1]) + len(found) <= _MOST:
            groups[-1][1].extend(found)
        else:
            groups.append((word, found))
    lines: list[str] = []
    for (word, group), name in zip(groups, names, strict=False):
        # Two comparisons are one statement; a single one is a call of the tool for it.
        if len(group) == 1:
            column, op, value = group[0]
            lines.append(f'{name} = filter_rows({rows}, column("{column}"), "{op}", {value})')
        else:
            lines.append(f"{name} = [row for row in {rows} if {word.join(map(as_test, group))}]")
        rows = name
    return lines, rows


def pick_conditions(language: Language, domain: Domain, count: int, picks: random.Random) -> tuple[Condition, ...]:
    """As many conditions on different columns as there are, up to `count`, in the order in which they are said."""
    made: list[Condition] = []
    if domain.flags:
        made.append(Has(picks.choice(domain.flags), picks.random() < 0.35))
    if domain.categories:
        category = picks.choice(domain.categories)
        first, second = picks.sample(category.values, 2)
        made.append(Is(category, first) if picks.random() < 0.8 else Either(category, first, second))
    if domain.measures:
        ops: tuple[Op, ...] = (">", ">", "<", ">=")
        made.append(Compares(picks.choice(domain.measures), picks.choice(ops)))
    if domain.day is not None:
        made.append(Within(domain.day, pick_period(language, domain.day, picks)))
    chosen = picks.sample(range(len(made)), min(count, len(made)))
    return tuple(made[number] for number in sorted(chosen))


def without_number(conditions: Sequence[Condition], measure: Measure | None) -> tuple[Condition, ...]:
    """The conditions without one on this number: the largest of those above 50 is the largest of all."""
    return tuple(each for each in conditions if not (isinstance(each, Compares) and each.measure == measure))


def pick_period(language: Language, day: Day, picks: random.Random) -> Period:
    """A period in which such days can lie: "due last month" is rare, and wrong with a verb in the present."""
    tenses = ("any", "past") if day.tense == "past" else ("any", "future")
    fitting = [each for each in language.periods if each.tense in tenses]
    return picks.choice(fitting)
