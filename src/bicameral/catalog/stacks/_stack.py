"""A stack as data: the patterns of an agent, what is said about it, and the names it may use. Nothing here runs.

What was not said is None and not empty: a rule must be able to tell "no tools" from "nobody said which". Rules refer to
the facts and statements declared here and to no others. A fact that nobody declares is not taken for false: a rule that
needs it reports that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache, cached_property, lru_cache
from typing import Any, Literal, TypeAlias

from bicameral.catalog.facts._reader import load_records
from bicameral.errors import Place

StackPath: TypeAlias = tuple[str | int, ...]
"""The way to something in a stack, key by key."""
Leg: TypeAlias = Literal["private_data", "untrusted_content", "external_comms"]
GuardPoint: TypeAlias = Literal["input", "call", "result", "output", "write", "read"]
PromptStability: TypeAlias = Literal["global", "per_user", "per_call"]
BlastRadius: TypeAlias = Literal["low", "medium", "high"]
Gate: TypeAlias = Literal["V1", "V2", "none"]
VaryingContent: TypeAlias = Literal["timestamp", "uuid", "random", "unsorted"]
StoreContent: TypeAlias = Literal["content", "references", "redacted"]


@lru_cache(maxsize=4096)
def dotted_path(path: StackPath) -> str:
    """A path as people read it: `agents.triage.patterns[1]`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


@dataclass(frozen=True, slots=True)
class PatternUse:
    """A pattern that is used, and what was set for it. `task`, `artefact` and `session` say where it is used."""

    id: str
    path: StackPath
    knobs: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ToolCounts:
    """The tools of an agent in numbers."""

    path: StackPath
    count: int | None = None
    schema_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a prompt, in the order in which the model reads them."""

    part: str
    stable: PromptStability
    path: StackPath
    tokens: int | None = None
    holds: tuple[VaryingContent, ...] = ()
    """What in it differs from call to call."""
    breakpoint: bool = False
    """Whether the cache boundary is set behind it."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Something that repeats, and what ends it."""

    name: str
    path: StackPath
    steps: float | None = None
    tokens: float | None = None
    money: float | None = None
    seconds: float | None = None
    exit: str | None = None


@dataclass(frozen=True, slots=True)
class StackSession:
    """A conversation with a model: what it reads, writes and judges."""

    name: str
    path: StackPath
    model: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    policy: str | None = None
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is done to the world, and what stands before it."""

    name: str
    path: StackPath
    reversible: bool | None = None
    blast_radius: BlastRadius | None = None
    novel: bool | None = None
    gate: Gate | None = None
    was: Gate | None = None
    """The gate that it had before."""
    review: str | None = None
    """Where the change of its gate was decided."""


@dataclass(frozen=True, slots=True)
class StackStore:
    """Something that is kept, and who reads, writes and erases it."""

    name: str
    path: StackPath
    patterns: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    eraser: bool | None = None
    personal: bool = False
    holds: StoreContent = "content"


@dataclass(frozen=True, slots=True)
class StackMember:
    """An agent of a stack, or the whole of it (which has no name): all that was said of it."""

    name: str
    path: StackPath
    uses: tuple[PatternUse, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    declares: Mapping[str, str | bool] = field(default_factory=dict[str, str | bool])
    model: str | None = None
    owner: str | None = None
    policy: str | None = None
    tools: ToolCounts | None = None
    legs: tuple[Leg, ...] | None = None
    guards: tuple[GuardPoint, ...] | None = None
    prompt: tuple[PromptPart, ...] | None = None
    loops: tuple[Loop, ...] | None = None
    sessions: tuple[StackSession, ...] | None = None
    actions: tuple[Action, ...] | None = None
    stores: tuple[StackStore, ...] | None = None
    pipeline: tuple[str, ...] | None = None

    @property
    def patterns(self) -> frozenset[str]:
        """The ids of its own patterns."""
        return frozenset(use.id for use in self.uses)


@dataclass(frozen=True, slots=True)
class OwnPattern:
    """A pattern of one's own: what it needs beside it, and what it does not go with."""

    id: str
    name: str
    path: StackPath
    needs: tuple[str, ...] = ()
    needs_one_of: tuple[str, ...] = ()
    not_with: tuple[str, ...] = ()
    loops: bool = False
    why: str = "its definition says so"


@dataclass(frozen=True, slots=True)
class Waiver:
    """A finding that is known and accepted for a while. Without a reason or an end it waives nothing."""

    rules: tuple[str, ...]
    path: StackPath
    at: str | None = None
    reason: str | None = None
    until: date | None = None

    def covers(self, path: StackPath) -> bool:
        """Whether something at this path is meant."""
        if self.at is None:
            return True
        shown = dotted_path(path)
        return shown == self.at or shown.startswith((f"{self.at}.", f"{self.at}["))


def _argument_place(path: StackPath) -> Place:
    return Place(argument=dotted_path(path)) if path else Place()


@dataclass(frozen=True, slots=True)
class Stack:
    """An architecture: what holds for the whole, its agents, and what is waived.

    Example:
        >>> stack = stack_of({"name": "Triage", "patterns": ["R4", "V9", "V14"]})
        >>> sorted(stack.whole.patterns)
        ['R4', 'V14', 'V9']
    """

    name: str
    whole: StackMember
    agents: tuple[StackMember, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    defined: Mapping[str, OwnPattern] = field(default_factory=dict[str, OwnPattern])
    file: str | None = None
    locate: Callable[[StackPath], Place] = field(default=_argument_place, repr=False, compare=False)

    @property
    def members(self) -> Iterator[StackMember]:
        """The whole and every agent."""
        yield self.whole
        yield from self.agents

    def place(self, path: StackPath) -> Place:
        """Where something of this stack is written."""
        return self.locate(path)


FactKind: TypeAlias = Literal["truth", "number", "choice", "text", "statement"]


@dataclass(frozen=True, slots=True)
class StackFact:
    """A name that a stack may give a value to. A `statement` says where something is written down."""

    id: str
    kind: FactKind
    what: str
    choices: tuple[str, ...] = ()
    default: int | float | None = None
    derived: str | None = None
    """How it is found out where nobody says it."""

    @property
    def name(self) -> str:
        return self.id

    @property
    def expected(self) -> str:
        """What may be said of it."""
        match self.kind:
            case "truth":
                return "true or false"
            case "number":
                return "a number"
            case "choice":
                return f"one of {', '.join(self.choices)}"
            case "text":
                return "a text"
            case "statement":
                return "where it is written down"

    def to_json(self) -> dict[str, Any]:
        pairs = (
            ("name", self.name),
            ("kind", self.kind),
            ("what", self.what),
            ("choices", list(self.choices) or None),
            ("default", self.default),
            ("derived", self.derived),
        )
        return {key: value for key, value in pairs if value is not None}

    def accepts(self, value: Any) -> bool:
        """Whether a value is one that this fact can have."""
        match self.kind:
            case "truth":
                return isinstance(value, bool)
            case "number":
                return isinstance(value, int | float) and not isinstance(value, bool) and value == value
            case "choice":
                return value in self.choices
            case "text":
                return isinstance(value, str) and bool(value.strip())
            case "statement":
                return isinstance(value, bool) or (isinstance(value, str) and bool(value.strip()))


@cache
def _vocabulary() -> Mapping[str, StackFact]:
    return load_records("vocabulary.yaml", StackFact)


class _Vocabulary(Mapping[str, StackFact]):
    """The facts or the statements of `vocabulary.yaml`, which is read when a name is first looked up."""

    def __init__(self, *, statements: bool) -> None:
        self._statements = statements

    @cached_property
    def _facts(self) -> dict[str, StackFact]:
        return {name: fact for name, fact in _vocabulary().items() if (fact.kind == "statement") is self._statements}

    def __getitem__(self, name: str) -> StackFact:
        return self._facts[name]

    def __contains__(self, name: object) -> bool:
        # The linter asks for many names that are no facts; `Mapping` would catch an error for each.
        return name in self._facts

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


FACTS: Mapping[str, StackFact] = _Vocabulary(statements=False)
"""Every fact by its name."""
STATEMENTS: Mapping[str, StackFact] = _Vocabulary(statements=True)
"""Every statement by its name."""
USE_KEYS = ("task", "artefact", "session", "surface", "variant")
"""What may be said of a single use beside its knobs and facts: where it is used, and in which form."""
