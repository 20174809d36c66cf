"""What requests are composed of: subjects of life with their tables, in the words and forms of one language.

A domain stores every form that a sentence needs (plural, dative plural, agreeing adjectives, relative clauses), so
nothing here derives morphology. `data/LANGUAGE.toml` holds the domains, the pairs of tables with a common column, the
facts that are looked up, and the effects that no tool has; `data/frames_LANGUAGE.toml` holds the sentences. Events,
mails and questions that name no place are in `data/errands_LANGUAGE.toml`, with sentences of their own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from .errands import Errands, errands_of

DATA = Path(__file__).parent / "data"
LANGUAGES = ("en", "de", "fr", "es")

Kind = Literal["money", "scalar", "rating", "unit", "few"]
Tense = Literal["past", "future", "any"]


@dataclass(frozen=True, slots=True)
class Name:
    """The column by which an item is called, its plural, its gender, and its accusative where that differs."""

    column: str
    plural: str
    gender: str = ""
    accusative: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of numbers: money, another scalar ("weight"), or units that are counted, in the plural ("pages").

    `rating` and `few` are a scalar and units with small numbers.
    """

    column: str
    kind: Kind
    gender: str = ""
    dative: str = ""

    @property
    def is_unit(self) -> bool:
        return self.kind in ("unit", "few")

    @property
    def slot(self) -> str:
        """The slot for a number that it is compared with; `<n>` and `<big>` are left to the operations."""
        return "<n2>" if self.kind in ("rating", "few") else "<big2>"


@dataclass(frozen=True, slots=True)
class Flag:
    """A yes/no column, the adjectives for both answers, and what stands in "which of them …" for both."""

    column: str
    yes: str
    no: str
    are: str
    are_not: str


@dataclass(frozen=True, slots=True)
class Category:
    """A column of words, the phrase behind a noun that picks one (`{v}`), and some of its values."""

    column: str
    gender: str
    phrase: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Day:
    """A column of days, and the phrase behind a noun that bounds it (`{p}`); `tense` says which periods make sense."""

    column: str
    gender: str
    phrase: str
    tense: Tense


@dataclass(frozen=True, slots=True)
class Domain:
    """A subject of life with a table.

    Args:
        one: The noun of a row; `gender` is its gender, `dative` the dative plural where it is not `many`.
        total: A whole question for the total of the first measure, with `{p}` where a period goes.
        todo: A whole question for the rows whose first flag is no, in everyday words.
        most: A whole question for the row with the largest first measure, in everyday words.
        book: Other words for the table, and the same with their preposition ("in the mileage log").
        contact: The column with the address of the person of a row.
    """

    key: str
    one: str
    many: str
    gender: str
    dative: str
    name: Name
    measures: tuple[Measure, ...]
    flags: tuple[Flag, ...]
    categories: tuple[Category, ...]
    day: Day | None
    total: str = ""
    todo: str = ""
    most: str = ""
    book: tuple[str, str] | None = None
    contact: str = ""

    def words(self) -> frozenset[str]:
        """Every text of the domain to which a reference may refer."""
        columns = [self.name.column, self.contact, *(each.column for each in (*self.measures, *self.flags))]
        columns += [each.column for each in self.categories] + ([self.day.column] if self.day else [])
        values = [value for each in self.categories for value in each.values]
        return frozenset(filter(None, [self.many, *(self.book or ())[:1], *columns, *values]))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tables with a common column: rows of the right table tell something about rows of the left one."""

    left: str
    right: str
    on: str
    name: str
    names: str
    measure: str
    of_measure: str
    category: str
    value: str


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that stands anywhere: key words, the noun phrase (nominative and accusative), and its type."""

    key: str
    nominative: str
    accusative: str
    type: str


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that no tool does: whole requests about some rows (`{np}`), and why it cannot be done."""

    key: str
    frames: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Period:
    """Words for a time: as they stand in a request, the part that names days, and how it bounds a day."""

    text: str
    phrase: str
    bounds: Literal["range", "since", "before", "day"]
    tense: Tense


@dataclass(frozen=True, slots=True)
class Frames:
    """The sentences of one operation: its result as a noun phrase, and ways to ask for it."""

    nominative: str
    accusative: str
    say: tuple[str, ...]
    sloppy: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Language:
    """Everything that is composed from in one language."""

    code: str
    domains: tuple[Domain, ...]
    pairs: tuple[Pair, ...]
    facts: tuple[Fact, ...]
    effects: tuple[Effect, ...]
    periods: tuple[Period, ...]
    two_periods: tuple[tuple[Period, Period], ...]
    frames: Mapping[str, Frames]
    texts: Mapping[str, str]
    casual: Mapping[str, str]
    rated: frozenset[str]
    """The units for which there are rates: hours, kilometres, nights."""
    errands: Errands


@cache
def load_language(code: str) -> Language:
    """The domains and sentences of a language.

    Raises:
        ValueError: The language is none of `LANGUAGES`.
    """
    if code not in LANGUAGES:
        raise ValueError(f"there is no language {code!r} to compose in; there are {', '.join(LANGUAGES)}")
    stored = _read(f"{code}.toml")
    said = _read(f"frames_{code}.toml")
    errands = _read(f"errands_{code}.toml")
    periods = tuple(_period(each) for each in said["periods"])
    known = {each.text: each for each in periods}
    return Language(
        code,
        tuple(_domain(key, each, gendered=code != "en") for key, each in stored["domain"].items()),
        tuple(Pair(*each) for each in stored["pairs"]),
        tuple(_fact(each) for each in stored["facts"]),
        tuple(Effect(key, tuple(each["frames"]), each["reason"]) for key, each in stored["effect"].items()),
        periods,
        tuple((known[first], known[second]) for first, second in said["two_periods"]),
        {key: _frames(each) for key, each in [*said["frame"].items(), *errands["frame"].items()]},
        {**said["texts"], **errands["texts"]},
        said["casual"],
        frozenset(said["rated"]),
        errands_of(errands),
    )


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((DATA / name).read_text("utf-8"))


def _domain(key: str, stored: Mapping[str, Any], *, gendered: bool) -> Domain:
    def column(parts: Sequence[Any], after: int) -> list[Any]:
        """The parts with an empty gender at its place in a language that has none."""
        return list(parts) if gendered else [*parts[:after], "", *parts[after:]]

    day = stored.get("day")
    book = stored.get("book")
    return Domain(
        key=key,
        one=stored["one"],
        many=stored["many"],
        gender=stored.get("g", ""),
        dative=stored.get("dat", stored["many"]),
        name=Name(*stored["name"]),
        measures=tuple(Measure(*each) for each in stored.get("measures", ())),
        flags=tuple(Flag(*each) for each in stored.get("flags", ())),
        categories=tuple(_category(column(each, 1)) for each in stored.get("cats", ())),
        day=None if day is None else Day(*column(day, 1)),
        total=stored.get("total", ""),
        todo=stored.get("todo", ""),
        most=stored.get("most", ""),
        book=None if book is None else (book[0], book[1]),
        contact=stored.get("contact", ""),
    )


def _category(parts: Sequence[Any]) -> Category:
    name, gender, phrase, values = parts
    return Category(name, gender, phrase, tuple(values))


def _fact(parts: Sequence[str]) -> Fact:
    """`[key, noun phrase, type]`, or with the accusative before the type where it differs."""
    return Fact(parts[0], parts[1], parts[2] if len(parts) == 4 else parts[1], parts[-1])


def _period(parts: Sequence[str]) -> Period:
    text, phrase, bounds, tense = parts
    return Period(text, phrase, cast("Any", bounds), cast("Any", tense))


def _frames(stored: Mapping[str, Any]) -> Frames:
    nominative = stored.get("result", "")
    return Frames(nominative, stored.get("acc", nominative), tuple(stored.get("say", ())), tuple(stored["sloppy"]))
