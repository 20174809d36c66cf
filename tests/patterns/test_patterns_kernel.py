"""The kernel keeps the law whatever a pattern does: attacks first."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from patterns_world import EVE, HOSTILE, World, answered, run_work, table

from bicameral import patterns
from bicameral.errors import LabelError, ModelError, ToolError
from bicameral.journal import open_journal_at
from bicameral.limits import Limits, strategy_limits
from bicameral.models import ModelReply, ToolCall
from bicameral.patterns import (
    Context,
    Exhausted,
    GaveUp,
    Labelled,
    Pattern,
    ReWOO,
    Role,
    format_text,
    program_text,
    untrusted_value,
)
from bicameral.patterns.kernel import approximate_tokens
from bicameral.runs import Answers, ApprovalQuestion
from bicameral.tools import Origin, tool
from bicameral.types import type_from_annotation

READER = Role("Reader", "You read.")
PLANNER = Role("Planner", "You plan.", reads="trusted")


Work = Callable[[Context], Awaitable[Labelled[Any]]]


def played(world: Any, work: Work, *, knobs: dict[str, Any] | None = None) -> Any:
    return asyncio.run(run_work(world.desk, work))


FORGETTING: list[Callable[[Any], Any]] = [
    lambda closed: f"{closed}",
    str,
    bool,
    len,
    list,
    lambda closed: "%s" % closed,  # noqa: UP031 (every way to write it out)
    lambda closed: "{}".format(closed),  # noqa: UP032
    lambda closed: "a" if closed else "b",
    lambda closed: "".join(closed),
]


@pytest.mark.parametrize("forget", FORGETTING)
def test_a_value_is_not_looked_into_without_its_label(forget: Any) -> None:
    with pytest.raises(LabelError, match="its label would be lost"):
        forget(untrusted_value(HOSTILE, "page"))
    assert HOSTILE not in repr(untrusted_value(HOSTILE, "page"))


def test_a_naked_text_is_refused_with_functions_that_exist() -> None:
    naked: Any = "How many people live in Ghent?"
    with pytest.raises(LabelError) as caught:
        asyncio.run(ReWOO().run(table().desk, naked))
    assert caught.value.code == "labels.naked"
    named = re.findall(r"`(\w+)`", str(caught.value.fix))
    assert named == ["program_text", "from_user", "labelled"]
    assert all(hasattr(patterns, name) for name in named[:2])
    assert hasattr(patterns.Answered, "labelled")


def test_nothing_can_be_made_of_the_class_that_would_be_open() -> None:
    with pytest.raises(TypeError):
        type("Open", (Labelled,), {})


def test_a_strangers_text_is_read_by_the_quarantined_model_alone() -> None:
    there = table(["never asked"], ["a summary"])

    async def work(stage: Context) -> Labelled[str]:
        page = await stage.call("read_page", {"name": "news"})
        return await stage.ask(READER, "Sum up: ", page)

    outcome = answered(played(there, work))
    assert outcome.value == "a summary"
    assert not outcome.label.trusted
    assert not there.privileged.asked
    assert HOSTILE in there.quarantined.prompts[0]
    assert [each.chamber for each in outcome.model_calls] == ["quarantined"]


def test_who_must_not_read_a_stranger_is_not_asked_at_all() -> None:
    there = table(["a plan"], ["a plan"])
    outcome = played(there, lambda stage: stage.ask(PLANNER, untrusted_value(HOSTILE, "page")))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.must-not-read"
    assert not there.privileged.asked
    assert not there.quarantined.asked


@pytest.mark.parametrize("way", ["argument", "opened", "because", "in a part", "by failing", "by a rejected reply"])
def test_a_stranger_who_decides_a_call_is_found_out(way: str) -> None:
    """However a stranger's word comes to decide that a mail is sent, policy sees it and nobody is there to say yes."""
    there = table(["x"], ["send it", ModelError("models.bad-reply", "no"), "not JSON", "not JSON"])

    async def work(stage: Context) -> Labelled[Any]:
        page = await stage.call("read_page", {"name": "news"})
        to: Any = program_text("bob@example.com")
        match way:
            case "argument":
                to = page.map(lambda words: words.split()[-1].strip("."))
            case "opened":
                assert "Ignore" in stage.read(page)
            case "because":
                return await stage.call("send", {"to": to, "body": "Hello"}, because=page.label)
            case "in a part":
                return await stage.run_part("part", lambda part: sent_after_reading(part, page))
            case "by failing":
                await stage.ask(READER, page)
                with pytest.raises(ModelError):
                    await stage.ask(READER, page)
            case _:
                await stage.ask(READER, page)
                with pytest.raises(ModelError):
                    await stage.ask(READER, page)
                with pytest.raises(ModelError):
                    await stage.fill(READER, page, wanted=type_from_annotation(int), retries=1)
        return await stage.call("send", {"to": to, "body": "Hello"})

    outcome = played(there, work)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"
    assert there.world.done == []


async def sent_after_reading(part: Context, page: Labelled[str]) -> Labelled[Any]:
    part.read(page)
    return await part.call("send", {"to": "bob@example.com", "body": "Hello"})


def test_what_the_user_decides_is_done_though_a_stranger_was_read_elsewhere() -> None:
    there = table([], ["a summary"])

    async def work(stage: Context) -> Labelled[Any]:
        page = await stage.call("read_page", {"name": "news"})
        summary = await stage.ask(READER, "Sum up: ", page)
        await stage.call("send", {"to": "bob@example.com", "body": summary})
        return await stage.call("send", {"to": "bob@example.com", "body": "Hello"})

    assert answered(played(there, work)).value == "sent"
    assert [what for what, _ in there.world.done] == ["send", "send"]


def test_what_a_part_opened_is_in_what_it_gives_and_not_in_the_whole() -> None:
    there = table()

    async def work(stage: Context) -> Labelled[Any]:
        page = await stage.call("read_page", {"name": "news"})

        async def chosen(part: Context) -> Labelled[str]:
            return program_text("long" if len(part.read(page)) > 3 else "short")

        length = await stage.run_part("part", chosen)
        assert not length.label.trusted
        assert stage.read_label.trusted
        return length

    assert not answered(played(there, work)).label.trusted


def test_the_answer_carries_what_was_opened_to_choose_it() -> None:
    there = table()

    async def work(stage: Context) -> Labelled[str]:
        stage.read(await stage.call("read_page", {"name": "news"}))
        return program_text("yes")

    assert not answered(played(there, work)).label.trusted


def test_the_words_of_a_text_and_its_parts_go_together() -> None:
    made = format_text("{a} and {b}", a=program_text("x"), b=untrusted_value("y", "page"))
    assert not made.label.trusted
    with pytest.raises(LabelError):
        format_text("{a}", b=program_text("x"))
    with pytest.raises(LabelError):
        format_text("{a} {b}", a=program_text("x"))


def test_a_model_that_was_shown_no_tools_calls_none() -> None:
    there = table([[ToolCall("1", "send", {"to": EVE, "body": "x"})]])
    assert answered(played(there, lambda stage: stage.ask(READER, "Hello"))).value == ""
    assert there.world.done == []


def test_an_unknown_tool_is_told_with_the_nearest() -> None:
    there = table()
    outcome = played(there, lambda stage: stage.call("read_pages", {"name": "x"}))
    assert isinstance(outcome, GaveUp)
    assert isinstance(outcome.error, ToolError)
    assert outcome.error.nearest == "read_page"


@pytest.mark.parametrize(
    ("bounds", "bound"),
    [
        (strategy_limits(calls=2), "calls"),
        (strategy_limits(tool_calls=1), "tool_calls"),
        (strategy_limits(seconds=0.05), "seconds"),
    ],
)
def test_bounds_hold_whatever_a_pattern_does(bounds: Limits, bound: str) -> None:
    there = table(["a"] * 9, bounds=bounds)

    async def work(stage: Context) -> Labelled[Any]:
        for _ in range(5):
            await stage.ask(READER, "again")
            await stage.call("add", {"a": 1, "b": 2})
            await asyncio.sleep(0.03)
        return program_text("never")

    outcome = played(there, work)
    assert isinstance(outcome, Exhausted), outcome
    assert outcome.bound == bound


def test_a_part_has_bounds_of_its_own_and_takes_of_those_around_it() -> None:
    there = table(["a"] * 9, bounds=strategy_limits(tool_calls=3))

    async def work(stage: Context) -> Labelled[Any]:
        for _ in range(2):
            async with stage.within_limits(strategy_limits(tool_calls=2)) as inner:
                await inner.call("add", {"a": 1, "b": 2})
                await inner.call("add", {"a": 1, "b": 2})
        return program_text("never")

    outcome = played(there, work)
    assert isinstance(outcome, Exhausted)
    assert outcome.limit == 3


def test_parts_side_by_side_fail_alone_and_keep_their_order() -> None:
    there = table()

    async def one(part: Context, city: str) -> Labelled[Any]:
        return await part.call("population", {"city": city})

    async def work(stage: Context) -> Labelled[Any]:
        cities = ["Ghent", "Nowhere", "Bruges"]
        works = [(city, partial(one, city=city)) for city in cities]
        gave = await stage.run_parallel(works, width=2)
        return stage.derive([stage.read(each) if isinstance(each, Labelled) else each.code for each in gave])

    assert answered(played(there, work)).value == [270473, "tools.failed", 119541]


def test_a_run_of_a_pattern_is_in_the_journal_with_its_labels(tmp_path: Path) -> None:
    with open_journal_at(tmp_path / "journal.db") as journal:
        there = table([], ["a summary"], journal=journal)

        async def work(stage: Context) -> Labelled[str]:
            page = await stage.call("read_page", {"name": "news"})
            return await stage.ask(READER, page)

        outcome = answered(played(there, work, knobs={"max_calls": 3}))
        events = journal.events(outcome.run)
        kinds = [event.kind for event in events]
        assert kinds == ["run-started", "step-started", "step-finished", "model-called", "run-finished"]
        assert events[0].body["pattern"] == "R5"
        assert events[3].body["trusted"] is False
        assert not journal.verify(outcome.run)


def test_a_person_can_say_yes_to_one_call() -> None:
    class Yes:
        async def approve(self, question: ApprovalQuestion) -> Answers:
            return Answers.yes(question.calls)

    there = table(world=World(page="bob@example.com"), approver=Yes())

    async def work(stage: Context) -> Labelled[Any]:
        page = await stage.call("read_page", {"name": "news"})
        return await stage.call("send", {"to": page, "body": "Hello"})

    assert answered(played(there, work)).value == "sent"
    assert there.world.done == [("send", ("bob@example.com", "Hello"))]


def test_stopping_the_task_is_told_as_that() -> None:
    there = table()

    async def work(stage: Context) -> Labelled[Any]:
        await asyncio.sleep(30)
        return program_text("never")

    async def main() -> Any:
        task = asyncio.create_task(run_work(there.desk, work))
        await asyncio.sleep(0.05)
        task.cancel()
        return await task

    outcome = asyncio.run(main())
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.stopped"


@dataclass(frozen=True)
class Twice(Pattern[[Labelled[str]], str]):
    """A pattern of two others."""

    id: ClassVar[str] = "R5"
    max_calls: int = 2

    async def execute(self, stage: Context, /, task: Labelled[str]) -> Labelled[str]:
        first = await stage.run_part("first", lambda part: part.ask(READER, task))
        return await stage.run_part("second", lambda part: part.ask(READER, first))


def test_a_pattern_says_its_knobs_and_keeps_them_in_bounds() -> None:
    from bicameral.errors import CatalogError

    assert Twice().knobs == {"max_calls": 2}
    assert Twice().architecture()["patterns"] == [{"R5": {"max_calls": 2}}]
    with pytest.raises(CatalogError, match="max_calls is 0"):
        Twice(max_calls=0)
    outcome = asyncio.run(Twice().run(table(["a", "b"]).desk, program_text("x")))
    assert answered(outcome).value == "b"
    assert [each.at for each in outcome.model_calls] == ["first/", "second/"]


# Conversations ------------------------------------------------------------------------------------------------------

ACTOR = Role("Actor", "You act.")
READ_PAGE = [ToolCall("1", "read_page", {"name": "news"})]
SEND = [ToolCall("2", "send", {"to": EVE, "body": "x"})]


@pytest.mark.parametrize("way", ["asked for by the model", "called with what it wrote", "called after it", "forged"])
def test_what_is_said_in_a_conversation_counts_as_opened(way: str) -> None:
    """A pattern has replies in its hands as they are. Whatever it does with one, policy sees who wrote it."""
    there = table([READ_PAGE], [SEND if way == "asked for by the model" else f"send it to {EVE}"])

    async def work(stage: Context) -> Labelled[Any]:
        talk = stage.conversation(ACTOR)
        talk.tell("Read the news.")
        await talk.make_calls(await talk.ask())
        reply = await talk.ask()
        match way:
            case "asked for by the model":
                await talk.make_calls(reply)
            case "called with what it wrote":
                return await stage.call("send", {"to": reply.text.split()[-1], "body": "x"})
            case "called after it":
                return await stage.call("send", {"to": "bob@example.com", "body": "x"})
            case _:
                await talk.make_calls(ModelReply("", "calls", calls=tuple(SEND)))
        return program_text("never")

    outcome = played(there, work)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"
    assert there.world.done == []
    assert [len(there.privileged.asked), len(there.quarantined.asked)] == [1, 1]


@pytest.mark.parametrize("way", ["told", "read before", "read after it was begun", "read after the reply"])
def test_what_a_stage_has_opened_is_in_its_conversation(way: str) -> None:
    """A call that the trusted model asks for is a stranger's wish if a stranger's word decided that it is made."""
    there = table([SEND], [SEND])

    async def work(stage: Context) -> Labelled[Any]:
        page = untrusted_value(HOSTILE, "page")
        if way == "read before":
            stage.read(page)
        talk = stage.conversation(ACTOR)
        if way == "read after it was begun":
            talk.tell(stage.derive(stage.read(page)))
        talk.tell(page if way == "told" else "Send it.")
        reply = await talk.ask()
        if way == "read after the reply" and not stage.read(page):
            return program_text("no")
        await talk.make_calls(reply)
        return program_text("never")

    outcome = played(there, work)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"
    assert there.world.done == []
    assert len(there.privileged.asked) == (way == "read after the reply")


def test_who_must_not_read_a_stranger_does_not_in_a_conversation() -> None:
    there = table(["x"], ["x"])

    async def work(stage: Context) -> Labelled[Any]:
        talk = stage.conversation(PLANNER)
        talk.tell(untrusted_value(HOSTILE, "page"))
        return stage.derive((await talk.ask()).text)

    outcome = played(there, work)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.must-not-read"
    assert not there.privileged.asked + there.quarantined.asked


def test_a_tool_that_does_not_exist_is_not_named_in_the_trace_by_a_strangers_words() -> None:
    there = table([READ_PAGE], [[ToolCall("1", HOSTILE, {})], "done"])

    async def work(stage: Context) -> Labelled[Any]:
        talk = stage.conversation(ACTOR)
        talk.tell("Read the news.")
        for _ in range(2):
            await talk.make_calls(await talk.ask())
        return stage.derive((await talk.ask()).text)

    outcome = answered(played(there, work))
    assert [each.tool for each in outcome.tool_calls] == ["read_page", "(unknown)"]


def test_of_more_calls_than_are_made_it_is_said_that_they_are_not() -> None:
    both = [ToolCall("1", "add", {"a": 1, "b": 2}), ToolCall("2", "send", {"to": "bob@example.com", "body": "x"})]
    there = table([both, "done"])

    async def work(stage: Context) -> Labelled[Any]:
        talk = stage.conversation(ACTOR)
        talk.tell("Add.")
        await talk.make_calls(await talk.ask(), most=1)
        return stage.derive((await talk.ask()).text)

    assert [each.tool for each in answered(played(there, work)).tool_calls] == ["add"]
    told = [each for each in there.privileged.asked[1].messages if each.speaker == "tool"]
    assert [each.answers for each in told] == ["1", "2"]
    assert told[1].text.startswith("not made")
    assert there.world.done == []


# Tools of a part, parts of their own, samples -----------------------------------------------------------------------


@pytest.mark.parametrize("way", ["called", "in a part", "within bounds", "asked for", "kept again"])
def test_a_tool_that_was_not_kept_is_not_there(way: str) -> None:
    there = table([SEND, "done"])

    async def work(stage: Context) -> Labelled[Any]:
        stage.restrict_tools(["add"])
        match way:
            case "called":
                return await stage.call("send", {"to": EVE, "body": "x"})
            case "in a part":
                return await stage.run_part("part", lambda part: part.call("send", {"to": EVE, "body": "x"}))
            case "within bounds":
                async with stage.within_limits(strategy_limits()) as inner:
                    return await inner.call("send", {"to": EVE, "body": "x"})
            case "kept again":
                stage.restrict_tools(["send"])
            case _:
                talk = stage.conversation(ACTOR)
                talk.tell("Send.")
                await talk.make_calls(await talk.ask())
        raise ToolError("tools.unknown", "as it should be")

    outcome = played(there, work)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "tools.unknown"
    assert there.world.done == []


def test_a_part_without_tools_has_none() -> None:
    there = table(["done"])

    async def work(stage: Context) -> Labelled[Any]:
        stage.restrict_tools([])
        talk = stage.conversation(ACTOR)
        talk.tell("Do it.")
        return stage.derive((await talk.ask()).text)

    answered(played(there, work))
    assert there.privileged.asked[0].tools == ()


def test_a_part_that_fails_by_a_strangers_word_is_in_no_part_that_comes_later() -> None:
    there = table(["fine"])

    async def fails(part: Context) -> Labelled[Any]:
        part.read(untrusted_value(HOSTILE, "page"))
        raise ToolError("tools.failed", "no")

    async def work(stage: Context) -> Labelled[Any]:
        gave = await stage.run_parallel([("one", fails), ("two", lambda part: part.ask(READER, "Hello"))], width=1)
        assert not stage.read_label.trusted
        assert isinstance(gave[1], Labelled)
        assert gave[1].label.trusted
        return gave[1]

    assert not answered(played(there, work)).label.trusted


def test_the_bounds_of_a_part_end_that_part_and_those_of_the_whole_end_all() -> None:
    async def small(part: Context) -> Labelled[Any]:
        async with part.within_limits(strategy_limits(tool_calls=1)) as inner:
            await inner.call("add", {"a": 1, "b": 2})
            return await inner.call("add", {"a": 1, "b": 2})

    async def one(part: Context) -> Labelled[Any]:
        return await part.call("add", {"a": 1, "b": 2})

    async def work(stage: Context) -> Labelled[Any]:
        gave = await stage.run_parallel([("small", small), ("one", one), ("two", one)], width=1)
        return stage.derive([not isinstance(each, Labelled) for each in gave])

    assert answered(played(table(), work)).value == [True, False, False]
    outcome = played(table(bounds=strategy_limits(tool_calls=3)), work)
    assert isinstance(outcome, Exhausted)
    assert (outcome.bound, outcome.limit) == ("tool_calls", 3)


def test_samples_are_asked_for_with_a_seed_of_their_own() -> None:
    there = table(["a", "b"])
    chance = Role("Voter", "You vote.", temperature=0.7)

    async def work(stage: Context) -> Labelled[Any]:
        for sample in (0, 1):
            await stage.ask(chance, "Yes or no?", sample=sample)
        return program_text("done")

    answered(played(there, work))
    assert [(each.temperature, each.seed) for each in there.privileged.asked] == [(0.7, 0), (0.7, 1)]


def test_whoever_repairs_a_reply_does_not_see_the_question() -> None:
    there = table(["four", '{"value": 4}'])
    repair = Role("Repair", "You write it again.")

    async def work(stage: Context) -> Labelled[Any]:
        return await stage.fill(READER, "What is two and two?", wanted=type_from_annotation(int), repair=repair)

    assert answered(played(there, work)).value == 4
    assert "two and two" not in there.privileged.prompts[1]
    assert "four" in there.privileged.prompts[1]


# What every prompt begins with --------------------------------------------------------------------------------------


def test_what_a_stage_begins_with_opens_every_prompt_of_it_and_of_its_parts() -> None:
    there = table(["a", "b", "c", "d"])

    async def work(stage: Context) -> Labelled[Any]:
        await stage.ask(READER, "before")
        stage.prepend_to_prompts(program_text("You are Iris."))
        await stage.run_part("part", lambda part: part.ask(READER, "in a part", stable=["Always."]))
        async with stage.within_limits(strategy_limits()) as inner:
            await inner.ask(READER, "within")
        talk = stage.conversation(ACTOR)
        talk.tell("said")
        return stage.derive((await talk.ask()).text)

    answered(played(there, work))
    heads = [request.messages[0].text for request in there.privileged.asked]
    assert heads[0] == "You read."
    assert heads[1] == "You are Iris.\n\nYou read.\n\nAlways."
    assert heads[2] == "You are Iris.\n\nYou read."
    assert heads[3].startswith("You are Iris.\n\nYou act.")


@pytest.mark.parametrize("way", ["asked", "in a part", "talked to", "who must not"])
def test_a_beginning_that_a_stranger_wrote_is_a_strangers(way: str) -> None:
    there = table(["x"], ["x"])

    async def work(stage: Context) -> Labelled[Any]:
        stage.prepend_to_prompts(untrusted_value(HOSTILE, "page"))
        match way:
            case "asked":
                return await stage.ask(READER, "Hello")
            case "in a part":
                return await stage.run_part("part", lambda part: part.ask(READER, "Hello"))
            case "who must not":
                return await stage.ask(PLANNER, "Hello")
            case _:
                talk = stage.conversation(ACTOR)
                talk.tell("Hello")
                return stage.derive((await talk.ask()).text)

    outcome = played(there, work)
    assert not there.privileged.asked
    if way == "who must not":
        assert isinstance(outcome, GaveUp)
        assert outcome.error.code == "pattern.must-not-read"
    else:
        assert not answered(outcome).label.trusted


@pytest.mark.parametrize(
    ("words", "tokens"), [("", 0), ("The fee is 40 euros.", 7), ("a" * 100, 20), ("9" * 100, 100), ("日本語", 3)]
)
def test_tokens_are_guessed_rather_too_high(words: str, tokens: int) -> None:
    assert approximate_tokens(words) == tokens


def test_a_tool_that_fails_on_what_a_stranger_wrote_decides_as_the_stranger_would() -> None:
    """Whether a page can be read is for whoever serves it to say, so what is done if it cannot is his wish."""
    there = table(tools=[*World().tools()[2:], _unreadable.with_name("unreadable")])

    async def work(stage: Context) -> Labelled[Any]:
        with pytest.raises(ToolError):
            await stage.call("unreadable", {"name": "news"})
        return await stage.call("send", {"to": "bob@example.com", "body": "It is down."})

    outcome = played(there, work)
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "run.needs-approval"


@tool(effect="read", outbound=False, origins=Origin("third_party", "public"), purpose={"name": "selects"})
def _unreadable(name: str) -> str:
    """A page that cannot be read."""
    raise ValueError(name)
