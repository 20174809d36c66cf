"""What the catalogue says of a pattern and of a mechanism, as values. The files in `data` have the same keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ._expressions import Expression

Category: TypeAlias = Literal[
    "signal", "knowledge", "reasoning", "orchestration", "reliability", "integration", "humanizer"
]
Kind: TypeAlias = Literal["model", "code", "store", "tool", "person"]
Tier: TypeAlias = Literal["small", "mid", "large", "any"]
Held: TypeAlias = Literal["type", "run", "lint", "test", "person"]

ZERO = Expression.number(0)
ONE = Expression.number(1)


@dataclass(frozen=True, slots=True)
class Alternative:
    """When a pattern is wrong, and which are right then (none where it should not be built at all)."""

    condition: str = field(metadata={"key": "if"})
    use: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Participant:
    """One who takes part in a pattern: what it does, and what it must never do."""

    name: str
    kind: Kind
    does: str
    must_not: str = ""
    tier: Tier | None = None


@dataclass(frozen=True, slots=True)
class Invariant:
    """What always holds, and the strongest way in which it can be held."""

    rule: str
    held: Held


@dataclass(frozen=True, slots=True)
class Knob:
    """Something that can be set: a number with bounds, a word out of a few, or nothing until somebody says it."""

    default: Any
    what: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether a cost expression may speak of it."""
        return isinstance(self.default, int | float) and not isinstance(self.default, bool)


@dataclass(frozen=True, slots=True)
class SessionCost:
    """One kind of model call: how many, and how long they are."""

    role: str
    tier: Tier
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
class Cost:
    """What a pattern takes: model calls by role, and calls of tools."""

    sessions: tuple[SessionCost, ...]
    tools: Expression


@dataclass(frozen=True, slots=True)
class Failure:
    """A way in which a pattern goes wrong, and what mends it."""

    what: str
    mend: str


@dataclass(frozen=True, slots=True)
class Variant:
    """Another way to build the same pattern."""

    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that somebody published, and where."""

    figure: str
    source: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """Everything the catalogue says of one pattern.

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
    not_when: tuple[Alternative, ...]
    participants: tuple[Participant, ...]
    invariants: tuple[Invariant, ...]
    loops: bool
    cost: Cost
    watch: tuple[str, ...]
    mechanisms: tuple[str, ...]
    sources: tuple[str, ...]
    knobs: Mapping[str, Knob] = field(default_factory=dict[str, Knob])
    bounded_by: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    goes_with: tuple[str, ...] = field(default=(), metadata={"key": "with"})
    grows_to: tuple[str, ...] = ()
    shrinks_to: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    measured: tuple[Figure, ...] = ()

    @property
    def defaults(self) -> dict[str, float]:
        """The numeric knobs with their defaults, as values for cost expressions."""
        return {name: knob.default for name, knob in self.knobs.items() if knob.numeric}


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Why patterns work: a claim about models, how sure it is (A can be derived, B was measured), and what follows."""

    id: str
    name: str
    grade: Literal["A", "B", "A/B"]
    claim: str
    formulas: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rules: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
