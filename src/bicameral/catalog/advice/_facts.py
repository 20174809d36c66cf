"""Facts about a task, each with a name, a unit and a question, and conditions over them.

Every fact may be left open. A condition is true, false or open, and its verdict has the facts that decided it or are
missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
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

FactQuestionKind = Literal["yes", "count", "number", "share", "choice", "names", "where"]


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """A fact that can be told: of which kind it is, how it is asked for, and what it decides."""

    id: str
    kind: FactQuestionKind
    ask: str
    why: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    least: int | float | None = None
    most: int | float | None = None
    safety: bool = False
    """Whether it must not stay open: something could go wrong that a rule would have held."""

    @property
    def expected_input(self) -> str:
        """What to type, in words."""
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
    """Everything that the advisor can be told, by name."""
    return load_records("questions.yaml", FactQuestion)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """What is known of a task. None is not known; the names, units and questions are those of `questions()`.

    Example:
        >>> TaskFacts(tools=4, calls_independent=True, external_input=True)
    """

    production: bool | None = None
    stakes: Literal["low", "medium", "high"] | None = None
    safety_critical: bool | None = None
    requests_per_day: int | None = None
    latency_budget_s: float | None = None
    money_budget: float | None = None
    format_consistency: float | None = None
    few_shot_lift: float | None = None
    machine_reads_output: bool | None = None
    structured_output: bool | None = None
    parse_failures: float | None = None
    persona_gain: float | None = None
    turns: int | None = None
    prohibitions: int | None = None
    must_hold: bool | None = None
    judgement_rules: bool | None = None
    prompt_tuning_stalled: bool | None = None
    steps_known: bool | None = None
    steps: int | None = None
    skip_rate: float | None = None
    checks_between_steps: bool | None = None
    plan_reviewed: bool | None = None
    tools: int | None = None
    schema_tokens: int | None = None
    calls_independent: bool | None = None
    action_known: bool | None = None
    cli_exists: bool | None = None
    credential_isolation: bool | None = None
    typed_output: bool | None = None
    shared_tools: int | None = None
    agents: int | None = None
    numeric_work: bool | None = None
    acts_by_code: bool | None = None
    code_execution: bool | None = None
    host_tools: bool | None = None
    error_share: float | None = None
    quality_gap: float | None = None
    reasoning_lift: float | None = None
    external_success_signal: bool | None = None
    evaluator_accuracy: float | None = None
    one_right_answer: bool | None = None
    errors_scattered: bool | None = None
    refine_preferred: float | None = None
    self_accepts_bad: float | None = None
    invented_facts: float | None = None
    question_hops: int | None = None
    recurring_shapes: float | None = None
    output_tokens: int | None = None
    sections_independent: bool | None = None
    deliberation_share: float | None = None
    corpus_tokens: int | None = None
    window_tokens: int | None = None
    queries_per_session: int | None = None
    citations_needed: bool | None = None
    retrieval_recall: float | None = None
    multi_hop_share: float | None = None
    question_levels: int | None = None
    ungrounded_rate: float | None = None
    same_fields: bool | None = None
    assembly_share: float | None = None
    peak_context_share: float | None = None
    spent_context_share: float | None = None
    remembers_facts: bool | None = None
    reads_per_write: float | None = None
    input_types: int | None = None
    router_agreement: float | None = None
    subtasks: int | None = None
    subtasks_independent: bool | None = None
    subtasks_vary: bool | None = None
    shared_prefix_tokens: int | None = None
    other_vendors: bool | None = None
    conversation_moves: bool | None = None
    external_input: bool | None = None
    private_data: bool | None = None
    untrusted_content: bool | None = None
    external_comms: bool | None = None
    irreversible_actions: tuple[str, ...] | None = None
    reversible_actions: tuple[str, ...] | None = None
    blast_radius: int | None = None
    must_resume: bool | None = None
    answer_owed: bool | None = None
    failure_modes: int | None = None
    labelled_cases: int | None = None
    multi_session: bool | None = None
    same_agent: bool | None = None
    failure_recurrence: float | None = None
    task_recurrence: float | None = None
    style_corrections: float | None = None
    core_written: str | bool | None = None
    returning_users: float | None = None
    consent: bool | None = None
    stalls: bool | None = None
    open_ended: bool | None = None
    idle_seconds: float | None = None
    reflection_lift: float | None = None
    success_spread: float | None = None
    principle_gap: float | None = None
    governance_staffed: bool | None = None
    config_drift: float | None = None
    _places: Mapping[str, Place] = field(default_factory=dict[str, Place], repr=False, compare=False)

    def __post_init__(self) -> None:
        for question in questions().values():
            value: Any = getattr(self, question.id)
            if value is not None:
                object.__setattr__(self, question.id, check_fact(question, value, self._places.get(question.id)))

    @property
    def known(self) -> dict[str, Any]:
        """Those that are known, by name."""
        pairs = ((name, getattr(self, name)) for name in questions())
        return {name: value for name, value in pairs if value is not None}

    def value(self, name: str) -> Any:
        """The value of a fact, or of one that follows from two others: what share the first is of the second."""
        if name not in DERIVED_FACTS:
            return getattr(self, name)
        part, whole = (getattr(self, each) for each in DERIVED_FACTS[name])
        return None if part is None or not whole else part / whole

    def with_facts(self, **more: Any) -> TaskFacts:
        """These facts and more; `catalog.unknown-fact` for a name that is none."""
        for name in more:
            _known_question(name, self._places.get(name))
        return replace(self, **more)

    def to_json(self) -> dict[str, Any]:
        names = {name for name, question in questions().items() if question.kind == "names"}
        return {name: list(value) if name in names else value for name, value in self.known.items()}


DERIVED_FACTS: Mapping[str, tuple[str, str]] = {
    "corpus_share": ("corpus_tokens", "window_tokens"),
    "schema_share": ("schema_tokens", "window_tokens"),
}
"""Shares that follow from two facts: how much of the window documents and schemas take."""


def facts_from_mapping(given: Mapping[str, Any], places: Mapping[str, Place] | None = None) -> TaskFacts:
    """Facts from a mapping, such as a file: an unknown name or a wrong value is told with its place."""
    places = places or {}
    for name in given:
        _known_question(name, places.get(name))
    return TaskFacts(**given, _places=places)


def parse_fact(name: str, text: str) -> Any:
    """A value that somebody typed, for the fact of this name."""
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
    """The value as the fact has it; `catalog.bad-fact` if it is of another kind or out of bounds."""
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
                expected=question.expected_input,
                nearest=nearest_name(str(value), question.choices) if question.choices else None,
            )


def _name_list(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    items = cast("list[object]", value)
    found = tuple(each for each in items if isinstance(each, str) and each.strip())
    return found if len(found) == len(items) else None


def _is_in_bounds(question: FactQuestion, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    most = 1 if question.kind == "share" else question.most
    return value >= (question.least or 0) and (most is None or value <= most)


def _parse_number(text: str) -> int | float | None:
    """A number as people write it; a share may be a percentage."""
    percent = text.endswith("%")
    try:
        found = float(text.rstrip("%"))
    except ValueError:
        return None
    found = found / 100 if percent else found
    return int(found) if math.isfinite(found) and found == int(found) and not percent else found


def _known_question(name: str, place: Place | None) -> FactQuestion:
    found = questions().get(name)
    if found is None:
        raise CatalogError(
            "catalog.unknown-fact",
            f"there is no fact {name[:60]!r}",
            place=place,
            nearest=nearest_name(name, questions()),
            fix="`bicameral advise --list` has them all.",
        )
    return found


_COMPARISON_WORDS = {"==": "", "<": "below ", "<=": "at most ", ">=": "at least ", ">": "above "}
_CONDITION_FUNCTIONS: Mapping[str, tuple[int, int | None]] = {
    "unless": (1, 1),
    "chosen": (1, None),
    "any_chosen": (1, None),
    "nothing_of": (1, None),
}


def parse_fact_condition(text: str, spot: DataPlace) -> Node:
    """A condition from a file. Every fact and pattern in it exists, and each of its tests compares a fact."""

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
    # A list that is not empty is a yes, and so is the place where something is written.
    value = bool(value) if isinstance(bound, bool) else value
    return Verdict(COMPARISONS[test.operator](value, bound), sources)


def _tested_facts(test: Binary) -> tuple[str, ...]:
    (name,) = names(test)
    return DERIVED_FACTS.get(name, (name,))


def condition_facts(tree: Node) -> frozenset[str]:
    """The facts that a condition depends on."""
    return frozenset(name for node in walk(tree) if isinstance(node, Binary) for name in _tested_facts(node))


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
