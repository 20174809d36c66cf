"""The run of a pattern is a run: replayed from its record, resumed after its process died, waiting for a person."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from patterns_world import EVE, HOSTILE, Work, answered, run_work, table

from bicameral.errors import BicameralError, ModelError
from bicameral.journal import Journal, open_journal_at
from bicameral.labels import Labelled, program_text
from bicameral.limits import LimitReached, strategy_limits
from bicameral.models import ModelRequest, ToolCall
from bicameral.patterns import IMPLEMENTED, GaveUp, ReAct, ReWOO, example_of
from bicameral.patterns.kernel import (
    Context,
    Pattern,
    PatternWork,
    Role,
    from_user,
    replay_pattern,
    resume_pattern,
    run_pattern,
)
from bicameral.patterns.kernel._codec import fingerprint, from_record, to_record
from bicameral.runs import Answers, ApprovalQuestion, Replayed, Suspend
from bicameral.tools import Origin, Tool, tool

WRITER = Role("Writer", "You write.")


def replayed(journal: Journal, run: str, desk: Any, **options: Any) -> Replayed:
    return asyncio.run(replay_pattern(journal, run, desk.registry, desk.policy, **options))


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return open_journal_at(tmp_path / "journal.db")


def test_a_pattern_is_replayed_from_its_record_alone(journal: Journal) -> None:
    plan = {"calls": [{"tool": "population", "arguments": [{"name": "city", "value": "Ghent"}]}]}
    there = table([json.dumps(plan), "270,473"], journal=journal)
    outcome = answered(asyncio.run(ReWOO(max_calls=3).run(there.desk, program_text("How many people live in Ghent?"))))
    asked = len(there.privileged.asked)
    again = replayed(journal, outcome.run, there.desk)
    assert again.identical, again.differences
    assert again.answer == "270,473"
    assert len(there.privileged.asked) == asked, "a replay asks nobody"


def test_a_replay_with_other_settings_is_told_apart(journal: Journal) -> None:
    plan = {"calls": [{"tool": "population", "arguments": [{"name": "city", "value": "Ghent"}]}]}
    there = table([json.dumps(plan), "270,473"], journal=journal)
    run = answered(asyncio.run(ReWOO(max_calls=3).run(there.desk, program_text("How many?")))).run
    again = replayed(journal, run, there.desk, pattern=ReWOO(max_calls=4))
    assert any("other settings" in each for each in again.differences)
    other = replace(ReWOO().solver, setup="Answer in Dutch.")
    again = replayed(journal, run, there.desk, pattern=ReWOO(max_calls=3, solver=other))
    assert any("'prompt'" in each for each in again.differences), again.differences


async def side_by_side(context: Context) -> Labelled[Any]:
    """Three parts that ask twice each, and whose replies come in another order than they were asked for."""

    def part(number: int) -> Callable[[Context], Any]:
        async def work(inner: Context) -> Labelled[Any]:
            first = await inner.ask(WRITER, "first of ", inner.derive(str(number)))
            return await inner.ask(WRITER, "second after ", first)

        return work

    works = [(f"part {number}", part(number)) for number in (1, 2, 3)]
    found = await context.run_parallel(works, width=3)
    texts = [context.read(each) for each in found if not isinstance(each, BicameralError)]
    return context.derive(texts)


class Slow:
    """Replies of a model whose later questions are answered sooner, in the first run; in a replay nobody is asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, request: ModelRequest) -> str:
        self.count += 1
        return f"{request.messages[-1].text} = {self.count}"


def test_parts_that_ran_side_by_side_are_replayed_by_place(journal: Journal) -> None:
    there = table(Slow(), journal=journal)
    model = there.privileged
    ask, waits = model.generate, {"1": 0.03, "2": 0.02, "3": 0.01}

    async def generate(request: ModelRequest) -> Any:
        text = request.messages[-1].text
        if text.startswith("first of "):
            await asyncio.sleep(waits[text[-1]])
        return await ask(request)

    model.generate = generate  # type: ignore[method-assign]
    outcome = answered(asyncio.run(run_work(there.desk, side_by_side)))
    steps = [event.step for event in journal.events(outcome.run) if event.kind == "model-called"]
    assert steps != sorted(steps), "they did not end in the order of their places"
    assert sorted(steps) == sorted(f"part {number}/{ask}" for number in (1, 2, 3) for ask in (1, 2))
    again = replayed(journal, outcome.run, there.desk, pattern=Work(side_by_side))
    assert again.identical, again.differences
    assert again.answer == outcome.value


def test_a_part_that_ran_out_of_time_ends_there_again(journal: Journal) -> None:
    async def slow(context: Context) -> Labelled[Any]:
        first = await context.ask(WRITER, "one")
        try:
            async with context.within_limits(strategy_limits(seconds=0.05)) as inner:
                second = await inner.ask(WRITER, "two")
                await inner.ask(WRITER, "three")
                return second
        except LimitReached as error:
            return context.derive(f"out of {error.bound}", first)

    there = table(["1", "2", "3"], journal=journal)
    ask = there.privileged.generate

    async def generate(request: ModelRequest) -> Any:
        if request.messages[-1].text == "three":
            await asyncio.sleep(30)
        return await ask(request)

    there.privileged.generate = generate  # type: ignore[method-assign]
    outcome = answered(asyncio.run(run_work(there.desk, slow)))
    assert outcome.value == "out of seconds"
    again = replayed(journal, outcome.run, there.desk, pattern=Work(slow))
    assert again.identical, again.differences
    assert again.answer == "out of seconds"


def test_a_model_that_failed_fails_again_in_the_same_way(journal: Journal) -> None:
    async def fallback(context: Context) -> Labelled[Any]:
        try:
            return await context.ask(WRITER, "hard")
        except ModelError as error:
            return context.derive(f"fell back on {error.code}")

    there = table([ModelError("models.unavailable", "it is away")], journal=journal)
    outcome = answered(asyncio.run(run_work(there.desk, fallback)))
    again = replayed(journal, outcome.run, there.desk, pattern=Work(fallback))
    assert again.identical, again.differences
    assert again.answer == "fell back on models.unavailable"


def test_notes_are_in_the_record_and_compared(journal: Journal) -> None:
    def noting(number: int) -> Callable[[Context], Any]:
        async def work(context: Context) -> Labelled[Any]:
            context.note("counted", number=number)
            return context.derive("done")

        return work

    there = table(journal=journal)
    run = answered(asyncio.run(run_work(there.desk, noting(1)))).run
    assert [event.body["number"] for event in journal.events(run) if event.kind == "note"] == [1]
    assert replayed(journal, run, there.desk, pattern=Work(noting(1))).identical
    assert "note 1" in str(replayed(journal, run, there.desk, pattern=Work(noting(2))).differences)


# Resuming -----------------------------------------------------------------------------------------------------------

CHILD = textwrap.dedent(
    """
    import asyncio, os, signal, sys, time
    sys.path[:0] = sys.argv[2:]
    from patterns_world import *
    from test_patterns_runs import SendTwice
    from bicameral.journal import open_journal_at
    from bicameral.labels import program_text
    from bicameral.patterns.kernel import PatternWork, run_pattern

    def reply(request):
        if "third" in request.messages[-1].text:
            time.sleep(0.5)  # The journal's thread writes replies in batches.
            os.kill(os.getpid(), signal.SIGKILL)
        return request.messages[-1].text.upper()

    desk = table(reply, journal=open_journal_at(sys.argv[1]), approver=None).desk
    asyncio.run(run_pattern(PatternWork(SendTwice(), [program_text("me@example.com")]), desk, run="the-run"))
    """
)


@dataclass(frozen=True)
class SendTwice(Pattern[[Labelled[str]], str]):
    """Asks, sends, asks, and answers."""

    id: ClassVar[str] = "R5"

    async def execute(self, context: Context, /, to: Labelled[str]) -> Labelled[str]:
        first = await context.ask(WRITER, "first")
        await context.call("send", {"to": to, "body": first})
        second = await context.ask(WRITER, "second")
        third = await context.ask(WRITER, "third after ", second)
        await context.call("send", {"to": to, "body": third})
        return third


def test_a_run_goes_on_after_its_process_was_killed(tmp_path: Path, journal: Journal) -> None:
    here = str(Path(__file__).parent)
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "journal.db"), here, str(Path(here).parent)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    there = table(lambda request: request.messages[-1].text.upper(), journal=journal)
    outcome = answered(asyncio.run(resume_pattern(journal, "the-run", there.desk, pattern=SendTwice())))
    assert outcome.value == "THIRD AFTER SECOND"
    assert [request.messages[-1].text for request in there.privileged.asked] == ["third after SECOND"]
    assert [body for _, (_, body) in there.world.done] == ["THIRD AFTER SECOND"], "the first was sent before the kill"
    assert [done.tool for done in outcome.effects] == ["send", "send"]
    assert outcome.taken.calls == 3
    again = replayed(journal, "the-run", there.desk, pattern=SendTwice())
    assert again.identical, again.differences


IN_DOUBT_CHILD = textwrap.dedent(
    """
    import asyncio, sys
    sys.path[:0] = sys.argv[3:]
    from test_patterns_runs import DESK_ERRAND, stamp_twice, stamps
    from patterns_world import table
    from pathlib import Path
    from bicameral.journal import open_journal_at
    from bicameral.patterns import ReAct
    from bicameral.patterns.kernel import PatternWork, run_pattern

    desk = table(stamp_twice, tools=[stamps(Path(sys.argv[2]), dies=True)], journal=open_journal_at(sys.argv[1])).desk
    asyncio.run(run_pattern(PatternWork(ReAct(), [DESK_ERRAND]), desk, run="the-run"))
    """
)
DESK_ERRAND = from_user("Stamp the sheet.")


def stamps(sheet: Path, *, dies: bool = False) -> Tool:
    @tool(effect="write", purpose={"text": "carries"}, origins=Origin("system"), outbound=False)
    def stamp(text: str) -> str:
        """Put one more stamp on the sheet."""
        with sheet.open("a") as out:
            out.write(f"{text}\n")
        if dies:
            time.sleep(0.5)  # The journal's thread writes in batches.
            os.kill(os.getpid(), signal.SIGKILL)
        return "stamped"

    return stamp


def stamp_twice(request: ModelRequest) -> str | list[ToolCall]:
    """Asks for a stamp until one is told of, as a model does that is told of a failure."""
    told = [message.text for message in request.messages if message.speaker == "tool"]
    return "done" if "stamped" in told else [ToolCall(f"call-{len(told)}", "stamp", {"text": "paid"})]


@pytest.mark.parametrize("yes", [True, False])
def test_a_model_is_not_asked_on_after_a_call_in_doubt_that_is_not_repeated(
    tmp_path: Path, journal: Journal, yes: bool
) -> None:
    here, sheet = str(Path(__file__).parent), tmp_path / "sheet.txt"
    ended = subprocess.run(
        [sys.executable, "-c", IN_DOUBT_CHILD, str(tmp_path / "journal.db"), str(sheet), here, str(Path(here).parent)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    there = table(stamp_twice, tools=[stamps(sheet)], journal=journal, approver=Inbox(yes=yes))
    outcome = asyncio.run(resume_pattern(journal, "the-run", there.desk, pattern=ReAct()))
    if yes:
        assert answered(outcome).value == "done"
        assert sheet.read_text().splitlines() == ["paid", "paid"], "a person wanted it done again"
    else:
        # Told of a failure, the model would ask for the stamp once more, and it would be on the sheet twice.
        assert isinstance(outcome, GaveUp)
        assert outcome.error.code == "run.in-doubt"
        assert there.privileged.asked == []
        assert sheet.read_text().splitlines() == ["paid"]
    assert replayed(journal, "the-run", there.desk, pattern=ReAct()).identical


def test_another_pattern_does_not_go_on_with_the_run(journal: Journal) -> None:
    def stop(request: ModelRequest) -> str:
        raise KeyboardInterrupt

    there = table(stop, journal=journal)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run_pattern(PatternWork(ReWOO(), [program_text("How many?")]), there.desk, run="r"))
    with pytest.raises(BicameralError) as caught:
        asyncio.run(resume_pattern(journal, "r", there.desk, pattern=ReWOO(max_calls=3)))
    assert caught.value.code in ("run.other-code", "run.ended")


@dataclass(frozen=True)
class ReadThenSend(Pattern[[Labelled[str]], str]):
    """Sends what a stranger wrote, which policy asks about."""

    id: ClassVar[str] = "R5"

    async def execute(self, context: Context, /, to: Labelled[str]) -> Labelled[str]:
        page = await context.call("read_page", {"name": program_text("start")})
        words = await context.ask(WRITER, "Shorten: ", page)
        await context.call("send", {"to": to, "body": words})
        return words


class Inbox:
    """An approver who is not there the first time."""

    def __init__(self, *, yes: bool | None) -> None:
        self.yes = yes
        self.questions: list[ApprovalQuestion] = []

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.questions.append(question)
        if self.yes is None:
            raise Suspend
        return Answers(frozenset(call.hash for call in question.calls) if self.yes else frozenset())


@pytest.mark.parametrize("yes", [True, False])
def test_a_pattern_waits_for_a_person_without_a_process(journal: Journal, yes: bool) -> None:
    there = table(quarantined=[HOSTILE], journal=journal, approver=Inbox(yes=None))
    outcome = asyncio.run(
        run_pattern(PatternWork(ReadThenSend(), [from_user(EVE)]), there.desk, run="r", may_wait=True)
    )
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.waits"
    assert there.world.done == []
    later = table(journal=journal, approver=Inbox(yes=yes))
    ended = asyncio.run(resume_pattern(journal, "r", later.desk, pattern=ReadThenSend()))
    assert later.quarantined.asked == [], "what was read before the question is in the record"
    if yes:
        assert answered(ended).value == HOSTILE
        assert later.world.done == [("send", (EVE, HOSTILE))]
        assert not answered(ended).label.trusted
    else:
        assert isinstance(ended, GaveUp)
        assert ended.error.code == "run.refused"
        assert later.world.done == []
    assert replayed(journal, "r", later.desk, pattern=ReadThenSend()).identical


def test_a_part_that_waits_lets_the_others_finish(journal: Journal) -> None:
    async def send(context: Context) -> Labelled[Any]:
        page = await context.call("read_page", {"name": program_text("start")})
        await context.call("send", {"to": from_user(EVE), "body": page})
        return program_text("sent")

    async def count(context: Context) -> Labelled[Any]:
        for _ in range(3):
            await context.ask(WRITER, "count")
        return program_text("counted")

    async def both(context: Context) -> Labelled[Any]:
        found = await context.run_parallel([("send", send), ("count", count)], width=2)
        return context.derive([context.read(each) for each in found if isinstance(each, Labelled)])

    there = table(["1", "2", "3"], journal=journal, approver=Inbox(yes=None))
    waits = asyncio.run(run_pattern(PatternWork(Work(both)), there.desk, run="r", may_wait=True))
    assert isinstance(waits, GaveUp)
    assert waits.error.code == "run.waits"
    assert len(there.privileged.asked) == 3
    later = table(journal=journal, approver=Inbox(yes=True))
    ended = answered(asyncio.run(resume_pattern(journal, "r", later.desk, pattern=Work(both))))
    assert ended.value == ["sent", "counted"]
    assert later.privileged.asked == []


def test_a_stranger_does_not_gain_trust_by_the_death_of_the_process(journal: Journal) -> None:
    """The labels of what was read before are those of the record: a resumed run decides like the one before it."""
    there = table(quarantined=[HOSTILE], journal=journal, approver=Inbox(yes=None))
    asyncio.run(run_pattern(PatternWork(ReadThenSend(), [from_user(EVE)]), there.desk, run="r", may_wait=True))
    later = table(journal=journal, approver=None)
    ended = asyncio.run(resume_pattern(journal, "r", later.desk, pattern=ReadThenSend()))
    assert isinstance(ended, GaveUp)
    assert ended.error.code == "run.needs-approval"
    assert later.world.done == []


# Patterns as JSON ---------------------------------------------------------------------------------------------------


NOT_PORTABLE = {"K1", "V5", "V7", "H4"}
"""Examples that hold a store or a function of their own."""


@pytest.mark.parametrize("id", IMPLEMENTED)
def test_a_pattern_comes_back_from_its_record(id: str, tmp_path: Path) -> None:
    pattern = example_of(id).make(tmp_path)
    written = json.loads(json.dumps(to_record(pattern)))
    if id in NOT_PORTABLE:
        with pytest.raises(BicameralError) as caught:
            from_record(written)
        assert caught.value.code == "pattern.not-portable"
        return
    found = from_record(written)
    assert type(found) is type(pattern)
    assert fingerprint(to_record(found)) == fingerprint(written)


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "bicameral.toolboxes.files:toolbox",
        "bicameral.patterns.kernel._codec:import_module",
        "bicameral.x:y",
    ],
)
def test_a_record_cannot_name_what_is_imported(name: str) -> None:
    with pytest.raises(BicameralError) as caught:
        from_record({"$name": name})
    assert caught.value.code == "pattern.not-portable"
    with pytest.raises(BicameralError):
        from_record({"$data": name, "fields": {}})


def test_labels_of_arguments_are_in_the_record() -> None:
    from bicameral.patterns.kernel import untrusted_value

    closed = untrusted_value(HOSTILE, "web")
    back = from_record(json.loads(json.dumps(to_record([closed]))))[0]
    assert not back.label.trusted
    assert back.label == closed.label
