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
