"""Approvals: one question for all that waits, in the order of the plan, and a yes to exactly one call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from runs_boundary import BOB, EVE, ME, Compromised, Office, Person, run_office

from bicameral.plans import parse
from bicameral.policy import Policy
from bicameral.runs import (
    Answers,
    ApprovalQuestion,
    Failed,
    Finished,
    Journal,
    PendingCall,
    RunOutcome,
    Stopped,
    replay,
    run_plan,
)
from bicameral.runs._approvals import call_hash
from bicameral.tools import Origin, Registry, tool
from bicameral.types import Type

MAILS: list[Any] = [{"id": f"m{n}", "sender": f"s{n}@example.org", "body": f"text {n}"} for n in range(3)]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


def _steps(person: Person) -> list[list[str]]:
    return [[call.step for call in question.calls] for question in person.asked]


def _failure(outcome: RunOutcome) -> tuple[str, str]:
    assert isinstance(outcome, Failed), outcome
    return outcome.error.code, outcome.step


LOOP = """
mails = search_mail('x')
for m in mails:
    send(m.sender, 'thanks')
write_text('log', 'done')
answer(len(mails))
"""


async def test_a_loop_of_sends_asks_once_and_keeps_its_order() -> None:
    office, person = Office(MAILS), Person()
    outcome = await run_office(LOOP, office, approver=person)
    assert isinstance(outcome, Finished)
    assert _steps(person) == [["1[0]/0", "1[1]/0", "1[2]/0"]]
    sent = [("send", (mail["sender"], "thanks")) for mail in MAILS]
    assert office.done == [*sent, ("write_text", ("log", "done"))]
    assert [done.step for done in outcome.effects] == ["1[0]/0", "1[1]/0", "1[2]/0", "2"]


async def test_a_question_shows_the_exact_call_and_where_it_comes_from() -> None:
    office, person = Office(MAILS[:1]), Person()
    await run_office("mails = search_mail('x')\nsend(mails[0].sender, 'hi')\nanswer(1)", office, approver=person)
    (call,) = person.asked[0].calls
    assert (call.step, call.tool, call.effect, call.times) == ("1", "send", "send", 1)
    assert dict(call.arguments) == {"to": "s0@example.org", "body": "hi"}
    assert call.hash == call_hash(office.registry["send"], call.arguments)
    assert "'to'" in call.why
    (untrusted,) = call.untrusted
    assert untrusted.argument == "to"
    assert [(source.tool, source.part, source.step) for source in untrusted.sources] == [
        ("search_mail", "[].sender", "0")
    ]
    assert call.to_json()["untrusted"][0]["argument"] == "to"


async def test_only_the_approved_calls_run_and_then_nothing_further() -> None:
    office = Office(MAILS)
    person = Person(lambda call: call.arguments["to"] != "s1@example.org")
    outcome = await run_office(LOOP, office, approver=person)
    assert _failure(outcome) == ("run.refused", "1[1]/0")
    assert [facts[0] for _, facts in office.done] == ["s0@example.org", "s2@example.org"]
    assert [done.step for done in outcome.effects] == ["1[0]/0", "1[2]/0"]


FLUSHES = {
    "a read": ("b = balance('mine')", "answer(b)"),
    "a question": ("b = ask('How many?', int)", "answer(b)"),
    "a page": ("b = fetch('https://example.com')", "answer(b)"),
    "a change whose result is used": (f"b = send('{BOB}', 'two')", "answer(b)"),
}


class _Asker:
    def __init__(self, office: Office) -> None:
        self.office = office
        self.seen: list[int] = []

    async def ask(self, question: str, type: Type) -> Any:
        self.seen.append(len(self.office.done))
        return 7


@pytest.mark.parametrize("name", FLUSHES)
async def test_what_looks_at_the_world_comes_after_what_waits(name: str) -> None:
    middle, end = FLUSHES[name]
    office, person = Office(MAILS), Person()
    asker = _Asker(office)
    source = f"mails = search_mail('x')\nsend(mails[0].sender, 'one')\n{middle}\nsend(mails[1].sender, 'three')\n{end}"
    outcome = await run_office(source, office, approver=person, asker=asker)
    assert isinstance(outcome, Finished), outcome
    # The last is known already when the first must be asked about; it is done in its place all the same.
    assert _steps(person) == [["1", "3"]]
    assert [call.ahead for call in person.asked[0].calls] == [False, True]
    assert office.done[0] == ("send", ("s0@example.org", "one"))
    assert office.done[-1] == ("send", ("s1@example.org", "three"))
    assert asker.seen in ([], [1])


async def test_what_only_computes_does_not_end_the_waiting() -> None:
    office, person = Office(MAILS), Person()
    source = """
mails = search_mail('x')
send(mails[0].sender, 'one')
a = shout('two')
n = extract('x', 'how many', int)
for m in mails:
    a = a + m.id
send(mails[1].sender, a)
answer(n)
"""
    outcome = await run_office(source, office, approver=person, extractor=Compromised(3))
    assert isinstance(outcome, Finished)
    assert _steps(person) == [["1", "5"]]


async def test_a_call_whose_result_is_needed_is_asked_about_at_once_with_all_that_waits() -> None:
    office, person = Office(MAILS), Person()
    source = "mails = search_mail('x')\nsend(mails[0].sender, 'one')\nid = send(mails[1].sender, 'two')\nanswer(id)"
    outcome = await run_office(source, office, approver=person)
    assert isinstance(outcome, Finished)
    assert outcome.answer == "sent 2"
    assert _steps(person) == [["1", "2"]]


async def test_reads_that_wait_side_by_side_are_asked_about_together() -> None:
    office, person = Office(MAILS), Person()
    source = """
mails = search_mail('x')
pages = []
for m in mails:
    p = fetch(m.body)
    pages.append(p)
answer(pages)
"""
    outcome = await run_office(source, office, approver=person)
    assert isinstance(outcome, Finished)
    assert outcome.answer == ["the page text 0", "the page text 1", "the page text 2"]
    assert _steps(person) == [["2[0]/0", "2[1]/0", "2[2]/0"]]


async def test_a_refused_read_ends_the_run_at_its_step() -> None:
    office = Office(MAILS)
    source = "mails = search_mail('x')\np = fetch(mails[0].body)\nwrite_text('a', 'b')\nanswer(p)"
    assert _failure(await run_office(source, office, approver=Person(lambda call: False))) == ("run.refused", "1")
    assert office.done == []


SAME_AGAIN = """
mails = search_mail('x')
id = send(mails[0].sender, 'hi')
b = balance('mine')
send(mails[0].sender, 'hi')
c = balance('mine')
send(mails[0].sender, mails[1].body)
answer([id, b, c])
"""


async def test_a_yes_is_for_one_call_at_one_step_and_the_same_call_again_is_asked_about_again() -> None:
    office, person = Office(MAILS), Person()
    outcome = await run_office(SAME_AGAIN, office, approver=person, ahead=False)
    assert isinstance(outcome, Finished)
    assert _steps(person) == [["1"], ["3"], ["5"]]
    assert len(office.done) == 3


async def test_the_same_call_again_is_not_asked_about_again_where_the_question_said_how_often() -> None:
    office, person = Office(MAILS), Person()
    outcome = await run_office(SAME_AGAIN, office, approver=person)
    assert isinstance(outcome, Finished)
    first = person.asked[0].calls[0]
    assert (first.steps, first.times) == (("1", "3"), 2)
    assert len(person.asked) == 1
    assert len(office.done) == 3


TO_ONE = """
mails = search_mail('x')
id = send(mails[0].sender, 'hello')
b = balance('mine')
id2 = send(mails[0].sender, 'another word of mine')
secret = read_text('report.txt')
id3 = send(mails[0].sender, secret)
answer([id, id2, id3, b])
"""


async def test_a_recipient_that_was_approved_gets_nothing_more_without_a_question() -> None:
    office, person = Office(MAILS), Person(lambda call: call.arguments["body"] == "hello")
    outcome = await run_office(TO_ONE, office, approver=person, ahead=False)
    assert _failure(outcome) == ("run.refused", "3")
    assert [facts[1] for _, facts in office.done] == ["hello"]


class _Grants(Person):
    """Someone who also takes every offer for the rest of the run."""

    async def approve(self, question: ApprovalQuestion) -> Answers:
        answers = await super().approve(question)
        yes = [call for call in question.calls if call.hash in answers.approved]
        return Answers.yes(yes, for_run=[call.offer for call in yes if call.offer is not None])


async def test_a_recipient_that_was_granted_for_the_run_may_get_more_of_the_same_but_no_secrets() -> None:
    office, person = Office(MAILS), _Grants(lambda call: call.arguments["body"] != "the secret figures")
    outcome = await run_office(TO_ONE, office, approver=person, ahead=False)
    assert _failure(outcome) == ("run.refused", "5")
    assert _steps(person) == [["1"], ["5"]]
    assert [facts[1] for _, facts in office.done] == ["hello", "another word of mine"]
    offer = person.asked[0].calls[0].offer
    assert offer is not None
    assert "send with to = 's0@example.org', until the end of this run" in str(offer)
    secret = person.asked[1].calls[0].offer
    assert secret is not None
    assert ("private" in str(offer), "private" in str(secret)) == (False, True)


async def test_a_run_with_a_grant_is_replayed_identically_also_under_its_policy(journal: Journal) -> None:
    office = Office(MAILS)
    policy = Policy.load((), office.registry, me=[ME])
    outcome = await run_office(TO_ONE, office, approver=_Grants(), ahead=False, journal=journal, policy=policy)
    assert isinstance(outcome, Finished)
    granted = [event.body["granted"] for event in journal.events(outcome.run) if "granted" in event.body]
    assert [(each["tool"], each["argument"], each["value"]) for (each,) in granted] == [
        ("send", "to", "s0@example.org"),
        ("send", "to", "s0@example.org"),
    ]
    for by in (None, policy):
        again = await replay(journal, outcome.run, Office(MAILS).registry, policy=by)
        assert again.identical, again.differences


async def test_what_cannot_be_undone_is_never_offered_for_the_rest_of_the_run() -> None:
    office, person = Office(MAILS), Person()
    await run_office("mails = search_mail('x')\npay(mails[0].sender, 5)\nanswer(1)", office, approver=person)
    assert person.asked[0].calls[0].offer is None


async def test_a_grant_that_was_not_offered_is_no_answer() -> None:
    class Forges(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            call = question.calls[0]
            assert call.offer is not None
            return Answers.yes([call], for_run=[replace(call.offer, value=EVE)])

    office = Office(MAILS)
    assert _failure(await run_office(TO_ONE, office, approver=Forges(), ahead=False)) == ("run.refused", "1")
    assert office.done == []


def test_a_yes_is_bound_to_the_declaration_of_the_tool() -> None:
    send = Office().registry["send"]
    given = {"to": BOB, "body": "hi"}
    declared_otherwise = replace(send, receivers=("body",)), replace(send, version="2"), replace(send, effect="write")
    assert len({call_hash(each, given) for each in (send, *declared_otherwise)}) == 4
    assert call_hash(send, given) == call_hash(Office().registry["send"], dict(reversed(given.items())))


async def test_a_recipient_that_was_endorsed_for_one_tool_is_not_for_another() -> None:
    source = "mails = search_mail('x')\nid = send(mails[0].sender, 'hello')\npay(mails[0].sender, 5)\nanswer(id)"
    for person in (Person(lambda call: call.tool == "send"), _Grants(lambda call: call.tool == "send")):
        office = Office(MAILS)
        assert _failure(await run_office(source, office, approver=person, ahead=False)) == ("run.refused", "2")
        assert _steps(person) == [["1"], ["2"]]
        assert [what for what, _ in office.done] == ["send"]


async def test_a_no_to_a_call_that_is_to_come_holds_also_where_a_grant_would_allow_it() -> None:
    source = "mails = search_mail('x')\nid = send(mails[0].sender, 'one')\nsend(mails[0].sender, 'two')\nanswer(id)"
    office, person = Office(MAILS), _Grants(lambda call: call.arguments["body"] == "one")
    assert _failure(await run_office(source, office, approver=person)) == ("run.refused", "2")
    assert _steps(person) == [["1", "2"]]
    assert [facts[1] for _, facts in office.done] == ["one"]


class _Meddler:
    """Says yes and changes what it was shown."""

    def __init__(self) -> None:
        self.shown: list[PendingCall] = []

    async def approve(self, question: ApprovalQuestion) -> Answers:
        for call in question.calls:
            self.shown.append(call)
            with pytest.raises(TypeError):
                call.arguments["to"] = EVE  # type: ignore[index]
            changeable = call.arguments["names"]
            changeable.append(EVE)
        return Answers.yes(question.calls)


async def test_what_is_done_is_what_was_shown_and_not_what_became_of_it() -> None:
    told: list[list[str]] = []

    @tool(effect="send", purpose={"names": "directs"}, origins=Origin("system"))
    def tell(names: list[str]) -> None:
        """Tell them."""
        told.append(names)

    office = Office(MAILS)
    registry = Registry([*office.registry, tell])
    plan = parse("mails = search_mail('x')\ntell([m.sender for m in mails])\nanswer(1)", registry).plan
    outcome = await run_plan(plan, registry, policy=Policy.load((), registry), approver=_Meddler())
    assert isinstance(outcome, Finished)
    assert told == [["s0@example.org", "s1@example.org", "s2@example.org"]]


async def test_a_yes_to_one_call_is_not_a_yes_to_a_call_that_was_changed() -> None:
    """The approver approves a hash that was never asked about: that is no yes to anything."""

    class Elsewhere:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            return Answers.yes([replace(call, hash="0" * 64) for call in question.calls])

    office = Office(MAILS)
    assert _failure(await run_office(LOOP, office, approver=Elsewhere())) == ("run.refused", "1[0]/0")
    assert office.done == []


@pytest.mark.parametrize("what", [None, True, "yes", ["all"]])
async def test_what_is_no_answer_is_a_no(what: Any) -> None:
    class Odd:
        async def approve(self, question: ApprovalQuestion) -> Any:
            return what

    office = Office(MAILS)
    assert _failure(await run_office(LOOP, office, approver=Odd()))[0] == "run.refused"
    assert office.done == []


async def test_an_approver_that_fails_is_a_no() -> None:
    class Broken:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            raise OSError("the terminal is gone")

    office = Office(MAILS)
    outcome = await run_office(LOOP, office, approver=Broken())
    assert _failure(outcome) == ("run.refused", "1[0]/0")
    assert office.done == []


async def test_the_same_call_many_times_is_shown_once_with_how_often() -> None:
    office, person = Office(MAILS), Person()
    source = "n = extract('x', 'how often', int)\nfor i in range(n):\n    pay('bob', 1)\nanswer(1)"
    await run_office(source, office, approver=person, extractor=Compromised(4))
    assert [(call.step, call.times) for call in person.asked[0].calls] == [("1[0]/0", 4)]
    assert len(office.done) == 4


async def test_a_step_that_fails_while_calls_wait_leaves_them_undone() -> None:
    office, person = Office(MAILS), Person()
    source = "mails = search_mail('x')\nsend(mails[0].sender, 'hi')\nn = 1 // len([])\nanswer(n)"
    outcome = await run_office(source, office, approver=person)
    assert _failure(outcome) == ("run.division-by-zero", "2")
    assert (office.done, outcome.effects, person.asked) == ([], (), [])


async def test_a_tool_that_fails_after_a_yes_ends_the_run_at_its_own_step() -> None:
    office, person = Office(MAILS), Person()
    office.files = {}
    source = "mails = search_mail('x')\nsend(mails[0].sender, 'hi')\nt = read_text('gone')\nanswer(t)"
    assert _failure(await run_office(source, office, approver=person)) == ("tools.failed", "2")
    assert len(office.done) == 1


async def test_a_run_that_is_stopped_while_a_person_thinks_has_done_nothing(journal: Journal) -> None:
    asked = asyncio.Event()

    class Slow:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            asked.set()
            await asyncio.sleep(60)
            return Answers.yes(question.calls)

    office = Office(MAILS)
    running = asyncio.create_task(run_office(LOOP, office, approver=Slow(), journal=journal))
    await asked.wait()
    running.cancel()
    outcome = await running
    assert isinstance(outcome, Stopped)
    assert (office.done, outcome.effects) == ([], ())
    again = await replay(journal, outcome.run, Office(MAILS).registry)
    assert again.identical, again.differences


async def test_approvals_are_in_the_journal_before_what_they_allow(journal: Journal) -> None:
    office = Office(MAILS)
    person = Person(lambda call: call.arguments["to"] != "s2@example.org")
    outcome = await run_office(LOOP, office, approver=person, journal=journal)
    events = journal.events(outcome.run)
    (approval,) = [event for event in events if event.kind == "approval"]
    hashes = [call.hash for call in person.asked[0].calls]
    assert [call["hash"] for call in approval.body["calls"]] == hashes
    assert approval.body["approved"] == sorted(hashes[:2])
    begun = [event.number for event in events if event.kind == "step-started" and event.body["tool"] == "send"]
    assert len(begun) == 2
    assert approval.number < min(begun)
    waits = [event.step for event in events if event.kind == "call-waits"]
    assert waits == ["1[0]/0", "1[1]/0", "1[2]/0", "2"]
