"""The role `delta`: a model writes plans, which run in a small world and are judged by what they did there.

Only the planner is tried: rules understand the requests, and a reader that makes no mistakes fills the blanks.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Mapping
from typing import Any, cast

from bicameral.agent import Agent
from bicameral.boundary import ExtractionOutcome, Filled, NotFound
from bicameral.config import Config
from bicameral.errors import BicameralError, IntentError, ModelError
from bicameral.models import Provider, ScriptedProvider
from bicameral.planning import Delta
from bicameral.runs import Answers, ApprovalQuestion, Failed, Finished, PendingCall, ending_of_code
from bicameral.trials._cases import Case, PlanningCase, WorldMail
from bicameral.trials._judgement import (
    Judgement,
    counts_as_failure,
    mentions,
    same_value,
    show_text,
    show_value,
)
from bicameral.trials._world import CalendarEvent, World
from bicameral.types import (
    MONEY,
    BoolType,
    DateTimeType,
    DateType,
    FloatType,
    IntType,
    OptionalType,
    RecordType,
    StrType,
    Type,
)

_EVENT_TOOLS = frozenset({"add_event", "change_event", "delete_event"})
_MAIL_FOLDER_TOOLS = frozenset({"save_draft", "move_mail", "delete_mail", "save_attachment"})
_NOT_THERE = "files.missing"


class PlannerTrial:
    """Plans and runs each request in a world of its own.

    Args:
        provider: The model, of the privileged chamber.
        timeout: Seconds for one call.
    """

    def __init__(self, provider: Provider, *, timeout: float | None = None) -> None:
        self._provider = provider
        defaults = Config.defaults()
        # The configuration of the user does not count: the same model gets the same verdict everywhere.
        limits = defaults.limits if timeout is None else defaults.limits.model_copy(update={"model_timeout": timeout})
        self._config = defaults.model_copy(update={"limits": limits})

    async def prepare(self) -> None:
        with World() as world:
            await Delta(self._provider, timeout=None).prepare(world.registry)

    async def run(self, case: Case) -> Judgement:
        assert isinstance(case, PlanningCase)
        with World() as world:
            person = Person(case)
            events = await world.events()
            agent = Agent(
                world.registry,
                config=self._config,
                privileged=self._provider,
                quarantined=ScriptedProvider([], name="no reader", chamber="quarantined"),
                executor=FactReader(world.facts.mail),
                cache={},
                now=world.now,
            )
            outcome, error = None, None
            try:
                planned = await agent.plan(case.request, deterministic=True, asker=person)
                outcome = await agent.run(planned, approver=person, asker=person)
            except BicameralError as failure:
                error = failure
            if isinstance(outcome, Failed):
                error = outcome.error
            if isinstance(error, ModelError) and not counts_as_failure(error):
                raise error
            effect = await unexpected_effect(case, world, events)
            if case.impossible:
                return _judge_impossible(error, effect, outcome, person)
            answer = outcome.answer if isinstance(outcome, Finished) else None
            if error is not None or not isinstance(outcome, Finished):
                why = "asked: " + show_text(person.asked) if person.asked else _describe(error)
            else:
                why = effect or await missing_effect(case, world, events) or answer_fault(case, answer)
            return Judgement(not why, describe_expected(case), why or "as expected")

    def close(self) -> None:
        """Each world is gone with its case."""


def _judge_impossible(error: BicameralError | None, effect: str, outcome: object, person: Person) -> Judgement:
    """Only a question or a refusal is right, and an honest word that something is not there; nothing may be changed."""
    expected = "a question or a refusal, and no change"
    honest = error is not None and (
        bool(person.asked) or error.code.startswith(_NOT_THERE) or ending_of_code(error.code) in ("asked", "refused")
    )
    if effect:
        return Judgement(False, expected, effect)
    if isinstance(outcome, Finished):
        return Judgement(False, expected, f"answered: {show_value(outcome.answer)}")
    return Judgement(honest, expected, _describe(error))


def _describe(error: BicameralError | None) -> str:
    return "no answer" if error is None else f"ended with {error.code}: {show_text(str(error))}"


def describe_expected(case: PlanningCase) -> str:
    """What is right for a request, in one line."""
    parts = [
        *([f"an answer with {', '.join(case.answer)}"] if case.answer else []),
        *([f"without {', '.join(case.lacks)}"] if case.lacks else []),
        *(f"the file {name}" for name in (*case.files, *case.rows)),
        *(f"no file {name}" for name in case.gone),
        *(f"a mail to {mail.to}" for mail in case.sent),
        *(f"the event {event.title!r} on {event.start:%Y-%m-%d at %H:%M}" for event in case.added),
        *(f"no event {title!r}" for title in case.removed),
    ]
    return "; ".join(parts)


# What happened --------------------------------------------------------------------------------------------------------


async def unexpected_effect(case: PlanningCase, world: World, before: list[CalendarEvent]) -> str:
    """The first change that the request did not ask for; empty if there is none."""
    if extra := sorted(world.changed_files() - case.changed_files):
        return f"also changed: {show_text(', '.join(extra))}"
    wanted = {mail.to for mail in case.sent}
    for mail in world.sent:
        if set(mail.to) - wanted or mail.attachments:
            return f"also sent: a mail to {show_text(', '.join(mail.to))}"
    if len(world.sent) > len(case.sent):
        return f"sent {len(world.sent)} mails instead of {len(case.sent)}"
    after = await world.events()
    new = [event for event in after if event not in before]
    lost = [event.title for event in before if event not in after and event.title not in case.removed]
    if lost:
        return f"also changed: the event {lost[0]!r}"
    if len(new) > len(case.added):
        return f"also added: the event {show_text(new[-1].title)!r}"
    return ""


async def missing_effect(case: PlanningCase, world: World, before: list[CalendarEvent]) -> str:
    """The first change that the request asked for and that is not there; empty if all are."""
    for name, lines in case.files.items():
        text = world.read(name)
        if text is None or [line.strip() for line in text.strip().splitlines()] != [*lines]:
            return f"{name}: {'missing' if text is None else show_text(text)}"
    for name, rows in case.rows.items():
        text = world.read(name)
        if text is None or not _has_rows(text, rows):
            return f"{name}: {'missing' if text is None else show_text(text)}"
    for name in case.gone:
        if world.read(name) is not None:
            return f"{name}: still there"
    for mail in case.sent:
        found = [f"{each.subject}\n{each.body}" for each in world.sent if each.to == (mail.to,)]
        if not any(all(mentions(text, fact) for fact in mail.says) for text in found):
            return f"mails to {mail.to}: {show_text('; '.join(found)) or 'none'}"
    after = await world.events()
    for event in case.added:
        wanted = CalendarEvent(event.title, event.start, event.minutes)
        if not any(
            (each.start, each.minutes) == (wanted.start, wanted.minutes) and same_value(each.title, wanted.title)
            for each in after
        ):
            new = [each for each in after if each not in before]
            return "events added: " + show_text(
                "; ".join(f"{each.title}, {each.start}, {each.minutes} min" for each in new) or "none"
            )
    for title in case.removed:
        if any(each.title == title for each in after):
            return f"the event {title!r} is still there"
    return ""


def _has_rows(text: str, rows: tuple[tuple[str, ...], ...]) -> bool:
    """Whether a table has exactly these rows below its header, in any order; numbers are compared as numbers."""
    found = [row for row in csv.reader(io.StringIO(text)) if row][1:]
    return len(found) == len(rows) and all(
        any(len(row) == len(each) and all(map(_same_cell, row, each)) for row in found) for each in rows
    )


def _same_cell(found: str, expected: str) -> bool:
    try:
        return abs(float(found) - float(expected)) < 1e-9
    except ValueError:
        return same_value(found, expected)


def answer_fault(case: PlanningCase, answer: object) -> str:
    """What is wrong with an answer; empty if nothing is."""
    text = "\n".join(_texts(answer))
    absent = [fact for fact in case.answer if not mentions(text, fact)]
    surplus = [fact for fact in case.lacks if mentions(text, fact)]
    return f"answered: {show_text(text) or 'nothing'}" if absent or surplus else ""


def _texts(value: object) -> list[str]:
    match value:
        case None:
            return []
        case Mapping():
            return [text for item in cast("Mapping[str, Any]", value).values() for text in _texts(item)]
        case list() | tuple():
            return [text for item in cast("list[Any]", value) for text in _texts(item)]
        case _:
            return [str(value)]


# The others in the world ----------------------------------------------------------------------------------------------


class Person:
    """The person who made a request: approves the changes that it asks for and no others, and answers no question."""

    def __init__(self, case: PlanningCase) -> None:
        self._case = case
        self.asked = ""

    async def ask(self, question: str, type: Type) -> Any:
        self.asked = self.asked or question
        raise IntentError("intent.questions", "nobody answers questions in a trial")

    async def approve(self, question: ApprovalQuestion) -> Answers:
        return Answers.yes([call for call in question.calls if self._is_asked_for(call)])

    def _is_asked_for(self, call: PendingCall) -> bool:
        given, case = call.arguments, self._case
        if call.effect in ("pure", "read"):
            return True
        if call.tool == "send_mail":
            receivers = {str(each) for name in ("to", "cc") for each in given.get(name) or ()}
            return bool(receivers) and receivers <= {mail.to for mail in case.sent}
        if call.tool in _EVENT_TOOLS:
            return bool(case.added or case.removed)
        if call.tool in _MAIL_FOLDER_TOOLS:
            return False
        paths = {str(given[name]).removeprefix("./") for name in ("path", "source", "target") if name in given}
        return bool(paths) and paths <= case.changed_files


class FactReader:
    """Fills blanks with what the author of the world knows to be in its mails, by the type of the blank."""

    model = "trial facts"
    overlap = 1

    def __init__(self, mails: tuple[WorldMail, ...]) -> None:
        self._mails = mails

    async def extract(self, source: object, instruction: str, wanted: Type) -> ExtractionOutcome:
        text = " ".join(" ".join(_texts(source)).split())
        known = [mail.facts for mail in self._mails if " ".join(mail.body.split()) in text]
        # Of several mails it would not be known which one is meant.
        value = _fact_of_type(known[0], wanted) if len(known) == 1 else None
        return NotFound() if value is None else Filled(value)


def _fact_of_type(facts: Mapping[str, Any], wanted: Type) -> Any:
    day = facts.get("day")
    match wanted:
        case OptionalType(item=item):
            return _fact_of_type(facts, item)
        case RecordType() if wanted == MONEY:
            return {"amount": facts["amount"], "currency": facts["currency"]} if "amount" in facts else None
        case RecordType(fields=fields):
            found = {field.name: _fact_of_type(facts, field.type) for field in fields}
            return None if None in found.values() else found
        case FloatType():
            return facts.get("amount")
        case IntType():
            return round(facts["amount"]) if "amount" in facts else None
        case DateTimeType():
            return None if day is None else dt.datetime(day.year, day.month, day.day)
        case DateType():
            return day
        case BoolType():
            return None
        case StrType():
            return f"{facts['amount']:.2f} {facts['currency']}" if "amount" in facts else None
        case _:
            return None
