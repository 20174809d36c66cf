"""The record of a run in its journal, and an effect handler that answers every step from it.

`RunRecord` is what the journal has of a run: steps, results, held calls, approvals. `RecordedEffectHandler` returns
what was recorded and collects the differences.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pydantic import ValidationError

from bicameral.errors import BicameralError, JournalError
from bicameral.journal import END_KINDS, Event, EventKind, Journal
from bicameral.labels import UNKNOWN, Label, Labelled, label_tree_from_json, make_labelled
from bicameral.limits import BUDGET, RUN, RUN_LIMITS, STRATEGY, Limits
from bicameral.plans import Plan
from bicameral.policy import Mode
from bicameral.runs._approvals import ApprovalQuestion, ApprovalResult, PendingCall, Permit, refusal_error, shown_hash
from bicameral.runs._call_policy import Grant, RecordedDecider, StepLabels, label_tree_json
from bicameral.runs._changes import ChangeHistory
from bicameral.runs._citations import CitationLog
from bicameral.runs._doubts import SelectionLog
from bicameral.runs._effects import (
    ONCE_EFFECT,
    OnceWork,
    extraction_facts,
    note_reading,
    note_result,
    once_facts,
    question_facts,
    tool_call_facts,
)
from bicameral.runs._inputs import StartState
from bicameral.runs._lookups import Lookups, restore_lookups
from bicameral.runs._model_calls import (
    AskModel,
    ModelAnswer,
    answer_from_record,
    is_cut_off,
    is_same_json,
    recorded_error,
    recount_reading,
    wait_if_cut_off,
)
from bicameral.runs._outcome import EffectDone
from bicameral.runs._scheduler import Activity
from bicameral.tools import CHANGING, AttachedFile, Tool
from bicameral.types import Type, value_from_json

IN_DOUBT_CODE = "run.in-doubt"
"""How a run ends at a call that may have happened and was not to be repeated."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What the journal has of a run, by step."""

    run: str
    plan: Plan | None
    """None for a conversation or a pattern."""
    tools: Mapping[str, str]
    started: Mapping[str, dict[str, Any]]
    finished: Mapping[str, Event]
    held_calls: Mapping[str, Event]
    """Calls that were denied, or held for approval."""
    approvals: tuple[Event, ...]
    mode: Mode | None
    """How control flow counted; None if the run had no labels."""
    policy: str
    end: Event | None
    """The end of the run; None if it has not ended."""
    start: StartState | None = None
    """The variables and labels that it started with, if any."""
    replies: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """What models wrote in a conversation, by turn."""
    readings: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict[str, Sequence[dict[str, Any]]])
    """The model calls of each extraction, by its step."""
    notes: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """What a pattern noted, by its place."""
    caps: Limits = RUN_LIMITS
    """How much it might take."""

    @property
    def decider(self) -> RecordedDecider:
        """Decides as recorded."""
        bodies = {step: event.body for step, event in self.held_calls.items()} | dict(self.started)
        decisions = {step: body["decision"] for step, body in bodies.items() if "decision" in body}
        # Earlier versions made a call that policy asked about at once, on an earlier approval of the same call. Now
        # every such call is held first.
        begun = (step for step in self.started if step not in self.held_calls)
        permitted = frozenset(step for step in begun if decisions.get(step, {}).get("said") == "asked")
        return RecordedDecider(self.mode or "strict", self.policy, decisions, permitted)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What a person granted for the rest of the run."""
        return tuple(grant for event in self.approvals for grant in RecordedApproval.from_event(event).granted)


class RecordedEffectHandler:
    """An effect handler without effects: each step gets the result that the record has for it."""

    def __init__(self, record: RunRecord) -> None:
        self.effects: list[EffectDone] = []
        self.in_flight: set[str] = set()
        self.activity = Activity()
        self.selections = SelectionLog()
        self.citations = CitationLog()
        self.changes = ChangeHistory()
        self.differences: list[str] = []
        self._started = record.started
        self._ended = record.finished
        self._held = record.held_calls
        self._approvals = [RecordedApproval.from_event(event) for event in record.approvals]
        self._replies = record.replies
        self._readings = record.readings
        self._end = record.end
        self._notes = record.notes
        self._used: set[str] = set()
        self._used_replies: set[str] = set()
        # The model calls of an extraction are part of its step and are not asked for one by one.
        self._own_replies = {step for step, body in record.replies.items() if "prompt" in body}
        self._answered: set[tuple[int, str]] = set()

    async def call(self, step: str, tool: Tool, bound: dict[str, Any], labels: StepLabels | None = None) -> Any:
        await self.wait_if_unrecorded(step)
        value = self._recorded_result(step, tool_call_facts(tool, bound), labels)
        note_result((self.selections, self.citations), step, value, self._ended[step].body, labels)
        if tool.changes:
            self.effects.append(EffectDone(step, tool.name, tool.effect))
        await self._wait_if_stopped(step)
        return value

    async def do_once(self, step: str, name: str, work: OnceWork, read: Label, *, repeatable: bool) -> Labelled[Any]:
        await self.wait_if_unrecorded(step)
        ended = self._ended.get(step)
        tree = label_tree_from_json(ended.body["shade"]) if ended is not None and "shade" in ended.body else UNKNOWN
        value = self._recorded_result(step, once_facts(name), StepLabels({}, read, lambda _: tree))
        self.effects.append(EffectDone(step, name, ONCE_EFFECT))
        await self._wait_if_stopped(step)
        return make_labelled(value, tree)

    async def wait_if_unrecorded(self, step: str, call: PendingCall | None = None) -> None:
        if step not in self._ended if call is None else self._approval(step, call.hash) is None:
            await wait_if_cut_off()

    async def _wait_if_stopped(self, step: str) -> None:
        """A change that had begun was finished although its part was cancelled, and the part did not get its result."""
        if self._ended[step].body.get("stopped"):
            await wait_if_cut_off()

    async def extract(
        self,
        step: str,
        source: Any,
        instruction: str,
        wanted: Type,
        labels: StepLabels | None = None,
        lookups: Lookups | None = None,
    ) -> Any:
        await self.wait_if_unrecorded(step)
        if labels is not None and step in self._ended:
            restore_lookups(labels, self._ended[step].body)
        for call in self._readings.get(step, ()):
            recount_reading(call)
        value = self._recorded_result(step, extraction_facts(source, instruction, wanted), labels)
        note_reading(self.citations, step, (source, instruction, wanted), value, labels)
        return value

    async def ask(self, step: str, question: str, wanted: Type, labels: StepLabels | None = None) -> Any:
        await self.wait_if_unrecorded(step)
        return self._recorded_result(step, question_facts(question, wanted), labels)

    async def approve(self, question: ApprovalQuestion) -> ApprovalResult:
        """The recorded answers. How calls were grouped into questions depends on timing and is not compared."""
        permits: Counter[Permit] = Counter()
        grants: list[Grant] = []
        for call in question.calls:
            for step in call.steps:
                approval = self._approval(step, call.hash)
                if approval is None:
                    await wait_if_cut_off()
                    self.in_flight.add(step)
                    raise JournalError("journal.not-recorded", f"the record holds no approval for step {step!r}")
                if approval.error is not None:
                    raise recorded_error(approval.error)
                if call.hash in approval.approved:
                    permits[step, call.hash] += 1
                    grants += (grant for grant in approval.granted if grant not in grants)
        return ApprovalResult(permits, tuple(grants))

    async def attached_files(self, step: str, tool: Tool, bound: dict[str, Any]) -> tuple[AttachedFile, ...]:
        """The files as they were when the call was last asked about."""
        found: tuple[AttachedFile, ...] = ()
        for each in self._approvals:
            found = each.files.get(step, found)
        return found

    async def check_initial_question(self) -> None:
        """Raise as the run did if a question before its first step was refused, or nobody could be asked."""
        for each in self._approvals:
            if each.before and each.error is not None:
                raise recorded_error(each.error)
            if each.before and (refused := each.first_refused) is not None:
                raise refusal_error(*refused)

    def step_state(self, step: str) -> Literal["ended", "begun", "held"] | None:
        """Whether the step has ended, has begun with an unknown end, or was held and never begun; None: no record."""
        if step in self._ended:
            return "ended"
        return "begun" if step in self._started else "held" if step in self._held else None

    def has_held_call(self, step: str, kind: EventKind) -> bool:
        """Whether it is recorded that this call was denied, or held."""
        return (found := self._held.get(step)) is not None and found.kind == kind

    def recorded_answer(self, step: str, call: PendingCall) -> bool | None:
        """The answer about a call at a step; None if it must still be asked about.

        An answer at this very step counts first. A refusal holds for the call at every step. An approval holds only at
        its step: for the same call if it was due there, and if it was asked about ahead, only for exactly what was
        shown.
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

    def compare_started(self, step: str, facts: dict[str, Any]) -> None:
        """Compare a step that had not ended with its record, except for the decision, which is made again."""
        recorded = self._started[step] if step in self._started else self._held[step].body
        self._compare(step, recorded, {name: fact for name, fact in facts.items() if name != "decision"})

    def _approval(self, step: str, hash_: str) -> RecordedApproval | None:
        """The answer about a call at a step when it was due, or else the last one that was given ahead."""
        asked = [each for each in self._approvals if (step, hash_) in each.due or (step, hash_) in each.ahead]
        due = [each for each in asked if (step, hash_) in each.due]
        if due or asked:
            return (due or asked)[-1]
        return self._answer_without_steps(hash_)

    def _answer_without_steps(self, hash_: str) -> RecordedApproval | None:
        """The next answer about a call in a record of an earlier version, which has only the first of its steps."""
        last: RecordedApproval | None = None
        for number, each in enumerate(self._approvals):
            if hash_ in each.without_steps:
                last = each
                if (number, hash_) not in self._answered:
                    self._answered.add((number, hash_))
                    return each
        return last

    async def ask_model(self, step: str, facts: dict[str, Any], ask: AskModel) -> ModelAnswer:
        """The recorded reply; what was asked is compared with the record. The charges are those of the original run."""
        recorded = self._replies.get(step)
        if recorded is None:
            await wait_if_cut_off()
            if (error := self._limit_error()) is not None:
                raise error
            raise JournalError("journal.not-recorded", f"the record holds no reply of a model for step {step!r}")
        # Records of earlier versions have no fingerprint of the prompt.
        known = facts if "prompt" in recorded else {name: fact for name, fact in facts.items() if name != "prompt"}
        self._compare(step, recorded, known)
        self._used_replies.add(step)
        return answer_from_record(recorded)

    def has_reply(self, step: str) -> bool:
        """Whether the reply of a model, or its failure, is recorded."""
        return step in self._replies

    def limit_steps(self, limits: Mapping[str, float]) -> None:
        """Recorded steps take no time."""

    def recorded_note(self, step: str) -> Mapping[str, Any] | None:
        return self._notes.get(step)

    def has_unused(self, path: str) -> bool:
        """Whether there are recorded steps or replies below this path that were not asked for yet."""
        unused = (self._ended.keys() - self._used) | (self._own_replies - self._used_replies)
        return any(step.startswith(path) for step in unused)

    @property
    def is_recorded(self) -> bool:
        return True

    def record_note(self, step: str, facts: dict[str, Any], *, sync: bool = False) -> None:
        """Compare a note of a pattern with the record."""
        # A part that was cut off between two recorded steps may come to a note now that it did not come to then.
        if step in self._notes or not is_cut_off():
            self._compare(step, self._notes.get(step, {}), facts)

    def record_held_call(
        self, step: str, kind: EventKind, tool: Tool, bound: dict[str, Any], labels: StepLabels
    ) -> None:
        found = self._held.get(step)
        if found is None or found.kind != kind:
            self.differences.append(f"step {step}: {kind!r} is not as recorded")
        else:
            self._compare(step, found.body, tool_call_facts(tool, bound) | labels.start_facts())

    def unused_effects(self) -> list[str]:
        """Steps that changed the world by the record and were not run again."""
        changed = {step for step, started in self._started.items() if started.get("effect") in CHANGING}
        return sorted(changed & set(self._ended) - self._used)

    def unused_steps(self) -> list[str]:
        """Steps that are recorded and were not run again."""
        return sorted(set(self._ended) - self._used) + sorted(self._own_replies - self._used_replies)

    def _recorded_result(self, step: str, facts: dict[str, Any], labels: StepLabels | None) -> Any:
        started, ended = self._started.get(step), self._ended.get(step)
        if started is not None:
            self._compare(step, started, facts if labels is None else facts | labels.start_facts())
        if ended is None:
            error = self._cap_error(step) if started is None else self._doubt_error(step)
            if error is not None:
                raise error
        if started is None or ended is None:
            self.in_flight.add(step)
            raise JournalError("journal.not-recorded", f"the record holds no answer for step {step!r}")
        self._used.add(step)
        if ended.kind == "step-failed":
            raise recorded_error(ended.body["error"])
        value = value_from_json(ended.body["result"])
        if labels is not None and not is_same_json(
            ended.body.get("shade"), label_tree_json(labels.result_labels(value))
        ):
            self.differences.append(f"step {step}: 'shade' is not as recorded")
        return value

    @property
    def _end_error(self) -> BicameralError | None:
        """The error that ended the run, if one did."""
        end = self._end
        if end is None or end.kind != "run-failed" or "error" not in end.body:
            return None
        return recorded_error(end.body["error"])

    def _cap_error(self, step: str) -> BicameralError | None:
        """The error of a run that ended at a cap, at this step. A call beyond a cap is not begun, so it has no record.

        Any other step without a record is a gap, which must not pass for the end of the run.
        """
        error = self._end_error
        if error is None or self._end is None or self._end.step != step:
            return None
        return error if error.code == RUN.reached_code else None

    def _doubt_error(self, step: str) -> BicameralError | None:
        """The error of a run that ended at this step since nobody knows whether its call happened: it has no end."""
        error = self._end_error
        if error is None or self._end is None:
            return None
        # The end of a pattern names no step; its error does.
        at = self._end.step if error.place is None else error.place.step
        return error if (error.code, at) == (IN_DOUBT_CODE, step) else None

    def _limit_error(self) -> BicameralError | None:
        """The error of a run that ended at a limit. A model that is not asked any more has no record of that.

        The limits of patterns on calls and tokens are counted again; what remains is time, and the limits of the run.
        """
        error = self._end_error
        if error is None:
            return None
        # Earlier versions recorded no failure of a model but the end of the run.
        is_limit = error.code in (RUN.reached_code, STRATEGY.reached_code, BUDGET.reached_code)
        return error if is_limit or not self._own_replies else None

    def _compare(self, step: str, recorded: dict[str, Any], now: dict[str, Any]) -> None:
        self.differences += [
            f"step {step}: {name!r} is not as recorded"
            for name, value in now.items()
            if not is_same_json(recorded.get(name), value)
        ]


@dataclass(frozen=True, slots=True)
class RecordedApproval:
    """A question that a person was asked: its calls, by step and hash, and which of them were approved."""

    due: frozenset[Permit]
    ahead: frozenset[Permit]
    approved: frozenset[str]
    error: dict[str, Any] | None
    before: bool
    first_refused: tuple[str, str] | None
    """The step and the tool of the first call that was not approved."""
    shown: frozenset[tuple[str, str]]
    """Steps, each with the hash of what was shown of its call."""
    without_steps: frozenset[str]
    """Calls in a record of an earlier version: only the first of their steps is known."""
    files: Mapping[str, tuple[AttachedFile, ...]]
    """The attached files of a call, by step."""
    granted: tuple[Grant, ...] = ()

    @property
    def hashes(self) -> frozenset[str]:
        return frozenset(hash_ for _, hash_ in self.due | self.ahead)

    @classmethod
    def from_event(cls, event: Event) -> RecordedApproval:
        calls, approved = event.body["calls"], frozenset(event.body["approved"])
        permits = {
            ahead: frozenset(
                (step, str(call["hash"]))
                for call in calls
                if call.get("ahead", False) is ahead
                for step in _call_steps(call)
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
            frozenset((step, shown_hash(call)) for call in calls for step in _call_steps(call)),
            frozenset(str(call["hash"]) for call in calls if "steps" not in call),
            {
                step: tuple(map(AttachedFile.from_json, call.get("files", ())))
                for call in calls
                for step in _call_steps(call)
            },
            tuple(map(Grant.from_json, event.body.get("granted", ()))),
        )


def _call_steps(call: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, call.get("steps", (call["step"],))))


def recorded_request(facts: Mapping[str, Any]) -> str | None:
    """The request that a model wrote a plan for, from the first event of its run; None if a person wrote the plan."""
    if facts.get("intent") is None:
        return None
    try:
        return str(json.loads(facts["intent"])["request"])
    except (ValueError, TypeError, KeyError):
        # A model wrote the plan for a request that cannot be read: an empty one, so that nothing counts as the user's.
        return ""


def _readings(events: Sequence[Event]) -> Mapping[str, Sequence[dict[str, Any]]]:
    """The model calls that no conversation or pattern made itself, which have no fingerprint of a prompt."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event.kind == "model-called" and "prompt" not in event.body:
            found.setdefault(event.step, []).append(event.body)
    return found


def read_run_record(events: Sequence[Event], journal: Journal) -> RunRecord:
    """The record of a run from its events; raises if it is not a run, or is damaged."""
    first = events[0]
    if first.kind != "run-started":
        raise JournalError(
            "journal.unknown-run", f"{first.run!r} is a reasoning of several runs", fix="Replay its rounds one by one."
        )
    try:
        planless = "strategy" in first.body or "pattern" in first.body
        plan = None if planless else Plan.model_validate_json(first.body["plan"])
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
        events[-1] if events[-1].kind in END_KINDS else None,
        StartState.from_json(first.body["start"]) if "start" in first.body else None,
        {event.step: event.body for event in events if event.kind == "model-called"},
        _readings(events),
        {event.step: event.body for event in events if event.kind == "note"},
        Limits.from_json(first.body.get("caps", RUN_LIMITS.to_json() | {"work": None}), RUN),
    )
