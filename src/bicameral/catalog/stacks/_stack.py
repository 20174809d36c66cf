"""A stack as data: agents with their patterns, sections and facts, and the vocabulary of facts. Nothing here runs.

The classes are also the schema of descriptions, which `_reader` validates with pydantic. A section that is not
described is None and not empty: a rule must be able to tell "no tools" from "not declared". A fact that is not declared
is not false: a rule that needs it reports that. Rules refer to the facts and statements of the vocabulary only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache, cached_property, lru_cache
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BeforeValidator, Field, Strict, StringConstraints, ValidationInfo
from pydantic_core import PydanticCustomError

from bicameral.catalog.facts._reader import load_records
from bicameral.catalog.facts._records import json_fields
from bicameral.errors import Place

StackPath: TypeAlias = tuple[str | int, ...]
"""The path to something in a stack, key by key."""
Leg: TypeAlias = Literal["private_data", "untrusted_content", "external_comms"]
GuardPoint: TypeAlias = Literal["input", "call", "result", "output", "write", "read"]
PromptStability: TypeAlias = Literal["global", "per_user", "per_call"]
BlastRadius: TypeAlias = Literal["low", "medium", "high"]
Gate: TypeAlias = Literal["V1", "V2", "none"]
VaryingContent: TypeAlias = Literal["timestamp", "uuid", "random", "unsorted"]
StoreContent: TypeAlias = Literal["content", "references", "redacted"]
RuntimeName: TypeAlias = Literal["bicameral", "other"]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _check_pattern_id(id: str, info: ValidationInfo) -> str:
    known: Collection[str] = info.context or ()
    if id not in known:
        raise PydanticCustomError("unknown_pattern", "a pattern")
    return id


def _check_stage(name: str, info: ValidationInfo) -> str:
    _check_pattern_id(name.partition(".")[0], info)
    return name


def _check_part_name(name: str, info: ValidationInfo) -> str:
    owner = name.partition(".")[0]
    return _check_stage(name, info) if owner[:1].isupper() and owner[1:].isdigit() else name


def _parse_day(value: Any) -> date:
    if isinstance(value, date):
        return value.date() if isinstance(value, datetime) else value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise PydanticCustomError("day", "a day, as in 2027-03-01") from None


MAX_TEXT = 2_000
"""Characters of a text in a description."""

# The values of a description. They are strict: the text "yes" is no boolean, and "5" is no number.
Text = Annotated[str, StringConstraints(strict=True, max_length=MAX_TEXT, pattern=r"\S")]
Truth = Annotated[bool, Strict()]
Count = Annotated[int, Strict(), Field(ge=0)]
# An infinite cap is none.
Cap = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
PatternId = Annotated[Text, AfterValidator(_check_pattern_id)]
Stage = Annotated[Text, AfterValidator(_check_stage)]
"""A pattern or a part of one, such as `R5.plan`."""
PartName = Annotated[Text, AfterValidator(_check_part_name)]
Day = Annotated[date, BeforeValidator(_parse_day)]
# An empty reason is none: that is a finding of the linter, and no fault of the description.
Reason = Annotated[str | None, Strict(), AfterValidator(lambda text: (text or "").strip() or None)]


@lru_cache(maxsize=4096)
def dotted_path(path: StackPath) -> str:
    """A path as people read it: `agents.triage.patterns[1]`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def paths_around(path: StackPath) -> Iterator[str]:
    """The path and every path that it is inside of, dotted; no longer ones than a description can name.

    Example:
        >>> [*paths_around(("agents", "triage", "patterns", 1))]
        ['agents', 'agents.triage', 'agents.triage.patterns', 'agents.triage.patterns[1]']
    """
    shown = dotted_path(path)
    yield from (shown[:end] for end, sign in enumerate(shown[: MAX_TEXT + 1]) if sign in ".[")
    if len(shown) <= MAX_TEXT:
        yield shown


@dataclass(frozen=True, slots=True)
class PatternUse:
    """A use of a pattern with its knobs. `task`, `artefact` and `session` among them say where it is used.

    Args:
        inner: The patterns that work inside of it, in order.
        place: Where it is inside of the pattern around it: `steps[0]`, `parts.law`, `workers[1].by`.
        sizes: Measured sizes of this use alone, by name, or by role and name: `output`, `Planner.setup`.
    """

    id: str
    path: StackPath
    knobs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inner: tuple[PatternUse, ...] = ()
    place: str = ""
    sizes: Mapping[str, float] = field(default_factory=dict[str, float])

    def walk(self) -> Iterator[PatternUse]:
        """This use, and all uses inside of it."""
        yield self
        for each in self.inner:
            yield from each.walk()


@dataclass(frozen=True, slots=True)
class ToolCounts:
    """How many tools an agent has, and the tokens of their schemas."""

    path: StackPath
    count: Count | None = None
    schema_tokens: Count | None = None
    servers: dict[str, Count] = field(default_factory=dict[str, int])
    """The schema tokens of each server; their sum is `schema_tokens` where that is not said."""

    def __post_init__(self) -> None:
        if self.schema_tokens is None and self.servers:
            object.__setattr__(self, "schema_tokens", sum(self.servers.values()))


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a prompt; parts are in the order in which the model reads them."""

    part: PartName
    stable: PromptStability
    path: StackPath
    tokens: Count | None = None
    holds: tuple[VaryingContent, ...] = ()
    """Content in it that differs from call to call."""
    breakpoint: Truth = False
    """Whether the cache boundary is behind it."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop and its caps."""

    name: str
    path: StackPath
    steps: Cap | None = None
    tokens: Cap | None = None
    money: Cap | None = None
    seconds: Cap | None = None
    exit: Text | None = None


@dataclass(frozen=True, slots=True)
class StackSession:
    """A session of a model: what it reads, writes and judges."""

    name: str
    path: StackPath
    model: Text | None = None
    reads: tuple[Text, ...] = ()
    writes: tuple[Text, ...] = ()
    judges: tuple[Text, ...] = ()
    tools: tuple[Text, ...] | None = None
    policy: Text | None = None
    quarantined: Truth = False


@dataclass(frozen=True, slots=True)
class Action:
    """An action with an effect, and its gate."""

    name: str
    path: StackPath
    reversible: Truth | None = None
    blast_radius: BlastRadius | None = None
    novel: Truth | None = None
    gate: Gate | None = None
    was: Gate | None = None
    """The gate that it had before."""
    review: Text | None = None
    """Where the change of its gate was decided."""


@dataclass(frozen=True, slots=True)
class StackStore:
    """A store, and who reads, writes and erases it."""

    name: str
    path: StackPath
    patterns: Annotated[tuple[PatternId, ...], BeforeValidator(_as_list)] = ()
    readers: tuple[Text, ...] = ()
    writers: tuple[Text, ...] = ()
    eraser: Truth | None = None
    personal: Truth = False
    holds: StoreContent = "content"


@dataclass(frozen=True, slots=True)
class StackMember:
    """An agent of a stack, or the whole (which has no name), with everything that is declared about it."""

    name: str
    path: StackPath
    uses: tuple[PatternUse, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    declares: Mapping[str, str | bool] = field(default_factory=dict[str, str | bool])
    model: Text | None = None
    owner: Text | None = None
    policy: Text | None = None
    tools: ToolCounts | None = None
    legs: tuple[Leg, ...] | None = None
    guards: tuple[GuardPoint, ...] | None = None
    prompt: tuple[PromptPart, ...] | None = None
    loops: tuple[Loop, ...] | None = None
    sessions: tuple[StackSession, ...] | None = None
    actions: tuple[Action, ...] | None = None
    stores: tuple[StackStore, ...] | None = None
    pipeline: tuple[Stage, ...] | None = None

    @property
    def all_uses(self) -> Iterator[PatternUse]:
        """Its own uses of patterns, and those inside of them."""
        for use in self.uses:
            yield from use.walk()

    @property
    def patterns(self) -> frozenset[str]:
        """The ids of its own patterns, at any depth."""
        return frozenset(use.id for use in self.all_uses)


@dataclass(frozen=True, slots=True)
class OwnPattern:
    """A pattern that the stack defines: what it needs, and what it must not be used with."""

    id: str
    path: StackPath
    name: Text = ""
    needs: tuple[PatternId, ...] = ()
    needs_one_of: tuple[PatternId, ...] = ()
    not_with: tuple[PatternId, ...] = ()
    loops: Truth = False
    why: Text = "its definition says so"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.id)


@dataclass(frozen=True, slots=True)
class Waiver:
    """Rules whose findings are accepted until a day. Without a reason or an end it has no effect.

    Args:
        at: The path that it applies to, with everything inside of it; None for the whole stack.
    """

    rules: Annotated[tuple[Text, ...], BeforeValidator(_as_list)]
    path: StackPath
    at: Text | None = None
    reason: Reason = None
    until: Day | None = None


def argument_place(path: StackPath) -> Place:
    """The place of something in a stack that comes from a Python object."""
    return Place(argument=dotted_path(path)) if path else Place()


@dataclass(frozen=True, slots=True)
class Stack:
    """An architecture: what holds for the whole, its agents, its own patterns and its waivers.

    `runtime` says what it runs on: `runtime.yaml` lists what this one brings to every stack.

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
    runtime: RuntimeName = "other"
    locate: Callable[[StackPath], Place] = field(default=argument_place, repr=False, compare=False)

    @property
    def members(self) -> Iterator[StackMember]:
        """The whole and every agent."""
        yield self.whole
        yield from self.agents

    def place(self, path: StackPath) -> Place:
        """The place of something in this stack."""
        return self.locate(path)


@dataclass(frozen=True, slots=True)
class RuntimeGuarantee:
    """What this runtime brings to the stacks that run on it: a pattern, or a fact with its value.

    Args:
        why: How the runtime does it.
        with_any: The patterns for whose code it holds; empty if it holds for every stack.
    """

    id: str
    why: str
    with_any: tuple[str, ...] = ()
    value: bool | str | None = None

    def holds_for(self, patterns: frozenset[str]) -> bool:
        """Whether it holds for a stack with these patterns."""
        return not self.with_any or not patterns.isdisjoint(self.with_any)


@cache
def runtime_guarantees() -> Mapping[str, RuntimeGuarantee]:
    """What this runtime brings, by the id of the pattern or the name of the fact."""
    return load_records("runtime.yaml", RuntimeGuarantee)


FactKind: TypeAlias = Literal["truth", "number", "choice", "text", "statement"]


@dataclass(frozen=True, slots=True)
class StackFact:
    """A name that a stack may declare. A `statement` says where something is documented."""

    id: str
    kind: FactKind
    what: str
    choices: tuple[str, ...] = ()
    default: int | float | None = None
    derived: str | None = None
    """How it is derived where it is not declared."""

    @property
    def name(self) -> str:
        return self.id

    @property
    def expected(self) -> str:
        """The values that it accepts, in words."""
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
        known = {name: value for name, value in json_fields(self, "id").items() if value is not None and value != []}
        return {"name": self.id, **known}

    def accepts(self, value: Any) -> bool:
        """Whether it accepts a value."""
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
        # The linter looks up many names that are no facts; `Mapping` would raise and catch a KeyError for each.
        return name in self._facts

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


FACTS: Mapping[str, StackFact] = _Vocabulary(statements=False)
"""Every fact by its name."""
STATEMENTS: Mapping[str, StackFact] = _Vocabulary(statements=True)
"""Every statement by its name."""
RUNTIMES: tuple[RuntimeName, ...] = get_args(RuntimeName)
USE_KEYS = ("task", "artefact", "session", "surface", "variant")
"""Keys of a single use besides knobs and facts: where it is used, and in which form."""
