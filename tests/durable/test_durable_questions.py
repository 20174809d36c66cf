"""Many questions at once: page by page, counted without being read, and each user's own."""

from __future__ import annotations

import json

import pytest

from bicameral.durable import Runs
from bicameral.durable._questions import insert_question
from bicameral.errors import DurableError

LONG = 3_600.0


async def ask(runs: Runs, user: str, *ids: str, within: float = LONG) -> None:
    for id in ids:
        content = json.dumps({"calls": [], "request": "x" * 10_000})
        await runs.dispatch.run(insert_question, id, f"run-of-{id}", user, content, "[]", within)


async def test_questions_come_page_by_page_and_none_twice(runs: Runs) -> None:
    ids = [f"q{number}" for number in range(7)]
    await ask(runs, "ann", *ids)
    await ask(runs, "bob", "other")
    seen: list[str] = []
    while page := await runs.approvals("ann", limit=3, after=seen[-1] if seen else None):
        seen += [each.id for each in page]
    assert seen == ids
    # The last one of a page was answered meanwhile: the next page begins behind it all the same.
    await runs.answer("q2", "none")
    assert [each.id for each in await runs.approvals("ann", limit=2, after="q2")] == ["q3", "q4"]
    back: list[str] = []
    while page := await runs.approvals("ann", False, 3, after=back[-1] if back else None):
        back += [each.id for each in page]
    assert back == ids[::-1]


async def test_a_page_after_a_question_of_somebody_else_is_none(runs: Runs) -> None:
    await ask(runs, "ann", "mine")
    await ask(runs, "bob", "theirs")
    with pytest.raises(DurableError, match="no such question"):
        await runs.approvals("ann", after="theirs")
    with pytest.raises(DurableError, match="no such question"):
        await runs.approvals(after="min")


async def test_open_questions_are_counted_by_their_users(runs: Runs) -> None:
    assert (await runs.open_questions()).total == 0
    await ask(runs, "ann", "a", "b", "c")
    await ask(runs, "bob", "d")
    await ask(runs, "bob", "over", within=-1.0)
    await runs.answer("b", "none")
    everybody = await runs.open_questions()
    assert (dict(everybody.by_user), everybody.total) == ({"ann": 2, "bob": 1}, 3)
    assert dict((await runs.open_questions("bob")).by_user) == {"bob": 1}
    assert everybody.newest > (await runs.open_questions("ann")).newest > 0


async def test_what_was_seen_is_told_from_what_came_later(runs: Runs) -> None:
    await ask(runs, "ann", "a", "b", "not-on-the-page")
    since = (await runs.open_questions("ann")).newest
    await ask(runs, "ann", "new")
    await ask(runs, "bob", "theirs")
    await runs.answer("a", "none")
    assert await runs.still_open(["a", "b", "theirs"], "ann", since) == ({"b"}, 1)
    assert await runs.still_open([], None, since) == (frozenset(), 2)
