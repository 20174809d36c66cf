"""Runs come in and are looked up; each user sees his own and nobody else's."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bicameral.errors import DurableError, nearest

from ._database import Database
from ._dispatch import Dispatch, workflow_id
from ._rows import run_view, submission_json
from ._views import RunView, State, Submission

MAX_LISTED = 1_000


def submitted(database: Database, dispatch: Dispatch, db: sa.Connection, run: str, what: Submission) -> str:
    """Keep a run and queue its first attempt; the id of the run that has the same key already, if there is one.

    A run that is not due yet is queued by whichever worker first sees that it is.
    """
    runs, now = database.t.runs, database.now
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


def found(database: Database, db: sa.Connection, run: str, user: str | None) -> sa.RowMapping:
    """A run by its id, by a beginning that only one has, or `last`; what others have is not there."""
    runs = database.t.runs
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
    raise DurableError("durable.unknown-run", f"there is no run {run!r}", nearest=nearest(run, list(known)))


def viewed(database: Database, db: sa.Connection, row: sa.RowMapping) -> RunView:
    if row["state"] != "waiting":
        return run_view(row)
    approvals = database.t.approvals
    waits = sa.select(approvals.c.id).where(approvals.c.run == row["run"], approvals.c.state == "open")
    return run_view(row, tuple(db.execute(waits.order_by(approvals.c.asked)).scalars()))


def listed(
    database: Database,
    db: sa.Connection,
    user: str | None,
    state: State | None,
    limit: int,
    before: str | datetime | None,
) -> list[RunView]:
    """The newest first; `before` is a run, or a time, before which to go on."""
    runs = database.t.runs
    query = sa.select(runs).order_by(runs.c.created.desc(), runs.c.run.desc())
    query = query.limit(max(1, min(limit, MAX_LISTED)))
    if user is not None:
        query = query.where(runs.c.user == user)
    if state is not None:
        query = query.where(runs.c.state == state)
    if isinstance(before, datetime):
        query = query.where(runs.c.created < before.timestamp())
    elif before is not None:
        start = found(database, db, before, user)
        same = sa.and_(runs.c.created == start["created"], runs.c.run < start["run"])
        query = query.where(sa.or_(runs.c.created < start["created"], same))
    return [viewed(database, db, row) for row in db.execute(query).mappings().all()]
