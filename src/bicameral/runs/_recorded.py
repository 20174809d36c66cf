"""What the record holds of a run: its steps, their answers, what people said; and hands that only remember."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pydantic import ValidationError

from bicameral.decisions import Mode
from bicameral.errors import BicameralError, JournalError, Place, RunError
from bicameral.journal import ENDS, Event, EventKind, Journal, dumps
from bicameral.plans import Plan
from bicameral.tools import CHANGING, AttachedFile, Tool
from bicameral.types import Type, value_from_json

from ._approvals import PendingCall, Question, refusal, shown_hash
from ._caps import Caps
from ._grants import Grant
from ._hands import ask_facts, breathe, call_facts, extract_facts
from ._note import Note, shade_json
from ._outcome import EffectDone
from ._permits import Permit, Said
from ._start import Start


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What the journal holds of a run, in the shape in which a replay needs it."""

    run: str
    plan: Plan | None
    """None for a conversation."""
    tools: Mapping[str, str]
    asked: Mapping[str, dict[str, Any]]
    ended: Mapping[str, Event]
    held: Mapping[str, Event]
    """Calls that were not made, or not at once."""
    approvals: tuple[Event, ...]
    mode: Mode | None
    """Whether control flow counted; None if the run had no labels."""
    policy: str
    end: Event | None
    """How the run ended; None if it never did."""
    start: Start | None = None
    """What it went on from, if it did."""
    replies: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """What models wrote in a conversation, by turn."""
    caps: Caps = field(default_factory=Caps)
    """How much it could take."""

    @property
    def decisions(self) -> dict[str, dict[str, Any]]:
        """What was decided about each call."""
        bodies = {step: event.body for step, event in self.held.items()} | dict(self.asked)
        return {step: body["decision"] for step, body in bodies.items() if "decision" in body}

    @property
    def permitted(self) -> frozenset[str]:
        """Calls that were asked about by policy and made without waiting, on an earlier yes to the same call.

        Earlier versions did so. Now every such call waits first, and this is empty.
        """
        begun = (step for step in self.asked if step not in self.held)
        return frozenset(step for step in begun if self.asked[step].get("decision", {}).get("said") == "asked")

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What a person granted for the rest of the run."""
        return tuple(grant for event in self.approvals for grant in Approval.of(event).granted)

    @property
    def hands(self) -> RecordedHands:
        """Hands that remember it."""
        return RecordedHands(self.asked, self.ended, self.held, self.approvals, self.replies)


class RecordedHands:
    """Hands that only remember: each step gets the answer that the journal holds for it."""

    def __init__(
        self,
        asked: Mapping[str, dict[str, Any]],
        ended: Mapping[str, Event],
        held: Mapping[str, Event] | None = None,
        approvals: Iterable[Event] = (),
        replies: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        self.effects: list[EffectDone] = []
        self.in_flight: set[str] = set()
        self.differences: list[str] = []
        self._asked = asked
        self._ended = ended
        self._held = held or {}
        self._approvals = [Approval.of(event) for event in approvals]
        self._replies = replies or {}
        self._used: set[str] = set()
        self._answered: set[tuple[int, str]] = set()

    async def call(self, step: str, tool: Tool, bound: dict[str, Any], note: Note | None = None) -> Any:
        value = self._recorded(step, call_facts(tool, bound), note)
        if tool.changes:
            self.effects.append(EffectDone(step, tool.name, tool.effect))
        return value

    async def extract(self, step: str, source: Any, instruction: str, wanted: Type, note: Note | None = None) -> Any:
        return self._recorded(step, extract_facts(source, instruction, wanted), note)

    async def ask(self, step: str, question: str, wanted: Type, note: Note | None = None) -> Any:
        return self._recorded(step, ask_facts(question, wanted), note)

    async def approve(self, question: Question) -> Said:
        """The recorded answers; how calls were put together into questions depends on the time and does not count."""
        permits: Counter[Permit] = Counter()
        grants: list[Grant] = []
        for call in question.calls:
            for step in call.steps:
                found = self._approval(step, call.hash)
                if found is None:
                    self.in_flight.add(step)
                    raise JournalError("journal.not-recorded", f"the record holds no approval for step {step!r}")
                if found.error is not None:
                    raise recorded_error(found.error)
                if call.hash in found.approved:
                    permits[step, call.hash] += 1
                    grants += (grant for grant in found.granted if grant not in grants)
        return Said(permits, tuple(grants))

    async def attached(self, step: str, tool: Tool, bound: dict[str, Any]) -> tuple[AttachedFile, ...]:
        """The files as they were when the call was last asked about."""
        found: tuple[AttachedFile, ...] = ()
        for each in self._approvals:
            found = each.files.get(step, found)
        return found

    async def quiet(self) -> None:
        """What is only remembered takes no time, but the turns of a loop still come to their calls one by one."""
        await breathe()

    async def before(self) -> None:
        """What was asked before anything was done: a no, or nobody there, ended the run."""
        for each in self._approvals:
            if each.before and each.error is not None:
                raise recorded_error(each.error)
            if each.before and (refused := each.first_refused) is not None:
                raise refusal(*refused)

    def knows(self, step: str) -> Literal["ended", "begun", "held"] | None:
        """Whether the step has ended, has begun and nobody knows how it went on, or was held back and never begun."""
        if step in self._ended:
            return "ended"
        return "begun" if step in self._asked else "held" if step in self._held else None

    def has_held(self, step: str, kind: EventKind) -> bool:
        """Whether it is recorded that this call was not made, or not at once."""
        return (found := self._held.get(step)) is not None and found.kind == kind

    def said(self, step: str, call: PendingCall) -> bool | None:
        """What a person said of a call at a step; None if it is still to be asked about.

        What was said at this very step counts first. A no elsewhere is a no to this call wherever it comes; a yes is
        one to what was shown at this step: to the very call where it was due, and ahead to nothing that differs.
        """
        here: bool | None = None
        refused = False
        for each in self._approvals:
            if call.hash not in each.hashes:
                continue
            if each.error is not None:
                raise recorded_error(each.error)
            if call.hash not in each.approved:
                refused = True
                here = False if (step, call.hash) in each.due | each.ahead else here
            elif (step, call.hash) in each.due or (step, shown_hash(call.to_json())) in each.shown:
                here = True
        return False if here is None and refused else here

    def begun_alike(self, step: str, facts: dict[str, Any]) -> None:
        """Hold a step that had not ended against its record; what was decided about it may be decided again."""
        recorded = self._asked[step] if step in self._asked else self._held[step].body
        self._compare(step, recorded, {name: fact for name, fact in facts.items() if name != "decision"})

    def _approval(self, step: str, hash_: str) -> Approval | None:
        """The answer about a call at a step when it was due, or else the last that was given ahead."""
        asked = [each for each in self._approvals if (step, hash_) in each.due or (step, hash_) in each.ahead]
        due = [each for each in asked if (step, hash_) in each.due]
        if due or asked:
            return (due or asked)[-1]
        return self._earlier(hash_)

    def _earlier(self, hash_: str) -> Approval | None:
        """The next answer about a call in a record of an earlier version, which names only the first of its steps."""
        last: Approval | None = None
        for number, each in enumerate(self._approvals):
            if hash_ in each.anywhere:
                last = each
                if (number, hash_) not in self._answered:
                    self._answered.add((number, hash_))
                    return each
        return last

    def model_called(self, step: str, facts: dict[str, Any]) -> None:
        """A model was asked; what it said and under which label must be as it was. What it cost was paid then."""
        said = {name: fact for name, fact in facts.items() if name != "charges"}
        self._compare(step, self._replies.get(step, {}), said)

    def held(self, step: str, kind: EventKind, tool: Tool, bound: dict[str, Any], note: Note) -> None:
        found = self._held.get(step)
        if found is None or found.kind != kind:
            self.differences.append(f"step {step}: {kind!r} is not as recorded")
        else:
            self._compare(step, found.body, call_facts(tool, bound) | note.started())

    def unused_effects(self) -> list[str]:
        """Steps that changed the world by the record, and that nothing has come to again."""
        changed = {step for step, asked in self._asked.items() if asked.get("effect") in CHANGING}
        return sorted(changed & set(self._ended) - self._used)

    def unused(self) -> list[str]:
        """Steps that the record holds and that were not run again."""
        return sorted(set(self._ended) - self._used)

    def _recorded(self, step: str, facts: dict[str, Any], note: Note | None) -> Any:
        asked, ended = self._asked.get(step), self._ended.get(step)
        if asked is not None:
            self._compare(step, asked, facts if note is None else facts | note.started())
        if asked is None or ended is None:
            self.in_flight.add(step)
            raise JournalError("journal.not-recorded", f"the record holds no answer for step {step!r}")
        self._used.add(step)
        if ended.kind == "step-failed":
            raise recorded_error(ended.body["error"])
        value = value_from_json(ended.body["result"])
        if note is not None and not same(ended.body.get("shade"), shade_json(note.shade(value))):
            self.differences.append(f"step {step}: 'shade' is not as recorded")
        return value

    def _compare(self, step: str, recorded: dict[str, Any], now: dict[str, Any]) -> None:
        self.differences += [
            f"step {step}: {name!r} is not as recorded"
            for name, value in now.items()
            if not same(recorded.get(name), value)
        ]


@dataclass(frozen=True, slots=True)
class Approval:
    """A question that was put to a person: the calls in it, by step and hash, and which of them were approved."""

    due: frozenset[Permit]
    ahead: frozenset[Permit]
    approved: frozenset[str]
    error: dict[str, Any] | None
    before: bool
    first_refused: tuple[str, str] | None
    """The step and the tool of the first call that was not approved."""
    shown: frozenset[tuple[str, str]]
    """At each step, the hash of what was shown of the call."""
    anywhere: frozenset[str]
    """Calls in a record of an earlier version: all their steps but the first are not known."""
    files: Mapping[str, tuple[AttachedFile, ...]]
    """The files that go along with a call, by step."""
    granted: tuple[Grant, ...] = ()

    @property
    def hashes(self) -> frozenset[str]:
        return frozenset(hash_ for _, hash_ in self.due | self.ahead)

    @classmethod
    def of(cls, event: Event) -> Approval:
        calls, approved = event.body["calls"], frozenset(event.body["approved"])
        permits = {
            ahead: frozenset(
                (step, str(call["hash"]))
                for call in calls
                if call.get("ahead", False) is ahead
                for step in _steps_of(call)
            )
            for ahead in (False, True)
        }
        return cls(
            permits[False],
            permits[True],
            approved,
            event.body.get("error"),
            bool(event.body.get("before")),
            next(((call["step"], call["tool"]) for call in calls if call["hash"] not in approved), None),
            frozenset((step, shown_hash(call)) for call in calls for step in _steps_of(call)),
            frozenset(str(call["hash"]) for call in calls if "steps" not in call),
            {
                step: tuple(map(AttachedFile.from_json, call.get("files", ())))
                for call in calls
                for step in _steps_of(call)
            },
            tuple(map(Grant.from_json, event.body.get("granted", ()))),
        )


def _steps_of(call: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, call.get("steps", (call["step"],))))


def request_of(facts: Mapping[str, Any]) -> str | None:
    """The request that a model wrote a plan for, from the first event of its run; None if a person wrote the plan."""
    if facts.get("intent") is None:
        return None
    try:
        return str(json.loads(facts["intent"])["request"])
    except (ValueError, TypeError, KeyError):
        # Whatever stands there, somebody planned it: then nothing in it is known to be said by the user.
        return ""


def read_run(events: Sequence[Event], journal: Journal) -> RunRecord:
    first = events[0]
    if first.kind != "run-started":
        raise JournalError(
            "journal.unknown-run", f"{first.run!r} is a reasoning of several runs", fix="Replay its rounds one by one."
        )
    try:
        plan = None if "strategy" in first.body else Plan.model_validate_json(first.body["plan"])
        tools = cast("dict[str, str]", first.body["tools"])
    except (KeyError, ValidationError):
        raise JournalError("journal.damaged", f"{journal.path}: the plan of run {first.run} cannot be read") from None
    return RunRecord(
        first.run,
        plan,
        tools,
        {event.step: event.body for event in events if event.kind == "step-started"},
        {event.step: event for event in events if event.kind in ("step-finished", "step-failed")},
        {event.step: event for event in events if event.kind in ("call-waits", "call-denied")},
        tuple(event for event in events if event.kind == "approval"),
        first.body.get("mode"),
        str(first.body.get("policy", "")),
        events[-1] if events[-1].kind in ENDS else None,
        Start.from_json(first.body["start"]) if "start" in first.body else None,
        {event.step: event.body for event in events if event.kind == "model-called"},
        Caps.from_json(first.body.get("caps", Caps().to_json() | {"work": None})),
    )


def same(recorded: Any, now: Any) -> bool:
    """To the byte: `1`, `1.0` and `true` are equal in Python and three things in a record."""
    return dumps(recorded) == dumps(now)


def recorded_error(facts: dict[str, Any]) -> BicameralError:
    place = Place(**facts["place"]) if "place" in facts else None
    texts = {name: facts.get(name) for name in ("expected", "nearest", "fix")}
    return RunError(facts["code"], facts["message"], place=place, **texts)
