"""A run waits for a person without a process, and is taken up with the answer: by whom, to what, and never more."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from runs_boundary import EVE, ME, Compromised, Office, Person

from bicameral.plans import parse
from bicameral.policy import Policy
from bicameral.runs import (
    Answers,
    ApprovalQuestion,
    Failed,
    Finished,
    Journal,
    PlanEngine,
    RunOutcome,
    Suspend,
    Waiting,
    check_plan,
    replay,
    resume_plan,
    run_plan,
)
from bicameral.tools import Registry, call_key, tool
from bicameral.types import Type

MAILS: list[Any] = [{"id": f"m{n}", "sender": f"s{n}@example.org", "body": f"text {n}"} for n in range(3)]

PAY_ASKS = '@ask("Really?")\nforbid (principal, action, resource in Tool::"pay");'


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


class Later:
    """Somebody who will answer some other day."""

    def __init__(self) -> None:
        self.asked: list[ApprovalQuestion] = []

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.asked.append(question)
        raise Suspend

    async def ask(self, question: str, type: Type) -> Any:
        raise Suspend


async def _begin(source: str, office: Office, journal: Journal | None, **options: Any) -> RunOutcome:
    registry = office.registry
    options.setdefault("approver", Later())
    options.setdefault("policy", Policy.load((), registry, me=[ME]))
    return await run_plan(
        parse(source, registry).plan, registry, journal=journal, extractor=Compromised(), run="r1", **options
    )


async def _resume(office: Office, journal: Journal, **options: Any) -> RunOutcome:
    registry = office.registry
    options.setdefault("policy", Policy.load((), registry, me=[ME]))
    return await resume_plan(journal, "r1", registry, extractor=Compromised(), **options)


def _kinds(journal: Journal) -> list[str]:
    return [event.kind for event in journal.events("r1")]


LOOP = """
mails = search_mail('x')
for m in mails:
    send(m.sender, 'thanks')
write_text('log', 'done')
answer(len(mails))
"""


async def test_a_run_waits_without_a_process_and_goes_on_with_the_answer(journal: Journal) -> None:
    office = Office(MAILS)
    outcome = await _begin(LOOP, office, journal)
    assert isinstance(outcome, Waiting)
    assert outcome.question is not None
    assert [call.step for call in outcome.question.calls] == ["1[0]/0", "1[1]/0", "1[2]/0"]
    assert (office.done, outcome.effects, outcome.ok) == ([], (), False)
    assert _kinds(journal)[-1] == "run-waits"
    finished = await _resume(office, journal, approver=Person())
    assert isinstance(finished, Finished)
    assert [name for name, _ in office.done] == ["send", "send", "send", "write_text"]
    assert [done.step for done in finished.effects] == ["1[0]/0", "1[1]/0", "1[2]/0", "2"]
    assert (await replay(journal, "r1", office.registry)).identical


async def test_the_mail_is_not_read_again_when_the_answer_comes(journal: Journal) -> None:
    office = Office(MAILS)
    await _begin(LOOP, office, journal)
    office.mails = [{"id": "m9", "sender": EVE, "body": "me too"}]  # pyright: ignore[reportAttributeAccessIssue]
    await _resume(office, journal, approver=Person())
    assert [arguments[0] for name, arguments in office.done if name == "send"] == [m["sender"] for m in MAILS]


async def test_a_no_that_comes_later_is_a_no(journal: Journal) -> None:
    office = Office(MAILS)
    await _begin(LOOP, office, journal)
    outcome = await _resume(office, journal, approver=Person(lambda call: False))
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, office.done) == ("run.refused", [])


async def test_nobody_there_when_it_is_resumed_means_no(journal: Journal) -> None:
    office = Office(MAILS)
    await _begin(LOOP, office, journal)
    outcome = await _resume(office, journal)
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, office.done) == ("run.needs-approval", [])


async def test_it_may_wait_as_often_as_it_likes_and_is_asked_only_what_is_open(journal: Journal) -> None:
    office, person = Office(MAILS), Person()
    source = """
mails = search_mail('x')
id = send(mails[0].sender, 'first')
page = look_up(id)
send(mails[1].sender, page)
answer(1)
"""
    assert isinstance(await _begin(source, office, journal), Waiting)

    class First(Later):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            if question.calls[0].step == "1":
                return await person.approve(question)
            return await super().approve(question)

    later = First()
    second = await _resume(office, journal, approver=later)
    assert isinstance(second, Waiting)
    assert second.question is not None
    assert [call.step for call in second.question.calls] == ["3"]
    assert [name for name, _ in office.done] == ["send"]
    again = await _resume(office, journal, approver=later)
    assert isinstance(again, Waiting)
    assert len(person.asked) == 1
    last = await _resume(office, journal, approver=person)
    assert isinstance(last, Finished)
    assert [[call.step for call in question.calls] for question in person.asked] == [["1"], ["3"]]
    assert [name for name, _ in office.done] == ["send", "send"]
    assert _kinds(journal).count("run-waits") == 3


async def test_a_question_before_the_first_step_waits_too(journal: Journal) -> None:
    office = Office()
    registry = office.registry
    policy = Policy.parse(PAY_ASKS)
    plan = parse("t = read_text('report.txt')\npay('bob', 5)\nanswer(t)", registry).plan
    checked = check_plan(plan, registry, policy)
    outcome = await run_plan(checked, registry, journal=journal, policy=policy, run="r1", approver=Later())
    assert isinstance(outcome, Waiting)
    assert outcome.question is not None
    assert outcome.question.before
    assert "step-started" not in _kinds(journal)
    person = Person()
    finished = await _resume(office, journal, approver=person, policy=policy)
    assert isinstance(finished, Finished)
    assert len(person.asked) == 1


class Clerk:
    """Answers what he is asked from a book, and lets the run wait for everything else."""

    def __init__(self, book: dict[str, Any]) -> None:
        self.book = book
        self.keys: list[str | None] = []

    async def ask(self, question: str, type: Type) -> Any:
        key = call_key()
        self.keys.append(key)
        if key is None or key not in self.book:
            raise Suspend
        return self.book[key]


async def test_a_plan_that_asks_can_wait_for_the_reply(journal: Journal) -> None:
    office, book = Office(), dict[str, Any]()
    source = """
who = ask('Whom?', str)
also = ask('Whom?', str)
write_text('who', who + also)
answer(who + also)
"""
    clerk = Clerk(book)
    outcome = await _begin(source, office, journal, asker=clerk)
    seen: list[str] = []
    while isinstance(outcome, Waiting):
        assert outcome.question is None
        assert outcome.ask is not None
        assert outcome.ask.question == "Whom?"
        assert outcome.ask.key not in book
        assert office.done == []
        seen.append(outcome.ask.step)
        book[outcome.ask.key] = f"answer {len(seen)}; "
        outcome = await _resume(office, journal, asker=clerk)
    assert isinstance(outcome, Finished)
    assert sorted(seen) == ["0", "1"]
    assert outcome.answer in ("answer 1; answer 2; ", "answer 2; answer 1; ")
    assert [name for name, _ in office.done] == ["write_text"]


def _engines() -> set[int]:
    """The engines that are in memory, also those that earlier tests left."""
    gc.collect()
    return {id(each) for each in gc.get_objects() if type(each) is PlanEngine}


async def test_what_is_under_way_comes_to_its_end_and_nothing_is_left_behind(journal: Journal) -> None:
    done: list[str] = []

    @tool(effect="write")
    async def slow_write(text: str) -> None:
        """Takes its time."""
        await asyncio.sleep(0.2)
        done.append(text)

    @tool(effect="read")
    async def slow_read(text: str) -> str:
        """Takes far too long."""
        await asyncio.sleep(30)
        return text

    registry = Registry([slow_write, slow_read])
    source = "slow_write('a')\nx = ask('Which?', str)\nt = slow_read('b')\nanswer(x + t)"
    before, engines = len(asyncio.all_tasks()), _engines()
    outcome = await asyncio.wait_for(
        run_plan(parse(source, registry).plan, registry, journal=journal, asker=Later(), run="r1"), 10
    )
    assert isinstance(outcome, Waiting)
    assert [done, [effect.step for effect in outcome.effects]] == [["a"], ["0"]]
    assert len(asyncio.all_tasks()) == before
    assert _engines() <= engines


async def test_a_tool_cannot_let_the_run_wait(journal: Journal) -> None:
    @tool(effect="write")
    def sly() -> None:
        """Pretends to be a person."""
        raise Suspend

    registry = Registry([sly])
    plan = parse("sly()\nanswer(1)", registry).plan
    outcome = await run_plan(plan, registry, journal=journal)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "tools.failed"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (LOOP, "run.needs-approval"),
        ("x = ask('Whom?', str)\nanswer(x)", "run.needs-answer"),
    ],
)
@pytest.mark.parametrize("how", ["no journal", "part of a whole"])
async def test_a_run_that_nobody_could_resume_does_not_wait(journal: Journal, source: str, code: str, how: str) -> None:
    office, later = Office(MAILS), Later()
    options: dict[str, Any] = {"link": {"reason": "x", "round": 1}} if how == "part of a whole" else {}
    outcome = await _begin(
        source,
        office,
        journal if options else None,
        approver=later,
        asker=later,
        **options,
    )
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, office.done) == (code, [])


# Attacks: an answer is used for another call than the one that was shown.


async def test_an_answer_does_not_cover_a_call_that_was_not_shown(journal: Journal) -> None:
    office = Office(MAILS)
    await _begin(LOOP, office, journal)

    class Generous:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            shown = question.calls[:1]
            return Answers(frozenset({shown[0].hash, "0" * 64}))

    outcome = await _resume(office, journal, approver=Generous())
    assert isinstance(outcome, Failed)
    assert [arguments[0] for name, arguments in office.done if name == "send"] == ["s0@example.org"]


async def test_an_approver_that_narrows_the_question_waits_for_the_rest_only(journal: Journal) -> None:
    office = Office(MAILS)

    class Partly:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            raise Suspend(ApprovalQuestion(question.calls[1:]))

    outcome = await _begin(LOOP, office, journal, approver=Partly())
    assert isinstance(outcome, Waiting)
    assert outcome.question is not None
    assert [call.step for call in outcome.question.calls] == ["1[1]/0", "1[2]/0"]


async def test_a_yes_holds_after_the_process_died_for_the_same_call_and_no_other(journal: Journal) -> None:
    """The yes is recorded, the process dies before the call, and the plan goes on to a second call to somebody else."""
    office = Office(MAILS)
    source = """
mails = search_mail('x')
id = send(mails[0].sender, 'hi')
send(mails[1].sender, id)
answer(1)
"""
    first = await _begin(source, office, journal, approver=_dying_after_yes(journal, office))
    assert type(first).__name__ == "Interrupted"
    assert office.done == []
    person = Person()
    outcome = await _resume(office, journal, approver=person)
    assert isinstance(outcome, Finished)
    assert [[call.arguments["to"] for call in question.calls] for question in person.asked] == [["s1@example.org"]]


def _dying_after_yes(journal: Journal, office: Office) -> Person:
    """Says yes, and as soon as that is recorded the journal takes nothing more."""
    write: Callable[..., Any] = journal.append_all
    from bicameral.errors import JournalError

    def once(run: str, entries: Any, *, first: int | None = None, sync: bool = False) -> Any:
        written = write(run, entries, first=first, sync=sync)
        if any(entry.kind == "approval" for entry in entries):

            def dead(*_: Any, **__: Any) -> Any:
                journal.append_all = write
                raise JournalError("journal.failed", "the process is dead")

            journal.append_all = dead
        return written

    journal.append_all = once
    return Person()


async def test_no_answer_makes_a_resumed_run_trust_more_than_the_first_attempt(journal: Journal) -> None:
    """Somebody calls the folder his own between the attempts: what was read would have better labels than before."""
    trusted = False

    def tools() -> Registry:
        office = Office()

        @tool(effect="read", outbound=False, purpose={"path": "selects"}, owned=lambda arguments: trusted)
        def read_note(path: str) -> str:
            """A note that may be anybody's."""
            return EVE

        return Registry([*office.registry, read_note])

    registry = tools()
    policy = Policy.load((), registry, me=[ME])
    plan = parse("t = read_note('x')\nsend(t, 'hi')\nanswer(1)", registry).plan
    outcome = await run_plan(plan, registry, journal=journal, policy=policy, approver=Later(), run="r1")
    assert isinstance(outcome, Waiting)
    trusted = True
    person = Person(lambda call: True)
    again = await resume_plan(journal, "r1", registry, policy=policy, approver=person)
    assert isinstance(again, Failed)
    assert (again.error.code, person.asked) == ("run.changed", [])
