"""Answers of people that come later: an approver and an asker that use the stored answers, and suspend for the others.

An approval holds for one call at one step of one plan. In a request that is worked on in rounds each plan is a run of
its own, and the answers of one round are none for the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from bicameral.durable._queries import MAX_REPLY, parse_answer
from bicameral.errors import BicameralError, DurableError, RunError
from bicameral.runs import Answers, ApprovalQuestion, Event, PendingCall, Suspend, shown_hash
from bicameral.tools import AttachedFile, call_key, describe_changes
from bicameral.types import Type, mismatch, to_plain, type_from_json, type_to_json, value_from_json, value_to_json

if TYPE_CHECKING:
    import sqlalchemy as sa

    from bicameral.durable._views import Approval


_ShownCall = tuple[str, str]
"""A step, and the hash of the call as it was shown to the person."""


@dataclass(slots=True)
class StoredAnswers:
    """Answers that were not acted on yet: calls with yes or no, and replies by the key of their question."""

    calls: dict[_ShownCall, bool] = field(default_factory=dict["_ShownCall", bool])
    granted: set[_ShownCall] = field(default_factory=set["_ShownCall"])
    """The calls whose offer for the rest of the run was accepted."""
    files: dict[tuple[str, str], tuple[AttachedFile, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[AttachedFile, ...]]
    )
    """The files that were attached to a tool's call at a step when it was last asked about."""
    replies: dict[str, Any] = field(default_factory=dict[str, Any])
    unanswered: set[str] = field(default_factory=set[str])
    """The keys of questions that expired without a reply."""

    @classmethod
    def from_rows(cls, rows: Sequence[sa.RowMapping], events: Sequence[Event], part: str = "") -> Self:
        """From the questions of a run and its journal. An approval in the journal was used, and counts no more.

        Args:
            rows: The questions of the run.
            events: The journal of the run, or of its part.
            part: The run of a round: only approvals of its calls count. Replies have keys that no other step has.
        """
        answers = cls()
        for row in rows:
            question, answer = json.loads(row["question"]), json.loads(row["answer"] or "null")
            if row["kind"] == "ask":
                if row["state"] == "replied":
                    answers.replies[question["key"]] = answer
                else:
                    answers.unanswered.add(question["key"])
                continue
            if question.get("part", "") != part:
                continue
            later = [event for event in events if event.kind == "approval" and event.number >= row["number"]]
            used = {
                (step, call["hash"]) for event in later for call in event.body["calls"] for step in _call_steps(call)
            }
            approved, for_run = parse_answer(answer)
            for call in question["calls"]:
                for step in _call_steps(call):
                    answers.files[step, call["tool"]] = tuple(map(AttachedFile.from_json, call.get("files", ())))
                    if (step, call["hash"]) not in used:
                        answers.calls[step, shown_hash(call)] = call["hash"] in approved
                        if call["hash"] in for_run:
                            answers.granted.add((step, shown_hash(call)))
        return answers


class DeferredApprover:
    """Approver that gives the stored answers, and suspends the run for calls that have none."""

    def __init__(self, answered: StoredAnswers) -> None:
        self._answered = answered

    async def approve(self, question: ApprovalQuestion) -> Answers:
        keys = {call.hash: _shown_calls(call) for call in question.calls}
        missing = tuple(each for call in question.calls if (each := self._missing(call)) is not None)
        if missing:
            raise Suspend(ApprovalQuestion(missing, question.before))
        known, granted = self._answered.calls, self._answered.granted
        # One entry may stand for the same call at several steps: a no at any of them denies the entry.
        approved = [call for call in question.calls if all(known[key] for key in keys[call.hash])]
        offers = [call.offer for call in approved if granted.intersection(keys[call.hash])]
        return Answers.yes(approved, for_run=[offer for offer in offers if offer is not None])

    def _missing(self, call: PendingCall) -> PendingCall | None:
        """The call, reduced to the steps that have no answer; None if all have one."""
        steps = [step for step, shown in _shown_calls(call) if (step, shown) not in self._answered.calls]
        if not steps:
            return None
        before = self._answered.files.get((steps[0], call.tool), call.files)
        return replace(call.at_steps(steps), changed=call.changed or describe_changes(before, call.files))


class RequestSuspended(Suspend):
    """A request leaves something open: the run waits for the reply before it has a plan."""

    def __init__(self, question: str, type: Type) -> None:
        super().__init__()
        self.asked: dict[str, Any] = {"question": question, "type": type_to_json(type), "key": question, "step": ""}


class DeferredAsker:
    """Asker that gives the stored replies, and suspends the run for the others."""

    def __init__(self, answered: StoredAnswers) -> None:
        self._answered = answered

    async def ask(self, question: str, type: Type) -> Any:
        # A step of a plan has a call key. A question about the request has none, and is identified by its text.
        key = call_key() or question
        if key in self._answered.replies:
            return value_from_json(self._answered.replies[key])
        if key in self._answered.unanswered:
            raise RunError("run.needs-answer", f"nobody replied in time to: {question}")
        raise RequestSuspended(question, type)


def _shown_calls(call: PendingCall) -> list[_ShownCall]:
    """The keys of an approval: it holds for this call at this step, with the reason and the labels that were shown."""
    shown = shown_hash(call.to_json())
    return [(step, shown) for step in call.steps]


def _call_steps(call: Mapping[str, Any]) -> Sequence[str]:
    """The steps of a call; a question stored by an earlier version has only the first."""
    return call.get("steps", (call["step"],))


def validate_reply(value: Any, asked: Approval) -> Any:
    """A reply as it is stored, as JSON; `durable.wrong-answer` if it does not have the type of the question."""
    try:
        wanted = type_from_json(asked.type)
        reply = _parse_reply(value, wanted)
        reason = mismatch(reply, wanted, "the reply")
        reply_json = value_to_json(reply)
    except (TypeError, ValueError, BicameralError) as error:
        raise DurableError("durable.wrong-answer", f"the reply is no value a plan can use: {error}") from None
    if reason:
        raise DurableError("durable.wrong-answer", reason, expected=str(wanted))
    if len(json.dumps(reply_json)) > MAX_REPLY:
        raise DurableError("durable.wrong-answer", f"the reply is longer than {MAX_REPLY:,} characters")
    return reply_json


def _parse_reply(value: Any, wanted: Type) -> Any:
    """A Python value as it is; a value from JSON, such as a date in its JSON form, as the value it stands for."""
    plain = to_plain(value)
    if mismatch(plain, wanted, "the reply") is None:
        return plain
    try:
        return value_from_json(value)
    except (TypeError, ValueError, KeyError, BicameralError):
        return plain
