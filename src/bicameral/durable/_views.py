"""What a durable run looks like from outside: what is submitted, how it stands, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from bicameral.labels import own_value

if TYPE_CHECKING:
    from bicameral.plans import Plan
    from bicameral.runs import Caps

State = Literal["queued", "running", "waiting", "finished", "failed", "stopped"]
STATES: tuple[State, ...] = get_args(State)
ENDED: frozenset[State] = frozenset({"finished", "failed", "stopped"})

Kind = Literal["calls", "ask"]
Standing = Literal["open", "approved", "denied", "partly", "expired", "replied", "withdrawn"]

FIRST, LAST = 1, 9
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
        own_value(self.request)


@dataclass(frozen=True, slots=True)
class RunView:
    """How a run stands. `waits_for` are the ids of the questions it waits for, `why` says why it did not go on."""

    run: str
    user: str
    request: str
    state: State
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
    def ended(self) -> bool:
        return self.state in ENDED

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
    kind: Kind
    calls: tuple[Mapping[str, Any], ...]
    question: str
    asked: datetime
    expires: datetime
    state: Standing
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
    def open(self) -> bool:
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


def moment(seconds: float) -> datetime:
    """A time of the database as people's programs have it."""
    return datetime.fromtimestamp(seconds, UTC)
