"""The call gate: every call of a run is decided here, waits for approval where it must, and is made only then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from bicameral.errors import BicameralError, Place, RunError, ToolError
from bicameral.labels import NOTHING, Label, LabelTree, taint
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
from bicameral.runs._observability import decision_span, record_decision
from bicameral.runs._step_evaluation import FutureCallVisitor
from bicameral.tools import Tool, bind_attached_files, describe_changes
from bicameral.types import to_plain

CallResult = tuple[Any, LabelTree]
"""What a call gave, with its labels."""

VisitFutureCalls = Callable[[FutureCallVisitor], tuple[set[str], set[str]]]
"""Tells of the calls that are to come and known already; at which steps of the plan they are, and at which not."""

_ALLOW = CallDecision(Allowed())
_NO_ARGUMENTS: frozenset[str] = frozenset()
MAX_CALLS_AHEAD = 100
"""So many calls are asked about ahead, and no more: a question must be read."""


@dataclass(slots=True, eq=False)
class _HeldCall:
    """A call that waits for a yes, or for one that does; `facts` are those it was judged by."""

    step: str
    tool: Tool
    bound: dict[str, Any]
    note: StepLabels
    facts: CallFacts
    pending: PendingCall | None = None
    refused: bool = False
    given: CallResult | None = None

    @property
    def asked(self) -> AskedCall | None:
        """The call as it is asked about, if it is."""
        if self.pending is None:
            return None
        return AskedCall(self.pending, self.facts, call_hash(self.tool, self.bound))


class CallGate:
    """Judges the calls of one run and lets them through, in their order.

    A call that a person must approve waits as long as the run can go on without it, and so does every change after
    it. What reads the world after such a change, needs what such a call gives, asks, or ends the run comes after all
    that waits: then there is one question for it, and what was approved is done.

    A question that is due is also put for calls that are still to come, as far as `ahead` knows them. Nothing is done
    sooner for that: such a call waits like any other, is judged when its turn has come, and finds its answer there.

    A yes is a permit for one call at one step, and is used up by it: what reads the same elsewhere, or is done once
    more, is asked about again. Only what a person grants explicitly (`grants`) holds for later calls, too.
    """

    def __init__(
        self,
        judge: Decider,
        hands: EffectHandler,
        lures: ActionableText | None = None,
        *,
        ahead: VisitFutureCalls | None = None,
        grants: Iterable[Grant] = (),
        assembled: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self.mode: Mode = judge.mode
        self._judge = judge
        self._hands = hands
        self._permits = Permits()
        self._grants = Grants()
        self._lures = lures or ActionableText(None)
        self._waiting: list[_HeldCall] = []
        self._settled: list[_HeldCall] = []
        self._lock = asyncio.Lock()
        self._failure: BicameralError | Suspend | None = None
        self._ahead = ahead
        self._assembled = assembled or {}
        for grant in grants:
            self._grant(grant)

    @property
    def failure(self) -> BicameralError | Suspend | None:
        """Why no call is let through any more, if none is."""
        return self._failure

    async def call(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        shades: Mapping[str, LabelTree],
        pc: Label,
        *,
        needed: bool,
    ) -> CallResult | None:
        """What the call gave; None if it waits, which it does only where its result is not `needed`."""
        if self._failure is not None:
            raise self._failure
        bound = tool.bind(arguments)
        facts = self._facts(step, tool, arguments, shades, pc, self._lures)
        judged = self._apply_refusals(self._decide(step, tool, facts, arguments), tool, bound)
        note = StepLabels(
            shades,
            pc,
            lambda value: labels_after_call(tool, shades, value, step, pc, arguments=bound),
            decision_json(judged, self._judge),
        )
        match judged.decision:
            case Denied(reason=reason, rules=rules):
                self._hands.record_held_call(step, "call-denied", tool, bound, note)
                raise _denied_error(step, reason, rules)
            case Ask() as asked if not judged.permitted:
                bound = {name: to_plain(value) for name, value in bound.items()}
                if tool.attached_in is not None and self._changes_wait:
                    # What is written before this call may be what goes along with it.
                    await self.flush()
                files = await self._hands.attached_files(step, tool, bound)
                offer = self._offer(facts, arguments)
                pending = pending_call(step, tool, bound, facts, asked, files, offer)
                return await self._hold(_HeldCall(step, tool, bound, note, facts, pending), needed)
            case _ if tool.changes and self._waiting:
                bound = {name: to_plain(value) for name, value in bound.items()}
                return await self._hold(_HeldCall(step, tool, bound, note, facts), needed)
            case _:
                if (tool.effect != "pure" or tool.outbound) and self._changes_wait:
                    await self.flush()
                return await self._call_and_label(step, tool, bound, note)

    async def make_call(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        shades: Mapping[str, LabelTree],
        pc: Label,
        places: dict[str, LabelTree],
        note: Callable[[dict[str, LabelTree]], None],
        *,
        needed: bool,
    ) -> CallResult | None:
        """`call`, with what earlier calls wrote: `places` are the labels of the names that things were written to.

        They are brought up to date, and `note` hears of each before the call and after it: one that fails may have
        written all the same.
        """
        judged, found = recall_stored_labels(tool, shades, arguments, places)
        note(places_after_call(tool, shades, arguments, found, pc, places))
        given = await self.call(step, tool, arguments, judged, pc, needed=needed)
        result = None if given is None else given[0]
        changed = places_after_call(tool, shades, arguments, found, pc, places, result)
        places |= changed | readers_after_call(tool, shades, arguments, found, pc, places, result)
        note(changed)
        return given if given is None or found is NOTHING else (given[0], taint(given[1], found))

    async def flush(self) -> None:
        """Ask about all that waits, and do what was approved; afterwards nothing waits."""
        if not self._waiting and not self._lock.locked() and self._failure is None:
            return
        async with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._unanswered(self._waiting):
                # Whatever can go on without an answer may have to be asked about, too, and then together with this.
                await self._hands.wait_until_idle()
            waiting, self._waiting, self._settled = self._waiting, [], self._waiting
            try:
                await self._settle_held(waiting)
            except (BicameralError, Suspend) as error:
                # Whatever else is under way must not go on as if this had been done.
                self._failure = error
                raise
            self._settled = []

    @property
    def _changes_wait(self) -> bool:
        """Whether anything is to be changed that comes before what is read now."""
        return any(each.tool.changes for each in (*self._settled, *self._waiting))

    async def ask_before_start(self, may_ask: frozenset[str]) -> None:
        """Ask about calls before anything is done, if those at all steps that `may_ask` are known already.

        Otherwise there would be another question later, and this can wait for that one. A no means that nothing is
        begun, and nobody there means no.
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

    def _facts(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        shades: Mapping[str, LabelTree],
        pc: Label,
        lures: ActionableText,
    ) -> CallFacts:
        assembled = self._assembled.get(static_path(step), _NO_ARGUMENTS)
        facts = call_facts(tool, shades, arguments, step, pc, self.mode, assembled)
        facts = replace(facts, lures=lures.in_call(facts, arguments))
        lures.record_written(facts, arguments, fetched=tool.copies_content)
        return facts

    def _apply_refusals(self, judged: CallDecision, tool: Tool, bound: Mapping[str, Any]) -> CallDecision:
        """What was decided, unless a person has said no to the call ahead: that is heard whatever allows it now."""
        if not (self._permits.has_refusals and isinstance(judged.decision, Allowed)):
            return judged
        refused = self._permits.refused_call(call_hash(tool, bound))
        return judged if refused is None else CallDecision(Ask(refused.why, refused.rules), refused_ahead=True)

    def _decide(self, step: str, tool: Tool, facts: CallFacts, values: Mapping[str, Any]) -> CallDecision:
        if tool.effect == "pure" and not tool.outbound and not self._judge.decides_pure:
            return _ALLOW
        with decision_span(step, tool) as told:
            judged = self._judge.decide(step, facts, values, self._grants)
            record_decision(told, facts, judged.decision)
        return judged

    def _offer(self, facts: CallFacts, values: Mapping[str, Any]) -> Grant | None:
        """What a person may grant along with a yes: only what would spare him the next question of this kind."""
        grant = possible_grant(facts, values)
        trusting = None if grant is None else Grants([grant]).applied(facts, values)
        return grant if trusting is not None and self._judge.allows(trusting[0]) else None

    def _grant(self, grant: Grant) -> None:
        self._grants.add(grant)
        self._lures.endorse(grant.value)

    async def _hold(self, waiting: _HeldCall, needed: bool) -> CallResult | None:
        self._hands.record_held_call(waiting.step, "call-waits", waiting.tool, waiting.bound, waiting.note)
        self._waiting.append(waiting)
        if waiting.tool.changes and not needed:
            return None
        await self.flush()
        if waiting.refused:
            raise refusal_error(waiting.step, waiting.tool.name)
        if waiting.given is None:
            waiting.given = await self._make_held_call(waiting, self._lock)
        return waiting.given

    async def _settle_held(self, waiting: list[_HeldCall]) -> None:
        due = [(each, asked) for each in waiting if (asked := each.asked) is not None]
        await self._ask_open([asked for _, asked in due])
        for each, asked in due:
            each.refused = self._permits.answer(asked) is not True
        refused: _HeldCall | None = None
        for each in waiting:
            if not each.tool.changes:
                # Whoever waits for what it gives makes this call himself.
                continue
            if each.refused:
                refused = refused or each
            elif refused is None or each.pending is not None:
                each.given = await self._make_held_call(each, nullcontext())
        if refused is not None:
            raise refusal_error(refused.step, refused.tool.name)

    async def _ask_open(self, due: Sequence[AskedCall]) -> None:
        """Ask about the calls that are due and of which nothing was said, and ahead about others."""
        open_ = [each for each in due if self._permits.answer(each) is None]
        if not open_:
            return
        coming, _, _ = await self._future_calls({each.call.step for each in due})
        await self._ask_person(open_, coming)

    async def _ask_person(self, due: Sequence[AskedCall], coming: Sequence[AskedCall], *, before: bool = False) -> None:
        """Put calls to a person and keep what was said. All that are due are asked about, unless one is refused."""
        asked: list[AskedCall] = [*due, *coming]
        while asked:
            question, within, left = build_question(asked, before=before)
            said = await self._hands.approve(question)
            # Grants hold from now on, before the next call is judged.
            for grant in said.grants:
                self._grant(grant)
            self._permits.record(within, said)
            if any(self._permits.answer(each) is False for each in within):
                return
            # What is not due can wait for its own question.
            asked = [each for each in left if not each.call.ahead]

    def _unanswered(self, waiting: Sequence[_HeldCall]) -> bool:
        """Whether anything that waits is still to be asked about."""
        return any((asked := each.asked) is not None and self._permits.answer(asked) is None for each in waiting)

    async def _future_calls(self, due: Collection[str]) -> tuple[list[AskedCall], set[str], set[str]]:
        """The calls that are not due yet, are known already and would be asked about if all went on as it is."""
        if self._ahead is None:
            return [], set(), set()
        lures, found = self._lures.copy(), list[tuple[Tool, AskedCall]]()
        changing = self._changes_wait
        unsettled: set[str] = set()

        def foresee(
            step: str,
            tool: Tool,
            arguments: dict[str, Any],
            shades: Mapping[str, LabelTree],
            pc: Label,
            places: dict[str, LabelTree],
        ) -> bool:
            nonlocal changing
            judged, held = recall_stored_labels(tool, shades, arguments, places)
            bound = tool.bind(arguments)
            facts = self._facts(step, tool, arguments, judged, pc, lures)
            places |= places_after_call(tool, shades, arguments, held, pc, places)
            after_change, changing = changing, changing or tool.changes
            if step in due or (tool.effect == "pure" and not tool.outbound and not self._judge.decides_pure):
                return True
            decision = self._judge.decide(step, facts, arguments, self._grants).decision
            if isinstance(decision, Ask):
                if tool.attached_in is not None and after_change:
                    # What its files will hold is not known before what comes first has been written.
                    unsettled.add(step)
                    return True
                call = pending_call(step, tool, bound, facts, decision, offer=self._offer(facts, arguments))
                found.append((tool, AskedCall(replace(call, ahead=True), facts, call.hash)))
            return not isinstance(decision, Denied) and len(found) < MAX_CALLS_AHEAD

        known, unknown = self._ahead(foresee)
        coming: list[AskedCall] = []
        for tool, each in found:
            bound = dict(each.call.arguments)
            try:
                files = await self._hands.attached_files(each.call.step, tool, bound)
            except ToolError:
                # It fails, or not, when its turn has come.
                unsettled.add(each.call.step)
                continue
            call = replace(each.call, files=files, hash=call_hash(tool, bound, files))
            asked = each._replace(call=call)
            if self._permits.answer(asked) is None:
                coming.append(asked)
        later = set(map(static_path, unsettled))
        return coming, known - later, unknown | later

    async def _make_held_call(self, waiting: _HeldCall, asking: AbstractAsyncContextManager[object]) -> CallResult:
        """Make a call that waited. `asking` is held while a person is asked once more."""
        pending = waiting.pending
        if pending is None:
            return await self._call_and_label(waiting.step, waiting.tool, waiting.bound, waiting.note)
        if call_hash(waiting.tool, waiting.bound, pending.files) != pending.hash:
            raise _approval_mismatch(waiting)
        pending = await self._reapprove_changed_files(waiting, pending, asking)
        # Used up before the call begins: whatever becomes of it, there is no second one on the same yes.
        if not self._permits.use_up(waiting.step, pending.hash):
            raise _approval_mismatch(waiting)
        if waiting.tool.attached_in is None:
            return await self._call_and_label(waiting.step, waiting.tool, waiting.bound, waiting.note)
        with bind_attached_files(pending.files):
            return await self._call_and_label(waiting.step, waiting.tool, waiting.bound, waiting.note)

    async def _reapprove_changed_files(
        self, waiting: _HeldCall, pending: PendingCall, asking: AbstractAsyncContextManager[object]
    ) -> PendingCall:
        """The call with its files as they are now; if they are not what was approved, after another yes."""
        tool, bound = waiting.tool, waiting.bound
        while (files := await self._hands.attached_files(waiting.step, tool, bound)) != pending.files:
            pending = replace(
                pending,
                step=waiting.step,
                more_steps=(),
                ahead=False,
                files=files,
                hash=call_hash(tool, bound, files),
                changed=describe_changes(pending.files, files),
            )
            asked = AskedCall(pending, waiting.facts, call_hash(tool, bound))
            try:
                async with asking:
                    await self._ask_person((asked,), ())
                if self._permits.answer(asked) is not True:
                    raise refusal_error(waiting.step, tool.name)
            except (BicameralError, Suspend) as error:
                self._failure = error
                raise
        return pending

    async def _call_and_label(self, step: str, tool: Tool, bound: dict[str, Any], note: StepLabels) -> CallResult:
        value = await self._hands.call(step, tool, bound, note)
        return value, note.result_labels(value)


def _approval_mismatch(waiting: _HeldCall) -> RunError:
    return RunError(
        "run.refused",
        f"{waiting.tool.name!r}: this is not the call that was approved",
        place=Place(step=waiting.step),
    )


def _denied_error(step: str, reason: str, rules: tuple[str, ...]) -> RunError:
    return RunError(
        "policy.denied",
        reason,
        place=Place(step=step),
        fix=f"`bicameral policy show` prints {', '.join(map(repr, rules))}." if rules else None,
    )
