"""Views of durable runs: submissions, run states, questions, workers, and how a run ended.

This module needs no package of the `durable` extra. The end of a run can also be read from the journal: an attempt does
that if an earlier worker died after the run had ended and before it wrote the end into the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from bicameral.errors import BicameralError, DurableError, require_extra
from bicameral.journal import EventKind
from bicameral.labels import vouched_value
from bicameral.runs import Ending, Event, Failed, Finished, Stopped, ending_of_code, label_tree_json, recorded_error
from bicameral.types import value_to_json

if TYPE_CHECKING:
    from bicameral.agent import Planned
    from bicameral.limits import Limits
    from bicameral.patterns.kernel import PatternWork, TextPattern
    from bicameral.plans import Plan

REQUIRED_PACKAGES = ("sqlalchemy", "dbos", "psycopg")

RunState = Literal["queued", "running", "waiting", "finished", "failed", "stopped"]
RUN_STATES: tuple[RunState, ...] = get_args(RunState)
ENDED_STATES: frozenset[RunState] = frozenset({"finished", "failed", "stopped"})

QuestionKind = Literal["calls", "ask"]
ApprovalState = Literal["open", "approved", "denied", "partly", "expired", "replied", "withdrawn"]

FIRST_PRIORITY, LAST_PRIORITY = 1, 9
"""A run of priority 1 is claimed before one of priority 9."""


def require_durable_packages() -> None:
    """Raise `durable.not-installed` if a package of the extra is missing."""
    code = "durable.not-installed"
    require_extra("durable", *REQUIRED_PACKAGES, error=DurableError, code=code, needs="durable runs need")


@dataclass(frozen=True, slots=True)
class _View:
    def to_json(self) -> dict[str, Any]:
        """The fields as JSON; times in ISO form."""
        return {each.name: _field_json(getattr(self, each.name)) for each in fields(self)}


def _field_json(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case tuple():
            return [_field_json(item) for item in cast("tuple[Any, ...]", value)]
        case Mapping():
            return dict(cast("Mapping[str, Any]", value))
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Submission:
    """A run to be done: a request in words, a plan or a pattern, and how to run it.

    Args:
        request: The user's request. Exactly one of `request`, `plan`, `planned` and `work` is given.
        plan: A plan that is run as it is.
        planned: A plan that a model wrote, with the request that it is for: it is checked against that when it runs.
        strategy: With a request: the pattern that works on it, instead of a plan.
        work: A pattern with its arguments, whose labels go with them. Like a strategy it must be made of what this
            package has: a worker is another program (`pattern.not-portable`).
        user: The owner: only this user sees the run and answers its questions.
        priority: From 1, which is claimed first, to 9.
        not_before: The run stays queued until then; needs a time zone.
        caps: Limits of this run. They can only lower those of the worker's configuration.
        deterministic: Plan with deterministic settings.
        answer_within: Seconds a question of the run waits for an answer, by default as configured. After that the
            answer is no.
        key: Idempotency key. The same key of the same user is always the same run, so a client that does not know
            whether its submission arrived submits it again.

    Example:
        >>> Submission(request="How many lines of notes.txt mention invoices?", user="ann")
        >>> Submission(request="Which of the three is cheapest?", strategy=ReWOO())
    """

    request: str | None = None
    plan: Plan | None = None
    planned: Planned | None = None
    strategy: TextPattern | None = None
    work: PatternWork | None = None
    user: str = "local"
    priority: int = 5
    not_before: datetime | None = None
    caps: Limits | None = None
    deterministic: bool = False
    answer_within: float | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        # A request counts as the user's own text. Untrusted text that an outcome handed out is refused here: the queue
        # carries no labels, so the worker could not tell any more.
        vouched_value(self.request)

    @property
    def pattern_work(self) -> PatternWork | None:
        """The pattern with its arguments, if it is one."""
        if self.strategy is None or self.request is None:
            return self.work
        from bicameral.patterns.kernel import PatternWork

        return PatternWork(self.strategy, (vouched_value(self.request),))

    @property
    def title(self) -> str:
        """The request, the goal of the plan, or what the pattern works on."""
        if self.request is not None:
            return self.request
        if self.planned is not None:
            return self.planned.intent.request
        return self.plan.goal if self.plan is not None else "" if self.work is None else self.work.title


@dataclass(frozen=True, slots=True)
class RunView(_View):
    """The state of a run. `waits_for` are the ids of its open questions; `why` is why it stopped or was requeued."""

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
    doubts: tuple[Mapping[str, Any], ...] = ()
    """What the answer and the effects rest on and may be wrong, as JSON; to be shown before them."""
    citations: tuple[Mapping[str, Any], ...] = ()
    """Where what they rest on was found, as JSON; to be shown after them."""
    answer: Any = None
    effects: tuple[Mapping[str, str], ...] = ()
    waits_for: tuple[str, ...] = ()
    error: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seconds: float | None = None
    key: str | None = None
    pattern: str | None = None
    """The id of the pattern, if it is the run of one."""

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED_STATES

    @property
    def ending(self) -> Ending | None:
        """How the run ended, or that it waits for a person; None while it goes on."""
        match self.state:
            case "finished":
                return "answered"
            case "waiting":
                return "asked"
            case "stopped":
                return "stopped"
            case "failed":
                ending = ending_of_code(str((self.error or {}).get("code", "")))
                return "failed" if ending == "refused" and self.effects else ending
            case _:
                return None

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON, and how the run ended."""
        return _View.to_json(self) | {"ending": self.ending}


@dataclass(frozen=True, slots=True)
class Approval(_View):
    """A question of a run that a person answers, in any process and at any time until it expires.

    A question of the kind `calls` is about exact calls, each with its hash, its arguments and the untrusted text in
    them; an approval holds for those calls and no others. One of the kind `ask` comes from the plan, or from a request
    that left something open: `question` is the text, and `type` the type of the reply as JSON.
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
    """The hashes of the calls whose `offer` was accepted: later calls of that kind in this run are not asked about."""
    reply: Any = None
    before: bool = False
    """The run has had no effect yet: if any of the calls is denied, it will have none."""

    @property
    def is_open(self) -> bool:
        return self.state == "open"


@dataclass(frozen=True, slots=True)
class OpenQuestions:
    """How many questions wait for an answer.

    Args:
        by_user: How many each user has.
        newest: When the newest of them was asked, in seconds since 1970; 0 if there is none.
    """

    by_user: Mapping[str, int]
    newest: float

    @property
    def total(self) -> int:
        return sum(self.by_user.values())


@dataclass(frozen=True, slots=True)
class WorkerView(_View):
    """A worker with a recent heartbeat. `runs` is how many it holds, `concurrency` how many it takes at most."""

    worker: str
    host: str
    pid: int
    started: datetime
    seen: datetime
    runs: int
    concurrency: int
    alive: bool


def to_datetime(seconds: float) -> datetime:
    """A time of the database as an aware `datetime`."""
    return datetime.fromtimestamp(seconds, UTC)


_END_STATES: dict[EventKind, RunState] = {"run-finished": "finished", "run-failed": "failed", "run-stopped": "stopped"}


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run as it is stored: its state, the reason if it did not finish, and the outcome as JSON."""

    state: RunState
    why: str | None
    outcome: dict[str, Any]


def runs_of_rounds(run: str, events: Sequence[Event]) -> list[str]:
    """The runs that a request in rounds consists of, by its own record: one a round, and the plan run instead of them.

    The last one may not have begun. Of a record that was erased the rounds are not known any more.
    """
    if not events or events[0].kind != "reason-started":
        return []
    planned = [event.body.get("run") for event in events if event.kind == "reason-planned"]
    return [*(str(each) for each in planned if each is not None), run_of_fallback(run)]


def run_of_fallback(run: str) -> str:
    """The id of the run of the plan that there was before the rounds."""
    return f"{run}-plan"


def is_ended(events: Sequence[Event]) -> bool:
    return any(event.kind in _END_STATES for event in events[-3:])


def recorded_end(events: Sequence[Event]) -> RunEnd | None:
    """The end of a run that its journal has; None if it has none."""
    for event in reversed(events[-3:]):
        if (state := _END_STATES.get(event.kind)) is None:
            continue
        body = event.body
        error = cast("dict[str, Any] | None", body.get("error"))
        why = None if state == "finished" else str(body.get("why") or "") or "it was stopped"
        if error is not None:
            why = str(recorded_error(error))
        names = ("doubts", "citations", "answer", "shade", "effects", "usage", "seconds")
        outcome = {name: body[name] for name in names if name in body}
        return RunEnd(state, why, outcome | ({"error": error} if error else {}))
    return None


def end_kind(end: RunEnd) -> EventKind:
    """The kind of event with which the journal records this end."""
    return next(kind for kind, state in _END_STATES.items() if state == end.state)


def end_facts(end: RunEnd) -> dict[str, Any]:
    """The body of the event with which the journal records this end, as `recorded_end` reads it."""
    stopped: dict[str, Any] = {"why": end.why, "in_flight": []} if end.state == "stopped" else {}
    return end.outcome | stopped


def run_end(outcome: Finished | Failed | Stopped) -> RunEnd:
    """The end of a run from its outcome, in the form that `recorded_end` gives."""
    facts: dict[str, Any] = {
        # As in the journal, which has none if there are none.
        **({"doubts": [doubt.to_json() for doubt in outcome.doubts]} if outcome.doubts else {}),
        **({"citations": [each.to_json() for each in outcome.citations]} if outcome.citations else {}),
        "effects": [done.to_json() for done in outcome.effects],
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
    """The end of a run that failed, possibly before its first step."""
    return RunEnd("failed", str(error), (facts or {"effects": []}) | {"error": error.to_json()})
