"""Approvals: a person says yes to exact calls, and a yes holds for exactly those, once each.

A call that policy does not allow on its own waits until the run cannot go on without it. Then one question covers all
calls that wait, and all later calls that are known already and will have to be asked about. A yes is bound to the steps
that were shown and to a hash over the tool, its declaration, every argument and the content of attached files: a call
that differs in anything, or the same call once more, is another call. With nobody to ask, the answer is no.

A yes becomes a permit for one call at one step, which that call uses up. Whoever is asked may `Suspend` the run: the
answer comes later, and the run waits without a process.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from bicameral.errors import Place, RunError
from bicameral.labels import Label, Source, covers
from bicameral.policy import ArgumentFacts, Ask, CallFacts, Effect
from bicameral.runs._call_policy import Grant
from bicameral.tools import AttachedFile, Tool
from bicameral.types import Type, to_plain, type_to_json, value_from_json, value_to_json


@dataclass(frozen=True, slots=True)
class UntrustedPart:
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

    `steps` are the paths in the run, with the turns of the loops, at which the very same call would be made: a yes is
    one to each of these, once. `arguments` are all of them with their defaults, `why` is the policy's question. `files`
    are the files that go along, as they were when this was asked, and `changed` says what is different about them
    since an earlier question. `offer` is what the person may allow besides for the rest of the run. A call that is
    asked about `ahead` is not due yet: a yes holds if it then is what was shown, with no more of strangers in it.
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
    """The other steps at which it would be made."""
    files: tuple[AttachedFile, ...] = ()
    changed: tuple[str, ...] = ()
    offer: Grant | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        return (self.step, *self.more_steps)

    @property
    def times(self) -> int:
        """How often it would be made."""
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
        )


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
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

    `for_run` is what was granted for the rest of the run: of what the approved calls offer, nothing by default.

    Example:
        >>> Answers.yes(question.calls[:1])
        >>> Answers.yes([call], for_run=[call.offer])
    """

    approved: frozenset[str] = field(default_factory=frozenset[str])
    for_run: tuple[Grant, ...] = ()

    @classmethod
    def yes(cls, calls: Iterable[PendingCall], *, for_run: Iterable[Grant] = ()) -> Answers:
        """A yes to these calls and a no to all others; `for_run` are the offers of theirs that are taken."""
        return cls(frozenset(call.hash for call in calls), tuple(for_run))

    @classmethod
    def no(cls) -> Answers:
        return cls()


class Approver(Protocol):
    """Someone who may approve calls while a run goes on."""

    async def approve(self, question: ApprovalQuestion) -> Answers: ...


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
    """The answers; nobody there means no, and so does whatever is no answer."""
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
    """A call was not approved, and so the run ends."""
    return RunError("run.refused", f"the call of {tool!r} was not approved", place=Place(step=step))


def call_hash(tool: Tool, bound: Mapping[str, Any], files: Sequence[AttachedFile] = ()) -> str:
    """What a yes is bound to: the tool, its declaration, every argument to the letter, and what its files hold."""
    arguments = {name: value_to_json(value) for name, value in bound.items()}
    # Without files the hash is what it was before there were any, so that earlier records can be replayed.
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
    """A call as a person is shown it."""
    # A copy: whoever is asked cannot change what is done.
    shown = MappingProxyType({name: to_plain(value) for name, value in bound.items()})
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
    )


def shown_hash(call: Mapping[str, Any]) -> str:
    """A hash over all that a person is shown of a call but where and how often it is made, from its JSON."""
    where = ("step", "steps", "times", "ahead", "changed", "offer")
    shown = {name: fact for name, fact in call.items() if name not in where}
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def untrusted_parts(facts: CallFacts) -> tuple[UntrustedPart, ...]:
    """What strangers had a hand in, as a person is told it."""
    control = [("", facts.pc)] if facts.mode == "strict" else []
    labels: list[tuple[str, Label]] = [*((each.name, each.label) for each in facts.arguments), *control]
    return tuple(UntrustedPart(name, _third_party_sources(label)) for name, label in labels if not label.trusted)


def _third_party_sources(label: Label) -> tuple[Source, ...]:
    return tuple(sorted(source for source in label.sources if source.trust == "third_party"))


@dataclass(frozen=True, slots=True)
class PendingAsk:
    """Something that a plan asks a person, at a step. `key` is the same each time the run comes back to it."""

    step: str
    question: str
    type: Type
    key: str

    def to_json(self) -> dict[str, Any]:
        return {"step": self.step, "question": self.question, "type": type_to_json(self.type), "key": self.key}


class Suspend(BaseException):
    """Raised by an `Approver` or an `Asker` to let the run wait without a process; the outcome is then `Waiting`.

    An approver that knows some answers already names what is still open as `question`; what is left out of it must be
    answered when the run is resumed. It is no `Exception`: who catches everything that fails does not catch a wait.

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
"""A step, with the turns of its loops, and the hash of the call that may be made there once."""


@dataclass(frozen=True, slots=True)
class ApprovalResult:
    """What was said to a question, step by step: the permits, and what was granted for the rest of the run."""

    permits: Counter[Permit]
    grants: tuple[Grant, ...] = ()


class AskedCall(NamedTuple):
    """A call that a question is about, and the facts it is judged by. `key` is its hash without what files hold."""

    call: PendingCall
    facts: CallFacts
    key: str


class Permits:
    """The permits of one run.

    A permit is for one step with exactly these arguments, and for no more of strangers in the call than was shown:
    otherwise the call is asked about anew. It serves no other step, and no second call at the same one. A no is a no
    to this call, wherever and however it comes.
    """

    def __init__(self) -> None:
        self._left: Counter[Permit] = Counter()
        self._shown: dict[Permit, CallFacts] = {}
        self._refused: dict[str, PendingCall] = {}

    def record(self, asked: Iterable[AskedCall], said: ApprovalResult) -> None:
        """Keep what was said of calls. What was not asked about gives nothing, whatever the answer holds."""
        for call, facts, key in asked:
            if said.permits[call.step, call.hash]:
                # Set and not added: whoever is asked twice about one call at one step has allowed it once.
                self._left[call.step, call.hash] = said.permits[call.step, call.hash]
                self._shown[call.step, call.hash] = facts
            else:
                self._left.pop((call.step, call.hash), None)
                self._refused[key] = call

    def refused_call(self, key: str) -> PendingCall | None:
        """The call as it was refused, if it was."""
        return self._refused.get(key)

    @property
    def has_refusals(self) -> bool:
        """Whether any call was refused."""
        return bool(self._refused)

    def answer(self, asked: AskedCall) -> bool | None:
        """What was said of a call; None if it is still to be asked about."""
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
    """One question, the calls that it is about, and those that need another one.

    The very same call at several steps is one entry that says how often. What looks the same but comes from elsewhere
    is not mixed up with it, since an answer is one to everything that is shown of an entry.
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
    """Whether strangers have no more of a hand in a call, and it is no more secret, than in what was shown."""
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
