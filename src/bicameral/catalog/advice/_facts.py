"""What is known of a task: measured facts, each with a name, a unit and a question. Every one may be left open."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, cast

from bicameral.errors import CatalogError, Place, nearest

from ..costs._data import records

Kind = Literal["yes", "count", "number", "share", "choice", "names", "where"]


@dataclass(frozen=True, slots=True)
class Question:
    """A fact that can be told: of which kind it is, how it is asked for, and what it decides."""

    id: str
    kind: Kind
    ask: str
    why: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    safety: bool = False
    """Whether it must not stay open: something could go wrong that a rule would have held."""

    @property
    def wanted(self) -> str:
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
def questions() -> Mapping[str, Question]:
    """Everything that the advisor can be told, by name."""
    return records("questions.yaml", Question)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a task. None is not known; the names, units and questions are those of `questions()`.

    Example:
        >>> Facts(tools=4, calls_independent=True, external_input=True)
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
                object.__setattr__(self, question.id, checked(question, value, self._places.get(question.id)))

    @property
    def known(self) -> dict[str, Any]:
        """Those that are known, by name."""
        pairs = ((name, getattr(self, name)) for name in questions())
        return {name: value for name, value in pairs if value is not None}

    def value(self, name: str) -> Any:
        """The value of a fact, or of one that follows from two others: what share the first is of the second."""
        if name not in DERIVED:
            return getattr(self, name)
        part, whole = (getattr(self, each) for each in DERIVED[name])
        return None if part is None or not whole else part / whole

    def saying(self, **more: Any) -> Facts:
        """These facts and more; `catalog.unknown-fact` for a name that is none."""
        for name in more:
            _must_exist(name, self._places.get(name))
        return replace(self, **more)

    def to_json(self) -> dict[str, Any]:
        names = {name for name, question in questions().items() if question.kind == "names"}
        return {name: list(value) if name in names else value for name, value in self.known.items()}


DERIVED: Mapping[str, tuple[str, str]] = {
    "corpus_share": ("corpus_tokens", "window_tokens"),
    "schema_share": ("schema_tokens", "window_tokens"),
}
"""Shares that follow from two facts: how much of the window documents and schemas take."""


def facts_of(given: Mapping[str, Any], places: Mapping[str, Place] | None = None) -> Facts:
    """Facts from a mapping, such as a file: an unknown name or a wrong value is told with its place."""
    places = places or {}
    for name in given:
        _must_exist(name, places.get(name))
    return Facts(**given, _places=places)


def parse_fact(name: str, text: str) -> Any:
    """A value that somebody typed, for the fact of this name."""
    question = _must_exist(name, None)
    given = text.strip()
    lowered = given.lower()
    if lowered in ("yes", "y", "true") and question.kind in ("yes", "where"):
        return True
    if lowered in ("no", "n", "false") and question.kind in ("yes", "where"):
        return False
    if question.kind == "names":
        return () if lowered in ("", "none", "no") else tuple(part.strip() for part in given.split(",") if part.strip())
    if question.kind in ("choice", "where"):
        return checked(question, lowered if question.kind == "choice" else given)
    number = _number(given.replace("_", "").replace(",", ""))
    return checked(question, given if number is None else number)


def checked(question: Question, value: Any, place: Place | None = None) -> Any:
    """The value as the fact has it; `catalog.bad-fact` if it is of another kind or out of bounds."""
    match question.kind:
        case "yes" if isinstance(value, bool):
            return value
        case "choice" if value in question.choices:
            return value
        case "where" if isinstance(value, bool) or (isinstance(value, str) and value.strip()):
            return value
        case "names" if (names := _names(value)) is not None:
            return names
        case "count" if _in_bounds(question, value) and value == int(value):
            return int(value)
        case "number" | "share" if _in_bounds(question, value):
            return value
        case _:
            raise CatalogError(
                "catalog.bad-fact",
                f"{question.id} is {value!r}",
                place=place,
                expected=question.wanted,
                nearest=nearest(str(value), question.choices) if question.choices else None,
            )


def _names(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    items = cast("list[object]", value)
    found = tuple(each for each in items if isinstance(each, str) and each.strip())
    return found if len(found) == len(items) else None


def _in_bounds(question: Question, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    most = 1 if question.kind == "share" else question.most
    return value >= (question.least or 0) and (most is None or value <= most)


def _number(text: str) -> int | float | None:
    """A number as people write it; a share may be a percentage."""
    percent = text.endswith("%")
    try:
        found = float(text.rstrip("%"))
    except ValueError:
        return None
    found = found / 100 if percent else found
    return int(found) if math.isfinite(found) and found == int(found) and not percent else found


def _must_exist(name: str, place: Place | None) -> Question:
    found = questions().get(name)
    if found is None:
        raise CatalogError(
            "catalog.unknown-fact",
            f"there is no fact {name[:60]!r}",
            place=place,
            nearest=nearest(name, questions()),
            fix="`bicameral advise --list` has them all.",
        )
    return found
