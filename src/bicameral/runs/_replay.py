"""Run a recorded run again from its record: nothing is touched, and everything must come out as before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.errors import BicameralError, JournalError
from bicameral.journal import Event, Journal
from bicameral.plans import Plan
from bicameral.telemetry import Fact
from bicameral.tools import Registry
from bicameral.types import value_to_json

from ._attempt import Work, effects_to_json
from ._engine import Engine
from ._judge import HeedingJudge, Judge, RecordedJudge
from ._note import shade_json
from ._outcome import Failed, Finished, RunOutcome, Stopped
from ._recorded import RecordedHands, RunRecord, read_run, request_of, same
from ._run import steps_of
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


async def replay(
    journal: Journal, run: str, registry: Registry, *, plan: Plan | None = None, policy: Policy | None = None
) -> Replayed:
    """Run a recorded run again with the recorded answers of models, tools and people; nothing is touched.

    With a `plan` that one is held against the record, to see what a change would have done differently; with a `policy`
    that one decides again, and otherwise everything is decided as it was. Of a run that was stopped or whose process
    died, only what it came to is run again. A run that was recorded without labels is replayed without.
    """
    events = journal.events(run)
    record = read_run(events, journal)
    what = plan or record.plan
    if what is None:
        raise JournalError(
            "journal.no-plan",
            f"run {record.run} is a conversation or a pattern and has no plan",
            fix="A conversation is replayed with `Agent.replay` or `bicameral runs replay`; a pattern is not replayed.",
        )
    judge, hands = _judge(record, policy), record.hands
    hands.differences += _changed(record, registry, plan, judge)
    own = () if policy is None else policy.me
    assembled = (record.start or Start()).assembled_values(what, registry, request_of(events[0].body), own).calls
    engine = Engine(
        what, registry, hands, judge, record.start, caps=record.caps, before=hands.before, assembled=assembled
    )
    return await _again(record, engine, hands, steps_of(what))


async def replay_work(
    events: Sequence[Event],
    journal: Journal,
    registry: Registry,
    make: Callable[[RecordedHands, Judge], Work],
    policy: Policy | None = None,
) -> Replayed:
    """The same for a run that has no plan: `make` gives what is to be done again with the recorded hands."""
    record = read_run(events, journal)
    judge, hands = _judge(record, policy), record.hands
    if judge is None:
        raise JournalError("journal.damaged", f"{journal.path}: run {record.run} has no labels")
    hands.differences += _changed(record, registry, None, judge)
    return await _again(record, make(hands, judge), hands, {})


async def _again(record: RunRecord, work: Work, hands: RecordedHands, told: Mapping[str, Fact]) -> Replayed:
    started = time.perf_counter()
    try:
        with running(record.run, told, replayed=True):
            answer = await work.run()
    except BicameralError as error:
        outcome = _unanswered(record, error, hands, time.perf_counter() - started)
    else:
        seconds = time.perf_counter() - started
        outcome = Finished(record.run, answer, seconds, effects=tuple(hands.effects), shade=work.answer_shade)
    hands.differences += _compared(record, outcome, hands)
    return Replayed(record.run, not hands.differences, tuple(hands.differences), outcome)


def _judge(record: RunRecord, policy: Policy | None) -> Judge | None:
    """Who decides in the replay; nobody where the run had no labels."""
    if record.mode is None:
        return None
    if policy is not None:
        return HeedingJudge(policy, record.decisions, record.permitted)
    return RecordedJudge(record.mode, record.policy, record.decisions, record.permitted)


def _changed(record: RunRecord, registry: Registry, plan: Plan | None, judge: Judge | None) -> Iterable[str]:
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


def _unanswered(record: RunRecord, error: BicameralError, hands: RecordedHands, seconds: float) -> RunOutcome:
    effects = tuple(hands.effects)
    if error.code == "journal.not-recorded" and not _was_to_end(record):
        return Stopped(record.run, tuple(sorted(hands.in_flight)), seconds, effects=effects)
    return Failed(record.run, error, error.place.step or "" if error.place else "", seconds, effects=effects)


def _was_to_end(record: RunRecord) -> bool:
    return record.end is not None and record.end.kind != "run-stopped"


def _compared(record: RunRecord, outcome: RunOutcome, hands: RecordedHands) -> Iterable[str]:
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
        case _:
            kind, facts = "run-stopped", {}
    if record.end.kind != kind:
        yield f"the end was {record.end.kind!r} and is {kind!r} in the replay"
        return
    facts["effects"] = effects_to_json(hands.effects)
    yield from (
        f"the {name} differs from the record"
        for name, value in facts.items()
        if not same(record.end.body.get(name), value)
    )
    if kind == "run-finished":
        yield from (f"step {step} was recorded and not run again" for step in hands.unused())
