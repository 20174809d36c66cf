"""One worker has a run at a time: what each change to the tables does, and does not do, whoever else is at it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from durable_world import agent, named, plan, tools

from bicameral.agent import Agent
from bicameral.config import Config, QuotaTable
from bicameral.durable import Runs, Submission
from bicameral.durable._attempt import Attempt, AttemptBroken, AttemptWaits
from bicameral.durable._leases import (
    Lease,
    claim_run,
    enqueue_due_runs,
    finish_run,
    forget_dead_workers,
    reap_expired_leases,
    release_run,
    remove_worker,
    requeue_undelivered,
    retry_delay,
    send_heartbeat,
)
from bicameral.durable._maintenance import Maintenance
from bicameral.durable._queries import expire_questions, put_question
from bicameral.durable._queue import SharedQuotas
from bicameral.durable._views import RunEnd
from bicameral.errors import ConfigError, DurableError
from bicameral.labels import open_labelled
from bicameral.limits import ChamberUsage
from bicameral.models import ScriptedProvider
from bicameral.planning import Intent
from bicameral.plans import parse
from bicameral.rates import parse_rate
from bicameral.runs import StartState
from bicameral.types import STR
from conftest import House

T = TypeVar("T")
LONG = 60.0
MODEL, OTHER = ScriptedProvider([]), ScriptedProvider([])


async def _do(runs: Runs, what: Callable[..., T], *args: Any, **options: Any) -> T:
    """Any of the changes, in a transaction of its own."""
    return await runs.dispatch.run(what, *args, **options)


async def _taken(runs: Runs, run: str, attempt: int = 1, worker: str = "w1", seconds: float = LONG) -> Any:
    return await _do(runs, claim_run, Lease(run, attempt, worker), seconds)


async def _statuses(runs: Runs) -> dict[str, str]:
    flows = runs.database.tables.workflows
    query = sa.select(flows.c.workflow_uuid, flows.c.status)
    return {row[0]: row[1] for row in await runs.database.run_transaction(lambda db: db.execute(query).all())}


async def test_of_many_workers_that_want_a_run_one_has_it(runs: Runs) -> None:
    run = (await runs.submit(Submission(request="x"))).run
    found = await asyncio.gather(*(_taken(runs, run, worker=f"w{n}") for n in range(12)))
    (row,) = [row for row in found if row is not None]
    assert (await runs.get(run)).worker == row["worker"]
    # Whose first commit was in doubt asks again, and has it still.
    assert await _taken(runs, run, worker=row["worker"]) is not None
    assert await _taken(runs, run, attempt=2, worker=row["worker"]) is None


async def test_only_who_has_a_run_can_say_how_it_ended(runs: Runs) -> None:
    run = (await runs.submit(Submission(request="x"))).run
    await _taken(runs, run)
    for stranger in (Lease(run, 1, "w2"), Lease(run, 2, "w1")):
        assert not await _do(runs, finish_run, stranger, "finished", "{}", None)
        assert await _do(runs, put_question, stranger, "ask", {}, 0, LONG) is None
        assert not await _do(runs, release_run, stranger, None)
    assert await _do(runs, finish_run, Lease(run, 1, "w1"), "finished", json.dumps({"answer": 5}), None)
    assert not await _do(runs, finish_run, Lease(run, 1, "w1"), "failed", None, "again")
    view = await runs.get(run)
    assert (view.state, view.answer) == ("finished", 5)


async def test_a_lease_that_is_over_lets_the_run_go_on_once(runs: Runs) -> None:
    run = (await runs.submit(Submission(request="x"))).run
    await _taken(runs, run, seconds=-1.0)
    reaped = await asyncio.gather(*(_do(runs, reap_expired_leases) for _ in range(4)))
    assert [attempt for each in reaped for attempt in each] == [f"{run}.1"]
    view = await runs.get(run)
    assert (view.state, view.attempts, view.worker) == ("queued", 2, None)
    assert await _taken(runs, run, attempt=1) is None
    assert (await _statuses(runs))[f"{run}.2"] == "ENQUEUED"
    taken = await _taken(runs, run, attempt=2)
    assert taken is not None
    assert taken["deaths"] == 1
    # One whose lease holds is not touched.
    assert await _do(runs, reap_expired_leases) == []


async def test_the_dbos_row_of_a_dead_workers_attempt_is_deleted_once_it_is_old(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = (await runs.submit(Submission(request="x"))).run
    await _taken(runs, run, worker="dead", seconds=-1.0)
    maintenance = Maintenance(runs, LONG, "w1", list)
    await maintenance.run_sweep()
    # DBOS takes a cancelled workflow out of its queue and forgets when it was started.
    assert await _statuses(runs) == {f"{run}.1": "CANCELLED", f"{run}.2": "ENQUEUED"}
    await maintenance.run_cleanup()
    assert f"{run}.1" in await _statuses(runs)
    monkeypatch.setattr("bicameral.durable._maintenance.WORKFLOW_RETENTION_SECONDS", -1.0)
    await maintenance.run_cleanup()
    assert await _statuses(runs) == {f"{run}.2": "ENQUEUED"}


async def test_a_client_brings_the_tables_of_an_older_dbos_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "durable.db")
    async with await Runs.open(address) as earlier:
        await earlier.submit(Submission(request="x"))
    from dbos._migration import sqlite_migrations

    added = [*sqlite_migrations, "CREATE TABLE added_by_a_later_dbos (x INTEGER)"]
    monkeypatch.setattr("dbos._sys_db_sqlite.sqlite_migrations", added)
    async with await Runs.open(address) as later:
        await later.submit(Submission(request="y"))
        found = await later.database.run_in_thread(lambda: sa.inspect(later.database.engine).get_table_names())
    assert "added_by_a_later_dbos" in found


async def test_a_heart_renews_only_what_is_the_workers_and_hears_of_cancels(runs: Runs) -> None:
    mine = (await runs.submit(Submission(request="mine"))).run
    his = (await runs.submit(Submission(request="his"))).run
    await _taken(runs, mine, worker="w1", seconds=0.0)
    await _taken(runs, his, worker="w2", seconds=0.0)
    await runs.cancel(mine)
    assert (await runs.get(mine)).state == "running"
    me = {"worker": "w1", "host": "h", "pid": 1, "runs": 1, "concurrency": 2}
    said = await _do(runs, send_heartbeat, me, [mine, his], [], LONG)
    assert (said.leases, said.cancelled) == ({mine: 1}, frozenset({mine}))
    assert await _do(runs, reap_expired_leases) == [f"{his}.1"]
    assert [each.worker for each in await runs.workers()] == ["w1"]
    await _do(runs, remove_worker, "w1")
    assert await runs.workers() == []


async def test_a_run_that_was_cancelled_does_not_begin_to_wait(runs: Runs) -> None:
    run = (await runs.submit(Submission(request="x"))).run
    await _taken(runs, run)
    await runs.cancel(run)
    assert await _do(runs, put_question, Lease(run, 1, "w1"), "ask", {"question": "?"}, 0, LONG) == "stopped"
    assert (await runs.get(run)).state == "stopped"
    assert await runs.approvals() == []


async def test_an_attempt_that_was_handed_over_and_never_began_is_made_again(runs: Runs) -> None:
    run = (await runs.submit(Submission(request="x"))).run
    table = "workflow_status" if runs.database.sqlite else "dbos.workflow_status"
    given = "status = 'PENDING', executor_id = 'dead', started_at_epoch_ms = 1000"
    gone = sa.text(f"UPDATE {table} SET {given} WHERE workflow_uuid = :w")
    await runs.database.run_transaction(lambda db: db.execute(gone, {"w": f"{run}.1"}).rowcount)
    assert await _do(runs, forget_dead_workers, 1.0) == [f"{run}.1"]
    # A worker that has it, and is not yet at it, is left alone until a lease is over.
    assert await _do(runs, requeue_undelivered, 1e12, "dead", [f"{run}.1"]) == []
    assert await _do(runs, requeue_undelivered, 1e12, "another", []) == []
    assert await _do(runs, requeue_undelivered, 1e12, "dead", []) == [f"{run}.1"]
    assert await _do(runs, requeue_undelivered, 1e12, "dead", []) == []
    assert (await runs.get(run)).attempts == 2
    assert (await _statuses(runs))[f"{run}.2"] == "ENQUEUED"
    # The late one finds that it is not its turn any more.
    assert await _taken(runs, run, attempt=1) is None


async def test_what_is_due_later_is_queued_when_it_is(runs: Runs) -> None:
    run = (await runs.submit(Submission(request="x"))).run
    await _taken(runs, run)
    assert await _do(runs, release_run, Lease(run, 1, "w1"), "a reason", 0.4, died=True)
    assert await _do(runs, enqueue_due_runs) == 0
    assert f"{run}.2" not in await _statuses(runs)
    assert (await runs.get(run)).why == "a reason"
    await asyncio.sleep(0.5)
    assert sum(await asyncio.gather(*(_do(runs, enqueue_due_runs) for _ in range(3)))) == 1
    assert (await _statuses(runs))[f"{run}.2"] == "ENQUEUED"


def test_what_kills_workers_is_tried_more_and_more_slowly() -> None:
    pauses = [retry_delay(deaths) for deaths in range(12)]
    assert pauses[0] == 0.0
    assert pauses == sorted(pauses)
    assert pauses[-1] == 60.0


async def _attempted(runs: Runs, house: House, run: str, attempt: int = 1) -> Any:
    row = await _taken(runs, run, attempt)
    async with agent(house.folder, runs.config) as who:
        return await Attempt(runs, Lease(run, attempt, "w1"), row, who, lambda: False).run()


async def test_an_end_that_is_recorded_is_only_written_down(runs: Runs, house: House) -> None:
    run = (await runs.submit(Submission(plan=plan("put('once', 1)\nanswer(7)", house.folder)))).run
    first = await _attempted(runs, house, run)
    assert isinstance(first, RunEnd)
    # The worker dies before it has written that down.
    assert await _do(runs, release_run, Lease(run, 1, "w1"), None)
    again = await _attempted(runs, house, run, 2)
    assert (again.state, again.outcome["answer"], again.outcome["effects"]) == (
        "finished",
        7,
        first.outcome["effects"],
    )
    assert len(named(house.folder, "put")) == 1


async def test_a_run_that_lost_too_many_attempts_is_given_up_and_nothing_of_it_is_done(
    runs: Runs, house: House
) -> None:
    run = (await runs.submit(Submission(plan=plan("put('poison', 1)\nanswer(7)", house.folder)))).run
    table = runs.database.tables.runs
    await runs.database.run_transaction(
        lambda db: db.execute(table.update().values(deaths=runs.config.durable.deaths)).rowcount
    )
    came = await _attempted(runs, house, run)
    assert (came.state, came.outcome["error"]["code"]) == ("failed", "durable.poison")
    assert named(house.folder, "begun") == []


async def test_a_run_begun_with_other_tools_is_left_for_a_worker_that_has_them(runs: Runs, house: House) -> None:
    source = "who = letter(1)\npost(who, 'x')\nanswer(1)"
    run = (await runs.submit(Submission(plan=plan(source, house.folder)))).run
    came = await _attempted(runs, house, run)
    assert isinstance(came, AttemptWaits)
    assert await _do(runs, release_run, Lease(run, 1, "w1"), None)
    row = await _taken(runs, run, 2)
    async with agent(house.folder, runs.config, without="post") as other:
        came = await Attempt(runs, Lease(run, 2, "w1"), row, other, lambda: False).run()
    assert isinstance(came, AttemptBroken)
    assert came.error.code == "run.other-code"
    assert "post" in str(came.error)


class Unsure(Agent):
    """An agent that does not understand a request without a reply."""

    made = 0

    async def plan(self, request: Any, *, asker: Any = None, **_: Any) -> Any:
        which = await asker.ask("Which place?", STR)
        Unsure.made += 1
        # As an agent does it: the reply is a part of what the user said.
        intent = Intent(request=f"{open_labelled(request)}\n({which})", task="put", effects=("write", "send"))
        found = parse(f"put({which!r}, 1)\nwho = letter(1)\npost(who, 'x')\nanswer(1)", self.registry).plan
        return SimpleNamespace(
            plan=found, intent=intent, spent=ChamberUsage(), calls=(), doubts=(), start=StartState(), choice={}
        )


async def test_what_a_request_leaves_open_is_asked_and_it_is_planned_once(runs: Runs, house: House) -> None:
    Unsure.made = 0
    run = (await runs.submit(Submission(request="Put it there"))).run
    unsure = Unsure(tools(house.folder), config=runs.config, privileged=MODEL, quarantined=OTHER, cache={})

    async def attempted(attempt: int) -> Any:
        row = await _taken(runs, run, attempt)
        return await Attempt(runs, Lease(run, attempt, "w1"), row, unsure, lambda: False).run()

    async with unsure:
        open_ = await attempted(1)
        assert (open_.kind, open_.question["question"], Unsure.made) == ("ask", "Which place?", 0)
        await _do(runs, put_question, Lease(run, 1, "w1"), open_.kind, open_.question, open_.number, LONG)
        (asked,) = await runs.approvals()
        await runs.reply(asked.id, "here")
        waits = await attempted(2)
        assert waits.kind == "calls"
        await _do(runs, put_question, Lease(run, 2, "w1"), waits.kind, waits.question, waits.number, LONG)
        await runs.answer((await runs.approvals())[0].id, "all")
        assert isinstance(await attempted(3), RunEnd)
    assert Unsure.made == 1
    assert [line["place"] for line in named(house.folder, "put")] == ["here"]


async def test_limits_hold_across_workers_and_come_free_with_a_dead_ones_lease(runs: Runs) -> None:
    limits = QuotaTable.model_validate({"tools": {"fax": {"concurrency": 2}}})
    offices = [SharedQuotas(runs.database, limits, f"w{n}", LONG) for n in range(3)]
    inside = most = 0

    async def fax(office: SharedQuotas) -> None:
        nonlocal inside, most
        async with office.turn("tool", "fax"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.05)
            inside -= 1

    await asyncio.gather(*(fax(office) for office in offices for _ in range(3)))
    assert most == 2
    dead = SharedQuotas(runs.database, limits, "dead", 0.5)
    held = [dead.turn("tool", "fax") for _ in range(2)]
    for each in held:
        await each.__aenter__()
    started = time.monotonic()
    await asyncio.wait_for(fax(offices[0]), 10)
    assert time.monotonic() - started > 0.2
    # Others are not held up.
    async with offices[0].turn("tool", "phone"):
        pass


async def test_a_rate_holds_across_workers(runs: Runs) -> None:
    limits = QuotaTable.model_validate({"models": {"main": {"rate": "3/s"}}})
    offices = [SharedQuotas(runs.database, limits, f"w{n}", LONG) for n in range(2)]
    starts: list[float] = []

    async def ask(office: SharedQuotas) -> None:
        async with office.turn("model", "main"):
            starts.append(time.monotonic())

    before = time.monotonic()
    await asyncio.wait_for(asyncio.gather(*(ask(office) for office in offices for _ in range(4))), 20)
    # From the beginning, not from each other: a turn may be noticed later than it was given, and never earlier.
    assert all(at - before > number // 3 - 0.2 for number, at in enumerate(sorted(starts)))
    assert len(starts) == 8


@pytest.mark.parametrize(("text", "rate"), [("10/min", (10, 60.0)), ("1/s", (1, 1.0)), ("5 / h", (5, 3600.0))])
def test_a_rate_is_a_number_in_a_time(text: str, rate: tuple[int, float]) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "10", "0/min", "-1/s", "1/week", "x/s", "1.5/s", "10/min/s"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="rate"):
        parse_rate(text)


def test_the_database_is_named_by_the_environment_or_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Config.model_validate({"durable": {"database": "postgresql://ann:${DB_WORD}@h/db"}, "base": tmp_path})
    monkeypatch.setenv("DB_WORD", "swordfish")
    assert found.durable_database == "postgresql://ann:swordfish@h/db"
    monkeypatch.delenv("DB_WORD")
    with pytest.raises(ConfigError, match="DB_WORD"):
        _ = found.durable_database


def test_without_a_name_each_folder_has_a_database_outside_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first, second = tmp_path / "a" / "w? ä%", tmp_path / "b" / "w? ä%"
    for folder in (first, second):
        (folder / ".bicameral").mkdir(parents=True)
        (folder / ".bicameral" / "durable.db").write_bytes(b"brought along")
    (tmp_path / "link").symlink_to(first)
    places = [Path(Config.model_validate({"base": each}).durable_database) for each in (first, second)]
    assert places[0] != places[1]
    assert {each.parent for each in places} == {tmp_path / "state" / "bicameral" / "durable"}
    assert Config.model_validate({"base": tmp_path / "link"}).durable_database == str(places[0])


CALLS = {"calls": [{"hash": "a" * 64, "step": "1", "steps": ["1"], "tool": "post"}]}


async def _waiting(runs: Runs, within: float) -> str:
    """A question that somebody may answer within so many seconds."""
    run = (await runs.submit(Submission(request="x"))).run
    await _taken(runs, run)
    assert await _do(runs, put_question, Lease(run, 1, "w1"), "calls", CALLS, 0, within) == "waiting"
    return f"{run}.1"


async def test_an_expired_question_is_refused_by_the_clock_and_not_by_the_sweep(runs: Runs) -> None:
    asked = await _waiting(runs, 0.0)
    assert (await runs.approval(asked)).state == "expired"
    for _ in range(2):
        # The first finds it open in the table, the second expired: the answer is the same.
        with pytest.raises(DurableError) as late:
            await runs.answer(asked, "all")
        assert late.value.code == "durable.expired"
    found = await runs.approval(asked)
    assert (found.state, found.by, found.approved) == ("expired", "nobody", ())
    # Whoever came too late has at least let the run go on, to say so.
    assert (await runs.get(found.run)).state == "queued"
    assert await _do(runs, expire_questions) == 0


async def test_of_an_answer_and_the_sweep_exactly_one_decides(runs: Runs) -> None:
    for within in (0.0, LONG):
        asked = await _waiting(runs, within)
        told = await asyncio.gather(
            *(runs.answer(asked, "all", by=f"n{n}") for n in range(3)),
            *(_do(runs, expire_questions) for _ in range(3)),
            return_exceptions=True,
        )
        taken = [each for each in told[:3] if not isinstance(each, BaseException)]
        assert len(taken) == (1 if within else 0)
        assert sum(each for each in told[3:] if isinstance(each, int)) <= (0 if within else 1)
        assert (await runs.approval(asked)).state == ("approved" if within else "expired")
        assert (await runs.get(asked.removesuffix(".1"))).attempts == 2
