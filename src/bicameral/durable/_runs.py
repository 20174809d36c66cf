"""Runs from outside: submit them, look at them, answer what they ask, watch and stop them, from any process."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from bicameral.config import Config
from bicameral.errors import DurableError, JournalError
from bicameral.runs import Event, Journal, new_run_id

from ._extra import installed
from ._views import ENDED, STATES, Approval, RunView, Standing, State, Submission, WorkerView, moment

if TYPE_CHECKING:
    import sqlalchemy as sa

    from ._database import Database
    from ._dispatch import Dispatch

SOON, SELDOM = 0.05, 0.5


class Runs:
    """All durable runs of one database. With a `user`, every method sees and touches only what is that user's.

    Example:
        >>> async with await Runs.open() as runs:
        ...     view = await runs.submit(Submission(request="How many invoices are in mail.txt?"))
        ...     print((await runs.wait(view.run)).answer)
    """

    def __init__(self, database: Database, dispatch: Dispatch, journal: Journal, config: Config) -> None:
        self.database = database
        self.dispatch = dispatch
        self.record = journal
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
        installed()
        given = where if isinstance(where, Config) else config
        settings = given or (await asyncio.to_thread(Config.load) if where is None else Config.defaults())
        address = where if isinstance(where, str) else settings.durable_database
        return await asyncio.to_thread(cls._opened, address, settings, not isinstance(where, str), clock)

    @classmethod
    def _opened(cls, address: str, config: Config, configured: bool, clock: Callable[[], float] | None = None) -> Self:
        from ._database import Database
        from ._dispatch import Dispatch
        from ._journals import journal_for

        database = Database(address, clock=clock)
        try:
            database.make()
            journal = journal_for(database, config if configured else None)
        except BaseException:
            database.close()
            raise
        return cls(database, Dispatch(database), journal, config)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Runs go on: they are the workers'."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with suppress(JournalError):
            self.record.close()
        self.dispatch.close()
        self.database.close()

    async def submit(self, submission: Submission) -> RunView:
        """Keep a run; when this returns it survives, and some worker will do it."""
        from ._rows import checked
        from ._submitting import found, submitted, viewed

        checked(submission)
        # Many may be submitted in a second: more letters than a run of one process needs.
        run = f"{new_run_id()}{secrets.token_hex(4)}"

        def submit(db: sa.Connection) -> RunView:
            kept = submitted(self.database, self.dispatch, db, run, submission)
            return viewed(self.database, db, found(self.database, db, kept, submission.user))

        await self.database.run(self.dispatch.ready)
        return await self.database.do(submit)

    async def get(self, run: str, user: str | None = None) -> RunView:
        """How a run stands; by its id, a beginning of it, or `last`."""
        from ._rows import answer_elsewhere
        from ._submitting import found, viewed

        def get(db: sa.Connection) -> tuple[RunView, bool]:
            row = found(self.database, db, run, user)
            return viewed(self.database, db, row), answer_elsewhere(row)

        view, elsewhere = await self.database.do(get)
        return await self._with_answer(view) if elsewhere else view

    async def _with_answer(self, view: RunView) -> RunView:
        """The same with an answer that was too long to be kept beside the run."""
        from ._ended import outcome_of

        ended = outcome_of(await asyncio.to_thread(self.record.events, view.run))
        if ended is None:
            return view
        found = ended.outcome
        return replace(view, answer=found.get("answer"), effects=tuple(found.get("effects", ())))

    async def list(
        self,
        user: str | None = None,
        state: State | None = None,
        limit: int = 50,
        before: str | datetime | None = None,
    ) -> list[RunView]:
        """The newest runs first, at most a thousand; `before` is the last one seen. Long answers are left out."""
        from ._submitting import listed

        if state is not None and state not in STATES:
            raise DurableError("durable.bad-state", f"{state!r} is no state of a run", expected=", ".join(STATES))
        return await self.database.do(lambda db: listed(self.database, db, user, state, limit, before))

    async def cancel(self, run: str, user: str | None = None) -> RunView:
        """Stop a run. An effect that has begun comes to its end; one that waits or is queued does not begin."""
        from ._cancelling import cancelled, closed

        def cancel(db: sa.Connection) -> tuple[str, bool]:
            return cancelled(self.database, db, run, user)

        stopped, here = await self.database.do(cancel)
        if here:
            await asyncio.to_thread(closed, self.record, stopped)
        return await self.get(stopped, user)

    async def resume(self, run: str, user: str | None = None) -> RunView:
        """Let a run be tried now that was to be tried later: at its time, or when a worker has the right code."""
        from ._cancelling import hurried

        return await self.get(await self.database.do(lambda db: hurried(self.database, db, run, user)), user)

    async def wait(
        self,
        run: str,
        user: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (it gives how things stand, and raises nothing)
    ) -> RunView:
        """Until a run has ended; or, after `timeout` seconds, how it stands then."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = SOON
        while True:
            view = await self.get(run, user)
            if view.ended or (end is not None and time.monotonic() >= end):
                return view
            await asyncio.sleep(pause if end is None else max(0.0, min(pause, end - time.monotonic())))
            pause = min(SELDOM, pause * 1.5)

    async def watch(self, run: str, user: str | None = None, after: int = -1) -> AsyncIterator[Event]:
        """Everything that happens in a run, from the event after `after` on, until it has ended."""
        view = await self.get(run, user)
        pause = SOON
        while True:
            # First how it stands, then what happened: an end is never told before what led to it.
            events = await asyncio.to_thread(self.record.after, view.run, after)
            for event in events:
                after = event.number
                yield event
            if view.ended and not events:
                return
            pause = SOON if events else min(SELDOM, pause * 1.5)
            if not view.ended:
                await asyncio.sleep(pause)
                view = await self.get(view.run, user)

    async def journal(self, run: str, user: str | None = None) -> list[Event]:
        """Everything that was recorded of a run; nothing yet, if no worker has begun it."""
        view = await self.get(run, user)
        return await asyncio.to_thread(self.record.after, view.run, -1)

    async def approvals(self, user: str | None = None, open_only: bool = True, limit: int = 100) -> list[Approval]:
        """What waits for an answer, the oldest first."""
        from ._questions import questions

        return await self.database.do(lambda db: questions(self.database, db, user, open_only, max(1, limit)))

    async def approval(self, id: str, user: str | None = None) -> Approval:
        """One question, whole: the exact calls, with everything that strangers had a hand in."""
        from ._questions import question

        return await self.database.do(lambda db: question(self.database, db, id, user))

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
        from ._rows import written_answer

        asked = await self.approval(id, user)
        if asked.kind != "calls":
            raise DurableError("durable.wrong-answer", f"{asked.id} asks for a reply", fix="Reply to it.")
        hashes = [str(call["hash"]) for call in asked.calls]
        yes = _chosen(asked.id, hashes, approve)
        taken = _taken(asked, yes, for_run)
        state: Standing = "approved" if len(yes) == len(hashes) else "partly" if yes else "denied"
        return await self._answer(asked, state, written_answer(yes, taken), by)

    async def reply(self, id: str, value: Any, user: str | None = None, by: str = "") -> Approval:
        """Give the reply that a plan, or a request that left something open, asks for; it must fit the type."""
        from ._people import fitting

        asked = await self.approval(id, user)
        if asked.kind != "ask":
            raise DurableError("durable.wrong-answer", f"{asked.id} asks for approval", fix="Approve or deny it.")
        return await self._answer(asked, "replied", fitting(value, asked), by)

    async def _answer(self, asked: Approval, state: Standing, answer: Any, by: str) -> Approval:
        from ._questions import answered
        from ._rows import written_answer

        def answer_it(db: sa.Connection) -> Standing | None:
            return answered(self.database, self.dispatch, db, asked.id, state, answer, by[:200])

        await self.database.run(self.dispatch.ready)
        standing = await self.database.do(answer_it)
        found = await self.approval(asked.id, asked.user)
        if standing is None:
            return found
        if standing == "expired":
            raise DurableError("durable.expired", f"the time to answer {asked.id} is over, and so the answer is no")
        # After a lost connection the answer may be there from the first time.
        kept = found.reply if asked.kind == "ask" else written_answer(list(found.approved), list(found.for_run))
        if standing == state and kept == answer and found.by == by[:200]:
            return found
        raise DurableError("durable.answered", f"{asked.id} was answered already: {standing}")

    async def workers(self) -> list[WorkerView]:
        """Every worker that was heard of lately."""
        from ._beating import known_workers

        rows, now = await self.database.do(lambda db: known_workers(self.database, db))
        lease = self.config.durable.lease
        return [
            WorkerView(
                row["worker"],
                row["host"],
                row["pid"],
                moment(row["started"]),
                moment(row["seen"]),
                row["runs"],
                row["concurrency"],
                now - row["seen"] < lease,
            )
            for row in rows
        ]

    async def counts(self, user: str | None = None) -> dict[State, int]:
        """How many runs are in each state."""
        from ._beating import counted

        found = await self.database.do(lambda db: counted(self.database, db, user))
        return {state: found.get(state, 0) for state in STATES}

    async def forget(self, run: str, user: str | None = None) -> None:
        """Take a run that has ended, and what it asked, out of the tables; its journal is not touched."""
        from ._cancelling import forgotten

        await self.database.do(lambda db: forgotten(self.database, db, run, user))


def _taken(asked: Approval, yes: list[str], for_run: Iterable[str]) -> list[str]:
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


def _chosen(id: str, hashes: list[str], approve: Iterable[str] | Literal["all", "none"]) -> list[str]:
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


__all__ = ["ENDED", "Runs"]
