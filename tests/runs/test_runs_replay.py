"""A recorded run can be run again from its record, to the byte, without touching anything."""

from __future__ import annotations

import dataclasses
import datetime as dt
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from runs_boundary import Office, Person, run_office
from runs_world import World, plan_of, run_source

from bicameral.boundary import Extractor
from bicameral.errors import JournalError
from bicameral.models import ScriptedProvider
from bicameral.policy import Policy
from bicameral.runs import Failed, Finished, Journal, RunOutcome, replay, run_plan
from bicameral.tools import Origin, Registry, tool
from bicameral.types import Type


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


class _Person:
    async def ask(self, question: str, type: Type) -> Any:
        return 7


LOOPS = """
total = 0
days = []
for n in range(5):
    m = double(n)
    total += m
    poke("x", total)
v = peek("x")
answer({"total": total, "v": v, "half": v / 2})
"""


async def _run(source: str, journal: Journal, world: World | None = None, **options: Any) -> RunOutcome:
    return await run_source(source, (world or World([3, 0, 2])).registry, journal=journal, **options)


async def test_a_replay_gives_the_same_answer_and_touches_nothing(journal: Journal) -> None:
    outcome = await _run(LOOPS, journal)
    assert isinstance(outcome, Finished)
    untouched = World()
    again = await replay(journal, outcome.run, untouched.registry)
    assert (again.identical, again.answer) == (True, outcome.answer)
    assert again.outcome.effects == outcome.effects
    assert (untouched.calls, untouched.cells) == (0, {})
    assert len(list(journal.runs())) == 1


async def test_questions_and_extractions_are_answered_from_the_record(journal: Journal) -> None:
    extractor = Extractor(ScriptedProvider(lambda request: '{"n": 3, "day": "2026-03-01"}'))
    source = """
n = ask("How many?", int)
found = extract("three on the first of March", "what and when", {"n": int, "day": date})
answer([n + found.n, found.day])
"""
    outcome = await _run(source, journal, asker=_Person(), extractor=extractor)
    assert isinstance(outcome, Finished)
    assert outcome.answer == [10, dt.date(2026, 3, 1)]
    again = await replay(journal, outcome.run, Registry())
    assert (again.identical, again.answer) == (True, outcome.answer)


FAILURES = {
    "a tool": "a = double(1)\nb = picky(5)\nc = double(b)\nanswer(a + c)",
    "an expression": "a = peek('x')\nb = 1 // a\nanswer(b)",
    "a turn of a loop": "for n in [1, 2, 5, 6]:\n    m = picky(n)\n    k = double(m)\nanswer(k)",
    "a question": "n = ask('How many?', int)\nanswer(n)",
    "an extraction": "n = extract('text', 'what', int)\nanswer(n)",
    "an argument": "xs = ['a']\npoke(xs[0], 'b')\nanswer(1)",
    "two at once": "a = picky(5)\nb = picky(10)\nc = 1 // (a - a)\nanswer(b)",
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failed_run_fails_again_in_the_same_way(journal: Journal, name: str) -> None:
    outcome = await _run(FAILURES[name], journal)
    assert isinstance(outcome, Failed)
    assert outcome.step
    again = await replay(journal, outcome.run, World().registry)
    assert again.identical, again.differences
    assert isinstance(again.outcome, Failed)
    assert again.outcome.error.to_json() == outcome.error.to_json()


async def test_a_tool_with_another_declaration_is_named(journal: Journal) -> None:
    outcome = await _run("answer(double(4))", journal)

    @tool(effect="pure", version="2")
    async def double(number: int) -> int:
        """Twice the number, improved."""
        return number + number

    again = await replay(journal, outcome.run, Registry([double]))
    assert not again.identical
    assert again.differences == ("the tool 'double' has another declaration than in the run",)
    assert again.answer == 8


async def test_a_tool_that_is_gone_is_an_error(journal: Journal) -> None:
    outcome = await _run("answer(double(4))", journal)
    with pytest.raises(JournalError) as caught:
        await replay(journal, outcome.run, Registry())
    assert caught.value.code == "journal.tool-gone"


CHANGES = {
    "answer(double(5))": "step 0: 'arguments' is not as recorded",
    "a = double(4)\nanswer(a + 1)": "the answer differs from the record",
    "a = double(4)\nb = double(a)\nanswer(a)": "the end was 'run-finished' and is 'run-failed' in the replay",
    "answer(8)": "step 0 was recorded and not run again",
    "answer(picky(4))": "step 0: 'tool' is not as recorded",
}


@pytest.mark.parametrize(("source", "difference"), CHANGES.items())
async def test_another_plan_is_held_against_the_record(journal: Journal, source: str, difference: str) -> None:
    registry = World().registry
    outcome = await run_plan(plan_of("answer(double(4))", registry), registry, journal=journal)
    same = await replay(journal, outcome.run, registry, plan=plan_of("answer(double(4))", registry))
    assert same.identical
    again = await replay(journal, outcome.run, registry, plan=plan_of(source, registry))
    assert not again.identical
    assert {"the plan is not the recorded one", difference} <= set(again.differences)


async def test_numbers_that_are_equal_and_not_the_same_are_a_difference(journal: Journal) -> None:
    registry = World().registry
    outcome = await run_plan(plan_of("answer([1, 2])", registry), registry, journal=journal)
    again = await replay(journal, outcome.run, registry, plan=plan_of("answer([1.0, 2])", registry))
    assert "the answer differs from the record" in again.differences


async def test_a_record_that_was_changed_is_not_replayed(journal: Journal) -> None:
    outcome = await _run("answer(double(4))", journal)
    with closing(sqlite3.connect(journal.path, isolation_level=None)) as db:
        db.execute("DROP TRIGGER events_stay")
        db.execute(
            """UPDATE events SET body = replace(body, '"result":8', '"result":9') WHERE kind = 'step-finished'"""
        )
    with pytest.raises(JournalError) as caught:
        await replay(journal, outcome.run, World().registry)
    assert caught.value.code == "journal.damaged"


async def test_large_values_are_replayed_from_their_one_copy(journal: Journal) -> None:
    @tool(effect="read")
    async def read_all() -> list[str]:
        """Many lines."""
        return [f"line {n}" for n in range(5000)]

    @tool(effect="pure")
    async def longest(lines: list[str]) -> str:
        """The longest line."""
        return max(lines, key=len)

    registry = Registry([read_all, longest])
    outcome = await run_source("answer(longest(read_all()))", registry, journal=journal)
    again = await replay(journal, "last", registry)
    assert isinstance(outcome, Finished)
    assert (again.identical, again.answer) == (True, outcome.answer)


# With labels ---------------------------------------------------------------------------------------------------------

BOUNDARY = """
mails = search_mail('x')
to = extract(mails[0].body, 'who', str)
notes = []
for m in mails:
    t = look_up(m.id)
    notes.append(t)
send(to, 'hi')
write_text('log', 'done')
b = balance('mine')
id = send(to, 'hello again')
pay('bob', b)
n = ask('How many?', int)
answer({'notes': notes, 'id': id, 'n': n})
"""
PEOPLE: dict[str, Any] = {
    "yes to everything": Person(),
    "no to everything": Person(lambda call: False),
    "yes to one": Person(lambda call: call.arguments.get("body") == "hi"),
    "nobody": None,
}


@pytest.mark.parametrize("who", PEOPLE)
async def test_a_run_with_labels_decisions_and_approvals_is_replayed_identically(journal: Journal, who: str) -> None:
    office = Office()
    policy = Policy.load((), office.registry)
    outcome = await run_office(BOUNDARY, office, policy=policy, journal=journal, approver=PEOPLE[who], asker=_Person())
    for again_by in (None, policy):
        untouched = Office()
        again = await replay(journal, outcome.run, untouched.registry, policy=again_by)
        assert again.identical, again.differences
        assert type(again.outcome) is type(outcome)
        assert again.outcome.effects == outcome.effects
        assert untouched.done == []
        if isinstance(outcome, Finished) and isinstance(again.outcome, Finished):
            assert again.outcome.shade is outcome.shade
        if isinstance(outcome, Failed) and isinstance(again.outcome, Failed):
            assert again.outcome.error.to_json() == outcome.error.to_json()


async def test_a_denied_call_is_denied_again(journal: Journal) -> None:
    office = Office()
    policy = Policy.parse('forbid (principal, action, resource in Tool::"pay");', office.registry)
    source = "mails = search_mail('x')\nsend(mails[0].sender, 'hi')\npay('bob', 1)\nanswer(1)"
    outcome = await run_office(source, office, policy=policy, journal=journal, approver=Person())
    assert isinstance(outcome, Failed)
    assert [event.kind for event in journal.events(outcome.run)][-3:] == ["call-waits", "call-denied", "run-failed"]
    again = await replay(journal, outcome.run, Office().registry)
    assert again.identical, again.differences
    # Without the policy that denied it, the replay says what is different and does nothing.
    other = await replay(journal, outcome.run, Office().registry, policy=Policy.load((), office.registry))
    assert not other.identical
    assert "the policies are not those of the run" in other.differences


async def test_other_origins_give_other_labels_and_that_is_a_difference(journal: Journal) -> None:
    office = Office()
    outcome = await run_office("answer(search_mail('x'))", office, journal=journal)
    renamed = [
        dataclasses.replace(each, origins={"": Origin("third_party")}) if each.name == "search_mail" else each
        for each in office.registry
    ]
    again = await replay(journal, outcome.run, Registry(renamed))
    assert "the tool 'search_mail' has another declaration than in the run" in again.differences
    assert "step 0: 'shade' is not as recorded" in again.differences
    assert "the shade differs from the record" in again.differences


async def test_a_record_without_labels_is_replayed_without(journal: Journal) -> None:
    outcome = await _run(LOOPS, journal)
    assert isinstance(outcome, Finished)
    assert outcome.shade is None
    registry = World().registry
    again = await replay(journal, outcome.run, registry, policy=Policy.load((), registry))
    assert again.identical
    assert isinstance(again.outcome, Finished)
    assert again.outcome.shade is None
