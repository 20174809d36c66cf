"""The queue: what waits and since when, whose it is, and what is said of workers that are not there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from durable_world import plan, worker

from bicameral.durable import RUN_STATES, QueueView, Runs, RunState, Submission, WorkerView, queue_problems
from bicameral.durable._queue_health import LONG_WAIT_SECONDS
from conftest import House

NOW = datetime(2026, 3, 27, 12, tzinfo=UTC)
EMPTY: dict[RunState, int] = dict.fromkeys(RUN_STATES, 0)


def queue(*, queued: int = 0, running: int = 0, waited: float | None = None, lost: int = 0) -> QueueView:
    oldest = None if waited is None else NOW - timedelta(seconds=waited)
    return QueueView({**EMPTY, "queued": queued, "running": running}, queued, 0, oldest, lost)


def a_worker(*, alive: bool = True) -> WorkerView:
    return WorkerView("host-1-abc", "host", 1, NOW, NOW, 0, 8, alive)


async def test_the_queue_of_a_user_is_what_that_user_submitted(runs: Runs, house: House) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    source = plan("answer(1)", house.folder)
    for user, due in (("ann", None), ("ann", later), ("bob", None)):
        await runs.submit(Submission(plan=source, user=user, not_before=due))
    whole, own, nobody = await runs.queue(), await runs.queue("ann"), await runs.queue("cid")
    assert (whole.counts["queued"], whole.due, whole.later, whole.open) == (3, 2, 1, 3)
    assert (own.counts["queued"], own.due, own.later, own.lost) == (2, 1, 1, 0)
    assert own.oldest is not None
    assert abs((datetime.now(UTC) - own.oldest).total_seconds()) < 60
    assert (nobody.due, nobody.oldest, nobody.open) == (0, None, 0)
    newest_first = [view.run for view in await runs.list()]
    assert await runs.ids() == newest_first
    assert await runs.ids(limit=1) == newest_first[:1]
    assert set(await runs.ids("ann")) < set(newest_first)
    assert len(await runs.ids("ann")) == 2


async def test_a_run_waits_from_the_time_on_at_which_it_is_due(runs: Runs, house: House) -> None:
    """Submitted long ago for a time that has just come, it has waited a moment. Benign twin: it was due at once."""
    source, now = plan("answer(1)", house.folder), datetime.now(UTC)
    day_ago, just_now = now - timedelta(days=1), now - timedelta(seconds=5)
    planned = await runs.submit(Submission(plan=source, user="ann", not_before=now + timedelta(hours=1)))
    at_once = await runs.submit(Submission(plan=source, user="bob"))
    for run, due in ((planned.run, just_now), (at_once.run, None)):
        values = {"updated": day_ago.timestamp(), "not_before": due and due.timestamp()}
        await set_times(runs, run, values)
    ann, bob, all_users = await runs.queue("ann"), await runs.queue("bob"), await runs.queue()
    assert ann.oldest is not None
    assert abs((ann.oldest - just_now).total_seconds()) < 1
    assert list(queue_problems(ann, [a_worker()])) == []
    assert all_users.oldest is not None
    assert bob.oldest == all_users.oldest
    assert abs((all_users.oldest - day_ago).total_seconds()) < 1
    (long,) = queue_problems(all_users, [a_worker()])
    assert "one for 1440 min" in long.detail


async def set_times(runs: Runs, run: str, values: dict[str, float | None]) -> None:
    """Change when a run was submitted and when it is due, as if the time had passed."""
    table = runs.database.tables.runs
    await runs.database.run_transaction(
        lambda db: db.execute(table.update().where(table.c.run == run).values(**values))
    )


async def test_a_long_look_at_the_journal_has_a_connection_of_its_own(runs: Runs, house: House) -> None:
    with worker(house.address, house.folder):
        view = await runs.wait((await runs.submit(Submission(plan=plan("answer(1)", house.folder)))).run, timeout=60)
    with runs.open_journal() as other:
        assert other is not runs.run_journal
        assert other.events(view.run) == runs.run_journal.events(view.run)
    assert runs.run_journal.events(view.run)


def test_nothing_is_said_of_a_queue_that_is_as_it_should_be() -> None:
    assert list(queue_problems(queue(queued=3, running=2, waited=5), [a_worker()], NOW)) == []
    assert list(queue_problems(queue(), [], NOW)) == []


@pytest.mark.parametrize(
    ("found", "workers", "status", "said"),
    [
        (queue(queued=2), [], "bad", "none is there, and 2 submitted runs to do"),
        (queue(queued=1), [a_worker(alive=False)], "bad", "1 submitted run to do"),
        (queue(), [a_worker(), a_worker(alive=False)], "warn", "1 has not been heard of"),
        (queue(running=1, lost=1), [a_worker()], "warn", "1 run is with a worker that is past its lease"),
        (
            queue(queued=4, waited=LONG_WAIT_SECONDS * 3),
            [a_worker()],
            "warn",
            "4 runs wait for a worker, one for 3 min",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    found: QueueView, workers: list[WorkerView], status: str, said: str
) -> None:
    first = next(queue_problems(found, workers, NOW))
    assert first.status == status
    assert said in first.detail
    assert first.fix
    # Whoever may not see the machines is told the same.
    assert "host" not in first.detail + first.fix
