"""What a run reports: events to its journal, spans and counters to telemetry.

Events about effects are written and synced before the effect begins; everything else is written shortly after, in
batches, by the journal's own thread. Telemetry gets names, numbers and label summaries, and never a value.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from bicameral.errors import JournalError
from bicameral.journal import EventKind, Journal, NewEvent
from bicameral.labels import LabelTree, join_all
from bicameral.plans import Ask as AskStep, Call, Extract
from bicameral.policy import Allowed, Ask, CallFacts, Decision
from bicameral.runs._approvals import Answers, ApprovalQuestion
from bicameral.runs._outcome import Failed, Finished, Interrupted, RunOutcome
from bicameral.telemetry import Fact, Span, count, label_summary, span
from bicameral.tools import Tool

BATCH_SECONDS = 0.003
UNRECORDABLE = frozenset({"journal.unrecordable", "journal.too-large"})
"""Errors of one value and not of the record: a retry would fail in the same way."""

EventBody = dict[str, Any] | Callable[[], dict[str, Any]]


class EventWriter:
    """Writes the events of one run. Without a journal nothing is written.

    `write` with `sync` is for what changes the world: it must not happen if this fails. `write_later` is for what only
    reads: the journal's own thread writes it, so that no step waits for the disk. If that fails, the next write fails,
    and so does the run.

    Args:
        run: The id of the run.
        journal: Where the events go.
        first: The number of the first event. If another process has written an event with this number or a later one,
            the run is that process's, and the write fails.
    """

    def __init__(self, run: str, journal: Journal | None, *, first: int = 0) -> None:
        self.run = run
        self._first = first
        self._journal = journal
        self._waiting: deque[tuple[bool, float, EventKind, str, EventBody]] = deque()
        # Whether the journal's thread will come: one wake-up is enough for all events that wait.
        self._called = False
        self._failure: JournalError | None = None
        self._fault: JournalError | None = None
        self._writing = Lock()

    @property
    def is_enabled(self) -> bool:
        """Whether anything is written at all."""
        return self._journal is not None

    @property
    def failure(self) -> JournalError | None:
        """Why nothing more can be written; None if it can."""
        return self._failure

    def write_later(self, kind: EventKind, step: str, body: EventBody) -> None:
        if self._journal is None:
            return
        self._add(kind, step, body)
        if not self._called:
            self._called = True
            try:
                self._journal.run_in_background(self._write_quietly)
            except JournalError as error:
                self._failure = error
                raise

    def write(self, kind: EventKind, step: str, body: EventBody, *, sync: bool = False) -> None:
        """Write now: the event and all before it survive the death of the process, and with `sync` a power cut."""
        if self._journal is None:
            return
        self._add(kind, step, body, sync=sync)
        try:
            self._write(self._journal)
        except JournalError as error:
            self._failure = error
            raise
        self._raise()

    def _add(self, kind: EventKind, step: str, body: EventBody, *, sync: bool = False) -> None:
        self._raise()
        self._waiting.append((sync, time.time(), kind, step, body))

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure
        # Raised once: the run fails with it, and that failure can be written.
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _write(self, journal: Journal) -> None:
        # Locked from taking to writing, so that events are written in the order in which they were added, whether the
        # run's thread or the journal's writes them.
        with self._writing:
            # The journal's thread may take an event that the run waits for: it must be synced all the same.
            entries: list[NewEvent] = []
            sync = False
            while self._waiting:
                wanted, at, kind, step, body = self._waiting.popleft()
                sync = sync or wanted
                entries.append(NewEvent(at, kind, step, body() if callable(body) else body))
            if entries and self._failure is None:
                self._append(journal, entries, sync=sync)

    def _append(self, journal: Journal, entries: list[NewEvent], *, sync: bool) -> None:
        try:
            journal.append_all(self.run, entries, first=self._first, sync=sync)
            self._first += len(entries)
        except JournalError as error:
            if error.code not in UNRECORDABLE:
                raise
            # A value that cannot be written is a fault of its step; the other events are written without it.
            if len(entries) == 1:
                self._fault = error
                return
            for entry in entries:
                self._append(journal, [entry], sync=sync)

    def _write_quietly(self, journal: Journal) -> None:
        # Steps that begin or end together are written together.
        time.sleep(BATCH_SECONDS)
        # Before the writing: an event that is added meanwhile wakes the thread again and is never forgotten.
        self._called = False
        try:
            self._write(journal)
        except JournalError as error:
            self._failure = error
        except Exception as error:
            self._failure = JournalError("journal.failed", f"{journal.path}: {type(error).__name__}: {error}")


def run_span(run: str, facts: Mapping[str, Fact], *, replayed: bool = False) -> Span:
    """The span of a run; `facts` describe what it runs."""
    known: dict[str, Fact] = {"gen_ai.operation.name": "invoke_workflow", "bicameral.run": run}
    return span("replay" if replayed else "run", "", known | dict(facts))


def record_outcome(trace: Span, outcome: RunOutcome) -> None:
    """Record the outcome of a run, and what it cost."""
    how = type(outcome).__name__.lower()
    count("bicameral.runs", 1, {"bicameral.run.outcome": how})
    if not trace.is_recording:
        return
    usage = outcome.usage
    facts: dict[str, Fact] = {
        "bicameral.run.outcome": how,
        "bicameral.run.effects": len(outcome.effects),
        "bicameral.run.alerts": usage.alerts,
        "bicameral.run.rejected": sum(usage.rejected.values()),
        "bicameral.run.not_found": usage.not_found,
        **{f"bicameral.{name}": number for name, number in usage.spent.to_json().items()},
    }
    trace.set_facts(facts)
    if isinstance(outcome, Finished) and outcome.shade is not None:
        trace.set_facts(label_summary("bicameral.answer", outcome.shade.flat))
    if isinstance(outcome, Failed | Interrupted):
        trace.set_error(outcome.error.code)


def step_span(step: Call | Extract | AskStep, at: str) -> Span:
    """The span of a step with an effect; local steps have none."""
    facts: dict[str, Fact] = {"bicameral.step": at, "bicameral.step.do": step.do}
    if isinstance(step, Call):
        facts["gen_ai.tool.name"] = step.tool
    return span("step", step.tool if isinstance(step, Call) else step.do, facts)


def record_step_result(trace: Span, found: tuple[Any, LabelTree | None] | None) -> None:
    """Record the labels of a step's result; a held call has none yet."""
    if not trace.is_recording:
        return
    if found is None:
        trace.set_facts({"bicameral.step.waits": True})
    elif found[1] is not None:
        trace.set_facts(label_summary("bicameral.result", found[1].flat))


def tool_span(step: str, tool: Tool) -> Span:
    """The span of a tool's own work, by OpenTelemetry's conventions for tools."""
    facts: dict[str, Fact] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool.name,
        "gen_ai.tool.type": "function",
        "bicameral.step": step,
        "bicameral.tool.effect": tool.effect,
    }
    return span("execute_tool", tool.name, facts)


def record_extraction(trace: Span, found: Mapping[str, Any]) -> None:
    """Record the outcome of an extraction, and the kinds of its alerts."""
    if trace.is_recording:
        alerts: list[dict[str, Any]] = found.get("alerts", [])
        kinds = tuple(dict.fromkeys(str(alert["kind"]) for alert in alerts))
        trace.set_facts({"bicameral.extraction.outcome": str(found["outcome"])})
        trace.set_facts({"bicameral.alerts": len(alerts), "bicameral.alert.kinds": kinds})
        if "rejected" in found:
            trace.set_facts({"bicameral.rejected": str(found["rejected"])})


def record_decision(trace: Span, facts: CallFacts, decision: Decision) -> None:
    """Record a decision, its rules, and the labels of the arguments."""
    said = "allowed" if isinstance(decision, Allowed) else "ask" if isinstance(decision, Ask) else "denied"
    count("bicameral.policy.decisions", 1, {"bicameral.policy.decision": said, "gen_ai.tool.name": facts.tool})
    if trace.is_recording:
        trace.set_facts({"bicameral.policy.decision": said, "bicameral.policy.mode": facts.mode})
        rules = () if isinstance(decision, Allowed) else decision.rules
        trace.set_facts({"bicameral.policy.rules": rules, "bicameral.control.trusted": facts.pc.trusted})
        trace.set_facts(label_summary("bicameral.arguments", join_all(each.label for each in facts.arguments)))


def approval_span(question: ApprovalQuestion) -> Span:
    """The span of a question to a person."""
    tools = tuple(dict.fromkeys(call.tool for call in question.calls))
    return span("approve", "", {"bicameral.approval.calls": len(question.calls), "bicameral.approval.tools": tools})


def record_approval(trace: Span, question: ApprovalQuestion, answers: Answers) -> None:
    """Record how many calls were approved."""
    yes = sum(1 for call in question.calls if call.hash in answers.approved)
    count("bicameral.approvals", len(question.calls), {})
    trace.set_facts({"bicameral.approval.approved": yes})
