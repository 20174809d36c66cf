"""The door: every call of a run is judged here, waits for a person where it must, and is made only then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from bicameral.decisions import Allowed, Ask, CallFacts, Denied, Mode
from bicameral.errors import BicameralError, Place, RunError
from bicameral.labels import NOTHING, Label, Shade, tainted
from bicameral.plans import after_call, call_facts, found_again, written
from bicameral.tools import Tool
from bicameral.types import plain

from ._approvals import PendingCall, Question, call_hash, untrusted_in
from ._hands import Hands
from ._judge import Endorsed, Judge, Judged, decision_json
from ._lures import Lures
from ._note import Note
from ._telling import decided, deciding

Given = tuple[Any, Shade]
"""What a call gave, with its labels."""

_ALLOWED = Judged(Allowed())
_BREATHS = 2


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
    it. What reads the world, needs what such a call gives, asks, or ends the run comes after all that waits: then
    there is one question for it, and what was approved is done.

    In a plan the same call twice is what somebody read and checked, so that a yes holds for it again. With `once` a yes
    is used up by the call it was given for: who writes the calls may be under a stranger's influence.
    """

    def __init__(self, judge: Judge, hands: Hands, lures: Lures | None = None, *, once: bool = False) -> None:
        self.mode: Mode = judge.mode
        self._judge = judge
        self._hands = hands
        self._endorsed = Endorsed()
        self._lures = lures or Lures(None)
        self._approved: set[str] = set()
        self._waiting: list[_Waiting] = []
        self._lock = asyncio.Lock()
        self._failure: BicameralError | None = None
        self._once = once

    @property
    def closed(self) -> BicameralError | None:
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
        facts = call_facts(tool, shades, arguments, step, pc, self.mode)
        facts = replace(facts, lures=self._lures.of(facts, arguments))
        self._lures.keep(facts, arguments, fetched=tool.fetches)
        judged = self._judged(step, tool, facts, arguments)
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
            case Ask() as asked if (hash_ := call_hash(tool, bound)) not in self._approved:
                bound = {name: plain(value) for name, value in bound.items()}
                pending = _pending(step, tool, bound, hash_, facts, asked)
                return await self._wait(_Waiting(step, tool, bound, note, facts, pending), needed)
            case _ if tool.changes and self._waiting:
                bound = {name: plain(value) for name, value in bound.items()}
                return await self._wait(_Waiting(step, tool, bound, note, facts), needed)
            case _:
                if tool.effect != "pure" or tool.outbound:
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
        places |= changed
        note(changed)
        return given if given is None or found is NOTHING else (given[0], tainted(given[1], found))

    async def flush(self) -> None:
        """Ask about all that waits, and do what was approved; afterwards nothing waits."""
        if not self._waiting and not self._lock.locked() and self._failure is None:
            return
        async with self._lock:
            if self._failure is not None:
                raise self._failure
            waiting, self._waiting = self._waiting, []
            try:
                await self._settle(waiting)
            except BicameralError as error:
                # Whatever else is under way must not go on as if this had been done.
                self._failure = error
                raise

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
        if not waiting.tool.changes:
            # Turns of a loop that run side by side come to this together: they are asked about together.
            for _ in range(_BREATHS):
                await asyncio.sleep(0)
        await self.flush()
        if waiting.refused:
            raise _refused(waiting)
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
            raise _refused(refused)

    async def _ask(self, asked: list[_Waiting]) -> frozenset[str]:
        """The hashes of the calls that were approved."""
        calls: dict[str, PendingCall] = {}
        for each in asked:
            if each.pending is not None:
                known = calls.get(each.pending.hash)
                calls[each.pending.hash] = replace(known, times=known.times + 1) if known else each.pending
        if not calls:
            return frozenset()
        answers = await self._hands.approve(Question(tuple(calls.values())))
        said_yes = answers.approved & calls.keys()
        self._approved |= said_yes
        return said_yes

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


def _pending(step: str, tool: Tool, bound: Mapping[str, Any], hash_: str, facts: CallFacts, asked: Ask) -> PendingCall:
    # A copy: whoever is asked cannot change what is done.
    shown = MappingProxyType({name: plain(value) for name, value in bound.items()})
    return PendingCall(step, tool.name, tool.effect, shown, hash_, asked.question, untrusted_in(facts), asked.rules)


def _denied(step: str, reason: str, rules: tuple[str, ...]) -> RunError:
    return RunError(
        "policy.denied",
        reason,
        place=Place(step=step),
        fix=f"`bicameral policy show` prints {', '.join(map(repr, rules))}." if rules else None,
    )


def _refused(waiting: _Waiting) -> RunError:
    return RunError(
        "run.refused", f"the call of {waiting.tool.name!r} was not approved", place=Place(step=waiting.step)
    )
