"""The way of an attempt to a worker: an entry in a DBOS queue, made in the transaction that makes the attempt.

What goes through DBOS is the id of a run and the number of an attempt, as JSON: no value of a run, and nothing that a
worker would have to unpickle.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import sqlalchemy as sa

from ._database import DBOS_SCHEMA, Database

if TYPE_CHECKING:
    from dbos import DBOSClient, Serializer

QUEUE = "bicameral"
WORKFLOW = "bicameral.attempt"
APPLICATION = "bicameral"


class Dispatch:
    """Puts attempts into the queue. DBOS is loaded when the first one is."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._client: DBOSClient | None = None
        self._lock = threading.Lock()

    def ready(self) -> DBOSClient:
        """The client, with DBOS's own tables made; called outside of transactions, since that may take a while."""
        with self._lock:
            if self._client is None:
                self._client = self._connected()
            return self._client

    def enqueue(self, db: sa.Connection, run: str, attempt: int, user: str, priority: int) -> None:
        """Queue an attempt as a part of this transaction; one that is there already stays as it is."""
        from dbos import EnqueueOptions, WorkflowSerializationFormat

        options: EnqueueOptions = {
            "workflow_name": WORKFLOW,
            "queue_name": QUEUE,
            "workflow_id": workflow_id(run, attempt),
            # A run that was begun goes before those of its priority that were not.
            "priority": 2 * priority - (attempt > 1),
            "queue_partition_key": user,
            "application_name": APPLICATION,
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
        }
        self.ready().enqueue_in_transaction(db, options, run, attempt)

    def forget(self, workflows: list[str]) -> None:
        """Take attempts that nobody makes any more out of DBOS's account of what is under way."""
        if workflows:
            self.ready().cancel_workflows(workflows)

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.destroy()
                self._client = None

    def _connected(self) -> DBOSClient:
        quiet()
        from dbos import DBOSClient

        self._database.make()
        self._database.patiently(self._migrate)
        return DBOSClient(
            system_database_engine=self._database.engine,
            dbos_system_schema=DBOS_SCHEMA,
            serializer=portable(),
            application_name=APPLICATION,
            lazy=True,
        )

    def _migrate(self) -> None:
        from dbos import DBOS

        with self._database.alone():
            if not self._migrated():
                DBOS.migrate(self._database.url, schema=DBOS_SCHEMA)

    def _migrated(self) -> bool:
        return sa.inspect(self._database.engine).has_table(
            "workflow_input", schema=None if self._database.sqlite else DBOS_SCHEMA
        )


def workflow_id(run: str, attempt: int) -> str:
    return f"{run}.{attempt}"


def portable() -> Serializer:
    """Values as JSON: what lies in the database can be read, and runs nothing when it is."""
    from dbos import DBOSPortableJSONSerializer

    return DBOSPortableJSONSerializer()


def quiet() -> None:
    """DBOS tells its log what it does; of that only what went wrong is of use here."""
    import logging

    log = logging.getLogger("dbos")
    log.setLevel(logging.CRITICAL)
    # It keeps the standard error of its first start, which may be another one by now.
    for handler in list(log.handlers):
        if isinstance(handler, logging.StreamHandler) and getattr(handler.stream, "closed", False):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            log.removeHandler(handler)  # pyright: ignore[reportUnknownArgumentType]
