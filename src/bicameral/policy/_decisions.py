"""Decisions about a call, and the facts they are based on.

The proof before a run, the engine at every call and the policies share these types. A decision is a value: `Allowed`,
`Denied` with the reason, or `Ask` with the question that a person must answer first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bicameral.labels import NOTHING, Label

if TYPE_CHECKING:
    from bicameral.tools import Tool

Mode = Literal["strict", "normal"]
"""Whether control flow counts. `normal` is weaker: it ignores that untrusted data decided whether a call is made."""

Effect = Literal["pure", "read", "write", "send", "irreversible"]
Purpose = Literal["selects", "directs", "carries", "attaches"]
"""What an argument is for: to select, to direct, or as content; `attaches`: content sent because it is named."""


@dataclass(frozen=True, slots=True)
class ArgumentFacts:
    """The facts about one argument of a call.

    Args:
        name: The argument, or a part of it with `ATTACHED_SUFFIX` for content that it names.
        purpose: What the tool uses the value for.
        label: The join of all labels in the value.
        bounded: Whether the value cannot hold free text.
        principals: The texts in the value, each of which may name somebody; None before the run if it is not a literal.
    """

    name: str
    purpose: Purpose
    label: Label
    bounded: bool = False
    principals: frozenset[str] | None = None

    @property
    def trusted(self) -> bool:
        return self.label.trusted


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The facts about a call: the tool, the arguments that are given, and the control flow (`pc`) that leads to it.

    Args:
        arguments: The arguments that are given, and the content that is sent because they name it.
        pc: The label of everything that decided that the call is made.
        step: The path of the step in the plan.
        known: Whether the tool exists; if not, no other fact counts.
        lures: What a recipient of untrusted text in the call could follow (links, addresses, accounts), except what
            the user named or endorsed; None before the run, where it is unknown.
        assembled: The directing arguments whose value a model's plan puts together, instead of taking it whole from the
            request, the settings or a result.
        executed: Whether the call writes a file that other programs execute or obey; None where that is unknown.
        copied: The label of content that the call writes there without an argument, such as the file that it copies.
        unreviewed: Whether nobody has reviewed the tool.
        unaddressed: Whether nobody has said which of its arguments names who gets it.
        replaces: The files whose content the call would replace; None where that is unknown. No policy reads it.
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
    replaces: tuple[str, ...] | None = ()
    unreviewed: bool = False
    unaddressed: bool = False

    @classmethod
    def of_tool(
        cls, tool: Tool, arguments: tuple[ArgumentFacts, ...], pc: Label, mode: Mode, step: str = "", **more: Any
    ) -> CallFacts:
        """The facts about a call of a tool, with those that it declares itself; `more` are further ones by name."""
        declared = (tool.name, tool.toolbox, tool.effect, tool.outbound, tool.declared)
        facts: dict[str, Any] = {"unreviewed": tool.unreviewed, "unaddressed": tool.unaddressed, **more}
        return cls(*declared, arguments, pc, mode, step, **facts)

    def arguments_for(self, purpose: Purpose) -> tuple[ArgumentFacts, ...]:
        """The arguments with this purpose."""
        return tuple(argument for argument in self.arguments if argument.purpose == purpose)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The call may be made."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The call must not be made; `rules` name the policies that forbid it."""

    reason: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must approve the call first; `rules` name the policies that ask."""

    question: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Depends(Ask):
    """A policy without a question may stop the call, depending on facts that are known only when it is made.

    Only a preview returns it. It cannot be approved in advance; `question` says what it depends on.
    """


Decision = Allowed | Denied | Ask
Decide = Callable[[CallFacts], Decision]
