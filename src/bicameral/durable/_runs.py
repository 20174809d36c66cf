"""Client of durable runs: submit, list, watch, answer, cancel, from any process."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, Self

from bicameral.config import Config
from bicameral.durable._answers import validate_reply
from bicameral.durable._database import Database
from bicameral.durable._leases import count_runs_by_state, list_workers
from bicameral.durable._queries import (
    answer_question,
    answer_to_json,
    cancel_run,
    count_open_questions,
    delete_run,
    find_open_questions,
    find_question,
    find_run,
    has_long_answer,
    insert_run,
    list_questions,
    list_runs,
    load_run_view,
    make_due_now,
    record_cancellation,
    validate_submission,
)
from bicameral.durable._questions import answers_of, ask_person
from bicameral.durable._queue import Dispatcher, Transaction
from bicameral.durable._queue_health import QueueView, load_queue, select_known_ids, select_run_ids
from bicameral.durable._views import (
    RUN_STATES,
    Approval,
    ApprovalState,
    OpenQuestions,
    RunState,
    RunView,
    Submission,
    WorkerView,
    recorded_end,
    to_datetime,
)
from bicameral.errors import DurableError, JournalError
from bicameral.runs import Answers, ApprovalQuestion, Event, Journal, new_run_id, open_journal_at, public_event

FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.05, 0.5


def open_run_journal(database: Database, config: Config | None) -> Journal:
    """The journal that goes with a database.

    With PostgreSQL it is in the same database, because every worker must read what the others recorded. With SQLite it
    is the configured journal, which has the other runs of the machine too, or a file beside the database.
    """
    if database.file is None:
        return open_journal_at(database.address)
    return open_journal_at(config.journal_file if config else database.file.with_name("journal.db"))


class Runs:
    """The durable runs of one database. With a `user`, a method sees and changes only that user's runs and questions.

    Wherever a method takes a run, that is its id, a unique beginning of it, or `last`.

    Example:
        >>> async with await Runs.open() as runs:
        ...     view = await runs.submit(Submission(request="How many invoices are in mail.txt?"))
        ...     print((await runs.wait(view.run)).answer)
    """

    def __init__(
        self, database: Database, dispatch: Dispatcher, journal: Journal, config: Config, *, configured: bool = True
    ) -> None:
        self.database = database
        self.dispatch = dispatch
        self.run_journal = journal
        self.config = config
        self._is_configured = configured

    @classmethod
    async def open(
        cls,
        where: Config | str | None = None,
        *,
        config: Config | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Self:
        """Open a database, and create it and its tables if they do not exist.

        Args:
            where: A configuration, or the address of a PostgreSQL or the path of a SQLite file. Without it, the
                configuration of the working directory.
            config: With an address, the configuration of everything else.
            clock: Seconds since 1970, for tests. Without it, the database's clock.
        """
        given = where if isinstance(where, Config) else config
        settings = given or (await asyncio.to_thread(Config.load) if where is None else Config.defaults())
        address = where if isinstance(where, str) else settings.durable_database
        return await asyncio.to_thread(cls._open_at, address, settings, not isinstance(where, str), clock)

    @classmethod
    def _open_at(cls, address: str, config: Config, configured: bool, clock: Callable[[], float] | None = None) -> Self:
        database = Database(address, clock=clock)
        try:
            database.create_tables()
            journal = open_run_journal(database, config if configured else None)
        except BaseException:
            database.close()
            raise
        return cls(database, Dispatcher(database), journal, config, configured=configured)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Runs continue: they belong to the workers."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with suppress(JournalError):
            self.run_journal.close()
        self.dispatch.close()
        self.database.close()

    async def submit(self, submission: Submission) -> RunView:
        """Store a run. When this returns it survives a crash, and some worker will execute it."""
        validate_submission(submission)
        # Many may be submitted in a second: longer than the id of a run in one process.
        run = f"{new_run_id()}{secrets.token_hex(4)}"

        def submit(tx: Transaction) -> RunView:
            return load_run_view(tx, find_run(tx, insert_run(tx, run, submission), submission.user))

        # Before the transaction: the first client migrates DBOS's tables, which waits for open transactions.
        await self.database.run_in_thread(self.dispatch.client)
        return await self.dispatch.run(submit)

    async def get(self, run: str, user: str | None = None, *, whole: bool = True) -> RunView:
        """The state of a run.

        Args:
            run: The run.
            user: Only if it is of this user.
            whole: With its answer, even if that is so long that only the journal has it.
        """

        def get(tx: Transaction) -> tuple[RunView, bool]:
            row = find_run(tx, run, user)
            return load_run_view(tx, row), has_long_answer(row)

        view, is_long = await self.dispatch.run(get)
        return await self._with_answer(view) if is_long and whole else view

    async def _with_answer(self, view: RunView) -> RunView:
        """The view with the answer from the journal, for an answer that is too long for the row."""
        end = recorded_end(await asyncio.to_thread(self.run_journal.events, view.run))
        if end is None:
            return view
        lists = {name: tuple(end.outcome.get(name, ())) for name in ("doubts", "citations", "effects")}
        return replace(view, answer=end.outcome.get("answer"), **lists)

    async def list(
        self,
        user: str | None = None,
        state: RunState | None = None,
        limit: int = 50,
        before: str | datetime | None = None,
        search: str = "",
    ) -> list[RunView]:
        """The newest runs first, at most 1,000. Without long answers.

        Args:
            user: Only those of this user.
            state: Only those in this state.
            limit: How many.
            before: The last one of the previous page, or a time.
            search: Only those whose request has each of these words, in any case.
        """
        if state is not None and state not in RUN_STATES:
            raise DurableError("durable.bad-state", f"{state!r} is no state of a run", expected=", ".join(RUN_STATES))
        return await self.dispatch.run(list_runs, user, state, limit, before, search)

    async def cancel(self, run: str, user: str | None = None) -> RunView:
        """Stop a run. An effect that has begun is completed; a run that waits or is queued does not begin."""
        id, stopped_here = await self.dispatch.run(cancel_run, run, user)
        if stopped_here:
            await asyncio.to_thread(record_cancellation, self.run_journal, id)
        return await self.get(id, user)

    async def resume(self, run: str, user: str | None = None) -> RunView:
        """Make a run due now that waits for its time, for a retry, or for a worker with the right code."""
        return await self.get(await self.dispatch.run(make_due_now, run, user), user)

    async def wait(
        self,
        run: str,
        user: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (returns the state then, and raises nothing)
    ) -> RunView:
        """The run when it has ended, or as it is after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_POLL_SECONDS
        while True:
            view = await self.get(run, user)
            if view.has_ended or (end is not None and time.monotonic() >= end):
                return view
            await asyncio.sleep(pause if end is None else max(0.0, min(pause, end - time.monotonic())))
            pause = min(MAX_POLL_SECONDS, pause * 1.5)

    async def watch(self, run: str, user: str | None = None, after: int = -1) -> AsyncIterator[Event]:
        """The journal entries of a run as they are written, from the one after `after`, until the run has ended."""
        view = await self.get(run, user)
        pause = FIRST_POLL_SECONDS
        while True:
            # The state was read before the events, so the loop ends only after all events before the end were yielded.
            events = await asyncio.to_thread(self.run_journal.events_after, view.run, after)
            for event in events:
                after = event.number
                yield public_event(event)
            if view.has_ended and not events:
                return
            pause = FIRST_POLL_SECONDS if events else min(MAX_POLL_SECONDS, pause * 1.5)
            if not view.has_ended:
                await asyncio.sleep(pause)
                view = await self.get(view.run, user)

    async def journal(self, run: str, user: str | None = None) -> list[Event]:
        """All journal entries of a run; none if no worker has begun it."""
        view = await self.get(run, user)
        events = await asyncio.to_thread(self.run_journal.events_after, view.run, -1)
        return [public_event(event) for event in events]

    async def approvals(
        self, user: str | None = None, open_only: bool = True, limit: int = 100, after: str | None = None
    ) -> list[Approval]:
        """The open questions, the oldest first; or all of them, the newest first.

        Args:
            user: Only those of this user.
            open_only: Only those that can still be answered.
            limit: How many.
            after: The id of the last one of the page before.
        """
        return await self.dispatch.run(list_questions, user, open_only, max(1, limit), after)

    async def open_questions(self, user: str | None = None) -> OpenQuestions:
        """How many questions wait, by their users; cheap however long the questions are."""
        return await self.dispatch.run(count_open_questions, user)

    async def still_open(
        self, ids: Collection[str], user: str | None = None, since: float = 0.0
    ) -> tuple[frozenset[str], int]:
        """Which of these questions can still be answered, and how many others were asked after `since`."""
        return await self.dispatch.run(find_open_questions, ids, user, since)

    async def approval(self, id: str, user: str | None = None) -> Approval:
        """One question, with its exact calls and all untrusted text in them."""
        return await self.dispatch.run(find_question, id, user)

    async def ask(
        self, question: ApprovalQuestion, *, run: str, user: str = "local", within: float, request: str = ""
    ) -> Answers:
        """Ask about calls of a run that was not submitted and goes on in this process, and wait for the answer.

        The question is among the others of its user. When nobody answers it in time, the answer is no; it is withdrawn
        when the caller is cancelled.

        Args:
            question: The calls.
            run: The run that asks; its record is in a journal, or nowhere.
            user: Who may see the question and answer it.
            within: The seconds until it expires.
            request: What the person is told of the run.
        """
        asked = await ask_person(self.dispatch, question, run=run, user=user, within=within, request=request)
        return answers_of(question, asked)

    async def answer(
        self,
        id: str,
        approve: Iterable[str] | Literal["all", "none"],
        user: str | None = None,
        by: str = "",
        for_run: Iterable[str] = (),
    ) -> Approval:
        """Approve calls of a question; the run continues in whichever worker is free.

        An approval holds for exactly these calls, once each. A question is answered once, and only before it expires.

        Args:
            id: The question.
            approve: The hashes of the approved calls, or all or none. A call that is not named is denied.
            user: Whose question it is.
            by: Who answers, for the record.
            for_run: The hashes of approved calls whose `offer` is accepted too: until the end of the run, later calls
                of that kind are not asked about.
        """
        asked = await self.approval(id, user)
        if asked.kind != "calls":
            raise DurableError("durable.wrong-answer", f"{asked.id} asks for a reply", fix="Reply to it.")
        hashes = [str(call["hash"]) for call in asked.calls]
        approved = _approved_hashes(asked.id, hashes, approve)
        accepted = _accepted_offers(asked, approved, for_run)
        state: ApprovalState = "approved" if len(approved) == len(hashes) else "partly" if approved else "denied"
        return await self._answer(asked, state, answer_to_json(approved, accepted), by)

    async def reply(self, id: str, value: Any, user: str | None = None, by: str = "") -> Approval:
        """Reply to a question of a plan, or of a request that left something open; the value must fit its type."""
        asked = await self.approval(id, user)
        if asked.kind != "ask":
            raise DurableError("durable.wrong-answer", f"{asked.id} asks for approval", fix="Approve or deny it.")
        return await self._answer(asked, "replied", validate_reply(value, asked), by)

    async def _answer(self, asked: Approval, state: ApprovalState, answer: Any, by: str) -> Approval:
        # As in `submit`: not inside of the transaction that enqueues.
        await self.database.run_in_thread(self.dispatch.client)
        state_before = await self.dispatch.run(answer_question, asked.id, state, answer, by[:200])
        found = await self.approval(asked.id, asked.user)
        if state_before is None:
            return found
        if state_before == "expired":
            raise DurableError("durable.expired", f"the time to answer {asked.id} is over, and so the answer is no")
        # If a connection was lost during the commit, the retry finds its own answer: that is no conflict.
        stored = found.reply if asked.kind == "ask" else answer_to_json(list(found.approved), list(found.for_run))
        if state_before == state and stored == answer and found.by == by[:200]:
            return found
        raise DurableError("durable.answered", f"{asked.id} was answered already: {state_before}")

    async def workers(self) -> list[WorkerView]:
        """Every worker with a recent heartbeat, and whether it is within its lease."""
        rows, now = await self.dispatch.run(list_workers)

        def view(row: Any) -> WorkerView:
            facts: dict[str, Any] = {**row, "started": to_datetime(row["started"]), "seen": to_datetime(row["seen"])}
            return WorkerView(**facts, alive=now - row["seen"] < self.config.durable.lease)

        return list(map(view, rows))

    async def counts(self, user: str | None = None) -> dict[RunState, int]:
        """How many runs are in each state."""
        counts = await self.dispatch.run(count_runs_by_state, user)
        return {state: counts.get(state, 0) for state in RUN_STATES}

    async def queue(self, user: str | None = None) -> QueueView:
        """What waits for a worker and since when, and how many runs are in each state."""
        return await self.dispatch.run(load_queue, user)

    async def known_ids(self, ids: Collection[str]) -> set[str]:
        """Those of these ids that are runs here."""
        return await self.dispatch.run(select_known_ids, ids)

    async def ids(self, user: str | None = None, limit: int | None = None) -> list[str]:
        """The ids of runs, the newest first; without a limit, of all."""
        return await self.dispatch.run(select_run_ids, user, limit)

    def open_journal(self) -> Journal:
        """The journal through a connection of its own, for reading much of it: nobody who appends waits for that."""
        return open_run_journal(self.database, self.config if self._is_configured else None)

    async def forget(self, run: str, user: str | None = None) -> None:
        """Delete a run that has ended, and its questions, from the tables; its journal stays."""
        await self.dispatch.run(delete_run, run, user)


def _approved_hashes(id: str, hashes: list[str], approve: Iterable[str] | Literal["all", "none"]) -> list[str]:
    """The hashes of the approved calls, in the order of the question; each must be one that it asks about."""
    if approve == "all":
        return hashes
    if approve == "none":
        return []
    if isinstance(approve, str):
        approve = [approve]
    named = list(dict.fromkeys(approve))
    for hash_ in named:
        if hash_ not in hashes:
            raise DurableError(
                "durable.wrong-answer",
                f"{id} does not ask about a call {hash_[:80]!r}",
                fix="Name the hashes of its calls, or all or none of them.",
            )
    return [hash_ for hash_ in hashes if hash_ in named]


def _accepted_offers(asked: Approval, approved: list[str], for_run: Iterable[str]) -> list[str]:
    """The hashes whose offer is accepted; each call must be approved and have an offer."""
    accepted = list(dict.fromkeys([for_run] if isinstance(for_run, str) else for_run))
    offered = {str(call["hash"]) for call in asked.calls if "offer" in call}
    for hash_ in accepted:
        if hash_ not in approved or hash_ not in offered:
            raise DurableError(
                "durable.wrong-answer",
                f"with the call {hash_[:80]!r} {asked.id} offers nothing for the rest of the run, or it was refused",
                fix="Name approved calls that have an `offer`.",
            )
    return accepted
