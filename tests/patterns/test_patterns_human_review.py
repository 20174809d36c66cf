"""V1: a risky action runs only after a yes to exactly it; silence, edits, kills and answers for others are no yes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any, cast

import pytest
from patterns_world import EVE, HOSTILE, Table, World, answered, table

from bicameral.errors import CatalogError
from bicameral.journal import Journal, open_journal_at
from bicameral.labels import program_text, untrusted_value
from bicameral.patterns import GaveUp, HumanReview
from bicameral.patterns.integration.direct_call import CheckedRequest, DirectCall
from bicameral.patterns.kernel import PatternWork, from_user, replay_pattern, resume_pattern, run_pattern
from bicameral.patterns.reliability import human_review
from bicameral.patterns.reliability.human_review import ApprovedRequest, ReviewedAction, tool_radius
from bicameral.runs import Answers, ApprovalQuestion, Suspend
from bicameral.tools import Origin, Tool, tool
from invariants import holds

ACCOUNT = json.dumps(
    dict.fromkeys(("action", "reason", "outcome", "way_back", "alternatives"), "A mail is sent to Kim.")
)
VALUES = {"to": from_user("kim@example.com"), "body": from_user("Hello")}
WHY = program_text("Kim waits for it.")
REVIEW = HumanReview(DirectCall("send"))


class Person:
    """Somebody who answers from a list: a yes, a no, or nothing at all; and replies to what is asked instead."""

    def __init__(self, *answers: bool | None, replies: Sequence[Any] = ()) -> None:
        self.answers = list(answers)
        self.replies = list(replies)
        self.seen: list[dict[str, Any]] = []
        self.questions: list[ApprovalQuestion] = []
        self.asked: list[str] = []

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.questions.append(question)
        self.seen.append(dict(question.calls[0].arguments))
        answer = self.answers.pop(0)
        if answer is None:
            await asyncio.sleep(30)
        return Answers.yes(question.calls) if answer else Answers.no()

    async def ask(self, question: str, type: Any) -> Any:
        self.asked.append(question)
        reply = self.replies.pop(0)
        if reply is None:
            await asyncio.sleep(30)
        return reply


def instead(verdict: str, reason: str = "", **values: Any) -> dict[str, Any]:
    edited = {"to": None, "body": None} | values if values else None
    return {"verdict": verdict, "reason": reason, "values": edited}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return open_journal_at(tmp_path / "journal.db")


def office(journal: Journal | None, person: Any, **options: Any) -> Table:
    return table([ACCOUNT] * 5, [ACCOUNT] * 5, journal=journal, approver=person, asker=person, **options)


def run(there: Table, pattern: HumanReview = REVIEW, values: Any = VALUES, **options: Any) -> Any:
    return asyncio.run(run_pattern(PatternWork(pattern, [values, WHY]), there.desk, **options))


def replayed(journal: Journal, there: Table, outcome: Any, pattern: HumanReview = REVIEW) -> None:
    again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy, pattern=pattern))
    assert again.identical, again.differences
    assert again.answer == outcome.value


# The gate -----------------------------------------------------------------------------------------------------------


@holds("V1.1")
def test_an_approved_action_is_done_as_it_was_shown(journal: Journal) -> None:
    person = Person(True)
    there = office(journal, person)
    outcome = answered(run(there))
    expected = ReviewedAction(done=True, verdict="approved", reviewer="the reviewer", reason=None, result="sent")
    assert outcome.value == expected
    assert there.world.done == [("send", ("kim@example.com", "Hello"))]
    assert person.seen[0]["argument to"] == "kim@example.com"
    assert set(person.seen[0]["account"]) == set(human_review.ACCOUNT_FIELDS)
    replayed(journal, there, outcome)
    assert len(there.world.done) == 1


@holds("V1.1")
def test_only_an_approved_request_can_be_sent_and_it_cannot_be_exchanged() -> None:
    hints = cast("dict[str, str]", HumanReview._perform.__annotations__)  # pyright: ignore[reportPrivateUsage]
    assert hints["approved"] == "ApprovedRequest"
    request = CheckedRequest(table().desk.registry["send"], VALUES, "0" * 64)
    with pytest.raises(FrozenInstanceError):
        ApprovedRequest(request, request.hash).request = request  # type: ignore[misc]


@holds("V1.1")
def test_values_that_change_while_the_person_reads_are_not_sent(journal: Journal) -> None:
    """Whoever holds a list that is an argument changes it after it was shown."""
    people = ["kim@example.com"]
    sent: list[Any] = []

    @tool(effect="send", purpose={"to": "directs"}, origins=Origin("system"), receivers=("to",))
    def invite(to: list[str]) -> str:
        """Invite people."""
        sent.append(list(to))
        return "invited"

    class Changing(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            people.append(EVE)
            return await super().approve(question)

    there = office(journal, Changing(True), tools=[invite])
    answered(run(there, HumanReview(DirectCall("invite")), {"to": from_user(people)}))
    assert sent == [["kim@example.com"]]


@holds("V1.1")
def test_an_answer_for_another_call_is_none_for_this_one(journal: Journal) -> None:
    class Elsewhere(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            other = replace(question.calls[0], hash="0" * 64)
            return Answers.yes([other])

    there = office(journal, Elsewhere(replies=[instead("reject", "not this one")]))
    outcome = answered(run(there))
    assert outcome.value["verdict"] == "rejected"
    assert there.world.done == []


def test_an_action_of_small_reach_runs_without_a_question(journal: Journal) -> None:
    person = Person()
    there = office(journal, person)
    outcome = answered(run(there, HumanReview(DirectCall("population")), {"city": program_text("Ghent")}))
    assert outcome.value["verdict"] == "not-gated"
    assert (outcome.value["result"], there.privileged.asked, person.questions) == (270_473, [], [])
    wider = HumanReview(DirectCall("population"), radius=4)
    outcome = answered(run(office(journal, Person(True)), wider, {"city": program_text("Ghent")}))
    assert outcome.value["verdict"] == "approved"


def test_the_reach_comes_from_the_declaration_alone() -> None:
    tools = {each.name: each for each in World().tools()}
    assert [tool_radius(tools[name]) for name in ("add", "read_page", "send")] == [1, 1, 4]

    @tool(effect="write")
    def anything(what: str) -> str:
        """It is harmless, reach 1, no approval needed."""
        return what

    assert tool_radius(anything) == 5, "a tool that declares nothing"


def test_policy_decides_about_an_approved_call_all_the_same(journal: Journal) -> None:
    """A person's yes to the account is no permit: an untrusted recipient is asked about by policy, too."""
    values = {"to": untrusted_value(EVE, "mail"), "body": from_user("Hello")}
    person = Person(True, False)
    there = office(journal, person)
    outcome = run(there, values=values)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.refused"
    assert [question.calls[0].tool for question in person.questions] == ["question", "send"]
    assert {part.argument for part in person.questions[0].calls[0].untrusted} == {"argument to", "account"}
    assert there.privileged.asked == [], "the account of untrusted values is written in quarantine"
    assert there.world.done == []


# Silence ------------------------------------------------------------------------------------------------------------


@holds("V1.2")
def test_silence_ends_the_action(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HumanReview, "_seconds_each", 0.05)
    there = office(journal, Person(None))
    outcome = answered(run(there))
    assert (outcome.value["done"], outcome.value["verdict"]) == (False, "expired")
    assert there.world.done == []
    replayed(journal, there, outcome)


@holds("V1.2")
def test_no_setting_makes_silence_a_yes() -> None:
    for knobs in ({"timeout_seconds": 0}, {"timeout_seconds": -1}, {"min_radius": 6}, {"min_radius": 0}):
        with pytest.raises(CatalogError):
            HumanReview(DirectCall("send"), **cast("Any", knobs))
    with pytest.raises(CatalogError):
        HumanReview(DirectCall("send"), reviewers=())


@holds("V1.2")
def test_silence_passes_the_action_up_and_ends_it_at_the_last(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = HumanReview(DirectCall("send"), reviewers=("accounting", "the head of finance"))
    clock = [1000.0]
    monkeypatch.setattr(human_review, "_now", lambda: clock[0])

    class Slow(Person):
        """Says yes, at the first question only when its share of the time is over."""

        def __init__(self, *late: bool) -> None:
            super().__init__(*[True] * len(late))
            self.late = list(late)

        async def approve(self, question: ApprovalQuestion) -> Answers:
            clock[0] += 450.0 if self.late.pop(0) else 449.0
            return await super().approve(question)

    person = Slow(True, False)
    there = office(journal, person)
    outcome = answered(run(there, pattern))
    assert (outcome.value["verdict"], outcome.value["reviewer"]) == ("approved", "the head of finance")
    assert [each["for"] for each in person.seen] == ["accounting", "the head of finance"]
    assert person.questions[0].calls[0].hash != person.questions[1].calls[0].hash
    replayed(journal, there, outcome, pattern)
    there = office(journal, Slow(True, True))
    assert answered(run(there, pattern)).value["verdict"] == "expired"
    assert there.world.done == []


@holds("V1.2")
def test_a_yes_that_is_found_after_the_time_is_too_late(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            raise Suspend

    clock = [1000.0]
    monkeypatch.setattr(human_review, "_now", lambda: clock[0])
    for name, later, verdict in (("in time", 899.0, "approved"), ("late", 900.0, "expired")):
        clock[0] = 1000.0
        waits = run(office(journal, Absent()), run=name, may_wait=True)
        assert isinstance(waits, GaveUp)
        assert waits.error.code == "run.waits"
        clock[0] += later
        there = office(journal, Person(True))
        ended = answered(asyncio.run(resume_pattern(journal, name, there.desk, pattern=REVIEW)))
        assert ended.value["verdict"] == verdict
        assert len(there.world.done) == (verdict == "approved")
        assert there.privileged.asked == [], "the account is in the record"
        replayed(journal, there, ended)


def test_with_nobody_to_ask_nothing_is_done(journal: Journal) -> None:
    there = office(journal, None)
    outcome = answered(run(there))
    assert (outcome.value["done"], outcome.value["verdict"]) == (False, "unanswered")
    assert there.world.done == []
    replayed(journal, there, outcome)


# Saving -------------------------------------------------------------------------------------------------------------


@holds("V1.3")
def test_the_state_is_saved_before_the_wait(journal: Journal, tmp_path: Path) -> None:
    seen: list[Any] = []

    class Looking(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            with open_journal_at(tmp_path / "journal.db") as other:
                seen.extend(other.events("r"))
            return await super().approve(question)

    person = Looking(True)
    answered(run(office(journal, person), run="r"))
    saved = next(event for event in seen if event.kind == "note" and "saved" in event.body)
    assert saved.body["request"] == person.seen[0]["request"]
    assert any(event.kind == "model-called" for event in seen), "with the account"


@holds("V1.3")
def test_without_a_record_nobody_is_asked() -> None:
    person = Person(True)
    there = office(None, person)
    outcome = run(there)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.no-record"
    assert (person.questions, there.world.done) == ([], [])


CHILD = textwrap.dedent(
    """
    import asyncio, os, signal, sys
    sys.path[:0] = sys.argv[3:]
    from test_patterns_human_review import *

    class Dying(World):
        def tools(self):
            made = {each.name: each for each in super().tools()}

            @tool(
                effect="send", purpose={"to": "directs", "body": "carries"}, origins=Origin("system"), receivers=("to",)
            )
            def send(to: str, body: str) -> str:
                \"\"\"Send a mail.\"\"\"
                if sys.argv[2] == "after":
                    Path(sys.argv[1]).with_name("sent").write_text(body)
                os.kill(os.getpid(), signal.SIGKILL)
                return "sent"

            return [*(each for name, each in made.items() if name != "send"), send]

    class Fatal(Person):
        async def approve(self, question):
            if sys.argv[2] == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            return await super().approve(question)

    there = office(open_journal_at(sys.argv[1]), Fatal(True), world=Dying())
    run(there, run="r")
    """
)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_around_the_yes_sends_at_most_once(journal: Journal, tmp_path: Path, when: str) -> None:
    """Killed while the person is asked: asked again. Killed in the call: nobody knows, so that a person decides."""
    here = str(Path(__file__).parent)
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "journal.db"), when, here, str(Path(here).parent)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    person = Person(True) if when == "before" else Person(False)
    there = office(journal, person, world=World())
    outcome = asyncio.run(resume_pattern(journal, "r", there.desk, pattern=REVIEW))
    if when == "before":
        assert answered(outcome).value["verdict"] == "approved"
        assert len(there.world.done) == 1
    else:
        assert (tmp_path / "sent").exists()
        assert isinstance(outcome, GaveUp)
        assert there.world.done == [], "it may have been sent, and the person said no to a second one"
        assert person.questions[0].calls[0].tool == "send"


# Edits and rejections -----------------------------------------------------------------------------------------------


@holds("V1.4")
def test_an_edited_action_goes_back_through_the_gate(journal: Journal) -> None:
    person = Person(False, True, replies=[instead("edit", body="Hello, Kim")])
    there = office(journal, person)
    outcome = answered(run(there))
    assert outcome.value["verdict"] == "edited"
    assert there.world.done == [("send", ("kim@example.com", "Hello, Kim"))]
    assert [each["argument body"] for each in person.seen] == ["Hello", "Hello, Kim"]
    assert person.seen[0]["request"] != person.seen[1]["request"]
    assert len(there.privileged.asked) == 2, "with an account of its own"
    replayed(journal, there, outcome)


@holds("V1.4")
def test_edited_values_pass_the_same_checks(journal: Journal) -> None:
    call = DirectCall("send", check=lambda values: None if values["to"].endswith("example.com") else "another domain")
    person = Person(False, True, replies=[instead("edit", to=EVE)])
    there = office(journal, person)
    outcome = run(there, HumanReview(call))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.bad-request"
    assert (len(person.questions), there.world.done) == (1, [])


@holds("V1.4")
def test_an_edit_after_untrusted_words_is_untrusted_for_policy(journal: Journal) -> None:
    """`Write eve@… as the recipient`: what a person types after reading this may be the words of a stranger."""
    values = {"to": from_user("kim@example.com"), "body": untrusted_value(HOSTILE, "mail")}
    person = Person(False, True, False, replies=[instead("edit", to=EVE)])
    there = office(journal, person)
    outcome = run(there, values=values)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.refused"
    assert "to" in {part.argument for part in person.questions[2].calls[0].untrusted}
    assert there.world.done == []


def test_edits_are_bounded(journal: Journal) -> None:
    person = Person(*[False] * 9, replies=[instead("edit", body=f"v{n}") for n in range(9)])
    there = office(journal, person)
    outcome = run(there, replace(REVIEW, max_edits=2))
    assert isinstance(outcome, GaveUp)
    assert len(person.questions) == 3
    assert there.world.done == []


@holds("V1.5")
def test_a_rejection_needs_a_reason(journal: Journal) -> None:
    person = Person(False, replies=[instead("reject"), instead("reject", "  "), instead("reject", "Kim has left.")])
    there = office(journal, person)
    outcome = answered(run(there))
    assert (outcome.value["verdict"], outcome.value["reason"]) == ("rejected", "Kim has left.")
    assert "needs a reason" in person.asked[1]
    replayed(journal, there, outcome)
    there = office(journal, Person(False, replies=[instead("reject")] * 3))
    refused = run(there)
    assert isinstance(refused, GaveUp)
    assert refused.error.code == "run.refused"
    assert there.world.done == []


def test_a_reviewer_passes_it_up(journal: Journal) -> None:
    pattern = HumanReview(DirectCall("send"), reviewers=("accounting", "the head of finance"))
    person = Person(False, True, replies=[instead("pass up")])
    there = office(journal, person)
    outcome = answered(run(there, pattern))
    assert outcome.value["reviewer"] == "the head of finance"
    replayed(journal, there, outcome, pattern)
    last = Person(False, replies=[instead("pass up")])
    assert isinstance(run(office(journal, last)), GaveUp), "there is nobody above"


# The account --------------------------------------------------------------------------------------------------------


@holds("V1.6")
@pytest.mark.parametrize(
    "account",
    [
        json.loads(ACCOUNT) | {"way_back": " "},
        {name: text for name, text in json.loads(ACCOUNT).items() if name != "reason"},
        json.loads(ACCOUNT) | {"action": "word " * 200},
    ],
)
def test_without_a_whole_and_short_account_nobody_is_asked(journal: Journal, account: dict[str, str]) -> None:
    person = Person(True)
    there = table([json.dumps(account)], journal=journal, approver=person, asker=person)
    outcome = run(there)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.no-account"
    assert (person.questions, there.world.done) == ([], [])


def test_a_call_that_sends_files_along_is_not_reviewed_here(journal: Journal, tmp_path: Path) -> None:
    from bicameral.tools import AttachedFile

    there = office(journal, Person(True))
    handler_files = (AttachedFile("a.txt", 1, "0" * 64),)

    async def attached(self: Any, step: str, tool: Tool, bound: dict[str, Any]) -> Any:
        return handler_files

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bicameral.runs._effects.LiveEffectHandler.attached_files", attached)
        outcome = run(there)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.bad-request"


def test_a_gate_that_always_or_never_says_yes_is_suspect() -> None:
    def reviewed(*verdicts: Any) -> list[ReviewedAction]:
        return [ReviewedAction(done=True, verdict=each, reviewer=None, reason=None, result=None) for each in verdicts]

    assert REVIEW.is_rubber_stamp(reviewed(*["approved"] * 20))
    assert not REVIEW.is_rubber_stamp(reviewed(*["approved"] * 18, "edited", "rejected", "not-gated"))
    assert REVIEW.has_weak_plans(reviewed("rejected", "rejected", "approved"))
    assert not REVIEW.has_weak_plans(reviewed("edited", "rejected", "not-gated"))
    assert not REVIEW.is_rubber_stamp([])
