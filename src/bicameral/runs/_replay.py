"""Run a recorded run again from its record: nothing is touched, and everything must come out as before."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from bicameral.errors import BicameralError, JournalError, Place, RunError
from bicameral.plans import Plan
from bicameral.tools import Registry, Tool
from bicameral.types import Type, value_from_json, value_to_json

from ._blobs import dumps
from ._engine import Engine
from ._hands import ask_facts, call_facts, extract_facts
from ._journal import ENDS, Event, Journal
from ._outcome import EffectDone, Failed, Finished, RunOutcome, Stopped
from ._run import effects_to_json


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
    plan: Plan
    tools: Mapping[str, str]
    asked: Mapping[str, dict[str, Any]]
    ended: Mapping[str, Event]
    end: Event | None
    """How the run ended; None if it never did."""


async def replay(journal: Journal, run: str, registry: Registry, *, plan: Plan | None = None) -> Replayed:
    """Run a recorded run again with the recorded answers of models, tools and people; nothing is touched.

    With a `plan` that one is held against the record, to see what a change would have done differently. Of a run that
    was stopped or whose process died, only what it came to is run again.
    """
    record = _read(journal, run)
    hands = RecordedHands(record.asked, record.ended)
    hands.differences += _changed(record, registry, plan)
    started = time.perf_counter()
    try:
        answer = await Engine(plan or record.plan, registry, hands).run()
    except BicameralError as error:
        outcome = _unanswered(record, error, hands, time.perf_counter() - started)
    else:
        outcome = Finished(record.run, answer, time.perf_counter() - started, tuple(hands.effects))
    hands.differences += _compared(record, outcome, hands)
    return Replayed(record.run, not hands.differences, tuple(hands.differences), outcome)


class RecordedHands:
    """Hands that only remember: each step gets the answer that the journal holds for it."""

    def __init__(self, asked: Mapping[str, dict[str, Any]], ended: Mapping[str, Event]) -> None:
        self.effects: list[EffectDone] = []
        self.in_flight: set[str] = set()
        self.differences: list[str] = []
        self._asked = asked
        self._ended = ended
        self._used: set[str] = set()

    async def call(self, step: str, tool: Tool, arguments: dict[str, Any]) -> Any:
        value = self._recorded(step, call_facts(tool, tool.bind(arguments)))
        if tool.changes:
            self.effects.append(EffectDone(step, tool.name, tool.effect))
        return value

    async def extract(self, step: str, source: Any, instruction: str, wanted: Type) -> Any:
        return self._recorded(step, extract_facts(source, instruction, wanted))

    async def ask(self, step: str, question: str, wanted: Type) -> Any:
        return self._recorded(step, ask_facts(question, wanted))

    def unused(self) -> list[str]:
        """Steps that the record holds and that were not run again."""
        return sorted(set(self._ended) - self._used)

    def _recorded(self, step: str, facts: dict[str, Any]) -> Any:
        asked, ended = self._asked.get(step), self._ended.get(step)
        if asked is not None:
            self.differences += [
                f"step {step}: {name!r} is not as recorded"
                for name, value in facts.items()
                if not _same(asked.get(name), value)
            ]
        if asked is None or ended is None:
            self.in_flight.add(step)
            raise JournalError("journal.not-recorded", f"the record holds no answer for step {step!r}")
        self._used.add(step)
        if ended.kind == "step-failed":
            raise _recorded_error(ended.body["error"])
        return value_from_json(ended.body["result"])


def _read(journal: Journal, run: str) -> _Record:
    events = journal.events(run)
    first = events[0]
    try:
        plan = Plan.model_validate_json(first.body["plan"])
        tools = cast("dict[str, str]", first.body["tools"])
    except (KeyError, ValidationError):
        raise JournalError("journal.damaged", f"{journal.path}: the plan of run {first.run} cannot be read") from None
    return _Record(
        first.run,
        plan,
        tools,
        {event.step: event.body for event in events if event.kind == "step-started"},
        {event.step: event for event in events if event.kind in ("step-finished", "step-failed")},
        events[-1] if events[-1].kind in ENDS else None,
    )


def _changed(record: _Record, registry: Registry, plan: Plan | None) -> Iterable[str]:
    """What is not as it was when the run was recorded."""
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
        case Finished(answer=answer):
            kind, facts = "run-finished", {"answer": value_to_json(answer)}
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


def _recorded_error(facts: dict[str, Any]) -> BicameralError:
    place = Place(**facts["place"]) if "place" in facts else None
    texts = {name: facts.get(name) for name in ("expected", "nearest", "fix")}
    return RunError(facts["code"], facts["message"], place=place, **texts)
