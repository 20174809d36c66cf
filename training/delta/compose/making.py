"""What operations work with: a language, a domain and a source of choices; and what they make: results and drafts.

Plans keep to the planner's grammar: two comparisons a condition, one operator an expression, a call a line.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from .domains import Category, Domain, Language, Measure, Period
from .phrases import PHRASES, Topic
from .selections import Condition, Either, Is, pick_conditions, select_rows, without_number
from .wording import capitalise, tidy

Shape = Literal["number", "text", "lines", "rows"]


@dataclass(frozen=True, slots=True)
class Result:
    """Something that was worked out: the statements, the expression that holds it, and what it is called."""

    frame: str
    shape: Shape
    lines: tuple[str, ...]
    value: str
    topic: Topic
    several: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan, and what its sentences are made of.

    Args:
        frames: The groups of sentences that ask for it.
        topics: What the placeholders speak of, by their prefix.
        values: Placeholders besides those of the topics.
        result: The group whose noun phrase is `{result}` and `{nom}`.
        choices: Placeholders that each sentence fills in another way: the ways to ask one question.
        kept: Texts that the plan copies from the request, so that no slip may get into them.
        searched: Whether the plan follows a search for the whole request, which is given.
    """

    frames: tuple[str, ...]
    plan: tuple[str, ...]
    topics: Mapping[str, Topic]
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    result: str = ""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    kept: tuple[str, ...] = ()
    searched: bool = False


class Unfit(Exception):
    """The domain lacks a column that the operation needs."""


@dataclass(frozen=True, slots=True)
class Maker:
    """What an operation works with: a language, a domain, and a source of choices."""

    language: Language
    domain: Domain
    picks: random.Random

    # What the request speaks of -----------------------------------------------------------------------------------

    def topic(self, most: int = 2, least: int = 0, *, period: bool = True) -> Topic:
        """Rows of the domain under some conditions, and a number, a category and a source to speak of."""
        domain = self.domain if period else replace(self.domain, day=None)
        weights = {0: 3, 1: 5, 2: 4, 3: 1}
        counts = range(least, most + 1)
        count = self.picks.choices(counts, [weights[each] for each in counts])[0]
        conditions = pick_conditions(self.language, domain, count, self.picks)
        if len(conditions) < least:
            raise Unfit
        return Topic(
            self.domain,
            conditions,
            self.picks.choice(self.domain.measures) if self.domain.measures else None,
            self._category(conditions),
            self._source(),
        )

    def ranked_topic(self, most: int = 1) -> Topic:
        """A topic whose rows are ranked by its number: a condition on that number would change nothing."""
        topic = self.topic(most)
        return replace(topic, conditions=without_number(topic.conditions, topic.measure))

    def _category(self, conditions: tuple[Condition, ...]) -> Category | None:
        """A category that no condition fixes already."""
        fixed = [each.category for each in conditions if isinstance(each, Is | Either)]
        free = [each for each in self.domain.categories if each not in fixed]
        return self.picks.choice(free) if free else None

    def _source(self) -> str:
        drawn = self.picks.random()
        if drawn < 0.12:
            return self.language.texts["in_file"].replace("{file}", "<csv>")
        if drawn < 0.45 and self.domain.book is not None:
            return self.domain.book[1]
        return ""

    def period(self, *bounds: str, tense: str = "past") -> Period:
        found = [
            each
            for each in self.language.periods
            if each.bounds in (bounds or ("range",)) and each.tense in (tense, "any")
        ]
        return self.picks.choice(found)

    # Plans --------------------------------------------------------------------------------------------------------

    def read(self, topic: Topic) -> str:
        return f"rows = read_csv({self.table(topic)})"

    def table(self, topic: Topic) -> str:
        if "<csv>" in topic.source:
            return '"<csv>"'
        if topic.source and topic.domain.book is not None:
            return f'file("{topic.domain.book[0]}")'
        return f'file("{topic.domain.many}")'

    def rows(self, topic: Topic) -> tuple[list[str], str]:
        """Statements that read the table and pick its rows, and the variable with them."""
        lines, name = select_rows("rows", topic.conditions)
        return [self.read(topic), *lines], name

    def text(self, key: str, **values: str) -> str:
        """A text of the language, quoted for a plan; values in braces make it an f-string."""
        said = self.language.texts[key]
        for name, value in values.items():
            said = said.replace("{" + name + "}", value)
        return quoted(tidy(said, self.language.code))

    def title(self, frame: str, topic: Topic, value: str) -> str:
        """`The number of unpaid bills: {count}`, quoted."""
        words = PHRASES[self.language.code](topic, self.picks, neutral=True).words()
        said = self.language.frames[frame].nominative.format_map(words)
        return quoted(f"{capitalise(tidy(said, self.language.code))}: {{{value}}}")

    def subject(self) -> str:
        return quoted(capitalise(self.domain.many))

    def recipient(self) -> tuple[str, str]:
        """Whom a mail goes to: as said, and as it stands in the plan."""
        if self.picks.random() < 0.6:
            return "<person>", 'person("<person>")'
        return "<mail>", '"<mail>"'


def quoted(text: str) -> str:
    return f'f"{text}"' if "{" in text else f'"{text}"'


def fact_text(kind: str) -> str:
    """The variable `fact`, which was read as this type, as a text; the grammar takes `str` of numbers only."""
    match kind:
        case "str":
            return "fact"
        case "list[str]":
            return '"\\n".join(fact)'
        case "int" | "float":
            return "str(fact)"
        case _:
            return 'f"{fact}"'


def cells(column: str, rows: str) -> str:
    return f'[row[column("{column}")] for row in {rows}]'


def need_measure(topic: Topic) -> Measure:
    if topic.measure is None:
        raise Unfit
    return topic.measure


def need_sum(topic: Topic) -> Measure:
    """A number that it makes sense to add up: no rating, no age."""
    measure = need_measure(topic)
    if measure.kind == "rating":
        raise Unfit
    return measure


def need_category(topic: Topic) -> Category:
    if topic.category is None:
        raise Unfit
    return topic.category


def need_day(topic: Topic) -> str:
    if topic.domain.day is None:
        raise Unfit
    return topic.domain.day.column
