"""Durable runs as seen from outside: submissions, run states, questions, workers, and how a run ended.

An end is read from the journal too: that is what an attempt finds whose worker died before it could report it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from bicameral.errors import BicameralError, Place, RunError
from bicameral.labels import vouched_value
from bicameral.runs import Event, Failed, Finished, Stopped, label_tree_json
from bicameral.types import value_to_json

if TYPE_CHECKING:
    from bicameral.plans import Plan
    from bicameral.runs import Caps


RunState = Literal["queued", "running", "waiting", "finished", "failed", "stopped"]
RUN_STATES: tuple[RunState, ...] = get_args(RunState)
ENDED_STATES: frozenset[RunState] = frozenset({"finished", "failed", "stopped"})

QuestionKind = Literal["calls", "ask"]
ApprovalState = Literal["open", "approved", "denied", "partly", "expired", "replied", "withdrawn"]

FIRST_PRIORITY, LAST_PRIORITY = 1, 9
"""The priorities: a run of priority 1 is taken before one of priority 9."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What is to be done: a request in words, or a plan, and how.

    `priority` goes from 1, which is taken first, to 9. A run with `not_before` waits until then. A question that it
    asks waits `answer_within` seconds for an answer, by default as configured; then the answer is no. The same `key` of
    the same user always means the same run: whoever is not sure whether he submitted something submits it again.

    Example:
        >>> Submission(request="How many lines of notes.txt mention invoices?", user="ann")
    """

    request: str | None = None
    plan: Plan | None = None
    user: str = "local"
    priority: int = 5
    not_before: datetime | None = None
    caps: Caps | None = None
    deterministic: bool = False
    answer_within: float | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        # A request is the user's own words: what an outcome handed out does not become that on its way over a queue.
        vouched_value(self.request)


@dataclass(frozen=True, slots=True)
class RunView:
    """How a run stands. `waits_for` are the ids of the questions it waits for, `why` says why it did not go on."""

    run: str
    user: str
    request: str
    state: RunState
    created: datetime
    updated: datetime
    attempts: int
    worker: str | None = None
    priority: int = 5
    not_before: datetime | None = None
    why: str | None = None
    answer: Any = None
    effects: tuple[Mapping[str, str], ...] = ()
    waits_for: tuple[str, ...] = ()
    error: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seconds: float | None = None
    key: str | None = None

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED_STATES

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "user": self.user,
            "request": self.request,
            "state": self.state,
            "created": self.created.isoformat(),
            "updated": self.updated.isoformat(),
            "attempts": self.attempts,
            "worker": self.worker,
            "priority": self.priority,
            "not_before": self.not_before.isoformat() if self.not_before else None,
            "why": self.why,
            "answer": self.answer,
            "effects": [dict(effect) for effect in self.effects],
            "waits_for": list(self.waits_for),
            "error": dict(self.error) if self.error else None,
            "usage": dict(self.usage),
            "seconds": self.seconds,
            "key": self.key,
        }


@dataclass(frozen=True, slots=True)
class Approval:
    """A question of a run that a person answers, in any process and at any time until it expires.

    Of the kind `calls` it is about exact calls, each with its hash, its arguments and what strangers had a hand in; a
    yes holds for those and no others. Of the kind `ask` it is the plan that asks, or what a request left open:
    `question` is the text, and `type` the type of the reply as JSON.
    """

    id: str
    run: str
    user: str
    kind: QuestionKind
    calls: tuple[Mapping[str, Any], ...]
    question: str
    asked: datetime
    expires: datetime
    state: ApprovalState
    by: str = ""
    type: Any = None
    step: str = ""
    request: str = ""
    answered: datetime | None = None
    approved: tuple[str, ...] = ()
    """The hashes of the calls that were approved."""
    for_run: tuple[str, ...] = ()
    """The hashes of those whose `offer` was taken: later calls of that kind in this run are not asked about."""
    reply: Any = None
    before: bool = False
    """Nothing of the run has been done yet: a no to any of the calls means that nothing will be."""

    @property
    def is_open(self) -> bool:
        return self.state == "open"

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "run": self.run,
            "user": self.user,
            "kind": self.kind,
            "calls": [dict(call) for call in self.calls],
            "question": self.question,
            "type": self.type,
            "step": self.step,
            "request": self.request,
            "asked": self.asked.isoformat(),
            "expires": self.expires.isoformat(),
            "state": self.state,
            "by": self.by,
            "answered": self.answered.isoformat() if self.answered else None,
            "approved": list(self.approved),
            "for_run": list(self.for_run),
            "reply": self.reply,
            "before": self.before,
        }


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker that was heard of lately: where it is, how many runs it has, and how many it takes."""

    worker: str
    host: str
    pid: int
    started: datetime
    seen: datetime
    runs: int
    concurrency: int
    alive: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "worker": self.worker,
            "host": self.host,
            "pid": self.pid,
            "started": self.started.isoformat(),
            "seen": self.seen.isoformat(),
            "runs": self.runs,
            "concurrency": self.concurrency,
            "alive": self.alive,
        }


def to_datetime(seconds: float) -> datetime:
    """A time of the database as people's programs have it."""
    return datetime.fromtimestamp(seconds, UTC)


_END_STATES: dict[str, RunState] = {"run-finished": "finished", "run-failed": "failed", "run-stopped": "stopped"}


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run as it is kept: a state, a reason if it did not finish, and the facts."""

    state: RunState
    why: str | None
    outcome: dict[str, Any]


def is_ended(events: Sequence[Event]) -> bool:
    return any(event.kind in _END_STATES for event in events[-3:])


def recorded_end(events: Sequence[Event]) -> RunEnd | None:
    """The end that is in the record, if there is one."""
    for event in reversed(events[-3:]):
        if (state := _END_STATES.get(event.kind)) is None:
            continue
        body = event.body
        error = cast("dict[str, Any] | None", body.get("error"))
        why = None if state == "finished" else str(body.get("why") or "") or "it was stopped"
        if error is not None:
            why = _error_text(error)
        kept = {name: body[name] for name in ("answer", "shade", "effects", "usage", "seconds") if name in body}
        return RunEnd(state, why, kept | ({"error": error} if error else {}))
    return None


def run_end(outcome: Finished | Failed | Stopped) -> RunEnd:
    """The end of a run that came to it just now, in the same words."""
    effects = [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in outcome.effects]
    facts: dict[str, Any] = {
        "effects": effects,
        "usage": outcome.usage.to_json(),
        "seconds": round(outcome.seconds, 6),
    }
    match outcome:
        case Finished(answer=answer, shade=shade):
            labels = {} if shade is None else {"shade": label_tree_json(shade)}
            return RunEnd("finished", None, {"answer": value_to_json(answer)} | labels | facts)
        case Failed(error=error):
            return failed_end(error, facts)
        case Stopped():
            return RunEnd("stopped", "it was stopped", facts)


def failed_end(error: BicameralError, facts: dict[str, Any] | None = None) -> RunEnd:
    """A run that failed with an error, perhaps before anything of it was done."""
    told = error.to_json()
    return RunEnd("failed", _error_text(told), (facts or {"effects": []}) | {"error": told})


def _error_text(error: dict[str, Any]) -> str:
    place = cast("dict[str, Any]", error.get("place") or {})
    known = {name: error.get(name) for name in ("expected", "nearest", "fix")}
    where = Place(**place) if place else None
    return str(RunError(str(error.get("code", "")), str(error.get("message", "")), place=where, **known))
