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
