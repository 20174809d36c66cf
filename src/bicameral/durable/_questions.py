"""Questions of a run that was not submitted: it goes on in a process of its own, which waits for the answer.

Such a run (a client that is connected to the firewall) has no row, no lease and no attempts: only its question is in
the database, where `bicameral approvals` and the server find it like any other. Nobody continues the run when it is
answered: whoever asks looks for the answer until the time is over, and withdraws the question if it stops waiting.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from bicameral.durable._queries import MAX_PLAN, find_question
from bicameral.errors import DurableError
from bicameral.runs import Answers, ApprovalQuestion

if TYPE_CHECKING:
    from bicameral.durable._queue import Dispatcher, Transaction
    from bicameral.durable._views import Approval

FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.05, 0.5


async def ask_person(
    dispatch: Dispatcher, question: ApprovalQuestion, *, run: str, user: str, within: float, request: str = ""
) -> Approval:
    """Ask about calls and wait: the question as it was answered, or as it expired.

    Args:
        dispatch: The database.
        question: The calls.
        run: The run that asks.
        user: Who may see the question and answer it.
        within: The seconds until it expires. Then the answer is no.
        request: What the person is told of the run.
    """
    asked: dict[str, Any] = {"calls": question.to_json(), "before": question.before, "request": request}
    text = json.dumps(asked, separators=(",", ":"))
    if len(text) > MAX_PLAN:
        raise DurableError("durable.bad-submission", f"the question is longer than {MAX_PLAN:,} characters")
    id = f"{run}-{secrets.token_hex(3)}"
    hashes = json.dumps([call.hash for call in question.calls])
    try:
        await dispatch.run(insert_question, id, run, user, text, hashes, within)
        pause = FIRST_POLL_SECONDS
        while True:
            found = await dispatch.run(find_question, id, user)
            if not found.is_open:
                return found
            await asyncio.sleep(pause)
            pause = min(MAX_POLL_SECONDS, pause * 1.5)
    finally:
        # Nobody waits any longer, whatever the reason: an answer that comes later must not look as if it counted.
        # Shielded: the one who waits may be cancelled once more while this is written.
        await asyncio.shield(dispatch.run(withdraw_question, id))


def answers_of(question: ApprovalQuestion, answered: Approval) -> Answers:
    """The answer to these very calls; whatever was not approved is refused."""
    if answered.state not in ("approved", "partly", "denied"):
        # Nobody has decided anything.
        return Answers.no()
    approved = [call for call in question.calls if call.hash in answered.approved]
    offers = [call.offer for call in approved if call.hash in answered.for_run]
    made = Answers.yes(approved, for_run=[offer for offer in offers if offer is not None])
    return replace(made, refused=frozenset(call.hash for call in question.calls) - made.approved)


def insert_question(tx: Transaction, id: str, run: str, user: str, text: str, hashes: str, within: float) -> None:
    """Store an open question."""
    row = {
        "id": id,
        "run": run,
        "user": user,
        "kind": "calls",
        "question": text,
        "hashes": hashes,
        # Nobody resumes the run, so the length of its journal does not matter.
        "number": 0,
        "asked": tx.now,
        "expires": tx.now + within,
        "state": "open",
        "by": "",
    }
    tx.db.execute(tx.insert(tx.approvals).values(**row).on_conflict_do_nothing())


def withdraw_question(tx: Transaction, id: str) -> None:
    """Close a question that nobody waits for; one that was answered, or whose time is over, stays as it is."""
    approvals, now = tx.approvals, tx.now
    open_ = sa.and_(approvals.c.id == id, approvals.c.state == "open", approvals.c.expires > now)
    tx.db.execute(approvals.update().where(open_).values(state="withdrawn", answered=now))


def delete_old_questions(tx: Transaction, keep: float) -> None:
    """Delete the questions of runs that were not submitted, this many seconds after they expired."""
    approvals, runs = tx.approvals, tx.runs
    submitted = sa.select(runs.c.run).where(runs.c.run == approvals.c.run).exists()
    tx.db.execute(approvals.delete().where(approvals.c.expires < tx.now - keep, sa.not_(submitted)))
