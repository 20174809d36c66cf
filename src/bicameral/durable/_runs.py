"""Client of durable runs: submit, list, watch, answer, cancel, from any process.

SQLAlchemy and DBOS are imported when a database is opened: this module must be importable without them, so that a
missing package is a clear error. Runs are recorded in their PostgreSQL, or in a SQLite file.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Self

from bicameral.config import Config
from bicameral.durable._views import (
    ENDED_STATES,
    RUN_STATES,
    Approval,
    ApprovalState,
    RunState,
    RunView,
    Submission,
    WorkerView,
    to_datetime,
)
from bicameral.errors import DurableError, JournalError
from bicameral.runs import Event, Journal, new_run_id

if TYPE_CHECKING:
    import sqlalchemy as sa

    from bicameral.durable._database import Database
    from bicameral.durable._queue import Dispatcher


REQUIRED_PACKAGES = ("sqlalchemy", "dbos", "psycopg")


def require_durable_packages() -> None:
    """Say at once, and clearly, if a package is missing."""
    missing = [name for name in REQUIRED_PACKAGES if find_spec(name) is None]
    if missing:
        raise DurableError(
            "durable.not-installed",
            f"durable runs need {', '.join(missing)}, which is not installed",
            fix='Install it with `pip install "bicameral[durable]"`.',
        )


def open_run_journal(database: Database, config: Config | None) -> Journal:
    """The journal that goes with a database.

    With PostgreSQL it lies in the same one, so that every worker reads what the others did. With SQLite it is the
    configured journal, which has all other runs too, or a file beside the database.
    """
    from bicameral.runs import open_journal_at

    if database.file is None:
        return open_journal_at(database.address)
    return open_journal_at(config.journal_file if config else database.file.with_name("journal.db"))


FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.05, 0.5


class Runs:
    """All durable runs of one database. With a `user`, every method sees and touches only what is that user's.

    Example:
        >>> async with await Runs.open() as runs:
        ...     view = await runs.submit(Submission(request="How many invoices are in mail.txt?"))
        ...     print((await runs.wait(view.run)).answer)
    """

    def __init__(self, database: Database, dispatch: Dispatcher, journal: Journal, config: Config) -> None:
        self.database = database
        self.dispatch = dispatch
        self.run_journal = journal
        self.config = config

    @classmethod
    async def open(
        cls,
        where: Config | str | None = None,
        *,
        config: Config | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Self:
        """The runs that a configuration names, or those of a database: an address of PostgreSQL, or a SQLite file.

        Everything is made that is not there. With an address, `config` is where the rest comes from. The time is that
        of the database, unless a test gives another `clock`, in seconds since 1970.
        """
        require_durable_packages()
        given = where if isinstance(where, Config) else config
        settings = given or (await asyncio.to_thread(Config.load) if where is None else Config.defaults())
        address = where if isinstance(where, str) else settings.durable_database
        return await asyncio.to_thread(cls._open_at, address, settings, not isinstance(where, str), clock)

    @classmethod
    def _open_at(cls, address: str, config: Config, configured: bool, clock: Callable[[], float] | None = None) -> Self:
        from bicameral.durable._database import Database
        from bicameral.durable._queue import Dispatcher

        database = Database(address, clock=clock)
        try:
            database.create_tables()
            journal = open_run_journal(database, config if configured else None)
        except BaseException:
            database.close()
            raise
        return cls(database, Dispatcher(database), journal, config)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Runs go on: they are the workers'."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with suppress(JournalError):
            self.run_journal.close()
        self.dispatch.close()
        self.database.close()

    async def submit(self, submission: Submission) -> RunView:
        """Keep a run; when this returns it survives, and some worker will do it."""
        from bicameral.durable._queries import find_run, insert_run, load_run_view, validate_submission

        validate_submission(submission)
        # Many may be submitted in a second: more letters than a run of one process needs.
        run = f"{new_run_id()}{secrets.token_hex(4)}"

        def submit(db: sa.Connection) -> RunView:
            kept = insert_run(self.database, self.dispatch, db, run, submission)
            return load_run_view(self.database, db, find_run(self.database, db, kept, submission.user))

        await self.database.run_in_thread(self.dispatch.client)
        return await self.database.run_transaction(submit)

    async def get(self, run: str, user: str | None = None) -> RunView:
        """How a run stands; by its id, a beginning of it, or `last`."""
        from bicameral.durable._queries import find_run, has_long_answer, load_run_view

        def get(db: sa.Connection) -> tuple[RunView, bool]:
            row = find_run(self.database, db, run, user)
            return load_run_view(self.database, db, row), has_long_answer(row)

        view, elsewhere = await self.database.run_transaction(get)
        return await self._with_answer(view) if elsewhere else view

    async def _with_answer(self, view: RunView) -> RunView:
        """The same with an answer that was too long to be kept beside the run."""
        from bicameral.durable._views import recorded_end

        ended = recorded_end(await asyncio.to_thread(self.run_journal.events, view.run))
        if ended is None:
            return view
        found = ended.outcome
        return replace(view, answer=found.get("answer"), effects=tuple(found.get("effects", ())))

    async def list(
        self,
        user: str | None = None,
        state: RunState | None = None,
        limit: int = 50,
        before: str | datetime | None = None,
    ) -> list[RunView]:
        """The newest runs first, at most a thousand; `before` is the last one seen. Long answers are left out."""
        from bicameral.durable._queries import list_runs

        if state is not None and state not in RUN_STATES:
            raise DurableError("durable.bad-state", f"{state!r} is no state of a run", expected=", ".join(RUN_STATES))
        return await self.database.run_transaction(lambda db: list_runs(self.database, db, user, state, limit, before))

    async def cancel(self, run: str, user: str | None = None) -> RunView:
        """Stop a run. An effect that has begun comes to its end; one that waits or is queued does not begin."""
        from bicameral.durable._queries import cancel_run, record_cancellation

        def cancel(db: sa.Connection) -> tuple[str, bool]:
            return cancel_run(self.database, db, run, user)

        stopped, here = await self.database.run_transaction(cancel)
        if here:
            await asyncio.to_thread(record_cancellation, self.run_journal, stopped)
        return await self.get(stopped, user)

    async def resume(self, run: str, user: str | None = None) -> RunView:
        """Let a run be tried now that was to be tried later: at its time, or when a worker has the right code."""
        from bicameral.durable._queries import make_due_now

        return await self.get(
            await self.database.run_transaction(lambda db: make_due_now(self.database, db, run, user)), user
        )

    async def wait(
        self,
        run: str,
        user: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (it gives how things stand, and raises nothing)
    ) -> RunView:
        """Until a run has ended; or, after `timeout` seconds, how it stands then."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_POLL_SECONDS
        while True:
            view = await self.get(run, user)
            if view.has_ended or (end is not None and time.monotonic() >= end):
                return view
            await asyncio.sleep(pause if end is None else max(0.0, min(pause, end - time.monotonic())))
            pause = min(MAX_POLL_SECONDS, pause * 1.5)

    async def watch(self, run: str, user: str | None = None, after: int = -1) -> AsyncIterator[Event]:
        """Everything that happens in a run, from the event after `after` on, until it has ended."""
        view = await self.get(run, user)
        pause = FIRST_POLL_SECONDS
        while True:
            # First how it stands, then what happened: an end is never told before what led to it.
            events = await asyncio.to_thread(self.run_journal.events_after, view.run, after)
            for event in events:
                after = event.number
                yield event
            if view.has_ended and not events:
                return
            pause = FIRST_POLL_SECONDS if events else min(MAX_POLL_SECONDS, pause * 1.5)
            if not view.has_ended:
                await asyncio.sleep(pause)
                view = await self.get(view.run, user)

    async def journal(self, run: str, user: str | None = None) -> list[Event]:
        """Everything that was recorded of a run; nothing yet, if no worker has begun it."""
        view = await self.get(run, user)
        return await asyncio.to_thread(self.run_journal.events_after, view.run, -1)

    async def approvals(self, user: str | None = None, open_only: bool = True, limit: int = 100) -> list[Approval]:
        """What waits for an answer, the oldest first."""
        from bicameral.durable._queries import list_questions

        return await self.database.run_transaction(
            lambda db: list_questions(self.database, db, user, open_only, max(1, limit))
        )

    async def approval(self, id: str, user: str | None = None) -> Approval:
        """One question, whole: the exact calls, with everything that strangers had a hand in."""
        from bicameral.durable._queries import find_question

        return await self.database.run_transaction(lambda db: find_question(self.database, db, id, user))

    async def answer(
        self,
        id: str,
        approve: Iterable[str] | Literal["all", "none"],
        user: str | None = None,
        by: str = "",
        for_run: Iterable[str] = (),
    ) -> Approval:
        """Say yes to calls by their hashes, or to all or none; every call that is not named was refused.

        A yes is one to exactly these calls, once each. `for_run` are the hashes of approved calls whose `offer` is
        taken besides: until the end of the run, later calls of that kind are not asked about. The run goes on with
        that in whichever worker is free. A question is answered once, and only before it expires.
        """
        from bicameral.durable._queries import answer_to_json

        asked = await self.approval(id, user)
        if asked.kind != "calls":
            raise DurableError("durable.wrong-answer", f"{asked.id} asks for a reply", fix="Reply to it.")
        hashes = [str(call["hash"]) for call in asked.calls]
        yes = _approved_hashes(asked.id, hashes, approve)
        taken = _accepted_offers(asked, yes, for_run)
        state: ApprovalState = "approved" if len(yes) == len(hashes) else "partly" if yes else "denied"
        return await self._answer(asked, state, answer_to_json(yes, taken), by)

    async def reply(self, id: str, value: Any, user: str | None = None, by: str = "") -> Approval:
        """Give the reply that a plan, or a request that left something open, asks for; it must fit the type."""
        from bicameral.durable._attempt import validate_reply

        asked = await self.approval(id, user)
        if asked.kind != "ask":
            raise DurableError("durable.wrong-answer", f"{asked.id} asks for approval", fix="Approve or deny it.")
        return await self._answer(asked, "replied", validate_reply(value, asked), by)

    async def _answer(self, asked: Approval, state: ApprovalState, answer: Any, by: str) -> Approval:
        from bicameral.durable._queries import answer_question, answer_to_json

        def answer_it(db: sa.Connection) -> ApprovalState | None:
            return answer_question(self.database, self.dispatch, db, asked.id, state, answer, by[:200])

        await self.database.run_in_thread(self.dispatch.client)
        standing = await self.database.run_transaction(answer_it)
        found = await self.approval(asked.id, asked.user)
        if standing is None:
            return found
        if standing == "expired":
            raise DurableError("durable.expired", f"the time to answer {asked.id} is over, and so the answer is no")
        # After a lost connection the answer may be there from the first time.
        kept = found.reply if asked.kind == "ask" else answer_to_json(list(found.approved), list(found.for_run))
        if standing == state and kept == answer and found.by == by[:200]:
            return found
        raise DurableError("durable.answered", f"{asked.id} was answered already: {standing}")

    async def workers(self) -> list[WorkerView]:
        """Every worker that was heard of lately."""
        from bicameral.durable._leases import list_workers

        rows, now = await self.database.run_transaction(lambda db: list_workers(self.database, db))
        lease = self.config.durable.lease
        return [
            WorkerView(
                row["worker"],
                row["host"],
                row["pid"],
                to_datetime(row["started"]),
                to_datetime(row["seen"]),
                row["runs"],
                row["concurrency"],
                now - row["seen"] < lease,
            )
            for row in rows
        ]

    async def counts(self, user: str | None = None) -> dict[RunState, int]:
        """How many runs are in each state."""
        from bicameral.durable._leases import count_runs_by_state

        found = await self.database.run_transaction(lambda db: count_runs_by_state(self.database, db, user))
        return {state: found.get(state, 0) for state in RUN_STATES}

    async def forget(self, run: str, user: str | None = None) -> None:
        """Take a run that has ended, and what it asked, out of the tables; its journal is not touched."""
        from bicameral.durable._queries import delete_run

        await self.database.run_transaction(lambda db: delete_run(self.database, db, run, user))


def _accepted_offers(asked: Approval, yes: list[str], for_run: Iterable[str]) -> list[str]:
    """The approved calls whose offer is taken; each must be approved, and offer something."""
    taken = list(dict.fromkeys([for_run] if isinstance(for_run, str) else for_run))
    offered = {str(call["hash"]) for call in asked.calls if "offer" in call}
    for hash_ in taken:
        if hash_ not in yes or hash_ not in offered:
            raise DurableError(
                "durable.wrong-answer",
                f"with the call {hash_[:80]!r} {asked.id} offers nothing for the rest of the run, or it was refused",
                fix="Name approved calls that have an `offer`.",
            )
    return taken


def _approved_hashes(id: str, hashes: list[str], approve: Iterable[str] | Literal["all", "none"]) -> list[str]:
    """The calls that were approved; what was named must be one of those that were asked about."""
    if approve == "all":
        return hashes
    if approve == "none":
        return []
    if isinstance(approve, str):
        approve = [approve]
    yes = list(dict.fromkeys(approve))
    for hash_ in yes:
        if hash_ not in hashes:
            raise DurableError(
                "durable.wrong-answer",
                f"{id} does not ask about a call {hash_[:80]!r}",
                fix="Name the hashes of its calls, or all or none of them.",
            )
    return [hash_ for hash_ in hashes if hash_ in yes]


__all__ = ["ENDED_STATES", "Runs"]
