"""Hands of a run that is taken up again: what is recorded is not done a second time, and the rest is done for real."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bicameral.decisions import Allowed, Ask, CallFacts, Denied
from bicameral.errors import Place, RunError
from bicameral.journal import EventKind
from bicameral.tools import AttachedFile, Tool
from bicameral.types import Type, plain

from ._approvals import PendingCall, Question, call_hash
from ._grants import Grants
from ._hands import LiveHands, ask_facts, call_facts, extract_facts
from ._judge import Judged, PolicyJudge, RecordedJudge
from ._note import Note
from ._outcome import EffectDone
from ._permits import Permit, Said
from ._recorded import RecordedHands

if TYPE_CHECKING:
    from bicameral.policy import Policy


class ResumingHands:
    """Answers from the record first, and touches the world only from where the record ends.

    What was recorded is held against what the run comes to now: a step that differs in anything ends the run, since it
    is then not the run that was begun. Of a call that had begun and not ended nobody knows whether it happened: it is
    made again if that does no harm, with the same key, and otherwise a person is asked.
    """

    def __init__(self, recorded: RecordedHands, live: LiveHands, began: Mapping[str, int]) -> None:
        self._recorded = recorded
        self._live = live
        self._began = began
        # What was done and what is being done are one list, in the order of the run.
        self.effects: list[EffectDone] = live.effects
        self.in_flight: set[str] = live.in_flight
        recorded.effects = live.effects

    async def call(self, step: str, tool: Tool, bound: dict[str, Any], note: Note | None = None) -> Any:
        known = self._recorded.knows(step)
        if known == "ended":
            return await self._remembered(self._recorded.call(step, tool, bound, note))
        if known is not None:
            self._begun_alike(step, call_facts(tool, bound), note)
            if known == "begun" and not tool.repeatable:
                await self._in_doubt(step, tool, bound)
        return await self._live.call(step, tool, bound, note)

    async def extract(self, step: str, source: Any, instruction: str, wanted: Type, note: Note | None = None) -> Any:
        known = self._recorded.knows(step)
        if known == "ended":
            return await self._remembered(self._recorded.extract(step, source, instruction, wanted, note))
        if known == "begun":
            self._begun_alike(step, extract_facts(source, instruction, wanted), note)
        return await self._live.extract(step, source, instruction, wanted, note)

    async def ask(self, step: str, question: str, wanted: Type, note: Note | None = None) -> Any:
        known = self._recorded.knows(step)
        if known == "ended":
            return await self._remembered(self._recorded.ask(step, question, wanted, note))
        if known == "begun":
            self._begun_alike(step, ask_facts(question, wanted), note)
        return await self._live.ask(step, question, wanted, note)

    async def approve(self, question: Question) -> Said:
        """What was said of these calls before, and for those of which nothing was said, what is said now."""
        permits: Counter[Permit] = Counter()
        still_open: list[PendingCall] = []
        for call in question.calls:
            said = {step: self._recorded.said(step, call) for step in call.steps}
            permits.update((step, call.hash) for step in call.steps if said[step])
            if steps := [step for step in call.steps if said[step] is None]:
                still_open.append(call.at(steps))
        if not still_open:
            return Said(permits)
        before = question.before and len(still_open) == len(question.calls)
        now = await self._live.approve(Question(tuple(still_open), before))
        return Said(permits + now.permits, now.grants)

    async def attached(self, step: str, tool: Tool, bound: dict[str, Any]) -> tuple[AttachedFile, ...]:
        # A call that was made is held against the record; one that is still to be made, against the world.
        if self._recorded.knows(step) == "ended":
            return await self._recorded.attached(step, tool, bound)
        return await self._live.attached(step, tool, bound)

    async def quiet(self) -> None:
        await self._live.quiet()

    def held(self, step: str, kind: EventKind, tool: Tool, bound: dict[str, Any], note: Note) -> None:
        if not self._recorded.has_held(step, kind):
            self._live.held(step, kind, tool, bound, note)
            return
        self._recorded.held(step, kind, tool, bound, note)
        self._unchanged()

    def ended(self) -> None:
        """Nothing that was done before may be missing from a run that has come to its end."""
        if missing := self._recorded.unused_effects():
            raise _changed(f"the run did not come to step {missing[0]!r} again, which it had done before")

    async def _remembered(self, answer: Awaitable[Any]) -> Any:
        try:
            return await answer
        finally:
            # Before anything else is said or done on the strength of it.
            self._unchanged()

    def _begun_alike(self, step: str, facts: dict[str, Any], note: Note | None) -> None:
        self._recorded.begun_alike(step, facts if note is None else facts | note.started())
        self._unchanged()

    def _unchanged(self) -> None:
        if self._recorded.differences:
            raise _changed(self._recorded.differences[0])

    async def _in_doubt(self, step: str, tool: Tool, bound: dict[str, Any]) -> None:
        """Ask about a call that may have been made already; only a yes to just that makes it again."""
        call = PendingCall(
            step,
            tool.name,
            tool.effect,
            MappingProxyType({name: plain(value) for name, value in bound.items()}),
            _doubt_hash(step, tool, bound, self._began.get(step, -1)),
            f"in doubt: {tool.name!r} had begun when the process ended, and may have done it already. Do it again?",
        )
        said = await self.approve(Question((call,)))
        if not said.permits[step, call.hash]:
            raise RunError(
                "run.in-doubt",
                f"the call of {tool.name!r} may have happened, and was not to be repeated",
                place=Place(step=step),
                fix="Look whether it happened; a tool that can be repeated should say so (`idempotent`, `keyed`).",
            )


def _doubt_hash(step: str, tool: Tool, bound: Mapping[str, Any], began: int) -> str:
    """What a yes to a repetition is bound to: this call, at this step, begun this time. It is no yes to the call."""
    text = json.dumps(["in doubt", call_hash(tool, bound), step, began])
    return hashlib.sha256(text.encode()).hexdigest()


def _changed(what: str) -> RunError:
    return RunError(
        "run.changed",
        f"this is not how the run began: {what}",
        fix="Begin a new run, after a look at what this one did: `bicameral runs show`.",
    )


class ResumingJudge(PolicyJudge):
    """Policy decides, and never more kindly than it had decided before the run was taken up again.

    What has been done already is not decided a second time. A call that was to be asked about still is, also if what
    was granted meanwhile comes earlier this time.
    """

    def __init__(
        self,
        policy: Policy,
        decisions: Mapping[str, dict[str, Any]],
        ended: frozenset[str],
        permitted: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(policy)
        self._known = decisions
        self._ended = ended
        self._recorded = RecordedJudge(self.mode, self.fingerprint, decisions, permitted)

    def judge(self, step: str, facts: CallFacts, values: Mapping[str, Any], grants: Grants) -> Judged:
        if step not in self._known:
            return super().judge(step, facts, values, grants)
        then = self._recorded.judge(step, facts, values, grants)
        if step in self._ended:
            return then
        now = super().judge(step, facts, values, grants)
        match now.decision, then.decision:
            case (Denied(), _) | (Ask(), Allowed()):
                return now
            case _:
                # An earlier version may have begun it on a yes to another call: that is not enough any more.
                return replace(then, permitted=False)
