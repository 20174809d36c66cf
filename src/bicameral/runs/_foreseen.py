"""What was said ahead about calls that are still to come, and for which of them it holds when they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bicameral.decisions import ArgumentFacts, CallFacts
from bicameral.labels import covers

from ._approvals import PendingCall, Question
from ._hands import Hands


class Coming(NamedTuple):
    """A call that is not due yet, and the facts that it would be judged by."""

    call: PendingCall
    facts: CallFacts


class Foreseen:
    """The answers to calls that were asked about before they were due.

    A yes ahead is a yes to one step with exactly these arguments, and to no more of strangers in it than was shown:
    otherwise it is asked about anew. A no is a no to this call, wherever and however it comes.
    """

    def __init__(self) -> None:
        self._approved: dict[tuple[str, str], CallFacts] = {}
        self._refused: dict[str, PendingCall] = {}

    async def put(
        self, hands: Hands, due: Sequence[PendingCall], coming: Sequence[Coming], *, before: bool = False
    ) -> frozenset[str]:
        """Put calls to a person: the hashes of those that are due and approved. What was said of others is kept."""
        calls: dict[str, PendingCall] = {}
        for each in (*due, *(call for call, _ in coming)):
            known = calls.get(each.hash)
            calls[each.hash] = replace(known, times=known.times + 1) if known else each
        answers = await hands.approve(Question(tuple(calls.values()), before))
        for call, facts in coming:
            if call.hash not in answers.approved:
                self._refused[call.hash] = call
            elif calls[call.hash].ahead:
                self._approved[call.step, call.hash] = facts
        return answers.approved & {each.hash for each in due}

    def refused(self, hash_: str) -> PendingCall | None:
        """The call with this hash as it was refused, if it was."""
        return self._refused.get(hash_)

    @property
    def refuses(self) -> bool:
        """Whether any call was refused ahead."""
        return bool(self._refused)

    def said(self, step: str, hash_: str, facts: CallFacts) -> bool | None:
        """What was said of a call; None if it is still to be asked about."""
        if hash_ in self._refused:
            return False
        then = self._approved.get((step, hash_))
        return True if then is not None and no_worse(then, facts) else None


def no_worse(then: CallFacts, now: CallFacts) -> bool:
    """Whether strangers have no more of a hand in a call, and it is no more secret, than in what was shown."""
    known = {argument.name: argument for argument in then.arguments}
    return (
        replace(then, arguments=(), pc=now.pc, lures=None) == replace(now, arguments=(), lures=None)
        and known.keys() == {argument.name for argument in now.arguments}
        and covers(then.pc, now.pc)
        and all(_as_good(known[argument.name], argument) for argument in now.arguments)
        and (now.lures or frozenset()) <= (then.lures or frozenset())
    )


def _as_good(then: ArgumentFacts, now: ArgumentFacts) -> bool:
    return replace(then, label=now.label) == now and covers(then.label, now.label)
