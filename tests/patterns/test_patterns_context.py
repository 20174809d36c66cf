"""What a context offers to patterns: questions with checks, choices, parts with a quorum, rounds, once, approvals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from patterns_world import EVE, HOSTILE, Table, Work, answered, run_work, table

from bicameral.errors import BicameralError, ModelError, RunError
from bicameral.journal import Journal, open_journal_at
from bicameral.labels import Labelled, program_text, untrusted_value
from bicameral.limits import LimitReached, strategy_limits
from bicameral.models import ModelRequest
from bicameral.patterns import GaveUp
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
from bicameral.runs import Answers, ApprovalQuestion, Replayed, Suspend
from bicameral.tools import call_key
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
    assert [each.text for each in second[2:]][0] == "seven"
    assert "it is not JSON" in second[3].text
    assert [each.text for each in third[2:]][0] == '{"number": 7}'
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
        options = {"billing": "Invoices.", "support": program_text("Defects.")}
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
    delays = Delays(a=0.0, b=0.05, c=0.01)

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
        found = await context.gather(works, width=2, timeout=0.1)
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


def test_a_change_that_a_straggler_had_begun_is_finished_and_replayed(journal: Journal) -> None:
    from bicameral.tools import Origin, tool

    done: list[str] = []

    @tool(effect="write", outbound=False, origins=Origin("system"), purpose={"text": "carries"})
    async def save(text: str) -> str:
        """Save a text."""
        await asyncio.sleep(0.1)
        done.append(text)
        return "saved"

    async def straggler(part: Context) -> Labelled[Any]:
        given = await part.call("save", {"text": program_text("begun")})
        part.note("saved", length=len(part.read(given)))
        await part.call("save", {"text": program_text("later")})
        return given

    async def vote(context: Context) -> Labelled[Any]:
        works = [("s", straggler), ("f", ask_after(0.02, "1"))]
        return context.derive(codes(await context.gather(works, width=2, quorum=1)))

    there = table(echo, journal=journal, tools=[save])
    outcome = answered(run(there, vote))
    assert done == ["begun"]
    assert [each.tool for each in outcome.effects] == ["save"]
    again = replayed(journal, outcome.run, there, vote)
    assert again.identical, again.differences


def test_what_decided_a_cut_is_in_the_label(journal: Journal) -> None:
    async def reads(part: Context) -> Labelled[Any]:
        part.read(await part.call("read_page", {"name": program_text("start")}))
        await asyncio.sleep(30)
        return part.derive("late")

    async def vote(context: Context) -> Labelled[Any]:
        await context.gather([("s", reads), ("f", ask_after(0.03, "1"))], width=2, quorum=1)
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
