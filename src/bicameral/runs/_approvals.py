"""Approvals: a person says yes to exact calls, and a yes holds for exactly those.

A call that policy does not allow on its own waits until the run cannot go on without it, and then there is one question
for all that wait, and for all that will have to be asked about later and is known already. A yes is bound to a hash
over the tool, its declaration and every argument: a call that differs in anything is another call. Nobody there to ask
means no.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from bicameral.decisions import Ask, CallFacts, Effect
from bicameral.errors import Place, RunError
from bicameral.labels import Label, Source
from bicameral.tools import Tool
from bicameral.types import plain, value_to_json


@dataclass(frozen=True, slots=True)
class Untrusted:
    """Something in a call that a stranger may have written or decided: an argument, or whether it is made at all.

    `argument` is empty for the control flow. `sources` are the strangers' places, such as `read_mail body (step 0)`.
    """

    argument: str
    sources: tuple[Source, ...]

    def __str__(self) -> str:
        what = f"the argument {self.argument!r}" if self.argument else "that it is called at all"
        return f"{what}, from {', '.join(map(str, self.sources))}"

    def to_json(self) -> dict[str, Any]:
        sources = [{"tool": each.tool, "part": each.part, "step": each.step} for each in self.sources]
        return {"argument": self.argument, "sources": sources}


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for a yes, exactly as it would be made.

    `step` is its path in the run with the turns of its loops (of the first, where the very same call waits several
    `times`), `arguments` are all of them with their defaults, `why` is the policy's question. A call that is
    asked about `ahead` is not due yet: a yes holds if it then is what was shown, with no more of strangers in it.
    """

    step: str
    tool: str
    effect: Effect
    arguments: Mapping[str, Any]
    hash: str
    why: str
    untrusted: tuple[Untrusted, ...] = ()
    rules: tuple[str, ...] = ()
    times: int = 1
    ahead: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "tool": self.tool,
            "effect": self.effect,
            "arguments": {name: value_to_json(value) for name, value in self.arguments.items()},
            "hash": self.hash,
            "why": self.why,
            "untrusted": [part.to_json() for part in self.untrusted],
            "rules": list(self.rules),
            "times": self.times,
            "ahead": self.ahead,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """Everything a person is asked at once: what is due, then what comes later, each call different from all others.

    `before` says that nothing of the run has been done yet: a no to any of the calls means that nothing will be.
    """

    calls: tuple[PendingCall, ...]
    before: bool = False

    def to_json(self) -> list[dict[str, Any]]:
        return [call.to_json() for call in self.calls]


@dataclass(frozen=True, slots=True)
class Answers:
    """The hashes of the calls that were approved; every other call was refused.

    Example:
        >>> Answers.yes(question.calls[:1])
    """

    approved: frozenset[str] = field(default_factory=frozenset[str])

    @classmethod
    def yes(cls, calls: Iterable[PendingCall]) -> Answers:
        """A yes to these calls and a no to all others."""
        return cls(frozenset(call.hash for call in calls))

    @classmethod
    def no(cls) -> Answers:
        return cls()


class Approver(Protocol):
    """Someone who may approve calls while a run goes on."""

    async def approve(self, question: Question) -> Answers: ...


class NeedsApproval(RunError):
    """Calls must be approved, and nobody is there to do it; `question` is what would have been asked."""

    def __init__(self, question: Question) -> None:
        first, more = question.calls[0], len(question.calls) - 1
        super().__init__(
            "run.needs-approval",
            first.why + (f" (and {more} more)" if more else ""),
            place=Place(step=first.step),
            fix="Run it where somebody can be asked, or say it in the request.",
        )
        self.question = question


async def asked(approver: Approver | None, question: Question) -> Answers:
    """The answers; nobody there means no, and so does whatever is no answer."""
    if approver is None:
        raise NeedsApproval(question)
    place = Place(step=question.calls[0].step)
    try:
        answers = await approver.approve(question)
    except Exception as error:
        raise RunError("run.refused", f"the question failed: {type(error).__name__}: {error}", place=place) from error
    if not isinstance(answers, Answers):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RunError("run.refused", "the reply to the question is no answer", place=place)
    return answers


def refusal(step: str, tool: str) -> RunError:
    """A call was not approved, and so the run ends."""
    return RunError("run.refused", f"the call of {tool!r} was not approved", place=Place(step=step))


def call_hash(tool: Tool, bound: Mapping[str, Any]) -> str:
    """What a yes is bound to: the tool, its declaration, and every argument to the letter."""
    arguments = {name: value_to_json(value) for name, value in bound.items()}
    text = json.dumps([tool.name, tool.fingerprint, arguments], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def pending_call(step: str, tool: Tool, bound: Mapping[str, Any], facts: CallFacts, asked: Ask) -> PendingCall:
    """A call as a person is shown it."""
    # A copy: whoever is asked cannot change what is done.
    shown = MappingProxyType({name: plain(value) for name, value in bound.items()})
    hash_ = call_hash(tool, bound)
    return PendingCall(step, tool.name, tool.effect, shown, hash_, asked.question, untrusted_in(facts), asked.rules)


def untrusted_in(facts: CallFacts) -> tuple[Untrusted, ...]:
    """What strangers had a hand in, as a person is told it."""
    control = [("", facts.pc)] if facts.mode == "strict" else []
    labels: list[tuple[str, Label]] = [*((each.name, each.label) for each in facts.arguments), *control]
    return tuple(Untrusted(name, _strangers(label)) for name, label in labels if not label.trusted)


def _strangers(label: Label) -> tuple[Source, ...]:
    return tuple(sorted(source for source in label.sources if source.trust == "third_party"))
