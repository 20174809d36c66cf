"""Run a recorded run again from its record: nothing is touched, and everything must come out as before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from bicameral.decisions import Mode
from bicameral.errors import BicameralError, JournalError, Place, RunError
from bicameral.plans import Plan
from bicameral.telemetry import Fact
from bicameral.tools import Registry, Tool
from bicameral.types import Type, value_from_json, value_to_json

from ._approvals import Answers, Question
from ._blobs import dumps
from ._engine import Engine
from ._hands import ask_facts, call_facts, extract_facts
from ._journal import ENDS, Event, EventKind, Journal
from ._judge import Judge, PolicyJudge, RecordedJudge
from ._note import Note, shade_json
from ._outcome import EffectDone, Failed, Finished, RunOutcome, Stopped
from ._run import Work, effects_to_json, steps_of
from ._start import Start
from ._telling import running

if TYPE_CHECKING:
    from bicameral.policy import Policy


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded run, run again from its record: identical, or where it differs."""

    run: str
    identical: bool
    differences: tuple[str, ...]
    outcome: RunOutcome

    @property
    def answer(self) -> Any:
        return self.outcome.answer if isinstance(self.outcome, Finished) else None


@dataclass(frozen=True, slots=True)
class _Record:
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


async def replay(
    journal: Journal, run: str, registry: Registry, *, plan: Plan | None = None, policy: Policy | None = None
) -> Replayed:
    """Run a recorded run again with the recorded answers of models, tools and people; nothing is touched.

    With a `plan` that one is held against the record, to see what a change would have done differently; with a `policy`
    that one decides again, and otherwise everything is decided as it was. Of a run that was stopped or whose process
    died, only what it came to is run again. A run that was recorded without labels is replayed without.
    """
    record = _read(journal.events(run), journal)
    what = plan or record.plan
    if what is None:
        raise JournalError(
            "journal.no-plan",
            f"run {record.run} is a conversation and has no plan",
            fix="Replay it with `Agent.replay` or `bicameral runs replay`.",
        )
    judge, hands = _judge(record, policy), _hands(record)
    hands.differences += _changed(record, registry, plan, judge)
    engine = Engine(what, registry, hands, judge, record.start)
    return await _again(record, engine, hands, steps_of(what))


async def replay_work(
    events: Sequence[Event],
    journal: Journal,
    registry: Registry,
    make: Callable[[RecordedHands, Judge], Work],
    policy: Policy | None = None,
) -> Replayed:
    """The same for a run that has no plan: `make` gives what is to be done again with the recorded hands."""
    record = _read(events, journal)
    judge, hands = _judge(record, policy), _hands(record)
    if judge is None:
        raise JournalError("journal.damaged", f"{journal.path}: run {record.run} has no labels")
    hands.differences += _changed(record, registry, None, judge)
    return await _again(record, make(hands, judge), hands, {})


async def _again(record: _Record, work: Work, hands: RecordedHands, told: Mapping[str, Fact]) -> Replayed:
    started = time.perf_counter()
    try:
        with running(record.run, told, replayed=True):
            answer = await work.run()
    except BicameralError as error:
        outcome = _unanswered(record, error, hands, time.perf_counter() - started)
    else:
        seconds = time.perf_counter() - started
        outcome = Finished(record.run, answer, seconds, tuple(hands.effects), work.answer_shade)
    hands.differences += _compared(record, outcome, hands)
    return Replayed(record.run, not hands.differences, tuple(hands.differences), outcome)


def _hands(record: _Record) -> RecordedHands:
    return RecordedHands(record.asked, record.ended, record.held, record.approvals, record.replies)


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
        self._approvals = [_Approval.of(event) for event in approvals]
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

    async def approve(self, question: Question) -> Answers:
        """The recorded answers; how calls were put together into questions depends on the time and does not count."""
        approved: set[str] = set()
        for call in question.calls:
            found = self._approval(call.hash)
            if found is None:
                self.in_flight.add(call.step)
                raise JournalError("journal.not-recorded", f"the record holds no approval for step {call.step!r}")
            if found.error is not None:
                raise recorded_error(found.error)
            approved |= found.approved & {call.hash}
        return Answers(frozenset(approved))

    def _approval(self, hash_: str) -> _Approval | None:
        """The next answer about a call; in a conversation the same call may be asked about several times."""
        last: _Approval | None = None
        for number, each in enumerate(self._approvals):
            if hash_ in each.hashes:
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
        if note is not None and not _same(ended.body.get("shade"), shade_json(note.shade(value))):
            self.differences.append(f"step {step}: 'shade' is not as recorded")
        return value

    def _compare(self, step: str, recorded: dict[str, Any], now: dict[str, Any]) -> None:
        self.differences += [
            f"step {step}: {name!r} is not as recorded"
            for name, value in now.items()
            if not _same(recorded.get(name), value)
        ]


@dataclass(frozen=True, slots=True)
class _Approval:
    """A question that was put to a person: the calls in it, by hash, and which of them were approved."""

    hashes: frozenset[str]
    approved: frozenset[str]
    error: dict[str, Any] | None

    @classmethod
    def of(cls, event: Event) -> _Approval:
        hashes = frozenset(str(call["hash"]) for call in event.body["calls"])
        return cls(hashes, frozenset(event.body["approved"]), event.body.get("error"))


def _read(events: Sequence[Event], journal: Journal) -> _Record:
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
    return _Record(
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
    )


def _judge(record: _Record, policy: Policy | None) -> Judge | None:
    """Who decides in the replay; nobody where the run had no labels."""
    if record.mode is None:
        return None
    if policy is not None:
        return PolicyJudge(policy)
    bodies = {step: event.body for step, event in record.held.items()} | dict(record.asked)
    decisions = {step: body["decision"] for step, body in bodies.items() if "decision" in body}
    return RecordedJudge(record.mode, record.policy, decisions)


def _changed(record: _Record, registry: Registry, plan: Plan | None, judge: Judge | None) -> Iterable[str]:
    """What is not as it was when the run was recorded."""
    if judge is not None and (judge.fingerprint, judge.mode) != (record.policy, record.mode):
        yield "the policies are not those of the run"
    if plan is not None and plan != record.plan:
        yield "the plan is not the recorded one"
    for name, fingerprint in record.tools.items():
        tool = registry.get(name)
        if tool is None:
            raise JournalError(
                "journal.tool-gone",
                f"run {record.run} used the tool {name!r}, which is not there any more",
                fix="Load the toolbox that has it.",
            )
        if tool.fingerprint != fingerprint:
            yield f"the tool {name!r} has another declaration than in the run"


def _unanswered(record: _Record, error: BicameralError, hands: RecordedHands, seconds: float) -> RunOutcome:
    effects = tuple(hands.effects)
    if error.code == "journal.not-recorded" and not _was_to_end(record):
        return Stopped(record.run, tuple(sorted(hands.in_flight)), seconds, effects)
    return Failed(record.run, error, error.place.step or "" if error.place else "", seconds, effects)


def _was_to_end(record: _Record) -> bool:
    return record.end is not None and record.end.kind != "run-stopped"


def _compared(record: _Record, outcome: RunOutcome, hands: RecordedHands) -> Iterable[str]:
    """Where the end of the replay is not the end of the run."""
    if record.end is None or not _was_to_end(record):
        # It was stopped between two steps, or in one: there is no end to compare.
        return
    facts: dict[str, Any]
    match outcome:
        case Finished(answer=answer, shade=shade):
            kind, facts = "run-finished", {"answer": value_to_json(answer)}
            if shade is not None:
                facts["shade"] = shade_json(shade)
        case Failed(error=error):
            kind, facts = "run-failed", {"error": error.to_json()}
        case Stopped():
            kind, facts = "run-stopped", {}
    if record.end.kind != kind:
        yield f"the end was {record.end.kind!r} and is {kind!r} in the replay"
        return
    facts["effects"] = effects_to_json(hands.effects)
    yield from (
        f"the {name} differs from the record"
        for name, value in facts.items()
        if not _same(record.end.body.get(name), value)
    )
    if kind == "run-finished":
        yield from (f"step {step} was recorded and not run again" for step in hands.unused())


def _same(recorded: Any, now: Any) -> bool:
    """To the byte: `1`, `1.0` and `true` are equal in Python and three things in a record."""
    return dumps(recorded) == dumps(now)


def recorded_error(facts: dict[str, Any]) -> BicameralError:
    place = Place(**facts["place"]) if "place" in facts else None
    texts = {name: facts.get(name) for name in ("expected", "nearest", "fix")}
    return RunError(facts["code"], facts["message"], place=place, **texts)
