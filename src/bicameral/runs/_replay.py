"""Replay: run a recorded run again from its journal, without effects; everything must come out as recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.errors import BicameralError, JournalError
from bicameral.journal import Event, Journal
from bicameral.plans import Plan
from bicameral.runs._call_policy import Decider, ReplayDecider, label_tree_json
from bicameral.runs._doubts import Doubt
from bicameral.runs._engine import PlanEngine
from bicameral.runs._inputs import StartState
from bicameral.runs._model_calls import is_same_json
from bicameral.runs._observability import run_span
from bicameral.runs._outcome import Failed, Finished, RunOutcome, Stopped
from bicameral.runs._run import Workload, plan_telemetry
from bicameral.telemetry import Fact
from bicameral.tools import Registry
from bicameral.types import value_to_json

if TYPE_CHECKING:
    from bicameral.policy import Policy
from bicameral.runs._run_record import RecordedEffectHandler, RunRecord, read_run_record, recorded_request


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay: whether it was identical, and otherwise where it differed."""

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
    """Run a recorded run again with the recorded answers of models, tools and people; nothing has an effect.

    A run that was stopped or whose process died is replayed as far as it got. A run that was recorded without labels is
    replayed without.

    Args:
        journal: The journal with the record.
        run: The id of the run.
        registry: The tools; only their declarations are used.
        plan: Another plan to compare with the record, to see what a change would have done differently.
        policy: Policies that decide again; by default everything is decided as recorded.
    """
    events = journal.events(run)
    record = read_run_record(events, journal)
    what = plan or record.plan
    if what is None:
        raise JournalError(
            "journal.no-plan",
            f"run {record.run} is a conversation or a pattern and has no plan",
            fix="Both are replayed with `Agent.replay` or `bicameral runs replay`.",
        )
    decider, handler = _replay_decider(record, policy), RecordedEffectHandler(record)
    handler.differences += _environment_changes(record, registry, plan, decider)
    own = () if policy is None else policy.me
    assembled = (
        (record.start or StartState()).assembled_values(what, registry, recorded_request(events[0].body), own).calls
    )
    engine = PlanEngine(
        what,
        registry,
        handler,
        decider,
        record.start,
        caps=record.caps,
        before=handler.check_initial_question,
        assembled=assembled,
        doubts=tuple(Doubt.from_json(each) for each in events[0].body.get("doubts", ())),
    )
    return await _run_again(record, engine, handler, plan_telemetry(what))


async def replay_workload(
    events: Sequence[Event],
    journal: Journal,
    registry: Registry,
    make: Callable[[RecordedEffectHandler, Decider], Workload],
    policy: Policy | None = None,
) -> Replayed:
    """Replay a run that has no plan: `make` returns the workload, with the recorded effects and decisions."""
    record = read_run_record(events, journal)
    decider, handler = _replay_decider(record, policy), RecordedEffectHandler(record)
    if decider is None:
        raise JournalError("journal.damaged", f"{journal.path}: run {record.run} has no labels")
    handler.differences += _environment_changes(record, registry, None, decider)
    return await _run_again(record, make(handler, decider), handler, {})


async def _run_again(
    record: RunRecord, work: Workload, handler: RecordedEffectHandler, told: Mapping[str, Fact]
) -> Replayed:
    started = time.perf_counter()
    try:
        with run_span(record.run, told, replayed=True):
            answer = await work.run()
    except BicameralError as error:
        outcome = _unanswered_outcome(record, error, handler, time.perf_counter() - started)
    else:
        seconds = time.perf_counter() - started
        told_of: dict[str, Any] = {}
        if isinstance(work, PlanEngine):
            told_of = {"doubts": work.doubts, "citations": work.citations}
        done = tuple(handler.effects)
        outcome = Finished(record.run, answer, seconds, effects=done, shade=work.answer_labels, **told_of)
    handler.differences += _end_differences(record, outcome, handler)
    return Replayed(record.run, not handler.differences, tuple(handler.differences), outcome)


def _replay_decider(record: RunRecord, policy: Policy | None) -> Decider | None:
    """The decider of the replay; None if the run had no labels."""
    if record.mode is None:
        return None
    return record.decider if policy is None else ReplayDecider(policy, record.decider)


def _environment_changes(
    record: RunRecord, registry: Registry, plan: Plan | None, decider: Decider | None
) -> Iterable[str]:
    """Policies, plan and tools that differ from those of the recorded run."""
    if decider is not None and (decider.fingerprint, decider.mode) != (record.policy, record.mode):
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


def _unanswered_outcome(
    record: RunRecord, error: BicameralError, handler: RecordedEffectHandler, seconds: float
) -> RunOutcome:
    effects = tuple(handler.effects)
    if error.code == "journal.not-recorded" and not _has_proper_end(record):
        return Stopped(record.run, tuple(sorted(handler.in_flight)), seconds, effects=effects)
    return Failed(record.run, error, error.place.step or "" if error.place else "", seconds, effects=effects)


def _has_proper_end(record: RunRecord) -> bool:
    return record.end is not None and record.end.kind != "run-stopped"


def _end_differences(record: RunRecord, outcome: RunOutcome, handler: RecordedEffectHandler) -> Iterable[str]:
    """Where the end of the replay differs from that of the run."""
    if record.end is None or not _has_proper_end(record):
        # It was stopped between two steps, or in one, so there is no end to compare.
        return
    facts: dict[str, Any]
    match outcome:
        case Finished(answer=answer, shade=shade):
            kind, facts = "run-finished", {"answer": value_to_json(answer)}
            if shade is not None:
                facts["shade"] = label_tree_json(shade)
        case Failed(error=error):
            kind, facts = "run-failed", {"error": error.to_json()}
        case _:
            kind, facts = "run-stopped", {}
    if record.end.kind != kind:
        yield f"the end was {record.end.kind!r} and is {kind!r} in the replay"
        return
    recorded: dict[str, Any] = dict(record.end.body)
    facts["effects"] = [done.to_json() for done in handler.effects]
    if record.plan is None:
        # Parts of a pattern end in any order.
        for each in (facts, recorded):
            each["effects"] = sorted(each.get("effects", ()), key=lambda done: str(done["step"]))
    yield from (
        f"the {name} differs from the record"
        for name, value in facts.items()
        if not is_same_json(recorded.get(name), value)
    )
    if kind == "run-finished":
        yield from (f"step {step} was recorded and not run again" for step in handler.unused_steps())
