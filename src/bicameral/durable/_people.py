"""People who answer later: an approver and an asker that know what was answered, and let the run wait for the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from bicameral.errors import BicameralError, DurableError, RunError
from bicameral.runs import Answers, Event, PendingCall, Question, Suspend, shown_hash
from bicameral.tools import AttachedFile, call_key, changes
from bicameral.types import Type, from_json, mismatch, plain, to_json, value_from_json, value_to_json

from ._rows import MAX_REPLY, read_answer

if TYPE_CHECKING:
    import sqlalchemy as sa

    from ._views import Approval

_Key = tuple[str, str]
"""A step, and the hash of what was shown of the call there."""


@dataclass(slots=True)
class Answered:
    """What was answered and has not been acted on yet: calls with yes or no, and replies by what asked for them."""

    calls: dict[_Key, bool] = field(default_factory=dict["_Key", bool])
    granted: set[_Key] = field(default_factory=set["_Key"])
    """The calls with which their offer for the rest of the run was taken."""
    files: dict[tuple[str, str], tuple[AttachedFile, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[AttachedFile, ...]]
    )
    """What went along with a tool's call at a step when it was last asked about."""
    replies: dict[str, Any] = field(default_factory=dict[str, Any])
    silent: set[str] = field(default_factory=set[str])
    """What nobody replied to in time."""

    @classmethod
    def of(cls, rows: Sequence[sa.RowMapping], events: Sequence[Event]) -> Self:
        """From the questions of a run and its record: a yes that is recorded was acted on, and does not count twice."""
        found = cls()
        for row in rows:
            question, answer = json.loads(row["question"]), json.loads(row["answer"] or "null")
            if row["kind"] == "ask":
                if row["state"] == "replied":
                    found.replies[question["key"]] = answer
                else:
                    found.silent.add(question["key"])
                continue
            later = [event for event in events if event.kind == "approval" and event.number >= row["number"]]
            acted = {(step, call["hash"]) for event in later for call in event.body["calls"] for step in _steps(call)}
            yes, for_run = read_answer(answer)
            for call in question["calls"]:
                for step in _steps(call):
                    found.files[step, call["tool"]] = tuple(map(AttachedFile.from_json, call.get("files", ())))
                    if (step, call["hash"]) not in acted:
                        found.calls[step, shown_hash(call)] = call["hash"] in yes
                        if call["hash"] in for_run:
                            found.granted.add((step, shown_hash(call)))
        return found


class LaterApprover:
    """Says what was answered, and puts everything else to a person by letting the run wait."""

    def __init__(self, answered: Answered) -> None:
        self._answered = answered

    async def approve(self, question: Question) -> Answers:
        keys = {call.hash: _keys(call) for call in question.calls}
        missing = tuple(each for call in question.calls if (each := self._missing(call)) is not None)
        if missing:
            raise Suspend(Question(missing, question.before))
        known, granted = self._answered.calls, self._answered.granted
        # A no to the call at one of its steps is a no to this entry of the question.
        yes = [call for call in question.calls if all(known[key] for key in keys[call.hash])]
        offers = [call.offer for call in yes if granted.intersection(keys[call.hash])]
        return Answers.yes(yes, for_run=[offer for offer in offers if offer is not None])

    def _missing(self, call: PendingCall) -> PendingCall | None:
        """The call at the steps at which it was not answered, if there are any."""
        steps = [step for step, shown in _keys(call) if (step, shown) not in self._answered.calls]
        if not steps:
            return None
        before = self._answered.files.get((steps[0], call.tool), call.files)
        return replace(call.at(steps), changed=call.changed or changes(before, call.files))


class OpenRequest(Suspend):
    """A request leaves something open, and the run waits for the reply before there is a plan."""

    def __init__(self, question: str, type: Type) -> None:
        super().__init__()
        self.asked: dict[str, Any] = {"question": question, "type": to_json(type), "key": question, "step": ""}


class LaterAsker:
    """Gives the replies that are there, and lets the run wait for all others."""

    def __init__(self, answered: Answered) -> None:
        self._answered = answered

    async def ask(self, question: str, type: Type) -> Any:
        # A step of a plan has a key of its own; what a request leaves open is known by its words.
        key = call_key() or question
        if key in self._answered.replies:
            return value_from_json(self._answered.replies[key])
        if key in self._answered.silent:
            raise RunError("run.needs-answer", f"nobody replied in time to: {question}")
        raise OpenRequest(question, type)


def _keys(call: PendingCall) -> list[_Key]:
    """A yes holds for the very call at the very step, for the very reason and with the labels that were shown."""
    shown = shown_hash(call.to_json())
    return [(step, shown) for step in call.steps]


def _steps(call: Mapping[str, Any]) -> Sequence[str]:
    """The steps of a call; a question of an earlier version names only the first."""
    return call.get("steps", (call["step"],))


def fitting(value: Any, asked: Approval) -> Any:
    """A reply as it is kept: as JSON, held against the type that was asked for."""
    try:
        wanted = from_json(asked.type)
        found = _read(value, wanted)
        reason = mismatch(found, wanted, "the reply")
        kept = value_to_json(found)
    except (TypeError, ValueError, BicameralError) as error:
        raise DurableError("durable.wrong-answer", f"the reply is no value a plan can use: {error}") from None
    if reason:
        raise DurableError("durable.wrong-answer", reason, expected=str(wanted))
    if len(json.dumps(kept)) > MAX_REPLY:
        raise DurableError("durable.wrong-answer", f"the reply is longer than {MAX_REPLY:,} characters")
    return kept


def _read(value: Any, wanted: Type) -> Any:
    """A value of a program as it is; one that came as JSON, such as a date, in the form that JSON has for it."""
    found = plain(value)
    if mismatch(found, wanted, "the reply") is None:
        return found
    try:
        return value_from_json(value)
    except (TypeError, ValueError, KeyError, BicameralError):
        return found
