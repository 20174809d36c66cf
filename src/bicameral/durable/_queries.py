"""Queries on runs and questions: submit, find, list, ask, answer, expire, cancel, delete.

With a `user`, a query sees only that user's rows. A question is answered once; when it expires, the answer is no. An
answer and the next attempt of its run are one transaction, so no answer is left without an attempt that acts on it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa

from bicameral.durable._leases import Lease, requeue_runs
from bicameral.durable._queue import Transaction, workflow_id
from bicameral.durable._views import (
    ENDED_STATES,
    FIRST_PRIORITY,
    LAST_PRIORITY,
    Approval,
    ApprovalState,
    OpenQuestions,
    RunState,
    RunView,
    Submission,
    is_ended,
    runs_of_rounds,
    to_datetime,
)
from bicameral.errors import DurableError, JournalError, nearest_name
from bicameral.runs import Journal, StartState

if TYPE_CHECKING:
    from bicameral.agent import Planned

MAX_REQUEST = 100_000
MAX_PLAN = 2_000_000
MAX_NAME = 200
MAX_OUTCOME_CHARS = 32_000
"""Characters of an outcome that are stored in the row of the run; a longer answer is read from the journal."""
MAX_REPLY = 100_000
MAX_LISTED = 1_000
MAX_EXPIRED = 100


def validate_submission(submission: Submission) -> None:
    """Refuse a submission that cannot be run, before it is stored."""
    if [submission.request, submission.plan, submission.planned, submission.work].count(None) != 3:
        raise _bad_submission("a run is submitted with a request, a plan or a pattern, and with one of them")
    if submission.strategy is not None and submission.request is None:
        raise _bad_submission("a strategy works on a request", fix="Give a request, or the pattern as `work`.")
    if submission.pattern_work is not None and submission.deterministic:
        raise _bad_submission("a pattern does not plan, so it has no deterministic planning")
    if submission.request is not None and not submission.request.strip():
        raise _bad_submission("the request is empty")
    if submission.request is not None and len(submission.request) > MAX_REQUEST:
        raise _bad_submission(f"the request is longer than {MAX_REQUEST:,} characters")
    if not FIRST_PRIORITY <= submission.priority <= LAST_PRIORITY:
        raise _bad_submission(
            f"the priority {submission.priority} is none",
            expected=f"{FIRST_PRIORITY} (first) to {LAST_PRIORITY} (last)",
        )
    for name, text in (("user", submission.user), ("key", submission.key)):
        if text is not None and not (0 < len(text) <= MAX_NAME and text.isprintable()):
            raise _bad_submission(f"the {name} is no name", expected=f"1 to {MAX_NAME} printable characters")
    if submission.not_before is not None and submission.not_before.tzinfo is None:
        raise _bad_submission("not_before has no time zone", fix="Give one, such as datetime.now(UTC).")
    within = submission.answer_within
    if within is not None and not 0 < within < 10 * 365 * 86_400:
        raise _bad_submission(f"answer_within is {within}", expected="seconds, more than 0")


def _bad_submission(message: str, *, expected: str | None = None, fix: str | None = None) -> DurableError:
    return DurableError("durable.bad-submission", message, expected=expected, fix=fix)


def submission_json(submission: Submission) -> str:
    """A submission as it is stored for the attempts."""
    caps = None if submission.caps is None else submission.caps.to_json()
    plan = None if submission.plan is None else submission.plan.to_json()
    facts: dict[str, Any] = {
        "request": submission.request,
        "plan": plan,
        "deterministic": submission.deterministic,
    }
    if (work := submission.pattern_work) is not None:
        facts["work"] = work.to_portable_json()
    if submission.planned is not None:
        facts["planned"] = planned_facts(submission.planned)
    text = json.dumps({**facts, "answer_within": submission.answer_within, "caps": caps}, separators=(",", ":"))
    if len(text) > MAX_PLAN:
        raise _bad_submission(f"the plan or the pattern is longer than {MAX_PLAN:,} characters")
    return text


def planned_facts(planned: Planned) -> dict[str, Any]:
    """A plan that a model wrote, with all that its run needs to know of it, as JSON."""
    return {
        "plan": planned.plan.to_json(),
        "intent": planned.intent.to_json(),
        "spent": planned.spent.to_json(),
        "calls": [dict(call) for call in planned.calls],
        "doubts": [doubt.to_json() for doubt in planned.doubts],
        "start": None if planned.start == StartState() else planned.start.to_json(),
        "choice": dict(planned.choice),
    }


def run_view(row: sa.RowMapping, waits_for: tuple[str, ...] = ()) -> RunView:
    """The view of a run from its row."""
    outcome = cast("dict[str, Any]", json.loads(row["outcome"])) if row["outcome"] else {}
    return RunView(
        **{name: row[name] for name in ("run", "user", "request", "state", "worker", "priority", "why", "key")},
        doubts=tuple(outcome.get("doubts", ())),
        citations=tuple(outcome.get("citations", ())),
        answer=outcome.get("answer"),
        error=outcome.get("error"),
        seconds=outcome.get("seconds"),
        created=to_datetime(row["created"]),
        updated=to_datetime(row["updated"]),
        attempts=row["attempt"],
        not_before=None if row["not_before"] is None else to_datetime(row["not_before"]),
        effects=tuple(outcome.get("effects", ())),
        waits_for=waits_for,
        usage=outcome.get("usage", {}),
        pattern=_pattern_of(row["submission"]),
    )


def _pattern_of(submission: str) -> str | None:
    """The id of a submitted pattern. A text without the key as JSON writes it, such as a long plan, is not parsed."""
    return None if '"work":{' not in submission else json.loads(submission)["work"]["pattern"]


def has_long_answer(row: sa.RowMapping) -> bool:
    """Whether the answer is only in the journal, because it is too long for the row."""
    return bool(row["outcome"]) and bool(json.loads(row["outcome"]).get("long"))


def outcome_json_text(outcome: dict[str, Any]) -> str:
    """An outcome as it is stored: without its answer if that is too long, and as a last resort without anything."""
    rest = {key: value for key, value in outcome.items() if key != "answer"}
    for kept in (outcome, {**rest, "long": True}):
        if len(text := json.dumps(kept, separators=(",", ":"))) <= MAX_OUTCOME_CHARS:
            return text
    return json.dumps({"effects": [], "long": True}, separators=(",", ":"))


def parse_answer(answer: object) -> tuple[list[str], list[str]]:
    """The hashes of the approved calls, and of those whose offer for the rest of the run was accepted."""
    if isinstance(answer, dict):
        fields = cast("dict[str, Any]", answer)
        return [str(each) for each in fields["approved"]], [str(each) for each in fields["for_run"]]
    return [str(each) for each in cast("list[Any]", answer or [])], []


def answer_to_json(approved: list[str], for_run: list[str]) -> object:
    """An answer as it is stored; without grants in the form that earlier versions read."""
    return {"approved": approved, "for_run": for_run} if for_run else approved


def approval_view(row: sa.RowMapping) -> Approval:
    """The view of a question from its row; one whose time is over is expired, even if no sweep has marked it yet."""
    question = cast("dict[str, Any]", json.loads(row["question"]))
    answer: Any = json.loads(row["answer"]) if row["answer"] else None
    calls = row["kind"] == "calls"
    approved, for_run = parse_answer(answer) if calls else ([], [])
    state = "expired" if row["state"] == "open" and row["over"] else row["state"]
    return Approval(
        **{name: row[name] for name in ("id", "run", "user", "kind", "by")},
        request=question.get("request", "") if row["request"] is None else row["request"],
        **{name: question.get(name, "") for name in ("question", "step")},
        calls=tuple(question.get("calls", ())),
        asked=to_datetime(row["asked"]),
        expires=to_datetime(row["expires"]),
        state=state,
        type=question.get("type"),
        answered=None if row["answered"] is None else to_datetime(row["answered"]),
        approved=tuple(approved),
        for_run=tuple(for_run),
        reply=None if calls else answer,
        before=bool(question.get("before", False)),
    )


def insert_run(tx: Transaction, run: str, submission: Submission) -> str:
    """Store a run and enqueue its first attempt; returns its id, or that of the run that has the same key already.

    A run that is not due yet is enqueued by the sweep of whichever worker first sees that it is.
    """
    runs = tx.runs
    due = None if submission.not_before is None else submission.not_before.timestamp()
    later = due is not None and due > tx.db.execute(sa.select(tx.now)).scalar_one()
    row = {
        "run": run,
        "user": submission.user,
        "request": submission.title[:MAX_REQUEST],
        "submission": submission_json(submission),
        "state": "queued",
        "attempt": 1,
        "dispatch": None if later else workflow_id(run, 1),
        "priority": submission.priority,
        "not_before": due,
        "cancel": 0,
        "deaths": 0,
        "reached": 0,
        "created": tx.now,
        "updated": tx.now,
        "key": submission.key,
    }
    added = tx.db.execute(tx.insert(runs).values(**row).on_conflict_do_nothing().returning(runs.c.run)).scalar()
    if added is None:
        # The same run, if its first commit was in doubt; else the one that has this key.
        same = runs.c.run == run if submission.key is None else sa.or_(runs.c.run == run, runs.c.key == submission.key)
        own = sa.and_(runs.c.user == submission.user, same)
        return str(tx.db.execute(sa.select(runs.c.run).where(own).order_by(runs.c.created)).scalar_one())
    if not later:
        tx.dispatcher.enqueue(tx.db, run, 1, submission.user, submission.priority)
    return run


def find_run(tx: Transaction, run: str, user: str | None) -> sa.RowMapping:
    """A run by its id, by a beginning that only one has, or `last`. Runs of other users do not exist here."""
    runs = tx.runs
    query = sa.select(runs).where(sa.true() if user is None else runs.c.user == user)
    if not run:
        raise DurableError("durable.unknown-run", "a run without an id is none")
    if run == "last":
        newest = query.order_by(runs.c.created.desc(), runs.c.run.desc()).limit(1)
        row = tx.db.execute(newest).mappings().first()
        if row is None:
            raise DurableError("durable.no-runs", "no run was submitted yet")
        return row
    return _find_by_prefix(
        tx, query, runs.c.run, runs.c.created, run, "run", ("durable.unknown-run", "durable.ambiguous-run")
    )


def _find_by_prefix(
    tx: Transaction,
    query: sa.Select[Any],
    id_column: sa.Column[Any],
    time_column: sa.Column[Any],
    given: str,
    noun: str,
    codes: tuple[str, str],
) -> sa.RowMapping:
    """The row with this id, or the only one whose id begins so; `codes` are those for none and for several."""
    rows = tx.db.execute(query.where(id_column == given)).mappings().all()
    if not rows and given:
        # A range and not LIKE: it uses the index, and `%` in what was given has no meaning.
        begun = sa.and_(id_column >= given, id_column < given + "\U0010ffff")
        rows = tx.db.execute(query.where(begun).order_by(id_column).limit(3)).mappings().all()
    if len(rows) == 1:
        return rows[0]
    unknown, ambiguous = codes
    if rows:
        names = ", ".join(row[id_column] for row in rows)
        raise DurableError(ambiguous, f"{given!r} begins several {noun}s: {names}", fix="Give more of the id.")
    # From the same query: what is suggested is never another user's.
    known = query.with_only_columns(id_column).order_by(time_column.desc()).limit(200)
    nearest = nearest_name(given, list(tx.db.execute(known).scalars()))
    raise DurableError(unknown, f"there is no {noun} {given!r}", nearest=nearest)


def load_run_view(tx: Transaction, row: sa.RowMapping) -> RunView:
    """The view of a run, with the ids of its open questions if it waits."""
    if row["state"] != "waiting":
        return run_view(row)
    approvals = tx.approvals
    waits = sa.select(approvals.c.id).where(approvals.c.run == row["run"], approvals.c.state == "open")
    return run_view(row, tuple(tx.db.execute(waits.order_by(approvals.c.asked)).scalars()))


def list_runs(
    tx: Transaction,
    user: str | None,
    state: RunState | None,
    limit: int,
    before: str | datetime | None,
    search: str = "",
) -> list[RunView]:
    """The newest runs first; `before` is the run or the time after which a page begins, `search` words of a request."""
    runs = tx.runs
    query = sa.select(runs).order_by(runs.c.created.desc(), runs.c.run.desc())
    query = query.limit(max(1, min(limit, MAX_LISTED)))
    if user is not None:
        query = query.where(runs.c.user == user)
    if state is not None:
        query = query.where(runs.c.state == state)
    for word in search.split():
        query = query.where(tx.database.has_word(runs.c.request, word))
    if isinstance(before, datetime):
        query = query.where(runs.c.created < before.timestamp())
    elif before is not None:
        start = find_run(tx, before, user)
        same = sa.and_(runs.c.created == start["created"], runs.c.run < start["run"])
        query = query.where(sa.or_(runs.c.created < start["created"], same))
    return [load_run_view(tx, row) for row in tx.db.execute(query).mappings().all()]


def put_question(
    tx: Transaction, lease: Lease, kind: str, question: dict[str, Any], number: int, within: float
) -> RunState | None:
    """Store a question and let its run wait, without a worker; None if the lease is lost.

    A run that was cancelled meanwhile does not wait: it is stopped, and "stopped" is returned.
    """
    runs, now = tx.runs, tx.now
    # In the same statement as the lease: a cancellation is either seen here, or finds the run waiting.
    state = sa.case((runs.c.cancel == 1, "stopped"), else_="waiting")
    why = sa.case((runs.c.cancel == 1, "it was cancelled"), else_=None)
    waits = runs.update().where(lease.held_condition(tx))
    waits = waits.values(state=state, worker=None, lease_until=None, updated=now, deaths=0, why=why)
    changed = tx.db.execute(waits.returning(runs.c.user, runs.c.state)).first()
    if changed is None or changed.state != "waiting":
        return None if changed is None else changed.state
    row = {
        "id": lease.question_id,
        "run": lease.run,
        "user": changed.user,
        "kind": kind,
        "question": json.dumps(question, separators=(",", ":")),
        "hashes": json.dumps([call["hash"] for call in question.get("calls", ())]),
        "number": number,
        "asked": now,
        "expires": now + within,
        "state": "open",
        "by": "",
    }
    tx.db.execute(tx.insert(tx.approvals).values(**row).on_conflict_do_nothing())
    return "waiting"


def answer_question(tx: Transaction, id: str, state: ApprovalState, answer: Any, by: str) -> ApprovalState | None:
    """Store an answer and requeue the run; None if that was done, else the state the question has already.

    Whether it has expired is decided here, by the database's clock and in the same transaction. So it does not matter
    whether a sweep has marked it, and of several answers and sweeps at once only one finds it open.
    """
    approvals, now = tx.approvals, tx.now
    open_ = sa.and_(approvals.c.id == id, approvals.c.state == "open", approvals.c.expires > now)
    answered = approvals.update().where(open_).values(state=state, answer=json.dumps(answer), by=by, answered=now)
    run = tx.db.execute(answered.returning(approvals.c.run)).scalar()
    if run is not None:
        requeue_runs(tx, tx.runs.c.run == run, "waiting")
        return None
    _expire_matching(tx, approvals.c.id == id)
    return cast("ApprovalState", tx.db.execute(sa.select(approvals.c.state).where(approvals.c.id == id)).scalar())


def expire_questions(tx: Transaction) -> int:
    """Answer expired questions with no and requeue their runs; returns how many."""
    approvals = tx.approvals
    over = sa.and_(approvals.c.state == "open", approvals.c.expires <= tx.now)
    some = sa.select(approvals.c.id).where(over).limit(MAX_EXPIRED).with_for_update(skip_locked=True)
    return _expire_matching(tx, approvals.c.id.in_(some))


def _expire_matching(tx: Transaction, which: sa.ColumnElement[bool]) -> int:
    approvals, now = tx.approvals, tx.now
    over = sa.and_(which, approvals.c.state == "open", approvals.c.expires <= now)
    expired = approvals.update().where(over).values(state="expired", answer="null", answered=now, by="nobody")
    runs = list(tx.db.execute(expired.returning(approvals.c.run)).scalars())
    if runs:
        requeue_runs(tx, tx.runs.c.run.in_(runs), "waiting")
    return len(runs)


def find_question(tx: Transaction, id: str, user: str | None) -> Approval:
    """A question by its id or a unique beginning of it. Questions of other users do not exist here."""
    approvals = tx.approvals
    query = _question_query(tx).where(sa.true() if user is None else approvals.c.user == user)
    codes = ("durable.unknown-approval", "durable.ambiguous-approval")
    return approval_view(_find_by_prefix(tx, query, approvals.c.id, approvals.c.asked, id, "question", codes))


def list_questions(
    tx: Transaction, user: str | None, open_only: bool, limit: int, after: str | None = None
) -> list[Approval]:
    """Open questions, the oldest first; or all of them, the newest first. `after` is the last one of the page before.

    That one may have been answered meanwhile: its place in the order stays.
    """
    approvals = tx.approvals
    query = _question_query(tx).limit(limit)
    if user is not None:
        query = query.where(approvals.c.user == user)
    order = (approvals.c.asked, approvals.c.id) if open_only else (approvals.c.asked.desc(), approvals.c.id.desc())
    if open_only:
        query = query.where(_waiting_condition(tx, user))
    if after is not None:
        asked = _time_of_question(tx, after, user)
        same = approvals.c.asked == asked
        later = sa.or_(approvals.c.asked > asked, sa.and_(same, approvals.c.id > after))
        earlier = sa.or_(approvals.c.asked < asked, sa.and_(same, approvals.c.id < after))
        query = query.where(later if open_only else earlier)
    return [approval_view(row) for row in tx.db.execute(query.order_by(*order)).mappings().all()]


def _waiting_condition(tx: Transaction, user: str | None) -> sa.ColumnElement[bool]:
    """Questions that can still be answered; of one user if one is given."""
    approvals = tx.approvals
    own = sa.true() if user is None else approvals.c.user == user
    return sa.and_(own, approvals.c.state == "open", approvals.c.expires > tx.now)


def _time_of_question(tx: Transaction, id: str, user: str | None) -> float:
    approvals = tx.approvals
    own = sa.true() if user is None else approvals.c.user == user
    asked = tx.db.execute(sa.select(approvals.c.asked).where(approvals.c.id == id, own)).scalar()
    if asked is None:
        raise DurableError("durable.unknown-approval", "there is no such question")
    return float(asked)


def count_open_questions(tx: Transaction, user: str | None) -> OpenQuestions:
    """How many questions wait, and since when the newest. Their contents, which may be long, are not read."""
    approvals = tx.approvals
    query = sa.select(approvals.c.user, sa.func.count(), sa.func.max(approvals.c.asked))
    query = query.where(_waiting_condition(tx, user)).group_by(approvals.c.user).order_by(approvals.c.user)
    rows = tx.db.execute(query).all()
    counts = {str(name): int(count) for name, count, _ in rows}
    return OpenQuestions(counts, max((float(newest) for _, _, newest in rows), default=0.0))


def find_open_questions(
    tx: Transaction, ids: Collection[str], user: str | None, since: float
) -> tuple[frozenset[str], int]:
    """Which of these questions are still open, and how many others that were asked later. No content is read."""
    approvals, waiting = tx.approvals, _waiting_condition(tx, user)
    among = approvals.c.id.in_(ids)
    still = tx.db.execute(sa.select(approvals.c.id).where(waiting, among)).scalars()
    new = sa.select(sa.func.count()).where(waiting, sa.not_(among), approvals.c.asked > since)
    return frozenset(map(str, still)), int(tx.db.execute(new).scalar_one())


def _question_query(tx: Transaction) -> sa.Select[Any]:
    """Questions, with the requests of their runs and whether their time is over."""
    over = (tx.approvals.c.expires <= tx.now).label("over")
    # Outer: a run that was not submitted has no row, and asks all the same (`_questions`).
    same = tx.runs.c.run == tx.approvals.c.run
    return sa.select(tx.approvals, tx.runs.c.request, over).outerjoin(tx.runs, same)


def answered_questions(tx: Transaction, run: str) -> Sequence[sa.RowMapping]:
    """The questions of a run that are no longer open, in the order in which they were asked."""
    approvals = tx.approvals
    query = sa.select(approvals).where(approvals.c.run == run, approvals.c.state != "open")
    return tx.db.execute(query.order_by(approvals.c.asked, approvals.c.id)).mappings().all()


def cancel_run(tx: Transaction, run: str, user: str | None) -> tuple[str, bool]:
    """Stop a run that no worker has, or mark one that a worker has; the id, and True if it was stopped here.

    The worker of a marked run learns it from its next heartbeat.
    """
    runs, approvals, now = tx.runs, tx.approvals, tx.now
    id = str(find_run(tx, run, user)["run"])
    idle = sa.and_(runs.c.run == id, runs.c.state.in_(("queued", "waiting")))
    stop = runs.update().where(idle).values(state="stopped", cancel=1, updated=now, why="it was cancelled")
    if tx.db.execute(stop).rowcount:
        open_ = sa.and_(approvals.c.run == id, approvals.c.state == "open")
        tx.db.execute(approvals.update().where(open_).values(state="withdrawn", answered=now))
        return id, True
    mark = runs.update().where(runs.c.run == id, runs.c.state == "running").values(cancel=1, updated=now)
    tx.db.execute(mark)
    return id, False


def make_due_now(tx: Transaction, run: str, user: str | None) -> str:
    """Make a run due that waits for its time or for its next attempt; returns its id."""
    runs = tx.runs
    id = str(find_run(tx, run, user)["run"])
    waits = sa.and_(runs.c.run == id, runs.c.state == "queued", runs.c.dispatch.is_(None))
    tx.db.execute(runs.update().where(waits).values(not_before=None, updated=tx.now))
    return id


def delete_run(tx: Transaction, run: str, user: str | None) -> None:
    """Delete the row of a run that has ended, with its questions."""
    runs, approvals = tx.runs, tx.approvals
    row = find_run(tx, run, user)
    if row["state"] not in ENDED_STATES:
        raise DurableError("durable.not-ended", f"the run {row['run']} is {row['state']}", fix="Cancel it first.")
    tx.db.execute(approvals.delete().where(approvals.c.run == row["run"]))
    tx.db.execute(runs.delete().where(runs.c.run == row["run"], runs.c.state.in_(tuple(ENDED_STATES))))


def record_cancellation(journal: Journal, run: str) -> None:
    """Append the end to the journal of a cancelled run that had begun; one that had not has no journal."""
    with suppress(JournalError):
        events = journal.events_after(run, -1)
        for part in (*runs_of_rounds(run, events), run):
            recorded = events if part == run else journal.events_after(part, -1)
            if recorded and not is_ended(recorded):
                journal.append(part, "run-stopped", "", {"in_flight": [], "why": "it was cancelled"})
