"""Effects of a run: every call of a tool, extraction, question and approval goes through an `EffectHandler`.

`LiveEffectHandler` performs them. Each effect is recorded before it begins, and its end before anything that follows:
what cannot be recorded is not done.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypedDict, Unpack

from bicameral.boundary import Executor, Filled, NotFound, ReadOnlyExecutor, Rejected
from bicameral.errors import BicameralError, Place, RunError, ToolError
from bicameral.journal import EventKind
from bicameral.labels import TRUSTED_USER, UNKNOWN, Label, Labelled, LabelTree, make_labelled, open_labelled
from bicameral.limits import (
    RUN_LIMITS,
    STRATEGY,
    Meter,
    collect_charges,
    has_quotas,
    meters_in_force,
    open_ledger,
    pause_meters,
    quota_slot,
)
from bicameral.policy import Effect
from bicameral.runs._approvals import (
    ApprovalQuestion,
    ApprovalRequired,
    ApprovalResult,
    Approver,
    PendingAsk,
    PendingCall,
    Suspend,
    ask_approver,
)
from bicameral.runs._call_policy import StepLabels, label_tree_json
from bicameral.runs._changes import CallChanges, ChangeHistory
from bicameral.runs._citations import CitationLog
from bicameral.runs._doubts import NO_LABEL, SelectionLog
from bicameral.runs._effect_execution import (
    EffectAction,
    call_with_timeout,
    current_call_attempts,
    finish_despite_cancel,
    finish_within,
    run_with_typed_errors,
)
from bicameral.runs._lookups import Lookups, RunDesk
from bicameral.runs._model_calls import AskModel, ModelAnswer, is_recorded_failure
from bicameral.runs._observability import EventWriter, approval_span, record_approval, record_extraction, tool_span
from bicameral.runs._outcome import EffectDone, Observer, RunMonitor, StepProgress
from bicameral.runs._scheduler import Activity
from bicameral.telemetry import span
from bicameral.tools import (
    AttachedFile,
    PassageNote,
    Selection,
    Tool,
    attached_files,
    collect_passages,
    collect_selections,
    derive_call_key,
    report_changes,
    shown_text,
    use_call_key,
    use_person,
)
from bicameral.types import Table, Type, mismatch, table_reference, to_plain, type_to_json, value_to_json

TRANSIENT_CODES = ("unreachable", "timeout")
_MAX_WANTED = 80
_TURN = re.compile(r"\[\d+\]")
NO_FACTS: Mapping[str, Any] = MappingProxyType({})


OnceWork = Callable[[], Awaitable[Labelled[Any]]]
"""Work with an effect outside of the tools, done once a run."""


class Asker(Protocol):
    """Answers questions of a plan while it runs, such as a terminal or a person behind a queue."""

    async def ask(self, question: str, type: Type) -> Any: ...


class EffectHandler(Protocol):
    """Performs the effects of a run: live, from a record, or both. `labels` are None where labels are off."""

    effects: list[EffectDone]
    in_flight: set[str]
    activity: Activity
    selections: SelectionLog
    citations: CitationLog
    changes: ChangeHistory
    """What the run has changed so far."""

    async def call(self, step: str, tool: Tool, bound: dict[str, Any], labels: StepLabels | None = None) -> Any: ...

    async def extract(
        self,
        step: str,
        source: Any,
        instruction: str,
        wanted: Type,
        labels: StepLabels | None = None,
        lookups: Lookups | None = None,
    ) -> Any: ...

    async def ask(self, step: str, question: str, wanted: Type, labels: StepLabels | None = None) -> Any: ...

    async def approve(self, question: ApprovalQuestion) -> ApprovalResult: ...

    async def attached_files(self, step: str, tool: Tool, bound: dict[str, Any]) -> tuple[AttachedFile, ...]:
        """The files that are attached to a call, as they are now; none if the tool declares no attachments."""
        ...

    def record_held_call(
        self, step: str, kind: EventKind, tool: Tool, bound: dict[str, Any], labels: StepLabels
    ) -> None:
        """Record that a call is not made, or not yet."""
        ...

    async def ask_model(self, step: str, facts: dict[str, Any], ask: AskModel) -> ModelAnswer:
        """The reply of a model to a conversation or a pattern; `facts` say what it is asked, as far as is recorded."""
        ...

    async def do_once(self, step: str, name: str, work: OnceWork, read: Label, *, repeatable: bool) -> Labelled[Any]:
        """The result of work that has an effect outside of the tools; `read` is the label of what decided it."""
        ...

    async def wait_if_unrecorded(self, step: str, call: PendingCall | None = None) -> None:
        """Wait for the cancellation of a part that was cut off before the end of this step, when it is run again.

        A step that only asks about a `call` ends with the answer.
        """
        ...

    def limit_steps(self, limits: Mapping[str, float]) -> None:
        """Set the seconds of steps that have a limit of their own, by their names without the turns of loops."""
        ...

    @property
    def is_recorded(self) -> bool:
        """Whether there is a record, from which the run can be resumed."""
        ...

    def record_note(self, step: str, facts: dict[str, Any], *, sync: bool = False) -> None:
        """Record what a pattern notes; with `sync` it is on the disk afterwards, with all that came before it."""
        ...

    def recorded_note(self, step: str) -> Mapping[str, Any] | None:
        """What is recorded as the note at this place."""
        ...

    def has_unused(self, path: str) -> bool:
        """Whether something that is recorded below this path was not asked for yet."""
        ...


class RunServices(TypedDict, total=False):
    """What a run is served by; each may be left out."""

    extractor: Executor | None
    """The quarantined model. Without one an extraction fails."""
    asker: Asker | None
    """Answers questions of the plan. Without one they fail."""
    approver: Approver | None
    """Asked about calls that policy does not allow on its own. Without one the answer is no."""
    observer: Observer | None
    """Gets the progress of each step."""


class LiveEffectHandler:
    """Performs effects for real: each is recorded before it begins, and its end before anything follows.

    Args:
        record: Where effects are recorded.
        meter: Counts what the run takes.
        may_wait: Whether the run may be suspended: somebody must be able to resume it.
        changes: What earlier attempts at the run have changed.
        time_limits: The seconds of the steps that have a limit of their own, by their paths in the plan.
        services: See `RunServices`.
    """

    def __init__(
        self,
        record: EventWriter,
        *,
        meter: Meter | None = None,
        may_wait: bool = False,
        changes: ChangeHistory | None = None,
        time_limits: Mapping[str, float] | None = None,
        **services: Unpack[RunServices],
    ) -> None:
        self._time_limits = dict(time_limits or {})
        self._may_wait = may_wait
        self.meter = meter or Meter(RUN_LIMITS)
        self.effects: list[EffectDone] = []
        self.in_flight: set[str] = set()
        self.monitor = RunMonitor()
        self.changes = changes or ChangeHistory()
        """What the run has changed so far."""
        self.selections = SelectionLog()
        self.citations = CitationLog()
        self._record = record
        self._extractor = extractor = services.get("extractor")
        self._reading = asyncio.Semaphore(extractor.overlap if extractor else 1)
        self._asker = services.get("asker")
        self._observer = services.get("observer")
        self._approver = services.get("approver")
        self.activity = Activity()

    def for_part(self, *, approver: Approver | None, asker: Asker | None) -> LiveEffectHandler:
        """The same run for a part with people of its own, whose questions do not wait until all else in it is idle."""
        part = copy(self)
        part._approver, part._asker, part.activity = approver, asker, Activity()
        return part

    async def call(self, step: str, tool: Tool, bound: dict[str, Any], labels: StepLabels | None = None) -> Any:
        if not has_quotas():
            return await self._call_tool(step, tool, bound, labels)
        # A call that waits for a quota counts as running, although nothing of it is recorded yet: it will begin.
        with self.activity.running():
            async with quota_slot("tool", tool.name):
                return await self._call_tool(step, tool, bound, labels)

    async def _call_tool(self, step: str, tool: Tool, bound: dict[str, Any], labels: StepLabels | None) -> Any:
        facts = tool_call_facts(tool, bound) if self._record.is_enabled else _shown_facts(tool, bound)
        # Before anything is recorded: a call beyond the caps is not begun.
        self.meter.count_tool_call()
        found: dict[str, Any] = {}
        # What a tool asks while it is called, such as a foreign server, is for the same person as the run's questions.
        with tool_span(step, tool), use_person(None if self._asker is None else self._asker.ask):
            value = await self._run_step(
                step,
                tool.name,
                facts,
                lambda: finish_within(self._seconds_for(step), tool, self._call_with_retries(step, tool, bound, found)),
                labels,
                change=EffectDone(step, tool.name, tool.effect) if tool.changes else None,
                found=found,
                told=tool.outbound,
            )
        note_result((self.selections, self.citations), step, value, found, labels)
        return value

    async def attached_files(self, step: str, tool: Tool, bound: dict[str, Any]) -> tuple[AttachedFile, ...]:
        # Hashing large files takes a while, and other steps continue meanwhile.
        if tool.attached_in is None:
            return ()
        with self.activity.running():
            return await asyncio.to_thread(attached_files, tool, bound)

    async def approve(self, question: ApprovalQuestion) -> ApprovalResult:
        """Ask one question about all these calls; the answer is recorded before any of them is made."""
        step, calls = question.calls[0].step, question.to_json()
        facts: dict[str, Any] = {"calls": calls} | ({"before": True} if question.before else {})
        asked_at = time.time()
        with (
            approval_span(question) as trace,
            self.meter.pause_for_person(),
            pause_meters(meters_in_force(STRATEGY)),
        ):
            try:
                answers = await ask_approver(self._approver, question)
            except Suspend as waits:
                if not self._may_wait:
                    raise ApprovalRequired(question) from None
                waits.question = waits.question or question
                raise
            except BicameralError as error:
                self._record.write("approval", step, facts | {"approved": [], "error": error.to_json()})
                raise
            record_approval(trace, question, answers)
        waited = round(time.time() - asked_at, 6)
        facts |= {"granted": [grant.to_json() for grant in answers.for_run]} if answers.for_run else {}
        self._record.write("approval", step, facts | {"approved": sorted(answers.approved), "seconds": waited})
        approved = (call for call in question.calls if call.hash in answers.approved)
        return ApprovalResult(Counter((step, call.hash) for call in approved for step in call.steps), answers.for_run)

    def record_held_call(
        self, step: str, kind: EventKind, tool: Tool, bound: dict[str, Any], labels: StepLabels
    ) -> None:
        if self._record.is_enabled:
            self._record.write_later(kind, step, tool_call_facts(tool, bound) | labels.start_facts())

    async def ask_model(self, step: str, facts: dict[str, Any], ask: AskModel) -> ModelAnswer:
        """Ask a model, and record what it was asked as, under which label, and what it wrote or how it failed."""
        with collect_charges() as charges:
            try:
                answer = await ask()
            except BicameralError as error:
                if is_recorded_failure(error):
                    # The end of the run reports these charges: under another name they are not counted twice.
                    failed = {"error": error.to_json(), "lost": [charge.to_json() for charge in charges]}
                    self._record.write_later("model-called", step, facts | failed)
                raise
        self._record.write_later("model-called", step, facts | answer.to_json())
        return answer

    @property
    def is_recorded(self) -> bool:
        return self._record.is_enabled

    def record_note(self, step: str, facts: dict[str, Any], *, sync: bool = False) -> None:
        """Record what a pattern notes: names and numbers."""
        write = partial(self._record.write, sync=True) if sync else self._record.write_later
        write("note", step, facts)

    async def do_once(self, step: str, name: str, work: OnceWork, read: Label, *, repeatable: bool) -> Labelled[Any]:
        self.meter.count_tool_call()
        key = derive_call_key(self._record.run, step, name)
        tree: LabelTree = TRUSTED_USER

        async def act() -> Any:
            nonlocal tree
            with use_call_key(key):
                given = await work()
            tree = given.label_tree
            return to_plain(open_labelled(given))

        labels = StepLabels({}, read, lambda _: tree)
        value = await self._run_step(
            step, name, once_facts(name), act, labels, change=EffectDone(step, name, ONCE_EFFECT)
        )
        return make_labelled(value, tree)

    async def wait_if_unrecorded(self, step: str, call: PendingCall | None = None) -> None:
        return

    def recorded_note(self, step: str) -> Mapping[str, Any] | None:
        return None

    def has_unused(self, path: str) -> bool:
        return False

    async def extract(
        self,
        step: str,
        source: Any,
        instruction: str,
        wanted: Type,
        labels: StepLabels | None = None,
        lookups: Lookups | None = None,
    ) -> Any:
        extractor = self._extractor
        facts = extraction_facts(source, instruction, wanted) | {"model": extractor.model if extractor else None}

        reader = extractor
        if lookups is not None and isinstance(extractor, ReadOnlyExecutor):
            reader = extractor.at_desk(RunDesk(lookups, self._record, self.meter))

        async def read() -> Any:
            if reader is None:
                raise RunError(
                    "run.no-quarantined-model",
                    "the plan reads text with the quarantined model, and there is none",
                    fix="Give the agent a quarantined provider, or run `bicameral doctor`.",
                )
            async with self._reading:
                with open_ledger() as ledger:
                    try:
                        # A model that reads the empty result of a search would invent what it did not find.
                        empty = self.citations.found_nothing(source)
                        shown = self.citations.reader_view(source)
                        outcome = NotFound() if empty else await reader.extract(shown, instruction, wanted)
                    finally:
                        found["spent"] = ledger.spent.to_json()
                        if lookups is not None and lookups.made:
                            found["lookups"] = lookups.made
                        for call in ledger.records or ():
                            self._record.write_later("model-called", step, call)
            found.update(
                self.monitor.record_extraction(outcome, step, labels.third_party_sources("source") if labels else ())
            )
            record_extraction(trace, found)
            if not isinstance(outcome, Filled):
                raise _unread_error(outcome, instruction, self.citations.count_passages(source))
            return self._validate_extraction(outcome.value, wanted)

        found: dict[str, Any] = {}
        with span("extract", "", {"bicameral.step": step}) as trace:
            timed = partial(finish_within, self._seconds_for(step), None)
            value = await self._run_step(step, "extract", facts, lambda: timed(read()), labels, found=found)
        note_reading(self.citations, step, (source, instruction, wanted), value, labels)
        return value

    async def ask(self, step: str, question: str, wanted: Type, labels: StepLabels | None = None) -> Any:
        asker = self._asker

        async def reply() -> Any:
            if asker is None:
                raise _answer_needed_error(question)
            key = derive_call_key(self._record.run, step, "ask")
            try:
                with self.meter.pause_for_person(), pause_meters(meters_in_force(STRATEGY)), use_call_key(key):
                    given = await asker.ask(question, wanted)
            except Suspend as waits:
                if not self._may_wait:
                    raise _answer_needed_error(question) from None
                waits.ask = PendingAsk(step, question, wanted, key)
                raise
            return _validate_reply(given, wanted)

        with span("ask", "", {"bicameral.step": step}):
            return await self._run_step(step, "ask", question_facts(question, wanted), reply, labels)

    async def _run_step(
        self,
        step: str,
        what: str,
        facts: dict[str, Any],
        act: EffectAction,
        labels: StepLabels | None,
        change: EffectDone | None = None,
        found: Mapping[str, Any] = NO_FACTS,
        *,
        told: bool = False,
    ) -> Any:
        """Perform one effect with a record before and after; what cannot be recorded is not begun.

        `facts` are recorded when it begins, `found` when it ends; `change` is what it does to the world, if anything,
        and `told` whether it tells somebody something.
        """
        # A change must be on the disk before it begins: after a power cut nobody else could tell that it may have
        # happened. A read can be repeated, so that it does not wait for the disk; one that tells somebody something is
        # written before, since what cannot be recorded is not told.
        write = self._record.write_later if change is None else partial(self._record.write, sync=True)
        begin = self._record.write if told and change is None else write
        known, labels = labels, labels if self._record.is_enabled else None
        begin("step-started", step, facts if labels is None else facts | labels.start_facts())
        self._notify(StepProgress("started", step, what, facts=facts))
        self.in_flight.add(step)
        self.activity.begin()
        started = time.perf_counter()
        stopped = False
        try:
            if change is None:
                value = await run_with_typed_errors(what, act)
            else:
                task, stopped = await finish_despite_cancel(run_with_typed_errors(what, act))
                value = task.result()
                self.effects.append(change)
        except Suspend:
            self.in_flight.discard(step)
            raise
        except BicameralError as error:
            self.in_flight.discard(step)
            error.place = error.place or Place(step=step)
            write("step-failed", step, {"error": error.to_json(), **found})
            self._notify(StepProgress("failed", step, what, time.perf_counter() - started, {"error": str(error)}))
            if stopped:
                raise asyncio.CancelledError from None
            raise
        finally:
            self.activity.end()
        self.in_flight.discard(step)
        seconds = time.perf_counter() - started
        # Only for the record: a large result takes a while to write.
        result = value_to_json(value) if self._record.is_enabled else None
        ended: dict[str, Any] = {"result": result, "seconds": round(seconds, 6), **found}
        if stopped:
            # Whoever runs this part again must not come beyond this step either.
            ended["stopped"] = True
        if labels is not None:
            ended["shade"] = label_tree_json(labels.result_labels(value))
        write("step-finished", step, ended)
        if self._observer is not None:
            # A copy: an observer must not be able to change what the next step reads.
            tree = UNKNOWN if known is None else known.result_labels(value)
            self._notify(StepProgress("finished", step, what, seconds, {}, make_labelled(to_plain(value), tree)))
        if stopped:
            raise asyncio.CancelledError
        return value

    def limit_steps(self, limits: Mapping[str, float]) -> None:
        self._time_limits |= {_TURN.sub("", step): seconds for step, seconds in limits.items()}

    def _seconds_for(self, step: str) -> float | None:
        """The time limit of a step, whose path in a run also has the numbers of the turns of loops."""
        return self._time_limits.get(_TURN.sub("", step)) if self._time_limits else None

    def _validate_extraction(self, value: object, wanted: Type) -> Any:
        """The extracted value, checked against its type once more: an executor may be anybody's code."""
        try:
            found = to_plain(value)
        except TypeError:
            self.monitor.count_rejection("wrong-type")
            raise RunError("run.extraction-rejected", "what was read is no value a plan can use") from None
        if mismatch(found, wanted):
            self.monitor.count_rejection("wrong-type")
            raise RunError("run.extraction-rejected", "what was read does not fit the blank", expected=str(wanted))
        return found

    async def _call_with_retries(self, step: str, tool: Tool, bound: dict[str, Any], found: dict[str, Any]) -> Any:
        """The result of a call. What it selected is added to the facts that are recorded with its result."""
        attempt, key = 1, derive_call_key(self._record.run, step, tool.name)
        attempts = current_call_attempts()
        while True:
            attempts.before(attempt)
            try:
                with (
                    use_call_key(key),
                    collect_selections() as selections,
                    collect_passages() as passages,
                    self._recording_changes(step, tool),
                ):
                    value = await call_with_timeout(tool, bound, attempts.seconds)
                attempts.after(attempt, None)
                if passages:
                    found["passages"] = [passage.to_json() for passage in passages]
                if selections:
                    found["selections"] = [selection.to_json() for selection in selections]
                return value
            except BaseException as error:
                attempts.after(attempt, error)
                again = (tool.idempotent or tool.keyed) and attempt < attempts.most
                if not (again and isinstance(error, ToolError) and error.code.endswith(TRANSIENT_CODES)):
                    raise
                self._record.write_later("step-retried", step, {"attempt": attempt, "error": error.to_json()})
                facts = {"error": str(error), "attempt": attempt}
                self._notify(StepProgress("retrying", step, tool.name, facts=facts))
            await asyncio.sleep(attempts.pause * 2 ** (attempt - 1))
            attempt += 1

    @contextmanager
    def _recording_changes(self, step: str, tool: Tool) -> Generator[None]:
        """Record the files that a call changes, each before it is changed; afterwards it can change no more."""
        if not tool.changes:
            yield
            return
        log = CallChanges(self._record, step, self.changes)
        try:
            with report_changes(log):
                yield
        finally:
            log.close()

    def _notify(self, progress: StepProgress) -> None:
        # An observer cannot change what happens: a broken display must not end a run in the middle.
        if self._observer is not None:
            with suppress(Exception):
                self._observer(progress)


def note_result(
    logs: tuple[SelectionLog, CitationLog],
    step: str,
    value: Any,
    facts: Mapping[str, Any],
    labels: StepLabels | None,
) -> None:
    """Note what a call selected and which passages it found, as its record has it."""
    selections, citations = logs
    if noted := facts.get("selections"):
        chosen = (Selection.from_json(each) for each in noted)
        selections.add(step, chosen, NO_LABEL if labels is None else labels.selection_label(value))
    if noted := facts.get("passages"):
        notes = [PassageNote.from_json(each) for each in noted]
        citations.add_passages(notes, value, None if labels is None else labels.result_labels(value))
    if any(each.get("noun") == "passages" and not each.get("kept") for each in facts.get("selections", ())):
        citations.add_empty(value)


def note_reading(
    citations: CitationLog, step: str, form: tuple[Any, str, Type], value: Any, labels: StepLabels | None
) -> None:
    """Note what was read from passages, so that it is cited; `form` has the source, the instruction and the type."""
    source, instruction, wanted = form
    if citations.was_searched(source):
        label = NO_LABEL if labels is None else labels.result_labels(value).flat
        citations.add_reading(step, source, value, wanted, label, instruction)


def _unread_error(outcome: Rejected | NotFound, instruction: str, searched: tuple[int, int] | None) -> RunError:
    """Why an extraction has no value. That the text does not say it is an honest end, a reply that does not fit is not.

    Args:
        outcome: What came of the extraction.
        instruction: What was looked for.
        searched: The numbers of passages and of their sources, if the text was the result of a search.
    """
    if isinstance(outcome, Rejected) and outcome.kind == "disputed":
        return RunError(
            "run.validators-disagree",
            f"what was read is not used: {outcome.reason}",
            fix="Read the text yourself, or ask for a type that holds no free text, such as a date or an amount.",
        )
    if isinstance(outcome, Rejected):
        return RunError("run.extraction-rejected", f"nothing usable was read: {outcome.reason}")
    wanted = shown_text(instruction, _MAX_WANTED)
    match searched:
        case None:
            where = "the text that was read does not say it"
        case (0, _):
            where = "nothing fits the search, so that there was nothing to read"
        case (1, _):
            where = "the one passage that was read does not say it"
        case (passages, sources):
            places = "one source" if sources == 1 else f"{sources:,} sources"
            where = f"none of the {passages:,} passages that were read, from {places}, says it"
    why = "" if outcome.why == "absent" else f" ({outcome.reason})"
    return RunError(
        "run.nothing-found",
        f"nothing was found for {wanted!r}: {where}{why}",
        fix="Say where it stands, or ask in the words of the text.",
    )


def tool_call_facts(tool: Tool, bound: dict[str, Any]) -> dict[str, Any]:
    """What is recorded when a tool is called; a replay must produce the same."""
    # A table is recorded where a step gave it, and not once more with each step that takes it.
    arguments = {
        name: table_reference(value) if type(value) is Table else value_to_json(value) for name, value in bound.items()
    }
    return {"what": tool.name, "effect": tool.effect, "tool": tool.name, "arguments": arguments}


def _shown_facts(tool: Tool, bound: dict[str, Any]) -> dict[str, Any]:
    """The same for an observer alone; of a large table only how many rows it has."""
    return tool_call_facts(
        tool, {name: f"{len(value):,} rows" if type(value) is Table else value for name, value in bound.items()}
    )


ONCE_EFFECT: Effect = "write"


def once_facts(name: str) -> dict[str, Any]:
    """What is recorded of work with an effect outside of the tools when it begins."""
    return {"what": name, "effect": ONCE_EFFECT, "tool": name, "once": True}


def extraction_facts(source: Any, instruction: str, wanted: Type) -> dict[str, Any]:
    return {
        "what": "extract",
        "instruction": instruction,
        "type": type_to_json(wanted),
        "source": value_to_json(source),
    }


def question_facts(question: str, wanted: Type) -> dict[str, Any]:
    return {"what": "ask", "question": question, "type": type_to_json(wanted)}


def _answer_needed_error(question: str) -> RunError:
    return RunError(
        "run.needs-answer", f"the plan asks: {question}", fix="Run it interactively, or say it in the request."
    )


def _validate_reply(value: object, wanted: Type) -> Any:
    try:
        reply = to_plain(value)
    except TypeError as error:
        raise RunError("run.wrong-reply", f"the reply is no value a plan can use: {error}") from None
    if reason := mismatch(reply, wanted, "the reply"):
        raise RunError("run.wrong-reply", reason, expected=str(wanted))
    return reply
