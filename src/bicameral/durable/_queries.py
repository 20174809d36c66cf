"""Queries on runs and questions: submit, find, list, ask, answer, expire, cancel, delete.

Each user sees only his own. A question is asked once, answered once, and answered with no when its time is over. An
answer and the next attempt of its run are one transaction: there is no answer that nobody acts on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bicameral.durable._database import Database
from bicameral.durable._leases import Lease, requeue_runs
from bicameral.durable._queue import Dispatcher, workflow_id
from bicameral.durable._views import (
    ENDED_STATES,
    FIRST_PRIORITY,
    LAST_PRIORITY,
    Approval,
    ApprovalState,
    QuestionKind,
    RunState,
    RunView,
    Submission,
    is_ended,
    to_datetime,
)
from bicameral.errors import DurableError, JournalError, nearest_name
from bicameral.runs import Journal

MAX_REQUEST = 100_000
MAX_PLAN = 2_000_000
MAX_NAME = 200
MAX_OUTCOME_CHARS = 32_000
"""Characters of an answer that are kept beside the run; a longer one is read from the journal."""
MAX_REPLY = 100_000


def validate_submission(submission: Submission) -> None:
    """Refuse what cannot be run, before it is kept."""
    if (submission.request is None) == (submission.plan is None):
        raise _bad_submission("a run is submitted with a request or with a plan, and not with both")
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
    """What was submitted, for the attempts to come."""
    from dataclasses import asdict

    caps = None if submission.caps is None else asdict(submission.caps)
    plan = None if submission.plan is None else submission.plan.to_json()
    text = json.dumps(
        {
            "request": submission.request,
            "plan": plan,
            "deterministic": submission.deterministic,
            "answer_within": submission.answer_within,
            "caps": caps,
        },
        separators=(",", ":"),
    )
    if len(text) > MAX_PLAN:
        raise _bad_submission(f"the plan is longer than {MAX_PLAN:,} characters")
    return text


def run_view(row: sa.RowMapping, waits_for: tuple[str, ...] = ()) -> RunView:
    """A run as it stands."""
    outcome = cast("dict[str, Any]", json.loads(row["outcome"])) if row["outcome"] else {}
    return RunView(
        row["run"],
        row["user"],
        row["request"],
        cast("RunState", row["state"]),
        to_datetime(row["created"]),
        to_datetime(row["updated"]),
        row["attempt"],
        row["worker"],
        row["priority"],
        None if row["not_before"] is None else to_datetime(row["not_before"]),
        row["why"],
        outcome.get("answer"),
        tuple(outcome.get("effects", ())),
        waits_for,
        outcome.get("error"),
        outcome.get("usage", {}),
        outcome.get("seconds"),
        row["key"],
    )


def has_long_answer(row: sa.RowMapping) -> bool:
    """Whether the answer was too long to be kept beside the run."""
    return bool(row["outcome"]) and bool(json.loads(row["outcome"]).get("long"))


def outcome_json_text(outcome: dict[str, Any]) -> str:
    """How a run ended, with an answer only if it is short."""
    text = json.dumps(outcome, separators=(",", ":"))
    if len(text) <= MAX_OUTCOME_CHARS:
        return text
    rest = {key: value for key, value in outcome.items() if key != "answer"}
    text = json.dumps({**rest, "long": True}, separators=(",", ":"))
    if len(text) <= MAX_OUTCOME_CHARS:
        return text
    return json.dumps({"effects": [], "long": True}, separators=(",", ":"))


def parse_answer(answer: object) -> tuple[list[str], list[str]]:
    """The hashes of the calls that were approved, and of those whose offer for the rest of the run was taken."""
    if isinstance(answer, dict):
        told = cast("dict[str, Any]", answer)
        return [str(each) for each in told["approved"]], [str(each) for each in told["for_run"]]
    return [str(each) for each in cast("list[Any]", answer or [])], []


def answer_to_json(approved: list[str], for_run: list[str]) -> object:
    """An answer as it is kept; without grants as earlier versions read it."""
    return {"approved": approved, "for_run": for_run} if for_run else approved


def approval_view(row: sa.RowMapping) -> Approval:
    """A question as it stands: one whose time is over has expired, also before anybody swept it away."""
    question = cast("dict[str, Any]", json.loads(row["question"]))
    answer: Any = json.loads(row["answer"]) if row["answer"] else None
    calls = row["kind"] == "calls"
    yes, for_run = parse_answer(answer) if calls else ([], [])
    state = "expired" if row["state"] == "open" and row["over"] else row["state"]
    return Approval(
        row["id"],
        row["run"],
        row["user"],
        cast("QuestionKind", row["kind"]),
        tuple(question.get("calls", ())),
        question.get("question", ""),
        to_datetime(row["asked"]),
        to_datetime(row["expires"]),
        cast("ApprovalState", state),
        row["by"],
        question.get("type"),
        question.get("step", ""),
        row["request"],
        None if row["answered"] is None else to_datetime(row["answered"]),
        tuple(yes),
        tuple(for_run),
        None if calls else answer,
        bool(question.get("before", False)),
    )


MAX_LISTED = 1_000


def insert_run(database: Database, dispatch: Dispatcher, db: sa.Connection, run: str, what: Submission) -> str:
    """Keep a run and queue its first attempt; the id of the run that has the same key already, if there is one.

    A run that is not due yet is queued by whichever worker first sees that it is.
    """
    runs, now = database.tables.runs, database.now
    due = None if what.not_before is None else what.not_before.timestamp()
    later = due is not None and due > db.execute(sa.select(now)).scalar_one()
    insert = sqlite.insert if database.sqlite else postgresql.insert
    row = {
        "run": run,
        "user": what.user,
        "request": what.request if what.request is not None else (what.plan.goal if what.plan else ""),
        "submission": submission_json(what),
        "state": "queued",
        "attempt": 1,
        "dispatch": None if later else workflow_id(run, 1),
        "priority": what.priority,
        "not_before": due,
        "cancel": 0,
        "deaths": 0,
        "reached": 0,
        "created": now,
        "updated": now,
        "key": what.key,
    }
    added = db.execute(insert(runs).values(**row).on_conflict_do_nothing().returning(runs.c.run)).scalar()
    if added is None:
        # The same run, if its first commit was in doubt; else the one that has this key.
        same = sa.or_(runs.c.run == run, runs.c.key == what.key) if what.key is not None else runs.c.run == run
        own = sa.and_(runs.c.user == what.user, same)
        return str(db.execute(sa.select(runs.c.run).where(own).order_by(runs.c.created)).scalar_one())
    if not later:
        dispatch.enqueue(db, run, 1, what.user, what.priority)
    return run


def find_run(database: Database, db: sa.Connection, run: str, user: str | None) -> sa.RowMapping:
    """A run by its id, by a beginning that only one has, or `last`; what others have is not there."""
    runs = database.tables.runs
    mine = sa.true() if user is None else runs.c.user == user
    query = sa.select(runs).where(mine)
    row = db.execute(query.where(runs.c.run == run)).mappings().first()
    if row is not None:
        return row
    if not run:
        raise DurableError("durable.unknown-run", "a run without an id is none")
    if run == "last":
        newest = query.order_by(runs.c.created.desc(), runs.c.run.desc()).limit(1)
        row = db.execute(newest).mappings().first()
        if row is None:
            raise DurableError("durable.no-runs", "no run was submitted yet")
        return row
    several = query.where(runs.c.run >= run, runs.c.run < run + "\U0010ffff").order_by(runs.c.run).limit(3)
    rows = db.execute(several).mappings().all()
    if len(rows) == 1:
        return rows[0]
    if rows:
        names = ", ".join(row["run"] for row in rows)
        raise DurableError("durable.ambiguous-run", f"{run!r} begins several runs: {names}", fix="Give more of the id.")
    known = db.execute(sa.select(runs.c.run).where(mine).order_by(runs.c.created.desc()).limit(200)).scalars()
    raise DurableError("durable.unknown-run", f"there is no run {run!r}", nearest=nearest_name(run, list(known)))


def load_run_view(database: Database, db: sa.Connection, row: sa.RowMapping) -> RunView:
    if row["state"] != "waiting":
        return run_view(row)
    approvals = database.tables.approvals
    waits = sa.select(approvals.c.id).where(approvals.c.run == row["run"], approvals.c.state == "open")
    return run_view(row, tuple(db.execute(waits.order_by(approvals.c.asked)).scalars()))


def list_runs(
    database: Database,
    db: sa.Connection,
    user: str | None,
    state: RunState | None,
    limit: int,
    before: str | datetime | None,
) -> list[RunView]:
    """The newest first; `before` is a run, or a time, before which to go on."""
    runs = database.tables.runs
    query = sa.select(runs).order_by(runs.c.created.desc(), runs.c.run.desc())
    query = query.limit(max(1, min(limit, MAX_LISTED)))
    if user is not None:
        query = query.where(runs.c.user == user)
    if state is not None:
        query = query.where(runs.c.state == state)
    if isinstance(before, datetime):
        query = query.where(runs.c.created < before.timestamp())
    elif before is not None:
        start = find_run(database, db, before, user)
        same = sa.and_(runs.c.created == start["created"], runs.c.run < start["run"])
        query = query.where(sa.or_(runs.c.created < start["created"], same))
    return [load_run_view(database, db, row) for row in db.execute(query).mappings().all()]


MAX_EXPIRED = 100


def put_question(
    database: Database, db: sa.Connection, lease: Lease, kind: str, question: dict[str, Any], number: int, within: float
) -> RunState | None:
    """Let a run wait for an answer: the question is there, the worker is free. None if the run is not its any more.

    A run that was cancelled meanwhile does not begin to wait; it is stopped.
    """
    runs, approvals, now = database.tables.runs, database.tables.approvals, database.now
    state = sa.case((runs.c.cancel == 1, "stopped"), else_="waiting")
    why = sa.case((runs.c.cancel == 1, "it was cancelled"), else_=None)
    waits = runs.update().where(lease.held_condition(database))
    waits = waits.values(state=state, worker=None, lease_until=None, updated=now, deaths=0, why=why)
    kept = db.execute(waits.returning(runs.c.user, runs.c.state)).first()
    if kept is None or kept.state != "waiting":
        return None if kept is None else kept.state
    insert = sqlite.insert if database.sqlite else postgresql.insert
    row = {
        "id": lease.question_id,
        "run": lease.run,
        "user": kept.user,
        "kind": kind,
        "question": json.dumps(question, separators=(",", ":")),
        "hashes": json.dumps([call["hash"] for call in question.get("calls", ())]),
        "number": number,
        "asked": now,
        "expires": now + within,
        "state": "open",
        "by": "",
    }
    db.execute(insert(approvals).values(**row).on_conflict_do_nothing())
    return "waiting"


def answer_question(
    database: Database,
    dispatch: Dispatcher,
    db: sa.Connection,
    id: str,
    state: ApprovalState,
    answer: Any,
    by: str,
) -> ApprovalState | None:
    """Write an answer down and let the run go on; None if that was done, or else how the question stands already.

    Whether its time is over is decided here, by the same clock and in the same transaction: it does not matter whether
    anybody has swept it away meanwhile, and of two who answer or sweep at once only one finds it open.
    """
    approvals, now = database.tables.approvals, database.now
    still = sa.and_(approvals.c.id == id, approvals.c.state == "open", approvals.c.expires > now)
    told = approvals.update().where(still).values(state=state, answer=json.dumps(answer), by=by, answered=now)
    run = db.execute(told.returning(approvals.c.run)).scalar()
    if run is not None:
        requeue_runs(database, dispatch, db, database.tables.runs.c.run == run, "waiting")
        return None
    _expire_matching(database, dispatch, db, approvals.c.id == id)
    return cast("ApprovalState", db.execute(sa.select(approvals.c.state).where(approvals.c.id == id)).scalar())


def expire_questions(database: Database, dispatch: Dispatcher, db: sa.Connection) -> int:
    """Questions whose time is over are answered with no, and their runs go on to say so."""
    approvals = database.tables.approvals
    over = sa.and_(approvals.c.state == "open", approvals.c.expires <= database.now)
    some = sa.select(approvals.c.id).where(over).limit(MAX_EXPIRED).with_for_update(skip_locked=True)
    return _expire_matching(database, dispatch, db, approvals.c.id.in_(some))


def _expire_matching(database: Database, dispatch: Dispatcher, db: sa.Connection, which: sa.ColumnElement[bool]) -> int:
    approvals, now = database.tables.approvals, database.now
    over = sa.and_(which, approvals.c.state == "open", approvals.c.expires <= now)
    told = approvals.update().where(over).values(state="expired", answer="null", answered=now, by="nobody")
    runs = list(db.execute(told.returning(approvals.c.run)).scalars())
    if runs:
        requeue_runs(database, dispatch, db, database.tables.runs.c.run.in_(runs), "waiting")
    return len(runs)


def withdraw_questions(database: Database, db: sa.Connection, run: str) -> None:
    """A run that is over asks nothing any more."""
    approvals = database.tables.approvals
    open_ = sa.and_(approvals.c.run == run, approvals.c.state == "open")
    db.execute(approvals.update().where(open_).values(state="withdrawn", answered=database.now))


def find_question(database: Database, db: sa.Connection, id: str, user: str | None) -> Approval:
    """A question by its id; what others are asked is not there."""
    approvals = database.tables.approvals
    mine = sa.true() if user is None else approvals.c.user == user
    query = _question_query(database).where(mine)
    rows = db.execute(query.where(approvals.c.id == id)).mappings().all()
    if not rows and id:
        begun = sa.and_(approvals.c.id >= id, approvals.c.id < id + "\U0010ffff")
        rows = db.execute(query.where(begun).order_by(approvals.c.id).limit(3)).mappings().all()
    if len(rows) == 1:
        return approval_view(rows[0])
    if rows:
        names = ", ".join(row["id"] for row in rows)
        raise DurableError(
            "durable.ambiguous-approval", f"{id!r} begins several questions: {names}", fix="Give more of the id."
        )
    known = db.execute(sa.select(approvals.c.id).where(mine).order_by(approvals.c.asked.desc()).limit(200)).scalars()
    raise DurableError(
        "durable.unknown-approval", f"there is no question {id!r}", nearest=nearest_name(id, list(known))
    )


def list_questions(
    database: Database, db: sa.Connection, user: str | None, open_only: bool, limit: int
) -> list[Approval]:
    """Open questions, the oldest first; or all of them, the newest first."""
    approvals = database.tables.approvals
    query = _question_query(database).limit(limit)
    if user is not None:
        query = query.where(approvals.c.user == user)
    if open_only:
        waiting = sa.and_(approvals.c.state == "open", approvals.c.expires > database.now)
        query = query.where(waiting).order_by(approvals.c.asked, approvals.c.id)
    else:
        query = query.order_by(approvals.c.asked.desc(), approvals.c.id.desc())
    return [approval_view(row) for row in db.execute(query).mappings().all()]


def _question_query(database: Database) -> sa.Select[Any]:
    """Questions, with the requests of their runs and whether their time is over, swept or not."""
    runs, approvals = database.tables.runs, database.tables.approvals
    over = (approvals.c.expires <= database.now).label("over")
    return sa.select(approvals, runs.c.request, over).join(runs, runs.c.run == approvals.c.run)


def answered_questions(database: Database, db: sa.Connection, run: str) -> Sequence[sa.RowMapping]:
    """Everything that a run has asked and that was answered, in the order in which it asked."""
    approvals = database.tables.approvals
    query = sa.select(approvals).where(approvals.c.run == run, approvals.c.state != "open")
    return db.execute(query.order_by(approvals.c.asked, approvals.c.id)).mappings().all()


def cancel_run(database: Database, db: sa.Connection, run: str, user: str | None) -> tuple[str, bool]:
    """Stop a run that nobody works on, and ask the worker of any other to; True if it was stopped here."""
    runs, now = database.tables.runs, database.now
    id = str(find_run(database, db, run, user)["run"])
    idle = sa.and_(runs.c.run == id, runs.c.state.in_(("queued", "waiting")))
    stop = runs.update().where(idle).values(state="stopped", cancel=1, updated=now, why="it was cancelled")
    if db.execute(stop).rowcount:
        withdraw_questions(database, db, id)
        return id, True
    asked = runs.update().where(runs.c.run == id, runs.c.state == "running").values(cancel=1, updated=now)
    db.execute(asked)
    return id, False


def make_due_now(database: Database, db: sa.Connection, run: str, user: str | None) -> str:
    """A run that waits for its time, or to be tried again, is due now."""
    runs = database.tables.runs
    id = str(find_run(database, db, run, user)["run"])
    waits = sa.and_(runs.c.run == id, runs.c.state == "queued", runs.c.dispatch.is_(None))
    db.execute(runs.update().where(waits).values(not_before=None, updated=database.now))
    return id


def record_cancellation(journal: Journal, run: str) -> None:
    """The record of a run that had begun gets its end. One that had not has no record."""
    with suppress(JournalError):
        events = journal.events_after(run, -1)
        if events and not is_ended(events):
            journal.append(run, "run-stopped", "", {"in_flight": [], "why": "it was cancelled"})


def delete_run(database: Database, db: sa.Connection, run: str, user: str | None) -> None:
    """Delete the row of a run that has ended, with its questions."""
    runs, approvals = database.tables.runs, database.tables.approvals
    row = find_run(database, db, run, user)
    if row["state"] not in ENDED_STATES:
        raise DurableError("durable.not-ended", f"the run {row['run']} is {row['state']}", fix="Cancel it first.")
    db.execute(approvals.delete().where(approvals.c.run == row["run"]))
    db.execute(runs.delete().where(runs.c.run == row["run"], runs.c.state.in_(tuple(ENDED_STATES))))
