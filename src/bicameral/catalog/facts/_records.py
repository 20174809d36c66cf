"""The records of the catalogue as frozen values: patterns, mechanisms, rules, and the ids of all patterns.

The files in `data` have the same keys as these classes have fields. The numbers of the ids are those of the literature
they come from, so a few are not used. `plain_record` turns a record back into dictionaries with the keys of the files,
for JSON and to read it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from bicameral.catalog.facts._expressions import Expression

Category: TypeAlias = Literal[
    "signal", "knowledge", "reasoning", "orchestration", "reliability", "integration", "humanizer"
]
ParticipantKind: TypeAlias = Literal["model", "code", "store", "tool", "person"]
SessionTier: TypeAlias = Literal["small", "mid", "large", "any"]
Enforcement: TypeAlias = Literal["type", "run", "lint", "test", "person"]
ENFORCEMENT_WORDS: Mapping[Enforcement, str] = {
    "type": "types of the code",
    "run": "a check in each run",
    "lint": "the linter",
    "test": "tests of your own",
    "person": "a person",
}
"""How an invariant is held, in words."""

FILE_KEYS: Mapping[str, str] = {"condition": "if", "goes_with": "with", "origin": "from", "manner": "as"}
"""The keys of the files that cannot be names in Python, by the fields that stand for them."""

ZERO = Expression.number(0)
ONE = Expression.number(1)


class _FrozenMappings:
    """Makes the mappings of a record read-only."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for each in fields(cast("Any", self)):
            object.__setattr__(self, each.name, _freeze(getattr(self, each.name)))


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType(cast("dict[str, Any]", value))
    if isinstance(value, tuple):
        return tuple(map(_freeze, cast("tuple[Any, ...]", value)))
    return value


@dataclass(frozen=True, slots=True)
class PatternAlternative:
    """When a pattern is wrong, and which to use instead (none if nothing should be built)."""

    condition: str
    use: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Participant:
    """A participant of a pattern: what it does, and what it must never do."""

    name: str
    kind: ParticipantKind
    does: str
    must_not: str = ""
    tier: SessionTier | None = None


@dataclass(frozen=True, slots=True)
class Invariant:
    """What always holds, and the strongest way to enforce it."""

    rule: str
    held: Enforcement


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting: a number with bounds, one of a few words, or without a default."""

    default: Any
    what: str
    least: int | float | None = None
    most: int | float | None = None
    choices: tuple[str, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether a cost expression may name it."""
        return isinstance(self.default, int | float) and not isinstance(self.default, bool)

    @property
    def allowed(self) -> str:
        """The values that it may have, in words; empty if nothing bounds them."""
        match (self.least, self.most):
            case (None, None):
                return " or ".join(self.choices)
            case (least, None):
                return f"from {least:g}"
            case (None, most):
                return f"to {most:g}"
            case (least, most):
                return f"{least:g} to {most:g}"


@dataclass(frozen=True, slots=True)
class SessionCost:
    """One kind of model call: how many there are, and how long they are."""

    role: str
    tier: SessionTier
    calls: Expression
    stable: Expression
    prompt: Expression
    output: Expression
    worst: Expression | None = None
    grows: Expression = ZERO
    parallel: Expression = ONE

    @property
    def most(self) -> Expression:
        """The most calls that there can be."""
        return self.worst or self.calls


@dataclass(frozen=True, slots=True)
class PatternCost:
    """The cost of a pattern: model calls by role, and tool calls."""

    sessions: tuple[SessionCost, ...]
    tools: Expression

    @property
    def names(self) -> frozenset[str]:
        """The sizes and knobs that its expressions name."""
        every = ("calls", "most", "stable", "prompt", "grows", "output", "parallel")
        expressions: Iterable[Expression] = (getattr(session, each) for session in self.sessions for each in every)
        return self.tools.names.union(*(each.names for each in expressions))


@dataclass(frozen=True, slots=True)
class FailureMode:
    """A way in which a pattern fails, and what prevents it."""

    what: str
    mend: str


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a pattern."""

    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A published number and its source."""

    figure: str
    source: str


@dataclass(frozen=True, slots=True)
class PatternFacts(_FrozenMappings):
    """Everything that the catalogue says about a pattern.

    Example:
        >>> from bicameral.catalog import catalog
        >>> catalog().pattern("O6").name
        'Orchestrator-Workers'
    """

    id: str
    name: str
    category: Category
    what: str
    how: str
    when: tuple[str, ...]
    not_when: tuple[PatternAlternative, ...]
    participants: tuple[Participant, ...]
    invariants: tuple[Invariant, ...]
    loops: bool
    cost: PatternCost
    watch: tuple[str, ...]
    mechanisms: tuple[str, ...]
    sources: tuple[str, ...]
    knobs: Mapping[str, Knob] = field(default_factory=dict[str, Knob])
    bounded_by: tuple[str, ...] = ()
    failures: tuple[FailureMode, ...] = ()
    goes_with: tuple[str, ...] = ()
    grows_to: tuple[str, ...] = ()
    shrinks_to: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    measured: tuple[Figure, ...] = ()

    @property
    def defaults(self) -> dict[str, float]:
        """The numeric knobs with their defaults, as values for cost expressions."""
        return {name: knob.default for name, knob in self.knobs.items() if knob.numeric}


@dataclass(frozen=True, slots=True)
class Mechanism(_FrozenMappings):
    """Why patterns work: a claim about models, its grade (A is derived, B is measured), and what follows from it."""

    id: str
    name: str
    grade: Literal["A", "B", "A/B"]
    claim: str
    formulas: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rules: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


NeedStrength: TypeAlias = Literal["hard", "strong", "advisory"]
RuleSeverity: TypeAlias = Literal["error", "warning", "note"]
ConflictKind: TypeAlias = Literal["exclusive", "tension", "prerequisite", "interaction", "progression", "layers"]
CheckSpec: TypeAlias = Mapping[str, Any]
"""How the linter checks a rule: the `kind` of check, and its arguments."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a pattern needs: all of these patterns, or one of those."""

    id: str
    pattern: str
    strength: NeedStrength
    why: str
    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    when: str | None = None

    def binds(self, pattern: str) -> bool:
        """Whether it applies to this pattern; `H*` applies to every id that begins with an H."""
        return self.pattern == pattern or (self.pattern.endswith("*") and pattern.startswith(self.pattern[:-1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Law(_FrozenMappings):
    """A rule that holds for every stack: what, why, how to mend it, and how the linter checks it."""

    id: str
    name: str
    severity: RuleSeverity
    patterns: tuple[str, ...]
    rule: str
    why: str
    fix: str
    checks: tuple[CheckSpec, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict(Law):
    """Patterns that affect each other, and the rule that keeps them from doing harm."""

    kind: ConflictKind


@dataclass(frozen=True, slots=True)
class AntiPattern(_FrozenMappings):
    """An architecture that keeps failing: its symptom, why, and which patterns mend it."""

    id: str
    name: str
    category: str
    severity: RuleSeverity
    mend: tuple[str, ...]
    symptom: str
    why: str
    fix: str
    checks: tuple[CheckSpec, ...] = ()

    @property
    def rule(self) -> str:
        return self.symptom

    @property
    def patterns(self) -> tuple[str, ...]:
        return self.mend


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRule(Law):
    """A rule that keeps prompts cacheable, and the mechanisms or patterns that it follows from."""

    origin: tuple[str, ...]


def _number_ids(letter: str, numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{letter}{number}" for number in numbers)


CATEGORIES: Mapping[Category, tuple[str, ...]] = MappingProxyType(
    {
        "signal": _number_ids("S", (1, 2, 3, 4, 5, 6, 8, 9)),
        "knowledge": _number_ids("K", range(1, 14)),
        "reasoning": _number_ids("R", (*range(1, 15), *range(16, 21))),
        "orchestration": _number_ids("O", range(1, 19)),
        "reliability": _number_ids("V", range(1, 21)),
        "integration": _number_ids("I", range(1, 7)),
        "humanizer": _number_ids("H", range(1, 11)),
    }
)
"""The ids of every category, in order."""

IDS: Mapping[str, Category] = MappingProxyType({id: category for category, ids in CATEGORIES.items() for id in ids})
"""The category of every pattern."""

MOVED_IDS: Mapping[str, str] = MappingProxyType({"S7": "R17", "S10": "K6", "R15": "H6"})
"""Ids that are no longer used, and the patterns that replace them."""


def plain_record(value: object) -> Any:
    """A record as plain values with the keys of the data files; fields that are None or empty texts are left out.

    Example:
        >>> plain_record(Knob(default=5, what="workers in a run", most=10))
        {'default': 5, 'what': 'workers in a run', 'most': 10, 'choices': []}
    """
    match value:
        case Expression():
            return value.text
        case tuple() | list():
            return [plain_record(each) for each in cast("tuple[object, ...]", value)]
        case Mapping():
            return {str(key): plain_record(each) for key, each in cast("Mapping[object, object]", value).items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {
                FILE_KEYS.get(each.name, each.name): plain_record(getattr(value, each.name))
                for each in fields(value)
                if getattr(value, each.name) not in _OMITTED or each.name == "default"
            }
        case _:
            return value


_OMITTED: tuple[object, ...] = (None, "")


def json_fields(record: Any, *without: str) -> dict[str, Any]:
    """The fields of a report as JSON: tuples are lists, and a value that has `to_json` says itself how it looks."""
    return {each.name: _json_value(getattr(record, each.name)) for each in fields(record) if each.name not in without}


def _json_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json_value(each) for each in cast("tuple[Any, ...]", value)]
    return value.to_json() if hasattr(value, "to_json") else value
