"""Who takes up a run has it alone, with the code it was begun with, and never repeats what must not be repeated."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from runs_boundary import ME, Office, Person

from bicameral.errors import BicameralError, JournalError, ToolError
from bicameral.plans import Plan, parse
from bicameral.policy import Policy
from bicameral.runs import (
    Answers,
    ApprovalQuestion,
    Failed,
    Finished,
    Interrupted,
    Journal,
    Stopped,
    Suspend,
    Waiting,
    replay,
    resume_plan,
    run_plan,
)
from bicameral.tools import Registry, Tool, call_key, tool

PAY_ASKS = '@ask("Really?")\nforbid (principal, action, resource in Tool::"pay");'


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as journal:
        yield journal


class Later:
    async def approve(self, question: ApprovalQuestion) -> Answers:
        raise Suspend

    async def ask(self, question: str, type: Any) -> Any:
        raise Suspend


def _plan(source: str, registry: Registry) -> Plan:
    return parse(source, registry).plan


WAITS = "a = balance('mine')\nwrite_text('log', str(a))\nx = ask('Go on?', str)\nwrite_text('log', x)\nanswer(x)"


async def _waiting(office: Office, journal: Journal, policy: Policy | None = None) -> Registry:
    registry = office.registry
    policy = policy or Policy.load((), registry, me=[ME])
    outcome = await run_plan(_plan(WAITS, registry), registry, journal=journal, policy=policy, asker=Later(), run="r1")
    assert isinstance(outcome, Waiting)
    return registry


class Says:
    async def ask(self, question: str, type: Any) -> Any:
        return "yes"


async def _refused(journal: Journal, registry: Registry, policy: Policy | None) -> BicameralError:
    before = len(journal.events("r1"))
    with pytest.raises(BicameralError) as caught:
        await resume_plan(journal, "r1", registry, policy=policy, asker=Says())
    assert len(journal.events("r1")) == before
    return caught.value


# Other code


@pytest.mark.parametrize("changed", ["version", "effect", "gone", "policy", "mode", "no policy"])
async def test_a_run_is_taken_up_only_with_the_code_it_was_begun_with(journal: Journal, changed: str) -> None:
    office = Office()
    registry = await _waiting(office, journal)
    policy: Policy | None = Policy.load((), registry, me=[ME])
    tools = {each.name: each for each in registry}
    match changed:
        case "version":
            tools["write_text"] = replace(tools["write_text"], version="2")
        case "effect":
            tools["balance"] = replace(tools["balance"], effect="pure", origins={})
        case "gone":
            del tools["write_text"]
        case "policy":
            policy = Policy.parse(PAY_ASKS, me=[ME])
        case "mode":
            policy = Policy.load(
                (), registry, me=[ME], mode="normal" if policy and policy.mode == "strict" else "strict"
            )
        case _:
            policy = None
    error = await _refused(journal, Registry(tools.values()), policy)
    assert error.code == "run.other-code"
    assert office.done == [("write_text", ("log", "100"))]
    finished = await resume_plan(journal, "r1", registry, policy=Policy.load((), registry, me=[ME]), asker=Says())
    assert isinstance(finished, Finished), "it can still be resumed by whoever has the right code"


async def test_another_engine_does_not_take_it_up(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = await _waiting(Office(), journal)
    monkeypatch.setattr("bicameral.runs._resume.ENGINE_VERSION", 2)
    error = await _refused(journal, registry, Policy.load((), registry, me=[ME]))
    assert (error.code, "engine" in error.message) == ("run.other-code", True)


async def test_a_changed_record_is_not_taken_up(tmp_path: Path) -> None:
    office = Office()
    with Journal(tmp_path / "journal.db") as journal:
        registry = await _waiting(office, journal)
    with sqlite3.connect(tmp_path / "journal.db") as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE events SET body = replace(body, '100', '900') WHERE kind = 'step-finished'")
    with pytest.raises(JournalError), Journal(tmp_path / "journal.db") as journal:
        await resume_plan(journal, "r1", registry, policy=Policy.load((), registry, me=[ME]), asker=Says())
    assert office.done == [("write_text", ("log", "100"))]


async def test_a_tool_that_lies_about_its_labels_ends_the_run(journal: Journal) -> None:
    """A step that comes out otherwise than recorded: nothing more is done on the strength of it."""
    office = Office()
    registry = await _waiting(office, journal)
    # What a pure part of the language computes is not what it was, without any declaration saying so.
    events = journal.events("r1")
    recorded = next(event for event in events if event.kind == "step-started" and event.step == "1")
    recorded.body["arguments"]["path"] = "elsewhere"
    journal.events = lambda run: events  # type: ignore[method-assign]
    outcome = await resume_plan(journal, "r1", registry, policy=Policy.load((), registry, me=[ME]), asker=Says())
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "run.changed"
    assert office.done == [("write_text", ("log", "100"))]


async def test_a_run_that_has_ended_is_told_and_not_run(journal: Journal) -> None:
    office = Office()
    registry = office.registry
    policy = Policy.load((), registry, me=[ME])
    plan = _plan("t = look_up('x')\nwrite_text('a', t)\nanswer(t)", registry)
    finished = await run_plan(plan, registry, journal=journal, policy=policy, run="r1", approver=Person())
    again = await resume_plan(journal, "r1", registry, policy=policy)
    assert isinstance(finished, Finished)
    assert isinstance(again, Finished)
    assert (again.answer, again.shade, again.effects) == (finished.answer, finished.shade, finished.effects)
    assert dict(again.written) == dict(finished.written) != {}
    assert len(office.done) == 1
    assert journal.events("r1")[-1].kind == "run-finished"


async def test_a_run_that_failed_or_was_stopped_stays_so(journal: Journal) -> None:
    office = Office()
    registry = office.registry
    await run_plan(_plan("answer(1 // balance('x'))", registry), registry, journal=journal, run="r1")
    office.balances = 0
    await run_plan(_plan("answer(1 // balance('x'))", registry), registry, journal=journal, run="r2")
    office.balances = 5
    failed = await resume_plan(journal, "r2", registry)
    assert isinstance(failed, Failed)
    assert (failed.error.code, failed.step) == ("run.division-by-zero", "1")


# In doubt


class Bank:
    """Pays, and may lose its process while it does; `paid` is what really happened."""

    def __init__(self, journal: Journal, *, keyed: bool = False, idempotent: bool = False) -> None:
        self.paid: list[int] = []
        self.keys: list[str | None] = []
        self.dies: set[int] = {1}
        self._journal = journal
        self._keyed, self._idempotent = keyed, idempotent
        self._append = journal.append_all

    @property
    def registry(self) -> Registry:
        @tool(effect="irreversible", keyed=self._keyed, idempotent=self._idempotent)
        def pay(amount: int) -> int:
            """Pay."""
            self.keys.append(call_key())
            if not (self._keyed and call_key() in self.keys[:-1]):
                self.paid.append(amount)
            if len(self.keys) in self.dies:
                self._journal.append_all = self._dead  # type: ignore[method-assign]
            return amount

        return Registry([pay])

    def _dead(self, *_: Any, **__: Any) -> Any:
        raise JournalError("journal.failed", "the process is dead")

    def lives_again(self) -> None:
        self._journal.append_all = self._append  # type: ignore[method-assign]


async def _died_while_paying(bank: Bank, journal: Journal, source: str = "pay(5)\nanswer(1)") -> Registry:
    registry = bank.registry
    outcome = await run_plan(_plan(source, registry), registry, journal=journal, run="r1")
    assert isinstance(outcome, Interrupted)
    assert bank.paid == [5]
    bank.lives_again()
    return registry


async def test_a_call_that_may_have_happened_is_not_repeated_unasked(journal: Journal) -> None:
    bank = Bank(journal)
    registry = await _died_while_paying(bank, journal)
    person = Person(lambda call: False)
    outcome = await resume_plan(journal, "r1", registry, approver=person)
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, outcome.step, bank.paid) == ("run.in-doubt", "0", [5])
    (question,) = person.asked
    (call,) = question.calls
    assert (call.tool, dict(call.arguments), "may have done it already" in call.why) == ("pay", {"amount": 5}, True)
    assert (await replay(journal, "r1", registry)).identical


async def test_nobody_there_means_that_it_is_not_repeated(journal: Journal) -> None:
    bank = Bank(journal)
    registry = await _died_while_paying(bank, journal)
    outcome = await resume_plan(journal, "r1", registry)
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, bank.paid) == ("run.needs-approval", [5])


async def test_a_call_in_doubt_is_repeated_with_a_yes_and_only_this_time(journal: Journal) -> None:
    bank = Bank(journal)
    bank.dies = {1, 2}
    registry = await _died_while_paying(bank, journal)
    person = Person()
    second = await resume_plan(journal, "r1", registry, approver=person)
    assert isinstance(second, Interrupted)
    bank.lives_again()
    third = await resume_plan(journal, "r1", registry, approver=person)
    assert isinstance(third, Finished)
    assert (len(person.asked), bank.paid) == (2, [5, 5, 5])
    assert len({question.calls[0].hash for question in person.asked}) == 2
    assert len(set(bank.keys)) == 1
    assert (await replay(journal, "r1", registry)).identical


async def test_a_call_in_doubt_can_wait_for_its_answer(journal: Journal) -> None:
    bank = Bank(journal)
    registry = await _died_while_paying(bank, journal)
    waiting = await resume_plan(journal, "r1", registry, approver=Later())
    assert isinstance(waiting, Waiting)
    assert waiting.question is not None
    assert bank.paid == [5]
    assert isinstance(await resume_plan(journal, "r1", registry, approver=Person()), Finished)


async def test_the_policys_yes_to_a_call_is_no_yes_to_its_repetition(journal: Journal) -> None:
    """Approved, begun, died: the recorded yes was to the call, not to a second one."""
    bank = Bank(journal)
    registry = bank.registry
    policy = Policy.parse(PAY_ASKS)
    plan = _plan("pay(5)\nanswer(1)", registry)
    first = await run_plan(plan, registry, journal=journal, policy=policy, approver=Person(), run="r1")
    assert isinstance(first, Interrupted)
    bank.lives_again()
    person = Person(lambda call: False)
    outcome = await resume_plan(journal, "r1", registry, policy=policy, approver=person)
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, bank.paid, len(person.asked)) == ("run.in-doubt", [5], 1)


async def test_a_yes_to_a_repetition_is_no_yes_to_the_same_call_elsewhere(journal: Journal) -> None:
    bank = Bank(journal)
    bank.dies = {1, 3}
    registry = await _died_while_paying(bank, journal, "pay(5)\npay(5)\nanswer(1)")
    person = Person()
    assert isinstance(await resume_plan(journal, "r1", registry, approver=person), Interrupted)
    bank.lives_again()
    outcome = await resume_plan(journal, "r1", registry, approver=Person(lambda call: False))
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, outcome.step, bank.paid) == ("run.in-doubt", "1", [5, 5, 5])


@pytest.mark.parametrize("how", ["keyed", "idempotent"])
async def test_what_can_be_repeated_is_repeated_with_the_same_key(journal: Journal, how: str) -> None:
    bank = Bank(journal, keyed=how == "keyed", idempotent=how == "idempotent")
    registry = await _died_while_paying(bank, journal)
    person = Person()
    outcome = await resume_plan(journal, "r1", registry, approver=person)
    assert isinstance(outcome, Finished)
    assert (person.asked, len(bank.keys), len(set(bank.keys))) == ([], 2, 1)
    assert bank.paid == ([5] if how == "keyed" else [5, 5])


async def test_calls_have_keys_of_their_own() -> None:
    keys: list[str | None] = []

    @tool(effect="write")
    def note(n: int) -> None:
        """Write."""
        keys.append(call_key())

    registry = Registry([note])
    plan = _plan("for n in [1, 1]:\n    note(n)\nnote(1)\nanswer(1)", registry)
    await run_plan(plan, registry, run="a")
    await run_plan(plan, registry, run="b")
    assert len(set(keys)) == 6
    assert call_key() is None


async def test_a_keyed_tool_is_retried_with_the_same_key_and_others_that_change_are_not() -> None:
    keys: list[str | None] = []

    def flaky(keyed: bool) -> Tool:
        @tool(effect="send", keyed=keyed)
        def send(text: str) -> None:
            """Send."""
            keys.append(call_key())
            if len(keys) < 2:
                raise ToolError("mail.unreachable", "try again")

        return send

    registry = Registry([flaky(True)])
    assert isinstance(await run_plan(_plan("send('a')\nanswer(1)", registry), registry), Finished)
    assert (len(keys), len(set(keys))) == (2, 1)
    keys.clear()
    registry = Registry([flaky(False)])
    assert isinstance(await run_plan(_plan("send('a')\nanswer(1)", registry), registry), Failed)
    assert len(keys) == 1


# Two at once


@pytest.mark.parametrize("same_process", [True, False])
async def test_a_worker_that_lost_the_run_makes_no_effect(tmp_path: Path, same_process: bool) -> None:
    done: list[str] = []
    go_on = asyncio.Event()

    def tools(who: str) -> Registry:
        @tool(effect="read", timeout=20)
        async def wait() -> int:
            """Waits until it is too late."""
            if who == "old":
                await go_on.wait()
            return 1

        @tool(effect="write")
        def write(n: int) -> None:
            """Write."""
            done.append(who)

        return Registry([wait, write])

    with Journal(tmp_path / "journal.db") as mine, Journal(tmp_path / "journal.db") as other:
        theirs = mine if same_process else other
        registry = tools("old")
        plan = _plan("write(0)\na = wait()\nwrite(a)\nanswer(a)", registry)
        old = asyncio.create_task(run_plan(plan, registry, journal=mine, run="r1"))
        while done != ["old"] or len(theirs.events("r1")) < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        new = await resume_plan(theirs, "r1", tools("new"))
        assert isinstance(new, Finished)
        go_on.set()
        lost = await old
        assert isinstance(lost, Interrupted)
        assert lost.error.code == "journal.fenced"
        assert done == ["old", "new"]
        assert theirs.events("r1")[-1].kind == "run-finished"


async def test_of_two_who_take_up_a_run_at_once_one_gets_it(tmp_path: Path) -> None:
    office = Office()
    with Journal(tmp_path / "journal.db") as one, Journal(tmp_path / "journal.db") as two:
        registry = await _waiting(office, one)
        policy = Policy.load((), registry, me=[ME])
        outcomes = await asyncio.gather(
            *(resume_plan(journal, "r1", registry, policy=policy, asker=Says()) for journal in (one, two))
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) in (
            ["Finished", "Interrupted"],
            ["Finished", "Finished"],
        )
        assert office.done == [("write_text", ("log", "100")), ("write_text", ("log", "yes"))]
        assert [event.kind for event in one.events("r1")].count("run-finished") == 1


async def test_a_second_run_with_the_id_of_another_does_nothing(journal: Journal) -> None:
    office = Office()
    registry = await _waiting(office, journal)
    outcome = await run_plan(_plan("pay('x', 1)\nanswer(1)", registry), registry, journal=journal, run="r1")
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, office.balances) == ("journal.run-exists", 100)


# Leaving and stopping


@pytest.mark.parametrize("leaves", [True, False])
async def test_a_worker_may_leave_a_run_or_stop_it(journal: Journal, leaves: bool) -> None:
    done: list[int] = []

    @tool(effect="write")
    async def note(n: int) -> None:
        """Write."""
        await asyncio.sleep(0.05)
        done.append(n)

    registry = Registry([note])
    plan = _plan("for n in range(6):\n    note(n)\nanswer(1)", registry)
    running = asyncio.create_task(run_plan(plan, registry, journal=journal, run="r1", leaving=lambda: leaves))
    while len(done) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    running.cancel()
    outcome = await running
    assert len(done) < 6
    again = await resume_plan(journal, "r1", registry)
    if leaves:
        assert isinstance(outcome, Interrupted)
        assert outcome.error.code == "run.left"
        assert isinstance(again, Finished)
        assert done == list(range(6))
    else:
        assert isinstance(outcome, Stopped)
        assert isinstance(again, Stopped)
        assert len(done) < 6


# Real processes, really killed

WORKER = """
import asyncio, os, sys
from pathlib import Path
from bicameral.plans import parse
from bicameral.runs import Journal, resume_plan, run_plan
from bicameral.tools import Registry, call_key, tool

folder, dies_at, fresh = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "fresh"
count = 0

@tool(effect="write", keyed=True)
def put(n: int) -> int:
    "Once for each key."
    global count
    count += 1
    if count == dies_at:
        os.kill(os.getpid(), 9)
    with open(folder / call_key(), "a") as file:
        file.write(f"{n}")
    if -count == dies_at:
        os.kill(os.getpid(), 9)
    return n

registry = Registry([put])
plan = parse("xs = []\\nfor n in range(5):\\n    a = put(n)\\n    xs.append(a)\\nanswer(xs)", registry).plan
with Journal(folder / "journal.db") as journal:
    if fresh:
        outcome = asyncio.run(run_plan(plan, registry, journal=journal, run="r1"))
    else:
        outcome = asyncio.run(resume_plan(journal, "r1", registry))
    print(outcome.answer)
"""


@pytest.mark.parametrize("dies_at", [1, -1, 3, -3, 5, -5])
def test_a_process_that_is_killed_is_replaced_by_another(tmp_path: Path, dies_at: int) -> None:
    def worker(dies_at: int, how: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-c", WORKER, str(tmp_path), str(dies_at), how]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    first = worker(dies_at, "fresh")
    assert first.returncode == -signal.SIGKILL, first.stderr
    second = worker(0, "again")
    assert second.stdout.strip() == "[0, 1, 2, 3, 4]", second.stderr
    written = sorted(path.read_text()[0] for path in tmp_path.iterdir() if len(path.name) == 32)
    assert written == ["0", "1", "2", "3", "4"]


async def test_who_resumes_what_is_no_run_of_a_plan_is_told_so(journal: Journal) -> None:
    with pytest.raises(JournalError, match="there is no run"):
        await resume_plan(journal, "nothing", Office().registry)
    journal.append("talk", "run-started", "", {"strategy": "spar", "tools": {}, "request": "x"})
    with pytest.raises(JournalError) as caught:
        await resume_plan(journal, "talk", Office().registry)
    assert caught.value.code == "journal.no-plan"


async def test_a_tool_that_does_something_else_by_now_is_another_tool(journal: Journal) -> None:
    def registry(*, changed: bool = False) -> Registry:
        def first() -> str:
            """Say something."""
            return "what it said"

        def other() -> str:
            """Say something."""
            return "what it says now"

        function = other if changed else first
        function.__name__ = function.__qualname__ = "say"
        return Registry([tool(effect="read")(function)])

    source = "x = ask('Go on?', str)\na = say()\nanswer(a + x)"
    outcome = await run_plan(_plan(source, registry()), registry(), journal=journal, asker=Later(), run="r1")
    assert isinstance(outcome, Waiting)
    error = await _refused(journal, registry(changed=True), None)
    assert (error.code, "the code of the tool 'say' has changed" in str(error)) == ("run.other-code", True)
    ended = await resume_plan(journal, "r1", registry(), asker=Says())
    assert isinstance(ended, Finished)
    assert ended.answer == "what it saidyes"
