"""Permits: what a person said yes to, each for one call at one step, used up by the call that is made on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bicameral.decisions import ArgumentFacts, CallFacts
from bicameral.labels import covers

from ._approvals import PendingCall, Question, shown_hash
from ._grants import Grant

Permit = tuple[str, str]
"""A step, with the turns of its loops, and the hash of the call that may be made there once."""


@dataclass(frozen=True, slots=True)
class Said:
    """What was said to a question, step by step: the permits, and what was granted for the rest of the run."""

    permits: Counter[Permit]
    grants: tuple[Grant, ...] = ()


class Asked(NamedTuple):
    """A call that a question is about, and the facts it is judged by. `key` is its hash without what files hold."""

    call: PendingCall
    facts: CallFacts
    key: str


class Permits:
    """The permits of one run.

    A permit is for one step with exactly these arguments, and for no more of strangers in the call than was shown:
    otherwise the call is asked about anew. It serves no other step, and no second call at the same one. A no is a no
    to this call, wherever and however it comes.
    """

    def __init__(self) -> None:
        self._left: Counter[Permit] = Counter()
        self._shown: dict[Permit, CallFacts] = {}
        self._refused: dict[str, PendingCall] = {}

    def keep(self, asked: Iterable[Asked], said: Said) -> None:
        """Keep what was said of calls. What was not asked about gives nothing, whatever the answer holds."""
        for call, facts, key in asked:
            if said.permits[call.step, call.hash]:
                # Set and not added: whoever is asked twice about one call at one step has allowed it once.
                self._left[call.step, call.hash] = said.permits[call.step, call.hash]
                self._shown[call.step, call.hash] = facts
            else:
                self._left.pop((call.step, call.hash), None)
                self._refused[key] = call

    def refused(self, key: str) -> PendingCall | None:
        """The call as it was refused, if it was."""
        return self._refused.get(key)

    @property
    def refuses(self) -> bool:
        """Whether any call was refused."""
        return bool(self._refused)

    def answer(self, asked: Asked) -> bool | None:
        """What was said of a call; None if it is still to be asked about."""
        if asked.key in self._refused:
            return False
        permit = asked.call.step, asked.call.hash
        return True if self._left[permit] > 0 and no_worse(self._shown[permit], asked.facts) else None

    def use(self, step: str, hash_: str) -> bool:
        """Use one permit up; False if there is none."""
        if self._left[step, hash_] <= 0:
            return False
        self._left[step, hash_] -= 1
        return True


def question_of(asked: Sequence[Asked], *, before: bool = False) -> tuple[Question, list[Asked], list[Asked]]:
    """One question, the calls that it is about, and those that need another one.

    The very same call at several steps is one entry that says how often. What looks the same but comes from elsewhere
    is not mixed up with it, since an answer is one to everything that is shown of an entry.
    """
    entries: dict[str, tuple[PendingCall, str]] = {}
    within: list[Asked] = []
    left: list[Asked] = []
    for each in asked:
        shown = shown_hash(each.call.to_json())
        known, alike = entries.get(each.call.hash, (None, shown))
        if alike != shown:
            left.append(each)
            continue
        call = each.call if known is None else known.at((*known.steps, each.call.step))
        entries[each.call.hash] = (call, shown)
        within.append(each)
    return Question(tuple(call for call, _ in entries.values()), before), within, left


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
