"""The call gate: decides every call of a run, holds those that need approval, and makes a call only after that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from bicameral.errors import BicameralError, Place, RunError, ToolError
from bicameral.labels import NOTHING, Label, LabelTree, taint
from bicameral.limits import STRATEGY, Meter, meters_in_force, pause_meters
from bicameral.plans import (
    call_facts,
    labels_after_call,
    places_after_call,
    readers_after_call,
    recall_stored_labels,
    static_path,
)
from bicameral.policy import Allowed, Ask, CallFacts, Denied, Mode
from bicameral.runs._approvals import (
    ApprovalQuestion,
    AskedCall,
    PendingCall,
    Permits,
    Suspend,
    build_question,
    call_hash,
    pending_call,
    refusal_error,
)
from bicameral.runs._call_policy import (
    ActionableText,
    CallDecision,
    Decider,
    Grant,
    Grants,
    StepLabels,
    decision_json,
    possible_grant,
)
from bicameral.runs._effects import EffectHandler
from bicameral.runs._lookahead import CallRequest, FutureCallVisitor
from bicameral.runs._observability import record_decision
from bicameral.runs._replacing import ReplaceRule, ask_before_replacing, narrow_replaced
from bicameral.runs._run_parts import PartOfRun, RunPart
from bicameral.telemetry import span
from bicameral.tools import Tool, bind_attached_files, describe_changes
from bicameral.types import to_plain

CallResult = tuple[Any, LabelTree]
"""The result of a call, with its labels."""

NoteLabels = Callable[[dict[str, LabelTree]], None]
VisitFutureCalls = Callable[[FutureCallVisitor], tuple[set[str], set[str]]]
"""Visits the future calls that are known. Returns the steps of the plan whose calls are known, and the others."""

_ALLOW = CallDecision(Allowed())
_NO_ARGUMENTS: frozenset[str] = frozenset()
MAX_CALLS_AHEAD = 100
"""The most calls that are asked about ahead: a person must be able to read the question."""


@dataclass(slots=True, eq=False)
class _HeldCall:
    """A call that waits for approval, or behind one that does; `facts` are what it was decided by."""

    step: str
    tool: Tool
    bound: dict[str, Any]
    labels: StepLabels
    facts: CallFacts
    pending: PendingCall | None = None
    refused: bool = False
    result: CallResult | None = None
    begun: bool = False
    withdrawn: bool = False
    """Whether the part that asked for it was cancelled."""
    owner: asyncio.Task[Any] | None = field(default_factory=asyncio.current_task)
    meters: tuple[Meter, ...] = field(default_factory=lambda: meters_in_force(STRATEGY))
    """The meters of the part that asks for it: their time stands still while a person is asked."""

    def to_asked_call(self) -> AskedCall | None:
        """The call as a person is asked about it; None if it needs no approval."""
        if self.pending is None:
            return None
        return AskedCall(self.pending, self.facts, call_hash(self.tool, self.bound))


class CallPath(Protocol):
    """Decides about a call and makes it: the call gate of the run, or a wrapper around it."""

    @property
    def failure(self) -> BaseException | None: ...

    async def make_call(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        trees: Mapping[str, LabelTree],
        pc: Label,
        places: dict[str, LabelTree],
        note: Callable[[dict[str, LabelTree]], None],
        /,
        *,
        needed: bool,
    ) -> tuple[Any, LabelTree] | None: ...


class CallGate:
    """Decides the calls of one run and makes them, in their order.

    A call that needs approval is held for as long as the run can continue without it, and so is every change after it.
    A step that reads the world after such a change, needs the result of a held call, asks a person, or ends the run
    must come after all held calls: then one question covers them, and the approved ones are made.

    A question also covers future calls, as far as `ahead` knows them. They are not made any sooner: such a call is
    decided when its turn comes, and finds its answer then.

    An approval is a permit for one call at one step, which that call uses up: the same call at another step, or once
    more, is asked about again. Only an explicit grant (`grants`) holds for later calls too.

    Args:
        decider: Decides about each call.
        handler: Makes the calls and asks the person.
        actionable: Finds links, addresses and the like in untrusted text that a call carries out.
        ahead: Visits the future calls that are known already; without it only due calls are asked about.
        grants: What a person granted for the whole run.
        assembled: By step, the arguments that a model's plan assembles, as the proof knows them.
        replacing: Asks before files are replaced; None if that needs no question.
        ordered: Whether all changes keep their order, as in a plan. Parts of a pattern keep only their own: each makes
            its calls itself, so that none of them acts for another that is cancelled meanwhile.
    """

    def __init__(
        self,
        decider: Decider,
        handler: EffectHandler,
        actionable: ActionableText | None = None,
        *,
        ahead: VisitFutureCalls | None = None,
        grants: Iterable[Grant] = (),
        assembled: Mapping[str, frozenset[str]] | None = None,
        replacing: ReplaceRule | None = None,
        ordered: bool = True,
    ) -> None:
        self.mode: Mode = decider.mode
        self._decider = decider
        self._handler = handler
        self._permits = Permits()
        self._grants = Grants()
        self._actionable = actionable or ActionableText(None)
        self._waiting: list[_HeldCall] = []
        self._settled: list[_HeldCall] = []
        # One question at a time. Whoever waits for the lock finds the answers of the question before.
        self._lock = asyncio.Lock()
        self._failure: BicameralError | Suspend | None = None
        self._part_places: dict[str, tuple[dict[str, LabelTree], NoteLabels]] = {}
        """By step, what a tool that is a part of the run knows of the places that were written to."""
        self._ahead = ahead
        self._assembled = assembled or {}
        self._replacing = replacing
        self._ordered = ordered
        for grant in grants:
            self._grant(grant)

    @property
    def failure(self) -> BicameralError | Suspend | None:
        """Why no further call is made; None if calls are still made."""
        return self._failure

    async def _call(self, request: CallRequest, *, needed: bool) -> CallResult | None:
        if self._failure is not None:
            raise self._failure
        step, tool, arguments, labels, pc = request.step, request.tool, request.arguments, request.labels, request.pc
        bound = tool.bind(arguments)
        facts = self._facts(request, self._actionable)
        decided = self._apply_refusals(self._decide(step, tool, facts, arguments), tool, bound)
        step_labels = StepLabels(
            labels,
            pc,
            lambda value: labels_after_call(tool, labels, value, step, pc, arguments=bound),
            decision_json(decided, self._decider),
        )
        match decided.decision:
            case Denied(reason=reason, rules=rules):
                self._handler.record_held_call(step, "call-denied", tool, bound, step_labels)
                raise _denied_error(step, reason, rules)
            case Ask() as asked if not decided.permitted:
                # A copy: the plan may change its variables while the call is held, and the approval is for these.
                bound = {name: to_plain(value) for name, value in bound.items()}
                if tool.attached_in is not None and self._changes_wait:
                    # A held call may write the files that are attached to this one.
                    await self.flush()
                files = await self._handler.attached_files(step, tool, bound)
                offer = self._offer(facts, arguments)
                pending = pending_call(step, tool, bound, facts, asked, files, offer)
                return await self._hold(_HeldCall(step, tool, bound, step_labels, facts, pending), needed)
            case _ if tool.changes and self._waiting:
                # Effects keep their order: this one is allowed, but an earlier one is held.
                bound = {name: to_plain(value) for name, value in bound.items()}
                return await self._hold(_HeldCall(step, tool, bound, step_labels, facts), needed)
            case _:
                if tool.effect != "pure" or tool.outbound:
                    await self.flush_changes()
                return await self._call_and_label(step, tool, bound, step_labels)

    async def make_call(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        labels: Mapping[str, LabelTree],
        pc: Label,
        places: dict[str, LabelTree],
        note: Callable[[dict[str, LabelTree]], None],
        *,
        needed: bool,
    ) -> CallResult | None:
        """The result of a call; None if it is held, which happens only if its result is not `needed`.

        `places` are the labels of the names that earlier calls wrote to. They are updated, and `note` gets the changed
        ones before the call and after it: a call that fails may have written all the same.
        """
        if isinstance(tool.run, PartOfRun):
            self._part_places[step] = places, note
        call_labels, stored = recall_stored_labels(tool, labels, arguments, places)
        note(places_after_call(tool, labels, arguments, stored, pc, places))
        result = await self._call(CallRequest(step, tool, arguments, call_labels, pc), needed=needed)
        value = None if result is None else result[0]
        changed = places_after_call(tool, labels, arguments, stored, pc, places, value)
        places |= changed | readers_after_call(tool, labels, arguments, stored, pc, places, value)
        note(changed)
        return result if result is None or stored is NOTHING else (result[0], taint(result[1], stored))

    async def flush_changes(self) -> None:
        """Make the held calls if one of them changes something: a read must see the changes that come before it."""
        if self._changes_wait:
            await self.flush()

    async def flush(self) -> None:
        """Ask about all held calls, and make the approved ones; afterwards none is held."""
        if not self._waiting and not self._lock.locked() and self._failure is None:
            return
        async with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._unanswered(self._waiting):
                # Steps that can continue without an answer may reach calls that belong into the same question.
                await self._handler.activity.wait_until_idle()
            waiting, self._waiting, self._settled = self._waiting, [], self._waiting
            try:
                await self._settle_held(waiting)
            except asyncio.CancelledError:
                # The part that asks was cancelled. The calls of others still wait, and the next one asks about them.
                self._waiting = [each for each in waiting if not (each.begun or each.withdrawn)] + self._waiting
                self._settled = []
                raise
            except (BicameralError, Suspend) as error:
                # Concurrent steps must not continue as if these calls had been made.
                self._failure = error
                raise
            self._settled = []

    @property
    def _changes_wait(self) -> bool:
        """Whether a call that changes something is held or being made, and comes before what is read now."""
        return any(each.tool.changes for each in (*self._settled, *self._waiting))

    async def ask_before_start(self, may_ask: frozenset[str]) -> None:
        """Ask about calls before the first step, if the calls at all `may_ask` steps are known already.

        Otherwise there would be another question later, and this one can wait for it. If a call is refused, or nobody
        can be asked, nothing of the run is begun.
        """
        foreseen, known, unknown = await self._future_calls(())
        if not foreseen or not may_ask <= known - unknown:
            return
        try:
            await self._ask_person((), foreseen, before=True)
            refused = next((each.call for each in foreseen if self._permits.refused_call(each.key) is not None), None)
            if refused is not None:
                raise refusal_error(refused.step, refused.tool)
        except BicameralError as error:
            self._failure = error
            raise

    def _facts(self, call: CallRequest, actionable: ActionableText) -> CallFacts:
        assembled = self._assembled.get(static_path(call.step), _NO_ARGUMENTS)
        facts = call_facts(call.tool, call.labels, call.arguments, call.step, call.pc, self.mode, assembled)
        facts = narrow_replaced(self._replacing, facts)
        facts = replace(facts, lures=actionable.in_call(facts, call.arguments))
        actionable.record_written(facts, call.arguments, fetched=call.tool.copies_content)
        return facts

    def _apply_refusals(self, decided: CallDecision, tool: Tool, bound: Mapping[str, Any]) -> CallDecision:
        """The decision, unless a person refused this call ahead: a refusal holds even if policy would allow it now."""
        if not (self._permits.has_refusals and isinstance(decided.decision, Allowed)):
            return decided
        refused = self._permits.refused_call(call_hash(tool, bound))
        return decided if refused is None else CallDecision(Ask(refused.why, refused.rules), refused_ahead=True)

    def _decide(self, step: str, tool: Tool, facts: CallFacts, values: Mapping[str, Any]) -> CallDecision:
        if tool.effect == "pure" and not tool.outbound and not self._decider.decides_pure:
            return _ALLOW
        with span("decide", tool.name, {"bicameral.step": step, "gen_ai.tool.name": tool.name}) as trace:
            decided = self._decider.decide(step, facts, values, self._grants)
            decided = replace(decided, decision=ask_before_replacing(decided.decision, facts))
            record_decision(trace, facts, decided.decision)
        return decided

    def _offer(self, facts: CallFacts, values: Mapping[str, Any]) -> Grant | None:
        """The grant that a question offers with this call: only one that would spare the next question of its kind."""
        grant = possible_grant(facts, values)
        trusting = None if grant is None else Grants([grant]).applied(facts, values)
        return grant if trusting is not None and self._decider.allows(trusting[0]) else None

    def _grant(self, grant: Grant) -> None:
        self._grants.add(grant)
        self._actionable.endorse(grant.value)

    async def _hold(self, held: _HeldCall, needed: bool) -> CallResult | None:
        self._handler.record_held_call(held.step, "call-waits", held.tool, held.bound, held.labels)
        # Before others see it: a call that was withdrawn is in no question of the record.
        await self._handler.wait_if_unrecorded(held.step)
        self._waiting.append(held)
        if held.tool.changes and not needed:
            return None
        try:
            await self.flush()
        except asyncio.CancelledError:
            # A part that was cancelled does not act any more, also where another part asks the person.
            if held in self._waiting:
                self._waiting.remove(held)
            held.withdrawn = True
            raise
        if held.refused:
            raise refusal_error(held.step, held.tool.name)
        if held.result is None:
            held.result = await self._make_held_call(held, self._lock)
        return held.result

    async def ask_person(self, call: PendingCall) -> bool:
        """Whether a person says yes to a question of a pattern; one question is asked at a time."""
        await self._handler.wait_if_unrecorded(call.step, call)
        async with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                result = await self._handler.approve(ApprovalQuestion((call,)))
            except (BicameralError, Suspend) as error:
                self._failure = error
                raise
        return result.permits[call.step, call.hash] > 0

    async def _settle_held(self, waiting: list[_HeldCall]) -> None:
        """Ask about these calls and make the approved changes, in their order."""
        due = [(each, asked) for each in waiting if (asked := each.to_asked_call()) is not None]
        with pause_meters(dict.fromkeys(meter for each, _ in due for meter in each.meters)):
            await self._ask_open([asked for _, asked in due])
        for each, asked in due:
            each.refused = self._permits.answer(asked) is not True
        refused: _HeldCall | None = None
        for each in waiting:
            if not each.tool.changes or each.withdrawn or not self._makes(each):
                # The step that waits for its result makes this call itself (see `_hold`), or nobody waits for it.
                continue
            if each.refused:
                refused = refused or each
            elif refused is None or each.pending is not None:
                # After a refusal only what a person approved is made: the run will fail. The lock is held by `flush`.
                each.begun = True
                each.result = await self._make_held_call(each, nullcontext())
        if refused is not None:
            raise refusal_error(refused.step, refused.tool.name)

    def _makes(self, held: _HeldCall) -> bool:
        """Whether the task that asks makes this call too."""
        return self._ordered or held.owner is asyncio.current_task()

    async def _ask_open(self, due: Sequence[AskedCall]) -> None:
        """Ask about the due calls that have no answer yet, and about future calls with them."""
        open_ = [each for each in due if self._permits.answer(each) is None]
        if not open_:
            return
        coming, _, _ = await self._future_calls({each.call.step for each in due})
        await self._ask_person(open_, coming)

    async def _ask_person(self, due: Sequence[AskedCall], coming: Sequence[AskedCall], *, before: bool = False) -> None:
        """Ask a person about calls and record the answers. All due calls are asked about, unless one is refused."""
        asked: list[AskedCall] = [*due, *coming]
        while asked:
            question, within, left = build_question(asked, before=before)
            result = await self._handler.approve(question)
            # Grants hold from now on, before the next call is decided.
            for grant in result.grants:
                self._grant(grant)
            self._permits.record(within, result)
            if any(self._permits.answer(each) is False for each in within):
                return
            # A call that is not due can wait for its own question.
            asked = [each for each in left if not each.call.ahead]

    def _unanswered(self, waiting: Sequence[_HeldCall]) -> bool:
        """Whether a held call has no answer yet."""
        asked = (each.to_asked_call() for each in waiting)
        return any(each is not None and self._permits.answer(each) is None for each in asked)

    async def _future_calls(self, due: Collection[str]) -> tuple[list[AskedCall], set[str], set[str]]:
        """The future calls that are known and would be asked about; and the known and the unknown steps of the plan."""
        if self._ahead is None:
            return [], set(), set()
        actionable, found = self._actionable.copy(), list[tuple[Tool, AskedCall]]()
        changing = self._changes_wait
        unsettled: set[str] = set()

        def visit(request: CallRequest, places: dict[str, LabelTree]) -> bool:
            nonlocal changing
            step, tool, arguments = request.step, request.tool, request.arguments
            call_labels, stored = recall_stored_labels(tool, request.labels, arguments, places)
            bound = tool.bind(arguments)
            facts = self._facts(replace(request, labels=call_labels), actionable)
            places |= places_after_call(tool, request.labels, arguments, stored, request.pc, places)
            after_change, changing = changing, changing or tool.changes
            if step in due or (tool.effect == "pure" and not tool.outbound and not self._decider.decides_pure):
                return True
            decision = self._decider.decide(step, facts, arguments, self._grants).decision
            decision = ask_before_replacing(decision, facts)
            if isinstance(decision, Ask):
                if tool.attached_in is not None and after_change:
                    # Its files may be written by the change before it, so that their content is not known yet.
                    unsettled.add(step)
                    return True
                call = pending_call(step, tool, bound, facts, decision, offer=self._offer(facts, arguments))
                found.append((tool, AskedCall(replace(call, ahead=True), facts, call.hash)))
            return not isinstance(decision, Denied) and len(found) < MAX_CALLS_AHEAD

        known, unknown = self._ahead(visit)
        coming: list[AskedCall] = []
        for tool, each in found:
            bound = dict(each.call.arguments)
            try:
                files = await self._handler.attached_files(each.call.step, tool, bound)
            except ToolError:
                # Whether it fails is decided when the call is really made.
                unsettled.add(each.call.step)
                continue
            call = replace(each.call, files=files, hash=call_hash(tool, bound, files))
            asked = each._replace(call=call)
            if self._permits.answer(asked) is None:
                coming.append(asked)
        later = set(map(static_path, unsettled))
        return coming, known - later, unknown | later

    async def _make_held_call(self, held: _HeldCall, asking: AbstractAsyncContextManager[object]) -> CallResult:
        """Make a held call. `asking` is entered while a person is asked once more."""
        pending = held.pending
        if pending is None:
            return await self._call_and_label(held.step, held.tool, held.bound, held.labels)
        if call_hash(held.tool, held.bound, pending.files) != pending.hash:
            raise _approval_mismatch(held)
        pending = await self._reapprove_changed_files(held, pending, asking)
        # Used up before the call begins: even if it fails, there is no second call on the same approval.
        if not self._permits.use_up(held.step, pending.hash):
            raise _approval_mismatch(held)
        # The tool reads exactly the approved content: a file that changes after this check makes the call fail.
        files = nullcontext() if held.tool.attached_in is None else bind_attached_files(pending.files)
        with files:
            return await self._call_and_label(held.step, held.tool, held.bound, held.labels)

    async def _reapprove_changed_files(
        self, held: _HeldCall, pending: PendingCall, asking: AbstractAsyncContextManager[object]
    ) -> PendingCall:
        """The call with its files as they are now; if they differ from the approved ones, after another approval."""
        tool, bound = held.tool, held.bound
        while (files := await self._handler.attached_files(held.step, tool, bound)) != pending.files:
            pending = replace(
                pending,
                step=held.step,
                more_steps=(),
                ahead=False,
                files=files,
                hash=call_hash(tool, bound, files),
                changed=describe_changes(pending.files, files),
            )
            asked = AskedCall(pending, held.facts, call_hash(tool, bound))
            try:
                async with asking:
                    await self._ask_person((asked,), ())
                if self._permits.answer(asked) is not True:
                    raise refusal_error(held.step, tool.name)
            except (BicameralError, Suspend) as error:
                self._failure = error
                raise
        return pending

    async def _call_and_label(self, step: str, tool: Tool, bound: dict[str, Any], labels: StepLabels) -> CallResult:
        if isinstance(tool.run, PartOfRun):
            places, note = self._part_places.pop(step)
            part = RunPart(step, self._handler, self._decider, bound, labels.inputs, labels.control, places, note)
            return await tool.run.run_inside(part)
        value = await self._handler.call(step, tool, bound, labels)
        return value, labels.result_labels(value)


def _approval_mismatch(held: _HeldCall) -> RunError:
    return RunError(
        "run.refused", f"{held.tool.name!r}: this is not the call that was approved", place=Place(step=held.step)
    )


def _denied_error(step: str, reason: str, rules: tuple[str, ...]) -> RunError:
    return RunError(
        "policy.denied",
        reason,
        place=Place(step=step),
        fix=f"`bicameral policy show` prints {', '.join(map(repr, rules))}." if rules else None,
    )
