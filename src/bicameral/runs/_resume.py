"""Take up a run again that was begun and has not ended: from its record, with the code it was begun with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.boundary import Executor
from bicameral.errors import BicameralError, JournalError, RunError
from bicameral.journal import Event, Journal
from bicameral.labels import Shade
from bicameral.plans import Plan
from bicameral.tools import Registry

from ._approvals import Approver
from ._attempt import Leaving, Work, attempt
from ._caps import CapMeter, Caps
from ._earlier import ended_as, taken_in, what_came_of
from ._engine import Engine
from ._hands import Asker, LiveHands
from ._outcome import Interrupted, Observer, RunOutcome
from ._record import Record
from ._recorded import RunRecord, read_run, request_of
from ._resuming import ResumingHands, ResumingJudge
from ._run import ENGINE, steps_of
from ._start import Start

if TYPE_CHECKING:
    from bicameral.policy import Policy

_TROUBLE = ("journal.failed", "journal.locked", "journal.lost")


async def resume_plan(
    journal: Journal,
    run: str,
    registry: Registry,
    *,
    policy: Policy | None = None,
    extractor: Executor | None = None,
    asker: Asker | None = None,
    approver: Approver | None = None,
    observer: Observer | None = None,
    caps: Caps | None = None,
    leaving: Leaving | None = None,
) -> RunOutcome:
    """Go on with a run whose process died, that waits, or that was interrupted; how it ended, if it has.

    Its plan, what it went on from and its mode are those of the record, and so are the `caps` unless others are given.
    Steps that have ended are not done again; pure ones are computed again and must come out as they did. It is refused,
    and can be resumed later, with `run.other-code` where tools, policy, plan or engine are not those it was begun with.
    Whoever resumes a run has it: another process that still works on it can do nothing more.
    """
    try:
        events = journal.events(run)
    except JournalError as error:
        if error.code in _TROUBLE:
            return Interrupted(run, error)
        raise
    _same_plan_language(events[0])
    record = read_run(events, journal)
    if record.end is not None:
        return ended_as(record.end, events)
    plan = _plan_of(record, events[0])
    _same_code(record, events[0], registry, policy)
    earlier = what_came_of(events)
    caps = caps or Caps.from_json(events[0].body["caps"])
    writing = Record(record.run, journal, first=len(events))
    live = LiveHands(
        writing,
        extractor=extractor,
        asker=asker,
        observer=observer,
        approver=approver,
        meter=CapMeter(caps, taken_in(events, earlier)),
        may_wait="part_of" not in events[0].body,
    )
    attempts = 1 + sum(event.kind == "run-resumed" for event in events)

    def begun() -> Work:
        # From here on the run is ours: whoever had it finds this event where his next one should go.
        writing.now("run-resumed", "", {"attempt": attempts + 1})
        return _resumed(record, plan, events, registry, live, policy)

    return await attempt(begun, writing, live, steps_of(plan), earlier=earlier, leaving=leaving)


def _resumed(
    record: RunRecord,
    plan: Plan,
    events: Sequence[Event],
    registry: Registry,
    live: LiveHands,
    policy: Policy | None,
) -> Work:
    facts = events[0].body
    began = {event.step: event.number for event in events if event.kind == "step-started"}
    hands = ResumingHands(record.hands, live, began)
    judge = None
    if policy is not None:
        judge = ResumingJudge(policy, record.decisions, frozenset(record.ended), record.permitted)
    may_ask = frozenset(map(str, facts.get("may_ask", ())))
    ahead = bool(facts.get("ahead", True))
    own = () if policy is None else policy.me
    assembled = (record.start or Start()).assembled_values(plan, registry, request_of(facts), own).calls
    engine = Engine(
        plan,
        registry,
        hands,
        judge,
        record.start,
        caps=live.meter.caps,
        ahead=ahead,
        may_ask=may_ask,
        # What was granted before holds from the beginning: every call that is still to be made comes later.
        grants=record.grants,
        assembled=assembled,
    )
    return _Resumed(engine, hands)


@dataclass(frozen=True, slots=True)
class _Resumed:
    """A plan that is run on; it has ended only if it came to everything that was done before."""

    engine: Engine
    hands: ResumingHands

    async def run(self) -> Any:
        answer = await self.engine.run()
        self.hands.ended()
        return answer

    @property
    def answer_shade(self) -> Shade | None:
        return self.engine.answer_shade

    @property
    def written(self) -> dict[str, Shade]:
        return self.engine.written


def _same_plan_language(first: Event) -> None:
    try:
        version = json.loads(first.body["plan"])["version"]
    except (KeyError, TypeError, ValueError):
        # No plan at all, or a damaged one: whoever reads the record says so.
        return
    known = Plan.model_fields["version"].default
    if version != known:
        raise _other_code(first.run, f"its plan is of version {version!r}, and this reads {known!r}")


def _plan_of(record: RunRecord, first: Event) -> Plan:
    if record.plan is None:
        raise JournalError(
            "journal.no-plan",
            f"run {record.run} is a conversation or a pattern and has no plan, so that it cannot be resumed",
            fix="Begin a new one; `bicameral runs show` tells what this one did.",
        )
    if "caps" not in first.body or "engine" not in first.body:
        raise _other_code(record.run, "it was begun by a version that could not resume runs")
    return record.plan


def _same_code(record: RunRecord, first: Event, registry: Registry, policy: Policy | None) -> None:
    """Refuse to go on with anything else than what the run was begun with."""
    for what in _differences(record, first, registry, policy):
        raise _other_code(record.run, what)


def _differences(record: RunRecord, first: Event, registry: Registry, policy: Policy | None) -> Iterator[str]:
    if first.body["engine"] != ENGINE:
        yield f"it was begun by version {first.body['engine']} of the engine, and this is {ENGINE}"
    for name, fingerprint in record.tools.items():
        tool = registry.get(name)
        if tool is None:
            yield f"the tool {name!r} is not there any more"
        elif tool.fingerprint != fingerprint:
            yield f"the tool {name!r} has another version or declaration"
        elif (code := first.body.get("code", {}).get(name)) and tool.code and tool.code() != code:
            yield f"the code of the tool {name!r} has changed"
    if policy is None and record.mode is not None:
        yield "it was begun under policies, and there are none"
    if policy is not None and record.mode is None:
        yield "it was begun without labels, and there are policies"
    if policy is not None and record.mode is not None and policy.fingerprint != record.policy:
        yield "the policies are others"
    if policy is not None and record.mode is not None and policy.mode != record.mode:
        yield f"control flow counted as {record.mode!r}, and now as {policy.mode!r}"


def _other_code(run: str, what: str) -> BicameralError:
    return RunError(
        "run.other-code",
        f"run {run} cannot be resumed here: {what}",
        fix="Resume it with what it was begun with, or begin a new run.",
    )
