"""The tables of durable runs, beside those of DBOS in the same database. Times are seconds by the database's clock."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

VERSION = 1
"""Of these tables; a database that is newer than the program is not touched."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables, in a schema of their own where the database has schemas."""

    meta: sa.MetaData
    runs: sa.Table
    approvals: sa.Table
    workers: sa.Table
    holders: sa.Table
    starts: sa.Table
    facts: sa.Table
    workflows: sa.TableClause
    """What DBOS knows of each attempt. Only read."""


def tables(schema: str | None, dbos_schema: str | None) -> Tables:
    meta = sa.MetaData(schema=schema)
    return Tables(
        meta,
        _runs(meta),
        _approvals(meta),
        _workers(meta),
        _holders(meta),
        _starts(meta),
        sa.Table(
            "durable_facts",
            meta,
            sa.Column("name", sa.Text, primary_key=True),
            sa.Column("value", sa.Text, nullable=False),
        ),
        sa.table(
            "workflow_status",
            *map(sa.column, ("workflow_uuid", "status", "queue_name", "executor_id", "started_at_epoch_ms")),
            schema=dbos_schema,
        ),
    )


def _runs(meta: sa.MetaData) -> sa.Table:
    return sa.Table(
        "runs",
        meta,
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("submission", sa.Text, nullable=False),
        # The plan as it was made for the request, so that no attempt plans again.
        sa.Column("planned", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        # The DBOS workflow of this attempt; none while the run is not due.
        sa.Column("dispatch", sa.Text, unique=True),
        sa.Column("worker", sa.Text),
        sa.Column("lease_until", sa.Double),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("not_before", sa.Double),
        sa.Column("cancel", sa.Integer, nullable=False),
        # How often in a row a worker died with it, or could not go on, and how far it had come by then.
        sa.Column("deaths", sa.Integer, nullable=False),
        sa.Column("reached", sa.Integer, nullable=False),
        sa.Column("why", sa.Text),
        sa.Column("outcome", sa.Text),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
        sa.Column("key", sa.Text),
        sa.UniqueConstraint("user", "key", name="runs_key"),
        sa.Index("runs_by_user", "user", "created", "run"),
        sa.Index("runs_by_time", "created", "run"),
        sa.Index("runs_by_lease", "state", "lease_until"),
        sa.Index("runs_by_due", "state", "not_before"),
        sa.Index("runs_by_worker", "worker"),
    )


def _approvals(meta: sa.MetaData) -> sa.Table:
    return sa.Table(
        "approvals",
        meta,
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("hashes", sa.Text, nullable=False),
        # How many events the run's journal had when it asked: an answer that is recorded after that has been used.
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("asked", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("answered", sa.Double),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("by", sa.Text, nullable=False),
        sa.Index("approvals_by_run", "run"),
        sa.Index("approvals_by_expiry", "state", "expires"),
        sa.Index("approvals_by_user", "user", "state", "asked"),
    )


def _workers(meta: sa.MetaData) -> sa.Table:
    return sa.Table(
        "workers",
        meta,
        sa.Column("worker", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started", sa.Double, nullable=False),
        sa.Column("seen", sa.Double, nullable=False),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("concurrency", sa.Integer, nullable=False),
    )


def _holders(meta: sa.MetaData) -> sa.Table:
    """Who uses a tool or a model just now, until when at the latest."""
    return sa.Table(
        "limit_holders",
        meta,
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.Index("limit_holders_by_what", "what", "until"),
    )


def _starts(meta: sa.MetaData) -> sa.Table:
    """When a tool or a model was begun to be used."""
    return sa.Table(
        "limit_starts",
        meta,
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Index("limit_starts_by_what", "what", "at"),
    )
