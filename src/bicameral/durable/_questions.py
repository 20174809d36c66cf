"""Questions that wait for a person: asked once, answered once, and answered with no when their time is over.

An answer and the next attempt of its run are one transaction: there is no answer that nobody acts on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bicameral.errors import DurableError, nearest

from ._database import Database
from ._dispatch import Dispatch
from ._leases import Lease, queue_again
from ._rows import approval_view
from ._views import Approval, Standing, State

MAX_EXPIRED = 100


def put(
    database: Database, db: sa.Connection, lease: Lease, kind: str, question: dict[str, Any], number: int, within: float
) -> State | None:
    """Let a run wait for an answer: the question is there, the worker is free. None if the run is not its any more.

    A run that was cancelled meanwhile does not begin to wait; it is stopped.
    """
    runs, approvals, now = database.t.runs, database.t.approvals, database.now
    state = sa.case((runs.c.cancel == 1, "stopped"), else_="waiting")
    why = sa.case((runs.c.cancel == 1, "it was cancelled"), else_=None)
    waits = runs.update().where(lease.held(database))
    waits = waits.values(state=state, worker=None, lease_until=None, updated=now, deaths=0, why=why)
    kept = db.execute(waits.returning(runs.c.user, runs.c.state)).first()
    if kept is None or kept.state != "waiting":
        return None if kept is None else kept.state
    insert = sqlite.insert if database.sqlite else postgresql.insert
    row = {
        "id": lease.question,
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


def answered(
    database: Database,
    dispatch: Dispatch,
    db: sa.Connection,
    id: str,
    state: Standing,
    answer: Any,
    by: str,
) -> Standing | None:
    """Write an answer down and let the run go on; None if that was done, or else how the question stands already.

    Whether its time is over is decided here, by the same clock and in the same transaction: it does not matter whether
    anybody has swept it away meanwhile, and of two who answer or sweep at once only one finds it open.
    """
    approvals, now = database.t.approvals, database.now
    still = sa.and_(approvals.c.id == id, approvals.c.state == "open", approvals.c.expires > now)
    told = approvals.update().where(still).values(state=state, answer=json.dumps(answer), by=by, answered=now)
    run = db.execute(told.returning(approvals.c.run)).scalar()
    if run is not None:
        queue_again(database, dispatch, db, database.t.runs.c.run == run, "waiting")
        return None
    _expire(database, dispatch, db, approvals.c.id == id)
    return cast("Standing", db.execute(sa.select(approvals.c.state).where(approvals.c.id == id)).scalar())


def expire(database: Database, dispatch: Dispatch, db: sa.Connection) -> int:
    """Questions whose time is over are answered with no, and their runs go on to say so."""
    approvals = database.t.approvals
    over = sa.and_(approvals.c.state == "open", approvals.c.expires <= database.now)
    some = sa.select(approvals.c.id).where(over).limit(MAX_EXPIRED).with_for_update(skip_locked=True)
    return _expire(database, dispatch, db, approvals.c.id.in_(some))


def _expire(database: Database, dispatch: Dispatch, db: sa.Connection, which: sa.ColumnElement[bool]) -> int:
    approvals, now = database.t.approvals, database.now
    over = sa.and_(which, approvals.c.state == "open", approvals.c.expires <= now)
    told = approvals.update().where(over).values(state="expired", answer="null", answered=now, by="nobody")
    runs = list(db.execute(told.returning(approvals.c.run)).scalars())
    if runs:
        queue_again(database, dispatch, db, database.t.runs.c.run.in_(runs), "waiting")
    return len(runs)


def withdraw(database: Database, db: sa.Connection, run: str) -> None:
    """A run that is over asks nothing any more."""
    approvals = database.t.approvals
    open_ = sa.and_(approvals.c.run == run, approvals.c.state == "open")
    db.execute(approvals.update().where(open_).values(state="withdrawn", answered=database.now))


def question(database: Database, db: sa.Connection, id: str, user: str | None) -> Approval:
    """A question by its id; what others are asked is not there."""
    approvals = database.t.approvals
    mine = sa.true() if user is None else approvals.c.user == user
    query = _with_request(database).where(mine)
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
    raise DurableError("durable.unknown-approval", f"there is no question {id!r}", nearest=nearest(id, list(known)))


def questions(database: Database, db: sa.Connection, user: str | None, open_only: bool, limit: int) -> list[Approval]:
    """Open questions, the oldest first; or all of them, the newest first."""
    approvals = database.t.approvals
    query = _with_request(database).limit(limit)
    if user is not None:
        query = query.where(approvals.c.user == user)
    if open_only:
        waiting = sa.and_(approvals.c.state == "open", approvals.c.expires > database.now)
        query = query.where(waiting).order_by(approvals.c.asked, approvals.c.id)
    else:
        query = query.order_by(approvals.c.asked.desc(), approvals.c.id.desc())
    return [approval_view(row) for row in db.execute(query).mappings().all()]


def _with_request(database: Database) -> sa.Select[Any]:
    """Questions, with the requests of their runs and whether their time is over, swept or not."""
    runs, approvals = database.t.runs, database.t.approvals
    over = (approvals.c.expires <= database.now).label("over")
    return sa.select(approvals, runs.c.request, over).join(runs, runs.c.run == approvals.c.run)


def of_run(database: Database, db: sa.Connection, run: str) -> Sequence[sa.RowMapping]:
    """Everything that a run has asked and that was answered, in the order in which it asked."""
    approvals = database.t.approvals
    query = sa.select(approvals).where(approvals.c.run == run, approvals.c.state != "open")
    return db.execute(query.order_by(approvals.c.asked, approvals.c.id)).mappings().all()
