"""An architecture as data: which patterns an agent is made of, and what is said of it. Nothing here runs.

What was not said is None, and not empty: a rule must be able to tell "no tools" from "nobody said which".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from bicameral.errors import Place

Keys: TypeAlias = tuple[str | int, ...]
"""The way to something in a stack, key by key."""
Leg: TypeAlias = Literal["private_data", "untrusted_content", "external_comms"]
Guard: TypeAlias = Literal["input", "call", "result", "output", "write", "read"]
Stable: TypeAlias = Literal["global", "per_user", "per_call"]
Reach: TypeAlias = Literal["low", "medium", "high"]
Gate: TypeAlias = Literal["V1", "V2", "none"]
Varies: TypeAlias = Literal["timestamp", "uuid", "random", "unsorted"]
Holds: TypeAlias = Literal["content", "references", "redacted"]


@lru_cache(maxsize=4096)
def dotted(path: Keys) -> str:
    """A path as people read it: `agents.triage.patterns[1]`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


@dataclass(frozen=True, slots=True)
class Use:
    """A pattern that is used, and what was set for it. `task`, `artefact` and `session` say where it is used."""

    id: str
    path: Keys
    knobs: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of an agent in numbers."""

    path: Keys
    count: int | None = None
    schema_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a prompt, in the order in which the model reads them."""

    part: str
    stable: Stable
    path: Keys
    tokens: int | None = None
    holds: tuple[Varies, ...] = ()
    """What in it differs from call to call."""
    breakpoint: bool = False
    """Whether the cache boundary is set behind it."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Something that repeats, and what ends it."""

    name: str
    path: Keys
    steps: float | None = None
    tokens: float | None = None
    money: float | None = None
    seconds: float | None = None
    exit: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation with a model: what it reads, writes and judges."""

    name: str
    path: Keys
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
    path: Keys
    reversible: bool | None = None
    blast_radius: Reach | None = None
    novel: bool | None = None
    gate: Gate | None = None
    was: Gate | None = None
    """The gate that it had before."""
    review: str | None = None
    """Where the change of its gate was decided."""


@dataclass(frozen=True, slots=True)
class Store:
    """Something that is kept, and who reads, writes and erases it."""

    name: str
    path: Keys
    patterns: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    eraser: bool | None = None
    personal: bool = False
    holds: Holds = "content"


@dataclass(frozen=True, slots=True)
class Member:
    """An agent of a stack, or the whole of it (which has no name): all that was said of it."""

    name: str
    path: Keys
    uses: tuple[Use, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    declares: Mapping[str, str | bool] = field(default_factory=dict[str, str | bool])
    model: str | None = None
    owner: str | None = None
    policy: str | None = None
    tools: Tools | None = None
    legs: tuple[Leg, ...] | None = None
    guards: tuple[Guard, ...] | None = None
    prompt: tuple[PromptPart, ...] | None = None
    loops: tuple[Loop, ...] | None = None
    sessions: tuple[Session, ...] | None = None
    actions: tuple[Action, ...] | None = None
    stores: tuple[Store, ...] | None = None
    pipeline: tuple[str, ...] | None = None

    @property
    def patterns(self) -> frozenset[str]:
        """The ids of its own patterns."""
        return frozenset(use.id for use in self.uses)


@dataclass(frozen=True, slots=True)
class Defined:
    """A pattern of one's own: what it needs beside it, and what it does not go with."""

    id: str
    name: str
    path: Keys
    needs: tuple[str, ...] = ()
    needs_one_of: tuple[str, ...] = ()
    not_with: tuple[str, ...] = ()
    loops: bool = False
    why: str = "its definition says so"


@dataclass(frozen=True, slots=True)
class Waiver:
    """A finding that is known and accepted for a while. Without a reason or an end it waives nothing."""

    rules: tuple[str, ...]
    path: Keys
    at: str | None = None
    reason: str | None = None
    until: date | None = None

    def covers(self, path: Keys) -> bool:
        """Whether something at this path is meant."""
        if self.at is None:
            return True
        shown = dotted(path)
        return shown == self.at or shown.startswith((f"{self.at}.", f"{self.at}["))


def _nowhere(path: Keys) -> Place:
    return Place(argument=dotted(path)) if path else Place()


@dataclass(frozen=True, slots=True)
class Stack:
    """An architecture: what holds for the whole, its agents, and what is waived.

    Example:
        >>> stack = stack_of({"name": "Triage", "patterns": ["R4", "V9", "V14"]})
        >>> sorted(stack.whole.patterns)
        ['R4', 'V14', 'V9']
    """

    name: str
    whole: Member
    agents: tuple[Member, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    defined: Mapping[str, Defined] = field(default_factory=dict[str, Defined])
    file: str | None = None
    locate: Callable[[Keys], Place] = field(default=_nowhere, repr=False, compare=False)

    @property
    def members(self) -> Iterator[Member]:
        """The whole and every agent."""
        yield self.whole
        yield from self.agents

    def place(self, path: Keys) -> Place:
        """Where something of this stack is written."""
        return self.locate(path)
