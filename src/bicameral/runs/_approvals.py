"""Approvals: a person approves exact calls, and an approval holds for exactly those, once each.

A call that policy does not allow on its own is held until the run cannot continue without it. Then one question covers
all held calls, and all later calls that are known already and will need approval. An approval is bound to the steps
that were shown and to a hash over the tool, its declaration, every argument and the content of attached files: a call
that differs in anything, or the same call once more, is another call. With nobody to ask, the answer is no.

An approval becomes a permit for one call at one step, which that call uses up. An approver may `Suspend` the run: the
answer comes later, and the run waits without a process.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, cast

from bicameral.errors import Place, RunError
from bicameral.labels import Label, Source, covers
from bicameral.policy import ArgumentFacts, Ask, CallFacts, Effect
from bicameral.runs._call_policy import Grant
from bicameral.tools import AttachedFile, Tool
from bicameral.types import Type, plain_value, to_plain, type_to_json, value_from_json, value_to_json


@dataclass(frozen=True, slots=True)
class UntrustedPart:
    """A part of a call that a third party may have written or decided: an argument, or whether it is made at all.

    `argument` is empty for the control flow. `sources` are where the untrusted text came from, such as
    `read_mail body (step 0)`.
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
    """A call that waits for approval, exactly as it would be made.

    Args:
        step: The path of the first step at which it would be made, with the turns of the loops.
        tool: The tool.
        effect: What the tool does to the world.
        arguments: All arguments, defaults included.
        hash: What an approval is bound to, see `call_hash`.
        why: The policy's question.
        untrusted: The parts of it that are untrusted.
        rules: The rules that ask.
        ahead: It is not due yet: an approval holds only if the call then is what was shown, and no more untrusted.
        more_steps: The other steps at which the same call would be made; an approval is for each of them, once.
        files: The attached files, as they were when this was asked.
        changed: What is different about the files since an earlier question.
        offer: What the person may grant in addition for the rest of the run.
        carries: The arguments that only carry content, as the tool declares them; None in records of versions that did
            not say it. Every other argument directs the call, and is always shown in full.
    """

    step: str
    tool: str
    effect: Effect
    arguments: Mapping[str, Any]
    hash: str
    why: str
    untrusted: tuple[UntrustedPart, ...] = ()
    rules: tuple[str, ...] = ()
    ahead: bool = False
    more_steps: tuple[str, ...] = ()
    files: tuple[AttachedFile, ...] = ()
    changed: tuple[str, ...] = ()
    offer: Grant | None = None
    carries: tuple[str, ...] | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        return (self.step, *self.more_steps)

    @property
    def times(self) -> int:
        """How many times it would be made."""
        return len(self.steps)

    def at_steps(self, steps: Sequence[str]) -> PendingCall:
        """The same call at these steps alone."""
        return replace(self, step=steps[0], more_steps=tuple(steps[1:]))

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "steps": list(self.steps),
            "tool": self.tool,
            "effect": self.effect,
            "arguments": {name: value_to_json(value) for name, value in self.arguments.items()},
            "hash": self.hash,
            "why": self.why,
            "untrusted": [part.to_json() for part in self.untrusted],
            "rules": list(self.rules),
            "times": self.times,
            "ahead": self.ahead,
            **({"files": [file.to_json() for file in self.files]} if self.files else {}),
            **({"changed": list(self.changed)} if self.changed else {}),
            **({"offer": self.offer.to_json()} if self.offer else {}),
            **({"carries": list(self.carries)} if self.carries is not None else {}),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> PendingCall:
        """The call that `to_json` wrote; one of an earlier version is a call at its first step."""
        untrusted = tuple(
            UntrustedPart(
                part["argument"],
                tuple(Source("third_party", each["tool"], each["part"], each["step"]) for each in part["sources"]),
            )
            for part in facts["untrusted"]
        )
        return cls(
            facts["step"],
            facts["tool"],
            facts["effect"],
            {name: value_from_json(value) for name, value in facts["arguments"].items()},
            facts["hash"],
            facts["why"],
            untrusted,
            tuple(facts["rules"]),
            facts.get("ahead", False),
            tuple(facts.get("steps", ())[1:]),
            tuple(map(AttachedFile.from_json, facts.get("files", ()))),
            tuple(facts.get("changed", ())),
            Grant.from_json(facts["offer"]) if "offer" in facts else None,
            tuple(facts["carries"]) if "carries" in facts else None,
        )


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """The calls that a person is asked about at once: those that are due, then later ones; no call is in it twice.

    `before`: nothing of the run has been done yet. If any of the calls is refused, nothing will be.
    """

    calls: tuple[PendingCall, ...]
    before: bool = False

    def to_json(self) -> list[dict[str, Any]]:
        return [call.to_json() for call in self.calls]


@dataclass(frozen=True, slots=True)
class Answers:
    """The hashes of the approved calls; every other call is refused.

    `for_run` are grants for the rest of the run, out of those that the approved calls offer; none by default. `refused`
    are those of which it is known that a person chose no: nobody may have decided about the others.

    Example:
        >>> Answers.yes(question.calls[:1])
        >>> Answers.yes([call], for_run=[call.offer])
    """

    approved: frozenset[str] = field(default_factory=frozenset[str])
    for_run: tuple[Grant, ...] = ()
    refused: frozenset[str] = field(default_factory=frozenset[str])

    @classmethod
    def yes(cls, calls: Iterable[PendingCall], *, for_run: Iterable[Grant] = ()) -> Answers:
        """Approve these calls and refuse all others; `for_run` are the accepted offers of theirs."""
        return cls(frozenset(call.hash for call in calls), tuple(for_run))

    @classmethod
    def no(cls) -> Answers:
        return cls()


class Approver(Protocol):
    """Asks a person to approve calls while a run continues."""

    async def approve(self, question: ApprovalQuestion) -> Answers: ...


ApproveFunction = Callable[[ApprovalQuestion], bool | Answers | Awaitable[bool | Answers]]
"""An approver that is a plain function, or an async one.

True approves every call of the question exactly as it is shown, once; an `Answers` says which. Anything else is a no.
"""


@dataclass(frozen=True, slots=True)
class FunctionApprover:
    """Asks a function. One that is not async runs in a thread, since it may wait for a person."""

    function: ApproveFunction

    async def approve(self, question: ApprovalQuestion) -> Answers:
        if inspect.iscoroutinefunction(self.function):
            answer: object = await self.function(question)
        else:
            answer = await asyncio.to_thread(self.function, question)
            if inspect.isawaitable(answer):
                answer = await answer
        if isinstance(answer, Answers):
            return answer
        # Only `True` itself: a function that returns a text or a number has not decided, and no truth of it is a yes.
        return Answers.yes(question.calls) if answer is True else Answers.no()


def approver_from(given: Approver | ApproveFunction | None) -> Approver | None:
    """The approver that was given, or one that asks the given function.

    Example:
        >>> approver_from(lambda question: all(call.tool == "book_room" for call in question.calls))
    """
    if given is None or callable(getattr(given, "approve", None)):
        return cast("Approver | None", given)
    if not callable(given):
        raise RunError(
            "run.bad-approver",
            f"{type(given).__name__} is no approver",
            expected="a function of the question that returns True, False or Answers, or an object with `approve`",
        )
    return FunctionApprover(given)


class ApprovalRequired(RunError):
    """Calls must be approved, and nobody is there to do it; `question` is what would have been asked."""

    def __init__(self, question: ApprovalQuestion) -> None:
        first, more = question.calls[0], len(question.calls) - 1
        super().__init__(
            "run.needs-approval",
            first.why + (f" (and {more} more)" if more else ""),
            place=Place(step=first.step),
            fix="Run it where somebody can be asked, or say it in the request.",
        )
        self.question = question


async def ask_approver(approver: Approver | None, question: ApprovalQuestion) -> Answers:
    """The answers. Without an approver the answer is no, and so it is for whatever is not an `Answers`."""
    if approver is None:
        raise ApprovalRequired(question)
    place = Place(step=question.calls[0].step)
    try:
        answers = await approver.approve(question)
    except Exception as error:
        raise RunError("run.refused", f"the question failed: {type(error).__name__}: {error}", place=place) from error
    if not isinstance(answers, Answers):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RunError("run.refused", "the reply to the question is no answer", place=place)
    offered = [call.offer for call in question.calls if call.hash in answers.approved]
    if any(grant not in offered for grant in answers.for_run):
        raise RunError("run.refused", "the answer grants more than the question offers", place=place)
    return answers


def refusal_error(step: str, tool: str) -> RunError:
    """The error of a run that ends because a call was not approved."""
    return RunError("run.refused", f"the call of {tool!r} was not approved", place=Place(step=step))


def call_hash(tool: Tool, bound: Mapping[str, Any], files: Sequence[AttachedFile] = ()) -> str:
    """What an approval is bound to: the tool, its declaration, every argument, and the content of its files."""
    arguments = {name: value_to_json(value) for name, value in bound.items()}
    # Without files the hash is that of versions before attached files, so that earlier records can be replayed.
    content = [[file.to_json() for file in files]] if files else []
    text = json.dumps([tool.name, tool.fingerprint, arguments, *content], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def pending_call(
    step: str,
    tool: Tool,
    bound: Mapping[str, Any],
    facts: CallFacts,
    asked: Ask,
    files: tuple[AttachedFile, ...] = (),
    offer: Grant | None = None,
) -> PendingCall:
    """A call as it is shown to a person."""
    # A copy: an approver must not be able to change the call that is made.
    shown = MappingProxyType({name: to_plain(plain_value(value)) for name, value in bound.items()})
    return PendingCall(
        step,
        tool.name,
        tool.effect,
        shown,
        call_hash(tool, bound, files),
        asked.question,
        untrusted_parts(facts),
        asked.rules,
        files=files,
        offer=offer,
        carries=tuple(each.name for each in tool.arguments if each.purpose == "carries"),
    )


def shown_hash(call: Mapping[str, Any]) -> str:
    """A hash over what is shown of a call, from its JSON, except where and how often it is made."""
    # `carries` follows from the declaration, which `hash` covers: answers of versions without it stay valid.
    where = ("step", "steps", "times", "ahead", "changed", "offer", "carries")
    shown = {name: fact for name, fact in call.items() if name not in where}
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def untrusted_parts(facts: CallFacts) -> tuple[UntrustedPart, ...]:
    """The untrusted parts of a call, as they are shown to a person."""
    control = [("", facts.pc)] if facts.mode == "strict" else []
    labels: list[tuple[str, Label]] = [*((each.name, each.label) for each in facts.arguments), *control]
    return tuple(UntrustedPart(name, label.third_parties) for name, label in labels if not label.trusted)


@dataclass(frozen=True, slots=True)
class PendingAsk:
    """A question of a plan to a person, at a step. `key` is the same each time the run comes back to it."""

    step: str
    question: str
    type: Type
    key: str

    def to_json(self) -> dict[str, Any]:
        return {"step": self.step, "question": self.question, "type": type_to_json(self.type), "key": self.key}


class Suspend(BaseException):
    """Raised by an `Approver` or an `Asker` to let the run wait without a process; the outcome is then `Waiting`.

    An approver that has some answers already passes what is still open as `question`; what is left out of it must be
    answered when the run is resumed. It is no `Exception`, so that code which catches all failures does not catch it.

    Example:
        >>> class Later:
        ...     async def approve(self, question: ApprovalQuestion) -> Answers:
        ...         raise Suspend
    """

    def __init__(self, question: ApprovalQuestion | None = None) -> None:
        super().__init__("the run waits for a person")
        self.question = question
        self.ask: PendingAsk | None = None


Permit = tuple[str, str]
"""The path of a step, with the turns of its loops, and the hash of the call that may be made there once."""


@dataclass(frozen=True, slots=True)
class ApprovalResult:
    """The answer to a question, step by step: the permits, and the grants for the rest of the run."""

    permits: Counter[Permit]
    grants: tuple[Grant, ...] = ()


class AskedCall(NamedTuple):
    """A call of a question, and the facts it is decided by. `key` is its hash without the content of its files."""

    call: PendingCall
    facts: CallFacts
    key: str


class Permits:
    """The permits of one run.

    A permit is for one step with exactly these arguments, and only if the call is no more untrusted than what was
    shown: otherwise it is asked about again. It is not valid at another step, nor for a second call at the same one. A
    refusal holds for this call at every step.
    """

    def __init__(self) -> None:
        self._left: Counter[Permit] = Counter()
        self._shown: dict[Permit, CallFacts] = {}
        self._refused: dict[str, PendingCall] = {}

    def record(self, asked: Iterable[AskedCall], result: ApprovalResult) -> None:
        """Keep the answers about these calls. Permits for calls that were not asked about are ignored."""
        for call, facts, key in asked:
            if result.permits[call.step, call.hash]:
                # Set and not added: two questions about one call at one step allow it once.
                self._left[call.step, call.hash] = result.permits[call.step, call.hash]
                self._shown[call.step, call.hash] = facts
            else:
                self._left.pop((call.step, call.hash), None)
                self._refused[key] = call

    def refused_call(self, key: str) -> PendingCall | None:
        """The call as it was refused; None if it was not."""
        return self._refused.get(key)

    @property
    def has_refusals(self) -> bool:
        """Whether any call was refused."""
        return bool(self._refused)

    def answer(self, asked: AskedCall) -> bool | None:
        """The answer about a call; None if it must still be asked about."""
        if asked.key in self._refused:
            return False
        permit = asked.call.step, asked.call.hash
        return True if self._left[permit] > 0 and is_no_worse(self._shown[permit], asked.facts) else None

    def use_up(self, step: str, hash_: str) -> bool:
        """Use one permit up; False if there is none."""
        if self._left[step, hash_] <= 0:
            return False
        self._left[step, hash_] -= 1
        return True


def build_question(
    asked: Sequence[AskedCall], *, before: bool = False
) -> tuple[ApprovalQuestion, list[AskedCall], list[AskedCall]]:
    """One question, the calls that it covers, and those that need another one.

    The same call at several steps is one entry with a count. A call with the same hash and other untrusted parts is not
    merged into it, since an answer is to everything that is shown of an entry.
    """
    entries: dict[str, tuple[PendingCall, str]] = {}
    within: list[AskedCall] = []
    left: list[AskedCall] = []
    for each in asked:
        shown = shown_hash(each.call.to_json())
        known, alike = entries.get(each.call.hash, (None, shown))
        if alike != shown:
            left.append(each)
            continue
        call = each.call if known is None else known.at_steps((*known.steps, each.call.step))
        entries[each.call.hash] = (call, shown)
        within.append(each)
    return ApprovalQuestion(tuple(call for call, _ in entries.values()), before), within, left


def is_no_worse(then: CallFacts, now: CallFacts) -> bool:
    """Whether a call is no more untrusted and no more secret now than what was shown."""
    known = {argument.name: argument for argument in then.arguments}
    return (
        replace(then, arguments=(), pc=now.pc, lures=None) == replace(now, arguments=(), lures=None)
        and known.keys() == {argument.name for argument in now.arguments}
        and covers(then.pc, now.pc)
        and all(_is_argument_no_worse(known[argument.name], argument) for argument in now.arguments)
        and (now.lures or frozenset()) <= (then.lures or frozenset())
    )


def _is_argument_no_worse(then: ArgumentFacts, now: ArgumentFacts) -> bool:
    return replace(then, label=now.label) == now and covers(then.label, now.label)
