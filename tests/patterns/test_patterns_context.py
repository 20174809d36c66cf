"""What a context offers to patterns: questions with checks, choices, parts with a quorum, rounds, once, approvals."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from patterns_world import EVE, HOSTILE, Speaker, Table, Work, World, answered, run_work, table

from bicameral.errors import BicameralError, ModelError, RetrievalError, RunError
from bicameral.journal import Journal, open_journal_at
from bicameral.labels import Labelled, program_text, untrusted_value
from bicameral.limits import STRATEGY, meters_in_force, strategy_limits
from bicameral.models import ModelRequest, ToolCall
from bicameral.patterns import Exhausted, GaveUp
from bicameral.patterns.kernel import (
    CallFailed,
    Context,
    Pattern,
    PatternWork,
    PromptText,
    Role,
    from_user,
    replay_pattern,
    resume_pattern,
    run_pattern,
)
from bicameral.routing import Alias, Aliases, Router, Selection
from bicameral.runs import Answers, ApprovalQuestion, Replayed, Suspend
from bicameral.tools import Origin, call_key, tool
from bicameral.types import STR, Field, IntType, RecordType

WRITER = Role("Writer", "You write.")
READER = Role("Reader", "the sum that is due")
NUMBER = RecordType((Field("number", IntType()),))
WorkFunction = Callable[[Context], Awaitable[Labelled[Any]]]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return open_journal_at(tmp_path / "journal.db")


def replayed(journal: Journal, run: str, there: Table, work: WorkFunction) -> Replayed:
    return asyncio.run(replay_pattern(journal, run, there.desk.registry, there.desk.policy, pattern=Work(work)))


def run(there: Table, work: WorkFunction) -> Any:
    return asyncio.run(run_work(there.desk, work))


def record_text(journal: Journal, run: str, *kinds: str) -> str:
    return json.dumps([event.body for event in journal.events(run) if event.kind in kinds])


# Forms with a check -------------------------------------------------------------------------------------------------


def is_even(value: Any) -> str | None:
    return None if value["number"] % 2 == 0 else f"{value['number']} is odd"


async def fill_even(context: Context) -> Labelled[Any]:
    return await context.fill(WRITER, "An even number", wanted=NUMBER, check=is_even, retries=2)


def test_a_model_is_shown_its_reply_and_the_exact_reason(journal: Journal) -> None:
    there = table(["seven", '{"number": 7}', '{"number": 8}'], journal=journal)
    outcome = answered(run(there, fill_even))
    assert outcome.value == {"number": 8}
    first, second, third = (request.messages for request in there.privileged.asked)
    assert second[:2] == third[:2] == first
    assert second[2].text == "seven"
    assert "it is not JSON" in second[3].text
    assert third[2].text == '{"number": 7}'
    assert "7 is odd" in third[3].text
    assert replayed(journal, outcome.run, there, fill_even).identical


def test_a_value_that_never_passes_is_an_error_with_the_reason() -> None:
    there = table(['{"number": 7}'] * 3)
    outcome = run(there, fill_even)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "models.bad-reply"
    assert "7 is odd" in str(outcome.error)


def test_the_reason_of_a_check_stays_where_the_untrusted_text_is(journal: Journal) -> None:
    """An attack: a page that makes the reader write an order, which the complaint of a check then quotes."""

    def quotes(value: Any) -> str | None:
        return f"do not say {value['text']!r}"

    async def attacked(context: Context) -> Labelled[Any]:
        page = await context.call("read_page", {"name": program_text("start")})
        form = RecordType((Field("text", STR),))
        try:
            await context.fill(WRITER, "Summarise: ", page, wanted=form, check=quotes)
        except ModelError as error:
            context.note("gave up", code=error.code)
            await context.ask(WRITER, "Go on without it.")
            return context.derive(str(error))
        raise AssertionError

    there = table(quarantined=[json.dumps({"text": HOSTILE})] * 2 + ["Well."], journal=journal)
    outcome = answered(run(there, attacked))
    assert there.privileged.asked == [], "what was rejected decides what is asked next"
    assert HOSTILE in there.quarantined.asked[1].messages[-1].text
    assert EVE not in outcome.value
    assert EVE not in str(outcome.trace)
    assert EVE not in record_text(journal, outcome.run, "note")
    assert not outcome.label.trusted
    assert replayed(journal, outcome.run, there, attacked).identical


def test_a_check_that_fails_says_nothing_of_the_value() -> None:
    def fails(value: Any) -> str | None:
        raise KeyError(value["text"])

    async def work(context: Context) -> Labelled[Any]:
        page = await context.call("read_page", {"name": program_text("start")})
        return await context.fill(WRITER, page, wanted=RecordType((Field("text", STR),)), check=fails)

    outcome = run(table(quarantined=[json.dumps({"text": HOSTILE})]), work)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.check-failed"
    assert EVE not in str(outcome.error.to_json())


def test_a_check_cannot_change_the_value_that_it_passes() -> None:
    def doubles(value: Any) -> str | None:
        value["number"] *= 2
        return None

    async def work(context: Context) -> Labelled[Any]:
        return await context.fill(WRITER, "A number", wanted=NUMBER, check=doubles)

    assert answered(run(table(['{"number": 7}']), work)).value == {"number": 7}


# Choices ------------------------------------------------------------------------------------------------------------


def test_a_choice_is_one_of_the_options(journal: Journal) -> None:
    async def choose(context: Context) -> Labelled[Any]:
        options: dict[str, PromptText] = {"billing": "Invoices.", "support": program_text("Defects.")}
        return await context.choose(WRITER, "Where to?", options=options)

    there = table(['{"value": "sales"}', '{"value": "support"}'], journal=journal)
    outcome = answered(run(there, choose))
    assert outcome.value == "support"
    assert outcome.label.trusted
    request = there.privileged.asked[0]
    assert request.json_schema is not None
    assert request.json_schema["properties"]["value"]["enum"] == ["billing", "support"]
    assert request.messages[1].text == "Where to?\n\nChoose one of:\n- billing: Invoices.\n- support: Defects."
    assert replayed(journal, outcome.run, there, choose).identical


def test_options_from_untrusted_text_make_the_question_untrusted() -> None:
    async def choose(context: Context) -> Labelled[Any]:
        about = untrusted_value(HOSTILE, "web")
        return await context.choose(WRITER, "Which?", options={"a": about, "b": "The other."})

    there = table(quarantined=['{"value": "a"}'])
    outcome = answered(run(there, choose))
    assert there.privileged.asked == []
    assert not outcome.label.trusted


@pytest.mark.parametrize("options", [(), ("a", "a"), ("a", " ")])
def test_options_without_names_of_their_own_are_refused(options: tuple[str, ...]) -> None:
    async def choose(context: Context) -> Labelled[Any]:
        return await context.choose(WRITER, "Which?", options=options)

    outcome = run(table(), choose)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.bad-options"


# Parts with a quorum or a time limit --------------------------------------------------------------------------------


def ask_after(seconds: float, text: str) -> WorkFunction:
    async def work(part: Context) -> Labelled[Any]:
        await asyncio.sleep(seconds)
        first = await part.ask(WRITER, "first ", part.derive(text))
        return await part.ask(WRITER, "second after ", first)

    return work


class Delays:
    """Seconds by name, which a replay may have otherwise: they are no setting of the pattern."""

    def __init__(self, **seconds: float) -> None:
        self.seconds = seconds


class Signals:
    """Events by name, so that parts come to a place in a certain order."""

    def __init__(self, *names: str) -> None:
        self.by_name = {name: asyncio.Event() for name in names}

    def __getitem__(self, name: str) -> asyncio.Event:
        return self.by_name[name]


def ask_when(event: asyncio.Event) -> WorkFunction:
    async def work(part: Context) -> Labelled[Any]:
        await event.wait()
        return await part.ask(WRITER, "now")

    return work


class SlowApprover:
    """An approver who answers the first question late or never, and says yes."""

    def __init__(self) -> None:
        self.waits_for = asyncio.Event()
        self.questions: list[ApprovalQuestion] = []
        self.asked = asyncio.Event()

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.questions.append(question)
        self.asked.set()
        if len(self.questions) == 1:
            await self.waits_for.wait()
        return Answers.yes(question.calls)

    @property
    def recipients(self) -> list[str]:
        return [call.arguments["to"] for question in self.questions for call in question.calls]


def echo(request: ModelRequest) -> str:
    return request.messages[-1].text.upper()


def codes(found: list[Any]) -> list[str]:
    return [each.code if isinstance(each, BicameralError) else "ok" for each in found]


def test_parts_beyond_the_quorum_are_cut_off_and_again_in_a_replay(journal: Journal) -> None:
    delays = Delays(a=0.0, b=30.0, c=0.01)

    async def vote(context: Context) -> Labelled[Any]:
        works = [(name, ask_after(delay, name)) for name, delay in delays.seconds.items()]
        found = await context.gather(works, width=3, quorum=2)
        return context.derive(codes(found))

    there = table(echo, journal=journal)
    outcome = answered(run(there, vote))
    assert outcome.value == ["ok", "pattern.not-needed", "ok"]
    assert len(there.privileged.asked) == 4
    delays.seconds = dict.fromkeys("abc", 0.0)
    again = replayed(journal, outcome.run, there, vote)
    assert again.identical, again.differences
    assert again.answer == outcome.value


def test_a_part_that_was_cut_off_in_the_middle_gets_as_far_again(journal: Journal) -> None:
    async def vote(context: Context) -> Labelled[Any]:
        async def straggler(part: Context) -> Labelled[Any]:
            part.note("began")
            first = await part.ask(WRITER, "slowly")
            part.note("had", text=len(part.read(first)))
            return await part.ask(WRITER, "never")

        works = [("straggler", straggler), ("fast", ask_after(0.03, "1"))]
        found = await context.gather(works, width=2, quorum=1)
        return context.derive(codes(found))

    there = table(echo, journal=journal)
    generate = there.privileged.generate

    async def waits(request: ModelRequest) -> Any:
        if request.messages[-1].text == "never":
            await asyncio.sleep(30)
        return await generate(request)

    there.privileged.generate = waits  # type: ignore[method-assign]
    outcome = answered(run(there, vote))
    assert outcome.value == ["pattern.not-needed", "ok"]
    again = replayed(journal, outcome.run, there, vote)
    assert again.identical, again.differences


def test_a_timeout_in_a_replay_is_that_of_the_record(journal: Journal) -> None:
    delays = Delays(a=0.0, b=30.0)

    async def race(context: Context) -> Labelled[Any]:
        works = [(name, ask_after(delay, name)) for name, delay in delays.seconds.items()]
        found = await context.gather(works, width=2, timeout=0.5)
        return context.derive(codes(found))

    there = table(echo, journal=journal)
    outcome = answered(run(there, race))
    assert outcome.value == ["ok", "pattern.part-timeout"]
    delays.seconds["b"] = 0.0
    again = replayed(journal, outcome.run, there, race)
    assert again.identical, again.differences
    assert again.answer == ["ok", "pattern.part-timeout"]


def test_parts_that_were_in_time_are_not_cut_off_in_a_slower_replay(journal: Journal) -> None:
    delays = Delays(a=0.0, b=0.0)

    async def race(context: Context) -> Labelled[Any]:
        works = [(name, ask_after(delay, name)) for name, delay in delays.seconds.items()]
        return context.derive(codes(await context.gather(works, width=1, timeout=5.0, quorum=2)))

    there = table(echo, journal=journal)
    outcome = answered(run(there, race))
    delays.seconds = {"a": 0.1, "b": 0.02}
    assert outcome.value == ["ok", "ok"]
    again = replayed(journal, outcome.run, there, race)
    assert again.identical, again.differences


def test_a_part_that_never_began_does_not_begin_in_a_replay(journal: Journal) -> None:
    async def noting(part: Context) -> Labelled[Any]:
        part.note("began")
        return await part.ask(WRITER, "one")

    async def vote(context: Context) -> Labelled[Any]:
        found = await context.gather([("a", noting), ("b", noting)], width=1, quorum=1)
        return context.derive(codes(found))

    there = table(echo, journal=journal)
    outcome = answered(run(there, vote))
    assert outcome.value == ["ok", "pattern.not-needed"]
    again = replayed(journal, outcome.run, there, vote)
    assert again.identical, again.differences


def test_a_straggler_that_ignores_its_cancellation_cannot_act(journal: Journal) -> None:
    """An attack: a part goes on after it was cut off, by itself and in a task of its own, and sends."""
    refused: list[str] = []
    tasks: list[asyncio.Task[Any]] = []

    async def straggler(part: Context) -> Labelled[Any]:
        async def act() -> None:
            await asyncio.sleep(0.05)
            for deed in (
                lambda: part.call("send", {"to": program_text("me@example.com"), "body": program_text("late")}),
                lambda: part.ask(WRITER, "late"),
                lambda: part.part("inner").ask(WRITER, "late"),
                lambda: part.once("late", save),
                lambda: part.approve("Late?"),
            ):
                try:
                    await deed()
                except RunError as error:
                    refused.append(error.code)

        async def save() -> Labelled[Any]:
            refused.append("saved")
            return part.derive("saved")

        tasks.append(asyncio.create_task(act()))
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await act()
        return part.derive("late")

    async def vote(context: Context) -> Labelled[Any]:
        found = await context.gather([("s", straggler), ("f", ask_after(0.0, "1"))], width=2, quorum=1)
        await asyncio.gather(*tasks)
        return context.derive(codes(found))

    there = table(echo, journal=journal)
    outcome = answered(run(there, vote))
    assert outcome.value == ["pattern.not-needed", "ok"]
    assert refused == ["pattern.part-ended"] * 10
    assert there.world.done == []


def test_a_call_that_a_straggler_has_asked_about_is_not_made(journal: Journal) -> None:
    """An attack: the call of a part waits for approval when the part is cut off, and another part's question comes."""
    approver = SlowApprover()

    async def vote(context: Context) -> Labelled[Any]:
        found = await context.gather([("s", send_to(EVE)), ("f", ask_when(approver.asked))], width=2, quorum=1)
        said = codes(found)
        page = await context.call("read_page", {"name": program_text("start")})
        await context.call("send", {"to": from_user("me@example.com"), "body": page})
        return context.derive(said)

    there = table(echo, echo, journal=journal, approver=approver)
    outcome = answered(run(there, vote))
    assert outcome.value == ["pattern.not-needed", "ok"]
    assert [to for _, (to, _) in there.world.done] == ["me@example.com"]
    assert approver.recipients == [EVE, "me@example.com"]
    again = replayed(journal, outcome.run, there, vote)
    assert again.identical, again.differences


def send_to(to: str, *, after: asyncio.Event | None = None, sets: asyncio.Event | None = None) -> WorkFunction:
    """A part that sends what a stranger wrote, which policy asks about."""

    async def work(part: Context) -> Labelled[Any]:
        page = await part.call("read_page", {"name": program_text("start")})
        if after is not None:
            await after.wait()
        if sets is not None:
            sets.set()
        return await part.call("send", {"to": from_user(to), "body": page})

    return work


def test_the_calls_of_others_survive_the_part_that_asked_for_them(journal: Journal) -> None:
    """The part that asks the person is cut off while another one waits for the same person: that one asks itself."""
    approver, signals = SlowApprover(), Signals("own")

    async def both(context: Context) -> Labelled[Any]:
        async def race(part: Context) -> Labelled[Any]:
            works = [("s", send_to(EVE)), ("f", ask_when(signals["own"]))]
            return part.derive(codes(await part.gather(works, width=2, quorum=1)))

        own = send_to("me@example.com", after=approver.asked, sets=signals["own"])
        return context.derive(codes(await context.run_parallel([("race", race), ("own", own)], width=2)))

    there = table(echo, echo, journal=journal, approver=approver)
    outcome = answered(run(there, both))
    assert outcome.value == ["ok", "ok"]
    assert approver.recipients == [EVE, "me@example.com"]
    assert [to for _, (to, _) in there.world.done] == ["me@example.com"]
    again = replayed(journal, outcome.run, there, both)
    assert again.identical, again.differences


def test_a_yes_to_a_part_that_was_cut_off_meanwhile_is_not_used(journal: Journal) -> None:
    """An attack: the question of another part covers the call of a straggler, and the person says yes to both."""
    approver, signals = SlowApprover(), Signals("straggler", "cut")
    approver.waits_for = signals["cut"]

    async def both(context: Context) -> Labelled[Any]:
        async def race(part: Context) -> Labelled[Any]:
            works = [("s", send_to(EVE)), ("f", ask_when(approver.asked))]
            found = await part.gather(works, width=2, quorum=1)
            signals["cut"].set()
            return part.derive(codes(found))

        works = [("own", send_to("me@example.com")), ("race", race)]
        return context.derive(codes(await context.run_parallel(works, width=2)))

    there = table(echo, echo, journal=journal, approver=approver)
    outcome = answered(run(there, both))
    assert outcome.value == ["ok", "ok"]
    assert sorted(approver.recipients) == [EVE, "me@example.com"]
    assert len(approver.questions) == 1
    assert [to for _, (to, _) in there.world.done] == ["me@example.com"]
    again = replayed(journal, outcome.run, there, both)
    assert again.identical, again.differences


def test_parts_make_their_own_calls_after_one_question(journal: Journal) -> None:
    """The part that asks is cut off while the call of another one, which was in its question, is made."""
    approver, signals = SlowApprover(), Signals("own", "sending")
    approver.waits_for = signals["own"]
    sent: list[str] = []

    @tool(effect="send", purpose={"to": "directs", "body": "carries"}, origins=Origin("system"), receivers=("to",))
    async def send(to: str, body: str) -> str:
        """Send a mail."""
        if to == "me@example.com":
            signals["sending"].set()
            await asyncio.sleep(0.05)
        sent.append(to)
        return "sent"

    async def both(context: Context) -> Labelled[Any]:
        async def asker(part: Context) -> Labelled[Any]:
            given = await send_to(EVE)(part)
            part.note("sent", length=len(part.read(given)))
            await asyncio.sleep(30)
            return given

        async def race(part: Context) -> Labelled[Any]:
            works = [("s", asker), ("f", ask_when(signals["sending"]))]
            return part.derive(codes(await part.gather(works, width=2, quorum=1)))

        async def own(part: Context) -> Labelled[Any]:
            given = await send_to("me@example.com", after=approver.asked, sets=signals["own"])(part)
            return part.derive(part.read(given))

        found = await context.run_parallel([("race", race), ("own", own)], width=2)
        return context.derive([context.read(each) for each in found if isinstance(each, Labelled)])

    page = next(each for each in World().tools() if each.name == "read_page")
    there = table(echo, echo, journal=journal, approver=approver, tools=[page, send])
    outcome = answered(run(there, both))
    assert outcome.value == [["pattern.not-needed", "ok"], "sent"]
    assert sorted(sent) == [EVE, "me@example.com"], "the first was made before its part was cut off"
    again = replayed(journal, outcome.run, there, both)
    assert again.identical, again.differences


def test_a_part_that_had_its_answer_before_it_was_cut_off_has_it_again(journal: Journal) -> None:
    signals = Signals("answered")

    async def straggler(part: Context) -> Labelled[Any]:
        part.note("approved", yes=await part.approve("Go on?"))
        await part.ask(WRITER, "one")
        signals["answered"].set()
        await asyncio.sleep(30)
        return part.derive("late")

    async def vote(context: Context) -> Labelled[Any]:
        works = [("s", straggler), ("f", ask_when(signals["answered"]))]
        return context.derive(codes(await context.gather(works, width=2, quorum=1)))

    there = table(echo, journal=journal, approver=Inbox(True))
    outcome = answered(run(there, vote))
    again = replayed(journal, outcome.run, there, vote)
    assert again.identical, again.differences


def test_a_change_that_a_straggler_had_begun_is_finished_and_replayed(journal: Journal) -> None:
    done: list[str] = []
    signals = Signals("begun")

    @tool(effect="write", outbound=False, origins=Origin("system"), purpose={"text": "carries"})
    async def save(text: str) -> str:
        """Save a text."""
        signals["begun"].set()
        await asyncio.sleep(0.1)
        done.append(text)
        return "saved"

    async def straggler(part: Context) -> Labelled[Any]:
        given = await part.call("save", {"text": program_text("begun")})
        part.note("saved", length=len(part.read(given)))
        await part.call("save", {"text": program_text("later")})
        return given

    async def vote(context: Context) -> Labelled[Any]:
        works = [("s", straggler), ("f", ask_when(signals["begun"]))]
        return context.derive(codes(await context.gather(works, width=2, quorum=1)))

    there = table(echo, journal=journal, tools=[save])
    outcome = answered(run(there, vote))
    assert done == ["begun"]
    assert [each.tool for each in outcome.effects] == ["save"]
    again = replayed(journal, outcome.run, there, vote)
    assert again.identical, again.differences


def test_what_decided_a_cut_is_in_the_label(journal: Journal) -> None:
    signals = Signals("read")

    async def reads(part: Context) -> Labelled[Any]:
        part.read(await part.call("read_page", {"name": program_text("start")}))
        signals["read"].set()
        await asyncio.sleep(30)
        return part.derive("late")

    async def vote(context: Context) -> Labelled[Any]:
        await context.gather([("s", reads), ("f", ask_when(signals["read"]))], width=2, quorum=1)
        return program_text("done")

    there = table(echo, journal=journal)
    outcome = answered(run(there, vote))
    assert not outcome.label.trusted
    assert replayed(journal, outcome.run, there, vote).identical


def test_effects_of_parts_that_end_in_another_order_are_replayed(journal: Journal) -> None:
    def sender(to: str, delay: float) -> WorkFunction:
        async def work(part: Context) -> Labelled[Any]:
            await asyncio.sleep(delay)
            return await part.call("send", {"to": from_user(to), "body": program_text("hello")})

        return work

    delays = Delays(x=0.05, y=0.0)

    async def both(context: Context) -> Labelled[Any]:
        works = [(name, sender(f"{name}@example.com", delay)) for name, delay in delays.seconds.items()]
        return context.derive(codes(await context.run_parallel(works, width=2)))

    there = table(journal=journal)
    outcome = answered(run(there, both))
    assert [each.step for each in outcome.effects] == ["y/call 1", "x/call 1"]
    delays.seconds = {"x": 0.0, "y": 0.05}
    again = replayed(journal, outcome.run, there, both)
    assert again.identical, again.differences


# Rounds -------------------------------------------------------------------------------------------------------------


async def longest(context: Context) -> Labelled[Any]:
    rounds = context.rounds(most=4, best=len)
    async for turn in rounds:
        draft = await turn.context.ask(WRITER, "Draft ", context.derive(turn.number))
        turn.give(draft)
        if turn.number == 3:
            break
    context.note("rounds", begun=rounds.begun, score=rounds.score or 0)
    return rounds.result


def test_rounds_keep_the_best_result(journal: Journal) -> None:
    there = table(["two", "longest", "short"], journal=journal)
    outcome = answered(run(there, longest))
    assert outcome.value == "longest"
    notes = [event.body for event in journal.events(outcome.run) if event.kind == "note"]
    assert [(each["number"], each["best"]) for each in notes[:-1]] == [(1, True), (2, True), (3, False)]
    again = replayed(journal, outcome.run, there, longest)
    assert again.identical, again.differences


def test_there_are_not_more_rounds_than_allowed_and_none_is_an_error() -> None:
    async def work(context: Context) -> Labelled[Any]:
        rounds = context.rounds(most=2, best=len)
        async for _ in rounds:
            pass
        assert rounds.begun == 2
        return rounds.result

    outcome = run(table(), work)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.no-result"


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_is_a_number(score: float) -> None:
    async def work(context: Context) -> Labelled[Any]:
        async for turn in context.rounds(most=1):
            turn.give(program_text("draft"), context.derive(score))
        return program_text("done")

    outcome = run(table(), work)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.no-score"


def test_what_a_round_reads_is_read_by_the_pattern() -> None:
    """An attack: untrusted text ends the loop, and what comes after it would not know that."""

    async def work(context: Context) -> Labelled[Any]:
        async for turn in context.rounds(most=3):
            page = await turn.context.call("read_page", {"name": program_text("start")})
            if EVE in turn.context.read(page):
                break
        await context.ask(WRITER, "Go on.")
        return program_text("done")

    there = table(quarantined=["Well."])
    assert not answered(run(there, work)).label.trusted
    assert there.privileged.asked == []


# Work that is done once ---------------------------------------------------------------------------------------------

ONCE_CHILD = textwrap.dedent(
    """
    import asyncio, os, signal, sys
    sys.path[:0] = sys.argv[2:]
    from patterns_world import *
    from test_patterns_context import SaveOnce
    from bicameral.journal import open_journal_at
    from bicameral.patterns.kernel import PatternWork, run_pattern

    journal = open_journal_at(sys.argv[1])
    asyncio.run(run_pattern(PatternWork(SaveOnce()), table(["one"], journal=journal).desk, run="the-run"))
    """
)


def _append(path: str, line: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(line)


@dataclass(frozen=True)
class SaveOnce(Pattern[[], str]):
    """Writes a line to a file that is no tool."""

    id: ClassVar[str] = "R5"
    repeatable: bool = False

    async def execute(self, context: Context, /) -> Labelled[str]:
        text = context.read(await context.ask(WRITER, "What?"))

        async def save() -> Labelled[str]:
            _append(os.environ["SAVED"], f"{text} {call_key()}\n")
            if "DIES" in os.environ:
                os.kill(os.getpid(), signal.SIGKILL)
            return context.derive(f"saved {text}")

        return await context.once("save", save, repeatable=self.repeatable)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the journal and the file of a process that was killed while it saved."""
    here, folder = Path(__file__).parent, tmp_path_factory.mktemp("killed")
    ended = subprocess.run(
        [sys.executable, "-c", ONCE_CHILD, str(folder / "journal.db"), str(here), str(here.parent)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SAVED": str(folder / "saved.txt"), "DIES": "1"},
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    return folder


class Inbox:
    """An approver who suspends the run until there is an answer."""

    def __init__(self, yes: bool | None) -> None:
        self.yes = yes
        self.questions: list[ApprovalQuestion] = []

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.questions.append(question)
        if self.yes is None:
            raise Suspend
        return Answers.yes(question.calls) if self.yes else Answers.no()


@pytest.mark.parametrize("yes", [True, False, None])
def test_work_that_was_killed_in_the_middle_is_not_repeated_unasked(
    killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, yes: bool | None
) -> None:
    folder = Path(shutil.copytree(killed, tmp_path / "copy"))
    monkeypatch.setenv("SAVED", str(folder / "saved.txt"))
    journal = open_journal_at(folder / "journal.db")
    inbox = Inbox(yes)
    there = table(journal=journal, approver=inbox)
    outcome = asyncio.run(resume_pattern(journal, "the-run", there.desk, pattern=SaveOnce()))
    (call,) = inbox.questions[0].calls
    assert call.why.startswith("in doubt: 'save'")
    lines = (folder / "saved.txt").read_text().splitlines()
    if yes:
        assert answered(outcome).value == "saved one"
        assert len(lines) == 2
        assert len(set(lines)) == 1, "both have the same key"
        desk = there.desk
        again = asyncio.run(replay_pattern(journal, "the-run", desk.registry, desk.policy, pattern=SaveOnce()))
        assert again.identical, again.differences
    else:
        assert isinstance(outcome, GaveUp)
        assert outcome.error.code == ("run.waits" if yes is None else "run.in-doubt")
        if yes is not None:
            registry, policy = there.desk.registry, there.desk.policy
            again = asyncio.run(replay_pattern(journal, "the-run", registry, policy, pattern=SaveOnce()))
            assert again.identical, again.differences
        assert len(lines) == 1


def test_work_that_has_ended_is_not_done_again(tmp_path: Path, journal: Journal) -> None:
    async def work(context: Context) -> Labelled[Any]:
        async def save() -> Labelled[Any]:
            _append(str(tmp_path / "saved.txt"), "line\n")
            return untrusted_value("from outside", "store")

        saved = await context.once("save", save)
        if not await context.approve("Go on?"):
            return program_text("no")
        return saved

    there = table(journal=journal, approver=Inbox(None))
    waits = asyncio.run(run_pattern(PatternWork(Work(work)), there.desk, run="r", may_wait=True))
    assert isinstance(waits, GaveUp)
    assert waits.error.code == "run.waits"
    later = table(journal=journal, approver=Inbox(True))
    outcome = answered(asyncio.run(resume_pattern(journal, "r", later.desk, pattern=Work(work))))
    assert outcome.value == "from outside"
    assert not outcome.label.trusted, "the label is in the record"
    assert (tmp_path / "saved.txt").read_text() == "line\n"
    assert [each.tool for each in outcome.effects] == ["save"]
    again = replayed(journal, "r", later, work)
    assert again.identical, again.differences
    assert (tmp_path / "saved.txt").read_text() == "line\n"


def test_work_that_fails_is_a_recorded_failure(journal: Journal) -> None:
    async def work(context: Context) -> Labelled[Any]:
        async def save() -> Labelled[Any]:
            raise OSError("the disk is full")

        try:
            return await context.once("save", save)
        except BicameralError as error:
            return context.derive(error.code)

    there = table(journal=journal)
    outcome = answered(run(there, work))
    assert outcome.value == "tools.failed"
    assert replayed(journal, outcome.run, there, work).identical


# A person's gate ----------------------------------------------------------------------------------------------------


async def gated(context: Context) -> Labelled[Any]:
    page = await context.call("read_page", {"name": program_text("start")})
    if not await context.approve("Is this what should go out?", text=page, to=program_text("me")):
        return program_text("no")
    return program_text("yes")


@pytest.mark.parametrize("yes", [True, False])
def test_a_person_decides_in_the_middle_of_a_pattern(journal: Journal, yes: bool) -> None:
    there = table(journal=journal, approver=Inbox(None))
    waits = asyncio.run(run_pattern(PatternWork(Work(gated)), there.desk, run="r", may_wait=True))
    assert isinstance(waits, GaveUp)
    assert waits.error.code == "run.waits"
    inbox = Inbox(yes)
    later = table(journal=journal, approver=inbox)
    outcome = answered(asyncio.run(resume_pattern(journal, "r", later.desk, pattern=Work(gated))))
    assert outcome.value == ("yes" if yes else "no")
    assert outcome.label.trusted, "a person decided"
    (call,) = inbox.questions[0].calls
    assert call.why == "Is this what should go out?"
    assert dict(call.arguments) == {"text": HOSTILE, "to": "me"}
    assert [part.argument for part in call.untrusted] == ["text"]
    again = replayed(journal, "r", later, gated)
    assert again.identical, again.differences


def test_nobody_to_ask_is_no_yes() -> None:
    outcome = run(table(), gated)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"


def test_a_yes_is_for_what_was_shown_and_for_one_place(journal: Journal) -> None:
    """An attack: the text that a person approved is another one when the run is resumed, or is asked about twice."""
    inbox = Inbox(True)

    async def twice(context: Context) -> Labelled[Any]:
        said = [await context.approve("This?", text=program_text("same")) for _ in range(2)]
        return context.derive(said)

    there = table(journal=journal, approver=inbox)
    assert answered(run(there, twice)).value == [True, True]
    assert len({question.calls[0].hash for question in inbox.questions}) == 2


# Time ---------------------------------------------------------------------------------------------------------------


class Clockwatcher:
    """An approver who looks which meters stand still."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, bool]] = []

    async def approve(self, question: ApprovalQuestion) -> Answers:
        meters = meters_in_force(STRATEGY)
        self.seen.append((len(meters), all(meter.waits_for_person for meter in meters)))
        return Answers.yes(question.calls)


@pytest.mark.parametrize(("where", "meters"), [("pattern", 1), ("limits", 2), ("gather", 2)])
def test_the_time_of_a_pattern_stands_still_while_a_person_is_asked(where: str, meters: int) -> None:
    async def asks(context: Context) -> Labelled[Any]:
        await send_to(EVE)(context)
        assert await context.approve("Go on?")
        assert not any(meter.waits_for_person for meter in meters_in_force(STRATEGY))
        return program_text("done")

    async def work(context: Context) -> Labelled[Any]:
        if where == "limits":
            async with context.within_limits(strategy_limits(seconds=30)) as inner:
                return await asks(inner)
        if where == "gather":
            (found,) = await context.gather([("asks", asks)], width=1, timeout=30)
            assert isinstance(found, Labelled), found
            return found
        return await asks(context)

    approver = Clockwatcher()
    assert answered(run(table(approver=approver), work)).value == "done"
    assert approver.seen == [(meters, True)] * 2


def test_a_time_limit_is_not_reached_while_a_person_thinks() -> None:
    class Thoughtful:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            await asyncio.sleep(begun + 0.6 - time.monotonic())
            return Answers.yes(question.calls)

    async def work(context: Context) -> Labelled[Any]:
        assert await context.approve("Go on?")
        return program_text("done")

    begun = time.monotonic()
    assert answered(run(table(approver=Thoughtful(), bounds=strategy_limits(seconds=0.5)), work)).value == "done"


def test_time_goes_on_where_nobody_is_asked() -> None:
    async def work(context: Context) -> Labelled[Any]:
        await asyncio.sleep(0.2)
        return program_text("done")

    outcome = run(table(bounds=strategy_limits(seconds=0.05)), work)
    assert isinstance(outcome, Exhausted)
    assert outcome.bound == "seconds"


# Extraction ---------------------------------------------------------------------------------------------------------


async def extracts(context: Context) -> Labelled[Any]:
    page = await context.call("read_page", {"name": program_text("start")})
    return await context.extract(READER, page, wanted=NUMBER)


def test_an_extraction_is_that_of_plans(journal: Journal) -> None:
    there = table(quarantined=['{"number": 40}'], journal=journal, world=World(page="The fee is 40 euros."))
    outcome = answered(run(there, extracts))
    assert outcome.value == {"number": 40}
    assert not outcome.label.trusted
    assert there.privileged.asked == []
    (request,) = there.quarantined.asked
    assert "You write" not in str(request.messages)
    assert "the sum that is due" in request.messages[-1].text
    again = replayed(journal, outcome.run, there, extracts)
    assert again.identical, again.differences
    assert again.answer == {"number": 40}


def test_an_extraction_counts_after_a_resume_as_before_it(journal: Journal) -> None:
    async def work(context: Context) -> Labelled[Any]:
        await context.extract(READER, program_text("The fee is 40."), wanted=NUMBER)
        await context.approve("Go on?")
        return program_text("done")

    there = table(quarantined=['{"number": "x"}', '{"number": 40}'], journal=journal, approver=Inbox(None))
    waits = asyncio.run(run_pattern(PatternWork(Work(work)), there.desk, run="r", may_wait=True))
    later = table(journal=journal, approver=Inbox(True))
    outcome = answered(asyncio.run(resume_pattern(journal, "r", later.desk, pattern=Work(work))))
    assert (outcome.taken.calls, outcome.taken.tokens) == (waits.taken.calls, waits.taken.tokens)
    assert outcome.taken.calls == 2


def test_trusted_text_is_read_by_the_quarantined_model_too() -> None:
    async def work(context: Context) -> Labelled[Any]:
        return await context.extract(READER, program_text("The fee is 40."), wanted=NUMBER)

    there = table(quarantined=['{"number": 40}'])
    assert not answered(run(there, work)).label.trusted
    assert there.privileged.asked == []


def test_what_the_text_does_not_say_is_not_made_up() -> None:
    async def work(context: Context) -> Labelled[Any]:
        try:
            return await extracts(context)
        except RunError as error:
            await context.ask(WRITER, "Go on.")
            return context.derive(error.code)

    absent = '{"not_found": "number", "because": "absent"}'
    there = table(quarantined=[absent, "Well."])
    outcome = answered(run(there, work))
    assert outcome.value == "run.nothing-found"
    assert there.privileged.asked == [], "the text decided that nothing was found"


# Conversations and routing ------------------------------------------------------------------------------------------


def test_a_conversation_has_the_temperature_and_the_sample_of_its_role(journal: Journal) -> None:
    creative = replace(WRITER, temperature=0.7, max_tokens=99)

    async def talks(context: Context) -> Labelled[Any]:
        talk = context.conversation(creative, sample=3)
        talk.tell("Hello.")
        return context.derive((await talk.ask()).text)

    there = table(["Hi."], journal=journal)
    outcome = answered(run(there, talks))
    (request,) = there.privileged.asked
    assert (request.temperature, request.seed, request.max_tokens) == (0.7, 3, 99)
    assert replayed(journal, outcome.run, there, talks).identical


def add_two(name: str) -> list[ToolCall]:
    return [ToolCall("1", name, {"a": 1, "b": 2})]


@pytest.mark.parametrize("reply", ["No.", add_two("population")])
def test_a_reply_that_does_not_ask_for_the_tool_that_it_must_is_refused(reply: Any) -> None:
    async def talks(context: Context) -> Labelled[Any]:
        talk = context.conversation(WRITER)
        talk.tell("Add 1 and 2.")
        asked = await talk.ask(only=["add"], must_call=True)
        await talk.make_calls(asked)
        return context.derive("called")

    there = table([add_two("add")])
    assert answered(run(there, talks)).value == "called"
    (request,) = there.privileged.asked
    assert request.must_call
    assert [tool.name for tool in request.tools] == ["add"]
    outcome = run(table([reply]), talks)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "models.bad-reply"
    assert outcome.tool_calls == ()


def test_a_tier_chooses_the_model_where_the_configuration_has_one_for_it() -> None:
    """Without a role or a rule of its name it has no effect, and a hint of the role's own comes first."""
    models = {name: Speaker(lambda request: "Hi.", name=name) for name in ("main", "powerful", "coder")}
    large, other = replace(WRITER, tier="large"), replace(WRITER, tier="small")
    coder = replace(large, hint="coding")

    async def work(context: Context) -> Labelled[Any]:
        for role in (large, other, coder):
            await context.ask(role, "Hello.")
            talk = context.conversation(role)
            talk.tell("Hello.")
            await talk.ask()
        return program_text("done")

    aliases = Aliases("privileged", [Alias.of(name, model) for name, model in models.items()])
    router = Router(aliases, Selection("main", roles={"large": "powerful", "coding": "coder"}))
    there = table()
    pair = replace(there.desk.models, chambers=replace(there.desk.models.chambers, privileged=router))
    answered(asyncio.run(run_work(replace(there.desk, models=pair), work)))
    assert {name: len(model.asked) for name, model in models.items()} == {"main": 2, "powerful": 2, "coder": 2}


class Away(Inbox):
    """An approver who is not there, and says when that was found out."""

    def __init__(self) -> None:
        super().__init__(None)
        self.asked = asyncio.Event()

    async def approve(self, question: ApprovalQuestion) -> Answers:
        self.asked.set()
        return await super().approve(question)


def test_a_run_that_waits_within_a_quorum_goes_on(journal: Journal) -> None:
    """What was cut off in the attempt that ended with the question is decided again: nothing had come of it yet."""
    away = Away()

    async def vote(context: Context) -> Labelled[Any]:
        works = [("s", send_to(EVE)), ("f", ask_when(away.asked)), ("g", ask_when(away.asked))]
        found = await context.gather(works, width=3, quorum=3)
        return context.derive(codes(found))

    there = table(echo, journal=journal, approver=away)
    waits = asyncio.run(run_pattern(PatternWork(Work(vote)), there.desk, run="r", may_wait=True))
    assert isinstance(waits, GaveUp)
    assert waits.error.code == "run.waits"
    assert len(there.privileged.asked) == 2, "the others came to their end first"
    later = table(journal=journal, approver=Inbox(True))
    outcome = answered(asyncio.run(resume_pattern(journal, "r", later.desk, pattern=Work(vote))))
    assert outcome.value == ["ok", "ok", "ok"]
    assert [to for _, (to, _) in later.world.done] == [EVE]
    again = replayed(journal, "r", later, vote)
    assert again.identical, again.differences


# Errors of tools ----------------------------------------------------------------------------------------------------


@tool(effect="read", outbound=False, origins=Origin("system", "public"), purpose={"name": "selects"})
def find_person(name: str) -> str:
    """The address of a person."""
    raise LookupError(f"nobody is called {name}")


@tool(effect="read", outbound=False, origins=Origin("third_party", "public"), purpose={"name": "selects"})
def fetch_page(name: str) -> str:
    """A page from the web."""
    raise RetrievalError("retrieval.no-page", f"the server says: {HOSTILE}", fix=HOSTILE, nearest=HOSTILE)


def calls(tool: str, name: Labelled[str]) -> WorkFunction:
    return lambda context: context.call(tool, {"name": name})


FAILING_CALLS: dict[str, tuple[WorkFunction, str]] = {
    "argument": (calls("find_person", untrusted_value(HOSTILE, "mail")), "tools.failed"),
    "result": (calls("fetch_page", program_text("news")), "retrieval.no-page"),
    "name that was read": (
        lambda context: context.call(context.read(untrusted_value(HOSTILE, "mail")), {}),
        "tools.unknown",
    ),
    "name because of": (
        lambda context: context.call(HOSTILE, {}, because=untrusted_value("", "mail").label),
        "tools.unknown",
    ),
    "name of an argument": (
        lambda context: context.call("find_person", {"name": "Ada", HOSTILE: untrusted_value("x", "mail")}),
        "tools.unknown-argument",
    ),
}


@pytest.mark.parametrize(("work", "code"), FAILING_CALLS.values(), ids=FAILING_CALLS)
def test_words_of_a_tool_with_untrusted_text_reach_no_error(work: WorkFunction, code: str, journal: Journal) -> None:
    there = table([], journal=journal, tools=[find_person, fetch_page])
    outcome = run(there, work)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == code
    assert HOSTILE[:40] not in str(outcome.error) + json.dumps(outcome.error.to_json())
    again = replayed(journal, outcome.run, there, work)
    assert again.identical, again.differences


def test_words_of_a_tool_about_trusted_text_are_in_the_error() -> None:
    outcome = run(table([], tools=[find_person]), calls("find_person", program_text("Ada")))
    assert isinstance(outcome, GaveUp)
    assert "nobody is called Ada" in str(outcome.error)


def test_a_pattern_can_pass_on_the_words_of_a_tool_with_their_label() -> None:
    async def tell(context: Context) -> Labelled[str]:
        try:
            return await context.call("find_person", {"name": untrusted_value(HOSTILE, "mail")})
        except CallFailed as error:
            return error.report

    outcome = answered(run(table([], tools=[find_person]), tell))
    assert HOSTILE in outcome.value
    assert not outcome.label.trusted
