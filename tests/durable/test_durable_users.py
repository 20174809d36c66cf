"""Users share the workers: none has more runs under way than is allowed, and none keeps others from theirs."""

from __future__ import annotations

import pytest
from durable_world import named, plan, worker

from bicameral.durable import Runs, Submission
from conftest import House

USERS = ("ann", "bob")


async def test_a_user_has_no_more_runs_under_way_than_allowed_and_others_go_on(runs: Runs, house: House) -> None:
    (house.folder / "slow").write_text("0.3")
    limits = {"user": {"concurrency": 1}}
    with worker(house.address, house.folder, limits=limits), worker(house.address, house.folder, limits=limits):
        views = [
            await runs.submit(Submission(plan=plan(f"put({user!r}, {n})\nanswer(1)", house.folder), user=user))
            for user in USERS
            for n in range(3)
        ]
        for view in views:
            assert (await runs.wait(view.run, timeout=60)).state == "finished"
    lines = sorted(named(house.folder, "begun") + named(house.folder, "put"), key=lambda line: line["at"])
    for user in USERS:
        assert [line["name"] for line in lines if line["place"] == user] == ["begun", "put"] * 3
    # Side by side: somebody began while the other was under way.
    assert [line["name"] for line in lines] != ["begun", "put"] * 6


@pytest.mark.parametrize("house", ["sqlite"], indirect=True)
async def test_a_run_of_high_priority_is_taken_before_those_that_came_first(runs: Runs, house: House) -> None:
    source = "put('p{0}', {0})\nanswer({0})"
    views = [
        await runs.submit(Submission(plan=plan(source.format(n), house.folder), priority=priority))
        for n, priority in enumerate((9, 5, 1))
    ]
    with worker(house.address, house.folder, concurrency=1):
        for view in views:
            assert (await runs.wait(view.run, timeout=60)).state == "finished"
    assert [line["number"] for line in named(house.folder, "put")] == [2, 1, 0]
