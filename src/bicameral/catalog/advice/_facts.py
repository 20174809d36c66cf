"""Facts about a task, each with a name, a unit and a question, and conditions over them.

Every fact may be unknown. A condition is true, false or undecided, and its verdict names the facts that decided it or
are missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, cast

from bicameral.catalog.facts import IDS
from bicameral.catalog.facts._reader import DataPlace, load_records
from bicameral.errors import CatalogError, Place, nearest_name
from bicameral.expressions import (
    COMPARISONS,
    AllOf,
    AnyOf,
    Binary,
    Call,
    Constant,
    Language,
    Name,
    Node,
    Not,
    Verdict,
    judge,
    names,
    parse,
    walk,
)

MAX_FACT = 10**12
"""No number of a task is larger; a larger one is a typo."""

FactQuestionKind = Literal["yes", "count", "number", "share", "choice", "names", "where"]


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """A fact about a task: its kind, the question for it, and what it decides."""

    id: str
    kind: FactQuestionKind
    ask: str
    why: str
    group: str
    """What it is about, for forms."""
    unit: str = ""
    choices: tuple[str, ...] = ()
    least: int | float | None = None
    most: int | float | None = None
    safety: bool = False
    """Whether it must be answered: while it is unknown, the stack may lack a protection."""

    @property
    def expected_input(self) -> str:
        """The answers that are accepted, in words."""
        match self.kind:
            case "yes":
                return "yes or no"
            case "share":
                return "a share from 0 to 1"
            case "choice":
                return " or ".join(self.choices)
            case "names":
                return "names, separated by commas, or none"
            case "where":
                return "where it is written, or no"
            case "count" | "number":
                what = "a whole number" if self.kind == "count" else "a number"
                bounds = f" from {self.least:g} to {self.most:g}" if self.least and self.most else ""
                return f"{what}{bounds}"


@cache
def questions() -> Mapping[str, FactQuestion]:
    """Every fact that the advisor uses, by name."""
    return load_records("questions.yaml", FactQuestion)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TaskFacts:
    """What is known of a task. The names, units and kinds of facts are those of `questions()`.

    Each fact is an attribute, and None where it is not known. An unknown name is `catalog.unknown-fact`, a value of
    another kind `catalog.bad-fact`.

    Example:
        >>> TaskFacts(tools=4, calls_independent=True).tools
        4
    """

    known: Mapping[str, Any]
    """The facts that are known, in the order of the questions."""
    _places: Mapping[str, Place] = field(compare=False)

    def __init__(self, places: Mapping[str, Place] | None = None, /, **facts: Any) -> None:
        places = places or {}
        for name in facts:
            _known_question(name, places.get(name))
        values = ((question, facts.get(name)) for name, question in questions().items())
        known = {each.id: check_fact(each, value, places.get(each.id)) for each, value in values if value is not None}
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "_places", places)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in questions():
            raise AttributeError(f"there is no fact {name!r}")
        return self.known.get(name)

    def __repr__(self) -> str:
        return f"TaskFacts({', '.join(f'{name}={value!r}' for name, value in self.known.items())})"

    def value(self, name: str) -> Any:
        """The value of a fact, or of a derived share; None if it is not known."""
        if name not in DERIVED_FACTS:
            return getattr(self, name)
        part, whole = (self.known.get(each) for each in DERIVED_FACTS[name])
        return None if part is None or not whole else part / whole

    def with_facts(self, **more: Any) -> TaskFacts:
        """These facts and more; `catalog.unknown-fact` for a name that is none."""
        return TaskFacts(self._places, **{**self.known, **more})

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.known.items()}  # pyright: ignore[reportUnknownArgumentType]


DERIVED_FACTS: Mapping[str, tuple[str, str]] = {
    "corpus_share": ("corpus_tokens", "window_tokens"),
    "schema_share": ("schema_tokens", "window_tokens"),
}
"""Derived shares: how much of the context window documents and schemas take."""


def facts_from_mapping(given: Mapping[str, Any], places: Mapping[str, Place] | None = None) -> TaskFacts:
    """Facts from a mapping, such as a file: an unknown name or a wrong value is reported with its place."""
    return TaskFacts(places, **given)


def parse_fact(name: str, text: str) -> Any:
    """The value of the fact of this name that a user typed."""
    question = _known_question(name, None)
    given = text.strip()
    lowered = given.lower()
    if lowered in ("yes", "y", "true") and question.kind in ("yes", "where"):
        return True
    if lowered in ("no", "n", "false") and question.kind in ("yes", "where"):
        return False
    if question.kind == "names":
        return () if lowered in ("", "none", "no") else tuple(part.strip() for part in given.split(",") if part.strip())
    if question.kind in ("choice", "where"):
        return check_fact(question, lowered if question.kind == "choice" else given)
    number = _parse_number(given.replace("_", "").replace(",", ""))
    return check_fact(question, given if number is None else number)


def check_fact(question: FactQuestion, value: Any, place: Place | None = None) -> Any:
    """The normalised value of a fact; `catalog.bad-fact` if it is of another kind or out of bounds."""
    match question.kind:
        case "yes" if isinstance(value, bool):
            return value
        case "choice" if value in question.choices:
            return value
        case "where" if isinstance(value, bool) or (isinstance(value, str) and value.strip()):
            return value
        case "names" if (names := _name_list(value)) is not None:
            return names
        case "count" if _is_in_bounds(question, value) and value == int(value):
            return int(value)
        case "number" | "share" if _is_in_bounds(question, value):
            return value
        case _:
            raise CatalogError(
                "catalog.bad-fact",
                f"{question.id} is {value!r}",
                place=place,
                expected=f"{question.expected_input}{_size_limit(value)}",
                nearest=nearest_name(str(value), question.choices) if question.choices else None,
            )


def _size_limit(value: Any) -> str:
    """What is to be added to what was expected instead of a number that is too large."""
    return f", at most {MAX_FACT:,}" if isinstance(value, int | float) and MAX_FACT < value < math.inf else ""


def _name_list(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    items = cast("list[object]", value)
    names = tuple(each for each in items if isinstance(each, str) and each.strip())
    return names if len(names) == len(items) else None


def _is_in_bounds(question: FactQuestion, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    most = 1 if question.kind == "share" else MAX_FACT if question.most is None else question.most
    return (question.least or 0) <= value <= most


def _parse_number(text: str) -> int | float | None:
    """The number in a text; a share may be a percentage."""
    percent = text.endswith("%")
    try:
        number = float(text.rstrip("%"))
    except ValueError:
        return None
    number = number / 100 if percent else number
    return int(number) if math.isfinite(number) and number == int(number) and not percent else number


def _known_question(name: str, place: Place | None) -> FactQuestion:
    question = questions().get(name)
    if question is None:
        raise CatalogError(
            "catalog.unknown-fact",
            f"there is no fact {name[:60]!r}",
            place=place,
            nearest=nearest_name(name, questions()),
            fix="`bicameral advise --list` has them all.",
        )
    return question


_COMPARISON_WORDS = {"==": "", "<": "below ", "<=": "at most ", ">=": "at least ", ">": "above "}
_CONDITION_FUNCTIONS: Mapping[str, tuple[int, int | None]] = {
    "unless": (1, 1),
    "chosen": (1, None),
    "any_chosen": (1, None),
    "nothing_of": (1, None),
}


def parse_fact_condition(text: str, spot: DataPlace) -> Node:
    """The condition of a rule. Every fact and pattern in it must exist, and each test must compare a fact."""

    def error(text: str, what: str) -> CatalogError:
        return spot.error(f"{text!r} is no condition: {what}", expected="facts, and, or, not, comparisons, unless(...)")

    return _check_part(parse(text, Language(error, arity=_CONDITION_FUNCTIONS)), spot)


def _check_part(node: Node, spot: DataPlace) -> Node:
    match node:
        case Name(name="always"):
            return AllOf(())
        case Name():
            return _check_part(Binary("==", node, Constant(True)), spot)
        case Not(part=Name() as fact):
            # A test of its own: `assumed` in `judge_condition` makes it true.
            return _check_part(Binary("==", fact, Constant(False)), spot)
        case Binary(operator=sign, left=Name(name=fact), right=Constant()) if sign in _COMPARISON_WORDS:
            if fact not in questions() and fact not in DERIVED_FACTS:
                raise spot.error(f"there is no fact {fact!r}", nearest=nearest_name(fact, questions()))
            return node
        case AllOf(parts=parts):
            return AllOf(tuple(_check_part(part, spot) for part in parts))
        case AnyOf(parts=parts):
            return AnyOf(tuple(_check_part(part, spot) for part in parts))
        case Not(part=part):
            return Not(_check_part(part, spot))
        case Call(function="unless", arguments=(part,)):
            return Call("unless", (_check_part(part, spot),))
        case Call(function=function) if function != "unless":
            for id in sorted(names(node).difference(IDS)) if function != "nothing_of" else ():
                raise spot.error(f"there is no pattern {id!r}", nearest=nearest_name(id, IDS))
            return node
        case _:
            raise spot.error("this is no test of a fact", expected="a fact, or a fact, a comparison and a value")


def judge_condition(tree: Node, facts: TaskFacts, chosen: Iterable[str], assumed: str | None = None) -> Verdict:
    """Whether a condition holds for these facts and chosen patterns; tests of an `assumed` fact count as true."""
    have = frozenset(chosen)

    def judge_atom(atom: Node) -> Verdict:
        match atom:
            case Call(function="unless", arguments=(part,)):
                verdict = judge_condition(part, facts, have)
                return Verdict(True, missing=verdict.missing) if verdict.holds is None else verdict.negate()
            case Call(function="chosen"):
                return Verdict(have >= names(atom))
            case Call(function="any_chosen"):
                return Verdict(not have.isdisjoint(names(atom)))
            case Binary():
                if assumed is not None and assumed in _tested_facts(atom):
                    return Verdict(True, (assumed,))
                return _judge_test(atom, facts)
            case _:
                letters = names(atom)
                return Verdict(not any(id[0] in letters for id in have))

    return judge(tree, judge_atom)


def _judge_test(test: Binary, facts: TaskFacts) -> Verdict:
    sources = _tested_facts(test)
    value, bound = facts.value(*names(test)), cast("Constant", test.right).value
    if value is None:
        return Verdict(None, missing=tuple(name for name in sources if facts.value(name) is None))
    # A list that is not empty counts as yes, and so does the place of a document.
    value = bool(value) if isinstance(bound, bool) else value
    return Verdict(COMPARISONS[test.operator](value, bound), sources)


def _tested_facts(test: Binary) -> tuple[str, ...]:
    (name,) = names(test)
    return DERIVED_FACTS.get(name, (name,))


def describe_tests(tree: Node, fact: str) -> str:
    """The tests of one fact in a condition, in words."""
    tests = (node for node in walk(tree) if isinstance(node, Binary) and fact in _tested_facts(node))
    return " or ".join(dict.fromkeys(map(_describe_test, tests)))


def _describe_test(test: Binary) -> str:
    (name,) = names(test)
    value: Any = cast("Constant", test.right).value
    if isinstance(value, bool):
        lists = name in questions() and questions()[name].kind == "names"
        value = (("none", "some") if lists else ("no", "yes"))[value]
    return f"{name} {_COMPARISON_WORDS[test.operator]}{value}"
