"""Permits: a yes is for the calls that were shown, once each, whatever lies between the question and the call."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from runs_boundary import BOB, EVE, ME, Compromised, Office, Person, run_office

from bicameral.journal import Event
from bicameral.labels import NOTHING, TRUSTED_USER
from bicameral.plans import Conditional, Proved, call_facts, parse, prove
from bicameral.policy import Ask, Policy
from bicameral.runs import (
    Answers,
    ApprovalQuestion,
    Failed,
    Finished,
    Journal,
    PendingCall,
    RunOutcome,
    Suspend,
    Waiting,
    replay,
    resume_plan,
    run_plan,
)
from bicameral.runs._approvals import ApprovalResult, AskedCall, Permits, call_hash, pending_call
from bicameral.tools import (
    AttachedFile,
    Folders,
    Origin,
    Registry,
    Tool,
    attached_files,
    bind_attached_files,
    read_attached,
    tool,
)
from bicameral.types import Type
from property_examples import examples

MAILS: list[Any] = [{"id": f"m{n}", "sender": f"s{n}@example.org", "body": f"text {n}"} for n in range(3)]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


def _failure(outcome: RunOutcome) -> tuple[str, str]:
    assert isinstance(outcome, Failed), outcome
    return outcome.error.code, outcome.step


# Counting -------------------------------------------------------------------------------------------------------------

LOOPS = """
mails = search_mail('x')
for m in mails:
    for n in [1, 2]:
        {call}
        b = balance('mine')
answer(1)
"""


@settings(max_examples=examples(25), deadline=None)
@given(
    call=st.sampled_from(["pay('bob', len(mails))", "id = send(mails[0].sender, 'hi')", "id = send(m.sender, 'hi')"]),
    ahead=st.booleans(),
    refuse=st.sets(st.integers(0, 5)),
    number=st.integers(1, 3),
)
def test_no_call_is_made_that_no_question_has_listed_and_none_more_often(
    call: str, ahead: bool, refuse: set[int], number: int
) -> None:
    office = Office(MAILS[:number])
    allowed: list[tuple[str, str]] = []

    class Some:
        asked = 0

        async def approve(self, question: ApprovalQuestion) -> Answers:
            yes: list[PendingCall] = []
            for each in question.calls:
                if self.asked not in refuse:
                    yes.append(each)
                    allowed.extend((step, each.hash) for step in each.steps)
                self.asked += 1
            return Answers.yes(yes)

    policy = Policy.parse('@ask("Pay?") forbid (principal, action, resource in Tool::"pay");', me=[ME])
    outcome = asyncio.run(
        run_office(
            LOOPS.format(call=call), office, approver=Some(), policy=policy, ahead=ahead, extractor=Compromised()
        )
    )
    made = [done.step for done in outcome.effects]
    assert sorted(made) == sorted(set(made))
    assert set(made) <= {step for step, _ in allowed}
    assert len(office.done) == len(made) <= len(allowed)


async def test_the_same_call_from_elsewhere_is_a_question_of_its_own() -> None:
    """Equal in every argument, but in one of them a stranger's: a yes to the one is none to the other."""
    source = """
mails = search_mail('x')
mine = 's0@example.org'
pay(mine, 5)
pay(mails[0].sender, 5)
answer(1)
"""
    policy = Policy.parse('@ask("Pay?") forbid (principal, action, resource in Tool::"pay");', me=[ME])
    office, person = Office(MAILS), Person()
    outcome = await run_office(source, office, approver=person, policy=policy)
    assert isinstance(outcome, Finished)
    assert [[(call.steps, bool(call.untrusted)) for call in question.calls] for question in person.asked] == [
        [(("2",), False)],
        [(("3",), True)],
    ]
    office, person = Office(MAILS), Person(lambda call: not call.untrusted)
    assert _failure(await run_office(source, office, approver=person, policy=policy)) == ("run.refused", "2")


class _Later:
    async def approve(self, question: ApprovalQuestion) -> Answers:
        raise Suspend


async def test_a_yes_in_the_record_is_used_once_however_often_the_run_is_resumed(journal: Journal) -> None:
    """The process dies between the yes and the call: the record has the approval, and no beginning of the step."""
    source = "mails = search_mail('x')\nid = send(mails[0].sender, 'hi')\nid = send(mails[0].sender, 'hi')\nanswer(id)"
    office = Office(MAILS)
    registry = office.registry
    policy = Policy.load((), registry, me=[ME])
    outcome = await run_office(source, office, approver=_Later(), policy=policy, journal=journal, ahead=False)
    assert isinstance(outcome, Waiting)

    class Dies(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            if self.asked:
                raise Suspend
            return await super().approve(question)

    first = Dies()
    outcome = await resume_plan(journal, outcome.run, registry, policy=policy, approver=first)
    assert isinstance(outcome, Waiting)
    assert len(office.done) == 1
    second = Person()
    outcome = await resume_plan(journal, outcome.run, registry, policy=policy, approver=second)
    assert isinstance(outcome, Finished)
    assert [[call.step for call in each.calls] for each in (*first.asked, *second.asked)] == [["1"], ["2"]]
    assert len(office.done) == 2
    again = await replay(journal, outcome.run, registry)
    assert again.identical, again.differences


async def test_two_that_resume_one_run_make_its_call_once(journal: Journal) -> None:
    office = Office(MAILS)
    registry = office.registry
    policy = Policy.load((), registry, me=[ME])
    source = "mails = search_mail('x')\nid = send(mails[0].sender, 'hi')\nanswer(id)"
    outcome = await run_office(source, office, approver=_Later(), policy=policy, journal=journal)
    resumed = (resume_plan(journal, outcome.run, registry, policy=policy, approver=Person()) for _ in range(3))
    await asyncio.gather(*resumed)
    assert len(office.done) == 1


# Records of earlier versions ------------------------------------------------------------------------------------------


RECORDS = json.loads((Path(__file__).parent / "records_before_permits.json").read_text())
"""Runs as version 0.1.0 recorded them before permits: no steps in approvals, values that a yes had endorsed, and calls
that were made on an earlier yes to the same call."""


class _Earlier:
    """A journal that holds one of these."""

    path = "earlier"

    def __init__(self, name: str, policy: Policy | None) -> None:
        recorded = json.dumps(RECORDS[name])
        if policy is not None:
            # A replay by other policies than those of the run says so; these are about how calls were permitted.
            recorded = recorded.replace(RECORDS[name][0]["body"]["policy"], policy.fingerprint)
        self._events = [Event("earlier", **facts) for facts in json.loads(recorded)]

    def events(self, run: str) -> list[Event]:
        return self._events


@pytest.mark.parametrize("decided", ["as it was", "by policy"])
@pytest.mark.parametrize("name", RECORDS)
async def test_a_record_from_before_permits_is_replayed_identically(name: str, decided: str) -> None:
    registry = Office(MAILS).registry
    policy = Policy.load((), registry, me=[ME]) if decided == "by policy" else None
    again = await replay(_Earlier(name, policy), "earlier", registry, policy=policy)  # type: ignore[arg-type]
    assert again.identical, again.differences
    assert isinstance(again.outcome, Finished)
    assert len(again.outcome.effects) == 6


# Files that go along --------------------------------------------------------------------------------------------------


def test_a_permit_is_there_once_and_only_for_what_was_allowed() -> None:
    send = Office().registry["send"]
    bound = {"to": BOB, "body": "hi"}
    facts = call_facts(send, dict.fromkeys(bound, TRUSTED_USER), bound, "1", NOTHING, "strict")
    call = pending_call("1", send, bound, facts, Ask("?", ()))
    asked, permit = AskedCall(call, facts, call.hash), ("1", call.hash)
    permits = Permits()
    assert permits.answer(asked) is None
    assert not permits.use_up(*permit)
    for _ in range(2):
        # Whoever is asked twice about one call at one step has allowed it once.
        permits.record([asked], ApprovalResult(Counter([permit])))
    assert permits.answer(asked) is True
    assert not permits.use_up("2", call.hash)
    assert permits.use_up(*permit)
    assert permits.answer(asked) is None
    assert not permits.use_up(*permit)
    permits.record([asked], ApprovalResult(Counter([permit])))
    permits.record([asked], ApprovalResult(Counter()))
    assert permits.answer(asked) is False
    assert not permits.use_up(*permit)


@dataclass
class Post(Office):
    """An office that sends files of a real folder."""

    folder: Path = field(default_factory=Path)

    def _tools(self) -> Iterable[Tool]:
        folders = Folders.of(self.folder, read=[self.folder], write=[self.folder])

        @tool(
            effect="send",
            purpose={"to": "directs", "files": "directs"},
            receivers=("to",),
            attaches=("files",),
            attached_in=folders,
            origins=Origin("system"),
        )
        def send_files(to: str, files: list[str]) -> None:
            """Send files."""
            self.done.append((to, [read_attached(folders, name, max_bytes=1000) for name in files]))

        @tool(effect="write", purpose={"name": "directs", "text": "carries"}, origins=Origin("system"))
        def save(name: str, text: str) -> None:
            """Write a file."""
            folders.write_text(name, text)

        return [*super()._tools(), send_files, save]


SEND = "mails = search_mail('x')\n{before}\nsend_files(mails[0].sender, ['menu.txt'])\nanswer(1)"


async def test_a_question_shows_what_goes_along_and_its_hash_covers_it(tmp_path: Path) -> None:
    (tmp_path / "menu.txt").write_text("Soup")
    post, person = Post(MAILS, folder=tmp_path), Person()
    assert isinstance(await run_office(SEND.format(before=""), post, approver=person), Finished)
    (call,) = person.asked[0].calls
    assert [(file.name, file.size) for file in call.files] == [("menu.txt", 4)]
    send_files = post.registry["send_files"]
    assert call.hash == call_hash(send_files, call.arguments, call.files)
    assert call.hash != call_hash(send_files, call.arguments)
    assert call.hash != call_hash(send_files, call.arguments, [replace(call.files[0], sha256="0" * 64)])
    assert PendingCall.from_json(json.loads(json.dumps(call.to_json()))).to_json() == call.to_json()


async def test_what_the_plan_writes_first_is_written_before_it_is_asked_about(tmp_path: Path) -> None:
    post, person = Post(MAILS, folder=tmp_path), Person()
    before = "send(mails[1].sender, 'hi')\nsave('menu.txt', 'Cake')"
    outcome = await run_office(SEND.format(before=before), post, approver=person)
    assert isinstance(outcome, Finished)
    assert [[call.tool for call in question.calls] for question in person.asked] == [["send"], ["send_files"]]
    assert post.done[-1] == (MAILS[0]["sender"], [b"Cake"])


async def test_nobody_there_when_a_file_has_changed_means_no(tmp_path: Path) -> None:
    menu = tmp_path / "menu.txt"
    menu.write_text("Soup" * 30)

    class Leaves(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            menu.write_text("Soup" * 20)
            if self.asked:
                self.asked.append(question)
                return Answers.no()
            return await super().approve(question)

    post, person = Post(MAILS, folder=tmp_path), Leaves()
    assert _failure(await run_office(SEND.format(before=""), post, approver=person)) == ("run.refused", "1")
    assert person.asked[1].calls[0].changed == (
        "menu.txt was 120 bytes, is now 80 bytes; its content changed since you were asked",
    )
    assert post.done == []


async def test_a_file_that_changed_is_replayed_from_the_record_alone(tmp_path: Path, journal: Journal) -> None:
    menu = tmp_path / "menu.txt"
    menu.write_text("Soup")

    class Adds(Person):
        async def approve(self, question: ApprovalQuestion) -> Answers:
            if not self.asked:
                menu.write_text("Soup and cake")
            return await super().approve(question)

    post = Post(MAILS, folder=tmp_path)
    outcome = await run_office(SEND.format(before=""), post, approver=Adds(), journal=journal)
    assert isinstance(outcome, Finished)
    menu.unlink()
    again = await replay(journal, outcome.run, Post(MAILS, folder=tmp_path).registry)
    assert again.identical, again.differences


def _missing(menu: Path) -> None: ...
def _folder(menu: Path) -> None:
    menu.mkdir()


def _link(menu: Path) -> None:
    (menu.parent / "other.txt").write_text("secret")
    menu.symlink_to("other.txt")


def _link_out(menu: Path) -> None:
    menu.symlink_to("/etc/hostname")


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (_missing, "files.missing"),
        (_folder, "files.is-folder"),
        (_link, "files.link"),
        (_link_out, "files.outside"),
    ],
)
async def test_what_cannot_be_hashed_is_not_sent(tmp_path: Path, make: Callable[[Path], None], code: str) -> None:
    make(tmp_path / "menu.txt")
    post, person = Post(MAILS, folder=tmp_path), Person()
    assert _failure(await run_office(SEND.format(before=""), post, approver=person)) == (code, "1")
    assert (post.done, person.asked) == ([], [])


def test_a_bound_call_reads_what_it_was_bound_to_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    post = Post(MAILS, folder=tmp_path)
    folders = Folders.of(tmp_path, read=[tmp_path])
    files = attached_files(post.registry["send_files"], {"to": BOB, "files": ["a.txt", "a.txt"]})
    assert [file.name for file in files] == ["a.txt"]
    assert AttachedFile.from_json(files[0].to_json()) == files[0]
    assert read_attached(folders, "b.txt", max_bytes=10) == b"two"
    with bind_attached_files(files):
        assert read_attached(folders, "a.txt", max_bytes=10) == b"one"
        for name in ("b.txt", "./a.txt"):
            with pytest.raises(Exception, match=r"files\.changed"):
                read_attached(folders, name, max_bytes=10)
        (tmp_path / "a.txt").write_text("ONE")
        with pytest.raises(Exception, match="its content changed"):
            read_attached(folders, "a.txt", max_bytes=10)


# What a person replies ------------------------------------------------------------------------------------------------


class _Replies:
    async def ask(self, question: str, type: Type) -> Any:
        return EVE


@pytest.mark.parametrize("words", ["'Who?'", "f'Who? {mails[0].body}'", "mails[0].body"])
async def test_a_reply_has_the_label_of_the_question_in_proof_and_run_alike(words: str) -> None:
    source = f"mails = search_mail('x')\nto = ask({words}, str)\nsend(to, 'hi')\nanswer(1)"
    office = Office(MAILS)
    registry: Registry = office.registry
    policy = Policy.load((), registry, me=[ME])
    plan = parse(source, registry).plan
    verdict = prove(plan, registry, policy.preview, policy.mode).calls[-1].verdict
    outcome = await run_plan(plan, registry, policy=policy, asker=_Replies())
    if words == "'Who?'":
        assert isinstance(verdict, Proved)
        assert isinstance(outcome, Finished)
    else:
        assert isinstance(verdict, Conditional)
        assert _failure(outcome) == ("run.needs-approval", "2")
        assert office.done == []
