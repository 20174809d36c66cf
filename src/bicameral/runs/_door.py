"""The door: every call of a run is judged here, waits for a person where it must, and is made only then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bicameral.decisions import Allowed, Ask, CallFacts, Denied, Mode
from bicameral.errors import BicameralError, Place, RunError
from bicameral.labels import NOTHING, Label, Shade, tainted
from bicameral.plans import after_call, call_facts, found_again, seen, static_path, written
from bicameral.tools import Tool
from bicameral.types import plain

from ._ahead import Foresee
from ._approvals import PendingCall, call_hash, pending_call, refusal
from ._foreseen import Coming, Foreseen
from ._hands import Hands
from ._judge import Endorsed, Judge, Judged, decision_json
from ._lures import Lures
from ._note import Note
from ._suspend import Suspend
from ._telling import decided, deciding

Given = tuple[Any, Shade]
"""What a call gave, with its labels."""

Ahead = Callable[[Foresee], tuple[set[str], set[str]]]
"""Tells of the calls that are to come and known already; at which steps of the plan they are, and at which not."""

_ALLOWED = Judged(Allowed())
_NONE: frozenset[str] = frozenset()
MOST_AHEAD = 100
"""So many calls are asked about ahead, and no more: a question must be read."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A call that waits for a yes, or for one that does; `facts` are those it was judged by."""

    step: str
    tool: Tool
    bound: dict[str, Any]
    note: Note
    facts: CallFacts
    pending: PendingCall | None = None
    refused: bool = False
    given: Given | None = None


class Door:
    """Judges the calls of one run and lets them through, in their order.

    A call that a person must approve waits as long as the run can go on without it, and so does every change after
    it. What reads the world after such a change, needs what such a call gives, asks, or ends the run comes after all
    that waits: then there is one question for it, and what was approved is done.

    A question that is due is also put for calls that are still to come, as far as `ahead` knows them. Nothing is done
    sooner for that: such a call waits like any other, is judged when its turn has come, and finds its answer there.

    In a plan the same call twice is what somebody read and checked, so that a yes holds for it again. With `once` a yes
    is used up by the call it was given for: who writes the calls may be under a stranger's influence.
    """

    def __init__(
        self,
        judge: Judge,
        hands: Hands,
        lures: Lures | None = None,
        *,
        once: bool = False,
        ahead: Ahead | None = None,
        assembled: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self.mode: Mode = judge.mode
        self._judge = judge
        self._hands = hands
        self._endorsed = Endorsed()
        self._lures = lures or Lures(None)
        self._approved: set[str] = set()
        self._waiting: list[_Waiting] = []
        self._settled: list[_Waiting] = []
        self._lock = asyncio.Lock()
        self._failure: BicameralError | Suspend | None = None
        self._once = once
        self._ahead = ahead
        self._assembled = assembled or {}
        self._foreseen = Foreseen()

    @property
    def closed(self) -> BicameralError | Suspend | None:
        """Why no call is let through any more, if none is."""
        return self._failure

    async def call(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        shades: Mapping[str, Shade],
        pc: Label,
        *,
        needed: bool,
    ) -> Given | None:
        """What the call gave; None if it waits, which it does only where its result is not `needed`."""
        if self._failure is not None:
            raise self._failure
        bound = tool.bind(arguments)
        facts = self._facts(step, tool, arguments, shades, pc, self._lures)
        judged = self._heeding(self._judged(step, tool, facts, arguments), tool, bound)
        note = Note(
            shades,
            pc,
            lambda value: after_call(tool, shades, value, step, pc, arguments=bound),
            decision_json(judged, self._judge),
        )
        match judged.decision:
            case Denied(reason=reason, rules=rules):
                self._hands.held(step, "call-denied", tool, bound, note)
                raise _denied(step, reason, rules)
            case Ask() as asked if call_hash(tool, bound) not in self._approved:
                bound = {name: plain(value) for name, value in bound.items()}
                pending = pending_call(step, tool, bound, facts, asked)
                return await self._wait(_Waiting(step, tool, bound, note, facts, pending), needed)
            case _ if tool.changes and self._waiting:
                bound = {name: plain(value) for name, value in bound.items()}
                return await self._wait(_Waiting(step, tool, bound, note, facts), needed)
            case _:
                if (tool.effect != "pure" or tool.outbound) and self._changes_wait:
                    await self.flush()
                return await self._made(step, tool, bound, note)

    async def pass_on(
        self,
        step: str,
        tool: Tool,
        arguments: dict[str, Any],
        shades: Mapping[str, Shade],
        pc: Label,
        places: dict[str, Shade],
        note: Callable[[dict[str, Shade]], None],
        *,
        needed: bool,
    ) -> Given | None:
        """`call`, with what earlier calls wrote: `places` are the labels of the names that things were written to.

        They are brought up to date, and `note` hears of each before the call and after it: one that fails may have
        written all the same.
        """
        judged, found = found_again(tool, shades, arguments, places)
        note(written(tool, shades, arguments, found, pc, places))
        given = await self.call(step, tool, arguments, judged, pc, needed=needed)
        changed = written(tool, shades, arguments, found, pc, places, None if given is None else given[0])
        places |= changed | seen(tool, arguments, places, None if given is None else given[0])
        note(changed)
        return given if given is None or found is NOTHING else (given[0], tainted(given[1], found))

    async def flush(self) -> None:
        """Ask about all that waits, and do what was approved; afterwards nothing waits."""
        if not self._waiting and not self._lock.locked() and self._failure is None:
            return
        async with self._lock:
            if self._failure is not None:
                raise self._failure
            if any(self._unanswered(self._waiting)):
                # Whatever can go on without an answer may have to be asked about, too, and then together with this.
                await self._hands.quiet()
            waiting, self._waiting, self._settled = self._waiting, [], self._waiting
            try:
                await self._settle(waiting)
            except (BicameralError, Suspend) as error:
                # Whatever else is under way must not go on as if this had been done.
                self._failure = error
                raise
            self._settled = []

    @property
    def _changes_wait(self) -> bool:
        """Whether anything is to be changed that comes before what is read now."""
        return any(each.tool.changes for each in (*self._settled, *self._waiting))

    async def ask_before(self, may_ask: frozenset[str]) -> None:
        """Ask about calls before anything is done, if those at all steps that `may_ask` are known already.

        Otherwise there would be another question later, and this can wait for that one. A no means that nothing is
        begun, and nobody there means no.
        """
        foreseen, known, unknown = self._look(())
        if not foreseen or not may_ask <= known - unknown:
            return
        try:
            await self._foreseen.put(self._hands, (), foreseen, before=True)
            refused = next((call for call, _ in foreseen if self._foreseen.refused(call.hash) is not None), None)
            if refused is not None:
                raise refusal(refused.step, refused.tool)
        except BicameralError as error:
            self._failure = error
            raise

    def _facts(
        self, step: str, tool: Tool, arguments: dict[str, Any], shades: Mapping[str, Shade], pc: Label, lures: Lures
    ) -> CallFacts:
        assembled = self._assembled.get(static_path(step), _NONE)
        facts = call_facts(tool, shades, arguments, step, pc, self.mode, assembled)
        facts = replace(facts, lures=lures.of(facts, arguments))
        lures.keep(facts, arguments, fetched=tool.fetches)
        return facts

    def _heeding(self, judged: Judged, tool: Tool, bound: Mapping[str, Any]) -> Judged:
        """What was decided, unless a person has said no to the call ahead: that is heard whatever allows it now."""
        if not (self._foreseen.refuses and isinstance(judged.decision, Allowed)):
            return judged
        refused = self._foreseen.refused(call_hash(tool, bound))
        return judged if refused is None else Judged(Ask(refused.why, refused.rules), refused_ahead=True)

    def _judged(self, step: str, tool: Tool, facts: CallFacts, values: Mapping[str, Any]) -> Judged:
        if tool.effect == "pure" and not tool.outbound and not self._judge.judges_pure:
            return _ALLOWED
        with deciding(step, tool) as told:
            judged = self._judge.judge(step, facts, values, self._endorsed)
            decided(told, facts, judged.decision)
        return judged

    async def _wait(self, waiting: _Waiting, needed: bool) -> Given | None:
        self._hands.held(waiting.step, "call-waits", waiting.tool, waiting.bound, waiting.note)
        self._waiting.append(waiting)
        if waiting.tool.changes and not needed:
            return None
        await self.flush()
        if waiting.refused:
            raise refusal(waiting.step, waiting.tool.name)
        if waiting.given is None:
            waiting.given = await self._do(waiting)
        return waiting.given

    async def _settle(self, waiting: list[_Waiting]) -> None:
        asked = [each for each in waiting if each.pending is not None and each.pending.hash not in self._approved]
        said_yes = await self._ask(asked)
        for each in asked:
            each.refused = each.pending is None or each.pending.hash not in said_yes
            if not each.refused and not self._once:
                self._endorsed.add(each.facts, each.bound)
                self._lures.endorse(each.facts, each.bound)
        refused: _Waiting | None = None
        for each in waiting:
            if not each.tool.changes:
                # Whoever waits for what it gives makes this call himself.
                continue
            if each.refused:
                refused = refused or each
            elif refused is None or (each.pending is not None and each.pending.hash in said_yes):
                each.given = await self._do(each)
        if refused is not None:
            raise refusal(refused.step, refused.tool.name)

    async def _ask(self, asked: list[_Waiting]) -> frozenset[str]:
        """The hashes of the calls that were approved, now or ahead."""
        unanswered = list(self._unanswered(asked))
        hashes = {each.hash for each in unanswered}
        said_yes = {each.pending.hash for each in asked if each.pending and each.pending.hash not in hashes}
        said_yes -= {hash_ for hash_ in said_yes if self._foreseen.refused(hash_) is not None}
        if unanswered:
            foreseen, _, _ = self._look(asked)
            said_yes |= await self._foreseen.put(self._hands, unanswered, foreseen)
        self._approved |= said_yes
        return frozenset(said_yes)

    def _unanswered(self, waiting: Sequence[_Waiting]) -> Iterator[PendingCall]:
        """The calls that are to be asked about. If anything about one is new, all that are the same are asked anew."""
        open_ = {
            each.pending.hash
            for each in waiting
            if each.pending is not None
            and each.pending.hash not in self._approved
            and self._foreseen.said(each.step, each.pending.hash, each.facts) is None
        }
        return (each.pending for each in waiting if each.pending is not None and each.pending.hash in open_)

    def _look(self, due: Sequence[_Waiting]) -> tuple[list[Coming], set[str], set[str]]:
        """The calls that are not due yet, are known already and would be asked about if all went on as it is."""
        if self._ahead is None:
            return [], set(), set()
        steps, lures, found = {each.step for each in due}, self._lures.copied(), list[Coming]()

        def foresee(
            step: str,
            tool: Tool,
            arguments: dict[str, Any],
            shades: Mapping[str, Shade],
            pc: Label,
            places: dict[str, Shade],
        ) -> bool:
            judged, held = found_again(tool, shades, arguments, places)
            bound = tool.bind(arguments)
            facts = self._facts(step, tool, arguments, judged, pc, lures)
            places |= written(tool, shades, arguments, held, pc, places)
            if step in steps or (tool.effect == "pure" and not tool.outbound and not self._judge.judges_pure):
                return True
            decision = self._judge.judge(step, facts, arguments, self._endorsed).decision
            if isinstance(decision, Ask):
                call = replace(pending_call(step, tool, bound, facts, decision), ahead=True)
                if call.hash not in self._approved and self._foreseen.said(step, call.hash, facts) is None:
                    found.append(Coming(call, facts))
            return not isinstance(decision, Denied) and len(found) < MOST_AHEAD

        known, unknown = self._ahead(foresee)
        return found, known, unknown

    async def _do(self, waiting: _Waiting) -> Given:
        if waiting.pending is not None and call_hash(waiting.tool, waiting.bound) != waiting.pending.hash:
            raise RunError(
                "run.refused",
                f"{waiting.tool.name!r}: this is not the call that was approved",
                place=Place(step=waiting.step),
            )
        if self._once and waiting.pending is not None:
            self._approved.discard(waiting.pending.hash)
        return await self._made(waiting.step, waiting.tool, waiting.bound, waiting.note)

    async def _made(self, step: str, tool: Tool, bound: dict[str, Any], note: Note) -> Given:
        value = await self._hands.call(step, tool, bound, note)
        return value, note.shade(value)


def _denied(step: str, reason: str, rules: tuple[str, ...]) -> RunError:
    return RunError(
        "policy.denied",
        reason,
        place=Place(step=step),
        fix=f"`bicameral policy show` prints {', '.join(map(repr, rules))}." if rules else None,
    )
