"""A pattern as a run: begun with its record, replayed from it, and resumed where it ended.

The first event of the record has the pattern with all its fields and its arguments with their labels. Whoever runs it
again does so from the beginning: replies of models, results of tools and answers of people come from the record as far
as it goes, by the place that asked for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from bicameral.errors import CatalogError, JournalError, RunError
from bicameral.journal import Event, Journal, NewEvent
from bicameral.labels import Labelled, LabelTree, listen_for_escapes, open_labelled
from bicameral.limits import STRATEGY, Limits, LimitUsage, Meter
from bicameral.patterns._outcome import Outcome, outcome_of
from bicameral.patterns.kernel._codec import fingerprint, from_record, to_record
from bicameral.patterns.kernel._context import Context
from bicameral.patterns.kernel._parts import NEAR_LIMIT
from bicameral.patterns.kernel._pattern import Pattern
from bicameral.patterns.kernel._state import PlanServices, SharedState
from bicameral.patterns.strategies import (
    Runtime,
    is_conversation,
    replay_conversation,
    run_decider,
    run_recorded,
    unasked_models,
)
from bicameral.runs import (
    CallGate,
    Decider,
    EffectHandler,
    PreviousAttempts,
    RecordedEffectHandler,
    ReplaceRule,
    Replayed,
    RunOutcome,
    ShouldLeave,
    new_run_id,
    replay,
    replay_workload,
    resume_workload,
)
from bicameral.tools import Registry

if TYPE_CHECKING:
    from bicameral.policy import Policy


RESTORED_FROM = "restored_from"
"""In the first event of a run that goes on from a checkpoint of a damaged one: the id of that run."""


@dataclass(frozen=True, slots=True)
class PatternWork:
    """A pattern with its arguments."""

    pattern: Pattern[..., Any]
    args: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def request(self) -> Labelled[str] | None:
        """The text that it works on, if that is all it is given."""
        only = self.args[0] if len(self.args) == 1 and not self.named else None
        if not isinstance(only, Labelled):
            return None
        closed = cast("Labelled[Any]", only)
        return closed if isinstance(open_labelled(closed), str) else None

    @property
    def title(self) -> str:
        """What lists of runs show of it: the request in the user's words, or the pattern."""
        request = self.request
        if request is None or not request.label.trusted:
            return f"pattern {self.pattern.id}"
        return open_labelled(request)

    def to_json(self) -> dict[str, Any]:
        """The facts of the first event."""
        return {"request": self.title, **self.portable_json()}

    def portable_json(self) -> dict[str, Any]:
        """The pattern with its arguments, for the record and for another process."""
        spec = to_record(self.pattern)
        return {
            "pattern": self.pattern.id,
            "spec": spec,
            "spec_hash": fingerprint(spec),
            "knobs": {name: to_record(value) for name, value in self.pattern.knobs.items()},
            "arguments": to_record(list(self.args)),
            "named": {name: to_record(value) for name, value in self.named.items()},
        }

    def to_portable_json(self) -> dict[str, Any]:
        """As `portable_json`; `pattern.not-portable` if another process would not have the same pattern from it."""
        facts = self.portable_json()
        if PatternWork.from_json(facts).portable_json() != facts:
            raise _unreadable_error(self.pattern.id)
        return facts

    @classmethod
    def from_event(cls, first: Event, pattern: Pattern[..., Any] | None = None) -> PatternWork:
        """What the first event of a run has; `pattern` instead of the recorded one, if only its program has it."""
        return cls.from_json(first.body, pattern)

    @classmethod
    def from_json(cls, facts: Mapping[str, Any], pattern: Pattern[..., Any] | None = None) -> PatternWork:
        """What `portable_json` wrote; `pattern.not-portable` if this process does not have all of it."""
        try:
            found = pattern or from_record(facts["spec"])
            args = from_record(facts["arguments"])
            named = {name: from_record(each) for name, each in facts["named"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            # A class of another version has other fields.
            raise _unreadable_error(str(facts.get("pattern"))) from None
        if not isinstance(found, Pattern):
            raise _unreadable_error(str(facts.get("pattern")))
        return cls(cast("Pattern[..., Any]", found), args, named)

    def difference(self, facts: Mapping[str, Any]) -> str | None:
        """How this pattern differs from the recorded one."""
        if fingerprint(to_record(self.pattern)) == facts.get("spec_hash"):
            return None
        return f"the pattern {self.pattern.id} has other settings or other code than the recorded one"


def _unreadable_error(id: str) -> CatalogError:
    return CatalogError(
        "pattern.not-portable",
        f"this program does not have the pattern {id[:20]!r} as it was written down",
        fix="Use the version, or the program, that began the run.",
    )


def is_pattern_run(journal: Journal, run: str) -> bool:
    """Whether a recorded run is that of a pattern; not if its record cannot be read, which its reader then reports."""
    try:
        return has_pattern(journal.events(run))
    except JournalError:
        return False


def has_pattern(events: Sequence[Event]) -> bool:
    """Whether these are the events of the run of a pattern."""
    return bool(events) and events[0].kind == "run-started" and "pattern" in events[0].body


async def replay_run(journal: Journal, run: str, registry: Registry, policy: Policy) -> Replayed:
    """Run any recorded run again, of a plan, a conversation or a pattern; nothing has an effect.

    Replies of models, tools and people are the recorded ones, and calls are decided as they were.
    """
    if is_conversation(journal, run):
        return await replay_conversation(journal, run, registry, policy)
    if is_pattern_run(journal, run):
        return await replay_pattern(journal, run, registry, policy)
    return await replay(journal, run, registry)


async def run_pattern(
    work: PatternWork,
    runtime: Runtime,
    *,
    run: str | None = None,
    may_wait: bool = False,
    leaving: ShouldLeave | None = None,
) -> Outcome[Any]:
    """Run a pattern, and return the outcome. Stopping the task that awaits this gives a `GaveUp`.

    Args:
        work: The pattern with its arguments.
        runtime: The models, tools and people.
        run: The id of the run, by default a new one.
        may_wait: Whether the run may be suspended until a person answers: somebody must be able to resume it.
        leaving: Whether a cancellation leaves the run to another process.
    """
    outcome, workload = await _run(work, runtime, run, leaving, may_wait=may_wait)
    return _pattern_outcome(work, outcome, workload)


async def run_pattern_work(
    work: PatternWork, runtime: Runtime, *, run: str | None = None, leaving: ShouldLeave | None = None
) -> RunOutcome:
    """What `run_pattern` does, with the outcome that a plan has too: a run that waits is `Waiting`, with its question.

    It may wait wherever it has a journal.
    """
    return (await _run(work, runtime, run, leaving, may_wait=runtime.journal is not None))[0]


async def _run(
    work: PatternWork, runtime: Runtime, run: str | None, leaving: ShouldLeave | None, *, may_wait: bool
) -> tuple[RunOutcome, PatternWorkload | None]:
    return await run_recorded(
        lambda decider, handler: PatternWorkload(work, runtime, decider, handler),
        work.to_json,
        runtime,
        {"bicameral.pattern": work.pattern.id},
        run=run,
        may_wait=may_wait,
        leaving=leaving,
    )


async def resume_pattern(
    journal: Journal,
    run: str,
    runtime: Runtime,
    *,
    pattern: Pattern[..., Any] | None = None,
    leaving: ShouldLeave | None = None,
) -> Outcome[Any]:
    """Continue the run of a pattern whose process died, that waits, or that was interrupted.

    What is recorded is not done again. The limits are those that it was begun with.

    Args:
        journal: The journal with the record.
        run: The id of the run.
        runtime: The models, tools and people.
        pattern: The pattern, if it holds something that only its program has.
        leaving: As in `run_pattern`.
    """
    work, outcome, workload = await _resume(journal, run, runtime, pattern, leaving)
    return _pattern_outcome(work, outcome, workload)


async def resume_pattern_work(
    journal: Journal,
    run: str,
    runtime: Runtime,
    *,
    pattern: Pattern[..., Any] | None = None,
    leaving: ShouldLeave | None = None,
) -> RunOutcome:
    """What `resume_pattern` does, with the outcome that a plan has too."""
    return (await _resume(journal, run, runtime, pattern, leaving))[1]


async def _resume(
    journal: Journal, run: str, runtime: Runtime, pattern: Pattern[..., Any] | None, leaving: ShouldLeave | None
) -> tuple[PatternWork, RunOutcome, PatternWorkload | None]:
    first = journal.events(run)[0]
    work = PatternWork.from_event(first, pattern)
    if (difference := work.difference(first.body)) is not None:
        raise RunError("run.other-code", f"run {run} cannot be resumed here: {difference}")
    bounds = Limits.from_json(first.body["bounds"], STRATEGY)
    made: list[PatternWorkload] = []

    def make(handler: EffectHandler, decider: Decider, earlier: PreviousAttempts) -> PatternWorkload:
        made.append(PatternWorkload(work, replace(runtime, bounds=bounds), decider, handler, earlier.seconds))
        return made[0]

    outcome = await resume_workload(
        journal,
        run,
        runtime.registry,
        make,
        decider=run_decider(
            runtime.policy, careful=bool(first.body.get("careful")), restored=RESTORED_FROM in first.body
        ),
        told={"bicameral.pattern": work.pattern.id},
        leaving=leaving,
        observer=runtime.observer,
        approver=runtime.approver,
        asker=runtime.asker,
        extractor=runtime.extractor,
    )
    return work, outcome, made[0] if made else None


async def extend_pattern(
    journal: Journal, run: str, runtime: Runtime, pattern: Pattern[..., Any], *, new_run: str | None = None
) -> Outcome[Any]:
    """Continue a run that reached a limit, as a run of its own under the limits of this pattern and this runtime.

    What is recorded is not done again, and counts against the new limits. `pattern.not-extended` if the run did not end
    at a limit, or if it was cut off in a call of which nobody knows whether it happened.

    Args:
        journal: The journal with the record.
        run: The id of the run that reached the limit. It stays as it is.
        runtime: The models, tools and people, and the limits of the whole.
        pattern: The pattern with larger limits.
        new_run: The id of the run that continues it.
    """
    events = journal.events(run)
    if not has_pattern(events) or not _is_limit_end(events[-1]):
        raise _not_extended_error(run, "it is no run of a pattern that ended at a limit")
    ended = {event.step for event in events if event.kind in ("step-finished", "step-failed")}
    if any(event.kind == "step-started" and event.step not in ended for event in events):
        # Its key as a call of this run is another one, so that not even its tool could tell a repetition.
        raise _not_extended_error(run, "it was cut off in a call that may have happened")
    first = events[0]
    work = replace(PatternWork.from_event(first, pattern), pattern=pattern)
    body = {**first.body, **work.to_json(), "bounds": runtime.bounds.to_json(), "continues": run}
    # What was noted after the last thing that was done is the end at the limit, which is not the end now.
    done = max(number for number, event in enumerate(events[:-1]) if event.kind != "note")
    kept = [event for event in events[1 : done + 1] if event.body.get("noted") != NEAR_LIMIT]
    entries = [NewEvent(each.at, each.kind, each.step, each.body) for each in kept]
    new_run = new_run or new_run_id()
    journal.append_all(new_run, [NewEvent(first.at, first.kind, first.step, body), *entries], first=0, sync=True)
    return await resume_pattern(journal, new_run, runtime, pattern=pattern)


def _is_limit_end(event: Event) -> bool:
    return event.kind == "run-failed" and event.body["error"]["code"] == STRATEGY.reached_code


def _not_extended_error(run: str, why: str) -> RunError:
    return RunError("pattern.not-extended", f"run {run} cannot be continued: {why}", fix="Begin a new run.")


async def replay_pattern(
    journal: Journal,
    run: str,
    registry: Registry,
    policy: Policy,
    *,
    pattern: Pattern[..., Any] | None = None,
    decide: bool = False,
) -> Replayed:
    """Run a pattern again from the recorded replies of models, tools and people; nothing has an effect.

    Everything is decided as it was, unless the policy is to `decide` again. Another `pattern` is compared with the
    record, to see what a change would have done differently.
    """
    events = journal.events(run)
    work = PatternWork.from_event(events[0], pattern)
    # Time is not replayed: where it ran out, the record ends.
    bounds = replace(Limits.from_json(events[0].body["bounds"], STRATEGY), seconds=3600.0)
    runtime = Runtime(unasked_models(), registry, policy, bounds)

    def make(handler: RecordedEffectHandler, decider: Decider) -> PatternWorkload:
        if (difference := work.difference(events[0].body)) is not None:
            handler.differences.append(difference)
        return PatternWorkload(work, runtime, decider, handler)

    return await replay_workload(events, journal, registry, make, policy if decide else None)


def _pattern_outcome(work: PatternWork, outcome: RunOutcome, workload: PatternWorkload | None) -> Outcome[Any]:
    context = None if workload is None else workload.context
    return outcome_of(
        outcome,
        limits=STRATEGY,
        subject="it",
        way=work.pattern.id,
        taken=LimitUsage(scope=STRATEGY) if context is None else context.meter.usage,
        trace=() if context is None else tuple(context.shared.trace),
    )


def replace_rule(request: Labelled[str], handler: EffectHandler, registry: Registry) -> ReplaceRule | None:
    """Asks before files are replaced that were there before the run, where models choose the calls for a request."""
    if isinstance(handler, RecordedEffectHandler):
        # A replay decides as recorded.
        return None
    # Words that somebody else may have chosen do not say for the user that a file may be replaced.
    said = open_labelled(request) if request.label.trusted else ""
    return ReplaceRule.for_request(said, None, registry, handler.changes.touched)


@dataclass(slots=True)
class PatternWorkload:
    """The workload of one pattern."""

    work: PatternWork
    runtime: Runtime
    decider: Decider
    handler: EffectHandler
    seconds: float = 0.0
    """The working time of earlier attempts."""
    context: Context | None = None
    given: Labelled[Any] | None = None
    written_labels: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])

    async def run(self) -> Any:
        runtime = self.runtime
        meter = Meter(runtime.bounds, before=LimitUsage(seconds=self.seconds))
        request = self.work.request
        rule = None if request is None else replace_rule(request, self.handler, runtime.registry)
        gate = CallGate(self.decider, self.handler, replacing=rule, ordered=False)
        shared = SharedState(
            runtime.models,
            gate,
            self.handler,
            runtime.registry,
            written_labels=self.written_labels,
            audience=runtime.audience,
            plans=PlanServices(runtime.planner, runtime.policy, self.decider, runtime.caps),
        )
        self.context = Context(shared, meter)
        async with meter.running():
            with listen_for_escapes(shared.note_escape):
                try:
                    given = await self.work.pattern.execute(self.context, *self.work.args, **self.work.named)
                finally:
                    # A task that the pattern started and did not wait for can do nothing any more.
                    self.context.life.end()
        # Whatever the pattern opened may have decided which value it returns, so its labels are joined to the answer.
        self.given = given.with_label(self.context.read_label)
        return open_labelled(self.given)

    @property
    def answer_labels(self) -> LabelTree | None:
        return None if self.given is None else self.given.label_tree
