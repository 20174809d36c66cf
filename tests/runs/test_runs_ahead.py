"""Asking ahead: one question for what is due and for what is known to come, and never a yes to anything else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from runs_boundary import BOB, EVE, ME, Compromised, Office, Person, run_office
from test_runs_attached import Post

from bicameral.boundary import ExtractionOutcome, Filled
from bicameral.plans import parse
from bicameral.policy import Policy
from bicameral.runs import (
    Answers,
    ApprovalQuestion,
    ApprovalRequired,
    Failed,
    Finished,
    Journal,
    PendingCall,
    RunOutcome,
    check_plan,
    replay,
    run_plan,
)
from bicameral.runs._call_gate import MAX_CALLS_AHEAD
from bicameral.runs._lookahead import MAX_LOOKAHEAD_STEPS
from bicameral.runs._scheduler import Activity
from bicameral.tools import Origin, Tool, tool
from bicameral.types import Type

MAILS: list[Any] = [{"id": f"m{n}", "sender": f"s{n}@example.org", "body": f"text {n}"} for n in range(3)]
PAY_ASKS = """
@ask("Pay it?")
forbid (principal, action, resource in Tool::"pay");
"""
TWO = """
mails = search_mail('x')
send(mails[0].sender, 'one')
b = balance('mine')
send(mails[1].sender, 'two')
c = balance('mine')
answer([b, c])
"""


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


def _steps(person: Person) -> list[list[str]]:
    return [[call.step for call in question.calls] for question in person.asked]


def _failure(outcome: RunOutcome) -> tuple[str, str]:
    assert isinstance(outcome, Failed), outcome
    return outcome.error.code, outcome.step


async def _replayed(journal: Journal, outcome: RunOutcome, policy: Policy | None = None) -> None:
    for again_by in (None, policy) if policy is not None else (None,):
        again = await replay(journal, outcome.run, Office().registry, policy=again_by)
        assert again.identical, again.differences
        assert again.outcome.effects == outcome.effects


# What is gathered ---------------------------------------------------------------------------------------------------


async def test_what_is_known_to_come_is_asked_about_with_what_is_due_and_done_in_its_place() -> None:
    office, person = Office(MAILS), Person()
    outcome = await run_office(TWO, office, approver=person)
    assert isinstance(outcome, Finished)
    assert _steps(person) == [["1", "3"]]
    assert [call.ahead for call in person.asked[0].calls] == [False, True]
    assert not person.asked[0].before
    assert [facts[1] for _, facts in office.done] == ["one", "two"]
    assert [done.step for done in outcome.effects] == ["1", "3"]


async def test_the_turns_of_a_loop_whose_results_are_used_are_asked_about_together() -> None:
    source = """
mails = search_mail('x')
ids = []
for m in mails:
    id = send(m.sender, 'hi')
    ids.append(id)
answer(ids)
"""
    office, person = Office(MAILS), Person()
    outcome = await run_office(source, office, approver=person)
    assert isinstance(outcome, Finished)
    assert outcome.answer == ["sent 1", "sent 2", "sent 3"]
    assert _steps(person) == [["2[0]/0", "2[1]/0", "2[2]/0"]]


@pytest.mark.parametrize("depth", [0, 3, 12])
async def test_a_call_behind_nested_blocks_is_waited_for_before_a_question_is_put(depth: int) -> None:
    lines = ["mails = search_mail('x')", "t = 'a'", "a = fetch(mails[0].body)"]
    for level in range(depth):
        lines += ["    " * level + f"for x{level} in mails[:1]:", "    " * (level + 1) + f"q{level} = x{level}.id"]
    # A step after each inner loop, so that every level ends in a job of its own.
    lines += ["    " * level + "t = shout(t)" for level in range(depth, -1, -1)]
    source = "\n".join([*lines, "b = fetch(mails[1].body + t)", "answer([a, b])"])
    person = Person()
    outcome = await run_office(source, Office(list(MAILS)), policy=Policy.parse(""), approver=person, ahead=False)
    assert isinstance(outcome, Finished), outcome
    assert [len(question.calls) for question in person.asked] == [2]


@pytest.mark.parametrize("turns", range(12))
async def test_an_effect_that_ends_while_the_run_is_watched_still_starts_what_comes_after_it(turns: int) -> None:
    activity = Activity()
    done: list[str] = []

    async def effect() -> None:
        with activity.running():
            for _ in range(turns):
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        with activity.running():
            await asyncio.sleep(0.01)
        done.append("next")

    task = asyncio.create_task(effect())
    await activity.wait_until_idle()
    assert done == ["next"]
    await task


async def test_what_is_still_being_read_is_waited_for_before_a_question_is_put() -> None:
    class Slow:
        model, overlap = "slow", 4

        async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
            await asyncio.sleep(0.05)
            return Filled("dora@example.org")

    source = """
mails = search_mail('x')
p = fetch(mails[0].body)
who = extract('x', 'who', str)
b = balance(p)
send(who, 'hi')
answer(b)
"""
    office, person = Office(MAILS), Person()
    outcome = await run_office(source, office, approver=person, extractor=Slow())
    assert isinstance(outcome, Finished)
    assert _steps(person) == [["1", "4"]]


NOT_KNOWN = {
    "needs what the call gives": "p = fetch(mails[0].body)\nsend(mails[1].sender, p)\nanswer(1)",
    "needs what is computed from it": "p = fetch(mails[0].body)\nq = p[:3]\nsend(mails[1].sender, q)\nanswer(1)",
    "is in a branch that hangs on it": (
        "p = fetch(mails[0].body)\nif len(p) > 3:\n    send(mails[1].sender, 'hi')\nanswer(1)"
    ),
    "is in a loop that hangs on it": (
        "p = fetch(mails[0].body)\nfor w in p.split():\n    send(mails[1].sender, 'hi')\nanswer(1)"
    ),
    "comes after what may end the run": (
        "p = fetch(mails[0].body)\nif len(p) > 99:\n    answer(0)\nsend(mails[1].sender, 'hi')\nanswer(1)"
    ),
    "needs a list that grows by it": (
        "ws = ['a']\np = fetch(mails[0].body)\nws.append(p)\nsend(mails[1].sender, ws[0])\nanswer(1)"
    ),
}


@pytest.mark.parametrize("name", NOT_KNOWN)
async def test_what_is_not_known_is_not_asked_about(name: str) -> None:
    office, person = Office(MAILS), Person()
    outcome = await run_office(f"mails = search_mail('x')\n{NOT_KNOWN[name]}", office, approver=person)
    assert isinstance(outcome, Finished), outcome
    assert _steps(person)[0] == ["1"] or _steps(person)[0] == ["2"]
    assert len(person.asked) == 2


async def test_what_is_certain_not_to_be_done_is_not_asked_about() -> None:
    source = """
mails = search_mail('x')
p = fetch(mails[0].body)
if len(mails) > 5:
    send(mails[1].sender, 'many')
else:
    send(mails[1].sender, 'few')
answer(p)
"""
    office, person = Office(MAILS), Person()
    await run_office(source, office, approver=person)
    assert _steps(person) == [["1", "2/else/0"]]


async def test_a_call_that_would_be_denied_is_not_asked_about_nor_is_what_comes_after_it() -> None:
    policy = Policy.parse('@reason("no payments") forbid (principal, action, resource in Tool::"pay");')
    source = """
mails = search_mail('x')
p = fetch(mails[0].body)
send(mails[1].sender, 'hi')
pay(mails[1].sender, 5)
send(mails[2].sender, 'ho')
answer(p)
"""
    office, person = Office(MAILS), Person()
    outcome = await run_office(source, office, approver=person, policy=policy)
    assert _failure(outcome) == ("policy.denied", "3")
    assert _steps(person)[0] == ["1", "2"]


async def test_nothing_is_looked_at_where_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Any, *_: Any) -> None:
        raise AssertionError("nobody is asked")

    monkeypatch.setattr("bicameral.runs._engine.Lookahead.visit_block", never)
    outcome = await run_office(f"b = balance('x')\nsend('{BOB}', 'hi')\nanswer(b)", Office(), approver=Person())
    assert isinstance(outcome, Finished)


async def test_a_look_and_a_question_are_bounded() -> None:
    source = """
n = extract('x', 'how many', int)
total = 0
p = fetch(f'https://example.com/{n}')
for i in range(n):
    send('a@example.org', f'{i}')
    b = balance(p)
answer(total)
"""
    office, person = Office(MAILS), Person(lambda call: False)
    await run_office(source, office, approver=person, extractor=Compromised(10 * MAX_LOOKAHEAD_STEPS))
    assert len(person.asked[0].calls) == 1 + MAX_CALLS_AHEAD


# Attacks ------------------------------------------------------------------------------------------------------------


async def test_a_yes_ahead_is_no_yes_to_another_argument() -> None:
    """What is known may turn out otherwise: here the approver makes it so, by what he does while he is asked."""
    source = """
xs = ['one']
mails = search_mail('x')
p = fetch(mails[0].body)
send(mails[1].sender, xs[0])
answer(p)
"""
    office = Office(MAILS)

    class Swaps(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            answers = await super().approve(question)
            if len(self.asked) == 1:
                for frame in _frames():
                    frame.values["xs"] = ["two"]
            return answers

    def _frames() -> list[Any]:
        import gc

        from bicameral.runs._variables import VariableFrame

        return [each for each in gc.get_objects() if isinstance(each, VariableFrame) and "xs" in each.values]

    person = Swaps(lambda call: call.arguments.get("body") != "two")
    outcome = await run_office(source, office, approver=person)
    assert _steps(person) == [["2", "3"], ["3"]]
    assert _failure(outcome) == ("run.refused", "3")
    assert [what for what, _ in office.done] == ["fetch"]


async def test_a_yes_ahead_does_not_hold_when_what_is_attached_has_become_a_strangers() -> None:
    """The file is harmless when it is asked about, and a stranger's text is written into it before it goes out."""
    source = f"""
mails = search_mail('x')
p = fetch(mails[0].body)
write_text('mine/a.txt', p)
send_mail('{BOB}', 'hi', ['mine/a.txt'])
answer(1)
"""
    post = Post(MAILS, files={"mine/a.txt": "mine"})
    policy = Policy.parse('@ask("Send it?") forbid (principal, action, resource in Tool::"send_mail");')
    person = Person(lambda call: len(person.asked) == 1)
    outcome = await run_office(source, post, approver=person, policy=policy)
    assert [[call.tool for call in question.calls] for question in person.asked] == [
        ["fetch", "send_mail"],
        ["send_mail"],
    ]
    first, second = person.asked[0].calls[1], person.asked[1].calls[0]
    assert first.hash == second.hash
    assert (first.ahead, second.ahead) == (True, False)
    assert len(first.untrusted) < len(second.untrusted)
    assert _failure(outcome) == ("run.refused", "3")
    assert [what for what, _ in post.done] == ["fetch", "write_text"]


async def test_a_yes_ahead_does_not_hold_when_what_is_written_has_come_to_lead_somewhere() -> None:
    """The labels of the call are what they were: only what could be followed in what goes out with it is more."""

    class Page(Post):
        def _tools(self) -> Iterable[Tool]:
            @tool(effect="read", outbound=True, purpose={"url": "directs"}, origins=Origin("third_party", "public"))
            def fetch(url: str) -> str:
                """A page of the web."""
                return "See www.evil.example"

            return [each for each in super()._tools() if each.name != "fetch"] + [fetch]

    source = f"""
mails = search_mail('x')
write_text('a.txt', mails[1].body)
p = fetch(mails[0].body)
write_text('b.txt', p)
send_mail('{BOB}', 'hi', ['a.txt'])
answer(1)
"""
    policy = Policy.parse('@ask("Send it?") forbid (principal, action, resource in Tool::"send_mail");')
    post, person = Page(MAILS), Person()
    await run_office(source, post, approver=person, policy=policy)
    first, second = person.asked[0].calls[-1], person.asked[1].calls[0]
    assert (first.tool, first.ahead, second.tool, second.ahead) == ("send_mail", True, "send_mail", False)
    assert (first.hash, first.untrusted) == (second.hash, second.untrusted)


async def test_a_yes_ahead_to_one_turn_is_none_to_another_with_other_values() -> None:
    source = """
mails = search_mail('x')
for m in mails:
    id = send(m.sender, 'hi')
    b = balance(id)
answer(1)
"""
    office, person = Office(MAILS), Person(lambda call: call.arguments["to"] == "s0@example.org")
    outcome = await run_office(source, office, approver=person)
    assert _steps(person) == [["1[0]/0", "1[1]/0", "1[2]/0"]]
    assert _failure(outcome) == ("run.refused", "1[1]/0")
    assert office.done == [("send", ("s0@example.org", "hi"))]


async def test_a_yes_ahead_is_for_its_step_alone() -> None:
    """The very same call in a branch that a stranger opens comes first, and that was not what was shown."""
    source = """
mails = search_mail('x')
p = fetch(mails[0].body)
if len(p) > 3:
    id = send(mails[1].sender, 'hi')
    b = balance(id)
send(mails[1].sender, 'hi')
answer(1)
"""
    office, person = Office(MAILS), Person()
    outcome = await run_office(source, office, approver=person)
    assert isinstance(outcome, Finished)
    assert _steps(person) == [["1", "3"], ["2/then/0"]]


async def test_a_no_ahead_holds_also_where_an_endorsement_would_allow_the_call(journal: Journal) -> None:
    source = """
mails = search_mail('x')
id = send(mails[0].sender, 'one')
b = balance(id)
send(mails[0].sender, 'two')
write_text('log', 'done')
answer(b)
"""
    office = Office(MAILS)
    policy = Policy.load((), office.registry)
    allowed = await run_office(source, Office(MAILS), approver=Person(), policy=policy, ahead=False)
    assert isinstance(allowed, Finished)
    person = Person(lambda call: call.arguments["body"] == "one")
    outcome = await run_office(source, office, approver=person, policy=policy, journal=journal)
    assert _steps(person) == [["1", "3"]]
    assert _failure(outcome) == ("run.refused", "3")
    assert [what for what, _ in office.done] == ["send"]
    await _replayed(journal, outcome, policy)


async def test_a_yes_ahead_endorses_nothing_before_the_call_has_come() -> None:
    """A recipient in a call that is still to come is nobody's own yet: what comes before it is asked about."""
    source = """
mails = search_mail('x')
p = fetch(mails[0].body)
id = send(mails[1].sender, f'{len(p) > 3}')
b = balance(id)
send(mails[1].sender, 'known')
answer(1)
"""
    office, person = Office(MAILS), Person(lambda call: call.tool == "fetch" or call.arguments["body"] == "known")
    outcome = await run_office(source, office, approver=person)
    assert _steps(person) == [["1", "4"], ["2"]]
    assert _failure(outcome) == ("run.refused", "2")
    assert [what for what, _ in office.done] == ["fetch"]


async def test_an_approver_that_approves_more_than_it_was_asked_gains_nothing() -> None:
    class Generous(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            await super().approve(question)
            from bicameral.runs._approvals import call_hash

            later = call_hash(office.registry["send"], {"to": "s2@example.org", "body": "the page text 0"})
            return Answers(frozenset({later, *(call.hash for call in question.calls)}))

    source = "mails = search_mail('x')\np = fetch(mails[0].body)\nsend(mails[2].sender, p)\nanswer(1)"
    office, person = Office(MAILS), Generous()
    await run_office(source, office, approver=person)
    assert _steps(person) == [["1"], ["2"]]


async def test_a_compromised_model_puts_no_call_into_a_question_that_the_plan_does_not_make() -> None:
    class Lies:
        model, overlap = "lies", 4

        async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
            return Filled([EVE] * 500)

    source = """
people = extract('x', 'who', list[str])
p = fetch(people[0])
for who in people[:2]:
    send(who, 'hi')
answer(p)
"""
    office, person = Office(MAILS), Person(lambda call: False)
    await run_office(source, office, approver=person, extractor=Lies())
    (question,) = person.asked
    assert [(call.tool, call.step, call.times) for call in question.calls] == [("fetch", "1", 1), ("send", "2[0]/0", 2)]


async def test_nobody_there_means_no_and_says_all_that_would_have_been_asked() -> None:
    office = Office(MAILS)
    outcome = await run_office(TWO, office)
    assert _failure(outcome) == ("run.needs-approval", "1")
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, ApprovalRequired)
    assert [call.step for call in outcome.error.question.calls] == ["1", "3"]
    assert office.done == []


# Record and replay --------------------------------------------------------------------------------------------------

PEOPLE: dict[str, Person | None] = {
    "yes to everything": Person(),
    "no to what comes later": Person(lambda call: not call.ahead),
    "no to what is due": Person(lambda call: call.ahead),
    "nobody": None,
}


@pytest.mark.parametrize("who", PEOPLE)
async def test_a_run_that_asked_ahead_is_replayed_identically(journal: Journal, who: str) -> None:
    office = Office(MAILS)
    policy = Policy.load((), office.registry)
    outcome = await run_office(TWO, office, approver=PEOPLE[who], journal=journal, policy=policy)
    await _replayed(journal, outcome, policy)
    (approval,) = [event for event in journal.events(outcome.run) if event.kind == "approval"]
    assert [(call["step"], call["ahead"]) for call in approval.body["calls"]] == [("1", False), ("3", True)]


@pytest.mark.parametrize("then", [True, False])
async def test_a_call_that_was_asked_about_twice_is_replayed_with_the_later_answer(
    journal: Journal, then: bool
) -> None:
    source = f"""
mails = search_mail('x')
p = fetch(mails[0].body)
write_text('mine/a.txt', p)
send_mail('{BOB}', 'hi', ['mine/a.txt'])
answer(1)
"""
    post = Post(MAILS, files={"mine/a.txt": "mine"})
    policy = Policy.parse('@ask("Send it?") forbid (principal, action, resource in Tool::"send_mail");')
    person = Person(lambda call: call.ahead or call.tool == "fetch" or then)
    outcome = await run_office(source, post, approver=person, policy=policy, journal=journal)
    assert len(person.asked) == 2
    assert isinstance(outcome, Finished) is then
    again = await replay(journal, outcome.run, Post().registry)
    assert again.identical, again.differences


# Before the run -----------------------------------------------------------------------------------------------------


async def _proved(source: str, office: Office, text: str = PAY_ASKS, **options: Any) -> RunOutcome:
    registry, policy = office.registry, Policy.parse(text, me=[ME])
    checked = check_plan(parse(source, registry).plan, registry, policy)
    return await run_plan(checked, registry, policy=policy, extractor=Compromised(), **options)


KNOWN = "write_text('log', 'begun')\nb = balance('mine')\npay('bob', 5)\npay('ann', 7)\nanswer(b)"


async def test_what_is_all_known_is_asked_about_before_anything_is_done(journal: Journal) -> None:
    office = Office()
    seen: list[int] = []

    class Watches(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            seen.append(len(office.done))
            return await super().approve(question)

    person = Watches()
    outcome = await _proved(KNOWN, office, approver=person, journal=journal)
    assert isinstance(outcome, Finished)
    assert (seen, _steps(person), person.asked[0].before) == ([0], [["2", "3"]], True)
    assert [what for what, _ in office.done] == ["write_text", "pay", "pay"]
    await _replayed(journal, outcome)


SAYS: dict[str, tuple[Person | None, tuple[str, str]]] = {
    "no": (Person(lambda call: False), ("run.refused", "2")),
    "no to one": (Person(lambda call: call.arguments["to"] == "bob"), ("run.refused", "3")),
    "nobody": (None, ("run.needs-approval", "2")),
}


@pytest.mark.parametrize("who", SAYS)
async def test_a_no_before_the_run_means_that_nothing_is_done(journal: Journal, who: str) -> None:
    person, failure = SAYS[who]
    office = Office()
    outcome = await _proved(KNOWN, office, approver=person, journal=journal)
    assert _failure(outcome) == failure
    assert (office.done, outcome.effects) == ([], ())
    await _replayed(journal, outcome)


async def test_what_is_not_all_known_waits_for_one_question_in_the_run() -> None:
    office, person = Office(MAILS), Person()
    source = "pay('bob', 5)\nmails = search_mail('x')\nsend(mails[0].sender, 'hi')\npay('ann', 6)\nanswer(1)"
    outcome = await _proved(source, office, approver=person)
    assert isinstance(outcome, Finished)
    assert not person.asked[0].before
    without = Person()
    await _proved(source, Office(MAILS), approver=without, ahead=False)
    assert len(person.asked) <= len(without.asked)


async def test_what_is_proved_is_not_looked_at_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Any, *_: Any) -> None:
        raise AssertionError("nobody is asked")

    monkeypatch.setattr("bicameral.runs._engine.Lookahead.visit_block", never)
    outcome = await _proved(f"send('{BOB}', 'hi')\nanswer(1)", Office(), approver=Person())
    assert isinstance(outcome, Finished)


async def test_a_yes_before_the_run_is_none_to_a_call_that_a_stranger_has_come_to_decide() -> None:
    """Unreachable by a plan as it stands; whatever reaches it, the labels of the call are held against the question."""
    from bicameral.labels import NOTHING, Label, Source
    from bicameral.policy import ArgumentFacts, CallFacts
    from bicameral.runs._approvals import is_no_worse

    stranger = Label({Source("third_party", "fetch", "", "0")})
    told = CallFacts(
        "pay", "", "irreversible", True, True, (ArgumentFacts("to", "directs", NOTHING),), NOTHING, "strict"
    )

    def but(**changes: Any) -> CallFacts:
        from dataclasses import replace

        return replace(told, **changes)

    assert is_no_worse(told, told)
    assert is_no_worse(but(lures=frozenset({"a", "b"})), but(lures=frozenset({"a"})))
    worse = [
        but(pc=stranger),
        but(arguments=(ArgumentFacts("to", "directs", stranger),)),
        but(arguments=(*told.arguments, ArgumentFacts("to's content", "carries", NOTHING))),
        but(arguments=()),
        but(lures=frozenset({"www.evil.example"})),
        but(arguments=(ArgumentFacts("to", "directs", Label((), {"user"})),)),
        but(step="1"),
        but(mode="normal"),
    ]
    assert not any(is_no_worse(told, each) for each in worse)


def test_a_call_says_whether_it_is_due() -> None:
    call = PendingCall("1", "pay", "irreversible", {}, "0", "why", ahead=True)
    assert call.to_json()["ahead"] is True
