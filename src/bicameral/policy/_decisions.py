"""Decisions about a call, and the facts they are made on.

The proof before a run, the engine at every call and the policies share these types. A decision is a value: `Allowed`,
`Denied` with the reason, or `Ask` with the question that a person must answer first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bicameral.labels import NOTHING, PUBLIC, Label, Readers, Source

Mode = Literal["strict", "normal"]
"""Whether control flow counts. `normal` is the weaker one: what is decided by untrusted data is not held against it."""

Effect = Literal["pure", "read", "write", "send", "irreversible"]
Purpose = Literal["selects", "directs", "carries", "attaches"]
"""What is known of an argument's value, or (`attaches`) of a thing that goes along with a call because it is named."""


@dataclass(frozen=True, slots=True)
class ArgumentFacts:
    """What is known about one argument of a call.

    `label` is the join of everything in its value. `bounded` says that it cannot hold free text. `principals` are the
    texts in its value, any of which may name somebody; None before the run where the value is not a literal.
    """

    name: str
    purpose: Purpose
    label: Label
    bounded: bool = False
    principals: frozenset[str] | None = None

    @property
    def trusted(self) -> bool:
        return self.label.trusted

    @property
    def sources(self) -> frozenset[Source]:
        return self.label.sources

    @property
    def readers(self) -> Readers:
        return self.label.readers

    @property
    def public(self) -> bool:
        return self.label.readers is PUBLIC


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What is known about a call: the tool, the arguments that are given, and the control flow (`pc`) that leads to it.

    `step` is the path of the step in the plan. A tool that nobody knows has `known` False, and nothing else counts.
    `lures` is what a receiver of strangers' text in the call could follow (links, addresses, accounts), less what the
    user named or endorsed; None before the run, where it is not known. `assembled` are the directing arguments whose
    value a plan of a model puts together, instead of taking it whole from the request, the settings or a result.
    `executed` says whether the call writes a file that other programs execute or obey, None where that is not known;
    `copied` is the label of what it writes there that is no argument of it, such as the content of a file it copies.
    """

    tool: str
    toolbox: str
    effect: Effect
    outbound: bool
    declared: bool
    arguments: tuple[ArgumentFacts, ...]
    pc: Label
    mode: Mode
    step: str = ""
    known: bool = True
    lures: frozenset[str] | None = None
    assembled: frozenset[str] = frozenset()
    executed: bool | None = False
    copied: Label = NOTHING

    @property
    def pc_trusted(self) -> bool:
        return self.pc.trusted

    @property
    def changes(self) -> bool:
        """Whether the world is different after the call."""
        return self.effect in ("write", "send", "irreversible")

    @property
    def consequential(self) -> bool:
        """Whether the call changes the world or tells anything to anybody."""
        return self.outbound or self.changes

    def arguments_for(self, purpose: Purpose) -> tuple[ArgumentFacts, ...]:
        """The arguments with this purpose."""
        return tuple(argument for argument in self.arguments if argument.purpose == purpose)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The call may be made."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The call must not be made; `rules` name what forbids it."""

    reason: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must say yes first; `rules` name what asks."""

    question: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Depends(Ask):
    """A policy that leaves no choice may stop the call, depending on what is known only when it is made.

    Only a preview gives it. Nobody can say yes to it beforehand; `question` says what it depends on.
    """


Decision = Allowed | Denied | Ask
Decide = Callable[[CallFacts], Decision]
