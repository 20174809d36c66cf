"""Runs are kept, found and listed; each user sees his own, and nobody else's."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from durable_world import plan

from bicameral.durable import Runs, Submission, _views as _extra
from bicameral.errors import DurableError
from bicameral.limits import run_limits


async def _refused(code: str, submission: Submission, runs: Runs) -> None:
    with pytest.raises(DurableError) as caught:
        await runs.submit(submission)
    assert caught.value.code == code


async def test_a_submitted_run_is_queued_and_found_by_any_process(runs: Runs, tmp_path: Path) -> None:
    view = await runs.submit(Submission(request="Count the lines", user="ann", priority=3))
    assert (view.state, view.attempts, view.priority, view.user) == ("queued", 1, 3, "ann")
    async with await Runs.open(runs.database.address) as others:
        assert await others.get(view.run) == view
        assert (await others.get("last")).run == view.run
        assert (await others.get(view.run[:-2])).run == view.run
    assert await runs.journal(view.run) == []
    assert view.to_json()["state"] == "queued"


async def test_users_cannot_see_or_touch_each_others_runs(runs: Runs) -> None:
    hers = await runs.submit(Submission(request="hers", user="ann"))
    his = await runs.submit(Submission(request="his", user="bob"))
    assert [view.run for view in await runs.list("ann")] == [hers.run]
    assert (await runs.get("last", "ann")).run == hers.run
    assert {view.run for view in await runs.list()} == {hers.run, his.run}
    for reach in (runs.get, runs.cancel, runs.journal, runs.wait, runs.forget):
        with pytest.raises(DurableError) as caught:
            await reach(his.run, "ann")
        assert caught.value.code == "durable.unknown-run"
        # Nothing in the answer says whether it is there.
        assert his.run not in str(caught.value.nearest)
    with pytest.raises(DurableError, match="unknown-run"):
        await anext(aiter(runs.watch(his.run, "ann")))
    with pytest.raises(DurableError, match="unknown-run"):
        await runs.list("ann", before=his.run)
    assert (await runs.get(his.run)).state == "queued"


async def test_the_same_key_is_the_same_run_also_when_it_comes_many_times_at_once(runs: Runs) -> None:
    many = [runs.submit(Submission(request=f"try {n}", user="ann", key="order-7")) for n in range(8)]
    assert len({view.run for view in await asyncio.gather(*many)}) == 1
    another = await runs.submit(Submission(request="x", user="bob", key="order-7"))
    assert len(await runs.list("ann")) == 1
    assert len(await runs.list("bob")) == 1
    assert another.user == "bob"


async def test_lists_come_in_pages_and_by_state(runs: Runs) -> None:
    for number in range(5):
        await runs.submit(Submission(request=f"{number}", user="ann"))
    first = await runs.list("ann", limit=2)
    rest = await runs.list("ann", before=first[-1].run)
    assert [view.request for view in (*first, *rest)] == ["4", "3", "2", "1", "0"]
    assert await runs.list("ann", state="finished") == []
    assert len(await runs.list(before=datetime.now(UTC) + timedelta(hours=1))) == 5
    assert (await runs.counts("ann"))["queued"] == 5
    with pytest.raises(DurableError, match="bad-state"):
        await runs.list(state="nearly")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("Übersicht", 1),
        ("übersicht", 1),
        ("ÜBERSICHT rechnungen", 1),
        ("СЧЁТ", 1),
        ("straße", 1),
        ("Übersichten", 0),
        # These have no meaning, neither to LIKE nor to its escape.
        ("100%", 1),
        ("%", 1),
        ("a_b", 0),
        ("a/b", 1),
        ("\0", 0),
        ("", 4),
    ],
)
async def test_words_of_every_language_are_found_in_capital_and_small_letters(
    runs: Runs, word: str, found: int
) -> None:
    for request in ("Übersicht der Rechnungen", "Найти счёт", "Straße a/b", "100% axb"):
        await runs.submit(Submission(request=request, user="ann"))
    assert len(await runs.list("ann", search=word)) == found


async def test_of_many_ids_those_that_are_runs_here_are_known(runs: Runs) -> None:
    view = await runs.submit(Submission(request="x"))
    others = [f"none-{number}" for number in range(1200)]
    assert await runs.known_ids([*others, view.run]) == {view.run}
    assert await runs.known_ids([]) == set()


async def test_a_queued_run_is_cancelled_at_once_and_for_good(runs: Runs) -> None:
    view = await runs.submit(Submission(request="x"))
    stopped = await runs.cancel(view.run)
    assert (stopped.state, stopped.why) == ("stopped", "it was cancelled")
    assert (await runs.cancel(view.run)).state == "stopped"
    assert [event async for event in runs.watch(view.run)] == []
    await runs.forget(view.run)
    with pytest.raises(DurableError, match="unknown-run"):
        await runs.get(view.run)


async def test_only_a_run_that_has_ended_is_forgotten(runs: Runs) -> None:
    view = await runs.submit(Submission(request="x"))
    with pytest.raises(DurableError, match="not-ended"):
        await runs.forget(view.run)


async def test_what_cannot_be_run_is_not_kept(runs: Runs, tmp_path: Path) -> None:
    good = plan("answer(1)", tmp_path)
    for bad in (
        Submission(),
        Submission(request="x", plan=good),
        Submission(request="  "),
        Submission(request="x" * 200_000),
        Submission(request="x", priority=0),
        Submission(request="x", priority=10),
        Submission(request="x", user=""),
        Submission(request="x", user="a\nb"),
        Submission(request="x", key="k" * 300),
        Submission(request="x", not_before=datetime.now()),
        Submission(request="x", answer_within=0),
    ):
        await _refused("durable.bad-submission", bad, runs)
    assert await runs.list() == []


async def test_what_is_submitted_is_kept_whole(runs: Runs, tmp_path: Path) -> None:
    caps = run_limits(rounds=1, calls=2, tokens=3, money=0.5, seconds=6.0)
    later = datetime.now(UTC) + timedelta(days=2)
    view = await runs.submit(Submission(plan=plan("answer(1)", tmp_path), caps=caps, not_before=later))
    assert view.not_before is not None
    assert abs((view.not_before - later).total_seconds()) < 0.01
    assert view.state == "queued"


async def test_waiting_for_a_run_gives_how_it_stands_when_the_time_is_over(runs: Runs) -> None:
    view = await runs.submit(Submission(request="x"))
    assert (await runs.wait(view.run, timeout=0.2)).state == "queued"


@pytest.mark.parametrize("address", ["mysql://host/db", "http://x"])
async def test_only_sqlite_and_postgresql_keep_runs(address: str) -> None:
    with pytest.raises(DurableError, match="bad-database"):
        await Runs.open(address)


async def test_a_database_that_cannot_be_reached_is_said_so_without_its_password() -> None:
    import bicameral.durable._database as database

    here = database.Database("postgresql://ann:hunter2@127.0.0.1:1/none")
    with pytest.raises(DurableError) as caught:
        await here.run_transaction(lambda db: db, patience=0.1)
    here.close()
    assert caught.value.code == "durable.no-database"
    assert "hunter2" not in str(caught.value)


def test_a_missing_package_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_extra, "REQUIRED_PACKAGES", ("sqlalchemy", "no_such_package"))
    with pytest.raises(DurableError) as caught:
        _extra.require_durable_packages()
    assert caught.value.code == "durable.not-installed"
    assert 'pip install "bicameral[durable]"' in str(caught.value)


def test_nothing_heavy_is_loaded_before_a_database_is_opened() -> None:
    code = "import sys, bicameral.durable; print([m for m in ('dbos', 'sqlalchemy', 'psycopg') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_the_library_is_whole_before_any_thread_uses_it() -> None:
    # A thread that imports sqlalchemy.orm makes statements of other threads fail meanwhile.
    code = "import sys, bicameral.durable._database; print('sqlalchemy.orm' in sys.modules, 'dbos' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "False"]
